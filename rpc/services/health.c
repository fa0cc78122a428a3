/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Answers to who asks for health, and those who watch it, loop by loop. What state is shown, of a
 * server that drains, too: health_states.c. That it drains is told by server_stop.c.
 */

#include "rpc/services/health.h"
#include "base/alloc.h"
#include "base/text.h"
#include "rpc/core/call/call.h"
#include "rpc/core/call/call_stream_output.h"
#include "rpc/services/generated/grpc/health/v1/health.bow.h"
#include "transport/channel/channel_core.h"
#include "transport/loop/loop.h"

#include <errno.h>
#include <string.h>

#define NOTHING_TOLD (-1)
#define SHOWN_NAME_BYTES 200u
/* How often it is looked whether a watcher that is behind can be told more. */
#define BEHIND_LOOK_NS (UINT64_C(100) * 1000000)

static const char server_ends[] = "the server is shutting down: its health is watched no more";
static const char connection_ends[] =
    "the connection is to end, for it has reached its max_age_ns: watch on another";

/* One call of Watch; in the call's memory, and gone with its on_closed. */
struct watcher {
    struct bow__link link; /* in its loop's watchers */
    struct bow_call *call;
    struct bow__health_loop *loop;
    const char *service; /* the request's */
    int told;            /* the state that was sent last */
    uint64_t blocked_ns; /* since when its socket was full when that was sent; 0: it was not */
    bool is_leaving;     /* with its connection */
};

/* Loops */

void bow__health_init(struct bow__health *health, struct bow_context *context,
                      bool (*is_leaving)(const struct bow_call *call))
{
    *health = (struct bow__health){.is_leaving = is_leaving};
    bow__health_states_init(&health->states, context);
    pthread_mutex_init(&health->loops_lock, NULL);
}

void bow__health_fini(struct bow__health *health)
{
    if (health->states.context != NULL) {
        pthread_mutex_destroy(&health->loops_lock);
        bow__health_states_fini(&health->states);
    }
}

static void unref_loop(struct bow__health_loop *loop)
{
    struct bow_context *context = loop->context;

    if (atomic_fetch_sub_explicit(&loop->refs, 1, memory_order_acq_rel) == 1) {
        bow__free(context, loop, sizeof(*loop));
        bow_context_unref(context);
    }
}

int bow__health_make_loops(struct bow__health *health, uint32_t n)
{
    struct bow__health_loop **loops =
        bow__alloc_array(health->states.context, n, sizeof(struct bow__health_loop *));

    if (loops == NULL) {
        return -ENOMEM;
    }
    pthread_mutex_lock(&health->loops_lock);
    health->loops = loops;
    health->n_loops = n;
    pthread_mutex_unlock(&health->loops_lock);
    return 0;
}

void bow__health_free_loops(struct bow__health *health)
{
    pthread_mutex_lock(&health->loops_lock);
    for (uint32_t i = 0; i < health->n_loops; i++) {
        if (health->loops[i] != NULL) {
            unref_loop(health->loops[i]);
        }
    }
    if (health->loops != NULL) {
        bow__free(health->states.context, health->loops,
                  health->n_loops * sizeof(struct bow__health_loop *));
    }
    health->loops = NULL;
    health->n_loops = 0;
    pthread_mutex_unlock(&health->loops_lock);
}

/* Watchers */

/* Whether the message before still waits: for credit, or before a socket that has been full since.
 * The peer is told the latest state once that has gone. */
static bool has_unsent(const struct watcher *watcher)
{
    struct bow_call *call = watcher->call;
    uint64_t blocked_ns = bow__channel_stalled_since(call->ops->channel(call));

    bow__call_stream_settle(call, 0);
    return bow__call_stream_waiting(call->stream) > 0 ||
           (blocked_ns != 0 && blocked_ns == watcher->blocked_ns);
}

static void send_state(struct watcher *watcher, int state)
{
    struct bow_call *call = watcher->call;
    Bow__Health__HealthCheckResponse response = BOW__HEALTH__HEALTH_CHECK_RESPONSE__INIT;

    response.status = (Bow__Health__HealthCheckResponse__ServingStatus)state;
    watcher->blocked_ns = bow__channel_stalled_since(call->ops->channel(call));
    int rc = bow_call_send(call, &response.base);
    if (rc == 0) {
        watcher->told = state;
    } else if (rc != -ECANCELED) {
        (void)bow_call_fail(call, BOW_RESOURCE_EXHAUSTED, "the state cannot be sent");
    }
}

