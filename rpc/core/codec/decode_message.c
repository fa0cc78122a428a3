/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The beginning and the end of a message: room for it, and the completion of map
 * entries.
 */
#include "rpc/core/codec/decode_message.h"
#include "rpc/core/codec/decode_reason.h"
#include "rpc/core/codec/decode_required.h"
#include "rpc/core/codec/map_entry.h"
#include "rpc/core/codec/message_init.h"

static void *at_offset(ProtobufCMessage *message, unsigned offset)
{
    return (char *)message + offset;
}

ProtobufCMessage *bow__decode_new(struct bow__decoder *d, const ProtobufCMessageDescriptor *type)
{
    size_t head = bow__decode_required_size(d, type);
    char *memory = bow__arena_alloc(d->arena, head + type->sizeof_message);
    if (memory == NULL) {
        return NULL;
    }
    if (head > 0) { /* seldom, so that the call is worth avoiding */
        memset(memory, 0, head);
    }
    ProtobufCMessage *message = (ProtobufCMessage *)(void *)(memory + head);
    bow__message_init(type, message);
    return message;
}

static bool is_null(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    bool is_pointer =
        field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_MESSAGE;
    return is_pointer && *(void **)at_offset(message, field->offset) == NULL;
}

/* Give `field` of an entry the empty value that the specification gives it. */
static bool fill(struct bow__decoder *d, ProtobufCMessage *entry,
                 const ProtobufCFieldDescriptor *field, const uint8_t *at)
{
    void *value;
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        value = bow__decode_new(d, field->descriptor);
        bow__decode_note_required(d, value, at);
    } else {
        value = bow__arena_dup(d->arena, "", 0);
    }
    *(void **)at_offset(entry, field->offset) = value;
    return value != NULL;
}

static bool complete_entry(struct bow__decoder *d, const struct bow__decode_frame *frame,
                           const uint8_t *at)
{
    ProtobufCMessage *entry = frame->message;
    const ProtobufCMessageDescriptor *type = entry->descriptor;
    if (type->n_fields != 2 ||
        (!is_null(entry, &type->fields[0]) && !is_null(entry, &type->fields[1])) ||
        !bow__is_map_entry(frame->field, type)) {
        return true;
    }
    for (unsigned i = 0; i < 2; i++) {
        if (is_null(entry, &type->fields[i]) && !fill(d, entry, &type->fields[i], at)) {
            return false;
        }
    }
    return true;
}

const uint8_t *bow__decode_complete(struct bow__decoder *d, const uint8_t *at)
{
    const struct bow__decode_frame *frame = d->top;
    if (frame->required != NULL) {
        bow__decode_note_required(d, frame->message, at);
    }
    return complete_entry(d, frame, at) ? at : bow__decode_no_memory(d, NULL, at);
}
