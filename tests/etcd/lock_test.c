/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Locks, with an etcd that the test plays; and how all that a program has of etcd ends.
 */

#include "etcd_fixture.h"

/* Locks */

static void test_etcd_lock_goes_from_one_to_the_next(void **state)
{
    struct heard heard[3] = {{.n_updates = 0}};
    struct bow_etcd_lock *locks[3];

    (void)state;
    make();
    for (int i = 0; i < 3; i++) {
        locks[i] = lock_it(&heard[i]);
        run();
    }
    assert_string_equal(fake_etcd_get(&fake, "leader/3e9"), "me"); /* as etcd's own, in hex */
    assert_int_equal(heard[0].n_acquired, 1);
    assert_int_equal(heard[1].n_acquired, 0);
    assert_int_equal(heard[2].n_acquired, 0);
    end_lock(locks[0], &heard[0]);
    assert_int_equal(heard[1].n_acquired, 1);
    assert_int_equal(heard[2].n_acquired, 0);
    assert_true(heard[1].token > heard[0].token);
    end_lock(locks[1], &heard[1]);
    assert_int_equal(heard[2].n_acquired, 1);
    assert_true(heard[2].token > heard[1].token);
    end_lock(locks[2], &heard[2]);
    assert_int_equal(heard[0].n_lost + heard[1].n_lost + heard[2].n_lost, 0);
    assert_int_equal(fake.n_keys, 0);
}

static void test_etcd_lock_of_who_leaves_the_line_harms_nobody(void **state)
{
    struct heard heard[3] = {{.n_updates = 0}};
    struct bow_etcd_lock *locks[3];

    (void)state;
    make();
    for (int i = 0; i < 3; i++) {
        locks[i] = lock_it(&heard[i]);
        run();
    }
    end_lock(locks[1], &heard[1]);
    advance(SECOND);
    assert_int_equal(heard[2].n_acquired, 0); /* the first holds it still */
    end_lock(locks[0], &heard[0]);
    assert_int_equal(heard[2].n_acquired, 1);
    end_lock(locks[2], &heard[2]);
}

static void test_etcd_lock_is_lost_with_its_lease(void **state)
{
    struct heard heard = {.n_updates = 0};

    (void)state;
    make();
    struct bow_etcd_lock *lock = lock_it(&heard);
    run();
    int64_t token = heard.token;
    fake_etcd_expire(&fake, fake.next_lease);
    run(); /* the key goes, and is watched */
    assert_int_equal(heard.n_lost, 1);
    advance(10 * SECOND);
    assert_int_equal(heard.n_acquired, 2);
    assert_true(heard.token > token);
    end_lock(lock, &heard);
}

static void test_etcd_lock_is_lost_when_its_key_is_deleted(void **state)
{
    struct heard heard = {.n_updates = 0};

    (void)state;
    make();
    struct bow_etcd_lock *lock = lock_it(&heard);
    run();
    fake_etcd_delete(&fake, "leader/3e9");
    run();
    assert_int_equal(heard.n_lost, 1);
    assert_string_equal(heard.last, "its key in etcd was deleted");
    assert_int_equal(heard.n_acquired, 2); /* it stood in line again */
    end_lock(lock, &heard);
}

static void test_etcd_lock_is_lost_by_the_clock_here(void **state)
{
    struct heard heard = {.n_updates = 0};

    (void)state;
    make();
    struct bow_etcd_lock *lock = lock_it(&heard);
    run();
    bow_test_refuse(test, true);
    bow_test_break(test, BOW_TEST_RESET);
    advance(8 * SECOND);
    assert_int_equal(heard.n_lost, 0);
    advance(SECOND);
    assert_int_equal(heard.n_lost, 1);
    assert_string_equal(heard.last, "no renewal was answered within its time to live");
    assert_int_equal(heard.n_acquired, 1);
    bow_test_refuse(test, false);
    fake_etcd_expire(&fake, 1001);
    advance(20 * SECOND);
    assert_int_equal(heard.n_acquired, 2);
    end_lock(lock, &heard);
}

static void test_etcd_lock_outlives_the_loss_of_a_watch(void **state)
{
    struct heard heard[2] = {{.n_updates = 0}};
    struct bow_etcd_lock *locks[2];

    (void)state;
    make();
    for (int i = 0; i < 2; i++) {
        locks[i] = lock_it(&heard[i]);
        run();
    }
    fake_etcd_put(&fake, "other", "");
    fake_etcd_compact(&fake);
    fake_etcd_end_watches(&fake, BOW_UNAVAILABLE);
    advance(4 * SECOND);
    assert_int_equal(heard[0].n_acquired, 1);
    assert_int_equal(heard[0].n_lost, 0);
    assert_int_equal(heard[1].n_acquired, 0);
    end_lock(locks[0], &heard[0]);
    assert_int_equal(heard[1].n_acquired, 1);
    end_lock(locks[1], &heard[1]);
}

