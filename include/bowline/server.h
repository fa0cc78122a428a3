/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_SERVER_H
#define BOWLINE_SERVER_H

/*
 * A server: listeners, the services behind them, and the loops their connections
 * live on. One port speaks Bowline's own protocol and gRPC, and when asked to what browsers and
 * curl speak; the first bytes of a connection, and the content type of a request, tell which.
 *
 *     new ──► add services ──► run  (start, wait for SIGTERM or SIGINT, drain)  ──► free
 *                        └──► start ──► stop, from any thread ──► join ──► free
 */

#include <bowline/compression.h>
#include <bowline/service.h>
#include <bowline/slice.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_channel;
struct bow_context;
struct bow_executor;
struct bow_group;
struct bow_loop;
struct bow_security;
struct bow_server;
struct bow_transport_error;

/** The protocols that a listener speaks; the first bytes of a connection tell which. */
enum bow_protocol {
    BOW_PROTOCOL_NATIVE = 1,   /* Bowline's own */
    BOW_PROTOCOL_GRPC = 2,     /* gRPC over HTTP/2 */
    BOW_PROTOCOL_CONNECT = 4,  /* connectrpc.com's, over HTTP/1.1 and HTTP/2: JSON or protobuf */
    BOW_PROTOCOL_GRPC_WEB = 8, /* gRPC-Web, over HTTP/1.1 and HTTP/2 */
};

