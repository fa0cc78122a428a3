/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Looking names up: several at once, equal ones once, and none that an end waits for. */

#include "base/list.h"
#include "tests/support/forks.h"
#include "tests/support/net.h"
#include "tests/support/sanitized.h"
#include "transport/address/address.h"
#include "transport/address/resolver.h"

#include <arpa/inet.h>
#include <bowline/limits.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct fixture {
    struct net net;
    pthread_mutex_t gate; /* held: a name that begins with "slow" is not found */
    atomic_int n_resolves;
    atomic_int n_returns;
    atomic_int n_threads_left; /* that may start; below 0: any number */
};

struct answer {
    int n_done;
    int n; /* addresses */
    uint16_t port;
};

static struct fixture *fixture_of(void *user)
{
    struct net *net = BOW__CONTAINER(user, struct net, t.fake);
    return BOW__CONTAINER(net, struct fixture, net);
}

static int resolve(void *user, const char *host, uint16_t port, struct bow_sockaddr *addresses,
                   int max, const char **ret_reason)
{
    struct fixture *f = fixture_of(user);
    (void)max;
    (void)ret_reason;

    atomic_fetch_add(&f->n_resolves, 1);
    if (strncmp(host, "slow", 4) == 0) {
        pthread_mutex_lock(&f->gate);
        pthread_mutex_unlock(&f->gate);
    }
    atomic_fetch_add(&f->n_returns, 1); /* it touches the fixture no more */
    assert_int_equal(bow__sockaddr_parse_ip("192.0.2.1", &addresses[0]), 0);
    assert_int_equal(bow__sockaddr_parse_ip("2001:db8::1", &addresses[1]), 0);
    bow__sockaddr_set_port(&addresses[0], port);
    bow__sockaddr_set_port(&addresses[1], port);
    return 2;
}

static int start_some_threads(void *user, const struct bow_thread_options *options,
                              void (*run)(void *argument), void *argument,
                              struct bow_thread **ret_thread)
{
    if (atomic_fetch_sub(&fixture_of(user)->n_threads_left, 1) == 0) {
        atomic_store(&fixture_of(user)->n_threads_left, 0);
        return -EAGAIN;
    }
    return bow_system_default()->thread_start(NULL, options, run, argument, ret_thread);
}

static void begin(struct fixture *f)
{
    memset(f, 0, sizeof(*f));
    pthread_mutex_init(&f->gate, NULL);
    net_begin(&f->net);
    atomic_store(&f->n_threads_left, -1);
    f->net.system.resolve = resolve;
    f->net.system.thread_start = start_some_threads;
    net_turn(&f->net);
}

/* Of threads that the context has not waited for. */
static void await_returns(struct fixture *f)
{
    loops_await_threads(&f->net.t);
    assert_int_equal(atomic_load(&f->n_returns), atomic_load(&f->n_resolves));
    pthread_mutex_destroy(&f->gate);
}

static void end(struct fixture *f)
{
    net_end(&f->net);
    await_returns(f);
}

static void on_done(const struct bow__resolved *resolved, void *user)
{
    struct answer *answer = user;
    const struct sockaddr_in *in =
        (const struct sockaddr_in *)(const void *)&resolved->addresses[0].storage;
    const struct sockaddr_in6 *in6 =
        (const struct sockaddr_in6 *)(const void *)&resolved->addresses[1].storage;

    answer->n_done++;
    answer->n = resolved->n;
    answer->port = ntohs(in->sin_port);
    assert_int_equal(ntohs(in6->sin6_port), answer->port);
}

static struct bow__resolve *ask(struct fixture *f, const char *host, uint16_t port,
                                struct answer *answer)
{
    struct bow__resolve *request = NULL;

    assert_int_equal(bow__resolve_start(f->net.loop, host, port, on_done, answer, &request), 0);
    return request;
}

static void expect_answer(struct fixture *f, const struct answer *answer, uint16_t port)
{
    net_run_until(&f->net, answer->n_done > 0);
    assert_int_equal(answer->n_done, 1);
    assert_int_equal(answer->n, 2);
    assert_int_equal(answer->port, port);
}

