/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A watched descriptor that is ready; see the header. */

#include "tests/support/ready.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

static void on_events(struct bow__watch *watch, uint32_t events)
{
    struct ready *ready = BOW__CONTAINER(watch, struct ready, watch);

    (void)events;
    ready->n_events++;
    if (ready->then != NULL) {
        ready->then(ready);
    }
}

const struct bow__watch_ops ready_ops = {.on_events = on_events};

void ready_open(struct ready *ready, struct bow_loop *loop)
{
    *ready = (struct ready){.watch.ops = &ready_ops, .loop = loop};
    int fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    assert_true(fd >= 0);
    assert_int_equal(bow__loop_watch(loop, &ready->watch, fd, BOW_POLL_IN), 0);
}

void ready_close(struct ready *ready)
{
    bow__loop_unwatch(ready->loop, &ready->watch);
    close(ready->watch.fd);
}
