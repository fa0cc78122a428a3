/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A client that asks its servers whether they serve: who says no takes no calls until it says yes,
 * what runs there is let run, and what is asked disturbs nobody. One server plays a Health of its
 * own, for what a whole one never says.
 */

#include "grpc/health/v1/health.bow.h"
#include "list_fixture.h"
#include "tests/rpc/session_peer.h"

#include <bowline/group.h>
#include <bowline/health.h>
#include <bowline/interceptor.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define ECHO "calls.Echo"
#define N_SAYS 30

static void ask(struct bow_client_options *options)
{
    options->health_service = ECHO;
}

static void set(struct list *list, int i, enum bow_health_state state)
{
    assert_int_equal(bow_health_set(list->servers[i]->server, ECHO, state), 0);
}

static void set_all(struct list *list, enum bow_health_state state)
{
    for (int i = 0; i < LIST_SERVERS; i++) {
        set(list, i, state);
    }
}

static struct bow_metrics client_metrics(struct calls *t)
{
    struct bow_metrics metrics = BOW_METRICS_INIT;

    assert_int_equal(bow_client_metrics(t->client, &metrics), 0);
    return metrics;
}

static void wait_unhealthy(struct list *list, uint64_t n)
{
    while (client_metrics(list->t).servers_unhealthy < n) {
    }
    assert_int_equal(client_metrics(list->t).servers_unhealthy, n);
}

static void reach_all(struct list *list)
{
    for (int i = 0; i < LIST_SERVERS; i++) {
        list_say_until(list, i, list_said(list, i) + 1);
    }
}

static void say_many(struct list *list)
{
    for (int i = 0; i < N_SAYS; i++) {
        if (list_say(list, NULL) != BOW_OK) {
            fail_msg("%s", list->t->result.status.message);
        }
    }
}

/* Several servers */

static void test_health_of_one_that_does_not_serve_keeps_calls_from_it(void **state)
{
    struct list *list = *state;

    set(list, 0, BOW_HEALTH_NOT_SERVING);
    list_new_client(list, ask);
    list_say_until(list, 1, N_SAYS);
    list_say_until(list, 2, N_SAYS);
    assert_int_equal(list_said(list, 0), 0);
    wait_unhealthy(list, 1);
    set(list, 0, BOW_HEALTH_SERVING);
    reach_all(list);
}

static void test_health_that_changes_moves_calls_and_no_connection(void **state)
{
    struct list *list = *state;

    list_new_client(list, ask);
    reach_all(list);
    for (uint64_t round = 1; round <= 3; round++) {
        set(list, 1, BOW_HEALTH_NOT_SERVING);
        wait_unhealthy(list, round);
        int before = list_said(list, 1);
        say_many(list);
        assert_int_equal(list_said(list, 1), before);
        set(list, 1, BOW_HEALTH_SERVING);
        reach_all(list);
    }
    CALLS_WAIT_METRIC(list->servers[1], connections_opened, 1);
    assert_int_equal(client_metrics(list->t).reconnects, 0);
}

static void test_health_calls_of_one_that_stops_serving_go_on(void **state)
{
    struct list *list = *state;

    list_new_client(list, ask);
    reach_all(list);
    for (int i = 0; i < LIST_SERVERS; i++) {
        list_start_hold(list);
    }
    calls_wait(list->servers[2], &list->servers[2]->n_held, 1);
    set(list, 2, BOW_HEALTH_NOT_SERVING);
    wait_unhealthy(list, 1);
    for (int i = 0; i < LIST_SERVERS; i++) {
        assert_int_equal(calls_reply(calls_take_held(list->servers[i]), 1), 0);
    }
    calls_wait(list->t, &list->t->n_done, LIST_SERVERS);
    assert_int_equal(list->t->n_failed, 0);
}

static void test_health_of_none_fails_calls_with_what_the_servers_say(void **state)
{
    struct list *list = *state;

    list_new_client(list, ask);
    reach_all(list);
    set_all(list, BOW_HEALTH_NOT_SERVING);
    wait_unhealthy(list, LIST_SERVERS);
    assert_int_equal(list_say(list, NULL), BOW_UNAVAILABLE);
    list_expect_words(list, list->servers[1]->address);
    list_expect_words(list, "says that service \"" ECHO "\" is NOT_SERVING");
    list_expect_words(list, "waits to be told otherwise");
    assert_true(list->t->result.status.not_processed);
    assert_int_equal(bow_client_get_state(list->t->client), BOW_CLIENT_TRANSIENT_FAILURE);
    set(list, 2, BOW_HEALTH_SERVING);
    while (bow_client_get_state(list->t->client) != BOW_CLIENT_READY) {
    }
    assert_int_equal(list_say(list, NULL), BOW_OK);
}

