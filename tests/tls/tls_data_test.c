/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Bytes through an open connection: pauses, pushed and pulled output, water marks, bounds. */

#include "tests/tls/pair.h"

#include <bowline/limits.h>
#include <errno.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

/* Takes one byte, pauses, and leaves the rest. */
static size_t take_one_and_pause(struct probe *probe, const struct bow_buf *bytes)
{
    (void)bytes;
    bow_channel_pause_read(probe->handler.channel);
    return 1;
}

static void test_tls_f10_pause_inside_a_record_goes_on_without_new_bytes(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    pair_open_well(&pair);
    pair.server.probe.on_read = take_one_and_pause;
    pair_write(&pair.client, "123", 3); /* three messages in one record */
    pair_run(&pair);
    for (size_t i = 1; i <= 3; i++) {
        assert_int_equal(pair.server.probe.n_bytes, i);
        assert_int_equal(bow_embedded_run(pair.server.embedded), 0);
        assert_int_equal(pair.server.probe.n_bytes, i);
        bow_channel_resume_read(pair_channel(&pair.server));
        assert_int_equal(bow_embedded_run(pair.server.embedded), 0);
    }
    pair_assert_got(&pair.server, "123");
    pair_end(&pair);
}

static size_t take_all_and_pause(struct probe *probe, const struct bow_buf *bytes)
{
    bow_channel_pause_read(probe->handler.channel);
    return bytes->len;
}

/* Records that arrive at once, paused after each: several are decrypted together, all arrive. */
static void test_tls_f10_pause_between_records_goes_on_without_new_bytes(void **state)
{
    static uint8_t big[200000];
    struct pair pair;

    pair_begin(&pair, state);
    pair_open_well(&pair);
    net_fill_pattern(big, sizeof(big), 0);
    pair.server.probe.checks_pattern = true;
    pair.server.probe.on_read = take_all_and_pause;
    pair_write(&pair.client, big, sizeof(big));
    bow_channel_shutdown_write(pair_channel(&pair.client));
    assert_int_equal(bow_embedded_run(pair.client.embedded), 0);
    pair_run(&pair);
    int n_pauses = 0;
    while (pair.server.probe.n_eofs == 0) {
        assert_true(n_pauses++ < 100);
        size_t before = pair.server.probe.n_bytes;
        bow_channel_resume_read(pair_channel(&pair.server));
        assert_int_equal(bow_embedded_run(pair.server.embedded), 0);
        assert_true(pair.server.probe.n_bytes > before || pair.server.probe.n_eofs == 1);
    }
    assert_true(n_pauses > 2);
    assert_int_equal(pair.server.probe.n_bytes, sizeof(big));
    assert_int_equal(pair.server.probe.n_errors, 0);
    pair_end(&pair);
}

/* The last bytes and the close_notify came together; the end is told after the pause. */
static void test_tls_f10_eof_waits_for_the_end_of_a_pause(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    pair_open_well(&pair);
    pair.server.probe.on_read = take_all_and_pause;
    pair.server.probe.stops_events = true;
    pair_write(&pair.client, "last", 4);
    bow_channel_shutdown_write(pair_channel(&pair.client));
    assert_int_equal(bow_embedded_run(pair.client.embedded), 0);
    pair.client.ends_told = true; /* close_notify alone, the connection stays */
    pair_run(&pair);
    pair_assert_got(&pair.server, "last");
    assert_int_equal(pair.server.probe.n_eofs, 0);
    bow_channel_resume_read(pair_channel(&pair.server));
    assert_int_equal(bow_embedded_run(pair.server.embedded), 0);
    assert_int_equal(pair.server.probe.n_eofs, 1);
    assert_int_equal(pair.server.probe.n_errors, 0);
    pair_end(&pair);
}

/* Pulled output */

/* Offers a pattern in pieces of odd sizes, and says how much of it has left. */
struct source {
    struct bow_handler handler;
    uint8_t *bytes;
    size_t len;
    size_t n_sent;
    size_t piece_bytes;
    bool waits; /* nothing yet, but some will come */
};

