/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A server and a client against a peer that keeps the protocol but not the rules
 * of unary calls, or that refuses, or whose clock is ahead.
 */

#include "call_fixture.h"
#include "protos/codec3.pb-c.h"
#include "tests/rpc/session_peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define SAY "/calls.Echo/Say"

/* The test is the client */

static void connect_peer(struct calls *t, struct session_peer *peer)
{
    session_peer_begin(peer, t->context, calls_raw_connect(t), false, calls_is_grpc());
    session_peer_wait(peer, &peer->n_readies, 1);
}

static void test_peer_second_request_is_refused_and_not_run(void **state)
{
    struct calls *t = *state;
    struct session_peer peer;

    connect_peer(t, &peer);
    session_peer_open(&peer, SAY, BOW_NEVER);
    session_peer_send(&peer, 0, "", 0);
    session_peer_send(&peer, BOW__SEND_END, "", 0);
    session_peer_wait(&peer, &peer.n_ends, 1);
    assert_int_equal(peer.code, BOW_INTERNAL);
    assert_non_null(strstr(peer.text, "a second one came"));
    assert_int_equal(t->n_said, 0);
    session_peer_end(&peer);
}

static void test_peer_call_without_time_left_is_refused_on_arrival(void **state)
{
    struct calls *t = *state;
    struct session_peer peer;

    connect_peer(t, &peer);
    session_peer_open(&peer, SAY, 0);
    session_peer_send(&peer, BOW__SEND_END, "", 0);
    session_peer_wait(&peer, &peer.n_ends, 1);
    assert_int_equal(peer.code, BOW_DEADLINE_EXCEEDED);
    if (!calls_is_grpc()) { /* whose time-outs begin with a nanosecond */
        assert_non_null(strstr(peer.text, "had passed when"));
    }
    assert_int_equal(t->n_said, 0);
    CALLS_WAIT_METRIC(t, calls_expired_unrun, 1);
    session_peer_end(&peer);
}

/* The test is the server */

struct listening {
    int fd;
    struct session_peer peer;
    uint64_t begin_ns;
};

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void listen_as_server(struct calls *t, struct listening *listening)
{
    struct sockaddr_in in = {.sin_family = AF_INET};
    struct bow_client_options options;
    socklen_t len = sizeof(in);

    listening->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(listening->fd, (struct sockaddr *)&in, sizeof(in)), 0);
    assert_int_equal(listen(listening->fd, 8), 0);
    assert_int_equal(getsockname(listening->fd, (struct sockaddr *)&in, &len), 0);
    snprintf(t->target, sizeof(t->target), "%s127.0.0.1:%u", calls_is_grpc() ? "grpc:" : "",
             ntohs(in.sin_port));
    calls_client_options(t, &options);
    t->client = calls_new_client(t, &options);
}

static void test_peer_f55_client_connects_as_its_options_say(void **state)
{
    struct calls *t = *state;
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_client_options options;
    struct listening listening = {.fd = -1};
    struct sockaddr_in from = {.sin_family = AF_INET};
    socklen_t len = sizeof(from);

    listen_as_server(t, &listening);
    bow_client_free(t->client);
    calls_client_options(t, &options);
    options.source = "127.0.0.77";
    t->client = calls_new_client(t, &options);
    assert_int_equal(calls__echo__say__start(t->client, &request, NULL, calls_on_done, t, NULL), 0);
    int fd = accept(listening.fd, (struct sockaddr *)&from, &len);
    assert_true(fd >= 0);
    assert_int_equal(ntohl(from.sin_addr.s_addr), 0x7F00004D);
    close(fd);
    close(listening.fd);
    calls_wait(t, &t->n_done, 1);
}

/* A client's call has come, with its message. */
static void accept_call(struct calls *t, struct listening *listening)
{
    int fd = accept(listening->fd, NULL, NULL);

    assert_true(fd >= 0);
    session_peer_begin(&listening->peer, t->context, fd, true, calls_is_grpc());
    session_peer_wait(&listening->peer, &listening->peer.n_messages, 1);
}

static void take_call(struct calls *t, struct listening *listening, uint64_t timeout_ns)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    listen_as_server(t, listening);
    options.timeout_ns = timeout_ns;
    listening->begin_ns = now_ns();
    assert_int_equal(calls__echo__say__start(t->client, &request, &options, calls_on_done, t, NULL),
                     0);
    accept_call(t, listening);
}

static void finish(struct session_peer *peer, enum bow_code code, bool not_processed,
                   uint64_t retry_after_ns)
{
    struct bow_status status = {
        .code = code,
        .message = "",
        .not_processed = not_processed,
        .retry_after_ns = retry_after_ns,
    };

    assert_int_equal(peer->session->ops->finish(peer->session, peer->key, &status), 0);
    session_peer_flush(peer);
}

static void expect_end(struct calls *t, struct listening *listening, enum bow_code code)
{
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->n_done, 1);
    if (t->result.status.code != code) {
        fail_msg("%s: %s", bow_code_name(t->result.status.code), t->result.status.message);
    }
    bow_client_free(t->client);
    t->client = NULL;
    session_peer_end(&listening->peer);
    close(listening->fd);
}

static void test_peer_second_reply_is_an_error(void **state)
{
    struct calls *t = *state;
    struct listening listening;

    take_call(t, &listening, 0);
    session_peer_send(&listening.peer, 0, "", 0);
    session_peer_send(&listening.peer, BOW__SEND_END, "", 0);
    expect_end(t, &listening, BOW_INTERNAL);
    assert_non_null(strstr(t->result.status.message, "a second one came"));
}

