/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls over two native sessions, whatever the pieces in which their bytes arrive.
 */
#include "tests/rpc/native_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void reply_hello(struct side *side, uint64_t key, struct bow__message *message)
{
    (void)message;
    assert_int_equal(side_say(side, key, BOW__SEND_END, "hello", 5), 0);
}

static void run_unary_call(size_t step, uint64_t random)
{
    struct pair pair;

    pair_init(&pair);
    pair.step = step;
    pair.random = random;
    assert_int_equal(pair_open(&pair), 0);
    pair.server.on_message = reply_hello;
    uint64_t key = side_call(&pair.client, "/demo.Greeter/SayHello", 0, "world", 5);
    pair_run(&pair);

    assert_int_equal(pair.server.n_opens, 1);
    assert_string_equal(pair.server.path, "/demo.Greeter/SayHello");
    assert_true(pair.server.time_left_ns == BOW_NEVER);
    assert_null(pair.server.path_cache);
    assert_int_equal(pair.server.message_len, 5);
    assert_memory_equal(pair.server.message, "world", 5);
    assert_true(pair.server.message_end);
    assert_false(pair.server.message_had_block);
    assert_ptr_equal(pair.server.stream, (void *)(uintptr_t)(key + 1000));
    assert_int_equal(pair.client.n_messages, 1);
    assert_memory_equal(pair.client.message, "hello", 5);
    assert_int_equal(pair.client.n_statuses, 1);
    assert_int_equal(pair.client.code, BOW_OK);
    assert_ptr_equal(pair.client.stream, &pair.client);
    assert_int_equal(pair.client.session->n_streams, 0);
    assert_int_equal(pair.server.session->n_streams, 0);
    pair_fini(&pair);
}

static void test_native_call_unary_replies(void **state)
{
    (void)state;
    run_unary_call(0, 0);
}

static void test_native_call_byte_by_byte_replies(void **state)
{
    (void)state;
    run_unary_call(1, 0);
}

static void test_native_call_any_split_replies(void **state)
{
    (void)state;
    for (size_t step = 2; step < 80; step++) {
        run_unary_call(step, 0);
    }
    for (uint64_t seed = 1; seed <= 200; seed++) {
        run_unary_call(1 + seed % 40, seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_native_call_unary_replies),
        cmocka_unit_test(test_native_call_byte_by_byte_replies),
        cmocka_unit_test(test_native_call_any_split_replies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
