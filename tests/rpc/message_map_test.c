/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Maps: put, got, taken out; the last entry of a key counts. */

#include "tests/rpc/message_fixture.h"

static Codec3__Maps *maps_of(struct place *p)
{
    Codec3__Maps *maps = (void *)bow_message_new(&codec3__maps__descriptor, p->arena);

    assert_non_null(maps);
    return maps;
}

static const char *name_at(const Codec3__Maps *maps, const char *key)
{
    const ProtobufCMessage *entry = bow_message_get_entry(&maps->base, named(maps, "names"), key);

    return entry != NULL ? ((const Codec3__Maps__NamesEntry *)(const void *)entry)->value : NULL;
}

static void test_map_put_adds_or_replaces(void **state)
{
    struct place *p = *state;
    Codec3__Maps *maps = maps_of(p);
    const ProtobufCFieldDescriptor *names = named(maps, "names");

    assert_null(name_at(maps, "a"));
    assert_true(bow_message_put_string(&maps->base, names, "a", "1", p->arena));
    assert_true(bow_message_put_string(&maps->base, names, "b", "2", p->arena));
    assert_true(bow_message_put_string(&maps->base, names, "a", "3", p->arena));
    assert_true(bow_message_put_string(&maps->base, names, "", "4", p->arena));
    assert_int_equal(maps->n_names, 3);
    assert_string_equal(name_at(maps, "a"), "3");
    assert_string_equal(name_at(maps, "b"), "2");
    assert_string_equal(name_at(maps, ""), "4");
    assert_null(name_at(maps, "c"));
    assert_encodes_to(maps, BYTES("\x0a\x06\x0a\x01"
                                  "a\x12\x01"
                                  "3\x0a\x06\x0a\x01"
                                  "b\x12\x01"
                                  "2"
                                  "\x0a\x03\x12\x01"
                                  "4"));
    drop(p, maps);
}

static void test_map_put_takes_values_of_each_type(void **state)
{
    struct place *p = *state;
    Codec3__Maps *maps = maps_of(p);
    const protobuf_c_boolean yes = 1;
    const int32_t seven = 7;
    const Codec3__Color red = CODEC3__COLOR__COLOR_RED;

    assert_true(
        bow_message_put_bytes(&maps->base, named(maps, "flags"), &yes, "\0\1", 2, p->arena));
    assert_true(bow_message_put_bytes(&maps->base, named(maps, "flags"), &yes, NULL, 0, p->arena));
    assert_int_equal(maps->n_flags, 1);
    assert_int_equal(maps->flags[0]->value.len, 0);
    assert_true(bow_message_put_scalar(&maps->base, named(maps, "colors"), "c", &red, p->arena));
    assert_int_equal(maps->colors[0]->value, CODEC3__COLOR__COLOR_RED);
    ProtobufCMessage *value =
        bow_message_put_message(&maps->base, named(maps, "by_number"), &seven, p->arena);
    assert_true(bow_message_set_string(value, named(value, "f_string"), "x", p->arena));
    assert_string_equal(maps->by_number[0]->value->f_string, "x");
    value = bow_message_put_message(&maps->base, named(maps, "by_number"), &seven, p->arena);
    assert_ptr_equal(value, maps->by_number[0]->value);
    assert_string_equal(maps->by_number[0]->value->f_string, ""); /* anew */
    assert_int_equal(maps->n_by_number, 1);
    drop(p, maps);
}

static void test_map_mutable_value_is_the_one_that_counts_or_a_new_one(void **state)
{
    struct place *p = *state;
    Codec3__Maps *maps = maps_of(p);
    const ProtobufCFieldDescriptor *by_number = named(maps, "by_number");
    const int32_t seven = 7;
    const int32_t eight = 8;

    ProtobufCMessage *value = bow_message_mutable_value(&maps->base, by_number, &seven, p->arena);
    assert_true(bow_message_set_string(value, named(value, "f_string"), "x", p->arena));
    assert_ptr_equal(bow_message_mutable_value(&maps->base, by_number, &seven, p->arena), value);
    assert_string_equal(maps->by_number[0]->value->f_string, "x"); /* as it was */
    assert_ptr_not_equal(bow_message_mutable_value(&maps->base, by_number, &eight, p->arena),
                         value);
    assert_int_equal(maps->n_by_number, 2);
    drop(p, maps);
}

static void test_map_put_of_another_type_is_refused(void **state)
{
    struct place *p = *state;
    Codec3__Maps *maps = maps_of(p);
    const int32_t one = 1;

    assert_false(bow_message_put_scalar(&maps->base, named(maps, "names"), "a", &one, p->arena));
    assert_false(bow_message_put_string(&maps->base, named(maps, "colors"), "a", "b", p->arena));
    assert_false(bow_message_put_bytes(&maps->base, named(maps, "names"), "a", "b", 1, p->arena));
    assert_null(bow_message_put_message(&maps->base, named(maps, "names"), "a", p->arena));
    assert_null(bow_message_mutable_value(&maps->base, named(maps, "names"), "a", p->arena));
    assert_true(bow_message_put_string(&maps->base, named(maps, "names"), "there", "b", p->arena));
    assert_null(bow_message_mutable_value(&maps->base, named(maps, "names"), "there", p->arena));
    assert_null(bow_message_mutable_value(&maps->base, named(maps, "by_number"), NULL, p->arena));
    bow_message_clear_field(&maps->base, named(maps, "names"), p->arena);
    assert_false(bow_message_put_string(&maps->base, named(maps, "names"), NULL, "b", p->arena));
    assert_false(bow_message_put_string(&maps->base, named(maps, "names"), "a", NULL, p->arena));
    assert_false(bow_message_remove(&maps->base, named(maps, "names"), NULL, p->arena));
    assert_null(bow_message_get_entry(&maps->base, named(maps, "names"), NULL));
    assert_encodes_to(maps, BYTES(""));
    drop(p, maps);
}

