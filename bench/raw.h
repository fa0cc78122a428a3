/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BENCH_RAW_H
#define BOWLINE_BENCH_RAW_H

/*
 * The physical limit: frames of a u32 big-endian length and that many bytes, read and
 * written in batches over epoll, nothing else. A frame's first eight bytes are
 * the client's tag.
 */

#include "load.h"
#include <netinet/in.h>

#define RAW_FRAME_BYTES (4u + BENCH_TEXT_BYTES)
#define RAW_BUFFER_BYTES ((size_t)256 << 10)

/** Parse HOST:PORT with a numeric IPv4 host; exits when it is none. */
struct sockaddr_in raw_address(const char *text);

/** TCP_NODELAY and reno, which does not pace loopback as bbr does. */
void raw_tune(int fd);

#endif
