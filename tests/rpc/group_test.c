/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Groups: those that a descriptor has, and those that it has not; and what else depends on what the
 * descriptors say beside protobuf-c: strings that need not be UTF-8, entries of maps.
 */
#include "base/block.h"
#include "codec3.pb-c.h"
#include "tests/rpc/codec_fixture.h"
#include "tests/support/group_messages.h"
#include <stdlib.h>

static struct group_node *decode_node(struct codec_fixture *f, struct bow_slice bytes)
{
    return codec_decode(f, &group_node_descriptor, bytes);
}

/* Both encoders, into `bytes`. Groups that are known are ours alone. */
static void encodes_to(const void *message, struct bow_slice bytes, bool also_by_protobuf_c)
{
    uint8_t ours[256];
    uint8_t theirs[256];
    assert_int_equal(bow__encoded_size(message), bytes.len);
    assert_int_equal(bow__encode(message, ours, sizeof ours, NULL), bytes.len);
    assert_memory_equal(ours, bytes.data, bytes.len);
    if (also_by_protobuf_c) {
        assert_int_equal(protobuf_c_message_get_packed_size(message), bytes.len);
        assert_int_equal(protobuf_c_message_pack(message, theirs), bytes.len);
        assert_memory_equal(theirs, bytes.data, bytes.len);
    }
}

static void test_groups_of_each_label_are_decoded_and_encoded(void **state)
{
    static const char wire[] = "\x08\x05"                         /* number */
                               "\x1b\x12\x01p\x1b\x1c\x1c"        /* part, with a part */
                               "\x23\x08\x01\x24\x23\x08\x02\x24" /* two items */
                               "\x2b\x08\x07\x2c"                 /* choice */
                               "\x3a\x02\x1b\x1c";                /* plain, with a part */
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    const struct group_node *m = decode_node(&f, BYTES(wire));
    assert_int_equal(m->number, 5);
    assert_string_equal(m->part->text, "p");
    assert_non_null(m->part->part);
    assert_int_equal(m->n_items, 2);
    assert_int_equal(m->items[0]->number, 1);
    assert_int_equal(m->items[1]->number, 2);
    assert_int_equal(m->kind_case, GROUP_NODE_CHOICE);
    assert_int_equal(m->choice->number, 7);
    assert_non_null(m->plain->part);
    assert_int_equal(m->base.n_unknown_fields, 0);
    encodes_to(m, BYTES(wire), false);
    codec_end(&f);
}

static void test_groups_are_encoded_where_the_room_suffices_only(void **state)
{
    static const char wire[] = "\x1b\x1b\x08\x01\x1c\x1c";
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    const struct group_node *m = decode_node(&f, BYTES(wire));
    for (size_t cap = 0; cap < sizeof wire; cap++) {
        uint8_t *room = malloc(cap + 1);
        assert_non_null(room);
        assert_int_equal(bow__encode(&m->base, room, cap, NULL), sizeof wire - 1);
        free(room);
    }
    struct group_node *none[] = {NULL};
    struct group_node bad = {
        .base = {.descriptor = &group_node_descriptor}, .n_items = 1, .items = none};
    uint8_t room[8];
    assert_int_equal(bow__encode(&bad.base, room, sizeof room, &f.reason), -EINVAL);
    assert_string_equal(f.reason.bytes,
                        "groups.Node.items is NULL, but a message is needed: point it to one");
    codec_end(&f);
}

static void test_group_sent_twice_is_merged(void **state)
{
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    const struct group_node *m =
        decode_node(&f, BYTES("\x1b\x08\x01\x23\x24\x1c\x1b\x12\x01t\x23\x24\x1c" /* part twice */
                              "\x2b\x08\x01\x2c\x2b\x12\x01u\x2c"));              /* choice twice */
    assert_int_equal(m->part->number, 1);
    assert_string_equal(m->part->text, "t");
    assert_int_equal(m->part->n_items, 2);
    assert_int_equal(m->choice->number, 1);
    assert_string_equal(m->choice->text, "u");
    m = decode_node(&f, BYTES("\x2b\x08\x01\x2c\x30\x09\x2b\x12\x01u\x2c"));
    assert_int_equal(m->choice->has_number, 0);
    m = decode_node(&f, BYTES("\x2b\x08\x01\x2c\x30\x09"));
    assert_int_equal(m->kind_case, GROUP_NODE_OTHER);
    assert_int_equal(m->other, 9);
    codec_end(&f);
}

