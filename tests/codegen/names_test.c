/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The name rules, held to names that protoc-gen-c 1.4.1 is known to make.
 */

#include "codegen/names.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct pair {
    const char *name;
    const char *expected;
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int set_up(void **state)
{
    static struct memory memory;

    memory_init(&memory);
    *state = &memory;
    return 0;
}

static int tear_down(void **state)
{
    struct memory *memory = *state;

    bow__arena_fini(&memory->arena);
    assert_int_equal(bow_context_bytes(memory->context), 0);
    memory_fini(memory);
    return 0;
}

static void check(struct memory *memory, char *(*name)(struct memory *memory, const char *name),
                  const struct pair *pairs, size_t n_pairs)
{
    for (size_t i = 0; i < n_pairs; i++) {
        assert_string_equal(name(memory, pairs[i].name), pairs[i].expected);
    }
}

static void test_names_camel_drops_underscores_and_raises_what_follows(void **state)
{
    static const struct pair pairs[] = {
        {"bar_baz", "BarBaz"},
        {"v1beta1", "V1beta1"},
        {"HTTPRequest2", "HTTPRequest2"},
        {"Foo_bar2Baz", "FooBar2Baz"},
        {"_Lead", "Lead"},
        {"a", "A"},
        {"_opt_i", "OptI"},
        {"trail_", "Trail"},
        {"", ""},
    };
    check(*state, names_camel, pairs, COUNT(pairs));
}

static void test_names_lower_splits_before_a_capital_after_something_else(void **state)
{
    static const struct pair pairs[] = {
        {"HTTPRequest2", "httprequest2"},
        {"HTTPEchoService2", "httpecho_service2"},
        {"MyEnum2V", "my_enum2_v"},
        {"GetIPv4Addr", "get_ipv4_addr"},
        {"XMLHttpReqV1Beta", "xmlhttp_req_v1_beta"},
        {"Deep2X3y", "deep2_x3y"},
        {"Foo_Bar", "foo__bar"},
        {"_Lead", "__lead"},
        {"bar_baz", "bar_baz"},
        {"SayHello", "say_hello"},
    };
    check(*state, names_lower, pairs, COUNT(pairs));
}

static void test_names_upper_is_lower_in_capitals(void **state)
{
    static const struct pair pairs[] = {
        {"MyEnum2V", "MY_ENUM2_V"},
        {"Foo_Bar", "FOO__BAR"},
        {"httpRequest", "HTTP_REQUEST"},
        {"_x", "_X"},
    };
    check(*state, names_upper, pairs, COUNT(pairs));
}

static void test_names_full_names_join_pieces_with_two_underscores(void **state)
{
    static const char name[] = "foo.bar_baz.v1beta1.HTTPThing.HTTPRequest2";
    struct memory *memory = *state;

    assert_string_equal(names_full_camel(memory, name),
                        "Foo__BarBaz__V1beta1__HTTPThing__HTTPRequest2");
    assert_string_equal(names_full_lower(memory, name),
                        "foo__bar_baz__v1beta1__httpthing__httprequest2");
    assert_string_equal(names_full_upper(memory, name),
                        "FOO__BAR_BAZ__V1BETA1__HTTPTHING__HTTPREQUEST2");
}

static void test_names_full_names_drop_empty_pieces(void **state)
{
    static const struct pair pairs[] = {
        {".A.B", "a__b"}, {"A..B", "a__b"},    {"A.", "a"},
        {"", ""},         {"a.b_c", "a__b_c"}, {"a_b.c", "a_b__c"},
    };
    check(*state, names_full_lower, pairs, COUNT(pairs));
}

static void test_names_field_is_lower_case_without_splitting(void **state)
{
    static const struct pair pairs[] = {
        {"fooBar", "foobar"},
        {"HTTPHeader", "httpheader"},
        {"name", "name"},
    };
    check(*state, names_field, pairs, COUNT(pairs));
}