static void test_health_is_waited_for_by_calls_that_wait_for_ready(void **state)
{
    struct list *list = *state;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    set_all(list, BOW_HEALTH_NOT_SERVING);
    list_new_client(list, ask);
    options.wait_for_ready = true;
    assert_int_equal(
        calls__echo__say__start(list->t->client, &request, &options, calls_on_done, list->t, NULL),
        0);
    wait_unhealthy(list, LIST_SERVERS);
    options.timeout_ns = 20 * MS;
    assert_int_equal(list_say(list, &options), BOW_DEADLINE_EXCEEDED);
    list_expect_words(list, "waiting for the health of");
    list_expect_words(list, "is NOT_SERVING");
    set(list, 1, BOW_HEALTH_SERVING);
    calls_wait(list->t, &list->t->n_done, 1);
    assert_int_equal(list->t->n_failed, 0);
    assert_int_equal(list_said(list, 1), 1);
    for (int i = 0; i < LIST_SERVERS; i++) {
        CALLS_WAIT_METRIC(list->servers[i], connections_opened, 1);
    }
}

static void test_health_of_a_server_that_drains_moves_calls_first(void **state)
{
    struct list *list = *state;
    struct bow_server_options options;

    list_kill_server(list, 0);
    calls_server_options(list->servers[0], &options);
    options.lame_duck_ns = 50 * MS;
    options.grace_ns = 10000 * MS;
    list->servers[0]->server = calls_start_server(list->servers[0], &options);
    list_name_target(list);
    list_new_client(list, ask);
    reach_all(list);
    bow_server_stop(list->servers[0]->server);
    wait_unhealthy(list, 1);
    int before = list_said(list, 0);
    say_many(list);
    assert_int_equal(list_said(list, 0), before);
    list_kill_server(list, 0);
    say_many(list);
}

/* Beside it */

static void ask_for_nobody(struct bow_client_options *options)
{
    options->health_service = "calls.Nobody";
}

static void test_health_of_an_unknown_service_is_none_until_it_is_set(void **state)
{
    struct list *list = *state;

    list_new_client(list, ask_for_nobody);
    assert_int_equal(list_say(list, NULL), BOW_UNAVAILABLE);
    list_expect_words(list, "service \"calls.Nobody\" is SERVICE_UNKNOWN");
    for (int i = 0; i < LIST_SERVERS; i++) {
        assert_int_equal(
            bow_health_set(list->servers[i]->server, "calls.Nobody", BOW_HEALTH_SERVING), 0);
    }
    while (bow_client_get_state(list->t->client) != BOW_CLIENT_READY) {
    }
    reach_all(list);
}

static void ask_for_all(struct bow_client_options *options)
{
    options->health_service = "";
}

static void test_health_of_the_whole_server(void **state)
{
    struct list *list = *state;

    assert_int_equal(bow_health_set(list->servers[0]->server, "", BOW_HEALTH_NOT_SERVING), 0);
    list_new_client(list, ask_for_all);
    list_say_until(list, 1, N_SAYS);
    list_say_until(list, 2, N_SAYS);
    assert_int_equal(list_said(list, 0), 0);
}

static void test_health_service_that_a_server_lacks_counts_as_serving(void **state)
{
    struct list *list = *state;
    struct bow_server_options options;

    list_kill_server(list, 0);
    calls_server_options(list->servers[0], &options);
    options.no_health = true;
    list->servers[0]->server = calls_start_server(list->servers[0], &options);
    list_name_target(list);
    list_new_client(list, ask);
    reach_all(list);
    assert_int_equal(client_metrics(list->t).servers_unhealthy, 0);
}

static void ask_and_be_soon_idle(struct bow_client_options *options)
{
    options->health_service = ECHO;
    options->idle_timeout_ns = 30 * MS;
}

/* On a slow machine one is idle, and made again, before all have been reached. */
static void wait_all_closed(struct calls *t)
{
    struct bow_metrics metrics = BOW_METRICS_INIT;

    do {
        assert_int_equal(bow_server_metrics(t->server, &metrics), 0);
    } while (metrics.connections_opened == 0 ||
             metrics.connections_closed < metrics.connections_opened);
}

