/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Watches, with an etcd that the test plays: what is told when, what is asked again after what, and
 * with which token.
 */

#include "etcd/endpoint.h"
#include "etcd_fixture.h"

/* Watching */

static void test_etcd_watch_tells_what_is_there_and_each_change(void **state)
{
    struct heard heard = {.n_updates = 0};

    (void)state;
    make();
    put("a:1");
    put("b:2");
    fake_etcd_put(&fake, "shopping/x", "of another");
    struct bow_etcd_watch *watch = watch_it(&heard);
    assert_int_equal(heard.n_updates, 0); /* never from inside */
    run();
    assert_string_equal(heard.last, "a:1 b:2 ");
    assert_int_equal(heard.n_updates, 1);
    put("aa:3");
    run();
    assert_string_equal(heard.last, "a:1 aa:3 b:2 ");
    assert_int_equal(heard.revision, fake.revision);
    fake_etcd_delete(&fake, "shop/b:2");
    run();
    assert_string_equal(heard.last, "a:1 aa:3 ");
    assert_int_equal(heard.n_updates, 3);
    assert_int_equal(fake.n_ranges, 1);
    end_watch(watch, &heard);
    assert_int_equal(fake_etcd_n_watches(&fake), 0);
}

static void test_etcd_watch_of_none_tells_so(void **state)
{
    struct heard heard = {.n_updates = 0};

    (void)state;
    make();
    struct bow_etcd_watch *watch = watch_it(&heard);
    run();
    assert_int_equal(heard.n_updates, 1);
    assert_string_equal(heard.last, "");
    end_watch(watch, &heard);
}

static void test_etcd_watches_of_one_service_share(void **state)
{
    struct heard one = {.n_updates = 0};
    struct heard two = {.n_updates = 0};

    (void)state;
    make();
    put("a:1");
    struct bow_etcd_watch *first = watch_it(&one);
    run();
    struct bow_etcd_watch *second = watch_it(&two);
    run();
    assert_string_equal(two.last, "a:1 ");
    assert_int_equal(one.n_updates, 1); /* not told again for another's sake */
    assert_int_equal(fake.n_ranges, 1);
    assert_int_equal(fake.n_watches, 1);
    put("b:1");
    run();
    assert_string_equal(one.last, "a:1 b:1 ");
    assert_string_equal(two.last, "a:1 b:1 ");
    end_watch(first, &one);
    put("c:1");
    run();
    assert_int_equal(one.n_updates, 2);
    assert_string_equal(two.last, "a:1 b:1 c:1 ");
    end_watch(second, &two);
}

static void test_etcd_watch_reads_pages(void **state)
{
    struct heard heard = {.n_updates = 0};
    struct bow_etcd_watch *watch;
    char address[16];

    (void)state;
    make();
    for (int i = 0; i < 600; i++) {
        (void)snprintf(address, sizeof(address), "h%03d:1", i);
        put(address);
    }
    watch = watch_it(&heard);
    run();
    assert_int_equal(fake.n_ranges, 3);
    assert_int_equal(heard.n_updates, 1);
    assert_memory_equal(heard.last, "h000:1 h001:1 ", 14);
    assert_non_null(strstr(heard.last, "h512:1 ")); /* the first of the third */
    end_watch(watch, &heard);
}

static void test_etcd_watch_tells_of_so_many_servers(void **state)
{
    struct heard heard = {.n_updates = 0};
    char address[16];

    (void)state;
    make();
    for (unsigned i = 0; i <= BOW_LIMIT_ETCD_SERVERS; i++) {
        (void)snprintf(address, sizeof(address), "h%04u:1", i);
        put(address);
    }
    struct bow_etcd_watch *watch = watch_it(&heard);
    run();
    assert_int_equal(heard.n_servers, BOW_LIMIT_ETCD_SERVERS);
    assert_non_null(strstr(logged, "shop/h4096:1 is left out, there are more than "
                                   "BOW_LIMIT_ETCD_SERVERS (4096)"));
    put("h9999:1");
    run();
    assert_int_equal(heard.n_servers, BOW_LIMIT_ETCD_SERVERS);
    end_watch(watch, &heard);
}

