/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_GROUP_H
#define BOWLINE_GROUP_H

/*
 * Several loops with threads of their own, and a way to choose one. Threads are
 * named PREFIX-GROUP-N.
 */

#include <bowline/loop.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_group;

enum bow_group_choice {
    BOW_GROUP_ROUND_ROBIN = 0,
    BOW_GROUP_LEAST_CHANNELS = 1,
};

struct bow_group_options {
    size_t size;        /* sizeof this struct, set by the INIT */
    uint32_t n_loops;   /* 0: min(CPU affinity, cgroup cpu.max), at least 1 */
    const char *prefix; /* NULL: "bow" */
    const char *name;   /* NULL: "loop" */
    enum bow_group_choice choice;
    /* For each loop; NULL: defaults. Its name is not used; from its cpu on, one CPU a loop. */
    const struct bow_loop_options *loops;
};

#define BOW_GROUP_OPTIONS_INIT                                                                     \
    {                                                                                              \
        sizeof(struct bow_group_options), 0, NULL, NULL, BOW_GROUP_ROUND_ROBIN, NULL               \
    }

/** Make a group; no thread starts yet. Returns: 0 or as bow_loop_new(). Thread: any. */
BOW_EXPORT BOW_MUST_USE int bow_group_new(struct bow_context *context,
                                          const struct bow_group_options *options,
                                          struct bow_group **ret_group);
BOW_EXPORT struct bow_group *bow_group_ref(struct bow_group *group);
/** Drop a reference; the last one shuts the loops down and waits for them. Returns: NULL. Thread:
 * any but the loops'. */
BOW_EXPORT struct bow_group *bow_group_unref(struct bow_group *group);

/** The next loop by the group's choice. Thread: any. */
BOW_EXPORT struct bow_loop *bow_group_next(struct bow_group *group);
BOW_EXPORT uint32_t bow_group_size(const struct bow_group *group);
/** Borrowed; `index` < bow_group_size(). */
BOW_EXPORT struct bow_loop *bow_group_get(const struct bow_group *group, uint32_t index);
/** The loop of this group whose thread is the calling one, or NULL. Thread: any. */
BOW_EXPORT struct bow_loop *bow_group_current(const struct bow_group *group);

/** bow_loop_shutdown() on each. Thread: any. */
BOW_EXPORT void bow_group_shutdown(struct bow_group *group, uint64_t quiet_ns, uint64_t timeout_ns);
/** Wait for all. Returns: 0, -ETIMEDOUT, -EDEADLK. */
BOW_EXPORT BOW_MUST_USE int bow_group_join(struct bow_group *group, uint64_t timeout_ns);

#ifdef __cplusplus
}
#endif
#endif