/** What a server is made with; begin with BOW_SERVER_OPTIONS_INIT. */
struct bow_server_options {
    size_t size;                 /* sizeof this struct, set by the INIT */
    struct bow_context *context; /* NULL: a default one of the server's own; shared */
    const char
        *listen; /* "HOST:PORT" (of a name all addresses), "*:PORT", "[v6]:PORT", "unix:PATH",
                    "unix-abstract:NAME", "fd:N" (a socket that was inherited), "inproc:NAME" (for
                    clients of the same context); copied; several separated by commas */
    struct bow_loop *loop; /* kept: the one loop for everything; NULL: a loop of the server's own */
    struct bow_group *group; /* kept: workers of the user's own making */
    uint32_t workers;        /* threads for connections, at most 4096; 0: one loop, on the thread of
                                bow_server_run() or a thread that bow_server_start() makes */
    bool plaintext;          /* allow plaintext on more than loopback and Unix sockets */
    uint64_t max_deadline_ns; /* of a unary call whose client sends none, and the cap of all other
                                 unary ones; 0: 60 s. Streams have their clients' alone */
    uint64_t lame_duck_ns;    /* between stop and GOAWAY; default 0 */
    uint64_t grace_ns;        /* between GOAWAY and close for calls in flight; 0: 10 s */
    uint64_t
        heartbeat_ns; /* ping after that long without a byte received; 0: 60 s; BOW_NEVER: none */
    uint64_t heartbeat_timeout_ns;   /* 0: 20 s */
    uint64_t first_frame_timeout_ns; /* 0: BOW_LIMIT_FIRST_FRAME_NS */
    size_t max_message_bytes;        /* of a request; 0: BOW_LIMIT_MESSAGE_BYTES */
    uint32_t max_calls; /* in flight per connection; clients are told. What one begins above it
                           before it knows waits, as do over Bowline's own protocol calls up to 100;
                           0: BOW_LIMIT_CALLS_IN_FLIGHT */
    uint32_t max_connections; /* 0: BOW_LIMIT_CONNECTIONS */
    int backlog;              /* 0: SOMAXCONN */
    struct bow_security
        *security;      /* of all connections, see bow_tls_security(); shared; NULL: none */
    uint32_t protocols; /* spoken: BOW_PROTOCOL_ bits; 0: Bowline's own and gRPC */
    struct bow_executor *handlers_on; /* shared: where all handlers run that bow_server_bind() does
                                         not say otherwise of; NULL: on their connection's loop */
    uint32_t max_waiting_calls; /* per executor, for a thread of it; 0: BOW_LIMIT_WAITING_CALLS */
    enum bow_compression
        compression; /* of messages, unless a handler says otherwise; default: off */
    size_t compression_threshold_bytes; /* 0: BOW_COMPRESSION_THRESHOLD_BYTES */
    int compression_level;              /* 0: the encoding's default; higher is smaller, slower */
    uint32_t max_server_calls;          /* in progress on the whole server; 0: no limit; see
                                           bow_server_limit_calls() */
    uint64_t retry_after_ns; /* what a client is asked to wait whose call was refused because of a
                                limit, but one of its own connection (100 ms); 0: 1 s */
    struct bow_executor *blocking_on; /* shared: as handlers_on, and before it, for the methods
                                         that their .proto declares to block */
    uint64_t idle_timeout_ns;  /* end a connection on which there is no call for so long; 0: none */
    uint64_t max_age_ns;       /* end a connection that is so old, give or take a tenth; 0: none */
    uint64_t max_age_grace_ns; /* of the calls on an old one, before they are cut off; 0: none, it
                                  lasts until they have ended */
    bool reload_on_sighup; /* bow_server_run() takes SIGHUP, and does bow_server_reload() then */
    /** Told when it has; `error` is 0, or a negative errno with `text`. Thread: that of
     * bow_server_run(). */
    void (*on_reload)(struct bow_server *server, int error, const char *text, void *user);
    void *reload_user;
    uint64_t write_timeout_ns; /* end a connection whose peer takes nothing of what waits for it for
                                  so long; 0: BOW_LIMIT_WRITE_NS; BOW_NEVER: none */
    size_t max_bytes_in_flight; /* of all connections together: see <bowline/limits.h>; 0:
                                   BOW_LIMIT_SERVER_BYTES_IN_FLIGHT, or four times
                                   max_message_bytes for each loop if that is more */
    /** Told by bow_server_run() when it listens and a signal drains it: the time to say so, to a
     * supervisor or a user. Thread: that of bow_server_run(). */
    void (*on_started)(struct bow_server *server, void *user);
    void *started_user;
    struct bow_transport_error *error; /* NULL, or filled when bow_server_new() fails; borrowed */
    uint32_t unix_mode; /* of the files of Unix sockets in `listen`, at most 0777: in force before
                           anybody can connect; 0: as the umask leaves it */
    uid_t unix_owner;   /* of those files, as lchown() takes it; default -1: this process's */
    gid_t unix_group;   /* the same */
    uint64_t keepalive_ns;   /* of TCP, by the kernel: see struct bow_channel_options; 0: none, for
                                there are heartbeats */
    uint64_t tcp_timeout_ns; /* the same (TCP_USER_TIMEOUT); 0: the system's */
    size_t max_queued_reply_bytes; /* that wait to be sent, of all connections together: see
                                      <bowline/limits.h>; 0: BOW_LIMIT_SERVER_QUEUED_REPLY_BYTES,
                                      or 32 MiB for each loop if that is more */
    size_t max_header_bytes; /* of path and metadata of a request, keys, values and 32 for each,
                                from BOW_LIMIT_HEADER_BYTES_MIN to BOW_LIMIT_HEADER_BYTES_MAX:
                                clients are told, and a call above it ends with RESOURCE_EXHAUSTED;
                                0: BOW_LIMIT_HEADER_BYTES */
    bool no_health;          /* without grpc.health.v1.Health: see <bowline/health.h> */
    bool reflection;         /* with grpc.reflection.v1 and v1alpha: whoever can call the server can
                                read its .proto files, of all services that are added; default: off
                              */
    uint64_t metrics_interval_ns; /* between calls of on_metrics; 0: none */
    /** The time to take the server's metrics somewhere, by the functions of <bowline/metrics.h> and
     * <bowline/metrics_text.h>; once more when it has stopped, unless its loop has shut down
     * before. Thread: the loop that accepts. */
    void (*on_metrics)(const struct bow_server *server, void *user);
    void *metrics_user;
    const char *operations_listen; /* one address for probes, scrapers and people, as in `listen`:
                                      HTTP/1.1 with /livez, /readyz, /healthz, /metrics, /debug/…
                                      and a page (docs/operating.md). On the loop that accepts;
                                      copied; NULL: none. See
                                      bow_server_operations_addresses() */
    bool operations_exposed;       /* allow it on more than loopback and Unix sockets: whoever
                                      reaches it reads all that it tells */
    const char *operations_hosts;  /* names, with commas, by which it is called beside numbers and
                                      localhost: others are refused, for they may be a stranger's
                                      (DNS rebinding); copied; NULL: none */
    bool dump_on_sigusr1;          /* bow_server_run() takes SIGUSR1, and writes bow_server_dump()
                                      to the log then, as lines of BOW_LOG_WARNING; to stderr where
                                      the context has no log */
    const char *web_origins; /* of pages that may call this server though they come from another, by
                                BOW_PROTOCOL_CONNECT or _GRPC_WEB: "https://shop.example", several
                                with commas, "*": all; copied; NULL: none. A page may then read and
                                send any metadata, but no cookies */
    struct bow_slice web_page; /* HTML, all of a page: what browsers get at "/" of this server's own
                                  port, at most BOW_LIMIT_WEB_PAGE_BYTES. It is no call: whoever
                                  connects may read it, and no interceptor sees that. Copied; empty:
                                  none */
    const char *web_page_policy; /* its Content-Security-Policy; copied; NULL: scripts and styles in
                                    the page itself, calls to this server, nothing from elsewhere */
    /**
     * Told that the server begins to end: the time to end watches and other streams that go on
     * until somebody ends them, each with the status that suits it, while the server still serves.
     *
     * Once for each server whose start succeeded, whatever ends it: a signal, bow_server_stop(),
     * bow_server_free(), the end of the loop that accepts, another process that has taken over
     * (then without a lame duck); and for one that fails to start because the older process of
     * `take_over` goes on, for it served by then. Its health is NOT_SERVING by then, and
     * /readyz says 503; it accepts, and calls begin, until lame_duck_ns is over, and what is in
     * flight has grace_ns more. When a loop is shut down under the server, the connections on it
     * are closed already.
     *
     * Never from inside the function that stops the server; but while bow_server_start() or
     * bow_server_run() still starts, and so before on_started, when it was told to stop before. In
     * it everything may be done that may be done on that loop, also bow_server_free(). The server
     * does not go on before it has returned. Calls belong to their loops: with `workers` or a
     * `group` what is to be done to them is posted there.
     *
     * Thread: the loop that accepts: that of bow_server_run(), if that started the server; with
     * `loop` that one, with a `group` its first, else a thread of the server's own.
     */
    void (*on_stopping)(struct bow_server *server, void *user);
    void *stopping_user;
    const char
        *take_over; /* "unix:PATH" or "unix-abstract:NAME": start asks there for the listening
                       sockets of an older process (bow_server_hand_over()), listens on those
                       that the addresses above name, and tells it to drain once this one
                       serves. Nobody there: it listens by itself. Copied; NULL: none */
    bool hand_over_on_sigusr2; /* bow_server_run() takes SIGUSR2, and does bow_server_hand_over() at
                                  `take_over` then */
};

