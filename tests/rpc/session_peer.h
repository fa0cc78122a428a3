/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_RPC_SESSION_PEER_H
#define BOWLINE_TESTS_RPC_SESSION_PEER_H

/*
 * One end of a connection, played by the test's own thread: a session on a plain
 * socket. What it sends is well formed, and more than a client or server of ours
 * would do; so the other end's checks above the session can be reached.
 *
 *     session_peer_begin(&peer, context, fd, true, http2);
 *     session_peer_wait(&peer, &peer.n_messages, 1);
 *     peer.session->ops->finish(peer.session, peer.key, &status);
 *     session_peer_wait(&peer, &peer.n_ends, 1);
 *     session_peer_end(&peer);
 */

#include "base/pool.h"
#include "rpc/core/session.h"

struct session_peer {
    int fd; /* owned */
    struct bow_context *context;
    struct bow__pool pool;
    struct bow__session *session;
    uint64_t key; /* of the last call that was opened */

    int n_readies;
    int n_opens;
    int n_messages;
    int n_ends; /* statuses or resets */
    enum bow_code code;
    char text[512]; /* the last one's */
};

void session_peer_begin(struct session_peer *peer, struct bow_context *context, int fd, bool server,
                        bool http2);
/** Close the connection; what is left to send is dropped. */
void session_peer_end(struct session_peer *peer);

/** Send and receive until `*counter` is at least `n`; only a broken test waits long. */
void session_peer_wait(struct session_peer *peer, const int *counter, int n);
/** Send what is ready. */
void session_peer_flush(struct session_peer *peer);

/** As a client: begin a call. */
void session_peer_open(struct session_peer *peer, const char *path, uint64_t time_left_ns);
/** Send a message on the last call. */
void session_peer_send(struct session_peer *peer, uint32_t flags, const void *bytes, size_t len);

#endif
