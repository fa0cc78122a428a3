/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A server's share of one loop: which connections there are, and how they end.
 * Knows nothing of what happens on a connection.
 */

#include "rpc/server/dispatch/worker.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/misuse.h"
#include "base/poison.h"
#include "rpc/core/errors.h"
#include "rpc/server/dispatch/server_call.h"
#include <bowline/limits.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define MAX_IDLE_CALLS 256u
#define LAST_WORDS_NS UINT64_C(100000000)

static struct bow__server_conn *server_conn_of(struct bow__link *link)
{
    return BOW__CONTAINER(link, struct bow__server_conn, link);
}

/* Done once no connection is left, no handler waits for its on_closed or runs on an executor, and
 * nothing of ours is posted. */
static void check_done(struct bow__worker *worker)
{
    atomic_store(&worker->watched, worker->draining);
    if (!worker->draining || worker->done || !bow__list_is_empty(&worker->conns) ||
        worker->n_streams > 0 || atomic_load(&worker->n_on_executors) > 0 ||
        bow__counters_is_posted(&worker->counters)) {
        return;
    }
    worker->done = true;
    bow__list_remove(&worker->relief.link);
    bow_timer_stop(&worker->backlog_timer);
    bow__loop_compression_stop(&worker->compression);
    bow__counters_publish(&worker->counters);
    if (worker->hooked) {
        bow_loop_remove_hook(worker->loop, &worker->hook);
        worker->hooked = false;
    }
    worker->on_done(worker);
}

static void stream_closed(struct bow__worker *worker)
{
    worker->n_streams--;
    check_done(worker);
}

/* Threads of executors end what is left when the loop has ended, and only the lock keeps them apart
 * then. */
void bow__worker_stream_closed(struct bow__worker *worker)
{
    if (bow_loop_in_loop(worker->loop)) {
        stream_closed(worker);
        return;
    }
    pthread_mutex_lock(&worker->outside);
    stream_closed(worker);
    pthread_mutex_unlock(&worker->outside);
}

static int look_task(void *user)
{
    struct bow__worker *worker = user;

    atomic_store(&worker->look_posted, false);
    bow__in_flight_look(&worker->in_flight);
    check_done(worker);
    bow__worker_unref(worker);
    return 0;
}

void bow__worker_enter_executor(struct bow__worker *worker)
{
    bow__worker_ref(worker);
    atomic_fetch_add(&worker->n_on_executors, 1);
}

/* Without a loop, which has ended then, nobody else looks. */
static void look_from_outside(struct bow__worker *worker)
{
    if (atomic_exchange(&worker->look_posted, true)) {
        return;
    }
    bow__worker_ref(worker);
    if (bow__loop_post_internal(worker->loop, &worker->look_task, 0) == 0) {
        return;
    }
    (void)!bow_loop_join(worker->loop, BOW_NEVER);
    atomic_store(&worker->look_posted, false);
    pthread_mutex_lock(&worker->outside);
    check_done(worker);
    pthread_mutex_unlock(&worker->outside);
    bow__worker_unref(worker);
}

void bow__worker_leave_executor(struct bow__worker *worker)
{
    if (atomic_fetch_sub(&worker->n_on_executors, 1) == 1 && atomic_load(&worker->watched)) {
        look_from_outside(worker);
    }
    bow__worker_unref(worker);
}

void bow__worker_release_in_flight(struct bow__worker *worker, size_t n_in_flight)
{
    if (bow__in_flight_let_go(&worker->in_flight, n_in_flight)) {
        look_from_outside(worker);
    }
}

/* What all connections have in flight */

static void relieve(struct bow__deferred *deferred)
{
    struct bow__worker *worker = BOW__CONTAINER(deferred, struct bow__worker, relief);

    for (struct bow__link *at = worker->conns.next; at != &worker->conns; at = at->next) {
        struct bow__conn *conn = &server_conn_of(at)->conn;
        bool has_credit = conn->session != NULL && conn->session->ops->refill(conn->session);
        if (has_credit || !bow__list_is_empty(&server_conn_of(at)->backlog.waiting)) {
            bow__conn_touch(conn);
        }
    }
}

/* Not from inside a session, which what ended the shortage may be. */
static void on_flight_turn(struct bow__in_flight *in_flight)
{
    struct bow__worker *worker = BOW__CONTAINER(in_flight, struct bow__worker, in_flight);

    bow__admission_watch(&worker->admission, in_flight->is_short);
    if (!in_flight->is_short && !worker->done) {
        bow__loop_defer_flush(worker->loop, &worker->relief);
    }
}

