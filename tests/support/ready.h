/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_SUPPORT_READY_H
#define BOWLINE_TESTS_SUPPORT_READY_H

/* A watched descriptor that is ready until somebody reads it, and what is done about it. */

#include "transport/loop/loop.h"

struct ready {
    struct bow__watch watch;
    struct bow_loop *loop;
    int n_events;
    void (*then)(struct ready *ready); /* at each event; may be NULL */
    void *user;
};

/** Open and watch; `then` and `user` are the caller's to set afterwards. */
void ready_open(struct ready *ready, struct bow_loop *loop);
/** Unwatch and close. */
void ready_close(struct ready *ready);
/** For one that is put together by hand. */
extern const struct bow__watch_ops ready_ops;

#endif