#define BOW_SERVER_OPTIONS_INIT                                                                    \
    BOW__INIT(struct bow_server_options,                                                           \
              BOW__SET(unix_owner, (uid_t)-1) BOW__SET(unix_group, (gid_t)-1))

/**
 * Make a server. Nothing is bound yet.
 *
 * Thread:  any
 * Owns:    gives `*ret_server`; free with bow_server_free()
 * Returns: 0; -ENOMEM; -EINVAL for more than one of loop, group and workers, a negative backlog,
 *          a unix_mode above 0777, unknown protocols or compression, a max_header_bytes out of its
 *          bounds, web_origins that are none, a web_page that is too large or that
 *          none of `protocols` can ask for. `*options->error` then says
 *          which (of options whose size is not a known one, which is -EINVAL too, only when it is
 *          0)
 */
BOW_EXPORT BOW_MUST_USE int bow_server_new(const struct bow_server_options *options,
                                           struct bow_server **ret_server);

/**
 * Add a service; generated code calls this from pkg__service__serve(). Before start only.
 *
 * Thread:  any, not concurrently
 * Owns:    keeps `service`, `handlers` is copied, keeps `user`
 * Returns: 0; -ENOMEM; -EBUSY after start; -EEXIST when the service is there already;
 *          -EINVAL when size or hash do not match `service`: the header and the
 *          source that were generated are not from the same .proto
 */
