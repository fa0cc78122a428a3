/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The resolver thread of a context and its queue.
 *
 * Design
 *
 * `mutex` guards the queue, the thread's handle, what the thread works on, and the
 * `stage` of each request until it is DONE. The thread works on a copy in the
 * resolver, so a request that is cancelled meanwhile is freed at once. Its task is
 * posted under the mutex: a cancel comes either before it, and there is no post, or
 * after it, and finds DONE. So the loop is alive when it is posted to: an asker cancels
 * before its loop ends.
 *
 * The thread waits for nothing: it ends when the queue is empty. Whoever
 * starts the next one, or ends the context, joins it; that takes no longer than
 * the return of a function, except while a name server does not answer.
 */

#include "transport/address/resolver.h"
#include "base/alloc.h"
#include "base/slot.h"
#include "transport/address/address.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

enum stage {
    STAGE_QUEUED,
    STAGE_RUNNING,
    STAGE_DONE,
    STAGE_LOST, /* the loop refused the task */
};

struct bow__resolve {
    struct bow__resolve *next;
    struct bow_context *context;
    struct bow_loop *loop;
    struct resolver *resolver;
    struct bow_task task;
    enum stage stage;
    bool is_cancelled; /* DONE, and its task is still to run. Loop only. */
    bow__resolve_fn done;
    void *user;
    uint16_t port;
    struct bow__resolved resolved;
    size_t host_bytes;
    char host[];
};

struct resolver {
    struct bow_context *context;
    pthread_mutex_t mutex;
    struct bow__resolve *first;
    struct bow__resolve **end;
    struct bow_thread *thread; /* running, or ended and not joined yet */
    bool is_running;
    struct bow__resolve *current; /* whose answer is awaited; NULL: nobody's any more */
    char host[BOW__HOST_BYTES];
    uint16_t port;
    struct bow__resolved resolved;
};

static void free_request(struct bow__resolve *request)
{
    bow__free(request->context, request, sizeof(*request) + request->host_bytes);
}

/* The queue */

/* Under the mutex. */
static void unlink_request(struct resolver *resolver, struct bow__resolve *request)
{
    struct bow__resolve **at = &resolver->first;

    while (*at != request) {
        at = &(*at)->next;
    }
    *at = request->next;
    if (resolver->end == &request->next) {
        resolver->end = at;
    }
}

/* The thread */

static bool take_next(struct resolver *resolver)
{
    pthread_mutex_lock(&resolver->mutex);
    struct bow__resolve *request = resolver->first;
    if (request == NULL) {
        resolver->is_running = false;
    } else {
        unlink_request(resolver, request);
        request->stage = STAGE_RUNNING;
        resolver->port = request->port;
        memcpy(resolver->host, request->host, request->host_bytes);
    }
    resolver->current = request;
    pthread_mutex_unlock(&resolver->mutex);
    return request != NULL;
}

static void answer(struct resolver *resolver)
{
    pthread_mutex_lock(&resolver->mutex);
    struct bow__resolve *request = resolver->current;
    if (request != NULL) {
        request->resolved = resolver->resolved;
        request->stage = STAGE_DONE;
        if (bow__loop_post_internal(request->loop, &request->task, 0) < 0) {
            request->stage = STAGE_LOST;
        }
    }
    pthread_mutex_unlock(&resolver->mutex);
}

static void resolver_main(void *argument)
{
    struct resolver *resolver = argument;
    const struct bow_system *system = bow__context_system(resolver->context);
    struct bow__resolved *resolved = &resolver->resolved;

    while (take_next(resolver)) {
        resolved->n = system->resolve(system->user, resolver->host, resolver->port,
                                      resolved->addresses, BOW__RESOLVE_MAX, &resolved->reason);
        answer(resolver);
    }
}

/* On the loop. */
static int run_done(void *user)
{
    struct bow__resolve *request = user;

    /* Wait for the thread to leave the post: from here on the loop may go. */
    pthread_mutex_lock(&request->resolver->mutex);
    pthread_mutex_unlock(&request->resolver->mutex);
    if (!request->is_cancelled) {
        request->done(&request->resolved, request->user);
    }
    free_request(request);
    return 0;
}

/* Under the mutex. A thread that is not running any more has nothing left to lock. */
static int start_thread(struct resolver *resolver)
{
    const struct bow_system *system = bow__context_system(resolver->context);
    const struct bow_thread_options options = {.name = "bow-resolver", .cpu = -1};

    if (resolver->is_running) {
        return 0;
    }
    if (resolver->thread != NULL) {
        system->thread_join(system->user, resolver->thread);
        resolver->thread = NULL;
    }
    int rc =
        system->thread_start(system->user, &options, resolver_main, resolver, &resolver->thread);
    resolver->is_running = rc == 0;
    return rc;
}

/* The context's slot */

static void resolver_init(void *object, struct bow_context *context)
{
    struct resolver *resolver = object;

    resolver->context = context;
    resolver->end = &resolver->first;
    pthread_mutex_init(&resolver->mutex, NULL);
}

static void resolver_fini(void *object)
{
    struct resolver *resolver = object;
    const struct bow_system *system = bow__context_system(resolver->context);

    if (resolver->thread != NULL) {
        system->thread_join(system->user, resolver->thread);
    }
    pthread_mutex_destroy(&resolver->mutex);
}

static const struct bow__slot_ops resolver_slot = {
    .size = sizeof(struct resolver),
    .has_thread = true,
    .init = resolver_init,
    .fini = resolver_fini,
};

/* Asking */

static struct bow__resolve *new_request(struct bow_loop *loop, const char *host)
{
    struct bow_context *context = bow_loop_context(loop);
    size_t host_bytes = strlen(host) + 1;
    struct bow__resolve *request = bow__alloc_zero(context, sizeof(*request) + host_bytes);

    assert(host_bytes <= BOW__HOST_BYTES);
    if (request == NULL) {
        return NULL;
    }
    request->context = context;
    request->loop = loop;
    request->host_bytes = host_bytes;
    request->stage = STAGE_QUEUED;
    memcpy(request->host, host, host_bytes);
    bow_task_init(&request->task, "resolved", run_done, request);
    return request;
}

int bow__resolve_start(struct bow_loop *loop, const char *host, uint16_t port, bow__resolve_fn done,
                       void *user, struct bow__resolve **ret_resolve)
{
    struct resolver *resolver =
        bow__context_slot(bow_loop_context(loop), BOW__SLOT_RESOLVER, &resolver_slot);
    if (resolver == NULL) {
        return -ENOMEM;
    }
    struct bow__resolve *request = new_request(loop, host);
    if (request == NULL) {
        return -ENOMEM;
    }
    request->resolver = resolver;
    request->port = port;
    request->done = done;
    request->user = user;

    pthread_mutex_lock(&resolver->mutex);
    int rc = start_thread(resolver);
    if (rc == 0) {
        *resolver->end = request;
        resolver->end = &request->next;
    }
    pthread_mutex_unlock(&resolver->mutex);
    if (rc < 0) {
        free_request(request);
        return rc;
    }
    *ret_resolve = request;
    return 0;
}

void bow__resolve_cancel(struct bow__resolve *request)
{
    struct resolver *resolver = request->resolver;

    pthread_mutex_lock(&resolver->mutex);
    enum stage stage = request->stage;
    if (stage == STAGE_QUEUED) {
        unlink_request(resolver, request);
    } else if (stage == STAGE_RUNNING) {
        resolver->current = NULL;
    }
    pthread_mutex_unlock(&resolver->mutex);
    if (stage == STAGE_DONE) {
        request->is_cancelled = true;
        return;
    }
    free_request(request);
}