static int source_drain(struct bow_handler *handler, struct iovec *pieces, int max)
{
    const struct source *source = (struct source *)(void *)handler;
    size_t at = source->n_sent;
    int n = 0;

    if (source->waits) {
        return -EAGAIN;
    }
    while (at < source->len && n < max) {
        size_t left = source->len - at;
        size_t len = left < source->piece_bytes ? left : source->piece_bytes;
        pieces[n++] = (struct iovec){source->bytes + at, len};
        at += len;
    }
    return n;
}

static void source_sent(struct bow_handler *handler, size_t n)
{
    struct source *source = (struct source *)(void *)handler;

    source->n_sent += n;
    assert_true(source->n_sent <= source->len);
}

static const struct bow_handler_ops source_ops = {
    .name = "source", .on_drain = source_drain, .on_sent = source_sent};

static void begin_source(struct source *source, struct pair *pair, size_t len, size_t piece_bytes)
{
    *source = (struct source){.len = len, .piece_bytes = piece_bytes};
    source->handler.ops = &source_ops;
    source->bytes = malloc(len);
    assert_non_null(source->bytes);
    net_fill_pattern(source->bytes, len, 0);
    bow_channel_add_last(pair_channel(&pair->client), &source->handler);
}

static void pull(struct pair *pair)
{
    bow_channel_flush(pair_channel(&pair->client));
    assert_int_equal(bow_embedded_run(pair->client.embedded), 0);
    pair_run(pair);
}

static void test_tls_pulled_pieces_of_any_size_arrive_in_order(void **state)
{
    static const size_t sizes[] = {1, 13, 700, 16383, 16384, 16385, 40000, 500000};
    struct pair pair;
    struct source source;

    pair_begin(&pair, state);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        pair_open_well(&pair);
        pair.server.probe.checks_pattern = true;
        begin_source(&source, &pair, 300000, sizes[i]);
        pull(&pair);
        assert_int_equal(pair.server.probe.n_bytes, source.len);
        assert_int_equal(source.n_sent, source.len);
        pair_close(&pair);
        free(source.bytes);
    }
    pair_end(&pair);
}

static void test_tls_small_pulled_pieces_share_records(void **state)
{
    struct pair pair;
    struct source source;

    pair_begin(&pair, state);
    pair_open_well(&pair);
    pair.server.probe.checks_pattern = true;
    size_t before = pair.client.n_sent;
    begin_source(&source, &pair, 6400, 100); /* 64 pieces */
    pull(&pair);
    assert_int_equal(pair.server.probe.n_bytes, 6400);
    assert_int_equal(pair.client.n_sent - before, 6400 + 22);
    pair_end(&pair);
    free(source.bytes);
}

/* Pushed bytes leave before pulled ones, as without TLS. */
static void test_tls_pushed_bytes_leave_before_pulled_ones(void **state)
{
    struct pair pair;
    struct source source;
    uint8_t first[100];

    pair_begin(&pair, state);
    pair_open_well(&pair);
    begin_source(&source, &pair, 100, 100);
    memset(first, 'x', sizeof(first));
    pair_write(&pair.client, first, sizeof(first));
    pair_run(&pair);
    assert_int_equal(pair.server.probe.n_bytes, 200);
    assert_memory_equal(pair.server.probe.bytes, first, 100);
    assert_memory_equal(pair.server.probe.bytes + 100, source.bytes, 100);
    pair_end(&pair);
    free(source.bytes);
}

/* The end of our side, asked for early, comes behind what a handler still has. */
static void test_tls_pulled_bytes_that_come_late_hold_the_end_back(void **state)
{
    struct pair pair;
    struct source source;

    pair_begin(&pair, state);
    pair_open(&pair); /* before the handshake is done */
    begin_source(&source, &pair, 50000, 50000);
    source.waits = true;
    bow_channel_shutdown_write(pair_channel(&pair.client));
    assert_int_equal(bow_embedded_run(pair.client.embedded), 0);
    pair_run(&pair);
    assert_int_equal(pair.server.probe.n_eofs, 0);
    source.waits = false;
    pair.server.probe.checks_pattern = true;
    pull(&pair);
    assert_int_equal(pair.server.probe.n_bytes, 50000);
    assert_int_equal(pair.server.probe.n_eofs, 1);
    assert_int_equal(pair.server.probe.n_errors, 0);
    pair_end(&pair);
    free(source.bytes);
}

