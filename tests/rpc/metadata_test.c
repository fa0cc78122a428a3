/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Metadata: which keys and values are permitted, copies that stand alone, the limit.
 */

#include "rpc/core/metadata.h"
#include <bowline/context.h>
#include <bowline/limits.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    struct bow_context *context;
    struct bow__arena arena;
};

static int setup(void **state)
{
    static struct fixture fixture;
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;

    assert_int_equal(bow_context_new(&options, &fixture.context), 0);
    bow__arena_init(&fixture.arena, fixture.context, NULL, 0, (size_t)1 << 20);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    bow__arena_fini(&fixture->arena);
    assert_int_equal(bow_context_bytes(fixture->context), 0);
    bow_context_unref(fixture->context);
    return 0;
}

static struct bow_slice text(const char *value)
{
    return (struct bow_slice){(const uint8_t *)value, strlen(value)};
}

static void test_valid_entries_are_those_that_grpc_permits(void **state)
{
    (void)state;
    assert_true(bow__metadata_is_valid("a-key_9.x", text("A value, printable ~")));
    assert_true(bow__metadata_is_valid("k", text("")));
    assert_true(
        bow__metadata_is_valid("k-bin", (struct bow_slice){(const uint8_t *)"\0\xFF\n", 3}));
    assert_false(bow__metadata_is_valid("Upper", text("v")));
    assert_false(bow__metadata_is_valid("", text("v")));
    assert_false(bow__metadata_is_valid(":path", text("v")));
    assert_false(bow__metadata_is_valid("grpc-timeout", text("v")));
    assert_false(bow__metadata_is_valid("sp ace", text("v")));
    assert_false(bow__metadata_is_valid("k", text("line\nbreak")));
    assert_false(bow__metadata_is_valid("k", text("umlaut \xC3\xBC")));
    assert_false(bow__metadata_is_valid("k", text(" blank in front")));
    assert_false(bow__metadata_is_valid("k", text("blank behind ")));
}

static void test_reserved_keys_are_the_protocols_own(void **state)
{
    static const char *const reserved[] = {
        "accept-encoding", "connection", "content-length",    "content-type",     "grpc-",
        "grpc-bin",        "host",       "keep-alive",        "proxy-connection", "te",
        "trailer",         ":path",      "transfer-encoding", "upgrade",          "user-agent",
    };
    static const char *const free_ones[] = {"t",    "tea",    "x-te",  "hosts",
                                            "grpc", "accept", "te-bin"};

    (void)state;
    for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++) {
        assert_true(bow__metadata_is_reserved(text(reserved[i])));
        assert_false(bow__metadata_is_valid(reserved[i], text("v")));
    }
    for (size_t i = 0; i < sizeof(free_ones) / sizeof(free_ones[0]); i++) {
        assert_false(bow__metadata_is_reserved(text(free_ones[i])));
        assert_true(bow__metadata_is_valid(free_ones[i], text("v")));
    }
}

static void test_copy_stands_alone_with_a_nul_behind_each_value(void **state)
{
    struct fixture *fixture = *state;
    char value[] = "first";
    struct bow_metadata_entry entries[] = {{"k", text(value)}, {"x-bin", {NULL, 0}}};
    struct bow_metadata copy;

    assert_int_equal(bow__metadata_copy(&fixture->arena, &(struct bow_metadata){entries, 2}, &copy),
                     0);
    memset(value, '#', sizeof(value) - 1);
    assert_int_equal(copy.n, 2);
    assert_string_equal((const char *)copy.entries[0].value.data, "first");
    assert_int_equal(copy.entries[1].value.len, 0);
    assert_int_equal(copy.entries[1].value.data[0], 0);
}

static void test_find_gives_the_first_of_a_key(void **state)
{
    struct bow_metadata_entry entries[] = {{"a", text("1")}, {"b", text("2")}, {"b", text("3")}};
    struct bow_metadata metadata = {entries, 3};

    (void)state;
    assert_ptr_equal(bow_metadata_find(&metadata, "b"), &entries[1].value);
    assert_null(bow_metadata_find(&metadata, "c"));
}

static void test_list_keeps_order_and_grows(void **state)
{
    struct fixture *fixture = *state;
    struct bow__metadata_list list = {0};
    char key[8];

    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        assert_int_equal(bow__metadata_add(&list, &fixture->arena, key, text("v")), 0);
    }
    assert_int_equal(list.n, 100);
    assert_string_equal(list.entries[0].key, "k0");
    assert_string_equal(list.entries[99].key, "k99");
}

static void test_list_refuses_what_exceeds_the_header_limit(void **state)
{
    struct fixture *fixture = *state;
    struct bow__metadata_list list = {0};
    static uint8_t large[BOW_LIMIT_HEADER_BYTES_MAX];

    assert_int_equal(bow__metadata_add(&list, &fixture->arena, "k-bin",
                                       (struct bow_slice){large, sizeof(large) - 37}),
                     0);
    assert_int_equal(list.n_bytes, BOW_LIMIT_HEADER_BYTES_MAX);
    assert_int_equal(bow__metadata_add(&list, &fixture->arena, "k", text("")), -EMSGSIZE);
    assert_int_equal(list.n, 1);
    assert_int_equal(bow__metadata_add(&list, &fixture->arena, "Bad", text("")), -EINVAL);
}

static void test_check_names_what_a_user_did_wrong(void **state)
{
    static uint8_t large[BOW_LIMIT_HEADER_BYTES_MAX];
    struct bow_metadata_entry bad = {"Bad", {NULL, 0}};
    struct bow_metadata_entry long_one = {"k-bin", {large, sizeof(large)}};

    (void)state;
    assert_int_equal(bow__metadata_check(&(struct bow_metadata){&bad, 1}), -EINVAL);
    assert_int_equal(bow__metadata_check(&(struct bow_metadata){&long_one, 1}), -EMSGSIZE);
    assert_int_equal(bow__metadata_check(&(struct bow_metadata)BOW_METADATA_INIT), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid_entries_are_those_that_grpc_permits),
        cmocka_unit_test(test_reserved_keys_are_the_protocols_own),
        cmocka_unit_test_setup_teardown(test_copy_stands_alone_with_a_nul_behind_each_value, setup,
                                        teardown),
        cmocka_unit_test(test_find_gives_the_first_of_a_key),
        cmocka_unit_test_setup_teardown(test_list_keeps_order_and_grows, setup, teardown),
        cmocka_unit_test_setup_teardown(test_list_refuses_what_exceeds_the_header_limit, setup,
                                        teardown),
        cmocka_unit_test(test_check_names_what_a_user_did_wrong),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
