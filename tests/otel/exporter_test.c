/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The exporter: what is sent when, what is dropped, what comes again, and what the end waits for.
 * Spans come from the test, as a tracer would give them.
 */

#include "collector.h"

#include <bowline/otel.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND (1000 * MS)
#define PATIENCE (20 * SECOND)

static struct calls *calls;
static struct collector collector;
static struct bow_otel_exporter *exporter;
static struct bow_tracer_options sink; /* what the exporter gives to tracers */
static char logged[4096];              /* under the lock of calls */

static void log_line(enum bow_log_level level, const char *line, void *user)
{
    (void)level;
    (void)user;
    size_t len = strlen(logged);
    (void)snprintf(logged + len, sizeof(logged) - len, "%s\n", line);
}

static int setup(void **state)
{
    calls_setup_bare(state);
    calls = *state;
    memset(&collector, 0, sizeof(collector));
    collector_start(&collector, calls, "127.0.0.1:0");
    logged[0] = '\0';
    return 0;
}

static int teardown(void **state)
{
    if (exporter != NULL) {
        sink.release(sink.user);
        bow_otel_exporter_unref(exporter);
        exporter = NULL;
    }
    if (collector.server != NULL) {
        collector_stop(&collector);
    }
    return calls_teardown(state);
}

static struct bow_otel_options options_of(void)
{
    struct bow_otel_options options = BOW_OTEL_OPTIONS_INIT;

    options.context = calls->context;
    options.target = collector.address;
    options.service_name = "tested";
    options.delay_ns = 3600 * SECOND; /* nothing goes by itself */
    options.backoff_min_ns = MS;
    options.backoff_max_ns = 4 * MS;
    return options;
}

static void begin(const struct bow_otel_options *options)
{
    assert_int_equal(bow_otel_exporter_new(options, &exporter), 0);
    bow_otel_trace(exporter, &sink);
}

/* As a loop gives them: together. */
static void give(int n)
{
    struct bow_span spans[64];

    assert_true(n <= 64);
    memset(spans, 0, sizeof(spans));
    for (int i = 0; i < n; i++) {
        spans[i].context.trace_id[0] = 1;
        spans[i].context.span_id[0] = (uint8_t)(i + 1);
        spans[i].tracestate = "";
        spans[i].path = "/a.B/C";
        spans[i].peer = "127.0.0.1:1";
        spans[i].protocol = "grpc";
        spans[i].message = "";
    }
    sink.spans(spans, (size_t)n, sink.user);
}

static struct bow_otel_stats stats(void)
{
    struct bow_otel_stats found = BOW_OTEL_STATS_INIT;

    assert_int_equal(bow_otel_exporter_stats(exporter, &found), 0);
    return found;
}

static void flush(void)
{
    assert_int_equal(bow_otel_exporter_flush(exporter, PATIENCE), 0);
}

/* When */

static void test_otel_flush_sends_what_waits(void **state)
{
    struct bow_otel_options options = options_of();

    (void)state;
    begin(&options);
    give(3);
    give(2);
    assert_int_equal(stats().spans_waiting, 5);
    assert_true(stats().bytes_waiting > 5 * sizeof(struct bow_span));
    assert_int_equal(collector.n_exports, 0);
    flush();
    assert_int_equal(collector.n_exports, 1);
    assert_int_equal(collector.n_spans, 5);
    assert_string_equal(collector.spans[0].name, "a.B/C");
    assert_string_equal(collector.spans[3].span_id, "0100000000000000"); /* in their order */
    assert_int_equal(stats().spans_exported, 5);
    assert_int_equal(stats().spans_waiting, 0);
    assert_int_equal(stats().bytes_waiting, 0);
    flush(); /* with nothing there */
    assert_int_equal(collector.n_exports, 1);
}

static void test_otel_delay_sends_by_itself(void **state)
{
    struct bow_otel_options options = options_of();

    (void)state;
    options.delay_ns = MS;
    begin(&options);
    give(1);
    calls_wait(calls, &collector.n_spans, 1);
    give(1); /* and the timer again */
    calls_wait(calls, &collector.n_spans, 2);
}

