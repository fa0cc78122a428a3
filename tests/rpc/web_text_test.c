/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The texts of Connect and gRPC-Web, golden: ends of calls, content types, codes, queries, origins.
 */

#include "rpc/web/codes.h"
#include "rpc/web/content_type.h"
#include "rpc/web/end_text.h"
#include "rpc/web/origins.h"
#include "rpc/web/query.h"
#include "tests/support/alloc.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    struct test_alloc alloc;
    struct bow_context *context;
    struct bow__arena arena;
};

static int set_up(void **state)
{
    struct fixture *t = calloc(1, sizeof(*t));

    test_alloc_init(&t->alloc);
    t->context = test_context_new(&t->alloc);
    bow__arena_init(&t->arena, t->context, NULL, 0, SIZE_MAX);
    *state = t;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *t = *state;

    bow__arena_fini(&t->arena);
    test_context_end(t->context, &t->alloc);
    free(t);
    return 0;
}

static struct bow_slice slice(const char *text)
{
    return (struct bow_slice){(const uint8_t *)text, strlen(text)};
}

static void expect(struct bow_slice text, const char *expected)
{
    assert_non_null(text.data);
    if (text.len != strlen(expected) || memcmp(text.data, expected, text.len) != 0) {
        fail_msg("\"%.*s\" is not \"%s\"", (int)text.len, (const char *)text.data, expected);
    }
}

/* google.rpc.Status: code 5, message "m", details of an Any of a.B with 08 01, and one without a
 * slash. */
static const char details[] = "\x08\x05\x12\x01m"
                              "\x1a\x1d\x0a\x17type.googleapis.com/a.B\x12\x02\x08\x01"
                              "\x1a\x05\x0a\x03"
                              "c.D";

static const struct bow_metadata_entry entries[] = {
    {"x-a", {(const uint8_t *)"1", 1}},
    {"x-b-bin", {(const uint8_t *)"\0\xff", 2}},
    {"x-a", {(const uint8_t *)"\"2\"", 3}},
};

static void test_end_text_error_is_as_connect_has_it(void **state)
{
    struct fixture *t = *state;
    struct bow_status status = {.code = BOW_NOT_FOUND, .message = "no such \"order\""};

    expect(bow__connect_error_text(&t->arena, &status),
           "{\"code\":\"not_found\",\"message\":\"no such \\\"order\\\"\"}");
    status.message = "";
    expect(bow__connect_error_text(&t->arena, &status), "{\"code\":\"not_found\"}");
    status.message = "m";
    status.details = (struct bow_slice){(const uint8_t *)details, sizeof(details) - 1};
    expect(bow__connect_error_text(&t->arena, &status),
           "{\"code\":\"not_found\",\"message\":\"m\",\"details\":[{\"type\":\"a.B\",\"value\":"
           "\"CAE\"},{\"type\":\"c.D\",\"value\":\"\"}]}");
}

static void test_end_text_what_is_not_utf8_is_json_all_the_same(void **state)
{
    struct fixture *t = *state;
    struct bow_status status = {.code = BOW_INTERNAL, .message = "a\xc3\xa9\xff\xc3"};

    expect(bow__connect_error_text(&t->arena, &status),
           "{\"code\":\"internal\",\"message\":\"a\xc3\xa9??\"}");
}

static void test_end_text_cut_details_are_left_out(void **state)
{
    struct fixture *t = *state;

    for (size_t n = 0; n < sizeof(details) - 1; n++) {
        struct bow_status status = {
            .code = BOW_NOT_FOUND,
            .message = "",
            .details = {(const uint8_t *)details, n},
        };
        struct bow_slice text = bow__connect_error_text(&t->arena, &status);
        bool has_first = n >= 5 + 31;
        assert_int_equal(memmem(text.data, text.len, "\"a.B\"", 5) != NULL, has_first);
        assert_null(memmem(text.data, text.len, "c.D", 3));
    }
}

