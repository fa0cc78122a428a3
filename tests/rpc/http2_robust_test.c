/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The same calls under every split, every failed allocation, every tampered byte, and with every
 * operation from every event. */
#include "tests/rpc/http2_pair.h"

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
};

static int set_up(void **state)
{
    struct fixture *t = calloc(1, sizeof(*t));

    test_alloc_init(&t->alloc);
    t->context = test_context_new(&t->alloc);
    *state = t;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *t = *state;

    test_context_end(t->context, &t->alloc);
    free(t);
    return 0;
}

static void make_client_bytes(struct bytes *bytes)
{
    bytes->len = 0;
    bytes_preface(bytes);
    bytes_request(bytes, 4, 1, (const char *[]){"grpc-timeout: 1S", NULL});
    bytes_frame(bytes, 0, 0, 1, "\0\0\0\0\3one\0\0", 10);
    bytes_request(bytes, 4, 3, NULL);
    bytes_frame(bytes, 0, 1, 1, "\0\0\5later", 8);
    bytes_frame(bytes, 6, 0, 0, "12345678", 8);
    bytes_frame(bytes, 0, 1, 3, "\0\0\0\0\0", 5);
    bytes_request(bytes, 4, 5, NULL);
    bytes_frame(bytes, 3, 0, 5, "\0\0\0\x08", 4);
}

static void feed_split(struct bow_context *context, const struct bytes *bytes, size_t at)
{
    struct pair pair;

    assert_int_equal(pair_begin(&pair, context), 0);
    assert_int_equal(side_feed(&pair.server, bytes->data, at, SIZE_MAX), 0);
    assert_int_equal(side_feed(&pair.server, bytes->data + at, bytes->len - at, SIZE_MAX), 0);
    /* Only where the last bytes come with the frame's end is the end known with the message. */
    side_expect(&pair.server, "open 1 /a.B/C 1000000000\nmessage 1 3 one\nopen 3 /a.B/C\n"
                              "message 1 5 later end\nmessage 3 0 end\nopen 5 /a.B/C\n"
                              "reset 5 CANCELLED stream reset by the client, which gave the call "
                              "up, with CANCEL (8)\n");
    pair_end(&pair);
}

static void test_server_takes_bytes_at_every_split(void **state)
{
    struct fixture *t = *state;
    static struct bytes bytes;

    make_client_bytes(&bytes);
    for (size_t at = 0; at <= bytes.len; at++) {
        feed_split(t->context, &bytes, at);
    }
}

/* What a server sends for one call, up to the call's end. */
static void record_server(struct bow_context *context, struct bytes *bytes)
{
    static uint8_t request[8192];
    struct pair pair;
    uint64_t key = 0;

    assert_int_equal(pair_begin(&pair, context), 0);
    assert_int_equal(side_call(&pair.client, "/a.B/C", "x", BOW_NEVER, &key), 0);
    size_t n = side_drain(&pair.client, request, sizeof(request));
    assert_int_equal(side_feed(&pair.server, request, n, SIZE_MAX), 0);
    assert_int_equal(side_send(&pair.server, 1, 0, "reply"), 0);
    struct bow_status status = {.code = BOW_ABORTED, .message = "and then not"};
    assert_int_equal(pair.server.session->ops->finish(pair.server.session, 1, &status), 0);
    bytes->len = side_drain(&pair.server, bytes->data, sizeof(bytes->data));
    pair_end(&pair);
}

static void test_client_takes_bytes_at_every_split(void **state)
{
    struct fixture *t = *state;
    static struct bytes bytes;

    record_server(t->context, &bytes);
    for (size_t at = 0; at <= bytes.len; at++) {
        static uint8_t request[8192];
        struct pair pair;
        uint64_t key = 0;
        assert_int_equal(pair_begin(&pair, t->context), 0);
        assert_int_equal(side_call(&pair.client, "/a.B/C", "x", BOW_NEVER, &key), 0);
        side_drain(&pair.client, request, sizeof(request));
        assert_int_equal(side_feed(&pair.client, bytes.data, at, SIZE_MAX), 0);
        assert_int_equal(side_feed(&pair.client, bytes.data + at, bytes.len - at, SIZE_MAX), 0);
        side_expect(&pair.client, "ready\nmessage 1 5 reply\nstatus 1 ABORTED and then not\n");
        pair_end(&pair);
    }
}

