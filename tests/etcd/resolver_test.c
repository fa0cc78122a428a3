/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Clients of "etcd:///shop": which servers their calls reach as these come and go in an etcd that
 * the test plays, what stays while it is away, and the end of each of both in any order.
 */

#include "etcd_fixture.h"

#include <bowline/client.h>
#include <bowline/resolver.h>
#include <bowline/server.h>

#define SHOPS 3
#define CALLS 12

/* Servers at "inproc:1" and so on, that count. */
static struct shop {
    struct bow_server *server;
    int n_calls;
} shops[SHOPS];

/* What became of calls. */
static int n_good;
static int n_bad;
static char why[512];

static void serve_put(struct bow_call *call, const Bow__Etcd__PutRequest *request, void *user)
{
    Bow__Etcd__PutResponse response = BOW__ETCD__PUT_RESPONSE__INIT;

    (void)request;
    ((struct shop *)user)->n_calls++;
    (void)bow__etcd__kv__put__reply(call, &response);
}

static int open_shop(struct bow_test *of, int i)
{
    static const struct bow__etcd__kv__handlers handlers = {.put = serve_put};
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    char address[32];

    (void)snprintf(address, sizeof(address), "inproc:%d", i + 1);
    options.context = bow_test_context(of);
    options.loop = bow_test_loop(of);
    options.listen = address;
    shops[i] = (struct shop){.n_calls = 0};
    int rc = bow_server_new(&options, &shops[i].server);
    rc = rc == 0 ? bow__etcd__kv__serve(shops[i].server, &handlers, &shops[i]) : rc;
    return rc == 0 ? bow_server_start(shops[i].server) : rc;
}

static void close_shop(struct bow_test *of, int i)
{
    if (shops[i].server != NULL) {
        bow_server_stop(shops[i].server);
        (void)bow_test_advance(of, 60 * SECOND);
        bow_server_free(shops[i].server);
        shops[i].server = NULL;
    }
}

static int setup_shops(void **state)
{
    int rc = setup(state);

    n_good = n_bad = 0;
    for (int i = 0; i < SHOPS && rc == 0; i++) {
        rc = open_shop(test, i);
    }
    make();
    return rc;
}

static int teardown_shops(void **state)
{
    (void)bow_test_run(test);
    for (int i = 0; i < SHOPS; i++) {
        close_shop(test, i);
    }
    return teardown(state);
}

#define SHOP_TEST(name) cmocka_unit_test_setup_teardown(name, setup_shops, teardown_shops)

static int new_client(struct bow_loop *loop, const char *target, struct bow_client **ret_client)
{
    const struct bow_resolver *const resolvers[] = {bow_etcd_resolver(etcd)};
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;

    options.context = bow_loop_context(loop);
    options.loop = loop;
    options.target = target;
    options.resolvers = resolvers;
    options.n_resolvers = 1;
    return bow_client_new(&options, ret_client);
}

static struct bow_client *client_of(const char *target)
{
    struct bow_client *client;

    assert_int_equal(new_client(bow_test_loop(test), target, &client), 0);
    return client;
}

static void on_result(struct bow_result *result, const Bow__Etcd__PutResponse *response, void *user)
{
    (void)response;
    (void)user;
    n_good += result->status.code == BOW_OK;
    n_bad += result->status.code != BOW_OK;
    (void)snprintf(why, sizeof(why), "%s", result->status.message);
}

static void begin_call(struct bow_client *client)
{
    Bow__Etcd__PutRequest request = BOW__ETCD__PUT_REQUEST__INIT;
    uint64_t call;

    n_bad += bow__etcd__kv__put__start(client, &request, NULL, on_result, NULL, &call) < 0;
}

/* How many of some calls reached each shop, "6 6 0", once there are connections. */
static const char *spread(struct bow_client *client)
{
    static char text[64];

    text[0] = '\0';
    begin_call(client);
    run();
    for (int i = 0; i < SHOPS; i++) {
        shops[i].n_calls = 0;
    }
    for (int i = 0; i < CALLS; i++) {
        begin_call(client);
        run();
    }
    for (int i = 0; i < SHOPS; i++) {
        size_t len = strlen(text);
        (void)snprintf(text + len, sizeof(text) - len, "%s%d", i > 0 ? " " : "", shops[i].n_calls);
    }
    return text;
}

static void free_client(struct bow_client *client)
{
    bow_client_free(client);
    run();
    assert_int_equal(fake_etcd_n_watches(&fake), 0);
}

/* Servers */

static void test_etcd_client_follows_servers_that_come_and_go(void **state)
{
    (void)state;
    put("inproc:1");
    struct bow_client *client = client_of("etcd:///shop");
    assert_string_equal(spread(client), "12 0 0");
    put("inproc:2");
    put("inproc:3");
    run();
    assert_string_equal(spread(client), "4 4 4");
    fake_etcd_delete(&fake, "shop/inproc:1");
    run();
    assert_string_equal(spread(client), "0 6 6");
    assert_int_equal(fake.n_ranges, 1);
    assert_int_equal(n_good, 3 * (CALLS + 1));
    free_client(client);
}