static void tell(struct watcher *watcher)
{
    struct bow__health *health = watcher->loop->health;
    int state = bow__health_states_get(&health->states, watcher->service);

    if (state == watcher->told) {
        return;
    }
    if (has_unsent(watcher)) {
        if (!bow_timer_is_armed(&watcher->loop->behind_timer)) {
            bow_timer_start(&watcher->loop->behind_timer, BEHIND_LOOK_NS);
        }
        return;
    }
    send_state(watcher, state);
}

static void look_at(struct watcher *watcher)
{
    if (bow__call_stream_is_over(watcher->call)) {
        return;
    }
    tell(watcher);
    if (atomic_load(&watcher->loop->health->over)) {
        (void)bow_call_fail(watcher->call, BOW_UNAVAILABLE, "%s", server_ends);
    } else if (watcher->is_leaving) {
        (void)bow_call_fail(watcher->call, BOW_UNAVAILABLE, "%s", connection_ends);
    }
}

/* An interceptor may do anything when it sees a message. */
static void look_at_all(struct bow__health_loop *loop)
{
    struct bow__link left;

    bow__list_init(&left);
    bow__list_move(&left, &loop->watchers);
    while (!bow__list_is_empty(&left)) {
        struct bow__link *first = bow__list_pop_front(&left);
        bow__list_push_back(&loop->watchers, first);
        look_at(BOW__CONTAINER(first, struct watcher, link));
    }
}

static int look_task(void *user)
{
    struct bow__health_loop *loop = user;

    atomic_store(&loop->posted, false);
    look_at_all(loop);
    unref_loop(loop);
    return 0;
}

static void on_behind(struct bow_timer *timer, void *user)
{
    (void)timer;
    look_at_all(user);
}

int bow__health_add_loop(struct bow__health *health, struct bow_loop *loop)
{
    struct bow_context *context = health->states.context;
    struct bow__health_loop *added = bow__alloc_zero(context, sizeof(*added));
    uint32_t i = 0;

    if (added == NULL) {
        return -ENOMEM;
    }
    added->context = bow_context_ref(context);
    added->health = health;
    added->loop = loop;
    atomic_init(&added->refs, 1);
    bow__list_init(&added->watchers);
    bow_task_init(&added->task, "look at health", look_task, added);
    bow_timer_init(&added->behind_timer, loop, on_behind, added);
    pthread_mutex_lock(&health->loops_lock);
    while (health->loops[i] != NULL) {
        i++;
    }
    health->loops[i] = added;
    pthread_mutex_unlock(&health->loops_lock);
    return 0;
}

static void post_look(struct bow__health_loop *loop)
{
    if (atomic_load(&loop->n_watchers) == 0 || atomic_exchange(&loop->posted, true)) {
        return;
    }
    atomic_fetch_add_explicit(&loop->refs, 1, memory_order_relaxed);
    if (bow__loop_post_internal(loop->loop, &loop->task, 0) < 0) {
        /* It has shut down, and its calls with it. */
        atomic_store(&loop->posted, false);
        unref_loop(loop);
    }
}

static void post_looks(struct bow__health *health)
{
    pthread_mutex_lock(&health->loops_lock);
    for (uint32_t i = 0; i < health->n_loops; i++) {
        if (health->loops[i] != NULL) {
            post_look(health->loops[i]);
        }
    }
    pthread_mutex_unlock(&health->loops_lock);
}

/* Constant from before the loops run until they have ended. */
static struct bow__health_loop *find_loop(const struct bow__health *health,
                                          const struct bow_loop *loop)
{
    uint32_t i = 0;

    while (health->loops[i]->loop != loop) {
        i++;
    }
    return health->loops[i];
}

/* The service */

static void on_watcher_closed(struct bow__health__health__watch__call call,
                              const struct bow_status *status, void *user)
{
    struct watcher *watcher = user;
    struct bow__health_loop *loop = watcher->loop;

    (void)call;
    (void)status;
    bow__list_remove(&watcher->link);
    if (atomic_fetch_sub(&loop->n_watchers, 1) == 1) {
        bow_timer_stop(&loop->behind_timer);
    }
}

static void watch(struct bow__health__health__watch__call handle,
                  const Bow__Health__HealthCheckRequest *request, void *user)
{
    static const struct bow__health__health__watch__call_events events = {
        .on_closed = on_watcher_closed,
    };
    struct bow__health *health = user;
    struct bow__health_loop *loop = find_loop(health, bow_call_loop(handle.call));
    struct watcher *watcher = bow_call_alloc(handle.call, sizeof(*watcher));

    if (watcher == NULL) {
        (void)bow_call_fail(handle.call, BOW_RESOURCE_EXHAUSTED, "no memory to watch in");
        return;
    }
    *watcher = (struct watcher){
        .call = handle.call,
        .loop = loop,
        .service = request->service,
        .told = NOTHING_TOLD,
        .is_leaving = health->is_leaving(handle.call),
    };
    if (bow__health__health__watch__listen(handle, &events, watcher) < 0) {
        return;
    }
    bow__list_push_back(&loop->watchers, &watcher->link);
    atomic_fetch_add(&loop->n_watchers, 1);
    look_at(watcher);
}

