/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Reading JSON: what each kind of field takes, the grammar to the letter, and the reasons for what
 * is refused.
 */
#include "tests/rpc/json_fixture.h"
#include <math.h>
#include <stdio.h>

#define SCALARS &json__scalars__descriptor

static void test_json_read_of_each_scalar(void **state)
{
    struct json_fixture f;
    (void)state;
    json_begin(&f);
    Json__Scalars *m = json_read(
        &f, SCALARS,
        " {\t\"fInt32\" : -2147483648 "
        ",\n\"fSint32\":-1,\r\"f_sfixed32\":7,\"fInt64\":\"-9223372036854775808\","
        "\"fSint64\":-1,\"fSfixed64\":\"5\",\"fUint32\":4294967295,\"fFixed32\":\"10\","
        "\"fUint64\":\"18446744073709551615\",\"fFixed64\":18446744073709551615,\"fFloat\":0.1,"
        "\"fDouble\":\"-0.1e1\",\"fBool\":true,\"fEnum\":\"COLOR_CRIMSON\",\"fString\":\"x\","
        "\"fBytes\":\"AAE=\",\"fMessage\":{\"fInt32\":3}} ");
    assert_int_equal(m->f_int32, INT32_MIN);
    assert_int_equal(m->f_sint32, -1);
    assert_int_equal(m->f_sfixed32, 7);
    assert_true(m->f_int64 == INT64_MIN);
    assert_int_equal(m->f_sint64, -1);
    assert_int_equal(m->f_sfixed64, 5);
    assert_int_equal(m->f_uint32, UINT32_MAX);
    assert_int_equal(m->f_fixed32, 10);
    assert_true(m->f_uint64 == UINT64_MAX);
    assert_true(m->f_fixed64 == UINT64_MAX);
    assert_true(m->f_float == 0.1f);
    assert_true(m->f_double == -1);
    assert_int_equal(m->f_bool, 1);
    assert_int_equal(m->f_enum, JSON__COLOR__COLOR_RED);
    assert_string_equal(m->f_string, "x");
    assert_int_equal(m->f_bytes.len, 2);
    assert_memory_equal(m->f_bytes.data, "\0\1", 2);
    assert_int_equal(m->f_message->f_int32, 3);
    json_end(&f);
}

static void test_json_read_of_integers_takes_what_is_one(void **state)
{
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {
        {"0", 0},
        {"-0", 0},
        {"1.0", 1},
        {"1e2", 100},
        {"1E+2", 100},
        {"1.5e1", 15},
        {"100e-2", 1},
        {"0e999999999999", 0},
        {"0.000e5", 0},
        {"1.00000000000000000000000000", 1},
        {"\"1e2\"", 100},
        {"-9223372036854775808", INT64_MIN},
        {"9223372036854775807", INT64_MAX},
        {"92233720368547758070e-1", INT64_MAX},
        {"0.0000000000000000000000000001e28", 1},
    };
    struct json_fixture f;
    char text[100];
    (void)state;
    json_begin(&f);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        snprintf(text, sizeof text, "{\"fInt64\":%s}", good[i].text);
        Json__Scalars *m = json_read(&f, SCALARS, text);
        assert_true(m->f_int64 == good[i].value);
    }
    json_end(&f);
}

static void test_json_read_of_integers_refuses_what_is_none_or_too_large(void **state)
{
    static const struct {
        const char *field, *value, *reason;
    } bad[] = {
        {"fInt32", "1.5", "no integer"},
        {"fInt32", "1e-1", "no integer"},
        {"fInt32", "1.00000000000000000000000000000001", "no integer"},
        {"fInt32", "2147483648", "out of range for 32 bits"},
        {"fInt32", "-2147483649", "out of range for 32 bits"},
        {"fUint32", "4294967296", "out of range for unsigned 32 bits"},
        {"fUint32", "-1", "out of range for unsigned 32 bits"},
        {"fInt64", "9223372036854775808", "out of range for 64 bits"},
        {"fInt64", "-9223372036854775809", "out of range for 64 bits"},
        {"fUint64", "18446744073709551616", "out of range for unsigned 64 bits"},
        {"fUint64", "1e999999999999999999999", "out of range for unsigned 64 bits"},
        {"fInt32", "\" 1\"", "a number is needed"},
        {"fInt32", "\"1 \"", "a number is needed"},
        {"fInt32", "\"\"", "a number is needed"},
        {"fInt32", "\"0x1\"", "a number is needed"},
        {"fInt32", "true", "a number is needed"},
        {"fInt32", "01", "a number is needed"},
        {"fInt32", "+1", "a number is needed"},
        {"fInt32", "-", "a number is needed"},
        {"fInt32", "1.", "a number is needed"},
        {"fInt32", ".5", "a number is needed"},
        {"fInt32", "1e", "a number is needed"},
        {"fInt32", "NaN", "a number is needed"},
        {"fInt32", "\"NaN\"", "a number is needed"},
        {"fInt32", "{}", "a number is needed"},
        {"fBool", "1", "true or false is needed"},
        {"fBool", "\"true\"", "true or false is needed"},
        {"fBool", "True", "true or false is needed"},
        {"fString", "1", "a string is needed"},
        {"fBytes", "1", "bytes as base64 in quotation marks is needed"},
        {"fMessage", "1", "an object is needed"},
        {"fEnum", "\"COLOR_PINK\"", "no value of json.Color"},
        {"fEnum", "\"COLOR\"", "no value of json.Color"},
        {"fEnum", "\"COLOR_RED\\u0000\"", "no value of json.Color"},
        {"fEnum", "\"\"", "no value of json.Color"},
        {"fEnum", "1.5", "no integer"},
    };
    struct json_fixture f;
    char text[200], reason[200], snake[20] = "f_";
    (void)state;
    json_begin(&f);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(text, sizeof text, "{\"%s\":%s}", bad[i].field, bad[i].value);
        snprintf(snake, sizeof snake, "f_%c%s", bad[i].field[1] | 0x20, bad[i].field + 2);
        bool is_below = strcmp(bad[i].field, "fMessage") == 0;
        snprintf(reason, sizeof reason, "json.Scalars.%s at 1:%zu: %s", snake,
                 strlen(bad[i].field) + 5, bad[i].reason);
        (void)is_below;
        json_refuse(&f, SCALARS, text, reason);
    }
    json_end(&f);
}

