/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Forking the two crowds, and speaking with them. */

#include "misbehaving_child.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

void child_fail(const char *what, int line)
{
    fprintf(stderr, "child: line %d: %s: errno %d\n", line, what, errno);
    _exit(1);
}

bool child_read(int fd, void *bytes, size_t n)
{
    ssize_t rc;

    do {
        rc = read(fd, bytes, n);
    } while (rc < 0 && errno == EINTR);
    return rc == (ssize_t)n;
}

void child_write(int fd, const void *bytes, size_t n)
{
    child_assert(write(fd, bytes, n) == (ssize_t)n);
}

/* Elsewhere they would not take from the processor of those whose calls are timed. */
static void step_back(void)
{
    const struct sched_param none = {0};

    (void)sched_setscheduler(0, SCHED_OTHER, &none);
    (void)setpriority(PRIO_PROCESS, 0, 19);
}

static void fork_crowd(struct crowd *crowd, unsigned n, bool is_bad,
                       void (*run)(int, int, unsigned))
{
    int to[2];
    int from[2];

    assert_int_equal(pipe(to), 0);
    assert_int_equal(pipe(from), 0);
    crowd->pid = fork();
    assert_true(crowd->pid >= 0);
    if (crowd->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(to[1]);
        close(from[0]);
        if (is_bad) {
            step_back();
        }
        run(to[0], from[1], n);
        _exit(0);
    }
    close(to[0]);
    close(from[1]);
    crowd->to = to[1];
    crowd->from = from[0];
}

void crowd_fork_good(struct crowd *crowd, unsigned n)
{
    fork_crowd(crowd, n, false, child_run_good);
}

void crowd_fork_with(struct crowd *crowd, unsigned n, void (*run)(int, int, unsigned))
{
    fork_crowd(crowd, n, true, run);
}

static void hear(const struct crowd *crowd, void *answer, size_t n)
{
    if (!child_read(crowd->from, answer, n)) {
        fail_msg("a child process has failed");
    }
}

void crowd_begin(struct crowd *crowd, uint16_t port)
{
    assert_int_equal(write(crowd->to, &port, sizeof(port)), sizeof(port));
}

void crowd_measure(struct crowd *crowd, unsigned n_calls, struct crowd_report *ret_report)
{
    /* 0: the report of the beginning, which was not asked for. */
    if (n_calls > 0) {
        assert_int_equal(write(crowd->to, &n_calls, sizeof(n_calls)), sizeof(n_calls));
    }
    hear(crowd, ret_report, sizeof(*ret_report));
}

static void command(struct crowd *crowd, char word, struct crowd_deeds *ret_deeds)
{
    assert_int_equal(write(crowd->to, &word, 1), 1);
    hear(crowd, ret_deeds, sizeof(*ret_deeds));
}

void crowd_go(struct crowd *crowd, struct crowd_deeds *ret_deeds)
{
    command(crowd, 'g', ret_deeds);
}

void crowd_stop(struct crowd *crowd, struct crowd_deeds *ret_deeds)
{
    command(crowd, 's', ret_deeds);
}

void crowd_end(struct crowd *crowd)
{
    int status = -1;

    close(crowd->to);
    assert_int_equal(waitpid(crowd->pid, &status, 0), crowd->pid);
    close(crowd->from);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
