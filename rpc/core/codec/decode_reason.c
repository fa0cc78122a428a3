/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Texts for what the decoder refuses: where (the field's path from the outermost
 * message, the offset of the byte) and what. The stack of frames is the path. The sentence around
 * it is its caller's: dispatch.c and call_stream_events.c of the server, client_conn.c.
 *
 * Invariant: each function here sets `error`, and returns NULL so that its caller
 * can return the result as a position.
 */
#include "rpc/core/codec/decode_reason.h"
#include "rpc/core/codec/field_path.h"
#include <stdarg.h>
#include <stdio.h>

static struct bow__field_step step_of(const void *frames, size_t i)
{
    const struct bow__decode_frame *frame = (const struct bow__decode_frame *)frames + i + 1;
    return (struct bow__field_step){frame->field, frame->index};
}

const uint8_t *bow__decode_refuse(struct bow__decoder *d, const ProtobufCFieldDescriptor *field,
                                  const uint8_t *at, const char *what, ...)
{
    char text[128];
    va_list args;
    va_start(args, what);
    vsnprintf(text, sizeof text, what, args);
    va_end(args);
    bow__field_path_append(d->reason, d->type, step_of, d->frames, (size_t)(d->top - d->frames));
    if (field != NULL) {
        bow__field_path_append_field(d->reason, field);
    }
    bow__text_printf(d->reason, " at byte %zu: %s", (size_t)(at - d->begin), text);
    d->error = -EBADMSG;
    return NULL;
}

const uint8_t *bow__decode_refuse_number(struct bow__decoder *d, uint32_t number, const uint8_t *at,
                                         const char *what)
{
    const ProtobufCFieldDescriptor unnamed = {.id = number};
    return bow__decode_refuse(d, &unnamed, at, "%s", what);
}

const uint8_t *bow__decode_refuse_tag(struct bow__decoder *d, const uint8_t *at)
{
    uint64_t tag;
    if (bow__wire_read_varint(at, d->top->end, &tag) != NULL) {
        const char *what = tag < 8            ? "field number 0"
                           : tag > UINT32_MAX ? "a field number above 536870911"
                                              : "a tag of more than 5 bytes";
        return bow__decode_refuse(d, NULL, at, "%s", what);
    }
    bool is_cut = bow__wire_is_cut(at, d->top->end);
    return bow__decode_refuse(d, NULL, at, is_cut ? "cut off" : "a tag above 64 bits");
}

const uint8_t *bow__decode_refuse_value(struct bow__decoder *d,
                                        const ProtobufCFieldDescriptor *field, const uint8_t *at,
                                        const uint8_t *end)
{
    /* Values of fixed size fail only when they are cut off, and are shorter than ten bytes. */
    bool is_long = end - at >= BOW__WIRE_VARINT_BYTES && !bow__wire_is_cut(at, end);
    return bow__decode_refuse(d, field, at, is_long ? "a varint above 64 bits" : "cut off");
}

const uint8_t *bow__decode_no_memory(struct bow__decoder *d, const ProtobufCFieldDescriptor *field,
                                     const uint8_t *at)
{
    bow__decode_refuse(d, field, at, "no memory: %zu bytes used of the at most %zu of this call",
                       d->arena->used, d->arena->max_bytes);
    d->error = -ENOMEM;
    return NULL;
}