static void test_health_watch_keeps_no_connection_from_being_idle(void **state)
{
    struct list *list = *state;

    list_new_client(list, ask_and_be_soon_idle);
    reach_all(list);
    for (int i = 0; i < LIST_SERVERS; i++) {
        wait_all_closed(list->servers[i]);
    }
    assert_int_equal(list_say(list, NULL), BOW_OK);
}

static void count_start(struct bow_interception *at, void *user)
{
    struct calls *t = user;

    (void)at;
    pthread_mutex_lock(&t->lock);
    t->n_let_go++;
    pthread_mutex_unlock(&t->lock);
}

static struct bow_interceptor counting = BOW_INTERCEPTOR_INIT;
static const struct bow_interceptor *const interceptors[] = {&counting};

static void ask_and_intercept(struct bow_client_options *options)
{
    options->health_service = ECHO;
    options->interceptors = interceptors;
    options->n_interceptors = 1;
}

static void test_health_watch_is_no_call_of_the_clients(void **state)
{
    struct list *list = *state;

    counting = (struct bow_interceptor)BOW_INTERCEPTOR_INIT;
    counting.name = "counting";
    counting.on_start = count_start;
    counting.user = list->t;
    list_new_client(list, ask_and_intercept);
    say_many(list);
    assert_int_equal(list->t->n_let_go, N_SAYS);
    list->t->n_let_go = 0;
    while (client_metrics(list->t).calls_ended < N_SAYS) {
    }
    assert_int_equal(client_metrics(list->t).calls_started, N_SAYS);
    assert_int_equal(client_metrics(list->t).calls_ended, N_SAYS);
}

/* A group's loops each ask for themselves. */
static void test_health_is_asked_by_each_loop_of_a_group(void **state)
{
    struct list *list = *state;
    struct bow_group_options group_options = BOW_GROUP_OPTIONS_INIT;
    struct bow_client_options options;
    struct bow_group *group = NULL;

    set(list, 0, BOW_HEALTH_NOT_SERVING);
    group_options.n_loops = 2;
    assert_int_equal(bow_group_new(list->t->context, &group_options, &group), 0);
    calls_client_options(list->t, &options);
    options.target = list->target;
    options.loop = NULL;
    options.group = group;
    options.health_service = ECHO;
    list->t->client = calls_new_client(list->t, &options);
    list_say_until(list, 1, N_SAYS);
    assert_int_equal(list_said(list, 0), 0);
    set(list, 0, BOW_HEALTH_SERVING);
    reach_all(list);
    list_free_client(list);
    bow_group_unref(group);
}

static void test_health_options_that_cannot_be_are_refused(void **state)
{
    struct list *list = *state;
    struct bow_client_options options;
    struct bow_transport_error error = {0};
    struct bow_client *client = NULL;
    char name[BOW_HEALTH_SERVICE_BYTES + 1];

    calls_client_options(list->t, &options);
    options.error = &error;
    options.health_service = name;
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    assert_int_equal(bow_client_new(&options, &client), -EINVAL);
    assert_non_null(strstr(error.text, "BOW_HEALTH_SERVICE_BYTES"));
    options.health_service = "\xff";
    assert_int_equal(bow_client_new(&options, &client), -EINVAL);
    assert_non_null(strstr(error.text, "UTF-8"));
    options.health_service = ECHO;
    options.loop = NULL;
    assert_int_equal(bow_client_new(&options, &client), -EINVAL);
    assert_non_null(strstr(error.text, "options.health_service needs options.loop"));
}

/* A Health of its own */

enum play { REFUSES, ENDS_AT_ONCE, SAYS_AND_ENDS, SAYS_NOTHING, SAYS_TOO_MUCH, SAYS_A_BOMB };

#define TOO_MUCH ((size_t)64 << 10)

struct played {
    enum play play; /* under the lock of `t`, as all here */
    int n_watches;
    struct calls *t;
};

/* An answer with a field that nobody knows, of zeros: a few bytes once it is compressed. */
static void say_too_much(struct grpc__health__v1__health__watch__call call, bool compressed)
{
    Grpc__Health__V1__HealthCheckResponse response = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;
    uint8_t *data = bow_call_alloc(call.call, TOO_MUCH);
    ProtobufCMessageUnknownField field = {.tag = 100,
                                          .wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED,
                                          .len = TOO_MUCH,
                                          .data = data};

    memset(data, 0, TOO_MUCH);
    memcpy(data, "\xfd\xff\x03", 3); /* the length of the rest */
    response.status = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING;
    response.base.n_unknown_fields = 1;
    response.base.unknown_fields = &field;
    assert_int_equal(bow_call_compress(call.call, compressed), 0);
    assert_int_equal(grpc__health__v1__health__watch__send(call, &response), 0);
}

