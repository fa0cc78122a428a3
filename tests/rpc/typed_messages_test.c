/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The functions that are generated for messages and enums, of each kind and type of field: in an
 * arena and in the heap (each test runs in both), and in a call's arena.
 */

#include "both_ends.h"
#include "protos/typed.bow.h"
#include "protos/typed2.bow.h"
#include <bowline/limits.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Each scalar: how its functions end, and a value that is not its default. */
#define EACH_NUMBER(X)                                                                             \
    X(a_double, 1.5)                                                                               \
    X(a_float, -2.5F)                                                                              \
    X(a_int32, INT32_MIN)                                                                          \
    X(a_int64, INT64_MIN)                                                                          \
    X(a_uint32, UINT32_MAX)                                                                        \
    X(a_uint64, UINT64_MAX)                                                                        \
    X(a_sint32, -3)                                                                                \
    X(a_sint64, INT64_C(-4))                                                                       \
    X(a_fixed32, 5U)                                                                               \
    X(a_fixed64, UINT64_C(6))                                                                      \
    X(a_sfixed32, -7)                                                                              \
    X(a_sfixed64, INT64_C(-8))                                                                     \
    X(a_bool, true)

static const char blob[] = {'b', 'l', '\0', 'b'};

static struct bow_slice slice_of(ProtobufCBinaryData data)
{
    return (struct bow_slice){.data = data.data, .len = data.len};
}

static bool is_blob(ProtobufCBinaryData data)
{
    return data.len == sizeof(blob) && memcmp(data.data, blob, sizeof(blob)) == 0;
}

/* The memory that a test is run in: NULL for the heap. */
static int open_arena(void **state)
{
    *state = bow_arena_new(NULL, 0);
    return *state != NULL ? 0 : -1;
}

static int close_arena(void **state)
{
    assert_false(bow_arena_failed(*state));
    bow_arena_free(*state);
    return 0;
}

static int open_heap(void **state)
{
    *state = NULL;
    return 0;
}

/* What the heap has is freed; its leaks are AddressSanitizer's to tell. */
#define FREE(type, message, arena) type##__free((arena) == NULL ? (message) : NULL)

