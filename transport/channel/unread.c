/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One growing piece of memory with a consumed front. It doubles, so that a long
 * message is moved a bounded number of times; the front is closed up instead of
 * growing when that gives enough room.
 */

#include "transport/channel/unread.h"
#include "base/alloc.h"

#include <assert.h>
#include <bowline/limits.h>
#include <errno.h>
#include <string.h>

#define FIRST_BYTES ((size_t)256)

static int grow(struct bow_context *context, struct bow__unread **unread, size_t need)
{
    struct bow__unread *old = *unread;
    size_t cap = old != NULL ? old->cap : 0;
    size_t new_cap = cap * 2 > need ? cap * 2 : need;

    if (new_cap < FIRST_BYTES) {
        new_cap = FIRST_BYTES;
    }
    struct bow__unread *grown =
        bow__resize(context, old, old != NULL ? sizeof(*old) + cap : 0, sizeof(*grown) + new_cap);
    if (grown == NULL) {
        return -ENOMEM;
    }
    if (old == NULL) {
        grown->start = 0;
        grown->end = 0;
    }
    grown->cap = new_cap;
    *unread = grown;
    return 0;
}

static void close_up(struct bow__unread *unread)
{
    size_t len = unread->end - unread->start;

    memmove(unread->data, unread->data + unread->start, len);
    unread->start = 0;
    unread->end = len;
}

uint8_t *bow__unread_reserve(struct bow_context *context, struct bow__unread **unread, size_t n,
                             size_t *ret_room)
{
    size_t len = bow__unread_len(*unread);

    if (*unread != NULL && (*unread)->cap - (*unread)->end < n && len + n <= (*unread)->cap) {
        close_up(*unread);
    }
    if (*unread == NULL || (*unread)->cap - (*unread)->end < n) {
        size_t end = *unread != NULL ? (*unread)->end : 0;
        if (grow(context, unread, end + n) < 0) {
            return NULL;
        }
    }
    *ret_room = (*unread)->cap - (*unread)->end;
    return (*unread)->data + (*unread)->end;
}

void bow__unread_commit(struct bow__unread *unread, size_t n)
{
    assert(n <= unread->cap - unread->end);
    unread->end += n;
}

int bow__unread_append(struct bow_context *context, struct bow__unread **unread,
                       struct bow_slice bytes)
{
    size_t room = 0;

    if (bytes.len == 0) {
        return 0;
    }
    if (bytes.len > BOW_LIMIT_UNREAD_BYTES - bow__unread_len(*unread)) {
        return -EMSGSIZE;
    }
    uint8_t *end = bow__unread_reserve(context, unread, bytes.len, &room);
    if (end == NULL) {
        return -ENOMEM;
    }
    memcpy(end, bytes.data, bytes.len);
    bow__unread_commit(*unread, bytes.len);
    return 0;
}

void bow__unread_consume(struct bow_context *context, struct bow__unread **unread, size_t n)
{
    if (*unread == NULL) {
        return;
    }
    assert(n <= bow__unread_len(*unread));
    (*unread)->start += n;
    if ((*unread)->start == (*unread)->end) {
        bow__unread_free(context, unread);
    }
}

void bow__unread_free(struct bow_context *context, struct bow__unread **unread)
{
    if (*unread != NULL) {
        bow__free(context, *unread, sizeof(**unread) + (*unread)->cap);
        *unread = NULL;
    }
}
