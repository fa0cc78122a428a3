/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_CALL_RESULT_H
#define BOWLINE_RPC_CLIENT_CALL_RESULT_H

/*
 * The memory behind a struct bow_result: an arena with its first bytes in place,
 * so that a small reply allocates nothing. It belongs to one thread at a time.
 */

#include "base/arena.h"
#include <bowline/result.h>

#define BOW__RESULT_BYTES ((size_t)2048)

struct bow_result_memory {
    struct bow_context *context; /* a reference */
    bool reply_compressed;       /* the last reply was, as it came */
    struct bow__arena arena;
    _Alignas(16) uint8_t slab[];
};

/** Returns NULL out of memory. Thread: any. */
struct bow_result_memory *bow__result_memory_new(struct bow_context *context);
/** NULL is allowed. Thread: any. */
void bow__result_memory_free(struct bow_result_memory *memory);

/** Copy `status` with its texts into `memory` (NULL: constant texts only); what does not fit is
 * left out. */
struct bow_status bow__result_keep_status(struct bow_result_memory *memory,
                                          const struct bow_status *status);

/** Fill an empty result with a failure of ours, `rc`, of a call that may have been sent if it was
 * `begun`. Thread: any. */
void bow__result_fail(struct bow_context *context, int rc, const char *message, bool begun,
                      struct bow_result *ret_result);

#endif
