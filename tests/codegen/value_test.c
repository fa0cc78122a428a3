/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Defaults as C text. That compilers read them back exactly is defaults_test.c's.
 */

#include "codegen/value.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

struct pair {
    const char *text;
    const char *expected;
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int set_up(void **state)
{
    static struct memory memory;

    memory_init(&memory);
    *state = &memory;
    return 0;
}

static int tear_down(void **state)
{
    memory_fini(*state);
    return 0;
}

static void check(struct memory *memory,
                  const char *(*value)(struct memory *memory, const char *text),
                  const struct pair *pairs, size_t n_pairs)
{
    for (size_t i = 0; i < n_pairs; i++) {
        assert_string_equal(value(memory, pairs[i].text), pairs[i].expected);
    }
}

static void test_value_integers_have_the_suffix_of_their_type(void **state)
{
    assert_string_equal(value_int32(*state, "-5"), "-5");
    assert_string_equal(value_int64(*state, "-5"), "-5ll");
    assert_string_equal(value_uint32(*state, "4294967295"), "4294967295u");
    assert_string_equal(value_uint64(*state, "18446744073709551615"), "18446744073709551615ull");
}

static void test_value_the_least_integers_are_no_literals(void **state)
{
    assert_string_equal(value_int32(*state, "-2147483648"), "(-2147483647 - 1)");
    assert_string_equal(value_int64(*state, "-9223372036854775808"),
                        "(-9223372036854775807ll - 1)");
}

static void test_value_doubles_are_the_shortest_that_read_back(void **state)
{
    static const struct pair pairs[] = {
        {"3", "3.0"},
        {"-0", "-0.0"},
        {"0.1", "0.1"},
        {"1e+20", "1e+20"},
        {"0.30000000000000004", "0.30000000000000004"},
        {"1.7976931348623157e+308", "1.7976931348623157e+308"},
        {"4.9406564584124654e-324", "4.94065645841247e-324"},
        {"inf", "__builtin_inf()"},
        {"-inf", "(-__builtin_inf())"},
        {"nan", "__builtin_nan(\"\")"},
        {"-nan", "(-__builtin_nan(\"\"))"},
    };
    check(*state, value_double, pairs, COUNT(pairs));
}

static void test_value_floats_are_rounded_once(void **state)
{
    static const struct pair pairs[] = {
        {"0.1", "0.1f"},
        {"16777216", "16777216.0f"},
        {"3.4028235e+38", "3.4028235e+38f"},
        {"1e39", "__builtin_inff()"},
        {"-inf", "(-__builtin_inff())"},
        {"nan", "__builtin_nanf(\"\")"},
    };
    check(*state, value_float, pairs, COUNT(pairs));
}

static void test_value_bools_are_numbers(void **state)
{
    (void)state;
    assert_string_equal(value_bool("true"), "1");
    assert_string_equal(value_bool("false"), "0");
}

static void check_unescape(struct memory *memory, const char *text, const char *bytes, size_t len)
{
    struct bow_slice made = value_unescape(memory, text);

    assert_int_equal(made.len, len);
    assert_memory_equal(made.data, bytes, len);
}

static void test_value_escapes_of_bytes_are_undone(void **state)
{
    check_unescape(*state, "", "", 0);
    check_unescape(*state, "plain", "plain", 5);
    check_unescape(*state, "\\000\\377x", "\0\377x", 3);
    check_unescape(*state, "\\n\\r\\t\\\"\\'\\\\", "\n\r\t\"'\\", 6);
    check_unescape(*state, "\\xfF1\\0018",
                   "\xFF"
                   "1\0018",
                   4);
    check_unescape(*state, "\\", "", 1);
}

static void check_bytes(struct memory *memory, const char *bytes, size_t len, const char *expected)
{
    struct printer out;

    printer_init(&out, memory);
    value_emit_bytes(&out, "char", (struct bow_slice){.data = (const uint8_t *)bytes, .len = len});
    assert_string_equal(printer_finish(&out), expected);
}

static void test_value_bytes_are_a_literal_without_trigraphs(void **state)
{
    check_bytes(*state,
                "a\"?"
                "?/",
                5, "\"a\\042\\077\\077/\"");
    check_bytes(*state,
                "\0"
                "1\xFF",
                3, "\"\\0001\\377\"");
}

static void test_value_long_bytes_are_a_list(void **state)
{
    static char many[5000];
    struct printer out;

    memset(many, 0xFF, sizeof(many));
    printer_init(&out, *state);
    value_emit_bytes(&out, "char",
                     (struct bow_slice){.data = (const uint8_t *)many, .len = sizeof(many)});
    const char *text = printer_finish(&out);
    assert_memory_equal(text, "{\n    (char)255,", 16);
    assert_non_null(strstr(text, ",\n    0}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_value_integers_have_the_suffix_of_their_type),
        cmocka_unit_test(test_value_the_least_integers_are_no_literals),
        cmocka_unit_test(test_value_doubles_are_the_shortest_that_read_back),
        cmocka_unit_test(test_value_floats_are_rounded_once),
        cmocka_unit_test(test_value_bools_are_numbers),
        cmocka_unit_test(test_value_escapes_of_bytes_are_undone),
        cmocka_unit_test(test_value_bytes_are_a_literal_without_trigraphs),
        cmocka_unit_test(test_value_long_bytes_are_a_list),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