static void test_json_read_of_enums_by_name_or_number(void **state)
{
    struct json_fixture f;
    (void)state;
    json_begin(&f);
    json_again(
        &f, &json__lists__descriptor,
        "{\"fEnum\":[\"COLOR_NEGATIVE\",1,\"COLOR_UNSPECIFIED\",\"1\",77,-1,1.0]}",
        "{\"fEnum\":[\"COLOR_NEGATIVE\",\"COLOR_RED\",\"COLOR_UNSPECIFIED\",\"COLOR_RED\",77,"
        "\"COLOR_NEGATIVE\",\"COLOR_RED\"]}");
    json_end(&f);
}

static void test_json_read_of_floating_point_rounds_once(void **state)
{
    struct json_fixture f;
    (void)state;
    json_begin(&f);
    Json__Lists *m = json_read(
        &f, &json__lists__descriptor,
        "{\"fDouble\":[\"NaN\",\"Infinity\",\"-Infinity\",-0.0,9007199254740993,1e23,2."
        "2250738585072011e-308,"
        "179769313486231580793728971405301e276,\"1.5\"],"
        "\"fFloat\":[16777217,16777217.0000001,3.4028235677973366e38,1e-46,7.038531e-26,8388609.5,"
        "8.000003337860107,8.000004291534424]}");
    assert_true(isnan(m->f_double[0]));
    assert_true(isinf(m->f_double[1]) && m->f_double[1] > 0);
    assert_true(isinf(m->f_double[2]) && m->f_double[2] < 0);
    assert_true(m->f_double[3] == 0 && signbit(m->f_double[3]));
    assert_true(m->f_double[4] == 9007199254740992.0);
    assert_true(m->f_double[5] == 1e23);
    assert_true(m->f_double[6] == 2.2250738585072011e-308);
    assert_true(m->f_double[7] == 1.7976931348623157e308);
    assert_true(m->f_double[8] == 1.5);
    assert_true(m->f_float[0] == 16777216.0f);
    assert_true(m->f_float[1] == 16777218.0f);
    assert_true(m->f_float[2] == 3.4028235e38f);
    assert_true(m->f_float[3] == 0);
    assert_true(m->f_float[4] == 7.038531e-26f);
    assert_true(m->f_float[5] == 8388610.0f);
    /* By way of a double, which is half-way between two floats, they would be those that follow. */
    assert_true(m->f_float[6] == 0x1.000006p+3f);
    assert_true(m->f_float[7] == 0x1.00000ap+3f);
    json_refuse(&f, SCALARS, "{\"fDouble\":1e309}",
                "json.Scalars.f_double at 1:12: out of range for double");
    json_refuse(&f, SCALARS, "{\"fFloat\":3.5e38}",
                "json.Scalars.f_float at 1:11: out of range for float");
    json_refuse(&f, SCALARS, "{\"fDouble\":\"nan\"}",
                "json.Scalars.f_double at 1:12: a number is needed");
    json_refuse(&f, &json__lists__descriptor, "{\"fDouble\":[1,  \"-1e309\"]}",
                "json.Lists.f_double[1] at 1:17: out of range for double");
    json_refuse(&f, &json__lists__descriptor, "{\"fFloat\":[1,  -3.5e38]}",
                "json.Lists.f_float[1] at 1:16: out of range for float");
    json_refuse(&f, SCALARS, "{\"fDouble\":Infinity}",
                "json.Scalars.f_double at 1:12: a number is needed");
    json_end(&f);
}

