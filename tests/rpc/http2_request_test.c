/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a request over HTTP/2 says beside path and metadata: who asks, over what, and how often the
 * call was sent before.
 */

#include "http2_pair.h"
#include "protos/echo.bow.h"
#include "tests/support/raw_listen.h"

#include <bowline/client.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define TEXT_BYTES 4096
#define AGENT "grpc-c-bowline/" BOW__VERSION

struct fixture {
    struct test_alloc alloc;
    struct bow_context *context;
    struct bytes out;
    char text[TEXT_BYTES];
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

    test_context_end(t->context, &t->alloc);
    free(t);
    return 0;
}

static void expect_words(struct fixture *t, const char *words, bool has)
{
    bytes_print(&t->out, t->text, TEXT_BYTES);
    if ((strstr(t->text, words) != NULL) != has) {
        fail_msg("\"%s\" %s \"%s\"", t->text, has ? "does not say" : "says", words);
    }
}

/* Frames only: the preface goes. */
static void drop_preface(struct fixture *t)
{
    t->out.len -= sizeof(HTTP2_PREFACE) - 1;
    memmove(t->out.data, t->out.data + sizeof(HTTP2_PREFACE) - 1, t->out.len);
}

/* A session's first request. */
static void request(struct fixture *t, bool secured, const char *user_agent,
                    uint32_t previous_attempts)
{
    struct pair pair;
    uint64_t key;

    pair_init(&pair, t->context);
    struct bow__session_options options = pair_options(&pair, &pair.client, false);
    options.secured = secured;
    options.user_agent = user_agent;
    assert_int_equal(side_begin(&pair.client, &options), 0);
    struct bow__session *session = pair.client.session;
    struct bow__request_head head = {
        .path = {(const uint8_t *)"/a.B/C", 6},
        .time_left_ns = BOW_NEVER,
        .previous_attempts = previous_attempts,
    };
    assert_int_equal(session->ops->open(session, &head, &pair.client, &key), 0);
    assert_int_equal(session->ops->begin(session, key), 0);
    t->out.len = side_drain(&pair.client, t->out.data, sizeof(t->out.data));
    drop_preface(t);
    session->ops->cancel(session, key, BOW_CANCELLED);
    pair_end(&pair);
}

static void test_request_names_its_scheme(void **state)
{
    struct fixture *t = *state;

    request(t, false, NULL, 0);
    expect_words(t, ":scheme=http ", true);
    request(t, true, NULL, 0);
    expect_words(t, ":scheme=https ", true);
}

static void test_request_says_how_often_the_call_was_sent_before(void **state)
{
    struct fixture *t = *state;

    request(t, false, NULL, 0);
    expect_words(t, "grpc-previous-rpc-attempts", false);
    request(t, false, NULL, 2);
    expect_words(t, "grpc-previous-rpc-attempts=2", true);
}

static void test_request_names_its_user_agent(void **state)
{
    struct fixture *t = *state;

    request(t, false, NULL, 0);
    expect_words(t, "user-agent=" AGENT " ", true);
    request(t, false, "shop/1.2 " AGENT, 0);
    expect_words(t, "user-agent=shop/1.2 " AGENT " ", true);
}

/* The option of a client */

/* And names it as a target. */
static int listen_somewhere(char *ret_target, size_t size)
{
    uint16_t port;
    int fd = raw_listen(&port);

    snprintf(ret_target, size, "grpc:127.0.0.1:%u", port);
    return fd;
}

static void on_done(struct bow_result *result, const Calls__Reply *reply, void *user)
{
    (void)result;
    (void)reply;
    (void)user;
}

static void turn(struct bow_client *client)
{
    for (int i = 0; i < 20; i++) { /* connected, and what waited is written */
        assert_int_equal(bow_client_poll(client, i == 0 ? UINT64_C(5000000000) : 1000000), 0);
    }
}

/* Returns the connection. */
static int receive_request(struct fixture *t, struct bow_client *client, int listening)
{
    turn(client);
    int fd = accept(listening, NULL, NULL);
    assert_true(fd >= 0);
    ssize_t n = recv(fd, t->out.data, sizeof(t->out.data), 0);
    assert_true(n > (ssize_t)sizeof(HTTP2_PREFACE));
    t->out.len = (size_t)n;
    drop_preface(t);
    return fd;
}

