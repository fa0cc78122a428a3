/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_CHANNEL_ACCEPTOR_H
#define BOWLINE_TRANSPORT_CHANNEL_ACCEPTOR_H

/*
 * Starting several acceptors together, and undoing what was not started: for who listens on all of
 * its addresses or on none.
 */

#include <bowline/channel.h>

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