static void test_map_of_proto2_notes_that_key_and_value_are_there(void **state)
{
    struct place *p = *state;
    ProtobufCMessage *map = bow_message_new(&codec2__map__descriptor, p->arena);

    assert_true(bow_message_put_string(map, named(map, "names"), "", "", p->arena));
    assert_encodes_to(map, BYTES("\x0a\x04\x0a\x00\x12\x00"));
    drop(p, map);
}

/* As it may come from a peer. */
static void test_map_with_a_key_twice_gets_and_puts_the_last(void **state)
{
    struct place *p = *state;
    Codec3__Maps *maps = decoded(p, &codec3__maps__descriptor,
                                 BYTES("\x0a\x06\x0a\x01"
                                       "k\x12\x01"
                                       "1\x0a\x06\x0a\x01"
                                       "k\x12\x01"
                                       "2\x0a\x06\x0a\x01"
                                       "m\x12\x01"
                                       "3"));

    assert_string_equal(name_at(maps, "k"), "2");
    assert_true(bow_message_put_string(&maps->base, named(maps, "names"), "k", "new", p->arena));
    assert_string_equal(name_at(maps, "k"), "new");
    assert_string_equal(maps->names[0]->value, "1");
    assert_int_equal(maps->n_names, 3);
    drop(p, maps);
}

static void test_map_remove_takes_all_entries_of_a_key(void **state)
{
    struct place *p = *state;
    Codec3__Maps *maps = decoded(p, &codec3__maps__descriptor,
                                 BYTES("\x0a\x06\x0a\x01"
                                       "k\x12\x01"
                                       "1\x0a\x06\x0a\x01"
                                       "m\x12\x01"
                                       "2\x0a\x06\x0a\x01"
                                       "k\x12\x01"
                                       "3"));
    const ProtobufCFieldDescriptor *names = named(maps, "names");

    assert_true(bow_message_remove(&maps->base, names, "k", p->arena));
    assert_int_equal(maps->n_names, 1);
    assert_string_equal(maps->names[0]->key, "m");
    assert_false(bow_message_remove(&maps->base, names, "k", p->arena));
    assert_true(bow_message_remove(&maps->base, names, "m", p->arena));
    assert_false(bow_message_has(&maps->base, names));
    assert_true(bow_message_put_string(&maps->base, names, "m", "again", p->arena));
    assert_string_equal(name_at(maps, "m"), "again");
    assert_true(bow_message_remove(&maps->base, names, "m", p->arena));
    drop_by_protobuf_c(p, maps); /* an array without elements, too */
}

static void test_map_remove_may_be_given_the_key_of_an_entry(void **state)
{
    struct place *p = *state;
    Codec3__Maps *maps = decoded(p, &codec3__maps__descriptor,
                                 BYTES("\x0a\x06\x0a\x01"
                                       "k\x12\x01"
                                       "1\x0a\x06\x0a\x01"
                                       "m\x12\x01"
                                       "2\x0a\x06\x0a\x01"
                                       "k\x12\x01"
                                       "3\x0a\x06\x0a\x01"
                                       "a\x12\x01"
                                       "4"));
    const ProtobufCFieldDescriptor *names = named(maps, "names");

    assert_true(bow_message_remove(&maps->base, names, maps->names[0]->key, p->arena));
    assert_int_equal(maps->n_names, 2);
    assert_string_equal(maps->names[0]->key, "m");
    assert_string_equal(maps->names[1]->key, "a");
    drop(p, maps);
}

static void test_map_put_may_be_given_its_own_value(void **state)
{
    struct place *p = *state;
    Codec3__Maps *maps = maps_of(p);
    const ProtobufCFieldDescriptor *names = named(maps, "names");

    assert_true(bow_message_put_string(&maps->base, names, "a", "value", p->arena));
    assert_true(bow_message_put_string(&maps->base, names, maps->names[0]->key,
                                       maps->names[0]->value + 1, p->arena));
    assert_string_equal(name_at(maps, "a"), "alue");
    drop(p, maps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_BOTH(test_map_put_adds_or_replaces),
        IN_BOTH(test_map_put_takes_values_of_each_type),
        IN_BOTH(test_map_mutable_value_is_the_one_that_counts_or_a_new_one),
        IN_BOTH(test_map_put_of_another_type_is_refused),
        IN_BOTH(test_map_of_proto2_notes_that_key_and_value_are_there),
        IN_BOTH(test_map_with_a_key_twice_gets_and_puts_the_last),
        IN_BOTH(test_map_remove_takes_all_entries_of_a_key),
        IN_BOTH(test_map_remove_may_be_given_the_key_of_an_entry),
        IN_BOTH(test_map_put_may_be_given_its_own_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
