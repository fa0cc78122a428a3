/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The poller, with epoll_pwait2 and without it (L12, L05, L18's level-triggering). */

#include "transport/system/system_linux.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)

/* In place of the C library's, for this program and the library in it. */
static int pwait2_error; /* what the system call answers; 0: it works */
static int n_pwait2_calls;
static struct timespec last_timeout;

int epoll_pwait2(int fd, struct epoll_event *events, int max, const struct timespec *timeout,
                 const sigset_t *mask)
{
    n_pwait2_calls++;
    if (timeout != NULL) {
        last_timeout = *timeout;
    }
    if (pwait2_error != 0) {
        errno = pwait2_error;
        return -1;
    }
    return (int)syscall(SYS_epoll_pwait2, fd, events, max, timeout, mask, (size_t)8);
}

static const struct bow_poller_ops *const ops = &bow__poller_epoll;

static struct bow_poller *open_poller(int error)
{
    struct bow_poller *poller = NULL;

    pwait2_error = error;
    n_pwait2_calls = 0;
    assert_int_equal(ops->open(NULL, &poller), 0);
    return poller;
}

static uint64_t now_ns(void)
{
    return bow_system_default()->now_ns(NULL);
}

static void check_wait_is_no_shorter_than_asked(int error)
{
    struct bow_poll_event events[4];
    struct bow_poller *poller = open_poller(error);
    const uint64_t timeouts[] = {1, 300000, 1234567, 5 * MS, 0};

    for (int i = 0; i < 5; i++) {
        uint64_t started = now_ns();
        assert_int_equal(ops->wait(poller, events, 4, timeouts[i]), 0);
        uint64_t took = now_ns() - started;
        assert_true(took >= timeouts[i]);
        assert_true(took < 10000 * MS);
    }
    ops->close(poller);
}

static void test_poller_l12_waits_in_nanoseconds(void **state)
{
    (void)state;
    check_wait_is_no_shorter_than_asked(0);
    assert_int_equal(n_pwait2_calls, 5);
    last_timeout.tv_nsec = -1;
    struct bow_poller *poller = open_poller(0);
    struct bow_poll_event events[1];
    assert_int_equal(ops->wait(poller, events, 1, 1234567), 0);
    assert_int_equal(last_timeout.tv_nsec, 1234567); /* not rounded */
    ops->close(poller);
}

static void test_poller_l12_falls_back_where_pwait2_is_missing_or_forbidden(void **state)
{
    (void)state;
    check_wait_is_no_shorter_than_asked(ENOSYS);
    assert_int_equal(n_pwait2_calls, 1); /* asked once, remembered */
    check_wait_is_no_shorter_than_asked(EPERM);
    assert_int_equal(n_pwait2_calls, 1);
}

/* Below a millisecond the fallback must neither round up nor spin. */
static void test_poller_l12_the_fallback_does_not_round_to_milliseconds(void **state)
{
    struct bow_poll_event events[1];
    uint64_t best = UINT64_MAX;

    (void)state;
    struct bow_poller *poller = open_poller(ENOSYS);
    for (int i = 0; i < 200 && best >= MS; i++) {
        uint64_t started = now_ns();
        assert_int_equal(ops->wait(poller, events, 1, 200000), 0);
        uint64_t took = now_ns() - started;
        assert_true(took >= 200000);
        best = took < best ? took : best;
    }
    assert_true(best < MS);
    ops->close(poller);
}

static void check_events(int error)
{
    struct bow_poll_event events[4];
    int pair[2];
    char byte = 'x';
    struct bow_poller *poller = open_poller(error);

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(ops->add(poller, pair[0], BOW_POLL_IN | BOW_POLL_RDHUP, &pair[0]), 0);
    assert_int_equal(ops->add(poller, pair[0], BOW_POLL_IN, &pair[0]), -EEXIST);
    assert_int_equal(ops->wait(poller, events, 4, 0), 0);
    assert_int_equal(send(pair[1], &byte, 1, MSG_NOSIGNAL), 1);
    for (int i = 0; i < 3; i++) { /* level-triggered: told until it is read */
        assert_int_equal(ops->wait(poller, events, 4, BOW_NEVER), 1);
        assert_ptr_equal(events[0].data, &pair[0]);
        assert_int_equal(events[0].events, BOW_POLL_IN);
    }
    assert_int_equal(ops->modify(poller, pair[0], BOW_POLL_OUT, &pair[1]), 0);
    assert_int_equal(ops->wait(poller, events, 4, BOW_NEVER), 1);
    assert_ptr_equal(events[0].data, &pair[1]);
    assert_int_equal(events[0].events, BOW_POLL_OUT);
    assert_int_equal(ops->modify(poller, pair[0], BOW_POLL_RDHUP, &pair[0]), 0);
    assert_int_equal(shutdown(pair[1], SHUT_WR), 0);
    assert_int_equal(ops->wait(poller, events, 4, BOW_NEVER), 1);
    assert_int_equal(events[0].events, BOW_POLL_RDHUP);
    assert_int_equal(ops->modify(poller, pair[0], 0, &pair[0]), 0);
    close(pair[1]);
    assert_int_equal(ops->wait(poller, events, 4, BOW_NEVER), 1);
    assert_true((events[0].events & BOW_POLL_HUP) != 0); /* always told */
    assert_int_equal(ops->remove(poller, pair[0]), 0);
    assert_int_equal(ops->remove(poller, pair[0]), -ENOENT);
    assert_int_equal(ops->wait(poller, events, 4, 0), 0);
    close(pair[0]);
    ops->close(poller);
}

static void test_poller_l12_events_come_through_with_and_without_pwait2(void **state)
{
    (void)state;
    check_events(0);
    check_events(ENOSYS);
}

static bool is_readable(int fd, int timeout_ms)
{
    struct pollfd outer = {.fd = fd, .events = POLLIN};
    return poll(&outer, 1, timeout_ms) == 1;
}

static void check_arm(int error)
{
    struct bow_poll_event events[4];
    struct bow_poller *poller = open_poller(error);
    int fd = ops->fd(poller);

    assert_int_equal(ops->arm(poller, BOW_NEVER), 0);
    assert_int_equal(ops->arm(poller, 3600 * 1000 * MS), 0);
    assert_false(is_readable(fd, 0));
    assert_int_equal(ops->arm(poller, 0), 0);
    assert_true(is_readable(fd, -1));
    assert_int_equal(ops->wait(poller, events, 4, 0), 0); /* takes notice, tells nothing */
    assert_false(is_readable(fd, 0));
    assert_int_equal(ops->arm(poller, MS), 0);
    assert_true(is_readable(fd, -1));
    assert_int_equal(ops->arm(poller, BOW_NEVER), 0);
    assert_false(is_readable(fd, 0));
    ops->close(poller);
}

static void test_poller_l05_arm_makes_its_descriptor_readable_by_itself(void **state)
{
    (void)state;
    check_arm(0);
    check_arm(ENOSYS);
}

static void ignore(int number)
{
    (void)number;
}

static void check_interruption(int error)
{
    struct bow_poll_event events[1];
    struct sigaction before;
    const struct sigaction action = {.sa_handler = ignore};
    const struct itimerval soon_and_often = {{0, 2000}, {0, 2000}};
    const struct itimerval off = {{0, 0}, {0, 0}};
    struct bow_poller *poller = open_poller(error);

    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &soon_and_often, NULL), 0);
    assert_int_equal(ops->wait(poller, events, 1, BOW_NEVER), -EINTR);
    assert_int_equal(ops->wait(poller, events, 1, 3600 * 1000 * MS), -EINTR);
    setitimer(ITIMER_REAL, &off, NULL);
    sigaction(SIGALRM, &before, NULL);
    ops->close(poller);
}

