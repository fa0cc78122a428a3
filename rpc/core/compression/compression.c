/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Compressed messages of calls, out and in: which encoding, and whether it pays; one function for
 * each way, whatever the side and the kind of call. On and off: the options of server and client,
 * and rpc/core/call/call_metadata.c for one call.
 */

#include "rpc/core/compression/compression.h"
#include "rpc/core/message/message_queue.h"
#include "rpc/core/message/payload.h"

#include <errno.h>

static void touch(struct bow__compression *compression)
{
    if (!compression->used) {
        compression->used = true;
        if (compression->on_use != NULL) {
            compression->on_use(compression);
        }
    }
}

enum bow__encoding bow__compression_choose(const struct bow__session *session, uint64_t key)
{
    uint32_t both = session->ops->encodings(session, key) & bow__encodings_built();

    for (unsigned i = BOW__ENCODING_IDENTITY + 1; i < BOW__N_ENCODINGS; i++) {
        if ((both & 1u << i) != 0) {
            return (enum bow__encoding)i;
        }
    }
    return BOW__ENCODING_IDENTITY;
}

/* Takes the reference to `block`, if it succeeds. */
static int send_block(struct bow__session *session, uint64_t key, uint32_t flags,
                      struct bow__block *block, size_t len, size_t *ret_len)
{
    int rc = session->ops->send(session, key, flags | BOW__SEND_COMPRESSED, block, 0, len);

    if (rc < 0) {
        bow__block_unref(block);
        return rc;
    }
    *ret_len = len;
    return 0;
}

int bow__compression_send(struct bow__compression *compression, struct bow__session *session,
                          uint64_t key, enum bow__encoding encoding, uint32_t flags,
                          struct bow_slice bytes, size_t *ret_len)
{
    struct bow__block *block = NULL;
    size_t len = 0;

    touch(compression);
    if (bow__deflate(&compression->coders, encoding, compression->level, bytes, &block, &len) < 0) {
        return 1;
    }
    return send_block(session, key, flags, block, len, ret_len);
}

/* That it does not get smaller is worth knowing, too. NULL out of memory. */
static const struct bow__form *make_form(struct bow__compression *compression,
                                         struct bow_payload *payload, enum bow__encoding encoding)
{
    struct bow__form form = {.encoding = encoding, .level = compression->level};

    touch(compression);
    int rc = bow__deflate(&compression->coders, encoding, compression->level,
                          bow__payload_bytes(payload), &form.block, &form.len);
    return rc == 0 || rc == -ENOBUFS ? bow__payload_add_form(payload, &form) : NULL;
}

static int send_payload(struct bow__compression *compression, struct bow__session *session,
                        uint64_t key, enum bow__encoding encoding, uint32_t flags,
                        struct bow_payload *payload, size_t *ret_len)
{
    const struct bow__form *form = bow__payload_form(payload, encoding, compression->level);
    if (form == NULL) {
        form = make_form(compression, payload, encoding);
    }
    if (form == NULL || form->block == NULL) {
        return 1;
    }
    return send_block(session, key, flags, bow__block_ref(form->block), form->len, ret_len);
}

int bow__compression_send_queued(struct bow__compression *compression, struct bow__session *session,
                                 uint64_t key, enum bow__encoding encoding, uint32_t flags,
                                 struct bow__queued_message *held, size_t *ret_len)
{
    struct bow_payload *payload = held->payload;

    if (!bow__compression_wants(compression, encoding, held->compression, held->len)) {
        return 1;
    }
    /* Memory of one context is not left with a payload of another. */
    if (payload != NULL && payload->block->context == compression->coders.context) {
        return send_payload(compression, session, key, encoding, flags, payload, ret_len);
    }
    return bow__compression_send(compression, session, key, encoding, flags,
                                 (struct bow_slice){bow__queued_message_bytes(held), held->len},
                                 ret_len);
}

int bow__compression_unpack(struct bow__compression *compression, struct bow__message *message,
                            struct bow__text *reason)
{
    struct bow__block *block = NULL;
    size_t len = 0;

    touch(compression);
    int rc = bow__inflate(&compression->coders, message->encoding, message->bytes,
                          compression->max_message_bytes, &block, &len, reason);
    message->n_made += len;
    if (rc < 0) {
        return rc;
    }
    bow__block_unref(message->block);
    message->block = block;
    message->bytes = (struct bow_slice){block != NULL ? block->data : (const uint8_t *)"", len};
    message->compressed = false;
    return 0;
}
