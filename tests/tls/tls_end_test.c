/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* How connections end: in order, half, at once, cut at any place, broken, taken out. */

#include "tests/tls/pair.h"

#include <bowline/detect.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>

static void test_tls_close_after_flush_delivers_all_and_ends_in_order(void **state)
{
    struct pair pair;
    static uint8_t big[300000];

    pair_begin(&pair, state);
    pair.client.embedded_options.socket_bytes = 30000;
    pair_open_well(&pair);
    net_fill_pattern(big, sizeof(big), 0);
    pair.server.probe.checks_pattern = true;
    struct bow_buf buf = bow_buf_borrow(big, sizeof(big));
    /* Not even flushed: closing does that. */
    assert_int_equal(
        bow_channel_write(pair_channel(&pair.client), &buf, probe_done, &pair.client.probe), 0);
    bow_channel_close_after_flush(pair_channel(&pair.client), 5 * FAKE_S);
    assert_int_equal(bow_embedded_run(pair.client.embedded), 0);
    pair_run(&pair);
    assert_int_equal(pair.server.probe.n_bytes, sizeof(big));
    assert_int_equal(pair.server.probe.n_eofs, 1);
    assert_int_equal(pair.server.probe.n_errors, 0);
    assert_int_equal(pair.client.probe.completion_error, 0);
    assert_true(bow_embedded_is_closed(pair.client.embedded));
    assert_true(bow_embedded_is_closed(pair.server.embedded));
    assert_int_equal(bow_embedded_close_error(pair.client.embedded), 0);
    assert_int_equal(bow_embedded_close_error(pair.server.embedded), 0);
    pair_end(&pair);
}

static void test_tls_half_close_leaves_the_other_way_open(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    pair_open_well(&pair);
    pair.server.probe.stops_events = true;
    pair_write(&pair.client, "request", 7);
    bow_channel_shutdown_write(pair_channel(&pair.client));
    assert_int_equal(bow_embedded_run(pair.client.embedded), 0);
    pair_run(&pair);
    pair_assert_got(&pair.server, "request");
    assert_int_equal(pair.server.probe.n_eofs, 1);
    const struct bow_buf late = bow_buf_borrow("late", 4);
    assert_int_equal(bow_channel_write(pair_channel(&pair.client), &late, NULL, NULL), -EPIPE);
    pair_write(&pair.server, "answer", 6);
    pair_run(&pair);
    pair_assert_got(&pair.client, "answer");
    assert_int_equal(pair.client.probe.n_eofs, 0);
    bow_channel_shutdown_write(pair_channel(&pair.server));
    assert_int_equal(bow_embedded_run(pair.server.embedded), 0);
    pair_run(&pair);
    assert_int_equal(pair.client.probe.n_eofs, 1);
    assert_int_equal(pair.client.probe.n_errors, 0);
    assert_true(bow_embedded_is_closed(pair.client.embedded));
    assert_true(bow_embedded_is_closed(pair.server.embedded));
    pair_end(&pair);
}

/* Both have said goodbye, and the peer keeps the connection: it is not waited for. */
static void test_tls_both_goodbyes_end_the_channel(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    pair_open_well(&pair);
    pair.server.probe.stops_events = true;
    pair.client.ends_told = true;
    bow_channel_shutdown_write(pair_channel(&pair.client));
    assert_int_equal(bow_embedded_run(pair.client.embedded), 0);
    pair_run(&pair);
    assert_int_equal(pair.server.probe.n_eofs, 1);
    bow_channel_shutdown_write(pair_channel(&pair.server));
    assert_int_equal(bow_embedded_run(pair.server.embedded), 0);
    assert_int_equal(bow_embedded_advance(pair.server.embedded, 2 * FAKE_S), 0);
    assert_true(bow_embedded_is_closed(pair.server.embedded));
    assert_int_equal(bow_embedded_close_error(pair.server.embedded), 0);
    pair_end(&pair);
}

static void test_tls_close_at_once_says_goodbye_if_it_can(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    pair_open_well(&pair);
    bow_channel_close(pair_channel(&pair.client), 0);
    assert_int_equal(bow_embedded_run(pair.client.embedded), 0);
    assert_true(bow_embedded_is_closed(pair.client.embedded));
    pair_run(&pair);
    assert_int_equal(pair.server.probe.n_eofs, 1);
    assert_int_equal(pair.server.probe.n_errors, 0);
    pair_end(&pair);
}

/* For a reason: the peer shall not take that for an orderly end. */
static void test_tls_close_with_an_error_is_a_cut_to_the_peer(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    pair_open_well(&pair);
    bow_channel_close(pair_channel(&pair.client), -EBADMSG);
    assert_int_equal(bow_embedded_run(pair.client.embedded), 0);
    pair_run(&pair);
    assert_int_equal(pair.client.probe.inactive_error, -EBADMSG);
    assert_int_equal(pair.server.probe.n_eofs, 0);
    assert_int_equal(pair.server.probe.last_error, -EPROTO);
    pair_end(&pair);
}

