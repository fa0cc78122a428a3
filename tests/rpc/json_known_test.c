/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Protobuf's own types in JSON: each form, both ways, and what is out of range.
 */
#include "google/protobuf/any.pb-c.h"
#include "google/protobuf/field_mask.pb-c.h"
#include "google/protobuf/struct.pb-c.h"
#include "tests/rpc/json_fixture.h"
#include <bowline/well_known.h>
#include <math.h>
#include <stdio.h>

#define KNOWN &json__known__descriptor

/* {"FIELD":VALUE}, read and written again as {"FIELD":AGAIN}. */
static void again(struct json_fixture *f, const char *field, const char *value,
                  const char *expected)
{
    char text[500], expected_text[500];
    snprintf(text, sizeof text, "{\"%s\":%s}", field, value);
    snprintf(expected_text, sizeof expected_text, "{\"%s\":%s}", field, expected);
    json_again(f, KNOWN, text, expected_text);
}

static void refuse(struct json_fixture *f, const char *field, const char *value, const char *reason)
{
    char text[500], expected[500];
    snprintf(text, sizeof text, "{\"%s\":%s}", field, value);
    snprintf(expected, sizeof expected, "json.Known.%s", reason);
    json_refuse(f, KNOWN, text, expected);
}

static void test_json_timestamps(void **state)
{
    static const struct {
        const char *text, *expected;
    } good[] = {
        {"\"1970-01-01T00:00:00Z\"", "\"1970-01-01T00:00:00Z\""},
        {"\"0001-01-01T00:00:00Z\"", "\"0001-01-01T00:00:00Z\""},
        {"\"9999-12-31T23:59:59.999999999Z\"", "\"9999-12-31T23:59:59.999999999Z\""},
        {"\"2024-02-29T12:00:00.5Z\"", "\"2024-02-29T12:00:00.500Z\""},
        {"\"2000-02-29T12:00:00.000001Z\"", "\"2000-02-29T12:00:00.000001Z\""},
        {"\"1969-12-31T23:59:59.9Z\"", "\"1969-12-31T23:59:59.900Z\""},
        {"\"2024-01-01T00:00:00+01:30\"", "\"2023-12-31T22:30:00Z\""},
        {"\"2024-01-01T00:00:00-23:59\"", "\"2024-01-01T23:59:00Z\""},
        {"\"0001-01-01T00:00:00-00:01\"", "\"0001-01-01T00:01:00Z\""},
        {"\"2024\\u002d01-01T00:00:00Z\"", "\"2024-01-01T00:00:00Z\""},
    };
    static const char *const bad[] = {
        "\"\"",
        "\"2023-02-29T00:00:00Z\"",
        "\"1900-02-29T00:00:00Z\"",
        "\"0000-01-01T00:00:00Z\"",
        "\"0001-01-01T00:00:00+00:01\"",
        "\"9999-12-31T23:59:59-00:01\"",
        "\"2024-13-01T00:00:00Z\"",
        "\"2024-00-01T00:00:00Z\"",
        "\"2024-01-00T00:00:00Z\"",
        "\"2024-01-32T00:00:00Z\"",
        "\"2024-04-31T00:00:00Z\"",
        "\"2024-01-01T24:00:00Z\"",
        "\"2024-01-01T00:60:00Z\"",
        "\"2024-01-01T00:00:60Z\"",
        "\"2024-01-01t00:00:00Z\"",
        "\"2024-01-01T00:00:00z\"",
        "\"2024-01-01 00:00:00Z\"",
        "\"2024-01-01T00:00:00\"",
        "\"2024-01-01T00:00:00.Z\"",
        "\"2024-01-01T00:00:00.0000000001Z\"",
        "\"2024-01-01T00:00:00+0100\"",
        "\"2024-01-01T00:00:00+24:00\"",
        "\"2024-01-01T00:00:00Z \"",
        "\"24-01-01T00:00:00Z\"",
        "\"12024-01-01T00:00:00Z\"",
        "\"2024-1-01T00:00:00Z\"",
    };
    struct json_fixture f;
    (void)state;
    json_begin(&f);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        again(&f, "timestamp", good[i].text, good[i].expected);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        refuse(&f, "timestamp", bad[i],
               "timestamp at 1:14: a time as \"2024-02-29T12:00:00.5Z\", of the years 1 to 9999, "
               "is needed");
    }
    refuse(&f, "timestamp", "1",
           "timestamp at 1:14: a time as \"2024-02-29T12:00:00.5Z\", of the years 1 to 9999, is "
           "needed");
    json_end(&f);
}

