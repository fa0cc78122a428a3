/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Fields set, added to, asked for and cleared, of each kind. */

#include "tests/rpc/message_fixture.h"
#include <stdio.h>

static void *made(struct place *p, const ProtobufCMessageDescriptor *type)
{
    ProtobufCMessage *message = bow_message_new(type, p->arena);

    assert_non_null(message);
    return message;
}

/* A value of each C type that is no default. */
static const void *a_number(ProtobufCType type)
{
    static const int64_t whole = -3;
    static const double real = 2.5;
    static const float little = 1.25f;
    static const protobuf_c_boolean yes = 1;

    return type == PROTOBUF_C_TYPE_DOUBLE  ? (const void *)&real
           : type == PROTOBUF_C_TYPE_FLOAT ? (const void *)&little
           : type == PROTOBUF_C_TYPE_BOOL  ? (const void *)&yes
                                           : (const void *)&whole;
}

static bool set_any(struct place *p, ProtobufCMessage *message,
                    const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        return bow_message_set_string(message, field, "text", p->arena);
    case PROTOBUF_C_TYPE_BYTES:
        return bow_message_set_bytes(message, field, "data", 4, p->arena);
    case PROTOBUF_C_TYPE_MESSAGE:
        return bow_message_mutable(message, field, p->arena) != NULL;
    default:
        return bow_message_set_scalar(message, field, a_number(field->type), p->arena);
    }
}

static bool add_any(struct place *p, ProtobufCMessage *message,
                    const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        return bow_message_add_string(message, field, "text", p->arena);
    case PROTOBUF_C_TYPE_BYTES:
        return bow_message_add_bytes(message, field, "data", 4, p->arena);
    case PROTOBUF_C_TYPE_MESSAGE:
        return bow_message_add_message(message, field, p->arena) != NULL;
    default:
        return bow_message_add_scalar(message, field, a_number(field->type), p->arena);
    }
}

/* Of each field: it is not there, is set twice, is sent, is cleared and as it was. */
static void set_each(struct place *p, const ProtobufCMessageDescriptor *type)
{
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        bool is_repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
        ProtobufCMessage *message = made(p, type);
        ProtobufCMessage *empty = made(p, type);
        size_t before = 0;
        size_t after = 0;
        assert_false(bow_message_has(message, field));
        assert_int_equal(bow_message_size(message, &before), 0);
        assert_true(is_repeated ? add_any(p, message, field) : set_any(p, message, field));
        assert_true(is_repeated ? add_any(p, message, field) : set_any(p, message, field));
        assert_true(bow_message_has(message, field));
        assert_int_equal(bow_message_size(message, &after), 0);
        assert_true(after > before);
        assert_false(bow_message_equal(message, empty));
        struct bow_slice bytes = packed(message); /* protobuf-c sees the same */
        assert_int_equal(bytes.len, after);
        free_bytes(bytes);
        bow_message_clear_field(message, field, p->arena);
        assert_false(bow_message_has(message, field));
        assert_true(bow_message_equal(message, empty));
        drop(p, message);
        drop(p, empty);
    }
}

static void test_field_of_each_kind_is_set_and_cleared(void **state)
{
    set_each(*state, &codec3__scalars__descriptor);
    set_each(*state, &codec3__lists__descriptor);
    set_each(*state, &codec3__choice__descriptor);
    set_each(*state, &codec3__tree__descriptor);
    set_each(*state, &codec2__optional__descriptor);
    set_each(*state, &codec2__defaults__descriptor);
}

