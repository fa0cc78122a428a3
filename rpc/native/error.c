/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Errors of the connection: the first reason is kept, and the peer is told by a GOAWAY. Who finds
 * one hands its result up until feed() returns it.
 */

#include "rpc/native/internal.h"

static const char *const names[BOW__FRAME_N_TYPES] = {
    [BOW__FRAME_SETTINGS] = "SETTINGS", [BOW__FRAME_REQUEST] = "REQUEST",
    [BOW__FRAME_RESPONSE] = "RESPONSE", [BOW__FRAME_MESSAGE] = "MESSAGE",
    [BOW__FRAME_STATUS] = "STATUS",     [BOW__FRAME_CANCEL] = "CANCEL",
    [BOW__FRAME_WINDOW] = "WINDOW",     [BOW__FRAME_PING] = "PING",
    [BOW__FRAME_GOAWAY] = "GOAWAY",
};

#include <errno.h>

static void break_with_text(struct bow__native *session, enum bow_code code, int rc)
{
    struct bow_status reason = {.code = code, .message = session->base.failure.bytes};

    session->base.failure_code = code;
    session->broken = true;
    session->broken_rc = rc;
    /* Without memory for it the peer learns the reason no more; it sees the close. */
    (void)bow__native_put_goaway(session, session->base.server ? session->highest_id : 0, &reason);
}

int bow__native_break(struct bow__native *session, enum bow_code code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    bow__text_clear(&session->base.failure);
    bow__text_vprintf(&session->base.failure, format, args);
    va_end(args);
    break_with_text(session, code, -EPROTO);
    return -EPROTO;
}

/* "PING frame: ", "STATUS frame, stream 7: ", "frame of type 99: " */
static void begin_text(struct bow__text *text, const struct bow__frame *frame)
{
    const char *name = frame->type < BOW__FRAME_N_TYPES ? names[frame->type] : NULL;

    bow__text_clear(text);
    if (name != NULL) {
        bow__text_printf(text, "%s frame", name);
    } else {
        bow__text_printf(text, "frame of type %u", frame->type);
    }
    if (frame->stream != 0) {
        bow__text_printf(text, ", stream %llu", (unsigned long long)frame->stream);
    }
    bow__text_printf(text, ": ");
}

int bow__native_break_at(struct bow__native *session, const struct bow__frame *frame,
                         const char *format, ...)
{
    va_list args;

    begin_text(&session->base.failure, frame);
    va_start(args, format);
    bow__text_vprintf(&session->base.failure, format, args);
    va_end(args);
    break_with_text(session, BOW_INTERNAL, -EPROTO);
    return -EPROTO;
}

int bow__native_count(struct bow__native *session, const struct bow__frame *frame,
                      struct bow__native_rate *rate, uint32_t limit, const char *limit_name)
{
    const uint64_t second_ns = 1000000000;

    if (session->now_ns - rate->since_ns >= second_ns) {
        *rate = (struct bow__native_rate){.since_ns = session->now_ns};
    }
    if (++rate->n <= limit) {
        return 0;
    }
    begin_text(&session->base.failure, frame);
    bow__text_printf(&session->base.failure, "more than %s (%u)", limit_name, limit);
    break_with_text(session, BOW_RESOURCE_EXHAUSTED, -EPROTO);
    return -EPROTO;
}
