/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The life of a channel: birth on any thread, start on its loop, its phases in a turn, the end in
 * two steps (on_inactive at the end of the phase, on_removed and the memory in the turn's
 * last). Knows nothing of how bytes come and go.
 */

#include "transport/channel/channel.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/options.h"
#include "transport/address/address.h"
#include "transport/loop/watchdog.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

#define DEFAULT_MAX_READS 16u
#define DEFAULT_MAX_BYTES ((size_t)256 << 10)
#define DEFAULT_LOW_BYTES ((size_t)32 << 10)
#define DEFAULT_HIGH_BYTES ((size_t)64 << 10)
#define FIRST_RECV_BYTES ((size_t)16 << 10)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)
#define MAX_KEEPALIVE_S 32767 /* the kernel's */
#define N_KEEPALIVES 3

static void on_phase(struct bow__deferred *deferred);
static void on_reap(struct bow__deferred *deferred);
static void on_timer(struct bow_timer *timer, void *user);
static int run_start_task(void *user);

static void on_events(struct bow__watch *watch, uint32_t events)
{
    struct bow_channel *channel = BOW__CONTAINER(watch, struct bow_channel, watch);

    if ((events & BOW_POLL_OUT) != 0) {
        channel->is_blocked = false;
        bow__channel_send(channel);
        bow__channel_schedule_phase(channel);
    }
    if (bow__channel_is_open(channel) && (events & ~(uint32_t)BOW_POLL_OUT) != 0) {
        bow__channel_on_readable(channel, events);
    }
}

static void on_loop_shutdown(struct bow__watch *watch)
{
    bow__channel_close_now(BOW__CONTAINER(watch, struct bow_channel, watch), -ESHUTDOWN);
}

static void on_watch_lost(struct bow__watch *watch, int error)
{
    bow__channel_fail(BOW__CONTAINER(watch, struct bow_channel, watch), error);
}

static const struct bow__watch_ops watch_ops = {
    .on_events = on_events,
    .on_shutdown = on_loop_shutdown,
    .on_lost = on_watch_lost,
};

/* Birth */

/* The channel, its data and its peer's name, in one piece. */
static struct bow_channel *alloc_channel(struct bow_context *context, size_t data_bytes,
                                         const char *peer)
{
    size_t peer_bytes = strlen(peer) + 1;
    size_t size = 0;

    if (__builtin_add_overflow(BOW__CHANNEL_DATA_AT + peer_bytes, data_bytes, &size)) {
        return NULL;
    }
    struct bow_channel *channel = bow__alloc_zero(context, size);
    if (channel == NULL) {
        return NULL;
    }
    channel->alloc_bytes = size;
    char *name = (char *)channel + BOW__CHANNEL_DATA_AT + data_bytes;
    memcpy(name, peer, peer_bytes);
    atomic_init(&channel->peer, name);
    return channel;
}

static void init_limits(struct bow_channel *channel, const struct bow_channel_options *options)
{
    channel->max_reads_per_turn =
        options->max_reads_per_turn != 0 ? options->max_reads_per_turn : DEFAULT_MAX_READS;
    channel->max_bytes_per_turn =
        options->max_bytes_per_turn != 0 ? options->max_bytes_per_turn : DEFAULT_MAX_BYTES;
    channel->recv_bytes = FIRST_RECV_BYTES;
    channel->low_bytes = DEFAULT_LOW_BYTES;
    channel->high_bytes = DEFAULT_HIGH_BYTES;
}

static void set_option(const struct bow_channel *channel, int level, int name, int value)
{
    const struct bow_system *system = channel->system;

    /* Failing costs speed, or that a loss is found late. */
    (void)system->setsockopt(system->user, channel->watch.fd, level, name, &value, sizeof(value));
}

/* Rounded up: what is set at all is not to become the system's default. */
static int in_units(uint64_t ns, uint64_t unit_ns, uint64_t max)
{
    uint64_t n = ns / unit_ns + (ns % unit_ns != 0);

    return (int)(n < max ? n : max);
}

