/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The reader of the wire format, and the guard before protobuf_c_message_unpack().
 */

#include "codegen/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "plugin.pb-c.h"

static struct bow_slice slice(const void *bytes, size_t len)
{
    return (struct bow_slice){.data = bytes, .len = len};
}

static void test_wire_next_reads_each_type(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {0x08, 0x96, 0x01, 0x11, 1,   2,    3, 4, 5, 6, 7,
                                    8,    0x1a, 0x02, 'h',  'i', 0x25, 9, 8, 7, 6};
    struct bow_slice rest = slice(bytes, sizeof(bytes));
    struct wire_field field;

    assert_true(wire_next(&rest, &field));
    assert_int_equal(field.number, 1);
    assert_int_equal(field.value, 150);
    assert_true(wire_next(&rest, &field));
    assert_int_equal(field.number, 2);
    assert_int_equal(field.bytes.len, 8);
    assert_true(wire_next(&rest, &field));
    assert_int_equal(field.number, 3);
    assert_memory_equal(field.bytes.data, "hi", 2);
    assert_true(wire_next(&rest, &field));
    assert_int_equal(field.number, 4);
    assert_int_equal(field.bytes.len, 4);
    assert_false(wire_next(&rest, &field));
    assert_int_equal(rest.len, 0);
}

static void test_wire_next_truncated_at_each_byte_fails(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {0x1a, 0x83, 0x00, 'a', 'b', 'c'};
    struct wire_field field;

    for (size_t len = 1; len < sizeof(bytes); len++) {
        struct bow_slice rest = slice(bytes, len);
        assert_false(wire_next(&rest, &field));
        assert_int_equal(rest.len, len);
    }
    struct bow_slice whole = slice(bytes, sizeof(bytes));
    assert_true(wire_next(&whole, &field));
}

static void test_wire_next_refuses_groups_and_field_zero(void **state)
{
    (void)state;
    static const uint8_t group[] = {0x0b, 0x0c};
    static const uint8_t zero[] = {0x00, 0x01};
    static const uint8_t endless[] = {0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1};
    struct wire_field field;
    struct bow_slice rest = slice(group, sizeof(group));

    assert_false(wire_next(&rest, &field));
    rest = slice(zero, sizeof(zero));
    assert_false(wire_next(&rest, &field));
    rest = slice(endless, sizeof(endless));
    assert_false(wire_next(&rest, &field));
}

/* A file with `depth` messages one inside the other, written from the inside out at the end of
 * `bytes`. Returns where it begins. */
static size_t nest(uint8_t *bytes, size_t size, int depth)
{
    size_t start = size;

    for (int i = 0; i < depth; i++) {
        size_t len = size - start;
        /* two bytes of length always: 0x80 | low, high */
        bytes[--start] = (uint8_t)(len >> 7);
        bytes[--start] = (uint8_t)(0x80 | (len & 0x7F));
        bytes[--start] = i + 1 < depth - 1 ? 0x1a : i + 1 < depth ? 0x22 : 0x7a;
    }
    return start;
}

static void test_wire_is_safe_limits_depth(void **state)
{
    (void)state;
    uint8_t bytes[1024];
    const ProtobufCMessageDescriptor *request = &bowline__codegen__request__descriptor;

    size_t start = nest(bytes, sizeof(bytes), WIRE_MAX_DEPTH);
    assert_true(wire_is_safe(request, slice(bytes + start, sizeof(bytes) - start)));
    start = nest(bytes, sizeof(bytes), WIRE_MAX_DEPTH + 1);
    assert_false(wire_is_safe(request, slice(bytes + start, sizeof(bytes) - start)));
}

static void test_wire_is_safe_refuses_a_singular_message_twice(void **state)
{
    (void)state;
    /* proto_file { options {} options {} }, and the same with one */
    static const uint8_t twice[] = {0x7a, 4, 0x42, 0, 0x42, 0};
    static const uint8_t once[] = {0x7a, 2, 0x42, 0};
    /* proto_file {} proto_file {}: repeated, so it is allowed */
    static const uint8_t repeated[] = {0x7a, 0, 0x7a, 0};
    const ProtobufCMessageDescriptor *request = &bowline__codegen__request__descriptor;

    assert_false(wire_is_safe(request, slice(twice, sizeof(twice))));
    assert_true(wire_is_safe(request, slice(once, sizeof(once))));
    assert_true(wire_is_safe(request, slice(repeated, sizeof(repeated))));
}

static void test_wire_find_takes_the_field_of_that_index(void **state)
{
    static const uint8_t bytes[] = {
        8,  1,           /* 1: a number */
        18, 1, 'a',      /* 2: bytes */
        10, 1, 'x',      /* 1 */
        18, 2, 'b', 'c', /* 2 again */
    };
    struct bow_slice message = {.data = bytes, .len = sizeof(bytes)};
    struct bow_slice found = {0};

    (void)state;
    assert_true(wire_find(message, 2, 1, &found));
    assert_int_equal(found.len, 2);
    assert_memory_equal(found.data, "bc", 2);
    assert_true(wire_find(message, 1, 0, &found));
    assert_memory_equal(found.data, "x", 1);
    assert_false(wire_find(message, 2, 2, &found));
    assert_false(wire_find(message, 3, 0, &found));
    assert_memory_equal(found.data, "x", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_next_reads_each_type),
        cmocka_unit_test(test_wire_next_truncated_at_each_byte_fails),
        cmocka_unit_test(test_wire_next_refuses_groups_and_field_zero),
        cmocka_unit_test(test_wire_is_safe_limits_depth),
        cmocka_unit_test(test_wire_is_safe_refuses_a_singular_message_twice),
        cmocka_unit_test(test_wire_find_takes_the_field_of_that_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
