/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Servers and clients on each kind of loop that they may be given, and the end: each part on its
 * own loop's thread, in whatever order they are let go of. What ends last takes all threads along.
 */

#include "bound.h"

#include <bowline/metrics_text.h>
#include <bowline/stream.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Threads that the library has started, and those whose end somebody has waited for. */
static atomic_int n_started;
static atomic_int n_joined;

static int start_thread(void *user, const struct bow_thread_options *options,
                        void (*run)(void *argument), void *argument, struct bow_thread **ret_thread)
{
    int rc = bow_system_default()->thread_start(user, options, run, argument, ret_thread);

    atomic_fetch_add(&n_started, rc == 0);
    return rc;
}

static void join_thread(void *user, struct bow_thread *thread)
{
    bow_system_default()->thread_join(user, thread);
    atomic_fetch_add(&n_joined, 1);
}

static int setup(void **state)
{
    int rc = calls_setup_bare(state);
    struct calls *t = *state;

    t->system.thread_start = start_thread;
    t->system.thread_join = join_thread;
    atomic_store(&n_started, 0);
    atomic_store(&n_joined, 0);
    return rc;
}

/* Servers */

static struct bow_server *start(struct bound *bound, bool per_worker)
{
    struct calls *t = bound->t;
    struct bow_server *server = bound_make_server(bound);

    for (int i = 0; i < 2; i++) {
        calls_name_address(t->address, sizeof(t->address));
        bound_listen(server, t->address, per_worker);
    }
    int rc = calls_open_server(t, server);
    if (rc != 0) {
        fail_msg("binding %d: %d: %s", (int)bound->binding, rc, bow_server_error(server));
    }
    return server;
}

static void serve_once(struct bound *bound, bool per_worker)
{
    struct bow_client_options options;
    struct calls *t = bound->t;

    struct bow_server *server = start(bound, per_worker);
    calls_client_options(t, &options);
    struct bow_client *client = calls_new_client(t, &options);
    bound_expect_say(t, client, bound_driven(bound));
    bow_client_free(client);
    bound_stop_server(bound, server);
    bow_server_free(server);
}

static bool has_to_be_tcp(void)
{
    return calls_has_port();
}

static void test_bindings_f56_each_ends_where_it_belongs(void **state)
{
    struct bound bound = {.t = *state};

    for (int binding = OWN; binding < N_BINDINGS; binding++) {
        for (int per_worker = 0; per_worker <= has_to_be_tcp(); per_worker++) {
            bound_begin(&bound, (enum binding)binding);
            serve_once(&bound, per_worker > 0);
            bound_end(&bound);
        }
    }
}

/* Whichever loop had them. */

#define N_COUNTED 12

struct text {
    size_t len;
    char bytes[64 << 10];
};

struct counted {
    struct bow_method_metrics metrics;
    struct bow_histogram times;
};

static void count_say(const struct bow_method_metrics *metrics, void *user)
{
    struct counted *counted = user;

    if (strcmp(metrics->path, "/calls.Echo/Say") == 0) {
        counted->metrics = *metrics;
        bow_method_metrics_times(metrics, BOW_TIME_CALL, BOW_OK, &counted->times);
    }
}

static int keep_text(const char *text, size_t len, void *user)
{
    struct text *all = user;

    assert_true(len < sizeof(all->bytes) - all->len);
    memcpy(all->bytes + all->len, text, len);
    all->len += len;
    return 0;
}

/* A reply leaves before its time is counted. */
static void expect_counted(struct bound *bound, const struct bow_server *server)
{
    struct counted counted;
    struct bow_loop *driven = bound_driven(bound);

    do {
        if (driven != NULL) {
            assert_int_equal(bow_loop_run_once(driven, BOUND_TURN_NS), 0);
        }
        bow_server_each_method(server, count_say, &counted);
    } while (counted.times.count < N_COUNTED);
    assert_int_equal(counted.times.count, N_COUNTED);
    assert_int_equal(counted.metrics.started, N_COUNTED);
    assert_int_equal(counted.metrics.ended[BOW_OK], N_COUNTED);
    assert_int_equal(counted.metrics.received.count, N_COUNTED);
    assert_int_equal(counted.metrics.in_flight, 0);
}

static void expect_loops(const struct bound *bound, const struct bow_server *server)
{
    static struct text text;
    uint32_t n_expected = bound->binding >= GROUP ? BOUND_N_WORKERS : 1;
    uint32_t n = 0;

    text.len = 0;
    assert_int_equal(bow_server_metrics_text(server, BOW_METRICS_PROMETHEUS, keep_text, &text), 0);
    text.bytes[text.len] = '\0';
    for (const char *at = text.bytes;
         (at = strstr(at, "\nbowline_server_loop_turns_total{")) != NULL; at++) {
        n++;
    }
    assert_int_equal(n, n_expected);
}

