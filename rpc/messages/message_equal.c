/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Whether two messages say the same. Recursion goes no deeper than messages can be encoded. Maps of
 * a few entries are compared each with each; larger ones, which a peer may have filled, are sorted.
 */
#include "rpc/core/codec/map_entry.h"
#include "rpc/messages/map_key.h"
#include <bowline/limits.h>
#include <bowline/message.h>
#include <stdlib.h>

#define FEW_ENTRIES 8u

static bool messages_equal(const ProtobufCMessage *a, const ProtobufCMessage *b, unsigned levels);

static bool texts_equal(const char *a, const char *b)
{
    return strcmp(a != NULL ? a : "", b != NULL ? b : "") == 0;
}

static bool bytes_equal(const ProtobufCBinaryData *a, const ProtobufCBinaryData *b)
{
    return a->len == b->len &&
           (a->len == 0 || a->data == b->data ||
            (a->data != NULL && b->data != NULL && memcmp(a->data, b->data, a->len) == 0));
}

/* Two values of `type`, whether or not they are there. */
static bool values_equal(ProtobufCType type, const void *a, const void *b, unsigned levels)
{
    switch (type) {
    case PROTOBUF_C_TYPE_STRING:
        return texts_equal(bow__member_pointer(a), bow__member_pointer(b));
    case PROTOBUF_C_TYPE_BYTES:
        return bytes_equal(a, b);
    case PROTOBUF_C_TYPE_MESSAGE:
        return levels > 0 &&
               messages_equal(bow__member_pointer(a), bow__member_pointer(b), levels - 1);
    case PROTOBUF_C_TYPE_BOOL:
        return bow__value_is_set(type, a) == bow__value_is_set(type, b);
    default:
        return memcmp(a, b, bow__value_size(type)) == 0;
    }
}

static bool singular_equal(const ProtobufCFieldDescriptor *field, const ProtobufCMessage *a,
                           const ProtobufCMessage *b, unsigned levels)
{
    bool is_there = bow__member_has(a, field);

    if (is_there != bow__member_has(b, field)) {
        return false;
    }
    return !is_there || values_equal(field->type, bow__member_const(a, field),
                                     bow__member_const(b, field), levels);
}

/* An array with its count; none where the pointer is NULL, as it must not be. */
struct elements {
    const char *array;
    size_t n;
};

static struct elements elements_of(const ProtobufCMessage *message,
                                   const ProtobufCFieldDescriptor *field)
{
    const char *array = bow__member_pointer(bow__member_const(message, field));

    return (struct elements){array, array != NULL ? bow__member_n(message, field) : 0};
}

static bool lists_equal(ProtobufCType type, struct elements a, struct elements b, unsigned levels)
{
    size_t size = bow__value_size(type);

    if (a.n != b.n) {
        return false;
    }
    if (!bow__is_apart(type) && type != PROTOBUF_C_TYPE_BOOL) {
        return a.n == 0 || memcmp(a.array, b.array, a.n * size) == 0;
    }
    for (size_t i = 0; i < a.n; i++) {
        if (!values_equal(type, a.array + i * size, b.array + i * size, levels)) {
            return false;
        }
    }
    return true;
}

/* Maps */

/* Where an entry lies in its array, so that the order of two is that of their places, too. */
typedef const ProtobufCMessage *const *entry_place;

static entry_place places_of(struct elements map)
{
    return (entry_place)(const void *)map.array;
}

/* By key; of one key the last entry comes first, for that one counts. */
static int order_of_places(const void *left, const void *right)
{
    entry_place a = *(const entry_place *)left;
    entry_place b = *(const entry_place *)right;
    int order = bow__map_entry_order(*a, *b);

    return order != 0 ? order : (a < b) - (a > b);
}

/* The value of two entries of one key. */
static bool entries_equal(const ProtobufCMessage *a, const ProtobufCMessage *b, unsigned levels)
{
    const ProtobufCFieldDescriptor *value = bow__entry_value(a->descriptor);

    return levels > 0 && values_equal(value->type, bow__member_const(a, value),
                                      bow__member_const(b, value), levels - 1);
}

/* Sort the entries that count to the front of `places`. Returns how many. */
static size_t sort_map(struct elements map, entry_place *places)
{
    size_t n = 0;

    for (size_t i = 0; i < map.n; i++) {
        places[i] = places_of(map) + i;
    }
    qsort(places, map.n, sizeof(places[0]), order_of_places);
    for (size_t i = 0; i < map.n; i++) {
        if (n == 0 || bow__map_entry_order(*places[n - 1], *places[i]) != 0) {
            places[n++] = places[i];
        }
    }
    return n;
}

