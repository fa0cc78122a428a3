/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Deep copies. A message is copied whole, and then each of its pieces takes the place of the one it
 * was copied from. Messages that are still to be copied are a list through the memory that their
 * copies have already, so that any depth needs no stack and no memory beside.
 */
#include "rpc/core/codec/message_init.h"
#include "rpc/messages/member.h"
#include "rpc/messages/storage.h"
#include <bowline/message.h>

/* What lies in the memory of a copy until it is its turn. */
struct pending {
    const ProtobufCMessage *source;
    struct pending *next;
};

_Static_assert(sizeof(struct pending) <= sizeof(ProtobufCMessage), "each message has room for it");

struct cloner {
    struct bow_arena *arena;
    struct pending *pending;
};

/* Memory for the copy of `source`, which is filled later; NULL out of memory. */
static ProtobufCMessage *begin(struct cloner *c, const ProtobufCMessage *source)
{
    struct pending *copy = bow__storage_take(c->arena, source->descriptor->sizeof_message);

    if (copy == NULL) {
        return NULL;
    }
    copy->source = source;
    copy->next = c->pending;
    c->pending = copy;
    return (ProtobufCMessage *)(void *)copy;
}

static bool copy_text(struct cloner *c, void *member)
{
    const char *text = bow__member_pointer(member);
    char *copy = bow__storage_copy_text(c->arena, text, strlen(text));

    bow__member_set_pointer(member, copy);
    return copy != NULL;
}

static bool copy_bytes(struct cloner *c, ProtobufCBinaryData *bytes)
{
    if (bytes->data == NULL || bytes->len == 0) {
        bytes->data = NULL; /* whatever stands there is not ours */
        return true;
    }
    bytes->data = bow__storage_copy(c->arena, bytes->data, bytes->len);
    return bytes->data != NULL;
}

static bool copy_message(struct cloner *c, void *member)
{
    ProtobufCMessage *copy = begin(c, bow__member_pointer(member));

    bow__member_set_pointer(member, copy);
    return copy != NULL;
}

/* Replace the value at `member`, which was copied as it is, by a copy of what it refers to. A
 * pointer that is NULL, or `kept`, stays. False: out of memory, and the value is empty. */
static bool copy_value(struct cloner *c, ProtobufCType type, void *member, const void *kept)
{
    if (type == PROTOBUF_C_TYPE_BYTES) {
        return copy_bytes(c, member);
    }
    const void *pointer = bow__member_pointer(member);
    if (pointer == NULL || pointer == kept) {
        return true;
    }
    return type == PROTOBUF_C_TYPE_MESSAGE ? copy_message(c, member) : copy_text(c, member);
}

static bool copy_array(struct cloner *c, ProtobufCMessage *copy,
                       const ProtobufCFieldDescriptor *field)
{
    void *member = bow__member(copy, field);
    const void *source = bow__member_pointer(member);
    size_t *n = bow__member_count(copy, field);
    size_t n_source = *n;
    size_t size = bow__value_size(field->type);
    if (source == NULL || n_source == 0) {
        bow__member_set_pointer(member, NULL);
        return true;
    }
    char *array = bow__storage_take(c->arena, n_source * size);
    bow__member_set_pointer(member, array);
    if (array == NULL) {
        *n = 0;
        return false;
    }
    memcpy(array, source, n_source * size);
    for (size_t i = 0; bow__is_apart(field->type) && i < n_source; i++) {
        if (!copy_value(c, field->type, array + i * size, NULL)) {
            *n = i;
            return false;
        }
    }
    return true;
}

/* Whether all that `field` of `copy` refers to could be copied; if not, the field is empty, or an
 * array has fewer elements. */
static bool copy_field(struct cloner *c, ProtobufCMessage *copy,
                       const ProtobufCFieldDescriptor *field)
{
    if (bow__is_repeated(field)) {
        return copy_array(c, copy, field);
    }
    if (!bow__is_apart(field->type) || !bow__member_is_own(copy, field)) {
        return true;
    }
    void *member = bow__member(copy, field);
    const ProtobufCBinaryData *preset = field->default_value;
    if (field->type == PROTOBUF_C_TYPE_BYTES && preset != NULL && preset->data != NULL &&
        ((const ProtobufCBinaryData *)member)->data == preset->data) {
        return true;
    }
    if (field->type == PROTOBUF_C_TYPE_STRING &&
        bow__member_pointer(member) == (const void *)protobuf_c_empty_string) {
        return true;
    }
    return copy_value(c, field->type, member, field->default_value);
}

static bool copy_unknown(struct cloner *c, ProtobufCMessage *copy)
{
    const ProtobufCMessageUnknownField *source = copy->unknown_fields;
    size_t n = copy->n_unknown_fields;

    copy->unknown_fields = NULL;
    copy->n_unknown_fields = 0;
    if (n == 0 || source == NULL) {
        return true;
    }
    ProtobufCMessageUnknownField *fields = bow__storage_take(c->arena, n * sizeof(*fields));
    if (fields == NULL) {
        return false;
    }
    copy->unknown_fields = fields;
    for (size_t i = 0; i < n; i++, copy->n_unknown_fields++) {
        fields[i] = source[i];
        if (source[i].data == NULL) {
            continue;
        }
        fields[i].data = bow__storage_copy(c->arena, source[i].data, source[i].len);
        if (fields[i].data == NULL && source[i].len > 0) {
            return false;
        }
    }
    return true;
}

/* Take the pointers of the original out of the fields from `first` on. */
static void forget(ProtobufCMessage *copy, unsigned first)
{
    const ProtobufCMessageDescriptor *type = copy->descriptor;

    for (unsigned i = first; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        if (bow__is_repeated(field)) {
            *bow__member_count(copy, field) = 0;
            bow__member_set_pointer(bow__member(copy, field), NULL);
        } else if (bow__is_in_oneof(field)) {
            if (bow__member_is_own(copy, field)) {
                bow__member_set_quantifier(copy, field, 0);
            }
        } else if (bow__is_apart(field->type)) {
            bow__message_set_default(copy, field);
        }
    }
}

/* Whether `source` could be copied to `copy`; if not, that is a message of which less is there. */
static bool copy_whole(struct cloner *c, ProtobufCMessage *copy, const ProtobufCMessage *source)
{
    const ProtobufCMessageDescriptor *type = source->descriptor;

    memcpy(copy, source, type->sizeof_message);
    if (!copy_unknown(c, copy)) {
        forget(copy, 0);
        return false;
    }
    for (unsigned i = 0; i < type->n_fields; i++) {
        if (!copy_field(c, copy, &type->fields[i])) {
            forget(copy, i + 1);
            return false;
        }
    }
    return true;
}

/* The copies that still wait become messages that can be freed. */
static void abandon(struct cloner *c)
{
    while (c->pending != NULL) {
        struct pending *pending = c->pending;
        const ProtobufCMessageDescriptor *type = pending->source->descriptor;
        c->pending = pending->next;
        bow__message_init(type, (ProtobufCMessage *)(void *)pending);
    }
}

ProtobufCMessage *bow_message_clone(const ProtobufCMessage *message, struct bow_arena *arena)
{
    struct cloner c = {.arena = arena};
    ProtobufCMessage *copy = message != NULL ? begin(&c, message) : NULL;

    while (c.pending != NULL) {
        struct pending *pending = c.pending;
        c.pending = pending->next;
        if (!copy_whole(&c, (ProtobufCMessage *)(void *)pending, pending->source)) {
            abandon(&c);
            if (arena == NULL) {
                bow_message_free(copy);
            }
            return NULL;
        }
    }
    return copy;
}
