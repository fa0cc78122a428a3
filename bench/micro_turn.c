/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A turn of a loop that has nothing to do: what polling costs, and what is around it. */

#include "micro.h"
#include <bowline/loop.h>

#define TURNS 20000

static double empty_turns(void *user)
{
    struct bow_loop *loop = user;
    uint64_t begin_ns = bench_now_ns();
    for (int i = 0; i < TURNS; i++) {
        int rc = bow_loop_run_once(loop, 0);
        if (rc < 0) {
            micro_fail("bow_loop_run_once", rc);
        }
    }
    return (double)(bench_now_ns() - begin_ns) / TURNS;
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
    micro_run("empty turn", empty_turns, loop);
    bow_loop_unref(loop);
    bow_context_unref(context);
    return 0;
}
