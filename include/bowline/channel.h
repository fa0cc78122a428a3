/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_CHANNEL_H
#define BOWLINE_CHANNEL_H

/*
 * A channel: one socket (or one end of a connection within the process) bound to one loop for
 * life, and its pipeline of handlers.
 *
 *     accepted or connected ─► on_channel (adds handlers) ─► active ─► … ─► inactive ─► gone
 *
 * The channel is freed by its loop after its last callback; nobody else frees it. Pointers
 * to it are valid until on_inactive returns; a reference (bow_channel_ref) keeps
 * the memory longer, for writers on other threads: their writes then fail.
 *
 *     static int on_channel(struct bow_channel *channel, void *user)
 *     {
 *         struct bow_handler *handler = bow_channel_data(channel);
 *         handler->ops = &my_ops;
 *         bow_channel_add_last(channel, handler);
 *         return 0;
 *     }
 *
 *     struct bow_acceptor_options options = BOW_ACCEPTOR_OPTIONS_INIT;
 *     options.address = "127.0.0.1:7007";
 *     options.loop = loop;
 *     options.channel.data_bytes = sizeof(struct bow_handler);
 *     options.channel.on_channel = on_channel;
 *     int rc = bow_acceptor_new(context, &options, &acceptor, &error);
 *     rc = bow_acceptor_start(acceptor);
 */

#include <bowline/handler.h>
#include <bowline/loop.h>
#include <bowline/transport_error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_channel;
struct bow_executor;
struct bow_group;

/** Take a reference, on the channel's memory and on its loop. Thread: loop, or any that holds one.
 * Returns: `channel`. */
BOW_EXPORT struct bow_channel *bow_channel_ref(struct bow_channel *channel);
/** Drop a reference; NULL is allowed. Thread: any. Returns: NULL. */
BOW_EXPORT struct bow_channel *bow_channel_unref(struct bow_channel *channel);
/** The loop that it lives on, borrowed. Thread: any. */
BOW_EXPORT struct bow_loop *bow_channel_loop(const struct bow_channel *channel);

/** The memory that came with the channel (options.data_bytes), zeroed at birth, aligned to 16. It
 * lives as long as the channel, so handlers in it need no care. Thread: any. */
BOW_EXPORT void *bow_channel_data(struct bow_channel *channel);

/** The peer's address: "127.0.0.1:40312", "[::1]:40312", "unix:/run/x", "unix:", "inproc:NAME" (of
 * who listens there, at both ends). Lives as long as the channel. Thread: any. */
BOW_EXPORT const char *bow_channel_peer(const struct bow_channel *channel);

/** Who was at the other end of a Unix socket when it was connected, as the kernel says; this
 * process over inproc. */
struct bow_peer_credentials {
    pid_t pid;
    uid_t uid;
    gid_t gid;
};

/** Tell who the peer is, by its process. Taken when the channel was made, so it holds for its life,
 * and after the peer has gone. Thread: any. Returns: 0, or -ENOTSUP when the peer is beyond
 * this machine. */
BOW_EXPORT BOW_MUST_USE int
bow_channel_peer_credentials(const struct bow_channel *channel,
                             struct bow_peer_credentials *ret_credentials);
/** Whether it is open: from on_channel on, until it closes. Thread: any. */
BOW_EXPORT bool bow_channel_is_active(const struct bow_channel *channel);

/**
 * Add a handler nearest to the tail: behind those that are there. Its `ops` are set, and it is
 * in no pipeline. on_added runs inside; on_active does not run for it any more when it has for
 * the others. Allowed in every callback up to on_inactive.
 *
 * Thread:  loop
 * Owns:    keeps `handler` until on_removed
 */
BOW_EXPORT void bow_channel_add_last(struct bow_channel *channel, struct bow_handler *handler);
/** Add a handler nearest to the head: it hears first, and writes last. Otherwise as
 * bow_channel_add_last(). */