static bool sorted_equal(entry_place *a, size_t n_a, entry_place *b, size_t n_b, unsigned levels)
{
    bool equal = n_a == n_b;

    for (size_t i = 0; equal && i < n_a; i++) {
        equal = bow__map_entry_order(*a[i], *b[i]) == 0 && entries_equal(*a[i], *b[i], levels);
    }
    return equal;
}

/* The entry of `map` that counts for the key of `entry`; NULL: there is none. */
static const ProtobufCMessage *find_entry(struct elements map, const ProtobufCMessage *entry)
{
    for (size_t i = map.n; i > 0; i--) {
        if (bow__map_entry_order(places_of(map)[i - 1], entry) == 0) {
            return places_of(map)[i - 1];
        }
    }
    return NULL;
}

/* Whether each key of `a` is one of `b`, with an equal value. */
static bool is_within(struct elements a, struct elements b, unsigned levels, size_t *ret_n)
{
    size_t n = 0;

    for (size_t i = 0; i < a.n; i++) {
        const ProtobufCMessage *entry = places_of(a)[i];
        if (find_entry(a, entry) != entry) {
            continue; /* a later one counts */
        }
        const ProtobufCMessage *other = find_entry(b, entry);
        if (other == NULL || !entries_equal(entry, other, levels)) {
            return false;
        }
        n++;
    }
    *ret_n = n;
    return true;
}

static size_t count_keys(struct elements map)
{
    size_t n = 0;

    for (size_t i = 0; i < map.n; i++) {
        const ProtobufCMessage *entry = places_of(map)[i];
        n += find_entry(map, entry) == entry;
    }
    return n;
}

static bool each_with_each(struct elements a, struct elements b, unsigned levels)
{
    size_t n = 0;

    return is_within(a, b, levels, &n) && n == count_keys(b);
}

static bool maps_equal(struct elements a, struct elements b, unsigned levels)
{
    if (a.n <= FEW_ENTRIES && b.n <= FEW_ENTRIES) {
        return each_with_each(a, b, levels);
    }
    entry_place *places = calloc(a.n + b.n, sizeof(places[0]));
    if (places == NULL) {
        return each_with_each(a, b, levels);
    }
    size_t n_a = sort_map(a, places);
    size_t n_b = sort_map(b, places + a.n);
    bool equal = sorted_equal(places, n_a, places + a.n, n_b, levels);
    free(places);
    return equal;
}

/* An entry that is NULL, as none must be, makes an array that is no map. */
static bool has_gap(struct elements map)
{
    for (size_t i = 0; i < map.n; i++) {
        if (places_of(map)[i] == NULL) {
            return true;
        }
    }
    return false;
}

static bool repeated_equal(const ProtobufCFieldDescriptor *field, const ProtobufCMessage *a,
                           const ProtobufCMessage *b, unsigned levels)
{
    struct elements in_a = elements_of(a, field);
    struct elements in_b = elements_of(b, field);

    if (bow__is_map(a->descriptor, field) && !has_gap(in_a) && !has_gap(in_b)) {
        return maps_equal(in_a, in_b, levels);
    }
    return lists_equal(field->type, in_a, in_b, levels);
}

/* Whole messages */

static bool unknown_equal(const ProtobufCMessage *a, const ProtobufCMessage *b)
{
    if (a->n_unknown_fields != b->n_unknown_fields) {
        return false;
    }
    for (size_t i = 0; i < a->n_unknown_fields; i++) {
        const ProtobufCMessageUnknownField *x = &a->unknown_fields[i];
        const ProtobufCMessageUnknownField *y = &b->unknown_fields[i];
        if (x->tag != y->tag || x->wire_type != y->wire_type || x->len != y->len ||
            (x->len > 0 && memcmp(x->data, y->data, x->len) != 0)) {
            return false;
        }
    }
    return true;
}

/* `levels` may still be nested. */
static bool messages_equal(const ProtobufCMessage *a, const ProtobufCMessage *b, unsigned levels)
{
    if (a == NULL || b == NULL || a->descriptor != b->descriptor) {
        return a == NULL && b == NULL;
    }
    const ProtobufCMessageDescriptor *type = a->descriptor;
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        bool equal = bow__is_repeated(field) ? repeated_equal(field, a, b, levels)
                                             : singular_equal(field, a, b, levels);
        if (!equal) {
            return false;
        }
    }
    return unknown_equal(a, b);
}

bool bow_message_equal(const ProtobufCMessage *a, const ProtobufCMessage *b)
{
    return messages_equal(a, b, BOW_LIMIT_MESSAGE_DEPTH);
}
