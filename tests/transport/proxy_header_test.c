/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The PROXY header of both versions as bytes: whole, cut at each byte, and wrong. */

#include "base/crc32c.h"
#include "transport/address/address.h"
#include "transport/handlers/proxy_header.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MAX 2048
#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define UNIX_BYTES 108

static int parse(struct bow_slice bytes, struct bow__proxy_header *header, const char **reason)
{
    /* At the very end of a block of its own, so that reading beyond it is found. */
    uint8_t *copy = malloc(bytes.len + 1);
    assert_non_null(copy);
    uint8_t *at = copy + 1;
    if (bytes.len > 0) {
        memcpy(at, bytes.data, bytes.len);
    }
    int rc = bow__proxy_header_parse((struct bow_slice){at, bytes.len}, MAX, header, reason);
    free(copy);
    return rc;
}

/* The header is all of `bytes`; NULL addresses for none. */
static void assert_header(const void *bytes, size_t len, const char *source,
                          const char *destination)
{
    struct bow__proxy_header header = {.len = 0};
    char text[BOW__ADDRESS_TEXT_BYTES];
    const char *reason = NULL;
    uint8_t longer[MAX + 16];

    for (size_t n = 0; n < len; n++) {
        assert_int_equal(parse((struct bow_slice){bytes, n}, &header, &reason), -EAGAIN);
    }
    assert_int_equal(header.len, 0);
    memcpy(longer, bytes, len);
    memset(longer + len, 'x', 16);
    for (size_t more = 0; more <= 16; more += 16) {
        int rc = parse((struct bow_slice){longer, len + more}, &header, &reason);
        if (rc < 0) {
            fail_msg("%s", reason);
        }
        assert_int_equal(header.len, len);
        assert_int_equal(header.has_addresses, source != NULL);
        if (source != NULL) {
            bow__address_format(&header.source, text);
            assert_string_equal(text, source);
            bow__address_format(&header.destination, text);
            assert_string_equal(text, destination);
        }
    }
}

static void assert_refused(const void *bytes, size_t len, int error, const char *reason)
{
    struct bow__proxy_header header = {.len = 4711};
    const char *why = "nothing";

    int rc = parse((struct bow_slice){bytes, len}, &header, &why);
    if (rc != error || strstr(why, reason) == NULL) {
        fail_msg("%d, %s; expected %d, %s", rc, why, error, reason);
    }
    assert_int_equal(header.len, 4711);
}

static void assert_line(const char *line, const char *source, const char *destination)
{
    assert_header(line, strlen(line), source, destination);
}

static void refuse_line(const char *line, const char *reason)
{
    assert_refused(line, strlen(line), -EBADMSG, reason);
}

static void test_proxy_header_l60_v1_lines_are_read(void **state)
{
    (void)state;
    assert_line("PROXY TCP4 198.51.100.7 203.0.113.1 56324 443\r\n", "198.51.100.7:56324",
                "203.0.113.1:443");
    assert_line("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n",
                "255.255.255.255:65535", "255.255.255.255:65535");
    assert_line("PROXY TCP4 0.0.0.0 0.0.0.0 0 0\r\n", "0.0.0.0:0", "0.0.0.0:0");
    assert_line("PROXY TCP6 2001:db8::7 ::1 1 2\r\n", "[2001:db8::7]:1", "[::1]:2");
    /* The longest of all has 107 bytes. */
    assert_line("PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
                "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
                "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535",
                "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535");
    assert_line("PROXY UNKNOWN\r\n", NULL, NULL);
    assert_line("PROXY UNKNOWN ffff::1 what ever follows\r\n", NULL, NULL);
}

