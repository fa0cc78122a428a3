/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_PAYLOAD_H
#define BOWLINE_RPC_CORE_PAYLOAD_H

/*
 * What a payload is: the head of a counted block whose message follows it. Streams
 * send the block, each under a reference of its own, and nobody writes to it.
 */

#include "base/block.h"
#include <bowline/payload.h>
#include <bowline/slice.h>

struct bow_payload {
    struct bow__block *block; /* that it lies in */
    size_t len;
};

#define BOW__PAYLOAD_OFFSET sizeof(struct bow_payload)

static inline struct bow_slice bow__payload_bytes(const struct bow_payload *payload)
{
    return (struct bow_slice){payload->block->data + BOW__PAYLOAD_OFFSET, payload->len};
}

#endif
