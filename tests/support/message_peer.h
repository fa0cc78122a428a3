/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_SUPPORT_MESSAGE_PEER_H
#define BOWLINE_TESTS_SUPPORT_MESSAGE_PEER_H

/*
 * Converts messages for a test in another language (message_peer.py). It reads frames
 * "MODE TYPE LEN\n" and LEN bytes from its standard input: 'r' from JSON to protobuf, 'w' the other
 * way, 'b' from protobuf to protobuf; and answers "ok LEN\n" with the result, "no LEN\n" with the
 * reason.
 */

#include <bowline/service.h>

/** Serve until the input ends, with the messages of these files. Returns an exit code. */
int message_peer_run(const struct bow_file *const *files, size_t n_files);

#endif