static void test_field_of_a_wrong_kind_is_refused(void **state)
{
    struct place *p = *state;
    ProtobufCMessage *message = made(p, &codec3__scalars__descriptor);
    ProtobufCMessage *lists = made(p, &codec3__lists__descriptor);
    ProtobufCMessage *other = made(p, &codec3__tree__descriptor);
    const ProtobufCFieldDescriptor *number = named(message, "f_int32");
    const ProtobufCFieldDescriptor *text = named(message, "f_string");
    const ProtobufCFieldDescriptor *texts = named(lists, "f_string");
    const ProtobufCFieldDescriptor *numbers = named(lists, "f_int32");
    const int32_t one = 1;

    assert_false(bow_message_set_string(message, number, "x", p->arena));
    assert_false(bow_message_set_string(message, number, NULL, p->arena));
    assert_false(bow_message_set_string_ref(message, number, "x"));
    assert_false(bow_message_set_bytes(message, text, "x", 1, p->arena));
    assert_false(bow_message_set_bytes_ref(message, text, "x", 1));
    assert_false(bow_message_set_scalar(message, text, &one, p->arena));
    assert_null(bow_message_mutable(message, text, p->arena));
    assert_false(bow_message_set_message(message, text, other, p->arena));
    assert_false(bow_message_set_message(message, named(message, "f_message"), other, p->arena));
    assert_false(bow_message_add_string(message, text, "x", p->arena));
    assert_false(bow_message_set_string(lists, texts, "x", p->arena));
    assert_false(bow_message_set_scalar(lists, numbers, &one, p->arena));
    assert_false(bow_message_add_string(lists, numbers, "x", p->arena));
    assert_false(bow_message_add_string(lists, texts, NULL, p->arena));
    assert_false(bow_message_add_bytes(lists, texts, "x", 1, p->arena));
    assert_false(bow_message_add_scalar(lists, texts, &one, p->arena));
    assert_null(bow_message_add_message(lists, texts, p->arena));
    assert_false(bow_message_put_string(lists, texts, "x", "x", p->arena));
    assert_encodes_to(message, BYTES(""));
    assert_encodes_to(lists, BYTES(""));
    drop(p, message);
    drop(p, lists);
    drop(p, other);
}

static void test_field_of_a_null_message_is_left_alone(void **state)
{
    struct place *p = *state;
    const ProtobufCMessageDescriptor *scalars = &codec3__scalars__descriptor;
    const ProtobufCMessageDescriptor *lists = &codec3__lists__descriptor;
    const ProtobufCFieldDescriptor *names = field_of(&codec3__maps__descriptor, "names");
    const int32_t one = 1;

    assert_false(bow_message_set_string(NULL, field_of(scalars, "f_string"), "x", p->arena));
    assert_false(bow_message_set_string_ref(NULL, field_of(scalars, "f_string"), "x"));
    assert_false(bow_message_set_bytes(NULL, field_of(scalars, "f_bytes"), "x", 1, p->arena));
    assert_false(bow_message_set_bytes_ref(NULL, field_of(scalars, "f_bytes"), "x", 1));
    assert_false(bow_message_set_scalar(NULL, field_of(scalars, "f_int32"), &one, p->arena));
    assert_null(bow_message_mutable(NULL, field_of(scalars, "f_message"), p->arena));
    assert_false(bow_message_set_message(NULL, field_of(scalars, "f_message"), NULL, p->arena));
    assert_null(bow_message_add_message(NULL, field_of(lists, "f_message"), p->arena));
    assert_false(bow_message_add_scalar(NULL, field_of(lists, "f_int32"), &one, p->arena));
    assert_false(bow_message_add_string(NULL, field_of(lists, "f_string"), "x", p->arena));
    assert_false(bow_message_add_bytes(NULL, field_of(lists, "f_bytes"), "x", 1, p->arena));
    assert_false(bow_message_put_string(NULL, names, "x", "x", p->arena));
    assert_false(bow_message_remove(NULL, names, "x", p->arena));
    assert_null(bow_message_get_entry(NULL, names, "x"));
    assert_false(bow_message_has(NULL, field_of(scalars, "f_int32")));
    bow_message_clear_field(NULL, field_of(scalars, "f_int32"), p->arena);
}

