/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One attempt to connect to a target: resolve, race the addresses as RFC 8305
 * says, turn the first connected socket into a channel. Every way to the end
 * goes through finish(), which runs `done` once and lets go of all the rest.
 *
 *     start ─► resolving ─► racing ─► channel ─► done
 *                  └───────────┴── cancel, time-out, shutdown of the loop ─► done
 *
 * Nothing happens inside the starter: the first step is a timer's.
 */

#include "transport/channel/connector.h"
#include "base/alloc.h"
#include "base/options.h"
#include "transport/address/address.h"
#include "transport/address/transport_error.h"
#include "transport/channel/channel.h"
#include "transport/channel/transport.h"

#include <assert.h>
#include <bowline/limits.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* RFC 8305, section 5: the Connection Attempt Delay. */
#define ATTEMPT_DELAY_NS (UINT64_C(250) * 1000000u)
/* A Unix socket whose backlog is full refuses at once instead of queueing. */
#define BACKLOG_DELAY_NS (UINT64_C(10) * 1000000u)

struct attempt {
    struct bow__watch watch;
    struct bow__socket socket;
    bool is_open; /* the socket is */
    struct bow_connect *connect;
};

enum step {
    STEP_BEGIN,
    STEP_NEXT,   /* try the next address */
    STEP_CANCEL, /* tell that it was given up */
};

struct bow_connect {
    struct bow_loop *loop;
    struct bow_context *context;
    const struct bow__transport *transport; /* of the address */
    struct bow_channel_options options;
    bow_connect_fn done;
    void *user;
    uint64_t timeout_ns;
    struct bow__address address;
    struct bow_sockaddr source;   /* len 0: none */
    struct bow__resolve *resolve; /* NULL: not resolving */
    struct bow_timer step_timer;
    struct bow_timer timeout;
    struct bow_loop_hook hook;
    struct bow__deferred reap;
    enum step step;
    const char *stage;
    bool has_finished;

    struct bow__address_list *list; /* `own`, or who started it has one */
    struct bow__address_list own;
    struct attempt attempts[BOW__RESOLVE_MAX]; /* attempts[i] is for list->addresses[i] */
    int n_begun;                               /* all before that index that were left */
    int n_open;
    int told_index; /* of the one whose failure is told if all fail */
    int told_error; /* 0: none has failed */

    size_t target_bytes;
    char target[];
};

/* The end */

static void close_attempt(struct attempt *attempt)
{
    struct bow_connect *connect = attempt->connect;

    if (attempt->is_open) {
        bow__loop_unwatch(connect->loop, &attempt->watch);
        connect->transport->abandon(&attempt->socket);
        attempt->is_open = false;
        connect->n_open--;
    }
}

static void let_go(struct bow_connect *connect)
{
    for (int i = 0; i < connect->n_begun; i++) {
        close_attempt(&connect->attempts[i]);
    }
    if (connect->resolve != NULL) {
        bow__resolve_cancel(connect->resolve);
        connect->resolve = NULL;
    }
    bow_timer_stop(&connect->step_timer);
    bow_timer_stop(&connect->timeout);
}

static void reap(struct bow__deferred *deferred)
{
    struct bow_connect *connect = BOW__CONTAINER(deferred, struct bow_connect, reap);
    bow__free(connect->context, connect, sizeof(*connect) + connect->target_bytes);
}

static void finish(struct bow_connect *connect, struct bow_channel *channel,
                   const struct bow_transport_error *error)
{
    if (connect->has_finished) {
        return;
    }
    connect->has_finished = true;
    let_go(connect);
    bow_loop_remove_hook(connect->loop, &connect->hook);
    connect->done(channel, error, connect->user);
    bow__loop_defer_free(connect->loop, &connect->reap);
}

/* "example.org:80 (192.0.2.1:80)", or the target alone when it says as much. */
static void describe(const struct bow_connect *connect, int index, char *text, size_t size)
{
    char address[BOW__ADDRESS_TEXT_BYTES];

    if (connect->address.kind != BOW__ADDRESS_NAME || index < 0) {
        snprintf(text, size, "%s", connect->target);
        return;
    }
    bow__address_format(&connect->list->addresses[index], address);
    snprintf(text, size, "%s (%s)", connect->target, address);
}

static void fail(struct bow_connect *connect, int index, int error, const char *detail)
{
    char text[BOW__HOST_BYTES + BOW__ADDRESS_TEXT_BYTES + 16];
    struct bow_transport_error reason;

    describe(connect, index, text, sizeof(text));
    bow__transport_error(&reason, connect->stage, text, error, detail);
    finish(connect, NULL, &reason);
}

