/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Memory of whole calls, server and client on one loop that the test drives: none
 * is allocated once warm, and each allocation may fail.
 */

#include "base/poison.h"
#include "both_ends.h"
#include "rpc/metrics/times.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct pair {
    struct both_ends ends;
    int n_done;
    enum bow_code code;
    int rc;            /* what the handler's reply said */
    bool is_told_none; /* the client, that there was no memory for the reply */
};

static void say(struct bow_call *call, const Calls__Request *request, void *user)
{
    Calls__Reply reply = CALLS__REPLY__INIT;
    struct pair *pair = user;

    reply.number = request->number;
    reply.payload = request->payload;
    reply.text = bow_call_printf(call, "%s!", request->text);
    if (reply.text != NULL) {
        pair->rc = calls__echo__say__reply(call, &reply);
        return;
    }
    (void)bow_call_fail(call, BOW_RESOURCE_EXHAUSTED, "no memory");
}

static const struct calls__echo__handlers handlers = {.say = say};

static int open_pair(struct pair *pair, struct bow_context *context)
{
    memset(pair, 0, sizeof(*pair));
    return both_ends_open(&pair->ends, context, &handlers, pair);
}

static void on_done(struct bow_result *result, const Calls__Reply *reply, void *user)
{
    struct pair *pair = user;

    (void)reply;
    pair->code = result->status.code;
    pair->is_told_none = strstr(result->status.message, "no memory to send the reply") != NULL;
    pair->n_done++;
}

static int start_say(struct pair *pair, size_t n_payload)
{
    Calls__Request request = CALLS__REQUEST__INIT;
    char text[] = "text";

    request.text = text;
    request.payload.len = n_payload;
    request.payload.data = calloc(1, n_payload + 1);
    int rc = calls__echo__say__start(pair->ends.client, &request, NULL, on_done, pair, NULL);
    free(request.payload.data);
    return rc;
}

static void drive_until(struct pair *pair, int n_done)
{
    while (pair->n_done < n_done) {
        assert_int_equal(bow_loop_run_once(pair->ends.loop, BOW_NEVER), 0);
    }
}

static void one_call(struct pair *pair)
{
    assert_int_equal(start_say(pair, 16), 0);
    drive_until(pair, pair->n_done + 1);
    assert_int_equal(pair->code, BOW_OK);
}

static void test_memory_warm_unary_call_allocates_nothing(void **state)
{
    struct test_alloc alloc;
    struct pair pair;

    (void)state;
    if (BOW__POISONS) {
        skip(); /* with AddressSanitizer nothing is pooled */
    }
    test_alloc_init(&alloc);
    struct bow_context *context = test_context_new(&alloc);
    assert_int_equal(open_pair(&pair, context), 0);
    for (int i = 0; i < 200; i++) {
        one_call(&pair);
    }
    size_t before = atomic_load(&alloc.n_calls);
    for (int i = 0; i < 1000; i++) {
        one_call(&pair);
    }
    size_t after = atomic_load(&alloc.n_calls);
    both_ends_close(&pair.ends);
    test_context_end(context, &alloc);
    /* Idle loops may drop an output chunk and take one again. And a call that took longer than any
     * before it is the first of its part of a histogram: of the server's, or one of the client's.
     */
    assert_true(after - before <= 4 + 3 * BOW__TIMES_PARTS);
}

/* Small, then large: in place, then in blocks of their own. */
static int run_calls(struct bow_context *context, void *user)
{
    struct pair pair;

    (void)user;
    int rc = open_pair(&pair, context);
    for (size_t n_payload = 16; rc == 0 && n_payload < 200000; n_payload += 100000) {
        rc = start_say(&pair, n_payload);
        if (rc == 0) {
            drive_until(&pair, pair.n_done + 1);
            rc = pair.code == BOW_OK ? 0 : -ENOMEM;
            assert_int_not_equal(pair.code, BOW_DEADLINE_EXCEEDED);
            assert_true(!pair.is_told_none || pair.rc == -ENOMEM);
        }
    }
    both_ends_close(&pair.ends);
    return rc;
}

static void test_memory_each_allocation_may_fail(void **state)
{
    (void)state;
    assert_true(test_alloc_fail_each(NULL, run_calls, NULL) > 20);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_warm_unary_call_allocates_nothing),
        cmocka_unit_test(test_memory_each_allocation_may_fail),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
