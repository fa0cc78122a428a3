/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A listening socket on its loop: a bounded batch a turn. Out of descriptors, accepting
 * pauses: the socket stays readable, so going on would spin. Knows nothing of where the
 * connections go.
 */

#include "base/log.h"
#include "base/text.h"
#include "transport/channel/acceptor.h"

#include <errno.h>

#define PAUSE_NS (UINT64_C(100) * 1000000u)

static void describe(const struct bow__listener *listener, struct bow__text *text)
{
    const struct bow__listening *listening = &listener->listening;

    bow__text_clear(text);
    if (listening->port != 0) {
        bow__text_printf(text, "port %u", listening->port);
        return;
    }
    bow__text_printf(text, "%s",
                     listening->unix_path[0] != '\0' ? listening->unix_path
                                                     : "a socket without a port");
}

/* A descriptor that comes free and is used up at once begins a new pause: ten a second. */
static void tell_pause(struct bow__listener *listener, int error)
{
    struct bow_context *context = listener->acceptor->context;
    struct bow__text where;
    struct bow__text text;

    listener->n_pauses++;
    if (!bow__log_is_due(&listener->tell_at_ns, bow_loop_now(listener->loop))) {
        return;
    }
    bow__text_clear(&text);
    bow__text_errno(&text, error);
    describe(listener, &where);
    bow__log(context, BOW_LOG_WARNING,
             "accepting on %s pauses for 100 ms at a time (%llu since it was last said): %s%s",
             where.bytes, (unsigned long long)listener->n_pauses, text.bytes,
             error == -EMFILE || error == -ENFILE ? ": raise the limit of open files (ulimit -n)"
                                                  : "");
    listener->n_pauses = 0;
}

static void tell_reset(const struct bow__listener *listener, int error)
{
    struct bow__text where;
    struct bow__text text;

    describe(listener, &where);
    bow__text_clear(&text);
    bow__text_errno(&text, error);
    bow__log(listener->acceptor->context, BOW_LOG_WARNING,
             "listening on %s ends while connections wait there, which are reset: %s", where.bytes,
             text.bytes);
}

static void pause_accepting(struct bow__listener *listener, int error)
{
    tell_pause(listener, error);
    (void)bow__loop_rewatch(listener->loop, &listener->watch, 0);
    bow_timer_start(&listener->pause, PAUSE_NS);
}

static void on_pause_over(struct bow_timer *timer, void *user)
{
    struct bow__listener *listener = user;

    if (bow__loop_rewatch(listener->loop, &listener->watch, BOW_POLL_IN) < 0) {
        bow_timer_start(timer, PAUSE_NS);
    }
}

/* The loop has logged it; trying again registers it. */
static void on_watch_lost(struct bow__watch *watch, int error)
{
    struct bow__listener *listener = BOW__CONTAINER(watch, struct bow__listener, watch);

    (void)error;
    bow_timer_start(&listener->pause, PAUSE_NS);
}

/* Whether what accept() said is about one connection only, that was gone before we took it. */
static bool is_of_connection(int error)
{
    switch (-error) {
    case EINTR:
    case ECONNABORTED:
    case EPROTO:
    case EPERM: /* a firewall's word */
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH:
        return true;
    default:
        return false;
    }
}

/* Returns 0 to go on, -EAGAIN when there is none left, or what stops accepting for now. */
static int accept_one(struct bow__listener *listener)
{
    const struct bow_system *system = listener->acceptor->system;
    struct bow_sockaddr peer = {.len = 0};
    struct bow__socket socket;

    int rc = bow__listening_accept(&listener->listening, system, &socket, &peer);
    if (rc < 0) {
        return is_of_connection(rc) ? 0 : rc;
    }
    return bow__acceptor_admit(listener, &socket, &peer);
}

