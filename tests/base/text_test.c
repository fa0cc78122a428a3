/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Short texts: appended, escaped, cut where a character ends.
 */

#include "base/text.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MAX_LEN (BOW__TEXT_BYTES - 1)

static struct bow_slice slice_of(const char *text)
{
    return (struct bow_slice){(const uint8_t *)text, strlen(text)};
}

static void fill(struct bow__text *text, int len)
{
    bow__text_clear(text);
    bow__text_printf(text, "%.*s", len,
                     "----------------------------------------------------------------"
                     "----------------------------------------------------------------"
                     "----------------------------------------------------------------"
                     "----------------------------------------------------------------"
                     "----------------------------------------------------------------"
                     "----------------------------------------------------------------"
                     "----------------------------------------------------------------"
                     "----------------------------------------------------------------");
    assert_int_equal(text->len, len);
}

static void assert_whole(const struct bow__text *text)
{
    assert_int_equal(text->len, strlen(text->bytes));
    assert_true(text->len <= MAX_LEN);
}

static const char *last(const struct bow__text *text, size_t n)
{
    assert_whole(text);
    assert_true(text->len >= n);
    return text->bytes + text->len - n;
}

static void test_text_printf_appends(void **state)
{
    struct bow__text text;

    (void)state;
    bow__text_clear(&text);
    assert_string_equal(text.bytes, "");
    bow__text_printf(&text, "connecting to %s", "[::1]");
    bow__text_printf(&text, ":%d", 50051);
    assert_string_equal(text.bytes, "connecting to [::1]:50051");
    assert_whole(&text);
    bow__text_clear(&text);
    assert_int_equal(text.len, 0);
}

static void test_text_that_fits_exactly_is_not_cut(void **state)
{
    struct bow__text text;

    (void)state;
    fill(&text, MAX_LEN);
    assert_string_equal(last(&text, 3), "---");
    bow__text_printf(&text, "%s", "");
    assert_string_equal(last(&text, 3), "---");
}

static void test_text_too_long_ends_in_dots(void **state)
{
    struct bow__text text;

    (void)state;
    fill(&text, MAX_LEN);
    bow__text_printf(&text, "x");
    assert_string_equal(last(&text, 4), "-...");
    assert_int_equal(text.len, MAX_LEN);
    fill(&text, 500);
    bow__text_printf(&text, "%s", "0123456789abcdef");
    assert_string_equal(last(&text, 11), "01234567...");
    bow__text_printf(&text, "more");
    bow__text_escape(&text, slice_of("more"), 4);
    bow__text_errno(&text, ENOENT);
    assert_string_equal(last(&text, 11), "01234567...");
}

static void test_text_cut_never_splits_a_character(void **state)
{
    struct bow__text text;

    (void)state;
    for (int len = 480; len <= MAX_LEN; len++) {
        fill(&text, len);
        bow__text_printf(&text, "%s",
                         "\xF0\x9F\xAA\xA2\xF0\x9F\xAA\xA2\xF0\x9F\xAA\xA2\xF0\x9F"
                         "\xAA\xA2\xF0\x9F\xAA\xA2\xF0\x9F\xAA\xA2\xF0\x9F\xAA\xA2"
                         "\xF0\x9F\xAA\xA2");
        assert_whole(&text);
        size_t end = text.len;
        if (text.full) {
            assert_string_equal(text.bytes + end - 3, "...");
            end -= 3;
        }
        size_t n_dashes = strspn(text.bytes, "-");
        assert_int_equal((end - n_dashes) % 4, 0);
    }
}

static void test_text_cut_short_takes_no_more(void **state)
{
    struct bow__text text;

    (void)state;
    fill(&text, 507);
    bow__text_printf(&text, "\xF0\x9F\xAA\xA2\xF0\x9F\xAA\xA2");
    assert_string_equal(last(&text, 4), "-...");
    assert_true(text.len < MAX_LEN); /* there is room, but it would stand behind the dots */
    bow__text_printf(&text, "x");
    assert_string_equal(last(&text, 4), "-...");
}

static void test_text_escape_shows_what_is_not_printable(void **state)
{
    struct bow__text text;
    static const uint8_t bytes[] = {'G', 'E', 'T', ' ', '~', 0, '\n', 0x1B, 0x7F, 0x80, 0xFF};

    (void)state;
    bow__text_clear(&text);
    bow__text_escape(&text, (struct bow_slice){bytes, sizeof(bytes)}, 100);
    assert_string_equal(text.bytes, "GET ~\\x00\\x0a\\x1b\\x7f\\x80\\xff");
    assert_whole(&text);
    bow__text_clear(&text);
    bow__text_escape(&text, (struct bow_slice){NULL, 0}, 100);
    assert_string_equal(text.bytes, "");
}

static void test_text_escape_beyond_max_ends_in_dots(void **state)
{
    struct bow__text text;

    (void)state;
    bow__text_clear(&text);
    bow__text_escape(&text, slice_of("abcdef"), 6);
    assert_string_equal(text.bytes, "abcdef");
    bow__text_clear(&text);
    bow__text_escape(&text, slice_of("abcdef"), 5);
    assert_string_equal(text.bytes, "abcde...");
    bow__text_printf(&text, "; next");
    assert_string_equal(text.bytes, "abcde...; next");
}

static void test_text_escape_cut_never_splits_an_escape(void **state)
{
    struct bow__text text;

    (void)state;
    for (int len = 480; len <= MAX_LEN; len++) {
        fill(&text, len);
        bow__text_escape(&text, slice_of("\1\1\1\1\1\1\1\1"), 8);
        assert_whole(&text);
        size_t end = text.len - (text.full ? 3 : 0);
        size_t n_dashes = strspn(text.bytes, "-");
        assert_int_equal((end - n_dashes) % 4, 0);
    }
}

static void test_text_errno_has_name_and_description(void **state)
{
    struct bow__text text;

    (void)state;
    bow__text_clear(&text);
    bow__text_errno(&text, -ECONNREFUSED);
    assert_string_equal(text.bytes, "ECONNREFUSED (Connection refused)");
    bow__text_clear(&text);
    bow__text_errno(&text, ECONNREFUSED);
    assert_string_equal(text.bytes, "ECONNREFUSED (Connection refused)");
}

static void test_text_errno_unknown_shows_the_number(void **state)
{
    struct bow__text text;

    (void)state;
    bow__text_clear(&text);
    bow__text_errno(&text, -9999);
    assert_string_equal(text.bytes, "errno 9999");
    bow__text_clear(&text);
    bow__text_errno(&text, INT_MIN);
    assert_string_equal(text.bytes, "errno 2147483647");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_printf_appends),
        cmocka_unit_test(test_text_that_fits_exactly_is_not_cut),
        cmocka_unit_test(test_text_too_long_ends_in_dots),
        cmocka_unit_test(test_text_cut_never_splits_a_character),
        cmocka_unit_test(test_text_cut_short_takes_no_more),
        cmocka_unit_test(test_text_escape_shows_what_is_not_printable),
        cmocka_unit_test(test_text_escape_beyond_max_ends_in_dots),
        cmocka_unit_test(test_text_escape_cut_never_splits_an_escape),
        cmocka_unit_test(test_text_errno_has_name_and_description),
        cmocka_unit_test(test_text_errno_unknown_shows_the_number),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