BOW_EXPORT void bow_channel_add_first(struct bow_channel *channel, struct bow_handler *handler);
/** Add a handler between `handler` and the one behind it. Otherwise as bow_channel_add_last(). */
BOW_EXPORT void bow_channel_add_after(struct bow_handler *handler, struct bow_handler *added);
/**
 * Add a handler nearest to the tail whose callbacks, all of them, run on `executor`: one after
 * the other, on any of its threads. They may block. The handlers of this library belong on
 * the loop.
 *
 * Bytes cross in counted bufs (bow_buf_share() keeps one without a copy), and reading pauses while
 * more than the executor's max_channel_bytes wait. What the handler passes on
 * (bow_handler_fire_*) goes back to the loop and on from its place; what it writes, flushes or
 * closes, as by bow_channel_write() and the others for any thread, begins at the tail; completions
 * run on the loop. What was on its way when the channel closes still comes, then
 * on_inactive and on_removed, the last of all, perhaps after the loop has terminated: `channel`
 * is valid until then. When the executor has shut down, the channel closes with
 * -ESHUTDOWN, and the loop runs these two.
 *
 * bow_channel_remove() is for any thread then: the handler sees no event from the next one
 * on but on_removed, and bytes that it has not consumed go to its successor.
 *
 * Thread:  loop
 * Owns:    keeps `handler` until on_removed, and the memory of `executor`, not its life
 * Returns: 0; -EINVAL when the handler has outbound callbacks (on_write, on_flush, on_close,
 *          on_drain, on_sent); -ENOMEM; -ESHUTDOWN; what starting a thread failed with
 */
BOW_EXPORT BOW_MUST_USE int bow_channel_add_last_on(struct bow_channel *channel,
                                                    struct bow_handler *handler,
                                                    struct bow_executor *executor);
/** Remove a handler; its unread bytes go to its successor. on_removed runs after the running
 * callback. Nothing when it was removed before. Thread: loop. */
BOW_EXPORT void bow_channel_remove(struct bow_handler *handler);

/**
 * Queue bytes from the tail of the pipeline: the handlers see them (on_write) from there to
 * the head. Nothing leaves before a flush. `done` (may be NULL) runs once, on the loop, never
 * inside this call: with 0 when the kernel took them, else with a negative errno.
 *
 * Thread:  any; on the loop at once, elsewhere through a task, in order
 * Owns:    borrows `buf`: a borrowed one is copied, a counted one gets a further reference
 * Returns: 0; -ENOMEM; -EPIPE when the channel is closed or our side shut down; what a handler's
 *          on_write returned
 */
BOW_EXPORT BOW_MUST_USE int bow_channel_write(struct bow_channel *channel,
                                              const struct bow_buf *buf, bow_write_fn done,
                                              void *user);

/** Send what is queued; in a read batch, once at its end. Thread: any. */
BOW_EXPORT void bow_channel_flush(struct bow_channel *channel);
/** Do bow_channel_write() and bow_channel_flush() in one step. Thread: any. Returns as
 * bow_channel_write(). */
BOW_EXPORT BOW_MUST_USE int bow_channel_write_and_flush(struct bow_channel *channel,
                                                        const struct bow_buf *buf,
                                                        bow_write_fn done, void *user);

/** Whether less than the high water mark is queued. Thread: loop. */
BOW_EXPORT bool bow_channel_is_writable(const struct bow_channel *channel);
/** Set how many queued bytes are too many: over `high` the channel is not writable, under `low` it
 * is again; handlers hear of both (on_writable). Nothing is refused. Defaults 32 KiB, 64 KiB.
 * Thread: loop. */
BOW_EXPORT void bow_channel_set_water_marks(struct bow_channel *channel, size_t low, size_t high);

/** Stop delivery of bytes and of the peer's end, at once, also in the middle of a batch; unread
 * bytes are kept, and the peer is slowed down by TCP. Idempotent. Thread: loop. */
BOW_EXPORT void bow_channel_pause_read(struct bow_channel *channel);
/** Go on in a later turn, first with the bytes that were kept. Idempotent. Thread: loop. */
BOW_EXPORT void bow_channel_resume_read(struct bow_channel *channel);

/** Shut our side down after what is queued was sent; the peer's bytes still arrive. Thread: any. */
BOW_EXPORT void bow_channel_shutdown_write(struct bow_channel *channel);

/** Close at once; queued writes fail with `error` or -ECANCELED. `error` 0 for an orderly end.
 * Idempotent. Thread: any. */
BOW_EXPORT void bow_channel_close(struct bow_channel *channel, int error);

/**
 * Close once everything queued, pushed and pulled, was sent, or after `timeout_ns`.
 *
 * Our side is shut down then, and the channel ends when the peer has ended its own: closing
 * earlier would answer what the peer still sends with a reset, and that may overtake our last
 * bytes. For a peer that has taken all of them and sends nothing more, that is waited for a second
 * long; for one that still reads, within `timeout_ns`. Bytes arriving meanwhile are dropped. A
 * time-out before all was sent ends it with -ETIMEDOUT. Called again it may only come to an
 * earlier end, once all was sent.
 *
 * Thread: loop
 */