static void test_peer_ok_without_a_reply_is_an_error(void **state)
{
    struct calls *t = *state;
    struct listening listening;

    take_call(t, &listening, 0);
    finish(&listening.peer, BOW_OK, false, 0);
    expect_end(t, &listening, BOW_INTERNAL);
    assert_non_null(strstr(t->result.status.message, "sent no reply"));
}

static void test_peer_call_that_was_not_processed_is_tried_again(void **state)
{
    struct calls *t = *state;
    struct listening listening;

    take_call(t, &listening, 0);
    finish(&listening.peer, BOW_UNAVAILABLE, true, 0);
    session_peer_wait(&listening.peer, &listening.peer.n_messages, 2);
    assert_int_equal(listening.peer.n_opens, 2);
    session_peer_send(&listening.peer, BOW__SEND_END, "", 0);
    expect_end(t, &listening, BOW_OK);
}

static void test_peer_call_is_tried_again_only_once(void **state)
{
    struct calls *t = *state;
    struct listening listening;

    take_call(t, &listening, 0);
    finish(&listening.peer, BOW_UNAVAILABLE, true, 0);
    session_peer_wait(&listening.peer, &listening.peer.n_messages, 2);
    finish(&listening.peer, BOW_UNAVAILABLE, true, 0);
    expect_end(t, &listening, BOW_UNAVAILABLE);
}

static void test_peer_that_is_overloaded_is_not_asked_again(void **state)
{
    struct calls *t = *state;
    struct listening listening;

    take_call(t, &listening, 0);
    finish(&listening.peer, BOW_RESOURCE_EXHAUSTED, true, 1000 * MS);
    expect_end(t, &listening, BOW_RESOURCE_EXHAUSTED);
    assert_int_equal(listening.peer.n_opens, 1);
}

/* A reply of almost empty sub-messages, which grow a hundredfold. */
static void on_done(struct bow_result *result, bow_any_fn fn, void *user)
{
    (void)fn;
    calls_on_done(result, NULL, user);
}

static void test_peer_reply_may_take_memory_in_proportion(void **state)
{
    enum { LEN = 16 << 10 };
    static const struct bow_method method = {
        .path = SAY,
        .input = &calls__request__descriptor,
        .output = &codec3__everything__descriptor,
    };
    struct calls *t = *state;
    struct listening listening;
    Calls__Request request = CALLS__REQUEST__INIT;
    uint8_t bytes[LEN];

    for (size_t i = 0; i < LEN; i += 4) { /* everything.more with empty lists */
        memcpy(bytes + i, "\x32\x02\x12\x00", 4);
    }
    listen_as_server(t, &listening);
    assert_int_equal(
        bow_client_start(t->client, &method, &request.base, NULL, on_done, NULL, t, NULL), 0);
    accept_call(t, &listening);
    session_peer_send(&listening.peer, BOW__SEND_END, bytes, LEN);
    expect_end(t, &listening, BOW_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(t->result.status.message, "of the at most 1114112 of this call"));
}

/* The server's answer comes so long before its time; if this thread is late, it comes after it. */
static void test_peer_whose_clock_is_ahead_ends_no_call_early(void **state)
{
    const uint64_t deadline_ns = 300 * MS;
    const uint64_t ahead_ns = 15 * MS;
    const struct bow_status late = {.code = BOW_DEADLINE_EXCEEDED, .message = ""};
    struct calls *t = *state;
    struct listening listening;
    int rc;

    take_call(t, &listening, deadline_ns);
    while (now_ns() - listening.begin_ns < deadline_ns - ahead_ns) {
        (void)session_peer_serve(&listening.peer, 1);
    }
    /* Who runs this late finds that the client has ended the call, which is as well. */
    rc = listening.peer.session->ops->finish(listening.peer.session, listening.peer.key, &late);
    assert_true(rc == 0 || rc == -ENOENT);
    session_peer_flush(&listening.peer);
    calls_wait(t, &t->n_done, 1);
    assert_true(now_ns() - listening.begin_ns >= deadline_ns);
    expect_end(t, &listening, BOW_DEADLINE_EXCEEDED);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_peer_second_request_is_refused_and_not_run,
                                        calls_setup, calls_teardown),
        cmocka_unit_test_setup_teardown(test_peer_call_without_time_left_is_refused_on_arrival,
                                        calls_setup, calls_teardown),
        cmocka_unit_test_setup_teardown(test_peer_f55_client_connects_as_its_options_say,
                                        calls_setup_bare, calls_teardown),
        cmocka_unit_test_setup_teardown(test_peer_second_reply_is_an_error, calls_setup_bare,
                                        calls_teardown),
        cmocka_unit_test_setup_teardown(test_peer_ok_without_a_reply_is_an_error, calls_setup_bare,
                                        calls_teardown),
        cmocka_unit_test_setup_teardown(test_peer_call_that_was_not_processed_is_tried_again,
                                        calls_setup_bare, calls_teardown),
        cmocka_unit_test_setup_teardown(test_peer_call_is_tried_again_only_once, calls_setup_bare,
                                        calls_teardown),
        cmocka_unit_test_setup_teardown(test_peer_that_is_overloaded_is_not_asked_again,
                                        calls_setup_bare, calls_teardown),
        cmocka_unit_test_setup_teardown(test_peer_reply_may_take_memory_in_proportion,
                                        calls_setup_bare, calls_teardown),
        cmocka_unit_test_setup_teardown(test_peer_whose_clock_is_ahead_ends_no_call_early,
                                        calls_setup_bare, calls_teardown),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
