/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * From the wire to the handlers behind: records are decrypted into a chunk of the
 * loop's pool, as many as fit, and delivered from there. What can't be delivered stays
 * encrypted with the channel.
 */

#include "tls/handler.h"

#include <bowline/limits.h>
#include <errno.h>
#include <openssl/err.h>

#define RECORD_HANDSHAKE 0x16
#define RECORD_ALERT 0x15
#define SHOWN_BYTES 24

/* Of a record (RFC 8446 section 5.1). */
#define MAX_PLAIN_BYTES ((size_t)16384)

/* A peer that speaks something else gets no alert: it would not know what that is. */
static void check_opening(struct bow_tls *tls)
{
    const struct bow_slice in = tls->wire.in;
    struct bow__text text;

    if (in.len == 0) {
        return;
    }
    if (in.data[0] == RECORD_HANDSHAKE || in.data[0] == RECORD_ALERT) {
        tls->has_opening = true;
        return;
    }
    bow__text_clear(&text);
    bow__text_printf(&text, "the peer speaks plaintext (it began with \"");
    bow__text_escape(&text, in, SHOWN_BYTES);
    bow__text_printf(&text, "\")");
    bow__tls_fail(tls, -EPROTO, text.bytes);
}

void bow__tls_deliver_eof(struct bow_tls *tls)
{
    struct bow_channel *channel = tls->handler.channel;

    if (tls->eof_is_due && bow__filter_can_read(channel)) {
        tls->eof_is_due = false;
        bow_handler_fire_eof(&tls->handler);
        bow__tls_close_if_over(tls);
    }
}

/* How far a batch came: bytes decrypted, and what stopped it. */
struct batch {
    size_t n;
    enum bow__tls_outcome outcome;
    int error; /* of a broken one, and the words for it */
    struct bow__text why;
};

static void decrypt(struct bow_tls *tls, struct bow__block *chunk, struct batch *batch)
{
    batch->n = 0;
    batch->outcome = BOW__TLS_WANTS_MORE;
    bow__tls_enter();
    /* A record always fits whole, so that nothing decrypted is left behind in OpenSSL. */
    while (tls->wire.in.len > 0 && chunk->cap - batch->n >= MAX_PLAIN_BYTES) {
        size_t n = 0;
        int rc = SSL_read_ex(tls->ssl, chunk->data + batch->n, chunk->cap - batch->n, &n);
        if (rc != 1) {
            batch->outcome = bow__tls_look(tls, rc);
            break;
        }
        batch->n += n;
    }
    if (batch->outcome == BOW__TLS_BROKEN) {
        /* Now: the handlers may use OpenSSL, and its queue, for themselves. */
        batch->error = bow__tls_explain(tls, &batch->why);
    }
}

static void check_answers(struct bow_tls *tls)
{
    if (tls->wire.out.len > BOW_LIMIT_TLS_ANSWER_BYTES) {
        bow__tls_fail(tls, -EMSGSIZE,
                      "the peer makes TLS answer and does not read: more than "
                      "BOW_LIMIT_TLS_ANSWER_BYTES wait");
    }
}

static void read_batch(struct bow_tls *tls, struct bow__block *chunk)
{
    struct batch batch;

    decrypt(tls, chunk, &batch);
    if (batch.n > 0) {
        struct bow_buf bytes = bow_buf_borrow(chunk->data, batch.n);
        tls->is_quiet = false;
        (void)bow_handler_fire_read(&tls->handler, &bytes);
    }
    if (batch.outcome == BOW__TLS_BROKEN) {
        bow__tls_fail(tls, batch.error, batch.why.bytes);
        return;
    }
    check_answers(tls);
    if (batch.outcome == BOW__TLS_DONE) {
        tls->is_done = true;
        tls->eof_is_due = true;
        bow__tls_deliver_eof(tls);
    }
}

static bool can_read(struct bow_tls *tls)
{
    return tls->state == BOW__TLS_OPEN && !tls->is_done && tls->wire.in.len > 0 &&
           bow_handler_can_fire_read(&tls->handler);
}

static void read_records(struct bow_tls *tls)
{
    struct bow__pool *pool = tls->wire.out.pool;

    if (!can_read(tls)) {
        return;
    }
    struct bow__block *chunk = bow__pool_get(pool);
    if (chunk == NULL) {
        bow__tls_fail(tls, -ENOMEM, "out of memory");
        return;
    }
    while (can_read(tls)) {
        read_batch(tls, chunk);
    }
    bow__pool_put(pool, chunk);
}

size_t bow__tls_on_read(struct bow_handler *handler, const struct bow_buf *bytes)
{
    struct bow_tls *tls = bow__tls_of_handler(handler);

    tls->wire.in = (struct bow_slice){bytes->data, bytes->len};
    if (!tls->has_opening) {
        check_opening(tls);
    }
    if (tls->state == BOW__TLS_HANDSHAKE) {
        tls->is_quiet = true;
        bow__tls_shake_hands(tls);
    }
    read_records(tls);
    /* Behind its close_notify, and behind a failure, there is nothing to read. */
    size_t n_left = tls->is_done || tls->state == BOW__TLS_FAILED ? 0 : tls->wire.in.len;
    tls->wire.in = (struct bow_slice){NULL, 0};
    if (tls->wire.out.len > 0) {
        bow_handler_flush(handler);
    }
    return bytes->len - n_left;
}
