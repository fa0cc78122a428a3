/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What travels beside messages: metadata of the call, of the answer, of its
 * status, and the names of encodings; how much fits, and what is left out.
 */
#include "tests/rpc/native_pair.h"

#include <bowline/limits.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define OPENING "b04f5701 00000000 00 00 000000000000 "
#define KIB ((size_t)1 << 10)

static struct bow_slice slice_of(const char *text)
{
    return (struct bow_slice){(const uint8_t *)text, strlen(text)};
}

#define ENTRY(key, value)                                                                          \
    {                                                                                              \
        key,                                                                                       \
        {                                                                                          \
            (const uint8_t *)(value), sizeof(value) - 1                                            \
        }                                                                                          \
    }

static const struct bow_metadata_entry some[] = {ENTRY("user-agent", "test/1"),
                                                 ENTRY("trace-bin", "\xff\x01"),
                                                 ENTRY("user-agent", ""), ENTRY("x.y_z-0", "a b")};
#define SOME                                                                                       \
    {                                                                                              \
        some, sizeof(some) / sizeof(some[0])                                                       \
    }
#define SOME_TEXT "user-agent=test/1 trace-bin=\xff\x01 user-agent= x.y_z-0=a b "

static const struct bow_metadata none = BOW_METADATA_INIT;

/* A call with `metadata`, that has begun without a message. */
static uint64_t begin(struct pair *pair, struct bow_metadata metadata, enum bow__encoding encoding)
{
    struct bow__request_head head = {
        .path = slice_of("/s/m"),
        .time_left_ns = BOW_NEVER,
        .path_key = 7,
        .metadata = metadata,
        .encoding = encoding,
    };
    struct bow__session *client = pair->client.session;
    uint64_t key = 0;

    assert_int_equal(client->ops->open(client, &head, &pair->client, &key), 0);
    assert_int_equal(client->ops->begin(client, key), 0);
    pair_run(pair);
    return key;
}

static int respond(struct side *side, uint64_t key, struct bow_metadata metadata,
                   enum bow__encoding encoding)
{
    return side->session->ops->respond(side->session, key, &metadata, encoding);
}

/* There and back. */

static void test_native_metadata_of_a_call_arrives(void **state)
{
    struct pair pair;
    struct bow_metadata metadata = SOME;

    (void)state;
    for (size_t step = 0; step < 2; step++) {
        pair_init(&pair);
        pair.step = step;
        assert_int_equal(pair_open(&pair), 0);
        begin(&pair, metadata, BOW__ENCODING_IDENTITY);
        assert_int_equal(pair.server.n_opens, 1);
        assert_string_equal(pair.server.metadata, SOME_TEXT);
        assert_string_equal(pair.server.path, "/s/m");
        /* By number, and with none. */
        begin(&pair, metadata, BOW__ENCODING_IDENTITY);
        assert_string_equal(pair.server.metadata, SOME_TEXT);
        begin(&pair, none, BOW__ENCODING_IDENTITY);
        assert_string_equal(pair.server.metadata, "");
        pair_fini(&pair);
    }
}

static void note_order(struct side *side, uint64_t key)
{
    (void)key;
    assert_int_equal(side->n_messages, 0);
    assert_string_equal(side->metadata, SOME_TEXT);
}

static void test_native_metadata_of_an_answer_comes_first_and_last(void **state)
{
    struct pair pair;
    struct bow_metadata metadata = SOME;
    static const struct bow_metadata_entry trailing[] = {ENTRY("cost", "7")};
    struct bow_status status = {.code = BOW_OK, .message = "", .metadata = {trailing, 1}};

    (void)state;
    for (size_t step = 0; step < 2; step++) {
        pair_init(&pair);
        pair.step = step;
        pair.client.on_headers = note_order;
        assert_int_equal(pair_open(&pair), 0);
        uint64_t key = begin(&pair, none, BOW__ENCODING_IDENTITY);
        struct bow__session *server = pair.server.session;
        assert_int_equal(respond(&pair.server, key, metadata, BOW__ENCODING_IDENTITY), 0);
        assert_int_equal(side_say(&pair.server, key, 0, "hi", 2), 0);
        assert_int_equal(server->ops->finish(server, key, &status), 0);
        assert_int_equal(respond(&pair.server, key, metadata, BOW__ENCODING_IDENTITY), -ENOENT);
        pair_run(&pair);
        assert_int_equal(pair.client.n_headers, 1);
        assert_int_equal(pair.client.n_messages, 1);
        assert_int_equal(pair.client.code, BOW_OK);
        assert_string_equal(pair.client.metadata, "cost=7 ");
        pair_fini(&pair);
    }
}

