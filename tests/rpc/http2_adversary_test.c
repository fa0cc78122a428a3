/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Streams whose peer cuts, joins and repeats frames in ways that nobody would by himself. */
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
#define FIELDS(...) ((const char *[]){__VA_ARGS__, NULL})
#define OK_HEADERS FIELDS(":status: 200", "content-type: application/grpc")

struct fixture {
    struct test_alloc alloc;
    struct bow_context *context;
    struct pair pair;
    struct bytes in;
    struct bytes out;
    char text[TEXT_BYTES];
};

static void begin_pair(struct fixture *t)
{
    assert_int_equal(pair_begin(&t->pair, t->context), 0);
    t->in.len = 0;
}

static int set_up(void **state)
{
    struct fixture *t = calloc(1, sizeof(*t));

    test_alloc_init(&t->alloc);
    t->context = test_context_new(&t->alloc);
    begin_pair(t);
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

static int feed(struct fixture *t, struct side *side)
{
    int rc = side_feed(side, t->in.data, t->in.len, SIZE_MAX);

    t->in.len = 0;
    return rc;
}

static const char *says(struct fixture *t, struct side *side)
{
    t->out.len = side_drain(side, t->out.data, sizeof(t->out.data));
    bytes_print(&t->out, t->text, TEXT_BYTES);
    return t->text;
}

static void discard(struct fixture *t, struct side *side)
{
    while (side_drain(side, t->out.data, sizeof(t->out.data)) > 0) {
    }
}

/* A client with one call that has begun, against a server made by hand. */
static void begin_client(struct fixture *t)
{
    struct bow__session *client = t->pair.client.session;
    struct bow__request_head head = {.path = {(const uint8_t *)"/a.B/C", 6},
                                     .time_left_ns = BOW_NEVER};
    uint64_t key = 0;

    assert_int_equal(client->ops->open(client, &head, &t->pair.client, &key), 0);
    assert_int_equal(client->ops->begin(client, key), 0);
    t->pair.client.n_open++;
    bytes_frame(&t->in, 4, 0, 0, NULL, 0);
    assert_int_equal(feed(t, &t->pair.client), 0);
    side_expect(&t->pair.client, "ready\n");
    discard(t, &t->pair.client);
}

/* Three messages, of three bytes, none, and one. */
static const char three[] = "\0\0\0\0\3abc\0\0\0\0\0\0\0\0\0\1z";
#define N_THREE (sizeof(three) - 1)

static void test_messages_cut_anywhere_over_frames_are_whole(void **state)
{
    struct fixture *t = *state;

    for (size_t i = 0; i <= N_THREE; i++) {
        for (size_t j = i; j <= N_THREE; j++) {
            uint32_t id = (uint32_t)(2 * (i * 20 + j) + 1);
            char expected[256];
            if (i == 0 && j == 0) {
                bytes_preface(&t->in);
            }
            bytes_request(&t->in, 4, id, NULL);
            bytes_frame(&t->in, 0, 0, id, three, i);
            bytes_frame(&t->in, 0, 0, id, three + i, j - i);
            bytes_frame(&t->in, 0, 1, id, three + j, N_THREE - j);
            assert_int_equal(feed(t, &t->pair.server), 0);
            int n = snprintf(expected, sizeof(expected),
                             "open %u /a.B/C\nmessage %u 3 abc\nmessage %u 0\nmessage %u 1 z%s\n",
                             id, id, id, id, j < N_THREE ? " end" : "");
            if (j == N_THREE) {
                snprintf(expected + n, sizeof(expected) - (size_t)n, "half_close %u\n", id);
            }
            side_expect(&t->pair.server, expected);
            struct bow_status ok = BOW_STATUS_OK_INIT;
            struct bow__session *server = t->pair.server.session;
            assert_int_equal(server->ops->finish(server, id, &ok), 0);
            discard(t, &t->pair.server);
        }
    }
}

static void test_answer_cut_anywhere_over_frames_is_whole(void **state)
{
    struct fixture *t = *state;

    for (size_t i = 0; i <= N_THREE; i++) {
        pair_end(&t->pair);
        begin_pair(t);
        begin_client(t);
        bytes_headers(&t->in, 4, 1, OK_HEADERS);
        bytes_frame(&t->in, 0, 0, 1, three, i);
        bytes_frame(&t->in, 0, 0, 1, three + i, N_THREE - i);
        bytes_headers(&t->in, 4 | 1, 1, FIELDS("grpc-status: 0"));
        assert_int_equal(feed(t, &t->pair.client), 0);
        side_expect(&t->pair.client, "message 1 3 abc\nmessage 1 0\nmessage 1 1 z\nstatus 1 OK\n");
    }
}

static void test_data_after_the_end_breaks_no_neighbour(void **state)
{
    struct fixture *t = *state;
    struct bow_status ok = BOW_STATUS_OK_INIT;
    struct bow__session *server = t->pair.server.session;

    bytes_preface(&t->in);
    bytes_request(&t->in, 4, 1, NULL);
    bytes_request(&t->in, 4, 3, NULL);
    bytes_frame(&t->in, 0, 1, 1, "\0\0\0\0\1a", 6);
    bytes_frame(&t->in, 0, 0, 1, "\0\0\0\0\1b", 6);
    int rc = feed(t, &t->pair.server);
    /* RFC 9113 leaves it open whether that ends the stream or the connection. */
    if (rc < 0) {
        side_fail(&t->pair.server, &(struct bow_status){.code = BOW_UNAVAILABLE, .message = ""});
        assert_int_equal(t->pair.server.n_ended, 2);
        return;
    }
    assert_true(side_has(&t->pair.server, "message 1 1 a end\nreset 1 "));
    assert_false(side_has(&t->pair.server, "message 1 1 b"));
    assert_int_equal(server->ops->finish(server, 3, &ok), 0);
}

static void test_second_request_header_without_an_end_is_refused(void **state)
{
    struct fixture *t = *state;

    bytes_preface(&t->in);
    bytes_request(&t->in, 4, 1, NULL);
    bytes_request(&t->in, 4, 1, NULL);
    bytes_frame(&t->in, 0, 0, 1, "\0\0\0\0\1a", 6);
    assert_int_equal(feed(t, &t->pair.server), 0);
    assert_non_null(strstr(says(t, &t->pair.server), "RST_STREAM 1 1\n"));
    assert_true(side_has(&t->pair.server, "open 1 /a.B/C\nreset 1 INTERNAL invalid HTTP/2 frame"));
    assert_false(side_has(&t->pair.server, "message"));
}

static void test_trailers_of_a_client_end_its_side(void **state)
{
    struct fixture *t = *state;
    struct bow_status ok = BOW_STATUS_OK_INIT;
    struct bow__session *server = t->pair.server.session;

    bytes_preface(&t->in);
    bytes_request(&t->in, 4, 1, NULL);
    bytes_frame(&t->in, 0, 0, 1, "\0\0\0\0\1a", 6);
    bytes_headers(&t->in, 4 | 1, 1, FIELDS("late: metadata", "grpc-timeout: 1n"));
    assert_int_equal(feed(t, &t->pair.server), 0);
    side_expect(&t->pair.server, "open 1 /a.B/C\nmessage 1 1 a\nhalf_close 1\n");
    assert_int_equal(server->ops->finish(server, 1, &ok), 0);
}

static void test_second_response_header_without_an_end_is_an_error(void **state)
{
    struct fixture *t = *state;

    begin_client(t);
    bytes_headers(&t->in, 4, 1, OK_HEADERS);
    bytes_frame(&t->in, 0, 0, 1, "\0\0\0\0\1a", 6);
    bytes_headers(&t->in, 4, 1, OK_HEADERS);
    assert_int_equal(feed(t, &t->pair.client), 0);
    assert_true(side_has(&t->pair.client, "message 1 1 a\nstatus 1 INTERNAL invalid HTTP/2 frame"));
    assert_int_equal(t->pair.client.n_ended, 1);
}

static void test_trailers_without_a_status_are_an_error(void **state)
{
    struct fixture *t = *state;

    begin_client(t);
    bytes_headers(&t->in, 4, 1, OK_HEADERS);
    bytes_frame(&t->in, 0, 0, 1, "\0\0\0\0\1a", 6);
    bytes_headers(&t->in, 4 | 1, 1, FIELDS("other: thing"));
    assert_int_equal(feed(t, &t->pair.client), 0);
    side_expect(&t->pair.client, "message 1 1 a\nstatus 1 UNKNOWN the answer has no grpc-status\n");
}

static void test_answer_that_ends_inside_a_message_is_an_error(void **state)
{
    struct fixture *t = *state;

    begin_client(t);
    bytes_headers(&t->in, 4, 1, OK_HEADERS);
    bytes_frame(&t->in, 0, 0, 1, "\0\0\0\0\3ab", 7);
    bytes_headers(&t->in, 4 | 1, 1, FIELDS("grpc-status: 0"));
    assert_int_equal(feed(t, &t->pair.client), 0);
    side_expect(&t->pair.client, "status 1 INTERNAL the answer ended inside a message\n");
}

static void test_data_before_the_response_header_is_an_error(void **state)
{
    struct fixture *t = *state;

    begin_client(t);
    bytes_frame(&t->in, 0, 0, 1, "\0\0\0\0\1a", 6);
    (void)feed(t, &t->pair.client);
    pair_run(&t->pair, SIZE_MAX);
    assert_false(side_has(&t->pair.client, "message"));
    assert_int_equal(t->pair.client.n_ended, 1);
}

/* Interim answers bring nothing that belongs to the call. */
static void test_interim_answers_are_skipped(void **state)
{
    struct fixture *t = *state;

    begin_client(t);
    bytes_headers(&t->in, 4, 1, FIELDS(":status: 103", "link: x"));
    bytes_headers(&t->in, 4, 1,
                  FIELDS(":status: 200", "content-type: application/grpc", "first: 1"));
    bytes_headers(&t->in, 4 | 1, 1, FIELDS("grpc-status: 0", "last: 2"));
    assert_int_equal(feed(t, &t->pair.client), 0);
    side_expect(&t->pair.client, "headers 1 first=1\nstatus 1 OK last=2\n");
}

/* A header block of which not all came before the connection was lost. */
static void test_half_a_header_leaves_nothing(void **state)
{
    struct fixture *t = *state;

    bytes_preface(&t->in);
    bytes_request(&t->in, 0, 1, FIELDS("kept: value", "k-bin: QUJD"));
    assert_int_equal(feed(t, &t->pair.server), 0);
    side_expect(&t->pair.server, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_messages_cut_anywhere_over_frames_are_whole),
        TEST(test_answer_cut_anywhere_over_frames_is_whole),
        TEST(test_data_after_the_end_breaks_no_neighbour),
        TEST(test_second_request_header_without_an_end_is_refused),
        TEST(test_trailers_of_a_client_end_its_side),
        TEST(test_second_response_header_without_an_end_is_an_error),
        TEST(test_trailers_without_a_status_are_an_error),
        TEST(test_answer_that_ends_inside_a_message_is_an_error),
        TEST(test_data_before_the_response_header_is_an_error),
        TEST(test_interim_answers_are_skipped),
        TEST(test_half_a_header_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
