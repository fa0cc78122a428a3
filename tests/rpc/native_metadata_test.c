/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What travels beside messages: metadata of the call, of the answer, of its
 * status; how much fits, and what is left out.
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

static const struct bow_metadata_entry some[] = {ENTRY("agent", "test/1"),
                                                 ENTRY("trace-bin", "\xff\x01"), ENTRY("agent", ""),
                                                 ENTRY("x.y_z-0", "a b")};
#define SOME                                                                                       \
    {                                                                                              \
        some, sizeof(some) / sizeof(some[0])                                                       \
    }
#define SOME_TEXT "agent=test/1 trace-bin=\xff\x01 agent= x.y_z-0=a b "

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
    side_feed_hex(&pair.server, OPENING "0000005d 01 00 000000000001 5c 12042f732f6d"
                                        "2206 0a014b 120161"           /* K: upper case */
                                        "2206 0a016b 120161"           /* k=a */
                                        "2205 0a00 120161"             /* no key */
                                        "2206 0a016c 12010a"           /* l: a control byte */
                                        "2207 0a026b00 120161"         /* k, NUL */
                                        "220a 0a05 67727063 2d 120161" /* grpc- */
                                        "2207 0a02 7465 120161"        /* te: reserved */
                                        "2208 0a01 7a 1203206120"      /* z: blanks around */
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
                       "REQUEST frame, stream 1: header block: metadata: exceeds max_header_bytes "
                       "(16384) with 16401 bytes, 32 counted for each entry");
    pair_fini(&pair);
}

/* Another limit than the default. */

static void open_limited(struct pair *pair, size_t max_header_bytes)
{
    struct bow__session_options client = pair_options(pair, false);
    struct bow__session_options server = pair_options(pair, true);

    client.max_header_bytes = max_header_bytes;
    server.max_header_bytes = max_header_bytes;
    assert_int_equal(side_open(&pair->client, &client), 0);
    assert_int_equal(side_open(&pair->server, &server), 0);
}

static void test_native_metadata_above_what_was_said_breaks(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    open_limited(&pair, 32 * KIB);
    side_feed_hex(&pair.server, OPENING "00008004 01 00 000000000001 818002");
    side_assert_broken(
        &pair.server, BOW_INTERNAL,
        "REQUEST frame, stream 1: header block of 32769 bytes exceeds max_header_bytes (32768)");
    begin(&pair, none, BOW__ENCODING_IDENTITY);
    side_feed_hex(&pair.client, OPENING "00008001 02 00 000000000001");
    side_assert_broken(&pair.client, BOW_INTERNAL,
                       "RESPONSE frame, stream 1: length 32769 is above 32768");
    pair_fini(&pair);
}

/* A client does not know what the server takes, and asks again when it has said so. */
static void test_native_metadata_that_may_be_too_much_waits_for_settings(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    open_limited(&pair, 32 * KIB);
    struct bow__session *client = pair.client.session;
    assert_true(client->ops->can_open(client));
    assert_int_equal(open_with(&pair, "/s/m", many(2, 10000)), -EAGAIN);
    assert_false(client->ops->can_open(client));
    assert_int_equal(open_with(&pair, "/s/m", none), -EAGAIN);
    pair_run(&pair);
    assert_int_equal(pair.client.n_readies, 1);
    assert_true(client->ops->can_open(client));
    assert_int_equal(open_with(&pair, "/s/m", many(2, 10000)), 0);
    assert_int_equal(pair.server.n_opens, 1);
    assert_int_equal(open_with(&pair, "/s/m", many(4, 10000)), -EMSGSIZE);
    assert_int_equal(client->excess.n_bytes, 4 * (10000 + 33));
    assert_int_equal(client->excess.max_bytes, 32 * KIB);
    pair_fini(&pair);
}

/* Whatever it takes, no header spans frames. */
static void test_native_metadata_fits_the_peer_s_frames(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    open_limited(&pair, 0);
    /* max_header_bytes: 131072, with frames of 65536 */
    side_feed_hex(&pair.client, "b04f5701 00000004 00 00 000000000000 50808008");
    assert_int_equal(pair.client.rc, 0);
    assert_int_equal(open_with(&pair, "/s/m", many(7, 10000)), -EMSGSIZE);
    assert_int_equal(pair.client.session->excess.max_bytes, 65536 - 16);
    pair_fini(&pair);
}

/* What the protocol promises a peer, and is not wanted, ends calls and no connection. */
static void test_native_metadata_above_less_than_the_default_ends_its_call(void **state)
{
    struct bow_status ok = BOW_STATUS_OK_INIT;
    struct pair pair;

    (void)state;
    pair_init(&pair);
    open_limited(&pair, 4 * KIB);
    pair_run(&pair);
    assert_int_equal(open_with(&pair, "/s/m", many(1, 5000)), 0);
    assert_int_equal(pair.server.n_opens, 0);
    assert_string_equal(pair.server.refused, "RESOURCE_EXHAUSTED /s/m max_header_bytes");
    assert_int_equal(pair.client.code, BOW_RESOURCE_EXHAUSTED);
    assert_string_equal(pair.client.text,
                        "header of 5033 bytes exceeds the server's max_header_bytes (4096): raise "
                        "it there, or send less metadata");
    uint64_t key = begin(&pair, none, BOW__ENCODING_IDENTITY);
    assert_int_equal(respond(&pair.server, key, many(1, 5000), 0), 0);
    pair_run(&pair);
    assert_int_equal(pair.client.n_headers, 0);
    assert_int_equal(pair.client.n_statuses, 2);
    assert_int_equal(pair.server.n_resets, 1);
    key = begin(&pair, none, BOW__ENCODING_IDENTITY);
    ok.metadata = many(1, 5000);
    assert_int_equal(pair.server.session->ops->finish(pair.server.session, key, &ok), 0);
    pair_run(&pair);
    assert_int_equal(pair.client.n_statuses, 3);
    assert_int_equal(pair.client.code, BOW_RESOURCE_EXHAUSTED);
    assert_int_equal(pair.client.rc, 0);
    assert_int_equal(pair.server.rc, 0);
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
        cmocka_unit_test(test_native_metadata_above_what_was_said_breaks),
        cmocka_unit_test(test_native_metadata_that_may_be_too_much_waits_for_settings),
        cmocka_unit_test(test_native_metadata_fits_the_peer_s_frames),
        cmocka_unit_test(test_native_metadata_above_less_than_the_default_ends_its_call),
        cmocka_unit_test(test_native_metadata_costs_a_connection_nothing_afterwards),
        cmocka_unit_test(test_native_metadata_without_memory_refuses_the_call),
        cmocka_unit_test(test_native_metadata_without_memory_leaves_the_status),
        cmocka_unit_test(test_native_metadata_without_memory_ends_the_reply),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