/* Bounds */

static void test_tls_blocked_socket_bounds_what_is_encrypted(void **state)
{
    struct pair pair;
    struct source source;

    pair_begin(&pair, state);
    pair.client.embedded_options.socket_bytes = 20000;
    pair_open_well(&pair);
    begin_source(&source, &pair, 20 * MIB, 1 * MIB);
    bow_channel_flush(pair_channel(&pair.client));
    assert_int_equal(bow_embedded_run(pair.client.embedded), 0);
    /* 64 KiB and the rest of a record, beside what the socket took. */
    assert_in_range(source.n_sent, 20000, 110000);
    pair.server.probe.checks_pattern = true;
    pair.server.probe.keeps = false;
    size_t most = 0;
    while (pair_carry(&pair)) {
        size_t now = bow_context_bytes(pair.t.context);
        most = now > most ? now : most;
    }
    assert_int_equal(pair.server.probe.n_bytes, source.len);
    assert_true(most < 2 * MIB);
    pair_end(&pair);
    free(source.bytes);
}

static void test_tls_100_mib_each_way_stay_in_bounded_memory(void **state)
{
    struct pair pair;
    struct source source;
    const int n_rounds = 5;

    pair_begin(&pair, state);
    pair.client.embedded_options.socket_bytes = 200000;
    pair_open_well(&pair);
    pair.client.probe.keeps = false;
    pair.server.probe.keeps = false;
    begin_source(&source, &pair, 20 * MIB, 65472);
    for (int i = 0; i < n_rounds; i++) {
        source.n_sent = 0;
        pull(&pair);
        assert_int_equal(pair.server.probe.n_bytes, source.len * ((size_t)i + 1));
        for (int k = 0; k < 20; k++) {
            pair_write(&pair.server, source.bytes, MIB);
            pair_run(&pair);
        }
        assert_int_equal(pair.client.probe.n_bytes, source.len * ((size_t)i + 1));
        assert_true(bow_context_bytes(pair.t.context) < 3 * MIB);
    }
    pair_end(&pair);
    free(source.bytes);
}

static void test_tls_water_marks_count_what_is_not_encrypted(void **state)
{
    static const uint8_t big[400000];
    struct pair pair;
    struct probe *probe = &pair.client.probe;

    pair_begin(&pair, state);
    pair.client.embedded_options.socket_bytes = 10000;
    pair_open_well(&pair);
    struct bow_channel *channel = pair_channel(&pair.client);
    assert_true(bow_channel_is_writable(channel));
    struct bow_buf buf = bow_buf_borrow(big, sizeof(big));
    assert_int_equal(bow_channel_write(channel, &buf, probe_done, probe), 0);
    assert_false(bow_channel_is_writable(channel)); /* queued, flushed or not */
    bow_channel_flush(channel);
    assert_int_equal(bow_embedded_run(pair.client.embedded), 0);
    assert_non_null(strstr(probe->log, "unwritable"));
    assert_int_equal(probe->n_completions, 0);
    pair_run(&pair);
    assert_non_null(strstr(probe->log, " writable"));
    assert_true(bow_channel_is_writable(channel));
    assert_int_equal(probe->n_completions, 1);
    assert_int_equal(pair.server.probe.n_bytes, sizeof(big));
    pair_end(&pair);
}

static void test_tls_empty_writes_complete_too(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    pair_open_well(&pair);
    size_t before = pair.client.n_sent;
    pair_write(&pair.client, "", 0);
    pair_run(&pair);
    assert_int_equal(pair.client.probe.n_completions, 1);
    assert_int_equal(pair.client.n_sent, before);
    struct bow_channel *channel = pair_channel(&pair.client);
    const struct bow_buf empty = bow_buf_borrow("", 0);
    const struct bow_buf full = bow_buf_borrow("full", 4);
    assert_int_equal(bow_channel_write(channel, &empty, probe_done, &pair.client.probe), 0);
    assert_int_equal(bow_channel_write(channel, &full, probe_done, &pair.client.probe), 0);
    pair_write(&pair.client, "", 0);
    pair_run(&pair);
    assert_int_equal(pair.client.probe.n_completions, 4);
    pair_assert_got(&pair.server, "full");
    pair_end(&pair);
}

