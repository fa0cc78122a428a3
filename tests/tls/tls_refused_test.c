/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Handshakes that must fail, what each end is told, and contexts that can't be made. */

#include "tests/tls/pair.h"

#include <bowline/limits.h>
#include <errno.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void assert_says(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", text, part);
    }
}

/* The side was told once, and has closed, with that error. */
static void assert_failed(struct pair_side *side, int error, const char *part)
{
    assert_says(side->failure, part);
    assert_int_equal(side->probe.n_errors, 1);
    assert_int_equal(side->probe.last_error, error);
    assert_int_equal(side->probe.inactive_error, error);
    assert_true(bow_embedded_is_closed(side->embedded));
}

static void run_refused(struct pair *pair, int client_error, const char *client_part,
                        int server_error, const char *server_part)
{
    pair_open(pair);
    pair_run(pair);
    assert_failed(&pair->client, client_error, client_part);
    assert_failed(&pair->server, server_error, server_part);
    pair_end(pair);
}

static void serve(struct pair *pair, void **state, const char *certificate, const char *key)
{
    pair->server.options.certificate.certificate_file = pair_file(state, certificate);
    pair->server.options.certificate.key_file = pair_file(state, key);
}

static void test_tls_wrong_name_says_wanted_and_got(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    pair.client.tls_options.server_name = "elsewhere.test";
    run_refused(&pair, -EKEYREJECTED,
                "certificate verify failed: hostname mismatch: wanted elsewhere.test, got "
                "server.test, *.wild.test, 127.0.0.1",
                -EPROTO, "the peer refused the connection: bad certificate");
}

static void test_tls_wrong_address_says_wanted_and_got(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    pair.client.tls_options.server_name = "127.0.0.2";
    run_refused(&pair, -EKEYREJECTED, "IP address mismatch: wanted 127.0.0.2, got server.test",
                -EPROTO, "bad certificate");
}

static void test_tls_f65_common_name_is_no_name_of_a_host(void **state)
{
    static const char *const files[][3] = {{"nameless.pem", "nameless.key", "nameless.test"},
                                           {"elsewise.pem", "elsewise.key", "server.test"}};
    static const enum bow_tls_version versions[] = {BOW_TLS_VERSION_1_2, BOW_TLS_VERSION_1_3};
    struct pair pair;

    for (int i = 0; i < 4; i++) {
        const char *const *file = files[i & 1];
        pair_begin(&pair, state);
        serve(&pair, state, file[0], file[1]);
        pair.client.tls_options.server_name = file[2];
        pair.client.options.max_version = versions[i / 2];
        pair_open(&pair);
        pair_run(&pair);
        assert_says(pair.client.failure, "hostname mismatch: wanted ");
        assert_says(pair.client.failure, file[2]);
        assert_says(pair.client.failure, "option trust_common_name");
        assert_failed(&pair.client, -EKEYREJECTED, "no host in its subjectAltName");
        assert_failed(&pair.server, -EPROTO, "bad certificate");
        pair_end(&pair);
    }
}

/* What the check of the name is made of is ours, for a user's SSL_CTX as well. */
static void test_tls_f65_common_name_is_no_name_to_an_ssl_ctx_of_the_user(void **state)
{
    struct pair pair;
    SSL_CTX *ssl_ctx = SSL_CTX_new(TLS_method());

    pair_begin(&pair, state);
    assert_int_equal(SSL_CTX_load_verify_file(ssl_ctx, pair_file(state, "ca.pem")), 1);
    SSL_CTX_set_verify(ssl_ctx, SSL_VERIFY_PEER, NULL);
    serve(&pair, state, "nameless.pem", "nameless.key");
    pair.client.tls_options.server_name = "nameless.test";
    pair.client.options.ca_file = NULL;
    pair.client.options.ssl_ctx = ssl_ctx;
    pair_open(&pair);
    pair_run(&pair);
    assert_failed(&pair.client, -EKEYREJECTED, "no host in its subjectAltName");
    pair_close(&pair);
    pair.client.context = bow_tls_context_unref(pair.client.context);
    pair.client.options.trust_common_name = true;
    pair_open_well(&pair);
    pair_end(&pair);
    SSL_CTX_free(ssl_ctx);
}

