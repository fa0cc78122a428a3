/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A post between any two instructions of a loop that goes to sleep (L13, F01): the processor
 * stops after each one, and in each round another thread's whole post comes at the next of these
 * places. A race of two threads finds what this finds only when they meet there.
 */

#include "transport/loop/inbox.h"

#include <bowline/loop.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <ucontext.h>

#include <cmocka.h>

#define MAX_STEPS 100000

static struct steps {
    struct bow__inbox inbox;
    struct bow_task task;
    volatile int n;  /* so far */
    volatile int at; /* the post comes after that one */
    volatile bool has_signalled;
} steps;

#ifdef __x86_64__

#define TRAP_FLAG 0x100u

static void set_stepping(bool on)
{
    unsigned long long flags = __builtin_ia32_readeflags_u64();

    __builtin_ia32_writeeflags_u64(on ? flags | TRAP_FLAG : flags & ~(unsigned long long)TRAP_FLAG);
}

static void on_step(int number, siginfo_t *info, void *context)
{
    ucontext_t *interrupted = context;

    (void)number;
    (void)info;
    steps.n++;
    if (steps.n == steps.at) {
        steps.has_signalled =
            bow__inbox_push(&steps.inbox, &steps.task) && bow__inbox_must_signal(&steps.inbox, 0);
        interrupted->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
    }
}

/* False when it had gone to sleep before the post came. */
static bool sleep_with_post_after(int step)
{
    bow__inbox_init(&steps.inbox);
    bow_task_init(&steps.task, "post", NULL, NULL);
    steps.n = 0;
    steps.at = step;
    steps.has_signalled = false;
    set_stepping(true);
    bool is_asleep = bow__inbox_sleep(&steps.inbox, BOW_NEVER);
    set_stepping(false);
    if (steps.n < step) {
        return false;
    }
    if (is_asleep && !steps.has_signalled) {
        fail_msg("a post after step %d is neither seen nor wakes the loop", step);
    }
    return true;
}

static void test_inbox_l13_f01_post_after_any_step_of_going_to_sleep_is_noticed(void **state)
{
    struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    struct sigaction before;
    int step = 1;

    (void)state;
    assert_int_equal(sigaction(SIGTRAP, &action, &before), 0);
    while (step < MAX_STEPS && sleep_with_post_after(step)) {
        step++;
    }
    assert_int_equal(sigaction(SIGTRAP, &before, NULL), 0);
    assert_in_range(step, 10, MAX_STEPS - 1); /* it did go step by step, and to the end */
}

#else

static void test_inbox_l13_f01_post_after_any_step_of_going_to_sleep_is_noticed(void **state)
{
    (void)state;
    print_message("skipped: no single step is known on this processor\n");
    skip();
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inbox_l13_f01_post_after_any_step_of_going_to_sleep_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
