/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The states of a connection: handshake, open, failed, over. Knows nothing of how bytes are
 * encrypted or queued.
 */

#include "tls/connection.h"
#include "base/alloc.h"

#include <bowline/limits.h>
#include <errno.h>
#include <openssl/err.h>

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

void bow__tls_end_opening(struct bow_tls *tls)
{
    struct bow__tls_opening *opening = tls->opening;

    if (opening == NULL) {
        return;
    }
    if (opening->timer.loop != NULL) { /* else it was never added to a channel */
        bow_timer_stop(&opening->timer);
    }
    bow__free(tls->tls_context->context, opening, sizeof(*opening));
    tls->opening = NULL;
}

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

/* End */

void bow__tls_close_if_over(struct bow_tls *tls)
{
    if (tls->is_done && tls->said_goodbye) {
        bow__filter_end(tls->handler.channel);
    }
}
