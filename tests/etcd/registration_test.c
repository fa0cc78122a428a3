/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Registrations, with an etcd that the test plays: what is put, renewed, put again and taken out.
 */

#include "etcd_fixture.h"

/* Registering */

static void test_etcd_register_puts_the_key_of_naming(void **state)
{
    static const struct bow_etcd_attribute attributes[] = {{"rack", "7"}};
    struct heard heard = {.n_updates = 0};
    struct bow_etcd_registration *registration;

    (void)state;
    make();
    struct bow_etcd_registration_options options = mine(&heard);
    options.weight = 3;
    options.locality = "zone-a";
    options.version = "1.2";
    options.attributes = attributes;
    options.n_attributes = 1;
    assert_int_equal(bow_etcd_register(etcd, &options, &registration), 0);
    assert_int_equal(heard.n_registered, 0);
    run();
    assert_int_equal(heard.n_registered, 1);
    assert_string_equal(fake_etcd_get(&fake, "shop/10.0.0.7:50051"),
                        "{\"Op\":0,\"Addr\":\"10.0.0.7:50051\",\"Metadata\":{\"weight\":3,"
                        "\"locality\":\"zone-a\",\"version\":\"1.2\",\"attributes\":{\"rack\":"
                        "\"7\"}}}");
    end_registration(registration, &heard);
    assert_null(fake_etcd_get(&fake, "shop/10.0.0.7:50051"));
    assert_int_equal(fake.n_revokes, 1);
}

static void on_full_update(struct bow_etcd_watch *watch, const struct bow_etcd_update *update,
                           void *user)
{
    (void)watch;
    ((struct heard *)user)->n_updates++;
    if (update->n_servers == 0) {
        return;
    }
    const struct bow_etcd_server *server = &update->servers[0];
    assert_string_equal(server->key, "shop/10.0.0.7:50051");
    assert_int_equal(server->weight, 3);
    assert_string_equal(server->locality, "zone-a");
    assert_null(server->version);
    assert_int_equal(server->n_attributes, 1);
    assert_string_equal(server->attributes[0].key, "rack");
    assert_string_equal(server->attributes[0].value, "7");
    ((struct heard *)user)->n_acquired++;
}

static void test_etcd_watch_tells_what_was_registered(void **state)
{
    const struct bow_etcd_watch_events events = {on_full_update, watch_events.on_closed};
    static const struct bow_etcd_attribute attributes[] = {{"rack", "7"}};
    struct heard heard = {.n_updates = 0};
    struct heard seen = {.n_updates = 0};
    struct bow_etcd_registration *registration;
    struct bow_etcd_watch *watch;

    (void)state;
    make();
    struct bow_etcd_registration_options options = mine(&heard);
    options.weight = 3;
    options.locality = "zone-a";
    options.attributes = attributes;
    options.n_attributes = 1;
    assert_int_equal(bow_etcd_watch(etcd, "shop", &events, &seen, &watch), 0);
    assert_int_equal(bow_etcd_register(etcd, &options, &registration), 0);
    run();
    assert_int_equal(seen.n_acquired, 1);
    end_registration(registration, &heard);
    assert_true(seen.n_updates >= 2);
    end_watch(watch, &seen);
}

static void test_etcd_go_zero_layout_both_ways(void **state)
{
    struct bow_etcd_options options = fake_etcd_options(&fake);
    struct heard heard = {.n_updates = 0};
    struct heard seen = {.n_updates = 0};
    char key[64];

    (void)state;
    options.layout = BOW_ETCD_LAYOUT_GO_ZERO;
    options.prefix = "/p/";
    assert_int_equal(bow_etcd_new(&options, &etcd), 0);
    fake_etcd_put(&fake, "/p/shop/7587865", "10.0.0.1:1");
    struct bow_etcd_watch *watch = watch_it(&seen);
    struct bow_etcd_registration *registration = register_it(&heard);
    run();
    (void)snprintf(key, sizeof(key), "/p/shop/%" PRId64, heard.lease);
    assert_string_equal(fake_etcd_get(&fake, key), "10.0.0.7:50051");
    assert_string_equal(seen.last, "10.0.0.7:50051 10.0.0.1:1 ");
    end_registration(registration, &heard);
    assert_string_equal(seen.last, "10.0.0.1:1 ");
    end_watch(watch, &seen);
}

