/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Tasks posted to a loop from another thread, each on its own CPU: many at once, one by one
 * while the loop polls without sleeping, and one by one while it sleeps, where posting and
 * running are also the wake-up.
 */

#include "micro.h"
#include <bowline/loop.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BURST 20000
#define POSTS_AWAKE 20000
#define POSTS_ASLEEP 200
/* After that long without work the loop is in the kernel. */
#define FALL_ASLEEP_NS 100000

struct letter {
    struct bow_task task;
    _Atomic(uint64_t) arrived_ns; /* release by the loop, acquire by the poster; 0: not yet */
    atomic_uint *n_arrived;
};

static int run_letter(void *user)
{
    struct letter *letter = user;
    atomic_store_explicit(&letter->arrived_ns, bench_now_ns(), memory_order_release);
    return 0;
}

static int run_counted(void *user)
{
    struct letter *letter = user;
    atomic_fetch_add_explicit(letter->n_arrived, 1, memory_order_release);
    return 0;
}

static void post(struct bow_loop *loop, struct letter *letter, bow_task_fn fn)
{
    bow_task_init(&letter->task, "letter", fn, letter);
    int rc = bow_loop_post(loop, &letter->task);
    if (rc < 0) {
        micro_fail("bow_loop_post", rc);
    }
}

static double burst(void *user)
{
    struct bow_loop *loop = user;
    struct letter *letters = calloc(BURST, sizeof(*letters));
    atomic_uint n_arrived = 0;
    if (letters == NULL) {
        micro_fail("no memory for the tasks", 0);
    }
    uint64_t begin_ns = bench_now_ns();
    for (int i = 0; i < BURST; i++) {
        letters[i].n_arrived = &n_arrived;
        post(loop, &letters[i], run_counted);
    }
    while (atomic_load_explicit(&n_arrived, memory_order_acquire) < BURST) {
    }
    uint64_t took_ns = bench_now_ns() - begin_ns;
    free(letters);
    return (double)took_ns / BURST;
}

/* Posts one, waits until it has run. */
static void deliver(struct bow_loop *loop, uint64_t *post_ns, uint64_t *run_ns)
{
    struct letter letter = {.arrived_ns = 0};
    uint64_t arrived_ns;
    uint64_t begin_ns = bench_now_ns();
    post(loop, &letter, run_letter);
    uint64_t posted_ns = bench_now_ns();
    while ((arrived_ns = atomic_load_explicit(&letter.arrived_ns, memory_order_acquire)) == 0) {
    }
    *post_ns += posted_ns - begin_ns;
    *run_ns += arrived_ns - begin_ns;
}

static double awake(void *user)
{
    uint64_t post_ns = 0;
    uint64_t run_ns = 0;
    for (int i = 0; i < POSTS_AWAKE; i++) {
        deliver(user, &post_ns, &run_ns);
    }
    return (double)run_ns / POSTS_AWAKE;
}

static void asleep(struct bow_loop *loop)
{
    const struct timespec pause = {.tv_nsec = FALL_ASLEEP_NS};
    double posts[MICRO_ROUNDS];
    double runs[MICRO_ROUNDS];
    for (int round = 0; round < MICRO_ROUNDS; round++) {
        uint64_t post_ns = 0;
        uint64_t run_ns = 0;
        for (int i = 0; i < POSTS_ASLEEP; i++) {
            nanosleep(&pause, NULL);
            deliver(loop, &post_ns, &run_ns);
        }
        posts[round] = (double)post_ns / POSTS_ASLEEP;
        runs[round] = (double)run_ns / POSTS_ASLEEP;
    }
    micro_print("post to a loop asleep, the call itself", posts);
    micro_print("post to a loop asleep, until it runs", runs);
}

static struct bow_loop *start_loop(struct bow_context *context, enum bow_loop_select strategy)
{
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;
    struct bow_loop *loop;
    options.strategy = strategy;
    options.cpu = micro_cpu(1);
    int rc = bow_loop_new(context, &options, &loop);
    if (rc < 0) {
        micro_fail("bow_loop_new", rc);
    }
    return loop;
}

int main(void)
{
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_context *context;
    if (micro_n_cpus() < 2) {
        fprintf(stderr, "micro_post: two threads that wait for each other need two CPUs\n");
        return 77;
    }
    int rc = bow_context_new(&context_options, &context);
    if (rc < 0) {
        micro_fail("bow_context_new", rc);
    }
    micro_pin(0);
    struct bow_loop *loop = start_loop(context, BOW_LOOP_BUSY_WAIT);
    micro_run("post to a loop awake, each of 20,000 at once", burst, loop);
    micro_run("post to a loop awake, until it runs", awake, loop);
    bow_loop_unref(loop);
    loop = start_loop(context, BOW_LOOP_SELECT);
    asleep(loop);
    bow_loop_unref(loop);
    bow_context_unref(context);
    return 0;
}
