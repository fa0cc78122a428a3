/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_RPC_PACKED_FIXTURE_H
#define BOWLINE_TESTS_RPC_PACKED_FIXTURE_H

/*
 * A server with the service of packed.proto, and a client for it, each with the options that
 * the test gives. How many bytes the messages took is what the server counted.
 */

#include "call_fixture.h"
#include "protos/packed.bow.h"

#define LARGE ((size_t)100000)
#define SMALL ((size_t)1000) /* below the threshold */
#define PATIENCE (20000 * MS)

struct packed {
    struct calls *t;
    struct bow_client *client;
    struct bow_server_options server;
    struct bow_client_options options; /* of a confined client */
    uint8_t *noise;
    void (*before_start)(struct packed *p); /* of the server: NULL, or the test's */

    uint64_t n_up;         /* the service's, where its handlers run */
    uint64_t n_up_changed; /* messages of Up that came compressed when packed_is_mixed_in() says
                              not, or the other way round */
    int compress_rc;       /* what bow_call_compress() said last to Both, under the lock of t */

    uint64_t bytes_in; /* at the last look */
    uint64_t bytes_out;
    uint64_t total_ns;

    int n_messages; /* for tests, under the lock of t */
    int n_closed;
};

/** Message `number` of a stream: large, empty, small, and large that cannot be compressed, in turn.
 * Its body is borrowed. */
void packed_fill(struct packed *p, Packed__Blob *blob, uint64_t number);
void packed_expect(struct packed *p, const Packed__Blob *blob, uint64_t number);

/** Whether the sender of a mixed stream asks for message `number` to be compressed, and whether it
 * is to be seen so: messages and payloads, large ones, small ones, and what does not shrink. */
bool packed_asks(uint64_t number);
bool packed_is_mixed_in(uint64_t number);
#define PACKED_MIXED 16u /* messages of such a stream */

/** cmocka's setup and teardown; nothing is compressed, and nothing started. */
int packed_setup(void **state);
/** Started, with compression on both sides. */
int packed_setup_on(void **state);
int packed_teardown(void **state);

/** With the options as they are now. A first call brings what the sides can decode. */
void packed_start(struct packed *p);
/** Bytes of messages since the last look, once the one call after it has been counted. */
void packed_look(struct packed *p, uint64_t *ret_in, uint64_t *ret_out);

#endif