static void test_etcd_registration_renews_at_a_third(void **state)
{
    struct heard heard = {.n_updates = 0};

    (void)state;
    make();
    struct bow_etcd_registration *registration = register_it(&heard);
    run();
    assert_int_equal(fake.n_renewals, 1);
    advance(2 * SECOND);
    assert_int_equal(fake.n_renewals, 1);
    advance(2 * SECOND);
    assert_int_equal(fake.n_renewals, 2);
    advance(27 * SECOND);
    assert_int_equal(fake.n_renewals, 11);
    assert_int_equal(fake.n_grants, 1);
    end_registration(registration, &heard);
}

static void test_etcd_registration_comes_back_after_its_lease(void **state)
{
    struct heard heard = {.n_updates = 0};

    (void)state;
    make();
    struct bow_etcd_registration *registration = register_it(&heard);
    run();
    int64_t first = heard.lease;
    fake_etcd_expire(&fake, first);
    assert_null(fake_etcd_get(&fake, "shop/10.0.0.7:50051"));
    advance(4 * SECOND);
    assert_int_equal(heard.n_lost, 1); /* of both the first is told */
    assert_string_equal(heard.last, "its key in etcd was deleted");
    assert_int_equal(heard.n_registered, 2);
    assert_true(heard.lease != first);
    assert_non_null(fake_etcd_get(&fake, "shop/10.0.0.7:50051"));
    end_registration(registration, &heard);
}

static void test_etcd_registration_whose_key_is_deleted_comes_back(void **state)
{
    struct heard heard = {.n_updates = 0};

    (void)state;
    make();
    struct bow_etcd_registration *registration = register_it(&heard);
    run();
    int64_t first = heard.lease;
    for (int i = 1; i <= 2; i++) {
        fake_etcd_delete(&fake, "shop/10.0.0.7:50051");
        run();
        assert_int_equal(heard.n_lost, i);
        assert_string_equal(heard.last, "its key in etcd was deleted");
        assert_int_equal(heard.n_registered, i + 1);
        assert_non_null(fake_etcd_get(&fake, "shop/10.0.0.7:50051"));
    }
    assert_true(heard.lease == first);
    assert_int_equal(fake.n_grants, 1);
    end_registration(registration, &heard);
    assert_int_equal(fake_etcd_n_watches(&fake), 0);
}

static void test_etcd_registration_whose_key_was_deleted_unseen_comes_back(void **state)
{
    struct heard heard = {.n_updates = 0};

    (void)state;
    make();
    struct bow_etcd_registration *registration = register_it(&heard);
    run();
    fake_etcd_end_watches(&fake, BOW_UNAVAILABLE);
    fake_etcd_delete(&fake, "shop/10.0.0.7:50051");
    fake_etcd_put(&fake, "other", "");
    fake_etcd_compact(&fake);
    advance(10 * SECOND);
    assert_non_null(fake_etcd_get(&fake, "shop/10.0.0.7:50051"));
    assert_int_equal(heard.n_registered, 1); /* nobody knows that it was gone */
    fake_etcd_delete(&fake, "shop/10.0.0.7:50051");
    run();
    assert_int_equal(heard.n_lost, 1);
    assert_int_equal(heard.n_registered, 2);
    end_registration(registration, &heard);
}

static void test_etcd_registration_outlives_etcd(void **state)
{
    struct heard heard = {.n_updates = 0};

    (void)state;
    make();
    struct bow_etcd_registration *registration = register_it(&heard);
    run();
    bow_test_refuse(test, true);
    bow_test_break(test, BOW_TEST_RESET);
    advance(60 * SECOND);
    assert_true(heard.n_errors > 0);
    assert_int_equal(heard.n_lost, 0); /* etcd may have it still */
    bow_test_refuse(test, false);
    advance(10 * SECOND);
    assert_int_equal(fake.n_grants, 1);
    assert_true(fake.n_renewals > 1);
    end_registration(registration, &heard);
}

static void test_etcd_renewal_without_answer_goes_over_another_stream(void **state)
{
    struct heard heard = {.n_updates = 0};

    (void)state;
    make();
    struct bow_etcd_registration *registration = register_it(&heard);
    run();
    fake.is_silent = true;
    advance(7 * SECOND);
    assert_string_equal(heard.last, "a renewal was not answered in time");
    fake.is_silent = false;
    heard.n_errors = 0;
    advance(20 * SECOND);
    assert_true(heard.n_errors <= 1);
    assert_int_equal(heard.n_lost, 0);
    end_registration(registration, &heard);
}