/* After a cut connection each open call has one last event. */
static void test_connection_cut_at_every_byte_ends_every_call(void **state)
{
    struct fixture *t = *state;
    struct bow_status lost = {.code = BOW_UNAVAILABLE, .message = "cut"};
    static struct bytes bytes;

    make_client_bytes(&bytes);
    for (size_t at = 0; at <= bytes.len; at++) {
        struct pair pair;
        assert_int_equal(pair_begin(&pair, t->context), 0);
        assert_int_equal(side_feed(&pair.server, bytes.data, at, SIZE_MAX), 0);
        side_fail(&pair.server, &lost);
        assert_int_equal(pair.server.n_open, 0);
        assert_int_equal(pair.server.session->n_streams, 0);
        pair_end(&pair);
    }
}

/* Whatever becomes of it: no crash, nothing lost, a reason where it ends. */
static void test_tampered_bytes_do_no_harm(void **state)
{
    struct fixture *t = *state;
    struct bow_status lost = {.code = BOW_UNAVAILABLE, .message = "cut"};
    static struct bytes bytes;

    make_client_bytes(&bytes);
    for (size_t at = 0; at < bytes.len * 8; at++) {
        struct pair pair;
        assert_int_equal(pair_begin(&pair, t->context), 0);
        pair.server.is_muted = true;
        bytes.data[at / 8] ^= (uint8_t)(1u << at % 8);
        if (side_feed(&pair.server, bytes.data, bytes.len, SIZE_MAX) < 0) {
            assert_true(pair.server.session->failure.len > 0);
            assert_true(pair.server.session->failure_code != BOW_OK);
        }
        bytes.data[at / 8] ^= (uint8_t)(1u << at % 8);
        side_fail(&pair.server, &lost);
        assert_int_equal(pair.server.n_open, 0);
        pair_end(&pair);
    }
}

/* Operations from events (F23). Each event does all of them, for its own stream or another. */

struct mess {
    unsigned step;
    unsigned kind; /* which operation comes first */
    uint64_t keys[4];
    uint32_t n_keys;
};

static void open_one(struct side *side)
{
    struct mess *mess = side->user;
    uint64_t key = 0;

    if (side->session->server || mess->n_keys == 4) {
        return;
    }
    if (side_call(side, "/a.B/C", "again", BOW_NEVER, &key) == 0) {
        mess->keys[mess->n_keys++] = key;
    }
}

static void end_one(struct side *side, uint64_t key)
{
    struct bow_status status = {.code = BOW_ABORTED, .message = "in the event"};
    uint32_t n_before = side->session->n_streams;

    if (side->session->server) {
        side->session->ops->finish(side->session, key, &status);
    } else {
        side->session->ops->cancel(side->session, key, BOW_CANCELLED);
    }
    side->n_open -= n_before - side->session->n_streams;
}

static const struct bow_metadata_entry some_entries[] = {
    {"k", {(const uint8_t *)"v", 1}},
    {"a-bin", {(const uint8_t *)"\0\xFF", 2}},
};
static const struct bow_metadata some_metadata = {some_entries, 2};

