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
 *     bow__inproc_connect() ─► end 0 ═══ ring ══► end 1 ─► bow__inproc_accept()
 *                                    ◄══ ring ═══
 *
 * Design
 *
 * One mutex for the names of a context and for what waits at them, one for each pair. The
 * second is taken inside the first never: ends are made before they are queued, and
 * closed after they were taken out.
 */

#include "transport/channel/socket.h"

struct bow__inproc_end;
struct bow__inproc_faults;
struct bow__inproc_listener;

/* inproc.c: who listens. Thread: any. */

/** Returns 0; -EADDRINUSE; -ENOMEM. */
int bow__inproc_listen(struct bow_context *context, const char *name, int backlog,
                       struct bow__inproc_listener **ret_listener);
/** To be told (BOW_POLL_IN) when accept would find something. */
struct bow__source *bow__inproc_listener_source(struct bow__inproc_listener *listener);
/** The far end of a connection, which is the caller's to close, or NULL. */
struct bow__inproc_end *bow__inproc_accept(struct bow__inproc_listener *listener);
/** Nobody can connect any more; who waits can be accepted. Idempotent. */
void bow__inproc_hide(struct bow__inproc_listener *listener);
/** The same, and who waits is reset. Its source has no interest. */
void bow__inproc_unlisten(struct bow__inproc_listener *listener);
/** Connect at once. Returns 0; -ECONNREFUSED when nobody listens; -EAGAIN when too many wait there;
 * -ENOMEM. */
int bow__inproc_connect(struct bow_context *context, const char *name,
                        struct bow__inproc_end **ret_end);
/** What stands in the way of connections from now on. Returns 0 or -ENOMEM. */
int bow__inproc_set_faults(struct bow_context *context, struct bow__inproc_faults *faults);

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

#endif