static void test_etcd_lock_ends_inside_its_event(void **state)
{
    struct heard heard = {.ends_inside = true};

    (void)state;
    make();
    (void)lock_it(&heard);
    run();
    assert_int_equal(heard.n_acquired, 1);
    assert_int_equal(heard.n_closed, 1);
    assert_int_equal(fake.n_keys, 0);
}

/* The end */

static void test_etcd_stop_ends_all_and_tells_etcd(void **state)
{
    struct heard registered = {.n_updates = 0};
    struct heard watched = {.n_updates = 0};
    struct heard locked = {.n_updates = 0};
    struct bow_etcd_watch *none;

    (void)state;
    make();
    struct bow_etcd_registration *registration = register_it(&registered);
    struct bow_etcd_watch *watch = watch_it(&watched);
    struct bow_etcd_lock *lock = lock_it(&locked);
    run();
    assert_int_equal(bow_etcd_stop(etcd, 20 * SECOND), 0);
    assert_int_equal(registered.n_closed, 1);
    assert_int_equal(watched.n_closed, 1);
    assert_int_equal(locked.n_closed, 1);
    assert_int_equal(fake.n_keys, 0);
    assert_int_equal(fake.n_revokes, 2);
    assert_int_equal(bow_etcd_watch(etcd, "shop", &watch_events, &watched, &none), -ESHUTDOWN);
    bow_etcd_unregister(registration);
    bow_etcd_unwatch(watch);
    bow_etcd_unlock(lock);
    assert_int_equal(bow_etcd_stop(etcd, 0), 0);
}

static void test_etcd_objects_outlive_the_reference(void **state)
{
    struct heard heard = {.n_updates = 0};

    (void)state;
    make();
    put("a:1");
    struct bow_etcd_watch *watch = watch_it(&heard);
    bow_etcd_unref(etcd);
    etcd = NULL;
    run();
    assert_string_equal(heard.last, "a:1 ");
    end_watch(watch, &heard);
}

static void test_etcd_loop_that_shuts_down_ends_all(void **state)
{
    struct bow_etcd_options options = fake_etcd_options(&fake);
    struct heard registered = {.n_updates = 0};
    struct heard watched = {.n_updates = 0};
    struct heard locked = {.n_updates = 0};
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
    struct bow_loop *loop;

    (void)state;
    loop_options.thread = BOW_LOOP_OWNER;
    assert_int_equal(bow_loop_new(bow_test_context(test), &loop_options, &loop), 0);
    options.loop = loop;
    assert_int_equal(bow_etcd_new(&options, &etcd), 0);
    struct bow_etcd_registration *registration = register_it(&registered);
    struct bow_etcd_watch *watch = watch_it(&watched);
    struct bow_etcd_lock *lock = lock_it(&locked);
    for (int i = 0; i < 40; i++) {
        assert_int_equal(bow_loop_run_once(loop, 0), 0);
        run();
    }
    assert_int_equal(registered.n_registered, 1);
    assert_int_equal(bow_loop_shutdown(loop, 0, 0), 0);
    assert_int_equal(bow_loop_run(loop), 0);
    assert_int_equal(registered.n_closed, 1);
    assert_int_equal(watched.n_closed, 1);
    assert_int_equal(locked.n_closed, 1);
    bow_etcd_unregister(registration);
    bow_etcd_unwatch(watch);
    bow_etcd_unlock(lock);
    bow_etcd_unref(etcd);
    etcd = NULL;
    (void)bow_loop_unref(loop);
}

