/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_SUPPORT_RANDOM_MESSAGE_H
#define BOWLINE_TESTS_SUPPORT_RANDOM_MESSAGE_H

/*
 * Protobuf messages filled at random by their descriptors, the same ones for the
 * same seed. All are valid: required fields are set, strings are UTF-8. None holds
 * what encoders differ about: floating-point fields are never -0.0.
 */

#include "base/arena.h"
#include <protobuf-c/protobuf-c.h>

struct test_random {
    uint64_t state; /* the seed */
};

/** The next number below `n` (> 0). */
uint32_t test_random_below(struct test_random *random, uint32_t n);

/** A message in `arena` of at most `depth` levels; fails the process when there is no memory. */
ProtobufCMessage *test_random_message(struct test_random *random, struct bow__arena *arena,
                                      const ProtobufCMessageDescriptor *type, unsigned depth);

#endif
