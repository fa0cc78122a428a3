/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which process this is: with the page that a child finds empty, and without.
 */

#include "base/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* In the child, and in a child of that one. */
static int child_status(const struct bow__process *process, int depth)
{
    int status = 0;

    pid_t pid = fork();
    if (pid == 0) {
        int differs = bow__process_id(process) != (int)getpid();
        _exit(differs || (depth > 0 && child_status(process, depth - 1) != 0));
    }
    return waitpid(pid, &status, 0) == pid ? status : -1;
}

static void test_process_child_is_told_from_its_parent(void **state)
{
    struct bow__process process;

    (void)state;
    bow__process_init(&process);
    assert_int_equal(bow__process_id(&process), getpid());
    assert_int_equal(child_status(&process, 1), 0);
    assert_int_equal(bow__process_id(&process), getpid());
    bow__process_fini(&process);
}

static void test_process_child_of_one_that_never_asked_is_told(void **state)
{
    struct bow__process process;

    (void)state;
    bow__process_init(&process);
    assert_int_equal(child_status(&process, 1), 0);
    assert_int_equal(bow__process_id(&process), getpid());
    bow__process_fini(&process);
}

static void test_process_without_a_page_asks_the_kernel(void **state)
{
    struct bow__process process = {.page = NULL};

    (void)state;
    assert_int_equal(bow__process_id(&process), getpid());
    assert_int_equal(child_status(&process, 1), 0);
    bow__process_fini(&process);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_process_child_is_told_from_its_parent),
        cmocka_unit_test(test_process_child_of_one_that_never_asked_is_told),
        cmocka_unit_test(test_process_without_a_page_asks_the_kernel),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
