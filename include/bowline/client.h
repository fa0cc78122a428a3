/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_CLIENT_H
#define BOWLINE_CLIENT_H

/*
 * A client: a target, its connections, and the calls over them. It connects when
 * the first call needs it, reconnects with back-off when the connection is lost,
 * and never gives up.
 *
 * Three ways to bind one (options.loop, options.group, or neither):
 *   loop    one connection on that loop, unless max_connections_per_address allows more; callbacks
 *           run there
 *   group   a connection for each loop in use; a call begun on one of the loops
 *           runs and completes there, one begun elsewhere on a loop chosen for
 *           the calling thread
 *   neither the client is confined to the thread that created it and drives a
 *           loop of its own inside blocking calls (other threads get -EINVAL)
 *
 * When a connection attempt fails, the calls that wait for it fail with UNAVAILABLE
 * and the reason, as does a call begun within backoff_min_ns after that (it says
 * when the next try is due). A later call tries again at once, so that a server that
 * has come back is found; while calls have failed fast, or wait_for_ready lets them wait
 * through that, the client also tries by itself, in pauses that grow to backoff_max_ns. When a
 * connection is lost, the calls on it fail with UNAVAILABLE; those that the server says it has not
 * processed are sent once more, unless their request is over 64 KiB.
 *
 * A call does not complete before its deadline because of its deadline.
 *
 * Targets: HOST:PORT, [v6]:PORT, unix:PATH, unix-abstract:NAME, inproc:NAME (a server of the same
 * context); or several of them, list:ADDRESS,ADDRESS,… (at most BOW_LIMIT_LIST_ADDRESSES, none
 * with a comma); with "grpc:" in front the client speaks gRPC over HTTP/2 instead of Bowline's own
 * protocol. gRPC's own forms mean the same: passthrough:///HOST:PORT, ipv4:ADDRESS:PORT (several
 * with commas are a list), ipv6:[v6]:PORT, unix:///PATH.
 *
 * A target SCHEME:///NAME, or SCHEME:NAME, is a name for the resolver of that scheme, one of
 * options.resolvers (see <bowline/resolver.h>) or the library's own: dns:///HOST[:PORT], all
 * addresses that the host has, and file:///PATH, a file with an address a line. What it says is
 * used like a list, and may change at any time.
 *
 * A list is one service at several addresses. On each loop in use the client has a connection to
 * each of them. Calls go round over those that are ready, a stream stays where it began, and a
 * call that is sent once more goes to another one, if there is one. An address takes calls once
 * its server has answered; while calls are made, one that is lost is connected to again by
 * itself, in pauses that grow. A call fails for want of a connection when no address is ready
 * or being connected to.
 *
 * With options.health_service a server has to say that it serves, too, before it takes calls: on
 * each connection the client watches that service by grpc.health.v1.Health (as gRPC's clients do,
 * proposal A17). An address whose server says otherwise takes no new calls until it says SERVING;
 * those on it go on. Of a name with several addresses the next is taken instead. With none left,
 * calls fail with UNAVAILABLE and what the server says, or wait for ready. A server without that
 * service counts as serving. What was said holds while the watch is begun anew, as after a proxy
 * has ended it; a watch that ends with an error before it said anything says that the server does
 * not serve. Interceptors do not see it, it counts as no call, and keeps no connection from being
 * idle.
 *
 *     struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
 *     struct bow_transport_error error;
 *     struct bow_client *client;
 *     options.target = "127.0.0.1:50051";
 *     options.error = &error;
 *     if (bow_client_new(&options, &client) < 0) {
 *         fprintf(stderr, "%s\n", error.text);
 *     }
 */

#include <bowline/compression.h>
#include <bowline/result.h>
#include <bowline/retry.h>
#include <bowline/service.h>
#include <bowline/system.h> /* BOW_NEVER */
#include <bowline/transport_error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_client;
struct bow_context;
struct bow_group;
struct bow_interceptor;
struct bow_loop;
struct bow_resolver;
struct bow_security;

/** What a client's connection on one loop is about, as gRPC names it; of several addresses READY
 * counts first, then CONNECTING, then IDLE. */
enum bow_client_state {
    BOW_CLIENT_IDLE = 0,              /* none, and no call wants one */
    BOW_CLIENT_CONNECTING = 1,        /* the name is looked up, or an attempt is under way */
    BOW_CLIENT_READY = 2,             /* takes calls */
    BOW_CLIENT_TRANSIENT_FAILURE = 3, /* the last attempt failed; the next has its time */
    BOW_CLIENT_SHUTDOWN = 4,          /* the client is being freed, or its loop shuts down */
};