static void test_names_field_avoids_keywords_and_macros_without_parameters(void **state)
{
    static const struct pair pairs[] = {
        {"switch", "switch_"},     {"Int", "int_"},           {"xor_eq", "xor_eq_"},
        {"restrict", "restrict_"}, {"typeof", "typeof_"},     {"linux", "linux_"},
        {"errno", "errno_"},       {"stdout", "stdout_"},     {"constexpr", "constexpr_"},
        {"int32_t", "int32_t_"},   {"st_mtime", "st_mtime_"}, {"__asm__", "__asm___"},
        {"major", "major"},        {"assert", "assert"},
    };
    check(*state, names_field, pairs, COUNT(pairs));
}

static void test_names_handler_avoids_macros_with_parameters_too(void **state)
{
    static const struct pair pairs[] = {
        {"switch", "switch_"},
        {"register", "register_"},
        {"restrict", "restrict_"},
        {"typeof", "typeof_"},
        {"linux", "linux_"},
        {"assert", "assert_"},
        {"errno", "errno_"},
        {"nullptr", "nullptr_"},
        {"requires", "requires_"},
        {"major", "major_"},
        {"get", "get"},
        {"init", "init"},
    };
    check(*state, names_handler, pairs, COUNT(pairs));
}

static void test_names_type_avoids_macros_and_begins_with_a_letter(void **state)
{
    static const struct pair pairs[] = {
        {"Point", "Point"}, {"NULL", "NULL_"}, {"FILE", "FILE_"},
        {"EOF", "EOF_"},    {"1", "X1"},       {"", "X"},
    };
    check(*state, names_type, pairs, COUNT(pairs));
}

static void test_names_file_id_spells_other_characters_in_hex(void **state)
{
    static const struct pair pairs[] = {
        {"names2.proto", "names2_2eproto"},
        {"dir/my-file.proto", "dir_2fmy_2dfile_2eproto"},
        {"a_b.proto", "a_5fb_2eproto"},
        {"\xc3\xa4", "_c3_a4"},
    };
    check(*state, names_file_id, pairs, COUNT(pairs));
}

static void test_names_file_stem_strips_one_ending(void **state)
{
    static const struct pair pairs[] = {
        {"dir/a.proto", "dir/a"}, {"a.protodevel", "a"}, {"a.proto.proto", "a.proto"},
        {"plain", "plain"},       {".proto", ""},
    };
    check(*state, names_file_stem, pairs, COUNT(pairs));
}

static void test_names_is_identifier_refuses_what_c_refuses(void **state)
{
    (void)state;
    assert_true(names_is_identifier("a"));
    assert_true(names_is_identifier("_1"));
    assert_true(names_is_identifier("Aa_9"));
    assert_false(names_is_identifier(""));
    assert_false(names_is_identifier("1a"));
    assert_false(names_is_identifier("a-b"));
    assert_false(names_is_identifier("a b"));
    assert_false(names_is_identifier("\xc3\xa4"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_camel_drops_underscores_and_raises_what_follows),
        cmocka_unit_test(test_names_lower_splits_before_a_capital_after_something_else),
        cmocka_unit_test(test_names_upper_is_lower_in_capitals),
        cmocka_unit_test(test_names_full_names_join_pieces_with_two_underscores),
        cmocka_unit_test(test_names_full_names_drop_empty_pieces),
        cmocka_unit_test(test_names_field_is_lower_case_without_splitting),
        cmocka_unit_test(test_names_field_avoids_keywords_and_macros_without_parameters),
        cmocka_unit_test(test_names_handler_avoids_macros_with_parameters_too),
        cmocka_unit_test(test_names_type_avoids_macros_and_begins_with_a_letter),
        cmocka_unit_test(test_names_file_id_spells_other_characters_in_hex),
        cmocka_unit_test(test_names_file_stem_strips_one_ending),
        cmocka_unit_test(test_names_is_identifier_refuses_what_c_refuses),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
