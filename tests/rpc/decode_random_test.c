/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The codec against protobuf-c on messages made at random from a fixed seed: whole,
 * cut off at each byte, and tampered with.
 */
#include "codec2.pb-c.h"
#include "codec3.pb-c.h"
#include "codec_plain.pb-c.h"
#include "tests/rpc/codec_fixture.h"
#include "tests/support/codec_oracle.h"
#include "tests/support/random_message.h"
#include <stdlib.h>

#define SEED 20240607
#define N_MESSAGES 3000
#define MAX_CUT_BYTES 400 /* longer messages are not cut at each byte */

static const ProtobufCMessageDescriptor *const types[] = {
    &codec3__scalars__descriptor,       &codec3__lists__descriptor,
    &codec3__maps__descriptor,          &codec3__choice__descriptor,
    &codec3__tree__descriptor,          &codec3__everything__descriptor,
    &codec2__optional__descriptor,      &codec2__defaults__descriptor,
    &codec2__holder__descriptor,        &codec2__lists__descriptor,
    &codec2__map__descriptor,           &codec_plain__plain__descriptor,
    &codec3__hello_request__descriptor,
};
#define N_TYPES (sizeof types / sizeof types[0])

/* Message `i` of the seed, packed by protobuf-c; the caller frees its data. */
static struct bow_slice packed(struct test_random *random, struct codec_fixture *f, size_t i)
{
    const ProtobufCMessage *message =
        test_random_message(random, &f->arena, types[i % N_TYPES], (unsigned)(i / N_TYPES % 4));
    size_t len = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = malloc(len + 1);
    assert_non_null(bytes);
    assert_int_equal(protobuf_c_message_pack(message, bytes), len);
    return (struct bow_slice){bytes, len};
}

static void drop(struct bow_slice bytes)
{
    free((void *)(uintptr_t)bytes.data);
}

static void assert_agreed(struct codec_fixture *f, size_t i, struct bow_slice bytes)
{
    struct bow__text fault = {0};
    if (!codec_oracle_agrees(types[i % N_TYPES], bytes, &f->arena, &fault)) {
        fail_msg("message %zu of %zu bytes, %s", i, bytes.len, fault.bytes);
    }
}

static void test_codec_on_random_messages_agrees_with_protobuf_c(void **state)
{
    struct test_random random = {SEED};
    struct codec_fixture f;
    size_t n_bytes = 0;
    (void)state;
    codec_begin(&f);
    for (size_t i = 0; i < N_MESSAGES; i++) {
        bow__arena_reset(&f.arena);
        struct bow_slice bytes = packed(&random, &f, i);
        assert_int_equal(codec_oracle_excuses(types[i % N_TYPES], bytes), 0);
        const ProtobufCMessage *message = codec_decode(&f, types[i % N_TYPES], bytes);
        assert_agreed(&f, i, bytes);
        uint8_t *again = malloc(bytes.len + 1);
        assert_non_null(again);
        assert_int_equal(bow__encode(message, again, bytes.len, NULL), bytes.len);
        assert_memory_equal(again, bytes.data, bytes.len);
        free(again);
        n_bytes += bytes.len;
        drop(bytes);
    }
    assert_in_range(n_bytes / N_MESSAGES, 50, 100000); /* the messages are not all empty */
    codec_end(&f);
}

/* What a message that merely ends too early is refused for. */
static bool tells_of_the_cut(const char *reason)
{
    static const char *const texts[] = {": cut off", ": length goes beyond the message's end",
                                        ": required, and missing"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (strstr(reason, texts[i]) != NULL) {
            return true;
        }
    }
    return false;
}

static void test_decode_cut_at_each_byte_agrees_and_gives_the_reason(void **state)
{
    struct test_random random = {SEED + 1};
    struct codec_fixture f;
    size_t n_refused = 0;
    (void)state;
    codec_begin(&f);
    for (size_t i = 0; i < N_MESSAGES / 5; i++) {
        bow__arena_reset(&f.arena);
        struct bow_slice bytes = packed(&random, &f, i);
        for (size_t cut = 0; cut < bytes.len && bytes.len <= MAX_CUT_BYTES; cut++) {
            /* Of its own, so that a read beyond the cut is a read beyond the memory. */
            uint8_t *part = malloc(cut > 0 ? cut : 1);
            assert_non_null(part);
            memcpy(part, bytes.data, cut);
            struct bow_slice slice = {part, cut};
            ProtobufCMessage *message;
            bow__arena_reset(&f.arena);
            bow__text_clear(&f.reason);
            int rc = bow__decode(types[i % N_TYPES], slice, NULL, &f.arena, &message, &f.reason);
            if (rc != 0) {
                n_refused++;
                assert_int_equal(rc, -EBADMSG);
                if (!tells_of_the_cut(f.reason.bytes)) {
                    fail_msg("%s", f.reason.bytes);
                }
            }
            assert_agreed(&f, i, slice);
            free(part);
        }
        drop(bytes);
    }
    assert_in_range(n_refused, 1000, SIZE_MAX);
    codec_end(&f);
}

static void test_decode_tampered_agrees_where_protobuf_c_is_right(void **state)
{
    struct test_random random = {SEED + 2};
    struct codec_fixture f;
    size_t n_refused = 0;
    (void)state;
    codec_begin(&f);
    for (size_t i = 0; i < N_MESSAGES / 5; i++) {
        bow__arena_reset(&f.arena);
        struct bow_slice bytes = packed(&random, &f, i);
        uint8_t *tampered = malloc(bytes.len + 1);
        assert_non_null(tampered);
        for (size_t at = 0; at < bytes.len && bytes.len <= MAX_CUT_BYTES; at++) {
            memcpy(tampered, bytes.data, bytes.len);
            tampered[at] ^= (uint8_t)(1u << test_random_below(&random, 8));
            struct bow_slice slice = {tampered, bytes.len};
            ProtobufCMessage *message;
            bow__arena_reset(&f.arena);
            bow__text_clear(&f.reason);
            int rc = bow__decode(types[i % N_TYPES], slice, NULL, &f.arena, &message, &f.reason);
            assert_true(rc == 0 || (rc == -EBADMSG && strstr(f.reason.bytes, " at byte ") != NULL));
            n_refused += rc != 0;
            assert_agreed(&f, i, slice);
        }
        free(tampered);
        drop(bytes);
    }
    assert_in_range(n_refused, 1000, SIZE_MAX);
    codec_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codec_on_random_messages_agrees_with_protobuf_c),
        cmocka_unit_test(test_decode_cut_at_each_byte_agrees_and_gives_the_reason),
        cmocka_unit_test(test_decode_tampered_agrees_where_protobuf_c_is_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
