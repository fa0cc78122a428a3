/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the generated code of presence.proto does: proto3 optional on the wire, and
 * the tables that a program links.
 */

#include "protos/inner.bow.h"
#include "protos/presence.bow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Encode and decode again; the caller frees with test__presence__presence__free_unpacked(). */
static Test__Presence__Presence *round_trip(const Test__Presence__Presence *message,
                                            size_t *ret_len)
{
    uint8_t bytes[256];
    const ProtobufCMessage *base = (const ProtobufCMessage *)message;

    *ret_len = protobuf_c_message_get_packed_size(base);
    assert_true(*ret_len <= sizeof(bytes));
    assert_int_equal(protobuf_c_message_pack(base, bytes), *ret_len);
    Test__Presence__Presence *decoded = test__presence__presence__unpack(NULL, *ret_len, bytes);
    assert_non_null(decoded);
    return decoded;
}

static void test_generated_optional_unset_stays_unset(void **state)
{
    (void)state;
    Test__Presence__Presence message = TEST__PRESENCE__PRESENCE__INIT;
    size_t len = 0;

    Test__Presence__Presence *decoded = round_trip(&message, &len);
    assert_int_equal(len, 0);
    assert_int_equal(decoded->_number_case, TEST__PRESENCE__PRESENCE___NUMBER__NOT_SET);
    assert_int_equal(decoded->_text_case, TEST__PRESENCE__PRESENCE___TEXT__NOT_SET);
    assert_int_equal(decoded->_blob_case, TEST__PRESENCE__PRESENCE___BLOB__NOT_SET);
    assert_int_equal(decoded->_flag_case, TEST__PRESENCE__PRESENCE___FLAG__NOT_SET);
    assert_int_equal(decoded->_colour_case, TEST__PRESENCE__PRESENCE___COLOUR__NOT_SET);
    assert_int_equal(decoded->_ratio_case, TEST__PRESENCE__PRESENCE___RATIO__NOT_SET);
    assert_int_equal(decoded->_inner_case, TEST__PRESENCE__PRESENCE___INNER__NOT_SET);
    test__presence__presence__free_unpacked(decoded, NULL);
}

static void test_generated_optional_set_to_zero_is_sent(void **state)
{
    (void)state;
    Test__Presence__Presence message = TEST__PRESENCE__PRESENCE__INIT;
    char empty[] = "";
    size_t len = 0;

    message._number_case = TEST__PRESENCE__PRESENCE___NUMBER_NUMBER;
    message._text_case = TEST__PRESENCE__PRESENCE___TEXT_TEXT;
    message.text = empty;
    message._flag_case = TEST__PRESENCE__PRESENCE___FLAG_FLAG;
    message._colour_case = TEST__PRESENCE__PRESENCE___COLOUR_COLOUR;
    message._ratio_case = TEST__PRESENCE__PRESENCE___RATIO_RATIO;
    Test__Presence__Presence *decoded = round_trip(&message, &len);
    assert_int_equal(len, 2 + 2 + 2 + 2 + 9);
    assert_int_equal(decoded->_number_case, TEST__PRESENCE__PRESENCE___NUMBER_NUMBER);
    assert_int_equal(decoded->number, 0);
    assert_int_equal(decoded->_text_case, TEST__PRESENCE__PRESENCE___TEXT_TEXT);
    assert_string_equal(decoded->text, "");
    assert_int_equal(decoded->_flag_case, TEST__PRESENCE__PRESENCE___FLAG_FLAG);
    assert_int_equal(decoded->_colour_case, TEST__PRESENCE__PRESENCE___COLOUR_COLOUR);
    assert_int_equal(decoded->_ratio_case, TEST__PRESENCE__PRESENCE___RATIO_RATIO);
    assert_int_equal(decoded->_blob_case, TEST__PRESENCE__PRESENCE___BLOB__NOT_SET);
    test__presence__presence__free_unpacked(decoded, NULL);
}

static void test_generated_service_table_names_each_method(void **state)
{
    (void)state;
    const struct bow_service *service = &test__presence__keeper__service;
    const struct bow_method *keep = test__presence__keeper__keep__method();
    const struct bow_method *follow = test__presence__keeper__follow__method();

    assert_int_equal(service->abi, BOW_SERVICE_ABI);
    assert_string_equal(service->name, "test.presence.Keeper");
    assert_int_equal(service->n_methods, 3);
    assert_int_equal(service->handlers_size, sizeof(struct test__presence__keeper__handlers));
    assert_string_equal(keep->path, "/test.presence.Keeper/Keep");
    assert_string_equal(keep->name, "Keep");
    assert_ptr_equal(keep->input, &test__presence__presence__descriptor);
    assert_ptr_equal(keep->output, &test__inner__inner__descriptor);
    assert_int_equal(keep->flags, BOW_METHOD_IDEMPOTENT);
    assert_int_equal(follow->flags, BOW_METHOD_SERVER_STREAMING);
    assert_null(keep->call_thunks);
    assert_null(keep->stream_thunks);
    assert_non_null(follow->invoke);
    /* The client of Follow sends one message, and its server any number. */
    assert_null(follow->call_thunks->on_message);
    assert_non_null(follow->call_thunks->on_writable);
    assert_non_null(follow->call_thunks->on_closed);
    assert_non_null(follow->stream_thunks->on_message);
    assert_null(follow->stream_thunks->on_writable);
    assert_non_null(follow->stream_thunks->on_closed);
}

