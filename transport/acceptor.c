/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A listening socket on its loop, and where its connections go. Binding is in
 * listen.c. Out of descriptors, accepting pauses: the socket stays readable, so going on
 * would spin.
 *
 * Design
 *
 * Channels start on threads of their own loops and outlive the acceptor, so two
 * counts are shared with them:
 *
 *     atomic        order                                      partner
 *     refs          relaxed up, acq_rel down                   each other: the memory
 *     n_pending     relaxed up, acq_rel down                   each other: one until closed, one
 *                                                              for each channel that is starting;
 *                                                              `closed` runs when it is 0
 *     n_channels    relaxed: a bound, not a publication        none
 *     n_refused     relaxed: a statistic                       none
 */

#include "base/alloc.h"
#include "base/log.h"
#include "base/options.h"
#include "base/text.h"
#include "transport/channel.h"
#include "transport/listen.h"
#include "transport/transport_error.h"

#include <bowline/group.h>
#include <errno.h>
#include <string.h>

#define DEFAULT_MAX_ACCEPTS 64u
#define PAUSE_NS (UINT64_C(100) * 1000000u)

struct bow_acceptor {
    struct bow_context *context;
    const struct bow_system *system;
    struct bow_acceptor_options options; /* its address is NULL: not ours to keep */
    struct bow__listening listening;
    struct bow__watch watch;
    struct bow_timer pause;
    struct bow_task start_task;
    struct bow_task close_task;
    struct bow_task closed_task;
    void (*closed)(void *user);
    void *closed_user;
    atomic_uint refs;
    atomic_uint n_pending;
    atomic_uint n_channels;
    _Atomic(uint64_t) n_refused;
    bool is_started;
    bool is_out_told; /* logged that descriptors ran out; until the next success */
};

static void release(struct bow_acceptor *acceptor)
{
    if (atomic_fetch_sub_explicit(&acceptor->refs, 1, memory_order_acq_rel) == 1) {
        bow__loop_release(acceptor->options.loop);
        bow__free(acceptor->context, acceptor, sizeof(*acceptor));
    }
}

/* Ending */

static int run_closed(void *user)
{
    struct bow_acceptor *acceptor = user;

    if (acceptor->closed != NULL) {
        acceptor->closed(acceptor->closed_user);
    }
    release(acceptor);
    return 0;
}

