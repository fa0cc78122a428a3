/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Idle reader, writer, both: what counts, when it is told, and what it costs. */

#include "base/context.h"
#include "tests/support/bench.h"

#include <bowline/idle.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

struct idle_bench {
    struct bench bench;
    struct bow_idle idle;
    char told[256]; /* " reader:0@60" … seconds since the start */
    uint64_t from_ns;
    void (*then)(struct idle_bench *b);
};

static void on_idle(struct bow_idle *idle, enum bow_idle_kind kind, uint32_t n, void *user)
{
    static const char *const names[] = {"reader", "writer", "all"};
    struct idle_bench *b = user;
    size_t len = strlen(b->told);

    snprintf(b->told + len, sizeof(b->told) - len, " %s:%u@%llu", names[kind], n,
             (unsigned long long)((bow_loop_now(idle->timer.loop) - b->from_ns) / FAKE_S));
    if (b->then != NULL) {
        b->then(b);
    }
}

static void begin(struct idle_bench *b, uint64_t reader_s, uint64_t writer_s, uint64_t all_s)
{
    const struct bow_idle_options options = {
        .reader_ns = reader_s * FAKE_S,
        .writer_ns = writer_s * FAKE_S,
        .all_ns = all_s * FAKE_S,
        .on_idle = on_idle,
        .user = b,
    };

    memset(b, 0, sizeof(*b));
    bench_prepare(&b->bench);
    bow_idle_init(&b->idle, &options);
    b->bench.handlers[0] = &b->idle.handler;
    bench_open(&b->bench);
    b->from_ns = bow_embedded_now(b->bench.embedded);
}

static void send_one(struct idle_bench *b)
{
    const struct bow_buf buf = bow_buf_borrow("x", 1);

    assert_int_equal(bow_channel_write_and_flush(b->bench.channel, &buf, NULL, NULL), 0);
    bench_run(&b->bench);
}

static void test_idle_l60_reader_is_told_once_a_period_until_bytes_come(void **state)
{
    struct idle_bench b;
    (void)state;
    begin(&b, 60, 0, 0);
    bench_advance(&b.bench, 60 * FAKE_S - 1);
    assert_string_equal(b.told, "");
    bench_advance(&b.bench, 1);
    assert_string_equal(b.told, " reader:0@60");
    bench_advance(&b.bench, 65 * FAKE_S); /* 125 */
    assert_string_equal(b.told, " reader:0@60 reader:1@120");
    bench_feed(&b.bench, "x");
    bench_assert_read(&b.bench, "x");
    bench_advance(&b.bench, 60 * FAKE_S - 1);
    send_one(&b); /* says nothing about the peer */
    bench_advance(&b.bench, 1);
    assert_string_equal(b.told, " reader:0@60 reader:1@120 reader:0@185");
    bench_end(&b.bench);
}

static void test_idle_l60_writer_counts_what_left_not_what_came(void **state)
{
    struct idle_bench b;
    (void)state;
    begin(&b, 0, 20, 0);
    bench_advance(&b.bench, 15 * FAKE_S);
    send_one(&b);
    bench_advance(&b.bench, 15 * FAKE_S); /* 30 */
    bench_feed(&b.bench, "x");
    assert_string_equal(b.told, "");
    bench_advance(&b.bench, 5 * FAKE_S);
    assert_string_equal(b.told, " writer:0@35");
    bench_end(&b.bench);
}

static void test_idle_l60_full_socket_is_an_idle_writer(void **state)
{
    struct idle_bench b;
    const struct bow_buf buf = bow_buf_borrow("abcdef", 6);
    (void)state;
    begin(&b, 0, 20, 0);
    bow_embedded_free(b.bench.embedded);
    b.bench.options.socket_bytes = 3;
    bench_open(&b.bench);
    bench_advance(&b.bench, 10 * FAKE_S);
    assert_int_equal(bow_channel_write_and_flush(b.bench.channel, &buf, NULL, NULL), 0);
    bench_advance(&b.bench, 20 * FAKE_S);
    assert_string_equal(b.told, " writer:0@30");
    bench_end(&b.bench);
}

static void test_idle_l60_all_needs_both_ways_quiet(void **state)
{
    struct idle_bench b;
    (void)state;
    begin(&b, 0, 0, 30);
    bench_advance(&b.bench, 20 * FAKE_S);
    bench_feed(&b.bench, "x");
    bench_advance(&b.bench, 20 * FAKE_S); /* 40 */
    send_one(&b);
    bench_advance(&b.bench, 29 * FAKE_S);
    assert_string_equal(b.told, "");
    bench_advance(&b.bench, 1 * FAKE_S);
    assert_string_equal(b.told, " all:0@70");
    bench_end(&b.bench);
}

static void test_idle_l60_kinds_have_each_their_own_time(void **state)
{
    struct idle_bench b;
    (void)state;
    begin(&b, 30, 20, 50);
    bench_advance(&b.bench, 60 * FAKE_S);
    assert_string_equal(b.told,
                        " writer:0@20 reader:0@30 writer:1@40 all:0@50 reader:1@60 writer:2@60");
    bench_end(&b.bench);
}

