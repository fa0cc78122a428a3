/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Clients' targets "etcd:///SERVICE": what a watch is told goes to the client's loop. How servers
 * are found, the watch knows; what becomes of their addresses, the client.
 *
 *     etcd's loop                           the client's loop
 *     on_update ──► newest ──► telling ───► last ──► bow_resolver_update()
 *     on_closed                             stop: no telling any more
 *
 * Design. `newest` and the flags are both loops', under the lock; `last` is the client's alone.
 * Updates overtake one another: the newest is the whole set. The memory goes when the watch has
 * closed, the client has stopped and no telling is posted (`refs`).
 */

#include "etcd/resolver.h"
#include "base/alloc.h"
#include "etcd/core.h"
#include "etcd/watch.h"
#include <bowline/arena.h>

#include <errno.h>
#include <string.h>

/* Of an update; all lies in the arena. */
struct known {
    struct bow_arena *arena; /* NULL: nothing was told */
    struct bow_resolver_address *addresses;
    size_t n_addresses;
    const char *error; /* NULL: none */
    bool is_known;     /* the addresses are what etcd had, not nothing for want of knowing */
};

struct lookup {
    struct bow_context *context; /* a reference */
    struct bow_loop *loop;       /* the client's, who has it until stop() */
    struct bow_resolver_watch *watch;
    struct bow_etcd_watch *servers;
    struct bow_task telling;
    struct known last;
    atomic_uint refs;

    pthread_mutex_t lock;
    struct known newest;
    bool is_posted; /* telling */
    bool is_closed; /* no update comes any more */
    bool is_stopped;
};

/* Copies */

static const char *copy_text(struct bow_arena *arena, const char *text)
{
    size_t size = text != NULL ? strlen(text) + 1 : 0;
    char *copied = size > 0 ? bow_arena_alloc(arena, size) : NULL;

    if (copied != NULL) {
        memcpy(copied, text, size);
    }
    return copied;
}

/* Returns 0 or -ENOMEM. */
static int copy(struct bow_context *context, const struct bow_etcd_update *update,
                struct known *ret_known)
{
    struct bow_arena *arena = bow_arena_new(context, 0);
    size_t n = update->n_servers;
    struct known known = {.arena = arena, .is_known = update->revision != 0};

    known.addresses = bow_arena_alloc(arena, (n > 0 ? n : 1) * sizeof(*known.addresses));
    for (size_t i = 0; i < n && known.addresses != NULL; i++) {
        const struct bow_etcd_server *server = &update->servers[i];
        known.addresses[known.n_addresses++] = (struct bow_resolver_address){
            .address = copy_text(arena, server->address),
            .locality = copy_text(arena, server->locality),
            .weight = server->weight,
        };
    }
    known.error = copy_text(arena, update->error);
    if (arena == NULL || bow_arena_failed(arena)) {
        bow_arena_free(arena);
        return -ENOMEM;
    }
    *ret_known = known;
    return 0;
}

/* Life */