static void test_bindings_metrics_add_up_over_their_loops(void **state)
{
    for (int binding = OWN; binding < N_BINDINGS; binding++) {
        for (int per_worker = 0; per_worker <= has_to_be_tcp(); per_worker++) {
            struct bound bound = {.t = *state};
            struct bow_client_options options;
            bound_begin(&bound, (enum binding)binding);
            struct bow_server *server = start(&bound, per_worker > 0);
            for (int i = 0; i < N_COUNTED; i++) { /* each on a connection of its own */
                calls_client_options(bound.t, &options);
                struct bow_client *client = calls_new_client(bound.t, &options);
                bound_expect_say(bound.t, client, bound_driven(&bound));
                bow_client_free(client);
            }
            expect_counted(&bound, server);
            expect_loops(&bound, server);
            bound_stop_server(&bound, server);
            expect_counted(&bound, server); /* also of one that has stopped */
            bow_server_free(server);
            bound_end(&bound);
        }
    }
}

/* As many calls as a client may begin without having heard of max_calls: the others wait. */
static void hold_many(struct bound *bound, bool per_worker)
{
    enum { MAX_CALLS = 3, N_CALLS = 30 };
    struct bow_client_options options;
    struct calls *t = bound->t;
    Calls__Request request = CALLS__REQUEST__INIT;

    bound->max_calls = MAX_CALLS;
    struct bow_server *server = start(bound, per_worker);
    calls_client_options(t, &options);
    struct bow_client *client = calls_new_client(t, &options);
    t->n_done = t->n_failed = 0;
    for (int i = 0; i < N_CALLS; i++) {
        assert_int_equal(calls__echo__hold__start(client, &request, NULL, calls_on_done, t, NULL),
                         0);
    }
    for (int i = 0; i < N_CALLS; i++) {
        bound_wait(bound, &t->n_held, 1);
        pthread_mutex_lock(&t->lock);
        int n_held = t->n_held;
        pthread_mutex_unlock(&t->lock);
        assert_in_range(n_held, 1, MAX_CALLS);
        assert_int_equal(calls_reply(calls_take_held(t), (uint64_t)i), 0);
    }
    bound_wait(bound, &t->n_done, N_CALLS);
    assert_int_equal(t->n_failed, 0);
    bow_client_free(client);
    bound_stop_server(bound, server);
    bow_server_free(server);
}

static void test_bindings_f40_early_calls_wait_for_their_turn_on_each(void **state)
{
    for (int binding = OWN; binding < N_BINDINGS; binding++) {
        for (int per_worker = 0; per_worker <= has_to_be_tcp(); per_worker++) {
            struct bound bound = {.t = *state};
            bound_begin(&bound, (enum binding)binding);
            hold_many(&bound, per_worker > 0);
            bound_end(&bound);
        }
    }
}

/* Freed while it serves, and its loop let go of: what is posted there goes along. */
static void test_bindings_f57_no_thread_is_left_after_the_end(void **state)
{
    enum { ROUNDS = 100 };
    struct bound bound = {.t = *state};
    struct bow_client_options options;

    for (int i = 0; i < ROUNDS * N_BINDINGS; i++) {
        enum binding binding = (enum binding)(i % N_BINDINGS);
        if (binding == OWNER) {
            continue;
        }
        bound_begin(&bound, binding);
        struct bow_server *server = start(&bound, false);
        calls_client_options(bound.t, &options);
        options.loop = NULL;
        struct bow_client *client = calls_new_client(bound.t, &options);
        struct bow_result result = BOW_RESULT_INIT;
        Calls__Request request = CALLS__REQUEST__INIT;
        assert_non_null(calls__echo__say__call(client, &request, NULL, &result));
        bow_result_fini(&result);
        bow_client_free(client);
        bow_server_free(server);
        bound_end(&bound);
        assert_int_equal(atomic_load(&n_joined), atomic_load(&n_started));
    }
}

/* Clients */

struct ending {
    struct calls *t;
    struct bow_client *client;
};

static void free_client(struct bow_result *result, const Calls__Reply *reply, void *user)
{
    struct ending *ending = user;

    bow_client_free(ending->client);
    calls_on_done(result, reply, ending->t);
}

