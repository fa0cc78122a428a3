/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Bodies of Connect and gRPC-Web into messages, cut at each byte and byte by byte, and what is no
 * such body. */

#include "rpc/web/reader.h"
#include "tests/support/alloc.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MAX_BYTES ((size_t)4096)
#define LOG_BYTES ((size_t)16384)

struct fixture {
    struct test_alloc alloc;
    struct bow_context *context;
    struct bow__web_reader reader;
    char log[LOG_BYTES]; /* "[abc]" for a message, "[*abc]" for one that is marked compressed */
    size_t n_log;
    struct bow__text why;
};

static int set_up(void **state)
{
    struct fixture *t = calloc(1, sizeof(*t));

    test_alloc_init(&t->alloc);
    t->context = test_context_new(&t->alloc);
    *state = t;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *t = *state;

    bow__web_reader_fini(&t->reader);
    test_context_end(t->context, &t->alloc);
    free(t);
    return 0;
}

static void begin(struct fixture *t, enum bow__web_framing framing)
{
    bow__web_reader_fini(&t->reader);
    memset(&t->reader, 0, sizeof(t->reader));
    bow__web_reader_init(&t->reader, t->context, framing, NULL, MAX_BYTES);
    bow__text_clear(&t->why);
    t->n_log = 0;
    t->log[0] = '\0';
}

static void note(struct fixture *t, struct bow__message *message)
{
    t->n_log += (size_t)snprintf(t->log + t->n_log, LOG_BYTES - t->n_log, "[%s%.*s]",
                                 message->compressed ? "*" : "", (int)message->bytes.len,
                                 (const char *)message->bytes.data);
    bow__block_unref(message->block);
}

/* From memory of its own, so that no byte behind it may be looked at. */
static int feed(struct fixture *t, const void *bytes, size_t n)
{
    uint8_t *copy = malloc(n > 0 ? n : 1);
    struct bow_slice left = {copy, n};
    struct bow__message message;
    int rc = 1;

    memcpy(copy, bytes, n);
    while (rc > 0) {
        rc = bow__web_reader_feed(&t->reader, &left, &message, &t->why);
        if (rc > 0) {
            note(t, &message);
        }
    }
    if (rc == 0) {
        assert_int_equal(left.len, 0);
    }
    free(copy);
    return rc;
}

static int end(struct fixture *t)
{
    struct bow__message message;

    int rc = bow__web_reader_end(&t->reader, &message, &t->why);
    if (rc > 0) {
        note(t, &message);
    }
    return rc;
}

/* Whole, in two pieces at each place, and byte by byte. */
static void expect_each_way(struct fixture *t, enum bow__web_framing framing, const char *body,
                            size_t n, const char *expected)
{
    for (size_t at = 0; at <= n; at++) {
        begin(t, framing);
        assert_int_equal(feed(t, body, at), 0);
        assert_int_equal(feed(t, body + at, n - at), 0);
        assert_true(end(t) >= 0);
        assert_string_equal(t->log, expected);
    }
    begin(t, framing);
    for (size_t at = 0; at < n; at++) {
        assert_int_equal(feed(t, body + at, 1), 0);
    }
    assert_true(end(t) >= 0);
    assert_string_equal(t->log, expected);
}

static void test_web_reader_bare_body_is_one_message(void **state)
{
    expect_each_way(*state, BOW__WEB_BARE, "{\"name\":\"Ada\"}", 14, "[{\"name\":\"Ada\"}]");
    expect_each_way(*state, BOW__WEB_BARE, "", 0, "[]");
}

static void test_web_reader_takes_prefixes_off(void **state)
{
    static const char body[] = "\0\0\0\0\3abc\1\0\0\0\2de\0\0\0\0\0\0\0\0\0\1f";

    expect_each_way(*state, BOW__WEB_PREFIXED, body, sizeof(body) - 1, "[abc][*de][][f]");
    expect_each_way(*state, BOW__WEB_PREFIXED, "", 0, "");
}

static void test_web_reader_undoes_base64_over_borders_of_messages(void **state)
{
    /* The same in one piece of base64, and each message padded by itself. */
    static const char one[] = "AAAAAANhYmMBAAAAAmRlAAAAAAAAAAAAAWY=";
    static const char padded[] = "AAAAAANhYmM=AQAAAAJkZQ==AAAAAAA=AAAAAAFm";

    expect_each_way(*state, BOW__WEB_PREFIXED_BASE64, one, sizeof(one) - 1, "[abc][*de][][f]");
    expect_each_way(*state, BOW__WEB_PREFIXED_BASE64, padded, sizeof(padded) - 1,
                    "[abc][*de][][f]");
}

