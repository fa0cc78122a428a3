/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Header texts of gRPC, golden and back, and how codes map. */
#include "rpc/http2/codes.h"
#include "rpc/web/grpc_text.h"

#include <bowline/system.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <nghttp2/nghttp2.h>

#define HOUR_NS (UINT64_C(3600) * 1000000000)

static struct bow_slice slice(const char *text)
{
    return (struct bow_slice){(const uint8_t *)text, strlen(text)};
}

static void expect_encoded(uint64_t timeout_ns, const char *expected)
{
    char text[BOW__GRPC_TIMEOUT_BYTES + 1] = {0};
    size_t len = bow__grpc_timeout_encode(timeout_ns, text);

    assert_string_equal(text, expected);
    assert_int_equal(len, strlen(expected));
}

static void test_timeout_encode_takes_the_finest_unit_that_fits(void **state)
{
    (void)state;
    expect_encoded(0, "1n");
    expect_encoded(1, "1n");
    expect_encoded(99999999, "99999999n");
    expect_encoded(100000000, "100000u");
    expect_encoded(100000001, "100001u");
    expect_encoded(UINT64_C(99999999) * 1000, "99999999u");
    expect_encoded(UINT64_C(99999999) * 1000 + 1, "100000m");
    expect_encoded(UINT64_C(99999999) * 1000000, "99999999m");
    expect_encoded(UINT64_C(99999999) * 1000000 + 1, "100000S");
    expect_encoded(UINT64_C(99999999) * 1000000000 + 1, "1666667M");
    expect_encoded(UINT64_C(99999999) * 60000000000 + 1, "1666667H");
    expect_encoded(INT64_MAX, "2562048H");
    expect_encoded(BOW_NEVER - 1, "5124096H");
}

static void expect_decoded(const char *text, uint64_t expected)
{
    uint64_t timeout_ns = 77;

    assert_int_equal(bow__grpc_timeout_decode(slice(text), &timeout_ns), 0);
    assert_int_equal(timeout_ns, expected);
}

static void test_timeout_decode_reads_every_unit(void **state)
{
    (void)state;
    expect_decoded("1n", 1);
    expect_decoded("2u", 2000);
    expect_decoded("3m", 3000000);
    expect_decoded("4S", UINT64_C(4000000000));
    expect_decoded("5M", UINT64_C(300000000000));
    expect_decoded("6H", 6 * HOUR_NS);
    expect_decoded("0n", 0);
    expect_decoded("00000000S", 0);
    expect_decoded("99999999S", UINT64_C(99999999) * 1000000000);
}

static void test_timeout_f06_decode_beyond_64_bits_is_never(void **state)
{
    (void)state;
    expect_decoded("5124095H", UINT64_C(5124095) * HOUR_NS);
    expect_decoded("5124096H", BOW_NEVER);
    expect_decoded("99999999H", BOW_NEVER);
    expect_decoded("99999999M", UINT64_C(99999999) * 60 * 1000000000);
}

static void test_timeout_f06_decode_of_anything_else_fails(void **state)
{
    static const char *const bad[] = {"",    "n",   "1",   "1s",   "1h",         "-1n", "+1n",
                                      " 1n", "1n ", "1 n", "0x1n", "123456789n", "1.5S"};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        uint64_t timeout_ns = 77;
        assert_int_equal(bow__grpc_timeout_decode(slice(bad[i]), &timeout_ns), -EBADMSG);
        assert_int_equal(timeout_ns, 77);
    }
}

/* Never earlier than asked for, and at most one unit later. */
static void test_timeout_survives_the_way(void **state)
{
    (void)state;
    for (uint64_t timeout_ns = 1; timeout_ns < BOW_NEVER / 3; timeout_ns = timeout_ns * 3 + 1) {
        char text[BOW__GRPC_TIMEOUT_BYTES];
        uint64_t back_ns = 0;
        size_t len = bow__grpc_timeout_encode(timeout_ns, text);
        struct bow_slice on_wire = {(const uint8_t *)text, len};
        assert_int_equal(bow__grpc_timeout_decode(on_wire, &back_ns), 0);
        assert_true(back_ns >= timeout_ns);
        assert_true(back_ns - timeout_ns <= timeout_ns / 100000);
    }
}

static void expect_percent(const char *plain, const char *encoded)
{
    char out[256];
    size_t len = bow__grpc_percent_encode(slice(plain), out);

    assert_int_equal(len, strlen(encoded));
    assert_int_equal(len, bow__grpc_percent_size(slice(plain)));
    assert_memory_equal(out, encoded, len);
    assert_int_equal(bow__grpc_percent_decode(slice(encoded), out, sizeof(out)), strlen(plain));
    assert_string_equal(out, plain);
}

static void test_percent_encoding_goes_both_ways(void **state)
{
    (void)state;
    expect_percent("", "");
    expect_percent("plain ~ text", "plain ~ text");
    expect_percent(" at the ends: ", "%20at the ends:%20");
    expect_percent(" ", "%20");
    expect_percent("100%", "100%25");
    expect_percent("tab\t nl\n del\x7F", "tab%09 nl%0A del%7F");
    expect_percent("\xC3\xBC \xE2\x82\xAC \xF0\x9F\xAA\xA2", "%C3%BC %E2%82%AC %F0%9F%AA%A2");
}

static void expect_percent_decoded(const char *text, const char *expected)
{
    char out[64];

    assert_int_equal(bow__grpc_percent_decode(slice(text), out, sizeof(out)), strlen(expected));
    assert_string_equal(out, expected);
}

