/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A client of a name in the DNS, asked of a server that says what the test wants: all addresses,
 * changes, failures, silence, answers that are too long for a packet, links and SRV.
 *
 * The servers are at one port of 127.0.0.1, 127.0.0.2 and 127.0.0.3, for a name has no ports.
 */

#include "dns_server.h"
#include "list_fixture.h"

#include <bowline/limits.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct dns_server dns;
static const char *port; /* of all servers */
static const char *const hosts[LIST_SERVERS] = {"127.0.0.1", "127.0.0.2", "127.0.0.3"};

/* Over all of a host's loopback addresses; the port may be taken at one of them. */
static bool move_servers(struct list *list)
{
    for (int i = 1; i < LIST_SERVERS; i++) {
        struct calls *t = list->servers[i];
        struct bow_server_options options;
        list_kill_server(list, i);
        snprintf(t->address, sizeof(t->address), "%s:%s", hosts[i], port);
        calls_server_options(t, &options);
        if (calls_try_server(t, &options, &t->server) < 0) {
            return false;
        }
    }
    return true;
}

static int setup(void **state)
{
    list_setup(state);
    for (;;) {
        struct list *list = *state;
        port = strrchr(list->servers[0]->address, ':') + 1;
        if (move_servers(list)) {
            break;
        }
        list_teardown(state);
        list_setup(state);
    }
    dns_server_start(&dns);
    return 0;
}

static int teardown(void **state)
{
    list_teardown(state);
    dns_server_stop(&dns);
    return 0;
}

/* What the name has: the first of servers `from` to below `to`. */
static void know(const char *name, int from, int to, uint32_t ttl)
{
    struct dns_answer *answer = dns_server_lock(&dns, name);

    for (int i = from; i < to; i++) {
        dns_answer_add(answer, DNS_A, ttl, hosts[i]);
    }
    dns_server_unlock(&dns);
}

static void fail_name(const char *name, int rcode)
{
    dns_server_lock(&dns, name)->rcode = rcode;
    dns_server_unlock(&dns);
}

static void silence(const char *name)
{
    dns_server_lock(&dns, name)->is_silent = true;
    dns_server_unlock(&dns);
}

static void ask_our_server(struct bow_client_options *options)
{
    options->dns_servers = dns.address;
    options->dns_min_ttl_ns = 5 * MS;
    options->plaintext = true;
}

static void name_target(struct list *list, const char *format, const char *more)
{
    char text[128];

    snprintf(text, sizeof(text), format, more);
    snprintf(list->target, sizeof(list->target), "%s%s", calls_is_grpc() ? "grpc:" : "", text);
}

static void new_client(struct list *list)
{
    name_target(list, "dns:///shop.test:%s", port);
    list_new_client(list, ask_our_server);
}

static void reach_all(struct list *list)
{
    for (int i = 0; i < LIST_SERVERS; i++) {
        list_say_until(list, i, list_said(list, i) + 1);
    }
}

static void test_dns_all_addresses_take_calls(void **state)
{
    know("shop.test", 0, LIST_SERVERS, 60);
    new_client(*state);
    reach_all(*state);
}

/* A TTL of 0 is looked up again as often as the client's options allow. */
static void test_dns_changes_are_followed(void **state)
{
    struct list *list = *state;

    know("shop.test", 0, 1, 0);
    new_client(list);
    list_say_until(list, 0, 5);
    assert_int_equal(list_said(list, 1), 0);
    know("shop.test", 1, 3, 0);
    list_say_until(list, 1, 1);
    list_say_until(list, 2, 1);
    know("shop.test", 0, 1, 0);
    list_say_until(list, 0, list_said(list, 0) + 1);
}

static void test_dns_is_not_asked_before_the_ttl(void **state)
{
    struct list *list = *state;

    know("shop.test", 0, 1, 3600);
    new_client(list);
    list_say_until(list, 0, 200);
    assert_int_equal(dns_server_asked(&dns, "shop.test"), 2); /* A, AAAA */
}