static void test_end_text_wait_is_among_the_details(void **state)
{
    struct fixture *t = *state;
    struct bow_status status = {
        .code = BOW_RESOURCE_EXHAUSTED, .message = "", .retry_after_ns = 1500000000};

    expect(bow__connect_error_text(&t->arena, &status),
           "{\"code\":\"resource_exhausted\",\"details\":[{\"type\":\"google.rpc.RetryInfo\","
           "\"value\":\"CggIARCAyrXuAQ\"}]}");
}

static void test_end_text_of_streams_has_error_and_metadata(void **state)
{
    struct fixture *t = *state;
    struct bow_status status = {.code = BOW_OK, .message = ""};

    expect(bow__connect_end_text(&t->arena, &status), "{}");
    status.metadata = (struct bow_metadata){entries, 3};
    expect(bow__connect_end_text(&t->arena, &status),
           "{\"metadata\":{\"x-a\":[\"1\",\"\\\"2\\\"\"],\"x-b-bin\":[\"AP8\"]}}");
    status.code = BOW_ABORTED;
    status.metadata.n = 1;
    expect(bow__connect_end_text(&t->arena, &status),
           "{\"error\":{\"code\":\"aborted\"},\"metadata\":{\"x-a\":[\"1\"]}}");
}

static void test_end_text_trailers_are_as_grpc_web_has_them(void **state)
{
    struct fixture *t = *state;
    struct bow_status status = {.code = BOW_OK, .message = ""};

    expect(bow__grpc_web_trailers_text(&t->arena, &status), "grpc-status: 0\r\n");
    status.code = BOW_NOT_FOUND;
    status.message = "no 100%\n";
    status.details = slice("abcd");
    status.metadata = (struct bow_metadata){entries, 3};
    expect(bow__grpc_web_trailers_text(&t->arena, &status),
           "grpc-status: 5\r\ngrpc-message: no 100%25%0A\r\n"
           "grpc-status-details-bin: YWJjZA\r\nx-a: 1\r\nx-b-bin: AP8\r\nx-a: \"2\"\r\n");
}

static void test_connect_codes_have_names_and_statuses(void **state)
{
    (void)state;
    assert_string_equal(bow__connect_code_name(BOW_CANCELLED), "canceled");
    assert_string_equal(bow__connect_http_status(BOW_CANCELLED), "499");
    assert_string_equal(bow__connect_code_name(BOW_UNAUTHENTICATED), "unauthenticated");
    assert_string_equal(bow__connect_http_status(BOW_UNAUTHENTICATED), "401");
    assert_string_equal(bow__connect_http_status(BOW_UNAVAILABLE), "503");
    assert_string_equal(bow__connect_http_status(BOW_RESOURCE_EXHAUSTED), "429");
    assert_string_equal(bow__connect_code_name(BOW_OK), "unknown");
    assert_string_equal(bow__connect_code_name((enum bow_code)99), "unknown");
}

struct type {
    const char *text;
    enum bow__web_kind kind;
    bool is_json;
};

