/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_E2E_HOSTILE_H
#define BOWLINE_TESTS_E2E_HOSTILE_H

/*
 * Peers that mean harm: bytes made by hand, sent over plain sockets while a good
 * neighbour goes on calling. The socket never blocks, and what the victim says is read
 * while it is being attacked.
 */

#include "lab.h"
#include <bowline/metrics.h>
#include <stddef.h>

#define HOSTILE_UNIT_BYTES 70000
#define HOSTILE_ANSWER_BYTES (1 << 18)

struct hostile_bytes {
    uint8_t data[HOSTILE_UNIT_BYTES];
    size_t n;
};

/** Append; the room is the test's to know. */
void hostile_put(struct hostile_bytes *to, const void *bytes, size_t n);
void hostile_put_text(struct hostile_bytes *to, const char *text);
void hostile_put_u8(struct hostile_bytes *to, uint8_t value);
void hostile_put_u32(struct hostile_bytes *to, uint32_t value);

/** A native frame's header; the body is the caller's to put. */
void hostile_native_header(struct hostile_bytes *to, uint32_t length, uint8_t type, uint8_t flags,
                           uint64_t stream);
/** Preface and SETTINGS. */
void hostile_native_opening(struct hostile_bytes *to);
/** A whole REQUEST for `path` with message bytes. */
void hostile_native_request(struct hostile_bytes *to, uint64_t stream, const char *path,
                            const void *message, size_t n);

/** An HTTP/2 frame's header. */
void hostile_http2_header(struct hostile_bytes *to, uint32_t length, uint8_t type, uint8_t flags,
                          uint32_t stream);
/** Preface and SETTINGS. */
void hostile_http2_opening(struct hostile_bytes *to);
/** HEADERS that open a call of `path`, without END_STREAM. */
void hostile_http2_request(struct hostile_bytes *to, uint32_t stream, const char *path);

/** One attacker's connection. */
struct hostile {
    int fd;
    bool closed;      /* by the victim */
    uint8_t *answer;  /* all that it said, up to HOSTILE_ANSWER_BYTES */
    size_t n_answer;  /* kept of it */
    uint64_t n_read;  /* all of it */
    bool never_reads; /* leave what the victim says in the socket */
};

void hostile_connect(struct hostile *peer, uint16_t port);
/** The same; false, and nothing to close, when nobody listens. */
bool hostile_try_connect(struct hostile *peer, uint16_t port);
void hostile_close(struct hostile *peer);
/** Send all of it, reading meanwhile; false when the victim closed, or took nothing for `stall_ms`.
 */
bool hostile_send(struct hostile *peer, const struct hostile_bytes *bytes, int stall_ms);
/** Read until the victim closes or `ms` have passed without a byte; whether it closed. */
bool hostile_read(struct hostile *peer, int ms);
/** Whether the answer contains `n` bytes. */
bool hostile_heard(const struct hostile *peer, const void *bytes, size_t n);
/** Read until the answer contains the text; fails the test after 10 s. */
void hostile_wait_heard(struct hostile *peer, const char *name, const void *bytes, size_t n);

/** A listening socket on loopback, for servers played by hand. */
int hostile_listen(uint16_t *ret_port);

uint64_t hostile_counter(const struct lab *lab, size_t offset);
void hostile_wait_counter(const struct lab *lab, size_t offset, uint64_t above, const char *name);
#define HOSTILE_COUNTER(field) offsetof(struct bow_metrics, field)

/** A client over `prefix` to the lab, and a call of it that has to work. */
struct bow_client *hostile_neighbour(const struct lab *lab, const char *prefix);
void hostile_neighbour_works(struct bow_client *client, const char *name);

#endif
