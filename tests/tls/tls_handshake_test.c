/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Handshakes that succeed: versions, mutual, resumption, ALPN, names, any cut of the stream. */

#include "tests/tls/pair.h"
#include "tls/connection.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <string.h>

#define ANSWER "this comes back"

static void exchange(struct pair *pair)
{
    pair_write(&pair->client, "hello", 5);
    pair_run(pair);
    pair_assert_got(&pair->server, "hello");
    pair_write(&pair->server, ANSWER, sizeof(ANSWER) - 1);
    pair_run(pair);
    pair_assert_got(&pair->client, ANSWER);
}

static void set_version(struct pair *pair, enum bow_tls_version version)
{
    pair->client.options.min_version = version;
    pair->client.options.max_version = version;
}

static void make_mutual(struct pair *pair, void **state)
{
    pair->server.options.clients = BOW_TLS_PEER_REQUIRE;
    pair->server.options.ca_file = pair_file(state, "ca.pem");
    pair->client.options.certificate.certificate_file = pair_file(state, "both.pem");
}

struct variant {
    enum bow_tls_version version;
    bool is_mutual;
    bool has_alpn;
};

static void assert_variant(struct pair *pair, const struct variant *variant, bool is_resumed)
{
    const struct bow_tls *client = pair_tls(&pair->client);
    const struct bow_tls *server = pair_tls(&pair->server);
    char subject[64] = "";

    assert_string_equal(bow_tls_version_name(client),
                        variant->version == BOW_TLS_VERSION_1_2 ? "TLSv1.2" : "TLSv1.3");
    assert_int_equal(bow_tls_is_resumed(client), is_resumed);
    assert_int_equal(bow_tls_is_resumed(server), is_resumed);
    assert_int_equal(bow_tls_alpn_is(client, "h2"), variant->has_alpn);
    assert_int_equal(bow_tls_alpn_is(server, "h2"), variant->has_alpn);
    assert_int_equal(bow_tls_alpn(server).len, variant->has_alpn ? 2 : 0);
    assert_string_equal(bow_tls_server_name(server), "server.test");
    assert_int_equal(bow_tls_peer_subject(client, subject, sizeof(subject)), 0);
    assert_string_equal(subject, "CN=server.test");
    int rc = bow_tls_peer_subject(server, subject, sizeof(subject));
    assert_int_equal(rc, variant->is_mutual ? 0 : -ENODATA);
    assert_string_equal(subject, variant->is_mutual ? "CN=alice,O=Example" : "CN=server.test");
}

static void run_variant(void **state, const struct variant *variant)
{
    struct pair pair;

    pair_begin(&pair, state);
    set_version(&pair, variant->version);
    if (variant->is_mutual) {
        make_mutual(&pair, state);
    }
    if (variant->has_alpn) {
        pair.server.options.alpn = "bowline/1,h2,http/1.1";
        pair.client.options.alpn = "http/1.1,h2";
    }
    for (int i = 0; i < 3; i++) {
        pair_open_well(&pair);
        exchange(&pair);
        assert_variant(&pair, variant, i > 0);
        bow_channel_close(pair_channel(&pair.client), 0);
        pair_run(&pair);
        pair_close(&pair);
    }
    pair_end(&pair);
}

static void test_tls_handshake_of_each_variant_opens_and_resumes(void **state)
{
    for (int i = 0; i < 8; i++) {
        const struct variant variant = {(i & 1) != 0 ? BOW_TLS_VERSION_1_2 : BOW_TLS_VERSION_1_3,
                                        (i & 2) != 0, (i & 4) != 0};
        run_variant(state, &variant);
    }
}

static void test_tls_handshake_in_pieces_of_each_size_opens(void **state)
{
    static const size_t sizes[] = {1, 2, 3, 4, 5, 6, 7, 16, 100, 517, 1000, 4096};
    struct pair pair;

    pair_begin(&pair, state);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        pair.piece_bytes = sizes[i];
        pair_open_well(&pair);
        exchange(&pair);
        pair_close(&pair);
    }
    pair_end(&pair);
}

