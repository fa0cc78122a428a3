/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_MEMORY_INPROC_H
#define BOWLINE_TRANSPORT_MEMORY_INPROC_H

/*
 * Connections between two channels of one context, without a descriptor: as a Unix
 * socket behaves, but the bytes are handed over in memory. Knows nothing of channels.
 *
 *     inproc.c           names, who listens on them, connections that wait to be accepted
 *     inproc_pair.c      a connection: two ends, each a struct bow_system of its own
 *     inproc_fault.c     what tests let go wrong
 *
 *     connect ─► end 0 ═══ ring ══► end 1 ─► accept
 *                      ◄══ ring ═══
 *
 * Design
 *
 * One mutex for the names of a context and for what waits at them, one for each pair. The
 * second is taken inside the first never: ends are made before they are queued, and
 * closed after they were taken out.
 */

#include "base/shared.h"
#include "transport/channel/transport.h"
#include "transport/memory/inproc_fault.h"

struct bow__inproc_end;
struct bow__inproc_listener;

/** Addresses "inproc:name". */
extern const struct bow__transport bow__inproc_transport;

/** Returns 0; -EADDRINUSE; -ENOMEM. Thread: any. */
int bow__inproc_listen(struct bow_context *context, const char *name, int backlog,
                       struct bow__inproc_listener **ret_listener);
/** Nobody can connect any more, and who waits is reset. Its source has no interest. Thread: any. */
void bow__inproc_unlisten(struct bow__inproc_listener *listener);
/** Connect at once. Returns 0; -ECONNREFUSED when nobody listens; -EAGAIN when too many wait there;
 * -ENOMEM. Thread: any. */
int bow__inproc_connect(struct bow_context *context, const char *name,
                        struct bow__inproc_end **ret_end);

/** Begin to stand in the way of the connections of `context`, which has none yet. `faults` outlives
 * them. Returns 0 or -ENOMEM. */
BOW__SHARED int bow__inproc_faults_init(struct bow__inproc_faults *faults,
                                        struct bow_context *context);

/* inproc_pair.c: the connection. Thread: any. */

/** Returns 0 or -ENOMEM. Each end is closed once, by the `close` of its socket. `faults` may be
 * NULL. */
int bow__inproc_pair_new(struct bow_context *context, struct bow__inproc_faults *faults,
                         struct bow__inproc_end *ret_ends[2]);
/** What a channel reads from and writes to. */
struct bow__socket bow__inproc_socket(struct bow__inproc_end *end);
/** As close(), but the other end is told that it was reset. */
void bow__inproc_reset(struct bow__inproc_end *end);

/** For a queue of whoever holds the end: the next one. */
struct bow__inproc_end **bow__inproc_next(struct bow__inproc_end *end);

/* Faults of all connections that are there. */

/** Thread: any, without the mutex of a pair. */
BOW__SHARED void bow__inproc_break(struct bow__inproc_faults *faults, enum bow__inproc_fault kind);
/** Those that are stalled go on. */
BOW__SHARED void bow__inproc_resume(struct bow__inproc_faults *faults);

#endif