static void test_field_set_string_copies_and_may_be_given_itself(void **state)
{
    struct place *p = *state;
    Codec3__Tree *tree = made(p, &codec3__tree__descriptor);
    const ProtobufCFieldDescriptor *name = named(tree, "name");
    char text[] = "first";

    assert_true(bow_message_set_string(&tree->base, name, text, p->arena));
    text[0] = 'X';
    assert_string_equal(tree->name, "first");
    assert_true(bow_message_set_string(&tree->base, name, tree->name + 2, p->arena));
    assert_string_equal(tree->name, "rst");
    assert_true(bow_message_set_string_n(&tree->base, name, "abcdef", 3, p->arena));
    assert_string_equal(tree->name, "abc");
    assert_true(bow_message_set_string(&tree->base, name, NULL, p->arena));
    assert_string_equal(tree->name, "");
    drop(p, tree);
}

static void test_field_set_keeps_the_default_of_its_type(void **state)
{
    struct place *p = *state;
    const Codec2__Defaults init = CODEC2__DEFAULTS__INIT;
    Codec2__Defaults *message = made(p, &codec2__defaults__descriptor);

    assert_true(
        bow_message_set_string(&message->base, named(message, "f_string"), "own", p->arena));
    assert_true(
        bow_message_set_bytes(&message->base, named(message, "f_bytes"), NULL, 0, p->arena));
    assert_true(message->has_f_bytes);
    assert_int_equal(message->f_bytes.len, 0);
    bow_message_clear_field(&message->base, named(message, "f_string"), p->arena);
    bow_message_clear_field(&message->base, named(message, "f_bytes"), p->arena);
    assert_ptr_equal(message->f_string, init.f_string);
    assert_ptr_equal(message->f_bytes.data, init.f_bytes.data);
    assert_false(message->has_f_bytes);
    assert_string_equal(init.f_string, "fallback"); /* as it was */
    drop(p, message);
}

static void test_field_set_scalar_notes_that_it_is_there(void **state)
{
    struct place *p = *state;
    Codec2__Optional *message = made(p, &codec2__optional__descriptor);
    const int32_t zero = 0;

    assert_true(bow_message_set_scalar(&message->base, named(message, "f_int32"), &zero, p->arena));
    assert_true(message->has_f_int32);
    assert_encodes_to(message, BYTES("\x08\x00"));
    bow_message_clear_field(&message->base, named(message, "f_int32"), p->arena);
    assert_false(message->has_f_int32);
    drop(p, message);
}

static void test_field_required_is_there_unless_it_is_null(void **state)
{
    struct place *p = *state;
    Codec2__Required *message = made(p, &codec2__required__descriptor);

    assert_true(bow_message_has(&message->base, named(message, "id")));
    assert_false(bow_message_has(&message->base, named(message, "name")));
    assert_true(bow_message_set_string(&message->base, named(message, "name"), "", p->arena));
    assert_true(bow_message_has(&message->base, named(message, "name")));
    drop(p, message);
}

/* Of a heap message a former member that is not freed is a leak, which the end of the test finds.
 */
static void test_field_of_a_oneof_takes_the_place_of_the_former(void **state)
{
    struct place *p = *state;
    const ProtobufCMessageDescriptor *type = &codec3__choice__descriptor;
    Codec3__Choice *choice = made(p, type);

    assert_true(bow_message_set_string(&choice->base, named(choice, "left"), "stays", p->arena));
    for (unsigned from = 0; from < type->n_fields; from++) {
        for (unsigned to = 0; to < type->n_fields; to++) {
            const ProtobufCFieldDescriptor *former = &type->fields[from];
            const ProtobufCFieldDescriptor *field = &type->fields[to];
            if (former->quantifier_offset != field->quantifier_offset || former->id > 8 ||
                field->id > 8 || field->id == 1 || former->id == 1) {
                continue;
            }
            assert_true(set_any(p, &choice->base, former));
            assert_int_equal(choice->kind_case, former->id);
            assert_true(set_any(p, &choice->base, field));
            assert_int_equal(choice->kind_case, field->id);
            assert_true(bow_message_has(&choice->base, field));
            assert_int_equal(bow_message_has(&choice->base, former), former == field);
            bow_message_clear_field(&choice->base, former, p->arena);
            assert_int_equal(bow_message_has(&choice->base, field), former != field);
        }
    }
    assert_string_equal(choice->left, "stays");
    assert_int_equal(choice->other_case, CODEC3__CHOICE__OTHER_LEFT);
    drop(p, choice);
}