static void test_json_timestamps_of_each_day_are_those_of_the_c_library(void **state)
{
    struct json_fixture f;
    char expected[60];
    (void)state;
    json_begin(&f);
    Google__Protobuf__Timestamp *m = (Google__Protobuf__Timestamp *)bow_message_new(
        &google__protobuf__timestamp__descriptor, f.arena);
    for (int64_t seconds = -62135596800; seconds <= 253402300799; seconds += 86400 * 97 + 3601) {
        time_t time = (time_t)seconds;
        struct tm parts;
        m->seconds = seconds;
        gmtime_r(&time, &parts);
        snprintf(expected, sizeof expected, "\"%04d-%02d-%02dT%02d:%02d:%02dZ\"",
                 parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min,
                 parts.tm_sec);
        bow_arena_reset(f.arena);
        Google__Protobuf__Timestamp again = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
        again.seconds = seconds;
        assert_string_equal(json_write(&f, &again), expected);
        m = json_read(&f, &google__protobuf__timestamp__descriptor, expected);
        assert_true(m->seconds == seconds);
    }
    json_end(&f);
}

static void test_json_durations(void **state)
{
    static const struct {
        const char *text, *expected;
    } good[] = {
        {"\"0s\"", "\"0s\""},
        {"\"-0s\"", "\"0s\""},
        {"\"1.5s\"", "\"1.500s\""},
        {"\"-1.5s\"", "\"-1.500s\""},
        {"\"-0.5s\"", "\"-0.500s\""},
        {"\"0.000000001s\"", "\"0.000000001s\""},
        {"\"1.000001s\"", "\"1.000001s\""},
        {"\"315576000000s\"", "\"315576000000s\""},
        {"\"-315576000000.999999999s\"", "\"-315576000000.999999999s\""},
        {"\"0001s\"", "\"1s\""},
    };
    static const char *const bad[] = {"\"\"",
                                      "\"s\"",
                                      "\"1\"",
                                      "\"1S\"",
                                      "\"1 s\"",
                                      "\".5s\"",
                                      "\"1.s\"",
                                      "\"+1s\"",
                                      "\"--1s\"",
                                      "\"1.0000000001s\"",
                                      "\"315576000001s\"",
                                      "\"1e3s\"",
                                      "\"99999999999999999999999999s\"",
                                      "\"1ms\"",
                                      "1"};
    struct json_fixture f;
    (void)state;
    json_begin(&f);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        again(&f, "duration", good[i].text, good[i].expected);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        refuse(&f, "duration", bad[i],
               "duration at 1:13: a duration as \"1.5s\", within 10,000 years, is needed");
    }
    json_end(&f);
}

