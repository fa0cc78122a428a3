/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Work whose value comes back through a future, one piece or several. Knows of loops and
 * executors only that one can post to them.
 *
 * The race of invoke_any is a promise of its own, which each piece of work holds: the
 * first to succeed completes it; when all are gone without, it is broken by itself.
 */

#include "base/alloc.h"
#include "base/clock.h"
#include "base/options.h"
#include "base/refuse.h"
#include "transport/executor/future.h"

#include <bowline/submit.h>
#include <errno.h>

struct submitted {
    struct bow_task task;
    struct bow_context *context;
    struct bow__event_executor event_executor;
    struct bow_promise *promise;
    struct bow_promise *race;     /* may be NULL */
    struct bow_invocation *entry; /* what `race` is won with */
    bow_work_fn fn;
    void *user;
};

static void free_submitted(struct submitted *submitted)
{
    bow_promise_unref(submitted->promise);
    bow_promise_unref(submitted->race);
    bow__free(submitted->context, submitted, sizeof(*submitted));
}

static int work(struct submitted *submitted)
{
    void *value = NULL;

    int rc = submitted->fn(submitted->user, &value);
    if (rc < 0) {
        return bow_promise_fail(submitted->promise, rc);
    }
    rc = bow_promise_succeed(submitted->promise, value);
    if (submitted->race != NULL) {
        bow_promise_succeed(submitted->race, submitted->entry);
    }
    return rc;
}

/* A failure is the future's to tell, not the task's. */
static int run(void *user)
{
    struct submitted *submitted = user;

    bow__event_executor_free_slot(&submitted->event_executor);
    if (bow_promise_set_uncancellable(submitted->promise) == 0) {
        (void)work(submitted);
    }
    free_submitted(submitted);
    return 0;
}

static struct bow_context *context_of(const struct bow__event_executor *event_executor)
{
    return event_executor->loop != NULL ? bow_loop_context(event_executor->loop)
                                        : bow_executor_context(event_executor->executor);
}

static int new_promise(const struct bow__event_executor *event_executor,
                       const struct bow_promise_options *options, struct bow_promise **ret_promise)
{
    struct bow_promise_options here = BOW_PROMISE_OPTIONS_INIT;

    if (options != NULL) {
        int rc = bow__options_read(&here, sizeof(here), options);
        if (rc < 0) {
            return rc;
        }
    }
    if (here.loop == NULL && here.executor == NULL) {
        here.loop = event_executor->loop;
        here.executor = event_executor->executor;
    }
    int rc = bow_promise_new(context_of(event_executor), &here, ret_promise);
    if (rc == 0) {
        bow__promise_set_worker(*ret_promise, event_executor);
    }
    return rc;
}

static int post(struct submitted *submitted)
{
    const struct bow__event_executor event_executor = submitted->event_executor;

    if (!bow__event_executor_take_slot(&event_executor)) {
        return -EAGAIN;
    }
    int rc = bow__event_executor_post(&event_executor, &submitted->task);
    if (rc < 0) {
        bow__event_executor_free_slot(&event_executor);
    }
    return rc;
}

static int submit(const struct bow__event_executor *event_executor, struct bow_invocation *entry,
                  struct bow_promise *race)
{
    struct submitted *submitted = bow__alloc_zero(context_of(event_executor), sizeof(*submitted));
    if (submitted == NULL) {
        return -ENOMEM;
    }
    submitted->context = context_of(event_executor);
    submitted->event_executor = *event_executor;
    submitted->fn = entry->fn;
    submitted->user = entry->user;
    submitted->entry = entry;
    submitted->race = race != NULL ? bow_promise_ref(race) : NULL;
    bow_task_init(&submitted->task, entry->name, run, submitted);
    int rc = new_promise(event_executor, &entry->promise, &submitted->promise);
    if (rc < 0) {
        goto free_it;
    }
    struct bow_future *future = bow_future_ref(bow_promise_future(submitted->promise));
    rc = post(submitted);
    if (rc < 0) {
        bow_future_unref(future);
        goto free_it;
    }
    entry->future = future;
    return 0;

free_it:
    free_submitted(submitted);
    return rc;
}

static int submit_one(const struct bow__event_executor *event_executor, const char *name,
                      bow_work_fn fn, void *user, const struct bow_promise_options *options,
                      struct bow_future **ret_future)
{
    struct bow_invocation entry = {
        .name = name, .fn = fn, .user = user, .promise = BOW_PROMISE_OPTIONS_INIT};

    if (options != NULL) {
        int rc = bow__options_read(&entry.promise, sizeof(entry.promise), options);
        if (rc < 0) {
            return rc;
        }
    }
    int rc = submit(event_executor, &entry, NULL);
    if (rc == 0) {
        *ret_future = entry.future;
    }
    return rc;
}

/* Several */

static void cancel_all(struct bow_invocation *entries, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bow_future_cancel(entries[i].future);
    }
}

/* They may run already, and what they use is the caller's again when this returns. */
static void take_back(struct bow_invocation *entries, size_t n)
{
    cancel_all(entries, n);
    for (size_t i = 0; i < n; i++) {
        (void)!bow_future_wait(entries[i].future, BOW_NEVER);
        entries[i].future = bow_future_unref(entries[i].future);
    }
}

