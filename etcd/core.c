/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A bow_etcd's life, and its objects'. See the header. */

#include "etcd/core.h"
#include "base/alloc.h"
#include "base/clock.h"
#include <bowline/metadata_interceptor.h>

#include <errno.h>
#include <string.h>
#include <time.h>

#define SECOND_NS UINT64_C(1000000000)

/* Objects */

static struct bow__etcd_object *object_of(struct bow__link *link)
{
    return BOW__CONTAINER(link, struct bow__etcd_object, link);
}

static void end(struct bow_etcd *etcd);

static bool drop(atomic_uint *refs)
{
    return atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel) == 1;
}

static void object_unref(struct bow__etcd_object *object)
{
    struct bow_etcd *etcd = object->etcd;

    if (drop(&object->refs)) {
        object->kind->free(object);
        bow_etcd_unref(etcd);
    }
}

/* One that bow_etcd_stop() waits for has ended; `has_ref` of the bow_etcd, which goes before
 * anybody hears of that, so that who waited has the last one. */
static void settle(struct bow_etcd *etcd, bool has_ref)
{
    pthread_mutex_lock(&etcd->lock);
    etcd->n_open--;
    bool is_last = has_ref && drop(&etcd->refs);
    pthread_cond_broadcast(&etcd->changed);
    pthread_mutex_unlock(&etcd->lock);
    if (is_last) {
        end(etcd);
    }
}

static void stop(struct bow__etcd_object *object)
{
    if (!object->is_stopped) {
        object->is_stopped = true;
        object->kind->stop(object);
    }
}

bool bow__etcd_object_listens(const struct bow__etcd_object *object)
{
    return !object->is_stopped && !atomic_load_explicit(&object->is_released, memory_order_relaxed);
}

void bow__etcd_object_close(struct bow__etcd_object *object)
{
    struct bow_etcd *etcd = object->etcd;

    bow__list_remove(&object->link);
    object->kind->on_closed(object);
    atomic_store_explicit(&object->is_closed, true, memory_order_release);
    bool is_last = drop(&object->refs);
    if (is_last) {
        object->kind->free(object);
    }
    settle(etcd, is_last);
}

/* Unless nobody has it any more, and its end is under way. */
static bool try_ref(struct bow_etcd *etcd)
{
    unsigned n = atomic_load_explicit(&etcd->refs, memory_order_relaxed);

    while (n != 0 && !atomic_compare_exchange_weak_explicit(
                         &etcd->refs, &n, n + 1, memory_order_relaxed, memory_order_relaxed)) {
    }
    return n != 0;
}

/* The loop shuts down: calls have ended, and timers do not fire. */
static void on_shutdown(struct bow_loop_hook *hook)
{
    struct bow_etcd *etcd = BOW__CONTAINER(hook, struct bow_etcd, hook);
    struct bow__link left;
    struct bow__link *link;

    if (!try_ref(etcd)) {
        return; /* the loop's last reference went with it: the task that frees it is posted */
    }
    etcd->is_dead = true;
    atomic_store(&etcd->is_stopped, true);
    bow__list_init(&left);
    bow__list_move(&left, &etcd->objects);
    while ((link = bow__list_pop_front(&left)) != NULL) {
        bow__list_push_back(&etcd->objects, link);
        struct bow__etcd_object *object = object_of(link);
        object->is_stopped = true;
        object->kind->stop(object);
    }
    bow_etcd_unref(etcd);
}

static void add_hook(struct bow_etcd *etcd)
{
    if (!etcd->has_hook && !etcd->is_dead) {
        etcd->has_hook = bow_loop_add_hook(etcd->loop, &etcd->hook) == 0;
        etcd->is_dead = !etcd->has_hook;
    }
}

static int start_task(void *user)
{
    struct bow__etcd_object *object = user;

    add_hook(object->etcd);
    bow__list_push_back(&object->etcd->objects, &object->link);
    if (object->etcd->is_dead || atomic_load(&object->etcd->is_stopped)) {
        stop(object);
    } else {
        object->kind->start(object);
    }
    return 0;
}

static int stop_task(void *user)
{
    struct bow__etcd_object *object = user;

    stop(object);
    object_unref(object);
    return 0;
}

int bow__etcd_object_open(struct bow__etcd_object *object, const struct bow__etcd_object_kind *kind,
                          struct bow_etcd *etcd)
{
    object->kind = kind;
    object->etcd = etcd;
    bow__list_init(&object->link);
    bow_task_init(&object->starting, "etcd object", start_task, object);
    bow_task_init(&object->stopping, "etcd object's end", stop_task, object);
    atomic_init(&object->refs, 2);
    if (atomic_load(&etcd->is_stopped)) {
        return -ESHUTDOWN;
    }
    bow_etcd_ref(etcd);
    pthread_mutex_lock(&etcd->lock);
    etcd->n_open++;
    pthread_mutex_unlock(&etcd->lock);
    int rc = bow_loop_post(etcd->loop, &object->starting);
    if (rc < 0) {
        pthread_mutex_lock(&etcd->lock);
        etcd->n_open--;
        pthread_mutex_unlock(&etcd->lock);
        bow_etcd_unref(etcd);
    }
    return rc;
}

void bow__etcd_object_release(struct bow__etcd_object *object)
{
    atomic_store_explicit(&object->is_released, true, memory_order_relaxed);
    if (atomic_load_explicit(&object->is_closed, memory_order_acquire) ||
        bow_loop_post(object->etcd->loop, &object->stopping) < 0) {
        object_unref(object); /* the loop's end has stopped it, or does */
    }
}

