/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A large request and a large reply leave the small calls beside them on the same connection alone.
 */

#include "lab.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define N_SMALL 1000u
#define N_IN_FLIGHT 8u
#define N_PAIRS 7u
#define N_ATTEMPTS 20u
#define LARGE_BYTES ((size_t)3 << 20)

struct beside {
    struct bow_loop *loop;
    struct bow_client *client;
    uint64_t started_at[N_IN_FLIGHT];
    uint64_t took[N_SMALL];
    uint32_t n_started;
    uint32_t n_done;
    bool with_large;
    bool large_done;
    uint8_t *large;
};

static struct beside *run;

static void stop_when_done(void)
{
    if (run->n_done == N_SMALL && (run->large_done || !run->with_large)) {
        bow_client_free(run->client);
        bow_loop_shutdown(run->loop, 0, UINT64_C(5000000000));
    }
}

static void start_small(uint64_t *started_at);

static void on_small(struct bow_result *result, const Lab__Blob *reply, void *user)
{
    uint64_t *started_at = user;
    if (reply == NULL) {
        fail_msg("small call: %s", result->status.message);
    }
    run->took[run->n_done++] = lab_now_ns() - *started_at;
    start_small(started_at);
    stop_when_done();
}

static void start_small(uint64_t *started_at)
{
    Lab__Blob request = LAB__BLOB__INIT;
    if (run->n_started == N_SMALL) {
        return;
    }
    request.id = ++run->n_started;
    *started_at = lab_now_ns();
    assert_int_equal(lab__lab__echo__start(run->client, &request, NULL, on_small, started_at, NULL),
                     0);
}

static void on_large(struct bow_result *result, const Lab__Blob *reply, void *user)
{
    (void)user;
    if (reply == NULL) {
        fail_msg("large call: %s", result->status.message);
    }
    assert_int_equal(reply->body.len, LARGE_BYTES);
    for (size_t i = 0; i < LARGE_BYTES; i += 4093) {
        assert_int_equal(reply->body.data[i], (uint8_t)(i * 31));
    }
    run->large_done = true;
    stop_when_done();
}

static void start_large(void)
{
    Lab__Blob request = LAB__BLOB__INIT;
    request.body.len = LARGE_BYTES;
    request.body.data = run->large;
    assert_int_equal(lab__lab__echo__start(run->client, &request, NULL, on_large, NULL, NULL), 0);
}

static void on_connected(struct bow_result *result, const Lab__Blob *reply, void *user)
{
    (void)user;
    if (reply == NULL) {
        fail_msg("first call: %s", result->status.message);
    }
    if (run->with_large) {
        start_large();
    }
    for (uint32_t i = 0; i < N_IN_FLIGHT; i++) {
        start_small(&run->started_at[i]);
    }
}

/* The 99th percentile of the small calls. */
static uint64_t measure(const struct lab *lab, bool with_large)
{
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    Lab__Blob request = LAB__BLOB__INIT;
    run = calloc(1, sizeof(*run));
    assert_non_null(run);
    run->with_large = with_large;
    run->large = malloc(LARGE_BYTES);
    assert_non_null(run->large);
    for (size_t i = 0; i < LARGE_BYTES; i++) {
        run->large[i] = (uint8_t)(i * 31);
    }
    loop_options.thread = BOW_LOOP_OWNER;
    assert_int_equal(bow_context_new(&context_options, &options.context), 0);
    assert_int_equal(bow_loop_new(options.context, &loop_options, &run->loop), 0);
    options.loop = run->loop;
    options.target = lab->target;
    assert_int_equal(bow_client_new(&options, &run->client), 0);
    assert_int_equal(lab__lab__echo__start(run->client, &request, NULL, on_connected, NULL, NULL),
                     0);
    assert_int_equal(bow_loop_run(run->loop), 0);
    uint64_t p99 = lab_percentile(run->took, N_SMALL, 99);
    bow_loop_unref(run->loop);
    assert_int_equal(bow_context_bytes(options.context), 0);
    bow_context_unref(options.context);
    free(run->large);
    free(run);
    return p99;
}

/* One interleaved run. Whether the p99 beside a large call is within three times of that alone. */
static bool p99_is_kept(const struct lab *lab)
{
    uint64_t alone[N_PAIRS];
    uint64_t beside[N_PAIRS];
    for (size_t i = 0; i < N_PAIRS; i++) {
        alone[i] = measure(lab, false);
        beside[i] = measure(lab, true);
    }
    uint64_t alone_ns = lab_median(alone, N_PAIRS);
    uint64_t beside_ns = lab_median(beside, N_PAIRS);
    print_message("p99 of small calls, median of %u: %lu us alone, %lu us beside a large one\n",
                  N_PAIRS, (unsigned long)alone_ns / 1000, (unsigned long)beside_ns / 1000);
    return beside_ns <= 3 * alone_ns;
}

/* Another program on the machine makes the longer runs worse and never better, so one run
 * that keeps the bound shows that it can be kept. */
static void test_large_native_leaves_small_calls_alone(void **state)
{
    struct lab lab;
    bool kept = false;
    (void)state;
    lab_start(&lab, "");
    (void)measure(&lab, true);
    for (size_t i = 0; i < N_ATTEMPTS && !kept; i++) {
        kept = p99_is_kept(&lab) || lab_is_instrumented();
    }
    lab_stop(&lab);
    assert_true(kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_large_native_leaves_small_calls_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
