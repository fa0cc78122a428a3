/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The look-ups of a context: which names are asked for, who waits for them, the threads that ask.
 * Knows nothing of how a name is looked up, which is the system table's resolve().
 *
 * Why threads: getaddrinfo() asks whatever a host's nsswitch.conf names (files, mDNS,
 * systemd-resolved, directories); a library that speaks DNS on the loop, such as c-ares, knows
 * servers and a file alone, and brings a clock and sockets that are not the table's.
 * getaddrinfo_a() has threads as well, fewer than may hang, tells of its end by a signal or a
 * thread, and cannot give up what it has begun.
 *
 * Each name is looked up once at a time, for all who want it, each on a thread of its own: one that
 * hangs holds up nobody who asks for another. At most BOW_LIMIT_LOOKUPS are under way, the others
 * wait in order. A thread that finds no further name ends; whoever starts the next one, or ends the
 * context, joins it, which takes no longer than the return of a function.
 *
 * A call of getaddrinfo() cannot be ended. The end of the context does not wait for it, but leaves
 * the thread to itself: that one finds out when it comes back, touches nothing but what is in here,
 * and goes. Its code must be there then, so the library stays mapped (base/keep_loaded.h).
 *
 * Design
 *
 * `mutex` guards all of struct resolver, the `stage` of each request until it is DONE, and each
 * lookup but its `resolved`, which is its thread's while it runs. A request's task is posted under
 * the mutex: a cancel comes either before it, and there is no post, or after it, and finds DONE.
 * So the loop is alive when it is posted to: an asker cancels before its loop ends.
 *
 * The resolver, its lookups and workers may outlive the context and its allocator, so they are
 * malloc()'s. Whoever makes it true that it has ended and no thread is left frees the resolver.
 */

#include "transport/address/resolver.h"
#include "base/alloc.h"
#include "base/keep_loaded.h"
#include "base/slot.h"
#include "transport/address/address.h"

#include <assert.h>
#include <bowline/limits.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum stage {
    STAGE_ASKED,
    STAGE_DONE,
    STAGE_LOST, /* the loop refused the task */
};

/* Somebody who waits for a name. */
struct bow__resolve {
    struct bow__resolve *next; /* for the same name */
    struct bow_context *context;
    struct bow_loop *loop;
    struct resolver *resolver;
    struct lookup *lookup; /* ASKED only */
    struct bow_task task;
    enum stage stage;
    bool is_cancelled; /* DONE, and its task is still to run. Loop only. */
    bow__resolve_fn done;
    void *user;
    uint16_t port;
    struct bow__resolved resolved;
};

/* A name that waits for a thread, or has one. */
struct lookup {
    struct lookup *next;
    struct bow__resolve *requests; /* may be none while it runs */
    bool is_running;
    uint16_t port; /* of who asked first */
    struct bow__resolved resolved;
    char host[BOW__HOST_BYTES];
};

struct worker {
    struct worker *next; /* of those that have finished */
    struct resolver *resolver;
    struct lookup *lookup; /* that it is about, NULL at its end. Its thread only, once started */
    struct bow_thread *thread;
    /* Of the table, for a thread that is left to itself: the resolver may be gone by then. */
    void *system_user;
    void (*thread_detach)(void *user, struct bow_thread *thread);
};

struct resolver {
    pthread_mutex_t mutex;
    struct lookup *first; /* in the order in which they were asked for */
    struct worker *finished;
    unsigned n_threads; /* that have not finished */
    bool has_ended;     /* with the context: who comes back now is on its own */
    /* Of the table, which may go with the context. */
    void *system_user;
    int (*resolve)(void *user, const char *host, uint16_t port, struct bow_sockaddr *addresses,
                   int max, const char **ret_reason);
};

/* What the context holds. */
struct resolver_slot {
    struct bow_context *context;
    struct resolver *resolver; /* NULL: without memory for it */
};

/* Lookups; all of it under the mutex. */

static struct lookup *find_lookup(const struct resolver *resolver, const char *host)
{
    struct lookup *lookup = resolver->first;

    while (lookup != NULL && strcmp(lookup->host, host) != 0) {
        lookup = lookup->next;
    }
    return lookup;
}

static struct lookup *add_lookup(struct resolver *resolver, const char *host, uint16_t port)
{
    struct lookup **end = &resolver->first;
    struct lookup *lookup = calloc(1, sizeof(*lookup));

    if (lookup == NULL) {
        return NULL;
    }
    lookup->port = port;
    memcpy(lookup->host, host, strlen(host) + 1);
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = lookup;
    return lookup;
}