static void set_tcp_options(const struct bow_channel *channel,
                            const struct bow_channel_options *options,
                            const struct bow_sockaddr *peer)
{
    if (peer->storage.ss_family != AF_INET && peer->storage.ss_family != AF_INET6) {
        return;
    }
    /* Without it small writes wait for the peer's delayed ACK. */
    set_option(channel, IPPROTO_TCP, TCP_NODELAY, 1);
    if (options->keepalive_ns > 0) {
        int seconds = in_units(options->keepalive_ns, NS_PER_S, MAX_KEEPALIVE_S);
        set_option(channel, IPPROTO_TCP, TCP_KEEPIDLE, seconds);
        set_option(channel, IPPROTO_TCP, TCP_KEEPINTVL, seconds);
        set_option(channel, IPPROTO_TCP, TCP_KEEPCNT, N_KEEPALIVES);
        set_option(channel, SOL_SOCKET, SO_KEEPALIVE, 1);
    }
    if (options->tcp_timeout_ns > 0) {
        set_option(channel, IPPROTO_TCP, TCP_USER_TIMEOUT,
                   in_units(options->tcp_timeout_ns, NS_PER_MS, INT_MAX));
    }
}

/* The kernel took them down at connect() or listen(), so asking later would say the same. */
static void take_credentials(struct bow_channel *channel, const struct bow_sockaddr *peer)
{
    struct ucred credentials;
    socklen_t len = sizeof(credentials);

    if (peer->storage.ss_family != AF_UNIX && bow__address_inproc_name(peer) == NULL) {
        return;
    }
    int rc = channel->system->getsockopt(channel->system->user, channel->watch.fd, SOL_SOCKET,
                                         SO_PEERCRED, &credentials, &len);
    if (rc == 0 && len == sizeof(credentials)) {
        channel->credentials = (struct bow_peer_credentials){
            .pid = credentials.pid, .uid = credentials.uid, .gid = credentials.gid};
        channel->has_credentials = true;
    }
}

int bow__channel_new(const struct bow__channel_birth *birth, struct bow_channel **ret_channel)
{
    struct bow_context *context = bow_loop_context(birth->loop);
    char peer[BOW__ADDRESS_TEXT_BYTES];

    bow__address_format(birth->peer, peer);
    struct bow_channel *channel = alloc_channel(context, birth->options->data_bytes, peer);
    if (channel == NULL) {
        return -ENOMEM;
    }
    channel->loop = birth->loop;
    channel->context = context;
    channel->system = birth->socket->system;
    channel->has_watchdog = bow__watchdog_is_on(birth->loop);
    atomic_init(&channel->refs, 1);
    atomic_init(&channel->state, BOW__CHANNEL_NEW);
    channel->watch = (struct bow__watch){
        .ops = &watch_ops,
        .fd = birth->socket->fd,
        .source = birth->socket->source,
    };
    bow__list_init(&channel->watch.link);
    bow__list_init(&channel->phase.link);
    bow__list_init(&channel->reap.link);
    channel->phase.fn = on_phase;
    channel->reap.fn = on_reap;
    channel->on_gone = birth->on_gone;
    channel->owner_user = birth->user;
    init_limits(channel, birth->options);
    bow__pipeline_init(channel);
    bow_timer_init(&channel->timer, channel->loop, on_timer, channel);
    channel->close_at_ns = BOW_NEVER;
    channel->start = (struct bow__channel_startup){
        .on_channel = birth->options->on_channel,
        .on_channel_user = birth->options->user,
        .on_started = birth->on_started,
    };
    bow_task_init(&channel->start.task, "channel start", run_start_task, channel);
    set_tcp_options(channel, birth->options, birth->peer);
    take_credentials(channel, birth->peer);
    bow__loop_hold(channel->loop);
    bow__loop_count_channel(channel->loop, 1);
    *ret_channel = channel;
    return 0;
}

/* Start */

/* From here on the memory of `start` is for what can be asked of a channel. */
static struct bow__channel_startup take_start(struct bow_channel *channel)
{
    struct bow__channel_startup start = channel->start;

    assert(bow__channel_state(channel) == BOW__CHANNEL_NEW);
    channel->resumed_ns = 0;
    channel->sent_ns = 0;
    channel->progress_ns = 0;
    bow__channel_ops_init(channel);
    return start;
}

static int set_up(struct bow_channel *channel, const struct bow__channel_startup *start)
{
    int rc = bow__loop_watch(channel->loop, &channel->watch, channel->watch.fd,
                             BOW_POLL_IN | BOW_POLL_ERR);
    if (rc < 0) {
        return rc;
    }
    atomic_store_explicit(&channel->state, BOW__CHANNEL_ACTIVE, memory_order_release);
    if (start->on_channel != NULL) {
        rc = start->on_channel(channel, start->on_channel_user);
    }
    return rc;
}

