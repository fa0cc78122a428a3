/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Protobuf's own types as C has them: times, Any, Struct, masks, enums. */
#include "google/protobuf/any.pb-c.h"
#include "google/protobuf/duration.pb-c.h"
#include "google/protobuf/field_mask.pb-c.h"
#include "google/protobuf/struct.pb-c.h"
#include "google/protobuf/timestamp.pb-c.h"
#include "tests/rpc/json_fixture.h"
#include <bowline/well_known.h>

static void test_timestamp_is_a_timespec(void **state)
{
    Google__Protobuf__Timestamp m = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
    Json__Tree other = JSON__TREE__INIT;
    struct timespec time = {.tv_sec = -1, .tv_nsec = 999999999}, again = {0};
    (void)state;
    assert_int_equal(bow_timestamp_set(&m.base, &time), 0);
    assert_int_equal(m.seconds, -1);
    assert_int_equal(m.nanos, 999999999);
    assert_int_equal(bow_timestamp_get(&m.base, &again), 0);
    assert_int_equal(again.tv_sec, -1);
    assert_int_equal(again.tv_nsec, 999999999);
    m.nanos = 1000000000;
    assert_int_equal(bow_timestamp_get(&m.base, &again), -ERANGE);
    m.nanos = -1;
    assert_int_equal(bow_timestamp_get(&m.base, &again), -ERANGE);
    m.nanos = 0;
    m.seconds = 253402300800;
    assert_int_equal(bow_timestamp_get(&m.base, &again), -ERANGE);
    m.seconds = -62135596801;
    assert_int_equal(bow_timestamp_get(&m.base, &again), -ERANGE);
    assert_int_equal(again.tv_sec, -1);
    time.tv_nsec = 1000000000;
    assert_int_equal(bow_timestamp_set(&m.base, &time), -ERANGE);
    time = (struct timespec){.tv_sec = 253402300800};
    assert_int_equal(bow_timestamp_set(&m.base, &time), -ERANGE);
    assert_int_equal(bow_timestamp_get(&other.base, &again), -EINVAL);
    assert_int_equal(bow_timestamp_set(&other.base, &time), -EINVAL);
    assert_int_equal(bow_timestamp_get(NULL, &again), -EINVAL);
    assert_int_equal(bow_timestamp_set(NULL, &time), -EINVAL);
}

static void test_duration_is_nanoseconds(void **state)
{
    static const int64_t values[] = {0,          1,           -1,        999999999,
                                     1000000000, -1500000000, INT64_MAX, INT64_MIN};
    Google__Protobuf__Duration m = GOOGLE__PROTOBUF__DURATION__INIT;
    Google__Protobuf__Timestamp other = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
    int64_t ns = 42;
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        assert_int_equal(bow_duration_set_ns(&m.base, values[i]), 0);
        assert_int_equal(bow_duration_get_ns(&m.base, &ns), 0);
        assert_true(ns == values[i]);
    }
    ns = 42;
    m.seconds = 9223372036;
    m.nanos = 854775808; /* one more than 64 bits have */
    assert_int_equal(bow_duration_get_ns(&m.base, &ns), -ERANGE);
    m.seconds = -9223372036;
    m.nanos = -854775809;
    assert_int_equal(bow_duration_get_ns(&m.base, &ns), -ERANGE);
    m.seconds = 1;
    m.nanos = -1;
    assert_int_equal(bow_duration_get_ns(&m.base, &ns), -ERANGE);
    m.seconds = 315576000001;
    m.nanos = 0;
    assert_int_equal(bow_duration_get_ns(&m.base, &ns), -ERANGE);
    assert_int_equal(ns, 42);
    assert_int_equal(bow_duration_get_ns(&other.base, &ns), -EINVAL);
    assert_int_equal(bow_duration_set_ns(NULL, 1), -EINVAL);
}

