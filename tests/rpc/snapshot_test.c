/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Snapshots keep the oldest calls, whatever their order and number; what is written of them escapes
 * what a peer chose. */
#include "rpc/inspect/out.h"
#include "rpc/inspect/snapshot.h"
#include "tests/support/alloc.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define N_CALLS 1000u

/* Ages 1 to N_CALLS, in an order that is none. */
static uint64_t started(uint32_t i)
{
    return 1 + (uint64_t)i * 617 % N_CALLS;
}

static void check_kept(uint32_t max)
{
    struct test_alloc alloc;
    struct bow__snapshot snapshot;

    test_alloc_init(&alloc);
    struct bow_context *context = test_context_new(&alloc);
    bow__snapshot_init(&snapshot, context, &(struct bow__snapshot_limits){max, 1});
    for (uint32_t i = 0; i < N_CALLS; i++) {
        struct bow__call_entry *entry = bow__snapshot_add_call(&snapshot, started(i));
        if (entry != NULL) {
            entry->n_waiting = started(i); /* it stays with its call */
        }
    }
    bow__snapshot_sort(&snapshot);
    uint32_t n = max < N_CALLS ? max : N_CALLS;
    assert_int_equal(snapshot.n_calls, n);
    assert_int_equal(snapshot.n_calls_seen, N_CALLS);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(snapshot.calls[i].started_ns, i + 1);
        assert_int_equal(snapshot.calls[i].n_waiting, i + 1);
    }
    bow__snapshot_fini(&snapshot);
    test_context_end(context, &alloc);
}

static void test_snapshot_keeps_the_oldest_calls(void **state)
{
    static const uint32_t limits[] = {1, 2, 3, 15, 16, 17, 100, N_CALLS - 1, N_CALLS, 2 * N_CALLS};

    (void)state;
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        check_kept(limits[i]);
    }
}

static void test_snapshot_keeps_so_many_connections(void **state)
{
    struct test_alloc alloc;
    struct bow__snapshot snapshot;
    uint32_t n = 0;

    (void)state;
    test_alloc_init(&alloc);
    struct bow_context *context = test_context_new(&alloc);
    bow__snapshot_init(&snapshot, context, &(struct bow__snapshot_limits){1, 20});
    for (uint32_t i = 0; i < 50; i++) {
        n += bow__snapshot_add_connection(&snapshot) != NULL;
    }
    assert_int_equal(n, 20);
    assert_int_equal(snapshot.n_connections_seen, 50);
    bow__snapshot_fini(&snapshot);
    test_context_end(context, &alloc);
}

/* Without memory it tells less, and how much there was. */
static void test_snapshot_without_memory_counts_on(void **state)
{
    struct test_alloc alloc;
    struct bow__snapshot snapshot;
    uint32_t n = 0;

    (void)state;
    test_alloc_init(&alloc);
    struct bow_context *context = test_context_new(&alloc);
    bow__snapshot_init(&snapshot, context, &(struct bow__snapshot_limits){100, 100});
    alloc.fail_at = alloc.n_calls + 2;
    for (uint32_t i = 0; i < 17; i++) {
        n += bow__snapshot_add_call(&snapshot, 1 + i) != NULL;
    }
    alloc.fail_at = 0;
    assert_int_equal(n, 16);
    assert_int_equal(snapshot.n_calls, 16);
    assert_int_equal(snapshot.n_calls_seen, 17);
    bow__snapshot_fini(&snapshot);
    test_context_end(context, &alloc);
}

struct text {
    size_t len;
    size_t n_puts;
    char bytes[16384];
};

static int put(const char *bytes, size_t len, void *user)
{
    struct text *text = user;

    memcpy(text->bytes + text->len, bytes, len);
    text->len += len;
    text->bytes[text->len] = '\0';
    text->n_puts++;
    return 0;
}

static void test_snapshot_what_peers_chose_is_escaped(void **state)
{
    struct text text = {0};
    struct bow__out out;

    (void)state;
    bow__out_init(&out, put, &text);
    bow__out_escaped(&out, "a\n\x1b[2J\\\xff");
    assert_int_equal(bow__out_end(&out), 0);
    assert_string_equal(text.bytes, "a\\x0a\\x1b[2J\\x5c\\xff");
    text.len = 0;
    bow__out_init(&out, put, &text);
    bow__out_open(&out, NULL, '{');
    bow__out_string(&out, "a\"", "\"\\\n</script>&\xc3\x7f");
    bow__out_open(&out, "b", '[');
    bow__out_number(&out, NULL, UINT64_MAX);
    bow__out_null(&out, NULL);
    bow__out_bool(&out, NULL, true);
    bow__out_close(&out, ']');
    bow__out_string(&out, "c", NULL);
    bow__out_close(&out, '}');
    assert_int_equal(bow__out_end(&out), 0);
    assert_string_equal(text.bytes,
                        "{\"a\\\"\":\"\\\"\\\\\\u000a\\u003c/script\\u003e\\u0026\\u00c3\\u007f\","
                        "\"b\":[18446744073709551615,null,true],\"c\":null}");
}

static void test_snapshot_much_is_written_in_pieces(void **state)
{
    static struct text text;
    struct bow__out out;

    (void)state;
    bow__out_init(&out, put, &text);
    for (int i = 0; i < 1000; i++) {
        bow__out_printf(&out, "%09d\n", i);
    }
    assert_int_equal(bow__out_end(&out), 0);
    assert_int_equal(text.len, 10000);
    assert_true(text.n_puts > 1 && text.n_puts < 10);
    assert_memory_equal(text.bytes + 5550, "000000555\n", 10);
}

static int refuse(const char *bytes, size_t len, void *user)
{
    (void)bytes;
    (void)len;
    (*(int *)user)++;
    return -EPIPE;
}

static void test_snapshot_who_takes_nothing_is_not_asked_again(void **state)
{
    struct bow__out out;
    int n = 0;

    (void)state;
    bow__out_init(&out, refuse, &n);
    for (int i = 0; i < 1000; i++) {
        bow__out_printf(&out, "%09d\n", i);
    }
    assert_int_equal(bow__out_end(&out), -EPIPE);
    assert_int_equal(n, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_snapshot_keeps_the_oldest_calls),
        cmocka_unit_test(test_snapshot_keeps_so_many_connections),
        cmocka_unit_test(test_snapshot_without_memory_counts_on),
        cmocka_unit_test(test_snapshot_what_peers_chose_is_escaped),
        cmocka_unit_test(test_snapshot_much_is_written_in_pieces),
        cmocka_unit_test(test_snapshot_who_takes_nothing_is_not_asked_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
