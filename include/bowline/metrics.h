/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_METRICS_H
#define BOWLINE_METRICS_H

/*
 * Numbers of a server or client: counters, and for each method how long its calls took and how
 * large their messages were. Each loop counts in memory of its own without locks or shared cache
 * lines, and reading adds up what the loops have. A tail task of the loop publishes struct
 * bow_metrics at most every 10 ms; a client that drives its own loop also publishes when it stops,
 * so that its finished calls are counted. What is counted of methods is there at once. Counters
 * only grow; gauges say so.
 *
 *     static void show(const struct bow_method_metrics *method, void *user)
 *     {
 *         struct bow_histogram times;
 *         bow_method_metrics_times(method, BOW_TIME_CALL, BOW_N_CODES, &times);
 *         printf("%s: half in %" PRIu64 " ns, 99 of 100 in %" PRIu64 "\n", method->path,
 *                bow_histogram_quantile(&times, 0.5), bow_histogram_quantile(&times, 0.99));
 *     }
 *     ...
 *     bow_server_each_method(server, show, NULL);
 *
 * All of it as text for Prometheus is <bowline/metrics_text.h>.
 */

#include <bowline/histogram.h>
#include <bowline/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BOW_N_CODES 17

struct bow_client;
struct bow_server;

/** Which limit refused a call, as on_refused of an interceptor names it. */
enum bow_refusal {
    BOW_REFUSED_MEMORY = 0,     /* the context's max_bytes */
    BOW_REFUSED_BYTES = 1,      /* max_bytes_in_flight, on arrival or for its request */
    BOW_REFUSED_SERVER = 2,     /* max_server_calls */
    BOW_REFUSED_METHOD = 3,     /* bow_server_limit_calls() */
    BOW_REFUSED_CONNECTION = 4, /* max_calls, or too much waits for the client */
    BOW_REFUSED_WAITING = 5,    /* max_waiting_calls of an executor */
    BOW_REFUSED_QUEUE = 6,      /* client: max_queued_calls, max_queued_bytes */
};

#define BOW_N_REFUSALS 7

/** The name of a limit, as options have it; "" of none. Thread: any. */
BOW_EXPORT const char *bow_refusal_name(unsigned refusal);

/** What times are counted of. */
enum bow_method_time {
    BOW_TIME_CALL = 0,    /* from a call's start to its end: of a server from the bytes that brought
                             it until its answer can leave, of a client all attempts and waiting */
    BOW_TIME_ATTEMPT = 1, /* client: from when a call was sent to that attempt's end */
    BOW_TIME_QUEUE = 2,   /* of calls that had to wait: a client's for a connection or a stream, a
                             server's before their handlers, see calls_delayed, and of those on an
                             executor for its thread; under BOW_OK */
};

#define BOW_N_TIMES 3

#define BOW_N_SIZES 34

/** Sizes in bytes: buckets[k] counts those of at most 2^k, and more than 2^(k-1); the last what is
 * above 4 GiB. */
struct bow_sizes {
    uint64_t count;
    uint64_t sum;
    uint64_t buckets[BOW_N_SIZES];
};

struct bow_method_source;

/** What one method's calls came to. Path "*" stands for all unknown methods together; of a client
 * for those above BOW_LIMIT_CLIENT_METHODS. */
struct bow_method_metrics {
    const char *path;
    uint64_t started;            /* also those that were refused on arrival */
    uint64_t ended[BOW_N_CODES]; /* by status code */
    uint64_t bytes_in;           /* message bytes, compressed where they were */
    uint64_t bytes_out;
    uint64_t total_ns;  /* sum of times from start to end */
    uint64_t in_flight; /* gauge: started, and not ended */
    uint64_t
        refused[BOW_N_REFUSALS]; /* by enum bow_refusal: of a client never started; of a server
                                    all ended, but those of max_calls that no call was made of */
    uint64_t cancelled;          /* client: by the program; server: by the client */
    uint64_t stalls;   /* of streams: how often a sender had to wait, BOW_STREAM_WRITABLE_BYTES
                          being there that the peer gave no credit for, or the socket no room */
    uint64_t attempts; /* client: how often calls were sent */
    uint64_t retries;  /* client: those after the first */
    struct bow_sizes received; /* message bytes of each call that ended; client: of each attempt */
    struct bow_sizes sent;
    const struct bow_method_source *source; /* for bow_method_metrics_times() */
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
    uint64_t calls_refused_queue;      /* client: over max_queued_calls or max_queued_bytes */
    uint64_t calls_retried;            /* client: sent once more */
    uint64_t calls_queued;             /* gauge; client: that wait for a connection or a stream */
    uint64_t requests_refused;         /* before a call was made of them, for no limit above: over
                                          max_header_bytes, while draining, by a status of HTTP's
                                          own (as 404, 405, 415) or for what a head says wrong */
};

#define BOW_METRICS_INIT BOW__INIT(struct bow_metrics, )

/** Add up what the loops of a server published. `metrics->size` must be set. Returns: 0, or
 * -EINVAL. Thread: any. */
BOW_EXPORT int bow_server_metrics(const struct bow_server *server, struct bow_metrics *metrics);
/** Add up what the loops of a client published. Thread and results as bow_server_metrics(). */
BOW_EXPORT int bow_client_metrics(const struct bow_client *client, struct bow_metrics *metrics);

/** Visits one method; `metrics`, its `path` too, is borrowed until it returns. Thread: the
 * caller's.
 */
typedef void (*bow_method_metrics_fn)(const struct bow_method_metrics *metrics, void *user);

/** Visit every method of `server` (also those without calls). Thread: any. */
BOW_EXPORT void bow_server_each_method(const struct bow_server *server, bow_method_metrics_fn fn,
                                       void *user);

/** Visit every method that `client` has called, in no order. Thread: any. */
BOW_EXPORT void bow_client_each_method(const struct bow_client *client, bow_method_metrics_fn fn,
                                       void *user);

/**
 * Read how long a method's calls took, inside a bow_method_metrics_fn: those that ended with
 * `code`, or all with BOW_N_CODES. What there was no memory to count is missing.
 *
 * Thread: the visitor's
 * Returns: in `*ret_times` nanoseconds; nothing of an unknown `what` or `code`
 */
BOW_EXPORT void bow_method_metrics_times(const struct bow_method_metrics *metrics,
                                         enum bow_method_time what, unsigned code,
                                         struct bow_histogram *ret_times);

#ifdef __cplusplus
}
#endif
#endif
