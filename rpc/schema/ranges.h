/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SCHEMA_RANGES_H
#define BOWLINE_RPC_SCHEMA_RANGES_H

/*
 * Ranges in which numbers follow each other, by which protobuf-c finds a field or a value: each by
 * its first number and that one's index; the last says how many there are.
 */

#include <protobuf-c/protobuf-c.h>

struct bow__ranges {
    ProtobufCIntRange *ranges; /* room for one more than there are numbers */
    unsigned n;
    int64_t next; /* the number that goes on the last range */
};

/** The next number, which is above those before, and its index. */
static inline void bow__ranges_add(struct bow__ranges *it, int32_t number, unsigned index)
{
    if (it->n == 0 || number != it->next) {
        it->ranges[it->n++] = (ProtobufCIntRange){.start_value = number, .orig_index = index};
    }
    it->next = (int64_t)number + 1;
}

static inline void bow__ranges_end(struct bow__ranges *it, unsigned n_numbers)
{
    it->ranges[it->n] = (ProtobufCIntRange){.start_value = 0, .orig_index = n_numbers};
}

#endif
