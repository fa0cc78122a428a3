/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The names of a context that are listened on, and the connections that wait there.
 * Knows nothing of how bytes go over them.
 */

#include "transport/memory/inproc.h"
#include "base/alloc.h"
#include "base/claim.h"
#include "base/slot.h"
#include "transport/address/transport_error.h"
#include "transport/loop/readiness.h"
#include "transport/memory/inproc_fault.h"

#include <errno.h>
#include <string.h>

struct names {
    struct bow_context *context;
    int made_by;             /* a process */
    atomic_int used_by;      /* the process that first took the mutex but to listen; 0: none */
    atomic_uint n_listening; /* threads of the maker that take it for that */
    pthread_mutex_t mutex;   /* guards the list, and all of its listeners */
    struct bow__link listeners;
    struct bow__inproc_faults *faults; /* of a test; NULL: none */
};

struct bow__inproc_listener {
    struct bow__readiness readiness;
    void (*set)(struct bow__source *source, struct bow_loop *loop, struct bow__watch *watch,
                uint32_t events); /* the readiness's own */
    struct names *names;
    struct bow__link link;
    struct bow__inproc_end *first; /* waits longest */
    struct bow__inproc_end **last;
    int n_waiting;
    int max_waiting;
    uint32_t refs; /* who listens, and the readiness while it is due */
    char name[];
};

/* The names of a context */

static void init_names(void *object, struct bow_context *context)
{
    struct names *names = object;

    names->context = context;
    names->made_by = bow__process_id(bow__context_process(context));
    pthread_mutex_init(&names->mutex, NULL);
    bow__list_init(&names->listeners);
}

static void fini_names(void *object)
{
    struct names *names = object;

    pthread_mutex_destroy(&names->mutex);
}

static bool is_maker(const struct names *names)
{
    return names->made_by == bow__process_id(bow__context_process(names->context));
}

/* In a child process the mutex may be held for ever: by who has used it, or was about to listen. */
static bool are_foreign(const void *object)
{
    const struct names *names = object;

    return bow__is_claimed_elsewhere(bow__context_process(names->context), &names->used_by) ||
           (!is_maker(names) && atomic_load(&names->n_listening) > 0);
}

static struct names *names_of(struct bow_context *context)
{
    static const struct bow__slot_ops ops = {.size = sizeof(struct names),
                                             .is_foreign = are_foreign,
                                             .init = init_names,
                                             .fini = fini_names};

    return bow__context_slot(context, BOW__SLOT_INPROC, &ops);
}

static struct bow__inproc_listener *find(const struct names *names, const char *name)
{
    struct bow__link *link = names->listeners.next;

    for (; link != &names->listeners; link = link->next) {
        struct bow__inproc_listener *listener =
            BOW__CONTAINER(link, struct bow__inproc_listener, link);
        if (strcmp(listener->name, name) == 0) {
            return listener;
        }
    }
    return NULL;
}

static bool claim(struct names *names)
{
    return !are_foreign(names) && bow__claim(bow__context_process(names->context), &names->used_by);
}

/* Returns 0, with the mutex locked, or -ECHILD. */
static int lock(struct names *names)
{
    if (!claim(names)) {
        return -ECHILD;
    }
    pthread_mutex_lock(&names->mutex);
    return 0;
}

/* Who has only listened may still fork: what is listened on goes along to the child. */
static int lock_to_listen(struct names *names)
{
    if (!is_maker(names)) {
        return lock(names);
    }
    atomic_fetch_add(&names->n_listening, 1);
    pthread_mutex_lock(&names->mutex);
    return 0;
}

static void unlock_after_listening(struct names *names)
{
    pthread_mutex_unlock(&names->mutex);
    if (is_maker(names)) {
        atomic_fetch_sub(&names->n_listening, 1);
    }
}

/* The readiness of a listener */

static struct bow__inproc_listener *listener_of(const struct bow__readiness *readiness)
{
    return BOW__CONTAINER((uintptr_t)readiness, struct bow__inproc_listener, readiness);
}

static uint32_t ready(const struct bow__readiness *readiness)
{
    return listener_of(readiness)->first != NULL ? BOW_POLL_IN : 0;
}

static void hold(struct bow__readiness *readiness)
{
    listener_of(readiness)->refs++;
}

