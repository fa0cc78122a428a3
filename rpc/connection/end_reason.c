/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Why a connection ended: the session's word, that of TLS, who closed it, or what the socket said.
 */
#include "rpc/connection/end_reason.h"

#include <errno.h>

const char *bow__conn_security_failure(const struct bow__conn *conn)
{
    return conn->security != NULL ? conn->security->ops->failure(conn->channel) : "";
}

/* A server says GOAWAY before it closes; its clients owe it nothing. */
static const char *describe_close(const struct bow__conn *conn)
{
    if (conn->server) {
        return "the peer closed it";
    }
    if (!conn->heard) {
        return conn->security != NULL
                   ? "the peer closed it before it said anything: is it the right port?"
                   : "the peer closed it before it said anything: does it want TLS "
                     "(options.security), or another protocol, on this port?";
    }
    return conn->is_announced
               ? "the peer closed it, as it had announced (GOAWAY), with calls in flight"
               : "the peer closed it without a GOAWAY: has it crashed?";
}

/* Whether that is how its client gave up what it had asked for. */
static bool is_cancelled(const struct bow__conn *conn)
{
    return conn->session != NULL && conn->session->cancels_by_close &&
           (conn->error == 0 || conn->error == -ECONNRESET || conn->error == -EPIPE);
}

void bow__conn_describe_end(const struct bow__conn *conn, struct bow__text *text,
                            struct bow_status *ret_why)
{
    bow__text_clear(text);
    bow__text_printf(text, "connection to %s lost: ", bow_channel_peer(conn->channel));
    ret_why->code = BOW_UNAVAILABLE;
    if (conn->session != NULL && conn->session->failure.len > 0) {
        bow__text_printf(text, "%s", conn->session->failure.bytes);
    } else if (*bow__conn_security_failure(conn) != '\0') {
        bow__text_printf(text, "%s", bow__conn_security_failure(conn));
    } else if (conn->close_reason != NULL) {
        bow__text_printf(text, "%s", conn->close_reason);
    } else {
        ret_why->code = is_cancelled(conn) ? BOW_CANCELLED : BOW_UNAVAILABLE;
        if (conn->error == 0) {
            bow__text_printf(text, "%s", describe_close(conn));
        } else {
            bow__text_errno(text, conn->error);
        }
    }
    ret_why->message = text->bytes;
}
