/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Groups of loops (L50, L03). */

#include "tests/support/loops.h"
#include "transport/loop/loop.h"

#include <bowline/group.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct bow_group *new_group(struct loops *t, const struct bow_group_options *options)
{
    struct bow_group *group = NULL;

    assert_int_equal(bow_group_new(t->context, options, &group), 0);
    return group;
}

static void check_round_robin(uint32_t n_loops)
{
    struct loops t;
    struct bow_group_options options = BOW_GROUP_OPTIONS_INIT;

    loops_begin(&t);
    options.n_loops = n_loops;
    struct bow_group *group = new_group(&t, &options);
    assert_int_equal(bow_group_size(group), n_loops);
    for (uint32_t i = 0; i < 3 * n_loops; i++) {
        assert_ptr_equal(bow_group_next(group), bow_group_get(group, i % n_loops));
    }
    assert_int_equal(atomic_load(&t.fake.n_threads), 0); /* none is started by choosing */
    bow_group_unref(group);
    loops_end(&t);
}

static void test_group_l50_next_goes_round(void **state)
{
    (void)state;
    check_round_robin(1);
    check_round_robin(3);
    check_round_robin(4);
}

static void test_group_l50_least_channels_chooses_the_emptiest(void **state)
{
    struct loops t;
    struct bow_group_options options = BOW_GROUP_OPTIONS_INIT;
    int counts[3] = {0, 5, 2};

    (void)state;
    loops_begin(&t);
    options.n_loops = 3;
    options.choice = BOW_GROUP_LEAST_CHANNELS;
    struct bow_group *group = new_group(&t, &options);
    for (uint32_t i = 0; i < 3; i++) {
        bow__loop_count_channel(bow_group_get(group, i), counts[i]);
    }
    for (int i = 0; i < 8; i++) { /* 0, 5, 2 fill up to 5, 5, 5 */
        bow__loop_count_channel(bow_group_next(group), 1);
    }
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(bow__loop_n_channels(bow_group_get(group, i)), 5);
    }
    for (uint32_t i = 0; i < 3; i++) { /* equal ones take turns */
        bow__loop_count_channel(bow_group_next(group), 1);
    }
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(bow__loop_n_channels(bow_group_get(group, i)), 6);
        bow__loop_count_channel(bow_group_get(group, i), -6);
    }
    bow_group_unref(group);
    loops_end(&t);
}

static void test_group_l50_default_size_is_what_the_system_says(void **state)
{
    struct loops t;

    (void)state;
    loops_begin(&t);
    t.fake.n_cpus = 5;
    struct bow_group *group = new_group(&t, NULL);
    assert_int_equal(bow_group_size(group), 5);
    bow_group_unref(group);
    loops_end(&t);
}

/* Each loop's CPU, as the threads are asked for. */

struct asked_cpus {
    int cpus[3];
    int n;
};

static int note_cpu(void *user, const struct bow_thread_options *options, void (*run)(void *),
                    void *argument, struct bow_thread **ret_thread)
{
    struct fake_system *fake = user;
    struct asked_cpus *asked = fake->user;
    struct bow_thread_options anywhere = *options;

    asked->cpus[asked->n++] = options->cpu;
    anywhere.cpu = -1; /* this machine may have fewer */
    return bow_system_default()->thread_start(NULL, &anywhere, run, argument, ret_thread);
}

static void check_cpus(int first, const int expected[3])
{
    struct loops t;
    struct asked_cpus asked = {.n = 0};
    struct bow_loop_options loops = BOW_LOOP_OPTIONS_INIT;
    struct bow_group_options options = BOW_GROUP_OPTIONS_INIT;
    atomic_int n = 0;

    loops_begin(&t);
    t.fake.system.thread_start = note_cpu;
    t.fake.user = &asked;
    loops.cpu = first;
    options.loops = &loops;
    options.n_loops = 3;
    struct bow_group *group = new_group(&t, &options);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(bow_loop_execute(bow_group_get(group, i), "count", loops_count_run, &n),
                         0);
    }
    bow_group_unref(group);
    assert_int_equal(asked.n, 3);
    assert_memory_equal(asked.cpus, expected, sizeof(asked.cpus));
    loops_end(&t);
}

static void test_group_l03_loops_take_one_cpu_each_from_the_first_on(void **state)
{
    const int in_a_row[3] = {4, 5, 6};
    const int any[3] = {-1, -1, -1};

    (void)state;
    check_cpus(4, in_a_row);
    check_cpus(-1, any);
}

struct seen {
    struct bow_group *group;
    struct bow_loop *current;
    char name[32];
    atomic_int n;
};

static int see(void *user)
{
    struct seen *seen = user;

    pthread_getname_np(pthread_self(), seen->name, sizeof(seen->name));
    seen->current = bow_group_current(seen->group);
    if (bow_group_join(seen->group, 0) != -EDEADLK) {
        return -EINVAL;
    }
    atomic_fetch_add(&seen->n, 1);
    return 0;
}

