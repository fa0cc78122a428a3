/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The side of a bound handler that is on the loop: the proxy in the pipeline, which sends
 * events to the strand; its removal; how much may wait before reading pauses. The
 * design stands in bound.h.
 */

#include "transport/channel/bound.h"
#include "base/alloc.h"

#include <assert.h>
#include <errno.h>

static int run_leave(void *user);
static int run_resume(void *user);
static int run_hand_over(void *user);

static struct bow__bound *of_proxy(struct bow_handler *proxy)
{
    return BOW__CONTAINER(proxy, struct bow__bound, proxy);
}

struct bow__bound *bow__bound_of(struct bow_handler *handler)
{
    return BOW__CONTAINER(handler->next, struct bow__bound, gate);
}

struct bow_handler *bow__bound_proxy(struct bow_handler *handler)
{
    return &bow__bound_of(handler)->proxy;
}

bool bow__bound_is_leaving(const struct bow__bound *bound)
{
    return atomic_load_explicit(&bound->is_leaving, memory_order_acquire);
}

/* References */

void bow__bound_ref(struct bow__bound *bound)
{
    atomic_fetch_add_explicit(&bound->refs, 1, memory_order_relaxed);
}

static void free_bound(struct bow__bound *bound)
{
    struct bow_channel *channel = bound->channel;

    bow_strand_unref(bound->strand);
    bow__unread_free(channel->context, &bound->unread);
    pthread_mutex_destroy(&bound->mutex);
    bow__free(channel->context, bound, sizeof(*bound));
    bow_channel_unref(channel);
}

void bow__bound_unref(struct bow__bound *bound)
{
    if (atomic_fetch_sub_explicit(&bound->refs, 1, memory_order_acq_rel) == 1) {
        free_bound(bound);
    }
}

/* Events */

static void init_event(struct bow__bound_event *event, struct bow__bound *bound,
                       enum bow__bound_kind kind, int value)
{
    *event = (struct bow__bound_event){.bound = bound, .kind = kind, .value = value};
    bow_task_init(&event->task, bound->proxy_ops.name, bow__bound_run, event);
}

struct bow__bound_event *bow__bound_event_new(struct bow__bound *bound, enum bow__bound_kind kind,
                                              int value, const struct bow_buf *bytes)
{
    struct bow_context *context = bound->channel->context;

    struct bow__bound_event *event = bow__alloc(context, sizeof(*event));
    if (event == NULL) {
        return NULL;
    }
    init_event(event, bound, kind, value);
    if (bytes != NULL && bow_buf_share(context, bytes, &event->bytes) < 0) {
        bow__free(context, event, sizeof(*event));
        return NULL;
    }
    return event;
}

void bow__bound_event_free(struct bow__bound_event *event)
{
    bow_buf_unref(&event->bytes);
    bow__free(event->bound->channel->context, event, sizeof(*event));
}

/* Each but the last two may be refused: the executor has shut down, or memory is short. */
static void send_event(struct bow__bound *bound, enum bow__bound_kind kind, int value,
                       const struct bow_buf *bytes)
{
    int rc = -ENOMEM;

    struct bow__bound_event *event = bow__bound_event_new(bound, kind, value, bytes);
    if (event != NULL) {
        bow__bound_ref(bound);
        rc = bow__strand_post_internal(bound->strand, &event->task);
        if (rc == 0) {
            return;
        }
        bow__bound_unref(bound);
        bow__bound_event_free(event);
    }
    if (kind == BOW__BOUND_ERROR) {
        bow__channel_close_now(bound->channel, value);
    } else {
        bow__channel_fail(bound->channel, rc);
    }
}

/* False: nothing of the handler runs any more on the executor, and nothing ever will. */
static bool send_last(struct bow__bound *bound, struct bow__bound_event *event)
{
    bow__bound_ref(bound);
    if (bow__strand_post_last(bound->strand, &event->task) == 0) {
        return true;
    }
    bow__bound_unref(bound);
    return false;
}

/* Then it runs here: the handler must hear the end. */
static void send_last_or_run(struct bow__bound *bound, struct bow__bound_event *event)
{
    if (!send_last(bound, event)) {
        bow__bound_ref(bound);
        bow__bound_run(event);
    }
}

int bow__bound_post_to_loop(struct bow__bound *bound, struct bow_task *task)
{
    bow__bound_ref(bound);
    int rc = bow__loop_post_internal(bound->channel->loop, task, 0);
    if (rc < 0) {
        bow__bound_unref(bound);
    }
    return rc;
}

/* How much may wait */

