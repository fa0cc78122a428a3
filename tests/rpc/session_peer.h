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
    enum bow__encoding encoding; /* of the next calls; 0: what is sent is not compressed */
    uint64_t key;                /* of the last call that was opened */
    uint64_t keys[4];            /* of the first ones */
    bool may_be_lost;  /* the other end may close the connection: no failure of the test */
    bool lost;         /* it has */
    bool keeps_credit; /* what comes is not given back */
    size_t n_kept;     /* then: bytes of it, of the last call */

    int n_readies;
    int n_opens;
    int n_messages;
    int n_compressed;     /* of them */
    uint64_t last_number; /* of the last message, whose first field it is */
    int n_disordered;     /* messages whose number is not the one before and one more */
    int n_headers;
    int n_goaways;
    char goaway[512]; /* the last one's words */
    int n_ends;       /* statuses or resets */
    enum bow_code code;
    uint64_t retry_after_ns; /* the last one's */
    char text[512];          /* likewise */
    char details[64];        /* likewise */
    char initial[512];       /* metadata as "key=value;" */
    char trailing[512];      /* likewise */

    size_t n_bytes; /* fed and not used yet */
    uint8_t bytes[256 << 10];
};

void session_peer_begin(struct session_peer *peer, struct bow_context *context, int fd, bool server,
                        bool http2);
/** Close the connection; what is left to send is dropped. */
void session_peer_end(struct session_peer *peer);

/** Send and receive until `*counter` is at least `n`; only a broken test waits long. */
void session_peer_wait(struct session_peer *peer, const int *counter, int n);
/** Send what is ready. */
void session_peer_flush(struct session_peer *peer);
/** Send and receive once, waiting at most so long for something to come. Returns whether it did. */
bool session_peer_serve(struct session_peer *peer, int timeout_ms);
/** Give back the credit that was kept. */
void session_peer_give_credit(struct session_peer *peer);

/** As a client: begin a call. */
void session_peer_open(struct session_peer *peer, const char *path, uint64_t time_left_ns);
/** The same with metadata and without a message. */
void session_peer_begin_stream(struct session_peer *peer, const char *path, uint64_t time_left_ns,
                               const struct bow_metadata *metadata);
/** No message follows. */
void session_peer_half_close(struct session_peer *peer);
/** Give the last call up. */
void session_peer_cancel(struct session_peer *peer);
/** Send a message on the last call. */
void session_peer_send(struct session_peer *peer, uint32_t flags, const void *bytes, size_t len);

#endif
