/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How long a session may be taken up: until the first of the certificates ends that it was made
 * with, on either side; and by whom. Verification has a clock that a test can set, in OpenSSL's
 * X509_VERIFY_PARAM.
 */

#include "tests/tls/contexts.h"
#include "tests/tls/pair.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <string.h>
#include <time.h>

#define MINUTE 60L

static const enum bow_tls_version versions[] = {BOW_TLS_VERSION_1_2, BOW_TLS_VERSION_1_3};

static SSL_CTX *ssl_ctx_of(struct pair_side *side)
{
    return SSL_get_SSL_CTX(bow_tls_ssl(pair_tls(side)));
}

static void set_clock(SSL_CTX *ssl_ctx, long from_now_s)
{
    X509_VERIFY_PARAM_set_time(SSL_CTX_get0_param(ssl_ctx), time(NULL) + from_now_s);
}

static void talk(struct pair *pair)
{
    pair_write(&pair->client, "hello", 5);
    pair_run(pair); /* tickets of TLS 1.3 come with the answer's bytes at the latest */
    pair_assert_got(&pair->server, "hello");
}

/* One connection that opens. */
static void connect_well(struct pair *pair, bool is_resumed)
{
    pair_open_well(pair);
    talk(pair);
    assert_int_equal(bow_tls_is_resumed(pair_tls(&pair->client)), is_resumed);
    assert_int_equal(bow_tls_is_resumed(pair_tls(&pair->server)), is_resumed);
    bow_channel_close(pair_channel(&pair->client), 0);
    pair_run(pair);
    pair_close(pair);
}

/* The first connection, after which both ends' clocks can be set. */
static void connect_first(struct pair *pair, SSL_CTX **ret_client, SSL_CTX **ret_server)
{
    pair_open_well(pair);
    *ret_client = ssl_ctx_of(&pair->client);
    *ret_server = ssl_ctx_of(&pair->server);
    pair_close(pair);
    connect_well(pair, true);
}

static void expect_refused(struct pair *pair, const struct pair_side *side, const char *part)
{
    pair_open(pair);
    pair_run(pair);
    if (strstr(side->failure, part) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", side->failure, part);
    }
}

static void serve(struct pair *pair, void **state, const char *certificate, const char *key)
{
    pair->server.options.certificate.certificate_file = pair_file(state, certificate);
    pair->server.options.certificate.key_file = pair_file(state, key);
}

static void make_mutual(struct pair *pair, void **state, const char *certificate, const char *key)
{
    pair->server.options.clients = BOW_TLS_PEER_REQUIRE;
    pair->server.options.ca_file = pair_file(state, "ca.pem");
    pair->client.options.certificate.certificate_file = pair_file(state, certificate);
    pair->client.options.certificate.key_file = pair_file(state, key);
}

static void begin(struct pair *pair, void **state, enum bow_tls_version version)
{
    pair_begin(pair, state);
    pair->client.options.min_version = version;
    pair->client.options.max_version = version;
}

/* The clock of one end goes on, in steps in which sessions are renewed, and passes the hour. */
static void run_past_the_hour(struct pair *pair, bool is_servers_clock, const char *part)
{
    SSL_CTX *client;
    SSL_CTX *server;

    connect_first(pair, &client, &server);
    SSL_CTX *moved = is_servers_clock ? server : client;
    for (long minute = 15; minute < 60; minute += 15) {
        set_clock(moved, minute * MINUTE);
        connect_well(pair, true);
    }
    set_clock(moved, 61 * MINUTE);
    expect_refused(pair, is_servers_clock ? &pair->server : &pair->client, part);
    pair_end(pair);
}

static void test_tls_f64_session_ends_with_the_servers_certificate(void **state)
{
    struct pair pair;

    for (int i = 0; i < 4; i++) {
        begin(&pair, state, versions[i & 1]);
        serve(&pair, state, i < 2 ? "brief.pem" : "below_chain.pem",
              i < 2 ? "brief.key" : "below.key");
        run_past_the_hour(&pair, false, "certificate has expired");
    }
}

static void test_tls_f64_session_ends_with_the_clients_certificate(void **state)
{
    struct pair pair;

    for (int i = 0; i < 4; i++) {
        begin(&pair, state, versions[i & 1]);
        make_mutual(&pair, state, i < 2 ? "brief_client.pem" : "below_client_chain.pem",
                    i < 2 ? "brief_client.key" : "below_client.key");
        run_past_the_hour(&pair, true, "certificate has expired");
    }
}

/* Of a client that does not look at the date itself. */
static void test_tls_f64_server_takes_no_session_once_its_own_certificate_has_ended(void **state)
{
    struct pair pair;
    SSL_CTX *client;
    SSL_CTX *server;

    for (int i = 0; i < 2; i++) {
        begin(&pair, state, versions[i]);
        serve(&pair, state, "brief.pem", "brief.key");
        pair.client.options.ca_file = NULL;
        pair.client.options.trust_anyone = true;
        connect_first(&pair, &client, &server);
        set_clock(server, 61 * MINUTE);
        connect_well(&pair, false);
        pair_end(&pair);
    }
}