static void test_json_read_of_bytes_takes_both_alphabets(void **state)
{
    static const struct {
        const char *text, *again;
    } good[] = {
        {"", ""},         {"+/8=", "+/8="},     {"-_8", "+/8="},
        {"-_8=", "+/8="}, {"AA==", "AA=="},     {"AA", "AA=="},
        {"AAAA", "AAAA"}, {"\\u0041A", "AA=="}, {"\\/\\/\\/\\/", "////"},
    };
    static const char *const bad[] = {"A",    "A===",  "AA=",      "AAA==", "=",    "====",
                                      "A A=", "AAAAA", "\xc3\xa9", "AA=A",  "A*==", "\\u0000AAA"};
    struct json_fixture f;
    char text[100], expected[100];
    (void)state;
    json_begin(&f);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        snprintf(text, sizeof text, "{\"fBytes\":[\"%s\"]}", good[i].text);
        snprintf(expected, sizeof expected, "{\"fBytes\":[\"%s\"]}", good[i].again);
        json_again(&f, &json__lists__descriptor, text, expected);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(text, sizeof text, "{\"fBytes\":\"%s\"}", bad[i]);
        json_refuse(&f, SCALARS, text, "json.Scalars.f_bytes at 1:11: no base64");
    }
    json_end(&f);
}

static void test_json_read_of_strings_knows_all_escapes(void **state)
{
    struct json_fixture f;
    (void)state;
    json_begin(&f);
    Json__Scalars *m =
        json_read(&f, SCALARS,
                  "{\"fString\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20AC\\uD83E\\udea2"
                  "\xc3\xa9\xe2\x82\xac\xf0\x9f\xaa\xa2 plain\x7f\"}");
    assert_string_equal(m->f_string, "\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac\xf0\x9f\xaa\xa2"
                                     "\xc3\xa9\xe2\x82\xac\xf0\x9f\xaa\xa2 plain\x7f");
    m = json_read(&f, SCALARS, "{\"\\u0066Int32\":1}"); /* names, too */
    assert_int_equal(m->f_int32, 1);
    json_end(&f);
}

static void test_json_read_refuses_strings_that_are_none(void **state)
{
    static const struct {
        const char *value, *reason;
    } bad[] = {
        {"\"a\x01\"", "1:14: a control character, which has to be escaped"},
        {"\"a\nb\"", "1:14: a control character, which has to be escaped"},
        {"\"abc", "1:12: a string without an end"},
        {"\"abc\\", "1:12: a string without an end"},
        {"\"abc\\\"", "1:12: a string without an end"},
        {"\"ab\\x41\"", "1:15: no escape that JSON has, or half of a surrogate pair"},
        {"\"\\u12\"", "1:13: no escape that JSON has, or half of a surrogate pair"},
        {"\"\\u12g4\"", "1:13: no escape that JSON has, or half of a surrogate pair"},
        {"\"\\ud83e\"", "1:13: no escape that JSON has, or half of a surrogate pair"},
        {"\"\\ud83e\\n\"", "1:13: no escape that JSON has, or half of a surrogate pair"},
        {"\"\\ud83e\\u0041\"", "1:13: no escape that JSON has, or half of a surrogate pair"},
        {"\"\\udea2\"", "1:13: no escape that JSON has, or half of a surrogate pair"},
        {"\"a\\u0000\"", "1:12: a NUL, which would end the string"},
        {"\"\xc3\xa9 \xff\"", "1:15: not UTF-8"},
        {"\"\xed\xa0\x80\"", "1:13: not UTF-8"},
        {"\"\xc0\x80\"", "1:13: not UTF-8"},
        {"'a'", "1:12: a string is needed"},
    };
    struct json_fixture f;
    char text[100], reason[200];
    (void)state;
    json_begin(&f);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        bool is_cut = bad[i].value[1] == 'a' && bad[i].value[2] == 'b' && bad[i].value[3] == 'c';
        snprintf(text, sizeof text, "{\"fString\":%s%s", bad[i].value, is_cut ? "" : "}");
        snprintf(reason, sizeof reason, "json.Scalars.f_string at %s", bad[i].reason);
        json_refuse(&f, SCALARS, text, reason);
    }
    json_end(&f);
}

