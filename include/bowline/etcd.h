/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_ETCD_H
#define BOWLINE_ETCD_H

/*
 * libbowline-etcd: servers that tell where they are, and clients that find them, by way of etcd
 * (https://etcd.io, version 3.4 and later); and locks, of which elections are made.
 *
 *     a server: bow_etcd_register() ──► a key under a lease ──► etcd ──► bow_etcd_watch()
 *               bow_etcd_unregister()   the key goes             ▲       bow_etcd_resolver()
 *     an elder: bow_etcd_lock() ──────► on_acquired, on_lost ────┘
 *
 * All that is here goes on by itself, whatever becomes of the connection, of etcd's members, of
 * tokens and of leases: errors are told, and tried again in pauses that grow. It ends when it is
 * told to, and then with on_closed, the last event, exactly once.
 *
 * Keys and values are those of etcd's own Go package client/v3/naming/endpoints: PREFIX SERVICE "/"
 * ADDRESS, with {"Op":0,"Addr":ADDRESS,"Metadata":{…}}; or go-zero's, SERVICE "/" LEASE with
 * ADDRESS (enum bow_etcd_layout).
 *
 *     struct bow_etcd_options options = BOW_ETCD_OPTIONS_INIT;
 *     struct bow_etcd_registration_options mine = BOW_ETCD_REGISTRATION_OPTIONS_INIT;
 *     options.context = context;
 *     options.target = "10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379";
 *     int rc = bow_etcd_new(&options, &etcd);
 *     ...
 *     mine.service = "shop.Orders";
 *     mine.address = "10.0.1.7:50051";
 *     rc = bow_etcd_register(etcd, &mine, &registration);      once the server listens
 *     ...
 *     bow_etcd_unregister(registration);                       before it drains
 *     rc = bow_etcd_stop(etcd, 5000000000);                    etcd knows, within five seconds
 *     bow_etcd_unref(etcd);
 *
 * Threads: functions may be called on any thread, events come on the loop of the bow_etcd, one at a
 * time, and never from inside a function here but bow_etcd_stop(), where that runs an owner's loop.
 * They may call whatever is here but bow_etcd_stop().
 * Each brings its handle: on another thread than the loop's it may come before the function that
 * makes the handle has returned.
 */

#include <bowline/status.h>
#include <bowline/transport_error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_context;
struct bow_etcd;
struct bow_etcd_lock;
struct bow_etcd_registration;
struct bow_etcd_watch;
struct bow_loop;
struct bow_resolver;
struct bow_security;

/** How servers are written down. */
enum bow_etcd_layout {
    BOW_ETCD_LAYOUT_NAMING = 0,  /* etcd's own: SERVICE/ADDRESS, JSON */
    BOW_ETCD_LAYOUT_GO_ZERO = 1, /* go-zero's: SERVICE/LEASE, the address */
};

/** What one is made with; begin with BOW_ETCD_OPTIONS_INIT. */
struct bow_etcd_options {
    size_t size;                 /* sizeof this struct, set by the INIT */
    struct bow_context *context; /* shared; not NULL */
    const char *target;    /* etcd's members, "HOST:PORT,HOST:PORT", or what <bowline/client.h>
                              names otherwise; copied; NULL: "127.0.0.1:2379" */
    struct bow_loop *loop; /* where all happens; shared; NULL: on a thread of its own */
    struct bow_security *security; /* as a client's; shared; NULL: none */
    bool plaintext;                /* as a client's: also beyond loopback; a user's token, too, goes
                                      over it then, even to this host */
    const char *server_name;       /* as a client's; copied; NULL: the target's host */
    const char *user;              /* of etcd; copied; NULL: none */
    const char *password;          /* of the user; copied */
    const char *prefix;            /* in front of all keys; copied; NULL: "" */
    enum bow_etcd_layout layout;
    uint64_t timeout_ns;               /* of one request, and of a stream's first answer; 0: 5 s */
    uint64_t backoff_min_ns;           /* the first pause after a failure; 0: 100 ms */
    uint64_t backoff_max_ns;           /* 0: 5 s; pauses double, with ± 20 % jitter */
    struct bow_transport_error *error; /* NULL, or filled when making it fails; borrowed */
};

#define BOW_ETCD_OPTIONS_INIT BOW__INIT(struct bow_etcd_options, )

/**
 * Make one. It connects when there is something to do.
 *
 * Thread:  any
 * Owns:    gives `*ret_etcd`, drop it with bow_etcd_unref()
 * Returns: 0; -ENOMEM; -EINVAL (options: their size, no context, a password without a user or the
 *          other way round, an unknown layout); else as bow_client_new() and bow_loop_new().
 *          `*options->error` says why
 */
BOW_EXPORT BOW_MUST_USE int bow_etcd_new(const struct bow_etcd_options *options,
                                         struct bow_etcd **ret_etcd);

/** Take one more reference. Thread: any. Returns: `etcd`. */
BOW_EXPORT struct bow_etcd *bow_etcd_ref(struct bow_etcd *etcd);
/** Drop a reference. Registrations, watches and locks have one each, until on_closed has returned
 * and their handle was let go of. NULL is allowed. Thread: any. */
