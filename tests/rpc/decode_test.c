/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the decoder makes of single messages, written out byte by byte.
 */
#include "base/block.h"
#include "codec2.pb-c.h"
#include "codec3.pb-c.h"
#include "codec_plain.pb-c.h"
#include "tests/rpc/codec_fixture.h"

#include <bowline/service.h>
#include <stdio.h>
#include <stdlib.h>

static void test_decode_all_scalars_are_read(void **state)
{
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    Codec3__Scalars *m =
        codec_decode(&f, &codec3__scalars__descriptor,
                     BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" /* int32 -1 */
                           "\x10\x03"                                     /* sint32 -2 */
                           "\x1d\xfd\xff\xff\xff"                         /* sfixed32 -3 */
                           "\x20\xfc\xff\xff\xff\xff\xff\xff\xff\xff\x01" /* int64 -4 */
                           "\x28\x09"                                     /* sint64 -5 */
                           "\x31\xfa\xff\xff\xff\xff\xff\xff\xff"         /* sfixed64 -6 */
                           "\x38\xff\xff\xff\xff\x0f"                     /* uint32 max */
                           "\x45\x78\x56\x34\x12"                         /* fixed32 */
                           "\x48\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" /* uint64 max */
                           "\x51\xef\xcd\xab\x89\x67\x45\x23\x01"         /* fixed64 */
                           "\x5d\x00\x00\xc0\x3f"                         /* float 1.5 */
                           "\x61\x00\x00\x00\x00\x00\x00\x04\xc0"         /* double -2.5 */
                           "\x68\x01\x70\x01"                             /* bool, enum */
                           "\x7a\x02hi\x82\x01\x02\x00\xff"               /* string, bytes */
                           "\xe2\x12\x02\x08\x07"));                      /* message */
    assert_int_equal(m->f_int32, -1);
    assert_int_equal(m->f_sint32, -2);
    assert_int_equal(m->f_sfixed32, -3);
    assert_int_equal(m->f_int64, -4);
    assert_int_equal(m->f_sint64, -5);
    assert_int_equal(m->f_sfixed64, -6);
    assert_true(m->f_uint32 == UINT32_MAX);
    assert_int_equal(m->f_fixed32, 0x12345678);
    assert_true(m->f_uint64 == UINT64_MAX);
    assert_true(m->f_fixed64 == UINT64_C(0x0123456789abcdef));
    assert_true(m->f_float == 1.5f);
    assert_true(m->f_double == -2.5);
    assert_int_equal(m->f_bool, 1);
    assert_int_equal(m->f_enum, CODEC3__COLOR__COLOR_RED);
    assert_string_equal(m->f_string, "hi");
    assert_int_equal(m->f_bytes.len, 2);
    assert_memory_equal(m->f_bytes.data, "\x00\xff", 2);
    assert_int_equal(m->f_message->f_int32, 7);
    codec_end(&f);
}

static void test_decode_nothing_gives_defaults(void **state)
{
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    Codec3__Scalars *m = codec_decode(&f, &codec3__scalars__descriptor, (struct bow_slice){0});
    assert_ptr_equal(m->f_string, protobuf_c_empty_string);
    assert_null(m->f_message);
    assert_int_equal(m->f_bytes.len, 0);
    codec_decode(&f, &codec3__empty__descriptor, BYTES(""));
    Codec2__Defaults *d = codec_decode(&f, &codec2__defaults__descriptor, BYTES(""));
    assert_int_equal(d->f_int32, -5);
    assert_int_equal(d->has_f_int32, 0);
    assert_string_equal(d->f_string, "fallback");
    assert_memory_equal(d->f_bytes.data, "\001\002", 2);
    codec_end(&f);
}