static void test_otel_full_batch_goes_at_once(void **state)
{
    struct bow_otel_options options = options_of();

    (void)state;
    options.max_batch_spans = 10;
    begin(&options);
    give(6);
    give(4);
    calls_wait(calls, &collector.n_spans, 10);
}

static void test_otel_batches_are_of_a_size(void **state)
{
    struct bow_otel_options options = options_of();

    (void)state;
    options.max_batch_spans = 10;
    collector.holds = true;
    begin(&options);
    give(10);
    calls_wait(calls, &collector.n_exports, 1);
    for (int i = 0; i < 10; i++) {
        give(5);
    }
    collector_release(&collector);
    flush();
    assert_int_equal(collector.n_exports, 6);
    assert_int_equal(collector.n_spans, 60);
    assert_int_equal(stats().exports, 6);
}

static void test_otel_says_who_sends(void **state)
{
    const struct bow_otel_attribute attributes[] = {{"deployment.environment.name", "test"},
                                                    {"host.name", "gr\xC3\xBC\xC3\x9F"}};
    struct bow_otel_options options = options_of();

    (void)state;
    options.attributes = attributes;
    options.n_attributes = 2;
    begin(&options);
    give(1);
    flush();
    assert_non_null(strstr(collector.resource, "service.name=tested;"
                                               "deployment.environment.name=test;"
                                               "host.name=gr\xC3\xBC\xC3\x9F;"
                                               "telemetry.sdk.name=bowline;"));
    assert_int_equal(strncmp(collector.scope, "bowline ", 8), 0);
}

/* Room */

static void test_otel_drops_what_has_no_room(void **state)
{
    struct bow_otel_options options = options_of();

    (void)state;
    options.max_batch_spans = 10;
    options.max_spans = 20;
    collector.holds = true;
    begin(&options);
    give(10);
    calls_wait(calls, &collector.n_exports, 1); /* what is being sent counts */
    give(8);
    give(3);
    assert_int_equal(stats().spans_dropped, 3);
    assert_int_equal(stats().spans_waiting, 18);
    give(2);
    assert_int_equal(stats().spans_dropped, 3);
    collector_release(&collector);
    flush();
    assert_int_equal(collector.n_spans, 20);
    give(3); /* there is room again */
    flush();
    assert_int_equal(collector.n_spans, 23);
    assert_int_equal(stats().spans_dropped, 3);
}

static void test_otel_memory_is_bounded(void **state)
{
    struct bow_otel_options options = options_of();

    (void)state;
    options.max_bytes = (size_t)64 << 10;
    begin(&options);
    while (stats().spans_dropped == 0) {
        give(50);
        assert_true(stats().bytes_waiting <= options.max_bytes);
    }
    assert_true(stats().spans_waiting < options.max_bytes / sizeof(struct bow_span));
    flush();
    assert_int_equal(collector.n_spans, stats().spans_exported);
}

static void test_otel_drops_when_there_is_no_memory(void **state)
{
    struct bow_otel_options options = options_of();

    (void)state;
    begin(&options);
    calls->alloc.fail_at = calls->alloc.n_calls + 1;
    give(2);
    assert_int_equal(stats().spans_dropped, 2);
    assert_int_equal(stats().spans_waiting, 0);
    give(1);
    flush();
    assert_int_equal(collector.n_spans, 1);
}

/* Refusals */

static void expect_again(enum bow_code code, uint64_t retry_after_ns)
{
    struct bow_otel_options options = options_of();

    collector.n_to_fail = 3;
    collector.code = code;
    collector.retry_after_ns = retry_after_ns;
    begin(&options);
    give(4);
    flush();
    assert_int_equal(collector.n_exports, 4);
    assert_int_equal(collector.n_spans, 4);
    assert_int_equal(stats().retries, 3);
    assert_int_equal(stats().exports, 1);
    assert_int_equal(stats().spans_exported, 4);
    assert_int_equal(stats().spans_lost, 0);
}

