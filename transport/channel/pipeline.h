/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_CHANNEL_PIPELINE_H
#define BOWLINE_TRANSPORT_CHANNEL_PIPELINE_H

/*
 * The chain of handlers from inside, and what stands for it to a handler that is bound to an
 * executor.
 */

#include "transport/channel/channel.h"
#include "transport/loop/watchdog.h"

#include <stddef.h>
#include <string.h>

enum bow__handler_flags {
    BOW__HANDLER_REMOVED = 1,
    BOW__HANDLER_READING = 2, /* its on_read is running: more would come out of order */
    BOW__HANDLER_BOUND = 4,   /* to an executor: see struct bow__binding */
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
    if (handler->channel->has_watchdog) {
        bow__watchdog_begin(watchdog, handler->channel->loop, "handler", handler->ops->name,
                            (uintptr_t)handler->ops);
    }
}

/**
 * What a handler with BOW__HANDLER_BOUND has for neighbours, both of them: it is in no list, and
 * what it passes on or asks of the pipeline goes by way of this (bound.c).
 */
struct bow__binding {
    struct bow_handler handler;
    const struct bow__binding_ops *ops;
};

struct bow__binding_ops {
    /** What stands in the pipeline for `bound`. Thread: loop. */
    struct bow_handler *(*proxy)(struct bow_handler *bound);
    /** bow_handler_fire_read() on the executor. */
    size_t (*fire_read)(struct bow_handler *bound, const struct bow_buf *bytes);
    /** bow_channel_remove(). Thread: any. */
    void (*remove)(struct bow_handler *bound);
};

#endif
