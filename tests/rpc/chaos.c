/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The parts of a round of chaos; what is done to them is in chaos_test.c.
 */

#include "chaos.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)

static bool is_grpc;
static bool is_unix;

void chaos_choose(bool grpc, bool unix_socket)
{
    is_grpc = grpc;
    is_unix = unix_socket;
}

void chaos_must(const struct chaos *t, bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "chaos, seed %llu: not so: %s\n", (unsigned long long)t->seed, what);
        abort();
    }
}

uint64_t chaos_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));

    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

uint64_t chaos_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void chaos_spin(uint64_t ns)
{
    uint64_t end = chaos_now() + ns;

    while (chaos_now() < end) {
        sched_yield();
    }
}

uint64_t chaos_timeout(uint64_t *random, bool may_be_endless)
{
    static const uint64_t timeouts[] = {
        1, 1000, MS / 10, MS / 2, MS, 2 * MS, 5 * MS, 20 * MS, INT64_MAX, UINT64_MAX - 1, BOW_NEVER,
    };
    size_t n = sizeof(timeouts) / sizeof(timeouts[0]) - (may_be_endless ? 0 : 3);

    return timeouts[chaos_random(random) % n];
}

/* Only ever read. */
uint8_t chaos_payload[CHAOS_MAX_BYTES];

size_t chaos_size(uint64_t random)
{
    static const size_t sizes[] = {0, 0, 0, 100, 1000, 20000, 70000, CHAOS_MAX_BYTES};

    return sizes[random % (sizeof(sizes) / sizeof(sizes[0]))];
}

/* Probes */

struct chaos_probe *chaos_probe_new(struct chaos *t)
{
    unsigned n = atomic_fetch_add(&t->n_probes, 1);

    chaos_must(t, n < CHAOS_MAX_CALLS, "there is a probe left");
    t->probes[n].t = t;
    return &t->probes[n];
}

void chaos_probe_refused(struct chaos_probe *probe)
{
    probe->refused = true;
}

void chaos_on_done(struct bow_result *result, const Calls__Reply *reply, void *user)
{
    struct chaos_probe *probe = user;

    chaos_must(probe->t, atomic_fetch_add(&probe->n_done, 1) == 0, "a call completes once");
    chaos_must(probe->t, (reply != NULL) == (result->status.code == BOW_OK), "a reply means OK");
    chaos_must(probe->t, result->status.message != NULL, "a status has a text");
}

/* The service */

static void answer(struct bow_call *call, uint64_t number)
{
    Calls__Reply reply = CALLS__REPLY__INIT;

    reply.number = number;
    reply.payload.data = chaos_payload;
    reply.payload.len = chaos_size(number >> 16);
    (void)calls__echo__say__reply(call, &reply);
}

static void answer_on_cancel(struct bow_call *call, enum bow_code why, void *user)
{
    (void)why;
    (void)user;
    answer(call, 0);
}

static void note_cancel(struct bow_call *call, enum bow_code why, void *user)
{
    chaos_must(user, why != BOW_OK && bow_call_is_cancelled(call), "cancelled for a reason");
}

static void give_away(struct chaos *t, struct chaos_held *list, uint32_t *n, struct bow_call *call,
                      uint64_t number)
{
    pthread_mutex_lock(&t->lock);
    chaos_must(t, *n < CHAOS_MAX_CALLS, "there is room for a call");
    list[(*n)++] = (struct chaos_held){call, number};
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

struct child {
    struct chaos *t;
    struct bow_call *parent;
    uint64_t number; /* the parent's */
};

static void on_child_done(struct bow_result *result, const Calls__Reply *reply, void *user)
{
    struct child *child = user;
    struct bow_call *parent = child->parent;
    uint64_t number = child->number;

    free(child);
    if (reply == NULL) {
        (void)bow_call_fail(parent, result->status.code, "%s", result->status.message);
        return;
    }
    answer(parent, number);
}

static void call_on(struct chaos *t, struct bow_call *call, uint64_t number)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;
    struct child *child = malloc(sizeof(*child));

    chaos_must(t, child != NULL, "memory for a child");
    *child = (struct child){t, call, number};
    options.parent = call;
    /* What the child asks for is answered now, by a helper, or at the end. */
    request.number = number / 8 * 8 + number / 64 % 7;
    int rc = calls__echo__say__start(t->children, &request, &options, on_child_done, child, NULL);
    if (rc < 0) {
        free(child);
        (void)bow_call_fail(call, BOW_UNAVAILABLE, "no child: %d", rc);
    }
}

static void say(struct bow_call *call, const Calls__Request *request, void *user)
{
    struct chaos *t = user;

    switch (request->number % 8) {
    case 0:
    case 1:
        answer(call, request->number);
        break;
    case 2:
        (void)bow_call_fail(call, BOW_ABORTED, "as asked");
        break;
    case 3:
        bow_call_on_cancel(call, note_cancel, t);
        give_away(t, t->waiting, &t->n_waiting, call, request->number);
        break;
    case 4:
        give_away(t, t->waiting, &t->n_waiting, call, request->number);
        break;
    case 5:
        bow_call_on_cancel(call, answer_on_cancel, t);
        break;
    case 6:
        give_away(t, t->late, &t->n_late, call, request->number);
        break;
    default:
        call_on(t, call, request->number);
        break;
    }
}