static void test_json_times_out_of_range_are_not_written(void **state)
{
    struct json_fixture f;
    Json__Known m = JSON__KNOWN__INIT;
    Google__Protobuf__Timestamp timestamp = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
    Google__Protobuf__Duration duration = GOOGLE__PROTOBUF__DURATION__INIT;
    (void)state;
    json_begin(&f);
    m.timestamp = &timestamp;
    timestamp.seconds = 253402300800;
    json_refuse_write(
        &f, &m, "json.Known.timestamp: no time of the years 1 to 9999 (253402300800 s, 0 ns)");
    timestamp.seconds = -62135596801;
    json_refuse_write(
        &f, &m, "json.Known.timestamp: no time of the years 1 to 9999 (-62135596801 s, 0 ns)");
    timestamp.seconds = 0;
    timestamp.nanos = -1;
    json_refuse_write(&f, &m, "json.Known.timestamp: no time of the years 1 to 9999 (0 s, -1 ns)");
    timestamp.nanos = 1000000000;
    json_refuse_write(&f, &m,
                      "json.Known.timestamp: no time of the years 1 to 9999 (0 s, 1000000000 ns)");
    m.timestamp = NULL;
    m.duration = &duration;
    duration.seconds = 1;
    duration.nanos = -1;
    json_refuse_write(
        &f, &m, "json.Known.duration: no duration within 10,000 years, of one sign (1 s, -1 ns)");
    duration.seconds = 315576000001;
    duration.nanos = 0;
    json_refuse_write(
        &f, &m,
        "json.Known.duration: no duration within 10,000 years, of one sign (315576000001 s, 0 ns)");
    json_end(&f);
}

static void test_json_field_masks(void **state)
{
    static const char *const bad[] = {"\",\"",   "\"a,\"",       "\",a\"",   "\"a_b\"",
                                      "\"a b\"", "\"\xc3\xa9\"", "\"a,,b\"", "\"*\""};
    static const char *const unwritable[] = {"fooBar", "foo__bar", "foo_", "foo_1",
                                             "a b",    "a,b",      "A",    ""};
    struct json_fixture f;
    (void)state;
    json_begin(&f);
    again(&f, "fieldMask", "\"\"", "\"\"");
    again(&f, "fieldMask", "\"a\"", "\"a\"");
    again(&f, "fieldMask", "\"fooBar.bazQux,b,c.d1.e\"", "\"fooBar.bazQux,b,c.d1.e\"");
    Json__Known *m = json_read(&f, KNOWN, "{\"fieldMask\":\"fooBar.bazQux,b\"}");
    assert_int_equal(m->field_mask->n_paths, 2);
    assert_string_equal(m->field_mask->paths[0], "foo_bar.baz_qux");
    assert_string_equal(m->field_mask->paths[1], "b");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        refuse(&f, "fieldMask", bad[i],
               "field_mask at 1:14: paths of names in lowerCamelCase are needed");
    }
    refuse(&f, "fieldMask", "[]",
           "field_mask at 1:14: paths in quotation marks, with commas between is needed");
    for (size_t i = 0; i < sizeof unwritable / sizeof unwritable[0]; i++) {
        m->field_mask->paths[1] = (char *)(uintptr_t)unwritable[i];
        json_refuse_write(&f, m,
                          "json.Known.field_mask.paths[1]: no path of names in lower_snake_case");
    }
    json_end(&f);
}

static void test_json_values_hold_any_json(void **state)
{
    static const char *const values[] = {
        "null",
        "true",
        "false",
        "0",
        "-1.5",
        "1e+300",
        "\"\"",
        "\"a\\nb\"",
        "[]",
        "{}",
        "[1,\"a\",null,[],{}]",
        "{\"a\":1,\"b\":{\"c\":[true]}}",
    };
    struct json_fixture f;
    (void)state;
    json_begin(&f);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        again(&f, "value", values[i], values[i]);
    }
    again(&f, "struct", "{\"a\":[{\"b\":null}]}", "{\"a\":[{\"b\":null}]}");
    again(&f, "listValue", "[null,{},[1]]", "[null,{},[1]]");
    refuse(&f, "value", "1e400", "value.number_value at 1:10: out of range for double");
    refuse(&f, "value", "nul", "value.null_value at 1:10: a value is needed");
    refuse(&f, "value", "{\"a\":1,\"a\":2}",
           "value.struct_value.fields[0] at 1:22: a key is there twice");
    refuse(&f, "value", "[1,]", "value.list_value.values[1] at 1:13: a value is needed");
    refuse(&f, "struct", "[]", "struct.fields at 1:11: an object is needed");
    refuse(&f, "listValue", "{}", "list_value.values at 1:14: an array is needed");
    Google__Protobuf__Value value = GOOGLE__PROTOBUF__VALUE__INIT;
    assert_string_equal(json_write(&f, &value), "null");
    value.kind_case = GOOGLE__PROTOBUF__VALUE__KIND_NUMBER_VALUE;
    value.number_value = (double)INFINITY;
    json_refuse_write(&f, &value, "google.protobuf.Value.number_value: JSON has no number for it");
    json_end(&f);
}

