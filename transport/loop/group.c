/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Several loops and the choice of one. Knows nothing of what a loop does.
 *
 * `next` is taken by relaxed additions (partner: none, it publishes nothing); for
 * a power of two the wrap at 2^32 goes on with the loop that is next anyway.
 */

#include "base/alloc.h"
#include "base/clock.h"
#include "base/options.h"
#include "base/refuse.h"
#include "transport/loop/loop.h"

#include <bowline/group.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

/* Far above any machine; a size below zero that was cast lands above it. */
#define MAX_LOOPS 4096

struct bow_group {
    struct bow_context *context;
    atomic_uint refs;
    atomic_uint next;
    enum bow_group_choice choice;
    uint32_t n_loops;
    uint32_t mask; /* n_loops − 1 when that is a power of two, else 0 */
    struct bow_loop *loops[];
};

static size_t group_bytes(uint32_t n_loops)
{
    return sizeof(struct bow_group) + n_loops * sizeof(struct bow_loop *);
}

static int new_loop(struct bow_group *group, const struct bow_group_options *options, uint32_t n)
{
    struct bow_loop_options loop = BOW_LOOP_OPTIONS_INIT;
    char name[64];

    if (options->loops != NULL) {
        int rc = bow__options_read(&loop, sizeof(loop), options->loops);
        if (rc < 0) {
            return rc;
        }
    }
    snprintf(name, sizeof(name), "%s-%s-%u", options->prefix != NULL ? options->prefix : "bow",
             options->name != NULL ? options->name : "loop", n);
    loop.name = name;
    loop.cpu = loop.cpu >= 0 ? loop.cpu + (int)n : -1;
    return bow_loop_new(group->context, &loop, &group->loops[n]);
}

static void free_group(struct bow_group *group)
{
    struct bow_context *context = group->context;

    for (uint32_t i = 0; i < group->n_loops; i++) {
        bow_loop_unref(group->loops[i]);
    }
    bow__free(context, group, group_bytes(group->n_loops));
    bow_context_unref(context);
}

static uint32_t default_size(struct bow_context *context)
{
    const struct bow_system *system = bow__context_system(context);
    return system->cpus(system->user);
}

int bow_group_new(struct bow_context *context, const struct bow_group_options *options,
                  struct bow_group **ret_group)
{
    struct bow_group_options known = BOW_GROUP_OPTIONS_INIT;

    int rc = options != NULL ? bow__options_read(&known, sizeof(known), options) : 0;
    if (rc < 0) {
        return bow__refuse_options(context, "bow_group_new", "BOW_GROUP_OPTIONS_INIT");
    }
    if (known.n_loops > MAX_LOOPS) {
        return bow__refuse(context, -EINVAL, "bow_group_new: options.n_loops is above %u",
                           (unsigned)MAX_LOOPS);
    }
    if (known.choice > BOW_GROUP_LEAST_CHANNELS) {
        return bow__refuse(context, -EINVAL,
                           "bow_group_new: options.choice is none of enum bow_group_choice");
    }
    uint32_t n_loops = known.n_loops > 0 ? known.n_loops : default_size(context);
    struct bow_group *group = bow__alloc_zero(context, group_bytes(n_loops));
    if (group == NULL) {
        return -ENOMEM;
    }
    group->context = bow_context_ref(context);
    group->choice = known.choice;
    group->n_loops = n_loops;
    group->mask = (n_loops & (n_loops - 1)) == 0 ? n_loops - 1 : 0;
    atomic_init(&group->refs, 1);
    for (uint32_t i = 0; i < n_loops && rc == 0; i++) {
        rc = new_loop(group, &known, i);
    }
    if (rc < 0) {
        free_group(group);
        return rc;
    }
    *ret_group = group;
    return 0;
}

struct bow_group *bow_group_ref(struct bow_group *group)
{
    atomic_fetch_add_explicit(&group->refs, 1, memory_order_relaxed);
    return group;
}

struct bow_group *bow_group_unref(struct bow_group *group)
{
    if (group != NULL && atomic_fetch_sub_explicit(&group->refs, 1, memory_order_acq_rel) == 1) {
        /* All at once first, so that they end side by side. */
        bow_group_shutdown(group, 0, 0);
        /* Also for a loop that somebody still refers to, who may do so from a task on it. */
        (void)!bow_group_join(group, BOW_NEVER);
        free_group(group);
    }
    return NULL;
}

static struct bow_loop *next_in_turn(struct bow_group *group)
{
    uint32_t n = atomic_fetch_add_explicit(&group->next, 1, memory_order_relaxed);
    return group->loops[group->mask != 0 ? n & group->mask : n % group->n_loops];
}

/* Begins at the next in turn, so that equal ones take turns. */
static struct bow_loop *least_channels(struct bow_group *group)
{
    uint32_t start = atomic_fetch_add_explicit(&group->next, 1, memory_order_relaxed);
    struct bow_loop *best = NULL;
    uint64_t fewest = UINT64_MAX;

    for (uint32_t i = 0; i < group->n_loops; i++) {
        struct bow_loop *loop = group->loops[(start % group->n_loops + i) % group->n_loops];
        uint64_t n_channels = bow__loop_n_channels(loop);
        if (n_channels < fewest) {
            fewest = n_channels;
            best = loop;
        }
    }
    return best;
}

struct bow_loop *bow_group_next(struct bow_group *group)
{
    return group->choice == BOW_GROUP_LEAST_CHANNELS ? least_channels(group) : next_in_turn(group);
}

uint32_t bow_group_size(const struct bow_group *group)
{
    return group->n_loops;
}

struct bow_loop *bow_group_get(const struct bow_group *group, uint32_t index)
{
    return group->loops[index];
}

struct bow_loop *bow_group_current(const struct bow_group *group)
{
    for (uint32_t i = 0; i < group->n_loops; i++) {
        if (bow_loop_in_loop(group->loops[i])) {
            return group->loops[i];
        }
    }
    return NULL;
}

void bow_group_shutdown(struct bow_group *group, uint64_t quiet_ns, uint64_t timeout_ns)
{
    for (uint32_t i = 0; i < group->n_loops; i++) {
        if (group->loops[i] != NULL) {
            bow_loop_shutdown(group->loops[i], quiet_ns, timeout_ns);
        }
    }
}

/* One time-out for all: what the first ones took is missing for the others. */
int bow_group_join(struct bow_group *group, uint64_t timeout_ns)
{
    const struct bow_system *system = bow_system_default();
    uint64_t deadline = bow__time_add(system->now_ns(system->user), timeout_ns);

    if (bow_group_current(group) != NULL) {
        return bow__refuse(group->context, -EDEADLK,
                           "bow_group_join: on a loop of the group it would wait for ever");
    }
    for (uint32_t i = 0; i < group->n_loops; i++) {
        uint64_t now = system->now_ns(system->user);
        int rc = bow_loop_join(group->loops[i], bow__time_left(deadline, now));
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}