static void remove_lookup(struct resolver *resolver, struct lookup *lookup)
{
    struct lookup **at = &resolver->first;

    while (*at != lookup) {
        at = &(*at)->next;
    }
    *at = lookup->next;
    free(lookup);
}

/* The threads */

static void free_resolver(struct resolver *resolver)
{
    pthread_mutex_destroy(&resolver->mutex);
    free(resolver);
}

static void answer_one(struct bow__resolve *request, const struct lookup *lookup)
{
    request->resolved = lookup->resolved;
    for (int i = 0; i < request->resolved.n && request->port != lookup->port; i++) {
        bow__sockaddr_set_port(&request->resolved.addresses[i], request->port);
    }
    request->stage = STAGE_DONE;
    if (bow__loop_post_internal(request->loop, &request->task, 0) < 0) {
        request->stage = STAGE_LOST;
    }
}

/* Tell those who wait. */
static void answer(struct resolver *resolver, struct lookup *lookup)
{
    for (struct bow__resolve *at = lookup->requests; at != NULL; at = at->next) {
        answer_one(at, lookup);
    }
    remove_lookup(resolver, lookup);
}

static struct lookup *first_waiting(const struct resolver *resolver)
{
    struct lookup *lookup = resolver->first;

    while (lookup != NULL && lookup->is_running) {
        lookup = lookup->next;
    }
    return lookup;
}

/* Answer for the lookup that has come back, and take the next: in one go, so that a thread is in
 * resolve(), or about to be, or has finished, and never between two. */
static void go_on(struct worker *worker)
{
    struct resolver *resolver = worker->resolver;

    answer(resolver, worker->lookup);
    worker->lookup = resolver->has_ended ? NULL : first_waiting(resolver);
    if (worker->lookup != NULL) {
        worker->lookup->is_running = true;
        return;
    }
    resolver->n_threads--;
    if (!resolver->has_ended) {
        worker->next = resolver->finished;
        resolver->finished = worker;
    }
}

/* The context has ended, and nobody joins this thread: its last act. */
static void leave(struct worker *worker, bool is_last)
{
    const struct worker own = *worker;

    if (is_last) {
        free_resolver(worker->resolver);
    }
    free(worker);
    own.thread_detach(own.system_user, own.thread);
}

static void resolver_main(void *argument)
{
    struct worker *worker = argument;
    struct resolver *resolver = worker->resolver;
    bool has_ended = false;
    bool is_last = false;

    for (struct lookup *lookup = worker->lookup; lookup != NULL;) {
        struct bow__resolved *resolved = &lookup->resolved;
        resolved->n = resolver->resolve(resolver->system_user, lookup->host, lookup->port,
                                        resolved->addresses, BOW__RESOLVE_MAX, &resolved->reason);
        pthread_mutex_lock(&resolver->mutex);
        go_on(worker);
        lookup = worker->lookup;
        has_ended = resolver->has_ended;
        is_last = resolver->n_threads == 0;
        pthread_mutex_unlock(&resolver->mutex);
    }
    if (has_ended) {
        leave(worker, is_last);
    }
}

static void join_finished(struct bow_context *context, struct worker *finished)
{
    const struct bow_system *system = bow__context_system(context);

    while (finished != NULL) {
        struct worker *next = finished->next;
        system->thread_join(system->user, finished->thread);
        free(finished);
        finished = next;
    }
}

/* Under the mutex, which the thread takes before it looks at its handle. */
static int start_thread(struct resolver *resolver, struct bow_context *context,
                        struct lookup *lookup)
{
    const struct bow_system *system = bow__context_system(context);
    const struct bow_thread_options options = {.name = "bow-resolver", .cpu = -1};
    struct worker *worker = calloc(1, sizeof(*worker));

    if (worker == NULL) {
        return -ENOMEM;
    }
    worker->resolver = resolver;
    worker->lookup = lookup;
    worker->system_user = system->user;
    worker->thread_detach = system->thread_detach;
    int rc = system->thread_start(system->user, &options, resolver_main, worker, &worker->thread);
    if (rc < 0) {
        free(worker);
        return rc;
    }
    lookup->is_running = true;
    resolver->n_threads++;
    return 0;
}

/* The context's slot */

static void slot_init(void *object, struct bow_context *context)
{
    const struct bow_system *system = bow__context_system(context);
    struct resolver_slot *slot = object;
    struct resolver *resolver = calloc(1, sizeof(*resolver));

    slot->context = context;
    slot->resolver = resolver;
    if (resolver != NULL) {
        pthread_mutex_init(&resolver->mutex, NULL);
        resolver->system_user = system->user;
        resolver->resolve = system->resolve;
    }
}

