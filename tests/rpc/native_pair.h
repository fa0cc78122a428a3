/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_RPC_NATIVE_PAIR_H
#define BOWLINE_TESTS_RPC_NATIVE_PAIR_H

/*
 * A client's and a server's native session joined back to back in memory, or one
 * of them fed by hand. Each side records what it was told, and runs hooks of the
 * test inside the events. What is fed lies in a block of its exact size, so that
 * reads beyond it show, and so do borrowed bytes that are used too late.
 */

#include "rpc/core/session.h"
#include "rpc/native/stream.h"
#include "tests/support/alloc.h"

#define SIDE_MAX_MESSAGE ((size_t)8 << 20)

struct pair;

struct side {
    struct pair *pair;
    struct bow__session *session;

    uint8_t *in; /* arrived and not yet taken */
    size_t n_in;
    size_t n_rooms; /* how often it was put where the session wanted it */

    /* What it was told; the last of each. */
    size_t n_opens;
    size_t n_messages;
    size_t n_half_closes;
    size_t n_headers;
    size_t n_statuses;
    size_t n_resets;
    size_t n_readies;
    size_t n_goaways;
    size_t n_refused;
    char refused[128]; /* code, path, limit */
    uint64_t key;
    void *stream;
    char path[64];
    uint64_t time_left_ns;
    void **path_cache;
    enum bow__encoding encoding; /* of the call */
    char metadata[512];          /* "key=value " each: the call's, or the last that came */
    uint8_t *message;
    size_t message_len;
    bool message_end;
    bool message_compressed;
    enum bow__encoding message_encoding;
    bool message_had_block;
    enum bow_code code;
    char text[BOW__TEXT_BYTES];
    char details[64];
    bool not_processed;
    uint64_t retry_after_ns;
    enum bow_code goaway_code;
    char goaway_text[BOW__TEXT_BYTES];

    int rc; /* of feed or on_time when it broke */

    /* Hooks, each may be NULL. */
    void *user;
    void (*on_open)(struct side *side, uint64_t key);
    void (*on_headers)(struct side *side, uint64_t key);
    void (*on_message)(struct side *side, uint64_t key, struct bow__message *message);
    void (*on_end)(struct side *side, uint64_t key); /* on_status or on_reset */
    void (*on_ready)(struct side *side);
    void (*on_goaway)(struct side *side);
};

struct pair {
    struct test_alloc alloc;
    struct bow_context *context;
    bool own_context;
    struct bow__pool pool;
    uint64_t now_ns;
    bool no_rooms;   /* all is fed, none put where the session wants it */
    size_t step;     /* bytes fed at a time; 0: all there is */
    uint64_t random; /* not 0: steps are random below `step`, and so are parts sent */
    struct side client;
    struct side server;
};

/** Everything at its default; change options before pair_open(). */
struct bow__session_options pair_options(struct pair *pair, bool server);

void pair_init(struct pair *pair);
/** In a context of the caller's. */
void pair_init_in(struct pair *pair, struct bow_context *context);
/** Sessions on both sides, with the defaults. Returns 0 or -ENOMEM. */
int pair_open(struct pair *pair);
int side_open(struct side *side, const struct bow__session_options *options);
/** Free the sessions and assert that nothing is left. */
void pair_fini(struct pair *pair);

/** Move bytes both ways until nothing moves. */
void pair_run(struct pair *pair);
/** Move what `from` has to say now, at most `max` bytes. Returns how many. */
size_t pair_move(struct pair *pair, struct side *from, size_t max);

/** Feed bytes of the test's making. Returns what feed() returned for the last part. */
ssize_t side_feed(struct side *side, const void *bytes, size_t n);
/** The same from hexadecimal text; spaces are skipped. */
ssize_t side_feed_hex(struct side *side, const char *hex);
/** Take all output out. Returns the number of bytes; at most `cap`. */
size_t side_take(struct side *side, uint8_t *to, size_t cap);
/** Assert that the output is these bytes, and take it. */
void side_assert_output(struct side *side, const char *hex);
/** Assert that the side broke, with this text, and that a GOAWAY carries it. */
void side_assert_broken(struct side *side, enum bow_code code, const char *text);
size_t hex_decode(const char *hex, uint8_t *to, size_t cap);

/** Begin a call with `message` inside; its key. */
uint64_t side_call(struct side *client, const char *path, uint64_t path_key, const void *message,
                   size_t len);
/** Begin a call with a pattern in a block as its message. */
uint64_t pair_call_pattern(struct pair *pair, size_t len, uint8_t seed);
/** What the session keeps. */
static inline const struct bow__native *side_native(const struct side *side)
{
    return bow__native_of_const(side->session);
}
/** Send one message: in place if possible, else in a block. Returns as commit or send. */
int side_say(struct side *side, uint64_t key, uint32_t flags, const void *message, size_t len);
/** A block of `len` bytes, the i-th being i * 7 + seed. */
struct bow__block *pattern_block(struct bow_context *context, size_t len, uint8_t seed);
void assert_pattern(const uint8_t *bytes, size_t len, uint8_t seed);

#endif
