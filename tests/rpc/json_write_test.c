/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Writing JSON: each kind of field, names, options, and what there is no JSON for.
 */
#include "tests/rpc/json_fixture.h"
#include <locale.h>
#include <math.h>

static void test_json_write_of_each_scalar_is_as_protobuf_says(void **state)
{
    struct json_fixture f;
    Json__Scalars m = JSON__SCALARS__INIT;
    uint8_t bytes[] = {0xfb, 0xff, 0, 1};
    (void)state;
    json_begin(&f);
    m.f_int32 = INT32_MIN;
    m.f_sint32 = -1;
    m.f_sfixed32 = 7;
    m.f_int64 = INT64_MIN;
    m.f_sint64 = -1;
    m.f_sfixed64 = 9007199254740993;
    m.f_uint32 = UINT32_MAX;
    m.f_fixed32 = 10;
    m.f_uint64 = UINT64_MAX;
    m.f_fixed64 = 100;
    m.f_float = 0.1f;
    m.f_double = 0.1;
    m.f_bool = 1;
    m.f_enum = JSON__COLOR__COLOR_RED;
    m.f_string = (char *)(uintptr_t) "a\"\\/\b\f\n\r\t\x01\x7f\xc3\xa9";
    m.f_bytes = (ProtobufCBinaryData){sizeof bytes, bytes};
    assert_string_equal(
        json_write(&f, &m),
        "{\"fInt32\":-2147483648,\"fSint32\":-1,\"fSfixed32\":7,\"fInt64\":\"-"
        "9223372036854775808\","
        "\"fSint64\":\"-1\",\"fSfixed64\":\"9007199254740993\",\"fUint32\":4294967295,\"fFixed32\":"
        "10,"
        "\"fUint64\":\"18446744073709551615\",\"fFixed64\":\"100\",\"fFloat\":0.1,\"fDouble\":0.1,"
        "\"fBool\":true,\"fEnum\":\"COLOR_RED\",\"fString\":\"a\\\"\\\\/"
        "\\b\\f\\n\\r\\t\\u0001\x7f\xc3\xa9\","
        "\"fBytes\":\"+/8AAQ==\"}");
    json_end(&f);
}

static void test_json_write_of_an_empty_message_has_no_members(void **state)
{
    struct json_fixture f;
    Json__Scalars m = JSON__SCALARS__INIT;
    (void)state;
    json_begin(&f);
    assert_string_equal(json_write(&f, &m), "{}");
    f.options.indent = 2;
    assert_string_equal(json_write(&f, &m), "{}");
    json_end(&f);
}

static void test_json_write_of_numbers_beyond_json_are_strings(void **state)
{
    struct json_fixture f;
    Json__Lists m = JSON__LISTS__INIT;
    double doubles[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, -0.0, 1e21, 1e-7, 5e-324};
    float floats[] = {NAN, INFINITY, 16777216, 3.4028235e38f, 1e-45f};
    (void)state;
    json_begin(&f);
    m.f_double = doubles;
    m.n_f_double = 7;
    m.f_float = floats;
    m.n_f_float = 5;
    assert_string_equal(json_write(&f, &m),
                        "{\"fFloat\":[\"NaN\",\"Infinity\",16777216,3.4028235e+38,1e-45],"
                        "\"fDouble\":[\"NaN\",\"Infinity\",\"-Infinity\",-0.0,1e+21,1e-7,5e-324]}");
    json_end(&f);
}

static void test_json_write_does_not_heed_the_locale(void **state)
{
    struct json_fixture f;
    Json__Scalars m = JSON__SCALARS__INIT;
    (void)state;
    json_begin(&f);
    m.f_double = 0.30000000000000004;
    /* Where there is no such locale this shows less. */
    (void)setlocale(LC_NUMERIC, "de_DE.UTF-8");
    assert_string_equal(json_write(&f, &m), "{\"fDouble\":0.30000000000000004}");
    json_again(&f, &json__scalars__descriptor,
               "{\"fDouble\":1.00000000000000011102230246251565404}", "{\"fDouble\":1}");
    (void)setlocale(LC_NUMERIC, "C");
    json_end(&f);
}