static void expect(struct bow__bound *bound, size_t n)
{
    pthread_mutex_lock(&bound->mutex);
    bound->waiting_bytes += n;
    bool holds = bound->waiting_bytes > bound->max_bytes && !bound->is_held;
    bound->is_held = bound->is_held || holds;
    pthread_mutex_unlock(&bound->mutex);
    if (holds) {
        bow__channel_hold_read(bound->channel);
    }
}

void bow__bound_took(struct bow__bound *bound, size_t n)
{
    pthread_mutex_lock(&bound->mutex);
    bound->waiting_bytes -= n;
    bool resumes =
        bound->is_held && !bound->is_resuming && bound->waiting_bytes <= bound->max_bytes / 2;
    bound->is_resuming = bound->is_resuming || resumes;
    pthread_mutex_unlock(&bound->mutex);
    if (resumes) {
        (void)bow__bound_post_to_loop(bound, &bound->resume_task); /* or all is over */
    }
}

static int run_resume(void *user)
{
    struct bow__bound *bound = user;

    pthread_mutex_lock(&bound->mutex);
    bound->is_held = false;
    bound->is_resuming = false;
    pthread_mutex_unlock(&bound->mutex);
    bow__channel_release_read(bound->channel);
    bow__bound_unref(bound);
    return 0;
}

/* The proxy */

static void proxy_active(struct bow_handler *proxy)
{
    struct bow__bound *bound = of_proxy(proxy);

    if (bound->has_left) {
        bow_handler_fire_active(proxy);
    } else {
        send_event(bound, BOW__BOUND_ACTIVE, 0, NULL);
    }
}

static size_t proxy_read(struct bow_handler *proxy, const struct bow_buf *bytes)
{
    struct bow__bound *bound = of_proxy(proxy);

    assert(!bound->has_left); /* delivery has stopped then */
    expect(bound, bow__bound_cost(bytes));
    send_event(bound, BOW__BOUND_READ, 0, bytes);
    return bytes->len;
}

static void proxy_read_complete(struct bow_handler *proxy)
{
    struct bow__bound *bound = of_proxy(proxy);

    if (bound->has_left) {
        bow_handler_fire_read_complete(proxy);
    } else {
        send_event(bound, BOW__BOUND_READ_COMPLETE, 0, NULL);
    }
}

static void proxy_eof(struct bow_handler *proxy)
{
    struct bow__bound *bound = of_proxy(proxy);

    if (bound->has_left) {
        bow_handler_fire_eof(proxy);
    } else {
        send_event(bound, BOW__BOUND_EOF, 0, NULL);
    }
}

static void proxy_writable(struct bow_handler *proxy, bool writable)
{
    struct bow__bound *bound = of_proxy(proxy);

    if (bound->has_left) {
        bow_handler_fire_writable(proxy, writable);
    } else {
        send_event(bound, BOW__BOUND_WRITABLE, writable, NULL);
    }
}

static void proxy_error(struct bow_handler *proxy, int error)
{
    struct bow__bound *bound = of_proxy(proxy);

    if (bound->has_left) {
        bow_handler_fire_error(proxy, error);
    } else {
        send_event(bound, BOW__BOUND_ERROR, error, NULL);
    }
}

static void proxy_inactive(struct bow_handler *proxy, int error)
{
    struct bow__bound *bound = of_proxy(proxy);

    bound->inactive.value = error;
    send_last_or_run(bound, &bound->inactive);
}

static void proxy_removed(struct bow_handler *proxy)
{
    struct bow__bound *bound = of_proxy(proxy);

    if (!bound->has_left) {
        bound->has_left = true;
        send_last_or_run(bound, &bound->removed);
    }
    bow__bound_unref(bound);
}

/* The end of the peer's side goes behind its bytes, whoever hears of it. */
static void choose_ops(struct bow__bound *bound)
{
    const struct bow_handler_ops *wanted = bound->handler->ops;

    bound->proxy_ops = (struct bow_handler_ops){
        .name = wanted->name,
        .on_removed = proxy_removed,
        .on_active = wanted->on_active != NULL ? proxy_active : NULL,
        .on_read = wanted->on_read != NULL ? proxy_read : NULL,
        .on_read_complete = wanted->on_read_complete != NULL ? proxy_read_complete : NULL,
        .on_eof = proxy_eof,
        .on_writable = wanted->on_writable != NULL ? proxy_writable : NULL,
        .on_error = wanted->on_error != NULL ? proxy_error : NULL,
        .on_inactive = wanted->on_inactive != NULL ? proxy_inactive : NULL,
    };
}

/* Adding */

static bool has_outbound(const struct bow_handler_ops *ops)
{
    return ops->on_write != NULL || ops->on_flush != NULL || ops->on_close != NULL ||
           ops->on_drain != NULL || ops->on_sent != NULL;
}

