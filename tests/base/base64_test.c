/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Base64 both ways, with what may stand in for it and what may not. */

#include "base/base64.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct bow_slice slice(const char *text)
{
    return (struct bow_slice){(const uint8_t *)text, strlen(text)};
}

static void expect_from_base64(const char *encoded, size_t len, const char *plain)
{
    uint8_t bytes[64];
    size_t n = 0;

    assert_int_equal(
        bow__base64_decode((struct bow_slice){(const uint8_t *)encoded, len}, bytes, &n), 0);
    assert_int_equal(n, strlen(plain));
    assert_memory_equal(bytes, plain, n);
}

static void expect_base64(const char *plain, const char *encoded)
{
    char text[64];
    size_t len = bow__base64_encode(slice(plain), text);

    /* Written without padding, read with it and without. */
    assert_int_equal(len, strcspn(encoded, "="));
    assert_int_equal(len, bow__base64_size(strlen(plain)));
    assert_memory_equal(text, encoded, len);
    expect_from_base64(encoded, strlen(encoded), plain);
    expect_from_base64(encoded, len, plain);
}

/* The vectors of RFC 4648, section 10. */
static void test_base64_goes_both_ways(void **state)
{
    (void)state;
    expect_base64("", "");
    expect_base64("f", "Zg==");
    expect_base64("fo", "Zm8=");
    expect_base64("foo", "Zm9v");
    expect_base64("foob", "Zm9vYg==");
    expect_base64("fooba", "Zm9vYmE=");
    expect_base64("foobar", "Zm9vYmFy");
    expect_base64("\xFB\xFF\xFE", "+//+");
}

static void test_base64_decode_knows_the_alphabet_of_urls(void **state)
{
    (void)state;
    expect_from_base64("-__-", 4, "\xFB\xFF\xFE");
    expect_from_base64("-_8=", 4, "\xFB\xFF");
}

static void test_base64_decode_where_the_text_is(void **state)
{
    uint8_t text[] = "Zm9vYmE=";
    size_t n = 0;

    (void)state;
    assert_int_equal(bow__base64_decode((struct bow_slice){text, 8}, text, &n), 0);
    assert_int_equal(n, 5);
    assert_memory_equal(text, "fooba", 5);
}

static void test_base64_decode_of_anything_else_fails(void **state)
{
    static const char *const bad[] = {"A",    "Zm9vA", "Zm 9", "Zm9!",
                                      "====", "Zg=",   "Zg=x", "Zm9v\x80"};
    uint8_t bytes[64];
    size_t n = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(bow__base64_decode(slice(bad[i]), bytes, &n), -EBADMSG);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base64_goes_both_ways),
        cmocka_unit_test(test_base64_decode_knows_the_alphabet_of_urls),
        cmocka_unit_test(test_base64_decode_where_the_text_is),
        cmocka_unit_test(test_base64_decode_of_anything_else_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