static void test_group_that_comes_with_a_length_is_unknown_and_the_reverse(void **state)
{
    /* items, choice, part with a length; plain as a group. They leave no trace in the fields. */
    static const char wire[] = "\x30\x09\x22\x00\x2a\x02\x08\x07\x1a\x00\x3b\x08\x07\x3c";
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    const struct group_node *m = decode_node(&f, BYTES(wire));
    assert_int_equal(m->n_items, 0);
    assert_int_equal(m->kind_case, GROUP_NODE_OTHER);
    assert_int_equal(m->other, 9);
    assert_null(m->part);
    assert_null(m->plain);
    assert_int_equal(m->base.n_unknown_fields, 4);
    encodes_to(m, BYTES(wire), true);
    codec_refuse(&f, &group_needs_descriptor, BYTES("\x0a\x00"),
                 "groups.Needs.must at byte 2: required, and missing");
    codec_end(&f);
}

static void test_groups_that_are_required_are_missed(void **state)
{
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    const struct group_needs *m =
        codec_decode(&f, &group_needs_descriptor, BYTES("\x0b\x08\x03\x0c\x13\x0b\x0c\x14"));
    assert_int_equal(m->must->number, 3);
    assert_non_null(m->more->must);
    encodes_to(m, BYTES("\x0b\x08\x03\x0c\x13\x0b\x0c\x14"), false);
    codec_refuse(&f, &group_needs_descriptor, BYTES("\x0b\x0c\x13\x14"),
                 "groups.Needs.more.must at byte 4: required, and missing");
    bow__text_clear(&f.reason);
    codec_decode(&f, &group_needs_descriptor, BYTES("\x13\x14\x0b\x0c\x13\x0b\x0c\x14"));
    codec_end(&f);
}

static void test_groups_that_do_not_end_are_refused(void **state)
{
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    const ProtobufCMessageDescriptor *type = &group_node_descriptor;
    codec_refuse(&f, type, BYTES("\x1b"),
                 "groups.Node.part at byte 1: cut off before the group's end");
    codec_refuse(&f, type, BYTES("\x23\x24\x23\x08\x01"),
                 "groups.Node.items[1] at byte 5: cut off before the group's end");
    /* The end of what holds it is its end, too. */
    codec_refuse(&f, type, BYTES("\x3a\x01\x1b\x1c"),
                 "groups.Node.plain.part at byte 3: cut off before the group's end");
    codec_refuse(&f, type, BYTES("\x1b\x3a\x02\x08\x01\x24"),
                 "groups.Node.part.#4 at byte 6: end of a group that did not begin");
    codec_refuse(&f, type, BYTES("\x1b\x3a\x01\x1c\x1c"),
                 "groups.Node.part.plain.#3 at byte 4: end of a group that did not begin");
    codec_refuse(&f, type, BYTES("\x1b\x2c\x1c"),
                 "groups.Node.part.#5 at byte 2: end of a group that did not begin");
    codec_refuse(&f, type, BYTES("\x1c"),
                 "groups.Node.#3 at byte 1: end of a group that did not begin");
    codec_refuse(&f, type, BYTES("\x1b\x12\x04xx\x1c"),
                 "groups.Node.part.text at byte 2: length goes beyond the message's end");
    codec_refuse(&f, type, BYTES("\xa3\x06\x08\x01"),
                 "groups.Node.#100 at byte 4: cut off before the group's end");
    codec_refuse(&f, type, BYTES("\xa3\x06\xab\x06"),
                 "groups.Node.#101 at byte 4: cut off before the group's end");
    codec_end(&f);
}

