/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Lists of networks, and which addresses lie in them. */

#include "tests/support/alloc.h"
#include "transport/address/networks.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void check(const char *list, const char *const *inside, const char *const *outside)
{
    struct test_alloc alloc;
    struct bow__networks networks;
    struct bow__text why;

    test_alloc_init(&alloc);
    struct bow_context *context = test_context_new(&alloc);
    bow__text_clear(&why);
    int rc = bow__networks_parse(context, list, &networks, &why);
    if (rc < 0) {
        fail_msg("%s", why.bytes);
    }
    for (; *inside != NULL; inside++) {
        if (!bow__networks_contain(&networks, *inside)) {
            fail_msg("%s is not in %s", *inside, list);
        }
    }
    for (; *outside != NULL; outside++) {
        if (bow__networks_contain(&networks, *outside)) {
            fail_msg("%s is in %s", *outside, list);
        }
    }
    bow__networks_free(context, &networks);
    test_context_end(context, &alloc);
}

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_networks_prefixes_of_any_length_contain_what_they_say(void **state)
{
    (void)state;
    check("10.0.0.0/8", LIST("10.0.0.0:1", "10.255.255.255:1"), LIST("11.0.0.0:1", "9.0.0.1:1"));
    check("192.168.128.0/17", LIST("192.168.128.0:1", "192.168.255.1:1"),
          LIST("192.168.127.255:1", "192.169.128.1:1"));
    check("203.0.113.6/31", LIST("203.0.113.6:1", "203.0.113.7:1"),
          LIST("203.0.113.5:1", "203.0.113.8:1"));
    check("203.0.113.7", LIST("203.0.113.7:65535"), LIST("203.0.113.6:1", "203.0.113.8:1"));
    check("0.0.0.0/0", LIST("1.2.3.4:1"), LIST("[::1]:1", "unix:"));
    check("fd00::/8", LIST("[fd12:3456::1]:80"), LIST("[fe80::1]:80", "10.0.0.1:1"));
    check("2001:db8:0:8000::/49", LIST("[2001:db8:0:ffff::1]:1"), LIST("[2001:db8:0:7fff::1]:1"));
    check("::1", LIST("[::1]:1"), LIST("[::2]:1"));
    check("::/0", LIST("[::1]:1", "[2001:db8::1]:1"), LIST("1.2.3.4:1"));
}

static void test_networks_lists_contain_what_any_does(void **state)
{
    (void)state;
    check("10.0.0.0/8, 192.0.2.7,fd00::/8 , unix",
          LIST("10.1.2.3:1", "192.0.2.7:1", "[fd00::1]:1", "unix:", "unix:/run/x",
               "unix-abstract:name"),
          LIST("192.0.2.8:1", "[::1]:1"));
    check("unix", LIST("unix:"), LIST("127.0.0.1:1"));
}

static void test_networks_v4_through_a_dual_stack_socket_is_v4(void **state)
{
    (void)state;
    check("10.0.0.0/8", LIST("[::ffff:10.1.2.3]:1"), LIST("[::ffff:11.1.2.3]:1", "[::a01:203]:1"));
    check("::ffff:0:0/96", LIST(NULL), LIST("[::ffff:10.1.2.3]:1"));
}

static void test_networks_f51_zone_of_a_peer_does_not_count(void **state)
{
    (void)state;
    check("fe80::/10", LIST("[fe80::1%eth0]:1", "[fe80::1]:1", "[fe80::1%7]:1"),
          LIST("[fd00::1%eth0]:1", "localhost%eth0:1"));
}

static void test_networks_what_is_no_address_is_in_none(void **state)
{
    (void)state;
    check("0.0.0.0/0, ::/0", LIST("0.0.0.0:0"),
          LIST("", "unknown", "localhost:1", "10.0.0.1", "*:1"));
}

static void assert_refused(const char *list, const char *reason)
{
    struct test_alloc alloc;
    struct bow__networks networks;
    struct bow__text why;

    test_alloc_init(&alloc);
    struct bow_context *context = test_context_new(&alloc);
    bow__text_clear(&why);
    assert_int_equal(bow__networks_parse(context, list, &networks, &why), -EINVAL);
    if (strstr(why.bytes, reason) == NULL) {
        fail_msg("%s: %s", list, why.bytes);
    }
    test_context_end(context, &alloc);
}

static void test_networks_mistakes_are_refused_by_name(void **state)
{
    (void)state;
    assert_refused(NULL, "no networks are given");
    assert_refused("", "a network must stand between two commas");
    assert_refused("10.0.0.0/8,", "a network must stand between two commas");
    assert_refused("10.0.0.0/8,,::1", "a network must stand between two commas");
    assert_refused("localhost", "\"localhost\": this is no address of a network");
    assert_refused("10.0.0/8", "this is no address of a network");
    assert_refused("10.0.0.1:80", "this is no address of a network");
    assert_refused("[::1]", "this is no address of a network");
    assert_refused("10.0.0.0 /8", "this is no address of a network");
    assert_refused("10.0.0.0/33", "number of bits");
    assert_refused("10.0.0.0/", "number of bits");
    assert_refused("10.0.0.0/-1", "number of bits");
    assert_refused("10.0.0.0/0008", "number of bits");
    assert_refused("::/129", "number of bits");
    assert_refused("10.0.0.1/8", "\"10.0.0.1/8\": bits are set beyond the prefix");
    assert_refused("203.0.113.7/31", "bits are set beyond the prefix");
    assert_refused("fd00::1/64", "bits are set beyond the prefix");
    assert_refused("Unix", "this is no address of a network");
    assert_refused("10.0.0.0/8, 0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0",
                   "a network must stand between two commas");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_networks_prefixes_of_any_length_contain_what_they_say),
        cmocka_unit_test(test_networks_lists_contain_what_any_does),
        cmocka_unit_test(test_networks_v4_through_a_dual_stack_socket_is_v4),
        cmocka_unit_test(test_networks_f51_zone_of_a_peer_does_not_count),
        cmocka_unit_test(test_networks_what_is_no_address_is_in_none),
        cmocka_unit_test(test_networks_mistakes_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