static void test_etcd_registration_ends_inside_its_event(void **state)
{
    struct heard heard = {.ends_inside = true};

    (void)state;
    make();
    (void)register_it(&heard);
    run();
    assert_int_equal(heard.n_closed, 1);
    assert_int_equal(fake.n_revokes, 1);
    assert_int_equal(fake.n_keys, 0);
}

static void test_etcd_registration_ends_at_every_step(void **state)
{
    (void)state;
    make();
    for (int n_turns = 0; n_turns < 40; n_turns++) {
        struct heard heard = {.n_updates = 0};
        struct bow_etcd_registration *registration = register_it(&heard);
        for (int i = 0; i < n_turns; i++) {
            assert_int_equal(bow_loop_run_once(bow_test_loop(test), 0), 0);
        }
        bow_etcd_unregister(registration);
        advance(5 * SECOND);
        assert_int_equal(heard.n_closed, 1);
        assert_int_equal(fake.n_keys, 0);
        memset(fake.leases, 0, sizeof(fake.leases)); /* what a cancelled grant has left */
    }
    assert_true(fake.n_puts > 0);
}

static void test_etcd_unregister_while_etcd_is_away_ends(void **state)
{
    struct heard heard = {.n_updates = 0};

    (void)state;
    make();
    struct bow_etcd_registration *registration = register_it(&heard);
    run();
    bow_test_break(test, BOW_TEST_STALL);
    bow_etcd_unregister(registration);
    advance(3 * SECOND);
    assert_int_equal(heard.n_closed, 1);
    bow_test_resume(test);
}

static void test_etcd_registration_refuses_what_is_of_no_use(void **state)
{
    struct bow_etcd_options other = fake_etcd_options(&fake);
    struct bow_etcd_registration_options options = mine(NULL);
    struct bow_etcd_registration *none = (struct bow_etcd_registration *)&other;
    struct bow_etcd *go_zero;

    (void)state;
    make();
    options.address = "0.0.0.0:50051";
    assert_int_equal(bow_etcd_register(etcd, &options, &none), -EINVAL);
    options.address = "[::]:50051";
    assert_int_equal(bow_etcd_register(etcd, &options, &none), -EINVAL);
    options.address = "nowhere";
    assert_int_equal(bow_etcd_register(etcd, &options, &none), -EINVAL);
    options = mine(NULL);
    options.service = "";
    assert_int_equal(bow_etcd_register(etcd, &options, &none), -EINVAL);
    options = mine(NULL);
    options.version = "\xff";
    assert_int_equal(bow_etcd_register(etcd, &options, &none), -EINVAL);
    options = mine(NULL);
    char *large = malloc(BOW_LIMIT_ETCD_VALUE_BYTES + 1);
    assert_non_null(large);
    memset(large, 'x', BOW_LIMIT_ETCD_VALUE_BYTES);
    large[BOW_LIMIT_ETCD_VALUE_BYTES] = '\0';
    options.version = large;
    assert_int_equal(bow_etcd_register(etcd, &options, &none), -EMSGSIZE);
    free(large);
    other.layout = BOW_ETCD_LAYOUT_GO_ZERO;
    assert_int_equal(bow_etcd_new(&other, &go_zero), 0);
    options = mine(NULL);
    options.weight = 2;
    assert_int_equal(bow_etcd_register(go_zero, &options, &none), -EINVAL);
    bow_etcd_unref(go_zero);
    assert_ptr_equal(none, &other); /* untouched */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_etcd_register_puts_the_key_of_naming),
        TEST(test_etcd_watch_tells_what_was_registered),
        TEST(test_etcd_go_zero_layout_both_ways),
        TEST(test_etcd_registration_renews_at_a_third),
        TEST(test_etcd_registration_comes_back_after_its_lease),
        TEST(test_etcd_registration_whose_key_is_deleted_comes_back),
        TEST(test_etcd_registration_whose_key_was_deleted_unseen_comes_back),
        TEST(test_etcd_registration_outlives_etcd),
        TEST(test_etcd_renewal_without_answer_goes_over_another_stream),
        TEST(test_etcd_registration_ends_inside_its_event),
        TEST(test_etcd_registration_ends_at_every_step),
        TEST(test_etcd_unregister_while_etcd_is_away_ends),
        TEST(test_etcd_registration_refuses_what_is_of_no_use),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