static void test_tls_close_fails_waiting_writes(void **state)
{
    struct pair pair;
    static const uint8_t big[300000];

    pair_begin(&pair, state);
    pair.client.embedded_options.socket_bytes = 30000;
    pair_open_well(&pair);
    pair_write(&pair.client, big, sizeof(big));
    pair_write(&pair.client, "more", 4);
    bow_channel_close(pair_channel(&pair.client), -EBADMSG);
    assert_int_equal(bow_embedded_run(pair.client.embedded), 0);
    assert_int_equal(pair.client.probe.n_completions, 2);
    assert_int_equal(pair.client.probe.completion_error, -EBADMSG);
    assert_non_null(strstr(pair.client.probe.log, "done:-74 inactive"));
    pair_end(&pair);
}

/* Cut */

static const char *const cut_open = "without TLS's close_notify";
static const char *const cut_early = "during the TLS handshake";

/* Where the wire breaks: after `n` bytes of the client, handshake, three records and close_notify.
 */
static void run_cut(struct pair *pair, size_t n)
{
    pair->cut_after = n;
    pair_open(pair);
    pair_run(pair);
    if (bow_channel_is_active(pair_channel(&pair->client)) &&
        bow_tls_is_open(pair_tls(&pair->client))) {
        for (int i = 0; i < 3; i++) {
            pair_write(&pair->client, "record", 6);
        }
        bow_channel_shutdown_write(pair_channel(&pair->client));
        assert_int_equal(bow_embedded_run(pair->client.embedded), 0);
        pair_run(pair);
    }
}

static void test_tls_f13_cut_at_any_place_is_an_error_never_an_end(void **state)
{
    struct pair pair;
    size_t n_all;

    pair_begin(&pair, state);
    pair.client.options.min_version = BOW_TLS_VERSION_1_3;
    run_cut(&pair, SIZE_MAX);
    n_all = pair.client.n_sent;
    assert_int_equal(pair.server.probe.n_eofs, 1);
    assert_int_equal(pair.server.probe.n_bytes, 18);
    pair_close(&pair);
    for (size_t n = n_all - 150; n < n_all; n++) { /* boundaries and insides of the last records */
        run_cut(&pair, n);
        assert_int_equal(pair.server.probe.n_eofs, 0);
        assert_int_equal(pair.server.probe.n_errors, 1);
        assert_int_equal(pair.server.probe.last_error, -EPROTO);
        assert_int_equal(pair.server.probe.inactive_error, -EPROTO);
        assert_int_equal(pair.server.probe.n_bytes % 6, 0);
        bool is_early = strstr(pair.server.probe.log, " active") == NULL;
        assert_non_null(strstr(pair.server.failure, is_early ? cut_early : cut_open));
        pair_close(&pair);
    }
    pair.cut_after = 0;
    pair_end(&pair);
}

static void test_tls_tampered_record_is_refused(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    pair_open_well(&pair);
    pair_write(&pair.client, "good", 4);
    pair_run(&pair);
    pair_write(&pair.client, "evil", 4);
    struct bow_slice output = bow_embedded_output(pair.client.embedded);
    uint8_t bytes[100];
    assert_in_range(output.len, 1, sizeof(bytes));
    memcpy(bytes, output.data, output.len);
    bytes[output.len - 1] ^= 1;
    assert_int_equal(bow_embedded_feed(pair.server.embedded, bytes, output.len), 0);
    bow_embedded_consume(pair.client.embedded, output.len);
    pair_run(&pair);
    pair_assert_got(&pair.server, "good");
    assert_int_equal(pair.server.probe.last_error, -EPROTO);
    assert_non_null(strstr(pair.server.failure, "bad record mac"));
    assert_non_null(strstr(pair.client.failure, "the peer refused the connection: bad record mac"));
    pair_end(&pair);
}

static void test_tls_reset_is_passed_on(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    pair_open_well(&pair);
    bow_embedded_reset(pair.server.embedded);
    assert_int_equal(pair.server.probe.last_error, -ECONNRESET);
    assert_int_equal(pair.server.probe.inactive_error, -ECONNRESET);
    pair_end(&pair);
}

static void test_tls_renegotiation_is_refused(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    pair.client.options.max_version = BOW_TLS_VERSION_1_2;
    pair_open_well(&pair);
    SSL *ssl = bow_tls_ssl(pair_tls(&pair.client));
    SSL_clear_options(ssl, SSL_OP_NO_RENEGOTIATION);
    assert_int_equal(SSL_renegotiate(ssl), 1);
    (void)SSL_do_handshake(ssl);
    ERR_clear_error();
    bow_channel_flush(pair_channel(&pair.client));
    assert_int_equal(bow_embedded_run(pair.client.embedded), 0);
    pair_run(&pair);
    /* The server says no, and to the client that asked this is the end. */
    assert_non_null(strstr(pair.client.failure, "no renegotiation"));
    assert_int_equal(pair.client.probe.last_error, -EPROTO);
    pair_end(&pair);
}

/* In the pipeline */

static size_t close_now(struct probe *probe, const struct bow_buf *bytes)
{
    bow_channel_close(probe->handler.channel, 0);
    return bytes->len;
}

