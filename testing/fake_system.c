/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The operating system with a clock of its own; see the header. */

#include "testing/fake_system.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

struct bow_poller {
    struct fake_system *fake;
    struct bow_poller *real;
};

static const struct bow_system *real_system(void)
{
    return bow_system_default();
}

static const struct bow_poller_ops *real_ops(void)
{
    return real_system()->poller;
}

static uint64_t fake_now_ns(void *user)
{
    struct fake_system *fake = user;

    atomic_fetch_add(&fake->n_clock_reads, 1);
    return atomic_fetch_add(&fake->now_ns, fake->tick_ns);
}

void bow__fake_system_advance(struct fake_system *fake, uint64_t by_ns)
{
    uint64_t now = atomic_load(&fake->now_ns);

    while (!atomic_compare_exchange_weak(&fake->now_ns, &now, bow__time_add(now, by_ns))) {
    }
}

static int fake_open(void *user, struct bow_poller **ret_poller)
{
    struct bow_poller *poller = calloc(1, sizeof(*poller));
    if (poller == NULL) {
        return -ENOMEM;
    }
    poller->fake = user;
    int rc = real_ops()->open(NULL, &poller->real);
    if (rc < 0) {
        free(poller);
        return rc;
    }
    *ret_poller = poller;
    return 0;
}

static void fake_close(struct bow_poller *poller)
{
    real_ops()->close(poller->real);
    free(poller);
}

static int fake_add(struct bow_poller *poller, int fd, uint32_t events, void *data)
{
    struct fake_system *fake = poller->fake;

    if (fake->add_error != 0 && --fake->n_adds_before_error < 0) {
        return fake->add_error;
    }
    return real_ops()->add(poller->real, fd, events, data);
}

static int fake_modify(struct bow_poller *poller, int fd, uint32_t events, void *data)
{
    return real_ops()->modify(poller->real, fd, events, data);
}

static int fake_remove(struct bow_poller *poller, int fd)
{
    return real_ops()->remove(poller->real, fd);
}

static int wait_filled(struct bow_poller *poller, struct bow_poll_event *events, int max,
                       uint64_t timeout_ns)
{
    struct fake_system *fake = poller->fake;
    const uint64_t until_ns = bow__time_add(atomic_load(&fake->now_ns), timeout_ns);

    for (;;) {
        int n = real_ops()->wait(poller->real, events, max, 0);
        if (n != 0 || atomic_load(&fake->now_ns) >= until_ns) {
            return n;
        }
        n = fake->on_idle(fake, until_ns, fake->user);
        if (n < 0) {
            return n;
        }
    }
}

static int fake_wait(struct bow_poller *poller, struct bow_poll_event *events, int max,
                     uint64_t timeout_ns)
{
    struct fake_system *fake = poller->fake;

    atomic_fetch_add(&fake->n_waits, 1);
    atomic_store(&fake->last_timeout_ns, timeout_ns);
    if (timeout_ns > 0) {
        atomic_fetch_add(&fake->n_sleeps, 1);
    }
    int rc = fake->on_wait != NULL ? fake->on_wait(fake, timeout_ns, fake->user) : 0;
    if (rc != 0) {
        return rc;
    }
    if (fake->on_idle != NULL && timeout_ns > 0) {
        return wait_filled(poller, events, max, timeout_ns);
    }
    bool is_endless = timeout_ns == BOW_NEVER;
    int n = real_ops()->wait(poller->real, events, max, is_endless ? BOW_NEVER : 0);
    if (n != 0 || timeout_ns == 0 || is_endless) {
        return n;
    }
    if (fake->stands_still) {
        return -EINTR; /* early, as a signal would have it */
    }
    bow__fake_system_advance(fake, timeout_ns);
    return real_ops()->wait(poller->real, events, max, 0);
}

static int fake_fd(struct bow_poller *poller)
{
    return real_ops()->fd(poller->real);
}

/* Only "now" is passed on: the real timer knows nothing of this clock. */
static int fake_arm(struct bow_poller *poller, uint64_t timeout_ns)
{
    atomic_fetch_add(&poller->fake->n_arms, 1);
    atomic_store(&poller->fake->last_armed_ns, timeout_ns);
    return real_ops()->arm(poller->real, timeout_ns == 0 ? 0 : BOW_NEVER);
}

static int fake_wake_open(void *user)
{
    const struct fake_system *fake = user;

    return fake->wake_error != 0 ? fake->wake_error : real_system()->wake_open(NULL);
}

static int fake_wake_signal(void *user, int fd)
{
    struct fake_system *fake = user;

    atomic_fetch_add(&fake->n_signals, 1);
    return real_system()->wake_signal(NULL, fd);
}

/* Moves the clock as a wait of the poller does. */
static void fake_wake_wait(void *user, int fd, uint64_t timeout_ns)
{
    struct fake_system *fake = user;
    struct pollfd wake = {.fd = fd, .events = POLLIN};

    atomic_fetch_add(&fake->n_wake_waits, 1);
    if (poll(&wake, 1, 0) == 0 && !fake->stands_still) {
        bow__fake_system_advance(fake, timeout_ns);
    }
}

static int fake_thread_start(void *user, const struct bow_thread_options *options,
                             void (*run)(void *argument), void *argument,
                             struct bow_thread **ret_thread)
{
    struct fake_system *fake = user;

    if (fake->thread_error != 0) {
        return fake->thread_error;
    }
    atomic_fetch_add(&fake->n_threads, 1);
    return real_system()->thread_start(NULL, options, run, argument, ret_thread);
}

static uint32_t fake_cpus(void *user)
{
    const struct fake_system *fake = user;

    return fake->n_cpus != 0 ? fake->n_cpus : real_system()->cpus(NULL);
}

void bow__fake_system_init(struct fake_system *fake)
{
    *fake = (struct fake_system){.system = *real_system()};
    fake->poller_ops = (struct bow_poller_ops){
        .open = fake_open,
        .close = fake_close,
        .add = fake_add,
        .modify = fake_modify,
        .remove = fake_remove,
        .wait = fake_wait,
        .fd = fake_fd,
        .arm = fake_arm,
    };
    fake->system.user = fake;
    fake->system.now_ns = fake_now_ns;
    fake->system.poller = &fake->poller_ops;
    fake->system.wake_open = fake_wake_open;
    fake->system.wake_signal = fake_wake_signal;
    fake->system.wake_wait = fake_wake_wait;
    fake->system.thread_start = fake_thread_start;
    fake->system.cpus = fake_cpus;
    atomic_store(&fake->now_ns, FAKE_START);
}
