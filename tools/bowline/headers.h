/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TOOLS_BOWLINE_HEADERS_H
#define BOWLINE_TOOLS_BOWLINE_HEADERS_H

/* The metadata of -H. */

#include "options.h"
#include <bowline/metadata.h>

struct headers {
    struct bow_metadata_entry entries[MAX_REPEATED];
    struct bow_metadata metadata;
};

/** Read "KEY: VALUE" of each -H. Returns EXIT_OK, or what to exit with: it has said why. */
int headers_read(const struct options *options, struct headers *headers);
void headers_free(struct headers *headers);

#endif
