/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The page of a server as its options have it: which are taken, and what is kept of them. */

#include "rpc/web/page.h"
#include "tests/support/alloc.h"
#include <bowline/limits.h>
#include <bowline/server.h>
#include <bowline/transport_error.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WEB (BOW_PROTOCOL_CONNECT | BOW_PROTOCOL_GRPC_WEB)

static uint8_t bytes[BOW_LIMIT_WEB_PAGE_BYTES + 1];

static int make(struct bow_context *context, size_t n_bytes, const char *policy, uint32_t protocols,
                struct bow_transport_error *error)
{
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct bow_server *server = NULL;

    options.context = context;
    options.protocols = protocols;
    options.web_origins = "https://shop.example";
    options.web_page = (struct bow_slice){bytes, n_bytes};
    options.web_page_policy = policy;
    options.error = error;
    int rc = bow_server_new(&options, &server);
    if (rc == 0) {
        bow_server_free(server);
    }
    return rc;
}

static void expect_refused(size_t n_bytes, const char *policy, uint32_t protocols,
                           const char *words)
{
    struct bow_transport_error error = {.text = ""};

    assert_int_equal(make(NULL, n_bytes, policy, protocols, &error), -EINVAL);
    if (strstr(error.text, words) == NULL) {
        fail_msg("\"%s\" has no \"%s\"", error.text, words);
    }
}

static void test_page_up_to_the_limit_is_taken(void **state)
{
    (void)state;
    assert_int_equal(make(NULL, BOW_LIMIT_WEB_PAGE_BYTES, NULL, WEB, NULL), 0);
    assert_int_equal(make(NULL, 1, "default-src 'none'", BOW_PROTOCOL_GRPC_WEB, NULL), 0);
    expect_refused(
        BOW_LIMIT_WEB_PAGE_BYTES + 1, NULL, WEB,
        "options.web_page has 262145 bytes, more than BOW_LIMIT_WEB_PAGE_BYTES (262144)");
}

static void test_page_that_nobody_could_ask_for_is_refused(void **state)
{
    (void)state;
    expect_refused(1, NULL, 0, "options.protocols needs BOW_PROTOCOL_CONNECT");
    expect_refused(1, NULL, BOW_PROTOCOL_GRPC, "options.protocols needs BOW_PROTOCOL_CONNECT");
    expect_refused(0, "default-src 'none'", WEB, "options.web_page is not");
}

static void test_page_policy_that_would_split_the_head_is_refused(void **state)
{
    static const char *const bad[] = {"a\r\nset-cookie: b", "a\n", "\tb", "\x7f", "caf\xc3\xa9"};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        expect_refused(1, bad[i], WEB, "web_page_policy is no line of printable ASCII");
    }
}

static int make_one(struct bow_context *context, void *user)
{
    (void)user;
    return make(context, 100, "default-src 'none'", WEB, NULL);
}

static void test_page_without_memory_there_is_no_server(void **state)
{
    (void)state;
    test_alloc_fail_each(NULL, make_one, NULL);
}

static const struct bow__web_field *find(const struct bow__web_fields *fields, const char *name)
{
    for (size_t i = 0; i < fields->n; i++) {
        if (strcmp((const char *)fields->items[i].name.data, name) == 0) {
            return &fields->items[i];
        }
    }
    return NULL;
}

static void test_page_is_a_copy_with_a_strict_policy_by_default(void **state)
{
    struct bow__web_fields fields = {NULL, 0, 0};
    struct bow__web_page *page = NULL;
    struct test_alloc alloc;
    struct bow__arena arena;
    uint8_t text[] = "<p>";

    (void)state;
    test_alloc_init(&alloc);
    struct bow_context *context = test_context_new(&alloc);
    bow__arena_init(&arena, context, NULL, 0, SIZE_MAX);
    assert_int_equal(bow__web_page_new(context, (struct bow_slice){text, 3}, NULL, &page), 0);
    memset(text, 0, sizeof(text));
    assert_int_equal(page->n_bytes, 3);
    assert_memory_equal(page->block->data, "<p>", 3);
    bow__web_page_describe(page, &fields, &arena);
    const struct bow__web_field *policy = find(&fields, "content-security-policy");
    assert_non_null(policy);
    assert_non_null(strstr((const char *)policy->value.data, "default-src 'self'"));
    assert_non_null(strstr((const char *)policy->value.data, "frame-ancestors 'none'"));
    bow__arena_fini(&arena);
    bow__web_page_free(page);
    test_context_end(context, &alloc);
}

static void test_page_is_at_its_path_alone(void **state)
{
    struct bow__web_page *page = calloc(1, sizeof(*page));

    (void)state;
    assert_true(bow__web_page_is_at(page, (struct bow_slice){(const uint8_t *)"/", 1}));
    assert_false(bow__web_page_is_at(page, (struct bow_slice){(const uint8_t *)"/a", 2}));
    assert_false(bow__web_page_is_at(page, (struct bow_slice){(const uint8_t *)"*", 1}));
    assert_false(bow__web_page_is_at(page, (struct bow_slice){NULL, 0}));
    assert_false(bow__web_page_is_at(NULL, (struct bow_slice){(const uint8_t *)"/", 1}));
    free(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_page_up_to_the_limit_is_taken),
        cmocka_unit_test(test_page_that_nobody_could_ask_for_is_refused),
        cmocka_unit_test(test_page_policy_that_would_split_the_head_is_refused),
        cmocka_unit_test(test_page_without_memory_there_is_no_server),
        cmocka_unit_test(test_page_is_a_copy_with_a_strict_policy_by_default),
        cmocka_unit_test(test_page_is_at_its_path_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
