/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a target's addresses are called where they are connected to, verified and asked for. */

#include "rpc/client/client_options.h"
#include "rpc/client/target.h"
#include "tests/support/alloc.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void expect(const char *target, const char *text, const char *name, const char *authority)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct test_alloc alloc;
    struct bow__target made;

    test_alloc_init(&alloc);
    struct bow_context *context = test_context_new(&alloc);
    options.target = target;
    options.plaintext = true;
    assert_int_equal(bow__target_check(&options), 0);
    assert_int_equal(bow__target_init(&made, context, &options), 0);
    const struct bow__target_address *last = &made.addresses[made.n_addresses - 1];
    assert_string_equal(last->text, text);
    assert_string_equal(last->server_name, name);
    assert_string_equal(last->authority, authority);
    bow__target_fini(&made, context);
    test_context_end(context, &alloc);
}

static void test_target_names_and_authorities(void **state)
{
    (void)state;
    expect("example.org:80", "example.org:80", "example.org", "example.org:80");
    expect("list:127.0.0.1:1,[::1]:2", "[::1]:2", "::1", "[::1]:2");
    expect("unix:/run/a%b", "unix:/run/a%b", "localhost", "localhost");
    expect("inproc:x", "inproc:x", "localhost", "localhost");
}

/* Which link leads there is nothing that the other side, or a certificate, knows. */
static void test_target_f51_zone_is_for_connecting_alone(void **state)
{
    (void)state;
    expect("[fe80::1%eth0]:443", "[fe80::1%eth0]:443", "fe80::1", "[fe80::1]:443");
    expect("list:[::1]:1,[fe80::1%25]:2", "[fe80::1%25]:2", "fe80::1", "[fe80::1]:2");
}

/* What TLS verifies is the same as without. */
static void test_target_authority_is_what_the_options_say(void **state)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct test_alloc alloc;
    struct bow__target made;

    (void)state;
    test_alloc_init(&alloc);
    struct bow_context *context = test_context_new(&alloc);
    options.target = "grpc:list:127.0.0.1:1,unix:/x";
    options.authority = "shop.example:8443";
    assert_int_equal(bow__client_options_check(&options), 0);
    assert_int_equal(bow__target_init(&made, context, &options), 0);
    assert_string_equal(made.addresses[0].authority, "shop.example:8443");
    assert_string_equal(made.addresses[1].authority, "shop.example:8443");
    assert_string_equal(made.addresses[0].server_name, "127.0.0.1");
    assert_string_equal(made.addresses[1].server_name, "localhost");
    bow__target_fini(&made, context);
    test_context_end(context, &alloc);
}

static void expect_authority(const char *authority, int rc)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_transport_error error = {0};

    options.target = "127.0.0.1:1";
    options.authority = authority;
    options.error = &error;
    assert_int_equal(bow__client_options_check(&options), rc);
    assert_int_equal(rc < 0, strstr(error.text, "options.authority") != NULL);
}

static void test_target_authority_that_is_none_is_refused(void **state)
{
    char text[BOW_AUTHORITY_BYTES + 1] = {0};

    (void)state;
    expect_authority("shop", 0);
    expect_authority("[2001:db8::1]:443", 0);
    expect_authority("a_b.example:1", 0);
    expect_authority("", -EINVAL);
    expect_authority("shop/x", -EINVAL);
    expect_authority("me@shop", -EINVAL);
    expect_authority("shop x", -EINVAL);
    expect_authority("shop\r\nx: y", -EINVAL);
    expect_authority("caf\xc3\xa9", -EINVAL);
    memset(text, 'x', BOW_AUTHORITY_BYTES);
    expect_authority(text, -EINVAL);
    text[BOW_AUTHORITY_BYTES - 1] = '\0';
    expect_authority(text, 0);
}

static void expect_source(const char *source, int rc)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_transport_error error = {0};

    options.target = "127.0.0.1:1";
    options.source = source;
    options.error = &error;
    assert_int_equal(bow__client_options_check(&options), rc);
    assert_true((strstr(error.text, "options.source") != NULL) == (rc < 0));
}

static void test_target_f55_source_is_an_address_of_ip(void **state)
{
    (void)state;
    expect_source(NULL, 0);
    expect_source("192.0.2.1", 0);
    expect_source("fe80::1%lo", 0);
    expect_source("localhost", -EINVAL);
    expect_source("192.0.2.1:0", -EINVAL);
    expect_source("00000000000000000000000000000000000000000000000000000000000000000", -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_target_names_and_authorities),
        cmocka_unit_test(test_target_f51_zone_is_for_connecting_alone),
        cmocka_unit_test(test_target_authority_is_what_the_options_say),
        cmocka_unit_test(test_target_authority_that_is_none_is_refused),
        cmocka_unit_test(test_target_f55_source_is_an_address_of_ip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
