/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A million calls over eight connections with 64 in flight on each: every reply is its
 * request's, none fails, and memory after a million is what it was after a hundred thousand.
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
#define SLACK_BYTES ((size_t)256 << 10)

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
    size_t early_rss;
    size_t early_bytes;
    size_t late_rss;
    size_t late_bytes;
    char first_error[256];
};

static void start_one(struct load_slot *slot);

static size_t allocated(const struct load_run *run)
{
    return bow_context_bytes(run->context) + bow_context_bytes(run->lab.context);
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
    if (run->n_done == run->n_calls / 10) {
        run->early_rss = lab_rss_bytes();
        run->early_bytes = allocated(run);
    }
    if (run->n_done == run->n_calls) {
        run->late_rss = lab_rss_bytes();
        run->late_bytes = allocated(run);
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
    /* Fewer under a sanitizer, but a tenth of them is past the warm-up all the same. */
    run->n_calls = lab_is_instrumented() ? 20000 : n_calls;
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
    print_message("%lu calls: RSS %zu KiB at a tenth, %zu KiB at the end; allocated %zu and %zu\n",
                  (unsigned long)run->n_calls, run->early_rss >> 10, run->late_rss >> 10,
                  run->early_bytes, run->late_bytes);
    assert_true(run->late_bytes <= run->early_bytes + SLACK_BYTES);
    if (!lab_is_instrumented()) {
        assert_true(run->late_rss <= run->early_rss + SLACK_BYTES);
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
    run_load("", 1000000);
}

static void test_load_grpc_calls_match_and_memory_is_flat(void **state)
{
    (void)state;
    run_load("grpc:", 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_load_million_native_calls_match_and_memory_is_flat),
        cmocka_unit_test(test_load_grpc_calls_match_and_memory_is_flat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
