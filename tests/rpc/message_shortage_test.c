/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Each function without memory, at each of its allocations: it says so, and has changed nothing. */

#include "tests/rpc/message_fixture.h"

/* What is done to a message; false when there was no memory. */
typedef bool (*change_fn)(ProtobufCMessage *message, struct bow_arena *arena);

static bool set_string(ProtobufCMessage *message, struct bow_arena *arena)
{
    return bow_message_set_string(message, named(message, "after"), "another", arena);
}

static bool set_bytes_in_oneof(ProtobufCMessage *message, struct bow_arena *arena)
{
    return bow_message_set_bytes(message, named(message, "data"), "another", 7, arena);
}

static bool make_message_in_oneof(ProtobufCMessage *message, struct bow_arena *arena)
{
    return bow_message_mutable(message, named(message, "scalars"), arena) != NULL;
}

static bool add_number(ProtobufCMessage *message, struct bow_arena *arena)
{
    const int32_t seven = 7;

    return bow_message_add_scalar(message, named(message, "f_int32"), &seven, arena);
}

static bool add_string(ProtobufCMessage *message, struct bow_arena *arena)
{
    return bow_message_add_string(message, named(message, "f_string"), "one more", arena);
}

static bool add_bytes(ProtobufCMessage *message, struct bow_arena *arena)
{
    return bow_message_add_bytes(message, named(message, "f_bytes"), "one more", 8, arena);
}

static bool add_message(ProtobufCMessage *message, struct bow_arena *arena)
{
    return bow_message_add_message(message, named(message, "f_message"), arena) != NULL;
}

static bool put_new(ProtobufCMessage *message, struct bow_arena *arena)
{
    return bow_message_put_string(message, named(message, "names"), "new", "value", arena);
}

static bool put_again(ProtobufCMessage *message, struct bow_arena *arena)
{
    return bow_message_put_string(message, named(message, "names"), "k", "another", arena);
}

static bool put_message(ProtobufCMessage *message, struct bow_arena *arena)
{
    const int32_t seven = 7;

    return bow_message_put_message(message, named(message, "by_number"), &seven, arena) != NULL;
}

static bool make_copy(ProtobufCMessage *message, struct bow_arena *arena)
{
    ProtobufCMessage *copy = bow_message_clone(message, arena);

    if (arena == NULL) {
        bow_message_free(copy);
    }
    return copy != NULL;
}

static bool encode_new(ProtobufCMessage *message, struct bow_arena *arena)
{
    struct bow_slice bytes = {NULL, 0};
    int rc = bow_message_encode_new(message, arena, &bytes);

    assert_true(rc == 0 || rc == -ENOMEM);
    if (arena == NULL) {
        free_bytes(bytes);
    }
    return rc == 0;
}

static bool decode_again(ProtobufCMessage *message, struct bow_arena *arena)
{
    ProtobufCMessage *again = NULL;
    uint8_t bytes[200];
    size_t len = 0;
    char reason[100];

    assert_int_equal(bow_message_encode(message, bytes, sizeof(bytes), &len), 0);
    int rc = bow_message_decode(message->descriptor, (struct bow_slice){bytes, len}, NULL, arena,
                                &again, reason, sizeof(reason));
    if (rc < 0) {
        assert_int_equal(rc, -ENOMEM);
        assert_non_null(strstr(reason, "no memory"));
        assert_null(again);
        return false;
    }
    if (arena == NULL) {
        bow_message_free(again);
    }
    return true;
}

/* A message with something in it, and what is done to it. */
struct scenario {
    change_fn change;
    const ProtobufCMessageDescriptor *type;
    struct bow_slice bytes;
};

#define CHOICE                                                                                     \
    &codec3__choice__descriptor, BYTES("\x1a\x03"                                                  \
                                       "old\xa2\x01\x03"                                           \
                                       "old")
#define LISTS                                                                                      \
    &codec3__lists__descriptor, BYTES("\x0a\x04\x01\x02\x03\x04\x7a\x01s\x82\x01\x01"              \
                                      "b\x8a\x01\x03\x7a\x01"                                      \
                                      "m")
#define MAPS                                                                                       \
    &codec3__maps__descriptor,                                                                     \
        BYTES("\x0a\x06\x0a\x01k\x12\x01v\x12\x07\x08\x02\x12\x03\x7a\x01s\xaa\x06\x01z")

