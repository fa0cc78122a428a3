/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Header blocks, held against protobuf-c's code for the same schema: what one
 * writes the other reads, and what we read of damaged blocks it reads as well.
 */
#include "rpc/native/header.h"
#include "wire.pb-c.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N_ROUNDS 3000

static uint64_t random_state = 88172645463325252u;

static uint64_t roll(uint64_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % n;
}

/* Of every length of varint, the smallest and the largest among them. */
static uint64_t any_u64(void)
{
    static const uint64_t edges[] = {0, 1, 127, 128, 16383, 16384, UINT32_MAX, UINT64_MAX};

    return roll(2) == 0 ? edges[roll(8)] : random_state >> roll(64);
}

static uint32_t any_u32(void)
{
    return (uint32_t)any_u64();
}

static uint8_t text_bytes[300];

static struct bow_slice any_bytes(void)
{
    static const size_t sizes[] = {0, 1, 127, 128, 300};

    return (struct bow_slice){text_bytes, sizes[roll(5)]};
}

/* Theirs ends at the first NUL, should a damaged text hold one. */
static void assert_bytes(struct bow_slice ours, const char *theirs)
{
    size_t len = strlen(theirs);

    assert_true(len == ours.len || (len < ours.len && ours.data[len] == 0));
    if (len > 0) {
        assert_memory_equal(ours.data, theirs, len);
    }
}

static void assert_binary(struct bow_slice ours, ProtobufCBinaryData theirs)
{
    assert_int_equal(ours.len, theirs.len);
    if (ours.len > 0) {
        assert_memory_equal(ours.data, theirs.data, ours.len);
    }
}

/* A copy of exactly `len` bytes, so that a read beyond them shows. */
static uint8_t *exact_copy(const uint8_t *bytes, size_t len)
{
    uint8_t *copy = malloc(len > 0 ? len : 1);

    assert_non_null(copy);
    memcpy(copy, bytes, len);
    return copy;
}

/* Any entries, whether they keep the rules of metadata or not. */
static struct bow_metadata any_metadata(struct bow_metadata_entry *entries, size_t max)
{
    static const char *const keys[] = {"", "k", "user-agent", "trace-bin"};
    struct bow_metadata metadata = {entries, (size_t)roll(max + 1)};

    for (size_t i = 0; i < metadata.n; i++) {
        entries[i] = (struct bow_metadata_entry){keys[roll(4)], any_bytes()};
    }
    return metadata;
}

/* Ours against theirs, for a block that both read. */

static void assert_entries(struct bow__header_entries ours, size_t n,
                           Bowline__Wire__V1__Metadata *const *theirs)
{
    struct bow__header_entry entry;
    size_t n_bytes = 0;

    assert_int_equal(ours.n, n);
    for (size_t i = 0; i < n; i++) {
        assert_true(bow__header_entry_next(&ours, &entry));
        assert_bytes(entry.key, theirs[i]->key);
        assert_binary(entry.value, theirs[i]->value);
        n_bytes += entry.key.len + entry.value.len + 32;
    }
    assert_false(bow__header_entry_next(&ours, &entry));
    assert_int_equal(ours.n_bytes, n_bytes);
}

static void assert_metadata(const struct bow_metadata *ours, size_t n,
                            Bowline__Wire__V1__Metadata *const *theirs)
{
    assert_int_equal(ours->n, n);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(ours->entries[i].key, theirs[i]->key);
        assert_binary(ours->entries[i].value, theirs[i]->value);
    }
}

static void assert_request(const struct bow__header_request *ours,
                           const Bowline__Wire__V1__RequestHeader *theirs)
{
    assert_true(ours->method == theirs->method);
    assert_bytes(ours->path, theirs->path);
    bool has_time_left =
        theirs->_time_left_us_case == BOWLINE__WIRE__V1__REQUEST_HEADER___TIME_LEFT_US_TIME_LEFT_US;
    assert_int_equal(ours->has_time_left, has_time_left);
    assert_true(!has_time_left || ours->time_left_us == theirs->time_left_us);
    assert_bytes(ours->encoding, theirs->encoding);
}

