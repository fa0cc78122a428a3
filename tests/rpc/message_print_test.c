/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A message as one line: forms, bounds, secrets. */
#include "tests/rpc/json_fixture.h"
#include <bowline/message_print.h>
#include <math.h>

static const char *line_of(const void *message)
{
    static char line[2000];
    size_t len = bow_message_print(message, line, sizeof line);
    assert_int_equal(len, strlen(line));
    return line;
}

static void test_message_print_of_each_kind_of_field(void **state)
{
    struct json_fixture f;
    (void)state;
    json_begin(&f);
    assert_string_equal(line_of(json_read(&f, &json__scalars__descriptor,
                                          "{\"fInt32\":-1,\"fUint32\":2,\"fInt64\":-3,\"fUint64\":"
                                          "4,\"fFloat\":0.1,\"fDouble\":\"-Infinity\","
                                          "\"fBool\":true,\"fEnum\":1,\"fString\":"
                                          "\"a\\\"\\\\\\n\\u0001\xc3\xa9\",\"fBytes\":\"AEH/\","
                                          "\"fMessage\":{\"fInt32\":5,\"fMessage\":{}}}")),
                        "f_int32: -1 f_int64: -3 f_uint32: 2 f_uint64: 4 f_float: 0.1 f_double: "
                        "-inf f_bool: true f_enum: COLOR_RED "
                        "f_string: \"a\\\"\\\\\\n\\001\xc3\xa9\" f_bytes: \"\\000A\\377\" "
                        "f_message { f_int32: 5 f_message { } }");
    assert_string_equal(
        line_of(json_read(&f, &json__lists__descriptor,
                          "{\"fInt32\":[1,2],\"fEnum\":[77],\"fMessage\":[{},{\"fBool\":true}]}")),
        "f_int32: 1 f_int32: 2 f_enum: 77 f_message { } f_message { f_bool: true }");
    assert_string_equal(
        line_of(json_read(&f, &json__maps__descriptor, "{\"byString\":{\"a\":\"b\"}}")),
        "by_string { key: \"a\" value: \"b\" }");
    assert_string_equal(line_of(json_read(&f, &json__choice__descriptor, "{\"text\":\"\"}")),
                        "text: \"\"");
    assert_string_equal(line_of(json_read(&f, &json__tree__descriptor, "{}")), "");
    assert_string_equal(line_of(json_read(&f, &json2__text__descriptor,
                                          "{\"text\":\"\xc3\xa9\\u0000\",\"bytes\":\"w6k=\"}")),
                        "text: \"\xc3\xa9\\000\" bytes: \"\\303\\251\"");
    json_end(&f);
}

static void test_message_print_of_what_is_no_message_is_null(void **state)
{
    Json__Tree tree = JSON__TREE__INIT;
    Json__Tree *children[] = {NULL};
    Json__Tree blank = {.base = {.descriptor = NULL}};
    Json__Lists lists = JSON__LISTS__INIT;
    char *strings[] = {NULL};
    (void)state;
    assert_string_equal(line_of(NULL), "NULL");
    tree.n_children = 1;
    tree.name = NULL;
    assert_string_equal(line_of(&tree), "children: NULL");
    tree.children = children;
    assert_string_equal(line_of(&tree), "children: NULL");
    lists.f_string = strings;
    lists.n_f_string = 1;
    assert_string_equal(line_of(&lists), "f_string: NULL");
    children[0] = &blank;
    assert_string_equal(line_of(&tree), "children: NULL");
}

static void test_message_print_of_text_that_would_break_lines_is_escaped(void **state)
{
    Json__Tree tree = JSON__TREE__INIT;
    (void)state;
    tree.name = (char *)(uintptr_t) "\r\t\x1b\x7f\xc2\x85\xe2\x80\xa8\xe2\x80\xa6\xff\xc3\xed\xa0"
                                    "\x80\xf0\x9f\xaa\xa2";
    assert_string_equal(
        line_of(&tree),
        "name: \"\\r\\t\\033\\177\\302\\205\\342\\200\\250\xe2\x80\xa6\\377\\303\\355\\240\\200"
        "\xf0\x9f\xaa\xa2\"");
}

/* A newer schema may have declared them secret. */
static void test_message_print_of_unknown_fields_is_by_number_and_size(void **state)
{
    struct json_fixture f;
    static const char bytes[] = "\x0a\x01"
                                "a\xa0\x06\x96\x01\xa2\x06\x02"
                                "b\n\xa5\x06\x01\x02\x03\x04";
    ProtobufCMessage *message = NULL;
    (void)state;
    json_begin(&f);
    assert_int_equal(bow_message_decode(&json__tree__descriptor, TEXT(bytes), NULL, f.arena,
                                        &message, f.reason, sizeof f.reason),
                     0);
    assert_string_equal(line_of(message),
                        "name: \"a\" 100: [2 bytes] 100: [2 bytes] 100: [4 bytes]");
    json_end(&f);
}

