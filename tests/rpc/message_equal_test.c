/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* When messages are equal: by what they say, maps as sets. */

#include "tests/rpc/message_fixture.h"
#include <bowline/limits.h>
#include <stdio.h>

static void test_message_equal_of_random_messages_is_as_their_bytes(void **state)
{
    struct place *p = *state;
    struct bow_arena *source = bow_arena_new(NULL, 0);
    unsigned n_equal = 0;

    for (unsigned i = 0; i < N_RANDOM_MESSAGES; i++) {
        const ProtobufCMessage *a = random_message((struct bow__arena *)source, i);
        for (unsigned j = i % 10; j < N_RANDOM_MESSAGES; j += 50) {
            const ProtobufCMessage *b = random_message((struct bow__arena *)source, j);
            struct bow_slice a_bytes = packed(a);
            struct bow_slice b_bytes = packed(b);
            bool same =
                a_bytes.len == b_bytes.len && memcmp(a_bytes.data, b_bytes.data, a_bytes.len) == 0;
            assert_int_equal(bow_message_equal(a, b), same);
            n_equal += same;
            free_bytes(a_bytes);
            free_bytes(b_bytes);
        }
        bow_arena_reset(source);
    }
    assert_in_range(n_equal, 50, N_RANDOM_MESSAGES * 4);
    bow_arena_free(source);
    (void)p;
}

static void test_message_equal_takes_null_and_types_into_account(void **state)
{
    Codec3__Tree tree = CODEC3__TREE__INIT;
    Codec3__Empty empty = CODEC3__EMPTY__INIT;

    (void)state;
    assert_true(bow_message_equal(NULL, NULL));
    assert_false(bow_message_equal(&tree.base, NULL));
    assert_false(bow_message_equal(NULL, &tree.base));
    assert_false(bow_message_equal(&tree.base, &empty.base));
}

static void test_message_equal_compares_numbers_bit_for_bit(void **state)
{
    Codec3__Scalars a = CODEC3__SCALARS__INIT;
    Codec3__Scalars b = CODEC3__SCALARS__INIT;
    const uint64_t nan_bits = UINT64_C(0x7ff8000000000001);
    const uint64_t other_nan_bits = UINT64_C(0x7ff8000000000002);

    (void)state;
    memcpy(&a.f_double, &nan_bits, 8);
    memcpy(&b.f_double, &nan_bits, 8);
    assert_true(bow_message_equal(&a.base, &b.base));
    memcpy(&b.f_double, &other_nan_bits, 8);
    assert_false(bow_message_equal(&a.base, &b.base));
    a.f_double = 0.0;
    b.f_double = -0.0;
    assert_false(bow_message_equal(&a.base, &b.base));
    b.f_double = 0.0;
    a.f_bool = 1;
    b.f_bool = 2; /* true all the same */
    assert_true(bow_message_equal(&a.base, &b.base));
}

static void test_message_equal_tells_a_default_that_is_set_from_one_that_is_not(void **state)
{
    Codec2__Optional a = CODEC2__OPTIONAL__INIT;
    Codec2__Optional b = CODEC2__OPTIONAL__INIT;
    Codec3__Choice x = CODEC3__CHOICE__INIT;
    Codec3__Choice y = CODEC3__CHOICE__INIT;

    (void)state;
    b.has_f_int32 = 1;
    assert_false(bow_message_equal(&a.base, &b.base));
    b.has_f_int32 = 0;
    b.f_int32 = 7; /* not sent */
    assert_true(bow_message_equal(&a.base, &b.base));
    x.kind_case = CODEC3__CHOICE__KIND_TEXT; /* NULL, which is "" in a oneof */
    assert_false(bow_message_equal(&x.base, &y.base));
    y.kind_case = CODEC3__CHOICE__KIND_TEXT;
    y.text = (char *)"";
    assert_true(bow_message_equal(&x.base, &y.base));
    y.kind_case = CODEC3__CHOICE__KIND_DATA;
    y.data = (ProtobufCBinaryData){0, NULL};
    assert_false(bow_message_equal(&x.base, &y.base));
}