/* What is known stays in use, whatever is said later. */
static void test_dns_name_that_vanishes_keeps_its_addresses(void **state)
{
    static const int rcodes[] = {2 /* SERVFAIL */, 3 /* NXDOMAIN */, 5 /* REFUSED */, 0};
    struct list *list = *state;

    know("shop.test", 0, LIST_SERVERS, 0);
    new_client(list);
    reach_all(list);
    for (size_t i = 0; i < sizeof(rcodes) / sizeof(rcodes[0]); i++) {
        fail_name("shop.test", rcodes[i]);
        int before = dns_server_asked(&dns, "shop.test");
        do {
            assert_int_equal(list_say(list, NULL), BOW_OK);
        } while (dns_server_asked(&dns, "shop.test") < before + 2);
        reach_all(list);
        know("shop.test", 0, LIST_SERVERS, 0);
        list_free_client(list);
        new_client(list);
        reach_all(list);
    }
}

static void expect_unavailable(struct list *list, const char *words)
{
    assert_int_equal(list_say(list, NULL), BOW_UNAVAILABLE);
    list_expect_words(list, "resolving ");
    list_expect_words(list, words);
}

static void test_dns_failure_says_what_was_asked(void **state)
{
    struct list *list = *state;

    fail_name("shop.test", 2);
    new_client(list);
    expect_unavailable(list, "dns:///shop.test");
    list_expect_words(list, "the addresses of shop.test: no DNS server answers");
    know("shop.test", 0, 1, 60);
    while (list_say(list, NULL) != BOW_OK) {
    }
    list_free_client(list);
    name_target(list, "dns:///not-there.test:%s", port);
    list_new_client(list, ask_our_server);
    expect_unavailable(list, "the addresses of not-there.test: Domain name not found");
}

static void test_dns_silence_is_no_other_names(void **state)
{
    struct list *list = *state;
    struct calls *t = list->t;
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_client *silent;

    silence("silent.test");
    know("shop.test", 0, 1, 60);
    name_target(list, "dns:///silent.test:%s", port);
    list_new_client(list, ask_our_server);
    silent = t->client;
    assert_int_equal(calls__echo__say__start(silent, &request, NULL, calls_on_done, t, NULL), 0);
    new_client(list); /* on the same loop */
    for (int n = 0; n < 10; n++) {
        assert_int_equal(list_say(list, NULL), BOW_OK);
    }
    assert_int_equal(t->n_done, 0);
    bow_client_free(silent);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->result.status.code, BOW_CANCELLED);
}

static void test_dns_deadline_says_that_the_name_was_not_resolved(void **state)
{
    struct list *list = *state;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;

    silence("shop.test");
    new_client(list);
    options.timeout_ns = 20 * MS;
    assert_int_equal(list_say(list, &options), BOW_DEADLINE_EXCEEDED);
    list_expect_words(list, "passed while resolving the name of ");
    list_expect_words(list, "dns:///shop.test");
}

static void test_dns_truncated_answers_are_asked_for_by_tcp(void **state)
{
    struct list *list = *state;

    know("shop.test", 0, LIST_SERVERS, 60);
    pthread_mutex_lock(&dns.lock);
    dns.answers[0].is_truncated = true;
    pthread_mutex_unlock(&dns.lock);
    new_client(list);
    reach_all(list);
    assert_true(dns.answers[0].n_asked_by_tcp > 0);
}

static void test_dns_links_are_followed_and_their_ttl_counts(void **state)
{
    struct list *list = *state;
    struct dns_answer *answer = dns_server_lock(&dns, "shop.test");

    dns_answer_add(answer, DNS_CNAME, 0, "alias.test");
    dns_server_unlock(&dns);
    answer = dns_server_lock(&dns, "alias.test");
    dns_answer_add(answer, DNS_CNAME, 3600, "real.test");
    dns_server_unlock(&dns);
    know("real.test", 0, 1, 3600);
    know("other.test", 1, 2, 3600);
    new_client(list);
    list_say_until(list, 0, 1);
    answer = dns_server_lock(&dns, "shop.test");
    dns_answer_add(answer, DNS_CNAME, 0, "other.test");
    dns_server_unlock(&dns);
    list_say_until(list, 1, 1);
}