static void leave_pending(struct bow_acceptor *acceptor)
{
    if (atomic_fetch_sub_explicit(&acceptor->n_pending, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (bow__loop_post_internal(acceptor->options.loop, &acceptor->closed_task, 0) < 0) {
        run_closed(acceptor); /* the loop has ended: there is no better thread */
    }
}

static void stop_listening(struct bow_acceptor *acceptor)
{
    bow_timer_stop(&acceptor->pause);
    bow__loop_unwatch(acceptor->options.loop, &acceptor->watch);
    bow__listening_close(&acceptor->listening, acceptor->system);
}

static void on_loop_shutdown(struct bow__watch *watch)
{
    stop_listening(BOW__CONTAINER(watch, struct bow_acceptor, watch));
}

static int run_close(void *user)
{
    struct bow_acceptor *acceptor = user;

    stop_listening(acceptor);
    leave_pending(acceptor);
    return 0;
}

void bow_acceptor_close(struct bow_acceptor *acceptor, void (*closed)(void *user), void *user)
{
    acceptor->closed = closed;
    acceptor->closed_user = user;
    if (bow__loop_post_internal(acceptor->options.loop, &acceptor->close_task, 0) < 0) {
        /* The loop has ended and has let go of the socket. */
        bow__listening_close(&acceptor->listening, acceptor->system);
        leave_pending(acceptor);
    }
}

/* Accepting */

static void on_channel_started(struct bow_channel *channel, int error, void *user)
{
    struct bow_acceptor *acceptor = user;

    if (error < 0) {
        struct bow__text text;
        bow__text_clear(&text);
        bow__text_errno(&text, error);
        bow__log(acceptor->context, BOW_LOG_WARNING, "connection from %s was not set up: %s",
                 bow_channel_peer(channel), text.bytes);
    }
    leave_pending(acceptor);
}

static void on_channel_gone(void *user)
{
    struct bow_acceptor *acceptor = user;

    atomic_fetch_sub_explicit(&acceptor->n_channels, 1, memory_order_relaxed);
    release(acceptor);
}

static bool is_full(const struct bow_acceptor *acceptor)
{
    uint32_t max = acceptor->options.max_channels;

    return max != 0 && atomic_load_explicit(&acceptor->n_channels, memory_order_relaxed) >= max;
}

static void count_channel(struct bow_acceptor *acceptor)
{
    atomic_fetch_add_explicit(&acceptor->refs, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&acceptor->n_pending, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&acceptor->n_channels, 1, memory_order_relaxed);
}

/* Takes `fd`. */
static int admit(struct bow_acceptor *acceptor, int fd, const struct bow_sockaddr *peer)
{
    const struct bow_acceptor_options *options = &acceptor->options;
    struct bow_channel *channel = NULL;

    if (is_full(acceptor)) {
        atomic_fetch_add_explicit(&acceptor->n_refused, 1, memory_order_relaxed);
        acceptor->system->close(acceptor->system->user, fd);
        return 0;
    }
    const struct bow__channel_birth birth = {
        .loop = options->workers != NULL ? bow_group_next(options->workers) : options->loop,
        .fd = fd,
        .peer = peer,
        .options = &options->channel,
        .on_started = on_channel_started,
        .on_gone = on_channel_gone,
        .user = acceptor,
    };
    int rc = bow__channel_new(&birth, &channel);
    if (rc < 0) {
        acceptor->system->close(acceptor->system->user, fd);
        return rc;
    }
    count_channel(acceptor);
    if (bow__channel_start(channel) < 0) {
        leave_pending(acceptor); /* its loop has ended: so will this one */
    }
    return 0;
}

static void pause_accepting(struct bow_acceptor *acceptor, int error)
{
    if (!acceptor->is_out_told) {
        struct bow__text text;
        bow__text_clear(&text);
        bow__text_errno(&text, error);
        bow__log(acceptor->context, BOW_LOG_WARNING,
                 "accepting on port %u pauses for 100 ms at a time: %s: raise the limit of open "
                 "files (ulimit -n)",
                 acceptor->listening.port, text.bytes);
        acceptor->is_out_told = true;
    }
    (void)bow__loop_rewatch(acceptor->options.loop, &acceptor->watch, 0);
    bow_timer_start(&acceptor->pause, PAUSE_NS);
}

static void on_pause_over(struct bow_timer *timer, void *user)
{
    struct bow_acceptor *acceptor = user;

    if (bow__loop_rewatch(acceptor->options.loop, &acceptor->watch, BOW_POLL_IN) < 0) {
        bow_timer_start(timer, PAUSE_NS);
    }
}

/* The loop has logged it; trying again registers it. */
static void on_watch_lost(struct bow__watch *watch, int error)
{
    struct bow_acceptor *acceptor = BOW__CONTAINER(watch, struct bow_acceptor, watch);

    (void)error;
    bow_timer_start(&acceptor->pause, PAUSE_NS);
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
static int accept_one(struct bow_acceptor *acceptor)
{
    struct bow_sockaddr peer = {.len = 0};

    int fd = acceptor->system->accept(acceptor->system->user, acceptor->listening.fd, &peer);
    if (fd < 0) {
        return is_of_connection(fd) ? 0 : fd;
    }
    acceptor->is_out_told = false;
    return admit(acceptor, fd, &peer);
}

static void on_events(struct bow__watch *watch, uint32_t events)
{
    struct bow_acceptor *acceptor = BOW__CONTAINER(watch, struct bow_acceptor, watch);
    (void)events;

    /* A callback of a new channel may shut the loop down. */
    for (uint32_t i = 0; i < acceptor->options.max_accepts_per_turn; i++) {
        int rc = accept_one(acceptor);
        if (rc == -EAGAIN || acceptor->listening.fd < 0) {
            return;
        }
        if (rc < 0) {
            pause_accepting(acceptor, rc);
            return;
        }
    }
}

static int run_start(void *user)
{
    struct bow_acceptor *acceptor = user;

    if (acceptor->listening.fd < 0 || acceptor->is_started) {
        return 0;
    }
    acceptor->is_started = true;
    return bow__loop_watch(acceptor->options.loop, &acceptor->watch, acceptor->listening.fd,
                           BOW_POLL_IN);
}

int bow_acceptor_start(struct bow_acceptor *acceptor)
{
    return bow__loop_post_internal(acceptor->options.loop, &acceptor->start_task, 0);
}

uint16_t bow_acceptor_port(const struct bow_acceptor *acceptor)
{
    return acceptor->listening.port;
}

uint64_t bow_acceptor_n_refused(const struct bow_acceptor *acceptor)
{
    return atomic_load_explicit(&acceptor->n_refused, memory_order_relaxed);
}

/* Birth */

static int read_options(const struct bow_acceptor_options *given,
                        struct bow_acceptor_options *ret_options)
{
    struct bow_acceptor_options options = BOW_ACCEPTOR_OPTIONS_INIT;
    struct bow_channel_options channel = BOW_CHANNEL_OPTIONS_INIT;

    if (bow__options_read(&options, sizeof(options), given) < 0 || options.loop == NULL ||
        bow__options_read(&channel, sizeof(channel), &options.channel) < 0) {
        return -EINVAL;
    }
    options.channel = channel;
    if (options.max_accepts_per_turn == 0) {
        options.max_accepts_per_turn = DEFAULT_MAX_ACCEPTS;
    }
    *ret_options = options;
    return 0;
}

int bow_acceptor_new(struct bow_context *context, const struct bow_acceptor_options *given,
                     struct bow_acceptor **ret_acceptor, struct bow_transport_error *ret_error)
{
    struct bow_acceptor_options options;

    if (read_options(given, &options) < 0) {
        return bow__transport_error(ret_error, "parsing", "the options", -EINVAL,
                                    "begin with BOW_ACCEPTOR_OPTIONS_INIT and set a loop");
    }
    struct bow_acceptor *acceptor = bow__alloc_zero(context, sizeof(*acceptor));
    if (acceptor == NULL) {
        return bow__transport_error(ret_error, "binding", "a socket", -ENOMEM, NULL);
    }
    acceptor->context = context;
    acceptor->system = bow__context_system(context);
    int rc = bow__listening_open(&acceptor->listening, acceptor->system, options.address,
                                 options.backlog, ret_error);
    if (rc < 0) {
        bow__free(context, acceptor, sizeof(*acceptor));
        return rc;
    }
    options.address = NULL;
    acceptor->options = options;
    acceptor->watch.on_events = on_events;
    acceptor->watch.on_shutdown = on_loop_shutdown;
    acceptor->watch.on_lost = on_watch_lost;
    bow__list_init(&acceptor->watch.link);
    bow_timer_init(&acceptor->pause, options.loop, on_pause_over, acceptor);
    bow_task_init(&acceptor->start_task, "acceptor start", run_start, acceptor);
    bow_task_init(&acceptor->close_task, "acceptor close", run_close, acceptor);
    bow_task_init(&acceptor->closed_task, "acceptor closed", run_closed, acceptor);
    atomic_init(&acceptor->refs, 1);
    atomic_init(&acceptor->n_pending, 1);
    atomic_init(&acceptor->n_channels, 0);
    atomic_init(&acceptor->n_refused, 0);
    bow__loop_hold(options.loop);
    *ret_acceptor = acceptor;
    return 0;
}
