/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A server that chooses by the name that its client asks for. */

#include "tests/tls/contexts.h"
#include "tests/tls/pair.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <string.h>

struct hosts {
    struct bow_tls_context *second;
    bool lets_go; /* of `second`, once it is chosen: ALPN and certificate are yet to be */
    int n_asked;
    int use_rc;
    int answer; /* what on_server_name returns when it has not chosen */
    char asked[64];
};

static int choose(struct bow_tls *tls, const char *name, void *user)
{
    struct hosts *hosts = user;

    hosts->n_asked++;
    snprintf(hosts->asked, sizeof(hosts->asked), "%s", name != NULL ? name : "(none)");
    if (hosts->second != NULL && name != NULL && strcmp(name, "second.test") == 0) {
        hosts->use_rc = bow_tls_use(tls, hosts->second);
        if (hosts->lets_go) {
            hosts->second = bow_tls_context_unref(hosts->second);
        }
        return hosts->use_rc;
    }
    return hosts->answer;
}

static void begin(struct pair *pair, struct hosts *hosts, void **state)
{
    memset(hosts, 0, sizeof(*hosts));
    pair_begin(pair, state);
    pair->server.options.on_server_name = choose;
    pair->server.options.user = hosts;
    pair->server.options.alpn = "first";
    pair->client.options.alpn = "second,first";
}

static struct bow_tls_context *new_second(struct pair *pair, void **state,
                                          struct bow_tls_context_options *options)
{
    options->certificate.certificate_file = pair_file(state, "second.pem");
    options->certificate.key_file = pair_file(state, "second.key");
    return contexts_new(pair->t.context, options);
}

static void expect_second(struct pair *pair)
{
    char subject[64];

    pair_write(&pair->client, "hello", 5);
    pair_run(pair);
    pair_assert_got(&pair->server, "hello");
    assert_int_equal(bow_tls_peer_subject(pair_tls(&pair->client), subject, sizeof(subject)), 0);
    assert_string_equal(subject, "CN=second.test");
    assert_true(bow_tls_alpn_is(pair_tls(&pair->client), "second"));
    assert_string_equal(bow_tls_server_name(pair_tls(&pair->server)), "second.test");
}

static void test_tls_l60_callback_chooses_another_context_by_name(void **state)
{
    struct pair pair;
    struct hosts hosts;
    struct bow_tls_context_options options = BOW_TLS_CONTEXT_OPTIONS_INIT;

    begin(&pair, &hosts, state);
    options.alpn = "second";
    hosts.second = new_second(&pair, state, &options);
    pair.client.tls_options.server_name = "second.test";
    hosts.lets_go = true;
    pair_open_well(&pair);
    expect_second(&pair);
    assert_int_equal(hosts.n_asked, 1);
    pair_close(&pair);

    pair.client.tls_options.server_name = "server.test";
    pair_open_well(&pair);
    assert_string_equal(hosts.asked, "server.test");
    assert_true(bow_tls_alpn_is(pair_tls(&pair.client), "first"));
    pair_end(&pair);
}

static void test_tls_l60_chosen_context_goes_on_after_its_reload(void **state)
{
    struct pair pair;
    struct hosts hosts;
    struct bow_tls_context_options options = BOW_TLS_CONTEXT_OPTIONS_INIT;

    begin(&pair, &hosts, state);
    options.alpn = "second";
    hosts.second = new_second(&pair, state, &options);
    pair.client.tls_options.server_name = "second.test";
    pair_open(&pair);
    pair_carry(&pair); /* the client's hello */
    assert_int_equal(hosts.n_asked, 1);
    assert_int_equal(bow_tls_context_reload(hosts.second, NULL), 0);
    pair_run(&pair);
    expect_second(&pair);
    bow_tls_context_unref(hosts.second);
    pair_end(&pair);
}

/* The server takes another group than the client guessed: the hello comes twice. */
static void test_tls_l60_client_that_greets_anew_is_asked_about_once(void **state)
{
    struct pair pair;
    struct hosts hosts;
    struct bow_tls_context_options options = BOW_TLS_CONTEXT_OPTIONS_INIT;

    begin(&pair, &hosts, state);
    options.alpn = "second";
    hosts.second = new_second(&pair, state, &options);
    pair.client.tls_options.server_name = "second.test";
    pair_open(&pair);
    assert_int_equal(SSL_set1_groups_list(bow_tls_ssl(pair_tls(&pair.server)), "P-384"), 1);
    pair_run(&pair);
    assert_int_equal(hosts.n_asked, 1);
    assert_int_equal(hosts.use_rc, 0);
    expect_second(&pair);
    bow_tls_context_unref(hosts.second);
    pair_end(&pair);
}

