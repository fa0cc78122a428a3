/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TOOLS_BOWLINE_REQUESTS_H
#define BOWLINE_TOOLS_BOWLINE_REQUESTS_H

/*
 * What a measurement sends: the messages of the data, read before it begins; those with something
 * to fill in (template.h) are made for each call.
 */

#include "input.h"

struct request;

struct requests {
    struct input input;
    const ProtobufCMessageDescriptor *type;
    const struct bow_schema *schema;
    struct bow_arena *kept;   /* the data, and messages that stay as they are */
    struct bow_arena *filled; /* the last one that was made */
    struct request *list;
    size_t n;
};

/** Read all of the data, JSON, "@FILE" or "-"; without any there is one empty message. It says what
 * is wrong, and where. Returns EXIT_OK, or what to exit with; requests_free() follows in each case.
 */
int requests_read(struct requests *requests, const char *given,
                  const ProtobufCMessageDescriptor *type, const struct bow_schema *schema);

/** Number `at`, going round, for call `seq`; it lives until the next one is made. Returns as above.
 */
int requests_make(struct requests *requests, uint64_t at, uint64_t seq,
                  const ProtobufCMessage **ret_message);

/** Takes zeroed memory. */
void requests_free(struct requests *requests);

#endif
