/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How what waits to be sent is counted, and when it is too much. Knows nothing of what it is, nor
 * of the calls that wait for it to become less.
 */

#include "rpc/server/dispatch/backlog.h"
#include <bowline/limits.h>

/* From here on a connection is looked at; and of a loop's share, if that is less. */
#define LOOK_BYTES (BOW_LIMIT_QUEUED_REPLY_BYTES / 8)
#define LOOK_PARTS 16

static size_t short_bytes(const struct bow__backlog *backlog)
{
    return backlog->max_bytes - backlog->max_bytes / 4;
}

static size_t enough_bytes(const struct bow__backlog *backlog)
{
    return short_bytes(backlog) - backlog->max_bytes / 8;
}

static size_t even_bytes(const struct bow__backlog *backlog)
{
    return short_bytes(backlog) / (backlog->n_shares > 0 ? backlog->n_shares : 1);
}

static void turn(struct bow__backlog *backlog, bool is_short)
{
    size_t part = backlog->max_bytes / LOOK_PARTS;

    backlog->is_short = is_short;
    backlog->look_bytes = is_short ? 0 : part < LOOK_BYTES ? part : LOOK_BYTES;
}

void bow__backlog_init(struct bow__backlog *backlog, size_t max_bytes,
                       void (*on_turn)(struct bow__backlog *backlog))
{
    *backlog = (struct bow__backlog){.max_bytes = max_bytes, .on_turn = on_turn};
    turn(backlog, false);
}

/* It ends an eighth below where it begins, so that it is not begun and ended by each message. */
static void change(struct bow__backlog *backlog, size_t less, size_t more)
{
    backlog->n_bytes += more - less;
    if (!backlog->is_short && backlog->n_bytes > short_bytes(backlog)) {
        turn(backlog, true);
        backlog->on_turn(backlog);
    } else if (backlog->is_short && backlog->n_bytes <= enough_bytes(backlog)) {
        turn(backlog, false);
        backlog->on_turn(backlog);
    }
}

void bow__backlog_share_init(struct bow__backlog_share *share, struct bow__backlog *backlog)
{
    *share = (struct bow__backlog_share){.backlog = backlog};
    bow__list_init(&share->waiting);
    backlog->n_shares++;
}

void bow__backlog_share_fini(struct bow__backlog_share *share)
{
    share->backlog->n_shares--;
    change(share->backlog, share->n_bytes, 0);
    share->n_bytes = 0;
}

void bow__backlog_count(struct bow__backlog_share *share, size_t n_bytes, size_t n_dequeued,
                        uint64_t now_ns)
{
    size_t before = share->n_bytes;

    if (before == 0 || n_bytes < before || n_dequeued != share->n_dequeued) {
        share->taken_ns = now_ns;
        share->n_dequeued = n_dequeued;
    }
    if (n_bytes != before) {
        share->n_bytes = n_bytes;
        change(share->backlog, before, n_bytes);
    }
}

/* The first one is taken as it is, later ones by an eighth. */
void bow__backlog_note_reply(struct bow__backlog_share *share, size_t n_bytes)
{
    size_t mean = share->reply_bytes;

    share->reply_bytes = mean == 0 ? n_bytes : mean - mean / 8 + n_bytes / 8;
}

/* With what the calls may add that handlers have, if they are as those before them. */
static bool is_too_much(const struct bow__backlog_share *share)
{
    if (share->n_bytes < LOOK_BYTES) {
        return false;
    }
    if (share->n_bytes >= BOW_LIMIT_QUEUED_REPLY_BYTES) {
        return true;
    }
    size_t room = BOW_LIMIT_QUEUED_REPLY_BYTES - share->n_bytes;
    return share->n_calls > 0 && share->reply_bytes > room / share->n_calls;
}

static bool is_above_even(const struct bow__backlog_share *share)
{
    return share->backlog->is_short && share->n_bytes > even_bytes(share->backlog);
}

static bool is_exhausted(const struct bow__backlog_share *share)
{
    return share->n_bytes > 0 && share->backlog->n_bytes >= share->backlog->max_bytes;
}

bool bow__backlog_is_full(const struct bow__backlog_share *share)
{
    return is_too_much(share) || is_above_even(share) || is_exhausted(share);
}

bool bow__backlog_is_stuck(const struct bow__backlog_share *share, uint64_t now_ns)
{
    return is_above_even(share) && now_ns - share->taken_ns >= BOW_LIMIT_UNTAKEN_NS;
}