/* All of the client's bytes in two pieces, cut at each place. */
static void test_tls_handshake_cut_in_two_at_each_place_opens(void **state)
{
    struct pair pair;
    size_t n_all;

    pair_begin(&pair, state);
    pair.client.options.min_version = BOW_TLS_VERSION_1_3;
    pair_open_well(&pair);
    exchange(&pair);
    n_all = pair.client.n_sent;
    pair_close(&pair);
    for (size_t i = 1; i < n_all; i += 7) {
        pair_open(&pair);
        while (pair.client.n_sent < i) {
            pair.piece_bytes = i - pair.client.n_sent;
            if (!pair_carry(&pair)) {
                break;
            }
        }
        pair.piece_bytes = 0;
        pair_run(&pair);
        exchange(&pair);
        pair_close(&pair);
    }
    pair_end(&pair);
}

static void test_tls_handshake_withholds_active_until_it_is_done(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    pair_open(&pair);
    assert_string_equal(pair.client.probe.log, " added");
    assert_string_equal(pair.server.probe.log, " added");
    assert_false(bow_tls_is_open(pair_tls(&pair.client)));
    pair_run(&pair);
    assert_memory_equal(pair.client.probe.log, " added active", 13);
    assert_memory_equal(pair.server.probe.log, " added active", 13);
    pair_end(&pair);
}

static void test_tls_handshake_lets_early_writes_wait(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    pair_open(&pair);
    pair_write(&pair.client, "early", 5);
    pair_write(&pair.server, "bird", 4);
    assert_int_equal(pair.client.probe.n_completions, 0);
    /* The end of our side waits for them too. */
    bow_channel_shutdown_write(pair_channel(&pair.client));
    pair_run(&pair);
    pair_assert_got(&pair.server, "early");
    pair_assert_got(&pair.client, "bird");
    assert_int_equal(pair.client.probe.n_completions, 1);
    assert_int_equal(pair.client.probe.completion_error, 0);
    assert_int_equal(pair.server.probe.n_eofs, 1);
    pair_end(&pair);
}

static void test_tls_names_wildcards_and_addresses_match(void **state)
{
    static const char *const names[] = {"server.test", "SERVER.test", "server.test.",
                                        "any.wild.test", "127.0.0.1"};
    struct pair pair;

    pair_begin(&pair, state);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        pair.client.tls_options.server_name = names[i];
        pair_open_well(&pair);
        const char *asked = bow_tls_server_name(pair_tls(&pair.server));
        if (strcmp(names[i], "127.0.0.1") == 0) {
            assert_null(asked); /* RFC 6066: no addresses */
        } else {
            assert_non_null(asked);
        }
        pair_close(&pair);
    }
    pair_end(&pair);
}

/* A zone says which link of this host is meant: no certificate knows it. */
static void test_tls_f51_zone_is_no_part_of_the_name(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    pair.client.tls_options.server_name = "127.0.0.1%eth0";
    pair_open_well(&pair);
    assert_null(bow_tls_server_name(pair_tls(&pair.server)));
    pair_close(&pair);
    pair_end(&pair);
}

static void test_tls_sni_chooses_the_certificate(void **state)
{
    const struct bow_tls_certificate more[] = {
        {pair_file(state, "nameless.pem"), pair_file(state, "nameless.key")},
        {pair_file(state, "second.pem"), pair_file(state, "second.key")},
    };
    struct pair pair;
    char subject[64];

    pair_begin(&pair, state);
    pair.server.options.more_certificates = more;
    pair.server.options.n_more_certificates = 2;
    pair.client.tls_options.server_name = "second.test";
    pair_open_well(&pair);
    assert_int_equal(bow_tls_peer_subject(pair_tls(&pair.client), subject, sizeof(subject)), 0);
    assert_string_equal(subject, "CN=second.test");
    assert_int_equal(bow_tls_peer_subject(pair_tls(&pair.client), subject, 14), -ENOSPC);
    pair_close(&pair);
    pair.client.tls_options.server_name = "server.test";
    pair_open_well(&pair);
    pair_end(&pair);
}