static void test_field_of_a_oneof_that_is_cleared_is_as_never_set(void **state)
{
    struct place *p = *state;
    Codec3__Choice *choice = made(p, &codec3__choice__descriptor);
    const ProtobufCFieldDescriptor *text = named(choice, "text");

    assert_true(bow_message_set_string(&choice->base, text, "t", p->arena));
    assert_true(bow_message_set_string(&choice->base, text, NULL, p->arena));
    assert_int_equal(choice->kind_case, CODEC3__CHOICE__KIND__NOT_SET);
    assert_null(choice->text);
    assert_true(bow_message_set_string_ref(&choice->base, text, NULL)); /* nothing to clear */
    drop(p, choice);
}

static void test_field_ref_is_what_was_given(void **state)
{
    struct place *p = *state;
    Codec3__Choice choice = CODEC3__CHOICE__INIT;
    static const char text[] = "constant";

    (void)p;
    assert_true(bow_message_set_string_ref(&choice.base, named(&choice, "text"), text));
    assert_ptr_equal(choice.text, text);
    assert_int_equal(choice.kind_case, CODEC3__CHOICE__KIND_TEXT);
    assert_true(bow_message_set_bytes_ref(&choice.base, named(&choice, "data"), text, 3));
    assert_ptr_equal(choice.data.data, text);
    assert_int_equal(choice.data.len, 3);
    assert_int_equal(choice.kind_case, CODEC3__CHOICE__KIND_DATA);
    assert_true(bow_message_set_string_ref(&choice.base, named(&choice, "after"), text));
    assert_true(bow_message_set_string_ref(&choice.base, named(&choice, "after"), NULL));
    assert_string_equal(choice.after, "");
}

static void test_field_mutable_gives_the_same_message_again(void **state)
{
    struct place *p = *state;
    Codec3__Tree *tree = made(p, &codec3__tree__descriptor);
    const ProtobufCFieldDescriptor *left = named(tree, "left");
    ProtobufCMessage *first = bow_message_mutable(&tree->base, left, p->arena);

    assert_non_null(first);
    assert_ptr_equal(first, bow_message_mutable(&tree->base, left, p->arena));
    assert_ptr_equal(first, &tree->left->base);
    ProtobufCMessage *other = made(p, &codec3__tree__descriptor);
    assert_true(bow_message_set_message(&tree->base, left, other, p->arena));
    assert_ptr_equal(&tree->left->base, other);
    assert_true(bow_message_set_message(&tree->base, left, other, p->arena)); /* itself */
    assert_true(bow_message_set_message(&tree->base, left, NULL, p->arena));
    assert_null(tree->left);
    drop(p, tree);
}

/* Repeated fields */

static void add_numbers(struct place *p, Codec3__Lists *lists, int32_t from, int32_t to)
{
    const ProtobufCFieldDescriptor *field = named(lists, "f_int32");

    for (int32_t i = from; i < to; i++) {
        assert_true(bow_message_add_scalar(&lists->base, field, &i, p->arena));
    }
}

static void assert_numbers(const Codec3__Lists *lists, int32_t n)
{
    assert_int_equal(lists->n_f_int32, n);
    for (int32_t i = 0; i < n; i++) {
        assert_int_equal(lists->f_int32[i], i);
    }
}

static void test_field_add_keeps_what_is_there(void **state)
{
    struct place *p = *state;
    Codec3__Lists *lists = made(p, &codec3__lists__descriptor);

    for (int32_t n = 0; n < 1000; n++) {
        add_numbers(p, lists, n, n + 1);
        assert_numbers(lists, n + 1);
    }
    drop(p, lists);
}