static void test_json_values_that_are_none_are_refused_as_values(void **state)
{
    static const char *const bad[] = {"x", "+1", ".5", "'a'", "NaN", "}"};
    struct json_fixture f;
    (void)state;
    json_begin(&f);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        refuse(&f, "value", bad[i], "value at 1:10: a value is needed");
    }
    refuse(&f, "value", "-", "value.number_value at 1:10: a number is needed");
    json_end(&f);
}

static void test_json_values_nest_as_deep_as_their_messages(void **state)
{
    struct json_fixture f;
    char text[300];
    (void)state;
    json_begin(&f);
    memset(text, '[', 51);
    memset(text + 51, ']', 51);
    text[102] = '\0';
    /* Each array is a Value and a ListValue, and the first Value the message itself. */
    json_refuse(&f, &google__protobuf__value__descriptor, text,
                "google.protobuf.Value.list_value.values[0].list_value.values[0].(92 "
                "more).list_value.values[0]"
                ".list_value.values[0].list_value at 1:51: nested deeper than 100 levels");
    Google__Protobuf__Value *m = json_read(&f, &google__protobuf__value__descriptor, "[[[[]]]]");
    assert_string_equal(json_write(&f, m), "[[[[]]]]");
    f.options.max_depth = 6;
    assert_string_equal(
        json_write(&f, json_read(&f, &google__protobuf__value__descriptor, "[[[]]]")), "[[[]]]");
    json_refuse_write(&f, m,
                      "google.protobuf.Value.list_value.values[0].list_value.values[0].list_value."
                      "values[0].list_value: "
                      "nested deeper than 6 levels");
    json_end(&f);
}

static void test_json_wrappers_are_their_values(void **state)
{
    struct json_fixture f;
    const char *text =
        "{\"doubleValue\":1.5,\"floatValue\":0,\"int64Value\":\"-1\",\"uint64Value\":\"1\","
        "\"int32Value\":0,\"uint32Value\":1,\"boolValue\":false,\"stringValue\":\"\","
        "\"bytesValue\":\"\"}";
    (void)state;
    json_begin(&f);
    json_again(&f, KNOWN, text, text);
    json_again(
        &f, KNOWN,
        "{\"int64Value\":1,\"int32Value\":\"2\",\"int64Values\":[\"3\",4],\"boolValue\":null}",
        "{\"int64Value\":\"1\",\"int32Value\":2,\"int64Values\":[\"3\",\"4\"]}");
    refuse(&f, "int64Values", "[null]", "int64_values[0].value at 1:17: a number is needed");
    refuse(&f, "int32Value", "{\"value\":1}", "int32_value.value at 1:15: a number is needed");
    json_again(&f, KNOWN, "{\"empty\":{}}", "{\"empty\":{}}");
    refuse(&f, "empty", "1", "empty at 1:10: an object is needed");
    json_end(&f);
}

