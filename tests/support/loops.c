/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What tests of loops have in common; see the header. */

#include "tests/support/loops.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define MAX_WAIT_S 10

static void remember(enum bow_log_level level, const char *line, void *user)
{
    struct loops *t = user;

    (void)level;
    int n = snprintf(t->log + t->log_len, sizeof(t->log) - t->log_len, "%s\n", line);
    if (n > 0 && (size_t)n < sizeof(t->log) - t->log_len) {
        t->log_len += (size_t)n;
    }
}

static int count_entries(const char *folder)
{
    int n = 0;

    DIR *dir = opendir(folder);
    assert_non_null(dir);
    while (readdir(dir) != NULL) {
        n++;
    }
    closedir(dir);
    return n;
}

int loops_count_fds(void)
{
    return count_entries("/proc/self/fd");
}

static int count_threads(void)
{
    return count_entries("/proc/self/task");
}

static void *tell_id(void *id)
{
    *(pid_t *)id = (pid_t)syscall(SYS_gettid);
    return NULL;
}

/* A sanitizer starts a thread of its own with the first one: so that the count has it from the
 * beginning, there is a first one, and it is gone. */
static void start_helpers(void)
{
    static bool is_done;
    pthread_t thread;
    pid_t id = 0;

    if (is_done) {
        return;
    }
    is_done = true;
    assert_int_equal(pthread_create(&thread, NULL, tell_id, &id), 0);
    pthread_join(thread, NULL);
    while (syscall(SYS_tgkill, getpid(), id, 0) == 0) {
        sched_yield();
    }
}

void loops_await_threads(const struct loops *t)
{
    const time_t until = time(NULL) + MAX_WAIT_S;

    while (count_threads() > t->n_threads) {
        if (time(NULL) > until) {
            fail_msg("%d threads are left", count_threads() - t->n_threads);
        }
        sched_yield();
    }
}

static void begin(struct loops *t, const struct bow_system *system)
{
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;

    start_helpers();
    t->n_fds = loops_count_fds();
    t->n_threads = count_threads();
    t->log_len = 0;
    t->log[0] = '\0';
    test_alloc_init(&t->alloc);
    options.allocator = &t->alloc.allocator;
    options.system = system;
    options.log = remember;
    options.log_user = t;
    assert_int_equal(bow_context_new(&options, &t->context), 0);
}

void loops_begin(struct loops *t)
{
    fake_system_init(&t->fake);
    begin(t, &t->fake.system);
}

void loops_begin_with(struct loops *t, const struct bow_system *system)
{
    begin(t, system);
}

void loops_begin_real(struct loops *t)
{
    begin(t, bow_system_default());
}

void loops_end(struct loops *t)
{
    test_context_end(t->context, &t->alloc);
    loops_await_threads(t); /* on its way out one opens a file of /proc, to give memory back */
    assert_int_equal(loops_count_fds(), t->n_fds);
}

struct bow_loop *loops_new(struct loops *t, const struct bow_loop_options *options)
{
    struct bow_loop *loop = NULL;

    assert_int_equal(bow_loop_new(t->context, options, &loop), 0);
    return loop;
}

struct bow_loop *loops_new_owner(struct loops *t)
{
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;

    options.thread = BOW_LOOP_OWNER;
    return loops_new(t, &options);
}

struct bow_loop *loops_new_threaded(struct loops *t)
{
    return loops_new(t, NULL);
}

void loops_stop(struct bow_loop *loop)
{
    assert_int_equal(bow_loop_shutdown(loop, 0, 0), 0);
    assert_int_equal(bow_loop_join(loop, BOW_NEVER), 0);
    bow_loop_unref(loop);
}

int loops_count_run(void *user)
{
    atomic_fetch_add((atomic_int *)user, 1);
    return 0;
}