static void test_json_write_of_optionals_tells_set_from_unset(void **state)
{
    struct json_fixture f;
    Json__Optionals m = JSON__OPTIONALS__INIT;
    (void)state;
    json_begin(&f);
    assert_string_equal(json_write(&f, &m), "{}");
    m._f_int32_case = JSON__OPTIONALS___F_INT32_F_INT32;
    m._f_string_case = JSON__OPTIONALS___F_STRING_F_STRING;
    m._f_bytes_case = JSON__OPTIONALS___F_BYTES_F_BYTES;
    assert_string_equal(json_write(&f, &m), "{\"fInt32\":0,\"fString\":\"\",\"fBytes\":\"\"}");
    json_end(&f);
}

static void test_json_write_always_print_shows_fields_without_presence(void **state)
{
    struct json_fixture f;
    Json__Choice choice = JSON__CHOICE__INIT;
    Json__Pairs pairs = JSON__PAIRS__INIT;
    (void)state;
    json_begin(&f);
    f.options.always_print = true;
    assert_string_equal(json_write(&f, &choice), "{\"after\":\"\"}");
    assert_string_equal(json_write(&f, &pairs), "{\"pairs\":[]}");
    json_end(&f);
}

static void test_json_write_of_names_is_as_protoc_has_them(void **state)
{
    struct json_fixture f;
    Json__Names m = JSON__NAMES__INIT;
    (void)state;
    json_begin(&f);
    m.plain = 1;
    m.two_words = 2;
    m.a_1b = 3;
    m.httpcode = 4;
    m.double__line = 5;
    m._lead = 6;
    m.trail_ = 7;
    assert_string_equal(json_write(&f, &m), "{\"plain\":1,\"twoWords\":2,\"a1b\":3,\"HTTPCode\":4,"
                                            "\"doubleLine\":5,\"Lead\":6,\"trail\":7}");
    f.options.preserve_names = true;
    assert_string_equal(json_write(&f, &m),
                        "{\"plain\":1,\"two_words\":2,\"a_1b\":3,\"HTTPCode\":4,"
                        "\"double__line\":5,\"_lead\":6,\"trail_\":7}");
    json_end(&f);
}

static void test_json_write_of_a_json_name_is_escaped(void **state)
{
    struct json_fixture f;
    Json__Names m = JSON__NAMES__INIT;
    (void)state;
    json_begin(&f);
    m.own = 8;
    m.swapped_a = 9;
    assert_string_equal(json_write(&f, &m), json_has_infos()
                                                ? "{\"@own\\\"\\\\\xc3\xa9\":8,\"swappedZ\":9}"
                                                : "{\"own\":8,\"swappedA\":9}");
    json_end(&f);
}

static void test_json_write_of_enums_by_name_or_number(void **state)
{
    struct json_fixture f;
    Json__Lists m = JSON__LISTS__INIT;
    Json__Color colors[] = {JSON__COLOR__COLOR_NEGATIVE, JSON__COLOR__COLOR_UNSPECIFIED,
                            (Json__Color)77};
    (void)state;
    json_begin(&f);
    m.f_enum = colors;
    m.n_f_enum = 3;
    assert_string_equal(json_write(&f, &m),
                        "{\"fEnum\":[\"COLOR_NEGATIVE\",\"COLOR_UNSPECIFIED\",77]}");
    f.options.enums_as_numbers = true;
    assert_string_equal(json_write(&f, &m), "{\"fEnum\":[-1,0,77]}");
    json_end(&f);
}

static void test_json_write_with_indent_has_lines(void **state)
{
    struct json_fixture f;
    (void)state;
    json_begin(&f);
    f.options.indent = 2;
    json_again(
        &f, &json__tree__descriptor,
        "{\"name\":\"a\",\"left\":{},\"children\":[{\"name\":\"b\"},{}]}",
        "{\n  \"name\": \"a\",\n  \"left\": {},\n  \"children\": [\n    {\n      \"name\": \"b\"\n"
        "    },\n    {}\n  ]\n}");
    json_end(&f);
}