static void tell_timeout(const struct bow_connect *connect, struct bow__text *text)
{
    bow__text_printf(text, "no answer within %llu ms; ",
                     (unsigned long long)(connect->timeout_ns / 1000000u));
    if (connect->resolve == NULL) {
        bow__text_printf(text, "is the host up, and does a firewall drop packets?");
        return;
    }
    if (bow__resolve_is_waiting(connect->resolve)) {
        bow__text_printf(text, "BOW_LIMIT_LOOKUPS (%u) other names are being looked up; ",
                         BOW_LIMIT_LOOKUPS);
    }
    bow__text_printf(text, "does the name server answer?");
}

/* Of those that are under way, or -1. */
static int last_open(const struct bow_connect *connect)
{
    int index = connect->n_begun - 1;

    while (index >= 0 && !connect->attempts[index].is_open) {
        index--;
    }
    return index;
}

static void on_timeout(struct bow_timer *timer, void *user)
{
    struct bow_connect *connect = user;
    struct bow__text detail;
    (void)timer;

    for (int i = 0; i < connect->n_begun; i++) {
        connect->list->is_spent[i] = true;
    }
    bow__text_clear(&detail);
    tell_timeout(connect, &detail);
    fail(connect, last_open(connect), -ETIMEDOUT, detail.bytes);
}

static void on_loop_shutdown(struct bow_loop_hook *hook)
{
    struct bow_connect *connect = BOW__CONTAINER(hook, struct bow_connect, hook);
    fail(connect, -1, -ESHUTDOWN, "the loop shuts down");
}

static void on_watch_shutdown(struct bow__watch *watch)
{
    struct attempt *attempt = BOW__CONTAINER(watch, struct attempt, watch);
    on_loop_shutdown(&attempt->connect->hook);
}

/* Racing */

static void try_next(struct bow_connect *connect);

static bool has_next(const struct bow_connect *connect)
{
    return bow__address_list_next(connect->list, connect->n_begun) >= 0;
}

static void on_attempt_failed(struct bow_connect *connect, int index, int error)
{
    connect->list->is_spent[index] = true;
    if (connect->told_error == 0 || !bow__is_out_of_reach(error)) {
        connect->told_index = index;
        connect->told_error = error;
    }
    if (has_next(connect)) {
        try_next(connect);
    } else if (connect->n_open == 0) {
        fail(connect, connect->told_index, connect->told_error,
             connect->transport->advice(connect->told_error));
    }
}

/* A connected socket */

static void on_channel_started(struct bow_channel *channel, int error, void *user)
{
    struct bow_connect *connect = user;

    if (error == 0 && bow_channel_is_active(channel)) {
        finish(connect, channel, NULL);
        return;
    }
    fail(connect, connect->list->connected, error < 0 ? error : -ECONNABORTED,
         error < 0 ? "the channel could not be set up" : "closed while it was set up");
}

static bool is_own_peer(const struct attempt *attempt)
{
    const struct bow__transport *transport = attempt->connect->transport;

    return transport->is_own_peer != NULL && transport->is_own_peer(&attempt->socket);
}

static void take_connected(struct bow_connect *connect, int index)
{
    struct attempt *attempt = &connect->attempts[index];

    if (is_own_peer(attempt)) {
        close_attempt(attempt);
        on_attempt_failed(connect, index, -ECONNREFUSED);
        return;
    }
    struct bow_channel *channel = NULL;
    const struct bow__channel_birth birth = {
        .loop = connect->loop,
        .socket = &attempt->socket,
        .peer = &connect->list->addresses[index],
        .options = &connect->options,
        .on_started = on_channel_started,
        .user = connect,
    };

    connect->list->connected = index;
    connect->list->is_spent[index] = true;
    bow__loop_unwatch(connect->loop, &attempt->watch);
    int rc = bow__channel_new(&birth, &channel);
    if (rc < 0) {
        fail(connect, index, rc, NULL);
        return;
    }
    attempt->is_open = false;
    connect->n_open--;
    let_go(connect);
    (void)bow__channel_start(channel); /* on this thread it can't be refused */
}

/* What becomes of the attempts */

static void on_watch_lost(struct bow__watch *watch, int error)
{
    struct attempt *attempt = BOW__CONTAINER(watch, struct attempt, watch);
    struct bow_connect *connect = attempt->connect;
    int index = (int)(attempt - connect->attempts);

    close_attempt(attempt);
    on_attempt_failed(connect, index, error);
}

static void on_events(struct bow__watch *watch, uint32_t events)
{
    struct attempt *attempt = BOW__CONTAINER(watch, struct attempt, watch);
    struct bow_connect *connect = attempt->connect;
    int index = (int)(attempt - connect->attempts);
    int error = 0;
    socklen_t len = sizeof(error);
    (void)events;

    const struct bow_system *system = attempt->socket.system;
    int rc = system->getsockopt(system->user, watch->fd, SOL_SOCKET, SO_ERROR, &error, &len);
    if (rc == 0 && error == 0) {
        take_connected(connect, index);
        return;
    }
    close_attempt(attempt);
    on_attempt_failed(connect, index, rc < 0 ? rc : -error);
}