static const struct scenario *scenarios(size_t *ret_n)
{
    static struct scenario all[] = {
        {.change = set_string}, {.change = set_bytes_in_oneof}, {.change = make_message_in_oneof},
        {.change = make_copy},  {.change = add_number},         {.change = add_string},
        {.change = add_bytes},  {.change = add_message},        {.change = make_copy},
        {.change = put_new},    {.change = put_again},          {.change = put_message},
        {.change = make_copy},  {.change = encode_new},         {.change = decode_again},
    };
    const struct scenario choice = {NULL, CHOICE};
    const struct scenario lists = {NULL, LISTS};
    const struct scenario maps = {NULL, MAPS};

    *ret_n = sizeof(all) / sizeof(all[0]);
    for (size_t i = 0; i < *ret_n; i++) {
        const struct scenario *of = i < 4 ? &choice : i < 9 ? &lists : &maps;
        all[i].type = of->type;
        all[i].bytes = of->bytes;
    }
    return all;
}

/* In the heap, the k-th allocation fails. Returns whether none did. */
static bool without_the_kth(const struct scenario *s, size_t k)
{
    ProtobufCMessage *message = NULL;

    assert_int_equal(bow_message_decode(s->type, s->bytes, NULL, NULL, &message, NULL, 0), 0);
    size_t n_before = heap_watch()->n_calls;
    heap_watch()->fail_at = n_before + k;
    bool is_done = s->change(message, NULL);
    size_t n_calls = heap_watch()->n_calls - n_before;
    heap_watch()->fail_at = 0;
    assert_int_equal(is_done, n_calls < k); /* it says so */
    if (!is_done) {
        assert_encodes_to(message, s->bytes);
    }
    bow_message_free(message);
    return is_done;
}

static void test_message_in_the_heap_without_memory_stays_as_it_was(void **state)
{
    size_t n = 0;
    const struct scenario *all = scenarios(&n);
    long n_blocks = heap_watch()->n_blocks;

    (void)state;
    for (size_t i = 0; i < n; i++) {
        size_t k = 1;
        while (!without_the_kth(&all[i], k)) {
            k++;
        }
        assert_true(k > 1); /* it does take memory */
        assert_int_equal(heap_watch()->n_blocks, n_blocks);
    }
}

/* In an arena that has `n_left` bytes beyond the message. */
static bool with_bytes_left(const struct scenario *s, struct bow_arena *arena, size_t n_left)
{
    struct bow__arena *inner = (struct bow__arena *)arena;
    ProtobufCMessage *message = NULL;

    bow_arena_reset(arena);
    assert_int_equal(bow_message_decode(s->type, s->bytes, NULL, arena, &message, NULL, 0), 0);
    inner->end = inner->next + n_left; /* no more in this chunk, and no other */
    inner->max_bytes = inner->used;
    bool is_done = s->change(message, arena);
    assert_int_equal(bow_arena_failed(arena), !is_done); /* it is remembered */
    if (!is_done) {
        assert_encodes_to(message, s->bytes);
    }
    inner->max_bytes = SIZE_MAX;
    return is_done;
}

static void test_message_in_an_arena_without_memory_stays_as_it_was(void **state)
{
    size_t n = 0;
    const struct scenario *all = scenarios(&n);
    struct bow_arena *arena = bow_arena_new(NULL, 0);

    (void)state;
    for (size_t i = 0; i < n; i++) {
        size_t n_left = 0;
        while (!with_bytes_left(&all[i], arena, n_left)) {
            n_left++;
        }
        assert_true(n_left > 0);
    }
    bow_arena_free(arena);
}

static void test_message_built_without_a_look_is_asked_for_once(void **state)
{
    struct bow_arena *arena = bow_arena_new(NULL, 1);
    ProtobufCMessage *tree = NULL;

    (void)state;
    while (bow_arena_alloc(arena, 64) != NULL) {
    }
    bow_arena_reset(arena);
    assert_false(bow_arena_failed(arena));
    while (bow_arena_alloc(arena, 64) != NULL) {
    }
    tree = bow_message_new(&codec3__tree__descriptor, arena);
    (void)bow_message_set_string(tree, field_of(&codec3__tree__descriptor, "name"), "n", arena);
    assert_null(tree);
    assert_true(bow_arena_failed(arena));
    bow_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_message_in_the_heap_without_memory_stays_as_it_was),
        cmocka_unit_test(test_message_in_an_arena_without_memory_stays_as_it_was),
        cmocka_unit_test(test_message_built_without_a_look_is_asked_for_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
