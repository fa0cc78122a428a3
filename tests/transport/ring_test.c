/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Bytes in a ring that grows. */

#include "tests/support/alloc.h"
#include "transport/memory/ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define MAX_BYTES ((size_t)64 << 10)

struct fixture {
    struct test_alloc alloc;
    struct bow_context *context;
    struct bow__ring ring;
    uint8_t bytes[MAX_BYTES];
    size_t n_put;
    size_t n_taken;
};

static void begin(struct fixture *f)
{
    memset(f, 0, sizeof(*f));
    test_alloc_init(&f->alloc);
    f->context = test_context_new(&f->alloc);
    assert_int_equal(bow__ring_init(&f->ring, f->context, MAX_BYTES), 0);
}

static void end(struct fixture *f)
{
    bow__ring_fini(&f->ring, f->context);
    bow__ring_fini(&f->ring, f->context);
    test_context_end(f->context, &f->alloc);
}

static size_t put(struct fixture *f, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        f->bytes[i] = (uint8_t)((f->n_put + i) * 7);
    }
    size_t n = bow__ring_put(&f->ring, f->context, f->bytes, len);
    f->n_put += n;
    return n;
}

static size_t take(struct fixture *f, size_t max)
{
    size_t n = bow__ring_take(&f->ring, f->bytes, max);

    for (size_t i = 0; i < n; i++) {
        assert_int_equal(f->bytes[i], (uint8_t)((f->n_taken + i) * 7));
    }
    f->n_taken += n;
    return n;
}

static void test_ring_wrapped_at_every_place_keeps_the_order(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f);
    for (size_t i = 0; i < 3000; i++) {
        assert_int_equal(put(&f, 1 + i % 97), 1 + i % 97);
        assert_true(take(&f, 1 + i % 89) > 0);
    }
    while (take(&f, 1000) > 0) {
    }
    assert_int_equal(f.n_taken, f.n_put);
    end(&f);
}

static void test_ring_grown_while_wrapped_keeps_the_order(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f);
    put(&f, 4000);
    take(&f, 3000);
    put(&f, 3000);
    assert_int_equal(put(&f, 60000), 60000);
    assert_int_equal(take(&f, MAX_BYTES), 61000 + 3000);
    end(&f);
}

static void test_ring_full_takes_no_more(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f);
    assert_int_equal(put(&f, 1000), 1000);
    assert_int_equal(put(&f, MAX_BYTES), MAX_BYTES - 1000);
    assert_int_equal(put(&f, 1), 0);
    assert_int_equal(bow__ring_room(&f.ring), 0);
    take(&f, 10);
    assert_int_equal(put(&f, 11), 10);
    end(&f);
}

static void test_ring_without_memory_to_grow_has_less_room(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f);
    put(&f, 1000);
    size_t cap = f.ring.cap;
    f.alloc.fail_at = f.alloc.n_calls + 1;
    assert_int_equal(put(&f, 20000), cap - 1000);
    assert_int_equal(bow__ring_room(&f.ring), 0);
    assert_int_equal(take(&f, MAX_BYTES), cap);
    assert_int_equal(bow__ring_room(&f.ring), cap);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring_wrapped_at_every_place_keeps_the_order),
        cmocka_unit_test(test_ring_grown_while_wrapped_keeps_the_order),
        cmocka_unit_test(test_ring_full_takes_no_more),
        cmocka_unit_test(test_ring_without_memory_to_grow_has_less_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
