/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One growing piece of memory with a consumed front. It doubles, so that a long
 * message is moved a bounded number of times; the front is closed up instead of
 * growing when that gives enough room.
 */

#include "transport/kept.h"
#include "base/alloc.h"

#include <assert.h>
#include <bowline/limits.h>
#include <errno.h>
#include <string.h>

#define FIRST_BYTES ((size_t)256)

static int grow(struct bow_context *context, struct bow__kept **kept, size_t need)
{
    struct bow__kept *old = *kept;
    size_t cap = old != NULL ? old->cap : 0;
    size_t new_cap = cap * 2 > need ? cap * 2 : need;

    if (new_cap < FIRST_BYTES) {
        new_cap = FIRST_BYTES;
    }
    struct bow__kept *grown =
        bow__resize(context, old, old != NULL ? sizeof(*old) + cap : 0, sizeof(*grown) + new_cap);
    if (grown == NULL) {
        return -ENOMEM;
    }
    if (old == NULL) {
        grown->start = 0;
        grown->end = 0;
    }
    grown->cap = new_cap;
    *kept = grown;
    return 0;
}

static void close_up(struct bow__kept *kept)
{
    size_t len = kept->end - kept->start;

    memmove(kept->data, kept->data + kept->start, len);
    kept->start = 0;
    kept->end = len;
}

uint8_t *bow__kept_reserve(struct bow_context *context, struct bow__kept **kept, size_t n,
                           size_t *ret_room)
{
    size_t len = bow__kept_len(*kept);

    if (*kept != NULL && (*kept)->cap - (*kept)->end < n && len + n <= (*kept)->cap) {
        close_up(*kept);
    }
    if (*kept == NULL || (*kept)->cap - (*kept)->end < n) {
        size_t end = *kept != NULL ? (*kept)->end : 0;
        if (grow(context, kept, end + n) < 0) {
            return NULL;
        }
    }
    *ret_room = (*kept)->cap - (*kept)->end;
    return (*kept)->data + (*kept)->end;
}

void bow__kept_commit(struct bow__kept *kept, size_t n)
{
    assert(n <= kept->cap - kept->end);
    kept->end += n;
}

int bow__kept_append(struct bow_context *context, struct bow__kept **kept, struct bow_slice bytes)
{
    size_t room = 0;

    if (bytes.len == 0) {
        return 0;
    }
    if (bytes.len > BOW_LIMIT_UNREAD_BYTES - bow__kept_len(*kept)) {
        return -EMSGSIZE;
    }
    uint8_t *end = bow__kept_reserve(context, kept, bytes.len, &room);
    if (end == NULL) {
        return -ENOMEM;
    }
    memcpy(end, bytes.data, bytes.len);
    bow__kept_commit(*kept, bytes.len);
    return 0;
}

void bow__kept_consume(struct bow_context *context, struct bow__kept **kept, size_t n)
{
    if (*kept == NULL) {
        return;
    }
    assert(n <= bow__kept_len(*kept));
    (*kept)->start += n;
    if ((*kept)->start == (*kept)->end) {
        bow__kept_free(context, kept);
    }
}

void bow__kept_free(struct bow_context *context, struct bow__kept **kept)
{
    if (*kept != NULL) {
        bow__free(context, *kept, sizeof(**kept) + (*kept)->cap);
        *kept = NULL;
    }
}
