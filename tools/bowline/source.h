/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TOOLS_BOWLINE_SOURCE_H
#define BOWLINE_TOOLS_BOWLINE_SOURCE_H

/*
 * Where methods and messages come from: files that the command line names, by protoc or ready made,
 * or the server's reflection.
 */

#include "near.h"
#include "options.h"
#include "peer.h"
#include <bowline/schema.h>

/** The names of a server's services. */
struct source_names {
    char **names;
    size_t n;
};

/** Whether the command line names files, so that no server has to be asked. */
bool source_is_files(const struct options *options);

/**
 * Make the schema that has `symbol`, "package.Service", "package.Service/Method" or any other;
 * NULL: all that the files have, or the server serves. `peer` is not used for files. Returns
 * EXIT_OK, or what to exit with: it has said why.
 */
int source_schema(struct peer *peer, const struct options *options, const char *symbol,
                  struct bow_schema **ret_schema);

/** The services of the files, or the server's, by name. */
int source_services(struct peer *peer, const struct options *options,
                    struct source_names *ret_names);
void source_names_free(struct source_names *names);

/** The method of that name; it has said what was meant when there is none. */
int source_method(struct peer *peer, const struct options *options, const char *name,
                  struct bow_schema **ret_schema, const struct bow_method **ret_method);

#endif