struct seen {
    struct bow_call *call;
    const Test__Presence__Presence *request;
};

static void see_keep(struct bow_call *call, const Test__Presence__Presence *request, void *user)
{
    *(struct seen *)user = (struct seen){.call = call, .request = request};
}

static void test_generated_invoke_calls_the_member_of_the_handlers(void **state)
{
    (void)state;
    const struct bow_method *keep = test__presence__keeper__keep__method();
    const struct test__presence__keeper__handlers handlers = {.keep = see_keep};
    Test__Presence__Presence request = TEST__PRESENCE__PRESENCE__INIT;
    struct bow_call *call = (struct bow_call *)&request; /* only passed on */
    struct seen seen = {0};

    assert_true(keep->invoke(call, &request, &handlers, &seen));
    assert_ptr_equal(seen.call, call);
    assert_ptr_equal(seen.request, &request);
}

static void test_generated_invoke_without_a_handler_leaves_the_call(void **state)
{
    (void)state;
    const struct bow_method *keep = test__presence__keeper__keep__method();
    const struct test__presence__keeper__handlers handlers = {0};

    assert_false(keep->invoke(NULL, NULL, &handlers, NULL));
}

static void test_generated_c_name_renames_in_c_only(void **state)
{
    (void)state;
    const struct bow_method *method = test__presence__keeper__throw_away__method();
    const struct test__presence__keeper__handlers handlers = {.throw_away = see_keep};
    struct seen seen = {0};

    assert_string_equal(method->path, "/test.presence.Keeper/Throw");
    assert_string_equal(method->name, "Throw");
    assert_true(method->invoke(NULL, NULL, &handlers, &seen));
}

static void test_generated_imports_hold_what_is_linked(void **state)
{
    (void)state;
    const struct bow_file *file = &test__presence__file__protos_2fpresence_2eproto;

    /* bowline/options.proto is imported for an option and never generated */
    assert_int_equal(file->n_imports, 2);
    assert_null(file->imports[0]);
    assert_ptr_equal(file->imports[1], &test__inner__file__protos_2finner_2eproto);
    assert_int_equal(file->imports[1]->n_imports, 0);
}

static const struct bow_message_info *find_info(const struct bow_file *file, const char *name)
{
    for (size_t i = 0; i < file->n_messages; i++) {
        if (strcmp(file->messages[i].full_name, name) == 0) {
            return &file->messages[i];
        }
    }
    return NULL;
}

static void test_generated_message_info_matches_the_descriptor(void **state)
{
    (void)state;
    const struct bow_file *file = test__presence__keeper__service.file;

    assert_ptr_equal(file, &test__presence__file__protos_2fpresence_2eproto);
    assert_string_equal(file->name, "protos/presence.proto");
    assert_int_equal(file->n_messages, 2);
    for (size_t i = 0; i < file->n_messages; i++) {
        const struct bow_message_info *info = &file->messages[i];
        assert_string_equal(info->full_name, info->descriptor->name);
        assert_int_equal(info->n_fields, info->descriptor->n_fields);
        assert_true(i == 0 || strcmp(file->messages[i - 1].full_name, info->full_name) < 0);
        for (size_t j = 0; j < info->n_fields; j++) {
            assert_int_equal(info->fields[j].number, info->descriptor->fields[j].id);
        }
    }
}

static void test_generated_field_info_tells_optional_map_and_oneof(void **state)
{
    (void)state;
    const struct bow_file *file = test__presence__keeper__service.file;
    const struct bow_message_info *info = find_info(file, "test.presence.Presence");

    assert_non_null(info);
    assert_int_equal(info->n_fields, 11);
    assert_int_equal(info->fields[0].flags, BOW_FIELD_PROTO3_OPTIONAL);
    assert_int_equal(info->fields[0].oneof_index, -1);
    assert_int_equal(info->fields[7].flags, 0);
    assert_int_equal(info->fields[8].oneof_index, 0);
    assert_int_equal(info->fields[9].oneof_index, 0);
    assert_int_equal(info->fields[10].flags, BOW_FIELD_MAP);
    assert_string_equal(info->fields[10].json_name, "@names");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_generated_optional_unset_stays_unset),
        cmocka_unit_test(test_generated_optional_set_to_zero_is_sent),
        cmocka_unit_test(test_generated_service_table_names_each_method),
        cmocka_unit_test(test_generated_invoke_calls_the_member_of_the_handlers),
        cmocka_unit_test(test_generated_invoke_without_a_handler_leaves_the_call),
        cmocka_unit_test(test_generated_c_name_renames_in_c_only),
        cmocka_unit_test(test_generated_imports_hold_what_is_linked),
        cmocka_unit_test(test_generated_message_info_matches_the_descriptor),
        cmocka_unit_test(test_generated_field_info_tells_optional_map_and_oneof),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
