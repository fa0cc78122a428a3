/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_RPC_STREAM_PEER_H
#define BOWLINE_TESTS_RPC_STREAM_PEER_H

/*
 * The server's end of a streaming call, played by the test's own thread: a session on a
 * plain socket, which takes and sends what the test says, one step at a time. So
 * each order of events that a client can meet can be made.
 *
 *     stream_peer_accept(&peer, context, listening, http2);
 *     stream_peer_wait(&peer, &peer.n_messages, 2);
 *     stream_peer_send(&peer, 7);
 *     stream_peer_finish(&peer, BOW_OK, "");
 *     stream_peer_end(&peer);
 */

#include "base/pool.h"
#include "rpc/core/session.h"

struct stream_peer {
    int fd; /* owned */
    struct bow_context *context;
    struct bow__pool pool;
    struct bow__session *session;
    uint64_t key;       /* of the last call that was opened */
    bool keeps_credit;  /* what comes is not given back */
    size_t n_kept;      /* then: bytes of it */
    char metadata[512]; /* the last call's, "key=value;" each */

    int n_opens;
    int n_messages;
    uint64_t last_number; /* of the last message, a Calls__Request */
    uint64_t next_of[8];  /* of each sender, which the upper half of a number names; 0: any */
    int n_disordered;     /* messages whose number is not its sender's one before and one more */
    int n_half_closes;
    int n_resets;
    int n_hang_ups; /* the client has closed the connection */

    size_t n_bytes; /* fed and not used yet */
    uint8_t bytes[256 << 10];
};

void stream_peer_accept(struct stream_peer *peer, struct bow_context *context, int listening,
                        bool http2);
/** Close the connection; what is left to send is dropped. */
void stream_peer_end(struct stream_peer *peer);

/** Send and receive until `*counter` is at least `n`; only a broken test waits long. */
void stream_peer_wait(struct stream_peer *peer, const int *counter, int n);
/** Send and receive once, waiting at most so long for something to come. Returns whether it did. */
bool stream_peer_serve(struct stream_peer *peer, int timeout_ms);
/** Give back the credit that was kept. */
void stream_peer_give_credit(struct stream_peer *peer);

/** A Calls__Reply with `number` on the last call. */
void stream_peer_send(struct stream_peer *peer, uint64_t number);
/** The same with `n_payload` bytes beside it. */
void stream_peer_send_sized(struct stream_peer *peer, uint64_t number, size_t n_payload);
/** The same as the last message, which ends the call with OK. */
void stream_peer_reply(struct stream_peer *peer, uint64_t number);
/** Bytes that need not be a message. */
void stream_peer_send_bytes(struct stream_peer *peer, const void *bytes, size_t len);
/** Initial metadata: one entry. */
void stream_peer_respond(struct stream_peer *peer, const char *key, const char *value);
void stream_peer_finish(struct stream_peer *peer, enum bow_code code, const char *message);
void stream_peer_finish_status(struct stream_peer *peer, const struct bow_status *status);

#endif
