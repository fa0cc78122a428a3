/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Varints and zigzag at the edges of their sizes, both directions of writing.
 */
#include "rpc/core/codec/wire.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct varint {
    uint64_t value;
    size_t size;
    const char *bytes;
};

static const struct varint varints[] = {
    {0, 1, "\x00"},
    {1, 1, "\x01"},
    {127, 1, "\x7f"},
    {128, 2, "\x80\x01"},
    {300, 2, "\xac\x02"},
    {16383, 2, "\xff\x7f"},
    {16384, 3, "\x80\x80\x01"},
    {UINT32_MAX, 5, "\xff\xff\xff\xff\x0f"},
    {(UINT64_C(1) << 35) - 1, 5, "\xff\xff\xff\xff\x7f"},
    {UINT64_C(1) << 35, 6, "\x80\x80\x80\x80\x80\x01"},
    {INT64_MAX, 9, "\xff\xff\xff\xff\xff\xff\xff\xff\x7f"},
    {UINT64_C(1) << 63, 10, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"},
    {UINT64_MAX, 10, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"},
};
#define N_VARINTS (sizeof varints / sizeof varints[0])

static void test_varint_written_forward_has_the_expected_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_VARINTS; i++) {
        uint8_t buf[BOW__WIRE_VARINT_BYTES];
        const uint8_t *end = bow__wire_write_varint(buf, varints[i].value);
        assert_int_equal(end - buf, varints[i].size);
        assert_memory_equal(buf, varints[i].bytes, varints[i].size);
        assert_int_equal(bow__wire_varint_size(varints[i].value), varints[i].size);
    }
}

static void test_varint_written_before_ends_there_or_does_not_fit(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_VARINTS; i++) {
        uint8_t buf[BOW__WIRE_VARINT_BYTES];
        size_t size = varints[i].size;
        assert_ptr_equal(bow__wire_write_varint_before(buf, buf + size, varints[i].value), buf);
        assert_memory_equal(buf, varints[i].bytes, size);
        assert_null(bow__wire_write_varint_before(buf, buf + size - 1, varints[i].value));
    }
}

static void test_varint_read_back_and_cut_at_each_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_VARINTS; i++) {
        const uint8_t *bytes = (const uint8_t *)varints[i].bytes;
        size_t size = varints[i].size;
        uint64_t value = 0;
        int n = bow__wire_decode_varint((struct bow_slice){bytes, size}, &value);
        assert_int_equal(n, size);
        assert_true(value == varints[i].value);
        for (size_t cut = 0; cut < size; cut++) {
            struct bow_slice part = {bytes, cut};
            assert_int_equal(bow__wire_decode_varint(part, &value), -EAGAIN);
            assert_null(bow__wire_read_varint(bytes, bytes + cut, &value));
            assert_true(bow__wire_is_cut(bytes, bytes + cut));
        }
    }
}

/* Where several bytes are looked at in one go, those behind it are none of its own. */
static void test_varint_ends_where_other_bytes_begin(void **state)
{
    static const int behind[] = {0x00, 0x7f, 0x80, 0xff};
    (void)state;
    for (size_t i = 0; i < N_VARINTS; i++) {
        for (size_t b = 0; b < sizeof behind / sizeof behind[0]; b++) {
            uint8_t bytes[2 * BOW__WIRE_VARINT_BYTES];
            uint64_t value = 0;
            memset(bytes, behind[b], sizeof bytes);
            memcpy(bytes, varints[i].bytes, varints[i].size);
            for (size_t n = varints[i].size; n <= sizeof bytes; n++) {
                assert_ptr_equal(bow__wire_read_varint(bytes, bytes + n, &value),
                                 bytes + varints[i].size);
                assert_true(value == varints[i].value);
            }
        }
    }
}

static void test_varint_above_64_bits_is_refused(void **state)
{
    static const uint8_t too_large[] = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02";
    static const uint8_t too_long[] = "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00";
    uint64_t value;
    (void)state;
    assert_int_equal(bow__wire_decode_varint((struct bow_slice){too_large, 10}, &value), -EBADMSG);
    assert_int_equal(bow__wire_decode_varint((struct bow_slice){too_long, 11}, &value), -EBADMSG);
    assert_int_equal(bow__wire_decode_varint((struct bow_slice){too_long, 10}, &value), -EBADMSG);
    assert_int_equal(bow__wire_decode_varint((struct bow_slice){too_long, 9}, &value), -EAGAIN);
}

static void test_varint_longer_than_needed_is_taken(void **state)
{
    uint64_t value = 0;
    (void)state;
    struct bow_slice bytes = {(const uint8_t *)"\x85\x80\x80\x00", 4};
    assert_int_equal(bow__wire_decode_varint(bytes, &value), 4);
    assert_int_equal(value, 5);
}

static void test_zigzag_maps_small_magnitudes_to_small_numbers_and_back(void **state)
{
    static const int64_t values[] = {0, -1, 1, -2, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
    static const uint64_t coded[] = {0,         1, 2, 3, UINT32_MAX - 1, UINT32_MAX, UINT64_MAX - 1,
                                     UINT64_MAX};
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        assert_true(bow__wire_zigzag64(values[i]) == coded[i]);
        assert_true((int64_t)bow__wire_unzigzag64(coded[i]) == values[i]);
        if (values[i] >= INT32_MIN && values[i] <= INT32_MAX) {
            assert_true(bow__wire_zigzag32((int32_t)values[i]) == coded[i]);
            assert_true((int32_t)bow__wire_unzigzag32((uint32_t)coded[i]) == values[i]);
        }
    }
}

static void test_words_are_little_endian(void **state)
{
    uint8_t bytes[8];
    (void)state;
    bow__wire_store32(bytes, 0x01020304);
    assert_memory_equal(bytes, "\x04\x03\x02\x01", 4);
    assert_int_equal(bow__wire_load32(bytes), 0x01020304);
    bow__wire_store64(bytes, UINT64_C(0x0102030405060708));
    assert_memory_equal(bytes, "\x08\x07\x06\x05\x04\x03\x02\x01", 8);
    assert_true(bow__wire_load64(bytes) == UINT64_C(0x0102030405060708));
}

static void test_tag_holds_number_and_type(void **state)
{
    (void)state;
    assert_int_equal(bow__wire_tag(1, BOW__WIRE_LEN), 0x0a);
    assert_true(bow__wire_tag(BOW__WIRE_MAX_NUMBER, BOW__WIRE_FIXED32) == UINT32_C(0xfffffffd));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_varint_written_forward_has_the_expected_bytes),
        cmocka_unit_test(test_varint_written_before_ends_there_or_does_not_fit),
        cmocka_unit_test(test_varint_read_back_and_cut_at_each_byte),
        cmocka_unit_test(test_varint_ends_where_other_bytes_begin),
        cmocka_unit_test(test_varint_above_64_bits_is_refused),
        cmocka_unit_test(test_varint_longer_than_needed_is_taken),
        cmocka_unit_test(test_zigzag_maps_small_magnitudes_to_small_numbers_and_back),
        cmocka_unit_test(test_words_are_little_endian),
        cmocka_unit_test(test_tag_holds_number_and_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
