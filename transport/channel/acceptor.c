/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * An acceptor: its listening sockets, each on its loop, which connections it admits, and to which
 * loop they go. A listener takes a bounded batch a turn. Out of descriptors, accepting pauses: the
 * socket stays readable, so going on would spin. Which sockets are opened
 * is acceptor_open.c's.
 *
 * Design
 *
 * Channels start on threads of their own loops and outlive the acceptor, and listeners
 * run on several, so these counts are shared:
 *
 *     atomic        order                                      partner
 *     refs          relaxed up, acq_rel down                   each other: the memory
 *     n_pending     relaxed up, acq_rel down                   each other: see below
 *     n_channels    relaxed: a bound, not a publication        none
 *     n_refused     relaxed: a statistic                       none
 *     n_unset       relaxed: a log's                           none
 *     tell_at_ns    relaxed: a log's                           none
 *
 * n_pending is one for each listener until closed, one for each that is told to start until it has,
 * and one for each channel that is starting; `closed` runs when it is 0.
 *
 * A listener belongs to its loop's thread, from when it is started.
 *
 * Who starts holds `starting` while the listeners are told, so that one that begins meanwhile waits
 * until it is known whether all of them do.
 *
 * A socket that another process has as well is lent: what is done to it is done to the other one's,
 * so it is closed and nothing else, and its file stays. `lending` guards that with the closing, for
 * it is lent on the thread of whoever speaks with that process.
 */

#include "transport/channel/acceptor.h"
#include "base/alloc.h"
#include "base/log.h"
#include "base/options.h"
#include "base/text.h"
#include "transport/address/transport_error.h"
#include "transport/channel/acceptor_open.h"
#include "transport/channel/channel.h"

#include <bowline/group.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_MAX_ACCEPTS 64u
#define PAUSE_NS (UINT64_C(100) * 1000000u)

static size_t acceptor_bytes(uint32_t n_listeners)
{
    return sizeof(struct bow_acceptor) + n_listeners * sizeof(struct bow__acceptor_listener);
}

