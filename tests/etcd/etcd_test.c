/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Registrations, watches and locks with an etcd that the test plays, on the test's clock: what is
 * told when, what is asked again after what, and how all of it ends.
 */

#include "fake_etcd.h"

#include <bowline/limits.h>
#include <bowline/loop.h>
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)
#define JSON "{\"Op\":0,\"Addr\":\"%s\",\"Metadata\":%s}"

/* All that was told to one who listens, as texts. */
struct heard {
    char last[4096]; /* of a watch: "ADDRESS ADDRESS " or "error: …"; else the last event */
    int n_updates;
    int n_errors;
    int n_closed;
    int n_registered;
    int n_acquired;
    int n_lost;
    int64_t lease;
    int64_t token;
    int64_t revision;
    bool ends_inside; /* its handle is let go of in the next event */
};

static struct bow_test *test;
static struct fake_etcd fake;
static struct bow_etcd *etcd;
static char logged[4096];

static void log_line(enum bow_log_level level, const char *line, void *user)
{
    (void)level;
    (void)user;
    size_t len = strlen(logged);
    (void)snprintf(logged + len, sizeof(logged) - len, "%s\n", line);
}

static void run(void)
{
    assert_int_equal(bow_test_run(test), 0);
}

static void advance(uint64_t ns)
{
    assert_int_equal(bow_test_advance(test, ns), 0);
}

static int setup(void **state)
{
    struct bow_test_options options = BOW_TEST_OPTIONS_INIT;

    (void)state;
    logged[0] = '\0';
    options.log = log_line;
    assert_int_equal(bow_test_new(&options, &test), 0);
    assert_int_equal(fake_etcd_start(&fake, test), 0);
    etcd = NULL;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    bow_etcd_unref(etcd);
    (void)bow_test_run(test);
    fake_etcd_stop(&fake);
    assert_int_equal(bow_test_end(test), 0);
    return 0;
}

static void make(void)
{
    struct bow_etcd_options options = fake_etcd_options(&fake);

    assert_int_equal(bow_etcd_new(&options, &etcd), 0);
}

/* Watching */

static void on_update(struct bow_etcd_watch *watch, const struct bow_etcd_update *update,
                      void *user)
{
    struct heard *heard = user;

    heard->n_updates++;
    heard->revision = update->revision;
    heard->last[0] = '\0';
    for (size_t i = 0; i < update->n_servers; i++) {
        size_t len = strlen(heard->last);
        (void)snprintf(heard->last + len, sizeof(heard->last) - len, "%s ",
                       update->servers[i].address);
    }
    if (update->error != NULL) {
        size_t len = strlen(heard->last);
        heard->n_errors++;
        (void)snprintf(heard->last + len, sizeof(heard->last) - len, "error: %s", update->error);
    }
    if (heard->ends_inside) {
        heard->ends_inside = false;
        bow_etcd_unwatch(watch);
    }
}

static void on_watch_closed(struct bow_etcd_watch *watch, void *user)
{
    (void)watch;
    ((struct heard *)user)->n_closed++;
}

static const struct bow_etcd_watch_events watch_events = {on_update, on_watch_closed};

static struct bow_etcd_watch *watch_it(struct heard *heard)
{
    struct bow_etcd_watch *watch;

    assert_int_equal(bow_etcd_watch(etcd, "shop", &watch_events, heard, &watch), 0);
    return watch;
}

static void put(const char *address)
{
    char key[64];
    char value[128];

    (void)snprintf(key, sizeof(key), "shop/%s", address);
    (void)snprintf(value, sizeof(value), JSON, address, "null");
    fake_etcd_put(&fake, key, value);
}

static void end_watch(struct bow_etcd_watch *watch, struct heard *heard)
{
    bow_etcd_unwatch(watch);
    run();
    assert_int_equal(heard->n_closed, 1);
}

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
    assert_int_equal(heard.n_errors, 1); /* once, not each try */
    assert_memory_equal(heard.last, "a:1 error: asking etcd at ", 26);
    put("b:1");
    bow_test_refuse(test, false);
    advance(10 * SECOND);
    assert_string_equal(heard.last, "a:1 b:1 ");
    assert_int_equal(fake.n_ranges, 1); /* it went on where it was */
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

/* Registering */

static void on_registered(struct bow_etcd_registration *registration, int64_t lease, void *user)
{
    struct heard *heard = user;

    heard->n_registered++;
    heard->lease = lease;
    if (heard->ends_inside) {
        heard->ends_inside = false;
        bow_etcd_unregister(registration);
    }
}

static void on_registration_lost(struct bow_etcd_registration *registration, const char *why,
                                 void *user)
{
    struct heard *heard = user;

    (void)registration;
    heard->n_lost++;
    (void)snprintf(heard->last, sizeof(heard->last), "%s", why);
}

static void on_registration_error(struct bow_etcd_registration *registration,
                                  const struct bow_status *status, void *user)
{
    struct heard *heard = user;

    (void)registration;
    heard->n_errors++;
    (void)snprintf(heard->last, sizeof(heard->last), "%s", status->message);
}

static void on_registration_closed(struct bow_etcd_registration *registration, void *user)
{
    (void)registration;
    ((struct heard *)user)->n_closed++;
}