static void test_tls_f65_address_in_the_common_name_is_told_what_counts(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    serve(&pair, state, "nameless.pem", "nameless.key");
    pair.client.options.trust_common_name = true;
    pair.client.tls_options.server_name = "127.0.0.1";
    run_refused(&pair, -EKEYREJECTED, "no address in its subjectAltName, and nothing else counts",
                -EPROTO, "bad certificate");
}

static void test_tls_f65_trusted_common_name_counts_where_no_host_is_named(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    pair.client.options.trust_common_name = true;
    serve(&pair, state, "nameless.pem", "nameless.key");
    pair.client.tls_options.server_name = "nameless.test";
    pair_open_well(&pair);
    pair_close(&pair);
    /* Another name than that is none. */
    pair.client.tls_options.server_name = "server.test";
    run_refused(&pair, -EKEYREJECTED, "wanted server.test, got /CN=nameless.test", -EPROTO,
                "bad certificate");
}

static void test_tls_expired_certificate_says_since_when(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    serve(&pair, state, "expired.pem", "expired.key");
    run_refused(&pair, -EKEYREJECTED, "certificate has expired: /CN=server.test, on 20", -EPROTO,
                "our certificate has expired");
}

static void test_tls_certificate_of_the_future_asks_about_the_clock(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    serve(&pair, state, "future.pem", "future.key");
    run_refused(&pair, -EKEYREJECTED, "not yet valid: /CN=server.test, but from 20", -EPROTO,
                "bad certificate");
}

static void test_tls_unknown_ca_says_what_to_do(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    serve(&pair, state, "stranger.pem", "stranger.key");
    run_refused(&pair, -EKEYREJECTED, "set ca_file to the CA that issued it", -EPROTO,
                "it does not trust the CA of our certificate");
}

static void test_tls_12_unknown_ca_is_told_in_its_handshake(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    serve(&pair, state, "stranger.pem", "stranger.key");
    pair.client.options.max_version = BOW_TLS_VERSION_1_2;
    run_refused(&pair, -EKEYREJECTED, "unable to get local issuer", -EPROTO, "unknown CA");
}

static void require_clients(struct pair *pair, void **state)
{
    pair->server.options.clients = BOW_TLS_PEER_REQUIRE;
    pair->server.options.ca_file = pair_file(state, "ca.pem");
}

static void test_tls_missing_client_certificate_is_named_on_both_ends(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    require_clients(&pair, state);
    run_refused(&pair, -EPROTO,
                "refused the connection: it requires a client certificate: set certificate_file",
                -EPROTO, "the client sent none");
}

/* It has written before it was refused: the refusal still arrives, not a reset. */
static void test_tls_missing_client_certificate_is_told_over_early_bytes(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    require_clients(&pair, state);
    pair_open(&pair);
    pair_write(&pair.client, "early", 5);
    pair_run(&pair);
    assert_failed(&pair.client, -EPROTO, "it requires a client certificate");
    assert_int_equal(pair.server.probe.n_bytes, 0);
    /* In 1.3 the client had been through with its part. */
    assert_non_null(strstr(pair.client.probe.log, "active"));
    assert_null(strstr(pair.server.probe.log, " active"));
    pair_end(&pair);
}

static void test_tls_client_certificate_of_another_ca_is_refused(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    require_clients(&pair, state);
    pair.client.options.certificate.certificate_file = pair_file(state, "stranger.pem");
    pair.client.options.certificate.key_file = pair_file(state, "stranger.key");
    run_refused(&pair, -EPROTO, "does not trust the CA of our certificate", -EKEYREJECTED,
                "unable to get local issuer certificate: /CN=server.test");
}

static void test_tls_alpn_without_overlap_is_refused(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    pair.server.options.alpn = "h2";
    pair.client.options.alpn = "http/1.1";
    run_refused(&pair, -EPROTO, "it speaks no protocol of our ALPN list", -EPROTO,
                "ALPN names no protocol that is spoken here");
}

static void test_tls_versions_without_overlap_are_refused(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    pair.server.options.min_version = BOW_TLS_VERSION_1_3;
    pair.client.options.max_version = BOW_TLS_VERSION_1_2;
    run_refused(&pair, -EPROTO, "no version of TLS that both speak", -EPROTO,
                "unsupported protocol");
}

