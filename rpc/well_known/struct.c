/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Struct and ListValue, filled value by value. */
#include "rpc/well_known/known_type.h"
#include <bowline/message_field.h>
#include <bowline/well_known.h>

/* The empty Value of a key. */
static ProtobufCMessage *member(ProtobufCMessage *structure, const char *key,
                                struct bow_arena *arena)
{
    return bow__known_is(structure, BOW__KNOWN_STRUCT) && key != NULL
               ? bow_message_put_message(structure, &structure->descriptor->fields[0], key, arena)
               : NULL;
}

/* An empty Value behind the others. */
static ProtobufCMessage *element(ProtobufCMessage *list, struct bow_arena *arena)
{
    return bow__known_is(list, BOW__KNOWN_LIST_VALUE)
               ? bow_message_add_message(list, &list->descriptor->fields[0], arena)
               : NULL;
}

/* Values; that of a failed allocation is NULL, and left alone. */

static bool set_null(ProtobufCMessage *value, struct bow_arena *arena)
{
    int32_t null = 0;
    return value != NULL &&
           bow_message_set_scalar(value, &value->descriptor->fields[BOW__VALUE_NULL], &null, arena);
}

static bool set_number(ProtobufCMessage *value, double number, struct bow_arena *arena)
{
    return value != NULL &&
           bow_message_set_scalar(value, &value->descriptor->fields[BOW__VALUE_NUMBER], &number,
                                  arena);
}

static bool set_bool(ProtobufCMessage *value, bool is_true, struct bow_arena *arena)
{
    protobuf_c_boolean truth = is_true;
    return value != NULL && bow_message_set_scalar(
                                value, &value->descriptor->fields[BOW__VALUE_BOOL], &truth, arena);
}

static bool set_string(ProtobufCMessage *value, const char *text, struct bow_arena *arena)
{
    return value != NULL && bow_message_set_string(
                                value, &value->descriptor->fields[BOW__VALUE_STRING], text, arena);
}

static ProtobufCMessage *set_message(ProtobufCMessage *value, unsigned index,
                                     struct bow_arena *arena)
{
    return value != NULL ? bow_message_mutable(value, &value->descriptor->fields[index], arena)
                         : NULL;
}

/* Struct */

bool bow_struct_set_null(ProtobufCMessage *structure, const char *key, struct bow_arena *arena)
{
    return set_null(member(structure, key, arena), arena);
}

bool bow_struct_set_number(ProtobufCMessage *structure, const char *key, double value,
                           struct bow_arena *arena)
{
    return set_number(member(structure, key, arena), value, arena);
}

bool bow_struct_set_bool(ProtobufCMessage *structure, const char *key, bool value,
                         struct bow_arena *arena)
{
    return set_bool(member(structure, key, arena), value, arena);
}

bool bow_struct_set_string(ProtobufCMessage *structure, const char *key, const char *value,
                           struct bow_arena *arena)
{
    return value != NULL && set_string(member(structure, key, arena), value, arena);
}

ProtobufCMessage *bow_struct_set_struct(ProtobufCMessage *structure, const char *key,
                                        struct bow_arena *arena)
{
    return set_message(member(structure, key, arena), BOW__VALUE_STRUCT, arena);
}

ProtobufCMessage *bow_struct_set_list(ProtobufCMessage *structure, const char *key,
                                      struct bow_arena *arena)
{
    return set_message(member(structure, key, arena), BOW__VALUE_LIST, arena);
}

const ProtobufCMessage *bow_struct_get(const ProtobufCMessage *structure, const char *key)
{
    if (!bow__known_is(structure, BOW__KNOWN_STRUCT) || key == NULL) {
        return NULL;
    }
    const ProtobufCMessage *entry =
        bow_message_get_entry(structure, &structure->descriptor->fields[0], key);
    return entry != NULL ? *(ProtobufCMessage *const *)bow__known_member(entry, 1) : NULL;
}

/* ListValue */

bool bow_list_add_null(ProtobufCMessage *list, struct bow_arena *arena)
{
    return set_null(element(list, arena), arena);
}

bool bow_list_add_number(ProtobufCMessage *list, double value, struct bow_arena *arena)
{
    return set_number(element(list, arena), value, arena);
}

bool bow_list_add_bool(ProtobufCMessage *list, bool value, struct bow_arena *arena)
{
    return set_bool(element(list, arena), value, arena);
}

bool bow_list_add_string(ProtobufCMessage *list, const char *value, struct bow_arena *arena)
{
    return value != NULL && set_string(element(list, arena), value, arena);
}

ProtobufCMessage *bow_list_add_struct(ProtobufCMessage *list, struct bow_arena *arena)
{
    return set_message(element(list, arena), BOW__VALUE_STRUCT, arena);
}

ProtobufCMessage *bow_list_add_list(ProtobufCMessage *list, struct bow_arena *arena)
{
    return set_message(element(list, arena), BOW__VALUE_LIST, arena);
}
