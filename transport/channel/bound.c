/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A handler that runs on an executor, and what stands for it on the loop:
 *
 *     loop        head ─► … ─► proxy ─► … ─► tail
 *                              │   ▲
 *                   events of a│   │what the handler passes on,
 *                   strand     ▼   │by the stub
 *     executor               handler
 *
 * Design
 *
 * The pipeline knows the proxy only. The user's handler is in no list: its `next` and
 * `prev` are the stub, a handler whose callbacks take what comes back to the loop, so that
 * the functions which pass events on work there as anywhere. Bytes are the exception
 * (fire_read), as delivering them looks at what belongs to the loop.
 *
 * Each event is a task of the strand and holds a reference to the bound, so does each
 * task for the loop; one more is the pipeline's. The bound refers to the channel, so
 * that this is there as long as the handler is. The last event of all is REMOVED.
 *
 * Removal, from any thread: `is_leaving` is set, from then on the handler sees no event;
 * bytes on their way to it are collected. The loop stops delivery and sends REMOVED; what
 * that finds goes back to the loop, which takes the proxy out and lets its successor have
 * it. When the channel closes first, REMOVED is sent as the proxy is removed.
 *
 *     atomic, or under mutex   order                              partner
 *     refs                     relaxed up, acq_rel down           each other
 *     is_leaving               acq_rel                            each other
 *     pending_bytes, is_held,  `mutex`
 *     is_resuming
 *
 * `has_left` is the loop's; `unread` and `has_late_eof` are the strand's, until the task that
 * hands over.
 */

#include "base/alloc.h"
#include "base/refuse.h"
#include "transport/channel/channel.h"
#include "transport/channel/pipeline.h"
#include "transport/executor/executor.h"
#include "transport/executor/strand.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>

enum kind {
    BOUND_ADDED,
    BOUND_ACTIVE,
    BOUND_READ,
    BOUND_READ_COMPLETE,
    BOUND_EOF,
    BOUND_WRITABLE,
    BOUND_ERROR,
    BOUND_INACTIVE,
    BOUND_REMOVED,
};

struct bound;

struct event {
    struct bow_task task;
    struct bound *bound;
    enum kind kind;
    int value;            /* an error, or whether it is writable */
    struct bow_buf bytes; /* counted */
};

struct bound {
    struct bow_handler proxy;
    struct bow_handler_ops proxy_ops; /* those that the handler wants to hear of */
    struct bow__binding stub;         /* of the pipeline */
    struct bow_handler *handler;
    struct bow_channel *channel; /* referenced */
    struct bow_strand *strand;
    size_t max_bytes;
    atomic_uint refs;
    atomic_bool is_leaving;

    bool has_left; /* REMOVED was sent */

    struct bow__unread *unread; /* what the handler has not consumed */
    bool has_late_eof;          /* for the successor */

    pthread_mutex_t mutex;
    size_t pending_bytes; /* of READ events that have not run */
    bool is_held;         /* reading pauses for that */
    bool is_resuming;     /* and goes on soon */

    struct event added; /* these three can't fail for want of memory */
    struct event inactive;
    struct event removed;
    struct bow_task leave_task;
    struct bow_task resume_task;
    struct bow_task hand_over_task;
};

static int run_event(void *user);
static int run_fired(void *user);
static void remove_bound(struct bow_handler *handler);
static int run_leave(void *user);
static int run_resume(void *user);
static int run_hand_over(void *user);

/* What a READ event counts for; an empty frame is not for nothing. */
static size_t cost_of(const struct bow_buf *bytes)
{
    return sizeof(struct event) + bytes->len;
}

static struct bound *of_proxy(struct bow_handler *proxy)
{
    return BOW__CONTAINER(proxy, struct bound, proxy);
}

static struct bound *bound_of(struct bow_handler *handler)
{
    return BOW__CONTAINER(handler->next, struct bound, stub.handler);
}

static struct bow_handler *proxy_of(struct bow_handler *handler)
{
    return &bound_of(handler)->proxy;
}

static bool is_leaving(const struct bound *bound)
{
    return atomic_load_explicit(&bound->is_leaving, memory_order_acquire);
}

/* References */

static void ref(struct bound *bound)
{
    atomic_fetch_add_explicit(&bound->refs, 1, memory_order_relaxed);
}