static const struct bow__watch_ops watch_ops = {
    .on_events = on_events,
    .on_shutdown = on_watch_shutdown,
    .on_lost = on_watch_lost,
};

/* Returns 0 when it is under way, 1 when it is connected, or a negative errno. */
static int begin_attempt(struct bow_connect *connect, int index)
{
    struct attempt *attempt = &connect->attempts[index];

    int rc = connect->transport->connect(connect->context, &connect->list->addresses[index],
                                         &connect->source, &attempt->socket);
    if (rc < 0) {
        return rc;
    }
    attempt->is_open = true;
    connect->n_open++;
    if (rc == 1) {
        return 1;
    }
    attempt->watch.source = attempt->socket.source;
    rc = bow__loop_watch(connect->loop, &attempt->watch, attempt->socket.fd, BOW_POLL_OUT);
    if (rc < 0) {
        close_attempt(attempt);
    }
    return rc;
}

static void later(struct bow_connect *connect, enum step step, uint64_t delay_ns)
{
    connect->step = step;
    bow_timer_start(&connect->step_timer, delay_ns);
}

/* Whose backlog says that it is full. */
static bool is_local_socket(const struct bow__address *address)
{
    return address->kind == BOW__ADDRESS_UNIX || address->kind == BOW__ADDRESS_INPROC;
}

static void try_next(struct bow_connect *connect)
{
    int index = bow__address_list_next(connect->list, connect->n_begun);

    assert(index >= 0);
    bow_timer_stop(&connect->step_timer);
    connect->attempts[index] = (struct attempt){
        .watch = {.ops = &watch_ops, .fd = -1},
        .connect = connect,
    };
    bow__list_init(&connect->attempts[index].watch.link);
    connect->n_begun = index + 1;
    int rc = begin_attempt(connect, index);
    if (rc == 1) {
        take_connected(connect, index);
        return;
    }
    if (rc == -EAGAIN && is_local_socket(&connect->address)) {
        connect->n_begun = index;
        later(connect, STEP_NEXT, BACKLOG_DELAY_NS);
        return;
    }
    if (rc < 0) {
        on_attempt_failed(connect, index, rc);
        return;
    }
    if (has_next(connect)) {
        later(connect, STEP_NEXT, ATTEMPT_DELAY_NS);
    }
}

/* Those that the source cannot reach, unless it can reach none: trying says so then. */
static void leave_out(struct bow_connect *connect)
{
    struct bow__address_list *list = connect->list;
    const int family = connect->source.storage.ss_family;
    bool has_any = false;

    for (int i = 0; i < list->n; i++) {
        has_any |= list->addresses[i].storage.ss_family == family;
    }
    for (int i = 0; has_any && i < list->n; i++) {
        list->is_spent[i] = list->addresses[i].storage.ss_family != family;
    }
}

static void on_resolved(const struct bow__resolved *resolved, void *user)
{
    struct bow_connect *connect = user;

    connect->resolve = NULL;
    if (resolved->n <= 0) {
        fail(connect, -1, resolved->n < 0 ? resolved->n : -ENOENT,
             resolved->reason != NULL ? resolved->reason : "the name has no address");
        return;
    }
    connect->stage = "connecting";
    bow__address_list_fill(connect->list, resolved);
    if (connect->source.len > 0) {
        leave_out(connect);
    }
    try_next(connect);
}

static void begin(struct bow_connect *connect)
{
    if (connect->address.kind != BOW__ADDRESS_NAME) {
        bow__address_list_clear(connect->list);
        connect->list->addresses[0] = connect->address.sockaddr;
        connect->list->n = 1;
    }
    if (connect->list->n > 0) {
        connect->stage = "connecting";
        try_next(connect);
        return;
    }
    connect->stage = "resolving";
    int rc = bow__resolve_start(connect->loop, connect->address.host, connect->address.port,
                                on_resolved, connect, &connect->resolve);
    if (rc < 0) {
        fail(connect, -1, rc, NULL);
    }
}

static void on_step(struct bow_timer *timer, void *user)
{
    struct bow_connect *connect = user;
    (void)timer;

    switch (connect->step) {
    case STEP_BEGIN:
        begin(connect);
        return;
    case STEP_NEXT:
        try_next(connect);
        return;
    case STEP_CANCEL:
        fail(connect, -1, -ECANCELED, "given up by the caller");
        return;
    }
}

/* Starting and giving up */

static int parse_target(const char *target, struct bow__address *ret_address,
                        struct bow_transport_error *ret_error)
{
    struct bow__text why;

