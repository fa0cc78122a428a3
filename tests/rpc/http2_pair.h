/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_RPC_HTTP2_PAIR_H
#define BOWLINE_TESTS_RPC_HTTP2_PAIR_H

/*
 * Two HTTP/2 sessions back to back in memory, or one against bytes made by hand.
 * Each side writes its events as lines of a log, so that a test reads as what
 * happened:
 *
 *     open 1 /a.B/C                    (with " 5000000" behind it: the time left in ns)
 *     headers 1 key=value               (metadata also behind open and status; bytes in hex)
 *     message 1 5 hello end            (with "gzip" before its length when it is compressed)
 *     half_close 1
 *     reset 1 CANCELLED stream reset by the peer with CANCEL (8)
 *     status 1 OK
 *     ready, goaway TEXT
 */

#include "base/pool.h"
#include "rpc/core/session.h"
#include "tests/support/alloc.h"

#define SIDE_LOG_BYTES ((size_t)32 << 10)
#define PAIR_START_NS UINT64_C(1000000000000)

enum side_event {
    SIDE_OPEN,
    SIDE_MESSAGE,
    SIDE_HALF_CLOSE,
    SIDE_STATUS,
    SIDE_RESET,
    SIDE_READY,
    SIDE_GOAWAY,
};

struct pair;

struct side {
    struct pair *pair;
    struct bow__session *session;
    char log[SIDE_LOG_BYTES];
    size_t log_len;
    int rc; /* what feed or on_time failed with */
    /** After the line was written; may be NULL. Runs inside the event. */
    void (*hook)(struct side *side, enum side_event event, uint64_t key);
    void *user;
    uint32_t n_open;  /* calls that on_open, or the test's open(), began and no event ended */
    uint32_t n_ended; /* last events */
    uint32_t n_messages;
    uint32_t n_rooms; /* pieces that the session wanted in a place of its own */
    size_t n_bytes;
    bool keeps;      /* does not consume messages */
    bool is_muted;   /* events write no lines, and messages need not be side_send_block()'s */
    bool has_failed; /* fail() was called on it */
};

struct pair {
    struct bow_context *context;
    struct bow__pool pool;
    struct side client;
    struct side server;
    uint64_t now_ns;
    bool no_rooms; /* all bytes are fed */
};

extern const struct bow__session_events side_events;

/** Options as the pair uses them for that side; change them and call side_begin(). */
struct bow__session_options pair_options(struct pair *pair, struct side *side, bool server);
void pair_init(struct pair *pair, struct bow_context *context);
/** Returns 0 or -ENOMEM. */
int side_begin(struct side *side, const struct bow__session_options *options);
/** pair_init() and side_begin() for both. Returns 0 or -ENOMEM. */
int pair_begin(struct pair *pair, struct bow_context *context);
void pair_end(struct pair *pair);

/** The connection is lost. */
void side_fail(struct side *side, const struct bow_status *status);
/** Feed `n` bytes in pieces of at most `piece`. Returns 0, or what feed failed with. */
int side_feed(struct side *side, const void *bytes, size_t n, size_t piece);
/** Take what is ready to be sent, at most `cap` bytes. Returns how many. */
size_t side_drain(struct side *side, uint8_t *bytes, size_t cap);
/** Carry bytes both ways, in pieces of at most `piece`, and call on_time where it is due, until
 * nothing moves. A side that breaks is failed as a host would. */
void pair_run(struct pair *pair, size_t piece);
/** Open a call with `text` as its one message. Returns 0 and the key, or what open() says. */
int side_call(struct side *side, const char *path, const char *text, uint64_t time_left_ns,
              uint64_t *ret_key);
/** Send `len` bytes (repeating) of `first`, `first` + 1, … as a block. */
int side_send_block(struct side *side, uint64_t key, uint32_t flags, uint8_t first, size_t len);
/** Send a text in place, or as a block where there is no room. */
int side_send(struct side *side, uint64_t key, uint32_t flags, const char *text);
/** Assert that the log is these lines, and empty it. */
void side_expect(struct side *side, const char *lines);
bool side_has(const struct side *side, const char *part);
void side_clear(struct side *side);

/* Bytes by hand. */

struct bytes {
    size_t len;
    uint8_t data[256 << 10];
};

#define HTTP2_PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

void bytes_put(struct bytes *bytes, const void *data, size_t len);
void bytes_frame(struct bytes *bytes, uint8_t type, uint8_t flags, uint32_t stream,
                 const void *payload, size_t len);
/** The preface and empty SETTINGS of a client. */
void bytes_preface(struct bytes *bytes);
/** HEADERS from "name: value" pairs, ended by NULL. */
void bytes_headers(struct bytes *bytes, uint8_t flags, uint32_t stream, const char *const *fields);
/** The HEADERS of a gRPC request for /a.B/C, and more fields (may be NULL). */
void bytes_request(struct bytes *bytes, uint8_t flags, uint32_t stream, const char *const *more);
/**
 * Write the frames that a side sent as lines, up to `cap` bytes of text:
 *
 *     SETTINGS 0
 *     HEADERS 1 end :status=200 content-type=application/grpc grpc-status=5
 *     DATA 1 10
 *     RST_STREAM 1 8
 *     GOAWAY 0 11 TEXT
 */
void bytes_print(const struct bytes *bytes, char *text, size_t cap);

#endif
