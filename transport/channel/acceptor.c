/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The life of an acceptor, which connections it admits, and to which loop they go.
 * Binding is in listen.c, accepting in listener.c.
 */

#include "transport/channel/acceptor.h"
#include "base/alloc.h"
#include "base/log.h"
#include "base/options.h"
#include "base/text.h"
#include "transport/address/transport_error.h"

#include <bowline/group.h>
#include <errno.h>
#include <string.h>

#define DEFAULT_MAX_ACCEPTS 64u

static size_t acceptor_bytes(uint32_t n_listeners)
{
    return sizeof(struct bow_acceptor) + n_listeners * sizeof(struct bow__listener);
}

static void release(struct bow_acceptor *acceptor)
{
    if (atomic_fetch_sub_explicit(&acceptor->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (uint32_t i = 0; i < acceptor->n_listeners; i++) {
        bow__loop_release(acceptor->listeners[i].loop);
    }
    bow__free(acceptor->context, acceptor, acceptor_bytes(acceptor->n_listeners));
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

void bow__acceptor_leave(struct bow_acceptor *acceptor)
{
    if (atomic_fetch_sub_explicit(&acceptor->n_pending, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (bow__loop_post_internal(acceptor->listeners[0].loop, &acceptor->closed_task, 0) < 0) {
        run_closed(acceptor); /* the loop has ended: there is no better thread */
    }
}

void bow_acceptor_close(struct bow_acceptor *acceptor, void (*closed)(void *user), void *user)
{
    const uint32_t n_listeners = acceptor->n_listeners;

    acceptor->closed = closed;
    acceptor->closed_user = user;
    for (uint32_t i = 0; i < n_listeners; i++) {
        bow__listener_close(&acceptor->listeners[i]); /* the last one may be the end of it */
    }
}

/* Admitting */

/* Whoever connects can make it happen, where a limit on connections is reached. */
static void tell_unset(struct bow_acceptor *acceptor, struct bow_channel *channel, int error)
{
    uint64_t n = 1 + atomic_fetch_add_explicit(&acceptor->n_unset, 1, memory_order_relaxed);
    struct bow__text text;

    if (!bow__log_is_due(&acceptor->tell_at_ns, bow_loop_now(channel->loop))) {
        return;
    }
    atomic_fetch_sub_explicit(&acceptor->n_unset, n, memory_order_relaxed);
    bow__text_clear(&text);
    bow__text_errno(&text, error);
    bow__log(acceptor->context, BOW_LOG_WARNING,
             "connection from %s was not set up (%llu since it was last said): %s",
             bow_channel_peer(channel), (unsigned long long)n, text.bytes);
}

static void on_channel_started(struct bow_channel *channel, int error, void *user)
{
    struct bow_acceptor *acceptor = user;

    if (error < 0) {
        tell_unset(acceptor, channel, error);
    }
    bow__acceptor_leave(acceptor);
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

static struct bow_loop *choose_loop(const struct bow__listener *listener)
{
    const struct bow_acceptor_options *options = &listener->acceptor->options;

    if (options->workers == NULL || options->per_worker) {
        return listener->loop;
    }
    return bow_group_next(options->workers);
}

int bow__acceptor_admit(struct bow__listener *listener, const struct bow__socket *socket,
                        const struct bow_sockaddr *peer)
{
    struct bow_acceptor *acceptor = listener->acceptor;
    struct bow_channel *channel = NULL;

    if (is_full(acceptor)) {
        atomic_fetch_add_explicit(&acceptor->n_refused, 1, memory_order_relaxed);
        bow__socket_close(socket);
        return 0;
    }
    const struct bow__channel_birth birth = {
        .loop = choose_loop(listener),
        .socket = socket,
        .peer = peer,
        .options = &acceptor->options.channel,
        .on_started = on_channel_started,
        .on_gone = on_channel_gone,
        .user = acceptor,
    };
    int rc = bow__channel_new(&birth, &channel);
    if (rc < 0) {
        bow__socket_close(socket);
        return rc;
    }
    count_channel(acceptor);
    if (bow__channel_start(channel) < 0) {
        bow__acceptor_leave(acceptor); /* its loop has ended: so will this one */
    }
    return 0;
}

/* What can be asked */

int bow_acceptor_start(struct bow_acceptor *acceptor)
{
    for (uint32_t i = 0; i < acceptor->n_listeners; i++) {
        int rc = bow__listener_start(&acceptor->listeners[i]);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

uint16_t bow_acceptor_port(const struct bow_acceptor *acceptor)
{
    return acceptor->listeners[0].listening.port;
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

    if (bow__options_read(&options, sizeof(options), given) < 0 ||
        bow__options_read(&channel, sizeof(channel), &options.channel) < 0) {
        return -EINVAL;
    }
    if (options.per_worker ? options.workers == NULL : options.loop == NULL) {
        return -EINVAL;
    }
    options.channel = channel;
    if (options.max_accepts_per_turn == 0) {
        options.max_accepts_per_turn = DEFAULT_MAX_ACCEPTS;
    }
    *ret_options = options;
    return 0;
}

/* Opens all or none. */
static int open_listeners(struct bow_acceptor *acceptor, struct bow_transport_error *ret_error)
{
    const struct bow_acceptor_options *options = &acceptor->options;
    struct bow__listening *first = &acceptor->listeners[0].listening;

    first->shares_port = options->per_worker;
    int rc = bow__listening_open(first, acceptor->context, options->address, options->backlog,
                                 ret_error);
    if (rc < 0) {
        return rc;
    }
    for (uint32_t i = 1; i < acceptor->n_listeners; i++) {
        rc = bow__listening_open_beside(&acceptor->listeners[i].listening, acceptor->system, first,
                                        options->backlog);
        if (rc < 0) {
            while (i > 0) {
                bow__listening_close(&acceptor->listeners[--i].listening, acceptor->system);
            }
            return bow__transport_error(ret_error, "binding", options->address, rc, NULL);
        }
    }
    return 0;
}

static void init(struct bow_acceptor *acceptor)
{
    const struct bow_acceptor_options *options = &acceptor->options;

    for (uint32_t i = 0; i < acceptor->n_listeners; i++) {
        bow__listener_init(&acceptor->listeners[i], acceptor,
                           options->per_worker ? bow_group_get(options->workers, i)
                                               : options->loop);
    }
    bow_task_init(&acceptor->closed_task, "acceptor closed", run_closed, acceptor);
    atomic_init(&acceptor->refs, 1);
    atomic_init(&acceptor->n_pending, acceptor->n_listeners);
    atomic_init(&acceptor->n_channels, 0);
    atomic_init(&acceptor->n_refused, 0);
    atomic_init(&acceptor->n_unset, 0);
    atomic_init(&acceptor->tell_at_ns, 0);
    acceptor->options.address = NULL;
}

int bow_acceptor_new(struct bow_context *context, const struct bow_acceptor_options *given,
                     struct bow_acceptor **ret_acceptor, struct bow_transport_error *ret_error)
{
    struct bow_acceptor_options options;

    if (read_options(given, &options) < 0) {
        return bow__transport_error(ret_error, "parsing", "the options", -EINVAL,
                                    "begin with BOW_ACCEPTOR_OPTIONS_INIT and set a loop, or "
                                    "workers with per_worker");
    }
    uint32_t n_listeners = options.per_worker ? bow_group_size(options.workers) : 1;
    struct bow_acceptor *acceptor = bow__alloc_zero(context, acceptor_bytes(n_listeners));
    if (acceptor == NULL) {
        return bow__transport_error(ret_error, "binding", "a socket", -ENOMEM, NULL);
    }
    acceptor->context = context;
    acceptor->system = bow__context_system(context);
    acceptor->options = options;
    acceptor->n_listeners = n_listeners;
    int rc = open_listeners(acceptor, ret_error);
    if (rc < 0) {
        bow__free(context, acceptor, acceptor_bytes(n_listeners));
        return rc;
    }
    init(acceptor);
    *ret_acceptor = acceptor;
    return 0;
}
