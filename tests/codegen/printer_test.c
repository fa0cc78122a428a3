/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Text, templates, strings and comments as they come out.
 */

#include "codegen/printer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    struct memory memory;
    struct printer printer;
};

static int set_up(void **state)
{
    static struct fixture fixture;

    memory_init(&fixture.memory);
    printer_init(&fixture.printer, &fixture.memory);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    memory_fini(&fixture->memory);
    return 0;
}

static void expect(struct fixture *fixture, const char *text)
{
    assert_string_equal(printer_finish(&fixture->printer), text);
}

static void test_printer_template_replaces_each_variable(void **state)
{
    struct fixture *fixture = *state;
    const struct printer_var vars[] = {{"a", "1"}, {"ab", "2"}, {NULL, NULL}};

    printer_template(&fixture->printer, vars, "$a$-$ab$-$a$$ab$.");
    expect(fixture, "1-2-12.");
}

static void test_printer_string_escapes_quotes_trigraphs_and_bytes(void **state)
{
    struct fixture *fixture = *state;

    printer_string(&fixture->printer, "a\"b\\c\?\?=\n\xc3\xa4"
                                      "1");
    expect(fixture, "\"a\\042b\\134c\\077\\077=\\012\\303\\2441\"");
}

static void test_printer_comment_cannot_end_or_nest_a_comment(void **state)
{
    struct fixture *fixture = *state;

    printer_comment(&fixture->printer, "  ", " one */ two /* three\n\n//*/four  \n");
    expect(fixture, "   * one * / two / * three\n   *\n   * // * /four\n");
}

static void test_printer_comment_has_no_trigraph_and_turns_no_text(void **state)
{
    struct fixture *fixture = *state;

    printer_comment(&fixture->printer, "",
                    "a ?\?/\nb\xe2\x80\xae"
                    "c\xe2\x81\xa6\xc3\xa4\n");
    expect(fixture, " * a ?\? /\n * bc\xc3\xa4\n");
}

static void test_printer_grows_beyond_its_first_block(void **state)
{
    struct fixture *fixture = *state;
    char line[100];

    memset(line, 'x', sizeof(line) - 1);
    line[sizeof(line) - 1] = '\0';
    for (int i = 0; i < 200; i++) {
        printer_printf(&fixture->printer, "%s%d", line, i % 10);
    }
    assert_int_equal(fixture->printer.len, 200 * 100);
    char *text = printer_finish(&fixture->printer);
    for (int i = 0; i < 200; i++) {
        assert_memory_equal(text + i * 100, line, 99);
        assert_int_equal(text[i * 100 + 99], '0' + i % 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_printer_template_replaces_each_variable, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_printer_string_escapes_quotes_trigraphs_and_bytes,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_printer_comment_cannot_end_or_nest_a_comment, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_printer_comment_has_no_trigraph_and_turns_no_text,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_printer_grows_beyond_its_first_block, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