static void test_groups_nest_to_the_limit(void **state)
{
    static uint8_t bytes[400];
    uint8_t encoded[sizeof bytes];
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    memset(bytes, 0x1b, 200);
    memset(bytes + 200, 0x1c, 200);
    const struct bow_slice allowed = {bytes + 100, 200};
    const struct group_node *m = decode_node(&f, allowed);
    assert_int_equal(bow__encode(&m->base, encoded, sizeof encoded, NULL), 200);
    assert_memory_equal(encoded, allowed.data, 200);
    codec_refuse(&f, &group_node_descriptor, (struct bow_slice){bytes + 99, 202},
                 "groups.Node.part.part.part.part.(92 more).part.part.part.part.part"
                 " at byte 101: nested deeper than 100 levels");
    bow__text_clear(&f.reason);
    f.options.max_depth = 101;
    m = decode_node(&f, (struct bow_slice){bytes + 99, 202});
    assert_int_equal(bow__encode(&m->base, encoded, sizeof encoded, NULL), -EINVAL);
    /* Unknown ones inside of known ones count, too. */
    memset(bytes + 199, 0xf3, 1);
    memset(bytes + 200, 0x01, 1);
    f.options.max_depth = 0;
    codec_refuse(&f, &group_node_descriptor, (struct bow_slice){bytes + 99, 202},
                 "groups.Node.part.part.part.part.(92 more).part.part.part.part.#30"
                 " at byte 102: groups nested too deep");
    codec_end(&f);
}

static void test_unknown_groups_are_kept_whole(void **state)
{
    static const char wire[] = "\x08\x01\x38\x02"
                               "\xa3\x06\x08\x07\x0a\x01x\xa3\x06\x9d\x06\x01\x02\x03\x04\xa4\x06"
                               "\x9b\x06\x9c\x06\xa4\x06"
                               "\xab\x06\xac\x06";
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    const Codec3__Scalars *m = codec_decode(&f, &codec3__scalars__descriptor, BYTES(wire));
    assert_int_equal(m->f_int32, 1);
    assert_int_equal(m->f_uint32, 2);
    assert_int_equal(m->base.n_unknown_fields, 2);
    const ProtobufCMessageUnknownField *first = &m->base.unknown_fields[0];
    assert_int_equal(first->tag, 100);
    assert_int_equal(first->wire_type, 3);
    assert_int_equal(first->len, sizeof wire - 1 - 4 - 2 - 4);
    assert_memory_equal(first->data, wire + 6, first->len);
    assert_int_equal(m->base.unknown_fields[1].tag, 101);
    encodes_to(m, BYTES(wire), true);
    /* In a message and in a group. */
    struct bow_slice inner = BYTES("\x1b\xa3\x06\xa4\x06\x1c\x3a\x04\xa3\x06\xa4\x06");
    encodes_to(decode_node(&f, inner), inner, false);
    codec_end(&f);
}

static void test_unknown_groups_stay_in_the_block(void **state)
{
    static const char wire[] = "\xa3\x06\x08\x07\xa4\x06\x1b\xa3\x06\xa4\x06\x1c";
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    struct bow__block *block = bow__block_new(f.context, sizeof wire - 1);
    assert_non_null(block);
    memcpy(block->data, wire, sizeof wire - 1);
    assert_int_equal(bow__arena_adopt(&f.arena, block), 0);
    f.options.block = block;
    const struct group_node *m = decode_node(&f, (struct bow_slice){block->data, sizeof wire - 1});
    assert_ptr_equal(m->base.unknown_fields[0].data, block->data + 2);
    assert_ptr_equal(m->part->base.unknown_fields[0].data, block->data + 9);
    codec_end(&f);
}

/* The NUL of a string that stays in its block takes the place of the end tag behind it. */
static void test_long_string_at_the_end_of_a_group_stays_in_the_block(void **state)
{
    enum { LEN = 5000, HEAD = 4 };
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    struct bow__block *block = bow__block_new(f.context, HEAD + LEN + 6);
    assert_non_null(block);
    memcpy(block->data, "\x1b\x12\x88\x27", HEAD);
    memset(block->data + HEAD, 'x', LEN);
    memcpy(block->data + HEAD + LEN, "\x1c\x1b\x08\x05\x1c", 5);
    assert_int_equal(bow__arena_adopt(&f.arena, block), 0);
    f.options.block = block;
    const struct group_node *m = decode_node(&f, (struct bow_slice){block->data, HEAD + LEN + 5});
    assert_ptr_equal(m->part->text, block->data + HEAD);
    assert_int_equal(strlen(m->part->text), LEN);
    assert_int_equal(m->part->number, 5);
    codec_end(&f);
}