static void test_field_add_to_many_arrays_at_once_grows_each_alone(void **state)
{
    struct place *p = *state;
    ProtobufCMessage *root = made(p, &codec3__tree__descriptor);
    const ProtobufCFieldDescriptor *children = named(root, "children");
    Codec3__Lists *lists[50];

    for (unsigned i = 0; i < 50; i++) {
        lists[i] = made(p, &codec3__lists__descriptor);
    }
    for (int32_t n = 0; n < 40; n++) {
        for (unsigned i = 0; i < 50; i++) {
            add_numbers(p, lists[i], n, n + 1);
        }
        assert_non_null(bow_message_add_message(root, children, p->arena));
    }
    for (unsigned i = 0; i < 50; i++) {
        assert_numbers(lists[i], 40);
        drop(p, lists[i]);
    }
    drop(p, root);
}

/* Decoded, packed: with no room to spare. */
static void test_field_add_to_what_was_decoded_copies_it(void **state)
{
    struct place *p = *state;
    Codec3__Lists *lists =
        decoded(p, &codec3__lists__descriptor, BYTES("\x0a\x05\x00\x01\x02\x03\x04"));

    add_numbers(p, lists, 5, 20);
    assert_numbers(lists, 20);
    drop(p, lists);
}

static void test_field_add_to_an_array_of_the_programs_leaves_that_alone(void **state)
{
    struct place *p = *state;
    Codec3__Lists lists = CODEC3__LISTS__INIT;
    int32_t numbers[] = {0, 1, 2, 99};

    if (p->arena == NULL) {
        return; /* in the heap, all is malloc's */
    }
    lists.n_f_int32 = 3;
    lists.f_int32 = numbers;
    add_numbers(p, &lists, 3, 10);
    assert_numbers(&lists, 10);
    assert_int_equal(numbers[3], 99);
}

static void test_field_add_may_be_given_an_element_of_its_own(void **state)
{
    struct place *p = *state;
    Codec3__Lists *lists = made(p, &codec3__lists__descriptor);
    const ProtobufCFieldDescriptor *field = named(lists, "f_int32");

    add_numbers(p, lists, 0, 4);
    assert_true(bow_message_add_scalar(&lists->base, field, &lists->f_int32[3], p->arena));
    assert_int_equal(lists->f_int32[4], 3);
    drop(p, lists);
}

/* In the heap that is realloc()'s matter. */
static void test_field_add_takes_memory_in_proportion(void **state)
{
    struct place *p = *state;
    Codec3__Lists *lists = made(p, &codec3__lists__descriptor);

    add_numbers(p, lists, 0, 200000);
    assert_numbers(lists, 200000);
    /* At most twice, in halves, with its set of addresses. */
    assert_in_range(bow_arena_used(p->arena), 800000, 2200000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_BOTH(test_field_of_each_kind_is_set_and_cleared),
        IN_BOTH(test_field_of_a_wrong_kind_is_refused),
        IN_BOTH(test_field_of_a_null_message_is_left_alone),
        IN_BOTH(test_field_set_string_copies_and_may_be_given_itself),
        IN_BOTH(test_field_set_keeps_the_default_of_its_type),
        IN_BOTH(test_field_set_scalar_notes_that_it_is_there),
        IN_BOTH(test_field_required_is_there_unless_it_is_null),
        IN_BOTH(test_field_of_a_oneof_takes_the_place_of_the_former),
        IN_BOTH(test_field_of_a_oneof_that_is_cleared_is_as_never_set),
        IN_BOTH(test_field_ref_is_what_was_given),
        IN_BOTH(test_field_mutable_gives_the_same_message_again),
        IN_BOTH(test_field_add_keeps_what_is_there),
        IN_BOTH(test_field_add_to_many_arrays_at_once_grows_each_alone),
        IN_BOTH(test_field_add_to_what_was_decoded_copies_it),
        IN_BOTH(test_field_add_to_an_array_of_the_programs_leaves_that_alone),
        IN_BOTH(test_field_add_may_be_given_an_element_of_its_own),
        cmocka_unit_test_setup_teardown(test_field_add_takes_memory_in_proportion, in_arena,
                                        end_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