static void test_native_metadata_of_an_error_comes_with_it(void **state)
{
    struct pair pair;
    struct bow_status status = {.code = BOW_ABORTED,
                                .message = "no",
                                .details = {(const uint8_t *)"why", 3},
                                .metadata = SOME};

    (void)state;
    for (int waits = 0; waits < 2; waits++) {
        pair_init(&pair);
        assert_int_equal(pair_open(&pair), 0);
        uint64_t key = begin(&pair, none, BOW__ENCODING_IDENTITY);
        if (waits) {
            struct bow__block *block = pattern_block(pair.context, 10, 1);
            assert_int_equal(
                pair.server.session->ops->send(pair.server.session, key, 0, block, 0, 10), 0);
        }
        assert_int_equal(pair.server.session->ops->finish(pair.server.session, key, &status), 0);
        pair_run(&pair);
        assert_int_equal(pair.client.n_headers, 0);
        assert_int_equal(pair.client.n_messages, waits);
        assert_int_equal(pair.client.code, BOW_ABORTED);
        assert_string_equal(pair.client.details, "why");
        assert_string_equal(pair.client.metadata, SOME_TEXT);
        pair_fini(&pair);
    }
}

/* A reply that arrives in pieces, inside a STATUS with metadata; ours puts none there, others may.
 */
static void test_native_metadata_of_a_status_waits_for_its_message(void **state)
{
    static const char status[] = "00000010 04 09 000000000001 0a 3208 0a016b 1203616263 "
                                 "68656c6c6f";
    struct pair pair;

    (void)state;
    for (size_t step = 0; step < 2; step++) {
        pair_init(&pair);
        pair.step = step;
        assert_int_equal(pair_open(&pair), 0);
        side_call(&pair.client, "/s/m", 0, "", 0);
        side_feed_hex(&pair.client, OPENING);
        side_feed_hex(&pair.client, status);
        assert_int_equal(pair.client.rc, 0);
        assert_int_equal(pair.client.message_len, 5);
        assert_int_equal(pair.client.n_statuses, 1);
        assert_string_equal(pair.client.metadata, "k=abc ");
        pair_fini(&pair);
    }
}

/* Limits. */

/* `n` entries of `n_value` bytes each. */
static struct bow_metadata many(size_t n, size_t n_value)
{
    static struct bow_metadata_entry entries[600];
    static uint8_t value[20000];

    memset(value, 'v', sizeof(value));
    for (size_t i = 0; i < n; i++) {
        entries[i] = (struct bow_metadata_entry){"k", {value, n_value}};
    }
    return (struct bow_metadata){entries, n};
}

static int open_with(struct pair *pair, const char *path, struct bow_metadata metadata)
{
    struct bow__request_head head = {
        .path = slice_of(path), .time_left_ns = BOW_NEVER, .metadata = metadata};
    struct bow__session *client = pair->client.session;
    uint64_t key = 0;

    int rc = client->ops->open(client, &head, NULL, &key);
    if (rc == 0) {
        assert_int_equal(client->ops->begin(client, key), 0);
        pair_run(pair);
        assert_int_equal(pair->server.rc, 0);
    }
    return rc;
}