/* The first one to lock the mutex for the readiness, on the loop. */
static void set_interest(struct bow__source *source, struct bow_loop *loop,
                         struct bow__watch *watch, uint32_t events)
{
    struct bow__inproc_listener *listener =
        BOW__CONTAINER(source, struct bow__inproc_listener, readiness.source);

    if (claim(listener->names)) {
        listener->set(source, loop, watch, events);
    }
}

static void free_listener(struct bow__inproc_listener *listener)
{
    bow__readiness_fini(&listener->readiness);
    bow__free(listener->names->context, listener, sizeof(*listener) + strlen(listener->name) + 1);
}

static void release(struct bow__readiness *readiness)
{
    struct bow__inproc_listener *listener = listener_of(readiness);

    if (lock(listener->names) < 0) {
        return; /* its memory is the parent's copy, and stays */
    }
    bool is_last = --listener->refs == 0;
    pthread_mutex_unlock(&listener->names->mutex);
    if (is_last) {
        free_listener(listener);
    }
}

static const struct bow__readiness_ops readiness_ops = {
    .ready = ready, .hold = hold, .release = release};

/* Listening */

static struct bow__inproc_listener *new_listener(struct names *names, const char *name, int backlog)
{
    size_t name_bytes = strlen(name) + 1;
    struct bow__inproc_listener *listener =
        bow__alloc_zero(names->context, sizeof(*listener) + name_bytes);

    if (listener == NULL) {
        return NULL;
    }
    bow__readiness_init(&listener->readiness, &readiness_ops, &names->mutex);
    listener->set = listener->readiness.source.set;
    listener->readiness.source.set = set_interest;
    listener->names = names;
    listener->last = &listener->first;
    listener->max_waiting = backlog;
    listener->refs = 1;
    memcpy(listener->name, name, name_bytes);
    return listener;
}

int bow__inproc_listen(struct bow_context *context, const char *name, int backlog,
                       struct bow__inproc_listener **ret_listener)
{
    struct names *names = names_of(context);
    struct bow__inproc_listener *listener =
        names != NULL ? new_listener(names, name, backlog) : NULL;

    if (listener == NULL) {
        return -ENOMEM;
    }
    int rc = lock_to_listen(names);
    if (rc < 0) {
        free_listener(listener);
        return rc;
    }
    bool is_free = find(names, name) == NULL;
    if (is_free) {
        bow__list_push_back(&names->listeners, &listener->link);
    }
    unlock_after_listening(names);
    if (!is_free) {
        free_listener(listener);
        return -EADDRINUSE;
    }
    *ret_listener = listener;
    return 0;
}

static struct bow__inproc_end *pop(struct bow__inproc_listener *listener)
{
    struct bow__inproc_end *end = listener->first;

    if (end == NULL) {
        return NULL;
    }
    listener->first = *bow__inproc_next(end);
    if (listener->first == NULL) {
        listener->last = &listener->first;
    }
    listener->n_waiting--;
    return end;
}

/* The far end of a connection, which is the caller's to close, or NULL. */
static struct bow__inproc_end *take_waiting(struct bow__inproc_listener *listener)
{
    if (lock(listener->names) < 0) {
        return NULL;
    }
    struct bow__inproc_end *end = pop(listener);
    pthread_mutex_unlock(&listener->names->mutex);
    return end;
}

/* Nobody can connect any more; who waits can be accepted. Idempotent. */
static void hide(struct bow__inproc_listener *listener)
{
    if (lock(listener->names) < 0) {
        return;
    }
    bow__list_remove(&listener->link);
    pthread_mutex_unlock(&listener->names->mutex);
}

void bow__inproc_unlisten(struct bow__inproc_listener *listener)
{
    struct bow__inproc_end *end;

    hide(listener);
    while ((end = take_waiting(listener)) != NULL) {
        bow__inproc_reset(end);
    }
    release(&listener->readiness);
}

/* Connecting */

static int push(struct names *names, const char *name, struct bow__inproc_end *end)
{
    int rc = lock(names);
    if (rc < 0) {
        return rc;
    }
    struct bow__inproc_listener *listener = find(names, name);
    rc = listener == NULL ? -ECONNREFUSED : 0;
    if (rc == 0 && listener->n_waiting >= listener->max_waiting) {
        rc = -EAGAIN;
    }
    bool must_notify = false;
    if (rc == 0) {
        *listener->last = end;
        listener->last = bow__inproc_next(end);
        listener->n_waiting++;
        must_notify = bow__readiness_must_notify(&listener->readiness, BOW_POLL_IN);
    }
    pthread_mutex_unlock(&names->mutex);
    if (must_notify) {
        bow__readiness_notify(&listener->readiness);
    }
    return rc;
}