static void refuse_unknown(struct bow_call *call, const char *service)
{
    const struct bow_slice bytes = {(const uint8_t *)service, strlen(service)};
    struct bow__text text;

    bow__text_clear(&text);
    bow__text_printf(&text, "this server knows nothing of the health of service \"");
    bow__text_escape(&text, bytes, SHOWN_NAME_BYTES);
    (void)bow_call_fail(call, BOW_NOT_FOUND, "%s\"", text.bytes);
}

static void check(struct bow_call *call, const Bow__Health__HealthCheckRequest *request, void *user)
{
    struct bow__health *health = user;
    Bow__Health__HealthCheckResponse response = BOW__HEALTH__HEALTH_CHECK_RESPONSE__INIT;
    int state = bow__health_states_get(&health->states, request->service);

    if (state == BOW__HEALTH_SERVICE_UNKNOWN) {
        refuse_unknown(call, request->service);
        return;
    }
    response.status = (Bow__Health__HealthCheckResponse__ServingStatus)state;
    (void)bow__health__health__check__reply(call, &response);
}

struct listing {
    struct bow_call *call;
    Bow__Health__HealthListResponse__StatusesEntry **entries; /* NULL: they are counted */
    size_t n;
};

static bool count_state(const char *name, int state, void *user)
{
    struct listing *listing = user;

    (void)name;
    (void)state;
    listing->n++;
    return true;
}

struct listed {
    Bow__Health__HealthListResponse__StatusesEntry entry;
    Bow__Health__HealthCheckResponse response;
};

/* Names last as long as the server; but the answer is made at once. More may have come since they
 * were counted: those are left out. */
static bool list_state(const char *name, int state, void *user)
{
    struct listing *listing = user;
    struct listed *listed = bow_call_alloc(listing->call, sizeof(*listed));

    if (listed == NULL || listing->n == 0) {
        return false;
    }
    *listed = (struct listed){
        .entry = BOW__HEALTH__HEALTH_LIST_RESPONSE__STATUSES_ENTRY__INIT,
        .response = BOW__HEALTH__HEALTH_CHECK_RESPONSE__INIT,
    };
    listed->response.status = (Bow__Health__HealthCheckResponse__ServingStatus)state;
    listed->entry.key = name;
    listed->entry.value = &listed->response;
    *listing->entries++ = &listed->entry;
    listing->n--;
    return true;
}

static void list(struct bow_call *call, const Bow__Health__HealthListRequest *request, void *user)
{
    struct bow__health *health = user;
    Bow__Health__HealthListResponse response = BOW__HEALTH__HEALTH_LIST_RESPONSE__INIT;
    struct listing listing = {.call = call};

    (void)request;
    bow__health_states_each(&health->states, count_state, &listing);
    size_t n = listing.n;
    listing.entries = bow_call_alloc(call, (n + 1) * sizeof(*listing.entries));
    response.statuses = listing.entries;
    if (listing.entries != NULL) {
        bow__health_states_each(&health->states, list_state, &listing);
        response.n_statuses = n - listing.n;
    }
    (void)bow__health__health__list__reply(call, &response);
}

const void *bow__health_handlers(size_t *ret_size)
{
    static const struct bow__health__health__handlers handlers = {
        .check = check,
        .list = list,
        .watch = watch,
    };

    *ret_size = sizeof(handlers);
    return &handlers;
}

/* What it is told */

int bow__health_set(struct bow__health *health, const char *service, enum bow_health_state state)
{
    int rc = bow__health_states_set(&health->states, service, state, false);

    if (rc == 0) {
        post_looks(health);
    }
    return rc;
}

int bow__health_unset(struct bow__health *health, const char *service)
{
    int rc = bow__health_states_unset(&health->states, service);

    if (rc == 0) {
        post_looks(health);
    }
    return rc;
}

void bow__health_drain(struct bow__health *health)
{
    bow__health_states_drain(&health->states);
    post_looks(health);
}

void bow__health_end(struct bow__health *health)
{
    atomic_store(&health->over, true);
    post_looks(health);
}

void bow__health_leave(struct bow__health *health, struct bow_loop *loop,
                       const struct bow_channel *channel)
{
    struct bow__health_loop *own = find_loop(health, loop);

    for (struct bow__link *at = own->watchers.next; at != &own->watchers; at = at->next) {
        struct watcher *watcher = BOW__CONTAINER(at, struct watcher, link);
        watcher->is_leaving |= bow_call_channel(watcher->call) == channel;
    }
    post_look(own);
}
