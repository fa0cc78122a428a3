/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the encoder writes, byte by byte, where it departs from protobuf-c, and what
 * it refuses. That it agrees with protobuf-c elsewhere is decode_random_test.c's.
 */
#include "codec2.pb-c.h"
#include "codec3.pb-c.h"
#include "tests/rpc/codec_fixture.h"
#include <stdlib.h>

static void check_encoded(const void *message, struct bow_slice expected)
{
    uint8_t buf[256];
    assert_int_equal(bow__encoded_size(message), expected.len);
    assert_int_equal(bow__encode(message, buf, sizeof buf, NULL), expected.len);
    assert_memory_equal(buf, expected.data, expected.len);
}

static void check_refused(const void *message, const char *expected)
{
    uint8_t buf[512];
    struct bow__text reason = {0};
    assert_int_equal(bow__encode(message, buf, sizeof buf, &reason), -EINVAL);
    assert_string_equal(reason.bytes, expected);
    assert_int_equal(bow__encode(message, buf, 0, NULL), -EINVAL);
    assert_true(bow__encoded_size(message) == SIZE_MAX);
}

static void test_encode_message_stands_at_the_front_of_the_buffer(void **state)
{
    Codec3__HelloRequest m = CODEC3__HELLO_REQUEST__INIT;
    (void)state;
    m.name = (char *)(uintptr_t) "Ada";
    m.age = 300;
    m.polite = 7; /* any true value is 1 on the wire */
    check_encoded(&m, BYTES("\x0a\x03"
                            "Ada\x18\xac\x02\x30\x01"));
}

static void test_encode_into_each_size_fits_or_says_so(void **state)
{
    struct codec_fixture f;
    Codec3__Lists lists = CODEC3__LISTS__INIT;
    Codec3__Everything m = CODEC3__EVERYTHING__INIT;
    Codec3__Scalars scalars = CODEC3__SCALARS__INIT;
    int32_t numbers[] = {1, 300};
    double doubles[] = {1.5};
    uint32_t words[] = {9};
    (void)state;
    codec_begin(&f);
    scalars.f_string = (char *)(uintptr_t) "text";
    scalars.f_bytes = (ProtobufCBinaryData){2, (uint8_t *)numbers};
    lists.n_f_int32 = 2;
    lists.f_int32 = numbers;
    lists.n_loose_double = 1;
    lists.loose_double = doubles;
    lists.n_f_fixed32 = 1;
    lists.f_fixed32 = words;
    m.lists = &lists;
    m.scalars = &scalars;
    ProtobufCMessageUnknownField unknown = {77, PROTOBUF_C_WIRE_TYPE_VARINT, 1,
                                            (uint8_t *)(uintptr_t) "\x05"};
    m.base.n_unknown_fields = 1;
    m.base.unknown_fields = &unknown;
    size_t size = protobuf_c_message_get_packed_size(&m.base);
    uint8_t expected[128];
    protobuf_c_message_pack(&m.base, expected);
    assert_int_equal(bow__encoded_size(&m.base), size);
    for (size_t cap = 0; cap < size + 3; cap++) {
        /* Of its own, so that a write beyond is a write beyond the memory. */
        uint8_t *buf = malloc(cap > 0 ? cap : 1);
        assert_non_null(buf);
        ssize_t len = bow__encode(&m.base, buf, cap, &f.reason);
        assert_int_equal(len, size);
        /* Who has been told of a smaller one takes no more than that. */
        struct bow__text reason;
        bow__text_clear(&reason);
        assert_int_equal(bow__encode_sized(&m.base, buf, cap, &reason),
                         cap < size ? -EINVAL : (ssize_t)size);
        assert_int_equal(strstr(reason.bytes, "changed while it was encoded") != NULL, cap < size);
        if (cap >= size) {
            assert_memory_equal(buf, expected, size);
        }
        free(buf);
    }
    assert_string_equal(f.reason.bytes, "");
    codec_end(&f);
}

static void test_encode_negative_zero_is_sent(void **state)
{
    Codec3__Scalars m = CODEC3__SCALARS__INIT;
    (void)state;
    m.f_float = -0.0f;
    check_encoded(&m, BYTES("\x5d\x00\x00\x00\x80"));
    m.f_float = 0;
    m.f_double = -0.0;
    check_encoded(&m, BYTES("\x61\x00\x00\x00\x00\x00\x00\x00\x80"));
    m.f_double = 0;
    check_encoded(&m, BYTES(""));
}