static void test_dns_ipv6_alone(void **state)
{
    struct list *list = *state;
    struct calls *t = list->servers[1];
    struct bow_server_options options;

    list_kill_server(list, 1);
    snprintf(t->address, sizeof(t->address), "[::1]:%s", port);
    calls_server_options(t, &options);
    if (calls_try_server(t, &options, &t->server) < 0) {
        print_message("skipped: no server can listen on %s here\n", t->address);
        skip();
    }
    struct dns_answer *answer = dns_server_lock(&dns, "shop.test");
    dns_answer_add(answer, DNS_AAAA, 60, "::1");
    dns_server_unlock(&dns);
    new_client(list);
    list_say_until(list, 1, 1);
}

/* Ports and weights are the records'; those of a worse priority wait for the others to go. */
static void test_dns_srv_says_ports(void **state)
{
    struct list *list = *state;
    struct dns_answer *answer = dns_server_lock(&dns, "_shop._tcp.test");

    for (int i = 0; i < LIST_SERVERS; i++) {
        static const char *const targets[] = {"a.test", "b.test", "c.test"};
        answer->records[i] = (struct dns_record){.type = DNS_SRV,
                                                 .text = targets[i],
                                                 .priority = (uint16_t)(i == 0 ? 9 : 1),
                                                 .weight = 3,
                                                 .port = (uint16_t)atoi(port)};
    }
    answer->n_records = LIST_SERVERS;
    dns_server_unlock(&dns);
    know("a.test", 0, 1, 60);
    know("b.test", 1, 2, 60);
    know("c.test", 2, 3, 60);
    name_target(list, "dns:///_shop._tcp.test%s", "?srv");
    list_new_client(list, ask_our_server);
    list_say_until(list, 1, 1);
    list_say_until(list, 2, 1);
    assert_int_equal(list_said(list, 0), 0);
}

static void test_dns_srv_of_nothing_says_so(void **state)
{
    struct list *list = *state;

    know("shop.test", 0, 1, 60);
    name_target(list, "dns:///shop.test%s", "?srv");
    list_new_client(list, ask_our_server);
    expect_unavailable(list, "the SRV records of shop.test: ");
}

/* What the host says itself is not asked for. */
static void test_dns_hosts_of_the_system_count(void **state)
{
    struct list *list = *state;

    know("localhost", 1, 2, 60);
    name_target(list, "dns:///localhost:%s", port);
    list_new_client(list, ask_our_server);
    list_say_until(list, 0, 1);
    assert_int_equal(dns_server_asked(&dns, "localhost"), 0);
}

static void leave_servers_alone(struct bow_client_options *options)
{
    ask_our_server(options);
    options->dns_servers = NULL;
}

static void test_dns_server_may_stand_in_the_target(void **state)
{
    struct list *list = *state;
    char text[128];

    know("shop.test", 2, 3, 60);
    snprintf(text, sizeof(text), "dns://%s/shop.test:%%s", dns.address);
    name_target(list, text, port);
    list_new_client(list, leave_servers_alone);
    list_say_until(list, 2, 1);
}

static void ask_nobody(struct bow_client_options *options)
{
    ask_our_server(options);
    options->dns_servers = "nobody, at all";
}

static void test_dns_servers_that_are_none_are_told(void **state)
{
    struct list *list = *state;

    name_target(list, "dns:///shop.test:%s", port);
    list_new_client(list, ask_nobody);
    expect_unavailable(list, "c-ares cannot ask nobody, at all: ");
}

