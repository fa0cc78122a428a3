/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Metrics as text, on virtual time: what a strict reader makes of both forms, and that the numbers
 * are those that were counted.
 *
 *     metrics_text_test PROTOCOL                       native | grpc
 *     metrics_text_test PROTOCOL server | client       print them after some calls
 */

#include "metrics_reader.h"
#include "rpc/metrics/text_writer.h"
#include "timed_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SAY "grpc_method=\"calls.Echo/Say\""
#define HOLD "grpc_method=\"calls.Echo/Hold\""

static struct metrics_text text;

static void read_server(struct timed *timed, enum bow_metrics_format format)
{
    text.len = 0;
    text.format = format;
    assert_int_equal(bow_server_metrics_text(timed->pair->server, format, metrics_text_put, &text),
                     0);
    metrics_text_check(&text);
}

static void read_client(struct timed *timed, enum bow_metrics_format format)
{
    text.len = 0;
    text.format = format;
    assert_int_equal(bow_client_metrics_text(timed->pair->client, format, metrics_text_put, &text),
                     0);
    metrics_text_check(&text);
}

static double of_client(struct timed *timed, const char *name, const char *labels)
{
    char sample[256];

    (void)snprintf(sample, sizeof(sample), "%s{grpc_target=\"%s\"%s}", name, timed->pair->target,
                   labels);
    return metrics_text_get(&text, sample);
}

/* Three calls of Say at once, and one of Hold that takes 30 ms. */
static void make_calls(struct timed *timed)
{
    timed_begin(timed, NULL, NULL);
    timed_say(timed, 0);
    timed_say(timed, 100);
    timed_say(timed, 5000);
    timed_run(timed);
    (void)timed_hold(timed, 10 * SECOND);
    timed_advance(timed, 30 * MS);
    assert_int_equal(timed_reply(timed->held, NULL), 0);
    timed_advance(timed, 20 * MS); /* the counters are published */
    assert_int_equal(timed->n_done, 4);
    assert_int_equal(timed->n_failed, 0);
}

static void test_text_of_a_server_is_well_formed_and_right(void **state)
{
    make_calls(*state);
    for (int format = BOW_METRICS_PROMETHEUS; format <= BOW_METRICS_OPENMETRICS; format++) {
        read_server(*state, (enum bow_metrics_format)format);
        assert_true(metrics_text_get(&text, "grpc_server_call_started_total{" SAY "}") == 3);
        assert_true(metrics_text_get(&text, "grpc_server_call_started_total{" HOLD "}") == 1);
        assert_true(metrics_text_get(&text, "grpc_server_call_duration_seconds_count{" HOLD
                                            ",grpc_status=\"OK\"}") == 1);
        assert_true(metrics_text_get(&text, "grpc_server_call_duration_seconds_bucket{" HOLD
                                            ",grpc_status=\"OK\",le=\"0.025\"}") == 0);
        assert_true(metrics_text_get(&text, "grpc_server_call_duration_seconds_bucket{" HOLD
                                            ",grpc_status=\"OK\",le=\"0.05\"}") == 1);
        assert_true(metrics_text_get(&text, "grpc_server_call_duration_seconds_sum{" HOLD
                                            ",grpc_status=\"OK\"}") == 0.03);
        assert_true(metrics_text_get(&text, "bowline_server_calls_in_flight{" HOLD "}") == 0);
        assert_true(
            metrics_text_get(&text, "grpc_server_call_started_total{grpc_method=\"other\"}") == 0);
        assert_true(metrics_text_get(&text, "bowline_server_connections_opened_total") == 1);
        assert_true(metrics_text_get(&text, "bowline_server_loop_turns_total{loop=\"0\"}") > 0);
    }
}

static void test_text_of_sizes_counts_what_travelled(void **state)
{
    static const char name[] = "grpc_server_call_rcvd_total_compressed_message_size_bytes";
    char sample[256];

    make_calls(*state);
    read_server(*state, BOW_METRICS_PROMETHEUS);
    (void)snprintf(sample, sizeof(sample), "%s_count{" SAY "}", name);
    assert_true(metrics_text_get(&text, sample) == 3);
    (void)snprintf(sample, sizeof(sample), "%s_bucket{" SAY ",le=\"64\"}", name);
    assert_true(metrics_text_get(&text, sample) == 1);
    (void)snprintf(sample, sizeof(sample), "%s_bucket{" SAY ",le=\"256\"}", name);
    assert_true(metrics_text_get(&text, sample) == 2);
    (void)snprintf(sample, sizeof(sample), "%s_bucket{" SAY ",le=\"16384\"}", name);
    assert_true(metrics_text_get(&text, sample) == 3);
    (void)snprintf(sample, sizeof(sample), "%s_sum{" SAY "}", name);
    /* A tag and a length before the payload. */
    assert_true(metrics_text_get(&text, sample) == 100 + 2 + 5000 + 3);
}

static void test_text_of_a_client_is_well_formed_and_right(void **state)
{
    struct timed *timed = *state;

    make_calls(timed);
    for (int format = BOW_METRICS_PROMETHEUS; format <= BOW_METRICS_OPENMETRICS; format++) {
        read_client(timed, (enum bow_metrics_format)format);
        assert_true(of_client(timed, "grpc_client_attempt_started_total", "," SAY) == 3);
        assert_true(of_client(timed, "bowline_client_calls_started_total", "," HOLD) == 1);
        assert_true(of_client(timed, "grpc_client_call_duration_seconds_sum",
                              "," HOLD ",grpc_status=\"OK\"") == 0.03);
        assert_true(of_client(timed, "grpc_client_attempt_duration_seconds_count",
                              "," SAY ",grpc_status=\"OK\"") == 3);
        assert_true(of_client(timed,
                              "grpc_client_attempt_sent_total_compressed_message_size_bytes_sum",
                              "," SAY) == 100 + 2 + 5000 + 3);
        assert_true(of_client(timed, "bowline_client_connections_opened_total", "") == 1);
    }
}

