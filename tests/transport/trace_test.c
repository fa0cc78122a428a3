/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the byte trace writes, and that it changes nothing. */

#include "tests/support/bench.h"

#include <bowline/trace.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

struct traced {
    struct bench bench;
    struct bow_trace trace;
    char lines[4096]; /* each with a line feed */
};

static void on_line(const char *line, void *user)
{
    struct traced *b = user;
    size_t len = strlen(b->lines);

    for (const char *c = line; *c != '\0'; c++) {
        assert_true(*c >= ' ' && *c <= '~');
    }
    snprintf(b->lines + len, sizeof(b->lines) - len, "%s\n", line);
}

static void begin(struct traced *b, size_t max_bytes)
{
    const struct bow_trace_options options = {.max_bytes = max_bytes, .line = on_line, .user = b};

    memset(b, 0, sizeof(*b));
    bench_prepare(&b->bench);
    b->bench.options.peer = "10.0.0.1:4711";
    bow_trace_init(&b->trace, &options);
    b->bench.handlers[0] = &b->trace.handler;
    bench_open(&b->bench);
}

static void assert_lines(struct traced *b, const char *lines)
{
    assert_string_equal(b->lines, lines);
    b->lines[0] = '\0';
}

static void test_trace_l60_shows_events_and_bytes_both_ways(void **state)
{
    struct traced b;
    (void)state;
    begin(&b, 0);
    assert_lines(&b, "10.0.0.1:4711 active\n");
    assert_string_equal(b.bench.probe.log, " added active");
    b.bench.probe.on_read = bench_echo;
    bench_feed(&b.bench, "PING\r\n");
    bench_assert_output(&b.bench, "PING\r\n");
    assert_lines(&b, "10.0.0.1:4711 in  00000000  50 49 4e 47 0d 0a                                "
                     "|PING..|\n"
                     "10.0.0.1:4711 out 00000000  50 49 4e 47 0d 0a                                "
                     "|PING..|\n");
    b.bench.probe.on_read = NULL;
    bench_feed(&b.bench, "0123456789abcdef\xff");
    assert_lines(&b, "10.0.0.1:4711 in  00000006  30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66  "
                     "|0123456789abcdef|\n"
                     "10.0.0.1:4711 in  00000016  ff                                               "
                     "|.|\n");
    b.bench.probe.stops_events = true;
    bow_embedded_end(b.bench.embedded);
    bow_channel_close(b.bench.channel, -ECONNRESET);
    bench_run(&b.bench);
    assert_lines(&b, "10.0.0.1:4711 eof\n"
                     "10.0.0.1:4711 close: ECONNRESET (Connection reset by peer)\n"
                     "10.0.0.1:4711 closed: ECONNRESET (Connection reset by peer)\n");
    assert_non_null(strstr(b.bench.probe.log, " eof inactive removed")); /* it hides nothing */
    bench_end(&b.bench);
}

static void test_trace_l60_long_pieces_are_cut(void **state)
{
    struct traced b;
    (void)state;
    begin(&b, 4);
    b.lines[0] = '\0';
    bench_feed(&b.bench, "0123456789");
    assert_lines(&b, "10.0.0.1:4711 in  00000000  30 31 32 33                                      "
                     "|0123|\n"
                     "10.0.0.1:4711 in  ... and 6 bytes more\n");
    bench_end(&b.bench);
}

static size_t take_two_and_pause(struct probe *probe, const struct bow_buf *bytes)
{
    bow_channel_pause_read(probe->handler.channel);
    return bytes->len < 2 ? bytes->len : 2;
}

static void test_trace_l60_bytes_that_come_again_are_shown_once(void **state)
{
    struct traced b;
    (void)state;
    begin(&b, 0);
    b.lines[0] = '\0';
    b.bench.probe.on_read = take_two_and_pause;
    bench_feed(&b.bench, "abcd");
    bench_feed(&b.bench, "ef");
    for (int i = 0; i < 3; i++) {
        bow_channel_resume_read(b.bench.channel);
        bench_run(&b.bench);
    }
    bench_assert_read(&b.bench, "abcdef");
    assert_lines(&b, "10.0.0.1:4711 in  00000000  61 62 63 64                                      "
                     "|abcd|\n"
                     "10.0.0.1:4711 in  00000004  65 66                                            "
                     "|ef|\n");
    bench_end(&b.bench);
}

struct source {
    struct bow_handler handler;
    const char *text;
    size_t at;
};

static int source_drain(struct bow_handler *handler, struct iovec *pieces, int max)
{
    struct source *source = (struct source *)(void *)handler;
    size_t len = strlen(source->text);
    int n = 0;

    /* A piece a byte. */
    for (size_t i = source->at; i < len && n < max; i++, n++) {
        pieces[n] = (struct iovec){(void *)(uintptr_t)(source->text + i), 1};
    }
    return n;
}

static void source_sent(struct bow_handler *handler, size_t n)
{
    ((struct source *)(void *)handler)->at += n;
}

static const struct bow_handler_ops source_ops = {
    .name = "source",
    .on_drain = source_drain,
    .on_sent = source_sent,
};

static void test_trace_l60_pulled_output_is_shown_as_it_leaves(void **state)
{
    struct traced b;
    struct source source = {.handler = {.ops = &source_ops}, .text = "0123456789"};
    (void)state;
    begin(&b, 0);
    b.lines[0] = '\0';
    bow_channel_add_last(b.bench.channel, &source.handler);
    bow_channel_flush(b.bench.channel);
    bench_run(&b.bench);
    bench_assert_output(&b.bench, "0123456789");
    assert_int_equal(source.at, 10);
    assert_int_equal(b.trace.n_out, 10);
    assert_non_null(strstr(b.lines, "out 00000000  30  "));
    assert_non_null(strstr(b.lines, "out 00000009  39  "));
    bench_end(&b.bench);
}

static void check_log(enum bow_log_level level, bool is_shown)
{
    const struct bow_trace_options options = {.label = "a\nlabel", .level = level};
    struct bow_trace trace;
    struct bench bench;

    bench_prepare(&bench);
    bow_trace_init(&trace, &options);
    bench.handlers[0] = &trace.handler;
    bench_open(&bench);
    bench_feed(&bench, "x");
    bench_assert_read(&bench, "x");
    if (is_shown) {
        assert_non_null(strstr(bench.t.log, "a\\x0alabel active\n"));
        assert_non_null(strstr(bench.t.log, "a\\x0alabel in  00000000  78"));
    } else {
        assert_string_equal(bench.t.log, "");
    }
    bench_end(&bench);
}

static void test_trace_l60_goes_to_the_log_at_its_level(void **state)
{
    (void)state;
    check_log(BOW_LOG_WARNING, true);
    check_log(BOW_LOG_DEBUG, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trace_l60_shows_events_and_bytes_both_ways),
        cmocka_unit_test(test_trace_l60_long_pieces_are_cut),
        cmocka_unit_test(test_trace_l60_bytes_that_come_again_are_shown_once),
        cmocka_unit_test(test_trace_l60_pulled_output_is_shown_as_it_leaves),
        cmocka_unit_test(test_trace_l60_goes_to_the_log_at_its_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
