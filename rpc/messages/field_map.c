/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Maps: repeated entries, of which the last of a key counts, so that each search begins there. A
 * new entry is whole before it is added.
 */
#include "rpc/messages/field.h"
#include "rpc/messages/field_add.h"
#include "rpc/messages/map_key.h"
#include "rpc/messages/storage.h"
#include <bowline/message.h>
#include <bowline/message_field.h>

/* A value to be put; of a message nothing but the type. */
struct value {
    const void *data;
    size_t len; /* of a string, and of bytes */
};

/* Whether `message` is one, and `field` of it has the shape of a map, whatever it is called. */
static bool is_map(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    if (!bow__field_is_list(message, field) || field->type != PROTOBUF_C_TYPE_MESSAGE) {
        return false;
    }
    const ProtobufCMessageDescriptor *type = field->descriptor;
    return type->n_fields == 2 && type->fields[0].id == 1 && type->fields[1].id == 2 &&
           !bow__is_repeated(bow__entry_key(type)) && !bow__is_repeated(bow__entry_value(type));
}

static bool has_key(const ProtobufCMessage *entry, const void *key)
{
    return entry != NULL && bow__map_key_order(bow__entry_key(entry->descriptor)->type,
                                               bow__map_key_of(entry), key) == 0;
}

static ProtobufCMessage **entries_of(const ProtobufCMessage *message,
                                     const ProtobufCFieldDescriptor *field, size_t *ret_n)
{
    ProtobufCMessage **entries = bow__member_pointer(bow__member_const(message, field));

    *ret_n = entries != NULL ? bow__member_n(message, field) : 0;
    return entries;
}

static ProtobufCMessage *find(const ProtobufCMessage *message,
                              const ProtobufCFieldDescriptor *field, const void *key)
{
    size_t n = 0;
    ProtobufCMessage **entries = entries_of(message, field, &n);

    while (n > 0 && !has_key(entries[n - 1], key)) {
        n--;
    }
    return n > 0 ? entries[n - 1] : NULL;
}

static bool set_key(ProtobufCMessage *entry, const void *key, struct bow_arena *arena)
{
    const ProtobufCFieldDescriptor *field = bow__entry_key(entry->descriptor);

    return field->type == PROTOBUF_C_TYPE_STRING ? bow_message_set_string(entry, field, key, arena)
                                                 : bow_message_set_scalar(entry, field, key, arena);
}

static bool set_new_message(ProtobufCMessage *entry, const ProtobufCFieldDescriptor *field,
                            struct bow_arena *arena)
{
    ProtobufCMessage *value = bow_message_new(field->descriptor, arena);

    return value != NULL && bow_message_set_message(entry, field, value, arena);
}

static bool set_value(ProtobufCMessage *entry, struct value value, struct bow_arena *arena)
{
    const ProtobufCFieldDescriptor *field = bow__entry_value(entry->descriptor);

    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        return bow_message_set_string_n(entry, field, value.data, value.len, arena);
    case PROTOBUF_C_TYPE_BYTES:
        return bow_message_set_bytes(entry, field, value.data, value.len, arena);
    case PROTOBUF_C_TYPE_MESSAGE:
        return set_new_message(entry, field, arena);
    default:
        return bow_message_set_scalar(entry, field, value.data, arena);
    }
}

static ProtobufCMessage *add_entry(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                                   const void *key, struct value value, struct bow_arena *arena)
{
    ProtobufCMessage *entry = bow_message_new(field->descriptor, arena);

    if (entry == NULL) {
        return NULL;
    }
    if (set_key(entry, key, arena) && set_value(entry, value, arena) &&
        bow__field_append(message, field, &entry, arena)) {
        return entry;
    }
    if (arena == NULL) {
        bow_message_free(entry);
    }
    return NULL;
}

/* Put `value` of `type` (of a number, any) at `key`. Returns the entry; NULL: it could not be. */
static ProtobufCMessage *put(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                             const void *key, ProtobufCType type, struct value value,
                             struct bow_arena *arena)
{
    if (!is_map(message, field) || key == NULL ||
        bow__entry_value(field->descriptor)->type != type) {
        return NULL;
    }
    ProtobufCMessage *entry = find(message, field, key);
    if (entry == NULL) {
        return add_entry(message, field, key, value, arena);
    }
    return set_value(entry, value, arena) ? entry : NULL;
}

bool bow_message_put_scalar(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                            const void *key, const void *value, struct bow_arena *arena)
{
    if (!is_map(message, field) || value == NULL ||
        bow__is_apart(bow__entry_value(field->descriptor)->type)) {
        return false;
    }
    return put(message, field, key, bow__entry_value(field->descriptor)->type,
               (struct value){value, 0}, arena) != NULL;
}

bool bow_message_put_string(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                            const void *key, const char *value, struct bow_arena *arena)
{
    if (value == NULL) {
        return false;
    }
    return put(message, field, key, PROTOBUF_C_TYPE_STRING, (struct value){value, strlen(value)},
               arena) != NULL;
}

bool bow_message_put_bytes(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                           const void *key, const void *data, size_t len, struct bow_arena *arena)
{
    return put(message, field, key, PROTOBUF_C_TYPE_BYTES, (struct value){data, len}, arena) !=
           NULL;
}

ProtobufCMessage *bow_message_put_message(ProtobufCMessage *message,
                                          const ProtobufCFieldDescriptor *field, const void *key,
                                          struct bow_arena *arena)
{
    ProtobufCMessage *entry =
        put(message, field, key, PROTOBUF_C_TYPE_MESSAGE, (struct value){NULL, 0}, arena);

    return entry != NULL
               ? bow__member_pointer(bow__member(entry, bow__entry_value(entry->descriptor)))
               : NULL;
}

ProtobufCMessage *bow_message_mutable_value(ProtobufCMessage *message,
                                            const ProtobufCFieldDescriptor *field, const void *key,
                                            struct bow_arena *arena)
{
    ProtobufCMessage *entry =
        is_map(message, field) && key != NULL ? find(message, field, key) : NULL;

    return entry != NULL ? bow_message_mutable(entry, bow__entry_value(entry->descriptor), arena)
                         : bow_message_put_message(message, field, key, arena);
}

bool bow_message_remove(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                        const void *key, struct bow_arena *arena)
{
    size_t n = 0;
    size_t n_left = 0;

    if (!is_map(message, field) || key == NULL) {
        return false;
    }
    ProtobufCMessage **entries = entries_of(message, field, &n);
    for (size_t i = 0; i < n; i++) {
        ProtobufCMessage *entry = entries[i];
        if (!has_key(entry, key)) {
            entries[i] = entries[n_left];
            entries[n_left++] = entry;
        }
    }
    /* Not before: `key` may be that of one of them. */
    for (size_t i = n_left; arena == NULL && i < n; i++) {
        bow_message_free(entries[i]);
    }
    *bow__member_count(message, field) = n_left;
    return n_left < n;
}

const ProtobufCMessage *bow_message_get_entry(const ProtobufCMessage *message,
                                              const ProtobufCFieldDescriptor *field,
                                              const void *key)
{
    return is_map(message, field) && key != NULL ? find(message, field, key) : NULL;
}