/* The few bounds of the text say what the fine buckets do. */
static void find_hold(const struct bow_method_metrics *method, void *user)
{
    if (strcmp(method->path, "/calls.Echo/Hold") == 0) {
        bow_method_metrics_times(method, BOW_TIME_CALL, BOW_N_CODES, user);
    }
}

static void test_text_agrees_with_the_quantiles(void **state)
{
    static const unsigned bounds_ms[] = {1, 5, 10, 25, 50, 100, 250};
    struct timed *timed = *state;
    struct bow_histogram times;

    timed_begin(timed, NULL, NULL);
    for (unsigned i = 1; i <= 40; i++) {
        (void)timed_hold(timed, 10 * SECOND);
        timed_advance(timed, (4 * i - 3) * MS);
        assert_int_equal(timed_reply(timed->held, NULL), 0);
        timed_run(timed);
    }
    bow_server_each_method(timed->pair->server, find_hold, &times);
    assert_int_equal(times.count, 40);
    read_server(timed, BOW_METRICS_PROMETHEUS);
    for (size_t i = 0; i < sizeof(bounds_ms) / sizeof(bounds_ms[0]); i++) {
        char sample[256];
        (void)snprintf(sample, sizeof(sample),
                       "grpc_server_call_duration_seconds_bucket{" HOLD
                       ",grpc_status=\"OK\",le=\"0.%03u\"}",
                       bounds_ms[i]);
        char *zeros = strstr(sample, "\"}") - 1;
        while (*zeros == '0') { /* as they are written */
            memmove(zeros, zeros + 1, strlen(zeros));
            zeros--;
        }
        double share = metrics_text_get(&text, sample) / 40;
        if (share > 0) {
            assert_true(bow_histogram_quantile(&times, share) <=
                        bounds_ms[i] * MS + bounds_ms[i] * MS / 64);
        }
        if (share < 1) {
            assert_true(bow_histogram_quantile(&times, share + 0.02) >=
                        bounds_ms[i] * MS - bounds_ms[i] * MS / 64);
        }
    }
}

/* Refusing */

static int refuse_second(const char *bytes, size_t len, void *user)
{
    int *n_pieces = user;

    (void)bytes;
    assert_true(len > 0);
    return ++*n_pieces == 2 ? -EPIPE : 0;
}

static void test_text_ends_when_it_is_not_taken(void **state)
{
    struct timed *timed = *state;
    int n_pieces = 0;

    make_calls(timed);
    assert_int_equal(bow_server_metrics_text(timed->pair->server, BOW_METRICS_PROMETHEUS,
                                             refuse_second, &n_pieces),
                     -EPIPE);
    assert_int_equal(n_pieces, 2);
}

static void test_text_of_an_unknown_form_is_refused(void **state)
{
    struct timed *timed = *state;
    int n_pieces = 0;

    timed_begin(timed, NULL, NULL);
    assert_int_equal(bow_server_metrics_text(timed->pair->server, (enum bow_metrics_format)2,
                                             refuse_second, &n_pieces),
                     -EINVAL);
    assert_int_equal(n_pieces, 0);
    assert_null(bow_metrics_content_type((enum bow_metrics_format)2));
    assert_string_equal(bow_metrics_content_type(BOW_METRICS_PROMETHEUS),
                        "text/plain; version=0.0.4; charset=utf-8");
}

static void test_text_escapes_what_labels_may_not_hold(void **state)
{
    static const struct bow__family family = {"a_gauge", NULL, "It is.", BOW__GAUGE};
    struct bow__text_writer writer;

    (void)state;
    text.len = 0;
    text.format = BOW_METRICS_PROMETHEUS;
    bow__text_writer_init(&writer, text.format, metrics_text_put, &text);
    bow__text_writer_family(&writer, &family);
    bow__text_writer_begin(&writer, "");
    bow__text_writer_label(&writer, "x", "a\"b\\c\nd\xff\x01");
    bow__text_writer_value(&writer, 1);
    assert_int_equal(bow__text_writer_finish(&writer), 0);
    metrics_text_check(&text);
    assert_string_equal(text.bytes, "# HELP a_gauge It is.\n# TYPE a_gauge gauge\n"
                                    "a_gauge{x=\"a\\\"b\\\\c\\nd??\"} 1\n");
}

/* For other readers */

static int print(const char *bytes, size_t len, void *user)
{
    return fwrite(bytes, 1, len, user) == len ? 0 : -EIO;
}

static int print_metrics(bool of_server)
{
    void *state = NULL;

    (void)timed_setup(&state);
    struct timed *timed = state;
    make_calls(timed);
    int rc =
        of_server
            ? bow_server_metrics_text(timed->pair->server, BOW_METRICS_PROMETHEUS, print, stdout)
            : bow_client_metrics_text(timed->pair->client, BOW_METRICS_PROMETHEUS, print, stdout);
    (void)timed_teardown(&state);
    return rc == 0 ? 0 : 1;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, timed_setup, timed_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_text_of_a_server_is_well_formed_and_right),
        TEST(test_text_of_sizes_counts_what_travelled),
        TEST(test_text_of_a_client_is_well_formed_and_right),
        TEST(test_text_agrees_with_the_quantiles),
        TEST(test_text_ends_when_it_is_not_taken),
        TEST(test_text_of_an_unknown_form_is_refused),
        cmocka_unit_test(test_text_escapes_what_labels_may_not_hold),
    };

    timed_choose(argc, argv);
    if (argc > 2) {
        return print_metrics(strcmp(argv[2], "server") == 0);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