static void test_decode_of_a_type_without_init_takes_defaults_from_the_descriptor(void **state)
{
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    assert_null(codec_plain__plain__descriptor.message_init);
    CodecPlain__Plain *m =
        codec_decode(&f, &codec_plain__plain__descriptor, BYTES("\x08\x05\x3a\x02\x08\x06"));
    assert_int_equal(m->id, 5);
    assert_int_equal(m->number, 41);
    assert_int_equal(m->has_number, 0);
    assert_string_equal(m->text, "as before");
    assert_int_equal(m->data.len, 3);
    assert_memory_equal(m->data.data, "xyz", 3);
    assert_int_equal(m->flag, 1);
    assert_true(m->real == 2.5);
    assert_int_equal(m->kind_case, CODEC_PLAIN__PLAIN__KIND__NOT_SET);
    assert_int_equal(m->n_plains, 1);
    assert_int_equal(m->plains[0]->id, 6);
    codec_refuse(&f, &codec_plain__plain__descriptor, BYTES("\x08\x05\x3a\x02\x10\x06"),
                 "message.#7[0].#1 at byte 6: required, and missing");
    codec_end(&f);
}

static void test_decode_optional_sets_has(void **state)
{
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    Codec2__Optional *m =
        codec_decode(&f, &codec2__optional__descriptor, BYTES("\x08\x00\x82\x01\x00\x7a\x00"));
    assert_int_equal(m->has_f_int32, 1);
    assert_int_equal(m->f_int32, 0);
    assert_int_equal(m->has_f_bytes, 1);
    assert_int_equal(m->f_bytes.len, 0);
    assert_int_equal(m->has_f_bool, 0);
    assert_non_null(m->f_string);
    assert_string_equal(m->f_string, "");
    codec_end(&f);
}

static void test_decode_any_true_bool_is_1(void **state)
{
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    Codec3__Scalars *m = codec_decode(&f, &codec3__scalars__descriptor, BYTES("\x68\x02"));
    assert_int_equal(m->f_bool, 1);
    m = codec_decode(&f, &codec3__scalars__descriptor, BYTES("\x68\x80\x80\x80\x80\x80\x01"));
    assert_int_equal(m->f_bool, 1);
    m = codec_decode(&f, &codec3__scalars__descriptor, BYTES("\x68\x01\x68\x80\x00"));
    assert_int_equal(m->f_bool, 0);
    codec_end(&f);
}

static void test_decode_open_enums_keep_unknown_numbers(void **state)
{
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    Codec2__Optional *m = codec_decode(&f, &codec2__optional__descriptor, BYTES("\x70\x63"));
    assert_int_equal(m->has_f_enum, 1);
    assert_int_equal((int)m->f_enum, 99);
    codec_end(&f);
}

static void test_decode_repeated_takes_packed_and_loose_mixed(void **state)
{
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    Codec3__Lists *m = codec_decode(&f, &codec3__lists__descriptor,
                                    BYTES("\x08\x01\x0a\x03\x02\x80\x01\x08\x04\x0a\x00"
                                          "\xa2\x01\x02\x07\x08" /* packed, declared loose */
                                          "\x1d\x01\x00\x00\x00" /* loose, declared packed */
                                          "\x1a\x08\x02\x00\x00\x00\x03\x00\x00\x00"));
    static const int32_t numbers[] = {1, 2, 128, 4};
    static const int32_t words[] = {1, 2, 3};
    assert_int_equal(m->n_f_int32, 4);
    assert_memory_equal(m->f_int32, numbers, sizeof numbers);
    assert_int_equal(m->n_loose, 2);
    assert_int_equal(m->loose[1], 8);
    assert_int_equal(m->n_f_sfixed32, 3);
    assert_memory_equal(m->f_sfixed32, words, sizeof words);
    codec_end(&f);
}

static void test_decode_repeated_of_many_keeps_order(void **state)
{
    struct codec_fixture f;
    uint8_t bytes[3000];
    (void)state;
    codec_begin(&f);
    for (size_t i = 0; i < 1000; i++) { /* strings of one character */
        memcpy(&bytes[3 * i], (const uint8_t[]){0x7a, 1, (uint8_t)('a' + i % 26)}, 3);
    }
    Codec3__Lists *m =
        codec_decode(&f, &codec3__lists__descriptor, (struct bow_slice){bytes, sizeof bytes});
    assert_int_equal(m->n_f_string, 1000);
    for (size_t i = 0; i < 1000; i++) {
        assert_int_equal(m->f_string[i][0], 'a' + i % 26);
    }
    codec_end(&f);
}

