/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Addresses as people write them: what is understood, and what is said of the rest. */
#include "transport/address/address.h"

#include <bowline/channel.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/un.h>

#include <cmocka.h>

static struct bow__address parse(const char *text)
{
    struct bow__address address;
    struct bow__text why;

    bow__text_clear(&why);
    if (bow__address_parse(text, &address, &why) < 0) {
        fail_msg("%s", why.bytes);
    }
    return address;
}

static void assert_round_trip(const char *text, const char *formatted)
{
    struct bow__address address = parse(text);
    char back[BOW__ADDRESS_TEXT_BYTES];

    bow__address_format(&address.sockaddr, back);
    assert_string_equal(back, formatted);
}

static void test_address_numeric_round_trips(void **state)
{
    (void)state;
    assert_int_equal(parse("127.0.0.1:80").kind, BOW__ADDRESS_NUMERIC);
    assert_round_trip("127.0.0.1:80", "127.0.0.1:80");
    assert_round_trip("255.255.255.255:65535", "255.255.255.255:65535");
    assert_round_trip("[::1]:443", "[::1]:443");
    assert_round_trip("[2001:DB8:0::1]:0", "[2001:db8::1]:0");
    assert_int_equal(parse("[::1]:443").port, 443);
}

static void test_address_name_is_left_to_the_resolver(void **state)
{
    struct bow__address address;
    (void)state;
    address = parse("example.org:8080");
    assert_int_equal(address.kind, BOW__ADDRESS_NAME);
    assert_string_equal(address.host, "example.org");
    assert_int_equal(address.port, 8080);
    address = parse("[fe80::1%eth0]:1");
    assert_int_equal(address.kind, BOW__ADDRESS_NAME);
    assert_string_equal(address.host, "fe80::1%eth0");
}

static void test_address_star_is_every_local_address(void **state)
{
    (void)state;
    assert_int_equal(parse("*:0").kind, BOW__ADDRESS_ANY);
    assert_int_equal(parse("*:7").port, 7);
}

static void test_address_unix_round_trips(void **state)
{
    struct bow__address address;
    char longest[128] = "unix:";
    (void)state;
    assert_round_trip("unix:/run/x", "unix:/run/x");
    assert_round_trip("unix-abstract:name", "unix-abstract:name");
    address = parse("unix:/run/x");
    assert_string_equal(bow__address_unix_path(&address.sockaddr), "/run/x");
    address = parse("unix-abstract:/run/x");
    assert_null(bow__address_unix_path(&address.sockaddr));
    address = parse("127.0.0.1:1");
    assert_null(bow__address_unix_path(&address.sockaddr));
    memset(longest + 5, 'p', 107);
    assert_round_trip(longest, longest);
}

static void test_address_nameless_and_strange_peers_are_formatted(void **state)
{
    struct bow_sockaddr address = {.len = sizeof(sa_family_t)};
    struct sockaddr_un *un = (struct sockaddr_un *)(void *)&address.storage;
    char text[BOW__ADDRESS_TEXT_BYTES];
    (void)state;
    un->sun_family = AF_UNIX;
    bow__address_format(&address, text);
    assert_string_equal(text, "unix:");
    memcpy(un->sun_path, "\0a\nb", 4);
    address.len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 4);
    bow__address_format(&address, text);
    assert_string_equal(text, "unix-abstract:a\\x0ab");
    memset(un->sun_path + 1, 1, sizeof(un->sun_path) - 1); /* escaped it would be 428 bytes */
    address.len = sizeof(*un);
    bow__address_format(&address, text);
    assert_true(strlen(text) < BOW__ADDRESS_TEXT_BYTES);
    address.storage.ss_family = AF_UNSPEC;
    bow__address_format(&address, text);
    assert_string_equal(text, "unknown");
}

static void assert_refused(const char *text, const char *reason)
{
    struct bow__address address = {.port = 4711};
    struct bow__text why;

    bow__text_clear(&why);
    assert_int_equal(bow__address_parse(text, &address, &why), -EINVAL);
    assert_non_null(strstr(why.bytes, reason));
    assert_int_equal(address.port, 4711); /* untouched */
}