static void test_proxy_header_l60_v1_mistakes_are_refused(void **state)
{
    static const char *const bad[] = {
        "PROXY TCP4\r\n",
        "PROXY TCP4 \r\n",
        "PROXY TCP4 198.51.100.7 203.0.113.1 56324\r\n",
        "PROXY TCP4 198.51.100.7 203.0.113.1 56324 443 \r\n",
        "PROXY TCP4 198.51.100.7 203.0.113.1 56324 443 1\r\n",
        "PROXY TCP4  198.51.100.7 203.0.113.1 56324 443\r\n",
        "PROXY TCP4 198.51.100.7 203.0.113.1 56324  443\r\n",
        "PROXY TCP4 198.51.100.256 203.0.113.1 56324 443\r\n",
        "PROXY TCP4 198.51.100 203.0.113.1 56324 443\r\n",
        "PROXY TCP4 ::1 ::1 56324 443\r\n",
        "PROXY TCP6 198.51.100.7 203.0.113.1 56324 443\r\n",
        "PROXY TCP6 2001:db8::7%eth0 ::1 1 2\r\n",
        "PROXY TCP4 198.51.100.7 203.0.113.1 65536 443\r\n",
        "PROXY TCP4 198.51.100.7 203.0.113.1 99999 443\r\n",
        "PROXY TCP4 198.51.100.7 203.0.113.1 -1 443\r\n",
        "PROXY TCP4 198.51.100.7 203.0.113.1 +1 443\r\n",
        "PROXY TCP4 198.51.100.7 203.0.113.1 01 443\r\n",
        "PROXY TCP4 198.51.100.7 203.0.113.1 1 44a\r\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        refuse_line(bad[i], "version 1: not two addresses and two ports");
    }
    refuse_line("PROXY UDP4 198.51.100.7 203.0.113.1 1 2\r\n", "version 1: the family");
    refuse_line("PROXY tcp4 198.51.100.7 203.0.113.1 1 2\r\n", "version 1: the family");
    refuse_line("PROXY \r\n", "version 1: no family");
    refuse_line("PROXY  TCP4 198.51.100.7 203.0.113.1 1 2\r\n", "version 1: no family");
    refuse_line("PROXY TCP4 198.51.100.7 203.0.113.1 1 2\n", "does not end with CR LF");
    refuse_line("PROXY \n", "does not end with CR LF");
    static const char nul[] = "PROXY TCP4 198.51.100.7\0 203.0.113.1 1 2\r\n";
    assert_refused(nul, sizeof(nul) - 1, -EBADMSG, "not two addresses");
}

static void test_proxy_header_l60_v1_line_without_end_is_refused_after_107_bytes(void **state)
{
    char line[200];
    (void)state;
    memset(line, 'x', sizeof(line));
    memcpy(line, "PROXY UNKNOWN ", 14);
    struct bow__proxy_header header;
    const char *reason = NULL;
    assert_int_equal(parse((struct bow_slice){(uint8_t *)line, 106}, &header, &reason), -EAGAIN);
    assert_refused(line, 107, -EMSGSIZE, "no end of line in 107 bytes");
    line[106] = '\r';
    line[107] = '\n';
    assert_refused(line, 108, -EMSGSIZE, "no end of line in 107 bytes");
}

static void test_proxy_header_l60_anything_else_is_refused_at_its_first_byte(void **state)
{
    (void)state;
    assert_refused("G", 1, -EBADMSG, "neither version 1 nor version 2");
    assert_refused("\x16\x03\x01", 3, -EBADMSG, "neither");
    assert_refused("PROXX", 5, -EBADMSG, "neither");
    assert_refused("\r\n\r\n\x01", 5, -EBADMSG, "neither");
    assert_refused("proxy tcp4", 10, -EBADMSG, "neither");
}

struct v2 {
    uint8_t bytes[MAX + 64];
    size_t len;
};

static struct v2 v2_of(uint8_t version_command, uint8_t family_transport, const void *body,
                       size_t len)
{
    struct v2 v2 = {.len = 16 + len};

    memcpy(v2.bytes, SIGNATURE, 12);
    v2.bytes[12] = version_command;
    v2.bytes[13] = family_transport;
    v2.bytes[14] = (uint8_t)(len >> 8);
    v2.bytes[15] = (uint8_t)len;
    if (len > 0) {
        memcpy(v2.bytes + 16, body, len);
    }
    return v2;
}

static const uint8_t inet_body[12] = {198, 51, 100, 7, 203, 0, 113, 1, 0xDC, 0x04, 0x01, 0xBB};

static void assert_v2(struct v2 v2, const char *source, const char *destination)
{
    assert_header(v2.bytes, v2.len, source, destination);
}

