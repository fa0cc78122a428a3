/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_MESSAGE_PAYLOAD_H
#define BOWLINE_RPC_CORE_MESSAGE_PAYLOAD_H

/*
 * What a payload is: the head of a counted block whose message follows it, and the compressed
 * forms of that message that somebody has needed. Streams send the blocks, each under a reference
 * of its own, and nobody writes to them.
 *
 *     block | struct bow_payload | message
 *                  └─► form (zstd, 0) ─► form (gzip, 0)      each with a block of its own
 *
 * Design. Who needs a form that is not there makes it and puts it in front. Two that need the same
 * one at once, on different loops, may both make it; the second to come drops its own.
 *
 *     refs    relaxed up, acquire-release down
 *     forms   put in with release, looked at with acquire; none goes before the payload
 */

#include "base/block.h"
#include "rpc/core/session.h"
#include <bowline/payload.h>
#include <bowline/slice.h>

/** The message in one encoding, as one level makes it. */
struct bow__form {
    struct bow__form *next;
    enum bow__encoding encoding;
    int level;
    struct bow__block *block; /* NULL: it does not get smaller */
    size_t len;
};

struct bow_payload {
    atomic_uint refs;
    struct bow__block *block; /* that it lies in; a reference */
    size_t len;
    struct bow__form *_Atomic forms;
};

#define BOW__PAYLOAD_OFFSET sizeof(struct bow_payload)

static inline struct bow_slice bow__payload_bytes(const struct bow_payload *payload)
{
    return (struct bow_slice){payload->block->data + BOW__PAYLOAD_OFFSET, payload->len};
}

/** The form that somebody has put there; NULL when there is none. Thread: any. */
const struct bow__form *bow__payload_form(struct bow_payload *payload, enum bow__encoding encoding,
                                          int level);
/**
 * Put one there: what `form` says, and takes the reference to its block. Returns the one that is
 * there now, which may be another's; NULL out of memory. Thread: any.
 */
const struct bow__form *bow__payload_add_form(struct bow_payload *payload,
                                              const struct bow__form *form);

#endif
