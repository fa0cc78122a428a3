/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The times of a connection that nobody ends. Knows no channel and no session: what is due
 * is done by whoever asks.
 */

#include "rpc/connection/age.h"
#include "rpc/connection/jitter.h"
#include <bowline/limits.h>

/* How often an old connection is looked at that has had no call. */
#define UNUSED_LOOK_NS (UINT64_C(100) * 1000000u)

static void find_next(struct bow__age *age, uint64_t idle_at)
{
    age->next_ns = age->is_leaving ? bow__time_min(age->cut_ns, age->word_ns)
                                   : bow__time_min(idle_at, age->old_ns);
}

void bow__age_init(struct bow__age *age)
{
    *age = (struct bow__age){
        .next_ns = BOW_NEVER,
        .idle_ns = BOW_NEVER,
        .old_ns = BOW_NEVER,
        .grace_ns = BOW_NEVER,
        .word_ns = BOW_NEVER,
        .cut_ns = BOW_NEVER,
        .stall_ns = BOW_NEVER,
    };
}

void bow__age_start(struct bow__age *age, struct bow_context *context, uint64_t now_ns,
                    uint64_t idle_ns, uint64_t max_age_ns, uint64_t grace_ns)
{
    age->quiet_ns = now_ns;
    age->idle_ns = idle_ns;
    age->old_ns = bow__time_add(now_ns, bow__jittered(context, max_age_ns, max_age_ns / 10));
    age->grace_ns = grace_ns;
    find_next(age, bow__time_add(now_ns, idle_ns));
}

void bow__age_bound_idle(struct bow__age *age, uint64_t idle_ns)
{
    if (idle_ns < age->idle_ns) {
        age->idle_ns = idle_ns;
        find_next(age, bow__time_add(age->quiet_ns, idle_ns));
    }
}

void bow__age_leave(struct bow__age *age, uint64_t now_ns, uint64_t stall_ns)
{
    if (!age->is_leaving) {
        age->is_leaving = true;
        age->stall_ns = stall_ns;
        age->moved_ns = now_ns;
        age->word_ns = bow__time_add(now_ns, BOW_LIMIT_LEAVE_NS);
        age->busy_ns = bow__time_add(now_ns, BOW_LIMIT_LEAVE_BUSY_NS);
        find_next(age, BOW_NEVER);
    }
}

/* Who has connected for the sake of its first calls, and takes long to send them, would have them
 * refused by its own library, which has read the GOAWAY by then; on its next connection again. An
 * old connection without any call waits for one, but not for ever. */
static bool is_unused(struct bow__age *age, uint64_t now_ns, uint32_t n_calls)
{
    if (age->was_called || n_calls > 0) {
        return false;
    }
    if (age->busy_ns == 0) {
        age->busy_ns = bow__time_add(now_ns, BOW_LIMIT_LEAVE_BUSY_NS);
    }
    return now_ns < age->busy_ns;
}

static enum bow__age_event look_serving(struct bow__age *age, uint64_t now_ns, uint32_t n_calls)
{
    uint64_t idle_at = bow__time_add(n_calls > 0 ? now_ns : age->quiet_ns, age->idle_ns);

    if (age->old_ns <= now_ns && is_unused(age, now_ns, n_calls)) {
        age->old_ns = bow__time_add(now_ns, UNUSED_LOOK_NS);
    }
    if (age->old_ns <= now_ns) {
        age->old_ns = BOW_NEVER;
        age->cut_ns = bow__time_add(now_ns, age->grace_ns);
        age->is_aged = true;
        return BOW__AGE_OLD;
    }
    bool is_idle = idle_at <= now_ns;
    if (is_idle) {
        /* Not at once again, should its owner have reasons to keep it. */
        age->quiet_ns = now_ns;
        age->is_aged = true;
        idle_at = bow__time_add(now_ns, age->idle_ns);
    }
    find_next(age, idle_at);
    return is_idle ? BOW__AGE_IDLE : BOW__AGE_NOTHING;
}

/* After its last word a connection without calls closes by itself once all has left, which is its
 * peer's business: it may be slow, but not stand still. While a handler is at work there is no
 * telling who waits for whom. */
static enum bow__age_event look_left(struct bow__age *age, uint64_t now_ns,
                                     const struct bow__age_load *load)
{
    if (load->n_calls == 0 && load->n_bytes == 0 && !load->is_blocked) {
        return BOW__AGE_OVER;
    }
    if (load->n_calls > 0 || load->n_bytes != age->n_bytes || load->is_blocked) {
        age->moved_ns = now_ns;
    }
    age->n_bytes = load->n_bytes;
    return bow__time_add(age->moved_ns, age->stall_ns) <= now_ns ? BOW__AGE_STALLED
                                                                 : BOW__AGE_NOTHING;
}

/* Who has called a moment ago, or has only just come, may have calls on their way that it began
 * before it could read of the end. */
static enum bow__age_event look_for_word(struct bow__age *age, uint64_t now_ns,
                                         const struct bow__age_load *load)
{
    bool is_quiet = load->n_calls == 0 && age->was_called &&
                    bow__time_add(age->quiet_ns, BOW_LIMIT_LEAVE_NS) <= now_ns;
    bool is_awaited = load->is_unattended || !age->is_aged;

    age->word_ns = bow__time_add(now_ns, BOW_LIMIT_LEAVE_NS);
    if (age->busy_ns > now_ns && !(is_quiet && is_awaited)) {
        return BOW__AGE_NOTHING;
    }
    age->has_left = true;
    return BOW__AGE_LAST_WORD;
}

static enum bow__age_event look_leaving(struct bow__age *age, uint64_t now_ns,
                                        const struct bow__age_load *load)
{
    enum bow__age_event event = BOW__AGE_NOTHING;

    if (age->cut_ns <= now_ns) {
        event = BOW__AGE_CUT;
        age->cut_ns = BOW_NEVER;
    } else if (age->word_ns <= now_ns && !age->has_left) {
        event = look_for_word(age, now_ns, load);
    } else if (age->word_ns <= now_ns) {
        event = look_left(age, now_ns, load);
        age->word_ns = bow__time_add(now_ns, BOW_LIMIT_LEAVE_NS);
    }
    find_next(age, BOW_NEVER);
    return event;
}

enum bow__age_event bow__age_look(struct bow__age *age, uint64_t now_ns,
                                  const struct bow__age_load *load)
{
    if (age->next_ns > now_ns) {
        return BOW__AGE_NOTHING;
    }
    return age->is_leaving ? look_leaving(age, now_ns, load)
                           : look_serving(age, now_ns, load->n_calls);
}