static void test_native_metadata_beyond_the_limit_is_refused_when_sent(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    pair_run(&pair);
    assert_int_equal(open_with(&pair, "/s/m", many(496, 0)), 0);
    assert_int_equal(open_with(&pair, "/s/m", many(497, 0)), -EMSGSIZE);
    assert_int_equal(open_with(&pair, "/s/m", many(1, 16000)), 0);
    assert_int_equal(open_with(&pair, "/s/m", many(1, 16384 - 33)), 0);
    assert_int_equal(open_with(&pair, "/s/m", many(1, 16384 - 32)), -EMSGSIZE);
    assert_int_equal(open_with(&pair, "/a.path/that.is.Long", many(1, 16384 - 33)), -EMSGSIZE);
    assert_int_equal(pair.server.n_opens, 3);
    uint64_t key = pair.server.key;
    assert_int_equal(respond(&pair.server, key, many(497, 0), 0), -EMSGSIZE);
    assert_int_equal(respond(&pair.server, key, many(1, 16384 - 32), 0), -EMSGSIZE);
    assert_int_equal(respond(&pair.server, key, many(1, 16384 - 33), 0), 0);
    pair_run(&pair);
    assert_int_equal(pair.client.rc, 0);
    assert_int_equal(pair.client.n_headers, 1);
    pair_fini(&pair);
}

static void test_native_metadata_that_does_not_fit_a_status_goes_after_details(void **state)
{
    static uint8_t details[10000];
    static const struct {
        size_t n_details;
        size_t n_value;
        bool keeps_details;
        bool keeps_metadata;
    } cases[] = {
        {30, 16000, true, true},
        {10000, 8000, false, true}, /* the details are dropped first */
        {30, 16384, true, false},
        {10000, 16384, true, false}, /* what is over the limit alone drops nothing else */
    };
    struct pair pair;

    (void)state;
    memset(details, 'd', sizeof(details));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct bow_status status = {.code = BOW_ABORTED,
                                    .message = "no",
                                    .details = {details, cases[i].n_details},
                                    .metadata = many(1, cases[i].n_value)};
        pair_init(&pair);
        assert_int_equal(pair_open(&pair), 0);
        uint64_t key = begin(&pair, none, BOW__ENCODING_IDENTITY);
        assert_int_equal(pair.server.session->ops->finish(pair.server.session, key, &status), 0);
        pair_run(&pair);
        assert_int_equal(pair.client.rc, 0);
        assert_int_equal(pair.client.code, BOW_ABORTED);
        assert_string_equal(pair.client.text, "no");
        assert_int_equal(pair.client.details[0] != '\0', cases[i].keeps_details);
        assert_int_equal(pair.client.metadata[0] != '\0', cases[i].keeps_metadata);
        pair_fini(&pair);
    }
}

static void test_native_metadata_with_a_long_message_goes_last(void **state)
{
    static char message[5000];
    struct bow_status status = {
        .code = BOW_ABORTED, .message = message, .metadata = many(1, 14000)};
    struct pair pair;

    (void)state;
    memset(message, 'm', sizeof(message) - 1);
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    uint64_t key = begin(&pair, none, BOW__ENCODING_IDENTITY);
    assert_int_equal(pair.server.session->ops->finish(pair.server.session, key, &status), 0);
    pair_run(&pair);
    assert_int_equal(pair.client.rc, 0);
    assert_int_equal(pair.client.text[0], 'm');
    assert_string_equal(pair.client.metadata, "");
    pair_fini(&pair);
}

/* A peer's. */

static void test_native_metadata_that_breaks_the_rules_is_left_out(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    side_feed_hex(&pair.server, OPENING "0000004a 01 00 000000000001 49 12042f732f6d"
                                        "2206 0a014b 120161"           /* K: upper case */
                                        "2206 0a016b 120161"           /* k=a */
                                        "2205 0a00 120161"             /* no key */
                                        "2206 0a016c 12010a"           /* l: a control byte */
                                        "2207 0a026b00 120161"         /* k, NUL */
                                        "220a 0a05 67727063 2d 120161" /* grpc- */
                                        "2208 0a03 612d62 120162"      /* a-b=b */
                                        "2203 0a0163");                /* c, without a value */
    assert_int_equal(pair.server.rc, 0);
    assert_int_equal(pair.server.n_opens, 1);
    assert_string_equal(pair.server.metadata, "k=a a-b=b c= ");
    pair_fini(&pair);
}