static void start_here(struct bow_channel *channel)
{
    struct bow__channel_startup start = take_start(channel);
    int rc = set_up(channel, &start);

    if (rc < 0) {
        bow__channel_close_now(channel, rc);
    }
    if (bow__channel_is_open(channel)) {
        channel->was_active = true;
        bow_handler_fire_active(&channel->head);
        bow__channel_schedule_phase(channel);
    }
    if (start.on_started != NULL) {
        start.on_started(channel, rc, channel->owner_user);
    }
}

static int run_start_task(void *user)
{
    start_here(user);
    return 0;
}

int bow__channel_start(struct bow_channel *channel)
{
    if (bow_loop_in_loop(channel->loop)) {
        start_here(channel);
        return 0;
    }
    int rc = bow__loop_post_internal(channel->loop, &channel->start.task, 0);
    if (rc < 0) {
        atomic_store_explicit(&channel->state, BOW__CHANNEL_CLOSED, memory_order_release);
        channel->system->close(channel->system->user, channel->watch.fd);
        channel->watch.fd = -1;
        bow__loop_count_channel(channel->loop, -1);
        bow__channel_release(channel);
    }
    return rc;
}

/* The phases, and the end */

static void end(struct bow_channel *channel)
{
    if (channel->was_active) {
        bow__pipeline_inactive(channel, channel->close_error);
    }
    channel->has_ended = true;
    /* Closing while this phase sent, or a completion, may have asked for another one. */
    bow__list_remove(&channel->phase.link);
    bow__channel_schedule_reap(channel);
}

static void on_phase(struct bow__deferred *deferred)
{
    struct bow_channel *channel = BOW__CONTAINER(deferred, struct bow_channel, phase);

    if (bow__channel_is_open(channel)) {
        bow__channel_send(channel);
    }
    bow__channel_run_completions(channel);
    if (bow__channel_is_open(channel)) {
        bow__channel_update_interest(channel);
    } else if (!channel->has_ended) {
        end(channel);
    }
}

static void on_reap(struct bow__deferred *deferred)
{
    struct bow_channel *channel = BOW__CONTAINER(deferred, struct bow_channel, reap);

    bow__pipeline_run_removed(channel);
    if (!channel->has_ended) {
        return;
    }
    channel->is_reaped = true;
    bow__pipeline_clear(channel);
    bow__unread_free(channel->context, &channel->unread);
    bow__loop_count_channel(channel->loop, -1);
    bow__channel_release(channel);
}

int bow__channel_local(const struct bow_channel *channel, char text[BOW__ADDRESS_TEXT_BYTES])
{
    const struct bow_system *system = channel->system;
    struct bow_sockaddr address = {.len = 0};

    text[0] = '\0';
    /* What has no descriptor has no such function. */
    int rc = bow__channel_is_open(channel) && system->getsockname != NULL
                 ? system->getsockname(system->user, channel->watch.fd, &address)
                 : -ENOTCONN;
    if (rc == 0) {
        bow__address_format(&address, text);
    }
    return rc;
}

static void go_on(struct bow_channel *channel)
{
    int lost_error = channel->lost_error;
    bool lasts = channel->is_paused;

    channel->wants_turn = false;
    if (channel->wants_delivery) {
        channel->wants_delivery = false;
        bow__channel_redeliver(channel);
    }
    if (lost_error != 0 && lasts) {
        bow__channel_fail(channel, lost_error);
    } else if (lost_error != 0) {
        bow__channel_read_out(channel, lost_error);
    }
    bow__channel_schedule_phase(channel);
}

static void on_timer(struct bow_timer *timer, void *user)
{
    struct bow_channel *channel = user;
    uint64_t now_ns = bow_loop_now(channel->loop);
    bool was_due = channel->close_at_ns <= now_ns;

    if (channel->wants_turn) {
        go_on(channel);
    }
    if (!bow__channel_is_open(channel)) {
        return;
    }
    /* A deadline that a handler has set just now leaves it this turn to send. */
    if (was_due && channel->is_lingering && bow__channel_lingers_on(channel)) {
        return;
    }
    if (was_due && channel->close_at_ns <= now_ns) {
        bow__channel_close_now(channel,
                               channel->is_lingering ? channel->flush_close_error : -ETIMEDOUT);
    } else if (!channel->wants_turn) {
        bow_timer_start_at(timer, channel->close_at_ns);
    }
}