static void test_encode_selected_empty_string_is_sent_whatever_its_pointer(void **state)
{
    Codec3__Choice m = CODEC3__CHOICE__INIT;
    (void)state;
    m.kind_case = CODEC3__CHOICE__KIND_TEXT;
    m.text = (char *)(uintptr_t)protobuf_c_empty_string;
    check_encoded(&m, BYTES("\x1a\x00"));
    m.text = NULL;
    check_encoded(&m, BYTES("\x1a\x00"));
    m.text = (char *)(uintptr_t) "";
    check_encoded(&m, BYTES("\x1a\x00"));
    m.kind_case = CODEC3__CHOICE__KIND_NUMBER;
    m.number = 0;
    check_encoded(&m, BYTES("\x10\x00"));
    m.kind_case = CODEC3__CHOICE__KIND__NOT_SET;
    check_encoded(&m, BYTES(""));
}

static void test_encode_optional_is_sent_by_has_and_by_pointer(void **state)
{
    Codec2__Optional m = CODEC2__OPTIONAL__INIT;
    Codec2__Defaults defaults = CODEC2__DEFAULTS__INIT;
    (void)state;
    m.f_int32 = 5;
    check_encoded(&m, BYTES(""));
    m.has_f_int32 = 1;
    m.f_int32 = 0;
    m.f_string = (char *)(uintptr_t) "";
    m.has_f_bytes = 1;
    check_encoded(&m, BYTES("\x08\x00\x7a\x00\x82\x01\x00"));
    check_encoded(&defaults, BYTES(""));
    defaults.f_string = (char *)(uintptr_t) "fallback"; /* the same text, and set */
    check_encoded(&defaults, BYTES("\x32\x08"
                                   "fallback"));
}

static void test_encode_proto3_empty_values_are_not_sent(void **state)
{
    Codec3__Scalars m = CODEC3__SCALARS__INIT;
    (void)state;
    m.f_string = NULL;
    check_encoded(&m, BYTES(""));
    m.f_string = (char *)(uintptr_t) "";
    check_encoded(&m, BYTES(""));
}

/* What is set before its unset neighbours, behind them and between, in two oneofs one behind the
 * other with fields on both sides. */
static void test_encode_of_a_oneof_sends_the_member_that_is_set_and_its_neighbours(void **state)
{
    Codec3__Choice m = CODEC3__CHOICE__INIT;
    Codec3__Lists lists = CODEC3__LISTS__INIT;
    (void)state;
    m.before = 1;
    m.after = (char *)(uintptr_t) "z";
    check_encoded(&m, BYTES("\x08\x01\xa2\x01\x01z"));
    m.other_case = CODEC3__CHOICE__OTHER_LEFT;
    m.left = (char *)(uintptr_t) "l";
    check_encoded(&m, BYTES("\x08\x01\x52\x01l\xa2\x01\x01z"));
    m.kind_case = CODEC3__CHOICE__KIND_NUMBER;
    m.number = 7;
    check_encoded(&m, BYTES("\x08\x01\x10\x07\x52\x01l\xa2\x01\x01z"));
    m.kind_case = CODEC3__CHOICE__KIND_FLAG;
    m.flag = 1;
    m.other_case = CODEC3__CHOICE__OTHER_RIGHT;
    m.right = &lists;
    check_encoded(&m, BYTES("\x08\x01\x38\x01\x5a\x00\xa2\x01\x01z"));
    m.kind_case = CODEC3__CHOICE__KIND_REAL;
    m.real = 1.5;
    m.other_case = CODEC3__CHOICE__OTHER__NOT_SET;
    check_encoded(&m, BYTES("\x08\x01\x41\x00\x00\x00\x00\x00\x00\xf8\x3f\xa2\x01\x01z"));
}

