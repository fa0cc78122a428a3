/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A million calls over eight connections with 64 in flight on each: every reply is its
 * request's, none fails, and memory's peak is reached in the first half of the calls.
 */

#include "lab.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N_CLIENTS 8u
#define N_IN_FLIGHT 64u
#define CALLS_A_SAMPLE 500u
/*
 * Peaks of the two halves are compared, since pooled buffers come and go by 128 KiB and each of
 * the connections may meet its own peak late. The smallest block that malloc has (32 bytes), lost
 * with each call of the second half, would add three times this at least.
 */
#define SLACK_BYTES ((size_t)2 << 20)
#define N_NATIVE_CALLS 1000000u
#define N_GRPC_CALLS 400000u
/* Under a sanitizer, where only replies are checked: its own memory would drown what is measured.
 */
#define N_INSTRUMENTED_CALLS 20000u

struct load_peak {
    size_t rss;
    size_t counted; /* by the two contexts' allocators */
};

struct load_slot {
    struct load_run *run;
    struct bow_client *client;
    uint64_t id;
};

struct load_run {
    struct lab lab;
    struct bow_context *context;
    struct bow_loop *loop;
    struct bow_client *clients[N_CLIENTS];
    struct load_slot slots[N_CLIENTS * N_IN_FLIGHT];
    uint64_t n_calls;
    uint64_t n_started;
    uint64_t n_done;
    uint64_t n_wrong;
    struct load_peak early; /* the first half of the calls */
    struct load_peak late;
    char first_error[256];
};

static void start_one(struct load_slot *slot);

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static void sample_memory(struct load_run *run)
{
    struct load_peak *peak = run->n_done <= run->n_calls / 2 ? &run->early : &run->late;
    size_t counted = bow_context_bytes(run->context) + bow_context_bytes(run->lab.context);

    peak->rss = larger(peak->rss, lab_rss_bytes());
    peak->counted = larger(peak->counted, counted);
}

static void finish(struct load_run *run)
{
    for (size_t i = 0; i < N_CLIENTS; i++) {
        bow_client_free(run->clients[i]);
    }
    bow_loop_shutdown(run->loop, 0, UINT64_C(5000000000));
}

static void on_reply(struct bow_result *result, const Lab__Blob *reply, void *user)
{
    struct load_slot *slot = user;
    struct load_run *run = slot->run;
    if (run->n_done == run->n_calls) {
        return;
    }
    if (reply == NULL || reply->id != slot->id || reply->body.len != sizeof(slot->id) ||
        memcmp(reply->body.data, &slot->id, sizeof(slot->id)) != 0) {
        if (run->n_wrong++ == 0) {
            snprintf(run->first_error, sizeof(run->first_error), "%s: %s",
                     bow_code_name(result->status.code),
                     reply == NULL ? result->status.message : "another call's reply");
        }
    }
    run->n_done++;
    if (run->n_done % CALLS_A_SAMPLE == 0) {
        sample_memory(run);
    }
    if (run->n_done == run->n_calls) {
        finish(run);
        return;
    }
    start_one(slot);
}

static void start_one(struct load_slot *slot)
{
    struct load_run *run = slot->run;
    Lab__Blob request = LAB__BLOB__INIT;
    if (run->n_started == run->n_calls) {
        return;
    }
    slot->id = ++run->n_started;
    request.id = slot->id;
    request.body.data = (uint8_t *)&slot->id;
    request.body.len = sizeof(slot->id);
    assert_int_equal(lab__lab__echo__start(slot->client, &request, NULL, on_reply, slot, NULL), 0);
}

static int start_all(void *user)
{
    struct load_run *run = user;
    for (size_t i = 0; i < N_CLIENTS * N_IN_FLIGHT; i++) {
        run->slots[i].run = run;
        run->slots[i].client = run->clients[i % N_CLIENTS];
        start_one(&run->slots[i]);
    }
    return 0;
}

static void run_load(const char *prefix, uint64_t n_calls)
{
    struct load_run *run = calloc(1, sizeof(*run));
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    assert_non_null(run);
    run->n_calls = lab_is_instrumented() ? N_INSTRUMENTED_CALLS : n_calls;
    lab_start(&run->lab, prefix);
    loop_options.thread = BOW_LOOP_OWNER;
    assert_int_equal(bow_context_new(&context_options, &run->context), 0);
    assert_int_equal(bow_loop_new(run->context, &loop_options, &run->loop), 0);
    options.context = run->context;
    options.loop = run->loop;
    options.target = run->lab.target;
    for (size_t i = 0; i < N_CLIENTS; i++) {
        assert_int_equal(bow_client_new(&options, &run->clients[i]), 0);
    }
    assert_int_equal(bow_loop_execute(run->loop, "start all", start_all, run), 0);
    assert_int_equal(bow_loop_run(run->loop), 0);

    assert_int_equal(run->n_done, run->n_calls);
    if (run->n_wrong > 0) {
        fail_msg("%lu of %lu calls went wrong, the first: %s", (unsigned long)run->n_wrong,
                 (unsigned long)run->n_calls, run->first_error);
    }
    print_message("%lu calls: peak RSS %zu KiB in the first half, %zu KiB in the second; "
                  "counted %zu and %zu KiB\n",
                  (unsigned long)run->n_calls, run->early.rss >> 10, run->late.rss >> 10,
                  run->early.counted >> 10, run->late.counted >> 10);
    if (!lab_is_instrumented()) {
        assert_true(run->late.counted <= run->early.counted + SLACK_BYTES);
        assert_true(run->late.rss <= run->early.rss + SLACK_BYTES);
    }
    bow_loop_unref(run->loop);
    assert_int_equal(bow_context_bytes(run->context), 0);
    bow_context_unref(run->context);
    lab_stop(&run->lab);
    free(run);
}

static void test_load_million_native_calls_match_and_memory_is_flat(void **state)
{
    (void)state;
    run_load("", N_NATIVE_CALLS);
}

static void test_load_grpc_calls_match_and_memory_is_flat(void **state)
{
    (void)state;
    run_load("grpc:", N_GRPC_CALLS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_load_million_native_calls_match_and_memory_is_flat),
        cmocka_unit_test(test_load_grpc_calls_match_and_memory_is_flat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