static void init_flight(struct bow__worker *worker)
{
    worker->in_flight.max_bytes = worker->limits->max_loop_bytes_in_flight;
    worker->in_flight.server_max_bytes = worker->limits->max_bytes_in_flight;
    worker->in_flight.n_refused = &worker->counters.now.calls_refused_bytes;
    worker->in_flight.on_turn = on_flight_turn;
    worker->relief.fn = relieve;
    bow__list_init(&worker->relief.link);
}

/* What waits to be sent to all of them */

/* While it is short, as long after the last look. */
#define BACKLOG_LOOK_NS UINT64_C(1000000000)
/* That a look ends. With more of them the next look is in the next turn, so that however many there
 * are, the others have their turns in between. */
#define MAX_DROPS 64

static bool is_stuck(const struct bow__server_conn *conn, uint64_t now_ns)
{
    return !conn->conn.closing && bow__backlog_is_stuck(&conn->backlog, now_ns);
}

/* Put `conn` among the `n` that have most, the first of them most. Returns how many there are. */
static int rank(struct bow__server_conn **worst, int n, struct bow__server_conn *conn)
{
    int at = n;

    for (; at > 0 && worst[at - 1]->backlog.n_bytes < conn->backlog.n_bytes; at--) {
        if (at < MAX_DROPS) {
            worst[at] = worst[at - 1];
        }
    }
    if (at < MAX_DROPS) {
        worst[at] = conn;
    }
    return n < MAX_DROPS ? n + 1 : MAX_DROPS;
}

/* Those with most of them whose peers take nothing. */
static int find_stuck(const struct bow__worker *worker, uint64_t now_ns,
                      struct bow__server_conn **ret_worst)
{
    int n = 0;

    for (struct bow__link *at = worker->conns.next; at != &worker->conns; at = at->next) {
        if (is_stuck(server_conn_of(at), now_ns)) {
            n = rank(ret_worst, n, server_conn_of(at));
        }
    }
    return n;
}

static void drop_stuck(struct bow__worker *worker, struct bow__server_conn *stuck)
{
    struct bow__text text;

    worker->counters.now.connections_untaken++;
    bow__text_clear(&text);
    bow__text_printf(&text, "the peer took nothing of the %zu bytes that wait for it for ",
                     stuck->backlog.n_bytes);
    bow__text_duration(&text, BOW_LIMIT_UNTAKEN_NS);
    bow__text_printf(&text,
                     " (BOW_LIMIT_UNTAKEN_NS), and the server is short of "
                     "max_queued_reply_bytes (%zu)",
                     worker->limits->max_queued_reply_bytes);
    bow__backlog_count(&stuck->backlog, 0, 0, bow_loop_now(worker->loop));
    bow__conn_drop(&stuck->conn, &text);
}

/* Its even part may have grown, too, and calls go on that waited for that. */
static void on_backlog_timer(struct bow_timer *timer, void *user)
{
    struct bow__worker *worker = user;
    uint64_t now_ns = bow_loop_now(worker->loop);
    struct bow__server_conn *stuck[MAX_DROPS];

    int n = find_stuck(worker, now_ns, stuck);
    for (int i = 0; i < n && worker->backlog.is_short; i++) {
        /* Its channel lives to the end of the turn, but may have been closed with another. */
        if (is_stuck(stuck[i], now_ns)) {
            drop_stuck(worker, stuck[i]);
        }
    }
    if (worker->backlog.is_short) {
        bow__loop_defer_flush(worker->loop, &worker->relief);
        bow_timer_start(timer, n == MAX_DROPS ? 0 : BACKLOG_LOOK_NS);
    }
}

/* Not from inside a session, which what ended the shortage may be. */
static void on_backlog_turn(struct bow__backlog *backlog)
{
    struct bow__worker *worker = BOW__CONTAINER(backlog, struct bow__worker, backlog);

    if (worker->done) {
        return;
    }
    if (backlog->is_short) {
        bow_timer_start(&worker->backlog_timer, BACKLOG_LOOK_NS);
        return;
    }
    bow_timer_stop(&worker->backlog_timer);
    bow__loop_defer_flush(worker->loop, &worker->relief);
}

static void init_backlog(struct bow__worker *worker)
{
    bow__backlog_init(&worker->backlog, worker->limits->max_loop_queued_reply_bytes,
                      on_backlog_turn);
    bow_timer_init(&worker->backlog_timer, worker->loop, on_backlog_timer, worker);
}

static void on_published(void *owner)
{
    check_done(owner);
}

/* The loop shuts down; its channels are closed. */
static void on_loop_shutdown(struct bow_loop_hook *hook)
{
    struct bow__worker *worker = BOW__CONTAINER(hook, struct bow__worker, hook);

    worker->hooked = false;
    worker->draining = true;
    check_done(worker);
}

static int open_task(void *user)
{
    struct bow__worker *worker = user;

    int rc = bow_loop_add_hook(worker->loop, &worker->hook);
    worker->hooked = rc == 0;
    if (rc < 0) {
        worker->draining = true;
        check_done(worker);
    }
    bow__worker_unref(worker);
    return rc;
}