BOW_EXPORT void bow_channel_close_after_flush(struct bow_channel *channel, uint64_t timeout_ns);

/** Sets the pipeline of a new channel up; a negative errno closes it. Thread: the channel's loop.
 */
typedef int (*bow_channel_init_fn)(struct bow_channel *channel, void *user);

/** What channels are made with, accepted or connected; begin with BOW_CHANNEL_OPTIONS_INIT. */
struct bow_channel_options {
    size_t size;                    /* sizeof this struct, set by the INIT */
    size_t data_bytes;              /* memory that comes with each channel: bow_channel_data() */
    bow_channel_init_fn on_channel; /* NULL: an empty pipeline */
    void *user;                     /* on_channel's */
    uint32_t max_reads_per_turn;    /* 0: 16 */
    size_t max_bytes_per_turn;      /* 0: 256 KiB */
    uint64_t keepalive_ns;   /* of TCP: the kernel probes a peer of which nothing has come for so
                                long, also while no loop runs, and again after the same time; three
                                unanswered probes end the connection (-ETIMEDOUT). Whole seconds,
                                rounded up, at most 32767; 0: none */
    uint64_t tcp_timeout_ns; /* the kernel ends a connection whose peer has acknowledged nothing of
                                what was sent to it, or no probe, for so long (TCP_USER_TIMEOUT).
                                Whole milliseconds, rounded up; 0: the system's, some 15 min */
    const char *source; /* the local address to connect from, "192.0.2.1" or "2001:db8::1", no name
                           and no port: addresses of the other family are left out; NULL: what the
                           route says; copied. Not for what is accepted */
};

#define BOW_CHANNEL_OPTIONS_INIT BOW__INIT(struct bow_channel_options, )

/* Listening */

struct bow_acceptor;

/** What an acceptor is made with; begin with BOW_ACCEPTOR_OPTIONS_INIT, set an address and a loop.
 */
struct bow_acceptor_options {
    size_t size;           /* sizeof this struct, set by the INIT */
    const char *address;   /* HOST:PORT (a number, or a name, which is resolved at once and listened
                              on at each of its addresses that this host has), *:PORT, [v6]:PORT,
                              unix:PATH, unix-abstract:NAME, fd:N (a bound stream socket that was
                              inherited: closed with the acceptor, and not before it was made),
                              inproc:NAME (for connections from the same context, without
                              descriptors; at most 100 bytes of printable ASCII without commas) */
    struct bow_loop *loop; /* accepts here, unless per_worker; kept; may be NULL with that */
    struct bow_group *workers; /* connections go to bow_group_next(); NULL: to `loop` */
    struct bow_channel_options channel;
    int backlog;                   /* 0: SOMAXCONN */
    uint32_t max_accepts_per_turn; /* 0: 64 */
    uint32_t max_channels;         /* more are accepted and closed at once, counted; 0: no limit */
    bool per_worker;  /* each of `workers` listens itself (SO_REUSEPORT) and serves what it accepts,
                         the kernel choosing by a hash of the addresses: no hand-over, less even.
                         TCP only. A port that another process has, be it shared, is EADDRINUSE */
    bool shares_port; /* with per_worker: other processes of the same user may listen on the port
                         as well, and the kernel gives each its part of the connections: for a
                         successor that starts before this one ends */
    uint32_t unix_mode; /* of a Unix socket's file, at most 0777: in force before anybody can
                           connect; 0: as the umask leaves it */
    uid_t unix_owner;   /* of that file, as lchown() takes it; default -1: this process's */
    gid_t unix_group;   /* the same */
};

#define BOW_ACCEPTOR_OPTIONS_INIT                                                                  \
    BOW__INIT(struct bow_acceptor_options,                                                         \
              BOW__SET(channel, BOW_CHANNEL_OPTIONS_INIT) BOW__SET(unix_owner, (uid_t)-1)          \
                  BOW__SET(unix_group, (gid_t)-1))

