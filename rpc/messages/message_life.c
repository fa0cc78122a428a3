/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The life of a message: made, made empty again, freed. Knows nothing of what is done with it.
 */
#include "rpc/messages/message_life.h"
#include "rpc/core/codec/message_init.h"
#include "rpc/messages/member.h"
#include "rpc/messages/storage.h"
#include <stdlib.h>

ProtobufCMessage *bow_message_new(const ProtobufCMessageDescriptor *type, struct bow_arena *arena)
{
    ProtobufCMessage *message = bow__storage_take(arena, type->sizeof_message);

    if (message != NULL) {
        bow__message_init(type, message);
    }
    return message;
}

/* Messages that wait to be freed: their unknown fields are gone, and the link is in their place. */

static void drop_unknown(const ProtobufCMessage *message)
{
    for (size_t i = 0; message->unknown_fields != NULL && i < message->n_unknown_fields; i++) {
        free(message->unknown_fields[i].data);
    }
    free(message->unknown_fields);
}

/* Put `message` (NULL is allowed) before those that wait. Returns the first. */
static ProtobufCMessage *push(ProtobufCMessage *waiting, ProtobufCMessage *message)
{
    if (message == NULL) {
        return waiting;
    }
    drop_unknown(message);
    message->unknown_fields = (void *)waiting;
    return message;
}

static ProtobufCMessage *drop_value(const ProtobufCFieldDescriptor *field, const void *member,
                                    const void *kept, ProtobufCMessage *waiting)
{
    if (field->type == PROTOBUF_C_TYPE_BYTES) {
        const ProtobufCBinaryData *bytes = member;
        const ProtobufCBinaryData *preset = kept;
        if (preset == NULL || bytes->data != preset->data) {
            free(bytes->data);
        }
        return waiting;
    }
    void *pointer = bow__member_pointer(member);
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        return pointer != kept ? push(waiting, pointer) : waiting;
    }
    if (pointer != kept && pointer != (const void *)protobuf_c_empty_string) {
        free(pointer);
    }
    return waiting;
}

static ProtobufCMessage *drop_array(const ProtobufCMessage *message,
                                    const ProtobufCFieldDescriptor *field,
                                    ProtobufCMessage *waiting)
{
    char *array = bow__member_pointer(bow__member_const(message, field));
    size_t n = array != NULL ? bow__member_n(message, field) : 0;
    size_t size = bow__value_size(field->type);

    for (size_t i = 0; bow__is_apart(field->type) && i < n; i++) {
        waiting = drop_value(field, array + i * size, NULL, waiting);
    }
    free(array);
    return waiting;
}

/* Free what `field` has, but for messages, which are put before those that wait. */
static ProtobufCMessage *drop_field(const ProtobufCMessage *message,
                                    const ProtobufCFieldDescriptor *field,
                                    ProtobufCMessage *waiting)
{
    if (bow__is_repeated(field)) {
        return drop_array(message, field, waiting);
    }
    if (!bow__is_apart(field->type) || !bow__member_is_own(message, field)) {
        return waiting;
    }
    return drop_value(field, bow__member_const(message, field), field->default_value, waiting);
}

static ProtobufCMessage *drop_fields(const ProtobufCMessage *message, ProtobufCMessage *waiting)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;

    for (unsigned i = 0; i < type->n_fields; i++) {
        waiting = drop_field(message, &type->fields[i], waiting);
    }
    return waiting;
}

static void free_waiting(ProtobufCMessage *waiting)
{
    while (waiting != NULL) {
        ProtobufCMessage *message = waiting;
        waiting = drop_fields(message, (void *)message->unknown_fields);
        free(message);
    }
}

void bow__message_drop_field(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    free_waiting(drop_field(message, field, NULL));
}

void bow_message_clear(ProtobufCMessage *message, struct bow_arena *arena)
{
    if (message == NULL) {
        return;
    }
    if (arena == NULL) {
        drop_unknown(message);
        free_waiting(drop_fields(message, NULL));
    }
    bow__message_init(message->descriptor, message);
}

void bow_message_free(ProtobufCMessage *message)
{
    free_waiting(push(NULL, message));
}