static void test_decode_message_sent_twice_is_merged(void **state)
{
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    Codec3__Everything *m =
        codec_decode(&f, &codec3__everything__descriptor,
                     BYTES("\x0a\x06\x08\x01\x7a\x02no"  /* scalars: 1, "no" */
                           "\x12\x02\x08\x07"            /* lists: 7 */
                           "\x0a\x07\x38\x02\x7a\x03yes" /* scalars: 2, "yes" */
                           "\x12\x02\x08\x08"            /* lists: 8 */
                           "\x22\x02\x08\x05\x22\x00"    /* choice: nothing set */
                           "\x2a\x04\x12\x02\x0a\x00\x2a\x07\x12\x05\x0a\x03sub")); /* tree */
    assert_int_equal(m->scalars->f_int32, 1);
    assert_int_equal(m->scalars->f_uint32, 2);
    assert_string_equal(m->scalars->f_string, "yes");
    assert_int_equal(m->lists->n_f_int32, 2);
    assert_int_equal(m->lists->f_int32[0], 7);
    assert_int_equal(m->lists->f_int32[1], 8);
    assert_int_equal(m->choice->before, 5);
    assert_int_equal(m->choice->kind_case, CODEC3__CHOICE__KIND__NOT_SET);
    assert_string_equal(m->tree->left->name, "sub");
    codec_end(&f);
}

static void test_decode_oneof_last_member_wins(void **state)
{
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    Codec3__Choice *m = codec_decode(&f, &codec3__choice__descriptor,
                                     BYTES("\x10\x07\x1a\x03two\x52\x01L\x2a\x02\x08\x09"));
    assert_int_equal(m->kind_case, CODEC3__CHOICE__KIND_SCALARS);
    assert_int_equal(m->scalars->f_int32, 9);
    assert_int_equal(m->other_case, CODEC3__CHOICE__OTHER_LEFT);
    m = codec_decode(&f, &codec3__choice__descriptor, BYTES("\x2a\x02\x08\x09\x10\x00"));
    assert_int_equal(m->kind_case, CODEC3__CHOICE__KIND_NUMBER);
    assert_int_equal(m->number, 0);
    codec_end(&f);
}

static void test_decode_oneof_message_merges_unless_another_came_between(void **state)
{
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    Codec3__Choice *m =
        codec_decode(&f, &codec3__choice__descriptor, BYTES("\x2a\x02\x08\x09\x2a\x02\x38\x01"));
    assert_int_equal(m->scalars->f_int32, 9);
    assert_int_equal(m->scalars->f_uint32, 1);
    m = codec_decode(&f, &codec3__choice__descriptor,
                     BYTES("\x2a\x02\x08\x09\x32\x00\x2a\x02\x38\x01"));
    assert_int_equal(m->scalars->f_int32, 0);
    assert_int_equal(m->scalars->f_uint32, 1);
    codec_end(&f);
}

static void test_decode_required_missing_is_refused_with_its_path(void **state)
{
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    const ProtobufCMessageDescriptor *type = &codec2__required__descriptor;
    codec_refuse(&f, type, BYTES(""), "codec2.Required.id at byte 0: required, and missing");
    codec_refuse(&f, type, BYTES("\x08\x01\x12\x00\x28\x01"),
                 "codec2.Required.data at byte 6: required, and missing");
    Codec2__Required *m = codec_decode(
        &f, type, (bow__text_clear(&f.reason), BYTES("\x08\x00\x12\x00\x1a\x00\x28\x01")));
    assert_string_equal(m->name, "");
    codec_refuse(&f, &codec2__holder__descriptor,
                 BYTES("\x1a\x05\x0d\x01\x00\x00\x00"
                       "\x12\x08\x08\x00\x12\x00\x1a\x00\x28\x01\x12\x02\x08\x01"),
                 "codec2.Holder.many[1].name at byte 21: required, and missing");
    codec_end(&f);
}

