/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The channel without a socket: the test is the peer and the clock. */

#include "tests/support/bench.h"

#include <bowline/limits.h>
#include <bowline/timer.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

static void test_embedded_l61_bytes_go_through_the_pipeline_and_back(void **state)
{
    struct bench bench;
    (void)state;
    bench_prepare(&bench);
    bench_open(&bench);
    bench.probe.on_read = bench_echo;
    assert_string_equal(bench.probe.log, " added active");
    bench_feed(&bench, "ping");
    bench_assert_output(&bench, "ping");
    bench_feed(&bench, "a");
    bench_feed(&bench, "b");
    bench_assert_output(&bench, "ab");
    assert_string_equal(bench.probe.log, " added active read:4 complete done:0 read:1 complete "
                                         "done:0 read:1 complete done:0");
    bench_end(&bench);
    assert_int_equal(bench.probe.inactive_error, -ESHUTDOWN);
    assert_int_equal(bench.probe.n_removed, 1);
}

struct ticker {
    struct bow_timer timer;
    struct bench *bench;
    uint64_t period_ns;
    uint64_t at_ns[4];
    int n;
};

static void on_tick(struct bow_timer *timer, void *user)
{
    struct ticker *ticker = user;

    if (ticker->n < 4) {
        ticker->at_ns[ticker->n] = bow_loop_now(timer->loop);
    }
    ticker->n++;
    bow_timer_start(timer, ticker->period_ns);
}

static void test_embedded_l61_test_moves_the_clock_from_timer_to_timer(void **state)
{
    struct bench bench;
    struct ticker ticker = {.period_ns = 10 * FAKE_S};
    (void)state;
    bench_prepare(&bench);
    bench_open(&bench);
    struct bow_loop *loop = bow_embedded_loop(bench.embedded);
    uint64_t from = bow_embedded_now(bench.embedded);
    assert_int_equal(bow_loop_now(loop), from);
    assert_int_equal(bow_embedded_next_timeout(bench.embedded), BOW_NEVER);
    bow_timer_init(&ticker.timer, loop, on_tick, &ticker);
    bow_timer_start(&ticker.timer, ticker.period_ns);
    bench_advance(&bench, 10 * FAKE_S - 1);
    assert_int_equal(ticker.n, 0);
    assert_int_equal(bow_embedded_next_timeout(bench.embedded), 1);
    bench_advance(&bench, 1);
    assert_int_equal(ticker.n, 1);
    bench_advance(&bench, 25 * FAKE_S);
    assert_int_equal(ticker.n, 3);
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(ticker.at_ns[i], from + (i + 1) * 10 * FAKE_S);
    }
    assert_int_equal(bow_embedded_now(bench.embedded), from + 35 * FAKE_S);
    bench_end(&bench);
}

static void test_embedded_l61_timer_without_delay_for_ever_is_told(void **state)
{
    struct bench bench;
    struct ticker ticker = {.period_ns = 0};
    (void)state;
    bench_prepare(&bench);
    bench_open(&bench);
    bow_timer_init(&ticker.timer, bow_embedded_loop(bench.embedded), on_tick, &ticker);
    bow_timer_start(&ticker.timer, 0);
    assert_int_equal(bow_embedded_run(bench.embedded), -ELOOP);
    assert_int_equal(bow_embedded_advance(bench.embedded, FAKE_S), -ELOOP);
    bow_timer_stop(&ticker.timer);
    bench_run(&bench);
    bench_end(&bench);
}

static void test_embedded_l61_end_of_the_peer_comes_behind_its_bytes(void **state)
{
    struct bench bench;
    (void)state;
    bench_prepare(&bench);
    bench_open(&bench);
    bench.probe.stops_events = true;
    bow_channel_pause_read(bow_embedded_channel(bench.embedded));
    bench_feed(&bench, "last");
    bow_embedded_end(bench.embedded);
    assert_int_equal(bow_embedded_feed(bench.embedded, "x", 1), -EPIPE);
    assert_int_equal(bench.probe.n_bytes, 0);
    bow_channel_resume_read(bow_embedded_channel(bench.embedded));
    bench_run(&bench);
    assert_string_equal(bench.probe.log, " added active complete read:4 complete eof");
    /* Half-closed: answers still leave. */
    const struct bow_buf buf = bow_buf_borrow("bye", 3);
    struct bow_channel *channel = bow_embedded_channel(bench.embedded);
    assert_int_equal(bow_channel_write_and_flush(channel, &buf, NULL, NULL), 0);
    bench_run(&bench);
    bench_assert_output(&bench, "bye");
    assert_false(bow_embedded_is_ended(bench.embedded));
    bow_channel_shutdown_write(channel);
    bench_run(&bench);
    assert_true(bow_embedded_is_ended(bench.embedded));
    assert_true(bow_embedded_is_closed(bench.embedded));
    assert_int_equal(bow_embedded_close_error(bench.embedded), 0);
    assert_int_equal(bench.probe.n_inactive, 1);
    bench_end(&bench);
}

