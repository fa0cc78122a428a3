/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* CRC-32C against the published examples. */

#include "base/crc32c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* RFC 3720, appendix B.4, and the check value of catalogues. */
static void test_crc32c_published_examples_come_out(void **state)
{
    uint8_t bytes[32];

    (void)state;
    assert_int_equal(bow__crc32c(0, "", 0), 0);
    assert_int_equal(bow__crc32c(0, "123456789", 9), 0xE3069283);
    memset(bytes, 0, sizeof(bytes));
    assert_int_equal(bow__crc32c(0, bytes, sizeof(bytes)), 0x8A9136AA);
    memset(bytes, 0xFF, sizeof(bytes));
    assert_int_equal(bow__crc32c(0, bytes, sizeof(bytes)), 0x62A8AB43);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)i;
    }
    assert_int_equal(bow__crc32c(0, bytes, sizeof(bytes)), 0x46DD794E);
}

static void test_crc32c_of_pieces_is_that_of_the_whole(void **state)
{
    static const char text[] = "The quick brown fox jumps over the lazy dog";
    const size_t len = sizeof(text) - 1;
    uint32_t whole = bow__crc32c(0, text, len);

    (void)state;
    for (size_t cut = 0; cut <= len; cut++) {
        assert_int_equal(bow__crc32c(bow__crc32c(0, text, cut), text + cut, len - cut), whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crc32c_published_examples_come_out),
        cmocka_unit_test(test_crc32c_of_pieces_is_that_of_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
