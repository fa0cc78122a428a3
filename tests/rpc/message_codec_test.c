/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Encoding and decoding as programs do it: their room, their limits, reasons, delimited messages.
 */

#include "tests/rpc/message_fixture.h"
#include <bowline/limits.h>

#define HELLO                                                                                      \
    BYTES("\x0a\x03"                                                                               \
          "Ada"                                                                                    \
          "\x18\x24") /* name, age */

static void test_message_codec_of_random_messages_agrees_with_protobuf_c(void **state)
{
    struct place *p = *state;
    struct bow_arena *source = bow_arena_new(NULL, 0);

    for (unsigned i = 0; i < N_RANDOM_MESSAGES; i++) {
        const ProtobufCMessage *given = random_message((struct bow__arena *)source, i);
        struct bow_slice bytes = packed(given);
        struct bow_slice ours = {NULL, 0};
        size_t size = 0;
        ProtobufCMessage *message = decoded(p, given->descriptor, bytes);
        assert_true(bow_message_equal(given, message));
        assert_int_equal(bow_message_size(message, &size), 0);
        assert_int_equal(size, bytes.len);
        assert_int_equal(bow_message_encode_new(message, p->arena, &ours), 0);
        assert_int_equal(ours.len, bytes.len);
        assert_memory_equal(ours.data, bytes.data, bytes.len);
        assert_int_equal(bow_message_check(message, NULL, 0), 0);
        if (p->arena == NULL) {
            free_bytes(ours);
        }
        free_bytes(bytes);
        drop(p, message);
        bow_arena_reset(source);
    }
    bow_arena_free(source);
}

static void test_message_decode_tells_where_and_why(void **state)
{
    struct place *p = *state;
    const ProtobufCMessageDescriptor *type = &codec3__hello_request__descriptor;
    ProtobufCMessage *message = NULL;
    char reason[100] = "?";
    char little[12];

    assert_int_equal(
        bow_message_decode(type, BYTES("\x0a\x01\xff"), NULL, p->arena, &message, reason, 100),
        -EBADMSG);
    assert_string_equal(reason, "codec3.HelloRequest.name at byte 2: not UTF-8");
    assert_null(message);
    assert_int_equal(
        bow_message_decode(type, BYTES("\x0a\x01\xff"), NULL, p->arena, &message, little, 12),
        -EBADMSG);
    assert_string_equal(little, "codec3.Hell");
    assert_int_equal(
        bow_message_decode(type, BYTES("\x0a\x01\xff"), NULL, p->arena, &message, NULL, 0),
        -EBADMSG);
    assert_int_equal(bow_message_decode(type, HELLO, NULL, p->arena, &message, reason, 100), 0);
    assert_string_equal(reason, "");
    drop(p, message);
}

static void test_message_decode_follows_its_options(void **state)
{
    struct place *p = *state;
    const ProtobufCMessageDescriptor *type = &codec3__tree__descriptor;
    struct bow_decode_options options = BOW_DECODE_OPTIONS_INIT;
    struct bow_slice nested = BYTES("\x12\x04\x12\x02\x12\x00");
    struct bow_slice with_nul = BYTES("\x0a\x03"
                                      "a\0b");
    ProtobufCMessage *message = NULL;
    char reason[200];

    options.max_depth = 2;
    assert_int_equal(bow_message_decode(type, nested, &options, p->arena, &message, reason, 200),
                     -EBADMSG);
    assert_string_equal(reason,
                        "codec3.Tree.left.left.left at byte 5: nested deeper than 2 levels");
    options.max_depth = 3;
    assert_int_equal(bow_message_decode(type, nested, &options, p->arena, &message, NULL, 0), 0);
    drop(p, message);
    options.max_depth = 1000; /* more than what is kept on the stack */
    assert_int_equal(bow_message_decode(type, nested, &options, p->arena, &message, NULL, 0), 0);
    drop(p, message);

    assert_int_equal(bow_message_decode(type, with_nul, &options, p->arena, &message, reason, 200),
                     -EBADMSG);
    options.allow_nul = true;
    assert_int_equal(bow_message_decode(type, with_nul, &options, p->arena, &message, NULL, 0), 0);
    drop(p, message);

    options.max_message_bytes = nested.len;
    assert_int_equal(bow_message_decode(type, nested, &options, p->arena, &message, NULL, 0), 0);
    drop(p, message);
    options.max_message_bytes = nested.len - 1;
    message = NULL;
    assert_int_equal(bow_message_decode(type, nested, &options, p->arena, &message, reason, 200),
                     -EMSGSIZE);
    assert_string_equal(reason, "a message of 6 bytes is over the limit of 5");
    options.size = sizeof(options) + 1;
    assert_int_equal(bow_message_decode(type, nested, &options, p->arena, &message, reason, 200),
                     -EINVAL);
    assert_non_null(strstr(reason, "BOW_DECODE_OPTIONS_INIT"));
    assert_null(message);
}