static void init_handlers(struct bow__bound *bound)
{
    struct bow_handler *handler = bound->handler;

    choose_ops(bound);
    bound->proxy.ops = &bound->proxy_ops;
    bound->gate = (struct bow_handler){.ops = &bow__bound_gate_ops,
                                       .channel = bound->channel,
                                       .next = &bound->channel->tail,
                                       .prev = &bound->channel->head};
    handler->channel = bound->channel;
    handler->next = &bound->gate;
    handler->prev = &bound->gate;
    handler->unread = NULL;
    handler->gone_next = NULL;
    handler->flags = BOW__HANDLER_BOUND;
}

static int make(struct bow_channel *channel, struct bow_handler *handler,
                struct bow_executor *executor, struct bow__bound **ret_bound)
{
    struct bow__bound *bound = bow__alloc_zero(channel->context, sizeof(*bound));
    if (bound == NULL) {
        return -ENOMEM;
    }
    int rc = bow_strand_new(executor, &bound->strand);
    if (rc < 0) {
        bow__free(channel->context, bound, sizeof(*bound));
        return rc;
    }
    pthread_mutex_init(&bound->mutex, NULL);
    bound->handler = handler;
    bound->channel = bow_channel_ref(channel);
    bound->max_bytes = bow__executor_max_channel_bytes(executor);
    atomic_init(&bound->refs, 1);
    atomic_init(&bound->is_leaving, false);
    init_handlers(bound);
    init_event(&bound->added, bound, BOW__BOUND_ADDED, 0);
    init_event(&bound->inactive, bound, BOW__BOUND_INACTIVE, 0);
    init_event(&bound->removed, bound, BOW__BOUND_REMOVED, 0);
    bow_task_init(&bound->leave_task, "handler leaves", run_leave, bound);
    bow_task_init(&bound->resume_task, "reading resumes", run_resume, bound);
    bow_task_init(&bound->hand_over_task, "handler hands over", run_hand_over, bound);
    *ret_bound = bound;
    return 0;
}

int bow_channel_add_last_on(struct bow_channel *channel, struct bow_handler *handler,
                            struct bow_executor *executor)
{
    struct bow__bound *bound = NULL;

    assert(bow__loop_may_touch(channel->loop));
    if (has_outbound(handler->ops)) {
        return -EINVAL;
    }
    int rc = make(channel, handler, executor, &bound);
    if (rc < 0) {
        return rc;
    }
    bow__bound_ref(bound);
    rc = bow__strand_post_internal(bound->strand, &bound->added.task);
    if (rc < 0) {
        bow__bound_unref(bound);
        bow__bound_unref(bound);
        return rc;
    }
    bow_channel_add_last(channel, &bound->proxy);
    return 0;
}

/* Removing */

static void leave(struct bow__bound *bound)
{
    if (bound->has_left || !bow__channel_is_open(bound->channel)) {
        return; /* the proxy's removal does it */
    }
    bound->has_left = true;
    bow__channel_hold_read(bound->channel);
    /* Never inside the caller, so where the executor is gone the loop runs it as a task. */
    if (!send_last(bound, &bound->removed) &&
        bow__bound_post_to_loop(bound, &bound->removed.task) < 0) {
        bound->has_left = false;
        bow__channel_release_read(bound->channel);
    }
}

static int run_leave(void *user)
{
    struct bow__bound *bound = user;

    leave(bound);
    bow__bound_unref(bound);
    return 0;
}

void bow__bound_remove(struct bow_handler *handler)
{
    struct bow__bound *bound = bow__bound_of(handler);

    if (atomic_exchange_explicit(&bound->is_leaving, true, memory_order_acq_rel)) {
        return;
    }
    if (bow_loop_in_loop(bound->channel->loop)) {
        leave(bound);
    } else {
        (void)bow__bound_post_to_loop(bound, &bound->leave_task); /* or all is over */
    }
}

/* What the handler left, and then the end of the peer's side, are its successor's. */
static int run_hand_over(void *user)
{
    struct bow__bound *bound = user;
    struct bow_channel *channel = bound->channel;

    if (bow__channel_is_open(channel) && bow__pipeline_is_in(&bound->proxy)) {
        bound->proxy.unread = bound->unread;
        bound->unread = NULL;
        bow_channel_remove(&bound->proxy);
        bow__channel_release_read(channel);
        if (bound->has_late_eof) {
            bow__channel_redeliver(channel);
            bow_handler_fire_eof(&bound->proxy);
        }
    }
    bow__bound_unref(bound);
    return 0;
}
