/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_GROUP_H
#define BOWLINE_GROUP_H

/*
 * Several loops with threads of their own, and a way to choose one. Threads are
 * named PREFIX-GROUP-N, and start with the first work of each. For fork() see <bowline/loop.h>.
 *
 *     struct bow_group *workers;
 *     int rc = bow_group_new(context, NULL, &workers);         a loop for each CPU we may use
 *     ...
 *     options.loop = boss;                                     accepts
 *     options.workers = workers;                               serve what was accepted
 *     ...
 *     bow_group_unref(workers);                                shuts down, and waits
 */

#include <bowline/loop.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_group;

/** How bow_group_next() chooses. */
enum bow_group_choice {
    BOW_GROUP_ROUND_ROBIN = 0,
    BOW_GROUP_LEAST_CHANNELS = 1, /* for connections that live long, and unevenly */
};

/** What a group is made with; begin with BOW_GROUP_OPTIONS_INIT. */
struct bow_group_options {
    size_t size;        /* sizeof this struct, set by the INIT */
    uint32_t n_loops;   /* 0: min(CPU affinity, cgroup cpu.max), at least 1; at most 4096 */
    const char *prefix; /* NULL: "bow" */
    const char *name;   /* NULL: "loop" */
    enum bow_group_choice choice;
    /* For each loop; NULL: defaults. Its name is not used; from its cpu on, one CPU a loop. */
    const struct bow_loop_options *loops;
};

#define BOW_GROUP_OPTIONS_INIT BOW__INIT(struct bow_group_options, )

/**
 * Make a group with one reference; no thread starts yet. `options` NULL: the defaults.
 *
 * Thread:  any
 * Owns:    shares `context`; gives `*ret_group`, drop it with bow_group_unref()
 * Returns: 0; -EINVAL (options); as bow_loop_new()
 */
BOW_EXPORT BOW_MUST_USE int bow_group_new(struct bow_context *context,
                                          const struct bow_group_options *options,
                                          struct bow_group **ret_group);
/** Take a reference to a group. Thread: any. Returns: `group`. */
BOW_EXPORT struct bow_group *bow_group_ref(struct bow_group *group);
/** Drop a reference to a group; the last one shuts the loops down and waits for them. NULL is
 * allowed. Thread: any but the loops'. Returns: NULL. */
BOW_EXPORT struct bow_group *bow_group_unref(struct bow_group *group);

/** The next loop by the group's choice, borrowed. Thread: any. */
BOW_EXPORT struct bow_loop *bow_group_next(struct bow_group *group);
/** How many loops it has. Thread: any. */
BOW_EXPORT uint32_t bow_group_size(const struct bow_group *group);
/** One of the loops, borrowed; `index` < bow_group_size(). Thread: any. */
BOW_EXPORT struct bow_loop *bow_group_get(const struct bow_group *group, uint32_t index);
/** The loop of this group whose thread is the calling one, or NULL. Thread: any. */
BOW_EXPORT struct bow_loop *bow_group_current(const struct bow_group *group);

/** Do bow_loop_shutdown() with each loop. What is posted before a loop's end runs, replies that
 * other threads make included; lost are bytes that channels have queued, timers and scheduled tasks
 * that are not due, and what is posted later (-ESHUTDOWN). Thread: any. */
BOW_EXPORT void bow_group_shutdown(struct bow_group *group, uint64_t quiet_ns, uint64_t timeout_ns);
/** Wait until all loops have terminated, `timeout_ns` for all of them together. Thread: any but the
 * loops'. Returns: 0; -ETIMEDOUT; -EDEADLK on a thread of the group; -ECHILD after fork(). */
BOW_EXPORT BOW_MUST_USE int bow_group_join(struct bow_group *group, uint64_t timeout_ns);

#ifdef __cplusplus
}
#endif
#endif