    bow__text_clear(&why);
    int rc = bow__address_parse(target, ret_address, &why);
    if (rc < 0) {
        return bow__transport_error(ret_error, "parsing", target != NULL ? target : "the target",
                                    rc, why.bytes);
    }
    if (ret_address->kind == BOW__ADDRESS_ANY) {
        return bow__transport_error(ret_error, "parsing", target, -EINVAL,
                                    "\"*\" is for listening; connect to a host");
    }
    if (ret_address->kind == BOW__ADDRESS_FD) {
        return bow__transport_error(ret_error, "parsing", target, -EINVAL,
                                    "\"fd:\" is for listening on a socket that was inherited");
    }
    if (!is_local_socket(ret_address) && ret_address->port == 0) {
        return bow__transport_error(ret_error, "parsing", target, -EINVAL,
                                    "port 0 is for listening; connect to a port from 1 to 65535");
    }
    return 0;
}

static int parse_source(const char *source, struct bow_sockaddr *ret_source,
                        struct bow_transport_error *ret_error)
{
    ret_source->len = 0;
    if (source == NULL || bow__sockaddr_parse_ip(source, ret_source) == 0) {
        return 0;
    }
    return bow__transport_error(
        ret_error, "parsing", source, -EINVAL,
        "a source is an address of IP, as 192.0.2.1 or 2001:db8::1, without "
        "a port");
}

static struct bow_connect *new_connect(struct bow_loop *loop, const char *target)
{
    struct bow_context *context = bow_loop_context(loop);
    size_t target_bytes = strlen(target) + 1;
    struct bow_connect *connect = bow__alloc_zero(context, sizeof(*connect) + target_bytes);

    if (connect == NULL) {
        return NULL;
    }
    connect->loop = loop;
    connect->context = context;
    connect->target_bytes = target_bytes;
    memcpy(connect->target, target, target_bytes);
    connect->stage = "connecting";
    connect->hook.fn = on_loop_shutdown;
    connect->reap.fn = reap;
    bow__list_init(&connect->reap.link);
    bow_timer_init(&connect->step_timer, loop, on_step, connect);
    bow_timer_init(&connect->timeout, loop, on_timeout, connect);
    return connect;
}

int bow__connect_start(struct bow_loop *loop, const char *target,
                       const struct bow_channel_options *given, uint64_t timeout_ns,
                       struct bow__address_list *list, bow_connect_fn done, void *user,
                       struct bow_connect **ret_connect, struct bow_transport_error *ret_error)
{
    struct bow_channel_options options = BOW_CHANNEL_OPTIONS_INIT;
    struct bow__address address;
    struct bow_sockaddr source;

    assert(bow__loop_may_touch(loop));
    if (bow__options_read(&options, sizeof(options), given) < 0 || done == NULL) {
        return bow__transport_error(ret_error, "parsing", "the options", -EINVAL,
                                    "begin with BOW_CHANNEL_OPTIONS_INIT");
    }
    int rc = parse_target(target, &address, ret_error);
    if (rc == 0) {
        rc = parse_source(options.source, &source, ret_error);
    }
    if (rc < 0) {
        return rc;
    }
    struct bow_connect *connect = new_connect(loop, target);
    if (connect == NULL) {
        return bow__transport_error(ret_error, "connecting", target, -ENOMEM, NULL);
    }
    connect->address = address;
    connect->source = source;
    connect->list = list != NULL ? list : &connect->own;
    connect->transport = bow__transport_of(address.kind);
    connect->options = options;
    connect->options.source = NULL; /* it was borrowed */
    connect->done = done;
    connect->user = user;
    connect->timeout_ns = timeout_ns;
    rc = bow_loop_add_hook(loop, &connect->hook);
    if (rc < 0) {
        bow__free(connect->context, connect, sizeof(*connect) + connect->target_bytes);
        return bow__transport_error(ret_error, "connecting", target, rc, "the loop has ended");
    }
    bow_timer_start(&connect->timeout, timeout_ns);
    later(connect, STEP_BEGIN, 0);
    if (ret_connect != NULL) {
        *ret_connect = connect;
    }
    return 0;
}

int bow_connect_start(struct bow_loop *loop, const char *target,
                      const struct bow_channel_options *options, uint64_t timeout_ns,
                      bow_connect_fn done, void *user, struct bow_connect **ret_connect,
                      struct bow_transport_error *ret_error)
{
    return bow__connect_start(loop, target, options, timeout_ns, NULL, done, user, ret_connect,
                              ret_error);
}

const char *bow_connect_stage(const struct bow_connect *connect)
{
    return connect->stage;
}

void bow_connect_cancel(struct bow_connect *connect)
{
    assert(bow__loop_may_touch(connect->loop));
    if (connect->has_finished) {
        return;
    }
    let_go(connect);
    later(connect, STEP_CANCEL, 0);
}
