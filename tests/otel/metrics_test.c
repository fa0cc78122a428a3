/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Metrics of servers and clients, as a collector sees them. */

#include "collector.h"

#include <bowline/otel.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define PATIENCE (20000 * MS)
#define SAY "grpc.method=calls.Echo/Say;"

static struct calls *calls;
static struct collector collector;
static struct bow_otel_exporter *exporter;

static int setup(void **state)
{
    struct bow_otel_options options = BOW_OTEL_OPTIONS_INIT;

    calls_setup_bare(state);
    calls = *state;
    memset(&collector, 0, sizeof(collector));
    collector_start(&collector, calls, "127.0.0.1:0");
    options.context = calls->context;
    options.target = collector.address;
    options.service_name = "measured";
    options.backoff_min_ns = MS;
    options.give_up_ns = 10 * MS;
    assert_int_equal(bow_otel_exporter_new(&options, &exporter), 0);
    return 0;
}

static int teardown(void **state)
{
    calls_free_client(calls);
    if (calls->server != NULL) {
        calls_kill_server(calls);
    }
    bow_otel_exporter_unref(exporter);
    if (collector.server != NULL) {
        collector_stop(&collector);
    }
    return calls_teardown(state);
}

static void begin(uint64_t interval_ns)
{
    struct bow_server_options server_options;
    struct bow_client_options client_options;

    calls_server_options(calls, &server_options);
    server_options.metrics_interval_ns = interval_ns;
    server_options.on_metrics = bow_otel_server_metrics;
    server_options.metrics_user = exporter;
    calls->server = calls_start_server(calls, &server_options);
    calls_client_options(calls, &client_options);
    calls->client = calls_new_client(calls, &client_options);
}

static void say(enum bow_code code)
{
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    request.number = 3;
    request.code = code;
    (void)calls__echo__say__call(calls->client, &request, NULL, &result);
    assert_int_equal(result.status.code, code);
    bow_result_fini(&result);
}

static struct bow_otel_stats stats(void)
{
    struct bow_otel_stats found = BOW_OTEL_STATS_INIT;

    assert_int_equal(bow_otel_exporter_stats(exporter, &found), 0);
    return found;
}

static void expect_line(const char *line)
{
    if (strstr(collector.metrics, line) == NULL) {
        fail_msg("no \"%s\" in:\n%s", line, collector.metrics);
    }
}

static void test_otel_metrics_of_a_server(void **state)
{
    (void)state;
    begin(0);
    say(BOW_OK);
    say(BOW_OK);
    say(BOW_NOT_FOUND);
    CALLS_WAIT_METRIC(calls, calls_ended, 3);
    bow_otel_server_metrics(calls->server, exporter);
    assert_int_equal(bow_otel_exporter_flush(exporter, PATIENCE), 0);
    assert_int_equal(collector.n_reports, 1);
    expect_line("grpc.server.call.started {call} " SAY " = 3\n");
    expect_line("grpc.server.call.duration s " SAY "grpc.status=OK; = 2\n");
    expect_line("grpc.server.call.duration s " SAY "grpc.status=NOT_FOUND; = 1\n");
    expect_line("grpc.server.call.sent_total_compressed_message_size By " SAY " = 3\n");
    expect_line("grpc.server.call.rcvd_total_compressed_message_size By " SAY " = 3\n");
    assert_true(stats().points_exported >= 5);
    assert_int_equal(stats().points_lost, 0);
    assert_non_null(strstr(collector.metrics, "grpc.method=calls.Echo/Hold; = 0\n"));
}

static void test_otel_metrics_of_a_client(void **state)
{
    char line[256];

    (void)state;
    begin(0);
    say(BOW_OK);
    say(BOW_NOT_FOUND);
    bow_otel_client_metrics(calls->client, exporter);
    assert_int_equal(bow_otel_exporter_flush(exporter, PATIENCE), 0);
    (void)snprintf(line, sizeof(line),
                   "grpc.client.call.duration s " SAY "grpc.target=%s;grpc.status=OK; = 1\n",
                   calls->target);
    expect_line(line);
    (void)snprintf(line, sizeof(line),
                   "grpc.client.attempt.started {attempt} " SAY "grpc.target=%s; = 2\n",
                   calls->target);
    expect_line(line);
    expect_line("grpc.status=NOT_FOUND; = 1\n");
    assert_string_equal(bow_client_target(calls->client), calls->target);
}

static void test_otel_metrics_go_by_themselves(void **state)
{
    (void)state;
    begin(MS);
    say(BOW_OK);
    calls_wait(calls, &collector.n_reports, 3);
}

/* What waits is bounded: the next one says the same and more. */
static void test_otel_metrics_beyond_the_bound_are_dropped(void **state)
{
    (void)state;
    begin(0);
    say(BOW_OK);
    CALLS_WAIT_METRIC(calls, calls_ended, 1);
    collector_stop(&collector);
    for (int i = 0; i < 64 && stats().reports_dropped == 0; i++) {
        bow_otel_server_metrics(calls->server, exporter);
    }
    assert_true(stats().reports_dropped > 0);
    assert_int_equal(bow_otel_exporter_flush(exporter, PATIENCE), 0); /* each is given up */
    assert_true(stats().points_lost > 0);
    assert_int_equal(stats().points_exported, 0);
}

/* Nothing else is under way that would take memory. */
static void test_otel_metrics_without_memory_are_counted_as_dropped(void **state)
{
    (void)state;
    begin(0);
    say(BOW_OK);
    CALLS_WAIT_METRIC(calls, calls_ended, 1);
    calls->alloc.fail_at = calls->alloc.n_calls + 1;
    bow_otel_server_metrics(calls->server, exporter);
    calls->alloc.fail_at = 0;
    assert_int_equal(stats().reports_dropped, 1);
    bow_otel_server_metrics(calls->server, exporter);
    assert_int_equal(bow_otel_exporter_flush(exporter, PATIENCE), 0);
    assert_int_equal(collector.n_reports, 1);
}

static void test_otel_metrics_of_a_stopped_exporter_are_dropped(void **state)
{
    (void)state;
    begin(0);
    say(BOW_OK);
    CALLS_WAIT_METRIC(calls, calls_ended, 1);
    assert_int_equal(bow_otel_exporter_stop(exporter, PATIENCE), 0);
    bow_otel_server_metrics(calls->server, exporter);
    assert_int_equal(bow_otel_exporter_flush(exporter, PATIENCE), 0);
    assert_int_equal(collector.n_reports, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_otel_metrics_of_a_server),
        TEST(test_otel_metrics_of_a_client),
        TEST(test_otel_metrics_go_by_themselves),
        TEST(test_otel_metrics_beyond_the_bound_are_dropped),
        TEST(test_otel_metrics_without_memory_are_counted_as_dropped),
        TEST(test_otel_metrics_of_a_stopped_exporter_are_dropped),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
