/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a client lives through: callbacks that begin calls or free it, its end while a name is
 * looked up or nobody answers, names with many addresses, and times too short.
 */

#include "call_fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define N_CLIENTS 1000
#define N_ADDRESSES 20

/* Names */

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; /* held: resolve() does not return */

/* Twenty addresses, of which the last is where the server is. */
static int resolve_many(void *user, const char *host, uint16_t port, struct bow_sockaddr *addresses,
                        int max, const char **ret_reason)
{
    (void)user;
    (void)host;
    (void)ret_reason;
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < N_ADDRESSES && i < max; i++) {
        uint32_t last = i == N_ADDRESSES - 1 ? 1 : (uint32_t)i + 2;
        struct sockaddr_in in = {.sin_family = AF_INET,
                                 .sin_port = htons(port),
                                 .sin_addr.s_addr = htonl(0x7F000000u + last)};
        memcpy(&addresses[i].storage, &in, sizeof(in));
        addresses[i].len = sizeof(in);
    }
    return N_ADDRESSES < max ? N_ADDRESSES : max;
}

static void name_server(struct calls *t, uint16_t port)
{
    t->system.resolve = resolve_many;
    snprintf(t->target, sizeof(t->target), "%smany.test:%u", calls_is_grpc() ? "grpc:" : "", port);
}

static void start_server(struct calls *t)
{
    struct bow_server_options options;

    calls_server_options(t, &options);
    t->server = calls_start_server(t, &options);
}

static void start_say(struct calls *t, struct bow_client *client, uint64_t timeout_ns)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    options.timeout_ns = timeout_ns;
    assert_int_equal(calls__echo__say__start(client, &request, &options, calls_on_done, t, NULL),
                     0);
}

static void make_client(struct calls *t, void (*change)(struct bow_client_options *options))
{
    struct bow_client_options options;

    calls_client_options(t, &options);
    options.plaintext = true; /* a name may be another host's */
    if (change != NULL) {
        change(&options);
    }
    t->client = calls_new_client(t, &options);
}

static void expect_end(struct calls *t, enum bow_code code, const char *words)
{
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->result.status.code, code);
    if (strstr(t->result.status.message, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", t->result.status.message, words);
    }
}

static void test_life_last_of_twenty_addresses_answers(void **state)
{
    struct calls *t = *state;

    start_server(t);
    name_server(t, bow_server_port(t->server));
    make_client(t, NULL);
    start_say(t, t->client, 0);
    expect_end(t, BOW_OK, "");
    calls_free_client(t);
}

static void test_life_client_is_freed_while_its_name_is_looked_up(void **state)
{
    struct calls *t = *state;

    name_server(t, 1);
    pthread_mutex_lock(&gate);
    make_client(t, NULL);
    start_say(t, t->client, 0);
    calls_free_client(t);
    pthread_mutex_unlock(&gate);
    assert_int_equal(t->n_done, 1);
    expect_end(t, BOW_CANCELLED, "");
}

static void hasty(struct bow_client_options *options)
{
    options->connect_timeout_ns = 30 * MS;
}

static void test_life_attempt_is_shorter_than_the_look_up_of_its_name(void **state)
{
    struct calls *t = *state;

    name_server(t, 1);
    pthread_mutex_lock(&gate);
    make_client(t, hasty);
    start_say(t, t->client, 0);
    expect_end(t, BOW_UNAVAILABLE, "does the name server answer?");
    calls_free_client(t);
    pthread_mutex_unlock(&gate);
}

static void test_life_call_is_shorter_than_the_look_up_of_its_name(void **state)
{
    struct calls *t = *state;

    name_server(t, 1);
    pthread_mutex_lock(&gate);
    make_client(t, NULL);
    start_say(t, t->client, 30 * MS);
    expect_end(t, BOW_DEADLINE_EXCEEDED, "resolving the name of many.test");
    calls_free_client(t);
    pthread_mutex_unlock(&gate);
}

/* Callbacks */

static void call_again(struct bow_client *client, struct bow_loop *loop,
                       enum bow_client_state client_state, void *user)
{
    (void)loop;
    if (client_state == BOW_CLIENT_READY || client_state == BOW_CLIENT_CONNECTING) {
        start_say(user, client, 0);
    }
}

static struct calls *told;

static void call_in_states(struct bow_client_options *options)
{
    options->on_state = call_again;
    options->state_user = told;
}

static void test_life_state_callback_begins_a_call(void **state)
{
    struct calls *t = *state;

    told = t;
    start_server(t);
    make_client(t, call_in_states);
    start_say(t, t->client, 0);
    calls_wait(t, &t->n_done, 2); /* one is of the state READY, at least */
    calls_free_client(t);
}

static void free_in_failure(struct bow_client *client, struct bow_loop *loop,
                            enum bow_client_state client_state, void *user)
{
    struct calls *t = user;

    (void)loop;
    if (client_state == BOW_CLIENT_TRANSIENT_FAILURE) {
        bow_client_free(client);
    }
    if (client_state == BOW_CLIENT_SHUTDOWN) {
        calls_let_go(t);
    }
}

static void end_in_states(struct bow_client_options *options)
{
    options->on_state = free_in_failure;
    options->state_user = told;
}

