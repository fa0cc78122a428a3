/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Many calls of a megabyte, and then none: what they needed is given back.
 *
 *     burst_test PROTOCOL N_CALLS
 */

#include "lab.h"
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N_IN_FLIGHT 8u
/* Small calls, before: all that a process needs is there after so many. */
#define N_WARM 1000u
#define LARGE_BYTES ((size_t)1 << 20)
#define HEARTBEAT_NS (100 * LAB_MS)
#define PATIENCE_NS (10000 * LAB_MS)
#define LIMIT_NS (1000000 * LAB_MS)

static const char *prefix = "";
static unsigned n_calls = 500;

struct burst {
    struct lab lab;
    struct bow_context *context;
    struct bow_loop *loop;
    struct bow_client *client;
    uint8_t *large;
    unsigned n_wanted;
    unsigned n_started; /* on the loop */
    unsigned n_wrong;
    atomic_uint n_done;
};

struct held {
    size_t counted; /* by the contexts */
    size_t rss;
};

static struct held look(const struct burst *burst)
{
    return (struct held){
        bow_context_bytes(burst->context) + bow_context_bytes(burst->lab.context),
        lab_rss_bytes(),
    };
}

/* What a sanitizer keeps is its own. */
static bool is_within(const struct held *now, const struct held *before)
{
    return now->counted <= before->counted + before->counted / 2 &&
           (lab_is_instrumented() || now->rss <= before->rss + before->rss / 2);
}

static struct held wait_until_within(const struct burst *burst, const struct held *before)
{
    uint64_t end_ns = lab_now_ns() + PATIENCE_NS;
    struct held now = look(burst);

    while (!is_within(&now, before) && lab_now_ns() < end_ns) {
        sched_yield();
        now = look(burst);
    }
    return now;
}

static void start_next(struct burst *burst);

static void on_reply(struct bow_result *result, const Lab__Blob *reply, void *user)
{
    struct burst *burst = user;
    (void)result;

    burst->n_wrong += reply == NULL || (reply->body.len != 1 && reply->body.len != LARGE_BYTES);
    start_next(burst);
    atomic_fetch_add(&burst->n_done, 1);
}

/* The request is large, or the reply. */
static void start_next(struct burst *burst)
{
    Lab__Blob request = LAB__BLOB__INIT;

    if (burst->n_started == burst->n_wanted) {
        return;
    }
    if (burst->large == NULL) {
        request.reply_bytes = 1;
    } else if (burst->n_started % 2 == 0) {
        request.body.data = burst->large;
        request.body.len = LARGE_BYTES;
        request.reply_bytes = 1;
    } else {
        request.reply_bytes = LARGE_BYTES;
    }
    burst->n_started++;
    assert_int_equal(lab__lab__echo__start(burst->client, &request, NULL, on_reply, burst, NULL),
                     0);
}

static int start_some(void *user)
{
    for (unsigned i = 0; i < N_IN_FLIGHT; i++) {
        start_next(user);
    }
    return 0;
}

static void run(struct burst *burst, unsigned n, uint8_t *large)
{
    burst->large = large;
    burst->n_wanted = burst->n_started + n;
    unsigned wanted = burst->n_wanted;
    assert_int_equal(bow_loop_execute(burst->loop, "start", start_some, burst), 0);
    assert_true(lab_wait_count(&burst->n_done, wanted, LIMIT_NS));
    assert_int_equal(burst->n_wrong, 0);
}

static void begin(struct burst *burst)
{
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_server_options server_options = BOW_SERVER_OPTIONS_INIT;

    server_options.workers = 1;
    server_options.heartbeat_ns = HEARTBEAT_NS;
    lab_start_with(&burst->lab, prefix, &server_options, 0);
    assert_int_equal(bow_context_new(&context_options, &burst->context), 0);
    assert_int_equal(bow_loop_new(burst->context, &loop_options, &burst->loop), 0);
    options.context = burst->context;
    options.loop = burst->loop;
    options.target = burst->lab.target;
    options.heartbeat_ns = HEARTBEAT_NS;
    assert_int_equal(bow_client_new(&options, &burst->client), 0);
}

static void end(struct burst *burst)
{
    bow_client_free(burst->client);
    bow_loop_unref(burst->loop);
    assert_int_equal(bow_context_bytes(burst->context), 0);
    bow_context_unref(burst->context);
    lab_stop(&burst->lab);
}

static void test_burst_f33_memory_is_given_back(void **state)
{
    static struct burst burst;
    uint8_t *large = malloc(LARGE_BYTES);

    (void)state;
    assert_non_null(large);
    memset(large, 'x', LARGE_BYTES);
    begin(&burst);
    run(&burst, N_WARM, NULL);
    struct held before = look(&burst);
    run(&burst, n_calls, large);
    struct held after = look(&burst);
    struct held idle = wait_until_within(&burst, &before);
    print_message("%u calls: before %zu KiB (RSS %zu), after %zu (%zu), idle %zu (%zu)\n", n_calls,
                  before.counted >> 10, before.rss >> 10, after.counted >> 10, after.rss >> 10,
                  idle.counted >> 10, idle.rss >> 10);
    assert_true(is_within(&idle, &before));
    end(&burst);
    free(large);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_burst_f33_memory_is_given_back),
    };

    if (argc > 1 && strcmp(argv[1], "grpc") == 0) {
        prefix = "grpc:";
    }
    if (argc > 2) {
        n_calls = (unsigned)strtoul(argv[2], NULL, 10);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
