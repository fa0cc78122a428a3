/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Metadata and encodings of calls over two HTTP/2 sessions back to back.
 */
#include "tests/rpc/http2_pair.h"

#include "rpc/core/compression/encodings.h"
#include <bowline/limits.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    struct test_alloc alloc;
    struct bow_context *context;
    struct pair pair;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    assert_non_null(fixture);
    test_alloc_init(&fixture->alloc);
    fixture->context = test_context_new(&fixture->alloc);
    pair_init(&fixture->pair, fixture->context);
    for (int i = 0; i < 2; i++) {
        struct side *side = i == 0 ? &fixture->pair.client : &fixture->pair.server;
        struct bow__session_options options = pair_options(&fixture->pair, side, i == 1);
        options.encodings = 1u << BOW__ENCODING_GZIP;
        assert_int_equal(side_begin(side, &options), 0);
    }
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    pair_end(&fixture->pair);
    test_context_end(fixture->context, &fixture->alloc);
    free(fixture);
    return 0;
}

static const struct bow__session_ops *ops_of(const struct side *side)
{
    return side->session->ops;
}

static int open_with(struct side *side, const struct bow_metadata *metadata,
                     enum bow__encoding encoding, uint64_t *ret_key)
{
    struct bow__request_head head = {
        .path = {(const uint8_t *)"/a.B/C", 6},
        .time_left_ns = BOW_NEVER,
        .encoding = encoding,
    };

    if (metadata != NULL) {
        head.metadata = *metadata;
    }
    int rc = ops_of(side)->open(side->session, &head, side, ret_key);
    side->n_open += rc == 0;
    return rc;
}

static uint64_t begin(struct pair *pair)
{
    uint64_t key = 0;

    assert_int_equal(open_with(&pair->client, NULL, BOW__ENCODING_IDENTITY, &key), 0);
    assert_int_equal(ops_of(&pair->client)->begin(pair->client.session, key), 0);
    pair_run(pair, SIZE_MAX);
    side_expect(&pair->server, "open 1 /a.B/C\n");
    side_expect(&pair->client, "ready\n");
    return key;
}

static struct bow_slice slice(const char *text, size_t len)
{
    return (struct bow_slice){(const uint8_t *)text, len};
}

static void test_metadata_goes_both_ways(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    struct bow_metadata_entry asked[] = {
        {"who", slice("me, and you", 11)},
        {"raw-bin", slice("\0\x01\xFF", 3)},
        {"raw-bin", slice("a,b", 3)},
        {"empty", slice("", 0)},
    };
    struct bow_metadata_entry initial[] = {{"first-bin", slice("xy", 2)}};
    struct bow_metadata_entry trailing[] = {{"took", slice("5ms", 3)}, {"took", slice("6ms", 3)}};
    struct bow_metadata metadata = {asked, 4};
    struct bow__session *server = pair->server.session;
    struct bow_status status = {.code = BOW_OK, .message = "", .metadata = {trailing, 2}};
    uint64_t key = 0;

    assert_int_equal(open_with(&pair->client, &metadata, BOW__ENCODING_IDENTITY, &key), 0);
    assert_int_equal(side_send(&pair->client, key, BOW__SEND_END, "x"), 0);
    pair_run(pair, SIZE_MAX);
    side_expect(&pair->server, "open 1 /a.B/C"
                               " who=me, and you raw-bin=0001ff raw-bin=612c62 empty=\n"
                               "message 1 1 x end\n");
    metadata = (struct bow_metadata){initial, 1};
    assert_int_equal(server->ops->respond(server, 1, &metadata, BOW__ENCODING_IDENTITY), 0);
    assert_int_equal(side_send(&pair->server, 1, 0, "y"), 0);
    assert_int_equal(server->ops->finish(server, 1, &status), 0);
    pair_run(pair, 1);
    side_expect(&pair->client, "ready\nheaders 1 first-bin=7879\nmessage 1 1 y\n"
                               "status 1 OK took=5ms took=6ms\n");
}