static void test_resolver_f50_slow_name_holds_up_no_other(void **state)
{
    struct fixture f;
    struct answer slow = {0};
    struct answer fast = {0};
    (void)state;
    begin(&f);
    pthread_mutex_lock(&f.gate);
    ask(&f, "slow.test", 1, &slow);
    ask(&f, "fast.test", 2, &fast);
    expect_answer(&f, &fast, 2);
    assert_int_equal(slow.n_done, 0);
    pthread_mutex_unlock(&f.gate);
    expect_answer(&f, &slow, 1);
    end(&f);
}

static void test_resolver_f50_equal_names_are_looked_up_once(void **state)
{
    struct fixture f;
    struct answer answers[5] = {{0}};
    (void)state;
    begin(&f);
    pthread_mutex_lock(&f.gate);
    ask(&f, "slow.test", 1, &answers[0]);
    struct bow__resolve *second = ask(&f, "slow.test", 2, &answers[1]);
    ask(&f, "slow.test", 3, &answers[2]);
    bow__resolve_cancel(second);
    ask(&f, "slow.test", 1, &answers[3]);
    pthread_mutex_unlock(&f.gate);
    expect_answer(&f, &answers[0], 1);
    expect_answer(&f, &answers[2], 3); /* its own port */
    expect_answer(&f, &answers[3], 1);
    assert_int_equal(answers[1].n_done, 0);
    assert_int_equal(atomic_load(&f.n_resolves), 1);
    ask(&f, "slow.test", 4, &answers[4]); /* it is not kept */
    expect_answer(&f, &answers[4], 4);
    assert_int_equal(atomic_load(&f.n_resolves), 2);
    end(&f);
}

/* Whoever comes later need not begin anew. */
static void test_resolver_f50_lookup_that_nobody_waits_for_is_joined(void **state)
{
    struct fixture f;
    struct answer first = {0};
    struct answer second = {0};
    (void)state;
    begin(&f);
    pthread_mutex_lock(&f.gate);
    struct bow__resolve *request = ask(&f, "slow.test", 1, &first);
    net_run_until(&f.net, atomic_load(&f.n_resolves) == 1);
    bow__resolve_cancel(request);
    ask(&f, "slow.test", 2, &second);
    pthread_mutex_unlock(&f.gate);
    expect_answer(&f, &second, 2);
    assert_int_equal(first.n_done, 0);
    assert_int_equal(atomic_load(&f.n_resolves), 1);
    end(&f);
}

static void test_resolver_f50_end_waits_for_no_lookup(void **state)
{
    struct fixture f;
    struct answer answers[3] = {{0}};
    struct bow__resolve *requests[3];
    char host[32];
    (void)state;
    begin(&f);
    pthread_mutex_lock(&f.gate);
    for (int i = 0; i < 3; i++) {
        snprintf(host, sizeof(host), "slow%d.test", i);
        requests[i] = ask(&f, host, 1, &answers[i]);
    }
    net_run_until(&f.net, atomic_load(&f.n_resolves) == 3);
    for (int i = 0; i < 3; i++) {
        bow__resolve_cancel(requests[i]);
    }
    net_stop(&f.net);
    test_context_end(f.net.t.context, &f.net.t.alloc); /* would not return */
    pthread_mutex_unlock(&f.gate);
    await_returns(&f);
}