static void test_message_decode_refuses_more_than_the_default_limit(void **state)
{
    struct place *p = *state;
    const struct bow_slice claimed = {(const uint8_t *)"", BOW_LIMIT_MESSAGE_BYTES + 1};
    ProtobufCMessage *message = NULL;

    assert_int_equal(
        bow_message_decode(&codec3__empty__descriptor, claimed, NULL, p->arena, &message, NULL, 0),
        -EMSGSIZE); /* and none of them was looked at */
}

/* Two bytes ask for more than 128 of memory. */
static void test_message_decode_bounds_amplification(void **state)
{
    struct place *p = *state;
    static uint8_t bytes[1 << 20];
    ProtobufCMessage *message = NULL;
    char reason[200];

    for (size_t i = 0; i < sizeof(bytes); i += 2) { /* repeated empty messages */
        bytes[i] = 0x3a;
    }
    assert_int_equal(bow_message_decode(&codec_plain__plain__descriptor,
                                        (struct bow_slice){bytes, sizeof(bytes) / 2}, NULL,
                                        p->arena, &message, reason, sizeof(reason)),
                     -ENOMEM);
    assert_non_null(strstr(reason, "no memory"));
    assert_null(message);
    if (p->arena != NULL) {
        assert_true(bow_arena_failed(p->arena));
        assert_in_range(bow_arena_used(p->arena), 1, BOW_LIMIT_CALL_ARENA_BYTES);
        assert_non_null(bow_arena_alloc(p->arena, 1 << 20)); /* the arena's own limit is another */
    }
}

static void test_message_decode_borrows_bytes_where_it_may(void **state)
{
    struct place *p = *state;
    struct bow_decode_options options = BOW_DECODE_OPTIONS_INIT;
    /* A string, bytes, and an unknown field; and it must not be written to. */
    static const uint8_t bytes[] = "\x7a\x01s\x82\x01\x02xy\xaa\x06\x01z";
    const struct bow_slice input = {bytes, sizeof(bytes) - 1};
    ProtobufCMessage *message = NULL;

    options.borrow = true;
    assert_int_equal(bow_message_decode(&codec3__scalars__descriptor, input, &options, p->arena,
                                        &message, NULL, 0),
                     0);
    const Codec3__Scalars *scalars = (const void *)message;
    assert_string_equal(scalars->f_string, "s");
    assert_memory_equal(scalars->f_bytes.data, "xy", 2);
    assert_int_equal(message->n_unknown_fields, 1);
    if (p->arena != NULL) {
        assert_ptr_equal(scalars->f_bytes.data, bytes + 6);
        assert_ptr_equal(message->unknown_fields[0].data, bytes + 10);
    }
    drop(p, message);
}

/* Long strings stay in a block that is the decoder's own: this one is not. */
static void test_message_decode_borrows_no_long_strings(void **state)
{
    struct place *p = *state;
    struct bow_decode_options options = BOW_DECODE_OPTIONS_INIT;
    static uint8_t bytes[8193 + 3];
    ProtobufCMessage *message = NULL;

    memset(bytes, 'x', sizeof(bytes));
    memcpy(bytes, "\x0a\x80\x40", 3);
    options.borrow = true;
    assert_int_equal(bow_message_decode(&codec3__hello_request__descriptor,
                                        (struct bow_slice){bytes, 8192 + 3}, &options, p->arena,
                                        &message, NULL, 0),
                     0);
    const Codec3__HelloRequest *hello = (const void *)message;
    assert_int_equal(strlen(hello->name), 8192);
    assert_true((const uint8_t *)hello->name != bytes + 3);
    assert_int_equal(bytes[8192 + 3], 'x');
    drop(p, message);
}

static void test_message_encode_needs_just_its_room(void **state)
{
    struct place *p = *state;
    ProtobufCMessage *message = decoded(p, &codec3__hello_request__descriptor, HELLO);
    uint8_t room[8];
    size_t len = 99;

    for (size_t size = 0; size < HELLO.len; size++) {
        assert_int_equal(bow_message_encode(message, room, size, &len), -ENOSPC);
        assert_int_equal(len, 99);
    }
    memset(room, 0xee, sizeof(room));
    assert_int_equal(bow_message_encode(message, room, HELLO.len, &len), 0);
    assert_int_equal(len, HELLO.len);
    assert_memory_equal(room, HELLO.data, HELLO.len);
    assert_int_equal(room[7], 0xee);
    drop(p, message);
}