/* Plaintext */

static int plain_channel(struct bow_channel *channel, struct pair_side *side)
{
    bow_channel_add_last(channel, &side->probe.handler);
    return 0;
}

static void test_tls_server_says_which_plaintext_it_met(void **state)
{
    struct pair pair;
    static const char request[] = "GET / HTTP/1.1\r\nHost: server.test\r\n\r\n";

    pair_begin(&pair, state);
    pair.client.on_channel = plain_channel;
    pair_open(&pair);
    pair_write(&pair.client, request, sizeof(request) - 1);
    pair_run(&pair);
    assert_failed(&pair.server, -EPROTO,
                  "the peer speaks plaintext (it began with \"GET / HTTP/1.1");
    assert_int_equal(pair.client.probe.n_bytes, 0);
    pair_end(&pair);
}

static void test_tls_client_says_which_plaintext_it_met(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    pair.server.on_channel = plain_channel;
    pair_open(&pair);
    pair_write(&pair.server, "HTTP/1.1", 8);
    pair_run(&pair);
    assert_failed(&pair.client, -EPROTO, "the peer speaks plaintext (it began with \"HTTP/1.1\")");
    pair_end(&pair);
}

static void test_tls_client_met_by_silence_and_an_end_asks_about_the_port(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    pair.server.on_channel = plain_channel;
    pair_open(&pair);
    bow_channel_close(pair_channel(&pair.server), 0);
    pair_run(&pair);
    assert_failed(&pair.client, -EPROTO, "does it speak TLS on this port?");
    pair_end(&pair);
}

/* Limits */

static void test_tls_f12_silent_peer_is_closed_in_time(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    pair.client.on_channel = plain_channel;
    pair_open(&pair);
    assert_int_equal(bow_embedded_advance(pair.server.embedded, 10 * FAKE_S - 1), 0);
    assert_false(bow_embedded_is_closed(pair.server.embedded));
    assert_int_equal(bow_embedded_advance(pair.server.embedded, 1), 0);
    assert_failed(&pair.server, -ETIMEDOUT, "not done after 10 s (option handshake_timeout_ns)");
    pair_end(&pair);
}

/* A valid hello, a byte a second. */
static void test_tls_f12_slow_peer_is_closed_in_time(void **state)
{
    struct pair pair;
    int n = 0;

    pair_begin(&pair, state);
    pair.server.tls_options.handshake_timeout_ns = 3 * FAKE_S;
    pair.piece_bytes = 1;
    pair_open(&pair);
    while (!bow_embedded_is_closed(pair.server.embedded)) {
        assert_true(n++ < 3);
        assert_true(pair_carry(&pair));
        assert_int_equal(bow_embedded_advance(pair.server.embedded, FAKE_S), 0);
    }
    assert_failed(&pair.server, -ETIMEDOUT, "3 bytes came from the peer");
    pair_end(&pair);
}

static void test_tls_handshake_time_does_not_limit_an_open_connection(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    pair_open_well(&pair);
    assert_int_equal(bow_embedded_advance(pair.server.embedded, 3600 * FAKE_S), 0);
    assert_true(bow_tls_is_open(pair_tls(&pair.server)));
    assert_int_equal(bow_embedded_next_timeout(pair.server.embedded), BOW_NEVER);
    pair_end(&pair);
}

/* A hello that goes on for ever: a handshake message of 2^24 bytes, in good records. */
static void test_tls_handshake_without_end_is_refused(void **state)
{
    struct pair pair;
    static uint8_t record[5 + 16384] = {0x16, 3, 1, 0x40, 0};
    size_t n_sent = 0;

    pair_begin(&pair, state);
    pair.client.on_channel = plain_channel;
    pair_open(&pair);
    record[5] = 1; /* client hello, its length in the next three bytes */
    record[6] = 0xff;
    while (!bow_embedded_is_closed(pair.server.embedded)) {
        pair_write(&pair.client, record, sizeof(record));
        n_sent += sizeof(record);
        pair_run(&pair);
        assert_true(n_sent <= 2 * BOW_LIMIT_TLS_HANDSHAKE_BYTES);
    }
    assert_true(pair.server.probe.n_errors == 1);
    pair_end(&pair);
}

