/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_CHANNEL_ACCEPTOR_H
#define BOWLINE_TRANSPORT_CHANNEL_ACCEPTOR_H

/*
 * Starting several acceptors together, and undoing what was not started: for who listens on all of
 * its addresses or on none. And sockets that go to another process, or come from one.
 */

#include "transport/channel/handed.h"

#include <bowline/channel.h>

/** bow_acceptor_new(), but what `handed` (may be NULL) has of the address is taken over instead of
 * opened: lent, until bow__acceptor_own(). With per_worker the rest is opened beside it. */
BOW_MUST_USE int bow__acceptor_new_from(struct bow_context *context,
                                        const struct bow_acceptor_options *options,
                                        struct bow__handed *handed,
                                        struct bow_acceptor **ret_acceptor,
                                        struct bow_transport_error *ret_error);
/** The process that it had them from has let go of them: they are this one's alone. Thread: any. */
void bow__acceptor_own(struct bow_acceptor *acceptor);

/** A socket that another process may have as well. */
struct bow__lent {
    int fd; /* a duplicate: the caller's */
    dev_t device;
    ino_t inode; /* of its file; 0: none */
};

/** How many sockets it has, or had. Thread: any. */
uint32_t bow__acceptor_n_listeners(const struct bow_acceptor *acceptor);
/**
 * From now on the socket is another process's too: at the end it is closed here and nothing else,
 * and what waits in it is the other's. The acceptor goes on accepting.
 *
 * Thread:  any, before bow_acceptor_close()
 * Returns: 0; -ENOENT when it is closed, of no descriptor, or was handed down by a service manager
 *          ("fd:N"), which has it for the next one; -EMFILE
 */
int bow__acceptor_lend(struct bow_acceptor *acceptor, uint32_t index, struct bow__lent *ret_lent);
/** The other process has let go of it. Thread: as above. */
void bow__acceptor_take_back(struct bow_acceptor *acceptor, uint32_t index);

/** As bow_acceptor_start(), all of them or none. */
BOW_MUST_USE int bow__acceptors_start(struct bow_acceptor *const *acceptors, uint32_t n_acceptors);

/**
 * Free an acceptor that was not started, or whose start failed, as if it had not been made: when
 * this returns its sockets are closed and their files removed, and a descriptor that was handed
 * down is the caller's again, its flags as they were.
 *
 * Thread: any
 */
void bow__acceptor_undo(struct bow_acceptor *acceptor);

#endif