static void test_otel_unavailable_is_tried_again(void **state)
{
    (void)state;
    expect_again(BOW_UNAVAILABLE, 0);
}

static void test_otel_exhausted_with_a_time_is_tried_again(void **state)
{
    (void)state;
    expect_again(BOW_RESOURCE_EXHAUSTED, 2 * MS);
}

static void expect_lost(enum bow_code code)
{
    struct bow_otel_options options = options_of();

    collector.n_to_fail = 1;
    collector.code = code;
    begin(&options);
    give(4);
    flush();
    assert_int_equal(collector.n_exports, 1);
    assert_int_equal(stats().retries, 0);
    assert_int_equal(stats().spans_lost, 4);
    assert_int_equal(stats().spans_waiting, 0);
    give(1);
    flush();
    assert_int_equal(collector.n_spans, 1);
}

static void test_otel_exhausted_without_a_time_is_lost(void **state)
{
    (void)state;
    expect_lost(BOW_RESOURCE_EXHAUSTED);
}

static void test_otel_refused_for_good_is_lost(void **state)
{
    (void)state;
    expect_lost(BOW_PERMISSION_DENIED);
}

/* The pause that is asked for counts, not ours. */
static void test_otel_asked_to_come_too_late_gives_up(void **state)
{
    struct bow_otel_options options = options_of();

    (void)state;
    collector.n_to_fail = 1;
    collector.code = BOW_UNAVAILABLE;
    collector.retry_after_ns = 3600 * SECOND;
    begin(&options);
    give(4);
    flush();
    assert_int_equal(collector.n_exports, 1);
    assert_int_equal(stats().spans_lost, 4);
}

static void test_otel_gives_up_what_is_never_taken(void **state)
{
    struct bow_otel_options options = options_of();

    (void)state;
    collector.n_to_fail = 1 << 30;
    collector.code = BOW_UNAVAILABLE;
    options.give_up_ns = 20 * MS;
    begin(&options);
    give(4);
    flush();
    assert_int_equal(stats().spans_lost, 4);
}

static void test_otel_collector_that_comes_late_has_all(void **state)
{
    struct bow_otel_options options = options_of();
    char address[sizeof(collector.address)];

    (void)state;
    memcpy(address, collector.address, sizeof(address));
    collector_stop(&collector);
    options.target = address;
    options.max_batch_spans = 4;
    begin(&options);
    give(4);
    while (stats().retries < 2) {
    }
    collector_start(&collector, calls, address);
    flush();
    assert_int_equal(collector.n_spans, 4);
}

static void test_otel_partial_success_is_counted_and_logged(void **state)
{
    struct bow_otel_options options = options_of();
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;

    (void)state;
    context_options.log = log_line;
    assert_int_equal(bow_context_new(&context_options, &options.context), 0);
    collector.n_rejected = 3;
    collector.text = "too old\n";
    begin(&options);
    give(5);
    flush();
    assert_int_equal(stats().spans_exported, 2);
    assert_int_equal(stats().spans_rejected, 3);
    assert_int_equal(collector.n_exports, 1); /* and not again */
    collector.n_rejected = 6;                 /* more than there were: it says nothing */
    give(5);
    flush();
    assert_int_equal(stats().spans_exported, 7);
    bow_context_unref(options.context);
    void *again = calls;
    assert_int_equal(teardown(&again), 0); /* the log is ours alone again */
    assert_non_null(strstr(logged, "of 5 it has rejected 3: too old\\x0a\n"));
    assert_int_equal(setup(state), 0);
}

/* The end */

static void test_otel_stop_flushes_and_takes_no_more(void **state)
{
    struct bow_otel_options options = options_of();

    (void)state;
    begin(&options);
    give(3);
    assert_int_equal(bow_otel_exporter_stop(exporter, PATIENCE), 0);
    assert_int_equal(collector.n_spans, 3);
    give(2);
    assert_int_equal(stats().spans_dropped, 2);
    assert_int_equal(bow_otel_exporter_stop(exporter, PATIENCE), 0);
    assert_int_equal(collector.n_spans, 3);
}

