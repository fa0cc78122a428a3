/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_INSPECT_H
#define BOWLINE_INSPECT_H

/*
 * What a server or a client is doing now: its calls in flight with the stage that each is at, its
 * connections and its loops, for people (text) and for programs (JSON).
 *
 *     call /demo.Greeter/SayHello with 127.0.0.1:40312 (grpc): in the handler, for 3.204 s,
 *     56.796 s left, 0 bytes wait                                    (one line of it)
 *
 * Each loop tells of its own by a task, so nothing is locked and nothing is torn; what is told of
 * different loops is of moments a little apart. A loop that does not get to the task within
 * options.wait_ns is told as held, with what holds it where that is watched (max_hold_ns of its
 * options), and its calls are missing: for those there is tools/gdb/bowline-gdb.py.
 *
 * Stages of a server's call:
 *
 *     receiving the request              of a method with one request: it has not come whole
 *     held by an interceptor             with its name
 *     waiting before the handler         with what for: max_calls, or its client takes no replies
 *     waiting for a thread               of the executor that runs its handler
 *     in the handler                     which has not answered
 *     waiting for flow-control credit    messages wait until the client gives more (its window)
 *     waiting for the socket             messages wait, and the client's TCP window is full
 *     reply being sent                   answered on another thread, on its way to the loop
 *
 * and of a client's:
 *
 *     held by an interceptor             with its name
 *     waiting for a connection           with what is done about one
 *     waiting for a stream               the server takes no more calls at once
 *     waiting for flow-control credit    messages wait until the server gives more
 *     waiting for the socket
 *     waiting for the server             all that there is has been sent
 *     waiting for the reader             the server has ended it, and messages wait to be read
 *
 * A reply that was given on its loop is the connection's business: it counts there as a reply being
 * sent until it has left.
 */

#include <bowline/context.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_client;
struct bow_server;

/** How it is written. */
enum bow_dump_format {
    BOW_DUMP_TEXT = 0, /* a line for each thing */
    BOW_DUMP_JSON = 1, /* one object */
};

/** What is told, as bits. */
enum bow_dump_part {
    BOW_DUMP_LOOPS = 1,
    BOW_DUMP_CONNECTIONS = 2,
    BOW_DUMP_CALLS = 4,
};

/** How to dump; begin with BOW_DUMP_OPTIONS_INIT. */
struct bow_dump_options {
    size_t size; /* sizeof this struct, set by the INIT */
    enum bow_dump_format format;
    uint32_t parts;           /* BOW_DUMP_ bits; 0: all */
    uint32_t max_calls;       /* that are shown, the oldest of each loop; 0: BOW_LIMIT_DUMP_CALLS */
    uint32_t max_connections; /* likewise, any of them; 0: BOW_LIMIT_DUMP_CONNECTIONS */
    uint64_t wait_ns;         /* for loops that are busy, all together; 0: 1 s */
};

#define BOW_DUMP_OPTIONS_INIT BOW__INIT(struct bow_dump_options, )

/** Takes the next `len` bytes of the text. Returns 0, or a negative errno to end it. */
typedef int (*bow_dump_put_fn)(const char *text, size_t len, void *user);

/**
 * Write what `server` has in flight. Of peers' bytes only printable ASCII is written as it is.
 *
 * Blocks for at most options.wait_ns, on loops of others. On one of the server's loops that one
 * tells of itself at once.
 *
 * Thread:  any, a handler's too; not concurrently with bow_server_free()
 * Owns:    borrows `options` (NULL: the defaults); `put` is called on this thread, until it fails
 * Returns: 0; -EINVAL for options of an unknown size or format; -ENOMEM; -ECHILD (see
 *          bow_server_start()); what `put` failed with
 */
BOW_EXPORT BOW_MUST_USE int bow_server_dump(struct bow_server *server,
                                            const struct bow_dump_options *options,
                                            bow_dump_put_fn put, void *user);

/** The same to a descriptor, which is written to as it is: one that blocks may block. Returns: as
 * bow_server_dump(); what write() failed with. */
BOW_EXPORT BOW_MUST_USE int bow_server_dump_fd(struct bow_server *server,
                                               const struct bow_dump_options *options, int fd);

/**
 * Write what `client` has in flight. A client that drives its own loop in blocking calls tells of
 * itself on its own thread only; on another one its loop is told as held.
 *
 * Thread:  any, a callback's too; not concurrently with bow_client_free()
 * Owns:    as bow_server_dump()
 * Returns: as bow_server_dump()
 */
BOW_EXPORT BOW_MUST_USE int bow_client_dump(struct bow_client *client,
                                            const struct bow_dump_options *options,
                                            bow_dump_put_fn put, void *user);

/** The same to a descriptor. Returns: as bow_server_dump_fd(). */
BOW_EXPORT BOW_MUST_USE int bow_client_dump_fd(struct bow_client *client,
                                               const struct bow_dump_options *options, int fd);

#ifdef __cplusplus
}
#endif
#endif