static void test_json_read_refuses_what_is_no_json(void **state)
{
    static const struct {
        const char *text, *reason;
    } bad[] = {
        {"", "json.Scalars at 1:1: the text ends where an object is needed"},
        {" \n\t", "json.Scalars at 2:2: the text ends where an object is needed"},
        {"[]", "json.Scalars at 1:1: an object is needed"},
        {"null", "json.Scalars at 1:1: an object is needed"},
        {"{", "json.Scalars at 1:2: the text ends where a name in quotation marks is needed"},
        {"{,}", "json.Scalars at 1:2: a name in quotation marks is needed"},
        {"{\"fInt32\"}", "json.Scalars at 1:10: ':' is needed"},
        {"{\"fInt32\":}", "json.Scalars.f_int32 at 1:11: a number is needed"},
        {"{\"fInt32\":1,}", "json.Scalars at 1:13: a name in quotation marks is needed"},
        {"{\"fInt32\":1 \"fInt64\":1}", "json.Scalars.f_int32 at 1:13: ',' or '}' is needed"},
        {"{\"fInt32\":1", "json.Scalars.f_int32 at 1:12: the text ends where ',' or '}' is needed"},
        {"{fInt32:1}", "json.Scalars at 1:2: a name in quotation marks is needed"},
        {"{'fInt32':1}", "json.Scalars at 1:2: a name in quotation marks is needed"},
        {"{}{}", "json.Scalars at 1:3: text behind the message"},
        {"{} x", "json.Scalars at 1:4: text behind the message"},
        {"{}\xc2\xa0", "json.Scalars at 1:3: text behind the message"},
        {"\xef\xbb\xbf{}", "json.Scalars at 1:1: an object is needed"},
        {"/**/{}", "json.Scalars at 1:1: an object is needed"},
        {"{\n\"fInt32\":1,\n  \"fBool\": nul}",
         "json.Scalars.f_bool at 3:12: true or false is needed"},
        {"{\"fInt32\":1x}", "json.Scalars.f_int32 at 1:12: ',' or '}' is needed"},
        {"{\"fBool\":truely}", "json.Scalars.f_bool at 1:14: ',' or '}' is needed"},
        {"{\"fMessage\":{\"fMessage\":{\"fInt32\":{}}}}",
         "json.Scalars.f_message.f_message.f_int32 at 1:35: a number is needed"},
    };
    struct json_fixture f;
    (void)state;
    json_begin(&f);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        json_refuse(&f, SCALARS, bad[i].text, bad[i].reason);
    }
    ProtobufCMessage *message = NULL;
    assert_int_equal(
        bow_json_read(SCALARS, TEXT("{}\0"), NULL, f.arena, &message, f.reason, sizeof f.reason),
        -EBADMSG);
    assert_string_equal(f.reason, "json.Scalars at 1:3: text behind the message");
    json_end(&f);
}

static void test_json_read_of_lists_refuses_what_is_none(void **state)
{
    struct json_fixture f;
    const ProtobufCMessageDescriptor *lists = &json__lists__descriptor;
    (void)state;
    json_begin(&f);
    json_refuse(&f, lists, "{\"fInt32\":1}", "json.Lists.f_int32 at 1:11: an array is needed");
    json_refuse(&f, lists, "{\"fInt32\":[1,]}",
                "json.Lists.f_int32[1] at 1:14: a number is needed");
    json_refuse(&f, lists, "{\"fInt32\":[1 2]}",
                "json.Lists.f_int32[0] at 1:14: ',' or ']' is needed");
    json_refuse(&f, lists, "{\"fInt32\":[1}",
                "json.Lists.f_int32[0] at 1:13: ',' or ']' is needed");
    json_refuse(&f, lists, "{\"fInt32\":[null]}",
                "json.Lists.f_int32[0] at 1:12: a number is needed");
    json_refuse(&f, lists, "{\"fMessage\":[null]}",
                "json.Lists.f_message[0] at 1:14: an object is needed");
    json_refuse(&f, lists, "{\"fInt32\":[[1]]}",
                "json.Lists.f_int32[0] at 1:12: a number is needed");
    json_again(&f, lists, "{\"fInt32\":[],\"fBool\":[ true , false ]}", "{\"fBool\":[true,false]}");
    json_end(&f);
}

static void test_json_read_of_null_is_as_if_it_were_not_there(void **state)
{
    struct json_fixture f;
    (void)state;
    json_begin(&f);
    json_again(
        &f, SCALARS,
        "{\"fInt32\":null,\"fString\":null,\"fBytes\":null,\"fMessage\":null,\"fEnum\":null}",
        "{}");
    json_again(&f, &json__lists__descriptor, "{\"fInt32\":null,\"fMessage\":null}", "{}");
    json_again(&f, &json__maps__descriptor, "{\"byString\":null}", "{}");
    json_again(&f, &json__choice__descriptor, "{\"number\":null,\"text\":\"a\",\"flag\":null}",
               "{\"text\":\"a\"}");
    json_end(&f);
}

static void test_json_read_of_null_is_a_value_where_it_is_one(void **state)
{
    struct json_fixture f;
    (void)state;
    json_begin(&f);
    json_again(&f, &json__choice__descriptor, "{\"nothing\":null}", "{\"nothing\":null}");
    json_again(&f, &json__choice__descriptor, "{\"nothing\":\"NULL_VALUE\"}", "{\"nothing\":null}");
    json_again(&f, &json__choice__descriptor, "{\"value\":null}", "{\"value\":null}");
    json_again(&f, &json__known__descriptor, "{\"values\":[null,1],\"nulls\":[null]}",
               "{\"values\":[null,1],\"nulls\":[null]}");
    json_end(&f);
}

