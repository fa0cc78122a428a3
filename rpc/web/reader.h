/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_WEB_READER_H
#define BOWLINE_RPC_WEB_READER_H

/*
 * From a request's body to the messages in it, as they travel: bare, all of the body being one;
 * behind prefixes; or those in base64. It is fed as the body comes and holds what is not whole, in
 * a block that grows with what has arrived, for which it finds room among what the server has in
 * flight. Knows nothing of JSON and of heads.
 */

#include "base/block.h"
#include "base/text.h"
#include "rpc/core/session.h"

/** How the body is cut into messages. */
enum bow__web_framing {
    BOW__WEB_BARE,
    BOW__WEB_PREFIXED,
    BOW__WEB_PREFIXED_BASE64,
};

struct bow__web_reader {
    struct bow_context *context;
    struct bow__in_flight_share *in_flight; /* NULL: nothing is counted */
    size_t max_message_bytes;
    enum bow__web_framing framing;

    uint8_t quad[4]; /* of base64, that is not whole */
    uint8_t n_quad;
    uint8_t decoded[3];
    uint8_t n_decoded; /* of those, that have not been read */

    uint8_t prefix[5];
    uint8_t n_prefix;
    uint32_t len;   /* that the prefix says */
    size_t n_bytes; /* in `block` */
    struct bow__block *block;
    size_t n_reserved;  /* counted as in flight */
    enum bow_code code; /* after an error */
};

/** Begin in zeroed memory. */
void bow__web_reader_init(struct bow__web_reader *reader, struct bow_context *context,
                          enum bow__web_framing framing, struct bow__in_flight_share *in_flight,
                          size_t max_message_bytes);
void bow__web_reader_fini(struct bow__web_reader *reader);

/**
 * Read on from the front of `*bytes`, which is moved behind what was taken. Returns 1 with a
 * message, which is the caller's with its block and marked as compressed if its prefix is; 0 when
 * all has been taken; -EPROTO, -EMSGSIZE or -ENOMEM when the call cannot go on: `code` and `why`
 * say so.
 */
int bow__web_reader_feed(struct bow__web_reader *reader, struct bow_slice *bytes,
                         struct bow__message *ret_message, struct bow__text *why);

/** The body has ended. Returns 1 with the message that all of it was; 0 when there is nothing left;
 * or -EPROTO, as above, when it ended inside a message. */
int bow__web_reader_end(struct bow__web_reader *reader, struct bow__message *ret_message,
                        struct bow__text *why);

/** Whether it holds what is counted as in flight. */
static inline bool bow__web_reader_is_under_way(const struct bow__web_reader *reader)
{
    return reader->n_reserved > 0;
}

#endif