BOW_EXPORT void bow_etcd_unref(struct bow_etcd *etcd);

/**
 * End all registrations, watches and locks, as their own functions do, begin none any more, and
 * wait until leases were given back and on_closed of each has returned. Their handles stay to be
 * let go of. Idempotent. Real time counts, whatever the context's clock says. On the thread of an
 * owner's loop the loop is run meanwhile.
 *
 * Thread:  any but a callback of its loop
 * Returns: 0; -ETIMEDOUT: it goes on, and what etcd could not be told ends with its lease;
 *          -EDEADLK in a callback of the loop: it goes on, too; -ESHUTDOWN when the loop has shut
 *          down (0, where that has ended all); -ECHILD after fork()
 */
BOW_EXPORT int bow_etcd_stop(struct bow_etcd *etcd, uint64_t timeout_ns);

/** What a server tells of itself beside its address, in UTF-8. */
struct bow_etcd_attribute {
    const char *key;
    const char *value;
};

/* Registering. */

/** What happens to a registration; any may be NULL. Texts are borrowed. Thread: the loop of its
 * bow_etcd. */
struct bow_etcd_registration_events {
    /** It is in etcd, under this lease: at the beginning, and again after on_lost. */
    void (*on_registered)(struct bow_etcd_registration *registration, int64_t lease, void *user);
    /** The key was deleted, or the lease lost and the key with it; it is put again, where need be
     * under another lease. */
    void (*on_lost)(struct bow_etcd_registration *registration, const char *why, void *user);
    /** Something failed; it is tried again. */
    void (*on_error)(struct bow_etcd_registration *registration, const struct bow_status *status,
                     void *user);
    /** The last one. */
    void (*on_closed)(struct bow_etcd_registration *registration, void *user);
};

/** A server to be registered; begin with BOW_ETCD_REGISTRATION_OPTIONS_INIT. All is copied. */
struct bow_etcd_registration_options {
    size_t size;          /* sizeof this struct, set by the INIT */
    const char *service;  /* not empty, not NULL; what clients ask for */
    const char *address;  /* where they connect to: "10.0.1.7:50051"; of all hosts one name or
                             number, not 0.0.0.0; or "unix:PATH" */
    uint32_t weight;      /* what it can take, beside others; 0: not said, 1 */
    const char *locality; /* where it is, "zone-a"; NULL: not said */
    const char *version;  /* of its program; NULL: not said */
    const struct bow_etcd_attribute
        *attributes; /* further ones; etcd's layout alone has a place for
                        these, as for weight, locality and version */
    size_t n_attributes;
    uint32_t ttl_s; /* the key goes when nothing was heard of the server for so long; it is renewed
                       at a third of that; 0: 10 */
    const struct bow_etcd_registration_events *events; /* kept until on_closed; NULL: none */
    void *user;
};

#define BOW_ETCD_REGISTRATION_OPTIONS_INIT BOW__INIT(struct bow_etcd_registration_options, )

/**
 * Have a server found: put its key, under a lease that is kept alive. A key that somebody deletes
 * meanwhile is put again at once: who wants the server out ends it, or has it unregister.
 *
 * Thread:  any
 * Owns:    gives `*ret_registration`, to be let go of with bow_etcd_unregister()
 * Returns: 0; -ENOMEM; -EINVAL (options: their size, no service or address, one that clients
 *          cannot use, a text that is no UTF-8, attributes or the like with go-zero's layout);
 *          -EMSGSIZE for a value beyond BOW_LIMIT_ETCD_VALUE_BYTES; -ESHUTDOWN after
 *          bow_etcd_stop() or when the loop has shut down; -ECHILD after fork()
 */
BOW_EXPORT BOW_MUST_USE int bow_etcd_register(struct bow_etcd *etcd,
                                              const struct bow_etcd_registration_options *options,
                                              struct bow_etcd_registration **ret_registration);

/**
 * Take the server out at once: its lease is given back, and its key goes with it. on_closed follows
 * when etcd has answered, or could not be asked. NULL is allowed.
 *
 * Thread:  any
 * Owns:    takes `registration`
 */
BOW_EXPORT void bow_etcd_unregister(struct bow_etcd_registration *registration);

/* Watching. */

/** A server, as it was found. */
struct bow_etcd_server {
    const char *key; /* in etcd, with the prefix */
    const char *address;
    const char *locality; /* NULL: not said */
    const char *version;  /* NULL: not said */
    uint32_t weight;      /* 1 when it was not said */
    const struct bow_etcd_attribute *attributes;
    size_t n_attributes;
};

/** All servers of a service. */
struct bow_etcd_update {
    size_t size;
    const struct bow_etcd_server *servers; /* in the order of their keys; the last that is known,
                                              when there is an error */
    size_t n_servers;
    const char *error; /* NULL; or why changes are not heard of now, told when it begins and when
                          the reason is another; it goes on by itself, and what is found then is
                          told */
    int64_t revision;  /* of etcd's store: the servers are as they were then; 0: nothing is known */
};