static void test_json_read_refuses_a_field_twice(void **state)
{
    struct json_fixture f;
    (void)state;
    json_begin(&f);
    json_refuse(&f, SCALARS, "{\"fInt32\":1,\"fInt32\":1}",
                "json.Scalars.f_int32 at 1:13: the field is there twice");
    json_refuse(&f, SCALARS, "{\"fInt32\":1,\"f_int32\":1}",
                "json.Scalars.f_int32 at 1:13: the field is there twice");
    json_refuse(&f, SCALARS, "{\"fInt32\":null,\"fInt32\":1}",
                "json.Scalars.f_int32 at 1:16: the field is there twice");
    json_refuse(&f, &json__lists__descriptor, "{\"fBool\":[],\"fBool\":[]}",
                "json.Lists.f_bool at 1:13: the field is there twice");
    json_refuse(&f, &json__choice__descriptor, "{\"number\":1,\"text\":\"a\"}",
                "json.Choice.text at 1:20: another field of its oneof is there already");
    json_refuse(&f, &json__maps__descriptor,
                "{\"byString\":{\"a\":\"1\",\"b\":\"\",\"\\u0061\":\"2\"}}",
                "json.Maps.by_string[0] at 1:41: a key is there twice");
    json_refuse(&f, &json__maps__descriptor, "{\"byInt32\":{\"1\":{},\"1.0\":{}}}",
                "json.Maps.by_int32[0] at 1:28: a key is there twice");
    json_end(&f);
}

static void test_json_read_of_a_large_map_finds_a_key_twice(void **state)
{
    struct json_fixture f;
    char text[40000];
    size_t len = 0;
    (void)state;
    json_begin(&f);
    len += (size_t)sprintf(text + len, "{\"bySint32\":{");
    for (int i = 0; i < 1000; i++) {
        len += (size_t)sprintf(text + len, "\"%d\":\"%d\",", i * 7919 % 1000, i);
    }
    text[len - 1] = '}';
    sprintf(text + len, "}");
    Json__Maps *m = json_read(&f, &json__maps__descriptor, text);
    assert_int_equal(m->n_by_sint32, 1000);
    sprintf(text + len - 1, ",\"500\":\"0\"}}");
    ProtobufCMessage *message = NULL;
    assert_int_equal(bow_json_read(&json__maps__descriptor,
                                   (struct bow_slice){(const uint8_t *)text, strlen(text)}, NULL,
                                   f.arena, &message, f.reason, sizeof f.reason),
                     -EBADMSG);
    assert_non_null(strstr(f.reason, ": a key is there twice"));
    json_end(&f);
}

static void test_json_read_of_map_keys_is_strict(void **state)
{
    struct json_fixture f;
    const ProtobufCMessageDescriptor *maps = &json__maps__descriptor;
    (void)state;
    json_begin(&f);
    json_refuse(&f, maps, "{\"byBool\":{\"TRUE\":\"\"}}",
                "json.Maps.by_bool[0].key at 1:12: \"true\" or \"false\" is needed");
    json_refuse(&f, maps, "{\"byInt32\":{\"a\":{}}}",
                "json.Maps.by_int32[0].key at 1:13: a number is needed");
    json_refuse(&f, maps, "{\"byInt32\":{1:{}}}",
                "json.Maps.by_int32[0].key at 1:13: a key in quotation marks is needed");
    json_refuse(&f, maps, "{\"byUint32\":{\"-1\":true}}",
                "json.Maps.by_uint32[0].key at 1:14: out of range for unsigned 32 bits");
    json_refuse(&f, maps, "{\"byString\":{\"a\" 1}}",
                "json.Maps.by_string[0].key at 1:18: ':' is needed");
    json_refuse(&f, maps, "{\"byString\":{\"a\":null}}",
                "json.Maps.by_string[0].value at 1:18: a string is needed");
    json_refuse(&f, maps, "{\"byString\":[]}", "json.Maps.by_string at 1:13: an object is needed");
    json_refuse(&f, maps, "{\"byString\":{\"a\\u0000\":\"\"}}",
                "json.Maps.by_string[0].key at 1:14: a NUL, which would end the string");
    json_end(&f);
}

static void test_json_read_of_names_in_both_forms(void **state)
{
    struct json_fixture f;
    const char *text =
        "{\"plain\":1,\"two_words\":2,\"a1b\":3,\"HTTPCode\":4,\"doubleLine\":5,\"_lead\":6,"
        "\"trail\":7,\"own\":8,\"swapped_a\":9}";
    (void)state;
    json_begin(&f);
    Json__Names *m = json_read(&f, &json__names__descriptor, text);
    assert_int_equal(m->plain, 1);
    assert_int_equal(m->two_words, 2);
    assert_int_equal(m->a_1b, 3);
    assert_int_equal(m->httpcode, 4);
    assert_int_equal(m->double__line, 5);
    assert_int_equal(m->_lead, 6);
    assert_int_equal(m->trail_, 7);
    assert_int_equal(m->own, 8);
    assert_int_equal(m->swapped_a, 9);
    if (json_has_infos()) {
        m = json_read(&f, &json__names__descriptor, "{\"@own\\\"\\\\\xc3\xa9\":8,\"swappedZ\":9}");
        assert_int_equal(m->own, 8);
        assert_int_equal(m->swapped_a, 9);
    }
    json_refuse(&f, &json__names__descriptor, "{\"two_Words\":1}",
                "json.Names at 1:2: no field \"two_Words\"");
    json_refuse(&f, &json__names__descriptor, "{\"twoWord\":1}",
                "json.Names at 1:2: no field \"twoWord\"");
    json_refuse(&f, &json__names__descriptor, "{\"twoWordss\":1}",
                "json.Names at 1:2: no field \"twoWordss\"");
    json_refuse(&f, &json__names__descriptor, "{\"plain\\u0000\":1}",
                "json.Names at 1:2: no field \"plain?\"");
    json_refuse(&f, &json__names__descriptor, "{\"\":1}", "json.Names at 1:2: no field \"\"");
    json_end(&f);
}