static void test_message_encode_of_an_empty_one_needs_no_room(void **state)
{
    struct place *p = *state;
    Codec3__Empty empty = CODEC3__EMPTY__INIT;
    struct bow_slice bytes = {NULL, 7};
    size_t len = 99;

    assert_int_equal(bow_message_encode(&empty.base, NULL, 0, &len), 0);
    assert_int_equal(len, 0);
    assert_int_equal(bow_message_encode_new(&empty.base, p->arena, &bytes), 0);
    assert_non_null(bytes.data);
    assert_int_equal(bytes.len, 0);
    if (p->arena == NULL) {
        free_bytes(bytes);
    }
}

static void test_message_that_cannot_be_encoded_is_told_from_one_that_can(void **state)
{
    struct place *p = *state;
    Codec2__Required required = CODEC2__REQUIRED__INIT;
    struct bow_slice bytes = {NULL, 7};
    uint8_t room[100];
    size_t len = 99;
    char reason[100];

    assert_int_equal(bow_message_size(&required.base, &len), -EINVAL);
    assert_int_equal(bow_message_encode(&required.base, room, sizeof(room), &len), -EINVAL);
    assert_int_equal(bow_message_encode_new(&required.base, p->arena, &bytes), -EINVAL);
    assert_int_equal(bow_message_encode_delimited(&required.base, room, sizeof(room), &len),
                     -EINVAL);
    assert_int_equal(len, 99);
    assert_int_equal(bytes.len, 7);
    assert_int_equal(bow_message_check(&required.base, reason, sizeof(reason)), -EINVAL);
    assert_string_equal(reason,
                        "codec2.Required.name is NULL, but a string is needed: set it (\"\" "
                        "for an empty one)");
    required.name = (char *)"n";
    assert_int_equal(bow_message_check(&required.base, reason, sizeof(reason)), 0);
    assert_string_equal(reason, "");
    assert_int_equal(bow_message_check(NULL, reason, sizeof(reason)), -EINVAL);
    assert_string_equal(reason, "the message is NULL");
    assert_int_equal(bow_message_size(NULL, &len), -EINVAL);
    assert_int_equal(bow_message_encode(NULL, room, sizeof(room), &len), -EINVAL);
}

static void test_message_deeper_than_the_limit_cannot_be_encoded(void **state)
{
    struct place *p = *state;
    ProtobufCMessage *root = bow_message_new(&codec3__tree__descriptor, p->arena);
    ProtobufCMessage *deepest = root;
    char reason[200];
    size_t size = 0;

    for (unsigned i = 0; i < BOW_LIMIT_MESSAGE_DEPTH; i++) {
        deepest = bow_message_mutable(deepest, named(deepest, "left"), p->arena);
    }
    assert_int_equal(bow_message_check(root, reason, sizeof(reason)), 0);
    assert_int_equal(bow_message_size(root, &size), 0);
    assert_non_null(bow_message_mutable(deepest, named(deepest, "left"), p->arena));
    assert_int_equal(bow_message_check(root, reason, sizeof(reason)), -EINVAL);
    assert_int_equal(bow_message_size(root, &size), -EINVAL);
    drop(p, root);
}

/* Delimited */

static void test_message_delimited_stand_one_behind_the_other(void **state)
{
    struct place *p = *state;
    ProtobufCMessage *message = decoded(p, &codec3__hello_request__descriptor, HELLO);
    uint8_t room[64];
    size_t n_written = 0;
    size_t n_read = 0;

    for (unsigned i = 0; i < 3; i++) {
        size_t len = 0;
        assert_int_equal(
            bow_message_encode_delimited(message, room + n_written, sizeof(room) - n_written, &len),
            0);
        assert_int_equal(len, 1 + HELLO.len);
        n_written += len;
    }
    assert_memory_equal(room,
                        "\x07\x0a\x03"
                        "Ada\x18\x24\x07",
                        9);
    while (n_read < n_written) {
        const struct bow_slice rest = {room + n_read, n_written - n_read};
        ProtobufCMessage *again = NULL;
        size_t n = 0;
        assert_int_equal(bow_message_decode_delimited(message->descriptor, rest, NULL, p->arena,
                                                      &again, &n, NULL, 0),
                         0);
        assert_true(bow_message_equal(message, again));
        drop(p, again);
        n_read += n;
    }
    assert_int_equal(n_read, n_written);
    drop(p, message);
}