static void unref(struct lookup *lookup)
{
    struct bow_context *context = lookup->context;

    if (atomic_fetch_sub_explicit(&lookup->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    bow_arena_free(lookup->newest.arena);
    bow_arena_free(lookup->last.arena);
    pthread_mutex_destroy(&lookup->lock);
    bow__free(context, lookup, sizeof(*lookup));
    bow_context_unref(context);
}

/* The client's loop */

/* The servers that were the last stay in use beside an error: what is news is told whole. */
static void tell(struct lookup *lookup, bool is_closed, bool is_news)
{
    struct bow_resolver_update update = BOW_RESOLVER_UPDATE_INIT;
    const struct known *known = &lookup->last;
    const char *error = is_closed ? "bow_etcd_stop(), or the end of its loop, has ended its watch" : known->error;

    if (known->is_known && (is_news || error == NULL)) {
        update.addresses = known->addresses;
        update.n_addresses = known->n_addresses;
        bow_resolver_update(lookup->watch, &update);
    }
    if (error != NULL) {
        update.error = error;
        bow_resolver_update(lookup->watch, &update);
    }
}

static int telling_task(void *user)
{
    struct lookup *lookup = user;

    pthread_mutex_lock(&lookup->lock);
    struct known newest = lookup->newest;
    bool is_closed = lookup->is_closed;
    bool is_stopped = lookup->is_stopped;
    lookup->newest = (struct known){.arena = NULL};
    lookup->is_posted = false;
    pthread_mutex_unlock(&lookup->lock);
    if (newest.arena != NULL) {
        bow_arena_free(lookup->last.arena);
        lookup->last = newest;
    }
    if (!is_stopped) {
        tell(lookup, is_closed, true);
    }
    unref(lookup);
    return 0;
}

/* A change comes by itself; this says that what was told is what etcd has. While nothing was told
 * the first update is still to come. */
static void refresh(void *state)
{
    struct lookup *lookup = state;

    pthread_mutex_lock(&lookup->lock);
    bool is_closed = lookup->is_closed;
    pthread_mutex_unlock(&lookup->lock);
    tell(lookup, is_closed, false);
}

static void stop(void *state)
{
    struct lookup *lookup = state;

    pthread_mutex_lock(&lookup->lock);
    lookup->is_stopped = true;
    pthread_mutex_unlock(&lookup->lock);
    bow_etcd_unwatch(lookup->servers);
    unref(lookup);
}

/* etcd's loop */

/* Under the lock: the client's loop lives until stop(). */
static void post(struct lookup *lookup)
{
    if (lookup->is_stopped || lookup->is_posted) {
        return;
    }
    atomic_fetch_add_explicit(&lookup->refs, 1, memory_order_relaxed);
    lookup->is_posted = bow_loop_post(lookup->loop, &lookup->telling) == 0;
    if (!lookup->is_posted) {
        atomic_fetch_sub_explicit(&lookup->refs, 1, memory_order_relaxed); /* not the last */
    }
}

static void on_update(struct bow_etcd_watch *watch, const struct bow_etcd_update *update,
                      void *user)
{
    struct lookup *lookup = user;
    struct known known;

    if (copy(lookup->context, update, &known) < 0) {
        bow__etcd_watch_again(watch);
        return;
    }
    pthread_mutex_lock(&lookup->lock);
    struct bow_arena *before = lookup->newest.arena;
    lookup->newest = known;
    post(lookup);
    pthread_mutex_unlock(&lookup->lock);
    bow_arena_free(before);
}

static void on_closed(struct bow_etcd_watch *watch, void *user)
{
    struct lookup *lookup = user;

    (void)watch;
    pthread_mutex_lock(&lookup->lock);
    lookup->is_closed = true;
    post(lookup);
    pthread_mutex_unlock(&lookup->lock);
    unref(lookup);
}

/* Beginning */

static int start(const struct bow_resolver *resolver, struct bow_loop *loop, const char *name,
                 struct bow_resolver_watch *watch, void **ret_state)
{
    static const struct bow_etcd_watch_events events = {on_update, on_closed};
    struct bow_etcd *etcd = resolver->user;

    if (strncmp(name, "//", 2) == 0) {
        return -EINVAL; /* "etcd://HOST/SERVICE": which etcd it is was said already */
    }
    struct lookup *lookup = bow__alloc_zero(etcd->context, sizeof(*lookup));
    if (lookup == NULL) {
        return -ENOMEM;
    }
    lookup->context = bow_context_ref(etcd->context);
    lookup->loop = loop;
    lookup->watch = watch;
    bow_task_init(&lookup->telling, "etcd's servers", telling_task, lookup);
    pthread_mutex_init(&lookup->lock, NULL);
    atomic_init(&lookup->refs, 2);
    int rc = bow_etcd_watch(etcd, name, &events, lookup, &lookup->servers);
    if (rc < 0) {
        atomic_init(&lookup->refs, 1);
        unref(lookup);
        return rc;
    }
    *ret_state = lookup;
    return 0;
}

void bow__etcd_resolver_init(struct bow_etcd *etcd)
{
    etcd->resolver = (struct bow_resolver){
        .size = sizeof(etcd->resolver),
        .scheme = "etcd",
        .start = start,
        .refresh = refresh,
        .stop = stop,
        .user = etcd,
    };
}

const struct bow_resolver *bow_etcd_resolver(const struct bow_etcd *etcd)
{
    return &etcd->resolver;
}