static void test_native_metadata_beyond_the_limit_breaks_when_received(void **state)
{
    static uint8_t frame[12 + 4 + 6 + 512 * 5];
    struct pair pair;
    size_t n = 0;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    side_feed_hex(&pair.server, OPENING);
    n = hex_decode("000009bd 01 00 000000000001 bb13 12042f732f6d", frame, sizeof(frame));
    for (size_t i = 0; i < 497; i++) {
        n += hex_decode("2203 0a016b", frame + n, sizeof(frame) - n);
    }
    assert_int_equal(n, 12 + 0x9bd);
    side_feed(&pair.server, frame, n);
    side_assert_broken(&pair.server, BOW_INTERNAL,
                       "REQUEST frame, stream 1: header block: metadata: exceeds 16384 bytes, with "
                       "32 counted for each entry");
    pair_fini(&pair);
}

static void test_native_metadata_costs_a_connection_nothing_afterwards(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    begin(&pair, none, BOW__ENCODING_IDENTITY);
    size_t n_bytes = pair.alloc.n_bytes - pair.pool.n_idle * (BOW__CHUNK_BYTES + 64);
    uint64_t key = begin(&pair, many(400, 5), BOW__ENCODING_IDENTITY);
    pair.server.session->ops->finish(pair.server.session, key,
                                     &(struct bow_status){.code = BOW_OK, .message = ""});
    pair_run(&pair);
    assert_true(pair.alloc.n_bytes - pair.pool.n_idle * (BOW__CHUNK_BYTES + 64) < n_bytes + KIB);
    pair_fini(&pair);
}

/* Without memory. */

static void use_up_pool(struct pair *pair)
{
    while (pair->pool.n_idle > 0) {
        bow__pool_trim(&pair->pool);
    }
}

static void test_native_metadata_without_memory_refuses_the_call(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    side_feed_hex(&pair.server, OPENING "0000000f 01 00 000000000001 0e 12042f732f6d 2206 0a016b "
                                        "120161");
    assert_int_equal(pair.server.n_opens, 1);
    /* The output keeps a chunk of its own, so what is told the peer fits. */
    use_up_pool(&pair);
    pair.alloc.fail_at = pair.alloc.n_calls + 1;
    side_feed_hex(&pair.server, "00000011 01 09 000000000003 0e 12042f732f6d 2206 0a016b 120161 "
                                "6869");
    assert_int_equal(pair.server.rc, 0);
    assert_int_equal(pair.server.n_opens, 1);
    assert_int_equal(pair.server.n_messages, 0);
    assert_int_equal(pair.server.session->n_streams, 1);
    side_feed_hex(&pair.server, "0000000f 01 00 000000000005 0e 12042f732f6d 2206 0a016b 120161");
    assert_int_equal(pair.server.n_opens, 2);
    pair_fini(&pair);
}

static void test_native_metadata_without_memory_leaves_the_status(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    side_call(&pair.client, "/s/m", 0, "", 0);
    side_feed_hex(&pair.client, OPENING);
    use_up_pool(&pair);
    pair.alloc.fail_at = pair.alloc.n_calls + 1;
    side_feed_hex(&pair.client, "00000009 04 01 000000000001 08 3206 0a016b 120161");
    assert_int_equal(pair.client.n_statuses, 1);
    assert_int_equal(pair.client.code, BOW_OK);
    assert_string_equal(pair.client.metadata, "");
    pair_fini(&pair);
}

static void test_native_metadata_without_memory_ends_the_reply(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    side_call(&pair.client, "/s/m", 0, "", 0);
    side_feed_hex(&pair.client, OPENING);
    use_up_pool(&pair);
    pair.alloc.fail_at = pair.alloc.n_calls + 1;
    side_feed_hex(&pair.client, "00000008 02 00 000000000001 0a06 0a016b 120161");
    assert_int_equal(pair.client.n_headers, 0);
    assert_int_equal(pair.client.code, BOW_RESOURCE_EXHAUSTED);
    assert_string_equal(pair.client.text, "out of memory for the reply's metadata");
    assert_int_equal(pair.client.rc, 0);
    pair_fini(&pair);
}

