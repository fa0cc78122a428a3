/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_SUPPORT_RAW_LISTEN_H
#define BOWLINE_TESTS_SUPPORT_RAW_LISTEN_H

/* A server that the test plays byte by byte, without Bowline. */

#include <stdint.h>

/** A socket that listens on loopback, and blocks. */
int raw_listen(uint16_t *ret_port);

#endif