static int drain_task(void *user)
{
    struct bow__worker *worker = user;
    struct bow__link *next;

    worker->draining = true;
    for (struct bow__link *at = worker->conns.next; at != &worker->conns; at = next) {
        next = at->next;
        bow__conn_goaway(&server_conn_of(at)->conn, "the server is shutting down");
    }
    check_done(worker);
    bow__worker_unref(worker);
    return 0;
}

void bow__worker_note_unanswered(struct bow__worker *worker, const char *path)
{
    struct bow__unanswered *unanswered = worker->unanswered;
    uint32_t i = 0;

    if (unanswered == NULL) {
        return;
    }
    while (i < unanswered->n_methods && unanswered->methods[i].path != path) {
        i++;
    }
    if (i == BOW__UNANSWERED_SHOWN) {
        unanswered->n_others++;
        return;
    }
    if (i == unanswered->n_methods) {
        unanswered->methods[i].path = path;
        unanswered->n_methods++;
    }
    unanswered->methods[i].n++;
}

static void log_unanswered(struct bow__worker *worker)
{
    const struct bow__unanswered *unanswered = worker->unanswered;
    struct bow__text text;

    if (unanswered->n_methods == 0) {
        return;
    }
    bow__text_clear(&text);
    for (uint32_t i = 0; i < unanswered->n_methods; i++) {
        bow__text_printf(&text, "%s%" PRIu32 " of %s", i > 0 ? ", " : "", unanswered->methods[i].n,
                         unanswered->methods[i].path);
    }
    if (unanswered->n_others > 0) {
        bow__text_printf(&text, ", %" PRIu32 " of other methods", unanswered->n_others);
    }
    bow__log(worker->context, BOW_LOG_WARNING,
             "server: calls that were cut off before their handlers answered: %s", text.bytes);
}

static int close_task(void *user)
{
    struct bow__worker *worker = user;
    struct bow__unanswered unanswered = {.n_methods = 0};
    struct bow__link *next;

    worker->unanswered = &unanswered;
    for (struct bow__link *at = worker->conns.next; at != &worker->conns; at = next) {
        next = at->next;
        bow__conn_cut(&server_conn_of(at)->conn,
                      "it has shut down, and the time for calls in flight (grace_ns) is over",
                      LAST_WORDS_NS);
    }
    log_unanswered(worker);
    worker->unanswered = NULL;
    bow__worker_unref(worker);
    return 0;
}

/* Memory of calls that have ended, kept for others. Where faults of programs are looked for it is
 * kept from others instead, for a while; where AddressSanitizer is, it does that. */

static void init_idle(struct bow__worker *worker)
{
    bow__list_init(&worker->quarantine);
    worker->max_idle = BOW__POISONS || bow__quarantines(worker->context) ? 0 : MAX_IDLE_CALLS;
}

static void free_memory(struct bow__worker *worker, struct bow__server_call *server_call)
{
    bow__unpoison(server_call, BOW__SERVER_CALL_BYTES);
    bow__free(worker->context, server_call, BOW__SERVER_CALL_BYTES);
}

/* Under the lock, or when nobody else knows the worker. */
static void end_quarantine(struct bow__worker *worker, uint32_t n_left)
{
    while (worker->n_quarantined > n_left) {
        struct bow__link *oldest = worker->quarantine.next;
        bow__list_remove(oldest);
        worker->n_quarantined--;
        free_memory(worker, BOW__CONTAINER(oldest, struct bow__server_call, link));
    }
}

void bow__worker_put_apart(struct bow__worker *worker, struct bow__server_call *server_call)
{
    size_t n_slab = BOW__SERVER_CALL_BYTES - sizeof(*server_call);

    if (!bow__quarantines(worker->context)) {
        free_memory(worker, server_call);
        return;
    }
    /* The request lay there; whoever reads it is to see that it is no more. */
    bow__unpoison(server_call->slab, n_slab);
    memset(server_call->slab, BOW__GONE_BYTE, n_slab);
    bow__poison(server_call->slab, n_slab);
    pthread_mutex_lock(&worker->outside);
    bow__list_push_back(&worker->quarantine, &server_call->link);
    worker->n_quarantined++;
    end_quarantine(worker, BOW__QUARANTINED_CALLS);
    pthread_mutex_unlock(&worker->outside);
}

static void free_idle(struct bow__worker *worker)
{
    while (worker->idle != NULL) {
        struct bow__server_call *server_call = worker->idle;
        worker->idle = server_call->next;
        free_memory(worker, server_call);
    }
    worker->n_idle = 0;
}