static void test_metadata_travels_with_an_error_alone(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    struct bow_metadata_entry trailing[] = {{"why", slice("because", 7)}};
    struct bow_status status = {.code = BOW_ABORTED, .message = "no", .metadata = {trailing, 1}};

    (void)begin(pair);
    assert_int_equal(ops_of(&pair->server)->finish(pair->server.session, 1, &status), 0);
    pair_run(pair, SIZE_MAX);
    side_expect(&pair->client, "status 1 ABORTED no why=because\n");
}

static void test_metadata_beyond_the_limit_is_refused_here(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    static char large[BOW_LIMIT_HEADER_BYTES];
    struct bow_metadata_entry entry = {"k", slice(large, sizeof(large))};
    struct bow_metadata metadata = {&entry, 1};
    struct bow_status status = {.code = BOW_ABORTED, .message = "kept", .metadata = metadata};
    struct bow__session *server = pair->server.session;
    uint64_t key = 0;

    memset(large, 'x', sizeof(large));
    (void)begin(pair);
    assert_int_equal(open_with(&pair->client, &metadata, BOW__ENCODING_IDENTITY, &key), -EMSGSIZE);
    assert_int_equal(server->ops->respond(server, 1, &metadata, BOW__ENCODING_IDENTITY), -EMSGSIZE);
    assert_int_equal(server->ops->finish(server, 1, &status), 0);
    pair_run(pair, SIZE_MAX);
    side_expect(&pair->client, "status 1 ABORTED kept\n");
}

static void test_lists_of_binary_values_and_bad_ones_are_read(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    static struct bytes in;
    static const char *const more[] = {
        "list-bin: QUI, Q0Q=,RQ", "bad-bin: ****", "te: trailers",     "grpc-tags-bin: QQ",
        "content-length: 12",     "odd: \xC3\xBC", "x-request-id: 17", NULL,
    };

    bytes_preface(&in);
    bytes_request(&in, 4, 1, more);
    side_feed(&pair->server, in.data, in.len, SIZE_MAX);
    assert_int_equal(pair->server.rc, 0);
    side_expect(&pair->server,
                "open 1 /a.B/C list-bin=4142 list-bin=4344 list-bin=45 x-request-id=17\n");
}

/* gRPC lets senders have them, though RFC 9113 (8.2.1) does not. */
static void test_blanks_around_values_are_stripped(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    static struct bytes in;
    static const char *const more[] = {
        "front:  a",       "back: b\t ",       "both: \t c d \t", "blank:  \t ",
        "raw-bin:  QUI\t", "user-agent:  me ", "inside: e\tf",    NULL,
    };

    bytes_preface(&in);
    bytes_request(&in, 4, 1, more);
    side_feed(&pair->server, in.data, in.len, SIZE_MAX);
    assert_int_equal(pair->server.rc, 0);
    side_expect(&pair->server, "open 1 /a.B/C front=a back=b both=c d blank= raw-bin=4142\n");
}

/* A list of empty values in one long field would be thousands of entries. */
static void test_bomb_of_lists_is_refused(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    static struct bytes in;
    static char field[8001];
    size_t n_before = bow_context_bytes(pair->context);

    memset(field, ',', sizeof(field) - 1);
    memset(field, 'k', 4000);
    memcpy(field + 4000 - 4, "-bin: ", 6);
    bytes_preface(&in);
    bytes_request(&in, 4, 1, (const char *[]){field, NULL});
    side_feed(&pair->server, in.data, in.len, SIZE_MAX);
    assert_int_equal(pair->server.rc, 0);
    side_expect(&pair->server, "refused /a.B/C max_header_bytes\n");
    in.len = side_drain(&pair->server, in.data, sizeof(in.data));
    static char text[4096];
    bytes_print(&in, text, sizeof(text));
    assert_non_null(strstr(text, "grpc-status=8 grpc-message=header of"));
    assert_true(bow_context_bytes(pair->context) < n_before + 16 * BOW_LIMIT_HEADER_BYTES);
}