static void refuse_v2(struct v2 v2, int error, const char *reason)
{
    assert_refused(v2.bytes, v2.len, error, reason);
}

static void test_proxy_header_l60_v2_addresses_of_each_family_are_read(void **state)
{
    uint8_t inet6_body[36] = {0x20, 0x01, 0x0d, 0xb8};
    uint8_t unix_body[2 * UNIX_BYTES] = "/run/client";
    (void)state;
    assert_v2(v2_of(0x21, 0x11, inet_body, 12), "198.51.100.7:56324", "203.0.113.1:443");
    assert_v2(v2_of(0x21, 0x12, inet_body, 12), "198.51.100.7:56324", "203.0.113.1:443");
    inet6_body[15] = 7;
    inet6_body[31] = 1;
    inet6_body[33] = 1;
    inet6_body[35] = 2;
    assert_v2(v2_of(0x21, 0x21, inet6_body, 36), "[2001:db8::7]:1", "[::1]:2");
    memcpy(unix_body + UNIX_BYTES, "\0name", 5);
    assert_v2(v2_of(0x21, 0x31, unix_body, sizeof(unix_body)), "unix:/run/client",
              "unix-abstract:name");
    memset(unix_body, 0, sizeof(unix_body));
    assert_v2(v2_of(0x21, 0x31, unix_body, sizeof(unix_body)), "unix:", "unix:");
}

static void test_proxy_header_l60_v2_without_addresses_is_read_over(void **state)
{
    (void)state;
    assert_v2(v2_of(0x20, 0x00, NULL, 0), NULL, NULL); /* the proxy's own health check */
    assert_v2(v2_of(0x20, 0x11, inet_body, 12), NULL, NULL);
    assert_v2(v2_of(0x20, 0x11, inet_body, 5), NULL, NULL);
    assert_v2(v2_of(0x21, 0x00, "whatever", 8), NULL, NULL);
    assert_v2(v2_of(0x21, 0x10, inet_body, 12), NULL, NULL);
}

static void test_proxy_header_l60_v2_extensions_are_skipped_and_must_fit(void **state)
{
    uint8_t body[64];
    (void)state;
    memcpy(body, inet_body, 12);
    memcpy(body + 12, "\x01\x00\x02h2\x04\x00\x00", 8); /* ALPN "h2", a NOOP */
    assert_v2(v2_of(0x21, 0x11, body, 20), "198.51.100.7:56324", "203.0.113.1:443");
    refuse_v2(v2_of(0x21, 0x11, body, 19), -EBADMSG, "an extension is longer");
    refuse_v2(v2_of(0x21, 0x11, body, 16), -EBADMSG, "an extension is longer");
    refuse_v2(v2_of(0x21, 0x11, body, 13), -EBADMSG, "an extension is longer");
    body[13] = 0xFF;
    refuse_v2(v2_of(0x21, 0x11, body, 20), -EBADMSG, "an extension is longer");
}

/* The address and ports of an example, then the checksum, over 16 + 12 + 7 + `more` bytes. */
static struct v2 v2_with_sum(const void *more, size_t n_more)
{
    uint8_t body[64] = {0};

    memcpy(body, inet_body, 12);
    memcpy(body + 12, "\x03\x00\x04", 3);
    memcpy(body + 19, more, n_more);
    struct v2 v2 = v2_of(0x21, 0x11, body, 19 + n_more);
    uint32_t sum = bow__crc32c(0, v2.bytes, v2.len);
    for (unsigned i = 0; i < 4; i++) {
        v2.bytes[16 + 15 + i] = (uint8_t)(sum >> (24 - 8 * i));
    }
    return v2;
}

static void test_proxy_header_l60_v2_checksum_is_verified(void **state)
{
    (void)state;
    struct v2 v2 = v2_with_sum("\x01\x00\x02h2", 5);
    assert_v2(v2, "198.51.100.7:56324", "203.0.113.1:443");
    assert_v2(v2_with_sum("", 0), "198.51.100.7:56324", "203.0.113.1:443");
    /* Each bit of addresses, sum and the rest; those of the fixed part say more by themselves. */
    for (size_t i = 16; i < v2.len; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            struct v2 bad = v2;
            bad.bytes[i] ^= (uint8_t)(1 << bit);
            bool is_length = i == 29 || i == 30 || i == 36 || i == 37;
            bool is_type = i == 28; /* then it is another extension, which is skipped */
            if (!is_length && !is_type) {
                refuse_v2(bad, -EBADMSG, "the checksum is wrong");
            }
        }
    }
    v2 = v2_with_sum("", 0);
    v2.bytes[13] = 0x12; /* another transport */
    refuse_v2(v2, -EBADMSG, "the checksum is wrong");
}