static void test_tls_alpn_prefers_the_servers_order(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    pair.server.options.alpn = "b,a";
    pair.client.options.alpn = "a,b";
    pair_open_well(&pair);
    assert_true(bow_tls_alpn_is(pair_tls(&pair.client), "b"));
    assert_false(bow_tls_alpn_is(pair_tls(&pair.client), "bb"));
    pair_end(&pair);
}

static void test_tls_alpn_of_one_side_only_is_none(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    pair.server.options.alpn = "h2";
    pair_open_well(&pair);
    assert_int_equal(bow_tls_alpn(pair_tls(&pair.server)).len, 0);
    pair_end(&pair);
}

static void test_tls_client_that_trusts_anyone_needs_no_name(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    pair.server.options.certificate.certificate_file = pair_file(state, "expired.pem");
    pair.server.options.certificate.key_file = pair_file(state, "expired.key");
    pair.client.options.ca_file = NULL;
    pair.client.options.trust_anyone = true;
    pair.client.tls_options.server_name = NULL;
    pair_open_well(&pair);
    exchange(&pair);
    pair_end(&pair);
}

static void on_log(enum bow_log_level level, const char *line, void *user)
{
    (void)level;
    (void)snprintf(user, 600, "%s", line);
}

static void test_tls_f63_end_that_is_not_made_says_why(void **state)
{
    struct bow_context_options with_log = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_tls_context_options options = BOW_TLS_CONTEXT_OPTIONS_INIT;
    struct bow_tls_options without_init = {.server_name = "server.test"};
    struct bow_tls_options nobody = BOW_TLS_OPTIONS_INIT;
    struct bow_tls_context *tls_context = NULL;
    struct bow_context *context = NULL;
    struct bow_tls *tls = NULL;
    char said[600] = "";

    (void)state;
    with_log.log = on_log;
    with_log.log_user = said;
    assert_int_equal(bow_context_new(&with_log, &context), 0);
    options.side = BOW_TLS_CLIENT;
    assert_int_equal(bow_tls_context_new(context, &options, &tls_context, NULL), 0);
    assert_int_equal(bow_tls_new(tls_context, NULL, &tls), -EINVAL);
    assert_non_null(strstr(said, "needs options.server_name"));
    assert_int_equal(bow_tls_new(tls_context, &without_init, &tls), -EINVAL);
    assert_non_null(strstr(said, "BOW_TLS_OPTIONS_INIT"));
    nobody.server_name = "";
    assert_int_equal(bow_tls_new(tls_context, &nobody, &tls), -EINVAL);
    assert_non_null(strstr(said, "options.server_name has 0 bytes"));
    bow_tls_context_unref(tls_context);
    bow_context_unref(context);
}

static void test_tls_requested_certificate_may_be_missing(void **state)
{
    struct pair pair;
    char subject[64];

    pair_begin(&pair, state);
    pair.server.options.clients = BOW_TLS_PEER_REQUEST;
    pair.server.options.ca_file = pair_file(state, "ca.pem");
    pair_open_well(&pair);
    exchange(&pair);
    assert_int_equal(bow_tls_peer_subject(pair_tls(&pair.server), subject, sizeof(subject)),
                     -ENODATA);
    pair_end(&pair);
}

static void test_tls_sessions_of_another_key_are_not_taken_up(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    pair.client.tls_options.session_key = "one";
    pair_open_well(&pair);
    pair_close(&pair);
    pair.client.tls_options.session_key = "two";
    pair_open_well(&pair);
    assert_false(bow_tls_is_resumed(pair_tls(&pair.client)));
    pair_close(&pair);
    pair.client.tls_options.session_key = "one";
    pair_open_well(&pair);
    assert_true(bow_tls_is_resumed(pair_tls(&pair.client)));
    pair_end(&pair);
}

