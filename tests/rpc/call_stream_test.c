/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A streaming call of a server whose loop takes nothing any more. */

#include "rpc/core/call/call_stream_send.h"
#include "tests/support/alloc.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static int refuse_post(struct bow_call *call, void (*run)(struct bow_call *call))
{
    (void)call;
    (void)run;
    return -ESHUTDOWN;
}

static void keep_memory(struct bow_call *call)
{
    (void)call;
}

/* A handler on an executor sends, in vain, and finishes. */
static void test_call_stream_of_an_ended_loop_is_told_each_time(void **state)
{
    static const struct bow__call_ops ops = {.post = refuse_post, .free = keep_memory};
    struct test_alloc alloc;
    static const struct bow_method method = {.path = "/demo.Room/Listen"};
    struct bow_call call;
    _Alignas(16) uint8_t slab[256];
    (void)state;

    test_alloc_init(&alloc);
    struct bow_context *context = test_context_new(&alloc);
    bow__call_init(&call, &ops, context, slab, sizeof(slab));
    call.method = &method;
    assert_int_equal(bow__call_stream_new(&call), 0);
    assert_int_equal(bow__call_stream_wake(&call), -ECANCELED);
    assert_int_equal(bow__call_stream_wake(&call), -ECANCELED);
    bow_call_unref(&call);
    test_context_end(context, &alloc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_call_stream_of_an_ended_loop_is_told_each_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
