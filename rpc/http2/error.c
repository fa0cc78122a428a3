/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Errors of the connection: only recorded here, the first reason counts. session.c tells the peer
 * and the host of it, where nothing runs that could be cut short. And what is counted, lest it
 * be a flood.
 */

#include "rpc/http2/internal.h"

#include <errno.h>
#include <stdarg.h>

void bow__http2_break(struct bow__http2_session *session, uint32_t http2_error, int error,
                      enum bow_code code, const char *format, ...)
{
    va_list args;

    if (session->broken) {
        return;
    }
    session->broken = true;
    session->http2_error = http2_error;
    session->error = error;
    session->base.failure_code = code;
    bow__text_clear(&session->base.failure);
    va_start(args, format);
    bow__text_vprintf(&session->base.failure, format, args);
    va_end(args);
}

void bow__http2_check(struct bow__http2_session *session, int rv)
{
    if (rv == NGHTTP2_ERR_NOMEM) {
        bow__http2_break(session, NGHTTP2_INTERNAL_ERROR, -ENOMEM, BOW_RESOURCE_EXHAUSTED,
                         "no memory for the HTTP/2 connection");
    }
}

void bow__http2_ping(struct bow__http2_session *session, const uint8_t *opaque)
{
    bow__frames_expect(&session->acks_due, 1);
    bow__http2_check(session, nghttp2_submit_ping(session->ng, NGHTTP2_FLAG_NONE, opaque));
}

void bow__http2_count(struct bow__http2_session *session, struct bow__http2_rate *rate,
                      uint32_t max, const char *what, const char *limit)
{
    if (session->now_ns - rate->began_ns >= UINT64_C(1000000000)) {
        *rate = (struct bow__http2_rate){.began_ns = session->now_ns};
    }
    rate->n++;
    if (rate->n > max) {
        bow__http2_break(session, NGHTTP2_ENHANCE_YOUR_CALM, -EPROTO, BOW_RESOURCE_EXHAUSTED,
                         "more %s in a second than %s (%u)", what, limit, max);
    }
}
