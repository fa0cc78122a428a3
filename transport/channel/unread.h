/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_CHANNEL_UNREAD_H
#define BOWLINE_TRANSPORT_CHANNEL_UNREAD_H

/*
 * Bytes that were received and not consumed yet: appended at the end, consumed from
 * the front, in one piece. Memory follows what is in it; emptied, there is none (NULL).
 * Knows nothing of whose bytes they are.
 */

#include <bowline/context.h>
#include <bowline/slice.h>

struct bow__unread {
    size_t cap;
    size_t start;
    size_t end;
    uint8_t data[];
};

static inline size_t bow__unread_len(const struct bow__unread *unread)
{
    return unread != NULL ? unread->end - unread->start : 0;
}

static inline struct bow_slice bow__unread_bytes(const struct bow__unread *unread)
{
    return unread != NULL
               ? (struct bow_slice){unread->data + unread->start, unread->end - unread->start}
               : (struct bow_slice){NULL, 0};
}

/** At least `n` writable bytes after those in it; `*ret_room` says how many. NULL: out of memory,
 * nothing has changed. Bytes may move. */
uint8_t *bow__unread_reserve(struct bow_context *context, struct bow__unread **unread, size_t n,
                             size_t *ret_room);
/** The first `n` reserved bytes are in it now. */
void bow__unread_commit(struct bow__unread *unread, size_t n);

/** Copy bytes in. Returns 0; -ENOMEM; -EMSGSIZE when there would be more than
 * BOW_LIMIT_UNREAD_BYTES. */
int bow__unread_append(struct bow_context *context, struct bow__unread **unread,
                       struct bow_slice bytes);

/** The first `n` bytes were consumed. */
void bow__unread_consume(struct bow_context *context, struct bow__unread **unread, size_t n);
void bow__unread_free(struct bow_context *context, struct bow__unread **unread);

#endif
