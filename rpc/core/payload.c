/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A message that is encoded once. Knows nothing of who sends it.
 */

#include "rpc/core/payload.h"
#include "rpc/core/encode.h"

#include <errno.h>

int bow_payload_new(struct bow_context *context, const ProtobufCMessage *message,
                    struct bow_payload **ret_payload)
{
    size_t size = bow__encoded_size(message);

    if (size == SIZE_MAX) {
        return -EINVAL;
    }
    struct bow__block *block = bow__block_new(context, BOW__PAYLOAD_OFFSET + size);
    if (block == NULL) {
        return -ENOMEM;
    }
    ssize_t n = bow__encode(message, block->data + BOW__PAYLOAD_OFFSET, size, NULL);
    if (n < 0) {
        bow__block_unref(block);
        return -EINVAL;
    }
    struct bow_payload *payload = (struct bow_payload *)(void *)block->data;
    *payload = (struct bow_payload){.block = block, .len = (size_t)n};
    *ret_payload = payload;
    return 0;
}

struct bow_payload *bow_payload_ref(struct bow_payload *payload)
{
    bow__block_ref(payload->block);
    return payload;
}

void bow_payload_unref(struct bow_payload *payload)
{
    if (payload != NULL) {
        bow__block_unref(payload->block);
    }
}