/* Encodings. */

#define ZSTD_AND_GZIP (1u << BOW__ENCODING_ZSTD | 1u << BOW__ENCODING_GZIP)

static void open_with_encodings(struct pair *pair, uint32_t of_client, uint32_t of_server)
{
    struct bow__session_options options = pair_options(pair, false);

    options.encodings = of_client;
    assert_int_equal(side_open(&pair->client, &options), 0);
    options = pair_options(pair, true);
    options.encodings = of_server;
    assert_int_equal(side_open(&pair->server, &options), 0);
}

static uint32_t encodings(const struct side *side)
{
    return side->session->ops->encodings(side->session, 1);
}

static void test_native_encodings_are_told_the_other_side(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    open_with_encodings(&pair, ZSTD_AND_GZIP, 1u << BOW__ENCODING_GZIP);
    assert_int_equal(encodings(&pair.client), 1u);
    pair_run(&pair);
    assert_int_equal(encodings(&pair.client), 1u | 1u << BOW__ENCODING_GZIP);
    assert_int_equal(encodings(&pair.server), 1u | ZSTD_AND_GZIP);
    pair_fini(&pair);
}

static void test_native_encoding_of_a_call_is_that_of_its_messages(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    open_with_encodings(&pair, ZSTD_AND_GZIP, ZSTD_AND_GZIP);
    pair_run(&pair);
    for (size_t len = 2; len < 100 * KIB; len *= 100) {
        uint64_t key = begin(&pair, none, BOW__ENCODING_GZIP);
        assert_int_equal(pair.server.encoding, BOW__ENCODING_GZIP);
        struct bow__block *block = pattern_block(pair.context, len, 1);
        assert_int_equal(pair.client.session->ops->send(pair.client.session, key,
                                                        BOW__SEND_COMPRESSED, block, 0, len),
                         0);
        pair_run(&pair);
        assert_int_equal(pair.server.message_len, len);
        assert_true(pair.server.message_compressed);
        assert_int_equal(pair.server.message_encoding, BOW__ENCODING_GZIP);
    }
    pair_fini(&pair);
}

static void test_native_encoding_not_known_is_told(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    side_feed_hex(&pair.server, OPENING "0000000c 01 0d 000000000001 0a 12042f732f6d 2a02 6272 78");
    assert_int_equal(pair.server.encoding, BOW__ENCODING_UNKNOWN);
    assert_int_equal(pair.server.message_encoding, BOW__ENCODING_UNKNOWN);
    assert_int_equal(pair.server.rc, 0);
    pair_fini(&pair);
}

/* The reply of a unary call names its encoding in the STATUS that it travels in. */
static void test_native_encoding_of_one_reply_is_in_its_status(void **state)
{
    struct pair pair;

    (void)state;
    for (int waits = 0; waits < 2; waits++) {
        pair_init(&pair);
        open_with_encodings(&pair, ZSTD_AND_GZIP, 0);
        pair_run(&pair);
        uint64_t key = begin(&pair, none, BOW__ENCODING_IDENTITY);
        assert_int_equal(respond(&pair.server, key, none, BOW__ENCODING_ZSTD), 0);
        side_assert_output(&pair.server, "");
        uint32_t flags = BOW__SEND_END | BOW__SEND_COMPRESSED;
        if (waits) {
            struct bow__block *block = pattern_block(pair.context, 2, 1);
            assert_int_equal(
                pair.server.session->ops->send(pair.server.session, key, flags, block, 0, 2), 0);
        } else {
            assert_int_equal(side_say(&pair.server, key, flags, "\x01\x08", 2), 0);
        }
        side_assert_output(&pair.server, "00000009 04 0d 000000000001 06 3a04 7a737464 0108");
        side_feed_hex(&pair.client, "00000009 04 0d 000000000001 06 3a04 7a737464 0108");
        assert_int_equal(pair.client.n_statuses, 1);
        assert_int_equal(pair.client.n_headers, 0);
        assert_true(pair.client.message_compressed);
        assert_int_equal(pair.client.message_encoding, BOW__ENCODING_ZSTD);
        pair_fini(&pair);
    }
}