static void play_watch(struct grpc__health__v1__health__watch__call call,
                       const Grpc__Health__V1__HealthCheckRequest *request, void *user)
{
    static const struct grpc__health__v1__health__watch__call_events events = {.on_closed = NULL};
    Grpc__Health__V1__HealthCheckResponse response = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;
    struct played *played = user;

    (void)request;
    pthread_mutex_lock(&played->t->lock);
    enum play play = played->play;
    played->n_watches++;
    pthread_cond_broadcast(&played->t->changed);
    pthread_mutex_unlock(&played->t->lock);
    switch (play) {
    case REFUSES:
        assert_int_equal(bow_call_fail(call.call, BOW_UNAUTHENTICATED, "who are you?"), 0);
        break;
    case ENDS_AT_ONCE:
        assert_int_equal(bow_call_finish(call.call), 0);
        break;
    case SAYS_AND_ENDS:
        response.status = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING;
        assert_int_equal(grpc__health__v1__health__watch__send(call, &response), 0);
        assert_int_equal(bow_call_fail(call.call, BOW_UNAVAILABLE, "a proxy's time is over"), 0);
        break;
    case SAYS_NOTHING:
        assert_int_equal(grpc__health__v1__health__watch__listen(call, &events, NULL), 0);
        break;
    case SAYS_TOO_MUCH:
    case SAYS_A_BOMB:
        assert_int_equal(grpc__health__v1__health__watch__listen(call, &events, NULL), 0);
        say_too_much(call, play == SAYS_A_BOMB);
        break;
    }
}

static int n_watches(struct played *played)
{
    pthread_mutex_lock(&played->t->lock);
    int n = played->n_watches;
    pthread_mutex_unlock(&played->t->lock);
    return n;
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 * MS + (uint64_t)now.tv_nsec;
}

/* Instead of the first server, and alone. */
static void begin_played(struct list *list, struct played *played, enum play play,
                         void (*change)(struct bow_client_options *options))
{
    static const struct grpc__health__v1__health__handlers handlers = {.watch = play_watch};
    struct calls *t = list->t;
    struct bow_server_options options;

    played->play = play;
    played->n_watches = 0;
    played->t = t;
    list_kill_server(list, 0);
    calls_server_options(t, &options);
    t->server = calls_make_server(t, &options);
    assert_int_equal(grpc__health__v1__health__serve(t->server, &handlers, played), 0);
    assert_int_equal(calls_open_server(t, t->server), 0);
    snprintf(list->target, sizeof(list->target), "%s", t->target);
    list_new_client(list, change);
}

static void change_play(struct played *played, enum play play)
{
    pthread_mutex_lock(&played->t->lock);
    played->play = play;
    pthread_mutex_unlock(&played->t->lock);
}

static void test_health_watch_that_is_refused_says_so_and_is_begun_again(void **state)
{
    struct list *list = *state;
    struct played played;

    begin_played(list, &played, REFUSES, ask);
    assert_int_equal(list_say(list, NULL), BOW_UNAVAILABLE);
    list_expect_words(list, "UNAUTHENTICATED: who are you?");
    list_expect_words(list, "leave it open on the server");
    int n_before = n_watches(&played);
    uint64_t began_ns = now_ns();
    calls_wait(list->t, &played.n_watches, n_before + 7);
    assert_true(now_ns() - began_ns > 20 * MS); /* six pauses, from 2 ms up to 10, ± 20 % */
    change_play(&played, SAYS_AND_ENDS);
    while (bow_client_get_state(list->t->client) != BOW_CLIENT_READY) {
    }
    say_many(list);
    assert_int_equal(client_metrics(list->t).servers_unhealthy, 1);
    CALLS_WAIT_METRIC(list->t, connections_opened, 1);
    list_free_client(list);
}

/* As through a proxy that bounds how long a call takes. */
static void test_health_f34_that_is_said_in_too_much_is_refused(void **state)
{
    struct list *list = *state;
    struct played played;

    begin_played(list, &played, SAYS_TOO_MUCH, ask);
    assert_int_equal(list_say(list, NULL), BOW_UNAVAILABLE);
    list_expect_words(list, "at most 4096 are taken");
    list_free_client(list);
}