static void test_json_read_ignores_what_is_unknown_when_told_to(void **state)
{
    struct json_fixture f;
    (void)state;
    json_begin(&f);
    f.options.ignore_unknown = true;
    json_again(&f, SCALARS,
               "{\"x\":{\"a\":[1,-2.5e3,\"\\u0000\\ud83e\\udea2\",true,false,null,{},[]],\"a\":1},"
               "\"fInt32\":1,"
               "\"y\":null,\"fEnum\":\"COLOR_PINK\"}",
               "{\"fInt32\":1}");
    json_again(&f, &json__lists__descriptor, "{\"fEnum\":[\"COLOR_PINK\",\"COLOR_RED\"]}",
               "{\"fEnum\":[\"COLOR_RED\"]}");
    json_again(&f, &json__maps__descriptor, "{\"byFixed32\":{\"1\":\"COLOR_PINK\",\"2\":1}}",
               "{\"byFixed32\":{\"2\":\"COLOR_RED\"}}");
    json_refuse(&f, SCALARS, "{\"x\":[1,}", "json.Scalars at 1:9: a value is needed");
    json_refuse(&f, SCALARS, "{\"x\":\"\\ud83e\"}",
                "json.Scalars at 1:7: no escape that JSON has, or half of a surrogate pair");
    json_refuse(&f, SCALARS, "{\"x\":{1:2}}",
                "json.Scalars at 1:7: a name in quotation marks is needed");
    json_refuse(&f, SCALARS, "{\"x\":01}", "json.Scalars at 1:6: a number is needed");
    json_refuse(&f, SCALARS, "{\"x\":tru}", "json.Scalars at 1:6: a value is needed");
    json_end(&f);
}

static void test_json_read_of_strings_as_bytes_takes_a_nul(void **state)
{
    struct json_fixture f;
    const ProtobufCMessageDescriptor *type = &json2__text__descriptor;
    const char *text = "{\"text\":\"a\\u0000\xc3\xa9\",\"more\":[\"\",\"b\"],\"bytes\":\"AA==\"}";
    (void)state;
    json_begin(&f);
    Json2__Text *message = json_read(&f, type, text);
    assert_int_equal(message->text.len, 4);
    assert_memory_equal(message->text.data, "a\0\xc3\xa9", 4);
    assert_int_equal(message->more[0].len, 0);
    json_again(&f, type, text, text);
    json_refuse(&f, type, "{\"text\":1}", "json2.Text.text at 1:9: a string is needed");
    message->text.data[3] = 'x';
    json_refuse_write(&f, message, "json2.Text.text: not UTF-8");
    json_end(&f);
}

static void test_json_read_of_required_fields_must_be_there(void **state)
{
    struct json_fixture f;
    const ProtobufCMessageDescriptor *outer = &json2__outer__descriptor;
    (void)state;
    json_begin(&f);
    json_again(
        &f, outer,
        "{\"name\":\"\",\"inner\":{\"number\":0},\"byName\":{\"a\":{\"number\":1,\"seven\":7}}}",
        "{\"name\":\"\",\"inner\":{\"number\":0},\"byName\":{\"a\":{\"number\":1,\"seven\":7}}}");
    json_refuse(&f, outer, "{}", "json2.Outer.name at 1:2: required, and missing");
    json_refuse(&f, outer, "{\"name\":\"\",\"inners\":[{\"number\":1},{\"text\":\"\"}]}",
                "json2.Outer.inners[1].number at 1:45: required, and missing");
    json_end(&f);
}

static void test_json_read_of_required_fields_that_are_null_is_refused(void **state)
{
    struct json_fixture f;
    const ProtobufCMessageDescriptor *outer = &json2__outer__descriptor;
    (void)state;
    json_begin(&f);
    json_refuse(&f, outer, "{\"name\":null}", "json2.Outer.name at 1:9: required, and null");
    json_refuse(&f, outer, "{\"name\":\"\",\"byName\":{\"a\":{\"number\": null}}}",
                "json2.Outer.by_name[0].value.number at 1:37: required, and null");
    json_end(&f);
}

static void test_json_read_of_a_required_enum_does_not_ignore_its_value(void **state)
{
    struct json_fixture f;
    ProtobufCMessageDescriptor type = json__scalars__descriptor;
    ProtobufCFieldDescriptor fields[32];
    (void)state;
    json_begin(&f);
    assert_true(type.n_fields <= 32);
    memcpy(fields, type.fields, type.n_fields * sizeof fields[0]);
    fields[13].label = PROTOBUF_C_LABEL_REQUIRED;
    type.fields = fields;
    type.message_init = NULL;
    f.options.ignore_unknown = true;
    json_refuse(&f, &type, "{\"fEnum\": \"COLOR_NONE\"}",
                "json.Scalars.f_enum at 1:11: required, and no value that is known");
    json_end(&f);
}