static void assert_response(const struct bow__header_response *ours,
                            const Bowline__Wire__V1__ResponseHeader *theirs)
{
    assert_bytes(ours->encoding, theirs->encoding);
}

static void assert_status(const struct bow__header_status *ours,
                          const Bowline__Wire__V1__StatusHeader *theirs)
{
    assert_true(ours->code == theirs->code);
    assert_bytes(ours->message, theirs->message);
    assert_binary(ours->details, theirs->details);
    assert_int_equal(ours->not_processed, theirs->not_processed != 0);
    assert_true(ours->retry_after_us == theirs->retry_after_us);
    assert_bytes(ours->encoding, theirs->encoding);
}

static uint32_t or_default(uint32_t value, uint32_t default_value)
{
    return value != 0 ? value : default_value;
}

static void assert_settings(const struct bow__header_settings *ours,
                            const Bowline__Wire__V1__Settings *theirs)
{
    assert_true(ours->max_frame_bytes == or_default(theirs->max_frame_bytes, 65536));
    assert_true(ours->stream_window_bytes == or_default(theirs->stream_window_bytes, 65536));
    assert_true(ours->connection_window_bytes ==
                or_default(theirs->connection_window_bytes, 1048576));
    assert_true(ours->max_calls == or_default(theirs->max_calls, 100));
    assert_true(ours->max_message_bytes == or_default(theirs->max_message_bytes, 4194304));
    assert_true(ours->max_bound_methods == or_default(theirs->max_bound_methods, 64));
    assert_true(ours->min_ping_interval_us == theirs->min_ping_interval_us);
    uint32_t encodings = 0;
    for (size_t i = 0; i < theirs->n_encodings; i++) {
        encodings |= strcmp(theirs->encodings[i], "zstd") == 0 ? 1u << BOW__ENCODING_ZSTD : 0;
        encodings |= strcmp(theirs->encodings[i], "gzip") == 0 ? 1u << BOW__ENCODING_GZIP : 0;
        encodings |= strcmp(theirs->encodings[i], "deflate") == 0 ? 1u << BOW__ENCODING_DEFLATE : 0;
    }
    /* Identity is understood, whether it is said or not. */
    assert_int_equal(ours->encodings | 1u, encodings | 1u);
    assert_int_equal(ours->unattended, theirs->unattended != 0);
    assert_true(ours->max_header_bytes == or_default(theirs->max_header_bytes, 16384));
}

/* Each message as a thing to be read both ways. Returns whether we read it. */

typedef bool (*read_both_fn)(struct bow_slice block);

static bool read_request(struct bow_slice block)
{
    struct bow__header_request ours;
    struct bow__header_error error;
    int rc = bow__header_request_decode(block, &ours, &error);
    Bowline__Wire__V1__RequestHeader *theirs =
        bowline__wire__v1__request_header__unpack(NULL, block.len, block.data);

    if (rc == 0) {
        assert_non_null(theirs);
        assert_request(&ours, theirs);
        assert_entries(ours.entries, theirs->n_metadata, theirs->metadata);
    } else {
        assert_int_equal(rc, -EBADMSG);
        assert_non_null(error.field);
        assert_non_null(error.what);
    }
    bowline__wire__v1__request_header__free_unpacked(theirs, NULL);
    return rc == 0;
}

static bool read_response(struct bow_slice block)
{
    struct bow__header_response ours;
    struct bow__header_error error;
    int rc = bow__header_response_decode(block, &ours, &error);
    Bowline__Wire__V1__ResponseHeader *theirs =
        bowline__wire__v1__response_header__unpack(NULL, block.len, block.data);

    if (rc == 0) {
        assert_non_null(theirs);
        assert_response(&ours, theirs);
        assert_entries(ours.entries, theirs->n_metadata, theirs->metadata);
    }
    bowline__wire__v1__response_header__free_unpacked(theirs, NULL);
    return rc == 0;
}