static void test_idle_l60_time_in_which_reading_is_paused_does_not_count(void **state)
{
    struct idle_bench b;
    (void)state;
    begin(&b, 60, 0, 0);
    bow_channel_pause_read(b.bench.channel);
    bench_advance(&b.bench, 200 * FAKE_S);
    bow_channel_resume_read(b.bench.channel);
    bench_advance(&b.bench, 60 * FAKE_S - 1);
    assert_string_equal(b.told, "");
    bench_advance(&b.bench, 1);
    assert_string_equal(b.told, " reader:0@260");
    bench_end(&b.bench);
}

static void test_idle_l60_bytes_move_no_timer(void **state)
{
    struct idle_bench b;
    struct bow_loop_stats stats = {.size = sizeof(stats)};
    (void)state;
    begin(&b, 60, 60, 60);
    uint64_t key = b.idle.timer.node.key;
    uint64_t seq = b.idle.timer.node.seq;
    for (int i = 0; i < 1000; i++) {
        bench_advance(&b.bench, 50 * FAKE_MS); /* in all 50 s */
        bench_feed(&b.bench, "x");
        send_one(&b);
    }
    assert_int_equal(b.idle.timer.node.key, key);
    assert_int_equal(b.idle.timer.node.seq, seq);
    bench_advance(&b.bench, 10 * FAKE_S); /* fires, finds activity, moves on */
    assert_int_equal(b.idle.timer.node.key, b.from_ns + 110 * FAKE_S);
    assert_string_equal(b.told, "");
    bow_loop_get_stats(bow_embedded_loop(b.bench.embedded), &stats);
    assert_int_equal(stats.timers_fired, 1);
    bench_end(&b.bench);
}

static void close_it(struct idle_bench *b)
{
    bow_channel_close(b->bench.channel, -ETIME);
}

static void take_out(struct idle_bench *b)
{
    bow_channel_remove(&b->idle.handler);
}

static void check_then(void (*then)(struct idle_bench *b))
{
    struct idle_bench b;

    begin(&b, 10, 10, 10);
    b.then = then;
    bench_advance(&b.bench, 100 * FAKE_S);
    assert_string_equal(b.told, " reader:0@10");
    assert_false(bow_timer_is_armed(&b.idle.timer));
    bench_end(&b.bench);
}

static void test_idle_l60_callback_may_close_or_take_it_out(void **state)
{
    (void)state;
    check_then(close_it);
    check_then(take_out);
}

static void test_idle_l60_without_a_callback_closes(void **state)
{
    struct idle_bench b;
    (void)state;
    begin(&b, 10, 0, 0);
    b.idle.options.on_idle = NULL;
    bench_advance(&b.bench, 10 * FAKE_S);
    assert_true(bow_embedded_is_closed(b.bench.embedded));
    assert_int_equal(b.bench.probe.inactive_error, -ETIMEDOUT);
    assert_string_equal(b.bench.t.log, "");
    bench_end(&b.bench);
}

static void expect_words(uint64_t reader_s, uint64_t writer_s, uint64_t all_s, const char *words)
{
    struct idle_bench b;

    begin(&b, reader_s, writer_s, all_s);
    b.bench.t.context->log_level = BOW_LOG_DEBUG;
    b.idle.options.on_idle = NULL;
    bench_advance(&b.bench, 10 * FAKE_S);
    assert_non_null(strstr(b.bench.t.log, bow_channel_peer(b.bench.channel)));
    if (strstr(b.bench.t.log, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", b.bench.t.log, words);
    }
    bench_end(&b.bench);
}

static void test_idle_l60_closing_says_to_whom_and_why(void **state)
{
    (void)state;
    expect_words(10, 0, 0, "nothing was received for 10000 ms; closing it");
    expect_words(0, 9, 0, "nothing was sent for 9000 ms; closing it");
    expect_words(0, 0, 8, "nothing was received or sent for 8000 ms; closing it");
}

static size_t stop_after_one(struct probe *probe, const struct bow_buf *bytes)
{
    bow_channel_pause_read(probe->handler.channel);
    return bytes->len > 0 ? 1 : 0;
}

static void test_idle_l60_bytes_that_nobody_takes_are_kept_in_order(void **state)
{
    struct idle_bench b;
    (void)state;
    begin(&b, 60, 0, 0);
    b.bench.probe.on_read = stop_after_one;
    bench_feed(&b.bench, "abc");
    for (int i = 0; i < 2; i++) {
        bow_channel_resume_read(b.bench.channel);
        bench_run(&b.bench);
    }
    bench_assert_read(&b.bench, "abc");
    bench_end(&b.bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idle_l60_reader_is_told_once_a_period_until_bytes_come),
        cmocka_unit_test(test_idle_l60_writer_counts_what_left_not_what_came),
        cmocka_unit_test(test_idle_l60_full_socket_is_an_idle_writer),
        cmocka_unit_test(test_idle_l60_all_needs_both_ways_quiet),
        cmocka_unit_test(test_idle_l60_kinds_have_each_their_own_time),
        cmocka_unit_test(test_idle_l60_time_in_which_reading_is_paused_does_not_count),
        cmocka_unit_test(test_idle_l60_bytes_move_no_timer),
        cmocka_unit_test(test_idle_l60_callback_may_close_or_take_it_out),
        cmocka_unit_test(test_idle_l60_without_a_callback_closes),
        cmocka_unit_test(test_idle_l60_closing_says_to_whom_and_why),
        cmocka_unit_test(test_idle_l60_bytes_that_nobody_takes_are_kept_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