static void test_life_state_callback_frees_the_client(void **state)
{
    struct calls *t = *state;

    told = t;
    calls_choose_dead_address(t);
    make_client(t, end_in_states);
    start_say(t, t->client, 0);
    calls_wait(t, &t->n_done, 1);
    calls_wait(t, &t->n_let_go, 1);
    t->client = NULL; /* it is gone, or about to be */
    assert_int_equal(t->result.status.code, BOW_UNAVAILABLE);
}

/* Bounds of what waits */

#define QUEUE_BYTES ((size_t)1 << 20)
#define LARGE_BYTES ((size_t)60000)

static void little_room(struct bow_client_options *options)
{
    options->max_queued_bytes = QUEUE_BYTES;
    options->max_queued_calls = N_CLIENTS;
}

static void test_life_calls_that_wait_are_bounded_in_bytes(void **state)
{
    static uint8_t bytes[LARGE_BYTES];
    struct calls *t = *state;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;
    int n_waiting = (int)(QUEUE_BYTES / LARGE_BYTES);

    calls_choose_dead_address(t);
    make_client(t, little_room);
    request.payload.data = bytes;
    request.payload.len = sizeof(bytes);
    options.wait_for_ready = true;
    for (int i = 0; i < 10 * n_waiting; i++) {
        assert_int_equal(
            calls__echo__say__start(t->client, &request, &options, calls_on_done, t, NULL), 0);
    }
    calls_wait(t, &t->n_done, 9 * n_waiting);
    expect_end(t, BOW_RESOURCE_EXHAUSTED, "(max_queued_bytes)");
    assert_int_equal(t->n_done, 9 * n_waiting);
    assert_true(bow_context_bytes(t->context) < 2 * QUEUE_BYTES);
    calls_free_client(t);
    assert_int_equal(t->n_done, 10 * n_waiting);
}

static void room_for_one(struct bow_client_options *options)
{
    options->max_queued_calls = 1;
}

/* On the loop, where calls have memory of a pool: a second call that finds no room, and others. */
static int start_too_many(void *user)
{
    static char value[8001];
    struct calls *t = user;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;
    size_t before = 0;

    memset(value, 'v', sizeof(value) - 1);
    struct bow_metadata_entry entry = {"key", {(const uint8_t *)value, sizeof(value) - 1}};
    struct bow_metadata metadata = {&entry, 1};
    options.metadata = &metadata;
    options.wait_for_ready = true;
    for (int i = 0; i < 100; i++) {
        before = i == 2 ? bow_context_bytes(t->context) : before;
        int rc = calls__echo__say__start(t->client, &request, &options, calls_on_done, t, NULL);
        t->n_failed += rc == -EAGAIN;
    }
    t->say_rc = bow_context_bytes(t->context) == before;
    calls_let_go(t);
    return 0;
}

static void test_life_calls_that_find_no_room_leave_nothing(void **state)
{
    struct calls *t = *state;

    calls_choose_dead_address(t);
    make_client(t, room_for_one);
    assert_int_equal(bow_loop_execute(t->loop, "start", start_too_many, t), 0);
    calls_wait(t, &t->n_let_go, 1);
    assert_int_equal(t->n_failed, 99);
    assert_true(t->say_rc);
    calls_free_client(t);
}

/* Many */

static void test_life_many_clients_of_a_dead_address_are_freed_at_once(void **state)
{
    static struct bow_client *clients[N_CLIENTS];
    struct calls *t = *state;
    struct bow_client_options options;

    calls_choose_dead_address(t);
    calls_client_options(t, &options);
    for (int i = 0; i < N_CLIENTS; i++) {
        clients[i] = calls_new_client(t, &options);
        start_say(t, clients[i], 0);
    }
    for (int i = 0; i < N_CLIENTS; i++) {
        bow_client_free(clients[i]);
    }
    assert_int_equal(t->n_done, N_CLIENTS);
    assert_int_equal(t->n_failed, N_CLIENTS);
}

#define LIFE_TEST(name) cmocka_unit_test_setup_teardown(name, calls_setup_bare, calls_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest all[] = {
        LIFE_TEST(test_life_state_callback_begins_a_call),
        LIFE_TEST(test_life_state_callback_frees_the_client),
        LIFE_TEST(test_life_calls_that_wait_are_bounded_in_bytes),
        LIFE_TEST(test_life_calls_that_find_no_room_leave_nothing),
        LIFE_TEST(test_life_many_clients_of_a_dead_address_are_freed_at_once),
    };
    const struct CMUnitTest named[] = {
        LIFE_TEST(test_life_last_of_twenty_addresses_answers),
        LIFE_TEST(test_life_client_is_freed_while_its_name_is_looked_up),
        LIFE_TEST(test_life_attempt_is_shorter_than_the_look_up_of_its_name),
        LIFE_TEST(test_life_call_is_shorter_than_the_look_up_of_its_name),
    };

    calls_choose(argc, argv);
    int failed = calls_has_port() ? cmocka_run_group_tests(named, NULL, NULL) : 0;
    return failed + cmocka_run_group_tests(all, NULL, NULL);
}