static void test_message_equal_compares_unknown_fields_in_order(void **state)
{
    struct place *p = *state;
    const ProtobufCMessageDescriptor *type = &codec3__empty__descriptor;
    ProtobufCMessage *a = decoded(p, type, BYTES("\x08\x01\x10\x02"));
    ProtobufCMessage *same = decoded(p, type, BYTES("\x08\x01\x10\x02"));
    ProtobufCMessage *swapped = decoded(p, type, BYTES("\x10\x02\x08\x01"));
    ProtobufCMessage *fewer = decoded(p, type, BYTES("\x08\x01"));
    ProtobufCMessage *other = decoded(p, type, BYTES("\x08\x01\x10\x03"));

    assert_true(bow_message_equal(a, same));
    assert_false(bow_message_equal(a, swapped));
    assert_false(bow_message_equal(a, fewer));
    assert_false(bow_message_equal(a, other));
    drop(p, a);
    drop(p, same);
    drop(p, swapped);
    drop(p, fewer);
    drop(p, other);
}

/* Maps */

/* Add an entry without looking for its key. */
static void add_name(struct place *p, ProtobufCMessage *maps, const char *key, const char *value)
{
    ProtobufCMessage *entry = bow_message_add_message(maps, named(maps, "names"), p->arena);

    assert_true(bow_message_set_string(entry, named(entry, "key"), key, p->arena));
    assert_true(bow_message_set_string(entry, named(entry, "value"), value, p->arena));
}

static ProtobufCMessage *maps_of(struct place *p)
{
    return bow_message_new(&codec3__maps__descriptor, p->arena);
}

static void test_message_equal_compares_maps_as_sets(void **state)
{
    struct place *p = *state;
    ProtobufCMessage *a = maps_of(p);
    ProtobufCMessage *b = maps_of(p);

    add_name(p, a, "x", "1");
    add_name(p, a, "y", "2");
    add_name(p, b, "y", "2");
    assert_false(bow_message_equal(a, b));
    assert_false(bow_message_equal(b, a));
    add_name(p, b, "x", "1");
    assert_true(bow_message_equal(a, b));
    add_name(p, b, "y", "3");
    assert_false(bow_message_equal(a, b));
    drop(p, a);
    drop(p, b);
}

static void test_message_equal_lets_the_last_entry_of_a_key_count(void **state)
{
    struct place *p = *state;
    ProtobufCMessage *a = maps_of(p);
    ProtobufCMessage *b = maps_of(p);

    add_name(p, a, "x", "old");
    add_name(p, a, "x", "new");
    add_name(p, b, "x", "new");
    assert_true(bow_message_equal(a, b));
    assert_true(bow_message_equal(b, a));
    add_name(p, b, "x", "old");
    assert_false(bow_message_equal(a, b));
    drop(p, a);
    drop(p, b);
}

/* Maps that differ in their order, and which keys are there twice: `n` entries, as sorted. */
static void compare_large(struct place *p, unsigned n)
{
    ProtobufCMessage *a = maps_of(p);
    ProtobufCMessage *b = maps_of(p);
    char key[16];
    char value[16];

    for (unsigned i = 0; i < n; i++) {
        snprintf(key, sizeof(key), "%u", i * 7 % n);
        add_name(p, a, key, i % 3 == 0 ? "old" : key);
        snprintf(value, sizeof(value), "%u", n - 1 - i);
        add_name(p, b, value, value);
    }
    for (unsigned i = 0; i < n; i += 3) {
        snprintf(key, sizeof(key), "%u", i * 7 % n);
        add_name(p, a, key, key);
    }
    assert_true(bow_message_equal(a, b));
    assert_true(bow_message_equal(b, a));
    add_name(p, b, "5", "another");
    assert_false(bow_message_equal(a, b));
    add_name(p, a, "5", "another");
    assert_true(bow_message_equal(a, b));
    add_name(p, a, "one more", "");
    assert_false(bow_message_equal(a, b));
    assert_false(bow_message_equal(b, a));
    drop(p, a);
    drop(p, b);
}

static void test_message_equal_sorts_large_maps(void **state)
{
    compare_large(*state, 1000);
}

static void test_message_equal_without_memory_says_the_same(void **state)
{
    struct place *p = *state;
    ProtobufCMessage *a = maps_of(p);
    ProtobufCMessage *b = maps_of(p);
    char key[16];

    for (unsigned i = 0; i < 100; i++) {
        snprintf(key, sizeof(key), "%u", i);
        add_name(p, a, key, key);
        snprintf(key, sizeof(key), "%u", 99 - i);
        add_name(p, b, key, key);
    }
    heap_watch()->fail_at = heap_watch()->n_calls + 1;
    assert_true(bow_message_equal(a, b));
    assert_true(heap_watch()->n_calls >= heap_watch()->fail_at);
    add_name(p, b, "7", "seven");
    heap_watch()->fail_at = heap_watch()->n_calls + 1;
    assert_false(bow_message_equal(a, b));
    heap_watch()->fail_at = 0;
    drop(p, a);
    drop(p, b);
}