static void test_group_l03_threads_are_named_prefix_group_n(void **state)
{
    struct loops t;
    struct bow_group_options options = BOW_GROUP_OPTIONS_INIT;
    struct seen seen[2] = {{0}};
    const char *names[2] = {"pre-io-0", "pre-io-1"};

    (void)state;
    loops_begin(&t);
    options.n_loops = 2;
    options.prefix = "pre";
    options.name = "io";
    struct bow_group *group = new_group(&t, &options);
    assert_null(bow_group_current(group));
    for (uint32_t i = 0; i < 2; i++) {
        seen[i].group = group;
        assert_int_equal(bow_loop_execute(bow_group_get(group, i), "see", see, &seen[i]), 0);
    }
    bow_group_shutdown(group, 0, 0);
    assert_int_equal(bow_group_join(group, BOW_NEVER), 0);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(seen[i].n, 1);
        assert_string_equal(seen[i].name, names[i]);
        assert_ptr_equal(seen[i].current, bow_group_get(group, i));
        assert_int_equal(bow_loop_get_state(bow_group_get(group, i)), BOW_LOOP_TERMINATED);
    }
    assert_non_null(strstr(t.log, "bow_group_join: on a loop of the group"));
    bow_group_unref(group);
    loops_end(&t);
}

static void test_group_l50_unref_ends_and_waits_for_all(void **state)
{
    struct loops t;
    struct bow_group_options options = BOW_GROUP_OPTIONS_INIT;
    atomic_int n = 0;

    (void)state;
    loops_begin(&t);
    options.n_loops = 3;
    struct bow_group *group = new_group(&t, &options);
    for (int i = 0; i < 30; i++) {
        assert_int_equal(bow_loop_execute(bow_group_next(group), "count", loops_count_run, &n), 0);
    }
    assert_ptr_equal(bow_group_ref(group), group);
    assert_null(bow_group_unref(group));
    assert_int_equal(bow_group_join(group, 0), -ETIMEDOUT);
    assert_null(bow_group_unref(group));
    assert_null(bow_group_unref(NULL));
    assert_int_equal(n, 30);
    loops_end(&t);
}

static int use_group(struct bow_context *context, void *user)
{
    struct bow_group *group = NULL;
    atomic_int n = 0;

    int rc = bow_group_new(context, user, &group);
    if (rc == 0) {
        rc = bow_loop_execute(bow_group_next(group), "count", loops_count_run, &n);
        bow_group_shutdown(group, 0, 0);
        int joined = bow_group_join(group, BOW_NEVER);
        assert_int_equal(joined, 0);
    }
    bow_group_unref(group);
    return rc;
}

static void test_group_l50_a_failed_start_leaves_nothing(void **state)
{
    struct loops t;
    struct bow_group *group = NULL;
    struct bow_loop_options loops = BOW_LOOP_OPTIONS_INIT;
    struct bow_group_options options = BOW_GROUP_OPTIONS_INIT;

    (void)state;
    options.n_loops = 3;
    options.loops = &loops;
    assert_in_range(test_alloc_fail_each(NULL, use_group, &options), 7, 30);

    loops_begin(&t);
    loops.io_ratio = 101;
    assert_int_equal(bow_group_new(t.context, &options, &group), -EINVAL);
    loops.io_ratio = 0;
    loops.size++;
    assert_int_equal(bow_group_new(t.context, &options, &group), -EINVAL);
    loops.size--;
    options.n_loops = (uint32_t)-1;
    assert_int_equal(bow_group_new(t.context, &options, &group), -EINVAL);
    options.n_loops = 1;
    options.choice = (enum bow_group_choice)2;
    assert_int_equal(bow_group_new(t.context, &options, &group), -EINVAL);
    assert_null(group);
    loops_end(&t);
}

static void test_group_l50_unref_waits_for_a_loop_that_others_refer_to(void **state)
{
    struct loops t;
    struct bow_group_options options = BOW_GROUP_OPTIONS_INIT;
    struct bow_task task;
    atomic_int n_run;

    (void)state;
    loops_begin(&t);
    atomic_init(&n_run, 0);
    options.n_loops = 1;
    struct bow_group *group = new_group(&t, &options);
    struct bow_loop *loop = bow_loop_ref(bow_group_get(group, 0));
    bow_task_init(&task, "count", loops_count_run, &n_run);
    assert_int_equal(bow_loop_post(loop, &task), 0);
    bow_group_unref(group);
    assert_int_equal(atomic_load(&n_run), 1);
    assert_int_equal(bow_loop_get_state(loop), BOW_LOOP_TERMINATED);
    bow_loop_unref(loop);
    loops_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_group_l50_next_goes_round),
        cmocka_unit_test(test_group_l50_least_channels_chooses_the_emptiest),
        cmocka_unit_test(test_group_l50_default_size_is_what_the_system_says),
        cmocka_unit_test(test_group_l03_loops_take_one_cpu_each_from_the_first_on),
        cmocka_unit_test(test_group_l03_threads_are_named_prefix_group_n),
        cmocka_unit_test(test_group_l50_unref_ends_and_waits_for_all),
        cmocka_unit_test(test_group_l50_unref_waits_for_a_loop_that_others_refer_to),
        cmocka_unit_test(test_group_l50_a_failed_start_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