/* Nothing is submitted by one who may not wait for it. */
static int check_all(const struct bow__event_executor *event_executor,
                     struct bow_invocation *entries, size_t n)
{
    bool is_here = bow__event_executor_is_here(event_executor);

    for (size_t i = 0; i < n; i++) {
        const struct bow__event_executor home = {entries[i].promise.loop,
                                                 entries[i].promise.executor};
        is_here = is_here || bow__event_executor_is_here(&home);
        entries[i].future = NULL;
    }
    if (is_here) {
        return bow__refuse(context_of(event_executor), -EDEADLK,
                           "invoking several: here they run, or their listeners, so it would wait "
                           "for ever");
    }
    return 0;
}

static int submit_all(const struct bow__event_executor *event_executor,
                      struct bow_invocation *entries, size_t n, struct bow_promise *race)
{
    for (size_t i = 0; i < n; i++) {
        int rc = submit(event_executor, &entries[i], race);
        if (rc < 0) {
            take_back(entries, i);
            return rc;
        }
    }
    return 0;
}

static int wait_for_all(struct bow_invocation *entries, size_t n, uint64_t timeout_ns)
{
    const struct bow_system *system = bow_system_default();
    const uint64_t until = bow__time_add(system->now_ns(system->user), timeout_ns);
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        uint64_t left_ns = bow__time_left(until, system->now_ns(system->user));
        rc = bow_future_wait(entries[i].future, left_ns);
    }
    return rc;
}

static int invoke_all(const struct bow__event_executor *event_executor,
                      struct bow_invocation *entries, size_t n, uint64_t timeout_ns)
{
    int rc = check_all(event_executor, entries, n);
    if (rc < 0) {
        return rc;
    }
    rc = submit_all(event_executor, entries, n, NULL);
    if (rc < 0) {
        return rc;
    }
    rc = wait_for_all(entries, n, timeout_ns);
    cancel_all(entries, n);
    return rc;
}

static int last_error(const struct bow_invocation *entries, size_t n)
{
    int error = bow_future_error(entries[n - 1].future);
    return error < 0 ? error : -EPIPE;
}

static int invoke_any(const struct bow__event_executor *event_executor,
                      struct bow_invocation *entries, size_t n, uint64_t timeout_ns,
                      size_t *ret_winner)
{
    struct bow_promise *race = NULL;

    if (n == 0) {
        return -EINVAL;
    }
    int rc = check_all(event_executor, entries, n);
    if (rc < 0) {
        return rc;
    }
    rc = bow_promise_new(context_of(event_executor), NULL, &race);
    if (rc < 0) {
        return rc;
    }
    struct bow_future *result = bow_future_ref(bow_promise_future(race));
    rc = submit_all(event_executor, entries, n, race);
    bow_promise_unref(race);
    if (rc < 0) {
        goto drop_result;
    }
    rc = bow_future_wait(result, timeout_ns);
    cancel_all(entries, n);
    if (rc == 0 && bow_future_error(result) < 0) {
        rc = last_error(entries, n);
    }
    if (rc == 0) {
        *ret_winner = (size_t)((struct bow_invocation *)bow_future_value(result) - entries);
    }
drop_result:
    bow_future_unref(result);
    return rc;
}

/* On an executor, or a loop */

int bow_executor_submit(struct bow_executor *executor, const char *name, bow_work_fn fn, void *user,
                        const struct bow_promise_options *options, struct bow_future **ret_future)
{
    return submit_one(&(struct bow__event_executor){.executor = executor}, name, fn, user, options,
                      ret_future);
}

int bow_loop_submit(struct bow_loop *loop, const char *name, bow_work_fn fn, void *user,
                    const struct bow_promise_options *options, struct bow_future **ret_future)
{
    return submit_one(&(struct bow__event_executor){.loop = loop}, name, fn, user, options,
                      ret_future);
}

int bow_executor_invoke_all(struct bow_executor *executor, struct bow_invocation *invocations,
                            size_t n, uint64_t timeout_ns)
{
    return invoke_all(&(struct bow__event_executor){.executor = executor}, invocations, n,
                      timeout_ns);
}

int bow_loop_invoke_all(struct bow_loop *loop, struct bow_invocation *invocations, size_t n,
                        uint64_t timeout_ns)
{
    return invoke_all(&(struct bow__event_executor){.loop = loop}, invocations, n, timeout_ns);
}

int bow_executor_invoke_any(struct bow_executor *executor, struct bow_invocation *invocations,
                            size_t n, uint64_t timeout_ns, size_t *ret_winner)
{
    return invoke_any(&(struct bow__event_executor){.executor = executor}, invocations, n,
                      timeout_ns, ret_winner);
}

int bow_loop_invoke_any(struct bow_loop *loop, struct bow_invocation *invocations, size_t n,
                        uint64_t timeout_ns, size_t *ret_winner)
{
    return invoke_any(&(struct bow__event_executor){.loop = loop}, invocations, n, timeout_ns,
                      ret_winner);
}