/** What happens to a watch. Thread: the loop of its bow_etcd. */
struct bow_etcd_watch_events {
    /** The servers, each time that they change; `update` is borrowed. Not after bow_etcd_unwatch()
     * was called on the loop. Not NULL. */
    void (*on_update)(struct bow_etcd_watch *watch, const struct bow_etcd_update *update,
                      void *user);
    /** The last one; may be NULL. */
    void (*on_closed)(struct bow_etcd_watch *watch, void *user);
};

/**
 * Watch the servers of `service`: the update that says which there are comes first, each change
 * follows. Several watches of one service share what they ask etcd.
 *
 * At most BOW_LIMIT_ETCD_SERVERS are told of; values that are no server's are left out. The log
 * says so.
 *
 * Thread:  any
 * Owns:    copies `service`; keeps `events` and `user` until on_closed; gives `*ret_watch`, to be
 *          let go of with bow_etcd_unwatch()
 * Returns: 0; -ENOMEM; -EINVAL for no service or no events; -ESHUTDOWN after bow_etcd_stop() or
 *          when the loop has shut down; -ECHILD after fork()
 */
BOW_EXPORT BOW_MUST_USE int bow_etcd_watch(struct bow_etcd *etcd, const char *service,
                                           const struct bow_etcd_watch_events *events, void *user,
                                           struct bow_etcd_watch **ret_watch);

/** End a watch; on_closed follows. NULL is allowed. Thread: any. Owns: takes `watch`. */
BOW_EXPORT void bow_etcd_unwatch(struct bow_etcd_watch *watch);

/**
 * The table of targets "etcd:///SERVICE" for `options.resolvers` of clients: their calls go to the
 * servers of that service, each with its weight and its locality, and follow as they come and go.
 * While etcd is away, and after bow_etcd_stop(), the last that were known stay in use; the log says
 * why. With security they prove to be who options.server_name of the client says.
 *
 * Clients on any loop may have it. Each of their loops has a watch of its own; those of one service
 * share what they ask etcd.
 *
 * Thread:  any
 * Owns:    borrowed from `etcd`: keep a reference until the last client that has it is freed
 */
BOW_EXPORT const struct bow_resolver *bow_etcd_resolver(const struct bow_etcd *etcd);

/* Locks, and elections. */

/** What happens to a lock. Thread: the loop of its bow_etcd. */
struct bow_etcd_lock_events {
    /**
     * It is held. `token` is greater than that of each who held it before: what is done under the
     * lock carries it, and who does it refuses tokens below one that it has seen (a fencing token:
     * the holder may have been stopped for longer than its lease).
     */
    void (*on_acquired)(struct bow_etcd_lock *lock, int64_t token, void *user);
    /** It is held no more, or may not be: end what is done under it. It stands in line again. */
    void (*on_lost)(struct bow_etcd_lock *lock, const char *why, void *user);
    /** Something failed; it is tried again. May be NULL. */
    void (*on_error)(struct bow_etcd_lock *lock, const struct bow_status *status, void *user);
    /** The last one; what was held is let go. May be NULL. */
    void (*on_closed)(struct bow_etcd_lock *lock, void *user);
};

/** A lock that is wanted; begin with BOW_ETCD_LOCK_OPTIONS_INIT. Texts are copied. */
struct bow_etcd_lock_options {
    size_t size;       /* sizeof this struct, set by the INIT */
    const char *name;  /* of all who want the same; not empty, not NULL */
    const char *value; /* what others can read of who holds it, its address say; NULL: "" */
    uint32_t ttl_s;    /* who does not renew it for so long loses it; 0: 10 */
    const struct bow_etcd_lock_events *events; /* kept until on_closed; not NULL */
    void *user;
};

#define BOW_ETCD_LOCK_OPTIONS_INIT BOW__INIT(struct bow_etcd_lock_options, )

/**
 * Stand in line for a lock. It goes to one at a time, in the order of coming. An election is the
 * same: who holds the lock leads. Keys are those of etcd's Go package concurrency (PREFIX NAME "/"
 * and the lease's number), so `etcdctl lock` and `etcdctl elect` stand in the same line.
 *
 * on_lost comes when the lease was lost, at the latest when it has ended by this host's clock; and
 * when somebody has deleted the key.
 *
 * Thread:  any
 * Owns:    gives `*ret_lock`, to be let go of with bow_etcd_unlock()
 * Returns: 0; -ENOMEM; -EINVAL (options: their size, no name, no events); -EMSGSIZE for a value
 *          beyond BOW_LIMIT_ETCD_VALUE_BYTES; -ESHUTDOWN after bow_etcd_stop() or when the loop has
 *          shut down; -ECHILD after fork()
 */
BOW_EXPORT BOW_MUST_USE int bow_etcd_lock(struct bow_etcd *etcd,
                                          const struct bow_etcd_lock_options *options,
                                          struct bow_etcd_lock **ret_lock);

/** Let go of a lock, or no longer wait for it; on_closed follows when etcd has answered, or could
 * not be asked. NULL is allowed. Thread: any. Owns: takes `lock`. */
BOW_EXPORT void bow_etcd_unlock(struct bow_etcd_lock *lock);

#ifdef __cplusplus
}
#endif
#endif
