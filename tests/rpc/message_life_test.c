/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Messages made, made empty again and freed. */

#include "tests/rpc/message_fixture.h"
#include <bowline/limits.h>

static void test_message_new_is_as_its_init(void **state)
{
    struct place *p = *state;
    const Codec2__Defaults init = CODEC2__DEFAULTS__INIT;
    Codec2__Defaults *message = (void *)bow_message_new(&codec2__defaults__descriptor, p->arena);

    assert_non_null(message);
    assert_ptr_equal(message->base.descriptor, init.base.descriptor);
    assert_int_equal(message->f_int32, -5);
    assert_ptr_equal(message->f_string, init.f_string);
    assert_ptr_equal(message->f_bytes.data, init.f_bytes.data);
    drop(p, message);
}

static void test_message_new_without_an_init_function_has_its_defaults(void **state)
{
    struct place *p = *state;
    CodecPlain__Plain *plain = (void *)bow_message_new(&codec_plain__plain__descriptor, p->arena);

    assert_non_null(plain);
    assert_int_equal(plain->number, 41);
    assert_string_equal(plain->text, "as before");
    assert_int_equal(plain->kind_case, CODEC_PLAIN__PLAIN__KIND__NOT_SET);
    drop(p, plain);
}

static void test_message_new_without_memory_is_remembered(void **state)
{
    struct bow_arena *arena = bow_arena_new(NULL, 1);

    (void)state;
    while (bow_message_new(&codec3__everything__descriptor, arena) != NULL) {
        assert_false(bow_arena_failed(arena));
    }
    assert_true(bow_arena_failed(arena));
    bow_arena_free(arena);
}

static void test_message_clear_empties_each_kind_of_field(void **state)
{
    struct place *p = *state;
    struct bow_arena *source = bow_arena_new(NULL, 0);

    for (unsigned i = 0; i < N_RANDOM_MESSAGES; i++) {
        const ProtobufCMessage *given = random_message((struct bow__arena *)source, i);
        ProtobufCMessage *message = bow_message_clone(given, p->arena);
        ProtobufCMessage *empty = bow_message_new(given->descriptor, p->arena);
        bow_message_clear(message, p->arena);
        assert_int_equal(message->n_unknown_fields, 0);
        assert_true(bow_message_equal(message, empty));
        drop(p, message);
        drop(p, empty);
        bow_arena_reset(source);
    }
    bow_arena_free(source);
}

static void test_message_clear_of_one_on_the_stack_frees_its_fields(void **state)
{
    struct place *p = *state;
    Codec3__Tree tree = CODEC3__TREE__INIT;
    ProtobufCMessage *left = NULL;

    assert_true(bow_message_set_string(&tree.base, named(&tree, "name"), "root", p->arena));
    left = bow_message_mutable(&tree.base, named(&tree, "left"), p->arena);
    assert_true(bow_message_set_string(left, named(&tree, "name"), "leaf", p->arena));
    bow_message_clear(&tree.base, p->arena);
    assert_string_equal(tree.name, "");
    assert_null(tree.left);
    assert_ptr_equal(tree.base.descriptor, &codec3__tree__descriptor);
}

static void test_message_of_the_heap_is_what_protobuf_c_frees(void **state)
{
    struct place *p = *state;
    struct bow_arena *source = bow_arena_new(NULL, 0);

    for (unsigned i = 0; i < N_RANDOM_MESSAGES; i++) {
        const ProtobufCMessage *given = random_message((struct bow__arena *)source, i);
        drop_by_protobuf_c(p, bow_message_clone(given, p->arena));
        bow_arena_reset(source);
    }
    bow_arena_free(source);
}

static void test_message_free_of_one_of_protobuf_c_frees_all(void **state)
{
    ProtobufCAllocator allocator = {plain_alloc, plain_free, NULL};
    struct bow_arena *source = bow_arena_new(NULL, 0);

    (void)state;
    for (unsigned i = 0; i < N_RANDOM_MESSAGES; i++) {
        const ProtobufCMessage *given = random_message((struct bow__arena *)source, i);
        if (given->descriptor->message_init != NULL) { /* protobuf-c needs one */
            struct bow_slice bytes = packed(given);
            bow_message_free(
                protobuf_c_message_unpack(given->descriptor, &allocator, bytes.len, bytes.data));
            free_bytes(bytes);
        }
        bow_arena_reset(source);
    }
    bow_arena_free(source);
}

static void test_message_free_and_clear_of_null_do_nothing(void **state)
{
    struct place *p = *state;

    bow_message_free(NULL);
    bow_message_clear(NULL, p->arena);
}

/* Recursion would need some 20 MB of stack. */
static void test_message_free_and_clone_of_any_depth_need_no_stack(void **state)
{
    struct place *p = *state;
    ProtobufCMessage *root = bow_message_new(&codec3__tree__descriptor, p->arena);
    ProtobufCMessage *deepest = root;
    size_t n_levels = 0;

    for (unsigned i = 0; i < 200000; i++) {
        deepest = bow_message_mutable(deepest, named(deepest, "left"), p->arena);
    }
    ProtobufCMessage *copy = bow_message_clone(root, p->arena);
    for (const Codec3__Tree *at = (const void *)copy; at != NULL; at = at->left) {
        n_levels++;
    }
    assert_int_equal(n_levels, 200001);
    drop(p, root);
    bow_message_clear(copy, p->arena);
    drop(p, copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_BOTH(test_message_new_is_as_its_init),
        IN_BOTH(test_message_new_without_an_init_function_has_its_defaults),
        cmocka_unit_test(test_message_new_without_memory_is_remembered),
        IN_BOTH(test_message_clear_empties_each_kind_of_field),
        IN_BOTH(test_message_clear_of_one_on_the_stack_frees_its_fields),
        IN_BOTH(test_message_of_the_heap_is_what_protobuf_c_frees),
        IN_BOTH(test_message_free_of_one_of_protobuf_c_frees_all),
        IN_BOTH(test_message_free_and_clear_of_null_do_nothing),
        IN_BOTH(test_message_free_and_clone_of_any_depth_need_no_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