/** Told of the new state of the client's connection on `loop`; what passes within a turn of it may
 * be left out. SHUTDOWN is the last. Thread: `loop`, never from inside a function of the client. */
typedef void (*bow_client_state_fn)(struct bow_client *client, struct bow_loop *loop,
                                    enum bow_client_state state, void *user);

/** What a client is made with; begin with BOW_CLIENT_OPTIONS_INIT. */
struct bow_client_options {
    size_t size;                 /* sizeof this struct, set by the INIT */
    struct bow_context *context; /* NULL: a default one of the client's own; shared */
    const char *target;          /* copied */
    struct bow_loop *loop;       /* kept; at most one of loop and group */
    struct bow_group *group;     /* kept */
    bool plaintext;              /* allow plaintext to more than loopback and Unix sockets */
    uint64_t default_timeout_ns; /* of a unary call that names none; 0: 30 s */
    uint64_t connect_timeout_ns; /* of each address, from the name to the server's first answer;
                                    0: 20 s */
    uint64_t backoff_min_ns;     /* first pause after a failed attempt; 0: 100 ms */
    uint64_t backoff_max_ns;     /* 0: 30 s; pauses grow × 1.6 with ± 20 % jitter */
    uint64_t
        heartbeat_ns; /* ping after that long without a byte received; 0: 20 s; BOW_NEVER: none */
    uint64_t heartbeat_timeout_ns;     /* 0: 10 s */
    size_t max_message_bytes;          /* of a reply; 0: BOW_LIMIT_MESSAGE_BYTES */
    uint32_t max_queued_calls;         /* on each loop, while not connected or out of streams; 0:
                                          BOW_LIMIT_QUEUED_CALLS */
    struct bow_transport_error *error; /* NULL, or filled when bow_client_new() fails; borrowed */
    bow_client_state_fn on_state;      /* NULL: nobody wants to know */
    void *state_user;
    struct bow_security *security; /* see bow_tls_security(); shared; NULL: none */
    const char *server_name; /* whom the server must prove to be; NULL: the target's host; copied */
    enum bow_compression compression;   /* of what is sent; default: off */
    size_t compression_threshold_bytes; /* 0: BOW_COMPRESSION_THRESHOLD_BYTES */
    int compression_level;              /* 0: the encoding's default; higher is smaller, slower */
    uint64_t idle_timeout_ns; /* close a connection on which there is no call for so long; the next
                                 call makes another; 0: 30 min; BOW_NEVER: none */
    const struct bow_interceptor *const
        *interceptors;     /* the outermost first, see <bowline/interceptor.h>; copied, and taken on
                              success */
    size_t n_interceptors; /* so many */
    uint64_t write_timeout_ns; /* end a connection whose server takes nothing of what waits for it
                                  for so long; 0: BOW_LIMIT_WRITE_NS; BOW_NEVER: none */
    size_t max_queued_bytes;   /* of the calls that max_queued_calls bounds; 0:
                                  BOW_LIMIT_QUEUED_BYTES */
    uint64_t keepalive_ns;     /* of TCP, by the kernel, which also probes while nobody drives the
                                  client's loop, so that a confined client's next call finds a lost
                                  connection closed: whole seconds, see struct bow_channel_options;
                                  0: none */
    uint64_t tcp_timeout_ns;   /* end a connection whose server has acknowledged nothing of what was
                                  sent to it, or no probe, for so long (TCP_USER_TIMEOUT); 0: the
                                  system's, some 15 min */
    const char *source;        /* the local address to connect from, "192.0.2.1" or "2001:db8::1":
                                  copied; NULL: what the route says */
    size_t max_header_bytes;   /* of what a server sends beside its messages, see
                                  bow_server_options; 0: BOW_LIMIT_HEADER_BYTES */
    uint32_t max_connections_per_address; /* on each loop: when those to an address have as many
                                             calls as its server takes at once, another is made; it
                                             takes what the others cannot, and is closed when there
                                             was nothing for BOW_LIMIT_FURTHER_IDLE_NS; at most
                                             BOW_LIMIT_CONNECTIONS_PER_ADDRESS; 0: 1, further calls
                                             wait (calls_without_stream of <bowline/metrics.h>) */
    const char *user_agent; /* over gRPC, in front of what the library says of itself: "shop/1.2";
                               printable ASCII, shorter than BOW_USER_AGENT_BYTES; copied; NULL:
                               nothing */
    const char
        *assumed_encodings;       /* what each server of the target is known to take, "gzip" or
                                     "zstd,gzip": with it a connection's first requests may be compressed,
                                     before the server has said what it takes; copied; NULL: nothing */
    const char *health_service;   /* ask each server by grpc.health.v1 for this service, as
                                     "shop.Orders", or "" for the whole server, and send it calls only
                                     while it says SERVING; see above; shorter than
                                     BOW_HEALTH_SERVICE_BYTES; with loop or group; copied; NULL: no
                                     server is asked */
    uint64_t metrics_interval_ns; /* between calls of on_metrics; 0: none */
    /** The time to take the client's metrics somewhere, by the functions of <bowline/metrics.h> and
     * <bowline/metrics_text.h>: from the first call on, until the client is freed or that call's
     * loop shuts down; of a confined client while its loop is driven. Thread: that loop. */
    void (*on_metrics)(const struct bow_client *client, void *user);
    void *metrics_user;
    const char *authority; /* over gRPC, whom requests are for (":authority"), as a proxy before
                              several servers asks: a host, with :PORT or without; shorter than
                              BOW_AUTHORITY_BYTES; copied. TLS does not look at it, which has
                              server_name. NULL: the host and port of the target */
    const struct bow_resolver *const
        *resolvers;     /* for targets of schemes of the program's own, see <bowline/resolver.h>;
                           the array is copied from, what it points to is kept */
    size_t n_resolvers; /* so many */
    const char *dns_servers; /* whom "dns:" names are asked of, "192.0.2.1:53,[2001:db8::1]:53";
                                copied; NULL: the system's (/etc/resolv.conf) */
    uint64_t dns_min_ttl_ns; /* look "dns:" names up again after their TTL, but not earlier than so;
                                0: BOW_LIMIT_DNS_TTL_MIN_NS */
    const struct bow_retry_options *retry; /* which calls are tried again, see <bowline/retry.h>;
                                              copied; NULL: only those of methods that are declared
                                              idempotent, and what no handler has seen */
    const char *service_config; /* gRPC's service config, JSON, while the target's resolver says
                                   none: methodConfig and retryThrottling, see docs/retries.md;
                                   copied; NULL: none */
};

