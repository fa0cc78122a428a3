/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_RPC_STATES_FIXTURE_H
#define BOWLINE_TESTS_RPC_STATES_FIXTURE_H

/*
 * One stream between a client and a server on a single loop, which the test turns: each state that
 * the stream can be in is made, and holds until the test has looked at it, from its own
 * thread, which is the loop's, and from another one.
 *
 *     states_open(&s, BLOCKING, BOW_NEVER);
 *     states_enter(&s);                          the handler has it: s.call
 *     ...
 *     states_close(&s);                          nothing may be left
 */

#include "both_ends.h"

#include <bowline/stream.h>

/** What the client has for events. */
enum states_style { CALLBACKS, BLOCKING, N_STYLES };

/** What a handler fails with that is to fail. */
#define STATES_FAILURE BOW_DATA_LOSS

struct states {
    struct test_alloc alloc;
    struct bow_context *context;
    struct both_ends ends;

    struct bow_stream *stream; /* the opener's reference; NULL once it was let go of */
    bool pauses;               /* in its first message */
    int n_messages;
    int n_closed;
    enum bow_code code;

    struct bow_call *call; /* another reference than the handler's */
    bool is_deaf;          /* the handler does not listen */
    bool reads;            /* or it is paused */
    int n_half_closes;
    int n_writable;
    int n_call_closed;
};

/** Both ends, before the stream; then the stream, which begins with the next turn. */
void states_prepare(struct states *s);
void states_begin(struct states *s, enum states_style style, uint64_t timeout_ns);
void states_close(struct states *s);

/** Turn the loop until `is_true`; only a broken test turns it for long. */
void states_turn_until(struct states *s, bool (*is_true)(const struct states *s));
/** Turn it until nothing moves. */
void states_settle(struct states *s);
/** Prepare, begin, and turn until the handler was entered. */
void states_enter(struct states *s, enum states_style style, uint64_t timeout_ns);

/** Run `fn` on another thread, while the loop stands still or turns. Returns as `fn`. */
int states_elsewhere(struct states *s, int (*fn)(struct states *s), bool turns);

/** Send, of either side. */
int states_send(struct states *s, size_t n_payload);
int states_call_send(struct states *s, size_t n_payload);
/** Until it says that it takes no more, and whatever moves. Returns how many were taken. */
int states_fill(struct states *s, int (*send)(struct states *s, size_t n_payload));
/** Listen to the call. */
int states_listen(struct states *s);

/** For the client no more can be sent; its last event has come, or the blocking one's result. */
bool states_is_over(const struct states *s);
bool states_is_closed(const struct states *s);

#endif