static void test_tls_counted_buf_is_shared_until_it_has_left(void **state)
{
    struct pair pair;
    struct bow_buf counted;
    const struct bow_buf text = bow_buf_borrow("counted", 7);

    pair_begin(&pair, state);
    pair_open_well(&pair);
    assert_int_equal(bow_buf_share(pair.t.context, &text, &counted), 0);
    assert_int_equal(bow_channel_write_and_flush(pair_channel(&pair.client), &counted, probe_done,
                                                 &pair.client.probe),
                     0);
    bow_buf_unref(&counted);
    assert_int_equal(bow_embedded_run(pair.client.embedded), 0);
    pair_run(&pair);
    pair_assert_got(&pair.server, "counted");
    pair_end(&pair);
}

/* A peer that asks for answers (key updates) and does not read them. */
static void test_tls_key_update_flood_is_ended(void **state)
{
    struct pair pair;
    int n = 0;

    pair_begin(&pair, state);
    pair.server.embedded_options.socket_bytes = 4096;
    pair_open_well(&pair);
    pair.server.probe.keeps = false;
    SSL *ssl = bow_tls_ssl(pair_tls(&pair.client));
    while (!bow_embedded_is_closed(pair.server.embedded)) {
        assert_true(n++ < 20000);
        assert_int_equal(SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED), 1);
        pair_write(&pair.client, "x", 1);
        struct bow_slice output = bow_embedded_output(pair.client.embedded);
        if (bow_embedded_feed(pair.server.embedded, output.data, output.len) < 0) {
            break;
        }
        bow_embedded_consume(pair.client.embedded, output.len);
        assert_true(bow_context_bytes(pair.t.context) < 2 * MIB);
        if (pair.server.probe.n_errors > 0) {
            break;
        }
    }
    assert_int_equal(pair.server.probe.last_error, -EMSGSIZE);
    assert_non_null(strstr(pair.server.failure, "BOW_LIMIT_TLS_ANSWER_BYTES"));
    pair_end(&pair);
}

static void test_tls_key_update_is_answered(void **state)
{
    struct pair pair;

    pair_begin(&pair, state);
    pair_open_well(&pair);
    SSL *ssl = bow_tls_ssl(pair_tls(&pair.client));
    for (int i = 0; i < 10; i++) {
        assert_int_equal(SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED), 1);
        pair_write(&pair.client, "ping", 4);
        pair_run(&pair);
        pair_assert_got(&pair.server, "ping");
        pair_write(&pair.server, "pong", 4);
        pair_run(&pair);
        pair_assert_got(&pair.client, "pong");
    }
    pair_end(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tls_f10_pause_inside_a_record_goes_on_without_new_bytes),
        cmocka_unit_test(test_tls_f10_pause_between_records_goes_on_without_new_bytes),
        cmocka_unit_test(test_tls_f10_eof_waits_for_the_end_of_a_pause),
        cmocka_unit_test(test_tls_pulled_pieces_of_any_size_arrive_in_order),
        cmocka_unit_test(test_tls_small_pulled_pieces_share_records),
        cmocka_unit_test(test_tls_pushed_bytes_leave_before_pulled_ones),
        cmocka_unit_test(test_tls_pulled_bytes_that_come_late_hold_the_end_back),
        cmocka_unit_test(test_tls_blocked_socket_bounds_what_is_encrypted),
        cmocka_unit_test(test_tls_100_mib_each_way_stay_in_bounded_memory),
        cmocka_unit_test(test_tls_water_marks_count_what_is_not_encrypted),
        cmocka_unit_test(test_tls_empty_writes_complete_too),
        cmocka_unit_test(test_tls_counted_buf_is_shared_until_it_has_left),
        cmocka_unit_test(test_tls_key_update_flood_is_ended),
        cmocka_unit_test(test_tls_key_update_is_answered),
    };
    return cmocka_run_group_tests(tests, pair_setup, pair_teardown);
}