static void test_embedded_l61_reset_closes_with_the_error_behind_what_was_sent(void **state)
{
    struct bench bench;
    (void)state;
    bench_prepare(&bench);
    bench_open(&bench);
    bench.probe.stops_events = true;
    bow_channel_pause_read(bow_embedded_channel(bench.embedded));
    bench_feed(&bench, "last");
    bow_channel_resume_read(bow_embedded_channel(bench.embedded));
    bow_embedded_reset(bench.embedded);
    assert_int_equal(bench.probe.n_bytes, 4);
    assert_int_equal(bench.probe.last_error, -ECONNRESET);
    assert_int_equal(bench.probe.n_inactive, 1);
    assert_true(bow_embedded_is_closed(bench.embedded));
    assert_int_equal(bow_embedded_close_error(bench.embedded), -ECONNRESET);
    assert_int_equal(bow_embedded_feed(bench.embedded, "x", 1), -EPIPE);
    bench_end(&bench);
}

static void test_embedded_l61_full_socket_takes_the_rest_when_there_is_room(void **state)
{
    struct bench bench;
    (void)state;
    bench_prepare(&bench);
    bench.options.socket_bytes = 4;
    bench_open(&bench);
    const struct bow_buf buf = bow_buf_borrow("abcdefghij", 10);
    struct bow_channel *channel = bow_embedded_channel(bench.embedded);
    bow_channel_set_water_marks(channel, 3, 8);
    assert_int_equal(bow_channel_write_and_flush(channel, &buf, probe_done, &bench.probe), 0);
    bench_run(&bench);
    assert_false(bow_channel_is_writable(channel));
    bench_assert_output(&bench, "abcd");
    bench_run(&bench);
    bench_assert_output(&bench, "efgh");
    assert_int_equal(bench.probe.n_completions, 0);
    bench_run(&bench);
    bench_assert_output(&bench, "ij");
    assert_true(bow_channel_is_writable(channel));
    assert_string_equal(bench.probe.log, " added active unwritable writable done:0");
    bench_end(&bench);
}

static size_t feed_once_more(struct probe *probe, const struct bow_buf *bytes)
{
    struct bench *bench = probe->user;

    if (probe->n_bytes == 0) {
        bench_feed(bench, "second");
        assert_int_equal(bow_embedded_run(bench->embedded), -EBUSY);
        assert_int_equal(bow_embedded_advance(bench->embedded, FAKE_S), -EBUSY);
        assert_int_equal(probe->n_bytes, 0); /* not inside this callback */
    }
    return bytes->len;
}

static void test_embedded_l61_bytes_fed_by_a_handler_come_in_the_same_run(void **state)
{
    struct bench bench;
    (void)state;
    bench_prepare(&bench);
    bench_open(&bench);
    bench.probe.user = &bench;
    bench.probe.on_read = feed_once_more;
    bench_feed(&bench, "first ");
    assert_int_equal(bench.probe.n_bytes, 12);
    assert_memory_equal(bench.probe.bytes, "first second", 12);
    bench_end(&bench);
}

static int refuse(struct bow_channel *channel, void *user)
{
    struct bench *bench = user;

    bow_channel_add_last(channel, &bench->probe.handler);
    return -EACCES;
}

static void test_embedded_l61_channel_that_cannot_be_set_up_says_why(void **state)
{
    struct bench bench;
    (void)state;
    bench_prepare(&bench);
    bench.options.channel.on_channel = refuse;
    assert_int_equal(bow_embedded_new(bench.t.context, &bench.options, &bench.embedded), -EACCES);
    assert_null(bench.embedded);
    assert_string_equal(bench.probe.log, " added removed");
    bench.options.peer = "nonsense";
    assert_int_equal(bow_embedded_new(bench.t.context, &bench.options, &bench.embedded), -EINVAL);
    bench.options.peer = "example.org:80";
    assert_int_equal(bow_embedded_new(bench.t.context, &bench.options, &bench.embedded), -EINVAL);
    bench.options.size = 3;
    assert_int_equal(bow_embedded_new(bench.t.context, &bench.options, &bench.embedded), -EINVAL);
    assert_int_equal(bow_embedded_new(bench.t.context, NULL, &bench.embedded), -EINVAL);
    bench_end(&bench);
}

static void check_peer(const char *peer, const char *shown)
{
    struct bench bench;
    struct bow_peer_credentials credentials;

    bench_prepare(&bench);
    bench.options.peer = peer;
    bench_open(&bench);
    struct bow_channel *channel = bow_embedded_channel(bench.embedded);
    assert_string_equal(bow_channel_peer(channel), shown);
    assert_int_equal(bow_channel_peer_credentials(channel, &credentials), -ENOTSUP);
    bench_end(&bench);
}