/* What is being sent, and what waits. */
static void test_otel_stop_gives_up_after_its_time(void **state)
{
    struct bow_otel_options options = options_of();

    (void)state;
    collector.holds = true;
    options.max_batch_spans = 3;
    begin(&options);
    give(3);
    calls_wait(calls, &collector.n_held, 1);
    give(2);
    assert_int_equal(bow_otel_exporter_stop(exporter, 1), -ETIMEDOUT);
    flush(); /* nothing is left */
    assert_int_equal(stats().spans_lost, 5);
    assert_int_equal(stats().spans_waiting, 0);
}

static void test_otel_unref_forgets_what_waits(void **state)
{
    struct bow_otel_options options = options_of();

    (void)state;
    collector.holds = true;
    options.max_batch_spans = 3;
    begin(&options);
    give(3);
    calls_wait(calls, &collector.n_held, 1);
    give(2);
    /* the teardown says whether anything is left */
}

static void test_otel_unref_in_a_pause(void **state)
{
    struct bow_otel_options options = options_of();

    (void)state;
    collector.n_to_fail = 1;
    collector.code = BOW_UNAVAILABLE;
    options.max_batch_spans = 3;
    options.backoff_min_ns = 100 * SECOND;
    options.backoff_max_ns = 100 * SECOND;
    begin(&options);
    give(3);
    calls_wait(calls, &collector.n_exports, 1);
}

static void test_otel_unused_is_nothing(void **state)
{
    struct bow_otel_options options = options_of();

    (void)state;
    begin(&options);
}

/* On somebody's loop */

static void test_otel_sends_on_the_loop_that_it_is_given(void **state)
{
    struct bow_otel_options options = options_of();

    (void)state;
    options.loop = calls->loop; /* of a thread of its own */
    begin(&options);
    give(3);
    flush();
    assert_int_equal(collector.n_spans, 3);
}

static void test_otel_flush_runs_an_owners_loop(void **state)
{
    struct bow_otel_options options = options_of();
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;

    (void)state;
    loop_options.thread = BOW_LOOP_OWNER;
    assert_int_equal(bow_loop_new(calls->context, &loop_options, &options.loop), 0);
    assert_int_equal(bow_loop_run_once(options.loop, 0), 0);
    begin(&options);
    give(3);
    flush();
    assert_int_equal(collector.n_spans, 3);
    give(1);
    void *again = calls;
    bow_loop_unref(options.loop);
    assert_int_equal(teardown(&again), 0); /* its last reference was the exporter's */
    assert_int_equal(setup(state), 0);
}

static int flush_here(void *user)
{
    int *rc = user;

    *rc = bow_otel_exporter_flush(exporter, PATIENCE);
    return 0;
}

static void test_otel_flush_in_a_callback_is_refused(void **state)
{
    struct bow_otel_options options = options_of();
    int rc = 0;

    (void)state;
    options.loop = calls->loop;
    begin(&options);
    give(1);
    assert_int_equal(bow_loop_execute(calls->loop, "flush", flush_here, &rc), 0);
    flush();
    assert_int_equal(rc, -EDEADLK);
}

static void test_otel_loop_that_has_ended_sends_nothing(void **state)
{
    struct bow_otel_options options = options_of();
    struct bow_loop *loop = NULL;

    (void)state;
    assert_int_equal(bow_loop_new(calls->context, NULL, &loop), 0);
    options.loop = loop;
    begin(&options);
    give(1);
    flush();
    assert_int_equal(bow_loop_shutdown(loop, 0, 0), 0);
    assert_int_equal(bow_loop_join(loop, BOW_NEVER), 0);
    give(1);
    assert_int_equal(bow_otel_exporter_flush(exporter, PATIENCE), -ESHUTDOWN);
    assert_int_equal(stats().spans_waiting, 1);
    bow_loop_unref(loop);
}

