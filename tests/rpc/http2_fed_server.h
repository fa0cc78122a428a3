/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_RPC_HTTP2_FED_SERVER_H
#define BOWLINE_TESTS_RPC_HTTP2_FED_SERVER_H

/*
 * A server's session that is fed bytes made by hand, and all that it has said, in text: for tests
 * of what it answers to clients that no library would be. Knows nothing of what is right.
 */

#include "tests/rpc/http2_pair.h"

#define FED_TEXT_BYTES ((size_t)64 << 10)

struct fed_server {
    struct test_alloc alloc;
    struct bow_context *context;
    struct pair pair; /* its client is left alone */
    struct bytes in;  /* put here what is to be fed */
    struct bytes out;
    char text[FED_TEXT_BYTES];
};

/** cmocka's set-up and tear-down. */
int fed_server_setup(void **state);
int fed_server_teardown(void **state);

/** Feeds what was put into `in`; all that the server said so far is then in `text`. Returns as the
 * session's feed(). */
int fed_server_feed(struct fed_server *t);

/** Whether `part` is in its text. */
bool fed_server_says(const struct fed_server *t, const char *part);

#endif