static SSL_CTX *own_ssl_ctx(void **state, bool is_server)
{
    SSL_CTX *ssl_ctx = SSL_CTX_new(TLS_method());

    assert_non_null(ssl_ctx);
    if (is_server) {
        assert_int_equal(
            SSL_CTX_use_certificate_chain_file(ssl_ctx, pair_file(state, "server.pem")), 1);
        assert_int_equal(
            SSL_CTX_use_PrivateKey_file(ssl_ctx, pair_file(state, "server.key"), SSL_FILETYPE_PEM),
            1);
    } else {
        assert_int_equal(SSL_CTX_load_verify_file(ssl_ctx, pair_file(state, "ca.pem")), 1);
        SSL_CTX_set_verify(ssl_ctx, SSL_VERIFY_PEER, NULL);
    }
    return ssl_ctx;
}

static void use_own(struct pair_side *side, SSL_CTX *ssl_ctx)
{
    enum bow_tls_side which = side->options.side;

    side->options = (struct bow_tls_context_options)BOW_TLS_CONTEXT_OPTIONS_INIT;
    side->options.side = which;
    side->options.ssl_ctx = ssl_ctx;
}

static void test_tls_own_ssl_ctx_is_shared_and_still_checked(void **state)
{
    struct pair pair;
    SSL_CTX *server = own_ssl_ctx(state, true);
    SSL_CTX *client = own_ssl_ctx(state, false);

    pair_begin(&pair, state);
    use_own(&pair.server, server);
    use_own(&pair.client, client);
    pair_open_well(&pair);
    exchange(&pair);
    pair_close(&pair);
    pair.client.tls_options.server_name = "elsewhere.test";
    pair_open(&pair);
    pair_run(&pair);
    assert_non_null(strstr(pair.client.failure, "hostname mismatch"));
    pair_end(&pair);
    /* Ours still: a reference was taken, and given back. */
    SSL_CTX_set_verify(client, SSL_VERIFY_NONE, NULL);
    SSL_CTX_free(server);
    SSL_CTX_free(client);
}

static void test_tls_idle_connection_owns_less_than_a_kibibyte(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    pair_open_well(&pair);
    exchange(&pair);
    size_t with_both = bow_context_bytes(pair.t.context);
    /* Take TLS away: what is left is the same channel without it. */
    bow_channel_remove(bow_tls_handler(pair_tls(&pair.server)));
    assert_int_equal(bow_embedded_run(pair.server.embedded), 0);
    size_t tls_bytes = with_both - bow_context_bytes(pair.t.context);
    assert_in_range(tls_bytes, BOW__TLS_OPENSSL_BYTES + 1, BOW__TLS_OPENSSL_BYTES + 1024);
    pair_end(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tls_handshake_of_each_variant_opens_and_resumes),
        cmocka_unit_test(test_tls_handshake_in_pieces_of_each_size_opens),
        cmocka_unit_test(test_tls_handshake_cut_in_two_at_each_place_opens),
        cmocka_unit_test(test_tls_handshake_withholds_active_until_it_is_done),
        cmocka_unit_test(test_tls_handshake_lets_early_writes_wait),
        cmocka_unit_test(test_tls_names_wildcards_and_addresses_match),
        cmocka_unit_test(test_tls_f51_zone_is_no_part_of_the_name),
        cmocka_unit_test(test_tls_sni_chooses_the_certificate),
        cmocka_unit_test(test_tls_alpn_prefers_the_servers_order),
        cmocka_unit_test(test_tls_alpn_of_one_side_only_is_none),
        cmocka_unit_test(test_tls_f63_end_that_is_not_made_says_why),
        cmocka_unit_test(test_tls_client_that_trusts_anyone_needs_no_name),
        cmocka_unit_test(test_tls_requested_certificate_may_be_missing),
        cmocka_unit_test(test_tls_sessions_of_another_key_are_not_taken_up),
        cmocka_unit_test(test_tls_own_ssl_ctx_is_shared_and_still_checked),
        cmocka_unit_test(test_tls_idle_connection_owns_less_than_a_kibibyte),
    };
    return cmocka_run_group_tests(tests, pair_setup, pair_teardown);
}