static void test_json_write_of_a_map_has_each_kind_of_key_as_a_string(void **state)
{
    struct json_fixture f;
    const char *text =
        "{\"byString\":{\"\":\"b\",\"a\":\"\"},\"byInt32\":{\"-1\":{\"fInt32\":1}},\"bySint32\":{"
        "\"-2\":\"3\"},"
        "\"bySfixed32\":{\"4\":\"5\"},\"byInt64\":{\"-9223372036854775808\":\"AA==\"},"
        "\"bySint64\":{\"6\":0.5},\"bySfixed64\":{\"7\":\"NaN\"},\"byUint32\":{\"4294967295\":true}"
        ","
        "\"byFixed32\":{\"8\":\"COLOR_RED\"},\"byUint64\":{\"18446744073709551615\":\"1970-01-"
        "01T00:00:00Z\"},"
        "\"byFixed64\":{\"9\":null},\"byBool\":{\"true\":\"t\",\"false\":\"f\"}}";
    (void)state;
    json_begin(&f);
    json_again(&f, &json__maps__descriptor, text, text);
    json_end(&f);
}

/* A map of `n` entries, whose keys are modulo `n_keys`, and values in order. */
static Json__Maps *map_of(struct json_fixture *f, int32_t n, int32_t n_keys)
{
    Json__Maps *m = (Json__Maps *)bow_message_new(&json__maps__descriptor, f->arena);
    m->n_by_sint32 = (size_t)n;
    m->by_sint32 = bow_arena_alloc(f->arena, (size_t)n * sizeof m->by_sint32[0]);
    for (int32_t i = 0; i < n; i++) {
        m->by_sint32[i] = (Json__Maps__BySint32Entry *)bow_message_new(
            &json__maps__by_sint32_entry__descriptor, f->arena);
        m->by_sint32[i]->key = i % n_keys;
        m->by_sint32[i]->value = i;
    }
    return m;
}

static void test_json_write_of_a_key_twice_has_the_last_entry(void **state)
{
    struct json_fixture f;
    (void)state;
    json_begin(&f);
    assert_string_equal(json_write(&f, map_of(&f, 5, 3)),
                        "{\"bySint32\":{\"2\":\"2\",\"0\":\"3\",\"1\":\"4\"}}");
    assert_string_equal(json_write(&f, map_of(&f, 40, 2)),
                        "{\"bySint32\":{\"0\":\"38\",\"1\":\"39\"}}");
    const char *text = json_write(&f, map_of(&f, 40, 40));
    assert_non_null(strstr(text, "{\"0\":\"0\",\"1\":\"1\",\"2\":\"2\""));
    json_end(&f);
}

static void test_json_write_of_what_is_no_map_is_an_array(void **state)
{
    struct json_fixture f;
    (void)state;
    json_begin(&f);
    json_again(&f, &json__pairs__descriptor, "{\"pairs\":[{\"key\":\"a\",\"value\":\"b\"}]}",
               "{\"pairs\":[{\"key\":\"a\",\"value\":\"b\"}]}");
    json_end(&f);
}

/* Messages that a map's entries could have been, but for the types of their fields; as by hand. */
struct pair {
    ProtobufCMessage base;
    int32_t key;
    size_t n_value;
    char **value;
};

struct pairs {
    ProtobufCMessage base;
    size_t n_pairs;
    struct pair **pairs;
};