static void test_encode_null_where_a_pointer_is_needed_is_refused(void **state)
{
    Codec2__Required required = CODEC2__REQUIRED__INIT;
    Codec2__Holder holder = CODEC2__HOLDER__INIT;
    Codec2__Holder__Inner inner = CODEC2__HOLDER__INNER__INIT;
    Codec3__Lists lists = CODEC3__LISTS__INIT;
    Codec3__Choice choice = CODEC3__CHOICE__INIT;
    char *texts[] = {(char *)(uintptr_t) "a", NULL};
    Codec2__Required *many[] = {&required};
    (void)state;
    check_refused(
        &required,
        "codec2.Required.name is NULL, but a string is needed: set it (\"\" for an empty one)");
    required.name = (char *)(uintptr_t) "";
    required.data.len = 3;
    check_refused(&required,
                  "codec2.Required.data has a len, but its data is NULL: set both or neither");
    check_refused(&holder, "codec2.Holder.inner is NULL, but a message is needed: point it to one");
    holder.inner = &inner;
    holder.n_many = 1;
    check_refused(&holder,
                  "codec2.Holder.many has a count, but its array is NULL: set both or neither");
    holder.many = many;
    check_refused(
        &holder, "codec2.Holder.many[0].data has a len, but its data is NULL: set both or neither");
    many[0] = NULL;
    check_refused(&holder, "codec2.Holder.many is NULL, but a message is needed: point it to one");
    lists.n_f_string = 2;
    lists.f_string = texts;
    check_refused(
        &lists,
        "codec3.Lists.f_string is NULL, but a string is needed: set it (\"\" for an empty one)");
    choice.kind_case = CODEC3__CHOICE__KIND_SCALARS;
    check_refused(&choice,
                  "codec3.Choice.scalars is NULL, but a message is needed: point it to one");
}

static void test_encode_message_without_its_init_is_refused(void **state)
{
    Codec3__Everything m = CODEC3__EVERYTHING__INIT;
    Codec3__Scalars zeroed = {0};
    (void)state;
    m.scalars = &zeroed;
    check_refused(
        &m, "codec3.Everything.scalars has no descriptor: set the message to its __INIT first");
    check_refused(&zeroed, "message has no descriptor: set the message to its __INIT first");
    m.scalars = NULL;
    m.base.n_unknown_fields = 1;
    check_refused(&m, "codec3.Everything has n_unknown_fields, but its unknown_fields is NULL: set "
                      "both or neither");
    ProtobufCMessageUnknownField unknown = {1, PROTOBUF_C_WIRE_TYPE_64BIT, 8, NULL};
    m.base.unknown_fields = &unknown;
    check_refused(&m, "codec3.Everything has an unknown field with a len whose data is NULL");
}

static void test_encode_a_cycle_is_refused_by_depth(void **state)
{
    Codec3__Tree tree = CODEC3__TREE__INIT;
    (void)state;
    tree.right = &tree;
    check_refused(&tree,
                  "codec3.Tree.right.right.right.right.(92 more)"
                  ".right.right.right.right.right is nested too deep (BOW_LIMIT_MESSAGE_DEPTH)");
}

static void test_encode_over_2_gib_is_refused(void **state)
{
    Codec3__Scalars m = CODEC3__SCALARS__INIT;
    Codec3__Lists lists = CODEC3__LISTS__INIT;
    ProtobufCBinaryData halves[2] = {{(size_t)1 << 30, (uint8_t *)halves},
                                     {(size_t)1 << 30, (uint8_t *)halves}};
    (void)state;
    /* Measured, never read: more than is there. */
    m.f_bytes = (ProtobufCBinaryData){(size_t)INT32_MAX + 1, (uint8_t *)halves};
    check_refused(&m, "codec3.Scalars.f_bytes is over 2 GiB - 1");
    m.f_bytes.len = SIZE_MAX;
    check_refused(&m, "codec3.Scalars.f_bytes is over 2 GiB - 1");
    lists.n_f_bytes = 2;
    lists.f_bytes = halves;
    check_refused(&lists, "codec3.Lists.f_bytes is over 2 GiB - 1");
    lists.n_f_bytes = 1;
    assert_int_equal(bow__encoded_size(&lists.base), ((size_t)1 << 30) + 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_encode_message_stands_at_the_front_of_the_buffer),
        cmocka_unit_test(test_encode_into_each_size_fits_or_says_so),
        cmocka_unit_test(test_encode_negative_zero_is_sent),
        cmocka_unit_test(test_encode_selected_empty_string_is_sent_whatever_its_pointer),
        cmocka_unit_test(test_encode_optional_is_sent_by_has_and_by_pointer),
        cmocka_unit_test(test_encode_proto3_empty_values_are_not_sent),
        cmocka_unit_test(test_encode_of_a_oneof_sends_the_member_that_is_set_and_its_neighbours),
        cmocka_unit_test(test_encode_null_where_a_pointer_is_needed_is_refused),
        cmocka_unit_test(test_encode_message_without_its_init_is_refused),
        cmocka_unit_test(test_encode_a_cycle_is_refused_by_depth),
        cmocka_unit_test(test_encode_over_2_gib_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
