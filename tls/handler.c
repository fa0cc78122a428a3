/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The handler's callbacks, and the states of a connection: handshake, open, failed.
 * Knows nothing of how bytes are encrypted or queued.
 */

#include "tls/handler.h"

#include <bowline/limits.h>
#include <errno.h>
#include <openssl/err.h>

#define GOODBYE_PIECES 8

void bow__tls_enter(void)
{
    ERR_clear_error();
}

enum bow__tls_outcome bow__tls_look(struct bow_tls *tls, int rc)
{
    switch (SSL_get_error(tls->ssl, rc)) {
    case SSL_ERROR_WANT_READ:
        return BOW__TLS_WANTS_MORE;
    case SSL_ERROR_ZERO_RETURN:
        return BOW__TLS_DONE;
    default:
        return BOW__TLS_BROKEN;
    }
}

/* Failure */

void bow__tls_fail(struct bow_tls *tls, int error, const char *why)
{
    struct bow_handler *handler = &tls->handler;

    if (tls->state == BOW__TLS_FAILED || !bow_channel_is_active(handler->channel)) {
        return;
    }
    tls->state = BOW__TLS_FAILED;
    bow__tls_say(tls, why);
    if (tls->opening != NULL) {
        bow_timer_stop(&tls->opening->timer);
    }
    /* An alert waits. Closing at once might answer what the peer still sends with a reset, and
     * that overtakes it; but who was silent for so long is not waited for any more. */
    tls->has_last_words = tls->wire.out.len > 0 && error != -ETIMEDOUT;
    if (tls->has_last_words) {
        bow__filter_close_after_flush(handler->channel, BOW__TLS_LAST_WORDS_NS, error);
    }
    bow_handler_fire_error(handler, error);
    if (!tls->has_last_words) {
        bow_handler_close(handler, error);
    }
}

void bow__tls_fail_ssl(struct bow_tls *tls)
{
    struct bow__text why;

    int error = bow__tls_explain(tls, &why);
    bow__tls_fail(tls, error, why.bytes);
}

/* Handshake */

static void on_open(struct bow_tls *tls)
{
    tls->state = BOW__TLS_OPEN;
    bow__tls_end_opening(tls);
    bow_handler_fire_active(&tls->handler);
    bow_handler_flush(&tls->handler); /* what was waiting for this */
}

void bow__tls_shake_hands(struct bow_tls *tls)
{
    bow__tls_enter();
    int rc = SSL_do_handshake(tls->ssl);
    if (rc == 1) {
        on_open(tls);
        return;
    }
    switch (bow__tls_look(tls, rc)) {
    case BOW__TLS_WANTS_MORE:
        break;
    case BOW__TLS_DONE:
        bow__tls_fail(tls, -EPROTO, "the peer ended the connection during the TLS handshake");
        return;
    case BOW__TLS_BROKEN:
        bow__tls_fail_ssl(tls);
        return;
    }
    if (tls->wire.n_read > BOW_LIMIT_TLS_HANDSHAKE_BYTES) {
        bow__tls_fail(tls, -EMSGSIZE,
                      "the peer's TLS handshake is larger than BOW_LIMIT_TLS_HANDSHAKE_BYTES");
    }
}

static void on_timer(struct bow_timer *timer, void *user)
{
    struct bow_tls *tls = user;
    struct bow__text text;

    (void)timer;
    bow__text_clear(&text);
    bow__text_printf(&text,
                     "the TLS handshake was not done after %.3g s (option handshake_timeout_ns); "
                     "%zu bytes came from the peer",
                     (double)tls->opening->timeout_ns / 1e9, tls->wire.n_read);
    bow__tls_fail(tls, -ETIMEDOUT, text.bytes);
}

/* Birth and end in the pipeline */

static void on_added(struct bow_handler *handler)
{
    struct bow_tls *tls = bow__tls_of_handler(handler);
    struct bow_loop *loop = bow_channel_loop(handler->channel);

    tls->wire.out.pool = bow__loop_pool(loop);
    bow_timer_init(&tls->opening->timer, loop, on_timer, tls);
    if (tls->opening->timeout_ns != BOW_NEVER) {
        bow_timer_start(&tls->opening->timer, tls->opening->timeout_ns);
    }
    bow_handler_flush(handler); /* a client begins */
}

static void on_inactive(struct bow_handler *handler, int error)
{
    struct bow_tls *tls = bow__tls_of_handler(handler);

    bow__tls_end_opening(tls);
    bow__tls_abandon_writes(tls, error < 0 ? error : -ECANCELED);
}

static void on_removed(struct bow_handler *handler)
{
    struct bow_tls *tls = bow__tls_of_handler(handler);

    bow__tls_abandon_writes(tls, -ECANCELED);
    bow_tls_free(tls);
}

/* The handlers behind are told when the handshake is done. */
static void on_active(struct bow_handler *handler)
{
    (void)handler;
}

static void on_read_complete(struct bow_handler *handler)
{
    struct bow_tls *tls = bow__tls_of_handler(handler);

    bow__tls_deliver_eof(tls); /* after a pause */
    if (tls->state == BOW__TLS_OPEN && !tls->is_quiet) {
        bow_handler_fire_read_complete(handler);
    }
    tls->is_quiet = false;
}

/* End of the connection */

void bow__tls_close_if_over(struct bow_tls *tls)
{
    if (tls->is_done && tls->said_goodbye) {
        bow__filter_end(tls->handler.channel);
    }
}

static void on_eof(struct bow_handler *handler)
{
    struct bow_tls *tls = bow__tls_of_handler(handler);

    if (tls->is_done) {
        bow__tls_deliver_eof(tls);
        return;
    }
    bow__tls_fail(tls, -EPROTO,
                  tls->state == BOW__TLS_HANDSHAKE
                      ? "the peer closed the connection during the TLS handshake; does it speak "
                        "TLS on this port?"
                      : "the connection was cut: the peer closed it without TLS's close_notify, "
                        "so its last bytes may be missing: has it crashed?");
}

static void on_close(struct bow_handler *handler, int error)
{
    struct bow_tls *tls = bow__tls_of_handler(handler);
    struct iovec pieces[GOODBYE_PIECES];

    if (tls->has_last_words) {
        return; /* it closes by itself, soon */
    }
    if (error == 0 && tls->state == BOW__TLS_OPEN && !tls->said_goodbye) {
        bow__tls_say_goodbye(tls);
        int n = bow__tls_out_pieces(&tls->wire.out, pieces, GOODBYE_PIECES);
        bow__filter_send_now(handler->channel, pieces, n);
    }
    bow_handler_close(handler, error);
}

const struct bow_handler_ops bow__tls_ops = {
    .name = "tls",
    .on_added = on_added,
    .on_removed = on_removed,
    .on_active = on_active,
    .on_read = bow__tls_on_read,
    .on_read_complete = on_read_complete,
    .on_eof = on_eof,
    .on_inactive = on_inactive,
    .on_write = bow__tls_on_write,
    .on_flush = bow__tls_on_flush,
    .on_close = on_close,
    .on_drain = bow__tls_on_drain,
    .on_sent = bow__tls_on_sent,
};