/* As many as the limit permits, each as small as can be. */
static void test_most_entries_there_can_be_are_read(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    static struct bytes in;
    static const char *more[BOW_LIMIT_HEADER_BYTES / 33 + 1];

    bytes_preface(&in);
    for (size_t i = 0; i < 480; i++) {
        more[i] = i % 2 == 0 ? "a: " : "b-bin: QQ";
    }
    more[400] = NULL;
    bytes_request(&in, 4, 1, more);
    side_feed(&pair->server, in.data, in.len, 1000);
    assert_int_equal(pair->server.rc, 0);
    assert_true(side_has(&pair->server, "open 1 /a.B/C a= b-bin=41 a= b-bin=41"));
    size_t n = 0;
    for (const char *at = pair->server.log; (at = strstr(at, "b-bin=41")) != NULL; at++) {
        n++;
    }
    assert_int_equal(n, 200);
}

/* Nobody may add them, so that those of a peer are none either. */
static void test_reserved_keys_of_a_peer_are_no_metadata(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    static struct bytes in;
    static const char *const more[] = {
        "user-agent: me",
        "host: elsewhere",
        "accept-encoding: gzip",
        "trailer: x",
        "grpc-odd: 1",
        "grpc-odd-bin: QUI",
        "mine: too",
        NULL,
    };

    bytes_preface(&in);
    bytes_request(&in, 4, 1, more);
    side_feed(&pair->server, in.data, in.len, SIZE_MAX);
    assert_int_equal(pair->server.rc, 0);
    side_expect(&pair->server, "open 1 /a.B/C mine=too\n");
}

/* Initial metadata without any message is a header block of its own. */
static void test_initial_metadata_comes_before_an_error(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    struct bow_metadata_entry initial[] = {{"first", slice("1", 1)}};
    struct bow_metadata_entry trailing[] = {{"last", slice("2", 1)}};
    struct bow__session *server = pair->server.session;
    struct bow_status status = {
        .code = BOW_DATA_LOSS,
        .message = "m",
        .details = slice("\x08\x0F", 2),
        .metadata = {trailing, 1},
    };

    (void)begin(pair);
    assert_int_equal(
        server->ops->respond(server, 1, &(struct bow_metadata){initial, 1}, BOW__ENCODING_IDENTITY),
        0);
    pair_run(pair, SIZE_MAX);
    side_expect(&pair->client, "headers 1 first=1\n");
    assert_int_equal(server->ops->finish(server, 1, &status), 0);
    pair_run(pair, SIZE_MAX);
    side_expect(&pair->client, "status 1 DATA_LOSS m [\x08\x0F] last=2\n");
}

/* What does not fit goes in this order: details, then metadata; the message stays. */
static void test_status_gives_up_details_before_metadata(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    static char bytes[9000];
    struct bow_metadata_entry entry = {"k", slice(bytes, 9000)};
    struct bow_status status = {
        .code = BOW_ABORTED,
        .message = "kept",
        .details = slice(bytes, 6000),
        .metadata = {&entry, 1},
    };

    memset(bytes, 'x', sizeof(bytes));
    (void)begin(pair);
    assert_int_equal(ops_of(&pair->server)->finish(pair->server.session, 1, &status), 0);
    pair_run(pair, SIZE_MAX);
    assert_true(side_has(&pair->client, "status 1 ABORTED kept k=xxx"));
}