static void nested(char *text, const char *open, const char *middle, char close, size_t n)
{
    text[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        strcat(text, open);
    }
    strcat(text, middle);
    size_t len = strlen(text);
    memset(text + len, close, n);
    text[len + n] = '\0';
}

static void test_json_read_of_the_depth_that_is_allowed_and_one_more(void **state)
{
    struct json_fixture f;
    char text[4000];
    (void)state;
    json_begin(&f);
    nested(text, "{\"left\":", "{}", '}', BOW_LIMIT_MESSAGE_DEPTH);
    json_read(&f, &json__tree__descriptor, text);
    nested(text, "{\"left\":", "{}", '}', BOW_LIMIT_MESSAGE_DEPTH + 1);
    json_refuse(&f, &json__tree__descriptor, text,
                "json.Tree.left.left.left.left.(92 more).left.left.left.left.left at 1:809: nested "
                "deeper than "
                "100 levels");
    f.options.max_depth = 2;
    json_read(&f, &json__tree__descriptor, "{\"left\":{\"left\":{}}}");
    json_refuse(&f, &json__tree__descriptor, "{\"left\":{\"left\":{\"left\":{}}}}",
                "json.Tree.left.left.left at 1:25: nested deeper than 2 levels");
    json_refuse(&f, &json__maps__descriptor, "{\"byInt32\":{\"1\":{\"fMessage\":{}}}}",
                "json.Maps.by_int32[0].value.f_message at 1:29: nested deeper than 2 levels");
    f.options.ignore_unknown = true;
    json_read(&f, &json__tree__descriptor, "{\"x\":[[]]}");
    json_refuse(&f, &json__tree__descriptor, "{\"x\":[[[]]]}",
                "json.Tree at 1:8: nested deeper than 2 levels");
    json_end(&f);
}

/* Each beginning of a text is refused, and nothing beyond it is read. */
static void test_json_read_cut_at_each_byte_is_refused(void **state)
{
    static const char text[] =
        "{\"scalars\":{\"fInt32\":-1.0e0,\"fBool\":true,\"fBytes\":\"AA==\",\"fString\":"
        "\"\\ud83e\\udea2\\n\xc3\xa9\"},"
        "\"maps\":{\"byBool\":{\"true\":\"\"}},\"known\":{\"value\":[null,{\"a\":1}],\"timestamp\":"
        "\"2024-02-29T00:00:00Z\",\"any\":{\"@type\":\"a/json.Tree\",\"name\":\"b\"}}}";
    struct json_fixture f;
    char cut[sizeof text];
    (void)state;
    json_begin(&f);
    f.options.files = json_files;
    f.options.n_files = JSON_FILES;
    json_read(&f, &json__everything__descriptor, text);
    for (size_t len = 0; len < sizeof text - 1; len++) {
        ProtobufCMessage *message = NULL;
        char *copy = malloc(len > 0 ? len : 1);
        memcpy(copy, text, len);
        (void)cut;
        assert_int_equal(bow_json_read(&json__everything__descriptor,
                                       (struct bow_slice){(const uint8_t *)copy, len}, &f.options,
                                       f.arena, &message, f.reason, sizeof f.reason),
                         -EBADMSG);
        assert_non_null(strstr(f.reason, " at 1:"));
        free(copy);
    }
    json_end(&f);
}

static int read_scenario(struct bow_context *context, void *user)
{
    ProtobufCMessage *message = NULL;
    const char *text = user;
    struct bow_json_options options = BOW_JSON_OPTIONS_INIT;
    struct bow_arena *arena = bow_arena_new(context, 0);
    options.files = json_files;
    options.n_files = JSON_FILES;
    if (arena == NULL) {
        return -ENOMEM;
    }
    int rc = bow_json_read(&json__everything__descriptor,
                           (struct bow_slice){(const uint8_t *)text, strlen(text)}, &options, arena,
                           &message, NULL, 0);
    assert_int_equal(bow_arena_failed(arena), rc == -ENOMEM);
    bow_arena_free(arena);
    return rc;
}

static void test_json_read_without_memory_says_so(void **state)
{
    char text[6000];
    (void)state;
    snprintf(text, sizeof text,
             "{\"scalars\":{\"fString\":\"%01000d\",\"fBytes\":\"%01000d\"},\"lists\":{\"fInt32\":["
             "1,2,3,4,5]},"
             "\"maps\":{\"byString\":{\"a\":\"b\"}},\"known\":{\"any\":{\"@type\":\"a/"
             "json.Tree\",\"name\":\"%01000d\"},"
             "\"fieldMask\":\"a,b\",\"value\":{\"a\":[1]}}}",
             0, 0, 0);
    assert_in_range(test_alloc_fail_each(NULL, read_scenario, text), 4, 100);
}