static void test_client_puts_its_user_agent_in_front(void **state)
{
    struct fixture *t = *state;
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    Calls__Request call = CALLS__REQUEST__INIT;
    struct bow_client *client = NULL;
    char target[64];

    int listening = listen_somewhere(target, sizeof(target));
    options.context = t->context;
    options.target = target;
    options.user_agent = "shop/1.2";
    assert_int_equal(bow_client_new(&options, &client), 0);
    assert_int_equal(calls__echo__say__start(client, &call, NULL, on_done, NULL, NULL), 0);
    int fd = receive_request(t, client, listening);
    expect_words(t, "user-agent=shop/1.2 " AGENT " ", true);
    bow_client_free(client);
    close(fd);
    close(listening);
}

static void test_client_asks_for_its_authority(void **state)
{
    struct fixture *t = *state;
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    Calls__Request call = CALLS__REQUEST__INIT;
    struct bow_client *client = NULL;
    char authority[] = "shop.example:8443";
    char target[64];

    int listening = listen_somewhere(target, sizeof(target));
    options.context = t->context;
    options.target = target;
    options.authority = authority;
    assert_int_equal(bow_client_new(&options, &client), 0);
    memset(authority, 'x', 4); /* it was copied */
    assert_int_equal(calls__echo__say__start(client, &call, NULL, on_done, NULL, NULL), 0);
    int fd = receive_request(t, client, listening);
    expect_words(t, ":authority=shop.example:8443 ", true);
    bow_client_free(client);
    close(fd);
    close(listening);
}

/* The server has settings, and has processed nothing. */
static void turn_away(struct fixture *t, int fd)
{
    static const uint8_t goaway[8] = {0};

    t->out.len = 0;
    bytes_frame(&t->out, 4, 0, 0, NULL, 0);
    bytes_frame(&t->out, 7, 0, 0, goaway, sizeof(goaway));
    assert_int_equal(send(fd, t->out.data, t->out.len, MSG_NOSIGNAL), t->out.len);
}

static void test_client_says_that_it_sends_a_call_again(void **state)
{
    struct fixture *t = *state;
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    Calls__Request call = CALLS__REQUEST__INIT;
    struct bow_client *client = NULL;
    char target[64];

    int listening = listen_somewhere(target, sizeof(target));
    options.context = t->context;
    options.target = target;
    assert_int_equal(bow_client_new(&options, &client), 0);
    assert_int_equal(calls__echo__say__start(client, &call, NULL, on_done, NULL, NULL), 0);
    int first = receive_request(t, client, listening);
    expect_words(t, "grpc-previous-rpc-attempts", false);
    turn_away(t, first);
    int second = receive_request(t, client, listening);
    expect_words(t, "grpc-previous-rpc-attempts=1", true);
    bow_client_free(client);
    close(first);
    close(second);
    close(listening);
}

static void expect_refused(struct fixture *t, const char *user_agent)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_transport_error error = {0};
    struct bow_client *client = NULL;

    options.context = t->context;
    options.target = "grpc:127.0.0.1:1";
    options.user_agent = user_agent;
    options.error = &error;
    assert_int_equal(bow_client_new(&options, &client), -EINVAL);
    assert_non_null(strstr(error.text, "options.user_agent"));
}

static void test_client_takes_no_user_agent_that_no_header_may_have(void **state)
{
    struct fixture *t = *state;
    char text[BOW_USER_AGENT_BYTES + 1] = {0};
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_client *client = NULL;

    expect_refused(t, "");
    expect_refused(t, "shop\r\nx: y");
    expect_refused(t, "caf\xc3\xa9");
    expect_refused(t, " shop");
    memset(text, 'x', BOW_USER_AGENT_BYTES);
    expect_refused(t, text);
    text[BOW_USER_AGENT_BYTES - 1] = '\0';
    options.context = t->context;
    options.target = "grpc:127.0.0.1:1";
    options.user_agent = text;
    assert_int_equal(bow_client_new(&options, &client), 0);
    bow_client_free(client);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_request_names_its_scheme),
        TEST(test_request_says_how_often_the_call_was_sent_before),
        TEST(test_request_names_its_user_agent),
        TEST(test_client_puts_its_user_agent_in_front),
        TEST(test_client_asks_for_its_authority),
        TEST(test_client_says_that_it_sends_a_call_again),
        TEST(test_client_takes_no_user_agent_that_no_header_may_have),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