static void test_message_print_that_is_cut_ends_with_an_ellipsis(void **state)
{
    char line[100];
    Json__Tree tree = JSON__TREE__INIT;
    const char *whole = "name: \"\xc3\xa9\xe2\x82\xac\xf0\x9f\xaa\xa2 z\"";
    (void)state;
    tree.name = (char *)(uintptr_t) "\xc3\xa9\xe2\x82\xac\xf0\x9f\xaa\xa2 z";
    for (size_t size = 0; size < sizeof line; size++) {
        memset(line, '#', sizeof line);
        size_t len = bow_message_print(&tree.base, line, size);
        assert_int_equal(line[size], '#');
        if (size == 0) {
            assert_int_equal(len, 0);
            continue;
        }
        assert_in_range(len, 0, size - 1);
        assert_int_equal(strlen(line), len);
        if (size > strlen(whole)) {
            assert_string_equal(line, whole);
        } else if (size > 3) {
            assert_string_equal(line + len - 3, "\xe2\x80\xa6");
            assert_memory_equal(line, whole, len - 3);
            assert_true(((uint8_t)whole[len - 3] & 0xc0) != 0x80);
            assert_true(len + 4 >= size || size - len <= 4);
        } else {
            assert_int_equal(len, 0);
        }
    }
}

static void test_message_print_takes_no_more_time_than_its_line(void **state)
{
    static Json__Tree *children[1 << 16];
    Json__Tree tree = JSON__TREE__INIT;
    char line[20];
    (void)state;
    /* A tree of endless depth and width: each child is the tree. */
    for (size_t i = 0; i < sizeof children / sizeof children[0]; i++) {
        children[i] = &tree;
    }
    tree.children = children;
    tree.n_children = sizeof children / sizeof children[0];
    bow_message_print(&tree.base, line, sizeof line);
    assert_string_equal(line, "children { child\xe2\x80\xa6");
}

static void test_message_print_of_too_many_levels_ends(void **state)
{
    static char line[4000];
    Json__Tree tree = JSON__TREE__INIT;
    (void)state;
    tree.left = &tree;
    size_t len = bow_message_print(&tree.base, line, sizeof line);
    assert_int_equal(len, 101 * 7 - 1 + 4 + 101 * 2);
    assert_non_null(strstr(line, "left { \xe2\x80\xa6 } }"));
}

static void test_message_print_of_secrets_is_redacted(void **state)
{
    struct json_fixture f;
    (void)state;
    if (!json_has_infos()) { /* then nothing says what is secret */
        return;
    }
    json_begin(&f);
    json_make_secret(&json__optionals__descriptor, "f_string");
    json_make_secret(&json__tree__descriptor, "right");
    json_make_secret(&json__tree__descriptor, "children");
    assert_string_equal(line_of(json_read(&f, &json__optionals__descriptor,
                                          "{\"fInt32\":1,\"fString\":\"password\"}")),
                        "f_int32: 1 f_string: [REDACTED]");
    assert_string_equal(line_of(json_read(&f, &json__optionals__descriptor, "{\"fInt32\":1}")),
                        "f_int32: 1");
    assert_string_equal(
        line_of(json_read(
            &f, &json__tree__descriptor,
            "{\"left\":{\"right\":{\"name\":\"x\"}},\"children\":[{\"name\":\"y\"},{}]}")),
        "left { right: [REDACTED] } children: [REDACTED]");
    json_end(&f);
}

/* Which of its bytes are secret only the type's descriptor says, and that is not at hand. */
static void test_message_print_of_an_any_does_not_show_its_bytes(void **state)
{
    struct json_fixture f;
    (void)state;
    json_begin(&f);
    f.options.files = json_files;
    f.options.n_files = JSON_FILES;
    assert_string_equal(
        line_of(json_read(&f, &json__known__descriptor,
                          "{\"any\":{\"@type\":\"x/json.Tree\",\"name\":\"secret\"}}")),
        "any { type_url: \"x/json.Tree\" value: [8 bytes] }");
    json_end(&f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_message_print_of_each_kind_of_field),
        cmocka_unit_test(test_message_print_of_what_is_no_message_is_null),
        cmocka_unit_test(test_message_print_of_text_that_would_break_lines_is_escaped),
        cmocka_unit_test(test_message_print_of_unknown_fields_is_by_number_and_size),
        cmocka_unit_test(test_message_print_that_is_cut_ends_with_an_ellipsis),
        cmocka_unit_test(test_message_print_takes_no_more_time_than_its_line),
        cmocka_unit_test(test_message_print_of_too_many_levels_ends),
        cmocka_unit_test(test_message_print_of_secrets_is_redacted),
        cmocka_unit_test(test_message_print_of_an_any_does_not_show_its_bytes),
    };
    json_choose_descriptors(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
