/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_SUPPORT_FORKS_H
#define BOWLINE_TESTS_SUPPORT_FORKS_H

/*
 * Forking a test that has loops with threads. They are parked meanwhile, so that the child finds no
 * lock of the C library or of a sanitizer held for ever.
 *
 *     struct forks forks;
 *     forks_begin(&forks, loops, n);
 *     if (forks.pid == 0) {
 *         FORKS_EXPECT(bow_loop_post(loop, &task) == -ECHILD);
 *         forks_tell(&forks);            the parent, which waits in forks_hear()
 *         _exit(0);
 *     }
 *     forks_end(&forks);                 asserts that the child ended so
 *
 * A child that hangs is killed after some time, which fails the test too.
 */

#include "tests/support/gate.h"

#include <bowline/loop.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define FORKS_PATIENCE_S 30

struct forks {
    pid_t pid;
    int fd; /* to the other process */
    int n_loops;
    struct gate parked;
    struct gate go;
    struct gate left;
};

/** For the child, which can't use the assertions of the test. */
#define FORKS_EXPECT(condition)                                                                    \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: in the child: %s\n", __FILE__, __LINE__, #condition);          \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static inline int forks_park(void *user)
{
    struct forks *forks = user;

    gate_add(&forks->parked);
    gate_wait(&forks->go, 1);
    gate_add(&forks->left);
    return 0;
}

static inline void forks_begin(struct forks *forks, struct bow_loop *const *loops, int n)
{
    int pair[2];

    gate_init(&forks->parked);
    gate_init(&forks->go);
    gate_init(&forks->left);
    forks->n_loops = n;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    for (int i = 0; i < n; i++) {
        assert_int_equal(bow_loop_execute(loops[i], "park", forks_park, forks), 0);
    }
    gate_wait(&forks->parked, n);
    fflush(NULL);
    forks->pid = fork();
    assert_true(forks->pid >= 0);
    forks->fd = pair[forks->pid == 0];
    close(pair[forks->pid != 0]);
    if (forks->pid == 0) {
        alarm(FORKS_PATIENCE_S);
        return;
    }
    gate_add(&forks->go);
    gate_wait(&forks->left, n);
}

static inline void forks_tell(const struct forks *forks)
{
    ssize_t n = write(forks->fd, "x", 1);
    (void)n; /* the other one sees what is missing */
}

/** Wait until the other process tells. */
static inline void forks_hear(const struct forks *forks)
{
    char byte;
    bool heard = read(forks->fd, &byte, 1) == 1;

    if (forks->pid == 0) {
        FORKS_EXPECT(heard);
    }
    assert_true(heard);
}

static inline void forks_end(struct forks *forks)
{
    int status = 0;

    assert_int_equal(waitpid(forks->pid, &status, 0), forks->pid);
    close(forks->fd);
    gate_fini(&forks->parked);
    gate_fini(&forks->go);
    gate_fini(&forks->left);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fail_msg("the child ended with status %#x", (unsigned)status);
    }
}

#endif