static void test_web_reader_undoes_base64_of_large_messages(void **state)
{
    struct fixture *t = *state;
    char quad[5] = "AAAA";

    /* 4095 bytes of NUL behind a prefix: 4100 bytes are 1366 quads and two bytes more. */
    begin(t, BOW__WEB_PREFIXED_BASE64);
    assert_int_equal(feed(t, "AAAAD/8A", 8), 0);
    for (int i = 0; i < 1364; i++) {
        assert_int_equal(feed(t, quad, 4), 0);
    }
    assert_string_equal(t->log, "");
    assert_int_equal(t->reader.n_bytes, 1 + 3 * 1364);
    assert_int_equal(feed(t, "AAA=", 4), 0);
    assert_string_equal(t->log, "[]"); /* it begins with a NUL */
    assert_int_equal(end(t), 0);
}

struct bad {
    enum bow__web_framing framing;
    const char *body;
    size_t n;
    int rc;
    enum bow_code code;
    const char *why;
};

static void test_web_reader_refuses_and_says_why(void **state)
{
    static const struct bad all[] = {
        {BOW__WEB_PREFIXED, "\2\0\0\0\0", 5, -EPROTO, BOW_INVALID_ARGUMENT, "flags 0x02"},
        {BOW__WEB_PREFIXED, "\200\0\0\0\0", 5, -EPROTO, BOW_INVALID_ARGUMENT, "flags 0x80"},
        {BOW__WEB_PREFIXED, "\4\0\0\0\0", 5, -EPROTO, BOW_INTERNAL, "flags 0x04"},
        {BOW__WEB_PREFIXED, "\0\0\0\20\1", 5, -EMSGSIZE, BOW_RESOURCE_EXHAUSTED,
         "message of 4097 bytes exceeds the server's max_message_bytes (4096)"},
        {BOW__WEB_PREFIXED, "\0\377\377\377\377", 5, -EMSGSIZE, BOW_RESOURCE_EXHAUSTED,
         "message of 4294967295 bytes"},
        {BOW__WEB_PREFIXED_BASE64, "AAAA*AAA", 8, -EPROTO, BOW_INVALID_ARGUMENT, "not base64"},
        {BOW__WEB_PREFIXED_BASE64, "A===", 4, -EPROTO, BOW_INVALID_ARGUMENT, "not base64"},
        {BOW__WEB_PREFIXED_BASE64, "AA=A", 4, -EPROTO, BOW_INVALID_ARGUMENT, "not base64"},
    };
    struct fixture *t = *state;

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        begin(t, all[i].framing);
        assert_int_equal(feed(t, all[i].body, all[i].n), all[i].rc);
        assert_int_equal(t->reader.code, all[i].code);
        assert_non_null(strstr(t->why.bytes, all[i].why));
        assert_string_equal(t->log, "");
    }
}

static void test_web_reader_bare_body_over_the_limit_is_refused(void **state)
{
    struct fixture *t = *state;
    static const char bytes[MAX_BYTES + 1];

    begin(t, BOW__WEB_BARE);
    assert_int_equal(feed(t, bytes, MAX_BYTES), 0);
    assert_int_equal(end(t), 1);
    begin(t, BOW__WEB_BARE);
    assert_int_equal(feed(t, bytes, MAX_BYTES), 0);
    assert_int_equal(feed(t, bytes, 1), -EMSGSIZE);
    assert_int_equal(t->reader.code, BOW_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(t->why.bytes, "max_message_bytes (4096)"));
}

static void test_web_reader_end_inside_a_message_is_refused(void **state)
{
    struct fixture *t = *state;
    static const char body[] = "\0\0\0\0\3abc";
    static const char text[] = "AAAAAANhYmM=";

    for (size_t n = 1; n < sizeof(body) - 1; n++) {
        begin(t, BOW__WEB_PREFIXED);
        assert_int_equal(feed(t, body, n), 0);
        assert_int_equal(end(t), -EPROTO);
        assert_non_null(strstr(t->why.bytes, "the body ended inside a message"));
    }
    for (size_t n = 1; n < sizeof(text) - 1; n++) {
        begin(t, BOW__WEB_PREFIXED_BASE64);
        assert_int_equal(feed(t, text, n), 0);
        assert_int_equal(end(t), -EPROTO);
    }
}

static void test_web_reader_without_memory_says_so(void **state)
{
    struct fixture *t = *state;
    static const char body[] = "\0\0\0\0\3abc";

    begin(t, BOW__WEB_PREFIXED);
    assert_int_equal(feed(t, body, 5), 0);
    t->alloc.fail_at = t->alloc.n_calls + 1;
    assert_int_equal(feed(t, body + 5, 1), -ENOMEM);
    assert_int_equal(t->reader.code, BOW_RESOURCE_EXHAUSTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_web_reader_bare_body_is_one_message, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_web_reader_takes_prefixes_off, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_web_reader_undoes_base64_over_borders_of_messages,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_web_reader_undoes_base64_of_large_messages, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_web_reader_refuses_and_says_why, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_web_reader_bare_body_over_the_limit_is_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_web_reader_end_inside_a_message_is_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_web_reader_without_memory_says_so, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