static void test_etcd_client_waits_for_the_first_answer(void **state)
{
    (void)state;
    put("inproc:1");
    struct bow_client *client = client_of("etcd:///shop");
    begin_call(client);
    assert_int_equal(n_good + n_bad, 0);
    run();
    assert_int_equal(n_good, 1);
    free_client(client);
}

static void test_etcd_client_of_a_service_without_servers_says_so(void **state)
{
    (void)state;
    struct bow_client *client = client_of("etcd:///shop");
    begin_call(client);
    run();
    assert_int_equal(n_bad, 1);
    assert_non_null(strstr(why, "it has no addresses"));
    put("inproc:2");
    run();
    assert_string_equal(spread(client), "0 12 0");
    free_client(client);
}

static void test_etcd_client_uses_the_good_of_a_set(void **state)
{
    char path[160];

    (void)state;
    memset(path, 'x', sizeof(path));
    memcpy(path, "unix:/", 6);
    path[sizeof(path) - 1] = '\0';
    char value[256];
    (void)snprintf(value, sizeof(value), JSON, path, "null");
    fake_etcd_put(&fake, "shop/long", value); /* too long for a socket's */
    put("fd:3");
    put("inproc:3");
    struct bow_client *client = client_of("etcd:///shop");
    assert_string_equal(spread(client), "0 0 12");
    free_client(client);
}

static void test_etcd_client_has_no_other_etcd(void **state)
{
    (void)state;
    put("inproc:1");
    struct bow_client *client = client_of("etcd://elsewhere/shop");
    begin_call(client);
    run();
    assert_int_equal(n_bad, 1);
    assert_non_null(strstr(why, "EINVAL"));
    free_client(client);
}

/* Errors */

static void lose_etcd(void)
{
    fake.n_to_fail = 1000000;
    fake.code = BOW_UNAVAILABLE;
    fake.message = "the test plays dead";
    fake_etcd_end_watches(&fake, BOW_UNAVAILABLE);
    run();
}

static void test_etcd_client_keeps_what_is_known_while_etcd_is_away(void **state)
{
    (void)state;
    put("inproc:1");
    put("inproc:2");
    struct bow_client *client = client_of("etcd:///shop");
    assert_string_equal(spread(client), "6 6 0");
    lose_etcd();
    put("inproc:3");
    advance(60 * SECOND);
    assert_string_equal(spread(client), "6 6 0");
    assert_non_null(strstr(logged, "the addresses known so far stay in use"));
    fake.n_to_fail = 0;
    advance(10 * SECOND);
    assert_string_equal(spread(client), "4 4 4");
    free_client(client);
}

/* What one has learnt, another that comes later has at once. */
static void test_etcd_client_that_comes_while_etcd_is_away_has_what_is_known(void **state)
{
    (void)state;
    put("inproc:1");
    struct bow_client *first = client_of("etcd:///shop");
    assert_string_equal(spread(first), "12 0 0");
    lose_etcd();
    struct bow_client *second = client_of("etcd:///shop");
    assert_string_equal(spread(second), "12 0 0");
    bow_client_free(first);
    free_client(second);
}

static void test_etcd_client_says_why_it_knows_nothing(void **state)
{
    (void)state;
    put("inproc:1");
    fake.n_to_fail = 1000000;
    fake.code = BOW_PERMISSION_DENIED;
    fake.message = "etcdserver: permission denied";
    struct bow_client *client = client_of("etcd:///shop");
    begin_call(client);
    run();
    assert_int_equal(n_bad, 1);
    assert_non_null(strstr(why, "PERMISSION_DENIED: etcdserver: permission denied"));
    advance(60 * SECOND);
    begin_call(client); /* asks again, and the same is told again */
    run();
    assert_int_equal(n_bad, 2);
    fake.n_to_fail = 0;
    advance(10 * SECOND);
    assert_string_equal(spread(client), "12 0 0");
    free_client(client);
}

static void test_etcd_client_with_a_server_that_fails_is_told_again(void **state)
{
    (void)state;
    put("inproc:1");
    put("inproc:2");
    struct bow_client *client = client_of("etcd:///shop");
    assert_string_equal(spread(client), "6 6 0");
    close_shop(test, 0);
    advance(60 * SECOND);
    assert_string_equal(spread(client), "0 12 0");
    assert_int_equal(open_shop(test, 0), 0);
    advance(60 * SECOND);
    assert_string_equal(spread(client), "6 6 0");
    free_client(client);
}

/* Ends */