static void test_proxy_header_l60_v2_checksum_has_four_bytes_and_is_one(void **state)
{
    uint8_t body[64] = {0};

    (void)state;
    memcpy(body, inet_body, 12);
    memcpy(body + 12, "\x03\x00\x03\x01\x02\x03", 6);
    refuse_v2(v2_of(0x21, 0x11, body, 18), -EBADMSG, "the checksum is wrong");
    memcpy(body + 12, "\x03\x00\x00", 3);
    refuse_v2(v2_of(0x21, 0x11, body, 15), -EBADMSG, "the checksum is wrong");
    refuse_v2(v2_with_sum("\x03\x00\x04\x00\x00\x00\x00", 7), -EBADMSG, "the checksum is wrong");
}

static void test_proxy_header_l60_v2_mistakes_are_refused(void **state)
{
    (void)state;
    refuse_v2(v2_of(0x11, 0x11, inet_body, 12), -EBADMSG, "unknown version or command");
    refuse_v2(v2_of(0x31, 0x11, inet_body, 12), -EBADMSG, "unknown version or command");
    refuse_v2(v2_of(0x22, 0x11, inet_body, 12), -EBADMSG, "unknown version or command");
    refuse_v2(v2_of(0x21, 0x41, inet_body, 12), -EBADMSG, "unknown family or transport");
    refuse_v2(v2_of(0x21, 0x13, inet_body, 12), -EBADMSG, "unknown family or transport");
    refuse_v2(v2_of(0x21, 0x11, inet_body, 11), -EBADMSG, "too short for its addresses");
    refuse_v2(v2_of(0x21, 0x21, inet_body, 12), -EBADMSG, "too short for its addresses");
    refuse_v2(v2_of(0x21, 0x31, inet_body, 12), -EBADMSG, "too short for its addresses");
}

static void test_proxy_header_l60_v2_claim_over_the_limit_is_refused_before_its_bytes(void **state)
{
    uint8_t body[MAX] = {0};
    struct bow__proxy_header header;
    const char *reason = NULL;
    (void)state;
    memcpy(body, inet_body, 12);
    struct v2 v2 = v2_of(0x21, 0x11, body, MAX - 16);
    assert_int_equal(parse((struct bow_slice){v2.bytes, 16}, &header, &reason), -EAGAIN);
    v2 = v2_of(0x21, 0x11, body, MAX - 15);
    v2.len = 16;
    refuse_v2(v2, -EMSGSIZE, "longer than the limit");
    v2.bytes[14] = 0xFF;
    v2.bytes[15] = 0xFF;
    refuse_v2(v2, -EMSGSIZE, "longer than the limit");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_proxy_header_l60_v1_lines_are_read),
        cmocka_unit_test(test_proxy_header_l60_v1_mistakes_are_refused),
        cmocka_unit_test(test_proxy_header_l60_v1_line_without_end_is_refused_after_107_bytes),
        cmocka_unit_test(test_proxy_header_l60_anything_else_is_refused_at_its_first_byte),
        cmocka_unit_test(test_proxy_header_l60_v2_addresses_of_each_family_are_read),
        cmocka_unit_test(test_proxy_header_l60_v2_without_addresses_is_read_over),
        cmocka_unit_test(test_proxy_header_l60_v2_extensions_are_skipped_and_must_fit),
        cmocka_unit_test(test_proxy_header_l60_v2_checksum_is_verified),
        cmocka_unit_test(test_proxy_header_l60_v2_checksum_has_four_bytes_and_is_one),
        cmocka_unit_test(test_proxy_header_l60_v2_mistakes_are_refused),
        cmocka_unit_test(test_proxy_header_l60_v2_claim_over_the_limit_is_refused_before_its_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
