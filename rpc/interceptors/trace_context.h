/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_INTERCEPTORS_TRACE_CONTEXT_H
#define BOWLINE_RPC_INTERCEPTORS_TRACE_CONTEXT_H

/*
 * The trace context of a call as its metadata has it: bytes of a peer, read as the W3C recommends.
 * One traceparent that cannot be read, or two of them, are none; a tracestate that cannot be read
 * is left out, and without a traceparent there is none.
 */

#include <bowline/limits.h>
#include <bowline/metadata.h>
#include <bowline/span.h>

#define BOW__TRACEPARENT_KEY "traceparent"
#define BOW__TRACESTATE_KEY "tracestate"

/** Bytes of a tracestate as bow__tracestate_read() writes it, with a NUL. */
#define BOW__TRACESTATE_BYTES (BOW_LIMIT_TRACESTATE_BYTES + 1)

/** Read the traceparent. Returns 0; -ENODATA when there is none that counts. */
int bow__trace_context_find(const struct bow_metadata *metadata,
                            struct bow_span_context *ret_context);

/** Write the members of all tracestates, in their order, with a NUL. Of what is longer than
 * BOW_LIMIT_TRACESTATE_BYTES, long members go first, then the last ones. Returns the length; 0 when
 * there is none that counts. */
size_t bow__tracestate_read(const struct bow_metadata *metadata, char to[BOW__TRACESTATE_BYTES]);

#endif