static void test_address_bad_text_says_why(void **state)
{
    char too_long[400] = "unix:";
    (void)state;
    assert_refused(NULL, "no address given");
    assert_refused("", "no port");
    assert_refused("host", "no port");
    assert_refused(":80", "no host");
    assert_refused("[]:80", "no host");
    assert_refused("host:", "port must be");
    assert_refused("host:65536", "port must be");
    assert_refused("host:99999999999999999999", "port must be");
    assert_refused("host:-1", "port must be");
    assert_refused("host:8o", "port must be");
    assert_refused("host: 80", "port must be");
    assert_refused("::1:80", "in brackets");
    assert_refused("[::1:80", "write [ADDRESS]:PORT");
    assert_refused("[::1]", "write [ADDRESS]:PORT");
    assert_refused("[127.0.0.1]:80", "must be an IPv6 address");
    assert_refused("a host:80", "no host name");
    assert_refused("http://host:80", "a URL");
    assert_refused("a/b:80", "no host name");
    assert_refused("unix:", "must follow");
    assert_refused("unix-abstract:", "must follow");
    memset(too_long + 5, 'p', 108);
    assert_refused(too_long, "at most 107");
    memset(too_long, 'h', 300);
    strcpy(too_long + 300, ":80");
    assert_refused(too_long, "too long");
}

static void assert_same(const char *text, const char *plain)
{
    struct bow__address address;
    struct bow__address expected;
    struct bow__text why;

    bow__text_clear(&why);
    if (bow__address_parse(text, &address, &why) != 0) {
        fail_msg("%s: %s", text, why.bytes);
    }
    assert_int_equal(bow__address_parse(plain, &expected, &why), 0);
    assert_int_equal(address.kind, expected.kind);
    assert_int_equal(address.port, expected.port);
    assert_string_equal(address.host, expected.host);
    assert_memory_equal(&address.sockaddr, &expected.sockaddr, sizeof(expected.sockaddr));
}

/* https://github.com/grpc/grpc/blob/master/doc/naming.md */
static void test_address_f63_names_as_grpc_writes_them(void **state)
{
    (void)state;
    assert_same("ipv4:192.0.2.1:443", "192.0.2.1:443");
    assert_same("ipv4:///192.0.2.1:443", "192.0.2.1:443");
    assert_same("ipv6:[2001:db8::1]:443", "[2001:db8::1]:443");
    assert_same("ipv6:[fe80::1%lo]:443", "[fe80::1%lo]:443");
    assert_same("dns:example.org:443", "example.org:443");
    assert_same("dns:///example.org:443", "example.org:443");
    assert_same("DNS:///192.0.2.1:443", "192.0.2.1:443");
    assert_same("passthrough:///example.org:443", "example.org:443");
    assert_same("unix:///run/x", "unix:/run/x");
    /* A host may have the name of a scheme. */
    assert_same("dns:53", "dns:53");
    assert_same("http:80", "http:80");
    assert_int_equal(bow_address_is_local("dns:///localhost:1"), 1);
    assert_int_equal(bow_address_is_local("ipv4:127.0.0.1:1"), 1);
    assert_int_equal(bow_address_is_local("ipv4:192.0.2.1:1"), 0);
}

static void test_address_f63_what_others_write_gets_a_hint(void **state)
{
    static const char tls[] = "TLS is no part of an address: write HOST:PORT";
    (void)state;

    assert_refused("https://host:443", tls);
    assert_refused("grpcs://host:443", tls);
    assert_refused("grpcs:host:443", tls);
    assert_refused("http://host:80", "write HOST:PORT alone (a client of gRPC: grpc:HOST:PORT)");
    assert_refused("vsock:2:1024", "no sockets of that kind");
    assert_refused("xds:///shop", "no xDS");
    assert_refused("tcp://host:80", "write HOST:PORT alone");
    assert_refused("zookeeper://host:80", "a URL");
    assert_refused("dns://192.0.2.53/host:80", "write dns:///HOST:PORT");
    assert_refused("dns:///host", "no port: write HOST:PORT");
    assert_refused("ipv4:host:80", "an IPv4 address must follow");
    assert_refused("ipv4:[::1]:80", "an IPv4 address must follow");
    assert_refused("ipv4:*:80", "an IPv4 address must follow");
    assert_refused("ipv6:host:80", "an IPv6 address must follow");
    assert_refused("ipv6:127.0.0.1:80", "an IPv6 address must follow");
    assert_refused("ipv6:*:80", "an IPv6 address must follow");
}