/* A chain of certificates without end, which OpenSSL was told to take. */
static void test_tls_chain_beyond_the_limit_is_refused(void **state)
{
    struct pair pair;
    SSL_CTX *server = SSL_CTX_new(TLS_server_method());
    SSL_CTX *client = SSL_CTX_new(TLS_client_method());

    assert_int_equal(SSL_CTX_use_certificate_chain_file(server, pair_file(state, "server.pem")), 1);
    assert_int_equal(
        SSL_CTX_use_PrivateKey_file(server, pair_file(state, "server.key"), SSL_FILETYPE_PEM), 1);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(SSL_CTX_add1_chain_cert(server, SSL_CTX_get0_certificate(server)), 1);
    }
    SSL_CTX_set_max_cert_list(client, 16 << 20);
    pair_begin(&pair, state);
    pair.server.options = (struct bow_tls_context_options)BOW_TLS_CONTEXT_OPTIONS_INIT;
    pair.server.options.ssl_ctx = server;
    pair.client.options = (struct bow_tls_context_options)BOW_TLS_CONTEXT_OPTIONS_INIT;
    pair.client.options.side = BOW_TLS_CLIENT;
    pair.client.options.ssl_ctx = client;
    pair.piece_bytes = 8192;
    pair_open(&pair);
    pair_run(&pair);
    assert_failed(&pair.client, -EMSGSIZE, "BOW_LIMIT_TLS_HANDSHAKE_BYTES");
    pair_end(&pair);
    SSL_CTX_free(server);
    SSL_CTX_free(client);
}

/* A peer that does not close is not waited for long: it was told why. */
static void test_tls_failed_connection_lingers_a_second_at_most(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    pair.client.tls_options.server_name = "elsewhere.test";
    pair_open(&pair);
    pair.server.ends_told = true; /* its end does not arrive */
    pair_run(&pair);
    assert_int_equal(pair.client.probe.n_errors, 1);
    assert_false(bow_embedded_is_closed(pair.client.embedded));
    bow_channel_close(pair_channel(&pair.client), -EPROTO); /* does not shorten it */
    assert_int_equal(bow_embedded_advance(pair.client.embedded, FAKE_S), 0);
    assert_failed(&pair.client, -EKEYREJECTED, "hostname mismatch");
    pair_end(&pair);
}

/* Options and files */

static void assert_refused(struct pair *pair, const struct bow_tls_context_options *options,
                           int expected, const char *part)
{
    struct bow_tls_context *context = NULL;
    struct bow_tls_error error = {0};

    assert_int_equal(bow_tls_context_new(pair->t.context, options, &context, &error), expected);
    assert_int_equal(error.error, expected);
    assert_says(error.text, part);
    assert_null(context);
    assert_int_equal(bow_tls_context_new(pair->t.context, options, &context, NULL), expected);
}

static void test_tls_context_names_the_file_that_is_wrong(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    struct bow_tls_context_options options = pair.server.options;
    options.certificate.certificate_file = "/nowhere/a.pem";
    assert_refused(&pair, &options, -ENOENT, "certificate file /nowhere/a.pem: ENOENT");
    options.certificate.certificate_file = pair_file(state, "server.key");
    assert_refused(&pair, &options, -EBADMSG, "server.key holds no certificate");
    options = pair.server.options;
    options.certificate.key_file = pair_file(state, "server.pem");
    assert_refused(&pair, &options, -EBADMSG, "server.pem holds no private key");
    options.certificate.key_file = pair_file(state, "client.key");
    assert_refused(&pair, &options, -EINVAL, "client.key does not belong to the certificate in");
    options.certificate.certificate_file = NULL;
    assert_refused(&pair, &options, -EINVAL, "key_file without");
    options = pair.client.options;
    options.ca_file = pair_file(state, "client.key");
    assert_refused(&pair, &options, -EBADMSG, "client.key holds no certificate");
    pair_end(&pair);
}

