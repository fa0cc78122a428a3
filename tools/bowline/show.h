/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TOOLS_BOWLINE_SHOW_H
#define BOWLINE_TOOLS_BOWLINE_SHOW_H

/*
 * What a call brought, on standard output: messages as JSON, and with --json all else as JSON, too.
 */

#include "options.h"
#include <bowline/result.h>
#include <bowline/schema.h>

/** Write one message and a line feed; `is_one`: the method brings one, which may have lines. */
int show_message(const struct options *options, const struct bow_schema *schema,
                 const ProtobufCMessage *message, bool is_one);

/** Write metadata a line each, to standard error, below a title. */
void show_metadata(const char *title, const struct bow_metadata *metadata);

/** Of --json: the last line, how the call ended. */
void show_end(const struct bow_result *result, uint64_t total_ns);

#endif