BOW_EXPORT BOW_MUST_USE int bow_server_add_service(struct bow_server *server,
                                                   const struct bow_service *service,
                                                   const void *handlers, size_t handlers_size,
                                                   uint64_t hash, void *user);

/** One address to listen on, where it is to differ from others of the same server. */
struct bow_listen_options {
    size_t size;                   /* sizeof this struct, set by the INIT */
    const char *address;           /* one, as in bow_server_options.listen; copied */
    struct bow_security *security; /* shared; NULL: none */
    uint32_t protocols;            /* BOW_PROTOCOL_ bits; 0: Bowline's own and gRPC */
    bool plaintext;                /* allow plaintext on more than loopback and Unix sockets */
    bool per_worker; /* each worker listens itself (SO_REUSEPORT): no hand-over, less even */
    int backlog;     /* 0: SOMAXCONN */
    /** Add handlers of your own to a new connection, in front of security: the PROXY protocol, a
     * trace. Returns 0, or a negative errno to close it. Thread: the connection's loop. */
    int (*prepare)(struct bow_channel *channel, void *user);
    void *user;
    uint32_t unix_mode; /* of a Unix socket's file, at most 0777: in force before anybody can
                           connect; 0: as the umask leaves it */
    uid_t unix_owner;   /* of that file, as lchown() takes it; default -1: this process's */
    gid_t unix_group;   /* the same */
    bool shares_port;   /* with per_worker: other processes of the same user may listen on the port
                           as well, and each gets its part of the connections: for a successor that
                           starts before this one ends. Otherwise a port that another process has,
                           be it shared, is -EADDRINUSE */
};

#define BOW_LISTEN_OPTIONS_INIT                                                                    \
    BOW__INIT(struct bow_listen_options,                                                           \
              BOW__SET(unix_owner, (uid_t)-1) BOW__SET(unix_group, (gid_t)-1))

/**
 * Listen on one more address, beside those of options.listen. Before start only.
 *
 * Thread:  any, not concurrently
 * Owns:    copies the address; shares options->security
 * Returns: 0; -ENOMEM; -EBUSY after start; -EINVAL for no address, unknown protocols, a negative
 *          backlog, a unix_mode above 0777 or an unknown size. Whether the address is good is said
 *          by bow_server_start().
 */
BOW_EXPORT BOW_MUST_USE int bow_server_listen(struct bow_server *server,
                                              const struct bow_listen_options *options);

/**
 * Have handlers run on `executor`, where they may block, instead of on their connection's loop (or
 * on the loop after all, with NULL, even if declared to block): those of the service `name`
 * ("pkg.Service") or of one method
 * ("pkg.Service/Method"). What was said last of a method holds. Services come first.
 *
 * Unary calls run side by side. Of a streaming call one event is given at a time, in order, and
 * what may be called on the loop of a call may be called within its handler and its events instead.
 * Calls that wait for a thread are bounded by max_waiting_calls: over it they are refused with
 * RESOURCE_EXHAUSTED. One that ends before its turn is not run. The server does not stop before its
 * handlers have returned.
 *
 * Thread:  any, not concurrently; before start
 * Owns:    shares `executor`
 * Returns: 0; -ENOENT when no method is so named; -EBUSY after start; -ENOMEM
 */
BOW_EXPORT BOW_MUST_USE int bow_server_bind(struct bow_server *server, const char *name,
                                            struct bow_executor *executor);

