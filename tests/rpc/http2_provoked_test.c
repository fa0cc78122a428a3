/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Floods of what costs a peer nothing to provoke, and is no fault frame by frame. */
#include "tests/rpc/http2_fed_server.h"

#include <bowline/limits.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void expect_flood(struct fed_server *t, const char *why)
{
    assert_int_equal(fed_server_feed(t), -EPROTO);
    assert_string_equal(t->pair.server.session->failure.bytes, why);
    assert_int_equal(t->pair.server.session->failure_code, BOW_RESOURCE_EXHAUSTED);
    assert_true(fed_server_says(t, "GOAWAY 0 "));
    assert_true(fed_server_says(t, " 11 "));
    assert_true(fed_server_says(t, why));
}

/* Those that nghttp2 does by itself count as well: here for DATA beyond what the header announced.
 */
static void test_resets_for_wrong_lengths_are_bounded(void **state)
{
    struct fed_server *t = *state;

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
    struct fed_server *t = *state;

    bytes_preface(&t->in);
    for (uint32_t i = 0; i <= BOW_LIMIT_PINGS_PER_SECOND; i++) {
        bytes_frame(&t->in, 6, 1, 0, "12345678", 8);
    }
    expect_flood(t, "more PINGs in a second than BOW_LIMIT_PINGS_PER_SECOND (100)");
}

static void test_goaway_flood_is_bounded(void **state)
{
    struct fed_server *t = *state;

    bytes_preface(&t->in);
    for (uint32_t i = 0; i <= BOW_LIMIT_GOAWAYS_PER_SECOND; i++) {
        bytes_frame(&t->in, 7, 0, 0, "\0\0\0\0\0\0\0\0", 8);
    }
    expect_flood(t, "more GOAWAYs in a second than BOW_LIMIT_GOAWAYS_PER_SECOND (100)");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fed_server_setup, fed_server_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_resets_for_wrong_lengths_are_bounded),
        TEST(test_flood_of_answers_to_no_ping_is_bounded),
        TEST(test_goaway_flood_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