/**
 * Make an acceptor: bind and listen at once. Accepting begins with bow_acceptor_start();
 * connections until then wait in the backlog.
 *
 * Thread:  any
 * Owns:    keeps the loops (whose shutdown closes the sockets), copies the rest; gives
 *          `*ret_acceptor`, end it with bow_acceptor_close()
 * Returns: 0, or a negative errno with `*ret_error` (may be NULL) filled: -EINVAL, -ENOMEM, what
 *          resolving the address, binding or listening failed with
 */
BOW_EXPORT BOW_MUST_USE int bow_acceptor_new(struct bow_context *context,
                                             const struct bow_acceptor_options *options,
                                             struct bow_acceptor **ret_acceptor,
                                             struct bow_transport_error *ret_error);
/** Begin to accept; starts the threads of its loops. On failure none of its listeners has begun.
 * Thread: any. Returns: 0; -ESHUTDOWN; what starting a thread failed with. */
BOW_EXPORT BOW_MUST_USE int bow_acceptor_start(struct bow_acceptor *acceptor);
/** The bound port; 0 for Unix sockets and inproc. Thread: any. */
BOW_EXPORT uint16_t bow_acceptor_port(const struct bow_acceptor *acceptor);
/** Where it listens, as bow_channel_peer() writes addresses, a comma and a blank between several
 * ("127.0.0.1:80, [::1]:80"). Lives as long as the acceptor. Thread: any. */
BOW_EXPORT const char *bow_acceptor_addresses(const struct bow_acceptor *acceptor);
/** Connections that were closed at once because of max_channels. Thread: any. */
BOW_EXPORT uint64_t bow_acceptor_n_refused(const struct bow_acceptor *acceptor);
/** Stop accepting and free; accepted channels live on. If it was started, connections that wait are
 * accepted before, unless the socket was inherited. `closed` (may be NULL) is the last callback, on
 * options.loop, or the first worker's without one; on any thread once that loop has terminated.
 * Thread: any. */
BOW_EXPORT void bow_acceptor_close(struct bow_acceptor *acceptor, void (*closed)(void *user),
                                   void *user);

/**
 * How many listening sockets the service manager has handed to this process (systemd's LISTEN_FDS
 * and LISTEN_PID): descriptors 3, 4, … for "fd:3", "fd:4", …. Only reads the environment.
 *
 * Thread:  any, while none changes the environment
 * Returns: 0 also when they are another process's; -EINVAL when the variables make no sense
 */
BOW_EXPORT int bow_inherited_fds(void);
/** The descriptor of that name (FileDescriptorName=, in LISTEN_FDNAMES), the first of several.
 * Returns: it; -ENOENT; -EINVAL as above. Thread: as above. */
BOW_EXPORT int bow_inherited_fd(const char *name);

/* Connecting */

struct bow_connect; /* one attempt */

/** `channel` (its pipeline is set up, on_active has run) or NULL with `error`. Exactly once, on the
 * loop, never from inside the starter. */
typedef void (*bow_connect_fn)(struct bow_channel *channel, const struct bow_transport_error *error,
                               void *user);

/**
 * Connect to `target` (forms as of the acceptor; names are resolved on threads of the
 * context's; addresses are tried as RFC 8305 says, 250 ms apart).
 *
 * Thread:  loop
 * Owns:    copies `target` and `options`; `*ret_connect` is valid until `done` has run
 * Returns: 0; -EINVAL (the target or the source cannot be parsed, `*ret_error` says why); -ENOMEM;
 *          -ESHUTDOWN
 */
BOW_EXPORT BOW_MUST_USE int bow_connect_start(struct bow_loop *loop, const char *target,
                                              const struct bow_channel_options *options,
                                              uint64_t timeout_ns, bow_connect_fn done, void *user,
                                              struct bow_connect **ret_connect,
                                              struct bow_transport_error *ret_error);
/** What the attempt is at: "resolving" or "connecting". Thread: loop. */
BOW_EXPORT const char *bow_connect_stage(const struct bow_connect *connect);

/** Give up; `done` runs with -ECANCELED, later. Thread: loop. */
BOW_EXPORT void bow_connect_cancel(struct bow_connect *connect);

/** Whether everything `address` can name is loopback, a Unix socket or inproc, without
 * resolving ("localhost" is). -EINVAL when it cannot be parsed; -EBADF, -ENOTSOCK for the number of
 * a descriptor that is not open, or no socket. Thread: any. */
BOW_EXPORT int bow_address_is_local(const char *address);

#ifdef __cplusplus
}
#endif
#endif