static void test_etcd_value_has_its_bounds(void **state)
{
    struct bow__etcd_endpoint *endpoint = NULL;
    size_t len = BOW_LIMIT_ETCD_VALUE_BYTES;
    uint8_t *value = malloc(len + 1);

    (void)state;
    assert_non_null(value);
    memset(value, ' ', len + 1);
    memcpy(value, "{\"Addr\":\"a:1\"}", 14);
    struct bow_context *context = bow_test_context(test);
    const struct bow_slice key = {value, 1};
    assert_int_equal(bow__etcd_endpoint_read(context, BOW_ETCD_LAYOUT_NAMING, key,
                                             (struct bow_slice){value, len + 1}, &endpoint),
                     -EMSGSIZE);
    assert_int_equal(bow__etcd_endpoint_read(context, BOW_ETCD_LAYOUT_NAMING, key,
                                             (struct bow_slice){value, len}, &endpoint),
                     0);
    assert_string_equal(endpoint->server.address, "a:1");
    bow__etcd_endpoint_free(endpoint);
    free(value);
}

static void test_etcd_watch_survives_compaction(void **state)
{
    struct heard heard = {.n_updates = 0};

    (void)state;
    make();
    put("a:1");
    put("b:1");
    struct bow_etcd_watch *watch = watch_it(&heard);
    run();
    fake_etcd_end_watches(&fake, BOW_UNAVAILABLE);
    fake_etcd_delete(&fake, "shop/a:1");
    put("c:1");
    fake_etcd_compact(&fake);
    fake_etcd_put(&fake, "other", "");
    advance(10 * SECOND);
    assert_string_equal(heard.last, "b:1 c:1 ");
    assert_int_equal(fake.n_ranges, 2);
    put("d:1");
    run();
    assert_string_equal(heard.last, "b:1 c:1 d:1 ");
    end_watch(watch, &heard);
}

static void test_etcd_watch_keeps_what_is_known_while_etcd_is_away(void **state)
{
    struct heard heard = {.n_updates = 0};

    (void)state;
    make();
    put("a:1");
    struct bow_etcd_watch *watch = watch_it(&heard);
    run();
    bow_test_refuse(test, true);
    bow_test_break(test, BOW_TEST_RESET);
    advance(60 * SECOND);
    assert_int_equal(heard.n_errors, 2); /* of the connection, and of the next: not each try */
    assert_memory_equal(heard.last, "a:1 error: asking etcd at ", 26);
    put("b:1");
    bow_test_refuse(test, false);
    advance(10 * SECOND);
    assert_string_equal(heard.last, "a:1 b:1 ");
    assert_int_equal(fake.n_ranges, 1); /* it went on where it was */
    end_watch(watch, &heard);
}

static void fail_with(enum bow_code code, const char *message)
{
    fake.n_to_fail = 1000000;
    fake.code = code;
    fake.message = message;
}

static void test_etcd_watch_tells_another_reason(void **state)
{
    struct heard heard = {.n_updates = 0};

    (void)state;
    make();
    put("a:1");
    struct bow_etcd_watch *watch = watch_it(&heard);
    run();
    fail_with(BOW_UNAVAILABLE, "etcdserver: no leader");
    fake_etcd_end_watches(&fake, BOW_UNAVAILABLE);
    advance(60 * SECOND);
    assert_int_equal(heard.n_errors, 2); /* the stream's end, and then this */
    assert_non_null(strstr(heard.last, "a:1 error: "));
    assert_non_null(strstr(heard.last, "UNAVAILABLE: etcdserver: no leader"));
    fail_with(BOW_PERMISSION_DENIED, "etcdserver: permission denied");
    advance(60 * SECOND);
    assert_int_equal(heard.n_errors, 3);
    assert_non_null(strstr(heard.last, "PERMISSION_DENIED: etcdserver: permission denied"));
    fake.n_to_fail = 0;
    advance(10 * SECOND);
    assert_string_equal(heard.last, "a:1 ");
    end_watch(watch, &heard);
}

static void test_etcd_watch_tells_when_etcd_is_back_and_nothing_changed(void **state)
{
    struct heard heard = {.n_updates = 0};

    (void)state;
    make();
    put("a:1");
    struct bow_etcd_watch *watch = watch_it(&heard);
    run();
    fake_etcd_end_watches(&fake, BOW_UNAVAILABLE);
    run();
    assert_int_equal(heard.n_errors, 1);
    advance(10 * SECOND);
    assert_string_equal(heard.last, "a:1 ");
    end_watch(watch, &heard);
}

static void test_etcd_watch_tells_an_error_before_anything_is_known(void **state)
{
    struct heard heard = {.n_updates = 0};

    (void)state;
    make();
    put("a:1");
    fake.n_to_fail = 3;
    fake.code = BOW_PERMISSION_DENIED;
    fake.message = "etcdserver: permission denied";
    struct bow_etcd_watch *watch = watch_it(&heard);
    run();
    assert_non_null(strstr(heard.last, "PERMISSION_DENIED: etcdserver: permission denied"));
    assert_int_equal(heard.revision, 0);
    advance(10 * SECOND);
    assert_string_equal(heard.last, "a:1 ");
    end_watch(watch, &heard);
}