static void test_percent_decode_takes_what_peers_send(void **state)
{
    (void)state;
    expect_percent_decoded("%c3%bc", "\xC3\xBC");
    expect_percent_decoded("%", "%");
    expect_percent_decoded("%4", "%4");
    expect_percent_decoded("%4g%zz%41", "%4g%zzA");
    expect_percent_decoded("raw \xC3\xBC", "raw \xC3\xBC");
}

static void test_percent_decode_makes_text_of_what_is_none(void **state)
{
    (void)state;
    expect_percent_decoded("a%00b", "a?b");
    expect_percent_decoded("%FF%C3", "??");
    expect_percent_decoded("%C3[%ED%A0%80]%C0%80", "?[???]?"
                                                   "?");
}

static void test_percent_decode_cuts_at_a_character(void **state)
{
    char out[5];

    (void)state;
    assert_int_equal(bow__grpc_percent_decode(slice("abcdef"), out, sizeof(out)), 4);
    assert_string_equal(out, "abcd");
    assert_int_equal(bow__grpc_percent_decode(slice("abc%C3%BC"), out, sizeof(out)), 3);
    assert_string_equal(out, "abc");
    assert_int_equal(bow__grpc_percent_decode(slice("ab%C3%BCd"), out, sizeof(out)), 4);
    assert_string_equal(out, "ab\xC3\xBC");
    assert_int_equal(bow__grpc_percent_decode(slice("a%F0%9F%AA%A2"), out, sizeof(out)), 1);
    assert_string_equal(out, "a");
    assert_int_equal(bow__grpc_percent_decode(slice("abc"), out, 1), 0);
    assert_string_equal(out, "");
}

static void test_text_cut_splits_no_character(void **state)
{
    (void)state;
    assert_int_equal(bow__grpc_text_cut(slice("abc"), 3), 3);
    assert_int_equal(bow__grpc_text_cut(slice("abc"), 2), 2);
    assert_int_equal(bow__grpc_text_cut(slice("a\xE2\x82\xAC"), 3), 1);
    assert_int_equal(bow__grpc_text_cut(slice("a\xE2\x82\xAC"), 4), 4);
}

static void test_codes_map_as_grpc_specifies(void **state)
{
    (void)state;
    assert_int_equal(bow__http2_code_of_reset(NGHTTP2_NO_ERROR), BOW_INTERNAL);
    assert_int_equal(bow__http2_code_of_reset(NGHTTP2_PROTOCOL_ERROR), BOW_INTERNAL);
    assert_int_equal(bow__http2_code_of_reset(NGHTTP2_REFUSED_STREAM), BOW_UNAVAILABLE);
    assert_int_equal(bow__http2_code_of_reset(NGHTTP2_CANCEL), BOW_CANCELLED);
    assert_int_equal(bow__http2_code_of_reset(NGHTTP2_ENHANCE_YOUR_CALM), BOW_RESOURCE_EXHAUSTED);
    assert_int_equal(bow__http2_code_of_reset(NGHTTP2_INADEQUATE_SECURITY), BOW_PERMISSION_DENIED);
    assert_int_equal(bow__http2_code_of_reset(4711), BOW_UNKNOWN);
    assert_int_equal(bow__http2_code_of_http_status(400), BOW_INTERNAL);
    assert_int_equal(bow__http2_code_of_http_status(401), BOW_UNAUTHENTICATED);
    assert_int_equal(bow__http2_code_of_http_status(403), BOW_PERMISSION_DENIED);
    assert_int_equal(bow__http2_code_of_http_status(404), BOW_UNIMPLEMENTED);
    assert_int_equal(bow__http2_code_of_http_status(429), BOW_UNAVAILABLE);
    assert_int_equal(bow__http2_code_of_http_status(502), BOW_UNAVAILABLE);
    assert_int_equal(bow__http2_code_of_http_status(503), BOW_UNAVAILABLE);
    assert_int_equal(bow__http2_code_of_http_status(504), BOW_UNAVAILABLE);
    assert_int_equal(bow__http2_code_of_http_status(418), BOW_UNKNOWN);
    assert_int_equal(bow__http2_reset_of_code(BOW_DEADLINE_EXCEEDED), NGHTTP2_CANCEL);
    assert_int_equal(bow__http2_reset_of_code(BOW_RESOURCE_EXHAUSTED), NGHTTP2_ENHANCE_YOUR_CALM);
    assert_int_equal(bow__http2_reset_of_code(BOW_INTERNAL), NGHTTP2_INTERNAL_ERROR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timeout_encode_takes_the_finest_unit_that_fits),
        cmocka_unit_test(test_timeout_decode_reads_every_unit),
        cmocka_unit_test(test_timeout_f06_decode_beyond_64_bits_is_never),
        cmocka_unit_test(test_timeout_f06_decode_of_anything_else_fails),
        cmocka_unit_test(test_timeout_survives_the_way),
        cmocka_unit_test(test_percent_encoding_goes_both_ways),
        cmocka_unit_test(test_percent_decode_takes_what_peers_send),
        cmocka_unit_test(test_percent_decode_makes_text_of_what_is_none),
        cmocka_unit_test(test_percent_decode_cuts_at_a_character),
        cmocka_unit_test(test_text_cut_splits_no_character),
        cmocka_unit_test(test_codes_map_as_grpc_specifies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
