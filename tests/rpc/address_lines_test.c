/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Addresses as files have them. */

#include "base/alloc.h"
#include "rpc/client/resolve/address_lines.h"
#include "tests/support/alloc.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct lines {
    struct test_alloc alloc;
    struct bow_context *context;
    char text[512];
    struct bow_resolver_address *addresses;
    size_t n;
    size_t n_room;
    struct bow__text why;
};

static int parse(struct lines *lines, const char *text)
{
    test_alloc_init(&lines->alloc);
    lines->context = test_context_new(&lines->alloc);
    snprintf(lines->text, sizeof(lines->text), "%s", text);
    bow__text_clear(&lines->why);
    return bow__address_lines_parse(lines->context, lines->text, &lines->addresses, &lines->n,
                                    &lines->n_room, &lines->why);
}

static void end(struct lines *lines, int rc)
{
    if (rc == 0) {
        bow__free(lines->context, lines->addresses, lines->n_room * sizeof(*lines->addresses));
    }
    test_context_end(lines->context, &lines->alloc);
}

static void test_address_lines_are_read(void **state)
{
    struct lines lines;

    (void)state;
    int rc = parse(&lines, "# the shop\n\n  127.0.0.1:1\t weight=7 locality=zone-a # the first\r\n"
                           "unix:/run/shop\n[::1]:2 locality=b");
    assert_int_equal(rc, 0);
    assert_int_equal(lines.n, 3);
    assert_string_equal(lines.addresses[0].address, "127.0.0.1:1");
    assert_int_equal(lines.addresses[0].weight, 7);
    assert_string_equal(lines.addresses[0].locality, "zone-a");
    assert_string_equal(lines.addresses[1].address, "unix:/run/shop");
    assert_int_equal(lines.addresses[1].weight, 1);
    assert_null(lines.addresses[1].locality);
    assert_string_equal(lines.addresses[2].locality, "b");
    end(&lines, rc);
    rc = parse(&lines, "");
    assert_int_equal(rc, 0);
    assert_int_equal(lines.n, 0);
    end(&lines, rc);
}

static void expect_refused(const char *text, const char *words)
{
    struct lines lines;

    int rc = parse(&lines, text);
    assert_int_equal(rc, -EINVAL);
    if (strstr(lines.why.bytes, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", lines.why.bytes, words);
    }
    end(&lines, rc);
}

static void test_address_lines_that_are_bad_are_told_by_number(void **state)
{
    (void)state;
    expect_refused("127.0.0.1:1\nhere\n", "line 2: \"here\": no port");
    expect_refused("list:127.0.0.1:1,127.0.0.1:2", "line 1: ");
    expect_refused("\n\n127.0.0.1:1 weight=0", "line 3: \"weight=0\": a weight is a number");
    expect_refused("127.0.0.1:1 weight=1000001", "line 1: \"weight=1000001\"");
    expect_refused("127.0.0.1:1 weight=4294967297", "a weight is a number");
    expect_refused("127.0.0.1:1 weight=", "a weight is a number");
    expect_refused("127.0.0.1:1 wait=2", "\"wait=2\": behind an address stands");
    expect_refused("127.0.0.1:1 locality=", "behind an address stands");
    expect_refused("127.0.0.1:1 \x01\x02", "\\x01\\x02");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_address_lines_are_read),
        cmocka_unit_test(test_address_lines_that_are_bad_are_told_by_number),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