static void test_any_holds_a_message(void **state)
{
    struct json_fixture f;
    (void)state;
    json_begin(&f);
    for (size_t i = 0; i < 2; i++) {
        struct bow_arena *arena = i == 0 ? f.arena : NULL;
        ProtobufCMessage *any = bow_message_new(&google__protobuf__any__descriptor, arena);
        Json__Tree tree = JSON__TREE__INIT;
        ProtobufCMessage *out = NULL;
        tree.name = (char *)(uintptr_t) "a";
        assert_int_equal(bow_any_unpack(any, &json__tree__descriptor, arena, &out), -ENOMSG);
        assert_int_equal(bow_any_pack(any, &tree.base, arena), 0);
        tree.name = (char *)(uintptr_t) "b";
        assert_int_equal(bow_any_pack(any, &tree.base, arena), 0);
        assert_string_equal(((Google__Protobuf__Any *)any)->type_url,
                            "type.googleapis.com/json.Tree");
        assert_true(bow_any_is(any, &json__tree__descriptor));
        assert_false(bow_any_is(any, &json__names__descriptor));
        assert_int_equal(bow_any_unpack(any, &json__names__descriptor, arena, &out), -ENOMSG);
        assert_int_equal(bow_any_unpack(any, &json__tree__descriptor, arena, &out), 0);
        assert_string_equal(((Json__Tree *)out)->name, "b");
        if (arena == NULL) {
            bow_message_free(out);
            bow_message_free(any);
        }
    }
    Json__Tree tree = JSON__TREE__INIT;
    Google__Protobuf__Any any = GOOGLE__PROTOBUF__ANY__INIT;
    Json__Tree *children[] = {NULL};
    ProtobufCMessage *out = NULL;
    assert_int_equal(bow_any_pack(&tree.base, &tree.base, f.arena), -EINVAL);
    assert_int_equal(bow_any_pack(&any.base, NULL, f.arena), -EINVAL);
    tree.children = children;
    tree.n_children = 1;
    assert_int_equal(bow_any_pack(&any.base, &tree.base, f.arena), -EINVAL);
    assert_string_equal(any.type_url, "");
    any.type_url = (char *)(uintptr_t) "/json.Tree";
    any.value = (ProtobufCBinaryData){1, (uint8_t *)(uintptr_t) "\x0a"};
    assert_int_equal(bow_any_unpack(&any.base, &json__tree__descriptor, f.arena, &out), -EBADMSG);
    any.type_url = (char *)(uintptr_t) "json.Tree"; /* no URL */
    assert_false(bow_any_is(&any.base, &json__tree__descriptor));
    assert_false(bow_any_is(NULL, &json__tree__descriptor));
    json_end(&f);
}

static void fill_struct(ProtobufCMessage *m, struct bow_arena *arena)
{
    assert_true(bow_struct_set_null(m, "null", arena));
    assert_true(bow_struct_set_number(m, "number", 1.5, arena));
    assert_true(bow_struct_set_bool(m, "bool", true, arena));
    assert_true(bow_struct_set_string(m, "string", "before", arena));
    assert_true(bow_struct_set_string(m, "string", "text", arena));
    ProtobufCMessage *list = bow_struct_set_list(m, "list", arena);
    assert_true(bow_list_add_null(list, arena));
    assert_true(bow_list_add_number(list, 2, arena));
    assert_true(bow_list_add_bool(list, false, arena));
    assert_true(bow_list_add_string(list, "x", arena));
    assert_non_null(bow_list_add_list(list, arena));
    assert_true(bow_struct_set_number(bow_list_add_struct(list, arena), "y", 3, arena));
    assert_true(bow_struct_set_bool(bow_struct_set_struct(m, "struct", arena), "z", true, arena));
}

static void test_struct_is_built_value_by_value(void **state)
{
    struct json_fixture f;
    const char *text = "{\"null\":null,\"number\":1.5,\"bool\":true,\"string\":\"text\","
                       "\"list\":[null,2,false,\"x\",[],{\"y\":3}],\"struct\":{\"z\":true}}";
    (void)state;
    json_begin(&f);
    ProtobufCMessage *m = bow_message_new(&google__protobuf__struct__descriptor, f.arena);
    fill_struct(m, f.arena);
    assert_string_equal(json_write(&f, m), text);
    const Google__Protobuf__Value *value =
        (const Google__Protobuf__Value *)bow_struct_get(m, "number");
    assert_true(value->number_value == 1.5);
    assert_null(bow_struct_get(m, "nothing"));
    m = bow_message_new(&google__protobuf__struct__descriptor, NULL);
    fill_struct(m, NULL);
    assert_string_equal(json_write(&f, m), text);
    bow_message_free(m);
    json_end(&f);
}