static void test_decode_required_may_come_in_pieces(void **state)
{
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    Codec2__Holder *m = codec_decode(&f, &codec2__holder__descriptor,
                                     BYTES("\x0a\x04\x08\x01\x12\x00\x1a\x05\x0d\x01\x00\x00\x00"
                                           "\x0a\x04\x1a\x00\x28\x01"));
    assert_int_equal(m->one->id, 1);
    assert_int_equal(m->one->level, CODEC2__LEVEL__LEVEL_LOW);
    /* What lacks a field, and was replaced in its oneof, is not there to be complete. */
    m = codec_decode(&f, &codec2__holder__descriptor,
                     BYTES("\x22\x02\x08\x01\x1a\x05\x0d\x01\x00\x00\x00\x28\x03"));
    assert_int_equal(m->number, 3);
    codec_end(&f);
}

static void test_decode_map_entries_are_kept_in_order_and_completed(void **state)
{
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    Codec3__Maps *m = codec_decode(&f, &codec3__maps__descriptor,
                                   BYTES("\x0a\x06\x0a\x01k\x12\x01v\x0a\x03\x0a\x01k\x0a\x00"
                                         "\x12\x02\x08\x05\x12\x00"));
    assert_int_equal(m->n_names, 3);
    assert_string_equal(m->names[0]->value, "v");
    assert_string_equal(m->names[1]->key, "k");
    assert_string_equal(m->names[1]->value, "");
    assert_string_equal(m->names[2]->key, "");
    assert_int_equal(m->n_by_number, 2);
    assert_int_equal(m->by_number[0]->key, 5);
    assert_non_null(m->by_number[0]->value);
    assert_ptr_equal(m->by_number[0]->value->base.descriptor, &codec3__scalars__descriptor);
    assert_non_null(m->by_number[1]->value);
    Codec2__Map *proto2 = codec_decode(&f, &codec2__map__descriptor, BYTES("\x0a\x00"));
    assert_string_equal(proto2->names[0]->key, "");
    assert_string_equal(proto2->names[0]->value, "");
    codec_refuse(&f, &codec2__map__descriptor, BYTES("\x12\x03\x0a\x01k"),
                 "codec2.Map.required_ones[0].value.id at byte 5: required, and missing");
    codec_end(&f);
}

static void test_decode_pairs_that_are_no_map_are_left_alone(void **state)
{
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    Codec3__Pairs *m =
        codec_decode(&f, &codec3__pairs__descriptor, BYTES("\x0a\x03\x0a\x01k\x0a\x02\x12\x00"));
    assert_int_equal(m->n_pairs, 2);
    assert_null(m->pairs[0]->value);
    assert_non_null(m->pairs[1]->value);
    codec_end(&f);
}

static void check_unknown(const ProtobufCMessageUnknownField *field, uint32_t number,
                          unsigned wire_type, struct bow_slice data)
{
    assert_int_equal(field->tag, number);
    assert_int_equal(field->wire_type, wire_type);
    assert_int_equal(field->len, data.len);
    assert_memory_equal(field->data, data.data, data.len);
}

static void test_decode_unknown_fields_are_kept_as_protobuf_c_keeps_them(void **state)
{
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    Codec3__Empty *m = codec_decode(&f, &codec3__empty__descriptor,
                                    BYTES("\x08\x96\x01\x11\x01\x02\x03\x04\x05\x06\x07\x08"
                                          "\x1a\x02hi\x25\x01\x02\x03\x04"
                                          "\xf8\xff\xff\xff\x0f\x00"));
    assert_int_equal(m->base.n_unknown_fields, 5);
    check_unknown(&m->base.unknown_fields[0], 1, 0, BYTES("\x96\x01"));
    check_unknown(&m->base.unknown_fields[1], 2, 1, BYTES("\x01\x02\x03\x04\x05\x06\x07\x08"));
    check_unknown(&m->base.unknown_fields[2], 3, 2, BYTES("\x02hi"));
    check_unknown(&m->base.unknown_fields[3], 4, 5, BYTES("\x01\x02\x03\x04"));
    check_unknown(&m->base.unknown_fields[4], 536870911, 0, BYTES("\x00"));
    codec_end(&f);
}