static void test_tls_l60_client_without_a_name_is_asked_about_too(void **state)
{
    struct pair pair;
    struct hosts hosts;

    begin(&pair, &hosts, state);
    pair.client.tls_options.server_name = NULL;
    pair.client.options.ca_file = NULL;
    pair.client.options.trust_anyone = true;
    pair_open_well(&pair);
    assert_int_equal(hosts.n_asked, 1);
    assert_string_equal(hosts.asked, "(none)");
    pair_end(&pair);
}

static void test_tls_l60_refused_name_is_told_to_both(void **state)
{
    struct pair pair;
    struct hosts hosts;

    begin(&pair, &hosts, state);
    hosts.answer = -ENOENT;
    pair_open(&pair);
    pair_run(&pair);
    assert_non_null(strstr(pair.server.failure, "the client asked for server.test"));
    assert_non_null(strstr(pair.server.failure, "ENOENT"));
    assert_non_null(strstr(pair.client.failure, "it knows no server of that name"));
    assert_int_equal(pair.server.probe.last_error, -EPROTO);
    pair_end(&pair);
}

/* A session that one of the two gave would vouch for its client at the other. */
static void test_tls_l60_contexts_that_ask_clients_are_not_chosen(void **state)
{
    struct pair pair;
    struct hosts hosts;
    struct bow_tls_context_options options = BOW_TLS_CONTEXT_OPTIONS_INIT;

    for (int i = 0; i < 2; i++) {
        begin(&pair, &hosts, state);
        struct bow_tls_context_options *asking = i == 0 ? &options : &pair.server.options;
        asking->clients = BOW_TLS_PEER_REQUEST;
        asking->ca_file = pair_file(state, "ca.pem");
        hosts.second = new_second(&pair, state, &options);
        pair.client.tls_options.server_name = "second.test";
        pair_open(&pair);
        pair_run(&pair);
        assert_int_equal(hosts.use_rc, -EINVAL);
        assert_non_null(strstr(pair.client.failure, "it knows no server of that name"));
        bow_tls_context_unref(hosts.second);
        pair_end(&pair);
        options = (struct bow_tls_context_options)BOW_TLS_CONTEXT_OPTIONS_INIT;
    }
}

static void test_tls_l60_choosing_elsewhere_or_a_clients_is_refused(void **state)
{
    struct pair pair;
    struct hosts hosts;
    struct bow_tls_context_options options = BOW_TLS_CONTEXT_OPTIONS_INIT;

    begin(&pair, &hosts, state);
    pair_open_well(&pair);
    hosts.second = new_second(&pair, state, &options);
    assert_int_equal(bow_tls_use(pair_tls(&pair.server), hosts.second), -EINVAL);
    assert_int_equal(bow_tls_use(pair_tls(&pair.client), hosts.second), -EINVAL);
    pair_close(&pair);
    bow_tls_context_unref(hosts.second);

    hosts.second = pair.client.context;
    pair.client.tls_options.server_name = "second.test";
    pair_open(&pair);
    pair_run(&pair);
    assert_int_equal(hosts.use_rc, -EINVAL);
    pair_end(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tls_l60_callback_chooses_another_context_by_name),
        cmocka_unit_test(test_tls_l60_chosen_context_goes_on_after_its_reload),
        cmocka_unit_test(test_tls_l60_client_that_greets_anew_is_asked_about_once),
        cmocka_unit_test(test_tls_l60_client_without_a_name_is_asked_about_too),
        cmocka_unit_test(test_tls_l60_refused_name_is_told_to_both),
        cmocka_unit_test(test_tls_l60_contexts_that_ask_clients_are_not_chosen),
        cmocka_unit_test(test_tls_l60_choosing_elsewhere_or_a_clients_is_refused),
    };
    return cmocka_run_group_tests(tests, pair_setup, pair_teardown);
}