static void on_events(struct bow__watch *watch, uint32_t events)
{
    struct bow__listener *listener = BOW__CONTAINER(watch, struct bow__listener, watch);
    (void)events;

    /* A callback of a new channel may shut the loop down. */
    for (uint32_t i = 0; i < listener->acceptor->options.max_accepts_per_turn; i++) {
        int rc = accept_one(listener);
        if (rc == -EAGAIN || !bow__listening_is_open(&listener->listening)) {
            return;
        }
        if (rc < 0) {
            pause_accepting(listener, rc);
            return;
        }
    }
}

static void stop_listening(struct bow__listener *listener)
{
    bow_timer_stop(&listener->pause);
    bow__loop_unwatch(listener->loop, &listener->watch);
    bow__listening_close(&listener->listening, listener->acceptor->system);
}

static void on_loop_shutdown(struct bow__watch *watch)
{
    stop_listening(BOW__CONTAINER(watch, struct bow__listener, watch));
}

static int run_start(void *user)
{
    struct bow__listener *listener = user;

    if (!bow__listening_is_open(&listener->listening) || listener->is_started) {
        return 0;
    }
    listener->is_started = true;
    if (listener->listening.inproc != NULL) {
        listener->watch.source = bow__inproc_listener_source(listener->listening.inproc);
    }
    return bow__loop_watch(listener->loop, &listener->watch, listener->listening.fd, BOW_POLL_IN);
}

/* What has come so far, a batch at a time. Returns whether there is more. */
static bool accept_waiting(struct bow__listener *listener)
{
    uint32_t n_max = listener->acceptor->options.max_accepts_per_turn;
    int rc = 0;

    for (uint32_t n = 0; n < n_max && bow__listening_is_open(&listener->listening); n++) {
        rc = accept_one(listener);
        if (rc < 0) {
            break;
        }
    }
    if (rc < 0 && rc != -EAGAIN) {
        tell_reset(listener, rc);
    }
    return rc == 0 && bow__listening_is_open(&listener->listening);
}

/*
 * Until none is found twice: between the first look and the second, handshakes that had begun
 * within this host end.
 */
static bool has_to_go_on(struct bow__listener *listener)
{
    if (!listener->is_started || !bow__listening_is_open(&listener->listening)) {
        return false;
    }
    bool first = !listener->is_fenced;
    if (first && !bow__listening_fence(&listener->listening, listener->acceptor->system)) {
        return false;
    }
    listener->is_fenced = true;
    return accept_waiting(listener) || first;
}

static int run_close(void *user)
{
    struct bow__listener *listener = user;

    if (has_to_go_on(listener) &&
        bow__loop_post_internal(listener->loop, &listener->close_task, 0) == 0) {
        return 0;
    }
    stop_listening(listener);
    bow__acceptor_leave(listener->acceptor);
    return 0;
}

int bow__listener_start(struct bow__listener *listener)
{
    return bow__loop_post_internal(listener->loop, &listener->start_task, 0);
}

void bow__listener_close(struct bow__listener *listener)
{
    if (bow__loop_post_internal(listener->loop, &listener->close_task, 0) < 0) {
        /* The loop has ended and has let go of the socket. */
        bow__listening_close(&listener->listening, listener->acceptor->system);
        bow__acceptor_leave(listener->acceptor);
    }
}

static const struct bow__watch_ops watch_ops = {
    .on_events = on_events,
    .on_shutdown = on_loop_shutdown,
    .on_lost = on_watch_lost,
};

void bow__listener_init(struct bow__listener *listener, struct bow_acceptor *acceptor,
                        struct bow_loop *loop)
{
    listener->acceptor = acceptor;
    listener->loop = loop;
    listener->watch.ops = &watch_ops;
    bow__list_init(&listener->watch.link);
    bow_timer_init(&listener->pause, loop, on_pause_over, listener);
    bow_task_init(&listener->start_task, "listener start", run_start, listener);
    bow_task_init(&listener->close_task, "listener close", run_close, listener);
    bow__loop_hold(loop);
}