/**
 * Limit the calls in progress of a method ("pkg.Service/Method"), or of each method of a service
 * ("pkg.Service"); 0 lifts the limit. What was said last of a method holds. Services come first.
 *
 * A call is in progress from its arrival until its handler has answered it, also while its client
 * has given it up. Over the limit a call is refused before its message is decoded, with
 * RESOURCE_EXHAUSTED, the limit and its value, and retry_after_ns; its handler is not entered. The
 * same holds for options.max_server_calls, and for max_calls of each connection (which
 * clients know, so that theirs wait instead).
 *
 * The limits are of the whole server, and never exceeded. Loops fetch their share of what is left
 * and write to nothing common for each call; so with `workers` the last eighth of a limit may be
 * with other loops, and a call refused at seven eighths of it. A limit below 16 for each worker is
 * counted exactly, and so are all with one loop.
 *
 * Thread:  any, not concurrently; before start
 * Owns:    borrows `name`
 * Returns: 0; -ENOENT when no method is so named; -EBUSY after start
 */
BOW_EXPORT BOW_MUST_USE int bow_server_limit_calls(struct bow_server *server, const char *name,
                                                   uint32_t max_calls);

/**
 * Bind and listen on every address, and start the loops (all but the caller's own). On failure
 * nothing listens when this returns, bow_server_error() says what went wrong and where, and it may
 * be called again (after -ESHUTDOWN in vain). A descriptor that was handed down ("fd:N") is then as
 * it was before (but one that was bound only goes on listening); after a success it is the
 * server's, which closes it.
 *
 * Signals are taken by bow_server_run() only: one that comes between the two ends the process. Who
 * needs this function before it (options.on_started is told where the server listens) blocks
 * SIGTERM and SIGINT with pthread_sigmask() first; bow_server_run() takes in what is pending.
 *
 * Thread:  any
 * Returns: 0, or a negative errno: -EADDRINUSE, -EACCES, -EADDRNOTAVAIL,
 *          -EINVAL (an address that cannot be parsed, none at all, a max_bytes_in_flight of less
 *          than two messages of max_message_bytes for each loop), -EPERM (plaintext
 *          beyond loopback without options.plaintext, or operations_listen without
 *          operations_exposed), -EBADMSG (options.reflection, and a
 *          descriptor that cannot be read), -EDEADLK (a method is declared to block and
 *          has no executor), -ENOMEM, -EBUSY (started before), -ECHILD (it or its loop was used
 *          before fork(), by the parent process), -ESHUTDOWN (a loop of its shuts down), -EAGAIN
 *          (no thread could be had); with options.take_over what that failed with, while the
 *          older process goes on: -EBUSY (another one takes over), -EPERM (another user's),
 *          -EPROTONOSUPPORT (another version's), -ETIMEDOUT (it does not answer, or went on before
 *          this one served), -EBADMSG (who listens there is none), -EMFILE
 */
BOW_EXPORT BOW_MUST_USE int bow_server_start(struct bow_server *server);

/**
 * Start unless started, then serve until SIGTERM, SIGINT or bow_server_stop(); drain; return.
 * Handles a signal only where its disposition is the default, and restores it; from before it
 * listens on, so that none is missed. One that the program was started with as ignored stays
 * ignored: SIGINT in what a shell without job control runs in the background, SIGHUP under nohup. A
 * further signal skips what is left of the lame-duck period; once that is over (or there is none),
 * the next one ends the grace period and closes the connections at once. So a second Ctrl-C ends a
 * server without a lame duck soon, whatever its handlers do. Meanwhile the calling thread blocks
 * these signals (and SIGHUP, with options.reload_on_sighup, SIGUSR1 with options.dump_on_sigusr1,
 * SIGUSR2 with options.hand_over_on_sigusr2), which a child process started from it inherits; a
 * thread of the program's own that receives one keeps it blocked from then on.
 *
 * Thread:  any one thread; without `workers` connections are served on it
 * Returns: 0 after the drain, be it cut short, and for a server that has stopped; what
 *          bow_server_start() returns; -EMFILE, -ENFILE, -ENOMEM when it cannot wait for
 *          signals (bow_server_error() says so; the server goes on until it is stopped or freed)
 */
BOW_EXPORT BOW_MUST_USE int bow_server_run(struct bow_server *server);