static void mess_up(struct side *side, enum side_event event, uint64_t key)
{
    struct mess *mess = side->user;
    struct bow__session *session = side->session;
    uint64_t other = mess->n_keys > 0 ? mess->keys[0] : 1;
    size_t cap = 0;

    if (event == SIDE_OPEN && mess->kind % 2 == 0) {
        (void)session->ops->respond(session, key, &some_metadata, BOW__ENCODING_IDENTITY);
    }
    switch ((mess->step++ + mess->kind) % 8) {
    case 0:
        (void)side_send(side, key, 0, "from the event");
        (void)side_send_block(side, other, 0, 0, 20000);
        break;
    case 1:
        end_one(side, key);
        end_one(side, key);
        break;
    case 2:
        open_one(side);
        end_one(side, other);
        break;
    case 3:
        session->ops->consumed(session, key, SIZE_MAX);
        (void)session->ops->reserve(session, other, 0, &cap);
        open_one(side);
        break;
    case 4:
        end_one(side, other);
        open_one(side);
        end_one(side, key);
        break;
    case 5:
        session->ops->goaway(session, &(struct bow_status){.code = BOW_OK, .message = ""});
        (void)session->ops->next_time(session);
        (void)session->ops->is_done(session);
        break;
    case 6:
        if (!session->server) {
            (void)session->ops->half_close(session, key);
            (void)session->ops->half_close(session, other);
        }
        (void)side_send_block(side, other, 0, 0, 100000);
        break;
    case 7:
        (void)session->ops->take_writable(session, &other);
        (void)session->ops->queued(session, key);
        (void)session->ops->encodings(session, key);
        end_one(side, key);
        break;
    }
}

static void run_mess(struct bow_context *context, unsigned kind, size_t piece, bool cut)
{
    struct bow_status lost = {.code = BOW_UNAVAILABLE, .message = "cut"};
    struct mess client = {.kind = kind};
    struct mess server = {.kind = kind / 8};
    struct pair pair;
    uint64_t key = 0;

    assert_int_equal(pair_begin(&pair, context), 0);
    pair.client.hook = mess_up;
    pair.client.user = &client;
    pair.server.hook = mess_up;
    pair.server.user = &server;
    for (size_t i = 0; i < 4; i++) {
        (void)side_call(&pair.client, "/a.B/C", "hello", BOW_NEVER, &key);
    }
    if (!cut) {
        pair_run(&pair, piece);
    }
    side_fail(&pair.client, &lost);
    side_fail(&pair.server, &lost);
    assert_int_equal(pair.client.n_open, 0);
    assert_int_equal(pair.client.session->n_streams, 0);
    assert_int_equal(pair.server.session->n_streams, 0);
    pair_end(&pair);
}

static void test_f23_every_operation_from_every_event_is_safe(void **state)
{
    struct fixture *t = *state;

    for (unsigned kind = 0; kind < 64; kind++) {
        run_mess(t->context, kind, SIZE_MAX, false);
        run_mess(t->context, kind, 7, false);
        run_mess(t->context, kind, SIZE_MAX, true);
    }
}

/* Each allocation fails in turn. */

static void answer(struct side *side, enum side_event event, uint64_t key)
{
    struct bow_status status = {
        .code = BOW_NOT_FOUND, .message = "no such ü", .metadata = some_metadata};
    uint32_t n_before = side->session->n_streams;

    if (event != SIDE_MESSAGE) {
        return;
    }
    (void)side->session->ops->respond(side->session, key, &some_metadata, BOW__ENCODING_IDENTITY);
    (void)side_send_block(side, key, 0, 0, 30000);
    (void)side_send(side, key, 0, "small");
    (void)side->session->ops->finish(side->session, key, &status);
    side->n_open -= n_before - side->session->n_streams;
}