static void expect_refused(struct list *list, const char *target, int rc, const char *words)
{
    struct bow_client_options options;
    struct bow_transport_error error = {0};
    struct bow_client *client = NULL;

    calls_client_options(list->t, &options);
    options.target = target;
    options.error = &error;
    assert_int_equal(bow_client_new(&options, &client), rc);
    if (strstr(error.text, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", error.text, words);
    }
}

static void test_dns_targets_that_cannot_be_are_refused(void **state)
{
    struct list *list = *state;

    expect_refused(list, "dns:///shop.test:80", -EPERM, "options.plaintext");
    expect_refused(list, "dns:///localhost:80?txt", -EINVAL, "behind \"?\" stands \"srv\"");
    expect_refused(list, "dns:///localhost:99999", -EINVAL, "the port must be a number");
    expect_refused(list, "dns:///:80", -EINVAL, "write dns:///HOST:PORT");
    expect_refused(list, "dns:///a:1,b:2", -EINVAL, "several addresses stand behind \"list:\"");
    expect_refused(list, "list:dns:///localhost:1,nonsense", -EINVAL, "address 2 of the list");
}

static _Atomic(uint64_t) later_ns;

static uint64_t read_later(void *user)
{
    return bow_system_default()->now_ns(user) + later_ns;
}

/* By a clock that the test moves. */
static void test_dns_look_up_has_its_time(void **state)
{
    struct list *list = *state;
    struct calls *t = list->t;
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_system system = *bow_system_default();
    struct bow_client_options options;
    struct bow_context *context = NULL;

    system.now_ns = read_later;
    later_ns = 0;
    context_options.system = &system;
    assert_int_equal(bow_context_new(&context_options, &context), 0);
    silence("shop.test");
    name_target(list, "dns:///shop.test:%s", port);
    calls_client_options(t, &options);
    ask_our_server(&options);
    options.target = list->target;
    options.context = context;
    options.loop = NULL;
    t->client = calls_new_client(t, &options);
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_call_options patient = BOW_CALL_OPTIONS_INIT;
    patient.timeout_ns = BOW_NEVER;
    assert_int_equal(calls__echo__say__start(t->client, &request, &patient, calls_on_done, t, NULL),
                     0);
    while (dns_server_asked(&dns, "shop.test") == 0) {
        assert_int_equal(bow_client_poll(t->client, MS), 0);
    }
    later_ns = BOW_LIMIT_DNS_LOOKUP_NS;
    while (t->n_done == 0) {
        assert_int_equal(bow_client_poll(t->client, MS), 0);
    }
    assert_int_equal(t->result.status.code, BOW_UNAVAILABLE);
    list_expect_words(list, "BOW_LIMIT_DNS_LOOKUP_NS");
    list_free_client(list);
    bow_result_fini(&t->result);
    t->result = (struct bow_result)BOW_RESULT_INIT;
    bow_context_unref(context);
}

static void test_dns_without_memory_nothing_is_lost(void **state)
{
    struct list *list = *state;
    struct calls *t = list->t;

    know("shop.test", 0, LIST_SERVERS, 60);
    for (size_t n = 1; n < 40; n++) {
        new_client(list);
        t->alloc.fail_at = t->alloc.n_calls + n;
        (void)list_say(list, NULL);
        t->alloc.fail_at = 0;
        list_free_client(list); /* in whatever state it is */
        new_client(list);
        assert_int_equal(list_say(list, NULL), BOW_OK);
        list_free_client(list);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_dns_all_addresses_take_calls),
        TEST(test_dns_changes_are_followed),
        TEST(test_dns_is_not_asked_before_the_ttl),
        TEST(test_dns_name_that_vanishes_keeps_its_addresses),
        TEST(test_dns_failure_says_what_was_asked),
        TEST(test_dns_silence_is_no_other_names),
        TEST(test_dns_deadline_says_that_the_name_was_not_resolved),
        TEST(test_dns_truncated_answers_are_asked_for_by_tcp),
        TEST(test_dns_links_are_followed_and_their_ttl_counts),
        TEST(test_dns_ipv6_alone),
        TEST(test_dns_srv_says_ports),
        TEST(test_dns_srv_of_nothing_says_so),
        TEST(test_dns_hosts_of_the_system_count),
        TEST(test_dns_server_may_stand_in_the_target),
        TEST(test_dns_servers_that_are_none_are_told),
        TEST(test_dns_targets_that_cannot_be_are_refused),
        TEST(test_dns_look_up_has_its_time),
        TEST(test_dns_without_memory_nothing_is_lost),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