static bool read_status(struct bow_slice block)
{
    struct bow__header_status ours;
    struct bow__header_error error;
    int rc = bow__header_status_decode(block, &ours, &error);
    Bowline__Wire__V1__StatusHeader *theirs =
        bowline__wire__v1__status_header__unpack(NULL, block.len, block.data);

    if (rc == 0) {
        assert_non_null(theirs);
        assert_status(&ours, theirs);
        assert_entries(ours.entries, theirs->n_metadata, theirs->metadata);
    }
    bowline__wire__v1__status_header__free_unpacked(theirs, NULL);
    return rc == 0;
}

static bool read_settings(struct bow_slice block)
{
    struct bow__header_settings ours;
    struct bow__header_error error;
    int rc = bow__header_settings_decode(block, &ours, &error);
    Bowline__Wire__V1__Settings *theirs =
        bowline__wire__v1__settings__unpack(NULL, block.len, block.data);

    if (rc == 0) {
        assert_non_null(theirs);
        assert_settings(&ours, theirs);
    }
    bowline__wire__v1__settings__free_unpacked(theirs, NULL);
    return rc == 0;
}

/* Whole, cut at each byte, and with a byte changed. */
static void read_damaged(read_both_fn read_both, const uint8_t *bytes, size_t len)
{
    uint8_t *whole = exact_copy(bytes, len);

    assert_true(read_both((struct bow_slice){whole, len}));
    for (size_t n = 0; n < len && n < 40; n++) {
        uint8_t *cut = exact_copy(bytes, n);
        (void)read_both((struct bow_slice){cut, n});
        free(cut);
    }
    for (int i = 0; i < 20 && len > 0; i++) {
        size_t at = roll(len < 40 ? len : 40);
        uint8_t byte = whole[at];
        whole[at] = (uint8_t)roll(256);
        (void)read_both((struct bow_slice){whole, len});
        whole[at] = byte;
    }
    free(whole);
}

/* Ours written, theirs read; our size is what was written. */

static void test_native_header_request_agrees_with_protobuf_c(void **state)
{
    uint8_t bytes[4096];
    struct bow_metadata_entry entries[3];

    (void)state;
    for (int i = 0; i < N_ROUNDS; i++) {
        struct bow__header_request header = {
            .method = any_u32(),
            .path = any_bytes(),
            .has_time_left = roll(2) == 0,
            .metadata = any_metadata(entries, 3),
            .encoding = any_bytes(),
        };
        header.time_left_us = header.has_time_left ? any_u64() : 0;
        size_t len = bow__header_request_size(&header);
        assert_ptr_equal(bow__header_request_encode(bytes, &header), bytes + len);
        Bowline__Wire__V1__RequestHeader *theirs =
            bowline__wire__v1__request_header__unpack(NULL, len, bytes);
        assert_non_null(theirs);
        assert_request(&header, theirs);
        assert_metadata(&header.metadata, theirs->n_metadata, theirs->metadata);
        bowline__wire__v1__request_header__free_unpacked(theirs, NULL);
        read_damaged(read_request, bytes, len);
    }
}

static void test_native_header_response_agrees_with_protobuf_c(void **state)
{
    uint8_t bytes[4096];
    struct bow_metadata_entry entries[3];

    (void)state;
    for (int i = 0; i < N_ROUNDS; i++) {
        struct bow__header_response header = {.metadata = any_metadata(entries, 3),
                                              .encoding = any_bytes()};
        size_t len = bow__header_response_size(&header);
        assert_ptr_equal(bow__header_response_encode(bytes, &header), bytes + len);
        Bowline__Wire__V1__ResponseHeader *theirs =
            bowline__wire__v1__response_header__unpack(NULL, len, bytes);
        assert_non_null(theirs);
        assert_response(&header, theirs);
        assert_metadata(&header.metadata, theirs->n_metadata, theirs->metadata);
        bowline__wire__v1__response_header__free_unpacked(theirs, NULL);
        read_damaged(read_response, bytes, len);
    }
}

