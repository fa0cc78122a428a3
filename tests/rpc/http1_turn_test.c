/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Requests of HTTP/1.1 that are cheap to send, one behind the other: a feed takes as many as a turn
 * of the loop has room for, and the next ones the rest, of which nothing is lost.
 */

#include "base/pool.h"
#include "rpc/core/registry.h"
#include "rpc/http1/session.h"
#include "rpc/web/page.h"
#include "rpc/web/web.h"
#include "tests/support/alloc.h"
#include <bowline/server.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N_REQUESTS 1000u
#define N_FIELDS 100u
#define N_CHUNKS 5000u
/* More than a session takes before its host has read some. */
#define UNREAD_BYTES (300u << 10)

struct fixture {
    struct test_alloc alloc;
    struct bow_context *context;
    struct bow__pool pool;
    struct bow__registry registry;
    struct bow__web_page *page;
    struct bow__web web;
    struct bow__session *session;
    bool keeps; /* does not consume messages */
    uint32_t n_opened;
    uint32_t n_messages;
    uint32_t n_half_closed;
    size_t len;
    char bytes[1 << 20];
};

static void *on_open(void *owner, uint64_t key, const struct bow__request_head *head)
{
    struct fixture *fixture = owner;

    (void)key;
    (void)head;
    fixture->n_opened++;
    return fixture;
}

static void on_message(void *owner, uint64_t key, void *stream, struct bow__message *message,
                       bool end)
{
    struct fixture *fixture = owner;

    (void)stream;
    (void)end;
    fixture->n_messages++;
    if (!fixture->keeps) {
        fixture->session->ops->consumed(fixture->session, key,
                                        bow__consumed_bytes(message->bytes.len));
    }
}

static void on_half_close(void *owner, uint64_t key, void *stream)
{
    struct fixture *fixture = owner;

    (void)key;
    (void)stream;
    fixture->n_half_closed++;
}

static void on_reset(void *owner, uint64_t key, void *stream, const struct bow_status *why)
{
    (void)owner;
    (void)key;
    (void)stream;
    (void)why;
}

static void on_ready(void *owner)
{
    (void)owner;
}

static int set_up(void **state)
{
    static const struct bow__session_events events = {
        .on_open = on_open,
        .on_message = on_message,
        .on_half_close = on_half_close,
        .on_reset = on_reset,
        .on_ready = on_ready,
    };
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    test_alloc_init(&fixture->alloc);
    fixture->context = test_context_new(&fixture->alloc);
    bow__pool_init(&fixture->pool, fixture->context, 16);
    bow__registry_init(&fixture->registry, fixture->context);
    struct bow_slice page = {(const uint8_t *)"<p>", 3};
    assert_int_equal(bow__web_page_new(fixture->context, page, NULL, &fixture->page), 0);
    fixture->web = (struct bow__web){.registry = &fixture->registry, .page = fixture->page};
    struct bow__session_options options = {
        .context = fixture->context,
        .pool = &fixture->pool,
        .events = &events,
        .owner = fixture,
        .server = true,
        .max_message_bytes = BOW_LIMIT_MESSAGE_BYTES,
        .protocols = BOW_PROTOCOL_CONNECT | BOW_PROTOCOL_GRPC_WEB,
        .web = &fixture->web,
        .heartbeat_ns = BOW_NEVER,
        .heartbeat_timeout_ns = BOW_NEVER,
        .now_ns = 1,
    };
    assert_int_equal(bow__http1_session_new(&options, &fixture->session), 0);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    fixture->session->ops->free(fixture->session);
    bow__web_page_free(fixture->page);
    bow__registry_fini(&fixture->registry);
    bow__pool_fini(&fixture->pool);
    test_context_end(fixture->context, &fixture->alloc);
    free(fixture);
    return 0;
}

static void put(struct fixture *fixture, const char *text)
{
    size_t len = strlen(text);

    assert_true(len <= sizeof(fixture->bytes) - fixture->len);
    memcpy(fixture->bytes + fixture->len, text, len);
    fixture->len += len;
}

static void put_many(struct fixture *fixture, unsigned n, const char *text)
{
    for (unsigned i = 0; i < n; i++) {
        put(fixture, text);
    }
}

static void drain(struct fixture *fixture)
{
    const struct bow__session_ops *ops = fixture->session->ops;
    struct iovec piece;

    while (ops->drain(fixture->session, &piece, 1) > 0) {
        ops->sent(fixture->session, piece.iov_len);
    }
}

/* One feed a turn, until all is taken. Returns the most bytes that a turn took. */
static size_t feed_all(struct fixture *fixture)
{
    struct bow__session *session = fixture->session;
    size_t at = 0;
    size_t most = 0;

    while (at < fixture->len) {
        ssize_t used =
            session->ops->feed(session, (const uint8_t *)fixture->bytes + at, fixture->len - at, 1);
        assert_true(used > 0);
        at += (size_t)used;
        assert_true(at == fixture->len || bow__work_is_enough(&session->work));
        (void)bow__work_next_turn(&session->work);
        drain(fixture);
        most = (size_t)used > most ? (size_t)used : most;
    }
    return most;
}