static int set_faults(struct bow_context *context, struct bow__inproc_faults *faults)
{
    struct names *names = names_of(context);

    if (names == NULL) {
        return -ENOMEM;
    }
    names->faults = faults;
    return 0;
}

static bool is_refused(const struct names *names)
{
    return names->faults != NULL &&
           atomic_load_explicit(&names->faults->refuses, memory_order_relaxed);
}

int bow__inproc_connect(struct bow_context *context, const char *name,
                        struct bow__inproc_end **ret_end)
{
    struct names *names = names_of(context);
    struct bow__inproc_end *ends[2];

    if (names == NULL) {
        return -ENOMEM;
    }
    if (is_refused(names)) {
        return -ECONNREFUSED;
    }
    int rc = bow__inproc_pair_new(context, names->faults, ends);
    if (rc < 0) {
        return rc;
    }
    rc = push(names, name, ends[1]);
    if (rc < 0) {
        for (int i = 0; i < 2; i++) {
            bow__inproc_reset(ends[i]);
        }
        return rc;
    }
    *ret_end = ends[0];
    return 0;
}

int bow__inproc_faults_init(struct bow__inproc_faults *faults, struct bow_context *context)
{
    bow__inproc_faults_clear(faults);
    return set_faults(context, faults);
}

/* The transport */

static bool serves(enum bow__address_kind kind)
{
    return kind == BOW__ADDRESS_INPROC;
}

static int connect_inproc(struct bow_context *context, const struct bow_sockaddr *address,
                          const struct bow_sockaddr *source, struct bow__socket *ret_socket)
{
    struct bow__inproc_end *end = NULL;
    (void)source;

    int rc = bow__inproc_connect(context, bow__address_inproc_name(address), &end);
    if (rc < 0) {
        return rc;
    }
    *ret_socket = bow__inproc_socket(end);
    return 1;
}

static void abandon(const struct bow__socket *socket)
{
    bow__inproc_reset(socket->system->user);
}

/* Two contexts in one process are the likely reason, which "is it running?" would hide. */
static const char *advice(int error)
{
    return error == -ECONNREFUSED ? "nobody listens on that name of this context; server and "
                                    "client must share one (options.context)"
                                  : NULL;
}

static int listen_on(struct bow__listening *listening, struct bow_context *context,
                     const struct bow__address *address, const char *text, int backlog,
                     struct bow_transport_error *ret_error)
{
    struct bow__inproc_listener *listener = NULL;

    if (listening->shares != BOW__SHARES_NOTHING) {
        return bow__transport_error(ret_error, "binding", text, -EINVAL,
                                    "an inproc name can't be listened on by each worker");
    }
    listening->peer = address->sockaddr;
    int rc = bow__inproc_listen(context, bow__address_inproc_name(&address->sockaddr),
                                backlog != 0 ? backlog : SOMAXCONN, &listener);
    if (rc < 0) {
        return bow__transport_error(ret_error, "binding", text, rc,
                                    rc == -EADDRINUSE ? "somebody listens on that name of this "
                                                        "context already; choose another"
                                                      : NULL);
    }
    listening->object = listener;
    listening->source = &listener->readiness.source;
    return 0;
}

static int accept_inproc(struct bow__listening *listening, struct bow__socket *ret_socket,
                         struct bow_sockaddr *ret_peer)
{
    struct bow__inproc_end *end = take_waiting(listening->object);

    if (end == NULL) {
        return -EAGAIN;
    }
    *ret_socket = bow__inproc_socket(end);
    *ret_peer = listening->peer;
    return 0;
}

static bool refuse_new(struct bow__listening *listening)
{
    hide(listening->object);
    return true;
}

static void close_listening(struct bow__listening *listening)
{
    if (listening->object != NULL) {
        bow__inproc_unlisten(listening->object);
        listening->object = NULL;
    }
}

const struct bow__transport bow__inproc_transport = {
    .serves = serves,
    .connect = connect_inproc,
    .abandon = abandon,
    .advice = advice,
    .listen = listen_on,
    .accept = accept_inproc,
    .refuse_new = refuse_new,
    .close = close_listening,
    .undo = close_listening,
};