static void test_json_any_holds_types_of_the_files(void **state)
{
    struct json_fixture f;
    (void)state;
    json_begin(&f);
    refuse(&f, "any", "{\"@type\":\"type.googleapis.com/json.Tree\"}",
           "any at 1:8: the type \"type.googleapis.com/json.Tree\" is not among those that "
           "options.files has");
    f.options.files = json_files;
    f.options.n_files = JSON_FILES;
    again(&f, "any", "{}", "{}");
    again(&f, "any", "{\"@type\":\"type.googleapis.com/json.Tree\",\"name\":\"a\",\"left\":{}}",
          "{\"@type\":\"type.googleapis.com/json.Tree\",\"name\":\"a\",\"left\":{}}");
    again(&f, "any", "{\"name\":\"a\",\"left\":{\"name\":\"}\"},\"@type\":\"x/json.Tree\"}",
          "{\"@type\":\"x/json.Tree\",\"name\":\"a\",\"left\":{\"name\":\"}\"}}");
    again(&f, "any", "{\"value\":\"1.5s\",\"@type\":\"x/google.protobuf.Duration\"}",
          "{\"@type\":\"x/google.protobuf.Duration\",\"value\":\"1.500s\"}");
    again(&f, "any", "{\"@type\":\"x/google.protobuf.Value\",\"value\":null}",
          "{\"@type\":\"x/google.protobuf.Value\",\"value\":null}");
    again(&f, "any",
          "{\"@type\":\"x/google.protobuf.Any\",\"value\":{\"@type\":\"x/"
          "json.Tree\",\"name\":\"b\"}}",
          "{\"@type\":\"x/google.protobuf.Any\",\"value\":{\"@type\":\"x/"
          "json.Tree\",\"name\":\"b\"}}");
    again(&f, "any", "{\"@type\":\"x/google.protobuf.Empty\"}",
          "{\"@type\":\"x/google.protobuf.Empty\"}");
    json_end(&f);
}

static void test_json_any_of_empty_may_have_a_value(void **state)
{
    static const char expected[] = "{\"@type\":\"x/google.protobuf.Empty\"}";
    struct json_fixture f;
    (void)state;
    json_begin(&f);
    f.options.files = json_files;
    f.options.n_files = JSON_FILES;
    again(&f, "any", "{\"@type\":\"x/google.protobuf.Empty\",\"value\":{}}", expected);
    again(&f, "any", "{\"value\" : { } ,\"@type\":\"x/google.protobuf.Empty\"}", expected);
    refuse(&f, "any", "{\"@type\":\"x/google.protobuf.Empty\",\"value\":{\"a\":1}}",
           "any.value at 1:52: no field \"a\"");
    refuse(&f, "any", "{\"@type\":\"x/google.protobuf.Empty\",\"value\":1}",
           "any.value at 1:51: an object is needed");
    refuse(&f, "any", "{\"@type\":\"x/google.protobuf.Empty\",\"value\":{},\"value\":{}}",
           "any.value at 1:54: a member is there twice");
    refuse(&f, "any", "{\"@type\":\"x/google.protobuf.Empty\",\"a\":1}",
           "any.value at 1:43: no field \"a\"");
    json_end(&f);
}

/* Anys in Anys, each with its type last or first; the innermost has a long name. */
static void nest_anys(char *text, size_t size, int n, bool is_last)
{
    size_t len = (size_t)snprintf(text, size, "{\"any\":");

    for (int i = 0; i < n; i++) {
        len += (size_t)snprintf(text + len, size - len, "{%s\"value\":",
                                is_last ? "" : "\"@type\":\"x/google.protobuf.Any\",");
    }
    len += (size_t)snprintf(text + len, size - len,
                            "{\"@type\":\"x/json.Tree\",\"name\":\"%020000d\"}", 0);
    for (int i = 0; i < n; i++) {
        len += (size_t)snprintf(text + len, size - len, "%s}",
                                is_last ? ",\"@type\":\"x/google.protobuf.Any\"" : "");
    }
    (void)snprintf(text + len, size - len, "}");
}

static void test_json_any_f30_types_that_stand_last_are_searched_for_so_often(void **state)
{
    static char text[32 << 10];
    struct json_fixture f;
    (void)state;
    json_begin(&f);
    f.options.files = json_files;
    f.options.n_files = JSON_FILES;
    nest_anys(text, sizeof(text), BOW_LIMIT_JSON_TYPE_SEARCHES, true);
    (void)json_read(&f, KNOWN, text);
    nest_anys(text, sizeof(text), 2 * BOW_LIMIT_JSON_TYPE_SEARCHES, false);
    (void)json_read(&f, KNOWN, text);
    nest_anys(text, sizeof(text), 2 * BOW_LIMIT_JSON_TYPE_SEARCHES, true);
    json_refuse(
        &f, KNOWN, text,
        "json.Known.any.value.value.value.(1 more).value.value.value.value at 1:80: \"@type\" "
        "stands behind too much too often: put it first (BOW_LIMIT_JSON_TYPE_SEARCHES, 8)");
    json_end(&f);
}