/* Of requests of one kind, each is counted as begun and as refused, and each of its two fields. */
static void expect_turns(struct fixture *fixture, const char *request)
{
    const size_t cost = 2 * BOW__WORK_CALL_BYTES + 2 * BOW__WORK_FIELD_BYTES;
    const size_t n = (BOW__WORK_TURN_BYTES + cost - 1) / cost;

    put_many(fixture, N_REQUESTS, request);
    assert_int_equal(feed_all(fixture), n * strlen(request));
    assert_int_equal(fixture->n_opened, 0);
    assert_true(!fixture->session->ops->is_done(fixture->session));
}

static void test_http1_turn_requests_for_no_call_are_counted(void **state)
{
    expect_turns(*state, "GET /a.B/C HTTP/1.1\r\nHost: h\r\nX: y\r\n\r\n");
}

static void test_http1_turn_requests_of_no_method_of_ours_are_counted(void **state)
{
    expect_turns(*state, "PUT /a.B/C HTTP/1.1\r\nHost: h\r\nX: y\r\n\r\n");
}

static void test_http1_turn_pages_are_counted(void **state)
{
    expect_turns(*state, "GET / HTTP/1.1\r\nHost: h\r\nX: y\r\n\r\n");
}

static void test_http1_turn_preflights_are_counted(void **state)
{
    expect_turns(*state, "OPTIONS /a.B/C HTTP/1.1\r\nHost: h\r\nOrigin: http://a\r\n\r\n");
}

static void test_http1_turn_fields_are_counted(void **state)
{
    struct fixture *fixture = *state;
    const unsigned n_requests = 50;

    for (unsigned i = 0; i < n_requests; i++) {
        put(fixture, "GET /a.B/C HTTP/1.1\r\nHost: h\r\n");
        put_many(fixture, N_FIELDS - 1, "x: y\r\n");
        put(fixture, "\r\n");
    }
    size_t n_head = fixture->len / n_requests;
    assert_in_range(feed_all(fixture), n_head, (BOW_LIMIT_FIELDS_PER_TURN / N_FIELDS) * n_head);
}

#define GRPC_WEB "POST /a.B/C HTTP/1.1\r\nHost: h\r\nContent-Type: application/grpc-web+proto\r\n"

static void test_http1_turn_chunks_are_counted(void **state)
{
    struct fixture *fixture = *state;

    put(fixture, GRPC_WEB "Transfer-Encoding: chunked\r\n\r\n");
    size_t n_head = fixture->len;
    for (unsigned i = 0; i < N_CHUNKS; i++) { /* five are a message without bytes */
        put(fixture, "1\r\n");
        fixture->bytes[fixture->len++] = '\0';
        put(fixture, "\r\n");
    }
    put(fixture, "0\r\n\r\n");
    assert_in_range(feed_all(fixture), 1,
                    n_head + (size_t)BOW_LIMIT_FRAMES_PER_TURN * strlen("1\r\nx\r\n"));
    assert_int_equal(fixture->n_messages, N_CHUNKS / 5);
    assert_int_equal(fixture->n_half_closed, 1);
}

/* It has no bytes of its own: nothing that comes later would bring it. */
static void test_http1_turn_the_end_of_a_request_is_told_while_its_messages_wait(void **state)
{
    struct fixture *fixture = *state;
    char head[256];
    const uint8_t prefix[] = {0, 0, UNREAD_BYTES >> 16, UNREAD_BYTES >> 8 & 0xff,
                              UNREAD_BYTES & 0xff};

    fixture->keeps = true;
    (void)snprintf(head, sizeof(head), GRPC_WEB "Content-Length: %zu\r\n\r\n",
                   sizeof(prefix) + UNREAD_BYTES);
    put(fixture, head);
    memcpy(fixture->bytes + fixture->len, prefix, sizeof(prefix));
    fixture->len += sizeof(prefix) + UNREAD_BYTES;
    (void)feed_all(fixture);
    assert_int_equal(fixture->n_messages, 1);
    assert_int_equal(fixture->n_half_closed, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_http1_turn_requests_for_no_call_are_counted),
        TEST(test_http1_turn_requests_of_no_method_of_ours_are_counted),
        TEST(test_http1_turn_pages_are_counted),
        TEST(test_http1_turn_preflights_are_counted),
        TEST(test_http1_turn_fields_are_counted),
        TEST(test_http1_turn_chunks_are_counted),
        TEST(test_http1_turn_the_end_of_a_request_is_told_while_its_messages_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
