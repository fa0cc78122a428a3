/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Servers and clients started and stopped while calls of every kind are under way,
 * by seed: whatever meets whatever, each call completes exactly once, nothing hangs,
 * nothing is left. How long it runs is an argument:
 *
 *     chaos_test PROTOCOL SOCKET MILLISECONDS [SEED]
 *
 * A round that fails prints its seed, which alone runs it again.
 */

#include "chaos.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t run_ns;
static uint64_t only_seed;

/* A caller thread: calls in both forms, and cancellations of its own. */

struct caller {
    struct chaos *t;
    pthread_t thread;
    uint64_t random;
    uint64_t ids[CHAOS_OPS];
    uint32_t n_ids;
    bool confined;
};

static void start_one(struct caller *caller, struct bow_client *client)
{
    struct chaos *t = caller->t;
    uint64_t id = 0;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    struct chaos_probe *probe = chaos_probe_new(t);
    Calls__Request request = CALLS__REQUEST__INIT;

    request.number = chaos_random(&caller->random);
    request.payload.data = chaos_payload;
    request.payload.len = chaos_size(request.number >> 8);
    options.timeout_ns = chaos_timeout(&caller->random, true);
    bool named = chaos_random(&caller->random) % 2 == 0;
    int rc = calls__echo__say__start(client, &request, &options, chaos_on_done, probe,
                                     named ? &id : NULL);
    if (rc < 0) {
        chaos_must(t, rc == -ESHUTDOWN || rc == -EAGAIN || (t->is_short && rc == -ENOMEM),
                   "start refuses for a known reason");
        chaos_probe_refused(probe);
        return;
    }
    if (named) {
        caller->ids[caller->n_ids++] = id;
    }
}

static void call_one(struct caller *caller, struct bow_client *client)
{
    struct chaos *t = caller->t;
    struct bow_result result = BOW_RESULT_INIT;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    request.number = chaos_random(&caller->random);
    request.payload.data = chaos_payload;
    request.payload.len = chaos_size(request.number >> 8);
    options.timeout_ns = chaos_timeout(&caller->random, false);
    const Calls__Reply *reply = calls__echo__say__call(client, &request, &options, &result);
    chaos_must(t, (reply != NULL) == (result.status.code == BOW_OK), "a reply means OK");
    chaos_must(t, reply == NULL || reply->number == request.number, "the reply is the request's");
    chaos_must(t, reply == NULL || reply->payload.len == chaos_size(request.number >> 16),
               "the reply is whole");
    bow_result_fini(&result);
}

static void *run_caller(void *user)
{
    struct caller *caller = user;
    struct chaos *t = caller->t;
    struct bow_client *client = caller->confined ? chaos_new_confined(t) : t->client;
    if (client == NULL) {
        return NULL;
    }
    uint32_t n = (uint32_t)(chaos_random(&caller->random) % CHAOS_OPS);

    for (uint32_t i = 0; i < n; i++) {
        uint64_t what = chaos_random(&caller->random) % 8;
        if (what < 4) {
            start_one(caller, client);
        } else if (what < 6) {
            call_one(caller, client);
        } else if (what == 6 && caller->n_ids > 0) {
            uint64_t which = chaos_random(&caller->random) % caller->n_ids;
            bow_client_cancel(client, caller->ids[which]);
        } else if (caller->confined) {
            chaos_must(t, bow_client_poll(client, 0) == 0, "polling a confined client");
        }
    }
    if (caller->confined) {
        bow_client_free(client);
    }
    return NULL;
}

/* What happens to the server and the client's loops meanwhile. */

static void strike(struct chaos *t)
{
    chaos_spin(chaos_random(&t->random) % 2000000);
    switch (chaos_random(&t->random) % 6) {
    case 0:
        bow_server_stop(t->server);
        break;
    case 1:
        bow_server_free(t->server);
        t->server = NULL;
        break;
    case 2:
        chaos_shut_loops(t);
        break;
    case 3:
        chaos_shut_loops(t);
        bow_server_stop(t->server);
        break;
    default:
        break;
    }
}

/* The client and the server go in either order; children's client last, for handlers use it. */
static void end_in_some_order(struct chaos *t)
{
    if (chaos_random(&t->random) % 4 == 0) {
        chaos_shut_loops(t);
    }
    if (chaos_random(&t->random) % 2 == 0) {
        bow_client_free(t->client);
        bow_server_free(t->server);
    } else {
        bow_server_free(t->server);
        bow_client_free(t->client);
    }
    t->client = NULL;
    t->server = NULL;
}

static void round_of(uint64_t seed)
{
    static struct chaos t;
    struct caller callers[3];
    uint32_t n_callers = 0;

    chaos_begin(&t, seed);
    if (chaos_random(&t.random) % 4 == 0) {
        chaos_run_short(&t);
    }
    n_callers = 1 + (uint32_t)(chaos_random(&t.random) % 3);
    for (uint32_t i = 0; i < n_callers; i++) {
        callers[i] = (struct caller){.t = &t, .random = seed * 31 + i + 1};
        callers[i].confined = chaos_random(&t.random) % 4 == 0;
        assert_int_equal(pthread_create(&callers[i].thread, NULL, run_caller, &callers[i]), 0);
    }
    strike(&t);
    for (uint32_t i = 0; i < n_callers; i++) {
        pthread_join(callers[i].thread, NULL);
    }
    end_in_some_order(&t);
    chaos_end(&t);
}

static void test_chaos_f19_f24_every_call_ends_once_and_nothing_is_left(void **state)
{
    uint64_t end = chaos_now() + run_ns;
    uint64_t n_rounds = 0;

    (void)state;
    if (only_seed != 0) {
        round_of(only_seed);
        return;
    }
    uint64_t seed = 1;
    while (chaos_now() < end && n_rounds < 10000) {
        round_of(seed++);
        n_rounds++;
    }
    print_message("%llu rounds\n", (unsigned long long)n_rounds);
    assert_true(n_rounds > 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chaos_f19_f24_every_call_ends_once_and_nothing_is_left),
    };
    chaos_choose(argc > 1 && strcmp(argv[1], "grpc") == 0,
                 argc > 2 && strcmp(argv[2], "unix") == 0);
    run_ns = UINT64_C(1000000) * (argc > 3 ? strtoull(argv[3], NULL, 10) : 1000);
    only_seed = argc > 4 ? strtoull(argv[4], NULL, 10) : 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