static void test_address_is_local_without_resolving(void **state)
{
    static const char *const local[] = {"127.0.0.1:1", "127.9.9.9:1",    "[::1]:1",
                                        "localhost:1", "LocalHost:1",    "[::ffff:127.0.0.1]:1",
                                        "unix:/run/x", "unix-abstract:x"};
    static const char *const remote[] = {"*:1",
                                         "0.0.0.0:1",
                                         "[::]:1",
                                         "192.0.2.1:1",
                                         "localhost.example.org:1",
                                         "[::ffff:192.0.2.1]:1"};
    (void)state;
    for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++) {
        assert_int_equal(bow_address_is_local(local[i]), 1);
    }
    for (size_t i = 0; i < sizeof(remote) / sizeof(remote[0]); i++) {
        assert_int_equal(bow_address_is_local(remote[i]), 0);
    }
    assert_int_equal(bow_address_is_local("nonsense"), -EINVAL);
}

static void test_address_f51_texts_keep_the_zone(void **state)
{
    struct bow_sockaddr address;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)&address.storage;
    char text[BOW__ADDRESS_TEXT_BYTES];
    (void)state;

    assert_int_equal(bow__sockaddr_parse_ip("fe80::1%lo", &address), 0);
    assert_int_equal(in6->sin6_scope_id, if_nametoindex("lo"));
    bow__sockaddr_set_port(&address, 80);
    bow__address_format(&address, text);
    assert_string_equal(text, "[fe80::1%lo]:80");
    in6->sin6_scope_id = UINT32_MAX; /* an interface that has gone */
    bow__address_format(&address, text);
    assert_string_equal(text, "[fe80::1%4294967295]:80");
}

static void test_address_of_ip_alone_is_parsed(void **state)
{
    static const char *const bad[] = {
        "",      "localhost",    "127.0.0.1:1",    "[::1]",     "::1%",
        "::1%0", "127.0.0.1%lo", "fe80::1%nolink", "1.2.3.4.5", "::1%99999999999"};
    struct bow_sockaddr address;
    char text[BOW__ADDRESS_TEXT_BYTES];
    (void)state;

    assert_int_equal(bow__sockaddr_parse_ip("192.0.2.1", &address), 0);
    bow__address_format(&address, text);
    assert_string_equal(text, "192.0.2.1:0");
    assert_int_equal(bow__sockaddr_parse_ip("2001:db8::1", &address), 0);
    bow__address_format(&address, text);
    assert_string_equal(text, "[2001:db8::1]:0");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(bow__sockaddr_parse_ip(bad[i], &address), -EINVAL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_address_f51_texts_keep_the_zone),
        cmocka_unit_test(test_address_of_ip_alone_is_parsed),
        cmocka_unit_test(test_address_numeric_round_trips),
        cmocka_unit_test(test_address_name_is_left_to_the_resolver),
        cmocka_unit_test(test_address_star_is_every_local_address),
        cmocka_unit_test(test_address_unix_round_trips),
        cmocka_unit_test(test_address_nameless_and_strange_peers_are_formatted),
        cmocka_unit_test(test_address_bad_text_says_why),
        cmocka_unit_test(test_address_f63_names_as_grpc_writes_them),
        cmocka_unit_test(test_address_f63_what_others_write_gets_a_hint),
        cmocka_unit_test(test_address_is_local_without_resolving),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