static void test_native_header_status_agrees_with_protobuf_c(void **state)
{
    uint8_t bytes[4096];
    struct bow_metadata_entry entries[3];

    (void)state;
    for (int i = 0; i < N_ROUNDS; i++) {
        struct bow__header_status header = {
            .code = any_u32(),
            .message = any_bytes(),
            .details = any_bytes(),
            .not_processed = roll(2) == 0,
            .retry_after_us = any_u64(),
            .metadata = any_metadata(entries, 3),
            .encoding = any_bytes(),
        };
        size_t len = bow__header_status_size(&header);
        assert_ptr_equal(bow__header_status_encode(bytes, &header), bytes + len);
        Bowline__Wire__V1__StatusHeader *theirs =
            bowline__wire__v1__status_header__unpack(NULL, len, bytes);
        assert_non_null(theirs);
        assert_status(&header, theirs);
        assert_metadata(&header.metadata, theirs->n_metadata, theirs->metadata);
        bowline__wire__v1__status_header__free_unpacked(theirs, NULL);
        read_damaged(read_status, bytes, len);
    }
}

static uint32_t at_least(uint32_t low)
{
    uint32_t value = any_u32();

    return value < low ? low : value;
}

static void test_native_header_settings_agree_with_protobuf_c(void **state)
{
    uint8_t bytes[256];

    (void)state;
    for (int i = 0; i < N_ROUNDS; i++) {
        struct bow__header_settings header = {
            .max_frame_bytes = at_least(65536),
            .stream_window_bytes = at_least(65536),
            .connection_window_bytes = at_least(1048576),
            .max_calls = at_least(100),
            .max_message_bytes = at_least(4194304),
            .max_bound_methods = at_least(64),
            .min_ping_interval_us = any_u64(),
            .encodings = 2 * (uint32_t)roll(4),
            .unattended = roll(2) == 0,
            .max_header_bytes = at_least(16384),
        };
        size_t len = bow__header_settings_size(&header);
        assert_ptr_equal(bow__header_settings_encode(bytes, &header), bytes + len);
        Bowline__Wire__V1__Settings *theirs = bowline__wire__v1__settings__unpack(NULL, len, bytes);
        assert_non_null(theirs);
        assert_settings(&header, theirs);
        bowline__wire__v1__settings__free_unpacked(theirs, NULL);
        /* A limit that a changed byte lowered is an error of ours alone, so that is not compared.
         */
        read_damaged(read_settings, bytes, len);
    }
}

/* Theirs written with what we do not write. */

static void test_native_header_encodings_not_known_are_passed_over(void **state)
{
    static char zstd[] = "zstd";
    static char brotli[] = "br";
    static char identity[] = "identity";
    char *names[4] = {brotli, zstd, identity, zstd};
    Bowline__Wire__V1__Settings settings = BOWLINE__WIRE__V1__SETTINGS__INIT;
    struct bow__header_settings ours;
    struct bow__header_error error;
    uint8_t bytes[64];

    (void)state;
    settings.n_encodings = 4;
    settings.encodings = names;
    size_t len = bowline__wire__v1__settings__pack(&settings, bytes);
    read_damaged(read_settings, bytes, len);
    assert_int_equal(bow__header_settings_decode((struct bow_slice){bytes, len}, &ours, &error), 0);
    assert_int_equal(ours.encodings, 1u << BOW__ENCODING_ZSTD | 1u << BOW__ENCODING_IDENTITY);
}

static void test_native_header_encodings_have_names(void **state)
{
    (void)state;
    for (unsigned i = 0; i < BOW__N_ENCODINGS; i++) {
        enum bow__encoding encoding = (enum bow__encoding)i;
        assert_int_equal(bow__header_encoding_of(bow__header_encoding_name(encoding)), encoding);
    }
    struct bow_slice unknown = {(const uint8_t *)"zst", 3};
    assert_int_equal(bow__header_encoding_of(unknown), BOW__ENCODING_UNKNOWN);
}

/* Many small entries are more to keep than their bytes. */
static void test_native_header_metadata_counts_more_than_its_bytes(void **state)
{
    static struct bow_metadata_entry entries[512];
    static uint8_t bytes[8192];
    struct bow__header_request header = {.metadata = {entries, 496}};
    struct bow__header_error error;

    (void)state;
    for (size_t i = 0; i < 512; i++) {
        entries[i] = (struct bow_metadata_entry){"k", {NULL, 0}};
    }
    size_t len = (size_t)(bow__header_request_encode(bytes, &header) - bytes);
    assert_int_equal(bow__header_request_decode((struct bow_slice){bytes, len}, &header, &error),
                     0);
    assert_int_equal(header.entries.n_bytes, 496 * 33);
}

