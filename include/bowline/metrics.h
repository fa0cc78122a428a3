/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_METRICS_H
#define BOWLINE_METRICS_H

/*
 * Counters of a server or client. Each loop counts in memory of its own without
 * locks or shared cache lines; a tail task of the loop publishes them at most every
 * 10 ms, and reading adds up what was published. A client that drives its own loop also
 * publishes when it stops, so that its finished calls are counted. Counters only grow; gauges say
 * so.
 */

#include <bowline/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BOW_N_CODES 17

struct bow_client;
struct bow_server;

/** What one method's calls came to. Path "*" stands for all unknown methods together. */
struct bow_method_metrics {
    const char *path;
    uint64_t started;
    uint64_t ended[BOW_N_CODES]; /* by status code */
    uint64_t bytes_in;           /* message bytes */
    uint64_t bytes_out;
    uint64_t total_ns; /* sum of times from start to end */
};

/** Counters since server or client was made, and gauges; begin with BOW_METRICS_INIT. */
struct bow_metrics {
    size_t size; /* sizeof this struct, set by the INIT */
    uint64_t connections_opened;
    uint64_t connections_closed;
    uint64_t connections_refused; /* over max_connections */
    uint64_t bytes_received;
    uint64_t bytes_sent;
    uint64_t calls_started;
    uint64_t calls_ended;
    uint64_t calls_unanswered;     /* gauge: held by handlers though nobody waits any more */
    uint64_t calls_expired_unrun;  /* deadline passed before a handler ran */
    uint64_t bad_prefaces;         /* first bytes of no protocol we speak */
    uint64_t protocol_errors;      /* connections ended for breaking the protocol */
    uint64_t undecodable_messages; /* that did not inflate, or did not decode */
    uint64_t unknown_methods;
    uint64_t heartbeats_sent;
    uint64_t heartbeats_lost; /* connections ended because no byte came in time */
    uint64_t first_frame_timeouts;
    uint64_t connects_failed;          /* client */
    uint64_t reconnects;               /* client */
    uint64_t calls_refused_server;     /* over max_server_calls */
    uint64_t calls_refused_method;     /* over bow_server_limit_calls() */
    uint64_t calls_refused_connection; /* over max_calls, or with too much waiting for the client */
    uint64_t calls_refused_waiting;    /* over max_waiting_calls */
    uint64_t calls_refused_memory;     /* near or at the context's ceiling */
    uint64_t connections_idle;         /* ended after idle_timeout_ns */
    uint64_t connections_aged;         /* ended after max_age_ns */
    uint64_t connections_stalled;      /* ended after write_timeout_ns */
    uint64_t reloads;                  /* of certificates */
    uint64_t reloads_failed;           /* what was there before goes on */
    uint64_t calls_refused_bytes;      /* over max_bytes_in_flight */
    uint64_t calls_delayed;            /* that waited before their handlers, for too much was to be
                                          sent to their client, or handlers had max_calls of it */
    uint64_t connections_untaken;      /* ended for want of max_queued_reply_bytes */
    uint64_t calls_without_stream;     /* client: that waited because their server takes no more of
                                          them at once, see max_connections_per_address */
    uint64_t servers_unhealthy;        /* client: how often a server that took calls, or was to, was
                                          found not to serve options.health_service */
};

#define BOW_METRICS_INIT BOW__INIT(struct bow_metrics, )

/** Add up what the loops of a server published. `metrics->size` must be set. Returns: 0, or
 * -EINVAL. Thread: any. */
BOW_EXPORT int bow_server_metrics(const struct bow_server *server, struct bow_metrics *metrics);
/** Add up what the loops of a client published. Thread and results as bow_server_metrics(). */
BOW_EXPORT int bow_client_metrics(const struct bow_client *client, struct bow_metrics *metrics);

/** Visits one method; `metrics` is borrowed. Thread: the caller's. */
typedef void (*bow_method_metrics_fn)(const struct bow_method_metrics *metrics, void *user);

/** Visit every method of `server` (also those without calls). Thread: any. */
BOW_EXPORT void bow_server_each_method(const struct bow_server *server, bow_method_metrics_fn fn,
                                       void *user);

#ifdef __cplusplus
}
#endif
#endif