/* Each with each, fifty thousand entries would take a minute. */
static void test_message_equal_of_a_hostile_map_is_quick(void **state)
{
    compare_large(*state, 50021);
}

static void test_message_equal_compares_keys_of_each_type(void **state)
{
    struct place *p = *state;
    ProtobufCMessage *a = maps_of(p);
    ProtobufCMessage *b = maps_of(p);
    const ProtobufCFieldDescriptor *flags = named(a, "flags");
    const ProtobufCFieldDescriptor *by_number = named(a, "by_number");
    const protobuf_c_boolean yes = 1;
    const protobuf_c_boolean also_yes = 2;
    const int32_t minus_one = -1;

    assert_true(bow_message_put_bytes(a, flags, &yes, "b", 1, p->arena));
    assert_true(bow_message_put_bytes(b, flags, &also_yes, "b", 1, p->arena));
    assert_non_null(bow_message_put_message(a, by_number, &minus_one, p->arena));
    assert_false(bow_message_equal(a, b));
    ProtobufCMessage *value = bow_message_put_message(b, by_number, &minus_one, p->arena);
    assert_true(bow_message_equal(a, b));
    assert_true(bow_message_set_string(value, named(value, "f_string"), "x", p->arena));
    assert_false(bow_message_equal(a, b));
    drop(p, a);
    drop(p, b);
}

/* Pairs look like entries, and are none: their order counts. */
static void test_message_equal_compares_other_repeated_messages_as_lists(void **state)
{
    struct place *p = *state;
    ProtobufCMessage *a = bow_message_new(&codec3__pairs__descriptor, p->arena);
    ProtobufCMessage *b = bow_message_new(&codec3__pairs__descriptor, p->arena);
    static const char *const keys[] = {"x", "y"};

    for (unsigned i = 0; i < 2; i++) {
        ProtobufCMessage *pair = bow_message_add_message(a, named(a, "pairs"), p->arena);
        assert_true(bow_message_set_string(pair, named(pair, "key"), keys[i], p->arena));
        pair = bow_message_add_message(b, named(b, "pairs"), p->arena);
        assert_true(bow_message_set_string(pair, named(pair, "key"), keys[1 - i], p->arena));
    }
    assert_false(bow_message_equal(a, b));
    drop(p, a);
    drop(p, b);
}

static ProtobufCMessage *tree_of(struct place *p, unsigned n_levels)
{
    ProtobufCMessage *root = bow_message_new(&codec3__tree__descriptor, p->arena);
    ProtobufCMessage *deepest = root;

    for (unsigned i = 0; i < n_levels; i++) {
        deepest = bow_message_mutable(deepest, named(deepest, "left"), p->arena);
    }
    return root;
}

static void test_message_equal_goes_to_the_limit_of_depth(void **state)
{
    struct place *p = *state;
    ProtobufCMessage *a = tree_of(p, BOW_LIMIT_MESSAGE_DEPTH);
    ProtobufCMessage *b = tree_of(p, BOW_LIMIT_MESSAGE_DEPTH);
    ProtobufCMessage *deeper = tree_of(p, 50000);

    assert_true(bow_message_equal(a, b));
    assert_false(bow_message_equal(deeper, deeper));
    drop(p, a);
    drop(p, b);
    drop(p, deeper);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_BOTH(test_message_equal_of_random_messages_is_as_their_bytes),
        cmocka_unit_test(test_message_equal_takes_null_and_types_into_account),
        cmocka_unit_test(test_message_equal_compares_numbers_bit_for_bit),
        cmocka_unit_test(test_message_equal_tells_a_default_that_is_set_from_one_that_is_not),
        IN_BOTH(test_message_equal_compares_unknown_fields_in_order),
        IN_BOTH(test_message_equal_compares_maps_as_sets),
        IN_BOTH(test_message_equal_lets_the_last_entry_of_a_key_count),
        IN_BOTH(test_message_equal_sorts_large_maps),
        IN_BOTH(test_message_equal_without_memory_says_the_same),
        cmocka_unit_test_setup_teardown(test_message_equal_of_a_hostile_map_is_quick, in_arena,
                                        end_place),
        IN_BOTH(test_message_equal_compares_keys_of_each_type),
        IN_BOTH(test_message_equal_compares_other_repeated_messages_as_lists),
        IN_BOTH(test_message_equal_goes_to_the_limit_of_depth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
