/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TOOLS_BOWLINE_REFLECT_H
#define BOWLINE_TOOLS_BOWLINE_REFLECT_H

/*
 * A server's reflection, grpc.reflection.v1, and v1alpha where that is all it has: one stream, one
 * question at a time.
 */

#include "peer.h"
#include <bowline/schema.h>
#include <bowline/stream.h>

struct reflect {
    struct peer *peer;
    struct bow_stream *stream;
    bool is_alpha;
    bool has_answered;
    char said[400]; /* by the server, of the last question, when it did not answer it */
};

void reflect_init(struct reflect *reflect, struct peer *peer);
void reflect_fini(struct reflect *reflect);

/** Add the file that declares `symbol`, and what the server sends with it. Returns EXIT_OK; or what
 * to exit with: it has said why, unless the server does not know the symbol, which is
 * `*ret_unknown`. */
int reflect_symbol(struct reflect *reflect, const char *symbol, struct bow_schema *schema,
                   bool *ret_unknown);

/** Add all that is missing of what the schema's files import, where the server has it. */
int reflect_imports(struct reflect *reflect, struct bow_schema *schema);

/** Tell `add` the names of the server's services. */
int reflect_services(struct reflect *reflect, int (*add)(const char *name, void *user), void *user);

#endif
