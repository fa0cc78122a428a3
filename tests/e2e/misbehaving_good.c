/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Clients that behave: one loop, many clients with a connection each, calls at a fixed pace. */

#include "lab.h"
#include "misbehaving_child.h"

#include <bowline/timer.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PACE_NS LAB_MS
#define TIMEOUT_NS (UINT64_C(10000) * LAB_MS)
#define MAX_SAMPLES 20000u
/* Not looked at when a phase begins. */
#define N_SETTLING 600u

struct good {
    struct bow_context *context;
    struct bow_loop *loop;
    struct bow_client **clients;
    unsigned n_clients;
    unsigned n_next;
    uint64_t due_ns;
    struct bow_timer timer;

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    uint64_t samples[MAX_SAMPLES];
    unsigned n_settling;
    unsigned n_wanted; /* of this phase */
    unsigned n_begun;
    unsigned n_ended;
    struct crowd_report report;
};

struct timed_call {
    struct good *good;
    uint64_t begun_ns;
    bool is_counted;
};

static void on_done(struct bow_result *result, const Lab__Blob *reply, void *user)
{
    struct timed_call *call = user;
    struct good *good = call->good;
    uint64_t took = lab_now_ns() - call->begun_ns;

    (void)reply;
    pthread_mutex_lock(&good->lock);
    if (result->status.code != BOW_OK) {
        good->report.n_failed++;
        snprintf(good->report.text, sizeof(good->report.text), "%s", result->status.message);
    } else if (call->is_counted) {
        good->samples[good->report.n_ok++] = took;
    }
    good->n_ended += call->is_counted;
    pthread_cond_signal(&good->changed);
    pthread_mutex_unlock(&good->lock);
    free(call);
}

/* Under the lock. */
static bool is_counted(struct good *good)
{
    if (good->n_settling > 0) {
        good->n_settling--;
        return false;
    }
    if (good->n_begun == good->n_wanted) {
        return false;
    }
    good->n_begun++;
    return true;
}

static void start_call(struct good *good)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    struct bow_client *client = good->clients[good->n_next++ % good->n_clients];
    struct timed_call *call = malloc(sizeof(*call));
    Lab__Blob request = LAB__BLOB__INIT;
    static uint8_t body[100];

    request.body = (ProtobufCBinaryData){sizeof(body), body};
    options.timeout_ns = TIMEOUT_NS;
    child_assert(call != NULL);
    pthread_mutex_lock(&good->lock);
    *call = (struct timed_call){good, lab_now_ns(), is_counted(good)};
    pthread_mutex_unlock(&good->lock);
    child_assert(lab__lab__echo__start(client, &request, &options, on_done, call, NULL) == 0);
}

/* What is due is made up for at once: nobody waits because the server was slow. */
static void on_timer(struct bow_timer *timer, void *user)
{
    struct good *good = user;

    while (good->due_ns <= bow_loop_now(good->loop)) {
        start_call(good);
        good->due_ns += PACE_NS;
    }
    bow_timer_start_at(timer, good->due_ns);
}

static int begin_pacing(void *user)
{
    struct good *good = user;

    good->due_ns = bow_loop_now(good->loop);
    bow_timer_init(&good->timer, good->loop, on_timer, good);
    bow_timer_start(&good->timer, 0);
    return 0;
}

static void measure(struct good *good, unsigned n_settling, unsigned n_calls)
{
    pthread_mutex_lock(&good->lock);
    memset(&good->report, 0, sizeof(good->report));
    good->n_settling = n_settling;
    good->n_begun = 0;
    good->n_ended = 0;
    good->n_wanted = n_calls;
    while (good->n_ended < n_calls) {
        pthread_cond_wait(&good->changed, &good->lock);
    }
    if (good->report.n_ok > 0) {
        good->report.median_ns = lab_median(good->samples, good->report.n_ok);
        good->report.p99_ns = lab_percentile(good->samples, good->report.n_ok, 99);
    }
    pthread_mutex_unlock(&good->lock);
}

static void make_clients(struct good *good, uint16_t port)
{
    char targets[2][64];

    snprintf(targets[0], sizeof(targets[0]), "127.0.0.1:%u", port);
    snprintf(targets[1], sizeof(targets[1]), "grpc:127.0.0.1:%u", port);
    for (unsigned i = 0; i < good->n_clients; i++) {
        struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
        options.context = good->context;
        options.loop = good->loop;
        options.target = targets[i % 2];
        child_assert(bow_client_new(&options, &good->clients[i]) == 0);
    }
}

static void begin(struct good *good, uint16_t port)
{
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
    static struct bow_task task;

    child_assert(bow_context_new(&context_options, &good->context) == 0);
    child_assert(bow_loop_new(good->context, &loop_options, &good->loop) == 0);
    make_clients(good, port);
    bow_task_init(&task, "pace", begin_pacing, good);
    child_assert(bow_loop_post(good->loop, &task) == 0);
    measure(good, 0, good->n_clients);
}

void child_run_good(int from_parent, int to_parent, unsigned n)
{
    static struct good good;
    uint16_t port = 0;
    unsigned n_calls = 0;

    pthread_mutex_init(&good.lock, NULL);
    pthread_cond_init(&good.changed, NULL);
    good.n_clients = n;
    good.clients = calloc(n, sizeof(struct bow_client *));
    child_assert(good.clients != NULL);
    if (!child_read(from_parent, &port, sizeof(port))) {
        return;
    }
    begin(&good, port);
    child_write(to_parent, &good.report, sizeof(good.report));
    while (child_read(from_parent, &n_calls, sizeof(n_calls))) {
        child_assert(n_calls <= MAX_SAMPLES);
        measure(&good, N_SETTLING, n_calls);
        child_write(to_parent, &good.report, sizeof(good.report));
    }
}