static size_t remove_tls(struct probe *probe, const struct bow_buf *bytes)
{
    bow_channel_remove(bow_tls_handler(bow_tls_of(probe->handler.channel)));
    return bytes->len;
}

static void test_tls_close_from_inside_a_callback_is_safe(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    pair_open_well(&pair);
    pair.server.probe.on_read = close_now;
    pair_write(&pair.client, "one", 3);
    pair_write(&pair.client, "two", 3);
    pair_run(&pair);
    assert_int_equal(pair.server.probe.n_inactive, 1);
    assert_int_equal(pair.client.probe.n_eofs, 1);
    pair_end(&pair);
}

/* Taken out, the bytes behind its last record are its successor's as they are. */
static void test_tls_removed_from_inside_a_callback_leaves_the_rest(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    pair_open_well(&pair);
    pair.server.probe.on_read = remove_tls;
    pair_write(&pair.client, "bye", 3);
    pair_run(&pair);
    pair_assert_got(&pair.server, "bye");
    pair.server.probe.on_read = NULL;
    assert_null(bow_tls_of(pair_channel(&pair.server)));
    assert_int_equal(bow_embedded_feed(pair.server.embedded, "plain", 5), 0);
    pair_assert_got(&pair.server, "plain");
    pair_write(&pair.server, "text", 4);
    assert_int_equal(bow_embedded_output(pair.server.embedded).len, 4);
    bow_embedded_consume(pair.server.embedded, 4);
    pair_end(&pair);
}

static void close_in_active(struct probe *probe, const char *event)
{
    if (strcmp(event, "active") == 0) {
        bow_channel_close(probe->handler.channel, 0);
    }
}

static void test_tls_close_in_active_is_safe(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    pair_open(&pair);
    pair.server.probe.on_event = close_in_active;
    pair_run(&pair);
    assert_int_equal(pair.server.probe.n_inactive, 1);
    assert_int_equal(pair.client.probe.n_eofs, 1);
    pair_end(&pair);
}

/* One port for both, by the first byte */

struct either {
    struct bow_detect detect;
    struct pair_side *side;
};

static int choose(struct bow_detect *detect, struct bow_slice bytes, void *user)
{
    struct either *either = user;
    struct bow_channel *channel = detect->handler.channel;
    struct bow_tls *tls = NULL;

    if (bow_detect_is_tls(bytes)) {
        int rc = bow_tls_new(either->side->context, NULL, &tls);
        if (rc < 0) {
            return rc;
        }
        bow_channel_add_last(channel, bow_tls_handler(tls));
    }
    bow_channel_add_last(channel, &either->side->probe.handler);
    return 0;
}

static int either_channel(struct bow_channel *channel, struct pair_side *side)
{
    struct either *either = bow_channel_data(channel);
    const struct bow_detect_options options = {.decide = choose, .user = either};

    either->side = side;
    int rc = bow_detect_init(&either->detect, &options);
    bow_channel_add_last(channel, &either->detect.handler);
    return rc;
}

static int plain_channel(struct bow_channel *channel, struct pair_side *side)
{
    bow_channel_add_last(channel, &side->probe.handler);
    return 0;
}

static void test_tls_l60_one_port_speaks_tls_and_plaintext(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    pair.server.on_channel = either_channel;
    pair.server.embedded_options.channel.data_bytes = sizeof(struct either);
    pair_open_well(&pair);
    pair_write(&pair.client, "secret", 6);
    pair_run(&pair);
    pair_assert_got(&pair.server, "secret");
    pair_close(&pair);
    pair.client.on_channel = plain_channel;
    pair_open(&pair);
    pair_write(&pair.client, "open", 4);
    pair_run(&pair);
    pair_assert_got(&pair.server, "open");
    assert_null(bow_tls_of(pair_channel(&pair.server)));
    pair_end(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tls_close_after_flush_delivers_all_and_ends_in_order),
        cmocka_unit_test(test_tls_half_close_leaves_the_other_way_open),
        cmocka_unit_test(test_tls_both_goodbyes_end_the_channel),
        cmocka_unit_test(test_tls_close_at_once_says_goodbye_if_it_can),
        cmocka_unit_test(test_tls_close_with_an_error_is_a_cut_to_the_peer),
        cmocka_unit_test(test_tls_close_fails_waiting_writes),
        cmocka_unit_test(test_tls_f13_cut_at_any_place_is_an_error_never_an_end),
        cmocka_unit_test(test_tls_tampered_record_is_refused),
        cmocka_unit_test(test_tls_reset_is_passed_on),
        cmocka_unit_test(test_tls_renegotiation_is_refused),
        cmocka_unit_test(test_tls_close_from_inside_a_callback_is_safe),
        cmocka_unit_test(test_tls_removed_from_inside_a_callback_leaves_the_rest),
        cmocka_unit_test(test_tls_close_in_active_is_safe),
        cmocka_unit_test(test_tls_l60_one_port_speaks_tls_and_plaintext),
    };
    return cmocka_run_group_tests(tests, pair_setup, pair_teardown);
}