int bow__worker_new(struct bow_context *context, struct bow_loop *loop, struct bow_server *server,
                    const struct bow__registry *registry, const struct bow__worker_limits *limits,
                    atomic_uint *n_connections, void (*on_done)(struct bow__worker *worker),
                    struct bow__worker **ret_worker)
{
    struct bow__worker *worker = bow__alloc_zero(context, sizeof(*worker));

    if (worker == NULL) {
        return -ENOMEM;
    }
    int rc = bow__counters_init(&worker->counters, context, loop, registry->n_methods + 1,
                                on_published, worker);
    if (rc < 0) {
        bow__free(context, worker, sizeof(*worker));
        return rc;
    }
    rc = bow__admission_init(&worker->admission, context, limits->quotas, limits->retry_after_ns);
    if (rc < 0) {
        bow__counters_fini(&worker->counters);
        bow__free(context, worker, sizeof(*worker));
        return rc;
    }
    worker->context = bow_context_ref(context);
    bow__loop_hold(loop);
    worker->loop = loop;
    worker->server = server;
    worker->registry = registry;
    worker->limits = limits;
    worker->n_connections = n_connections;
    worker->on_done = on_done;
    worker->hook.fn = on_loop_shutdown;
    init_idle(worker);
    init_flight(worker);
    init_backlog(worker);
    bow__loop_compression_init(&worker->compression, context, loop, &limits->compression);
    worker->web = (struct bow__web){
        .registry = registry,
        .compression = &worker->compression.compression,
        .origins = limits->web_origins,
        .page = limits->web_page,
        .files = limits->web_files,
        .n_files = limits->n_web_files,
    };
    atomic_store_explicit(&worker->refs, 1, memory_order_relaxed);
    pthread_mutex_init(&worker->outside, NULL);
    bow__list_init(&worker->conns);
    bow_task_init(&worker->look_task, "look at worker", look_task, worker);
    bow_task_init(&worker->open_task, "open worker", open_task, worker);
    bow_task_init(&worker->drain_task, "drain worker", drain_task, worker);
    bow_task_init(&worker->close_task, "close worker", close_task, worker);
    *ret_worker = worker;
    return 0;
}

void bow__worker_ref(struct bow__worker *worker)
{
    atomic_fetch_add_explicit(&worker->refs, 1, memory_order_relaxed);
}

void bow__worker_unref(struct bow__worker *worker)
{
    if (worker == NULL || atomic_fetch_sub_explicit(&worker->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    struct bow_context *context = worker->context;
    struct bow_loop *loop = worker->loop;
    free_idle(worker);
    end_quarantine(worker, 0);
    bow__admission_fini(&worker->admission);
    bow__counters_fini(&worker->counters);
    pthread_mutex_destroy(&worker->outside);
    bow__free(context, worker, sizeof(*worker));
    bow__loop_release(loop);
    bow_context_unref(context);
}

/* The task holds the worker: the server may be gone before it runs. */
static int post(struct bow__worker *worker, struct bow_task *task)
{
    bow__worker_ref(worker);
    int rc = bow__loop_post_internal(worker->loop, task, 0);
    if (rc < 0) {
        bow__worker_unref(worker);
    }
    return rc;
}

int bow__worker_open(struct bow__worker *worker)
{
    return post(worker, &worker->open_task);
}

int bow__worker_drain(struct bow__worker *worker)
{
    return post(worker, &worker->drain_task);
}

int bow__worker_close(struct bow__worker *worker)
{
    return post(worker, &worker->close_task);
}

struct bow__server_call *bow__worker_get(struct bow__worker *worker)
{
    struct bow__server_call *server_call = worker->idle;

    if (server_call == NULL) {
        return bow__alloc(worker->context, BOW__SERVER_CALL_BYTES);
    }
    worker->idle = server_call->next;
    worker->n_idle--;
    return server_call;
}

void bow__worker_put(struct bow__worker *worker, struct bow__server_call *server_call)
{
    if (worker->n_idle >= worker->max_idle) {
        bow__worker_put_apart(worker, server_call);
        return;
    }
    server_call->next = worker->idle;
    worker->idle = server_call;
    worker->n_idle++;
}

void bow__worker_trim(struct bow__worker *worker)
{
    struct bow__pool *pool = bow__loop_pool(worker->loop);

    free_idle(worker);
    pthread_mutex_lock(&worker->outside);
    end_quarantine(worker, 0);
    pthread_mutex_unlock(&worker->outside);
    bow__pool_trim_small(pool);
    /* One chunk stays: what is refused is refused in words. */
    while (pool->n_idle > 1) {
        bow__pool_trim(pool);
    }
}

void bow__worker_conn_gone(struct bow__worker *worker)
{
    atomic_fetch_sub_explicit(worker->n_connections, 1, memory_order_relaxed);
    check_done(worker);
}