static void test_json_any_with_two_types_is_refused(void **state)
{
    struct json_fixture f;
    (void)state;
    json_begin(&f);
    f.options.files = json_files;
    f.options.n_files = JSON_FILES;
    refuse(&f, "any", "{\"@type\":\"x/json.Tree\",\"name\":\"a\",\"@type\":\"x/json.Known\"}",
           "any.value at 1:42: a member is there twice");
    refuse(&f, "any",
           "{\"@type\":\"x/google.protobuf.Duration\",\"value\":\"1s\",\"@type\":\"x/json.Tree\"}",
           "any.value at 1:59: a member is there twice");
    json_end(&f);
}

static void test_json_any_has_its_type_in_reasons_on_one_line(void **state)
{
    struct json_fixture f;
    Google__Protobuf__Any any = GOOGLE__PROTOBUF__ANY__INIT;
    (void)state;
    json_begin(&f);
    refuse(&f, "any", "{\"@type\":\"x/\\n\\u001b[2J\xc3\xa9\"}",
           "any at 1:8: the type \"x/\\x0a\\x1b[2J\\xc3\\xa9\" is not among those that "
           "options.files has");
    any.type_url = (char *)(uintptr_t) "x/\n";
    json_refuse_write(&f, &any,
                      "google.protobuf.Any.value holds \"x/\\x0a\", which is not in options.files");
    json_end(&f);
}

static void test_json_any_of_no_type_has_no_value(void **state)
{
    struct json_fixture f;
    Google__Protobuf__Any any = GOOGLE__PROTOBUF__ANY__INIT;
    uint8_t bytes[] = {0x0a, 0x01, 'a'};
    (void)state;
    json_begin(&f);
    assert_string_equal(json_write(&f, &any), "{}");
    any.value = (ProtobufCBinaryData){sizeof bytes, bytes};
    json_refuse_write(&f, &any, "google.protobuf.Any.value: bytes of no type");
    json_end(&f);
}

static void test_json_any_refuses_what_is_none(void **state)
{
    struct json_fixture f;
    (void)state;
    json_begin(&f);
    f.options.files = json_files;
    f.options.n_files = JSON_FILES;
    refuse(&f, "any", "1", "any at 1:8: an object is needed");
    refuse(&f, "any", "{\"name\":\"a\"}", "any at 1:8: an object with \"@type\" is needed");
    refuse(&f, "any", "{\"@type\":1}", "any at 1:17: a string is needed");
    refuse(&f, "any", "{\"@type\":\"json.Tree\"}",
           "any at 1:8: the type \"json.Tree\" is not among those that options.files has");
    refuse(&f, "any", "{\"@type\":\"x/json.Twig\"}",
           "any at 1:8: the type \"x/json.Twig\" is not among those that options.files has");
    refuse(&f, "any", "{\"@type\":\"x/json.Tree\",\"nam\":1}",
           "any.value at 1:31: no field \"nam\"");
    refuse(&f, "any", "{\"@type\":\"x/google.protobuf.Duration\"}",
           "any.value at 1:45: \"value\" is needed beside \"@type\"");
    refuse(&f, "any",
           "{\"@type\":\"x/google.protobuf.Duration\",\"value\":\"1s\",\"value\":\"1s\"}",
           "any.value at 1:59: a member is there twice");
    refuse(&f, "any", "{\"@type\":\"x/google.protobuf.Duration\",\"value\":\"1s\",\"a\":1}",
           "any.value at 1:59: no field \"a\"");
    json_end(&f);
}