static void test_etcd_stop_leaves_clients_what_they_know(void **state)
{
    (void)state;
    put("inproc:1");
    struct bow_client *client = client_of("etcd:///shop");
    assert_string_equal(spread(client), "12 0 0");
    assert_int_equal(bow_etcd_stop(etcd, 5 * SECOND), 0);
    assert_string_equal(spread(client), "12 0 0");
    assert_non_null(strstr(logged, "bow_etcd_stop(), or the end of its loop, has ended its watch"));
    struct bow_client *late = client_of("etcd:///shop");
    begin_call(late);
    run();
    assert_int_equal(n_bad, 1);
    assert_non_null(strstr(why, "ESHUTDOWN"));
    bow_client_free(late);
    free_client(client);
}

static void test_etcd_client_ends_at_every_step(void **state)
{
    (void)state;
    put("inproc:1");
    for (int n_turns = 0; n_turns < 40; n_turns++) {
        struct bow_client *client = client_of("etcd:///shop");
        begin_call(client);
        for (int i = 0; i < n_turns; i++) {
            assert_int_equal(bow_loop_run_once(bow_test_loop(test), 0), 0);
        }
        free_client(client);
        assert_int_equal(n_good + n_bad, n_turns + 1);
    }
    assert_true(n_good > 0);
    assert_true(n_bad > 0);
}

/* Loops */

static void run_both(struct bow_loop *other)
{
    for (int i = 0; i < 50; i++) {
        run();
        assert_int_equal(bow_loop_run_once(other, 0), 0);
    }
}

static void test_etcd_client_on_another_loop(void **state)
{
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;
    struct bow_client *client;
    struct bow_loop *other;

    (void)state;
    options.thread = BOW_LOOP_OWNER;
    assert_int_equal(bow_loop_new(bow_test_context(test), &options, &other), 0);
    put("inproc:1");
    assert_int_equal(new_client(other, "etcd:///shop", &client), 0);
    begin_call(client);
    run_both(other);
    assert_int_equal(shops[0].n_calls, 1);
    put("inproc:2");
    fake_etcd_delete(&fake, "shop/inproc:1");
    run_both(other);
    begin_call(client);
    run_both(other);
    assert_int_equal(shops[0].n_calls, 1);
    assert_int_equal(shops[1].n_calls, 1);
    put("inproc:3");
    run(); /* it is on its way to the client, whose loop ends */
    (void)bow_loop_unref(other);
    bow_client_free(client);
    run();
    assert_int_equal(fake_etcd_n_watches(&fake), 0);
}

/* Each allocation that fails */

static int all_of_it(struct bow_test *each, void *user)
{
    static struct fake_etcd etcd_of_each;
    struct bow_client *client = NULL;

    (void)user;
    n_good = n_bad = 0;
    etcd = NULL;
    if (fake_etcd_start(&etcd_of_each, each) < 0) {
        return 0;
    }
    struct bow_etcd_options made = fake_etcd_options(&etcd_of_each);
    fake_etcd_put(&etcd_of_each, "shop/1", "{\"Addr\":\"inproc:1\"}");
    bool is_made = open_shop(each, 0) == 0 && bow_etcd_new(&made, &etcd) == 0 &&
                   new_client(bow_test_loop(each), "etcd:///shop", &client) == 0;
    if (is_made) {
        begin_call(client);
        (void)bow_test_advance(each, 60 * SECOND);
        bow_test_fail_allocations(each, 0);
        (void)bow_test_advance(each, 60 * SECOND);
        n_good = 0;
        begin_call(client);
        (void)bow_test_advance(each, 60 * SECOND);
    }
    bow_client_free(client);
    (void)bow_test_advance(each, 60 * SECOND);
    bow_etcd_unref(etcd);
    etcd = NULL;
    (void)bow_test_advance(each, 60 * SECOND);
    close_shop(each, 0);
    bow_test_pair_free(each, etcd_of_each.pair);
    return !is_made || n_good == 1 ? 0 : -EPROTO;
}

static void test_etcd_client_each_allocation_may_fail(void **state)
{
    (void)state;
    assert_true(bow_test_fail_each(all_of_it, NULL) > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SHOP_TEST(test_etcd_client_follows_servers_that_come_and_go),
        SHOP_TEST(test_etcd_client_waits_for_the_first_answer),
        SHOP_TEST(test_etcd_client_of_a_service_without_servers_says_so),
        SHOP_TEST(test_etcd_client_uses_the_good_of_a_set),
        SHOP_TEST(test_etcd_client_has_no_other_etcd),
        SHOP_TEST(test_etcd_client_keeps_what_is_known_while_etcd_is_away),
        SHOP_TEST(test_etcd_client_that_comes_while_etcd_is_away_has_what_is_known),
        SHOP_TEST(test_etcd_client_says_why_it_knows_nothing),
        SHOP_TEST(test_etcd_client_with_a_server_that_fails_is_told_again),
        SHOP_TEST(test_etcd_stop_leaves_clients_what_they_know),
        SHOP_TEST(test_etcd_client_ends_at_every_step),
        SHOP_TEST(test_etcd_client_on_another_loop),
        cmocka_unit_test(test_etcd_client_each_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
