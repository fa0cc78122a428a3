/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Numbers as decimal text. (That doubles are short and exact is also json_oracle.py's.) */
#include "rpc/json/decimal.h"
#include "tests/support/random_message.h"
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *double_text(double value)
{
    static char text[BOW__DECIMAL_BYTES + 1];
    char *end = bow__decimal_write_double(text, value);
    assert_in_range(end - text, 1, BOW__DECIMAL_BYTES);
    *end = '\0';
    return text;
}

static const char *float_text(float value)
{
    static char text[BOW__DECIMAL_BYTES + 1];
    *bow__decimal_write_float(text, value) = '\0';
    return text;
}

static void test_decimal_of_integers(void **state)
{
    static const struct {
        uint64_t value;
        const char *text;
    } good[] = {
        {0, "0"},
        {9, "9"},
        {10, "10"},
        {99, "99"},
        {100, "100"},
        {12345, "12345"},
        {UINT64_MAX, "18446744073709551615"},
    };
    char text[BOW__DECIMAL_BYTES];
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        *bow__decimal_write_u64(text, good[i].value) = '\0';
        assert_string_equal(text, good[i].text);
    }
    *bow__decimal_write_i64(text, INT64_MIN) = '\0';
    assert_string_equal(text, "-9223372036854775808");
    *bow__decimal_write_i64(text, -1) = '\0';
    assert_string_equal(text, "-1");
}

static void test_decimal_of_doubles_is_the_shortest(void **state)
{
    static const struct {
        double value;
        const char *text;
    } good[] = {
        {0, "0"},
        {-0.0, "-0.0"},
        {1, "1"},
        {-1.5, "-1.5"},
        {0.1, "0.1"},
        {1.0 / 3, "0.3333333333333333"},
        {0.1 + 0.2, "0.30000000000000004"},
        {5e-324, "5e-324"},
        {DBL_MIN, "2.2250738585072014e-308"},
        {DBL_MAX, "1.7976931348623157e+308"},
        {1e21, "1e+21"},
        {1e20, "100000000000000000000"},
        {123456789012345680000.0, "123456789012345680000"},
        {1e-6, "0.000001"},
        {1e-7, "1e-7"},
        {1.5e-7, "1.5e-7"},
        {9007199254740991, "9007199254740991"},
        {9007199254740992, "9007199254740992"},
        {0x1p54, "18014398509481984"},
        {1e23, "1e+23"},
        {2e-44, "2e-44"},
        {-DBL_MAX, "-1.7976931348623157e+308"},
        {4.35, "4.35"},
        {0x1p-1022, "2.2250738585072014e-308"},
        {0x1p1023, "8.98846567431158e+307"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_string_equal(double_text(good[i].value), good[i].text);
    }
    assert_string_equal(float_text(0.1f), "0.1");
    assert_string_equal(float_text(16777216.0f), "16777216");
    assert_string_equal(float_text(FLT_MAX), "3.4028235e+38");
    assert_string_equal(float_text(FLT_MIN), "1.1754944e-38");
    assert_string_equal(float_text(1e-45f), "1e-45");
    assert_string_equal(float_text(-0.0f), "-0.0");
    assert_string_equal(float_text(1.0f / 3), "0.33333334");
}

static uint64_t next64(struct test_random *random)
{
    return (uint64_t)test_random_below(random, UINT32_MAX) << 32 |
           test_random_below(random, UINT32_MAX);
}

static void test_decimal_of_random_numbers_reads_as_the_same(void **state)
{
    struct test_random random = {20240229};
    (void)state;
    for (size_t i = 0; i < 200000; i++) {
        uint64_t bits = next64(&random);
        struct bow__decimal decimal;
        double value, again;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value)) {
            continue;
        }
        const char *text = double_text(value);
        assert_true(strtod(text, NULL) == value);
        struct bow_slice slice = {(const uint8_t *)text, strlen(text)};
        assert_int_equal(bow__decimal_read(slice, &decimal), slice.len);
        assert_true(bow__decimal_to_double(&decimal, &again));
        assert_memory_equal(&again, &value, sizeof value);
        uint32_t half = (uint32_t)bits;
        float single, single_again;
        memcpy(&single, &half, sizeof single);
        if (!isfinite(single)) {
            continue;
        }
        text = float_text(single);
        slice = (struct bow_slice){(const uint8_t *)text, strlen(text)};
        assert_int_equal(bow__decimal_read(slice, &decimal), slice.len);
        assert_true(bow__decimal_to_float(&decimal, &single_again));
        assert_memory_equal(&single_again, &single, sizeof single);
    }
}

/* Texts of any length and form, against the C library. */
static void test_decimal_read_rounds_as_the_c_library_does(void **state)
{
    struct test_random random = {42};
    char text[1200];
    (void)state;
    for (size_t i = 0; i < 20000; i++) {
        size_t len = 0, n = 1 + test_random_below(&random, i % 50 == 0 ? 1000 : 30);
        size_t point = test_random_below(&random, (uint32_t)n + 1);
        for (size_t k = 0; k < n; k++) {
            if (k == point && k > 0) {
                text[len++] = '.';
            }
            text[len++] = (char)('0' + (k == 0 ? 1 : 0) + (int)test_random_below(&random, 9));
        }
        len += (size_t)sprintf(text + len, "e%d", (int)test_random_below(&random, 700) - 350);
        struct bow__decimal decimal;
        double value = 0;
        float single = 0;
        assert_int_equal(
            bow__decimal_read((struct bow_slice){(const uint8_t *)text, len}, &decimal), len);
        assert_int_equal(bow__decimal_to_double(&decimal, &value), !isinf(strtod(text, NULL)));
        assert_true(isinf(strtod(text, NULL)) || value == strtod(text, NULL));
        assert_int_equal(bow__decimal_to_float(&decimal, &single), !isinf(strtof(text, NULL)));
        assert_true(isinf(strtof(text, NULL)) || single == strtof(text, NULL));
    }
}

static void test_decimal_read_stops_where_a_number_does(void **state)
{
    static const struct {
        const char *text;
        size_t len;
    } texts[] = {
        {"1,", 1}, {"1.5]", 3}, {"-0", 2}, {"0x1", 1},  {"1e5e", 3}, {"", 0},
        {"-", 0},  {"01", 0},   {"1.", 0}, {"1.e1", 0}, {"1e", 0},   {"1e+", 0},
        {".1", 0}, {"+1", 0},   {"-a", 0}, {"0e0", 3},  {"00", 0},   {"-01", 0},
    };
    struct bow__decimal decimal;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct bow_slice slice = {(const uint8_t *)texts[i].text, strlen(texts[i].text)};
        assert_int_equal(bow__decimal_read(slice, &decimal), texts[i].len);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decimal_of_integers),
        cmocka_unit_test(test_decimal_of_doubles_is_the_shortest),
        cmocka_unit_test(test_decimal_of_random_numbers_reads_as_the_same),
        cmocka_unit_test(test_decimal_read_rounds_as_the_c_library_does),
        cmocka_unit_test(test_decimal_read_stops_where_a_number_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