static void test_etcd_watch_that_is_not_answered_begins_anew(void **state)
{
    struct heard heard = {.n_updates = 0};

    (void)state;
    make();
    put("a:1");
    fake.is_silent = true;
    struct bow_etcd_watch *watch = watch_it(&heard);
    advance(4 * SECOND);
    assert_int_equal(heard.n_errors, 0);
    advance(2 * SECOND);
    assert_non_null(strstr(heard.last, "DEADLINE_EXCEEDED: no answer within 5000 ms"));
    fake.is_silent = false;
    put("b:1");
    advance(10 * SECOND);
    assert_string_equal(heard.last, "a:1 b:1 ");
    end_watch(watch, &heard);
}

static void test_etcd_watch_follows_progress(void **state)
{
    struct heard heard = {.n_updates = 0};

    (void)state;
    make();
    put("a:1");
    struct bow_etcd_watch *watch = watch_it(&heard);
    run();
    fake_etcd_put(&fake, "other", "");
    fake_etcd_put(&fake, "other", "");
    fake_etcd_progress(&fake);
    run();
    fake_etcd_compact(&fake); /* what it has not missed */
    fake_etcd_end_watches(&fake, BOW_UNAVAILABLE);
    advance(10 * SECOND);
    assert_int_equal(fake.n_ranges, 1);
    assert_string_equal(heard.last, "a:1 ");
    end_watch(watch, &heard);
}

static void test_etcd_watch_tells_a_revision_as_a_whole(void **state)
{
    struct heard heard = {.n_updates = 0};

    (void)state;
    make();
    put("a:1");
    put("b:1");
    put("c:1");
    struct bow_etcd_watch *watch = watch_it(&heard);
    run();
    fake.fragments = true;
    fake_etcd_delete_two(&fake, "shop/a:1", "shop/b:1");
    run();
    assert_string_equal(heard.last, "c:1 ");
    assert_int_equal(heard.n_updates, 2);
    end_watch(watch, &heard);
}

static void test_etcd_watch_reads_whatever_metadata(void **state)
{
    struct heard heard = {.n_updates = 0};
    char value[256];

    (void)state;
    make();
    (void)snprintf(value, sizeof(value), JSON, "a:1", "\"a text\"");
    fake_etcd_put(&fake, "shop/a:1", value);
    (void)snprintf(value, sizeof(value), JSON, "b:1", "{\"weight\":[1,{}],\"zone\":\"x\"}");
    fake_etcd_put(&fake, "shop/b:1", value);
    fake_etcd_put(&fake, "shop/c:1", "{\"Addr\":\"c:1\",\"Unknown\":7}");
    struct bow_etcd_watch *watch = watch_it(&heard);
    run();
    assert_string_equal(heard.last, "a:1 b:1 c:1 ");
    end_watch(watch, &heard);
}

static void test_etcd_watch_leaves_out_what_is_no_server(void **state)
{
    static const char *const values[] = {
        "",
        "{",
        "a:1",
        "{\"Addr\":\"\"}",
        "{\"Addr\":\"a\"}",
        "{\"Addr\":\"a:0\"}",
        "{\"Addr\":\"a:65536\"}",
        "{\"Addr\":\"a:1,b:2\"}",
        "{\"Addr\":\"list:a:1\"}",
        "{\"Addr\":\"dns:///a:1\"}",
        "{\"Addr\":\"a b:1\"}",
        "{\"Addr\":\":1\"}",
        "{\"Addr\":\"[::1:1\"}",
        "{\"Addr\":\"unix:\"}",
    };
    struct heard heard = {.n_updates = 0};
    char key[32];

    (void)state;
    make();
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
        (void)snprintf(key, sizeof(key), "shop/%02zu", i);
        fake_etcd_put(&fake, key, values[i]);
    }
    fake_etcd_put(&fake, "shop/x", "{\"Addr\":\"[::1]:1\"}");
    fake_etcd_put(&fake, "shop/y", "{\"Addr\":\"unix:/run/y\"}");
    struct bow_etcd_watch *watch = watch_it(&heard);
    run();
    assert_string_equal(heard.last, "[::1]:1 unix:/run/y ");
    assert_non_null(strstr(logged, "shop/00 is left out, its value is no server"));
    fake_etcd_put(&fake, "shop/x", "of no use any more");
    run();
    assert_string_equal(heard.last, "unix:/run/y ");
    end_watch(watch, &heard);
}

