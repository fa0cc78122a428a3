/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_INSPECT_RENDER_H
#define BOWLINE_RPC_INSPECT_RENDER_H

/* What was gathered, as text or JSON (<bowline/inspect.h>). Knows nothing of how it came. */

#include "rpc/inspect/gather.h"
#include "rpc/inspect/out.h"

#include <bowline/inspect.h>

/** Read options: NULL means the defaults, and what is 0 in others becomes them. Returns 0 or
 * -EINVAL. */
int bow__dump_options_read(const struct bow_dump_options *given,
                           struct bow_dump_options *ret_options);

static inline struct bow__snapshot_limits bow__dump_limits(const struct bow_dump_options *options)
{
    return (struct bow__snapshot_limits){options->max_calls, options->max_connections};
}

/** Write `parts` (BOW_DUMP_ bits) as lines. `what` begins the first: "server", "client". */
void bow__render_text(const struct bow__gather *gather, const char *what, uint32_t parts,
                      struct bow__out *out);
/** Write them as members of the object that is open. */
void bow__render_json(const struct bow__gather *gather, uint32_t parts, struct bow__out *out);

/** All of a dump, once it was gathered. Returns 0, or what `put` failed with. */
int bow__render_dump(const struct bow__gather *gather, const char *what,
                     const struct bow_dump_options *options, bow_dump_put_fn put, void *user);

/** A bow_dump_put_fn that writes to the descriptor `*(int *)user`. */
int bow__dump_to_fd(const char *text, size_t len, void *user);

#endif
