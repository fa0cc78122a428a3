/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The handler that reads a PROXY header, and the policy it goes by. Parsing is in
 * proxy_header.c, networks in networks.c.
 *
 * Design
 *
 * A policy is shared by channels of several loops. It is constant but for these:
 *
 *     atomic       order                                    partner
 *     refs         relaxed up, acq_rel down                 each other
 *     counts       relaxed: statistics                      none
 *     tell_at_ns   relaxed: who moves it on may log         none
 */

#include "base/alloc.h"
#include "base/log.h"
#include "base/options.h"
#include "base/refuse.h"
#include "base/text.h"
#include "transport/address/address.h"
#include "transport/address/networks.h"
#include "transport/address/transport_error.h"
#include "transport/channel/channel.h"
#include "transport/handlers/proxy_header.h"

#include <bowline/limits.h>
#include <bowline/proxy_protocol.h>
#include <errno.h>
#include <string.h>

struct bow_proxy_policy {
    struct bow_context *context;
    struct bow_proxy_options options; /* its networks are NULL: not ours to keep */
    struct bow__networks networks;
    atomic_uint refs;
    _Atomic(uint64_t) n_accepted;
    _Atomic(uint64_t) n_malformed;
    _Atomic(uint64_t) n_timed_out;
    _Atomic(uint64_t) n_refused;
    _Atomic(uint64_t) tell_at_ns;
};

/* The policy */