static const struct bow_etcd_registration_events registration_events = {
    on_registered, on_registration_lost, on_registration_error, on_registration_closed};

static struct bow_etcd_registration_options mine(struct heard *heard)
{
    struct bow_etcd_registration_options options = BOW_ETCD_REGISTRATION_OPTIONS_INIT;

    options.service = "shop";
    options.address = "10.0.0.7:50051";
    options.ttl_s = 9;
    options.events = &registration_events;
    options.user = heard;
    return options;
}

static struct bow_etcd_registration *register_it(struct heard *heard)
{
    struct bow_etcd_registration_options options = mine(heard);
    struct bow_etcd_registration *registration;

    assert_int_equal(bow_etcd_register(etcd, &options, &registration), 0);
    return registration;
}

static void end_registration(struct bow_etcd_registration *registration, struct heard *heard)
{
    bow_etcd_unregister(registration);
    run();
    assert_int_equal(heard->n_closed, 1);
}

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
    static const struct bow_etcd_watch_events events = {on_full_update, on_watch_closed};
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
    assert_int_equal(heard.n_lost, 1);
    assert_string_equal(heard.last, "etcd has the lease no more");
    assert_int_equal(heard.n_registered, 2);
    assert_true(heard.lease != first);
    assert_non_null(fake_etcd_get(&fake, "shop/10.0.0.7:50051"));
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

/* Locks */

static void on_acquired(struct bow_etcd_lock *lock, int64_t token, void *user)
{
    struct heard *heard = user;

    heard->n_acquired++;
    heard->token = token;
    if (heard->ends_inside) {
        heard->ends_inside = false;
        bow_etcd_unlock(lock);
    }
}

static void on_lock_lost(struct bow_etcd_lock *lock, const char *why, void *user)
{
    struct heard *heard = user;

    (void)lock;
    heard->n_lost++;
    (void)snprintf(heard->last, sizeof(heard->last), "%s", why);
}

static void on_lock_error(struct bow_etcd_lock *lock, const struct bow_status *status, void *user)
{
    (void)lock;
    (void)status;
    ((struct heard *)user)->n_errors++;
}

static void on_lock_closed(struct bow_etcd_lock *lock, void *user)
{
    (void)lock;
    ((struct heard *)user)->n_closed++;
}

static struct bow_etcd_lock *lock_it(struct heard *heard)
{
    static const struct bow_etcd_lock_events events = {on_acquired, on_lock_lost, on_lock_error,
                                                       on_lock_closed};
    struct bow_etcd_lock_options options = BOW_ETCD_LOCK_OPTIONS_INIT;
    struct bow_etcd_lock *lock;

    options.name = "leader";
    options.value = "me";
    options.ttl_s = 9;
    options.events = &events;
    options.user = heard;
    assert_int_equal(bow_etcd_lock(etcd, &options, &lock), 0);
    return lock;
}

static void end_lock(struct bow_etcd_lock *lock, struct heard *heard)
{
    bow_etcd_unlock(lock);
    run();
    assert_int_equal(heard->n_closed, 1);
}

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
    static const struct bow_etcd_lock_events events = {on_acquired, on_lock_lost, on_lock_error,
                                                       on_lock_closed};
    wanted.name = "leader";
    wanted.events = &events;
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_etcd_watch_tells_what_is_there_and_each_change),
        TEST(test_etcd_watch_of_none_tells_so),
        TEST(test_etcd_watches_of_one_service_share),
        TEST(test_etcd_watch_reads_pages),
        TEST(test_etcd_watch_survives_compaction),
        TEST(test_etcd_watch_keeps_what_is_known_while_etcd_is_away),
        TEST(test_etcd_watch_tells_when_etcd_is_back_and_nothing_changed),
        TEST(test_etcd_watch_tells_an_error_before_anything_is_known),
        TEST(test_etcd_watch_that_is_not_answered_begins_anew),
        TEST(test_etcd_watch_follows_progress),
        TEST(test_etcd_watch_tells_a_revision_as_a_whole),
        TEST(test_etcd_watch_reads_whatever_metadata),
        TEST(test_etcd_watch_leaves_out_what_is_no_server),
        TEST(test_etcd_watch_ends_inside_its_update),
        TEST(test_etcd_token_is_fetched_and_replaced),
        TEST(test_etcd_token_is_asked_for_once_for_all),
        TEST(test_etcd_wrong_password_is_told),
        TEST(test_etcd_register_puts_the_key_of_naming),
        TEST(test_etcd_watch_tells_what_was_registered),
        TEST(test_etcd_go_zero_layout_both_ways),
        TEST(test_etcd_registration_renews_at_a_third),
        TEST(test_etcd_registration_comes_back_after_its_lease),
        TEST(test_etcd_registration_outlives_etcd),
        TEST(test_etcd_renewal_without_answer_goes_over_another_stream),
        TEST(test_etcd_registration_ends_inside_its_event),
        TEST(test_etcd_registration_ends_at_every_step),
        TEST(test_etcd_unregister_while_etcd_is_away_ends),
        TEST(test_etcd_registration_refuses_what_is_of_no_use),
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
        TEST(test_etcd_new_says_what_is_wrong),
        cmocka_unit_test(test_etcd_each_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
