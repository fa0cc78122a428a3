/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TOOLS_BOWLINE_HTTP_GET_H
#define BOWLINE_TOOLS_BOWLINE_HTTP_GET_H

/*
 * One GET over a connection of its own, in plaintext, and what came of it, with words for people.
 */

#include "http_answer.h"
#include <bowline/loop.h>

/** The answer; or NULL, why there is none in one sentence, and the exit code for that. Both live
 * until the callback returns. */
typedef void (*http_got_fn)(const struct http_answer *answer, const char *failure, int code,
                            void *user);

/**
 * Ask "HOST:PORT" or "unix:PATH" for `path`, in `timeout_ns` from the name to the last byte. `done`
 * runs exactly once, on the loop, never from inside this; when the loop is shut down before that,
 * with a failure.
 *
 * Returns: EXIT_OK, or what to exit with: it has said why
 */
int http_get(struct bow_loop *loop, const char *target, const char *path, uint64_t timeout_ns,
             http_got_fn done, void *user);

#endif