static void test_etcd_watch_ends_inside_its_update(void **state)
{
    struct heard heard = {.ends_inside = true};

    (void)state;
    make();
    put("a:1");
    (void)watch_it(&heard);
    run();
    put("b:1");
    run();
    assert_int_equal(heard.n_updates, 1);
    assert_int_equal(heard.n_closed, 1);
}

/* Tokens */

static void make_user(const char *password)
{
    struct bow_etcd_options options = fake_etcd_options(&fake);

    options.user = "shop";
    options.password = password;
    options.plaintext = true;
    fake.token = "first";
    fake.password = "secret";
    assert_int_equal(bow_etcd_new(&options, &etcd), 0);
}

static void test_etcd_token_is_fetched_and_replaced(void **state)
{
    struct heard heard = {.n_updates = 0};

    (void)state;
    make_user("secret");
    put("a:1");
    struct bow_etcd_watch *watch = watch_it(&heard);
    run();
    assert_string_equal(heard.last, "a:1 ");
    assert_int_equal(fake.n_logins, 1);
    fake.token = "second"; /* the first is none any more */
    fake_etcd_cancel_watches(&fake, "rpc error: code = Unauthenticated desc = invalid auth token");
    put("b:1");
    advance(10 * SECOND);
    assert_string_equal(heard.last, "a:1 b:1 ");
    assert_true(fake.n_logins >= 2);
    assert_int_equal(heard.n_errors, 0); /* nobody had to hear of it */
    end_watch(watch, &heard);
}

static void test_etcd_tokens_that_are_all_refused_are_asked_for_in_pauses(void **state)
{
    struct heard heard = {.n_updates = 0};

    (void)state;
    make_user("secret");
    put("a:1");
    fake.n_to_fail = 200;
    fake.code = BOW_UNAUTHENTICATED;
    fake.message = "etcdserver: invalid auth token";
    struct bow_etcd_watch *watch = watch_it(&heard);
    advance(10 * SECOND);
    assert_in_range(fake.n_logins, 2, 20);
    assert_true(heard.n_errors > 0);
    fake.n_to_fail = 0;
    advance(10 * SECOND);
    assert_string_equal(heard.last, "a:1 ");
    end_watch(watch, &heard);
}

static void test_etcd_token_is_asked_for_once_for_all(void **state)
{
    struct heard one = {.n_updates = 0};
    struct heard two = {.n_updates = 0};
    struct bow_etcd_watch *other;

    (void)state;
    make_user("secret");
    put("a:1");
    struct bow_etcd_watch *watch = watch_it(&one);
    assert_int_equal(bow_etcd_watch(etcd, "other", &watch_events, &two, &other), 0);
    run();
    assert_int_equal(one.n_updates, 1);
    assert_int_equal(two.n_updates, 1);
    assert_int_equal(fake.n_logins, 1);
    end_watch(watch, &one);
    end_watch(other, &two);
}

static void test_etcd_wrong_password_is_told(void **state)
{
    struct heard heard = {.n_updates = 0};

    (void)state;
    make_user("wrong");
    put("a:1");
    struct bow_etcd_watch *watch = watch_it(&heard);
    run();
    assert_non_null(strstr(heard.last, "authentication failed"));
    fake.password = "wrong"; /* somebody has put it right */
    advance(10 * SECOND);
    assert_string_equal(heard.last, "a:1 ");
    end_watch(watch, &heard);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_etcd_watch_tells_what_is_there_and_each_change),
        TEST(test_etcd_watch_of_none_tells_so),
        TEST(test_etcd_watches_of_one_service_share),
        TEST(test_etcd_watch_reads_pages),
        TEST(test_etcd_watch_tells_of_so_many_servers),
        TEST(test_etcd_value_has_its_bounds),
        TEST(test_etcd_watch_survives_compaction),
        TEST(test_etcd_watch_keeps_what_is_known_while_etcd_is_away),
        TEST(test_etcd_watch_tells_another_reason),
        TEST(test_etcd_watch_tells_when_etcd_is_back_and_nothing_changed),
        TEST(test_etcd_watch_tells_an_error_before_anything_is_known),
        TEST(test_etcd_watch_that_is_not_answered_begins_anew),
        TEST(test_etcd_watch_follows_progress),
        TEST(test_etcd_watch_tells_a_revision_as_a_whole),
        TEST(test_etcd_watch_reads_whatever_metadata),
        TEST(test_etcd_watch_leaves_out_what_is_no_server),
        TEST(test_etcd_watch_ends_inside_its_update),
        TEST(test_etcd_token_is_fetched_and_replaced),
        TEST(test_etcd_tokens_that_are_all_refused_are_asked_for_in_pauses),
        TEST(test_etcd_token_is_asked_for_once_for_all),
        TEST(test_etcd_wrong_password_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
