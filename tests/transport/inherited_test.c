/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the environment says of listening sockets that were handed down. */

#include <bowline/channel.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static void set(const char *pid, const char *fds, const char *names)
{
    const char *const variables[] = {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"};
    const char *const values[] = {pid, fds, names};

    for (int i = 0; i < 3; i++) {
        if (values[i] != NULL) {
            setenv(variables[i], values[i], 1);
        } else {
            unsetenv(variables[i]);
        }
    }
}

static const char *own_pid(char text[16])
{
    snprintf(text, 16, "%d", getpid());
    return text;
}

static void test_inherited_fds_are_counted_for_this_process_only(void **state)
{
    char pid[16];
    char other[16];
    (void)state;
    own_pid(pid);
    snprintf(other, sizeof(other), "%d", getppid());
    set(NULL, NULL, NULL);
    assert_int_equal(bow_inherited_fds(), 0);
    set(NULL, "2", NULL);
    assert_int_equal(bow_inherited_fds(), 0);
    set(pid, NULL, NULL);
    assert_int_equal(bow_inherited_fds(), 0);
    set(other, "2", NULL);
    assert_int_equal(bow_inherited_fds(), 0);
    set(pid, "0", NULL);
    assert_int_equal(bow_inherited_fds(), 0);
    set(pid, "2", NULL);
    assert_int_equal(bow_inherited_fds(), 2);
    assert_int_equal(bow_inherited_fds(), 2); /* nothing was changed */
    assert_string_equal(getenv("LISTEN_FDS"), "2");
}

static void test_inherited_fds_that_make_no_sense_are_an_error(void **state)
{
    static const char *const bad[] = {
        "", "-1", "2x", " 2", "+2", "2147483647", "99999999999999999999"};
    char pid[16];
    (void)state;
    own_pid(pid);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        set(pid, bad[i], "a");
        assert_int_equal(bow_inherited_fds(), -EINVAL);
        assert_int_equal(bow_inherited_fd("a"), -EINVAL);
        set(bad[i], "2", "a");
        if (i != 5) { /* a number that no process has */
            assert_int_equal(bow_inherited_fds(), -EINVAL);
        }
    }
}

static void test_inherited_fd_is_found_by_its_name(void **state)
{
    char pid[16];
    (void)state;
    own_pid(pid);
    set(pid, "4", "web:admin::web");
    assert_int_equal(bow_inherited_fd("web"), 3);
    assert_int_equal(bow_inherited_fd("admin"), 4);
    assert_int_equal(bow_inherited_fd(""), 5);
    assert_int_equal(bow_inherited_fd("we"), -ENOENT);
    assert_int_equal(bow_inherited_fd("web:admin"), -ENOENT);
    set(pid, "1", "web:admin");
    assert_int_equal(bow_inherited_fd("admin"), -ENOENT); /* named, but not handed down */
    set(pid, "3", "web");
    assert_int_equal(bow_inherited_fd("admin"), -ENOENT);
    set(pid, "3", NULL);
    assert_int_equal(bow_inherited_fd("web"), -ENOENT);
    set(NULL, NULL, NULL);
    assert_int_equal(bow_inherited_fd("web"), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inherited_fds_are_counted_for_this_process_only),
        cmocka_unit_test(test_inherited_fds_that_make_no_sense_are_an_error),
        cmocka_unit_test(test_inherited_fd_is_found_by_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
