/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_CHANNEL_PIPELINE_H
#define BOWLINE_TRANSPORT_CHANNEL_PIPELINE_H

/*
 * What the two files of the pipeline share, and nobody else:
 *
 *     pipeline.c          the chain, and the events that pass along it
 *     pipeline_bytes.c    bytes: whom they are offered, and where they wait
 */

#include "transport/channel/channel.h"
#include "transport/loop/watchdog.h"

#include <stddef.h>
#include <string.h>

enum bow__handler_flags {
    BOW__HANDLER_REMOVED = 1,
    BOW__HANDLER_READING = 2, /* its on_read is running: more would come out of order */
    /* 4: BOW__HANDLER_BOUND */
};

#define BOW__OP(name) offsetof(struct bow_handler_ops, name)

static inline bool bow__handler_is_live(const struct bow_handler *handler)
{
    return (handler->flags & BOW__HANDLER_REMOVED) == 0;
}

static inline bool bow__handler_has(const struct bow_handler *handler, size_t op)
{
    void (*fn)(void);

    memcpy(&fn, (const char *)handler->ops + op, sizeof(fn));
    return fn != NULL;
}

/* The next handler towards the tail that has `op`; NULL when not even the tail has it. */
static inline struct bow_handler *bow__handler_next(struct bow_handler *handler, size_t op)
{
    struct bow_handler *tail = &handler->channel->tail;

    for (struct bow_handler *next = handler; next != tail;) {
        next = next->next;
        if (bow__handler_is_live(next) && bow__handler_has(next, op)) {
            return next;
        }
    }
    return NULL;
}

/* The handler may be gone when its callback returns; the watchdog needs it no more then. */
static inline void bow__handler_enter(struct bow__watchdog *watchdog,
                                      const struct bow_handler *handler)
{
    watchdog->loop = NULL;
    if (handler->channel->is_held_to_time) {
        bow__watchdog_begin(watchdog, handler->channel->loop, "handler", handler->ops->name,
                            (uintptr_t)handler->ops);
    }
}

/* pipeline_bytes.c */

/** What a handler that is being removed has not consumed is its successor's. */
void bow__pipeline_hand_on_kept(struct bow_handler *removed);

#endif