static void test_poller_l12_f02_a_signal_ends_the_wait(void **state)
{
    (void)state;
    check_interruption(0);
    check_interruption(EPERM);
}

static void test_poller_l16_takes_as_many_events_as_asked(void **state)
{
    struct bow_poll_event events[300];
    int fds[300];
    const uint64_t one = 1;

    (void)state;
    struct bow_poller *poller = open_poller(0);
    for (int i = 0; i < 300; i++) {
        fds[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        assert_int_equal(write(fds[i], &one, sizeof(one)), sizeof(one));
        assert_int_equal(ops->add(poller, fds[i], BOW_POLL_IN, &fds[i]), 0);
    }
    assert_int_equal(ops->wait(poller, events, 64, 0), 64);
    assert_int_equal(ops->wait(poller, events, 300, 0), 300);
    assert_int_equal(ops->wait(poller, events, 10, 0), 10);
    for (int i = 0; i < 300; i++) {
        close(fds[i]);
    }
    ops->close(poller);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_poller_l12_waits_in_nanoseconds),
        cmocka_unit_test(test_poller_l12_falls_back_where_pwait2_is_missing_or_forbidden),
        cmocka_unit_test(test_poller_l12_the_fallback_does_not_round_to_milliseconds),
        cmocka_unit_test(test_poller_l12_events_come_through_with_and_without_pwait2),
        cmocka_unit_test(test_poller_l05_arm_makes_its_descriptor_readable_by_itself),
        cmocka_unit_test(test_poller_l12_f02_a_signal_ends_the_wait),
        cmocka_unit_test(test_poller_l16_takes_as_many_events_as_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