static void test_json_read_ends_where_the_arena_does(void **state)
{
    struct json_fixture f;
    char *text = malloc(300001);
    ProtobufCMessage *message = NULL;
    (void)state;
    assert_non_null(text);
    strcpy(text, "{\"children\":[");
    for (size_t i = 0; i < 90000; i++) {
        memcpy(text + 13 + 3 * i, "{},", 3);
    }
    strcpy(text + 13 + 3 * 90000 - 1, "]}");
    json_begin(&f);
    struct bow_arena *small = bow_arena_new(f.context, 1 << 20);
    assert_int_equal(bow_json_read(&json__tree__descriptor,
                                   (struct bow_slice){(const uint8_t *)text, strlen(text)}, NULL,
                                   small, &message, f.reason, sizeof f.reason),
                     -ENOMEM);
    assert_non_null(strstr(f.reason, "no memory: "));
    assert_true(bow_arena_used(small) <= 1 << 20);
    bow_arena_free(small);
    free(text);
    json_end(&f);
}

static void test_json_read_into_the_heap_is_the_callers(void **state)
{
    ProtobufCMessage *message = NULL;
    (void)state;
    assert_int_equal(bow_json_read(&json__tree__descriptor,
                                   TEXT("{\"name\":\"a\",\"children\":[{}]}"), NULL, NULL, &message,
                                   NULL, 0),
                     0);
    assert_string_equal(((Json__Tree *)message)->name, "a");
    bow_message_free(message);
    assert_int_equal(
        bow_json_read(&json__tree__descriptor, TEXT("{"), NULL, NULL, &message, NULL, 0), -EBADMSG);
}

static void test_json_read_arrays_may_be_added_to(void **state)
{
    struct json_fixture f;
    (void)state;
    json_begin(&f);
    Json__Lists *m = json_read(&f, &json__lists__descriptor, "{\"fInt32\":[1,2,3]}");
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(&json__lists__descriptor, "f_int32");
    for (int32_t i = 4; i < 100; i++) {
        assert_true(bow_message_add_scalar(&m->base, field, &i, f.arena));
    }
    for (int32_t i = 1; i < 100; i++) {
        assert_int_equal(m->f_int32[i - 1], i);
    }
    json_end(&f);
}

static void test_json_read_options_out_of_range_are_refused(void **state)
{
    struct json_fixture f;
    ProtobufCMessage *message = NULL;
    (void)state;
    json_begin(&f);
    f.options.max_depth = BOW_LIMIT_MESSAGE_DEPTH + 1;
    assert_int_equal(
        bow_json_read(SCALARS, TEXT("{}"), &f.options, f.arena, &message, f.reason, 10), -EINVAL);
    assert_string_equal(f.reason, "options: ");
    f.options.max_depth = 0;
    f.options.size += 8;
    assert_int_equal(bow_json_read(SCALARS, TEXT("{}"), &f.options, f.arena, &message, NULL, 0),
                     -EINVAL);
    json_end(&f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_read_of_each_scalar),
        cmocka_unit_test(test_json_read_of_integers_takes_what_is_one),
        cmocka_unit_test(test_json_read_of_integers_refuses_what_is_none_or_too_large),
        cmocka_unit_test(test_json_read_of_enums_by_name_or_number),
        cmocka_unit_test(test_json_read_of_floating_point_rounds_once),
        cmocka_unit_test(test_json_read_of_bytes_takes_both_alphabets),
        cmocka_unit_test(test_json_read_of_strings_knows_all_escapes),
        cmocka_unit_test(test_json_read_refuses_strings_that_are_none),
        cmocka_unit_test(test_json_read_refuses_what_is_no_json),
        cmocka_unit_test(test_json_read_of_lists_refuses_what_is_none),
        cmocka_unit_test(test_json_read_of_null_is_as_if_it_were_not_there),
        cmocka_unit_test(test_json_read_of_null_is_a_value_where_it_is_one),
        cmocka_unit_test(test_json_read_refuses_a_field_twice),
        cmocka_unit_test(test_json_read_of_a_large_map_finds_a_key_twice),
        cmocka_unit_test(test_json_read_of_map_keys_is_strict),
        cmocka_unit_test(test_json_read_of_names_in_both_forms),
        cmocka_unit_test(test_json_read_ignores_what_is_unknown_when_told_to),
        cmocka_unit_test(test_json_read_of_strings_as_bytes_takes_a_nul),
        cmocka_unit_test(test_json_read_of_required_fields_must_be_there),
        cmocka_unit_test(test_json_read_of_required_fields_that_are_null_is_refused),
        cmocka_unit_test(test_json_read_of_a_required_enum_does_not_ignore_its_value),
        cmocka_unit_test(test_json_read_of_the_depth_that_is_allowed_and_one_more),
        cmocka_unit_test(test_json_read_cut_at_each_byte_is_refused),
        cmocka_unit_test(test_json_read_without_memory_says_so),
        cmocka_unit_test(test_json_read_ends_where_the_arena_does),
        cmocka_unit_test(test_json_read_into_the_heap_is_the_callers),
        cmocka_unit_test(test_json_read_arrays_may_be_added_to),
        cmocka_unit_test(test_json_read_options_out_of_range_are_refused),
    };
    json_choose_descriptors(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
