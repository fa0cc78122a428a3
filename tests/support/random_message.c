/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Random messages of any descriptor, from a seed: the same seed gives the same message. */
#include "tests/support/random_message.h"
#include <stdlib.h>
#include <string.h>

#define FIRST_UNKNOWN_NUMBER 5000u

static uint64_t next64(struct test_random *random)
{
    /* splitmix64 */
    uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint32_t test_random_below(struct test_random *random, uint32_t n)
{
    return (uint32_t)(next64(random) % n);
}

static void *take(struct bow__arena *arena, size_t size)
{
    void *memory = bow__arena_alloc(arena, size);
    if (memory == NULL) {
        abort();
    }
    memset(memory, 0, size);
    return memory;
}

/* Of any length in bits, often at an edge of the types. */
static uint64_t number(struct test_random *random)
{
    static const uint64_t edges[] = {
        0, 1, 127, 128, UINT64_MAX, INT32_MAX, INT64_MAX, UINT32_MAX, UINT64_C(1) << 63};
    uint64_t value = next64(random);
    if (value % 4 == 0) {
        return edges[test_random_below(random, sizeof edges / sizeof edges[0])];
    }
    return next64(random) >> test_random_below(random, 64);
}

static double real(struct test_random *random)
{
    double value = (double)test_random_below(random, 1u << 20) / 8;
    return test_random_below(random, 2) == 0 ? value : -1 - value;
}

static char *text(struct test_random *random, struct bow__arena *arena)
{
    static const char *const characters[] = {
        "a", "Z", "\x01", "\x7f", "é", "€", "\xf0\x9f\xaa\xa2"};
    size_t n = test_random_below(random, test_random_below(random, 8) == 0 ? 300 : 20);
    char *result = take(arena, 4 * n + 1);
    bool plain = test_random_below(random, 2) == 0;
    for (size_t i = 0; i < n; i++) {
        strcat(result, characters[test_random_below(random, plain ? 2 : 7)]);
    }
    return result;
}

static ProtobufCBinaryData data(struct test_random *random, struct bow__arena *arena)
{
    ProtobufCBinaryData bytes = {.len = test_random_below(random, 40)};
    bytes.data = bytes.len > 0 ? take(arena, bytes.len) : NULL;
    for (size_t i = 0; i < bytes.len; i++) {
        bytes.data[i] = (uint8_t)next64(random);
    }
    return bytes;
}

static size_t value_size(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return 8;
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    default:
        return 4;
    }
}

static void set_value(struct test_random *random, struct bow__arena *arena,
                      const ProtobufCFieldDescriptor *field, void *member, unsigned depth)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_FLOAT:
        *(float *)member = (float)real(random);
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        *(double *)member = real(random);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)member = (protobuf_c_boolean)test_random_below(random, 2);
        break;
    case PROTOBUF_C_TYPE_STRING:
        *(char **)member = text(random, arena);
        break;
    case PROTOBUF_C_TYPE_BYTES:
        *(ProtobufCBinaryData *)member = data(random, arena);
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        *(ProtobufCMessage **)member =
            test_random_message(random, arena, field->descriptor, depth - 1);
        break;
    default: {
        uint64_t value = number(random);
        memcpy(member, &value, value_size(field->type));
        break;
    }
    }
}

static void set_repeated(struct test_random *random, struct bow__arena *arena,
                         const ProtobufCFieldDescriptor *field, ProtobufCMessage *message,
                         unsigned depth)
{
    bool large = field->type != PROTOBUF_C_TYPE_MESSAGE && test_random_below(random, 8) == 0;
    size_t n = test_random_below(random, large ? 100 : 4);
    if (n == 0) {
        return;
    }
    char *array = take(arena, n * value_size(field->type));
    for (size_t i = 0; i < n; i++) {
        set_value(random, arena, field, array + i * value_size(field->type), depth);
    }
    *(size_t *)(void *)((char *)message + field->quantifier_offset) = n;
    *(void **)(void *)((char *)message + field->offset) = array;
}

static bool is_map_entry(const ProtobufCMessageDescriptor *type)
{
    return type->n_fields == 2 && type->fields[0].name != NULL &&
           strcmp(type->fields[0].name, "key") == 0;
}

static void set_field(struct test_random *random, struct bow__arena *arena,
                      const ProtobufCFieldDescriptor *field, ProtobufCMessage *message,
                      unsigned depth)
{
    void *quantifier = (char *)message + field->quantifier_offset;
    bool is_oneof = (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
    bool is_needed = field->label == PROTOBUF_C_LABEL_REQUIRED || is_map_entry(message->descriptor);
    bool is_leaf = field->type == PROTOBUF_C_TYPE_MESSAGE && depth == 0;
    if (!is_needed && (is_leaf || test_random_below(random, 3) == 0)) {
        return;
    }
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        set_repeated(random, arena, field, message, depth);
        return;
    }
    if (is_oneof) {
        if (*(uint32_t *)quantifier != 0) {
            return;
        }
        *(uint32_t *)quantifier = field->id;
    } else if (field->label == PROTOBUF_C_LABEL_OPTIONAL && field->quantifier_offset != 0) {
        *(protobuf_c_boolean *)quantifier = 1;
    }
    set_value(random, arena, field, (char *)message + field->offset, depth > 0 ? depth : 1);
}

static void add_unknown(struct test_random *random, struct bow__arena *arena,
                        ProtobufCMessage *message)
{
    static const uint8_t varint[] = {0x96, 0x01};
    static const uint8_t word[] = {1, 2, 3, 4, 5, 6, 7, 8};
    static const uint8_t text_of_three[] = {3, 'x', 0, 0xff};
    static const ProtobufCMessageUnknownField kinds[] = {
        {0, PROTOBUF_C_WIRE_TYPE_VARINT, sizeof varint, (uint8_t *)(uintptr_t)varint},
        {0, PROTOBUF_C_WIRE_TYPE_64BIT, 8, (uint8_t *)(uintptr_t)word},
        {0, PROTOBUF_C_WIRE_TYPE_32BIT, 4, (uint8_t *)(uintptr_t)word},
        {0, PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED, sizeof text_of_three,
         (uint8_t *)(uintptr_t)text_of_three},
    };
    unsigned n = test_random_below(random, 6) == 0 ? 1 + test_random_below(random, 3) : 0;
    message->n_unknown_fields = n;
    message->unknown_fields = n > 0 ? take(arena, n * sizeof kinds[0]) : NULL;
    for (unsigned i = 0; i < n; i++) {
        message->unknown_fields[i] = kinds[test_random_below(random, 4)];
        message->unknown_fields[i].tag = FIRST_UNKNOWN_NUMBER + test_random_below(random, 1u << 20);
    }
}

ProtobufCMessage *test_random_message(struct test_random *random, struct bow__arena *arena,
                                      const ProtobufCMessageDescriptor *type, unsigned depth)
{
    ProtobufCMessage *message = take(arena, type->sizeof_message);
    message->descriptor = type;
    if (type->message_init != NULL) {
        type->message_init(message);
    }
    for (unsigned i = 0; i < type->n_fields; i++) {
        set_field(random, arena, &type->fields[i], message, depth);
    }
    add_unknown(random, arena, message);
    return message;
}