static void test_content_types_are_told_apart(void **state)
{
    static const struct type types[] = {
        {"application/json", BOW__WEB_CONNECT_UNARY, true},
        {"Application/JSON; charset=utf-8", BOW__WEB_CONNECT_UNARY, true},
        {"application/proto", BOW__WEB_CONNECT_UNARY, false},
        {"application/connect+json", BOW__WEB_CONNECT_STREAM, true},
        {"application/connect+proto", BOW__WEB_CONNECT_STREAM, false},
        {"application/grpc-web", BOW__WEB_GRPC, false},
        {"application/grpc-web+proto", BOW__WEB_GRPC, false},
        {"application/grpc-web-text ;x", BOW__WEB_GRPC_TEXT, false},
        {"application/grpc", BOW__WEB_NONE, false},
        {"application/grpc-web+json", BOW__WEB_NONE, false},
        {"application/jsonp", BOW__WEB_NONE, false},
        {"text/plain", BOW__WEB_NONE, false},
        {"", BOW__WEB_NONE, false},
        {";", BOW__WEB_NONE, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        enum bow__web_kind kind = BOW__WEB_NONE;
        bool is_json = false;
        bool is_known = bow__web_content_type_read(slice(types[i].text), &kind, &is_json);
        assert_int_equal(is_known, types[i].kind != BOW__WEB_NONE);
        assert_int_equal(kind, types[i].kind);
        assert_int_equal(is_json, types[i].is_json);
    }
    assert_string_equal(bow__web_content_type(BOW__WEB_GRPC, false), "application/grpc-web+proto");
}

static void test_query_is_split_found_and_decoded(void **state)
{
    struct bow_slice path;
    struct bow_slice query;
    struct bow_slice value;
    uint8_t out[64];

    (void)state;
    bow__query_split(slice("/a.B/C?connect=v1&message=%7B%7d&empty=&flag&message=2"), &path,
                     &query);
    expect(path, "/a.B/C");
    assert_true(bow__query_find(query, "message", &value));
    expect(value, "%7B%7d");
    assert_int_equal(bow__query_decode(value, out), 2);
    assert_memory_equal(out, "{}", 2);
    assert_true(bow__query_find(query, "empty", &value));
    assert_int_equal(value.len, 0);
    assert_true(bow__query_find(query, "flag", &value));
    assert_int_equal(value.len, 0);
    assert_false(bow__query_find(query, "mess", &value));
    assert_int_equal(bow__query_decode(slice("a+b%2B"), out), 4);
    assert_memory_equal(out, "a b+", 4);
    assert_int_equal(bow__query_decode(slice("%"), out), SIZE_MAX);
    assert_int_equal(bow__query_decode(slice("%4"), out), SIZE_MAX);
    assert_int_equal(bow__query_decode(slice("%4g"), out), SIZE_MAX);
    bow__query_split(slice("/a.B/C"), &path, &query);
    expect(path, "/a.B/C");
    assert_int_equal(query.len, 0);
}

static bool has(struct fixture *t, const char *list, const char *origin)
{
    struct bow__web_origins *origins = NULL;

    assert_int_equal(bow__web_origins_new(t->context, list, &origins), 0);
    bool found = bow__web_origins_have(origins, slice(origin));
    bow__web_origins_free(t->context, origins);
    return found;
}

static void test_origins_are_those_of_the_list(void **state)
{
    struct fixture *t = *state;
    static const char list[] = "https://shop.example, http://127.0.0.1:8080";

    assert_true(has(t, list, "https://shop.example"));
    assert_true(has(t, list, "http://127.0.0.1:8080"));
    assert_false(has(t, list, "https://shop.example.evil"));
    assert_false(has(t, list, "https://shop.exampl"));
    assert_false(has(t, list, "http://shop.example"));
    assert_false(has(t, list, "null"));
    assert_false(has(t, list, ""));
    assert_true(has(t, "*", "https://anything.example"));
    assert_false(has(t, "*", ""));
    assert_false(has(t, NULL, "https://shop.example"));
    assert_false(has(t, " , ", "https://shop.example"));
}

static void test_origins_that_would_never_match_are_refused(void **state)
{
    static const char *const bad[] = {
        "shop.example",      "https://", "https://Shop.example",  "https://shop.example/",
        "https://*.example", "null",     "https://a.example, **",
    };
    struct bow__text reason;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        bow__text_clear(&reason);
        assert_int_equal(bow__web_origins_check(bad[i], &reason), -EINVAL);
        assert_non_null(strstr(reason.bytes, "is no origin"));
    }
    assert_int_equal(bow__web_origins_check("https://a.example,*", &reason), 0);
    assert_int_equal(bow__web_origins_check("", &reason), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_end_text_error_is_as_connect_has_it, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_end_text_what_is_not_utf8_is_json_all_the_same, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_end_text_cut_details_are_left_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_end_text_wait_is_among_the_details, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_end_text_of_streams_has_error_and_metadata, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_end_text_trailers_are_as_grpc_web_has_them, set_up,
                                        tear_down),
        cmocka_unit_test(test_connect_codes_have_names_and_statuses),
        cmocka_unit_test(test_content_types_are_told_apart),
        cmocka_unit_test(test_query_is_split_found_and_decoded),
        cmocka_unit_test_setup_teardown(test_origins_are_those_of_the_list, set_up, tear_down),
        cmocka_unit_test(test_origins_that_would_never_match_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