/* Options */

static void refuse_options(struct bow_otel_options *options, int rc, const char *words)
{
    struct bow_transport_error error = {.text = ""};
    struct bow_otel_exporter *made = NULL;

    options->error = &error;
    assert_int_equal(bow_otel_exporter_new(options, &made), rc);
    assert_null(made);
    if (strstr(error.text, words) == NULL) {
        fail_msg("%s", error.text);
    }
}

static void test_otel_bad_options_are_refused(void **state)
{
    const struct bow_otel_attribute bad_key = {NULL, "x"};
    const struct bow_otel_attribute bad_value = {"x", "\xff"};
    struct bow_otel_options options = options_of();

    (void)state;
    options.context = NULL;
    refuse_options(&options, -EINVAL, "options.context");
    options = options_of();
    options.service_name = NULL;
    refuse_options(&options, -EINVAL, "service_name");
    options = options_of();
    options.service_name = "\xff";
    refuse_options(&options, -EINVAL, "UTF-8");
    options = options_of();
    options.attributes = &bad_key;
    options.n_attributes = 1;
    refuse_options(&options, -EINVAL, "UTF-8");
    options.attributes = &bad_value;
    refuse_options(&options, -EINVAL, "UTF-8");
    options = options_of();
    options.max_batch_spans = 10;
    options.max_spans = 9;
    refuse_options(&options, -EINVAL, "max_batch_spans");
    options = options_of();
    options.target = "collector.example:4317";
    refuse_options(&options, -EPERM, "collector.example:4317");
    options = options_of();
    options.size = 0;
    refuse_options(&options, -EINVAL, "BOW_OTEL_OPTIONS_INIT");
    options.size = sizeof(options) + 1;
    refuse_options(&options, -EINVAL, "");
}

static int make(struct bow_context *context, void *user)
{
    struct bow_otel_options options = options_of();
    struct bow_otel_exporter *made = NULL;

    (void)user;
    options.context = context;
    int rc = bow_otel_exporter_new(&options, &made);
    bow_otel_exporter_unref(made);
    return rc;
}

static void test_otel_exporter_without_memory_is_none(void **state)
{
    (void)state;
    assert_true(test_alloc_fail_each(NULL, make, NULL) > 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_otel_flush_sends_what_waits),
        TEST(test_otel_delay_sends_by_itself),
        TEST(test_otel_full_batch_goes_at_once),
        TEST(test_otel_batches_are_of_a_size),
        TEST(test_otel_says_who_sends),
        TEST(test_otel_drops_what_has_no_room),
        TEST(test_otel_memory_is_bounded),
        TEST(test_otel_drops_when_there_is_no_memory),
        TEST(test_otel_unavailable_is_tried_again),
        TEST(test_otel_exhausted_with_a_time_is_tried_again),
        TEST(test_otel_exhausted_without_a_time_is_lost),
        TEST(test_otel_refused_for_good_is_lost),
        TEST(test_otel_asked_to_come_too_late_gives_up),
        TEST(test_otel_gives_up_what_is_never_taken),
        TEST(test_otel_collector_that_comes_late_has_all),
        TEST(test_otel_partial_success_is_counted_and_logged),
        TEST(test_otel_stop_flushes_and_takes_no_more),
        TEST(test_otel_stop_gives_up_after_its_time),
        TEST(test_otel_unref_forgets_what_waits),
        TEST(test_otel_unref_in_a_pause),
        TEST(test_otel_unused_is_nothing),
        TEST(test_otel_sends_on_the_loop_that_it_is_given),
        TEST(test_otel_flush_runs_an_owners_loop),
        TEST(test_otel_flush_in_a_callback_is_refused),
        TEST(test_otel_loop_that_has_ended_sends_nothing),
        TEST(test_otel_bad_options_are_refused),
        TEST(test_otel_exporter_without_memory_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
