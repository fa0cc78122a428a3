/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_PROXY_PROTOCOL_H
#define BOWLINE_PROXY_PROTOCOL_H

/*
 * Who is behind a proxy: reads the header of the PROXY protocol, version 1 or 2
 * (HAProxy's proxy-protocol.txt), that a load balancer sends in front of a client's bytes, and
 * makes the client's address what bow_channel_peer() says.
 *
 *     client ─► load balancer ── PROXY TCP4 198.51.100.7 … \r\n ── client's bytes ─► channel
 *
 * Who can connect directly could claim any address, so a header is read only from
 * networks that are listed, and from there it must come. The bytes of others are
 * passed on as they are, or others are refused. A checksum in it is verified.
 *
 * It stands in front, before TLS, and takes itself out when the header is read. Handlers behind it
 * see on_active then, and not before. What is malformed, too long or late ends the
 * connection; a policy counts that, and says it in the log at most every ten seconds.
 *
 *     struct bow_proxy_policy *policy;              once, for a listener
 *     options.networks = "10.0.0.0/8, fd00::/8";
 *     int rc = bow_proxy_policy_new(context, &options, &policy, &error);
 *
 *     bow_proxy_protocol_init(&conn->proxy, policy);       for each channel, in on_channel
 *     bow_channel_add_first(channel, &conn->proxy.handler);
 */

#include <bowline/channel.h>
#include <bowline/timer.h>

#ifdef __cplusplus
extern "C" {
#endif

/** From where headers are believed, the limits, and the counts. Shared by channels of any loop. */
struct bow_proxy_policy;

/** What a policy is made with; begin with BOW_PROXY_OPTIONS_INIT, set the networks. */
struct bow_proxy_options {
    size_t size;          /* sizeof this struct, set by the INIT */
    const char *networks; /* "10.0.0.0/8, 192.0.2.7, fd00::/8, unix": separated by commas; "unix"
                             is any Unix socket */
    bool refuses_others;  /* peers elsewhere are closed with -EACCES, instead of served directly */
    size_t max_header_bytes; /* of version 2 with its extensions; 0: BOW_LIMIT_PROXY_HEADER_BYTES */
    uint64_t timeout_ns;     /* for the whole header; 0: BOW_LIMIT_FIRST_FRAME_NS */
};

#define BOW_PROXY_OPTIONS_INIT BOW__INIT(struct bow_proxy_options, )

/**
 * Make a policy with one reference.
 *
 * Thread:  any
 * Owns:    shares `context`; gives `*ret_policy`, drop it with bow_proxy_policy_unref()
 * Returns: 0; -ENOMEM; -EINVAL (options, or networks, which `*ret_error` explains; it may be NULL)
 */
BOW_EXPORT BOW_MUST_USE int bow_proxy_policy_new(struct bow_context *context,
                                                 const struct bow_proxy_options *options,
                                                 struct bow_proxy_policy **ret_policy,
                                                 struct bow_transport_error *ret_error);
/** Take a reference to a policy. Thread: any. Returns: `policy`. */
BOW_EXPORT struct bow_proxy_policy *bow_proxy_policy_ref(struct bow_proxy_policy *policy);
/** Drop a reference to a policy; NULL is allowed. Thread: any. Returns: NULL. */
BOW_EXPORT struct bow_proxy_policy *bow_proxy_policy_unref(struct bow_proxy_policy *policy);

/** How connections of a policy fared. Begin with `size` set, the rest zero. */
struct bow_proxy_stats {
    size_t size;        /* sizeof this struct */
    uint64_t accepted;  /* headers that were read */
    uint64_t malformed; /* connections ended for that: too long, or ended within, too */
    uint64_t timed_out;
    uint64_t refused; /* for where they came from */
};

/** Fill in as much of `stats` as its size allows. Thread: any. Returns: 0 or -EINVAL (size). */
BOW_EXPORT int bow_proxy_policy_get_stats(const struct bow_proxy_policy *policy,
                                          struct bow_proxy_stats *stats);

/** The handler, embedded in what a connection has. */
struct bow_proxy_protocol {
    struct bow_handler handler;      /* public: add this */
    const char *proxy;               /* read-only: the peer of the socket, once the header has named
                                        another; lives as long as the channel */
    struct bow_proxy_policy *policy; /* private, as all below */
    struct bow_timer timer;
    size_t n_seen;
    bool holds_active; /* on_active has come, and waits for the header */
    bool is_over;
};

/** Set up a handler; takes a reference to `policy` while it is in a pipeline. Memory is the
 * caller's until on_removed: in the channel's own (bow_channel_data) it needs no care. Thread: any.
 */
BOW_EXPORT void bow_proxy_protocol_init(struct bow_proxy_protocol *proxy,
                                        struct bow_proxy_policy *policy);

#ifdef __cplusplus
}
#endif
#endif