static void test_tls_context_refuses_options_that_do_not_fit(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    struct bow_tls_context_options options = BOW_TLS_CONTEXT_OPTIONS_INIT;
    assert_refused(&pair, &options, -EINVAL, "a server needs");
    options = pair.server.options;
    options.clients = BOW_TLS_PEER_REQUIRE;
    assert_refused(&pair, &options, -EINVAL, "needs a ca_file");
    options = pair.server.options;
    options.alpn = "h2,,http/1.1";
    assert_refused(&pair, &options, -EINVAL, "alpn \"h2,,http/1.1\"");
    options.alpn = "";
    assert_refused(&pair, &options, -EINVAL, "alpn");
    options = pair.server.options;
    options.min_version = BOW_TLS_VERSION_1_3;
    options.max_version = BOW_TLS_VERSION_1_2;
    assert_refused(&pair, &options, -EINVAL, "no version");
    options.size = 3;
    assert_refused(&pair, &options, -EINVAL, "BOW_TLS_CONTEXT_OPTIONS_INIT");
    pair_end(&pair);
}

static void test_tls_client_needs_a_name(void **state)
{
    struct pair pair;
    struct bow_tls_error error;
    struct bow_tls *tls = NULL;
    char long_name[300];

    pair_begin(&pair, state);
    assert_int_equal(
        bow_tls_context_new(pair.t.context, &pair.client.options, &pair.client.context, &error), 0);
    assert_int_equal(bow_tls_new(pair.client.context, NULL, &tls), -EINVAL);
    struct bow_tls_options options = BOW_TLS_OPTIONS_INIT;
    options.server_name = "";
    assert_int_equal(bow_tls_new(pair.client.context, &options, &tls), -EINVAL);
    memset(long_name, 'a', sizeof(long_name));
    long_name[sizeof(long_name) - 1] = '\0';
    options.server_name = long_name;
    assert_int_equal(bow_tls_new(pair.client.context, &options, &tls), -EINVAL);
    options.server_name = "server.test";
    assert_int_equal(bow_tls_new(pair.client.context, &options, &tls), 0);
    assert_string_equal(bow_tls_failure(tls), "");
    bow_tls_free(tls);
    bow_tls_free(NULL);
    pair_end(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tls_wrong_name_says_wanted_and_got),
        cmocka_unit_test(test_tls_wrong_address_says_wanted_and_got),
        cmocka_unit_test(test_tls_f65_common_name_is_no_name_of_a_host),
        cmocka_unit_test(test_tls_f65_common_name_is_no_name_to_an_ssl_ctx_of_the_user),
        cmocka_unit_test(test_tls_f65_address_in_the_common_name_is_told_what_counts),
        cmocka_unit_test(test_tls_f65_trusted_common_name_counts_where_no_host_is_named),
        cmocka_unit_test(test_tls_expired_certificate_says_since_when),
        cmocka_unit_test(test_tls_certificate_of_the_future_asks_about_the_clock),
        cmocka_unit_test(test_tls_unknown_ca_says_what_to_do),
        cmocka_unit_test(test_tls_12_unknown_ca_is_told_in_its_handshake),
        cmocka_unit_test(test_tls_missing_client_certificate_is_named_on_both_ends),
        cmocka_unit_test(test_tls_missing_client_certificate_is_told_over_early_bytes),
        cmocka_unit_test(test_tls_client_certificate_of_another_ca_is_refused),
        cmocka_unit_test(test_tls_alpn_without_overlap_is_refused),
        cmocka_unit_test(test_tls_versions_without_overlap_are_refused),
        cmocka_unit_test(test_tls_server_says_which_plaintext_it_met),
        cmocka_unit_test(test_tls_client_says_which_plaintext_it_met),
        cmocka_unit_test(test_tls_client_met_by_silence_and_an_end_asks_about_the_port),
        cmocka_unit_test(test_tls_f12_silent_peer_is_closed_in_time),
        cmocka_unit_test(test_tls_f12_slow_peer_is_closed_in_time),
        cmocka_unit_test(test_tls_handshake_time_does_not_limit_an_open_connection),
        cmocka_unit_test(test_tls_handshake_without_end_is_refused),
        cmocka_unit_test(test_tls_chain_beyond_the_limit_is_refused),
        cmocka_unit_test(test_tls_failed_connection_lingers_a_second_at_most),
        cmocka_unit_test(test_tls_context_names_the_file_that_is_wrong),
        cmocka_unit_test(test_tls_context_refuses_options_that_do_not_fit),
        cmocka_unit_test(test_tls_client_needs_a_name),
    };
    return cmocka_run_group_tests(tests, pair_setup, pair_teardown);
}
