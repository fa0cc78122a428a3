/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A loop's birth, and what the last reference of its users does. Knows nothing of how it runs.
 */

#include "base/alloc.h"
#include "base/options.h"
#include "base/refuse.h"
#include "transport/loop/condition.h"
#include "transport/loop/loop_internal.h"
#include "transport/system/system_linux.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define FIRST_EVENTS 64
#define MAX_IDLE_CHUNKS 32
#define DEFAULT_IO_RATIO 50
#define DEFAULT_PENDING_TASKS 65536
#define DEFAULT_TAIL_TASKS 4096

/* The option that is none; NULL: they all are. */
static const char *wrong_option(const struct bow_loop_options *options)
{
    if (options->io_ratio > 100) {
        return "options.io_ratio is above 100";
    }
    if (options->cpu < -1) {
        return "options.cpu is below -1";
    }
    if (options->thread != BOW_LOOP_OWN_THREAD && options->thread != BOW_LOOP_OWNER) {
        return "options.thread is none of enum bow_loop_thread";
    }
    return options->strategy != BOW_LOOP_SELECT && options->strategy != BOW_LOOP_BUSY_WAIT
               ? "options.strategy is neither BOW_LOOP_SELECT nor BOW_LOOP_BUSY_WAIT"
               : NULL;
}

static int read_options(struct bow_context *context, struct bow_loop_options *options,
                        const struct bow_loop_options *given)
{
    if (given != NULL && bow__options_read(options, sizeof(*options), given) < 0) {
        return bow__refuse_options(context, "bow_loop_new", "BOW_LOOP_OPTIONS_INIT");
    }
    const char *wrong = wrong_option(options);
    if (wrong != NULL) {
        return bow__refuse(context, -EINVAL, "bow_loop_new: %s", wrong);
    }
    if (options->io_ratio == 0) {
        options->io_ratio = DEFAULT_IO_RATIO;
    }
    if (options->max_pending_tasks == 0) {
        options->max_pending_tasks = DEFAULT_PENDING_TASKS;
    }
    if (options->max_tail_tasks == 0) {
        options->max_tail_tasks = DEFAULT_TAIL_TASKS;
    }
    return 0;
}

static void copy_name(struct bow_loop *loop)
{
    const char *name = loop->options.name != NULL ? loop->options.name : "bow-loop";

    strncpy(loop->name, name, sizeof(loop->name) - 1);
    loop->options.name = loop->name;
}

static void init_fields(struct bow_loop *loop)
{
    bow__inbox_init(&loop->inbox);
    atomic_init(&loop->state, BOW_LOOP_NOT_STARTED);
    atomic_init(&loop->refs, 1);
    atomic_init(&loop->memory_refs, 1);
    atomic_init(&loop->is_healthy, true);
    loop->armed_at_ns = BOW_NEVER;
    loop->rest_until_ns = BOW_NEVER;
    loop->quiet_ns = BOW_NEVER;
    loop->shutdown_at_ns = BOW_NEVER;
    loop->trim_at_ns = BOW_NEVER;
    bow__heap_init(&loop->timers);
    bow__list_init(&loop->closings);
    bow__list_init(&loop->watches);
    bow__list_init(&loop->readies);
    bow__list_init(&loop->flushes);
    bow__list_init(&loop->frees);
    bow__pool_init(&loop->pool, loop->context, MAX_IDLE_CHUNKS);
}

static int open_poller(struct bow_loop *loop)
{
    loop->events_cap = FIRST_EVENTS;
    loop->events = bow__alloc_array(loop->context, FIRST_EVENTS, sizeof(*loop->events));
    if (loop->events == NULL) {
        return -ENOMEM;
    }
    int rc = loop->system->poller->open(loop->system->user, &loop->poller);
    if (rc < 0) {
        goto free_events;
    }
    rc = bow__loop_open_wake(loop);
    if (rc < 0) {
        goto close_poller;
    }
    return 0;

close_poller:
    loop->system->poller->close(loop->poller);
free_events:
    bow__free(loop->context, loop->events, FIRST_EVENTS * sizeof(*loop->events));
    return rc;
}

int bow__loop_new_over(struct bow_context *context, const struct bow_system *system,
                       const struct bow_loop_options *options, struct bow_loop **ret_loop)
{
    struct bow_loop_options known = BOW_LOOP_OPTIONS_INIT;

    int rc = read_options(context, &known, options);
    if (rc < 0) {
        return rc;
    }
    struct bow_loop *loop = bow__alloc_zero(context, sizeof(*loop));
    if (loop == NULL) {
        return -ENOMEM;
    }
    loop->context = context;
    loop->system = system;
    loop->has_coarse_clock = system->now_ns == bow__linux_now_ns;
    loop->options = known;
    loop->looked_ns = bow__loop_update_now(loop);
    bow__loop_note_maker(loop);
    copy_name(loop);
    init_fields(loop);
    rc = bow__cond_init(&loop->mutex, &loop->terminated);
    if (rc < 0) {
        goto free_loop;
    }
    rc = open_poller(loop);
    if (rc < 0) {
        goto destroy_sync;
    }
    bow_context_ref(context);
    *ret_loop = loop;
    return 0;

destroy_sync:
    bow__cond_fini(&loop->mutex, &loop->terminated);
free_loop:
    bow__free(context, loop, sizeof(*loop));
    return rc;
}

int bow_loop_new(struct bow_context *context, const struct bow_loop_options *options,
                 struct bow_loop **ret_loop)
{
    return bow__loop_new_over(context, bow__context_system(context), options, ret_loop);
}

struct bow_loop *bow_loop_ref(struct bow_loop *loop)
{
    unsigned before = atomic_fetch_add_explicit(&loop->refs, 1, memory_order_relaxed);
    assert(before > 0);
    (void)before;
    return loop;
}

/* The last reference */

static void drive_to_the_end(struct bow_loop *loop)
{
    while (bow__loop_state(loop) != BOW_LOOP_TERMINATED) {
        int rc = bow_loop_run_once(loop, BOW_NEVER);
        assert(rc != -EBUSY); /* whoever else runs it holds a reference */
        if (rc < 0) {
            return;
        }
    }
}

/* The last reference is gone: shut down, wait, let go of the memory. */
static void abandon(struct bow_loop *loop)
{
    if (bow__loop_is_foreign(loop)) {
        bow__loop_forsake(loop);
        return;
    }
    bow_loop_shutdown(loop, 0, 0);
    if (bow_loop_in_loop(loop) && loop->in_turn) {
        loop->is_abandoned = true;
        return;
    }
    if (loop->options.thread == BOW_LOOP_OWNER) {
        drive_to_the_end(loop);
    } else if (loop->thread != NULL) {
        loop->system->thread_join(loop->system->user, loop->thread);
    }
    bow__loop_release(loop);
}

struct bow_loop *bow_loop_unref(struct bow_loop *loop)
{
    if (loop != NULL && atomic_fetch_sub_explicit(&loop->refs, 1, memory_order_acq_rel) == 1) {
        abandon(loop);
    }
    return NULL;
}

int bow_loop_fd(struct bow_loop *loop)
{
    if (bow__loop_is_foreign(loop)) {
        return -ECHILD;
    }
    assert(bow__loop_may_touch(loop));
    int fd = loop->system->poller->fd(loop->fd_poller != NULL ? loop->fd_poller : loop->poller);
    if (fd >= 0) {
        loop->has_fd = true;
        bow__loop_rearm(loop);
    }
    return fd;
}

uint64_t bow_loop_next_timeout(struct bow_loop *loop)
{
    assert(bow__loop_may_touch(loop));
    return bow__loop_timeout(loop);
}