static void *help(void *user)
{
    struct chaos *t = user;

    pthread_mutex_lock(&t->lock);
    while (!t->over || t->n_waiting > 0) {
        if (t->n_waiting == 0) {
            pthread_cond_wait(&t->changed, &t->lock);
            continue;
        }
        struct chaos_held held = t->waiting[--t->n_waiting];
        pthread_mutex_unlock(&t->lock);
        answer(held.call, held.number);
        pthread_mutex_lock(&t->lock);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

/* Setting up */

static void start_server(struct chaos *t)
{
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct calls__echo__handlers handlers = {.say = say};
    char address[96];

    snprintf(address, sizeof(address), "127.0.0.1:0");
    if (is_unix) {
        snprintf(address, sizeof(address), "unix-abstract:bowline-chaos-%d-%llu", (int)getpid(),
                 (unsigned long long)t->seed);
    }
    options.context = t->context;
    options.listen = address;
    options.workers = (uint32_t)(chaos_random(&t->random) % 3);
    options.grace_ns = chaos_random(&t->random) % 2 == 0 ? 1 : 3 * MS;
    options.max_calls = chaos_random(&t->random) % 4 == 0 ? 2 : 0;
    assert_int_equal(bow_server_new(&options, &t->server), 0);
    assert_int_equal(calls__echo__serve(t->server, &handlers, t), 0);
    assert_int_equal(bow_server_start(t->server), 0);
    if (!is_unix) {
        snprintf(address, sizeof(address), "127.0.0.1:%u", bow_server_port(t->server));
    }
    snprintf(t->target, sizeof(t->target), "%s%s", is_grpc ? "grpc:" : "", address);
}

static struct bow_client *new_client(struct chaos *t, struct bow_loop *loop,
                                     struct bow_group *group)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_client *client = NULL;

    options.context = t->context;
    options.target = t->target;
    options.loop = loop;
    options.group = group;
    options.backoff_min_ns = MS;
    options.backoff_max_ns = 5 * MS;
    int rc = bow_client_new(&options, &client);
    chaos_must(t, rc == 0 || (t->is_short && rc == -ENOMEM), "a client can be made");
    return client;
}

struct bow_client *chaos_new_confined(struct chaos *t)
{
    return new_client(t, NULL, NULL);
}

static void start_clients(struct chaos *t)
{
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
    struct bow_group_options group_options = BOW_GROUP_OPTIONS_INIT;

    if (chaos_random(&t->random) % 2 == 0) {
        group_options.n_loops = 2;
        assert_int_equal(bow_group_new(t->context, &group_options, &t->group), 0);
    } else {
        assert_int_equal(bow_loop_new(t->context, &loop_options, &t->loop), 0);
    }
    assert_int_equal(bow_loop_new(t->context, &loop_options, &t->child_loop), 0);
    t->client = new_client(t, t->loop, t->group);
    t->children = new_client(t, t->child_loop, NULL);
}

void chaos_begin(struct chaos *t, uint64_t seed)
{
    memset(t, 0, sizeof(*t));
    t->seed = seed;
    t->random = seed;
    test_alloc_init(&t->alloc);
    t->context = test_context_new(&t->alloc);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    start_server(t);
    start_clients(t);
    for (uint32_t i = 0; i < CHAOS_HELPERS; i++) {
        assert_int_equal(pthread_create(&t->helpers[i], NULL, help, t), 0);
    }
}

void chaos_run_short(struct chaos *t)
{
    t->is_short = true;
    t->alloc.fail_after = chaos_random(&t->random) % 4 == 0;
    t->alloc.fail_at = atomic_load(&t->alloc.n_calls) + 1 + chaos_random(&t->random) % 300;
}

void chaos_shut_loops(struct chaos *t)
{
    uint64_t quiet_ns = chaos_random(&t->random) % 2 * (MS / 2);

    if (t->group != NULL) {
        bow_group_shutdown(t->group, quiet_ns, MS);
    } else {
        bow_loop_shutdown(t->loop, quiet_ns, MS);
    }
}

/* Ending */

static void answer_the_rest(struct chaos *t)
{
    pthread_mutex_lock(&t->lock);
    t->over = true;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    for (uint32_t i = 0; i < CHAOS_HELPERS; i++) {
        pthread_join(t->helpers[i], NULL);
    }
    for (uint32_t i = 0; i < t->n_late; i++) {
        answer(t->late[i].call, t->late[i].number);
    }
}

static void end_loops(struct chaos *t)
{
    bow_loop_unref(t->loop);
    if (t->group != NULL) {
        bow_group_unref(t->group);
    }
    bow_loop_unref(t->child_loop);
}

void chaos_end(struct chaos *t)
{
    t->alloc.fail_at = 0;
    bow_client_free(t->children);
    answer_the_rest(t);
    end_loops(t);
    for (unsigned i = 0; i < atomic_load(&t->n_probes); i++) {
        const struct chaos_probe *probe = &t->probes[i];
        chaos_must(t, atomic_load(&probe->n_done) == (probe->refused ? 0 : 1),
                   "every call completed, a refused one never");
    }
    chaos_must(t, bow_context_bytes(t->context) == 0, "no byte is left");
    test_context_end(t->context, &t->alloc);
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
}