static void test_encodings_are_agreed_on(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    struct bow__session *server = pair->server.session;
    struct bow__session *client = pair->client.session;
    uint32_t both = 1u << BOW__ENCODING_IDENTITY | 1u << BOW__ENCODING_GZIP;
    struct bow_metadata none = BOW_METADATA_INIT;
    uint64_t key = 0;

    if ((bow__encodings_built() >> BOW__ENCODING_GZIP & 1u) == 0) {
        skip();
    }
    assert_int_equal(open_with(&pair->client, NULL, BOW__ENCODING_GZIP, &key), 0);
    /* The first call of a connection does not know yet. */
    assert_int_equal(client->ops->encodings(client, key), 1u << BOW__ENCODING_IDENTITY);
    assert_int_equal(side_send(&pair->client, key, BOW__SEND_COMPRESSED, "zz"), 0);
    assert_int_equal(side_send(&pair->client, key, BOW__SEND_END, "plain"), 0);
    pair_run(pair, SIZE_MAX);
    side_clear(&pair->client);
    side_expect(&pair->server, "open 1 /a.B/C"
                               "\nmessage 1 gzip 2 zz\nmessage 1 5 plain end\n");
    assert_int_equal(server->ops->encodings(server, 1), both);
    assert_int_equal(server->ops->respond(server, 1, &none, BOW__ENCODING_GZIP), 0);
    assert_int_equal(side_send(&pair->server, 1, BOW__SEND_COMPRESSED | BOW__SEND_END, "qq"), 0);
    pair_run(pair, SIZE_MAX);
    side_expect(&pair->client, "message 1 gzip 2 qq\nstatus 1 OK\n");
    assert_int_equal(client->ops->encodings(client, 0), both);
}

/* What is assumed of a server holds until it has spoken, here to refuse just that. */
static void test_assumed_encodings_are_those_until_the_server_says(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    uint32_t identity = 1u << BOW__ENCODING_IDENTITY;
    struct bow__session_options options;
    uint64_t key = 0;

    if ((bow__encodings_built() >> BOW__ENCODING_GZIP & 1u) == 0) {
        skip();
    }
    pair_end(pair);
    pair_init(pair, ((struct fixture *)*state)->context);
    options = pair_options(pair, &pair->client, false);
    options.assumed_encodings = 1u << BOW__ENCODING_GZIP;
    assert_int_equal(side_begin(&pair->client, &options), 0);
    options = pair_options(pair, &pair->server, true);
    assert_int_equal(side_begin(&pair->server, &options), 0);
    const struct bow__session *client = pair->client.session;
    assert_int_equal(client->ops->encodings(client, 0), identity | 1u << BOW__ENCODING_GZIP);
    assert_int_equal(open_with(&pair->client, NULL, BOW__ENCODING_GZIP, &key), 0);
    assert_int_equal(side_send(&pair->client, key, BOW__SEND_COMPRESSED | BOW__SEND_END, "zz"), 0);
    pair_run(pair, SIZE_MAX);
    assert_true(side_has(&pair->client, "status 1 UNIMPLEMENTED message is compressed with "
                                        "grpc-encoding \"gzip\", which is not supported"));
    assert_int_equal(client->ops->encodings(client, 0), identity);
}

static void test_unknown_encodings_are_refused_by_name(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    static struct bytes in;
    static const char *const more[] = {"grpc-encoding: brotli", NULL};

    bytes_preface(&in);
    bytes_request(&in, 4, 1, more);
    bytes_frame(&in, 0, 1, 1, "\x01\x00\x00\x00\x01z", 6);
    side_feed(&pair->server, in.data, in.len, SIZE_MAX);
    assert_int_equal(pair->server.rc, 0);
    assert_true(side_has(&pair->server, "reset 1 UNIMPLEMENTED message is compressed with "
                                        "grpc-encoding \"brotli\", which is not supported "
                                        "(supported: identity"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_metadata_goes_both_ways),
        TEST(test_metadata_travels_with_an_error_alone),
        TEST(test_metadata_beyond_the_limit_is_refused_here),
        TEST(test_lists_of_binary_values_and_bad_ones_are_read),
        TEST(test_blanks_around_values_are_stripped),
        TEST(test_bomb_of_lists_is_refused),
        TEST(test_most_entries_there_can_be_are_read),
        TEST(test_reserved_keys_of_a_peer_are_no_metadata),
        TEST(test_initial_metadata_comes_before_an_error),
        TEST(test_status_gives_up_details_before_metadata),
        TEST(test_encodings_are_agreed_on),
        TEST(test_assumed_encodings_are_those_until_the_server_says),
        TEST(test_unknown_encodings_are_refused_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