static void test_json_of_pairs_that_no_map_can_have_is_an_array(void **state)
{
    static const ProtobufCIntRange pair_ranges[] = {{1, 0}, {0, 2}}, ranges[] = {{1, 0}, {0, 1}};
    static const unsigned names[] = {0, 1};
    static const char text[] = "{\"pairs\":[{\"key\":\"COLOR_RED\",\"value\":[\"a\",\"b\"]}]}";
    ProtobufCFieldDescriptor pair_fields[] = {
        {.name = "key",
         .id = 1,
         .label = PROTOBUF_C_LABEL_NONE,
         .type = PROTOBUF_C_TYPE_ENUM,
         .offset = offsetof(struct pair, key),
         .descriptor = &json__color__descriptor},
        {.name = "value",
         .id = 2,
         .label = PROTOBUF_C_LABEL_REPEATED,
         .type = PROTOBUF_C_TYPE_STRING,
         .quantifier_offset = offsetof(struct pair, n_value),
         .offset = offsetof(struct pair, value)},
    };
    ProtobufCMessageDescriptor pair = {.magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,
                                       .name = "json.PairsEntry",
                                       .short_name = "PairsEntry",
                                       .sizeof_message = sizeof(struct pair),
                                       .n_fields = 2,
                                       .fields = pair_fields,
                                       .fields_sorted_by_name = names,
                                       .n_field_ranges = 1,
                                       .field_ranges = pair_ranges};
    ProtobufCFieldDescriptor fields[] = {{.name = "pairs",
                                          .id = 1,
                                          .label = PROTOBUF_C_LABEL_REPEATED,
                                          .type = PROTOBUF_C_TYPE_MESSAGE,
                                          .quantifier_offset = offsetof(struct pairs, n_pairs),
                                          .offset = offsetof(struct pairs, pairs),
                                          .descriptor = &pair}};
    ProtobufCMessageDescriptor type = {.magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,
                                       .name = "json.Pairs",
                                       .short_name = "Pairs",
                                       .sizeof_message = sizeof(struct pairs),
                                       .n_fields = 1,
                                       .fields = fields,
                                       .fields_sorted_by_name = names,
                                       .n_field_ranges = 1,
                                       .field_ranges = ranges};
    struct json_fixture f;
    (void)state;
    json_begin(&f);
    json_refuse(&f, &type, "{\"pairs\":{\"a\":\"b\"}}",
                "json.Pairs.pairs at 1:10: an array is needed");
    json_again(&f, &type, text, text);
    pair_fields[0].type = PROTOBUF_C_TYPE_INT32;
    json_refuse(&f, &type, "{\"pairs\":{\"1\":\"b\"}}",
                "json.Pairs.pairs at 1:10: an array is needed");
    json_end(&f);
}

static void test_json_write_refuses_what_is_no_message(void **state)
{
    struct json_fixture f;
    Json__Tree tree = JSON__TREE__INIT;
    Json__Tree *children[] = {NULL};
    Json__Lists lists = JSON__LISTS__INIT;
    char *strings[] = {NULL};
    (void)state;
    json_begin(&f);
    tree.name = (char *)(uintptr_t) "12345678\xff";
    json_refuse_write(&f, &tree, "json.Tree.name: not UTF-8");
    tree.name = (char *)(uintptr_t) "\xed\xa0\x80";
    json_refuse_write(&f, &tree, "json.Tree.name: not UTF-8");
    tree.name = NULL;
    tree.children = children;
    tree.n_children = 1;
    json_refuse_write(&f, &tree, "json.Tree.children[0] is NULL, but a message is needed");
    tree.children = NULL;
    json_refuse_write(&f, &tree, "json.Tree.children is NULL, but has 1 elements");
    lists.f_string = strings;
    lists.n_f_string = 1;
    json_refuse_write(&f, &lists, "json.Lists.f_string[0] is NULL, but a string is needed");
    json_refuse_write(&f, NULL, "no message, or one without a descriptor");
    f.options.indent = 17;
    json_refuse_write(&f, &tree, "options: a size that is not known, or a value out of range");
    json_end(&f);
}

/* `n` messages below the first. */
static Json__Tree *chain(struct json_fixture *f, size_t n)
{
    Json__Tree *tree = NULL;
    for (size_t i = 0; i <= n; i++) {
        Json__Tree *above = (Json__Tree *)bow_message_new(&json__tree__descriptor, f->arena);
        above->left = tree;
        tree = above;
    }
    return tree;
}

static void test_json_write_of_the_depth_that_is_allowed_and_one_more(void **state)
{
    struct json_fixture f;
    (void)state;
    json_begin(&f);
    f.options.max_depth = 2;
    assert_string_equal(json_write(&f, chain(&f, 2)), "{\"left\":{\"left\":{}}}");
    json_refuse_write(&f, chain(&f, 3), "json.Tree.left.left.left: nested deeper than 2 levels");
    f.options.max_depth = 0;
    (void)json_write(&f, chain(&f, BOW_LIMIT_MESSAGE_DEPTH));
    json_refuse_write(
        &f, chain(&f, BOW_LIMIT_MESSAGE_DEPTH + 1),
        "json.Tree.left.left.left.left.(92 more).left.left.left.left.left: nested deeper than 100 "
        "levels");
    f.options.max_depth = BOW_LIMIT_MESSAGE_DEPTH + 1;
    json_refuse_write(&f, chain(&f, 1),
                      "options: a size that is not known, or a value out of range");
    json_end(&f);
}