static int call_and_answer(struct bow_context *context, void *user)
{
    struct bow_status lost = {.code = BOW_UNAVAILABLE, .message = "end"};
    struct pair pair;
    uint64_t key = 0;
    int rc = pair_begin(&pair, context);

    (void)user;
    if (rc < 0) {
        pair_end(&pair);
        return rc;
    }
    pair.server.hook = answer;
    rc = side_call(&pair.client, "/a.B/C", "hello", 1000000, &key);
    int rc_second = side_call(&pair.client, "/a.B/C", "hello", BOW_NEVER, &key);
    pair_run(&pair, SIZE_MAX);
    pair.client.session->ops->goaway(pair.client.session, &lost);
    pair_run(&pair, SIZE_MAX);
    if (rc == 0) {
        rc = rc_second;
    }
    if (rc == 0 && (pair.client.rc != 0 || pair.server.rc != 0)) {
        rc = -ENOMEM;
    }
    if (rc == 0 && !side_has(&pair.client, "status 2 NOT_FOUND no such ü k=v a-bin=00ff\n")) {
        rc = -ENOMEM;
    }
    side_fail(&pair.client, &lost);
    side_fail(&pair.server, &lost);
    assert_int_equal(pair.client.n_open, 0);
    assert_int_equal(pair.client.session->n_streams, 0);
    assert_int_equal(pair.server.session->n_streams, 0);
    pair_end(&pair);
    return rc;
}

static void test_every_failed_allocation_is_survived(void **state)
{
    (void)state;
    assert_true(test_alloc_fail_each(NULL, call_and_answer, NULL) > 30);
}

/* nghttp2 resets a stream while output is drained; what the host then says of it goes nowhere, and
 * nothing more is heard. */
static void test_answer_to_a_stream_that_is_gone_is_its_end(void **state)
{
    struct fixture *t = *state;
    static struct bytes bytes;
    static uint8_t out[8192];

    for (unsigned way = 0; way < 3; way++) {
        struct pair pair;
        struct iovec pieces[1];
        assert_int_equal(pair_begin(&pair, t->context), 0);
        bytes.len = 0;
        bytes_preface(&bytes);
        bytes_request(&bytes, 4, 1, (const char *[]){"content-length: 3", NULL});
        assert_int_equal(side_feed(&pair.server, bytes.data, bytes.len, SIZE_MAX), 0);
        /* Fill the output, so that the reset leaves nghttp2 in a later drain: beside a small
         * message no more than that is put there. */
        assert_int_equal(side_send_block(&pair.server, 1, 0, 0, 5), 0);
        assert_int_equal(side_send_block(&pair.server, 1, 0, 0, 65535 - 15), 0);
        assert_true(pair.server.session->ops->drain(pair.server.session, pieces, 1) > 0);
        bytes.len = 0;
        bytes_frame(&bytes, 0, 0, 1, "\0\0\0\0\2hi", 7);
        assert_int_equal(side_feed(&pair.server, bytes.data, bytes.len, SIZE_MAX), 0);
        while (side_drain(&pair.server, out, sizeof(out)) > 0) {
        }
        side_expect(&pair.server, "open 1 /a.B/C\n");
        assert_int_equal(pair.server.session->ops->next_time(pair.server.session), 0);
        struct bow_status status = {.code = BOW_ABORTED, .message = ""};
        if (way == 0) {
            assert_int_equal(pair.server.session->ops->finish(pair.server.session, 1, &status),
                             -ENOENT);
        } else if (way == 1) {
            assert_int_equal(side_send_block(&pair.server, 1, BOW__SEND_END, 0, 10), -ENOENT);
        }
        assert_int_equal(pair.server.session->ops->on_time(pair.server.session, pair.now_ns), 0);
        side_expect(&pair.server,
                    way == 2 ? "reset 1 CANCELLED stream reset by this side with PROTOCOL_ERROR "
                               "(1)\n"
                             : "");
        assert_int_equal(pair.server.session->n_streams, 0);
        pair_end(&pair);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_server_takes_bytes_at_every_split),
        TEST(test_client_takes_bytes_at_every_split),
        TEST(test_connection_cut_at_every_byte_ends_every_call),
        TEST(test_tampered_bytes_do_no_harm),
        TEST(test_f23_every_operation_from_every_event_is_safe),
        cmocka_unit_test(test_every_failed_allocation_is_survived),
        TEST(test_answer_to_a_stream_that_is_gone_is_its_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
