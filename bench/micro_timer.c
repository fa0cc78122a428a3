/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Arming and cancelling with few and with many timers pending, all of them far away. */

#include "micro.h"
#include <bowline/timer.h>
#include <stdio.h>
#include <stdlib.h>

#define FEW UINT64_C(1000)
#define MANY UINT64_C(1000000)
#define OPERATIONS 100000
#define CANCELS 500 /* of different timers, so not more than there are */
#define NEAR_NS (UINT64_C(3600) * 1000000000u)

struct pending {
    struct bow_loop *loop;
    struct bow_timer *timers;
    uint64_t n;
    uint64_t seed;
    uint64_t far_ns; /* no deadline is before that */
};

static void on_timer(struct bow_timer *timer, void *user)
{
    (void)timer;
    (void)user;
}

static uint64_t random_deadline(struct pending *pending)
{
    return pending->far_ns + micro_random(&pending->seed, NEAR_NS);
}

static double arm_and_cancel_newest(void *user)
{
    struct pending *pending = user;
    struct bow_timer timer;
    bow_timer_init(&timer, pending->loop, on_timer, NULL);
    uint64_t begin_ns = bench_now_ns();
    for (int i = 0; i < OPERATIONS; i++) {
        bow_timer_start_at(&timer, random_deadline(pending));
        bow_timer_stop(&timer);
    }
    return (double)(bench_now_ns() - begin_ns) / OPERATIONS;
}

static double cancel_random(void *user)
{
    struct pending *pending = user;
    uint64_t step = pending->n / CANCELS;
    struct bow_timer *picked[CANCELS];
    for (uint64_t i = 0; i < CANCELS; i++) {
        picked[i] = &pending->timers[i * step + micro_random(&pending->seed, step)];
    }
    uint64_t begin_ns = bench_now_ns();
    for (int i = 0; i < CANCELS; i++) {
        bow_timer_stop(picked[i]);
    }
    double took_ns = (double)(bench_now_ns() - begin_ns) / CANCELS;
    for (int i = 0; i < CANCELS; i++) {
        bow_timer_start_at(picked[i], random_deadline(pending));
    }
    return took_ns;
}

static void measure(struct bow_loop *loop, uint64_t n)
{
    struct pending pending = {.loop = loop, .n = n, .seed = n};
    char name[64];
    pending.far_ns = bow_loop_now(loop) + NEAR_NS;
    pending.timers = malloc(n * sizeof(*pending.timers));
    if (pending.timers == NULL) {
        micro_fail("no memory for the timers", 0);
    }
    for (uint64_t i = 0; i < n; i++) {
        bow_timer_init(&pending.timers[i], loop, on_timer, NULL);
        bow_timer_start_at(&pending.timers[i], random_deadline(&pending));
    }
    snprintf(name, sizeof(name), "arm and cancel a timer, %llu pending", (unsigned long long)n);
    micro_run(name, arm_and_cancel_newest, &pending);
    snprintf(name, sizeof(name), "cancel a random timer, %llu pending", (unsigned long long)n);
    micro_run(name, cancel_random, &pending);
    for (uint64_t i = 0; i < n; i++) {
        bow_timer_stop(&pending.timers[i]);
    }
    free(pending.timers);
}

int main(void)
{
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_context *context;
    struct bow_loop *loop;
    options.thread = BOW_LOOP_OWNER;
    int rc = bow_context_new(&context_options, &context);
    if (rc == 0) {
        rc = bow_loop_new(context, &options, &loop);
    }
    if (rc < 0) {
        micro_fail("bow_loop_new", rc);
    }
    micro_pin(0);
    measure(loop, FEW);
    measure(loop, MANY);
    bow_loop_unref(loop);
    bow_context_unref(context);
    return 0;
}