static void test_health_f34_that_inflates_to_too_much_is_refused(void **state)
{
    struct list *list = *state;
    struct played played;

#if !defined(BOW__HAVE_ZSTD) && !defined(BOW__HAVE_ZLIB)
    skip();
#endif
    begin_played(list, &played, SAYS_A_BOMB, ask);
    assert_int_equal(list_say(list, NULL), BOW_UNAVAILABLE);
    list_expect_words(list, "it inflates to more than");
    list_expect_words(list, "(4096)");
    list_free_client(list);
}

static void test_health_that_was_said_holds_while_it_is_asked_again(void **state)
{
    struct list *list = *state;
    struct played played;

    begin_played(list, &played, SAYS_AND_ENDS, ask);
    for (int n = 2; n <= 10; n++) {
        say_many(list);
        calls_wait(list->t, &played.n_watches, n);
    }
    assert_int_equal(client_metrics(list->t).servers_unhealthy, 0);
    CALLS_WAIT_METRIC(list->t, connections_opened, 1);
    change_play(&played, ENDS_AT_ONCE);
    wait_unhealthy(list, 1);
    assert_int_equal(list_say(list, NULL), BOW_UNAVAILABLE);
    list_expect_words(list, "before it says anything: OK");
    list_free_client(list);
}

static void ask_with_little_patience(struct bow_client_options *options)
{
    options->health_service = ECHO;
    options->connect_timeout_ns = 50 * MS;
}

static void test_health_that_is_never_said_is_a_failed_attempt(void **state)
{
    struct list *list = *state;
    struct played played;

    begin_played(list, &played, SAYS_NOTHING, ask_with_little_patience);
    assert_int_equal(list_say(list, NULL), BOW_UNAVAILABLE);
    list_expect_words(list, "did not say whether it serves (options.health_service)");
    change_play(&played, SAYS_AND_ENDS);
    while (list_say(list, NULL) != BOW_OK) {
        assert_int_equal(list->t->result.status.code, BOW_UNAVAILABLE);
    }
    list_free_client(list);
}

/* A server that leaves before it has said anything, as one that is replaced does */

struct leaver {
    int listening;
    struct session_peer peer;
};

static void begin_leaver(struct list *list, struct leaver *leaver)
{
    list_kill_server(list, 0);
    leaver->listening = calls_raw_listen(list->t);
    snprintf(list->target, sizeof(list->target), "%s", list->t->target);
    list_new_client(list, ask);
    list_start_say(list);
}

/* Its first call is Watch. */
static void accept_watch(struct list *list, struct leaver *leaver)
{
    int fd = accept(leaver->listening, NULL, NULL);

    assert_true(fd >= 0);
    session_peer_begin(&leaver->peer, list->t->context, fd, true, calls_is_grpc());
    leaver->peer.may_be_lost = true;
    session_peer_wait(&leaver->peer, &leaver->peer.n_opens, 1);
}

static void turn_away(struct leaver *leaver)
{
    struct bow__session *session = leaver->peer.session;
    const struct bow_status reason = {.code = BOW_UNAVAILABLE, .message = "it leaves"};

    session->ops->goaway(session, &reason);
    session->ops->leave(session);
    session_peer_flush(&leaver->peer);
    while (!leaver->peer.lost) {
        (void)session_peer_serve(&leaver->peer, 100);
    }
    session_peer_end(&leaver->peer);
}

static void end_leaver(struct list *list, struct leaver *leaver)
{
    list_free_client(list);
    close(leaver->listening);
}

static void test_health_of_a_server_that_leaves_is_asked_of_the_next(void **state)
{
    struct list *list = *state;
    struct leaver leaver;

    begin_leaver(list, &leaver);
    accept_watch(list, &leaver);
    turn_away(&leaver);
    accept_watch(list, &leaver);
    session_peer_send(&leaver.peer, 0, "\x08\x01", 2); /* SERVING */
    session_peer_wait(&leaver.peer, &leaver.peer.n_opens, 2);
    session_peer_send(&leaver.peer, BOW__SEND_END, "", 0);
    session_peer_flush(&leaver.peer);
    calls_wait(list->t, &list->t->n_done, 1);
    assert_int_equal(list->t->n_failed, 0);
    session_peer_end(&leaver.peer);
    end_leaver(list, &leaver);
}

