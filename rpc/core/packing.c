/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Compressed messages of calls, out and in: one function for each way, whatever the side and
 * the kind of call.
 */

#include "rpc/core/packing.h"

static void touch(struct bow__packing *packing)
{
    if (!packing->used) {
        packing->used = true;
        if (packing->on_use != NULL) {
            packing->on_use(packing);
        }
    }
}

enum bow__encoding bow__packing_choose(const struct bow__session *session, uint64_t key)
{
    uint32_t both = session->ops->encodings(session, key) & bow__encodings_built();

    if ((both & 1u << BOW__ENCODING_ZSTD) != 0) {
        return BOW__ENCODING_ZSTD;
    }
    return (both & 1u << BOW__ENCODING_GZIP) != 0 ? BOW__ENCODING_GZIP : BOW__ENCODING_IDENTITY;
}

int bow__packing_send(struct bow__packing *packing, struct bow__session *session, uint64_t key,
                      enum bow__encoding encoding, uint32_t flags, struct bow_slice bytes,
                      size_t *ret_len)
{
    struct bow__block *block = NULL;
    size_t len = 0;

    if (encoding == BOW__ENCODING_IDENTITY || bytes.len < packing->threshold_bytes) {
        return 1;
    }
    touch(packing);
    if (bow__deflate(&packing->coders, encoding, packing->level, bytes, &block, &len) < 0) {
        return 1;
    }
    int rc = session->ops->send(session, key, flags | BOW__SEND_COMPRESSED, block, 0, len);
    if (rc < 0) {
        bow__block_unref(block);
        return rc;
    }
    *ret_len = len;
    return 0;
}

int bow__packing_unpack(struct bow__packing *packing, struct bow__message *message,
                        struct bow__text *reason)
{
    struct bow__block *block = NULL;
    size_t len = 0;

    touch(packing);
    int rc = bow__inflate(&packing->coders, message->encoding, message->bytes,
                          packing->max_message_bytes, &block, &len, reason);
    if (rc < 0) {
        return rc;
    }
    bow__block_unref(message->block);
    message->block = block;
    message->bytes = (struct bow_slice){block != NULL ? block->data : (const uint8_t *)"", len};
    message->compressed = false;
    return 0;
}
