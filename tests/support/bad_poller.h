/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_SUPPORT_BAD_POLLER_H
#define BOWLINE_TESTS_SUPPORT_BAD_POLLER_H

/*
 * A poller over poll(2) that misbehaves on purpose, on a fake system's clock:
 *
 *     struct bad_poller bad;
 *     bad_poller_init(&bad);
 *     bad.n_bad = 1;                     the first one opened returns early, with nothing
 *     loops_begin_with(&t, &bad.fake.system);
 *
 * Besides, it is the proof that nothing above the table knows epoll. It has no
 * descriptor of its own. One thread, but for the wake-up.
 */

#include "tests/support/fake_system.h"

#define BAD_POLLER_FDS 64

struct bad_poller {
    struct fake_system fake;
    struct bow_poller_ops ops;

    int n_bad;         /* so many pollers, of those that are opened, misbehave */
    int wait_result;   /* what their wait returns at once: 0 or a negative errno */
    int good_every;    /* at each wait of this number they keep their word all the same; 0: never */
    int open_error;    /* what opening any but the first fails with; 0: it does not */
    int refused_fd;    /* not taken by any but the first */
    int refused_error; /* with this */

    int n_opened;
    int n_open;
    int n_waits;
    int n_sleeps;
};

void bad_poller_init(struct bad_poller *bad);

#endif