static void free_bound(struct bound *bound)
{
    struct bow_channel *channel = bound->channel;

    bow_strand_unref(bound->strand);
    bow__unread_free(channel->context, &bound->unread);
    pthread_mutex_destroy(&bound->mutex);
    bow__free(channel->context, bound, sizeof(*bound));
    bow_channel_unref(channel);
}

static void unref(struct bound *bound)
{
    if (atomic_fetch_sub_explicit(&bound->refs, 1, memory_order_acq_rel) == 1) {
        free_bound(bound);
    }
}

/* Events */

static void init_event(struct event *event, struct bound *bound, enum kind kind, int value)
{
    *event = (struct event){.bound = bound, .kind = kind, .value = value};
    bow_task_init(&event->task, bound->proxy_ops.name, run_event, event);
}

static struct event *new_event(struct bound *bound, enum kind kind, int value,
                               const struct bow_buf *bytes)
{
    struct bow_context *context = bound->channel->context;

    struct event *event = bow__alloc(context, sizeof(*event));
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

static void free_event(struct event *event)
{
    bow_buf_unref(&event->bytes);
    bow__free(event->bound->channel->context, event, sizeof(*event));
}

/* Each but the last two may be refused: the executor has shut down, or memory is short. */
static void send_event(struct bound *bound, enum kind kind, int value, const struct bow_buf *bytes)
{
    int rc = -ENOMEM;

    struct event *event = new_event(bound, kind, value, bytes);
    if (event != NULL) {
        ref(bound);
        rc = bow__strand_post_internal(bound->strand, &event->task);
        if (rc == 0) {
            return;
        }
        unref(bound);
        free_event(event);
    }
    if (kind == BOUND_ERROR) {
        bow__channel_close_now(bound->channel, value);
    } else {
        bow__channel_fail(bound->channel, rc);
    }
}

/* False: nothing of the handler runs any more on the executor, and nothing ever will. */
static bool send_last(struct bound *bound, struct event *event)
{
    ref(bound);
    if (bow__strand_post_last(bound->strand, &event->task) == 0) {
        return true;
    }
    unref(bound);
    return false;
}

/* Then it runs here: the handler must hear the end. */
static void send_last_or_run(struct bound *bound, struct event *event)
{
    if (!send_last(bound, event)) {
        ref(bound);
        run_event(event);
    }
}

static int post_to_loop(struct bound *bound, struct bow_task *task)
{
    ref(bound);
    int rc = bow__loop_post_internal(bound->channel->loop, task, 0);
    if (rc < 0) {
        unref(bound);
    }
    return rc;
}

/* Back to the loop */

static void fire(struct bound *bound, enum kind kind, int value, const struct bow_buf *bytes)
{
    struct event *event = new_event(bound, kind, value, bytes);
    if (event == NULL) {
        bow_channel_close(bound->channel, -ENOMEM);
        return;
    }
    event->task.fn = run_fired;
    if (post_to_loop(bound, &event->task) < 0) {
        free_event(event); /* all is over */
    }
}

/* What can't be delivered now is left unread for whoever reads behind; each piece is a batch of its
 * own.
 */
static void fire_read_here(struct bound *bound, const struct bow_buf *bytes)
{
    if (bow_handler_fire_read(&bound->proxy, bytes) < bytes->len) {
        bow__pipeline_keep_behind(&bound->proxy, bytes);
    }
    bow_handler_fire_read_complete(&bound->proxy);
}

static void fire_here(struct bound *bound, const struct event *event)
{
    struct bow_handler *proxy = &bound->proxy;

    switch (event->kind) {
    case BOUND_ACTIVE:
        bow_handler_fire_active(proxy);
        break;
    case BOUND_READ:
        fire_read_here(bound, &event->bytes);
        break;
    case BOUND_READ_COMPLETE:
        bow_handler_fire_read_complete(proxy);
        break;
    case BOUND_EOF:
        bow_handler_fire_eof(proxy);
        break;
    case BOUND_WRITABLE:
        bow_handler_fire_writable(proxy, event->value != 0);
        break;
    default:
        bow_handler_fire_error(proxy, event->value);
        break;
    }
}

static int run_fired(void *user)
{
    struct event *event = user;
    struct bound *bound = event->bound;

    if (bow__channel_is_open(bound->channel) && bow__pipeline_is_in(&bound->proxy)) {
        fire_here(bound, event);
    }
    free_event(event);
    unref(bound);
    return 0;
}

/* The stub of the pipeline */

static struct bound *of_stub(struct bow_handler *stub)
{
    return BOW__CONTAINER(stub, struct bound, stub.handler);
}

static void stub_active(struct bow_handler *stub)
{
    fire(of_stub(stub), BOUND_ACTIVE, 0, NULL);
}

static void stub_read_complete(struct bow_handler *stub)
{
    fire(of_stub(stub), BOUND_READ_COMPLETE, 0, NULL);
}

static void stub_eof(struct bow_handler *stub)
{
    fire(of_stub(stub), BOUND_EOF, 0, NULL);
}

static void stub_writable(struct bow_handler *stub, bool writable)
{
    fire(of_stub(stub), BOUND_WRITABLE, writable, NULL);
}

static void stub_error(struct bow_handler *stub, int error)
{
    fire(of_stub(stub), BOUND_ERROR, error, NULL);
}

static size_t fire_read(struct bow_handler *handler, const struct bow_buf *bytes)
{
    fire(bound_of(handler), BOUND_READ, 0, bytes);
    return bytes->len;
}

/* The channel's own functions are for any thread; they begin at the tail. */
static int stub_write(struct bow_handler *stub, struct bow_buf *buf, bow_write_fn done, void *user)
{
    int rc = bow_channel_write(stub->channel, buf, done, user);
    if (rc == 0) {
        bow_buf_unref(buf);
    }
    return rc;
}

static void stub_flush(struct bow_handler *stub)
{
    bow_channel_flush(stub->channel);
}

static void stub_close(struct bow_handler *stub, int error)
{
    bow_channel_close(stub->channel, error);
}

static const struct bow_handler_ops stub_ops = {
    .name = "stub",
    .on_active = stub_active,
    .on_read_complete = stub_read_complete,
    .on_eof = stub_eof,
    .on_writable = stub_writable,
    .on_error = stub_error,
    .on_write = stub_write,
    .on_flush = stub_flush,
    .on_close = stub_close,
};

/* How much may wait */

static void expect(struct bound *bound, size_t n)
{
    pthread_mutex_lock(&bound->mutex);
    bound->pending_bytes += n;
    bool holds = bound->pending_bytes > bound->max_bytes && !bound->is_held;
    bound->is_held = bound->is_held || holds;
    pthread_mutex_unlock(&bound->mutex);
    if (holds) {
        bow__channel_hold_read(bound->channel);
    }
}

static void took(struct bound *bound, size_t n)
{
    pthread_mutex_lock(&bound->mutex);
    bound->pending_bytes -= n;
    bool resumes =
        bound->is_held && !bound->is_resuming && bound->pending_bytes <= bound->max_bytes / 2;
    bound->is_resuming = bound->is_resuming || resumes;
    pthread_mutex_unlock(&bound->mutex);
    if (resumes) {
        (void)post_to_loop(bound, &bound->resume_task); /* or all is over */
    }
}

static int run_resume(void *user)
{
    struct bound *bound = user;

    pthread_mutex_lock(&bound->mutex);
    bound->is_held = false;
    bound->is_resuming = false;
    pthread_mutex_unlock(&bound->mutex);
    bow__channel_release_read(bound->channel);
    unref(bound);
    return 0;
}

/* The handler's callbacks */

static void keep(struct bound *bound, struct bow_slice bytes)
{
    struct bow_channel *channel = bound->channel;

    int rc = bow__unread_append(channel->context, &bound->unread, bytes);
    if (rc < 0) {
        bow_channel_close(channel, rc);
    }
}

static size_t call_on_read(struct bound *bound, struct bow_buf bytes)
{
    size_t n = bound->handler->ops->on_read(bound->handler, &bytes);
    assert(n <= bytes.len);
    return n;
}

static void run_read(struct bound *bound, const struct bow_buf *bytes)
{
    const bool has_more_before = bound->unread != NULL;
    size_t n = 0;

    if (!has_more_before && !is_leaving(bound)) {
        n = call_on_read(bound, *bytes);
    }
    if (n < bytes->len) {
        keep(bound, (struct bow_slice){bytes->data + n, bytes->len - n});
    }
    if (has_more_before && !is_leaving(bound)) {
        struct bow_slice all = bow__unread_bytes(bound->unread);
        n = call_on_read(bound, bow_buf_borrow(all.data, all.len));
        bow__unread_consume(bound->channel->context, &bound->unread, n);
    }
}

static void run_added(struct bound *bound)
{
    if (bound->handler->ops->on_added != NULL) {
        bound->handler->ops->on_added(bound->handler);
    }
}

static void run_eof(struct bound *bound)
{
    if (bound->handler->ops->on_eof != NULL) {
        bound->handler->ops->on_eof(bound->handler);
    } else {
        stub_eof(&bound->stub.handler);
    }
}

static void run_removed(struct bound *bound)
{
    struct bow_channel *channel = bound->channel;
    struct bow_handler *handler = bound->handler;

    /* Its memory may go with this. */
    if (handler->ops->on_removed != NULL) {
        handler->ops->on_removed(handler);
    }
    if (bow__channel_is_open(channel)) {
        (void)post_to_loop(bound, &bound->hand_over_task); /* or all is over */
    }
}

/* On its way to a handler that leaves: it is for those behind. */
static void pass_by(struct bound *bound, const struct event *event)
{
    switch (event->kind) {
    case BOUND_READ:
        run_read(bound, &event->bytes);
        break;
    case BOUND_EOF:
        bound->has_late_eof = true; /* behind the bytes, which come with the hand-over */
        break;
    case BOUND_REMOVED:
        run_removed(bound);
        break;
    case BOUND_ADDED:
        run_added(bound);
        break;
    case BOUND_INACTIVE:
        break;
    default:
        fire(bound, event->kind, event->value, NULL);
        break;
    }
}

static void call_handler(struct bound *bound, const struct event *event)
{
    struct bow_handler *handler = bound->handler;
    const struct bow_handler_ops *ops = handler->ops;

    switch (event->kind) {
    case BOUND_ADDED:
        run_added(bound);
        break;
    case BOUND_ACTIVE:
        ops->on_active(handler);
        break;
    case BOUND_READ:
        run_read(bound, &event->bytes);
        break;
    case BOUND_READ_COMPLETE:
        ops->on_read_complete(handler);
        break;
    case BOUND_EOF:
        run_eof(bound);
        break;
    case BOUND_WRITABLE:
        ops->on_writable(handler, event->value != 0);
        break;
    case BOUND_ERROR:
        ops->on_error(handler, event->value);
        break;
    case BOUND_INACTIVE:
        ops->on_inactive(handler, event->value);
        break;
    case BOUND_REMOVED:
        run_removed(bound);
        break;
    }
}

static int run_event(void *user)
{
    struct event *event = user;
    struct bound *bound = event->bound;
    const enum kind kind = event->kind;
    const size_t cost = cost_of(&event->bytes);

    if (is_leaving(bound)) {
        pass_by(bound, event);
    } else {
        call_handler(bound, event);
    }
    if (kind == BOUND_READ) {
        took(bound, cost);
    }
    if (event != &bound->added && event != &bound->inactive && event != &bound->removed) {
        free_event(event);
    }
    unref(bound);
    return 0;
}

/* The proxy */

static void proxy_active(struct bow_handler *proxy)
{
    struct bound *bound = of_proxy(proxy);

    if (bound->has_left) {
        bow_handler_fire_active(proxy);
    } else {
        send_event(bound, BOUND_ACTIVE, 0, NULL);
    }
}

static size_t proxy_read(struct bow_handler *proxy, const struct bow_buf *bytes)
{
    struct bound *bound = of_proxy(proxy);

    assert(!bound->has_left); /* delivery has stopped then */
    expect(bound, cost_of(bytes));
    send_event(bound, BOUND_READ, 0, bytes);
    return bytes->len;
}

static void proxy_read_complete(struct bow_handler *proxy)
{
    struct bound *bound = of_proxy(proxy);

    if (bound->has_left) {
        bow_handler_fire_read_complete(proxy);
    } else {
        send_event(bound, BOUND_READ_COMPLETE, 0, NULL);
    }
}

static void proxy_eof(struct bow_handler *proxy)
{
    struct bound *bound = of_proxy(proxy);

    if (bound->has_left) {
        bow_handler_fire_eof(proxy);
    } else {
        send_event(bound, BOUND_EOF, 0, NULL);
    }
}

static void proxy_writable(struct bow_handler *proxy, bool writable)
{
    struct bound *bound = of_proxy(proxy);

    if (bound->has_left) {
        bow_handler_fire_writable(proxy, writable);
    } else {
        send_event(bound, BOUND_WRITABLE, writable, NULL);
    }
}

static void proxy_error(struct bow_handler *proxy, int error)
{
    struct bound *bound = of_proxy(proxy);

    if (bound->has_left) {
        bow_handler_fire_error(proxy, error);
    } else {
        send_event(bound, BOUND_ERROR, error, NULL);
    }
}

static void proxy_inactive(struct bow_handler *proxy, int error)
{
    struct bound *bound = of_proxy(proxy);

    bound->inactive.value = error;
    send_last_or_run(bound, &bound->inactive);
}

static void proxy_removed(struct bow_handler *proxy)
{
    struct bound *bound = of_proxy(proxy);

    if (!bound->has_left) {
        bound->has_left = true;
        send_last_or_run(bound, &bound->removed);
    }
    unref(bound);
}

/* The end of the peer's side goes behind its bytes, whoever hears of it. */
static void choose_ops(struct bound *bound)
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

static const struct bow__binding_ops binding_ops = {
    .proxy = proxy_of, .fire_read = fire_read, .remove = remove_bound};

static void init_handlers(struct bound *bound)
{
    struct bow_handler *handler = bound->handler;

    choose_ops(bound);
    bound->proxy.ops = &bound->proxy_ops;
    bound->stub.ops = &binding_ops;
    bound->stub.handler = (struct bow_handler){.ops = &stub_ops,
                                               .channel = bound->channel,
                                               .next = &bound->channel->tail,
                                               .prev = &bound->channel->head};
    handler->channel = bound->channel;
    handler->next = &bound->stub.handler;
    handler->prev = &bound->stub.handler;
    handler->unread = NULL;
    handler->gone_next = NULL;
    handler->flags = BOW__HANDLER_BOUND;
}

static int make(struct bow_channel *channel, struct bow_handler *handler,
                struct bow_executor *executor, struct bound **ret_bound)
{
    struct bound *bound = bow__alloc_zero(channel->context, sizeof(*bound));
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
    init_event(&bound->added, bound, BOUND_ADDED, 0);
    init_event(&bound->inactive, bound, BOUND_INACTIVE, 0);
    init_event(&bound->removed, bound, BOUND_REMOVED, 0);
    bow_task_init(&bound->leave_task, "handler leaves", run_leave, bound);
    bow_task_init(&bound->resume_task, "reading resumes", run_resume, bound);
    bow_task_init(&bound->hand_over_task, "handler hands over", run_hand_over, bound);
    *ret_bound = bound;
    return 0;
}

int bow_channel_add_last_on(struct bow_channel *channel, struct bow_handler *handler,
                            struct bow_executor *executor)
{
    struct bound *bound = NULL;

    assert(bow__loop_may_touch(channel->loop));
    if (has_outbound(handler->ops)) {
        return bow__refuse(channel->context, -EINVAL,
                           "bow_channel_add_last_on: handler %s has outbound events, which stay on "
                           "the loop: bow_channel_add_last()",
                           handler->ops->name);
    }
    int rc = make(channel, handler, executor, &bound);
    if (rc < 0) {
        return rc;
    }
    ref(bound);
    rc = bow__strand_post_internal(bound->strand, &bound->added.task);
    if (rc < 0) {
        unref(bound);
        unref(bound);
        return rc;
    }
    bow_channel_add_last(channel, &bound->proxy);
    return 0;
}

/* Removing */

static void leave(struct bound *bound)
{
    if (bound->has_left || !bow__channel_is_open(bound->channel)) {
        return; /* the proxy's removal does it */
    }
    bound->has_left = true;
    bow__channel_hold_read(bound->channel);
    /* Never inside the caller, so where the executor is gone the loop runs it as a task. */
    if (!send_last(bound, &bound->removed) && post_to_loop(bound, &bound->removed.task) < 0) {
        bound->has_left = false;
        bow__channel_release_read(bound->channel);
    }
}

static int run_leave(void *user)
{
    struct bound *bound = user;

    leave(bound);
    unref(bound);
    return 0;
}

static void remove_bound(struct bow_handler *handler)
{
    struct bound *bound = bound_of(handler);

    if (atomic_exchange_explicit(&bound->is_leaving, true, memory_order_acq_rel)) {
        return;
    }
    if (bow_loop_in_loop(bound->channel->loop)) {
        leave(bound);
    } else {
        (void)post_to_loop(bound, &bound->leave_task); /* or all is over */
    }
}

/* What the handler left, and then the end of the peer's side, are its successor's. */
static int run_hand_over(void *user)
{
    struct bound *bound = user;
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
    unref(bound);
    return 0;
}
