/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * When a loop's coders go.
 */

#include "rpc/connection/loop_compression.h"
#include "tests/support/loops.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define SECONDS (UINT64_C(1000) * FAKE_MS)

struct fixture {
    struct loops loops;
    struct bow_loop *loop;
    struct bow__loop_compression own;
};

static int setup(void **state)
{
    static struct fixture t;
    struct bow__compression_options options = {.max_message_bytes = 1000};

    loops_begin(&t.loops);
    t.loop = loops_new_owner(&t.loops);
    bow__loop_compression_init(&t.own, t.loops.context, t.loop, &options);
    *state = &t;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *t = *state;

    bow__loop_compression_stop(&t->own);
    bow_loop_unref(t->loop);
    loops_end(&t->loops);
    return 0;
}

static enum bow__encoding one_of_ours(void)
{
    return (bow__encodings_built() & 1u << BOW__ENCODING_GZIP) != 0 ? BOW__ENCODING_GZIP
                                                                    : BOW__ENCODING_ZSTD;
}

static bool has_coders(const struct fixture *t)
{
    return t->own.compression.coders.decoders[one_of_ours()] != NULL;
}

static void use(struct fixture *t)
{
    struct bow__message message = {
        .bytes = {(const uint8_t *)"no such thing", 13},
        .compressed = true,
        .encoding = one_of_ours(),
    };
    struct bow__text reason;

    bow__text_clear(&reason);
    assert_int_equal(bow__compression_inflate(&t->own.compression, &message, &reason), -EBADMSG);
    assert_true(message.compressed);
    assert_true(has_coders(t));
}

static void pass(struct fixture *t, uint64_t ns)
{
    fake_system_advance(&t->loops.fake, ns);
    assert_true(bow_loop_run_once(t->loop, 0) >= 0);
}

static void test_loop_packing_frees_what_is_idle(void **state)
{
    struct fixture *t = *state;

    size_t before = bow_context_bytes(t->loops.context);
    use(t);
    pass(t, 11 * SECONDS);
    pass(t, 11 * SECONDS);
    assert_false(has_coders(t));
    assert_true(bow_context_bytes(t->loops.context) <= before);
    use(t); /* again */
    pass(t, 11 * SECONDS);
    pass(t, 11 * SECONDS);
    assert_false(has_coders(t));
}

static void test_loop_packing_keeps_what_is_used(void **state)
{
    struct fixture *t = *state;

    for (int i = 0; i < 10; i++) {
        use(t);
        pass(t, 9 * SECONDS);
        assert_true(has_coders(t));
    }
}

static void test_loop_packing_stopped_has_nothing(void **state)
{
    struct fixture *t = *state;

    use(t);
    bow__loop_compression_stop(&t->own);
    assert_false(has_coders(t));
    pass(t, 60 * SECONDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_loop_packing_frees_what_is_idle, setup, teardown),
        cmocka_unit_test_setup_teardown(test_loop_packing_keeps_what_is_used, setup, teardown),
        cmocka_unit_test_setup_teardown(test_loop_packing_stopped_has_nothing, setup, teardown),
    };

    if (bow__encodings_built() == 1u << BOW__ENCODING_IDENTITY) {
        puts("skipped: this build has no encoding");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