/** Bytes of options.health_service at most, with a NUL. */
#define BOW_HEALTH_SERVICE_BYTES ((size_t)256)

/** Bytes of options.user_agent at most, with a NUL. */
#define BOW_USER_AGENT_BYTES ((size_t)256)

/** Bytes of options.authority at most, with a NUL. */
#define BOW_AUTHORITY_BYTES ((size_t)256)

#define BOW_CLIENT_OPTIONS_INIT BOW__INIT(struct bow_client_options, )

/** Options of one call; NULL where they are passed means the defaults. */
struct bow_call_options {
    size_t size;             /* sizeof this struct, set by the INIT */
    uint64_t timeout_ns;     /* 0: the client's default, of a stream none; BOW_NEVER: none. An end
                                that has come by then counts, also where it waits in the client for
                                its connection's turn */
    struct bow_call *parent; /* the call being served, which the caller holds: the smaller deadline
                                counts, its end cancels this one, and its trace context
                                (traceparent, tracestate: as it came, or that of its span, see
                                <bowline/tracer.h>) goes along, unless `metadata` or an
                                interceptor brings one */
    const struct bow_metadata *metadata; /* sent along; borrowed for the start; NULL: none */
    bool wait_for_ready; /* until a server has answered: wait for one until the deadline, instead
                            of failing as soon as an attempt has failed */
    enum bow_compression compression; /* of what is sent; default: as the client */
};

#define BOW_CALL_OPTIONS_INIT BOW__INIT(struct bow_call_options, )

/**
 * Make a client. Nothing is resolved or connected yet; the target's form is checked.
 *
 * Thread:  any
 * Owns:    gives `*ret_client`; free with bow_client_free()
 * Returns: 0; -ENOMEM; -EINVAL for a target that cannot be parsed or is missing, "grpc:" in
 *          a build without HTTP/2, a list that is too long, both a loop and a group, a source that
 *          is no address, more than BOW_LIMIT_CONNECTIONS_PER_ADDRESS, a user_agent that no
 *          header may have, an authority that is no host with or without a port, assumed_encodings
 *          that this build has not, a health_service that is too long or a confined client's, a
 *          "dns:" name in a build without c-ares, a table of options.resolvers that cannot be,
 *          retry or service_config that makes no sense, or an interceptor that
 *          bow_server_intercept() would not take; -EPERM for a target beyond loopback without
 *          options.security or options.plaintext.
 *          `*options->error` then says which, and what to do (of options whose size is not a known
 *          one only when it is 0)
 */
