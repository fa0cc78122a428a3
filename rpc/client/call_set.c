/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Sets of calls. Of a client it knows the public functions alone.
 *
 * Design. Calls complete on their clients' loops, so all is under one lock. A slot that
 * is not done belongs to a call that has not completed, whose client therefore lives: so
 * calls are cancelled under the lock. The owner, each call, and the task that runs `done`
 * have a reference. `used_by`: relaxed, fork() itself publishes it.
 */

#include "base/alloc.h"
#include "base/options.h"
#include "base/process.h"
#include "base/refuse.h"
#include "transport/loop/loop.h"
#include <bowline/call_set.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

struct slot {
    struct bow_call_set *set;
    struct bow_client *client;
    uint64_t id;
    bool done;
    struct bow_result result;
};

struct bow_call_set {
    struct bow_context *context; /* a reference */
    struct bow_loop *loop;       /* its memory is held */
    struct bow_call_set_options options;
    bow_call_set_fn done;
    void *user;
    struct bow_task task;
    atomic_int used_by; /* the process that started calls; 0: none has yet */

    pthread_mutex_t lock;
    uint32_t refs;
    uint32_t n_calls;
    uint32_t n_left;
    bool committed;
    bool cancelled;
    bool abandoned;
    struct slot slots[];
};

static size_t size_of(uint32_t max_calls)
{
    return sizeof(struct bow_call_set) + max_calls * sizeof(struct slot);
}

static void destroy(struct bow_call_set *set)
{
    struct bow_context *context = set->context;

    for (uint32_t i = 0; i < set->n_calls; i++) {
        bow_result_fini(&set->slots[i].result);
    }
    pthread_mutex_destroy(&set->lock);
    bow__loop_release(set->loop);
    bow__free(context, set, size_of(set->options.max_calls));
    bow_context_unref(context);
}

static void unlock_and_unref(struct bow_call_set *set)
{
    bool last = --set->refs == 0;

    pthread_mutex_unlock(&set->lock);
    if (last) {
        destroy(set);
    }
}

/* The end */

static int done_task(void *user)
{
    struct bow_call_set *set = user;

    pthread_mutex_lock(&set->lock);
    bool abandoned = set->abandoned;
    pthread_mutex_unlock(&set->lock);
    if (!abandoned) {
        set->done(set, set->user);
    }
    pthread_mutex_lock(&set->lock);
    unlock_and_unref(set);
    return 0;
}

/* Under the lock. */
static void check_done(struct bow_call_set *set)
{
    if (!set->committed || set->abandoned || set->n_left > 0) {
        return;
    }
    set->refs++;
    if (bow__loop_post_internal(set->loop, &set->task, 0) < 0) {
        set->refs--;
    }
}

/* Under the lock; what is cancelled completes later. */
static void cancel_rest(struct bow_call_set *set)
{
    if (set->cancelled) {
        return;
    }
    set->cancelled = true;
    for (uint32_t i = 0; i < set->n_calls; i++) {
        const struct slot *slot = &set->slots[i];
        if (!slot->done && slot->id != 0) {
            bow_client_cancel(slot->client, slot->id);
        }
    }
}

static void on_done(struct bow_result *result, bow_any_fn fn, void *user)
{
    struct slot *slot = user;
    struct bow_call_set *set = slot->set;

    (void)fn;
    pthread_mutex_lock(&set->lock);
    bow_result_move(&slot->result, result);
    slot->done = true;
    set->n_left--;
    if (set->options.cancels_rest && slot->result.status.code != BOW_OK) {
        cancel_rest(set);
    }
    check_done(set);
    unlock_and_unref(set);
}

/* What programs call */

