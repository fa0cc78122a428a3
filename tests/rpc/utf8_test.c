/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * UTF-8: every code point, and what RFC 3629 forbids, at every distance from the
 * words that the fast path takes.
 */
#include "rpc/core/codec/utf8.h"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define ROOM 128

static size_t encode(uint32_t point, uint8_t *to)
{
    if (point < 0x80) {
        to[0] = (uint8_t)point;
        return 1;
    }
    size_t size = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (size_t i = size - 1; i > 0; i--) {
        to[i] = (uint8_t)(0x80 | (point & 0x3f));
        point >>= 6;
    }
    to[0] = (uint8_t)(0xf00 >> size | point);
    return size;
}

static size_t prefix(const void *bytes, size_t len)
{
    return bow__utf8_prefix((struct bow_slice){bytes, len}, false);
}

static void test_utf8_every_code_point_is_valid_except_surrogates(void **state)
{
    (void)state;
    for (uint32_t point = 1; point < 0x120000; point++) {
        uint8_t bytes[4];
        size_t size = encode(point, bytes);
        bool is_surrogate = point >= 0xd800 && point < 0xe000;
        size_t expected = is_surrogate || point > 0x10ffff ? 0 : size;
        if (prefix(bytes, size) != expected) {
            fail_msg("U+%X", (unsigned)point);
        }
    }
}

static void test_utf8_every_pair_of_bytes_is_judged_by_the_rules(void **state)
{
    (void)state;
    for (unsigned first = 0x80; first < 0x100; first++) {
        for (unsigned second = 0; second < 0x100; second++) {
            uint8_t bytes[2] = {(uint8_t)first, (uint8_t)second};
            bool valid = first >= 0xc2 && first <= 0xdf && (second & 0xc0) == 0x80;
            assert_int_equal(prefix(bytes, 2), valid ? 2 : 0);
        }
    }
}

static const char *const faults[] = {
    "\x80",
    "\xbf",
    "\xc0\x80",
    "\xc1\xbf",
    "\xc3",
    "\xc3(",
    "\xe0\x9f\xbf",
    "\xe2\x82",
    "\xe2\x82(",
    "\xed\xa0\x80",
    "\xf0\x8f\xbf\xbf",
    "\xf0\x9f\xaa",
    "\xf0\x9f\xaa(",
    "\xf4\x90\x80\x80",
    "\xf5\x80\x80\x80",
    "\xff",
};

static void test_utf8_fault_is_found_at_each_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        for (size_t before = 0; before < 40; before++) {
            for (size_t after = 0; after < 40; after++) {
                char text[ROOM] = {0};
                uint8_t copy[ROOM];
                size_t len = before + strlen(faults[i]) + after;
                memset(text, 'a', before);
                memcpy(text + before, faults[i], strlen(faults[i]));
                memset(text + before + strlen(faults[i]), 'z', after);
                assert_int_equal(prefix(text, len), before);
                assert_false(bow__utf8_copy(copy, (const uint8_t *)text, len));
            }
        }
    }
}

static void test_utf8_character_cut_off_is_a_fault_whatever_follows(void **state)
{
    static const char *const characters[] = {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\xaa\xa2"};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        for (size_t len = 1; len < strlen(characters[i]); len++) {
            assert_int_equal(prefix(characters[i], len), 0);
        }
    }
}

static void test_utf8_nul_is_a_fault_unless_allowed(void **state)
{
    uint8_t copy[ROOM];
    (void)state;
    for (size_t len = 1; len < 100; len++) {
        for (size_t at = 0; at < len; at++) {
            uint8_t text[ROOM];
            memset(text, 'a', len);
            text[at] = 0;
            assert_int_equal(prefix(text, len), at);
            assert_int_equal(bow__utf8_prefix((struct bow_slice){text, len}, true), len);
            assert_false(bow__utf8_copy(copy, text, len));
        }
    }
}

static void test_utf8_copy_of_plain_text_copies_all_and_no_more(void **state)
{
    (void)state;
    for (size_t len = 0; len < 100; len++) {
        uint8_t text[ROOM];
        uint8_t copy[ROOM];
        memset(copy, 0xee, sizeof copy);
        for (size_t i = 0; i < len; i++) {
            text[i] = (uint8_t)(1 + (i * 37) % 127);
        }
        assert_true(bow__utf8_copy(copy, text, len));
        assert_memory_equal(copy, text, len);
        assert_int_equal(copy[len], 0xee);
        assert_int_equal(prefix(text, len), len);
    }
}

static void test_utf8_copy_of_other_text_copies_it_too(void **state)
{
    static const uint8_t text[] = "caf\xc3\xa9 \xe2\x82\xac 10";
    uint8_t copy[sizeof text];
    (void)state;
    for (size_t len = 4; len < sizeof text; len++) {
        assert_false(bow__utf8_copy(copy, text, len));
        assert_memory_equal(copy, text, len);
    }
    assert_int_equal(prefix(text, sizeof text - 1), sizeof text - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_utf8_every_code_point_is_valid_except_surrogates),
        cmocka_unit_test(test_utf8_every_pair_of_bytes_is_judged_by_the_rules),
        cmocka_unit_test(test_utf8_fault_is_found_at_each_place),
        cmocka_unit_test(test_utf8_character_cut_off_is_a_fault_whatever_follows),
        cmocka_unit_test(test_utf8_nul_is_a_fault_unless_allowed),
        cmocka_unit_test(test_utf8_copy_of_plain_text_copies_all_and_no_more),
        cmocka_unit_test(test_utf8_copy_of_other_text_copies_it_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