BOW_EXPORT BOW_MUST_USE int bow_client_new(const struct bow_client_options *options,
                                           struct bow_client **ret_client);

/**
 * Close the client: its calls complete with CANCELLED, then it is freed. Off
 * its loops this waits until all callbacks have run; on one of them, or when nobody
 * has run an owner's loop so far, it returns at once and the rest happens in later turns,
 * or in bow_loop_unref(). Allowed in a completion callback. NULL is allowed.
 * In a process that was forked after it had been used, it is forgotten: its connections are the
 * parent's and are not touched.
 *
 * Thread:  any; the creating thread when confined
 */
BOW_EXPORT void bow_client_free(struct bow_client *client);

/**
 * Call and wait. Fills `*ret_result` (which must be empty) in every case. The status is
 * FAILED_PRECONDITION for a client that was used before fork(), by the parent process.
 *
 * Thread:  any but the client's loops, where the status is FAILED_PRECONDITION
 *          (-EDEADLK) naming the callback form; the creating thread when confined
 * Owns:    borrows `request`; the caller finishes `*ret_result` with bow_result_fini()
 * Returns: the reply, which lives in `*ret_result`; NULL when the status is not OK
 */
BOW_EXPORT const ProtobufCMessage *bow_client_call(struct bow_client *client,
                                                   const struct bow_method *method,
                                                   const ProtobufCMessage *request,
                                                   const struct bow_call_options *options,
                                                   struct bow_result *ret_result);

/** Any function; cast back to its own type before it is called. */
typedef void (*bow_any_fn)(void);

/** Completion of an untyped call: `fn` and `user` are what bow_client_start() was given. */
typedef void (*bow_client_done_fn)(struct bow_result *result, bow_any_fn fn, void *user);

/**
 * Call; `done` runs exactly once, later, on the client's loop. `request` is
 * encoded before this returns. `*ret_id` (may be NULL) names the call for bow_client_cancel(); it
 * is set before `done` can run, which on another thread than the loop's may be before this returns,
 * and not touched after that.
 *
 * Thread:  any; the creating thread when confined
 * Owns:    borrows `request`; `done` borrows its result
 * Returns: 0; -EINVAL (request not of the method's type or not encodable, wrong thread,
 *          a streaming method, metadata that its rules forbid); -EMSGSIZE for more metadata than
 *          BOW_LIMIT_HEADER_BYTES_MAX, or than the server takes; -ENOMEM; -EAGAIN when
 *          max_queued_calls, or bytes, wait already; -ESHUTDOWN once the client is being freed or
 *          its loop has shut down; -ECHILD for a client that was used before fork(), by the parent
 *          process. No callback will come then. On another thread than the loop's some of these are
 *          found too late to be returned: then `done` gets them as a status (RESOURCE_EXHAUSTED for
 *          -EAGAIN, -EMSGSIZE and -ENOMEM).
 */
BOW_EXPORT BOW_MUST_USE int
bow_client_start(struct bow_client *client, const struct bow_method *method,
                 const ProtobufCMessage *request, const struct bow_call_options *options,
                 bow_client_done_fn done, bow_any_fn fn, void *user, uint64_t *ret_id);

/**
 * Cancel a call: unless it has completed, it completes with CANCELLED through its callback, later.
 * Idempotent; ids are never reused, so an ended call's id is harmless.
 *
 * Thread:  any
 */
BOW_EXPORT void bow_client_cancel(struct bow_client *client, uint64_t id);

/** The target that the client was made with. Lives as long as the client. Thread: any. */
BOW_EXPORT const char *bow_client_target(const struct bow_client *client);

/** The best state of the client's connections, as a hint: it may have changed by now. Thread: any.
 */
BOW_EXPORT enum bow_client_state bow_client_get_state(const struct bow_client *client);

/**
 * Drive a confined client's loop for one turn, so that callbacks run: wait until something is
 * there to do, `timeout_ns` at most (0: not at all), do what is there, and return.
 *
 * One turn may be an event on the way, such as a connection that was made, and no callback. So call
 * it in a loop until what you wait for has come.
 *
 * Thread:  the creating one
 * Returns: 0, whether or not something was done; -EINVAL: the client is not confined, or this is
 *          another thread, or inside a callback of it; -ECHILD as bow_client_start()
 */
BOW_EXPORT int bow_client_poll(struct bow_client *client, uint64_t timeout_ns);

#ifdef __cplusplus
}
#endif
#endif