/* Fields of the future, of each wire type. */
static void test_native_header_unknown_fields_are_skipped(void **state)
{
    static const uint8_t bytes[] = {
        0xa0, 0x06, 0x81, 0x01,                       /* 100: varint */
        0xa9, 0x06, 1,    2,    3,   4,   5, 6, 7, 8, /* 101: fixed64 */
        0xb2, 0x06, 2,    'h',  'i',                  /* 102: bytes */
        0xbd, 0x06, 1,    2,    3,   4,               /* 103: fixed32 */
        0x12, 4,    '/',  's',  '/', 'm',             /* path */
    };
    struct bow__header_request header;
    struct bow__header_error error;

    (void)state;
    assert_int_equal(
        bow__header_request_decode((struct bow_slice){bytes, sizeof(bytes)}, &header, &error), 0);
    assert_int_equal(header.path.len, 4);
    assert_true(read_request((struct bow_slice){bytes, sizeof(bytes)}));
}

static void test_native_header_errors_are_named(void **state)
{
    static const struct {
        uint8_t bytes[12];
        size_t len;
        const char *field;
        const char *what;
    } bad[] = {
        {{0x80}, 1, "tag", "varint is cut short"},
        {{0x00, 0x00}, 2, "tag", "field number is out of range"},
        {{0x80, 0x80, 0x80, 0x80, 0x80, 0x01, 0}, 7, "tag", "field number is out of range"},
        {{0x08}, 1, "method", "varint is cut short"},
        {{0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02},
         11,
         "method",
         "varint exceeds 64 bits"},
        {{0x08, 0x80, 0x80, 0x80, 0x80, 0x10}, 6, "method", "number exceeds 32 bits"},
        {{0x09, 1, 2, 3, 4, 5, 6, 7, 8}, 9, "method", "wrong wire type"},
        {{0x10, 0x01}, 2, "path", "wrong wire type"},
        {{0x12, 0x05, 'a'}, 3, "path", "length runs past the end"},
        {{0x1a, 0x00}, 2, "time_left_us", "wrong wire type"},
        {{0x22, 0x02, 0x0a, 0x05}, 4, "metadata.key", "length runs past the end"},
        {{0x22, 0x02, 0x10, 0x05}, 4, "metadata.value", "wrong wire type"},
        {{0x28, 0x01}, 2, "encoding", "wrong wire type"},
        {{0xa9, 0x06, 1}, 3, "unknown field", "fixed number is cut short"},
        {{0xb3, 0x06}, 2, "unknown field", "groups and wire types above 5 are not allowed"},
        {{0xb7, 0x06}, 2, "unknown field", "groups and wire types above 5 are not allowed"},
    };
    struct bow__header_request header;
    struct bow__header_error error;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        uint8_t *copy = exact_copy(bad[i].bytes, bad[i].len);
        assert_int_equal(
            bow__header_request_decode((struct bow_slice){copy, bad[i].len}, &header, &error),
            -EBADMSG);
        assert_string_equal(error.field, bad[i].field);
        assert_string_equal(error.what, bad[i].what);
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_native_header_request_agrees_with_protobuf_c),
        cmocka_unit_test(test_native_header_response_agrees_with_protobuf_c),
        cmocka_unit_test(test_native_header_status_agrees_with_protobuf_c),
        cmocka_unit_test(test_native_header_settings_agree_with_protobuf_c),
        cmocka_unit_test(test_native_header_encodings_not_known_are_passed_over),
        cmocka_unit_test(test_native_header_encodings_have_names),
        cmocka_unit_test(test_native_header_metadata_counts_more_than_its_bytes),
        cmocka_unit_test(test_native_header_unknown_fields_are_skipped),
        cmocka_unit_test(test_native_header_errors_are_named),
    };
    memset(text_bytes, 't', sizeof(text_bytes));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