/* Each is kept at the cost of its bytes and a slot, and of the cap of the arena. */
static void test_unknown_groups_end_at_the_cap(void **state)
{
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    size_t len = (size_t)2 << 20;
    uint8_t *bytes = malloc(len);
    assert_non_null(bytes);
    for (size_t i = 0; i < len; i += 2) {
        memcpy(bytes + i, "\x7b\x7c", 2);
    }
    ProtobufCMessage *message = NULL;
    int rc = bow__decode(&codec3__empty__descriptor, (struct bow_slice){bytes, len}, NULL, &f.arena,
                         &message, &f.reason);
    free(bytes);
    assert_int_equal(rc, -ENOMEM);
    assert_null(message);
    codec_end(&f);
}

/* A MessageSet's items are groups of number 1, which no descriptor has. */
static void test_items_of_a_message_set_are_kept(void **state)
{
    static const char wire[] = "\x0b\x10\x64\x1a\x02\x08\x01\x0c\x0b\x10\x65\x1a\x00\x0c";
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    const ProtobufCMessage *m = codec_decode(&f, &group_set_descriptor, BYTES(wire));
    assert_int_equal(m->n_unknown_fields, 2);
    assert_int_equal(m->unknown_fields[0].tag, 1);
    assert_int_equal(m->unknown_fields[1].tag, 1);
    encodes_to(m, BYTES(wire), true);
    codec_end(&f);
}

static void test_unchecked_strings_need_not_be_utf8(void **state)
{
    static const char wire[] = "\x12\x03"
                               "a\xff\xc3";
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    const struct group_node *m = decode_node(&f, BYTES(wire));
    assert_string_equal(m->text, "a\xff\xc3");
    encodes_to(m, BYTES(wire), true);
    codec_refuse(&f, &group_node_descriptor,
                 BYTES("\x12\x03\xff"
                       "\0b"),
                 "groups.Node.text at byte 3: NUL inside a string");
    bow__text_clear(&f.reason);
    f.options.allow_nul = true;
    m = decode_node(&f, BYTES("\x12\x03\xff"
                              "\0b"));
    assert_memory_equal(m->text, "\xff\0b", 4);
    codec_end(&f);
}

static void test_entries_of_maps_are_what_their_info_says(void **state)
{
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    const struct group_pairs *m =
        codec_decode(&f, &group_pairs_descriptor, BYTES("\x0a\x00\x12\x00"));
    assert_null(m->pairs[0]->key);
    assert_null(m->pairs[0]->value);
    assert_string_equal(m->map[0]->key, "");
    assert_string_equal(m->map[0]->value, "");
    codec_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups_of_each_label_are_decoded_and_encoded),
        cmocka_unit_test(test_groups_are_encoded_where_the_room_suffices_only),
        cmocka_unit_test(test_group_sent_twice_is_merged),
        cmocka_unit_test(test_group_that_comes_with_a_length_is_unknown_and_the_reverse),
        cmocka_unit_test(test_groups_that_are_required_are_missed),
        cmocka_unit_test(test_groups_that_do_not_end_are_refused),
        cmocka_unit_test(test_groups_nest_to_the_limit),
        cmocka_unit_test(test_unknown_groups_are_kept_whole),
        cmocka_unit_test(test_unknown_groups_stay_in_the_block),
        cmocka_unit_test(test_long_string_at_the_end_of_a_group_stays_in_the_block),
        cmocka_unit_test(test_unknown_groups_end_at_the_cap),
        cmocka_unit_test(test_items_of_a_message_set_are_kept),
        cmocka_unit_test(test_unchecked_strings_need_not_be_utf8),
        cmocka_unit_test(test_entries_of_maps_are_what_their_info_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