int bow_call_set_new(struct bow_loop *loop, const struct bow_call_set_options *options,
                     bow_call_set_fn done, void *user, struct bow_call_set **ret_set)
{
    struct bow_call_set_options known = BOW_CALL_SET_OPTIONS_INIT;
    struct bow_context *context = bow_loop_context(loop);

    int rc = bow__options_read(&known, sizeof(known), options);
    if (rc < 0) {
        return bow__refuse_options(context, "bow_call_set_new", "BOW_CALL_SET_OPTIONS_INIT");
    }
    if (known.max_calls == 0) {
        return bow__refuse(context, -EINVAL, "bow_call_set_new: options.max_calls is 0");
    }
    struct bow_call_set *set = bow__alloc_zero(context, size_of(known.max_calls));
    if (set == NULL) {
        return -ENOMEM;
    }
    set->context = bow_context_ref(context);
    bow__loop_hold(loop);
    set->loop = loop;
    set->options = known;
    set->done = done;
    set->user = user;
    set->refs = 1;
    bow_task_init(&set->task, "call set", done_task, set);
    pthread_mutex_init(&set->lock, NULL);
    *ret_set = set;
    return 0;
}

static int process_of(const struct bow_call_set *set)
{
    return bow__process_id(bow__context_process(set->context));
}

/* Used before fork(): the lock may be held for ever. */
static bool is_foreign(const struct bow_call_set *set)
{
    int id = atomic_load_explicit(&set->used_by, memory_order_relaxed);

    return id != 0 && id != process_of(set);
}

/* Under the lock. */
static int take_slot(struct bow_call_set *set, struct bow_client *client)
{
    if (set->committed) {
        return bow__refuse(set->context, -EINVAL, "bow_call_set_start: the set has been committed");
    }
    if (set->cancelled) {
        return -ECANCELED;
    }
    if (set->n_calls == set->options.max_calls) {
        return bow__refuse(set->context, -ENOSPC,
                           "bow_call_set_start: the set has its options.max_calls (%u)",
                           set->options.max_calls);
    }
    set->slots[set->n_calls] = (struct slot){
        .set = set,
        .client = client,
        .result = BOW_RESULT_INIT,
    };
    atomic_store_explicit(&set->used_by, process_of(set), memory_order_relaxed);
    set->n_left++;
    set->refs++;
    return (int)set->n_calls++;
}

/* The call may be done before its start returns, on another thread; the lock, which its end takes
 * too, keeps its id and its place whole until then. */
int bow_call_set_start(struct bow_call_set *set, struct bow_client *client,
                       const struct bow_method *method, const ProtobufCMessage *request,
                       const struct bow_call_options *options)
{
    if (is_foreign(set)) {
        return -ECHILD;
    }
    pthread_mutex_lock(&set->lock);
    int number = take_slot(set, client);
    if (number >= 0) {
        struct slot *slot = &set->slots[number];
        int rc = bow_client_start(client, method, request, options, on_done, NULL, slot, &slot->id);
        if (rc < 0) {
            set->n_calls--;
            set->n_left--;
            set->refs--;
            number = rc;
        }
    }
    pthread_mutex_unlock(&set->lock);
    return number;
}

void bow_call_set_commit(struct bow_call_set *set)
{
    if (is_foreign(set)) {
        return;
    }
    pthread_mutex_lock(&set->lock);
    set->committed = true;
    check_done(set);
    pthread_mutex_unlock(&set->lock);
}

void bow_call_set_cancel(struct bow_call_set *set)
{
    if (is_foreign(set)) {
        return;
    }
    pthread_mutex_lock(&set->lock);
    cancel_rest(set);
    pthread_mutex_unlock(&set->lock);
}

uint32_t bow_call_set_n_calls(const struct bow_call_set *set)
{
    return set->n_calls;
}

const struct bow_result *bow_call_set_result(const struct bow_call_set *set, uint32_t number)
{
    return number < set->n_calls ? &set->slots[number].result : NULL;
}

void bow_call_set_free(struct bow_call_set *set)
{
    if (set == NULL || is_foreign(set)) {
        return;
    }
    pthread_mutex_lock(&set->lock);
    set->abandoned = true;
    cancel_rest(set);
    unlock_and_unref(set);
}
