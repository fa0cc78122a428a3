/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Calls of Connect and gRPC-Web over HTTP/2 in a session by itself: what they weigh, from when they
 * are timed, and that what is refused is counted. */

#include "tests/rpc/http2_fed_server.h"
#include "tests/web/web_host.h"
#include <bowline/limits.h>
#include <bowline/server.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)

struct fixture {
    struct fed_server *fed;
    struct web_host host; /* for what a session looks up; its own has nothing to do */
    struct bow__session_events events;
    size_t n_beside;
};

static struct fixture *fixture;

static void *note_open(void *owner, uint64_t key, const struct bow__request_head *head)
{
    fixture->n_beside = head->n_beside;
    return side_events.on_open(owner, key, head);
}

static int set_up(void **state)
{
    struct fixture *t = calloc(1, sizeof(*t));

    assert_non_null(t);
    fed_server_setup((void **)&t->fed);
    struct pair *pair = &t->fed->pair;
    web_host_begin(&t->host, t->fed->context);
    t->events = side_events;
    t->events.on_open = note_open;
    pair->server.session->ops->free(pair->server.session);
    struct bow__session_options options = pair_options(pair, &pair->server, true);
    options.events = &t->events;
    options.web = &t->host.web;
    options.protocols = BOW_PROTOCOL_GRPC | BOW_PROTOCOL_CONNECT | BOW_PROTOCOL_GRPC_WEB;
    assert_int_equal(side_begin(&pair->server, &options), 0);
    bytes_preface(&t->fed->in);
    fixture = t;
    *state = t;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *t = *state;

    web_host_end(&t->host);
    fed_server_teardown((void **)&t->fed);
    free(t);
    return 0;
}

static void put_request(struct fixture *t, uint32_t id, const char *method, const char *path,
                        const char *more)
{
    const char *fields[] = {method, ":scheme: http", path, ":authority: t", more, NULL};

    bytes_headers(&t->fed->in, 4, id, fields);
}

#define POST ":method: POST"
#define SAY ":path: /web.Shop/Say"
#define JSON "content-type: application/json"

static void test_web_http2_call_weighs_what_it_takes(void **state)
{
    struct fixture *t = *state;

    put_request(t, 1, POST, SAY, JSON);
    assert_int_equal(fed_server_feed(t->fed), 0);
    assert_true(side_has(&t->fed->pair.server, "open 1 /web.Shop/Say"));
    assert_in_range(t->n_beside, sizeof(struct bow__web_call), 2 * sizeof(struct bow__web_call));
}

static void test_web_http2_call_of_grpc_weighs_nothing_beside(void **state)
{
    struct fixture *t = *state;

    put_request(t, 1, POST, SAY, "content-type: application/grpc");
    assert_int_equal(fed_server_feed(t->fed), 0);
    assert_true(side_has(&t->fed->pair.server, "open 1 /web.Shop/Say"));
    assert_int_equal(t->n_beside, 0);
}

/* More than are let go in a second, each when its deadline has passed since it came: the session
 * had no turn until then. */
static void test_f41_web_http2_calls_are_timed_from_when_they_came(void **state)
{
    struct fixture *t = *state;
    struct side *server = &t->fed->pair.server;
    const char *fields[] = {POST, ":scheme: http",           SAY, ":authority: t",
                            JSON, "connect-timeout-ms: 100", NULL};

    server->is_muted = true;
    assert_int_equal(fed_server_feed(t->fed), 0);
    for (uint32_t i = 0; i < 2 * BOW_LIMIT_CANCELS_PER_SECOND; i++) {
        struct bytes *in = &t->fed->in;
        in->len = 0;
        bytes_headers(in, 4, 2 * i + 1, fields);
        bytes_frame(in, 3, 0, 2 * i + 1, "\0\0\0\x8", 4);
        server->session->work.came_ns = t->fed->pair.now_ns - 200 * MS;
        assert_int_equal(
            server->session->ops->feed(server->session, in->data, in->len, t->fed->pair.now_ns),
            in->len);
        (void)bow__work_next_turn(&server->session->work);
        while (side_drain(server, t->fed->out.data, sizeof(t->fed->out.data)) > 0) {
        }
    }
    t->fed->in.len = 0;
}

static void expect_refused(struct fixture *t, uint32_t n)
{
    assert_int_equal(fed_server_feed(t->fed), 0);
    assert_int_equal(t->fed->pair.server.session->requests_refused, n);
}

static void test_web_http2_refused_requests_are_counted(void **state)
{
    struct fixture *t = *state;

    put_request(t, 1, ":method: PUT", SAY, JSON);
    expect_refused(t, 1);
    put_request(t, 3, POST, SAY, "content-type: text/plain");
    expect_refused(t, 2);
    put_request(t, 5, POST, SAY, JSON);
    expect_refused(t, 2);
    assert_true(fed_server_says(t->fed, "HEADERS 1 end :status=405"));
    assert_true(fed_server_says(t->fed, "HEADERS 3 end :status=415"));
}

static void test_web_http2_pages_are_none_of_them(void **state)
{
    struct fixture *t = *state;

    put_request(t, 1, ":method: GET", ":path: /", "accept: text/html");
    expect_refused(t, 0);
    assert_true(fed_server_says(t->fed, "HEADERS 1 :status=200"));
    /* Of an origin that may not call. */
    put_request(t, 3, ":method: OPTIONS", SAY, "access-control-request-method: POST");
    expect_refused(t, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_web_http2_call_weighs_what_it_takes),
        TEST(test_web_http2_call_of_grpc_weighs_nothing_beside),
        TEST(test_f41_web_http2_calls_are_timed_from_when_they_came),
        TEST(test_web_http2_refused_requests_are_counted),
        TEST(test_web_http2_pages_are_none_of_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