/**
 * Have the security of each listener read its certificates and keys again. Connections to come are
 * made with the new ones, those that are there go on. One that cannot be read leaves what it
 * was before, the others are read all the same, and `reloads_failed` of <bowline/metrics.h> counts
 * it.
 *
 * Thread:  any; blocks on files
 * Owns:    `*ret_error` (may be NULL) is filled on failure with the listener, the file and the
 *          reason
 * Returns: 0; or what the first failure was: -EINVAL (files that do not fit together), -EBADMSG (a
 *          file's content), what opening a file failed with, -ENOMEM; -ECHILD (see
 *          bow_server_start())
 */
BOW_EXPORT BOW_MUST_USE int bow_server_reload(struct bow_server *server,
                                              struct bow_transport_error *ret_error);

/**
 * Offer the listening sockets to the process that is to take over, at `address` ("unix:PATH", whose
 * file has mode 0600 and goes when it is over, or "unix-abstract:NAME"). One that starts with
 * options.take_over and runs as the same user gets all of them, TCP and Unix, those of the
 * operations listener and of each worker too ("fd:N" not: the service manager has it, nor inproc).
 * Both accept from then on. When the other one says that it serves, this server drains at once,
 * without lame duck, and closes its descriptors; no connection is refused, and those that wait are
 * the other's. If the other one ends before, this server goes on, and offers on.
 *
 * To one process at a time, for BOW_LIMIT_HAND_OVER_NS each. A successor calls this in its turn, at
 * the same address: options.on_started is the place.
 *
 * Thread:  any, after bow_server_start(); what follows happens on the loop that accepts
 * Owns:    borrows `address`; `*ret_error` (may be NULL) is filled on failure
 * Returns: 0; -EINVAL (no Unix socket's address); -EALREADY (it offers them); -ESHUTDOWN (not
 *          started, or it drains); -E2BIG (more than BOW_LIMIT_HAND_OVER_SOCKETS); -ECHILD (see
 *          bow_server_start()); -ENOMEM; what binding or listening failed with, -EADDRINUSE when
 *          another server offers there
 */
BOW_EXPORT BOW_MUST_USE int bow_server_hand_over(struct bow_server *server, const char *address,
                                                 struct bow_transport_error *ret_error);

/** Begin to drain: lame duck, GOAWAY, grace, close; a server that has not started yet does when it
 * has. Idempotent. Thread: any. */
BOW_EXPORT void bow_server_stop(struct bow_server *server);

/** Wait until the server has stopped. Returns: 0; -ECHILD (see bow_server_start()); or -EDEADLK at
 * once on a thread of its loops while it has not: whoever drives options.loop asks again after each
 * turn, and not before the first, which is what makes the thread that loop's: this would wait for
 * another one to drive it. Thread: any. */
BOW_EXPORT int bow_server_join(struct bow_server *server);

/** Free a server that has stopped or was never started; else stop it first, and wait, or on one of
 * its loops, or when nobody has run an owner's loop of its so far, free it once it has stopped.
 * NULL is allowed. In a process that was forked after it had been started, it is forgotten: its
 * connections are the parent's and are not touched. Thread: any, once. */
BOW_EXPORT void bow_server_free(struct bow_server *server);

/** Why the last function failed that sets `server` up, starts or runs it: stage, address, reason;
 * "" when it did not. Lives until the next of them. Thread: the one that called that function. */
BOW_EXPORT const char *bow_server_error(const struct bow_server *server);

/** Where it listens after start, all of it, as bow_acceptor_addresses() writes it; "" before. Lives
 * as long as the server. Thread: any. */
BOW_EXPORT const char *bow_server_addresses(const struct bow_server *server);

/** Where its operations listener does after start (options.operations_listen, useful with port 0),
 * likewise; "" before, and without one. Lives as long as the server. Thread: any. */
BOW_EXPORT const char *bow_server_operations_addresses(const struct bow_server *server);

/** The port of the first TCP listener after start (useful with port 0); 0 when there is none.
 * Thread: any. */
BOW_EXPORT uint16_t bow_server_port(const struct bow_server *server);

#ifdef __cplusplus
}
#endif
#endif