static void test_message_delimited_needs_just_its_room(void **state)
{
    struct place *p = *state;
    ProtobufCMessage *message = bow_message_new(&codec3__hello_request__descriptor, p->arena);
    char name[200] = {0};
    uint8_t room[300];
    size_t len = 99;

    memset(name, 'n', 199);
    assert_true(bow_message_set_string(message, named(message, "name"), name, p->arena));
    for (size_t size = 0; size < 204; size++) { /* 2 for the length, 3 for tag and length */
        assert_int_equal(bow_message_encode_delimited(message, room, size, &len), -ENOSPC);
    }
    assert_int_equal(len, 99);
    assert_int_equal(bow_message_encode_delimited(message, room, 204, &len), 0);
    assert_int_equal(len, 204);
    assert_memory_equal(room, "\xca\x01\x0a\xc7\x01nn", 7);
    drop(p, message);
}

static void test_message_delimited_cut_at_each_byte_says_how_many_it_needs(void **state)
{
    struct place *p = *state;
    static const char whole[] = "\x87\x00\x0a\x03"
                                "Ada\x18\x24"; /* a length longer than needed */

    for (size_t n = 0; n < sizeof(whole) - 1; n++) {
        ProtobufCMessage *message = NULL;
        size_t n_needed = 0;
        char reason[10] = "?";
        assert_int_equal(bow_message_decode_delimited(&codec3__hello_request__descriptor,
                                                      (struct bow_slice){(const uint8_t *)whole, n},
                                                      NULL, p->arena, &message, &n_needed, reason,
                                                      sizeof(reason)),
                         -EAGAIN);
        assert_int_equal(n_needed, n < 2 ? n + 1 : sizeof(whole) - 1);
        assert_null(message);
        assert_string_equal(reason, "");
    }
}

static void test_message_delimited_refuses_lengths_that_cannot_be(void **state)
{
    struct place *p = *state;
    const ProtobufCMessageDescriptor *type = &codec3__hello_request__descriptor;
    struct bow_decode_options options = BOW_DECODE_OPTIONS_INIT;
    ProtobufCMessage *message = NULL;
    size_t n_used = 99;
    char reason[200];

    assert_int_equal(
        bow_message_decode_delimited(type, BYTES("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), NULL,
                                     p->arena, &message, &n_used, reason, sizeof(reason)),
        -EBADMSG);
    assert_string_equal(reason, "a length above 64 bits");
    assert_int_equal(
        bow_message_decode_delimited(type, BYTES("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), NULL,
                                     p->arena, &message, &n_used, reason, sizeof(reason)),
        -EMSGSIZE);
    assert_string_equal(reason,
                        "a message of 18446744073709551615 bytes is over the limit of 4194304");
    options.max_message_bytes = SIZE_MAX;
    assert_int_equal(bow_message_decode_delimited(type,
                                                  BYTES("\xfa\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
                                                  &options, p->arena, &message, &n_used, NULL, 0),
                     -EMSGSIZE);
    assert_int_equal(bow_message_decode_delimited(type, BYTES("\x80\x80\x80\x80\x08"), &options,
                                                  p->arena, &message, &n_used, reason,
                                                  sizeof(reason)),
                     -EMSGSIZE);
    assert_string_equal(reason, "a message of 2147483648 bytes is over the limit of 2147483647");
    options.max_message_bytes = 7;
    assert_int_equal(bow_message_decode_delimited(type, BYTES("\x08"), &options, p->arena, &message,
                                                  &n_used, NULL, 0),
                     -EMSGSIZE);
    assert_int_equal(bow_message_decode_delimited(type, BYTES("\x03\x0a\x01\xff"), &options,
                                                  p->arena, &message, &n_used, NULL, 0),
                     -EBADMSG);
    assert_int_equal(n_used, 99);
    assert_null(message);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_BOTH(test_message_codec_of_random_messages_agrees_with_protobuf_c),
        IN_BOTH(test_message_decode_tells_where_and_why),
        IN_BOTH(test_message_decode_follows_its_options),
        IN_BOTH(test_message_decode_refuses_more_than_the_default_limit),
        IN_BOTH(test_message_decode_bounds_amplification),
        IN_BOTH(test_message_decode_borrows_bytes_where_it_may),
        IN_BOTH(test_message_decode_borrows_no_long_strings),
        IN_BOTH(test_message_encode_needs_just_its_room),
        IN_BOTH(test_message_encode_of_an_empty_one_needs_no_room),
        IN_BOTH(test_message_that_cannot_be_encoded_is_told_from_one_that_can),
        IN_BOTH(test_message_deeper_than_the_limit_cannot_be_encoded),
        IN_BOTH(test_message_delimited_stand_one_behind_the_other),
        IN_BOTH(test_message_delimited_needs_just_its_room),
        IN_BOTH(test_message_delimited_cut_at_each_byte_says_how_many_it_needs),
        IN_BOTH(test_message_delimited_refuses_lengths_that_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