static void test_health_of_servers_that_leave_is_not_asked_for_ever(void **state)
{
    struct list *list = *state;
    struct leaver leaver;

    begin_leaver(list, &leaver);
    for (int i = 0; i < 2; i++) {
        accept_watch(list, &leaver);
        turn_away(&leaver);
    }
    calls_wait(list->t, &list->t->n_done, 1);
    assert_int_equal(list->t->result.status.code, BOW_UNAVAILABLE);
    list_expect_words(list, list->t->address);
    list_expect_words(list, "takes no calls (GOAWAY)");
    end_leaver(list, &leaver);
}

/* A name of two addresses */

static void ask_by_name(struct bow_client_options *options)
{
    options->health_service = ECHO;
    options->plaintext = true;
}

static void say_at(struct list *list, int i)
{
    int before = list_said(list, i);

    say_many(list);
    assert_int_equal(list_said(list, i), before + N_SAYS);
}

static void test_health_of_a_names_first_address_has_calls_go_to_the_next(void **state)
{
    struct list *list = *state;
    struct calls *second = list->servers[1];
    struct bow_server_options options;

    if (!calls_has_port()) {
        return; /* names are of hosts */
    }
    calls_resolve_to(list->t, "127.0.0.2", "127.0.0.1");
    list_kill_server(list, 1);
    calls_server_options(second, &options);
    snprintf(second->address, sizeof(second->address), "127.0.0.2:%u",
             bow_server_port(list->t->server));
    second->server = calls_make_server(second, &options);
    assert_int_equal(bow_server_start(second->server), 0);
    snprintf(list->target, sizeof(list->target), "%sservers.test:%u",
             calls_is_grpc() ? "grpc:" : "", bow_server_port(list->t->server));
    list_new_client(list, ask_by_name);
    say_at(list, 1);
    set(list, 1, BOW_HEALTH_NOT_SERVING);
    wait_unhealthy(list, 1);
    say_at(list, 0);
    set(list, 1, BOW_HEALTH_SERVING);
    set(list, 0, BOW_HEALTH_NOT_SERVING);
    wait_unhealthy(list, 3); /* the second, when the first was turned to, and now the first */
    say_at(list, 1);
    assert_int_equal(client_metrics(list->t).servers_unhealthy, 3);
    set(list, 1, BOW_HEALTH_NOT_SERVING);
    wait_unhealthy(list, 4);
    while (list_say(list, NULL) == BOW_OK) {
    }
    list_expect_words(list, "is NOT_SERVING");
    set(list, 0, BOW_HEALTH_SERVING);
    while (list_say(list, NULL) != BOW_OK) {
    }
    say_at(list, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#define LISTED(test) cmocka_unit_test_setup_teardown(test, list_setup, list_teardown)
        LISTED(test_health_of_one_that_does_not_serve_keeps_calls_from_it),
        LISTED(test_health_that_changes_moves_calls_and_no_connection),
        LISTED(test_health_calls_of_one_that_stops_serving_go_on),
        LISTED(test_health_of_none_fails_calls_with_what_the_servers_say),
        LISTED(test_health_is_waited_for_by_calls_that_wait_for_ready),
        LISTED(test_health_of_a_server_that_drains_moves_calls_first),
        LISTED(test_health_of_an_unknown_service_is_none_until_it_is_set),
        LISTED(test_health_of_the_whole_server),
        LISTED(test_health_service_that_a_server_lacks_counts_as_serving),
        LISTED(test_health_watch_keeps_no_connection_from_being_idle),
        LISTED(test_health_watch_is_no_call_of_the_clients),
        LISTED(test_health_is_asked_by_each_loop_of_a_group),
        LISTED(test_health_options_that_cannot_be_are_refused),
        LISTED(test_health_watch_that_is_refused_says_so_and_is_begun_again),
        LISTED(test_health_f34_that_is_said_in_too_much_is_refused),
        LISTED(test_health_f34_that_inflates_to_too_much_is_refused),
        LISTED(test_health_that_was_said_holds_while_it_is_asked_again),
        LISTED(test_health_that_is_never_said_is_a_failed_attempt),
        LISTED(test_health_of_a_server_that_leaves_is_asked_of_the_next),
        LISTED(test_health_of_servers_that_leave_is_not_asked_for_ever),
        LISTED(test_health_of_a_names_first_address_has_calls_go_to_the_next),
#undef LISTED
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