static void release(struct bow_acceptor *acceptor)
{
    if (atomic_fetch_sub_explicit(&acceptor->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (uint32_t i = 0; i < acceptor->n_listeners; i++) {
        bow__loop_release(acceptor->listeners[i].loop);
    }
    bow__loop_release(acceptor->home);
    pthread_mutex_destroy(&acceptor->starting);
    pthread_mutex_destroy(&acceptor->lending);
    bow__free(acceptor->context, acceptor->addresses, acceptor->addresses_bytes);
    bow__free(acceptor->context, acceptor, acceptor_bytes(acceptor->n_allocated));
}

/* Ending */

static int run_closed(void *user)
{
    struct bow_acceptor *acceptor = user;

    acceptor->closed(acceptor->closed_user);
    release(acceptor);
    return 0;
}

/* One of n_pending is over. Thread: any. */
static void leave(struct bow_acceptor *acceptor)
{
    if (atomic_fetch_sub_explicit(&acceptor->n_pending, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (acceptor->closed == NULL) {
        release(acceptor);
    } else if (bow__loop_post_internal(acceptor->home, &acceptor->closed_task, 0) < 0) {
        run_closed(acceptor); /* the loop has ended: there is no better thread */
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
    leave(acceptor);
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

static struct bow_loop *choose_loop(const struct bow__acceptor_listener *listener)
{
    const struct bow_acceptor_options *options = &listener->acceptor->options;

    if (options->workers == NULL || options->per_worker) {
        return listener->loop;
    }
    return bow_group_next(options->workers);
}

/* Make a channel of an accepted socket, or close it. Takes the socket. Returns 0, or what stops
 * accepting for now. Thread: the listener's loop. */
static int admit(struct bow__acceptor_listener *listener, const struct bow__socket *socket,
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
        leave(acceptor); /* its loop has ended: so will this one */
    }
    return 0;
}

/* A listener: the socket on its loop */

static void describe(const struct bow__acceptor_listener *listener, struct bow__text *text)
{
    const struct bow__listening *listening = &listener->listening;

    bow__text_clear(text);
    if (listening->port != 0) {
        bow__text_printf(text, "port %u", listening->port);
        return;
    }
    bow__text_printf(text, "%s",
                     listening->unix_file.path[0] != '\0' ? listening->unix_file.path
                                                          : "a socket without a port");
}

/* A descriptor that comes free and is used up at once begins a new pause: ten a second. */
static void tell_pause(struct bow__acceptor_listener *listener, int error)
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

static void tell_reset(const struct bow__acceptor_listener *listener, int error)
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

static void pause_accepting(struct bow__acceptor_listener *listener, int error)
{
    tell_pause(listener, error);
    (void)bow__loop_rewatch(listener->loop, &listener->watch, 0);
    bow_timer_start(&listener->pause, PAUSE_NS);
}

static void on_pause_over(struct bow_timer *timer, void *user)
{
    struct bow__acceptor_listener *listener = user;

    if (bow__loop_rewatch(listener->loop, &listener->watch, BOW_POLL_IN) < 0) {
        bow_timer_start(timer, PAUSE_NS);
    }
}

/* The loop has logged it; trying again registers it. */
static void on_watch_lost(struct bow__watch *watch, int error)
{
    struct bow__acceptor_listener *listener =
        BOW__CONTAINER(watch, struct bow__acceptor_listener, watch);

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
static int accept_one(struct bow__acceptor_listener *listener)
{
    struct bow_sockaddr peer = {.len = 0};
    struct bow__socket socket;

    int rc = bow__listening_accept(&listener->listening, &socket, &peer);
    if (rc < 0) {
        return is_of_connection(rc) ? 0 : rc;
    }
    return admit(listener, &socket, &peer);
}

static void on_events(struct bow__watch *watch, uint32_t events)
{
    struct bow__acceptor_listener *listener =
        BOW__CONTAINER(watch, struct bow__acceptor_listener, watch);
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

static void close_socket(struct bow__acceptor_listener *listener)
{
    struct bow_acceptor *acceptor = listener->acceptor;

    pthread_mutex_lock(&acceptor->lending);
    bow__acceptor_forget_lent(listener);
    bow__listening_close(&listener->listening);
    pthread_mutex_unlock(&acceptor->lending);
}

static bool is_lent(struct bow__acceptor_listener *listener)
{
    struct bow_acceptor *acceptor = listener->acceptor;

    pthread_mutex_lock(&acceptor->lending);
    bool lent = listener->lent;
    pthread_mutex_unlock(&acceptor->lending);
    return lent;
}

static void stop_listening(struct bow__acceptor_listener *listener)
{
    bow_timer_stop(&listener->pause);
    bow__loop_unwatch(listener->loop, &listener->watch);
    close_socket(listener);
}

static void on_loop_shutdown(struct bow__watch *watch)
{
    stop_listening(BOW__CONTAINER(watch, struct bow__acceptor_listener, watch));
}

static int start_accepting(struct bow__acceptor_listener *listener)
{
    if (!bow__listening_is_open(&listener->listening) || listener->is_started) {
        return 0;
    }
    listener->is_started = true;
    listener->watch.source = listener->listening.source;
    return bow__loop_watch(listener->loop, &listener->watch, listener->listening.fd, BOW_POLL_IN);
}

static bool is_withdrawn(struct bow_acceptor *acceptor)
{
    pthread_mutex_lock(&acceptor->starting);
    bool withdrawn = acceptor->withdrawn;
    pthread_mutex_unlock(&acceptor->starting);
    return withdrawn;
}

static int run_start(void *user)
{
    struct bow__acceptor_listener *listener = user;

    int rc = is_withdrawn(listener->acceptor) ? 0 : start_accepting(listener);
    leave(listener->acceptor);
    return rc;
}

/* What has come so far, a batch at a time. Returns whether there is more. */
static bool accept_waiting(struct bow__acceptor_listener *listener)
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
static bool has_to_go_on(struct bow__acceptor_listener *listener)
{
    if (!listener->is_started || !bow__listening_is_open(&listener->listening)) {
        return false;
    }
    bool first = !listener->refuses_new;
    if (first && is_lent(listener)) {
        return false; /* what waits is the other process's */
    }
    if (first && !bow__listening_refuse_new(&listener->listening)) {
        return false;
    }
    listener->refuses_new = true;
    return accept_waiting(listener) || first;
}

static int run_close(void *user)
{
    struct bow__acceptor_listener *listener = user;

    if (has_to_go_on(listener) &&
        bow__loop_post_internal(listener->loop, &listener->close_task, 0) == 0) {
        return 0;
    }
    stop_listening(listener);
    leave(listener->acceptor);
    return 0;
}

/* Begin to accept, on its loop. Returns 0 or why it can't be posted. Thread: any. */
static int start_listener(struct bow__acceptor_listener *listener)
{
    struct bow_acceptor *acceptor = listener->acceptor;

    /* A loop that shuts down has accepted this, and may refuse to close behind it. */
    atomic_fetch_add_explicit(&acceptor->n_pending, 1, memory_order_relaxed);
    int rc = bow__loop_post_internal(listener->loop, &listener->start_task, 0);
    if (rc < 0) {
        leave(acceptor);
    }
    return rc;
}

/* Close the socket on its loop, then leave(). Thread: any. */
static void close_listener(struct bow__acceptor_listener *listener)
{
    struct bow__listening *listening = &listener->listening;

    int rc = bow__loop_post_internal(listener->loop, &listener->close_task, 0);
    if (rc == 0) {
        return;
    }
    if (rc == -ECHILD) {
        bow__unix_file_forget(&listening->unix_file); /* the parent process listens there */
    }
    /* The loop has ended and has let go of the socket, or never was this process's. */
    close_socket(listener);
    leave(listener->acceptor);
}

static const struct bow__watch_ops watch_ops = {
    .on_events = on_events,
    .on_shutdown = on_loop_shutdown,
    .on_lost = on_watch_lost,
};

/* `listener` is zeroed but for `listening`, which is open. */
static void init_listener(struct bow__acceptor_listener *listener, struct bow_acceptor *acceptor,
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

/* All listeners */

void bow_acceptor_close(struct bow_acceptor *acceptor, void (*closed)(void *user), void *user)
{
    const uint32_t n_listeners = acceptor->n_listeners;

    acceptor->closed = closed;
    acceptor->closed_user = user;
    for (uint32_t i = 0; i < n_listeners; i++) {
        close_listener(&acceptor->listeners[i]); /* the last one may be the end of it */
    }
}

void bow__acceptor_undo(struct bow_acceptor *acceptor)
{
    const uint32_t n_listeners = acceptor->n_listeners;

    for (uint32_t i = 0; i < n_listeners; i++) {
        bow__acceptor_forget_lent(&acceptor->listeners[i]);
        bow__listening_undo(&acceptor->listeners[i].listening);
    }
    for (uint32_t i = 0; i < n_listeners; i++) {
        leave(acceptor); /* the last one is the end of it, or a start that has yet to be seen */
    }
}

/* Lending */

uint32_t bow__acceptor_n_listeners(const struct bow_acceptor *acceptor)
{
    return acceptor->n_listeners;
}

int bow__acceptor_lend(struct bow_acceptor *acceptor, uint32_t index, struct bow__lent *ret_lent)
{
    struct bow__acceptor_listener *listener = &acceptor->listeners[index];
    const struct bow__listening *listening = &listener->listening;
    int rc = -ENOENT;

    pthread_mutex_lock(&acceptor->lending);
    if (listening->fd >= 0 && !listening->inherited) {
        int fd = fcntl(listening->fd, F_DUPFD_CLOEXEC, 0);
        rc = fd >= 0 ? 0 : -errno;
        if (rc == 0) {
            bool has_file = listening->unix_file.path[0] != '\0';
            listener->lent = true;
            *ret_lent = (struct bow__lent){.fd = fd,
                                           .device = has_file ? listening->unix_file.device : 0,
                                           .inode = has_file ? listening->unix_file.inode : 0};
        }
    }
    pthread_mutex_unlock(&acceptor->lending);
    return rc;
}

void bow__acceptor_take_back(struct bow_acceptor *acceptor, uint32_t index)
{
    pthread_mutex_lock(&acceptor->lending);
    acceptor->listeners[index].lent = false;
    pthread_mutex_unlock(&acceptor->lending);
}

/* The file keeps the other process's rights until now: it might have gone on. */
static void set_file_rights(struct bow__acceptor_listener *listener)
{
    struct bow__listening *listening = &listener->listening;
    const char *stage = NULL;
    struct bow__text text;

    if (listening->unix_file.path[0] == '\0') {
        return;
    }
    int rc = bow__unix_file_set_rights(&listening->unix_file, &listening->unix_rights, &stage);
    if (rc < 0) {
        bow__text_clear(&text);
        bow__text_errno(&text, rc);
        bow__log(listener->acceptor->context, BOW_LOG_WARNING, "%s %s: %s", stage,
                 listening->unix_file.path, text.bytes);
    }
}

void bow__acceptor_own(struct bow_acceptor *acceptor)
{
    pthread_mutex_lock(&acceptor->lending);
    for (uint32_t i = 0; i < acceptor->n_listeners; i++) {
        struct bow__acceptor_listener *listener = &acceptor->listeners[i];
        if (listener->lent && listener->listening.fd >= 0) {
            set_file_rights(listener);
        }
        listener->lent = false;
    }
    pthread_mutex_unlock(&acceptor->lending);
}

/* Start */

static int start_listeners(struct bow_acceptor *acceptor)
{
    int rc = 0;

    for (uint32_t i = 0; i < acceptor->n_listeners && rc == 0; i++) {
        rc = start_listener(&acceptor->listeners[i]);
    }
    return rc;
}

int bow__acceptors_start(struct bow_acceptor *const *acceptors, uint32_t n_acceptors)
{
    int rc = 0;

    for (uint32_t i = 0; i < n_acceptors; i++) {
        pthread_mutex_lock(&acceptors[i]->starting);
    }
    for (uint32_t i = 0; i < n_acceptors && rc == 0; i++) {
        rc = start_listeners(acceptors[i]);
    }
    for (uint32_t i = 0; i < n_acceptors; i++) {
        acceptors[i]->withdrawn = rc < 0;
        pthread_mutex_unlock(&acceptors[i]->starting);
    }
    return rc;
}

int bow_acceptor_start(struct bow_acceptor *acceptor)
{
    return bow__acceptors_start(&acceptor, 1);
}

/* What can be asked */

uint16_t bow_acceptor_port(const struct bow_acceptor *acceptor)
{
    return acceptor->listeners[0].listening.port;
}

const char *bow_acceptor_addresses(const struct bow_acceptor *acceptor)
{
    return acceptor->addresses;
}

uint64_t bow_acceptor_n_refused(const struct bow_acceptor *acceptor)
{
    return atomic_load_explicit(&acceptor->n_refused, memory_order_relaxed);
}

/* Birth */

static int read_options(const struct bow_acceptor_options *given,
                        struct bow_acceptor_options *ret_options, const char **ret_wrong)
{
    struct bow_acceptor_options options = BOW_ACCEPTOR_OPTIONS_INIT;
    struct bow_channel_options channel = BOW_CHANNEL_OPTIONS_INIT;

    if (bow__options_read(&options, sizeof(options), given) < 0 ||
        bow__options_read(&channel, sizeof(channel), &options.channel) < 0) {
        *ret_wrong = "begin with BOW_ACCEPTOR_OPTIONS_INIT, and for options.channel with "
                     "BOW_CHANNEL_OPTIONS_INIT";
        return -EINVAL;
    }
    if (options.per_worker ? options.workers == NULL : options.loop == NULL) {
        *ret_wrong = options.per_worker ? "options.per_worker needs options.workers"
                                        : "options.loop is NULL";
        return -EINVAL;
    }
    if (options.unix_mode > BOW__MODE_MAX) {
        *ret_wrong = "options.unix_mode is at most 0777";
        return -EINVAL;
    }
    options.channel = channel;
    if (options.max_accepts_per_turn == 0) {
        options.max_accepts_per_turn = DEFAULT_MAX_ACCEPTS;
    }
    *ret_options = options;
    return 0;
}

static void init(struct bow_acceptor *acceptor)
{
    const struct bow_acceptor_options *options = &acceptor->options;

    for (uint32_t i = 0; i < acceptor->n_listeners; i++) {
        init_listener(&acceptor->listeners[i], acceptor,
                      options->per_worker
                          ? bow_group_get(options->workers, i % bow_group_size(options->workers))
                          : options->loop);
    }
    acceptor->home = options->loop != NULL ? options->loop : acceptor->listeners[0].loop;
    bow__loop_hold(acceptor->home);
    bow_task_init(&acceptor->closed_task, "acceptor closed", run_closed, acceptor);
    pthread_mutex_init(&acceptor->starting, NULL);
    pthread_mutex_init(&acceptor->lending, NULL);
    atomic_init(&acceptor->refs, 1);
    atomic_init(&acceptor->n_pending, acceptor->n_listeners);
    atomic_init(&acceptor->n_channels, 0);
    atomic_init(&acceptor->n_refused, 0);
    atomic_init(&acceptor->n_unset, 0);
    atomic_init(&acceptor->tell_at_ns, 0);
    acceptor->options.address = NULL;
    acceptor->options.channel.source = NULL;
}

int bow_acceptor_new(struct bow_context *context, const struct bow_acceptor_options *given,
                     struct bow_acceptor **ret_acceptor, struct bow_transport_error *ret_error)
{
    return bow__acceptor_new_from(context, given, NULL, ret_acceptor, ret_error);
}

int bow__acceptor_new_from(struct bow_context *context, const struct bow_acceptor_options *given,
                           struct bow__handed *handed, struct bow_acceptor **ret_acceptor,
                           struct bow_transport_error *ret_error)
{
    struct bow_acceptor_options options;

    const char *wrong = NULL;
    if (read_options(given, &options, &wrong) < 0) {
        return bow__transport_error(ret_error, "parsing", "the options", -EINVAL, wrong);
    }
    struct bow__opening opening = {.text = options.address, .n_each = 1, .handed = handed};
    if (options.per_worker) {
        opening.n_each = bow_group_size(options.workers);
    }
    opening.n_addresses =
        bow__listen_addresses(context, options.address, opening.addresses, ret_error);
    if (opening.n_addresses < 0) {
        return opening.n_addresses;
    }
    uint32_t n_allocated =
        opening.n_each * (uint32_t)opening.n_addresses + (handed != NULL ? handed->n_sockets : 0);
    struct bow_acceptor *acceptor = bow__alloc_zero(context, acceptor_bytes(n_allocated));
    if (acceptor == NULL) {
        return bow__transport_error(ret_error, "binding", options.address, -ENOMEM, NULL);
    }
    acceptor->context = context;
    acceptor->options = options;
    acceptor->n_allocated = n_allocated;
    int rc = bow__acceptor_alloc_addresses(acceptor, &opening);
    if (rc < 0) {
        (void)bow__transport_error(ret_error, "binding", options.address, rc, NULL);
        goto free_acceptor;
    }
    rc = bow__acceptor_open(acceptor, &opening, ret_error);
    if (rc < 0) {
        goto free_addresses;
    }
    bow__acceptor_name_addresses(acceptor, &opening);
    init(acceptor);
    *ret_acceptor = acceptor;
    return 0;

free_addresses:
    bow__free(context, acceptor->addresses, acceptor->addresses_bytes);
free_acceptor:
    bow__free(context, acceptor, acceptor_bytes(n_allocated));
    return rc;
}