static void test_decode_known_field_of_another_wire_type_is_unknown(void **state)
{
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    Codec3__Scalars *m = codec_decode(&f, &codec3__scalars__descriptor,
                                      BYTES("\x0d\x01\x02\x03\x04\x78\x07\x0a\x01z"));
    assert_int_equal(m->f_int32, 0);
    assert_ptr_equal(m->f_string, protobuf_c_empty_string);
    assert_int_equal(m->base.n_unknown_fields, 3);
    check_unknown(&m->base.unknown_fields[0], 1, 5, BYTES("\x01\x02\x03\x04"));
    check_unknown(&m->base.unknown_fields[1], 15, 0, BYTES("\x07"));
    check_unknown(&m->base.unknown_fields[2], 1, 2, BYTES("\x01z"));
    codec_end(&f);
}

static void test_decode_bad_wire_types_are_refused(void **state)
{
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    const ProtobufCMessageDescriptor *type = &codec3__scalars__descriptor;
    codec_refuse(&f, type, BYTES("\xa3\x06\x9c\x06"),
                 "codec3.Scalars.#99 at byte 4: end of a group that did not begin");
    codec_refuse(&f, type, BYTES("\x0c"),
                 "codec3.Scalars.#1 at byte 1: end of a group that did not begin");
    codec_refuse(&f, type, BYTES("\x0f"), "codec3.Scalars.#1 at byte 1: no such wire type");
    codec_refuse(&f, type, BYTES("\xa3\x06\x0f\xa4\x06"),
                 "codec3.Scalars.#1 at byte 3: no such wire type");
    codec_end(&f);
}

static void test_decode_text_must_be_utf8_without_nul(void **state)
{
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    const ProtobufCMessageDescriptor *type = &codec3__hello_request__descriptor;
    codec_refuse(&f, type, BYTES("\x0a\x06Jos\xc3\xa9\xff"),
                 "codec3.HelloRequest.name at byte 7: not UTF-8");
    codec_refuse(&f, type,
                 BYTES("\x0a\x0c"
                       "0123456789\xc3 "),
                 "codec3.HelloRequest.name at byte 12: not UTF-8");
    codec_refuse(&f, type,
                 BYTES("\x18\x01\x12\x03"
                       "a\0b"),
                 "codec3.HelloRequest.city at byte 5: NUL inside a string");
    codec_refuse(&f, &codec3__everything__descriptor, BYTES("\x32\x00\x32\x05\x0a\x03\x7a\x01\xff"),
                 "codec3.Everything.more[1].scalars.f_string at byte 8: not UTF-8");
    bow__text_clear(&f.reason);
    f.options.allow_nul = true;
    Codec3__HelloRequest *m = codec_decode(&f, type,
                                           BYTES("\x12\x0c"
                                                 "a\0b and more"));
    assert_memory_equal(m->city, "a\0b and more", 13);
    codec_refuse(&f, type,
                 BYTES("\x12\x03"
                       "a\0\xff"),
                 "codec3.HelloRequest.city at byte 4: not UTF-8");
    codec_end(&f);
}