static void test_resolver_f50_lookups_at_once_are_bounded(void **state)
{
    struct fixture f;
    struct answer answers[BOW_LIMIT_LOOKUPS] = {{0}};
    struct answer given_up = {0};
    struct answer waiting = {0};
    char host[32];
    (void)state;
    begin(&f);
    pthread_mutex_lock(&f.gate);
    for (unsigned i = 0; i < BOW_LIMIT_LOOKUPS; i++) {
        snprintf(host, sizeof(host), "slow%u.test", i);
        struct bow__resolve *request = ask(&f, host, (uint16_t)i, &answers[i]);
        assert_false(bow__resolve_is_waiting(request));
    }
    struct bow__resolve *last = ask(&f, "given-up.test", 98, &given_up);
    assert_true(bow__resolve_is_waiting(last));
    assert_true(bow__resolve_is_waiting(ask(&f, "waiting.test", 99, &waiting)));
    bow__resolve_cancel(last);
    net_run_until(&f.net, atomic_load(&f.n_resolves) == (int)BOW_LIMIT_LOOKUPS);
    pthread_mutex_unlock(&f.gate);
    expect_answer(&f, &waiting, 99);
    for (unsigned i = 0; i < BOW_LIMIT_LOOKUPS; i++) {
        expect_answer(&f, &answers[i], (uint16_t)i);
    }
    assert_int_equal(given_up.n_done, 0);
    assert_int_equal(atomic_load(&f.n_resolves), BOW_LIMIT_LOOKUPS + 1);
    end(&f);
}

static void test_resolver_f50_want_of_threads_delays_or_is_told(void **state)
{
    struct fixture f;
    struct answer first = {0};
    struct answer second = {0};
    struct bow__resolve *request = NULL;
    (void)state;
    begin(&f);
    atomic_store(&f.n_threads_left, 0);
    assert_int_equal(bow__resolve_start(f.net.loop, "a.test", 1, on_done, &first, &request),
                     -EAGAIN);
    assert_null(request);
    atomic_store(&f.n_threads_left, 1);
    pthread_mutex_lock(&f.gate);
    ask(&f, "slow.test", 1, &first);
    assert_true(bow__resolve_is_waiting(ask(&f, "b.test", 2, &second)));
    pthread_mutex_unlock(&f.gate);
    expect_answer(&f, &first, 1);
    expect_answer(&f, &second, 2); /* by the thread of the first */
    end(&f);
}

static void ask_in_the_child(struct fixture *f, const char *host, struct answer *answer)
{
    struct bow_loop *loop = loops_new_owner(&f->net.t);
    struct bow__resolve *request = NULL;

    FORKS_EXPECT(bow__resolve_start(loop, host, 1, on_done, answer, &request) == 0);
    for (int i = 0; i < 100 && answer->n_done == 0; i++) {
        FORKS_EXPECT(bow_loop_run_once(loop, UINT64_C(100000000)) >= 0);
    }
}

/* The thread that looks it up is the parent's, and may hold the lock. */
static void test_resolver_f60_name_that_the_parent_asks_for_is_looked_up_in_the_child(void **state)
{
    struct fixture f;
    struct answer parents = {0};
    struct answer childs = {0};
    struct forks forks;
    (void)state;
    if (TEST_IS_SANITIZED_FOR_THREADS) {
        print_message("ThreadSanitizer lets a forked child start no thread\n");
        skip();
    }
    begin(&f);
    pthread_mutex_lock(&f.gate);
    ask(&f, "slow.test", 1, &parents);
    net_run_until(&f.net, atomic_load(&f.n_resolves) == 1);
    forks_begin(&forks, NULL, 0);
    if (forks.pid == 0) {
        pthread_mutex_unlock(&f.gate);
        ask_in_the_child(&f, "slow.test", &childs);
        FORKS_EXPECT(childs.n_done == 1 && parents.n_done == 0);
        _exit(0);
    }
    forks_end(&forks);
    pthread_mutex_unlock(&f.gate);
    expect_answer(&f, &parents, 1);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resolver_f50_slow_name_holds_up_no_other),
        cmocka_unit_test(test_resolver_f50_equal_names_are_looked_up_once),
        cmocka_unit_test(test_resolver_f50_lookup_that_nobody_waits_for_is_joined),
        cmocka_unit_test(test_resolver_f50_end_waits_for_no_lookup),
        cmocka_unit_test(test_resolver_f50_lookups_at_once_are_bounded),
        cmocka_unit_test(test_resolver_f50_want_of_threads_delays_or_is_told),
        cmocka_unit_test(test_resolver_f60_name_that_the_parent_asks_for_is_looked_up_in_the_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
