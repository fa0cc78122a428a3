/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Copies of messages: whole, and nobody else's. */

#include "tests/rpc/message_fixture.h"

static void test_message_clone_of_random_messages_encodes_to_the_same(void **state)
{
    struct place *p = *state;
    struct bow_arena *source = bow_arena_new(NULL, 0);

    for (unsigned i = 0; i < N_RANDOM_MESSAGES; i++) {
        const ProtobufCMessage *given = random_message((struct bow__arena *)source, i);
        struct bow_slice expected = packed(given);
        ProtobufCMessage *copy = bow_message_clone(given, p->arena);
        assert_true(bow_message_equal(given, copy));
        bow_arena_reset(source); /* what it were to point to is poisoned, and then another's */
        random_message((struct bow__arena *)source, i + 1);
        struct bow_slice bytes = packed(copy);
        assert_int_equal(bytes.len, expected.len);
        assert_memory_equal(bytes.data, expected.data, bytes.len);
        free_bytes(bytes);
        free_bytes(expected);
        drop(p, copy);
    }
    bow_arena_free(source);
}

static void test_message_clone_keeps_unknown_fields(void **state)
{
    struct place *p = *state;
    ProtobufCMessage *message = decoded(p, &codec3__empty__descriptor,
                                        BYTES("\x0a\x03"
                                              "abc"
                                              "\x10\x05"));
    ProtobufCMessage *copy = bow_message_clone(message, p->arena);

    assert_int_equal(copy->n_unknown_fields, 2);
    assert_ptr_not_equal(copy->unknown_fields, message->unknown_fields);
    assert_ptr_not_equal(copy->unknown_fields[0].data, message->unknown_fields[0].data);
    assert_encodes_to(copy, BYTES("\x0a\x03"
                                  "abc"
                                  "\x10\x05"));
    drop(p, message);
    drop(p, copy);
}

static void test_message_clone_of_null_is_null(void **state)
{
    struct place *p = *state;

    assert_null(bow_message_clone(NULL, p->arena));
}

/* What is wrong with a message is so with its copy: that it cannot be encoded says so. */
static void test_message_clone_of_a_wrong_message_is_wrong_likewise(void **state)
{
    struct place *p = *state;
    Codec3__Lists lists = CODEC3__LISTS__INIT;
    char *texts[2] = {NULL, (char *)"b"};
    char reason[200];

    lists.n_f_string = 2;
    lists.f_string = texts;
    lists.n_f_message = 3; /* and no array */
    Codec3__Lists *copy = (void *)bow_message_clone(&lists.base, p->arena);
    assert_int_equal(copy->n_f_string, 2);
    assert_null(copy->f_string[0]);
    assert_string_equal(copy->f_string[1], "b");
    assert_int_equal(copy->n_f_message, 3);
    assert_int_equal(bow_message_check(&copy->base, reason, sizeof(reason)), -EINVAL);
    drop(p, copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_BOTH(test_message_clone_of_random_messages_encodes_to_the_same),
        IN_BOTH(test_message_clone_keeps_unknown_fields),
        IN_BOTH(test_message_clone_of_null_is_null),
        IN_BOTH(test_message_clone_of_a_wrong_message_is_wrong_likewise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