static void test_native_encoding_of_an_answer_is_named_once(void **state)
{
    struct pair pair;
    struct bow_metadata metadata = SOME;

    (void)state;
    for (int how = 0; how < 3; how++) {
        pair_init(&pair);
        open_with_encodings(&pair, ZSTD_AND_GZIP, 0);
        pair_run(&pair);
        uint64_t key = begin(&pair, none, BOW__ENCODING_IDENTITY);
        assert_int_equal(respond(&pair.server, key, how == 0 ? metadata : none, BOW__ENCODING_GZIP),
                         0);
        for (int i = 0; i < 2; i++) {
            size_t len = how == 2 ? 100 * KIB : 10;
            struct bow__block *block = pattern_block(pair.context, len, 1);
            assert_int_equal(pair.server.session->ops->send(pair.server.session, key,
                                                            BOW__SEND_COMPRESSED, block, 0, len),
                             0);
        }
        assert_int_equal(side_say(&pair.server, key, BOW__SEND_END, "plain", 5), 0);
        pair.client.on_message = NULL;
        pair_run(&pair);
        pair.client.session->ops->consumed(pair.client.session, key, 100 * KIB);
        pair_run(&pair);
        assert_int_equal(pair.client.rc, 0);
        assert_int_equal(pair.client.n_headers, how == 0);
        assert_int_equal(pair.client.n_messages, how == 2 ? 3 : 3);
        assert_false(pair.client.message_compressed);
        assert_int_equal(pair.client.message_encoding, BOW__ENCODING_GZIP);
        assert_int_equal(pair.client.code, BOW_OK);
        pair_fini(&pair);
    }
}

/* In place, without an END: RESPONSE goes before the message. */
static void test_native_encoding_goes_before_the_first_of_many(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    open_with_encodings(&pair, ZSTD_AND_GZIP, 0);
    pair_run(&pair);
    uint64_t key = begin(&pair, none, BOW__ENCODING_IDENTITY);
    assert_int_equal(respond(&pair.server, key, none, BOW__ENCODING_ZSTD), 0);
    assert_int_equal(side_say(&pair.server, key, BOW__SEND_COMPRESSED, "x", 1), 0);
    assert_int_equal(side_say(&pair.server, key, 0, "y", 1), 0);
    side_assert_output(&pair.server, "00000006 02 00 000000000001 1204 7a737464"
                                     "00000001 03 0c 000000000001 78"
                                     "00000001 03 08 000000000001 79");
    pair_fini(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_native_metadata_of_a_call_arrives),
        cmocka_unit_test(test_native_metadata_of_an_answer_comes_first_and_last),
        cmocka_unit_test(test_native_metadata_of_an_error_comes_with_it),
        cmocka_unit_test(test_native_metadata_of_a_status_waits_for_its_message),
        cmocka_unit_test(test_native_metadata_beyond_the_limit_is_refused_when_sent),
        cmocka_unit_test(test_native_metadata_that_does_not_fit_a_status_goes_after_details),
        cmocka_unit_test(test_native_metadata_with_a_long_message_goes_last),
        cmocka_unit_test(test_native_metadata_that_breaks_the_rules_is_left_out),
        cmocka_unit_test(test_native_metadata_beyond_the_limit_breaks_when_received),
        cmocka_unit_test(test_native_metadata_costs_a_connection_nothing_afterwards),
        cmocka_unit_test(test_native_metadata_without_memory_refuses_the_call),
        cmocka_unit_test(test_native_metadata_without_memory_leaves_the_status),
        cmocka_unit_test(test_native_metadata_without_memory_ends_the_reply),
        cmocka_unit_test(test_native_encodings_are_told_the_other_side),
        cmocka_unit_test(test_native_encoding_of_a_call_is_that_of_its_messages),
        cmocka_unit_test(test_native_encoding_not_known_is_told),
        cmocka_unit_test(test_native_encoding_of_one_reply_is_in_its_status),
        cmocka_unit_test(test_native_encoding_of_an_answer_is_named_once),
        cmocka_unit_test(test_native_encoding_goes_before_the_first_of_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