static void test_struct_functions_leave_other_messages_alone(void **state)
{
    Json__Tree tree = JSON__TREE__INIT;
    Google__Protobuf__Struct m = GOOGLE__PROTOBUF__STRUCT__INIT;
    (void)state;
    assert_false(bow_struct_set_number(&tree.base, "a", 1, NULL));
    assert_false(bow_struct_set_number(NULL, "a", 1, NULL));
    assert_false(bow_struct_set_number(&m.base, NULL, 1, NULL));
    assert_false(bow_struct_set_string(&m.base, "a", NULL, NULL));
    assert_null(bow_struct_set_list(NULL, "a", NULL));
    assert_false(bow_list_add_number(&m.base, 1, NULL));
    assert_null(bow_list_add_list(NULL, NULL));
    assert_null(bow_struct_get(&tree.base, "a"));
    assert_null(bow_struct_get(NULL, "a"));
    assert_int_equal(m.n_fields, 0);
}

/* Applies the mask to two messages given as JSON. */
static void apply(struct json_fixture *f, const char *mask, const char *source, const char *target,
                  const char *expected)
{
    const ProtobufCMessageDescriptor *type = &json__everything__descriptor;
    char text[200];
    snprintf(text, sizeof text, "\"%s\"", mask);
    ProtobufCMessage *paths = json_read(f, &google__protobuf__field_mask__descriptor, text);
    ProtobufCMessage *from = json_read(f, type, source), *to = json_read(f, type, target);
    ProtobufCMessage *heap = bow_message_clone(to, NULL);
    assert_int_equal(bow_field_mask_apply(paths, from, to, f->arena), 0);
    assert_string_equal(json_write(f, to), expected);
    assert_int_equal(bow_field_mask_apply(paths, from, heap, NULL), 0);
    assert_string_equal(json_write(f, heap), expected);
    bow_message_free(heap);
}

static void test_field_mask_copies_what_it_names(void **state)
{
    struct json_fixture f;
    (void)state;
    json_begin(&f);
    apply(&f, "scalars.fInt32,scalars.fString,scalars.fBytes",
          "{\"scalars\":{\"fInt32\":1,\"fString\":\"s\",\"fBytes\":\"AA==\"}}",
          "{\"scalars\":{\"fInt32\":9,\"fBool\":true}}",
          "{\"scalars\":{\"fInt32\":1,\"fBool\":true,\"fString\":\"s\",\"fBytes\":\"AA==\"}}");
    apply(&f, "scalars.fInt32,lists.fInt32", "{}", "{\"scalars\":{\"fInt32\":9,\"fBool\":true}}",
          "{\"scalars\":{\"fBool\":true}}");
    apply(&f, "tree", "{\"tree\":{\"name\":\"new\"}}", "{\"tree\":{\"name\":\"old\",\"left\":{}}}",
          "{\"tree\":{\"name\":\"new\"}}");
    apply(&f, "tree", "{}", "{\"tree\":{\"name\":\"old\"}}", "{}");
    apply(&f, "tree.left.name", "{\"tree\":{\"left\":{\"name\":\"new\"}}}", "{}",
          "{\"tree\":{\"left\":{\"name\":\"new\"}}}");
    apply(&f, "lists.fString,lists.fMessage,lists.fBytes,lists.fDouble",
          "{\"lists\":{\"fString\":[\"a\",\"b\"],\"fMessage\":[{\"fInt32\":1},{}],\"fBytes\":[\"AA="
          "=\"],\"fDouble\":[1,2]}}",
          "{\"lists\":{\"fString\":[\"x\",\"y\",\"z\"],\"fInt32\":[7],\"fMessage\":[{\"fInt32\":8}]"
          "}}",
          "{\"lists\":{\"fInt32\":[7],\"fDouble\":[1,2],\"fString\":[\"a\",\"b\"],\"fBytes\":[\"AA="
          "=\"],"
          "\"fMessage\":[{\"fInt32\":1},{}]}}");
    apply(&f, "maps.byString", "{\"maps\":{\"byString\":{\"a\":\"1\"}}}",
          "{\"maps\":{\"byString\":{\"b\":\"2\"}}}", "{\"maps\":{\"byString\":{\"a\":\"1\"}}}");
    apply(&f, "choice.text", "{\"choice\":{\"text\":\"t\"}}",
          "{\"choice\":{\"scalars\":{\"fInt32\":1}}}", "{\"choice\":{\"text\":\"t\"}}");
    apply(&f, "choice.text", "{\"choice\":{\"number\":2}}", "{\"choice\":{\"number\":1}}",
          "{\"choice\":{\"number\":1}}");
    apply(&f, "optionals.fString", "{\"optionals\":{\"fString\":\"\"}}", "{}",
          "{\"optionals\":{\"fString\":\"\"}}");
    json_end(&f);
}