static void test_decode_bad_tags_and_lengths_are_refused(void **state)
{
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    const ProtobufCMessageDescriptor *type = &codec3__scalars__descriptor;
    codec_refuse(&f, type, BYTES("\x00\x01"), "codec3.Scalars at byte 0: field number 0");
    codec_refuse(&f, &codec3__empty__descriptor, BYTES("\x80\x00"),
                 "codec3.Empty at byte 0: field number 0");
    codec_refuse(&f, type, BYTES("\x88\x80\x80\x80\x80\x00\x01"),
                 "codec3.Scalars at byte 0: a tag of more than 5 bytes");
    codec_refuse(&f, type, BYTES("\x08\x01\x88\x80\x80\x80\x10\x01"),
                 "codec3.Scalars at byte 2: a field number above 536870911");
    codec_refuse(&f, type, BYTES("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
                 "codec3.Scalars at byte 0: a tag above 64 bits");
    codec_refuse(&f, type, BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"),
                 "codec3.Scalars.f_int32 at byte 1: a varint above 64 bits");
    codec_refuse(&f, type, BYTES("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"),
                 "codec3.Scalars.f_int32 at byte 1: a varint above 64 bits");
    codec_refuse(&f, type, BYTES("\x7a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
                 "codec3.Scalars.f_string at byte 1: length goes beyond the message's end");
    codec_refuse(&f, type, BYTES("\x82\x01\x02x"),
                 "codec3.Scalars.f_bytes at byte 2: length goes beyond the message's end");
    codec_refuse(
        &f, &codec3__everything__descriptor, BYTES("\x0a\x04\x7a\x03xx\x08\x01"),
        "codec3.Everything.scalars.f_string at byte 3: length goes beyond the message's end");
    codec_refuse(&f, &codec3__lists__descriptor, BYTES("\x1a\x07\x01\x02\x03\x04\x05\x06\x07"),
                 "codec3.Lists.f_sfixed32 at byte 6: cut off");
    codec_refuse(&f, &codec3__lists__descriptor, BYTES("\x0a\x02\x01\x81\x08\x01"),
                 "codec3.Lists.f_int32 at byte 3: cut off");
    codec_end(&f);
}

static void test_decode_overlong_but_whole_varints_are_taken(void **state)
{
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    Codec3__Scalars *m =
        codec_decode(&f, &codec3__scalars__descriptor, BYTES("\x88\x00\x85\x80\x00\x7a\x81\x00x"));
    assert_int_equal(m->f_int32, 5);
    assert_string_equal(m->f_string, "x");
    codec_end(&f);
}

static void test_decode_with_a_block_points_bytes_into_it(void **state)
{
    static const char wire[] = "\x7a\x02hi\x82\x01\x03xyz\xc2\x3e\x01u";
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    struct bow__block *block = bow__block_new(f.context, sizeof wire - 1);
    assert_non_null(block);
    memcpy(block->data, wire, sizeof wire - 1);
    assert_int_equal(bow__arena_adopt(&f.arena, block), 0);
    f.options.block = block;
    Codec3__Scalars *m = codec_decode(&f, &codec3__scalars__descriptor,
                                      (struct bow_slice){block->data, sizeof wire - 1});
    assert_string_equal(m->f_string, "hi");
    assert_ptr_equal(m->f_bytes.data, block->data + 7);
    assert_int_equal(m->f_bytes.len, 3);
    assert_ptr_equal(m->base.unknown_fields[0].data, block->data + 12);
    codec_end(&f);
}

#define LONG_BYTES 5000

/* A message that lies in a block of its own, with a byte to spare if wanted, which the arena has.
 */
static struct bow_slice adopt(struct codec_fixture *f, const ProtobufCMessage *message,
                              bool has_spare)
{
    size_t len = protobuf_c_message_get_packed_size(message);
    struct bow__block *block = bow__block_new(f->context, len + has_spare);

    assert_non_null(block);
    memset(block->data, 'A', block->cap);
    assert_int_equal(protobuf_c_message_pack(message, block->data), len);
    if (block->cap > len + has_spare) {
        block->cap = len + has_spare;
    }
    assert_int_equal(bow__arena_adopt(&f->arena, block), 0);
    f->options.block = block;
    return (struct bow_slice){block->data, len};
}

static bool lies_in(struct bow_slice bytes, const char *text)
{
    return (const uint8_t *)text >= bytes.data && (const uint8_t *)text < bytes.data + bytes.len;
}

static char *long_text(char letter, size_t len)
{
    char *text = malloc(len + 1);

    assert_non_null(text);
    memset(text, letter, len);
    text[len] = '\0';
    return text;
}

/* Long strings of one message and of those in it: in front of other fields, of each other, last. */
static void test_decode_with_a_block_leaves_long_strings_in_it(void **state)
{
    struct codec_fixture f;
    Codec3__HelloRequest hello = CODEC3__HELLO_REQUEST__INIT;
    Codec3__Everything m = CODEC3__EVERYTHING__INIT;
    Codec3__Everything more = CODEC3__EVERYTHING__INIT;
    Codec3__Everything *mores[] = {&more, &more};
    Codec3__Scalars scalars = CODEC3__SCALARS__INIT;
    Codec3__Scalars inner = CODEC3__SCALARS__INIT;
    (void)state;
    codec_begin(&f);
    scalars.f_string = long_text('s', LONG_BYTES);
    scalars.f_bytes = (ProtobufCBinaryData){3, (uint8_t *)(uintptr_t) "xyz"};
    scalars.f_message = &inner;
    inner.f_string = long_text('i', LONG_BYTES + 1);
    m.scalars = &scalars;
    m.n_more = 2;
    m.more = mores;
    more.scalars = &inner;
    m.far = 7;
    struct bow_slice bytes = adopt(&f, &m.base, true);
    const Codec3__Everything *got = codec_decode(&f, &codec3__everything__descriptor, bytes);
    assert_string_equal(got->scalars->f_string, scalars.f_string);
    assert_memory_equal(got->scalars->f_bytes.data, "xyz", 3);
    assert_string_equal(got->scalars->f_message->f_string, inner.f_string);
    assert_string_equal(got->more[0]->scalars->f_string, inner.f_string);
    assert_string_equal(got->more[1]->scalars->f_string, inner.f_string);
    assert_int_equal(got->far, 7);
    assert_true(lies_in(bytes, got->scalars->f_string));
    assert_true(lies_in(bytes, got->scalars->f_message->f_string));
    assert_true(lies_in(bytes, got->more[1]->scalars->f_string));

    hello.name = scalars.f_string;
    hello.city = inner.f_string;
    bytes = adopt(&f, &hello.base, true);
    const Codec3__HelloRequest *said = codec_decode(&f, &codec3__hello_request__descriptor, bytes);
    assert_string_equal(said->name, hello.name);
    assert_string_equal(said->city, hello.city);
    assert_true(lies_in(bytes, said->name));
    assert_true(lies_in(bytes, said->city));
    free(scalars.f_string);
    free(inner.f_string);
    codec_end(&f);
}

static void test_decode_copies_a_long_string_that_cannot_stay(void **state)
{
    struct codec_fixture f;
    Codec3__HelloRequest hello = CODEC3__HELLO_REQUEST__INIT;
    (void)state;
    codec_begin(&f);
    hello.name = long_text('n', LONG_BYTES);
    hello.city = long_text('c', LONG_BYTES);
    /* No byte behind the last one. */
    struct bow_slice bytes = adopt(&f, &hello.base, false);
    const Codec3__HelloRequest *said = codec_decode(&f, &codec3__hello_request__descriptor, bytes);
    assert_string_equal(said->name, hello.name);
    assert_string_equal(said->city, hello.city);
    assert_true(lies_in(bytes, said->name));
    assert_false(lies_in(bytes, said->city));
    /* Another reads the same bytes. */
    bytes = adopt(&f, &hello.base, true);
    struct bow__block *held = bow__block_ref(f.options.block);
    said = codec_decode(&f, &codec3__hello_request__descriptor, bytes);
    assert_string_equal(said->name, hello.name);
    assert_false(lies_in(bytes, said->name));
    ProtobufCMessage *again =
        protobuf_c_message_unpack(&codec3__hello_request__descriptor, NULL, bytes.len, bytes.data);
    assert_non_null(again);
    protobuf_c_message_free_unpacked(again, NULL);
    bow__block_unref(held);
    free(hello.name);
    free(hello.city);
    codec_end(&f);
}

/* As the generator says of string_as_bytes: a NUL inside ends nothing. */
static void test_decode_text_with_a_length_must_be_utf8(void **state)
{
    struct codec_fixture f;
    ProtobufCMessageDescriptor type = codec3__scalars__descriptor;
    ProtobufCFieldDescriptor fields[32];
    (void)state;
    size_t index = (size_t)(protobuf_c_message_descriptor_get_field(&type, 16) - type.fields);
    assert_true(type.n_fields <= 32);
    memcpy(fields, type.fields, type.n_fields * sizeof fields[0]);
    fields[index].flags |= BOW_DESCRIPTOR_TEXT;
    type.fields = fields;
    type.message_init = NULL;
    codec_begin(&f);
    Codec3__Scalars *m = codec_decode(&f, &type, BYTES("\x82\x01\x04\xc3\xa9\0z"));
    assert_int_equal(m->f_bytes.len, 4);
    assert_memory_equal(m->f_bytes.data, "\xc3\xa9\0z", 4);
    codec_refuse(&f, &type, BYTES("\x82\x01\x03z\0\xc3"),
                 "codec3.Scalars.f_bytes at byte 5: not UTF-8");
    bow__text_clear(&f.reason);
    fields[index].flags |= BOW_DESCRIPTOR_UNCHECKED;
    m = codec_decode(&f, &type, BYTES("\x82\x01\x03z\0\xc3"));
    assert_int_equal(m->f_bytes.len, 3);
    codec_end(&f);
}

static void test_decode_checks_long_strings_where_they_lie(void **state)
{
    static const struct {
        size_t at;
        char bytes[4];
        const char *what;
    } cases[] = {{0, "\xFF", "not UTF-8"},
                 {63, "\xC0\x80", "not UTF-8"},
                 {64, "\xED\xA0\x80", "not UTF-8"},
                 {LONG_BYTES - 1, "\xC3", "not UTF-8"},
                 {LONG_BYTES - 2, "", "NUL inside a string"},
                 {2000, "", "NUL inside a string"},
                 {2001, "\xC3\xA4", NULL},
                 {LONG_BYTES - 2, "\xC3\xA4", NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct codec_fixture f;
        Codec3__HelloRequest hello = CODEC3__HELLO_REQUEST__INIT;
        size_t n = cases[i].bytes[0] == '\0' ? 1 : strlen(cases[i].bytes);
        codec_begin(&f);
        hello.name = long_text('n', LONG_BYTES);
        struct bow_slice bytes = adopt(&f, &hello.base, true);
        memcpy((uint8_t *)(uintptr_t)bytes.data + bytes.len - LONG_BYTES + cases[i].at,
               cases[i].bytes, n);
        if (cases[i].what != NULL) {
            char reason[80];
            snprintf(reason, sizeof(reason), "codec3.HelloRequest.name at byte %zu: %s",
                     bytes.len - LONG_BYTES + cases[i].at, cases[i].what);
            codec_refuse(&f, &codec3__hello_request__descriptor, bytes, reason);
        } else {
            const Codec3__HelloRequest *said =
                codec_decode(&f, &codec3__hello_request__descriptor, bytes);
            assert_memory_equal(said->name + cases[i].at, cases[i].bytes, n);
            assert_int_equal(strlen(said->name), LONG_BYTES);
        }
        free(hello.name);
        codec_end(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decode_all_scalars_are_read),
        cmocka_unit_test(test_decode_nothing_gives_defaults),
        cmocka_unit_test(test_decode_of_a_type_without_init_takes_defaults_from_the_descriptor),
        cmocka_unit_test(test_decode_optional_sets_has),
        cmocka_unit_test(test_decode_any_true_bool_is_1),
        cmocka_unit_test(test_decode_open_enums_keep_unknown_numbers),
        cmocka_unit_test(test_decode_repeated_takes_packed_and_loose_mixed),
        cmocka_unit_test(test_decode_repeated_of_many_keeps_order),
        cmocka_unit_test(test_decode_message_sent_twice_is_merged),
        cmocka_unit_test(test_decode_oneof_last_member_wins),
        cmocka_unit_test(test_decode_oneof_message_merges_unless_another_came_between),
        cmocka_unit_test(test_decode_required_missing_is_refused_with_its_path),
        cmocka_unit_test(test_decode_required_may_come_in_pieces),
        cmocka_unit_test(test_decode_map_entries_are_kept_in_order_and_completed),
        cmocka_unit_test(test_decode_pairs_that_are_no_map_are_left_alone),
        cmocka_unit_test(test_decode_unknown_fields_are_kept_as_protobuf_c_keeps_them),
        cmocka_unit_test(test_decode_known_field_of_another_wire_type_is_unknown),
        cmocka_unit_test(test_decode_bad_wire_types_are_refused),
        cmocka_unit_test(test_decode_text_must_be_utf8_without_nul),
        cmocka_unit_test(test_decode_text_with_a_length_must_be_utf8),
        cmocka_unit_test(test_decode_bad_tags_and_lengths_are_refused),
        cmocka_unit_test(test_decode_overlong_but_whole_varints_are_taken),
        cmocka_unit_test(test_decode_with_a_block_points_bytes_into_it),
        cmocka_unit_test(test_decode_with_a_block_leaves_long_strings_in_it),
        cmocka_unit_test(test_decode_copies_a_long_string_that_cannot_stay),
        cmocka_unit_test(test_decode_checks_long_strings_where_they_lie),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
