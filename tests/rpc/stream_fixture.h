/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_RPC_STREAM_FIXTURE_H
#define BOWLINE_TESTS_RPC_STREAM_FIXTURE_H

/*
 * A client on a loop of its own thread, one of its streams, and a server that the test
 * plays (stream_peer.h). What the stream's events bring is counted; a hook may do
 * something in them. The methods are written by hand, so that nothing of a generator
 * stands between.
 */

#include "call_fixture.h"
#include "tests/rpc/stream_peer.h"

#include <bowline/stream.h>

struct streams {
    struct calls *t;
    int listening;
    struct stream_peer peer;
    struct bow_stream *stream;

    /* Under the lock of t, as its own counters. */
    int n_headers;
    int n_messages;
    uint64_t last_number;
    int n_disordered;
    int n_writable;
    int n_closed;
    int n_wakes;        /* of a hook that wakes senders */
    int n_after_closed; /* events that came after on_closed */
    struct bow_result result;
    char initial[128]; /* "key=value" of the first entry */

    /* Hooks run on the loop, before the event is counted. */
    void (*in_message)(struct streams *s, struct bow_stream *stream);
    void (*in_writable)(struct streams *s, struct bow_stream *stream);
    void (*in_closed)(struct streams *s, struct bow_stream *stream);
    uint64_t n_sent; /* of a hook that sends */
    int rc;          /* what a hook found */
};

/** Both sides send many; the server does; the client does. */
extern const struct bow_method streams_both;
extern const struct bow_method streams_pour;
extern const struct bow_method streams_gather;
/** The events for bow_client_open(), with the struct streams as user. */
extern const struct streams_events {
    int unused;
} streams_events;

/** cmocka's setup and teardown; the state is a struct streams. */
int streams_setup(void **state);
/** The same with a client that is confined to the test's thread. */
int streams_setup_confined(void **state);
int streams_teardown(void **state);

/** Open s->stream with events, or without for the blocking style. */
void streams_open(struct streams *s, const struct bow_method *method,
                  const struct bow_call_options *options);
void streams_open_blocking(struct streams *s, const struct bow_method *method,
                           const struct bow_call_options *options);
/** The server's end: take the connection, and wait for the call. */
void streams_accept(struct streams *s);
/** Both. */
void streams_begin(struct streams *s, const struct bow_method *method);

int streams_send(struct bow_stream *stream, uint64_t number);
int streams_send_sized(struct bow_stream *stream, uint64_t number, size_t n_payload);

/** Wait until `*counter` (of s) is at least `n`. */
void streams_wait(struct streams *s, const int *counter, int n);
/** The same while the peer goes on reading and answering. */
void streams_wait_serving(struct streams *s, const int *counter, int n);
/** Wait for on_closed and assert the code. */
void streams_expect_closed(struct streams *s, enum bow_code code, const char *words);
/** Run `fn` on the client's loop, after all that was posted to it before, and wait. */
void streams_on_loop(struct streams *s, void (*fn)(struct streams *s));

#endif