static void test_json_write_into_too_little_tells_the_length(void **state)
{
    struct json_fixture f;
    Json__Scalars m = JSON__SCALARS__INIT;
    char text[4000], long_text[3001];
    size_t len;
    (void)state;
    json_begin(&f);
    memset(long_text, 'x', 3000);
    long_text[3000] = '\0';
    m.f_string = long_text;
    for (size_t size = 0; size <= 3020; size++) {
        memset(text, '#', sizeof text);
        int rc = bow_json_write_to(&m.base, NULL, text, size, &len, NULL, 0);
        assert_int_equal(len, 3014);
        assert_int_equal(rc, size > len ? 0 : -ENOSPC);
        assert_int_equal(text[size], '#');
    }
    assert_int_equal(text[len], '\0');
    json_end(&f);
}

static int write_scenario(struct bow_context *context, void *user)
{
    struct bow_slice text;
    struct bow_arena *arena = bow_arena_new(context, 0);
    if (arena == NULL) {
        return -ENOMEM;
    }
    int rc = bow_json_write(user, NULL, arena, &text, NULL, 0);
    assert_int_equal(bow_arena_failed(arena), rc == -ENOMEM);
    bow_arena_free(arena);
    return rc;
}

static void test_json_write_without_memory_says_so(void **state)
{
    Json__Scalars m = JSON__SCALARS__INIT;
    char long_text[20001];
    (void)state;
    memset(long_text, 'x', 20000);
    long_text[20000] = '\0';
    m.f_string = long_text;
    assert_in_range(test_alloc_fail_each(NULL, write_scenario, &m), 3, 100);
}

static void test_json_write_into_the_heap_is_the_callers(void **state)
{
    Json__Tree m = JSON__TREE__INIT;
    struct bow_slice text;
    (void)state;
    m.name = (char *)(uintptr_t) "a";
    assert_int_equal(bow_json_write(&m.base, NULL, NULL, &text, NULL, 0), 0);
    assert_string_equal((const char *)text.data, "{\"name\":\"a\"}");
    assert_int_equal(text.len, 12);
    free((void *)(uintptr_t)text.data);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_write_of_each_scalar_is_as_protobuf_says),
        cmocka_unit_test(test_json_write_of_an_empty_message_has_no_members),
        cmocka_unit_test(test_json_write_of_numbers_beyond_json_are_strings),
        cmocka_unit_test(test_json_write_does_not_heed_the_locale),
        cmocka_unit_test(test_json_write_of_optionals_tells_set_from_unset),
        cmocka_unit_test(test_json_write_always_print_shows_fields_without_presence),
        cmocka_unit_test(test_json_write_of_names_is_as_protoc_has_them),
        cmocka_unit_test(test_json_write_of_a_json_name_is_escaped),
        cmocka_unit_test(test_json_write_of_enums_by_name_or_number),
        cmocka_unit_test(test_json_write_with_indent_has_lines),
        cmocka_unit_test(test_json_write_of_a_map_has_each_kind_of_key_as_a_string),
        cmocka_unit_test(test_json_write_of_a_key_twice_has_the_last_entry),
        cmocka_unit_test(test_json_write_of_what_is_no_map_is_an_array),
        cmocka_unit_test(test_json_of_pairs_that_no_map_can_have_is_an_array),
        cmocka_unit_test(test_json_write_refuses_what_is_no_message),
        cmocka_unit_test(test_json_write_of_the_depth_that_is_allowed_and_one_more),
        cmocka_unit_test(test_json_write_into_too_little_tells_the_length),
        cmocka_unit_test(test_json_write_without_memory_says_so),
        cmocka_unit_test(test_json_write_into_the_heap_is_the_callers),
    };
    json_choose_descriptors(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