/* In the heap, where what a field had is freed when it gets another value. */
static void test_field_mask_of_a_message_and_itself_changes_nothing(void **state)
{
    static const char text[] = "{\"lists\":{\"fString\":[\"a\",\"b\"]},\"tree\":{\"name\":\"n\"}}";
    struct json_fixture f;
    Google__Protobuf__FieldMask mask = GOOGLE__PROTOBUF__FIELD_MASK__INIT;
    char *paths[] = {(char *)(uintptr_t) "lists.f_string", (char *)(uintptr_t) "tree.name"};
    ProtobufCMessage *message = NULL;
    (void)state;
    json_begin(&f);
    assert_int_equal(
        bow_json_read(&json__everything__descriptor, TEXT(text), NULL, NULL, &message, NULL, 0), 0);
    mask.paths = paths;
    mask.n_paths = 2;
    assert_int_equal(bow_field_mask_apply(&mask.base, message, message, NULL), 0);
    assert_string_equal(json_write(&f, message), text);
    paths[1] = (char *)(uintptr_t) "nothing";
    assert_int_equal(bow_field_mask_apply(&mask.base, message, message, NULL), -ENOENT);
    mask.paths = NULL;
    assert_int_equal(bow_field_mask_apply(&mask.base, message, message, NULL), -EINVAL);
    bow_message_free(message);
    json_end(&f);
}

static void test_field_mask_of_a_path_to_nowhere_changes_nothing(void **state)
{
    static const char *const bad[] = {"nothing",           "scalars.nothing",
                                      "scalars.f_int32.x", "lists.f_message.f_int32",
                                      "maps.by_string.a",  "",
                                      "scalars.",          ".scalars",
                                      "scalars..f_int32",  "scalar"};
    struct json_fixture f;
    Google__Protobuf__FieldMask mask = GOOGLE__PROTOBUF__FIELD_MASK__INIT;
    char *paths[2] = {(char *)(uintptr_t) "scalars"};
    (void)state;
    json_begin(&f);
    ProtobufCMessage *from =
        json_read(&f, &json__everything__descriptor, "{\"scalars\":{\"fInt32\":1}}");
    ProtobufCMessage *to = json_read(&f, &json__everything__descriptor, "{}");
    mask.paths = paths;
    mask.n_paths = 2;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        paths[1] = (char *)(uintptr_t)bad[i];
        assert_int_equal(bow_field_mask_apply(&mask.base, from, to, f.arena), -ENOENT);
        assert_string_equal(json_write(&f, to), "{}");
    }
    Json__Tree tree = JSON__TREE__INIT;
    assert_int_equal(bow_field_mask_apply(&tree.base, from, to, f.arena), -EINVAL);
    assert_int_equal(bow_field_mask_apply(&mask.base, from, &tree.base, f.arena), -EINVAL);
    assert_int_equal(bow_field_mask_apply(&mask.base, NULL, to, f.arena), -EINVAL);
    json_end(&f);
}

static void test_enum_names_and_numbers(void **state)
{
    int32_t number = 42;
    (void)state;
    assert_string_equal(bow_enum_name(&json__color__descriptor, -1), "COLOR_NEGATIVE");
    assert_string_equal(bow_enum_name(&json__color__descriptor, 1), "COLOR_RED");
    assert_null(bow_enum_name(&json__color__descriptor, 2));
    assert_int_equal(bow_enum_number(&json__color__descriptor, "COLOR_CRIMSON", &number), 0);
    assert_int_equal(number, 1);
    assert_int_equal(bow_enum_number(&json__color__descriptor, "COLOR_NEGATIVE", &number), 0);
    assert_int_equal(number, -1);
    assert_int_equal(bow_enum_number(&json__color__descriptor, "COLOR", &number), -ENOENT);
    assert_int_equal(bow_enum_number(&json__color__descriptor, NULL, &number), -ENOENT);
    assert_int_equal(number, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timestamp_is_a_timespec),
        cmocka_unit_test(test_duration_is_nanoseconds),
        cmocka_unit_test(test_any_holds_a_message),
        cmocka_unit_test(test_struct_is_built_value_by_value),
        cmocka_unit_test(test_struct_functions_leave_other_messages_alone),
        cmocka_unit_test(test_field_mask_copies_what_it_names),
        cmocka_unit_test(test_field_mask_of_a_message_and_itself_changes_nothing),
        cmocka_unit_test(test_field_mask_of_a_path_to_nowhere_changes_nothing),
        cmocka_unit_test(test_enum_names_and_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