static void test_embedded_l61_peer_and_its_credentials_are_as_told(void **state)
{
    const struct bow_peer_credentials given = {.pid = 1, .uid = 2, .gid = 3};
    struct bow_peer_credentials credentials;
    struct bench bench;
    (void)state;
    check_peer(NULL, "unix:");
    check_peer("unix:/run/x", "unix:/run/x");
    check_peer("10.1.2.3:4711", "10.1.2.3:4711");
    check_peer("[2001:db8::1]:80", "[2001:db8::1]:80");
    bench_prepare(&bench);
    bench.options.credentials = &given;
    bench_open(&bench);
    assert_int_equal(
        bow_channel_peer_credentials(bow_embedded_channel(bench.embedded), &credentials), 0);
    assert_memory_equal(&credentials, &given, sizeof(given));
    bench_end(&bench);
}

static void *post_from_outside(void *user)
{
    struct bench *bench = user;
    const struct bow_buf buf = bow_buf_borrow("hello", 5);

    assert_int_equal(bow_channel_write_and_flush(bow_embedded_channel(bench->embedded), &buf,
                                                 probe_done, &bench->probe),
                     0);
    return NULL;
}

static void test_embedded_l61_work_of_another_thread_is_found_by_the_next_run(void **state)
{
    struct bench bench;
    pthread_t thread;
    (void)state;
    bench_prepare(&bench);
    bench_open(&bench);
    assert_int_equal(pthread_create(&thread, NULL, post_from_outside, &bench), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(bench.probe.n_completions, 0);
    assert_int_equal(bow_embedded_next_timeout(bench.embedded), 0);
    bench_run(&bench);
    bench_assert_output(&bench, "hello");
    assert_int_equal(bench.probe.n_completions, 1);
    bench_end(&bench);
}

static void test_embedded_l61_more_bytes_than_a_channel_may_keep_are_refused(void **state)
{
    static const uint8_t piece[1 << 20];
    struct bench bench;
    (void)state;
    bench_prepare(&bench);
    bench_open(&bench);
    bow_channel_pause_read(bow_embedded_channel(bench.embedded));
    for (size_t n = 0; n < BOW_LIMIT_UNREAD_BYTES; n += sizeof(piece)) {
        assert_int_equal(bow_embedded_feed(bench.embedded, piece, sizeof(piece)), 0);
    }
    assert_int_equal(bow_embedded_feed(bench.embedded, piece, 1), -EMSGSIZE);
    bench_end(&bench);
}

static int add_probe(struct bow_channel *channel, void *user)
{
    struct probe *probe = user;

    bow_channel_add_last(channel, &probe->handler);
    return 0;
}

static int scenario(struct bow_context *context, void *user)
{
    struct bow_embedded_options options = BOW_EMBEDDED_OPTIONS_INIT;
    struct bow_embedded *embedded = NULL;
    struct probe probe;
    (void)user;

    probe_init(&probe, NULL);
    options.channel.on_channel = add_probe;
    options.channel.user = &probe;
    int rc = bow_embedded_new(context, &options, &embedded);
    if (rc < 0) {
        return rc;
    }
    const struct bow_buf buf = bow_buf_borrow("out", 3);
    rc = bow_channel_write_and_flush(bow_embedded_channel(embedded), &buf, NULL, NULL);
    if (rc == 0) {
        rc = bow_embedded_feed(embedded, "in", 2);
    }
    if (rc == 0 && bow_embedded_is_closed(embedded)) {
        rc = bow_embedded_close_error(embedded);
    }
    bow_embedded_free(embedded);
    return rc == -EPIPE ? -ENOMEM : rc; /* sending failed first, so it was closed */
}

static void test_embedded_l61_each_failing_allocation_leaves_nothing(void **state)
{
    (void)state;
    assert_true(test_alloc_fail_each(NULL, scenario, NULL) >= 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_embedded_l61_bytes_go_through_the_pipeline_and_back),
        cmocka_unit_test(test_embedded_l61_test_moves_the_clock_from_timer_to_timer),
        cmocka_unit_test(test_embedded_l61_timer_without_delay_for_ever_is_told),
        cmocka_unit_test(test_embedded_l61_end_of_the_peer_comes_behind_its_bytes),
        cmocka_unit_test(test_embedded_l61_reset_closes_with_the_error_behind_what_was_sent),
        cmocka_unit_test(test_embedded_l61_full_socket_takes_the_rest_when_there_is_room),
        cmocka_unit_test(test_embedded_l61_bytes_fed_by_a_handler_come_in_the_same_run),
        cmocka_unit_test(test_embedded_l61_channel_that_cannot_be_set_up_says_why),
        cmocka_unit_test(test_embedded_l61_peer_and_its_credentials_are_as_told),
        cmocka_unit_test(test_embedded_l61_work_of_another_thread_is_found_by_the_next_run),
        cmocka_unit_test(test_embedded_l61_more_bytes_than_a_channel_may_keep_are_refused),
        cmocka_unit_test(test_embedded_l61_each_failing_allocation_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