static void test_json_any_that_cannot_be_shown_is_refused(void **state)
{
    struct json_fixture f;
    Google__Protobuf__Any any = GOOGLE__PROTOBUF__ANY__INIT;
    uint8_t bytes[] = {0x0a, 0x05, 'a'};
    char text[200];
    size_t len;
    (void)state;
    json_begin(&f);
    any.type_url = (char *)(uintptr_t) "x/json.Tree";
    json_refuse_write(
        &f, &any, "google.protobuf.Any.value holds \"x/json.Tree\", which is not in options.files");
    f.options.files = json_files;
    f.options.n_files = JSON_FILES;
    any.value = (ProtobufCBinaryData){sizeof bytes, bytes};
    json_refuse_write(
        &f, &any,
        "google.protobuf.Any.value holds what cannot be decoded: json.Tree.name at byte 1: length "
        "goes beyond the message's end");
    bytes[1] = 1;
    assert_string_equal(json_write(&f, &any), "{\"@type\":\"x/json.Tree\",\"name\":\"a\"}");
    assert_int_equal(bow_json_write_to(&any.base, &f.options, text, sizeof text, &len, NULL, 0), 0);
    any.type_url = (char *)(uintptr_t) "\xff/json.Tree";
    json_refuse_write(&f, &any, "google.protobuf.Any.value: the type's URL is not UTF-8");
    json_end(&f);
}

static void test_json_known_types_that_are_not_whole_are_refused(void **state)
{
    struct json_fixture f;
    Google__Protobuf__Struct structure = GOOGLE__PROTOBUF__STRUCT__INIT;
    Google__Protobuf__ListValue list = GOOGLE__PROTOBUF__LIST_VALUE__INIT;
    Google__Protobuf__FieldMask mask = GOOGLE__PROTOBUF__FIELD_MASK__INIT;
    Google__Protobuf__Value blank = {.base = {.descriptor = NULL}};
    Google__Protobuf__Value *values[] = {&blank};
    Google__Protobuf__Struct__FieldsEntry entry = {.base = {.descriptor = NULL}};
    Google__Protobuf__Struct__FieldsEntry *entries[] = {&entry};
    (void)state;
    json_begin(&f);
    structure.n_fields = list.n_values = mask.n_paths = 1;
    json_refuse_write(&f, &structure, "google.protobuf.Struct.fields is NULL, but has 1 elements");
    json_refuse_write(&f, &list, "google.protobuf.ListValue.values is NULL, but has 1 elements");
    json_refuse_write(&f, &mask, "google.protobuf.FieldMask.paths is NULL, but has 1 elements");
    structure.fields = entries;
    list.values = values;
    json_refuse_write(
        &f, &structure,
        "google.protobuf.Struct.fields[0] has no descriptor: begin it with its __INIT");
    json_refuse_write(
        &f, &list,
        "google.protobuf.ListValue.values[0] has no descriptor: begin it with its __INIT");
    json_end(&f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_timestamps),
        cmocka_unit_test(test_json_timestamps_of_each_day_are_those_of_the_c_library),
        cmocka_unit_test(test_json_durations),
        cmocka_unit_test(test_json_times_out_of_range_are_not_written),
        cmocka_unit_test(test_json_field_masks),
        cmocka_unit_test(test_json_values_hold_any_json),
        cmocka_unit_test(test_json_values_that_are_none_are_refused_as_values),
        cmocka_unit_test(test_json_values_nest_as_deep_as_their_messages),
        cmocka_unit_test(test_json_wrappers_are_their_values),
        cmocka_unit_test(test_json_known_types_that_are_not_whole_are_refused),
        cmocka_unit_test(test_json_any_holds_types_of_the_files),
        cmocka_unit_test(test_json_any_of_empty_may_have_a_value),
        cmocka_unit_test(test_json_any_f30_types_that_stand_last_are_searched_for_so_often),
        cmocka_unit_test(test_json_any_with_two_types_is_refused),
        cmocka_unit_test(test_json_any_has_its_type_in_reasons_on_one_line),
        cmocka_unit_test(test_json_any_of_no_type_has_no_value),
        cmocka_unit_test(test_json_any_refuses_what_is_none),
        cmocka_unit_test(test_json_any_that_cannot_be_shown_is_refused),
    };
    json_choose_descriptors(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
