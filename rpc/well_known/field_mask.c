/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Paths of a FieldMask, followed in two messages of one type. */
#include "rpc/messages/field_add.h"
#include "rpc/messages/member.h"
#include "rpc/well_known/known_type.h"
#include <bowline/message.h>
#include <bowline/message_field.h>
#include <bowline/well_known.h>
#include <errno.h>

/* The field whose name is at the front of `path`, of which `*ret_rest` is what follows its '.', or
 * NULL at the end. */
static const ProtobufCFieldDescriptor *field_of(const ProtobufCMessageDescriptor *type,
                                                const char *path, const char **ret_rest)
{
    size_t len = strcspn(path, ".");

    *ret_rest = path[len] == '.' ? path + len + 1 : NULL;
    for (unsigned i = 0; i < type->n_fields; i++) {
        const char *name = type->fields[i].name;
        if (name != NULL && strncmp(name, path, len) == 0 && name[len] == '\0') {
            return &type->fields[i];
        }
    }
    return NULL;
}

static bool is_inner(const ProtobufCFieldDescriptor *field)
{
    return field->type == PROTOBUF_C_TYPE_MESSAGE && !bow__is_repeated(field);
}

static bool leads_somewhere(const ProtobufCMessageDescriptor *type, const char *path)
{
    while (path != NULL) {
        const ProtobufCFieldDescriptor *field = field_of(type, path, &path);
        if (field == NULL || (path != NULL && !is_inner(field))) {
            return false;
        }
        type = field->descriptor;
    }
    return true;
}

/* Copies */

static bool add_element(ProtobufCMessage *target, const ProtobufCFieldDescriptor *field,
                        const void *element, struct bow_arena *arena)
{
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        return bow_message_add_string(target, field, *(const char *const *)element, arena);
    }
    if (field->type == PROTOBUF_C_TYPE_BYTES) {
        const ProtobufCBinaryData *bytes = element;
        return bow_message_add_bytes(target, field, bytes->data, bytes->len, arena);
    }
    return bow_message_add_scalar(target, field, element, arena);
}

static bool add_copy(ProtobufCMessage *target, const ProtobufCFieldDescriptor *field,
                     const ProtobufCMessage *element, struct bow_arena *arena)
{
    ProtobufCMessage *copy = bow_message_clone(element, arena);

    if (copy == NULL) {
        return false;
    }
    if (bow__field_append(target, field, &copy, arena)) {
        return true;
    }
    if (arena == NULL) {
        bow_message_free(copy);
    }
    return false;
}

static bool copy_list(ProtobufCMessage *target, const ProtobufCFieldDescriptor *field,
                      const ProtobufCMessage *source, struct bow_arena *arena)
{
    const char *elements = bow__member_pointer(bow__member_const(source, field));
    size_t n = elements != NULL ? bow__member_n(source, field) : 0;

    bow_message_clear_field(target, field, arena);
    for (size_t i = 0; i < n; i++) {
        const void *element = elements + i * bow__value_size(field->type);
        bool is_added = field->type == PROTOBUF_C_TYPE_MESSAGE
                            ? add_copy(target, field, *(ProtobufCMessage *const *)element, arena)
                            : add_element(target, field, element, arena);
        if (!is_added) {
            return false;
        }
    }
    return true;
}

static bool copy_message(ProtobufCMessage *target, const ProtobufCFieldDescriptor *field,
                         const ProtobufCMessage *value, struct bow_arena *arena)
{
    ProtobufCMessage *copy = bow_message_clone(value, arena);

    if (copy == NULL) {
        return false;
    }
    if (bow_message_set_message(target, field, copy, arena)) {
        return true;
    }
    if (arena == NULL) {
        bow_message_free(copy);
    }
    return false;
}

/* Make `field` what it is in `source`, of which NULL has nothing. */
static bool copy_field(ProtobufCMessage *target, const ProtobufCFieldDescriptor *field,
                       const ProtobufCMessage *source, struct bow_arena *arena)
{
    if (!bow_message_has(source, field)) {
        bow_message_clear_field(target, field, arena);
        return true;
    }
    const void *member = bow__member_const(source, field);
    if (bow__is_repeated(field)) {
        return copy_list(target, field, source, arena);
    }
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING: {
        const char *text = *(const char *const *)member;
        return bow_message_set_string(target, field, text != NULL ? text : "", arena);
    }
    case PROTOBUF_C_TYPE_BYTES: {
        const ProtobufCBinaryData *bytes = member;
        return bow_message_set_bytes(target, field, bytes->data, bytes->len, arena);
    }
    case PROTOBUF_C_TYPE_MESSAGE:
        return copy_message(target, field, *(ProtobufCMessage *const *)member, arena);
    default:
        return bow_message_set_scalar(target, field, member, arena);
    }
}

static bool apply_path(const char *path, const ProtobufCMessage *source, ProtobufCMessage *target,
                       struct bow_arena *arena)
{
    const ProtobufCFieldDescriptor *field = field_of(target->descriptor, path, &path);

    for (; path != NULL; field = field_of(target->descriptor, path, &path)) {
        bool has_source = bow_message_has(source, field);
        if (!has_source && !bow_message_has(target, field)) {
            return true; /* neither has the field that the path leads to */
        }
        source = has_source ? bow__member_pointer(bow__member_const(source, field)) : NULL;
        target = bow_message_mutable(target, field, arena);
        if (target == NULL) {
            return false;
        }
    }
    return copy_field(target, field, source, arena);
}

int bow_field_mask_apply(const ProtobufCMessage *mask, const ProtobufCMessage *source,
                         ProtobufCMessage *target, struct bow_arena *arena)
{
    if (!bow__known_is(mask, BOW__KNOWN_FIELD_MASK) || source == NULL || target == NULL ||
        target->descriptor == NULL || source->descriptor != target->descriptor) {
        return -EINVAL;
    }
    size_t n = bow__member_n(mask, &mask->descriptor->fields[0]);
    char *const *paths = *(char **const *)bow__known_member(mask, 0);
    if (n > 0 && paths == NULL) {
        return -EINVAL;
    }
    for (size_t i = 0; i < n; i++) {
        if (paths[i] == NULL || !leads_somewhere(target->descriptor, paths[i])) {
            return -ENOENT;
        }
    }
    if (source == target) { /* what is cleared to be set again would be gone */
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        if (!apply_path(paths[i], source, target, arena)) {
            return -ENOMEM;
        }
    }
    return 0;
}
