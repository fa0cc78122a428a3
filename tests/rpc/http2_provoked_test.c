/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Floods of what costs a peer nothing to provoke, and is no fault frame by frame. */
#include "tests/rpc/http2_pair.h"

#include <bowline/limits.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TEXT_BYTES ((size_t)64 << 10)

struct fixture {
    struct test_alloc alloc;
    struct bow_context *context;
    struct pair pair;
    struct bytes in;
    struct bytes out;
    char text[TEXT_BYTES];
};

static int set_up(void **state)
{
    struct fixture *t = calloc(1, sizeof(*t));

    test_alloc_init(&t->alloc);
    t->context = test_context_new(&t->alloc);
    assert_int_equal(pair_begin(&t->pair, t->context), 0);
    *state = t;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *t = *state;

    pair_end(&t->pair);
    test_context_end(t->context, &t->alloc);
    free(t);
    return 0;
}

/* Feeds what was put into `in`; all that the server said so far is then in `text`. */
static int feed_in(struct fixture *t)
{
    int rc = side_feed(&t->pair.server, t->in.data, t->in.len, SIZE_MAX);

    t->in.len = 0;
    t->out.len +=
        side_drain(&t->pair.server, t->out.data + t->out.len, sizeof(t->out.data) - t->out.len);
    bytes_print(&t->out, t->text, TEXT_BYTES);
    return rc;
}

static bool says(const struct fixture *t, const char *part)
{
    return strstr(t->text, part) != NULL;
}

static void expect_flood(struct fixture *t, const char *why)
{
    assert_int_equal(feed_in(t), -EPROTO);
    assert_string_equal(t->pair.server.session->failure.bytes, why);
    assert_int_equal(t->pair.server.session->failure_code, BOW_RESOURCE_EXHAUSTED);
    assert_true(says(t, "GOAWAY 0 "));
    assert_true(says(t, " 11 "));
    assert_true(says(t, why));
}

/* Those that nghttp2 does by itself count as well: here for DATA beyond what the header announced.
 */
static void test_resets_for_wrong_lengths_are_bounded(void **state)
{
    struct fixture *t = *state;

    t->pair.server.is_muted = true;
    bytes_preface(&t->in);
    for (uint32_t i = 0; i <= BOW_LIMIT_CANCELS_PER_SECOND; i++) {
        bytes_request(&t->in, 4, 2 * i + 1, (const char *[]){"content-length: 1", NULL});
        bytes_frame(&t->in, 0, 0, 2 * i + 1, "\0\0", 2);
        if (i < BOW_LIMIT_CANCELS_PER_SECOND) {
            assert_int_equal(side_feed(&t->pair.server, t->in.data, t->in.len, SIZE_MAX), 0);
            t->in.len = 0;
            side_drain(&t->pair.server, t->out.data, sizeof(t->out.data));
        }
    }
    expect_flood(t, "more stream resets in a second than BOW_LIMIT_CANCELS_PER_SECOND (1000)");
}

static void test_flood_of_answers_to_no_ping_is_bounded(void **state)
{
    struct fixture *t = *state;

    bytes_preface(&t->in);
    for (uint32_t i = 0; i <= BOW_LIMIT_PINGS_PER_SECOND; i++) {
        bytes_frame(&t->in, 6, 1, 0, "12345678", 8);
    }
    expect_flood(t, "more PINGs in a second than BOW_LIMIT_PINGS_PER_SECOND (100)");
}

static void test_goaway_flood_is_bounded(void **state)
{
    struct fixture *t = *state;

    bytes_preface(&t->in);
    for (uint32_t i = 0; i <= BOW_LIMIT_GOAWAYS_PER_SECOND; i++) {
        bytes_frame(&t->in, 7, 0, 0, "\0\0\0\0\0\0\0\0", 8);
    }
    expect_flood(t, "more GOAWAYs in a second than BOW_LIMIT_GOAWAYS_PER_SECOND (100)");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_resets_for_wrong_lengths_are_bounded),
        TEST(test_flood_of_answers_to_no_ping_is_bounded),
        TEST(test_goaway_flood_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
