/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_E2E_SCALE_H
#define BOWLINE_TESTS_E2E_SCALE_H

/*
 * Talks: streaming calls on which both sides send as fast as the stream takes it, and check
 * what they get. Server and client have a thread, a loop and a context each, whose memory is
 * counted at its peak.
 */

#include "lab.h"
#include <bowline/call_stream.h>
#include <bowline/stream.h>

struct scale;

/** One end of a talk. Its loop's, but for the counts. */
struct scale_end {
    uint64_t n_to_send;
    size_t body_bytes;
    bool reads_nothing; /* stops reading with the first message, until scale_read_on() */
    atomic_ullong n_sent;
    atomic_ullong n_received;
    atomic_uint n_bad;     /* out of order, or not what was sent */
    atomic_uint n_refused; /* sends that failed in another way than for want of room */
    bool is_ended;         /* the other side has said its last */
};

struct scale_talk {
    struct scale *t;
    struct scale_end client;
    struct scale_end server;
    struct bow_stream *stream; /* a reference */
    struct bow_call *call;     /* a reference */
    atomic_uint n_entered;
    atomic_uint n_closed;
    atomic_uint n_served; /* the server's on_closed */
    enum bow_code code;
    char message[256];
};

/** A context's allocator: malloc, counted. */
struct scale_memory {
    struct bow_allocator allocator;
    atomic_size_t n_bytes;
    atomic_size_t peak;
};

#define SCALE_MAX_TALKS 4

struct scale {
    struct scale_memory server_memory;
    struct scale_memory client_memory;
    struct bow_context *server_context;
    struct bow_context *client_context;
    struct bow_server *server;
    struct bow_loop *loop;        /* the clients' */
    struct bow_client *client[2]; /* a connection each */
    struct scale_talk talks[SCALE_MAX_TALKS];
    atomic_uint n_entered; /* talks come to the server in the order in which they are begun */
};

void scale_begin(struct scale *t, const char *prefix);
/** Asserts that no byte is left. */
void scale_end(struct scale *t);

struct scale_wish {
    uint64_t n_from_client;
    uint64_t n_from_server;
    size_t body_bytes;
    bool client_stalls;
    bool server_stalls;
};

/** Begin the next talk and wait until the server has it. Those with an even index share one
 * connection, those with an odd one another. */
struct scale_talk *scale_talk(struct scale *t, unsigned index, const struct scale_wish *wish);
/** Those ends that read nothing begin to. */
void scale_read_on(struct scale_talk *talk);
/** Wait for the end, and assert that all of it came. */
void scale_expect_all(struct scale_talk *talk);
/** Talks that have ended, from `first` on: their indices may be used again. */
void scale_forget(struct scale *t, unsigned first);

#endif
