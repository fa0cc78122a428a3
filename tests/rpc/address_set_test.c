/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a resolver said, copied: each server once, in order, and not too many. */

#include "rpc/client/resolve/address_set.h"
#include "tests/support/alloc.h"

#include <bowline/limits.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    struct test_alloc alloc;
    struct bow_context *context;
};

static int setup(void **state)
{
    static struct fixture fixture;

    test_alloc_init(&fixture.alloc);
    fixture.context = test_context_new(&fixture.alloc);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    test_context_end(f->context, &f->alloc);
    return 0;
}

static struct bow__address_set *make(struct fixture *f, const struct bow_resolver_address *said,
                                     size_t n)
{
    struct bow__address_set *set = NULL;

    assert_int_equal(bow__address_set_new(f->context, said, n, NULL, &set), 0);
    return set;
}

static void test_address_set_keeps_the_order_and_finds_each(void **state)
{
    static const struct bow_resolver_address said[] = {
        {.address = "127.0.0.1:3"}, {.address = "127.0.0.1:1"}, {.address = "127.0.0.1:2"}};
    struct fixture *f = *state;
    struct bow__address_set *set = make(f, said, 3);

    assert_int_equal(set->n, 3);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(set->items[i].address, said[i].address);
        assert_int_equal(set->items[i].weight, 1);
        assert_int_equal(bow__address_set_find(set, &said[i]), i);
    }
    struct bow_resolver_address other = {.address = "127.0.0.1:4"};
    assert_int_equal(bow__address_set_find(set, &other), -1);
    bow__address_set_free(f->context, set);
}

static void test_address_set_has_each_server_once(void **state)
{
    static const struct bow_resolver_address said[] = {
        {.address = "127.0.0.1:1", .weight = 2},
        {.address = "ipv4:127.0.0.1:1", .weight = 5, .server_name = ""},
        {.address = "127.0.0.1:1", .server_name = "a.example"},
        {.address = "127.0.0.1:1", .locality = "zone-a"},
        {.address = "127.0.0.1:1", .weight = 3},
    };
    struct fixture *f = *state;
    struct bow__address_set *set = make(f, said, 5);

    assert_int_equal(set->n, 3);
    assert_int_equal(set->items[0].weight, 5);
    assert_string_equal(set->items[0].address, "127.0.0.1:1");
    assert_null(set->items[0].server_name);
    assert_string_equal(set->items[1].server_name, "a.example");
    assert_string_equal(set->items[2].locality, "zone-a");
    bow__address_set_free(f->context, set);
}

/* The same ones are left out, whatever the order. */
static void test_address_set_length_is_bounded(void **state)
{
    enum { N = BOW_LIMIT_RESOLVED_ADDRESSES + 1 };
    static char texts[N][32];
    static struct bow_resolver_address said[N];
    static struct bow_resolver_address reversed[N];
    struct fixture *f = *state;

    for (int i = 0; i < N; i++) {
        snprintf(texts[i], sizeof(texts[i]), "127.0.0.1:%d", 10000 + i);
        said[i].address = texts[i];
        reversed[N - 1 - i].address = texts[i];
    }
    struct bow__address_set *set = make(f, said, N - 1);
    assert_int_equal(set->n, BOW_LIMIT_RESOLVED_ADDRESSES);
    assert_int_equal(set->n_cut, 0);
    bow__address_set_free(f->context, set);
    set = make(f, reversed, N);
    assert_int_equal(set->n, BOW_LIMIT_RESOLVED_ADDRESSES);
    assert_int_equal(set->n_cut, 1);
    assert_int_equal(bow__address_set_find(set, &said[N - 1]), -1);
    assert_string_equal(set->items[0].address, texts[N - 2]);
    bow__address_set_free(f->context, set);
}

static int scenario(struct bow_context *context, void *user)
{
    static const struct bow_resolver_address said[] = {
        {.address = "127.0.0.1:1", .server_name = "a", .locality = "b"}, {.address = "[::1]:1"}};
    struct bow__address_set *set = NULL;

    (void)user;
    int rc = bow__address_set_new(context, said, 2, "{}", &set);
    if (rc == 0) {
        assert_string_equal(set->service_config, "{}");
    }
    bow__address_set_free(context, set);
    return rc;
}

static void test_address_set_without_memory_leaves_nothing(void **state)
{
    (void)state;
    assert_int_equal(test_alloc_fail_each(NULL, scenario, NULL) > 0, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_address_set_keeps_the_order_and_finds_each, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_address_set_has_each_server_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_address_set_length_is_bounded, setup, teardown),
        cmocka_unit_test(test_address_set_without_memory_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