/* What arrives when `message` is sent is equal to it. */
#define ASSERT_ARRIVES(prefix, message, arena)                                                     \
    do {                                                                                           \
        struct bow_arena *scratch = bow_arena_new(NULL, 0);                                        \
        struct bow_slice bytes;                                                                    \
        char reason[100] = "";                                                                     \
        assert_int_equal(prefix##__encode_new(message, scratch, &bytes), 0);                       \
        assert_int_equal(prefix##__decode(bytes, NULL, arena, &arrived, reason, sizeof(reason)),   \
                         0);                                                                       \
        assert_string_equal(reason, "");                                                           \
        assert_true(prefix##__equal(message, arrived));                                            \
        bow_arena_free(scratch);                                                                   \
    } while (0)

static void test_typed_implicit_field_set_has_its_value_and_arrives(void **state)
{
    struct bow_arena *arena = *state;
    Typed__Implicit *message = typed__implicit__new(arena);
    Typed__Implicit *arrived = NULL;

#define SET(name, number) assert_true(typed__implicit__set_##name(message, number));
    EACH_NUMBER(SET)
#undef SET
    assert_true(typed__implicit__set_a_colour(message, TYPED__COLOUR__BLUE));
    assert_true(typed__implicit__set_a_string(message, "text", arena));
    assert_true(typed__implicit__set_a_bytes(message, blob, sizeof(blob), arena));
    assert_false(typed__implicit__has_a_leaf(message));
    assert_true(typed__leaf__set_number(typed__implicit__mutable_a_leaf(message, arena), 9));
    assert_true(typed__implicit__has_a_leaf(message));
#define HOLD(name, number) assert_true(message->name == (number));
    EACH_NUMBER(HOLD)
#undef HOLD
    assert_int_equal(message->a_colour, TYPED__COLOUR__BLUE);
    assert_string_equal(message->a_string, "text");
    assert_true(is_blob(message->a_bytes));
    assert_int_equal(message->a_leaf->number, 9);
    ASSERT_ARRIVES(typed__implicit, message, arena);
    FREE(typed__implicit, message, arena);
    FREE(typed__implicit, arrived, arena);
}

static void test_typed_bool_of_any_truth_is_one(void **state)
{
    struct bow_arena *arena = *state;
    Typed__Repeated *message = typed__repeated__new(arena);
    bool many = (bool)4;

    assert_true(typed__repeated__add_a_bool(message, many, arena));
    assert_int_equal(message->a_bool[0], 1);
    FREE(typed__repeated, message, arena);
}

static void test_typed_optional_field_set_to_its_default_is_there(void **state)
{
    struct bow_arena *arena = *state;
    Typed__Optional *message = typed__optional__new(arena);
    Typed__Optional *arrived = NULL;

#define SET(name, number)                                                                          \
    assert_false(typed__optional__has_##name(message));                                            \
    assert_true(typed__optional__set_##name(message, 0));                                          \
    assert_true(typed__optional__has_##name(message));
    EACH_NUMBER(SET)
#undef SET
    assert_true(typed__optional__set_a_colour(message, TYPED__COLOUR__NONE));
    assert_true(typed__optional__set_a_string(message, "", arena));
    assert_true(typed__optional__set_a_bytes(message, NULL, 0, arena));
    assert_non_null(typed__optional__mutable_a_leaf(message, arena));
    ASSERT_ARRIVES(typed__optional, message, arena);
#define ARRIVED(name, number) assert_true(typed__optional__has_##name(arrived));
    EACH_NUMBER(ARRIVED)
    ARRIVED(a_colour, )
    ARRIVED(a_string, )
    ARRIVED(a_bytes, )
    ARRIVED(a_leaf, )
#undef ARRIVED
    FREE(typed__optional, message, arena);
    FREE(typed__optional, arrived, arena);
}

static void test_typed_optional_field_cleared_is_gone(void **state)
{
    struct bow_arena *arena = *state;
    Typed__Optional *message = typed__optional__new(arena);
    Typed__Optional *empty = typed__optional__new(arena);

#define CLEAR(name, number)                                                                        \
    assert_true(typed__optional__set_##name(message, number));                                     \
    assert_true(message->name == (number));                                                        \
    typed__optional__clear_##name(message, arena);                                                 \
    assert_false(typed__optional__has_##name(message));
    EACH_NUMBER(CLEAR)
#undef CLEAR
    assert_true(typed__optional__set_a_colour(message, TYPED__COLOUR__RED));
    assert_true(typed__optional__set_a_string(message, "text", arena));
    assert_true(typed__optional__set_a_bytes(message, blob, sizeof(blob), arena));
    assert_non_null(typed__optional__mutable_a_leaf(message, arena));
    assert_false(typed__optional__equal(message, empty));
    typed__optional__clear_a_colour(message, arena);
    typed__optional__clear_a_string(message, arena);
    typed__optional__clear_a_bytes(message, arena);
    typed__optional__clear_a_leaf(message, arena);
    assert_true(typed__optional__equal(message, empty));
    FREE(typed__optional, message, arena);
    FREE(typed__optional, empty, arena);
}

static void test_typed_proto2_optional_field_sets_its_has_member(void **state)
{
    struct bow_arena *arena = *state;
    Typed2__Optional *message = typed2__optional__new(arena);
    Typed2__Optional *arrived = NULL;

#define SET(name, number)                                                                          \
    assert_true(typed2__optional__set_##name(message, number));                                    \
    assert_true(message->has_##name);                                                              \
    assert_true(message->name == (number));
    EACH_NUMBER(SET)
    SET(a_colour, TYPED2__COLOUR__RED)
#undef SET
    assert_true(typed2__optional__set_a_string(message, "text", arena));
    assert_true(typed2__optional__set_a_bytes(message, blob, sizeof(blob), arena));
    assert_true(message->has_a_bytes);
    assert_true(
        typed2__leaf__set_text(typed2__optional__mutable_a_leaf(message, arena), "leaf", arena));
    ASSERT_ARRIVES(typed2__optional, message, arena);
#define CLEAR(name, number)                                                                        \
    assert_true(typed2__optional__has_##name(message));                                            \
    typed2__optional__clear_##name(message, arena);                                                \
    assert_false(typed2__optional__has_##name(message));
    EACH_NUMBER(CLEAR)
    CLEAR(a_colour, )
    CLEAR(a_string, )
    CLEAR(a_bytes, )
    CLEAR(a_leaf, )
#undef CLEAR
    FREE(typed2__optional, message, arena);
    FREE(typed2__optional, arrived, arena);
}

static void test_typed_proto2_required_fields_set_are_all_that_is_needed(void **state)
{
    struct bow_arena *arena = *state;
    Typed2__Required *message = typed2__required__new(arena);
    Typed2__Required *arrived = NULL;

#define SET(name, number) assert_true(typed2__required__set_##name(message, number));
    EACH_NUMBER(SET)
    SET(a_colour, TYPED2__COLOUR__RED)
#undef SET
    assert_true(typed2__required__set_a_string(message, "text", arena));
    assert_true(typed2__required__set_a_bytes(message, blob, sizeof(blob), arena));
    assert_non_null(typed2__required__mutable_a_leaf(message, arena));
    ASSERT_ARRIVES(typed2__required, message, arena);
    FREE(typed2__required, message, arena);
    FREE(typed2__required, arrived, arena);
}

static void test_typed_proto2_field_cleared_has_its_default_again(void **state)
{
    struct bow_arena *arena = *state;
    Typed2__Defaults *message = typed2__defaults__new(arena);

    assert_int_equal(message->number, 5);
    assert_true(typed2__defaults__set_number(message, 6));
    assert_true(typed2__defaults__set_text(message, "six", arena));
    assert_true(typed2__defaults__set_data(message, "6", 1, arena));
    assert_true(typed2__defaults__set_colour(message, TYPED2__COLOUR__NONE));
    assert_string_equal(message->text, "six");
    typed2__defaults__clear_number(message, arena);
    typed2__defaults__clear_text(message, arena);
    typed2__defaults__clear_data(message, arena);
    typed2__defaults__clear_colour(message, arena);
    assert_int_equal(message->number, 5);
    assert_string_equal(message->text, "five");
    assert_memory_equal(message->data.data, "5", 1);
    assert_int_equal(message->colour, TYPED2__COLOUR__RED);
    FREE(typed2__defaults, message, arena);
}

static void test_typed_string_that_is_bytes_in_c_is_set_as_such(void **state)
{
    struct bow_arena *arena = *state;
    Typed2__Defaults *message = typed2__defaults__new(arena);

    assert_true(typed2__defaults__set_as_bytes(message, "text", 4, arena));
    assert_int_equal(slice_of(message->as_bytes).len, 4);
    assert_memory_equal(message->as_bytes.data, "text", 4);
    FREE(typed2__defaults, message, arena);
}

static void test_typed_group_is_filled_as_a_message(void **state)
{
    struct bow_arena *arena = *state;
    Typed2__Groups *message = typed2__groups__new(arena);

    assert_false(typed2__groups__has_one(message));
    assert_true(typed2__groups__one__set_number(typed2__groups__mutable_one(message, arena), 1));
    assert_true(typed2__groups__many__set_number(typed2__groups__add_many(message, arena), 2));
    assert_true(typed2__groups__has_one(message));
    assert_int_equal(message->one->number, 1);
    assert_int_equal(message->many[0]->number, 2);
    typed2__groups__clear_one(message, arena);
    assert_null(message->one);
    FREE(typed2__groups, message, arena);
}

static void test_typed_set_copies_and_set_ref_refers(void **state)
{
    struct bow_arena *arena = *state;
    Typed__Implicit *message = typed__implicit__new(arena);
    char text[] = "text";
    char data[] = "data";

    assert_true(typed__implicit__set_a_string(message, text, arena));
    assert_true(typed__implicit__set_a_bytes(message, data, 4, arena));
    text[0] = 'n';
    data[0] = 'r';
    assert_string_equal(message->a_string, "text");
    assert_memory_equal(message->a_bytes.data, "data", 4);
    if (arena != NULL) {
        assert_true(typed__implicit__set_a_string_ref(message, text));
        assert_true(typed__implicit__set_a_bytes_ref(message, data, 4));
        assert_ptr_equal(message->a_string, text);
        assert_ptr_equal(message->a_bytes.data, data);
    }
    FREE(typed__implicit, message, arena);
}

static void test_typed_string_set_again_replaces_the_former(void **state)
{
    struct bow_arena *arena = *state;
    Typed__Implicit *message = typed__implicit__new(arena);

    assert_true(typed__implicit__set_a_string(message, "first", arena));
    assert_true(typed__implicit__set_a_string(message, "second", arena));
    assert_string_equal(message->a_string, "second");
    FREE(typed__implicit, message, arena);
}

static void test_typed_message_mutable_is_made_once_and_set_takes_one(void **state)
{
    struct bow_arena *arena = *state;
    Typed__Implicit *message = typed__implicit__new(arena);
    Typed__Leaf *first = typed__implicit__mutable_a_leaf(message, arena);
    Typed__Leaf *second = typed__leaf__new(arena);

    assert_non_null(first);
    assert_ptr_equal(typed__implicit__mutable_a_leaf(message, arena), first);
    assert_true(typed__implicit__set_a_leaf(message, second, arena));
    assert_ptr_equal(message->a_leaf, second);
    typed__implicit__clear_a_leaf(message, arena);
    assert_null(message->a_leaf);
    FREE(typed__implicit, message, arena);
}

static void test_typed_oneof_member_set_selects_it_and_ends_the_former(void **state)
{
    struct bow_arena *arena = *state;
    Typed__Choice *message = typed__choice__new(arena);
    Typed__Choice *arrived = NULL;

    assert_true(typed__choice__set_beside(message, 1));
#define SET(name, number)                                                                          \
    assert_true(typed__choice__set_a_string(message, "former", arena));                            \
    assert_true(typed__choice__has_a_string(message));                                             \
    assert_true(typed__choice__set_##name(message, number, arena));                                \
    assert_false(typed__choice__has_a_string(message));                                            \
    assert_true(typed__choice__has_##name(message));                                               \
    assert_true(message->name == (number));                                                        \
    ASSERT_ARRIVES(typed__choice, message, arena);                                                 \
    FREE(typed__choice, arrived, arena);
    EACH_NUMBER(SET)
    SET(a_colour, TYPED__COLOUR__RED)
#undef SET
    assert_int_equal(message->choice_case, TYPED__CHOICE__CHOICE_A_COLOUR);
    assert_true(typed__choice__set_a_bytes(message, blob, sizeof(blob), arena));
    assert_int_equal(message->choice_case, TYPED__CHOICE__CHOICE_A_BYTES);
    assert_true(is_blob(message->a_bytes));
    assert_true(
        typed__leaf__set_text(typed__choice__mutable_a_leaf(message, arena), "leaf", arena));
    assert_int_equal(message->choice_case, TYPED__CHOICE__CHOICE_A_LEAF);
    assert_true(typed__choice__set_a_string(message, "text", arena));
    assert_int_equal(message->choice_case, TYPED__CHOICE__CHOICE_A_STRING);
    typed__choice__clear_a_leaf(message, arena); /* which is not the one selected */
    assert_string_equal(message->a_string, "text");
    typed__choice__clear_a_string(message, arena);
    assert_int_equal(message->choice_case, TYPED__CHOICE__CHOICE__NOT_SET);
    assert_int_equal(message->beside, 1);
    FREE(typed__choice, message, arena);
}

static void test_typed_oneof_cleared_loses_the_member_that_is_selected(void **state)
{
    struct bow_arena *arena = *state;
    Typed__Choice *message = typed__choice__new(arena);

    typed__choice__clear_choice(message, arena);
    assert_non_null(typed__choice__mutable_a_leaf(message, arena));
    typed__choice__clear_choice(message, arena);
    assert_int_equal(message->choice_case, TYPED__CHOICE__CHOICE__NOT_SET);
    assert_false(typed__choice__has_a_leaf(message));
    typed__choice__clear_choice(NULL, arena);
    FREE(typed__choice, message, arena);
}

static void test_typed_oneof_cleared_of_a_case_that_no_member_has_is_not_set(void **state)
{
    struct bow_arena *arena = *state;
    Typed__Choice *message = typed__choice__new(arena);

    assert_true(typed__choice__set_beside(message, 1));
    message->choice_case = (Typed__Choice__ChoiceCase)1000;
    typed__choice__clear_choice(message, arena);
    assert_int_equal(message->choice_case, TYPED__CHOICE__CHOICE__NOT_SET);
    assert_int_equal(message->beside, 1);
    FREE(typed__choice, message, arena);
}

static void test_typed_repeated_field_keeps_what_is_added_in_order(void **state)
{
    struct bow_arena *arena = *state;
    Typed__Repeated *message = typed__repeated__new(arena);
    Typed__Repeated *arrived = NULL;
    const size_t n = 37;

    for (size_t i = 0; i < n; i++) {
#define ADD(name, number)                                                                          \
    assert_true(typed__repeated__add_##name(message, i % 2 == 0 ? (number) : 0, arena));
        EACH_NUMBER(ADD)
#undef ADD
        assert_true(typed__repeated__add_a_colour(message, TYPED__COLOUR__BLUE, arena));
        assert_true(typed__repeated__add_a_string(message, i == 36 ? "last" : "text", arena));
        assert_true(typed__repeated__add_a_bytes(message, blob, i % (sizeof(blob) + 1), arena));
        assert_true(typed__leaf__set_number(typed__repeated__add_a_leaf(message, arena), (int)i));
    }
#define HOLD(name, number)                                                                         \
    assert_int_equal(message->n_##name, n);                                                        \
    assert_true(message->name[1] == 0);                                                            \
    assert_true(message->name[36] == (number));
    EACH_NUMBER(HOLD)
#undef HOLD
    assert_string_equal(message->a_string[0], "text");
    assert_string_equal(message->a_string[36], "last");
    assert_true(is_blob(message->a_bytes[4]));
    assert_int_equal(message->a_leaf[36]->number, 36);
    ASSERT_ARRIVES(typed__repeated, message, arena);
    FREE(typed__repeated, message, arena);
    FREE(typed__repeated, arrived, arena);
}

static void test_typed_repeated_field_that_arrived_is_added_to(void **state)
{
    struct bow_arena *arena = *state;
    Typed__Repeated *message = typed__repeated__new(arena);
    Typed__Repeated *arrived = NULL;

    for (int i = 0; i < 5; i++) {
        assert_true(typed__repeated__add_a_int32(message, i, arena));
        assert_non_null(typed__repeated__add_a_leaf(message, arena));
    }
    ASSERT_ARRIVES(typed__repeated, message, arena);
    for (int i = 5; i < 50; i++) {
        assert_true(typed__repeated__add_a_int32(arrived, i, arena));
        assert_non_null(typed__repeated__add_a_leaf(arrived, arena));
    }
    for (int i = 0; i < 50; i++) {
        assert_int_equal(arrived->a_int32[i], i);
        assert_non_null(arrived->a_leaf[i]);
    }
    FREE(typed__repeated, message, arena);
    FREE(typed__repeated, arrived, arena);
}

static void test_typed_repeated_field_cleared_is_empty(void **state)
{
    struct bow_arena *arena = *state;
    Typed__Repeated *message = typed__repeated__new(arena);
    Typed__Repeated *empty = typed__repeated__new(arena);

#define CLEAR(name, number)                                                                        \
    assert_true(typed__repeated__add_##name(message, number, arena));                              \
    typed__repeated__clear_##name(message, arena);                                                 \
    assert_int_equal(message->n_##name, 0);
    EACH_NUMBER(CLEAR)
    CLEAR(a_colour, TYPED__COLOUR__RED)
    CLEAR(a_string, "text")
#undef CLEAR
    assert_true(typed__repeated__add_a_bytes(message, blob, 2, arena));
    typed__repeated__clear_a_bytes(message, arena);
    assert_non_null(typed__repeated__add_a_leaf(message, arena));
    typed__repeated__clear_a_leaf(message, arena);
    assert_true(typed__repeated__equal(message, empty));
    FREE(typed__repeated, message, arena);
    FREE(typed__repeated, empty, arena);
}

static void test_typed_packed_field_is_added_to(void **state)
{
    struct bow_arena *arena = *state;
    Typed2__Packed *message = typed2__packed__new(arena);
    Typed2__Packed *arrived = NULL;

    for (int i = 0; i < 9; i++) {
        assert_true(typed2__packed__add_a_int32(message, i, arena));
        assert_true(typed2__packed__add_a_colour(message, TYPED2__COLOUR__RED, arena));
    }
    ASSERT_ARRIVES(typed2__packed, message, arena);
    assert_int_equal(arrived->a_int32[8], 8);
    FREE(typed2__packed, message, arena);
    FREE(typed2__packed, arrived, arena);
}

/* The map that has values of each type, and a key of it: as typed.proto has them. */
#define EACH_MAP_OF_NUMBERS(X)                                                                     \
    X(a_double, INT32_MIN, 1.5)                                                                    \
    X(a_float, INT64_MIN, -2.5F)                                                                   \
    X(a_int32, UINT32_MAX, INT32_MIN)                                                              \
    X(a_int64, UINT64_MAX, INT64_MIN)                                                              \
    X(a_uint32, -1, UINT32_MAX)                                                                    \
    X(a_uint64, INT64_C(-1), UINT64_MAX)                                                           \
    X(a_sint32, 5U, -3)                                                                            \
    X(a_sint64, UINT64_C(6), INT64_C(-4))                                                          \
    X(a_fixed32, -7, 5U)                                                                           \
    X(a_fixed64, INT64_C(-8), UINT64_C(6))                                                         \
    X(a_sfixed32, true, -7)                                                                        \
    X(a_sfixed64, "key", INT64_C(-8))                                                              \
    X(a_bool, 1, true)                                                                             \
    X(a_colour, INT64_C(2), TYPED__COLOUR__BLUE)

static void test_typed_map_of_each_key_and_value_gets_what_was_put(void **state)
{
    struct bow_arena *arena = *state;
    Typed__Maps *message = typed__maps__new(arena);
    Typed__Maps *arrived = NULL;

#define PUT(name, key, number)                                                                     \
    assert_null(typed__maps__get_##name(message, key));                                            \
    assert_true(typed__maps__put_##name(message, key, 0, arena));                                  \
    assert_true(typed__maps__put_##name(message, key, number, arena));                             \
    assert_int_equal(message->n_##name, 1);                                                        \
    assert_true(*typed__maps__get_##name(message, key) == (number));
    EACH_MAP_OF_NUMBERS(PUT)
#undef PUT
    assert_true(typed__maps__put_a_string(message, 1U, "text", arena));
    assert_string_equal(typed__maps__get_a_string(message, 1U), "text");
    assert_true(typed__maps__put_a_bytes(message, 1U, blob, sizeof(blob), arena));
    assert_true(is_blob(*typed__maps__get_a_bytes(message, 1U)));
    assert_true(typed__leaf__set_number(typed__maps__put_a_leaf(message, 3, arena), 4));
    assert_int_equal(typed__maps__get_a_leaf(message, 3)->number, 4);
    assert_null(typed__maps__get_a_leaf(message, 4));
    assert_int_equal(typed__maps__mutable_a_leaf(message, 3, arena)->number, 4);
    assert_int_equal(typed__maps__mutable_a_leaf(message, 5, arena)->number, 0);
    assert_int_equal(message->n_a_leaf, 2);
    ASSERT_ARRIVES(typed__maps, message, arena);
#define GET(name, key, number) assert_true(*typed__maps__get_##name(arrived, key) == (number));
    EACH_MAP_OF_NUMBERS(GET)
#undef GET
    FREE(typed__maps, message, arena);
    FREE(typed__maps, arrived, arena);
}

static void test_typed_map_key_removed_is_gone_and_the_others_stay(void **state)
{
    struct bow_arena *arena = *state;
    Typed__Maps *message = typed__maps__new(arena);
    Typed__Maps *empty = typed__maps__new(arena);

    assert_true(typed__maps__put_a_sfixed64(message, "one", 1, arena));
    assert_true(typed__maps__put_a_sfixed64(message, "two", 2, arena));
    assert_true(typed__maps__remove_a_sfixed64(message, "one", arena));
    assert_false(typed__maps__remove_a_sfixed64(message, "one", arena));
    assert_null(typed__maps__get_a_sfixed64(message, "one"));
    assert_int_equal(*typed__maps__get_a_sfixed64(message, "two"), 2);
    typed__maps__clear_a_sfixed64(message, arena);
    assert_true(typed__maps__equal(message, empty));
    FREE(typed__maps, message, arena);
    FREE(typed__maps, empty, arena);
}

static void test_typed_map_key_that_arrived_twice_has_its_last_value(void **state)
{
    static const uint8_t twice[] = {
        0x62, 0x0c, 0x0a, 0x01, 'k', 0x11, 1, 0, 0, 0, 0, 0, 0, 0,
        0x62, 0x0c, 0x0a, 0x01, 'k', 0x11, 2, 0, 0, 0, 0, 0, 0, 0,
    };
    struct bow_slice bytes = {.data = twice, .len = sizeof(twice)};
    struct bow_arena *arena = *state;
    Typed__Maps *arrived = NULL;

    assert_int_equal(typed__maps__decode(bytes, NULL, arena, &arrived, NULL, 0), 0);
    assert_int_equal(arrived->n_a_sfixed64, 2);
    assert_int_equal(*typed__maps__get_a_sfixed64(arrived, "k"), 2);
    FREE(typed__maps, arrived, arena);
}

static void test_typed_null_message_is_left_alone(void **state)
{
    struct bow_arena *arena = *state;

    assert_false(typed__implicit__set_a_int32(NULL, 1));
    assert_false(typed__implicit__set_a_string(NULL, "text", arena));
    assert_false(typed__implicit__set_a_string_ref(NULL, "text"));
    assert_false(typed__implicit__set_a_bytes(NULL, blob, 1, arena));
    assert_null(typed__implicit__mutable_a_leaf(NULL, arena));
    assert_false(typed__optional__set_a_int32(NULL, 1));
    assert_false(typed__optional__has_a_int32(NULL));
    assert_false(typed__choice__set_a_int32(NULL, 1, arena));
    assert_false(typed__repeated__add_a_int32(NULL, 1, arena));
    assert_null(typed__repeated__add_a_leaf(NULL, arena));
    assert_false(typed__maps__put_a_double(NULL, 1, 1, arena));
    assert_null(typed__maps__put_a_leaf(NULL, 1, arena));
    assert_null(typed__maps__mutable_a_leaf(NULL, 1, arena));
    assert_null(typed__maps__get_a_double(NULL, 1));
    assert_null(typed__maps__get_a_string(NULL, 1));
    assert_false(typed__maps__remove_a_double(NULL, 1, arena));
    typed__repeated__clear_a_leaf(NULL, arena);
    typed__implicit__clear(NULL, arena);
    typed__implicit__free(NULL);
    assert_null(typed__implicit__clone(NULL, arena));
    assert_true(typed__implicit__equal(NULL, NULL));
}

static void test_typed_clone_shares_nothing_and_clear_empties(void **state)
{
    struct bow_arena *arena = *state;
    Typed__Implicit *message = typed__implicit__new(arena);
    Typed__Implicit *empty = typed__implicit__new(arena);

    assert_true(typed__implicit__set_a_string(message, "text", arena));
    assert_true(typed__leaf__set_number(typed__implicit__mutable_a_leaf(message, arena), 5));
    Typed__Implicit *clone = typed__implicit__clone(message, arena);
    assert_true(typed__implicit__equal(message, clone));
    clone->a_string[0] = 'n';
    clone->a_leaf->number = 6;
    assert_string_equal(message->a_string, "text");
    assert_int_equal(message->a_leaf->number, 5);
    assert_false(typed__implicit__equal(message, clone));
    typed__implicit__clear(clone, arena);
    assert_true(typed__implicit__equal(clone, empty));
    FREE(typed__implicit, message, arena);
    FREE(typed__implicit, clone, arena);
    FREE(typed__implicit, empty, arena);
}

static void test_typed_encode_says_when_there_is_no_room(void **state)
{
    struct bow_arena *arena = *state;
    Typed__Leaf *message = typed__leaf__new(arena);
    uint8_t bytes[6];
    size_t len = 0;

    assert_true(typed__leaf__set_text(message, "text", arena));
    assert_int_equal(typed__leaf__encode(message, bytes, 5, &len), -ENOSPC);
    assert_int_equal(typed__leaf__encode(message, bytes, 6, &len), 0);
    assert_int_equal(len, 6);
    assert_memory_equal(bytes, "\x0a\x04text", 6);
    FREE(typed__leaf, message, arena);
}

static void test_typed_decode_of_bad_bytes_gives_no_message_and_the_reason(void **state)
{
    static const uint8_t cut[] = {0x0a, 0x04, 't'};
    struct bow_slice bytes = {.data = cut, .len = sizeof(cut)};
    Typed__Leaf *message = NULL;
    char reason[100] = "";

    assert_int_equal(typed__leaf__decode(bytes, NULL, *state, &message, reason, sizeof(reason)),
                     -EBADMSG);
    assert_null(message);
    assert_non_null(strstr(reason, "typed.Leaf.text"));
}

static void test_typed_enum_is_named_and_parsed(void **state)
{
    Typed__Colour colour = TYPED__COLOUR__NONE;

    (void)state;
    assert_string_equal(typed__colour__name(TYPED__COLOUR__BLUE), "BLUE");
    assert_string_equal(typed__colour__name(TYPED__COLOUR__ROUGE), "RED"); /* the first of both */
    assert_null(typed__colour__name((Typed__Colour)2));
    assert_true(typed__colour__parse("ROUGE", &colour));
    assert_int_equal(colour, 1);
    assert_false(typed__colour__parse("blue", &colour));
    assert_int_equal(colour, 1);
    assert_string_equal(typed__names__size__name(TYPED__NAMES__SIZE__SMALL), "SMALL");
}

static void test_typed_names_that_meet_have_an_underscore(void **state)
{
    struct bow_arena *arena = *state;
    Typed__Names *message = typed__names__new(arena);

    assert_true(typed__names__put_packed_size(message, "key", 5, arena));
    assert_int_equal(*typed__names__get_packed_size_(message, "key"), 5);
    assert_true(typed__names__set_text_ref_(message, "copied", arena)); /* the field text_ref */
    assert_string_equal(message->text_ref, "copied");
    if (arena != NULL) {
        assert_true(typed__names__set_text_ref(message, "referred to")); /* the field text */
        assert_string_equal(message->text, "referred to");
    }
    assert_true(typed__names__set_switch(message, "no keyword", arena));
    assert_true(typed__names__set_camelcase(message, "as the member", arena));
    assert_true(typed__names__set_size(typed__names__mutable_new(message, arena),
                                       TYPED__NAMES__SIZE__SMALL));
    FREE(typed__names, message, arena);
}

/* What a handler builds in its call's arena. */

struct asking {
    struct both_ends ends;
    size_t n_payload;
    int reply_rc;
    enum bow_code code;
    bool is_whole;
    bool is_done;
};

static void say(struct bow_call *call, const Calls__Request *request, void *user)
{
    struct asking *asking = user;
    struct bow_arena *arena = bow_call_arena(call);
    Calls__Reply *reply = calls__reply__new(arena);
    char *payload = calloc(1, asking->n_payload);

    calls__reply__set_number(reply, request->number + 1);
    calls__reply__set_text(reply, request->text, arena);
    calls__reply__set_payload(reply, payload, asking->n_payload, arena);
    asking->reply_rc = calls__echo__say__reply(call, reply);
    free(payload);
}

static void on_done(struct bow_result *result, const Calls__Reply *reply, void *user)
{
    struct asking *asking = user;

    asking->code = result->status.code;
    asking->is_whole = reply != NULL && reply->number == 42 && strcmp(reply->text, "text") == 0 &&
                       reply->payload.len == asking->n_payload;
    asking->is_done = true;
}

/* Returns 0, or what did not begin, or -ENOMEM of a call that ended without its reply. */
static int ask(struct bow_context *context, void *user)
{
    static const struct calls__echo__handlers handlers = {.say = say};
    struct asking *asking = user;
    Calls__Request request = CALLS__REQUEST__INIT;
    char text[] = "text";

    asking->is_done = false;
    request.number = 41;
    request.text = text;
    int rc = both_ends_open(&asking->ends, context, &handlers, asking);
    if (rc == 0) {
        rc = calls__echo__say__start(asking->ends.client, &request, NULL, on_done, asking, NULL);
    }
    if (rc == 0) {
        while (!asking->is_done) {
            assert_int_equal(bow_loop_run_once(asking->ends.loop, BOW_NEVER), 0);
        }
        assert_int_equal(asking->is_whole, asking->code == BOW_OK);
        rc = asking->code == BOW_OK ? 0 : -ENOMEM;
    }
    both_ends_close(&asking->ends);
    return rc;
}

static void test_typed_reply_in_the_calls_arena_arrives(void **state)
{
    struct asking asking = {.n_payload = 1000};
    struct test_alloc alloc;

    (void)state;
    test_alloc_init(&alloc);
    struct bow_context *context = test_context_new(&alloc);
    assert_int_equal(ask(context, &asking), 0);
    assert_int_equal(asking.reply_rc, 0);
    assert_true(asking.is_whole);
    test_context_end(context, &alloc);
}

static void test_typed_reply_without_memory_is_resource_exhausted(void **state)
{
    struct asking asking = {.n_payload = (size_t)BOW_LIMIT_CALL_ARENA_BYTES + 1};
    struct test_alloc alloc;

    (void)state;
    test_alloc_init(&alloc);
    struct bow_context *context = test_context_new(&alloc);
    assert_int_equal(ask(context, &asking), -ENOMEM);
    assert_int_equal(asking.code, BOW_RESOURCE_EXHAUSTED);
    assert_int_equal(asking.reply_rc, -ENOMEM);
    test_context_end(context, &alloc);
}

/* Never half of a reply: ask() asserts it. */
static void test_typed_reply_each_allocation_may_fail(void **state)
{
    struct asking asking = {.n_payload = 100000};

    (void)state;
    assert_true(test_alloc_fail_each(NULL, ask, &asking) > 20);
}

#define IN_BOTH(test)                                                                              \
    cmocka_unit_test_setup_teardown(test, open_arena, close_arena),                                \
        cmocka_unit_test_setup(test, open_heap)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        IN_BOTH(test_typed_implicit_field_set_has_its_value_and_arrives),
        IN_BOTH(test_typed_bool_of_any_truth_is_one),
        IN_BOTH(test_typed_optional_field_set_to_its_default_is_there),
        IN_BOTH(test_typed_optional_field_cleared_is_gone),
        IN_BOTH(test_typed_proto2_optional_field_sets_its_has_member),
        IN_BOTH(test_typed_proto2_required_fields_set_are_all_that_is_needed),
        IN_BOTH(test_typed_proto2_field_cleared_has_its_default_again),
        IN_BOTH(test_typed_string_that_is_bytes_in_c_is_set_as_such),
        IN_BOTH(test_typed_group_is_filled_as_a_message),
        IN_BOTH(test_typed_set_copies_and_set_ref_refers),
        IN_BOTH(test_typed_string_set_again_replaces_the_former),
        IN_BOTH(test_typed_message_mutable_is_made_once_and_set_takes_one),
        IN_BOTH(test_typed_oneof_member_set_selects_it_and_ends_the_former),
        IN_BOTH(test_typed_oneof_cleared_loses_the_member_that_is_selected),
        IN_BOTH(test_typed_oneof_cleared_of_a_case_that_no_member_has_is_not_set),
        IN_BOTH(test_typed_repeated_field_keeps_what_is_added_in_order),
        IN_BOTH(test_typed_repeated_field_that_arrived_is_added_to),
        IN_BOTH(test_typed_repeated_field_cleared_is_empty),
        IN_BOTH(test_typed_packed_field_is_added_to),
        IN_BOTH(test_typed_map_of_each_key_and_value_gets_what_was_put),
        IN_BOTH(test_typed_map_key_removed_is_gone_and_the_others_stay),
        IN_BOTH(test_typed_map_key_that_arrived_twice_has_its_last_value),
        IN_BOTH(test_typed_null_message_is_left_alone),
        IN_BOTH(test_typed_clone_shares_nothing_and_clear_empties),
        IN_BOTH(test_typed_encode_says_when_there_is_no_room),
        IN_BOTH(test_typed_decode_of_bad_bytes_gives_no_message_and_the_reason),
        IN_BOTH(test_typed_names_that_meet_have_an_underscore),
        cmocka_unit_test(test_typed_enum_is_named_and_parsed),
        cmocka_unit_test(test_typed_reply_in_the_calls_arena_arrives),
        cmocka_unit_test(test_typed_reply_without_memory_is_resource_exhausted),
        cmocka_unit_test(test_typed_reply_each_allocation_may_fail),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