/* In its own callback it goes in a later turn, when its user may have let go of all the rest. */
static void test_bindings_f57_client_freed_in_its_callback_leaves_no_thread(void **state)
{
    enum { ROUNDS = 100 };
    struct calls *t = *state;
    struct bow_server_options server_options;
    struct bow_client_options options;

    calls_server_options(t, &server_options);
    t->server = calls_start_server(t, &server_options);
    int n_others = atomic_load(&n_started);
    for (int i = 0; i < ROUNDS; i++) {
        struct ending ending = {.t = t};
        Calls__Request request = CALLS__REQUEST__INIT;
        calls_client_options(t, &options);
        options.loop = bound_new_loop(t, BOW_LOOP_OWN_THREAD);
        ending.client = calls_new_client(t, &options);
        t->n_done = 0;
        assert_int_equal(
            calls__echo__say__start(ending.client, &request, NULL, free_client, &ending, NULL), 0);
        calls_wait(t, &t->n_done, 1);
        bow_loop_unref(options.loop);
        assert_int_equal(atomic_load(&n_joined), atomic_load(&n_started) - n_others);
    }
}

enum order { CLIENT_FIRST, LOOP_FIRST, SHUT_DOWN_FIRST, DRIVEN_BETWEEN, N_ORDERS };

static void end_in_order(struct bow_client *client, struct bow_loop *loop, enum order order)
{
    switch (order) {
    case LOOP_FIRST:
        bow_loop_unref(loop);
        bow_client_free(client);
        return;
    case SHUT_DOWN_FIRST:
        assert_int_equal(bow_loop_shutdown(loop, 0, 0), 0);
        break;
    case DRIVEN_BETWEEN:
        bow_client_free(client);
        assert_int_equal(bow_loop_run_once(loop, 0), 0);
        bow_loop_unref(loop);
        return;
    default:
        break;
    }
    bow_client_free(client);
    bow_loop_unref(loop);
}

static void test_bindings_f58_client_on_an_owners_loop_ends_in_any_order(void **state)
{
    struct calls *t = *state;
    struct bow_server_options server_options;
    struct bow_client_options options;

    calls_server_options(t, &server_options);
    t->server = calls_start_server(t, &server_options);
    for (int i = 0; i < 2 * N_ORDERS; i++) {
        struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
        struct bow_context *context = t->context;
        struct test_alloc alloc;
        test_alloc_init(&alloc);
        context_options.allocator = &alloc.allocator;
        if (calls_has_port() || calls_is_unix()) {
            assert_int_equal(bow_context_new(&context_options, &context), 0);
        }
        struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
        struct bow_loop *loop = NULL;
        loop_options.thread = BOW_LOOP_OWNER;
        assert_int_equal(bow_loop_new(context, &loop_options, &loop), 0);
        calls_client_options(t, &options);
        options.context = context;
        options.loop = loop;
        struct bow_client *client = calls_new_client(t, &options);
        Calls__Request request = CALLS__REQUEST__INIT;
        if (i >= N_ORDERS) {
            bound_expect_say(t, client, loop);
        } else {
            assert_int_equal(
                calls__echo__say__start(client, &request, NULL, calls_on_done, t, NULL), 0);
        }
        end_in_order(client, loop, (enum order)(i % N_ORDERS));
        bow_result_fini(&t->result);
        if (context != t->context) {
            test_context_end(context, &alloc);
        }
    }
}

static void test_bindings_f58_server_on_an_owners_loop_ends_in_any_order(void **state)
{
    struct bound bound = {.t = *state};
    struct bow_client_options options;
    struct calls *t = *state;

    for (int i = 0; i < 2 * N_ORDERS; i++) {
        bound_begin(&bound, OWNER);
        struct bow_server *server = start(&bound, false);
        calls_client_options(t, &options);
        struct bow_client *client = calls_new_client(t, &options);
        if (i >= N_ORDERS) {
            bound_expect_say(t, client, bound.loop);
        }
        bow_client_free(client);
        switch (i % N_ORDERS) {
        case LOOP_FIRST:
            bow_loop_unref(bound.loop);
            bow_server_free(server);
            break;
        case SHUT_DOWN_FIRST:
            assert_int_equal(bow_loop_shutdown(bound.loop, 0, 0), 0);
            bow_server_free(server);
            bow_loop_unref(bound.loop);
            break;
        case DRIVEN_BETWEEN:
            bow_server_free(server);
            assert_int_equal(bow_loop_run_once(bound.loop, 0), 0);
            bow_loop_unref(bound.loop);
            break;
        default:
            bow_server_free(server);
            bow_loop_unref(bound.loop);
            break;
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, calls_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_bindings_f56_each_ends_where_it_belongs),
        TEST(test_bindings_metrics_add_up_over_their_loops),
        TEST(test_bindings_f40_early_calls_wait_for_their_turn_on_each),
        TEST(test_bindings_f57_no_thread_is_left_after_the_end),
        TEST(test_bindings_f57_client_freed_in_its_callback_leaves_no_thread),
        TEST(test_bindings_f58_client_on_an_owners_loop_ends_in_any_order),
        TEST(test_bindings_f58_server_on_an_owners_loop_ends_in_any_order),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