/* No loop is left, so nobody waits for a name: each lookup that there is has its thread. */
static void slot_fini(void *object)
{
    struct resolver_slot *slot = object;
    struct resolver *resolver = slot->resolver;

    if (resolver == NULL) {
        return;
    }
    pthread_mutex_lock(&resolver->mutex);
    struct worker *finished = resolver->finished;
    bool is_last = resolver->n_threads == 0;
    if (!is_last) {
        bow__keep_loaded();
    }
    resolver->has_ended = true;
    pthread_mutex_unlock(&resolver->mutex);
    join_finished(slot->context, finished);
    if (is_last) {
        free_resolver(resolver);
    }
}

static const struct bow__slot_ops resolver_slot_ops = {
    .size = sizeof(struct resolver_slot),
    .has_thread = true,
    .init = slot_init,
    .fini = slot_fini,
};

/* Asking */

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
    bow__free(request->context, request, sizeof(*request));
    return 0;
}

/* Under the mutex. */
static int ask(struct resolver *resolver, struct bow__resolve *request, const char *host)
{
    struct lookup *lookup = find_lookup(resolver, host);

    if (lookup == NULL) {
        lookup = add_lookup(resolver, host, request->port);
        if (lookup == NULL) {
            return -ENOMEM;
        }
        int rc = resolver->n_threads < BOW_LIMIT_LOOKUPS
                     ? start_thread(resolver, request->context, lookup)
                     : 0;
        /* One that is at work takes it later. */
        if (rc < 0 && resolver->n_threads == 0) {
            remove_lookup(resolver, lookup);
            return rc;
        }
    }
    request->lookup = lookup;
    request->next = lookup->requests;
    lookup->requests = request;
    return 0;
}

int bow__resolve_start(struct bow_loop *loop, const char *host, uint16_t port, bow__resolve_fn done,
                       void *user, struct bow__resolve **ret_resolve)
{
    struct bow_context *context = bow_loop_context(loop);
    const struct resolver_slot *slot =
        bow__context_slot(context, BOW__SLOT_RESOLVER, &resolver_slot_ops);
    struct resolver *resolver = slot != NULL ? slot->resolver : NULL;
    struct bow__resolve *request =
        resolver != NULL ? bow__alloc_zero(context, sizeof(*request)) : NULL;

    assert(strlen(host) < BOW__HOST_BYTES);
    if (request == NULL) {
        return -ENOMEM;
    }
    request->context = context;
    request->loop = loop;
    request->resolver = resolver;
    request->stage = STAGE_ASKED;
    request->port = port;
    request->done = done;
    request->user = user;
    bow_task_init(&request->task, "resolved", run_done, request);

    pthread_mutex_lock(&resolver->mutex);
    struct worker *finished = resolver->finished;
    resolver->finished = NULL;
    int rc = ask(resolver, request, host);
    pthread_mutex_unlock(&resolver->mutex);
    join_finished(context, finished);
    if (rc < 0) {
        bow__free(context, request, sizeof(*request));
        return rc;
    }
    *ret_resolve = request;
    return 0;
}

bool bow__resolve_is_waiting(const struct bow__resolve *request)
{
    pthread_mutex_lock(&request->resolver->mutex);
    bool is_waiting = request->stage == STAGE_ASKED && !request->lookup->is_running;
    pthread_mutex_unlock(&request->resolver->mutex);
    return is_waiting;
}

/* Under the mutex. One that runs goes on: who asks for the name again joins it. */
static void withdraw(struct resolver *resolver, struct bow__resolve *request)
{
    struct lookup *lookup = request->lookup;
    struct bow__resolve **at = &lookup->requests;

    while (*at != request) {
        at = &(*at)->next;
    }
    *at = request->next;
    if (lookup->requests == NULL && !lookup->is_running) {
        remove_lookup(resolver, lookup);
    }
}

void bow__resolve_cancel(struct bow__resolve *request)
{
    struct resolver *resolver = request->resolver;

    pthread_mutex_lock(&resolver->mutex);
    enum stage stage = request->stage;
    if (stage == STAGE_ASKED) {
        withdraw(resolver, request);
    }
    pthread_mutex_unlock(&resolver->mutex);
    if (stage == STAGE_DONE) {
        request->is_cancelled = true;
        return;
    }
    bow__free(request->context, request, sizeof(*request));
}