/* Life */

static int close_task(void *user)
{
    struct bow_etcd *etcd = user;

    if (etcd->has_hook) {
        bow_loop_remove_hook(etcd->loop, &etcd->hook);
    }
    bow__etcd_core_free(etcd);
    return 0;
}

static int stop_all_task(void *user)
{
    struct bow_etcd *etcd = user;
    struct bow__link left;
    struct bow__link *link;

    bow__list_init(&left);
    bow__list_move(&left, &etcd->objects);
    while ((link = bow__list_pop_front(&left)) != NULL) {
        bow__list_push_back(&etcd->objects, link);
        stop(object_of(link));
    }
    settle(etcd, true);
    return 0;
}

int bow__etcd_core_init(struct bow_etcd *etcd)
{
    pthread_condattr_t attributes;

    bow_context_ref(etcd->context);
    if (etcd->loop != NULL) {
        bow_loop_ref(etcd->loop);
    }
    atomic_init(&etcd->refs, 1);
    bow__list_init(&etcd->objects);
    bow__list_init(&etcd->services);
    bow__list_init(&etcd->token.waiters);
    etcd->hook.fn = on_shutdown;
    bow_task_init(&etcd->closing, "etcd's end", close_task, etcd);
    bow_task_init(&etcd->stopping, "etcd's stop", stop_all_task, etcd);
    pthread_mutex_init(&etcd->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&etcd->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    return etcd->loop != NULL ? 0 : bow_loop_new(etcd->context, NULL, &etcd->loop);
}

static void free_text(struct bow_etcd *etcd, char *text)
{
    if (text != NULL) {
        bow__free(etcd->context, text, strlen(text) + 1);
    }
}

void bow__etcd_core_free(struct bow_etcd *etcd)
{
    struct bow_context *context = etcd->context;

    bow_client_free(etcd->client);
    bow_metadata_interceptor_unref(etcd->token.interceptor);
    free_text(etcd, etcd->target);
    free_text(etcd, etcd->prefix);
    free_text(etcd, etcd->token.user);
    free_text(etcd, etcd->token.password);
    pthread_cond_destroy(&etcd->changed);
    pthread_mutex_destroy(&etcd->lock);
    bow__free(context, etcd, sizeof(*etcd));
    bow_context_unref(context);
}

struct bow_etcd *bow_etcd_ref(struct bow_etcd *etcd)
{
    atomic_fetch_add_explicit(&etcd->refs, 1, memory_order_relaxed);
    return etcd;
}

/* Nobody has it any more. A loop that has shut down has run the hook, or does so now. */
static void end(struct bow_etcd *etcd)
{
    struct bow_loop *loop = etcd->loop;
    int rc = etcd->has_hook ? bow_loop_post(loop, &etcd->closing) : -ESHUTDOWN;

    if (rc == -ESHUTDOWN && etcd->has_hook && !bow_loop_in_loop(loop) &&
        bow_loop_join(loop, BOW_NEVER) < 0) {
        return; /* nothing says that it has */
    }
    if (rc < 0) {
        bow__etcd_core_free(etcd);
    }
    (void)bow_loop_unref(loop);
}

void bow_etcd_unref(struct bow_etcd *etcd)
{
    if (etcd != NULL && drop(&etcd->refs)) {
        end(etcd);
    }
}

/* Stopping */

/* Returns whether nothing is open any more. */
static bool wait_until(struct bow_etcd *etcd, uint64_t end_ns)
{
    const struct timespec until = {(time_t)(end_ns / SECOND_NS), (long)(end_ns % SECOND_NS)};
    int rc = 0;

    pthread_mutex_lock(&etcd->lock);
    while (etcd->n_open > 0 && rc == 0) {
        rc = end_ns == BOW_NEVER ? pthread_cond_wait(&etcd->changed, &etcd->lock)
                                 : pthread_cond_timedwait(&etcd->changed, &etcd->lock, &until);
    }
    bool is_over = etcd->n_open == 0;
    pthread_mutex_unlock(&etcd->lock);
    return is_over;
}

static uint64_t monotonic_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

static int run_until(struct bow_etcd *etcd, uint64_t end_ns)
{
    while (!wait_until(etcd, 0)) {
        uint64_t now_ns = monotonic_now();
        if (now_ns >= end_ns) {
            return -ETIMEDOUT;
        }
        int rc = bow_loop_run_once(etcd->loop, bow__time_left(end_ns, now_ns));
        if (rc < 0) {
            return rc == -EBUSY ? -EDEADLK : rc;
        }
    }
    return 0;
}

int bow_etcd_stop(struct bow_etcd *etcd, uint64_t timeout_ns)
{
    uint64_t end_ns = bow__time_add(monotonic_now(), timeout_ns);

    if (!atomic_exchange(&etcd->is_stopped, true)) {
        bow_etcd_ref(etcd);
        pthread_mutex_lock(&etcd->lock);
        etcd->n_open++;
        pthread_mutex_unlock(&etcd->lock);
        int rc = bow_loop_post(etcd->loop, &etcd->stopping);
        if (rc < 0) {
            settle(etcd, true);
            return rc;
        }
    }
    if (bow_loop_in_loop(etcd->loop)) {
        return run_until(etcd, end_ns);
    }
    return wait_until(etcd, end_ns) ? 0 : -ETIMEDOUT;
}