static void test_tls_f64_client_that_trusts_anyone_goes_by_no_date(void **state)
{
    struct pair pair;
    SSL_CTX *client;
    SSL_CTX *server;

    for (int i = 0; i < 2; i++) {
        begin(&pair, state, versions[i]);
        serve(&pair, state, "brief.pem", "brief.key");
        pair.client.options.ca_file = NULL;
        pair.client.options.trust_anyone = true;
        connect_first(&pair, &client, &server);
        set_clock(client, 61 * MINUTE);
        connect_well(&pair, true);
        pair_end(&pair);
    }
}

static void test_tls_f64_ticket_says_no_longer_life_than_the_certificates(void **state)
{
    struct pair pair;

    begin(&pair, state, BOW_TLS_VERSION_1_3);
    make_mutual(&pair, state, "brief_client.pem", "brief_client.key");
    for (int i = 0; i < 3; i++) {
        pair_open_well(&pair);
        talk(&pair);
        const SSL_SESSION *session = SSL_get_session(bow_tls_ssl(pair_tls(&pair.client)));
        assert_in_range(SSL_SESSION_get_ticket_lifetime_hint(session), 1, 60 * MINUTE);
        assert_int_equal(bow_tls_is_resumed(pair_tls(&pair.client)), i > 0);
        pair_close(&pair);
    }
    pair_end(&pair);
}

/* Another server of the same application, with the same keys for tickets. */
static void exchange_server(struct pair *pair, struct bow_tls_context *other)
{
    unsigned char keys[80];

    pair_open_well(pair);
    talk(pair);
    SSL_CTX *ours = ssl_ctx_of(&pair->server);
    assert_int_equal(SSL_CTX_get_tlsext_ticket_keys(ours, keys, sizeof(keys)), 1);
    pair_close(pair);
    bow_tls_context_unref(pair->server.context);
    pair->server.context = other;

    struct bow_tls *tls = NULL;
    assert_int_equal(bow_tls_new(other, NULL, &tls), 0);
    SSL_CTX *theirs = SSL_get_SSL_CTX(bow_tls_ssl(tls));
    assert_int_equal(SSL_CTX_set_tlsext_ticket_keys(theirs, keys, sizeof(keys)), 1);
    bow_tls_free(tls);
}

static void test_tls_f64_ticket_is_taken_where_the_rules_are_the_same(void **state)
{
    struct pair pair;

    for (int i = 0; i < 4; i++) {
        begin(&pair, state, versions[i & 1]);
        if (i >= 2) {
            make_mutual(&pair, state, "client.pem", "client.key");
        }
        exchange_server(&pair, contexts_new(pair.t.context, &pair.server.options));
        connect_well(&pair, true);
        pair_end(&pair);
    }
}

static void test_tls_f64_ticket_of_other_rules_for_clients_is_not_taken(void **state)
{
    struct pair pair;

    for (int i = 0; i < 6; i++) {
        begin(&pair, state, versions[i & 1]);
        /* The first server asks for none, or need not get one, or knows the client's. */
        bool is_asked = i >= 4;
        if (is_asked) {
            make_mutual(&pair, state, "client.pem", "client.key");
        } else if (i >= 2) {
            pair.server.options.clients = BOW_TLS_PEER_REQUEST;
            pair.server.options.ca_file = pair_file(state, "ca.pem");
        }
        struct bow_tls_context_options options = pair.server.options;
        options.clients = BOW_TLS_PEER_REQUIRE;
        options.ca_file = pair_file(state, is_asked ? "other_ca.pem" : "ca.pem");
        exchange_server(&pair, contexts_new(pair.t.context, &options));
        expect_refused(&pair, &pair.server,
                       is_asked ? "certificate verify failed" : "the client sent none");
        pair_end(&pair);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tls_f64_session_ends_with_the_servers_certificate),
        cmocka_unit_test(test_tls_f64_session_ends_with_the_clients_certificate),
        cmocka_unit_test(test_tls_f64_server_takes_no_session_once_its_own_certificate_has_ended),
        cmocka_unit_test(test_tls_f64_client_that_trusts_anyone_goes_by_no_date),
        cmocka_unit_test(test_tls_f64_ticket_says_no_longer_life_than_the_certificates),
        cmocka_unit_test(test_tls_f64_ticket_is_taken_where_the_rules_are_the_same),
        cmocka_unit_test(test_tls_f64_ticket_of_other_rules_for_clients_is_not_taken),
    };
    return cmocka_run_group_tests(tests, pair_setup, pair_teardown);
}