/* All was let go of, and the last reference goes where the loop ends what is left. */
static void test_etcd_loop_that_shuts_down_has_the_last_reference(void **state)
{
    struct bow_etcd_options options = fake_etcd_options(&fake);
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;

    (void)state;
    loop_options.thread = BOW_LOOP_OWNER;
    for (int n_turns = 0; n_turns < 40; n_turns++) {
        struct heard registered = {.n_updates = 0};
        struct heard locked = {.n_updates = 0};
        assert_int_equal(bow_loop_new(bow_test_context(test), &loop_options, &options.loop), 0);
        assert_int_equal(bow_etcd_new(&options, &etcd), 0);
        struct bow_etcd_registration *registration = register_it(&registered);
        struct bow_etcd_lock *lock = lock_it(&locked);
        for (int i = 0; i < n_turns; i++) {
            assert_int_equal(bow_loop_run_once(options.loop, 0), 0);
            run();
        }
        bow_etcd_unregister(registration);
        bow_etcd_unlock(lock);
        bow_etcd_unref(etcd);
        etcd = NULL;
        for (int i = 0; i < n_turns % 3; i++) { /* tasks, calls that end, or nothing came first */
            assert_int_equal(bow_loop_run_once(options.loop, 0), 0);
        }
        assert_int_equal(bow_loop_shutdown(options.loop, 0, 0), 0);
        assert_int_equal(bow_loop_run(options.loop), 0);
        assert_int_equal(registered.n_closed, 1);
        assert_int_equal(locked.n_closed, 1);
        (void)bow_loop_unref(options.loop);
    }
}

static void test_etcd_new_says_what_is_wrong(void **state)
{
    struct bow_etcd_options options = fake_etcd_options(&fake);
    struct bow_transport_error error;

    (void)state;
    options.error = &error;
    options.user = "shop";
    assert_int_equal(bow_etcd_new(&options, &etcd), -EINVAL);
    assert_non_null(strstr(error.text, "set both options.user and options.password"));
    options.user = NULL;
    options.target = "192.0.2.1:2379,192.0.2.2:2379";
    assert_int_equal(bow_etcd_new(&options, &etcd), -EPERM); /* neither security nor plaintext */
    options.plaintext = true;
    assert_int_equal(bow_etcd_new(&options, &etcd), 0);
}

/* Each allocation that fails */

static int all_of_it(struct bow_test *each, void *user)
{
    static struct fake_etcd etcd_of_each;
    struct heard registered = {.n_updates = 0};
    struct heard watched = {.n_updates = 0};
    struct heard locked = {.n_updates = 0};
    struct bow_etcd_registration_options options = mine(&registered);
    struct bow_etcd_registration *registration = NULL;
    struct bow_etcd_watch *watch = NULL;
    struct bow_etcd_lock *lock = NULL;

    (void)user;
    int rc = fake_etcd_start(&etcd_of_each, each);
    if (rc < 0) {
        return 0;
    }
    struct bow_etcd_options made = fake_etcd_options(&etcd_of_each);
    rc = bow_etcd_new(&made, &etcd);
    if (rc < 0) {
        bow_test_pair_free(each, etcd_of_each.pair);
        etcd = NULL;
        return rc == -ENOMEM ? 0 : rc;
    }
    bool has_registration = bow_etcd_register(etcd, &options, &registration) == 0;
    bool has_watch = bow_etcd_watch(etcd, "shop", &watch_events, &watched, &watch) == 0;
    struct bow_etcd_lock_options wanted = BOW_ETCD_LOCK_OPTIONS_INIT;
    wanted.name = "leader";
    wanted.events = &lock_events;
    wanted.user = &locked;
    bool has_lock = bow_etcd_lock(etcd, &wanted, &lock) == 0;
    (void)bow_test_advance(each, 30 * SECOND);
    bow_etcd_unregister(registration);
    bow_etcd_unwatch(watch);
    bow_etcd_unlock(lock);
    bow_etcd_unref(etcd);
    etcd = NULL;
    (void)bow_test_advance(each, 30 * SECOND);
    bool is_right = registered.n_closed == has_registration && watched.n_closed == has_watch &&
                    locked.n_closed == has_lock;
    bow_test_pair_free(each, etcd_of_each.pair);
    return is_right ? 0 : -EPROTO;
}

static void test_etcd_each_allocation_may_fail(void **state)
{
    (void)state;
    assert_true(bow_test_fail_each(all_of_it, NULL) > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_etcd_lock_goes_from_one_to_the_next),
        TEST(test_etcd_lock_of_who_leaves_the_line_harms_nobody),
        TEST(test_etcd_lock_is_lost_with_its_lease),
        TEST(test_etcd_lock_is_lost_when_its_key_is_deleted),
        TEST(test_etcd_lock_is_lost_by_the_clock_here),
        TEST(test_etcd_lock_outlives_the_loss_of_a_watch),
        TEST(test_etcd_lock_ends_inside_its_event),
        TEST(test_etcd_stop_ends_all_and_tells_etcd),
        TEST(test_etcd_objects_outlive_the_reference),
        TEST(test_etcd_loop_that_shuts_down_ends_all),
        TEST(test_etcd_loop_that_shuts_down_has_the_last_reference),
        TEST(test_etcd_new_says_what_is_wrong),
        cmocka_unit_test(test_etcd_each_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
