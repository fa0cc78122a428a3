/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the generated code of defaults.proto holds: the defaults of proto2 to the last
 * bit, in the INIT macro, in __init() and in the descriptor, and what the tables say of
 * groups, secrets and message sets.
 */

#include "protos/defaults.pb-c.h"

#include <bowline/service.h>
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static uint64_t bits(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static uint32_t float_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static void check_numbers(const Test__Defaults__Defaults *message)
{
    assert_int_equal(bits(message->largest), bits(DBL_MAX));
    assert_int_equal(bits(message->least), 1);
    assert_int_equal(bits(message->third), bits(0.1 + 0.2));
    assert_int_equal(bits(message->minus_zero), UINT64_C(1) << 63);
    assert_true(isinf(message->above) && message->above > 0);
    assert_true(isinf(message->below) && message->below < 0);
    assert_true(isnan(message->none));
    assert_int_equal(float_bits(message->tenth), float_bits(0.1f));
    assert_int_equal(float_bits(message->odd), float_bits(16777216.0f));
    assert_true(isinf(message->float_above));
    assert_int_equal(float_bits(message->tiny), 1);
    assert_true(message->i32 == INT32_MIN);
    assert_true(message->i64 == INT64_MIN);
    assert_true(message->u32 == UINT32_MAX);
    assert_true(message->u64 == UINT64_MAX);
    assert_int_equal(message->level, TEST__DEFAULTS__LEVEL__NONE);
    assert_int_equal(message->flag, 0);
    assert_int_equal(message->id, 0);
}

static void check_text(const Test__Defaults__Defaults *message)
{
    static const char text[] = "a\"?"
                               "?/\000b\303\251\n";
    static const char blob[] = "\000\"?"
                               "?=\377"
                               "7";

    assert_memory_equal(message->text, text, sizeof(text));
    assert_int_equal(message->blob.len, sizeof(blob) - 1);
    assert_memory_equal(message->blob.data, blob, sizeof(blob) - 1);
    assert_int_equal(message->chosen_case, TEST__DEFAULTS__DEFAULTS__CHOSEN__NOT_SET);
    /* The whole of the union is cleared, not only what an initializer names. */
    assert_int_equal(message->raw.len, 0);
    assert_null(message->raw.data);
}

static void test_defaults_in_the_macro_are_exact(void **state)
{
    static const Test__Defaults__Defaults constant = TEST__DEFAULTS__DEFAULTS__INIT;
    Test__Defaults__Defaults message = TEST__DEFAULTS__DEFAULTS__INIT;

    (void)state;
    check_numbers(&message);
    check_text(&message);
    check_numbers(&constant);
    check_text(&constant);
    assert_int_equal(message.has_largest, 0);
}

static void test_defaults_of_init_are_exact(void **state)
{
    Test__Defaults__Defaults message;

    (void)state;
    memset(&message, 0xA5, sizeof(message));
    test__defaults__defaults__init(&message);
    check_numbers(&message);
    check_text(&message);
    assert_int_equal(message.has_u64, 0);
    assert_ptr_equal(message.base.descriptor, &test__defaults__defaults__descriptor);
}

static void test_defaults_of_the_descriptor_are_those_of_a_new_message(void **state)
{
    static const Test__Defaults__Defaults message = TEST__DEFAULTS__DEFAULTS__INIT;
    const ProtobufCMessageDescriptor *type = &test__defaults__defaults__descriptor;

    (void)state;
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        const char *at = (const char *)&message + field->offset;
        if (field->default_value == NULL || (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) {
            continue;
        }
        if (field->type == PROTOBUF_C_TYPE_STRING) {
            assert_ptr_equal(*(char *const *)(const void *)at, field->default_value);
            continue;
        }
        bool is_wide =
            field->type == PROTOBUF_C_TYPE_DOUBLE || field->type == PROTOBUF_C_TYPE_INT64;
        assert_memory_equal(at, field->default_value, is_wide ? 8 : 4);
    }
}

static void test_defaults_enum_with_aliases_is_found_by_number_and_name(void **state)
{
    const ProtobufCEnumDescriptor *type = &test__defaults__level__descriptor;

    (void)state;
    assert_int_equal(type->n_values, 4);
    assert_int_equal(type->n_value_names, 5);
    assert_string_equal(protobuf_c_enum_descriptor_get_value(type, INT32_MIN)->name, "LOW");
    assert_string_equal(protobuf_c_enum_descriptor_get_value(type, -1)->name, "MINUS");
    assert_string_equal(protobuf_c_enum_descriptor_get_value(type, 0)->name, "ZERO");
    assert_string_equal(protobuf_c_enum_descriptor_get_value(type, 5)->name, "HIGH");
    assert_null(protobuf_c_enum_descriptor_get_value(type, 4));
    assert_int_equal(protobuf_c_enum_descriptor_get_value_by_name(type, "NONE")->value, 0);
    assert_int_equal(protobuf_c_enum_descriptor_get_value_by_name(type, "LOW")->value, INT32_MIN);
}

static const struct bow_message_info *info_of(const ProtobufCMessageDescriptor *type)
{
    const struct bow_message_info *info = type->reserved1;

    assert_non_null(info);
    assert_ptr_equal(info->descriptor, type);
    assert_string_equal(info->full_name, type->name);
    return info;
}

static void test_tables_every_descriptor_points_to_its_entry(void **state)
{
    const ProtobufCMessageDescriptor *const types[] = {
        &test__defaults__defaults__descriptor,  &test__defaults__old__descriptor,
        &test__defaults__old__part__descriptor, &test__defaults__old__names_entry__descriptor,
        &test__defaults__set__descriptor,
    };
    const struct bow_file *file = info_of(types[0])->file;

    (void)state;
    assert_string_equal(file->name, "protos/defaults.proto");
    for (size_t i = 0; i < COUNT(types); i++) {
        const struct bow_message_info *info = info_of(types[i]);
        assert_ptr_equal(info->file, file);
        assert_true(info >= file->messages && info < file->messages + file->n_messages);
    }
}

static void test_tables_tell_proto2_maps_and_sets(void **state)
{
    (void)state;
    assert_int_equal(info_of(&test__defaults__old__descriptor)->flags, BOW_MESSAGE_PROTO2);
    assert_int_equal(info_of(&test__defaults__old__names_entry__descriptor)->flags,
                     BOW_MESSAGE_PROTO2 | BOW_MESSAGE_MAP_ENTRY);
    assert_int_equal(info_of(&test__defaults__set__descriptor)->flags,
                     BOW_MESSAGE_PROTO2 | BOW_MESSAGE_SET);
}

static void test_tables_tell_groups_secrets_and_unchecked_strings(void **state)
{
    const ProtobufCFieldDescriptor *fields = test__defaults__old__descriptor.fields;
    const struct bow_message_info *info = info_of(&test__defaults__old__descriptor);

    (void)state;
    assert_int_equal(info->n_fields, 5);
    assert_int_equal(fields[0].type, PROTOBUF_C_TYPE_MESSAGE);
    assert_ptr_equal(fields[0].descriptor, &test__defaults__old__part__descriptor);
    assert_int_equal(fields[0].flags, BOW_DESCRIPTOR_GROUP);
    assert_int_equal(fields[1].flags, BOW_DESCRIPTOR_GROUP);
    assert_int_equal(fields[2].flags, PROTOBUF_C_FIELD_FLAG_DEPRECATED | BOW_DESCRIPTOR_UNCHECKED);
    assert_int_equal(fields[4].flags, 0);
    assert_int_equal(info->fields[0].flags, BOW_FIELD_GROUP);
    assert_int_equal(info->fields[2].flags, 0);
    assert_int_equal(info->fields[3].flags, BOW_FIELD_SECRET);
    assert_int_equal(info->fields[4].flags, BOW_FIELD_MAP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults_in_the_macro_are_exact),
        cmocka_unit_test(test_defaults_of_init_are_exact),
        cmocka_unit_test(test_defaults_of_the_descriptor_are_those_of_a_new_message),
        cmocka_unit_test(test_defaults_enum_with_aliases_is_found_by_number_and_name),
        cmocka_unit_test(test_tables_every_descriptor_points_to_its_entry),
        cmocka_unit_test(test_tables_tell_proto2_maps_and_sets),
        cmocka_unit_test(test_tables_tell_groups_secrets_and_unchecked_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
