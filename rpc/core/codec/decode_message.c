/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The beginning and the end of a message: its defaults, and the completion of map
 * entries.
 */
#include "rpc/core/codec/decode_message.h"
#include "rpc/core/codec/decode_reason.h"
#include "rpc/core/codec/decode_required.h"
#include "rpc/core/codec/message_info.h"
#include "rpc/core/codec/value.h"

static void *at_offset(ProtobufCMessage *message, unsigned offset)
{
    return (char *)message + offset;
}

static void copy_default(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    void *member = at_offset(message, field->offset);
    if (field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_MESSAGE) {
        memcpy(member, &field->default_value, sizeof field->default_value);
        return;
    }
    memcpy(member, field->default_value, bow__value_size(field->type));
}

/* For descriptors generated without an init function. */
static void init_from_descriptor(const ProtobufCMessageDescriptor *type, ProtobufCMessage *message)
{
    memset(message, 0, type->sizeof_message);
    message->descriptor = type;
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        bool is_own = field->label != PROTOBUF_C_LABEL_REPEATED &&
                      (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) == 0;
        if (is_own && field->default_value != NULL) {
            copy_default(message, field);
        }
    }
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
    if (type->message_init != NULL) {
        type->message_init(message);
    } else {
        init_from_descriptor(type, message);
    }
    return message;
}

/* Whether `name` is `field` in camel case and "Entry", as protoc calls the entries of a map. */
static bool is_entry_name(const char *name, const char *field)
{
    bool upper = true;
    for (; *field != '\0'; field++) {
        if (*field == '_') {
            upper = true;
            continue;
        }
        bool lowers = upper && *field >= 'a' && *field <= 'z';
        if (*name++ != (lowers ? *field - 'a' + 'A' : *field)) {
            return false;
        }
        upper = false;
    }
    return strcmp(name, "Entry") == 0;
}

/*
 * Descriptors of protoc-gen-c don't mark maps. A hand-written message that passes for an entry is
 * one: that is how maps are written for compilers that have none.
 */
static bool passes_for_map_entry(const ProtobufCFieldDescriptor *field,
                                 const ProtobufCMessageDescriptor *type)
{
    return field != NULL && field->label == PROTOBUF_C_LABEL_REPEATED && type->n_fields == 2 &&
           type->fields[0].id == 1 && type->fields[1].id == 2 && type->short_name != NULL &&
           field->name != NULL && strcmp(type->fields[0].name, "key") == 0 &&
           strcmp(type->fields[1].name, "value") == 0 &&
           is_entry_name(type->short_name, field->name);
}

static bool is_map_entry(const ProtobufCFieldDescriptor *field,
                         const ProtobufCMessageDescriptor *type)
{
    const struct bow_message_info *info = bow__message_info(type);
    return info != NULL ? (info->flags & BOW_MESSAGE_MAP_ENTRY) != 0
                        : passes_for_map_entry(field, type);
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
        !is_map_entry(frame->field, type)) {
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