static void count(_Atomic(uint64_t) *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static uint64_t read_count(const _Atomic(uint64_t) *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

int bow_proxy_policy_new(struct bow_context *context, const struct bow_proxy_options *given,
                         struct bow_proxy_policy **ret_policy,
                         struct bow_transport_error *ret_error)
{
    struct bow_proxy_options options = BOW_PROXY_OPTIONS_INIT;
    struct bow__networks networks;
    struct bow__text why;

    if (bow__options_read(&options, sizeof(options), given) < 0) {
        return bow__transport_error(ret_error, "parsing", "the options", -EINVAL,
                                    "begin with BOW_PROXY_OPTIONS_INIT");
    }
    bow__text_clear(&why);
    int rc = bow__networks_parse(context, options.networks, &networks, &why);
    if (rc < 0) {
        return bow__transport_error(ret_error, "parsing", "the proxies' networks", rc,
                                    rc == -EINVAL ? why.bytes : NULL);
    }
    struct bow_proxy_policy *policy = bow__alloc_zero(context, sizeof(*policy));
    if (policy == NULL) {
        bow__networks_free(context, &networks);
        return bow__transport_error(ret_error, "parsing", "the options", -ENOMEM, NULL);
    }
    options.networks = NULL;
    if (options.max_header_bytes == 0) {
        options.max_header_bytes = BOW_LIMIT_PROXY_HEADER_BYTES;
    }
    if (options.timeout_ns == 0) {
        options.timeout_ns = BOW_LIMIT_FIRST_FRAME_NS;
    }
    policy->context = bow_context_ref(context);
    policy->options = options;
    policy->networks = networks;
    atomic_init(&policy->refs, 1);
    *ret_policy = policy;
    return 0;
}

struct bow_proxy_policy *bow_proxy_policy_ref(struct bow_proxy_policy *policy)
{
    atomic_fetch_add_explicit(&policy->refs, 1, memory_order_relaxed);
    return policy;
}

struct bow_proxy_policy *bow_proxy_policy_unref(struct bow_proxy_policy *policy)
{
    if (policy != NULL && atomic_fetch_sub_explicit(&policy->refs, 1, memory_order_acq_rel) == 1) {
        struct bow_context *context = policy->context;
        bow__networks_free(context, &policy->networks);
        bow__free(context, policy, sizeof(*policy));
        bow_context_unref(context);
    }
    return NULL;
}

int bow_proxy_policy_get_stats(const struct bow_proxy_policy *policy, struct bow_proxy_stats *stats)
{
    const size_t size = stats->size;

    if (size < sizeof(size) || size > sizeof(*stats)) {
        return bow__refuse(policy->context, -EINVAL,
                           "bow_proxy_policy_get_stats: set stats->size to its size first");
    }
    const struct bow_proxy_stats now = {
        .size = size,
        .accepted = read_count(&policy->n_accepted),
        .malformed = read_count(&policy->n_malformed),
        .timed_out = read_count(&policy->n_timed_out),
        .refused = read_count(&policy->n_refused),
    };
    memcpy(stats, &now, size);
    return 0;
}

/* The handler */

static struct bow_proxy_protocol *proxy_of(struct bow_handler *handler)
{
    return (struct bow_proxy_protocol *)(void *)handler;
}

static void stop(struct bow_proxy_protocol *proxy)
{
    proxy->is_over = true;
    bow_timer_stop(&proxy->timer);
}

static void fail(struct bow_proxy_protocol *proxy, _Atomic(uint64_t) *counter, int error,
                 const char *reason)
{
    struct bow_proxy_policy *policy = proxy->policy;
    struct bow_channel *channel = proxy->handler.channel;

    stop(proxy);
    count(counter);
    /* A proxy that is set up wrong sends many of them. */
    if (bow__log_is_due(&policy->tell_at_ns, bow_loop_now(channel->loop))) {
        bow__log(policy->context, BOW_LOG_WARNING,
                 "PROXY header from %s refused: %s (so far: %llu malformed, %llu late, %llu from "
                 "elsewhere)",
                 bow_channel_peer(channel), reason,
                 (unsigned long long)read_count(&policy->n_malformed),
                 (unsigned long long)read_count(&policy->n_timed_out),
                 (unsigned long long)read_count(&policy->n_refused));
    }
    bow_handler_close(&proxy->handler, error);
}

static void on_timer(struct bow_timer *timer, void *user)
{
    struct bow_proxy_protocol *proxy = user;
    (void)timer;

    fail(proxy, &proxy->policy->n_timed_out, -ETIMEDOUT, "it did not come in time");
}

/* Of one that connects directly nothing is read. */
static void on_added(struct bow_handler *handler)
{
    struct bow_proxy_protocol *proxy = proxy_of(handler);
    struct bow_proxy_policy *policy = bow_proxy_policy_ref(proxy->policy);
    struct bow_channel *channel = handler->channel;

    bow_timer_init(&proxy->timer, channel->loop, on_timer, proxy);
    if (bow__networks_contain(&policy->networks, bow_channel_peer(channel))) {
        bow_timer_start(&proxy->timer, policy->options.timeout_ns);
    } else if (policy->options.refuses_others) {
        fail(proxy, &policy->n_refused, -EACCES, "it comes from elsewhere");
    } else {
        stop(proxy);
        bow_channel_remove(handler);
    }
}

static void on_active(struct bow_handler *handler)
{
    proxy_of(handler)->holds_active = true;
}

/* Returns 0 or -ENOMEM. */
static int name_peer(struct bow_proxy_protocol *proxy, const struct bow__proxy_header *header)
{
    struct bow_channel *channel = proxy->handler.channel;
    const char *before = bow_channel_peer(channel);
    char name[BOW__ADDRESS_TEXT_BYTES];

    if (!header->has_addresses) {
        return 0;
    }
    bow__address_format(&header->source, name);
    int rc = bow__channel_name_peer(channel, name);
    if (rc == 0) {
        proxy->proxy = before;
    }
    return rc;
}

static void leave(struct bow_proxy_protocol *proxy)
{
    stop(proxy);
    count(&proxy->policy->n_accepted);
    bow_channel_remove(&proxy->handler);
    if (proxy->holds_active) {
        bow_handler_fire_active(&proxy->handler);
    }
}

static size_t on_read(struct bow_handler *handler, const struct bow_buf *bytes)
{
    struct bow_proxy_protocol *proxy = proxy_of(handler);
    struct bow_proxy_policy *policy = proxy->policy;
    struct bow__proxy_header header;
    const char *reason = NULL;

    if (proxy->is_over) {
        return 0;
    }
    proxy->n_seen = bytes->len;
    int rc = bow__proxy_header_parse((struct bow_slice){bytes->data, bytes->len},
                                     policy->options.max_header_bytes, &header, &reason);
    if (rc == -EAGAIN) {
        return 0;
    }
    if (rc < 0) {
        fail(proxy, &policy->n_malformed, rc, reason);
        return 0;
    }
    rc = name_peer(proxy, &header);
    if (rc < 0) {
        stop(proxy);
        bow_handler_close(handler, rc);
        return 0;
    }
    leave(proxy);
    return header.len;
}

/* Goes no further: nobody behind has heard of the channel yet. */
static void on_read_complete(struct bow_handler *handler)
{
    (void)handler;
}

/* One that sends nothing at all looks whether we are there. */
static void on_eof(struct bow_handler *handler)
{
    struct bow_proxy_protocol *proxy = proxy_of(handler);

    if (proxy->n_seen > 0) {
        fail(proxy, &proxy->policy->n_malformed, -EBADMSG, "the peer ended within it");
        return;
    }
    stop(proxy);
    bow_handler_close(handler, 0);
}

static void on_inactive(struct bow_handler *handler, int error)
{
    (void)error;
    stop(proxy_of(handler));
}

static void on_removed(struct bow_handler *handler)
{
    struct bow_proxy_protocol *proxy = proxy_of(handler);

    stop(proxy);
    bow_proxy_policy_unref(proxy->policy);
}

static const struct bow_handler_ops proxy_ops = {
    .name = "PROXY protocol",
    .on_added = on_added,
    .on_removed = on_removed,
    .on_active = on_active,
    .on_read = on_read,
    .on_read_complete = on_read_complete,
    .on_eof = on_eof,
    .on_inactive = on_inactive,
};

void bow_proxy_protocol_init(struct bow_proxy_protocol *proxy, struct bow_proxy_policy *policy)
{
    memset(proxy, 0, sizeof(*proxy));
    proxy->handler.ops = &proxy_ops;
    proxy->policy = policy;
}
