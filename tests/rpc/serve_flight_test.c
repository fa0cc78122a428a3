/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Many connections of one server, each below its own limits and together above the server's:
 * messages that nobody reads, and requests that handlers hold. Its memory stays bounded, who is
 * refused is told why, what is in progress ends, and a neighbour that wants little goes on.
 */

#include "rpc/core/compression/encodings.h"
#include "rpc/server/server_state.h"
#include "serve_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KIB ((size_t)1 << 10)
#define MAX_IN_FLIGHT ((size_t)1024 * KIB)
#define MESSAGE_BYTES ((size_t)60 * KIB)
#define RETRY_AFTER_NS (700 * MS)
#define N_PEERS 8
#define N_CALLS 3 /* of each */
#define LIMIT "max_bytes_in_flight (1048576)"
/* What connections, calls and blocks take beside the messages. */
#define SPARE_BYTES ((size_t)1024 * KIB)

struct crowd {
    struct serving *s;
    struct session_peer *peers[N_PEERS];
    struct bow_call *calls[1000]; /* of the loop: references, of streams */
    int n_calls;
    void (*send)(struct session_peer *peer, uint32_t flags); /* each call's request */
};

static struct crowd *crowd; /* of the test that runs */

static void send_large(struct session_peer *peer, uint32_t flags);

static void start(void **state)
{
    struct serving *s = *state;
    struct bow_server_options options;

    calls_server_options(s->t, &options);
    options.max_message_bytes = 64 * KIB;
    options.max_bytes_in_flight = MAX_IN_FLIGHT;
    options.retry_after_ns = RETRY_AFTER_NS;
    serve_start(s, &options);
    serve_connect(s); /* the neighbour */
    crowd = calloc(1, sizeof(*crowd));
    assert_non_null(crowd);
    crowd->s = s;
    crowd->send = send_large;
    for (int i = 0; i < N_PEERS; i++) {
        crowd->peers[i] = calloc(1, sizeof(struct session_peer));
        assert_non_null(crowd->peers[i]);
        session_peer_begin(crowd->peers[i], s->peer_context, calls_raw_connect(s->t), false,
                           calls_is_grpc());
        session_peer_wait(crowd->peers[i], &crowd->peers[i]->n_readies, 1);
    }
}

/* A client may know of the end of its call before the handler does, so the server ends first. */
static void end(void)
{
    bow_server_free(crowd->s->t->server);
    crowd->s->t->server = NULL;
    crowd->s->n_after_closed = 0; /* events of one call after the end of another */
    for (int i = 0; i < N_PEERS; i++) {
        session_peer_end(crowd->peers[i]);
        free(crowd->peers[i]);
    }
    free(crowd);
    crowd = NULL;
}

static void send_large(struct session_peer *peer, uint32_t flags)
{
    Calls__Request request = CALLS__REQUEST__INIT;
    static uint8_t payload[MESSAGE_BYTES];
    static uint8_t bytes[MESSAGE_BYTES + 64];

    request.number = 1;
    request.payload.len = MESSAGE_BYTES;
    request.payload.data = payload;
    session_peer_send(peer, flags, bytes, calls__request__pack(&request, bytes));
}

/* Each peer's calls, whose messages are as many as its streams' windows take. */
static void crowd_in(const char *path, uint32_t flags)
{
    for (int call = 0; call < N_CALLS; call++) {
        for (int i = 0; i < N_PEERS; i++) {
            session_peer_begin_stream(crowd->peers[i], path, BOW_NEVER, NULL);
            crowd->send(crowd->peers[i], flags);
            session_peer_flush(crowd->peers[i]);
            (void)session_peer_serve(crowd->peers[i], 0);
        }
    }
}

static void serve_all(void)
{
    for (int i = 0; i < N_PEERS; i++) {
        (void)session_peer_serve(crowd->peers[i], 1);
    }
}

static int count_ends(void)
{
    int n = 0;

    for (int i = 0; i < N_PEERS; i++) {
        n += crowd->peers[i]->n_ends;
    }
    return n;
}

static uint64_t count_started(void)
{
    struct bow_metrics metrics = BOW_METRICS_INIT;

    assert_int_equal(bow_server_metrics(crowd->s->t->server, &metrics), 0);
    return metrics.calls_started;
}

/* The calls that are not going to be refused have entered their handlers. One that has may be
 * refused all the same, for a later message, so their number alone does not tell. */
static void wait_all_known(void)
{
    for (int tries = 0; tries < 20000; tries++) {
        if (count_started() >= N_PEERS * N_CALLS &&
            serve_count(crowd->s, &crowd->s->n_steps) + count_ends() >= N_PEERS * N_CALLS) {
            return;
        }
        serve_all();
    }
    fail_msg("%d entered, %d ended", serve_count(crowd->s, &crowd->s->n_steps), count_ends());
}

static void expect_refusals(void)
{
    int n = 0;

    for (int i = 0; i < N_PEERS; i++) {
        const struct session_peer *peer = crowd->peers[i];
        if (peer->n_ends > 0 &&
            (peer->code != BOW_RESOURCE_EXHAUSTED || strstr(peer->text, LIMIT) == NULL)) {
            fail_msg("%s: %s", bow_code_name(peer->code), peer->text);
        }
        n += peer->n_ends;
    }
    assert_in_range(n, N_PEERS * N_CALLS - MAX_IN_FLIGHT / MESSAGE_BYTES, N_PEERS * N_CALLS - 8);
    CALLS_WAIT_METRIC(crowd->s->t, calls_refused_bytes, (uint64_t)n);
}

static void answer(struct serving *s, struct bow_call *call)
{
    s->rc = serve_reply(call, 7);
}

static void expect_neighbour_served(struct serving *s)
{
    void (*enter)(struct serving * s, struct bow_call * call) = s->enter;

    s->enter = answer;
    s->peer.n_ends = 0;
    session_peer_begin_stream(&s->peer, SERVE_PLAIN, BOW_NEVER, NULL);
    serve_peer_send(s, BOW__SEND_END, 1);
    serve_expect_status(s, BOW_OK, "");
    s->enter = enter;
}

/* Messages that nobody reads */

static void ignore(struct serving *s, struct bow_call *call)
{
    crowd->calls[crowd->n_calls++] = bow_call_ref(call);
    serve_step(s);
}

/* But those that were refused meanwhile. */
static void finish_all(struct serving *s)
{
    for (int i = 0; i < crowd->n_calls; i++) {
        if (bow_call_is_writable(crowd->calls[i])) {
            serve_listen(s, crowd->calls[i]);
        }
    }
}

static void finish_one(struct serving *s, struct bow_call *call)
{
    (void)s;
    (void)bow_call_finish(call);
}

static void let_calls_go(struct serving *s)
{
    (void)s;
    for (int i = 0; i < crowd->n_calls; i++) {
        bow_call_unref(crowd->calls[i]);
    }
    crowd->n_calls = 0;
}

static void test_flight_of_unread_messages_is_bounded_and_passes(void **state)
{
    struct serving *s = *state;

    start(state);
    size_t before = bow_context_bytes(s->t->context);
    s->enter = ignore;
    crowd_in(SERVE_BOTH, 0);
    /* One that lost its place is known twice, and must not stand for one that has yet to enter. */
    CALLS_WAIT_METRIC(s->t, calls_started, N_PEERS * N_CALLS);
    wait_all_known();
    /* Some of those that entered lose their place by a message that finds none. */
    for (int tries = 0; tries < 50; tries++) {
        serve_all();
        expect_neighbour_served(s);
    }
    assert_in_range(bow_context_bytes(s->t->context), before, before + MAX_IN_FLIGHT + SPARE_BYTES);
    expect_refusals();
    int n_refused = count_ends();

    s->in_message = finish_one;
    serve_on_loop(s, finish_all);
    for (int tries = 0; count_ends() < N_PEERS * N_CALLS && tries < 20000; tries++) {
        serve_all();
    }
    assert_int_equal(count_ends(), N_PEERS * N_CALLS);
    assert_int_equal(serve_count(s, &s->n_messages), N_PEERS * N_CALLS - n_refused);
    serve_on_loop(s, let_calls_go);
    /* The same again, read at once: nobody is refused. */
    s->enter = NULL;
    crowd_in(SERVE_BOTH, BOW__SEND_END);
    for (int tries = 0; count_ends() < 2 * N_PEERS * N_CALLS && tries < 20000; tries++) {
        serve_all();
    }
    assert_int_equal(serve_count(s, &s->n_messages), 2 * N_PEERS * N_CALLS - n_refused);
    CALLS_WAIT_METRIC(s->t, calls_refused_bytes, (uint64_t)n_refused);
    end();
}

/* Requests that handlers hold */

static void hold(struct serving *s, struct bow_call *call)
{
    crowd->calls[crowd->n_calls++] = call;
    serve_step(s);
}

static void answer_all(struct serving *s)
{
    for (int i = 0; i < crowd->n_calls; i++) {
        (void)serve_reply(crowd->calls[i], 7);
    }
    crowd->n_calls = 0;
    serve_step(s);
}

static void test_flight_of_held_requests_is_bounded_and_passes(void **state)
{
    struct serving *s = *state;

    start(state);
    size_t before = bow_context_bytes(s->t->context);
    s->enter = hold;
    crowd_in(SERVE_PLAIN, BOW__SEND_END);
    wait_all_known();
    assert_in_range(bow_context_bytes(s->t->context), before, before + MAX_IN_FLIGHT + SPARE_BYTES);
    expect_refusals();
    int n_refused = count_ends();
    expect_neighbour_served(s);

    serve_on_loop(s, answer_all);
    for (int tries = 0; count_ends() < N_PEERS * N_CALLS && tries < 20000; tries++) {
        serve_all();
    }
    assert_int_equal(count_ends(), N_PEERS * N_CALLS);
    s->enter = answer;
    crowd_in(SERVE_PLAIN, BOW__SEND_END);
    for (int tries = 0; count_ends() < 2 * N_PEERS * N_CALLS && tries < 20000; tries++) {
        serve_all();
    }
    CALLS_WAIT_METRIC(s->t, calls_refused_bytes, (uint64_t)n_refused);
    end();
}

/* All have begun before the first message comes, so it is not admission that refuses. */
static void begin_all_then_send(void)
{
    uint64_t keys[N_CALLS][N_PEERS];

    for (int i = 0; i < N_CALLS * N_PEERS; i++) {
        struct session_peer *peer = crowd->peers[i % N_PEERS];
        session_peer_begin_stream(peer, SERVE_PLAIN, BOW_NEVER, NULL);
        session_peer_flush(peer);
        keys[i / N_PEERS][i % N_PEERS] = peer->key;
    }
    while (count_started() < N_PEERS * N_CALLS) {
        serve_all();
    }
    for (int i = 0; i < N_CALLS * N_PEERS; i++) {
        struct session_peer *peer = crowd->peers[i % N_PEERS];
        peer->key = keys[i / N_PEERS][i % N_PEERS];
        send_large(peer, BOW__SEND_END);
        (void)session_peer_serve(peer, 0);
    }
}

/* Clients of OTLP would drop for good what they are not told to send again. */
static void test_flight_f67_who_finds_no_room_is_told_when_to_come_again(void **state)
{
    struct serving *s = *state;

    start(state);
    s->enter = hold;
    begin_all_then_send();
    wait_all_known();
    for (int i = 0; i < N_PEERS; i++) {
        const struct session_peer *peer = crowd->peers[i];
        if (peer->n_ends > 0) {
            assert_int_equal(peer->code, BOW_RESOURCE_EXHAUSTED);
            assert_int_equal(peer->retry_after_ns, RETRY_AFTER_NS);
            assert_non_null(strstr(peer->text, "no room for a "));
        }
    }
    assert_true(count_ends() > 0);
    serve_on_loop(s, answer_all);
    end();
}

/* Fields of two bytes that the server does not know: it keeps each in a struct. */
static void swell(uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i += 2) {
        bytes[i] = 15 << 3;
    }
}

static void send_swelling(struct session_peer *peer, uint32_t flags)
{
    static uint8_t bytes[32 * KIB];

    swell(bytes, sizeof(bytes));
    session_peer_send(peer, flags, bytes, sizeof(bytes));
}

static void test_flight_counts_what_requests_take_in_memory(void **state)
{
    struct serving *s = *state;

    start(state);
    size_t before = bow_context_bytes(s->t->context);
    s->enter = hold;
    crowd->send = send_swelling;
    crowd_in(SERVE_PLAIN, BOW__SEND_END);
    wait_all_known();
    assert_in_range(bow_context_bytes(s->t->context), before, before + MAX_IN_FLIGHT + SPARE_BYTES);
    for (int i = 0; i < N_PEERS; i++) {
        const struct session_peer *peer = crowd->peers[i];
        assert_true(peer->n_ends == 0 || strstr(peer->text, LIMIT) != NULL);
    }
    serve_on_loop(s, answer_all);
    for (int tries = 0; count_ends() < N_PEERS * N_CALLS && tries < 20000; tries++) {
        serve_all();
    }
    assert_int_equal(count_ends(), N_PEERS * N_CALLS);
    expect_neighbour_served(s);
    end();
}

/* Fields enough to make its request half of all that may be in flight. */
static void begin_half(struct session_peer *peer)
{
    static uint8_t bytes[MESSAGE_BYTES];

    swell(bytes, sizeof(bytes));
    session_peer_begin_stream(peer, SERVE_PLAIN, BOW_NEVER, NULL);
    session_peer_send(peer, BOW__SEND_END, bytes, sizeof(bytes));
}

/* Below three quarters no call is refused, and its message is small until it is decoded: only then
 * is there no room. Two halves and what a call takes are too much. */
static void test_flight_f30_decoded_request_without_room_is_refused(void **state)
{
    struct serving *s = *state;

    start(state);
    struct session_peer *holder = crowd->peers[0];
    struct session_peer *other = crowd->peers[1];
    s->enter = hold;
    begin_half(holder);
    serve_wait(s, &s->n_steps, 1);
    s->enter = answer;
    begin_half(other);
    session_peer_wait(other, &other->n_ends, 1);
    assert_int_equal(other->code, BOW_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(other->text, SERVE_PLAIN ": no room for a request of"));
    assert_non_null(strstr(other->text, LIMIT));
    assert_int_equal(serve_count(s, &s->n_entered), 1);
    CALLS_WAIT_METRIC(s->t, calls_refused_bytes, 1);
    assert_int_equal(calls_n_refused(s->t->server, BOW_REFUSED_BYTES), 1);
    expect_neighbour_served(s);

    serve_on_loop(s, answer_all);
    session_peer_wait(holder, &holder->n_ends, 1);
    assert_int_equal(holder->code, BOW_OK);
    begin_half(other);
    session_peer_wait(other, &other->n_ends, 2);
    assert_int_equal(other->code, BOW_OK);
    CALLS_WAIT_METRIC(s->t, calls_refused_bytes, 1);
    end();
}

/* All in one read, and so small that they are there before anything can be done about them. */
static void test_flight_of_requests_that_inflate_is_bounded(void **state)
{
    static uint8_t bytes[32 * KIB];
    struct serving *s = *state;
    struct bow__coders coders;
    struct bow__block *block = NULL;
    enum bow__encoding encoding = BOW__ENCODING_GZIP;
    const int n = 20;
    size_t len = 0;

    start(state);
    bow__coders_init(&coders, s->peer_context);
    while (encoding > 0 && (bow__encodings_built() >> encoding & 1u) == 0) {
        encoding--;
    }
    swell(bytes, sizeof(bytes));
    struct session_peer *peer = crowd->peers[0];
    if (bow__deflate(&coders, encoding, 0, (struct bow_slice){bytes, sizeof(bytes)}, &block,
                     &len) == 0) {
        size_t before = bow_context_bytes(s->t->context);
        s->enter = hold;
        peer->encoding = encoding;
        for (int i = 0; i < n; i++) {
            session_peer_begin_stream(peer, SERVE_PLAIN, BOW_NEVER, NULL);
            session_peer_send(peer, BOW__SEND_END | BOW__SEND_COMPRESSED, block->data, len);
        }
        session_peer_flush(peer);
        for (int tries = 0; serve_count(s, &s->n_steps) + peer->n_ends < n && tries < 20000;
             tries++) {
            (void)session_peer_serve(peer, 1);
        }
        assert_int_equal(serve_count(s, &s->n_steps) + peer->n_ends, n);
        assert_in_range(bow_context_bytes(s->t->context), before,
                        before + MAX_IN_FLIGHT + SPARE_BYTES);
        serve_on_loop(s, answer_all);
    }
    bow__block_unref(block);
    bow__coders_trim(&coders);
    end();
}

/* Of calls that never say what they want. */
static void test_flight_counts_metadata(void **state)
{
    static char value[12 * KIB];
    struct bow_metadata_entry entry = {"key", {(const uint8_t *)value, sizeof(value)}};
    struct bow_metadata metadata = {&entry, 1};
    struct serving *s = *state;
    const int n = 50;

    start(state);
    size_t before = bow_context_bytes(s->t->context);
    memset(value, 'v', sizeof(value));
    for (int i = 0; i < N_PEERS * n; i++) {
        struct session_peer *peer = crowd->peers[i % N_PEERS];
        session_peer_begin_stream(peer, SERVE_PLAIN, BOW_NEVER, &metadata);
        session_peer_flush(peer);
        (void)session_peer_serve(peer, 0);
    }
    CALLS_WAIT_METRIC(s->t, calls_started, (uint64_t)(N_PEERS * n));
    assert_in_range(bow_context_bytes(s->t->context), before, before + MAX_IN_FLIGHT + SPARE_BYTES);
    end();
}

/* A client that gives its calls up has not given back what their handlers still hold. */
static void test_flight_counts_calls_that_nobody_waits_for(void **state)
{
    struct serving *s = *state;

    start(state);
    s->enter = hold;
    crowd_in(SERVE_PLAIN, BOW__SEND_END);
    wait_all_known();
    int n_entered = serve_count(s, &s->n_steps);
    for (int i = 0; i < N_PEERS; i++) {
        session_peer_end(crowd->peers[i]);
    }
    CALLS_WAIT_METRIC(s->t, calls_unanswered, (uint64_t)n_entered);
    for (int i = 0; i < N_PEERS; i++) {
        memset(crowd->peers[i], 0, sizeof(struct session_peer));
        session_peer_begin(crowd->peers[i], s->peer_context, calls_raw_connect(s->t), false,
                           calls_is_grpc());
        session_peer_wait(crowd->peers[i], &crowd->peers[i]->n_readies, 1);
    }
    crowd_in(SERVE_PLAIN, BOW__SEND_END);
    for (int tries = 0; tries < 20000 &&
                        serve_count(s, &s->n_steps) - n_entered + count_ends() < N_PEERS * N_CALLS;
         tries++) {
        serve_all();
    }
    /* Together they are no more than before. */
    assert_in_range(serve_count(s, &s->n_steps), n_entered, MAX_IN_FLIGHT / MESSAGE_BYTES);
    serve_on_loop(s, answer_all);
    CALLS_WAIT_METRIC(s->t, calls_unanswered, 0);
    s->enter = answer;
    for (int i = 0; i < N_PEERS; i++) {
        crowd->peers[i]->n_ends = 0;
    }
    crowd_in(SERVE_PLAIN, BOW__SEND_END);
    for (int tries = 0; count_ends() < N_PEERS * N_CALLS && tries < 20000; tries++) {
        serve_all();
    }
    for (int i = 0; i < N_PEERS; i++) {
        assert_int_equal(crowd->peers[i]->code, BOW_OK);
    }
    end();
}

/* Calls that handlers have are counted as what they take. */
static void count_flight(struct serving *s)
{
    s->n_sent = s->t->server->workers[0]->in_flight.n_bytes;
}

static void expect_weight(struct serving *s, const char *path, uint32_t flags, size_t n_payload)
{
    static uint8_t payload[12 * KIB];
    static uint8_t bytes[16 * KIB];
    const int n = 900;

    size_t before = bow_context_bytes(s->t->context);
    Calls__Request request = CALLS__REQUEST__INIT;
    request.payload.len = n_payload;
    request.payload.data = payload;
    size_t n_message = calls__request__pack(&request, bytes);
    for (int i = 0; i < n; i++) {
        session_peer_begin_stream(&s->peer, path, BOW_NEVER, NULL);
        session_peer_send(&s->peer, flags, bytes, n_message);
        (void)session_peer_serve(&s->peer, 0);
    }
    serve_wait_serving(s, &s->n_entered, n);
    serve_on_loop(s, count_flight);
    uint64_t n_counted = s->n_sent;
    size_t n_taken = bow_context_bytes(s->t->context) - before;
    assert_in_range(n_counted, n_taken - n_taken / 10, n_taken + n_taken / 10);
}

static void start_weighing(struct serving *s)
{
    struct bow_server_options options;

    calls_server_options(s->t, &options);
    options.max_calls = 1000;
    serve_start(s, &options);
    serve_connect(s);
    crowd = calloc(1, sizeof(*crowd));
    assert_non_null(crowd);
}

static void end_weighing(struct serving *s)
{
    bow_server_free(s->t->server);
    s->t->server = NULL;
    s->n_after_closed = 0;
    free(crowd);
    crowd = NULL;
}

static void keep(struct serving *s, struct bow_call *call)
{
    (void)s;
    (void)call;
}

static void test_flight_f44_of_streams_is_what_they_take(void **state)
{
    struct serving *s = *state;

    start_weighing(s);
    s->enter = keep;
    expect_weight(s, SERVE_BOTH, 0, 2);
    end_weighing(s);
}

static void weigh_unary(struct serving *s, size_t n_payload)
{
    start_weighing(s);
    s->enter = hold;
    expect_weight(s, SERVE_PLAIN, BOW__SEND_END, n_payload);
    serve_on_loop(s, answer_all);
    end_weighing(s);
}

static void test_flight_f44_of_small_requests_is_what_they_take(void **state)
{
    weigh_unary(*state, 1000);
}

static void test_flight_f44_of_larger_requests_is_what_they_take(void **state)
{
    weigh_unary(*state, 10000);
}

static void test_flight_smaller_than_two_messages_does_not_start(void **state)
{
    struct serving *s = *state;
    struct bow_server_options options;

    calls_server_options(s->t, &options);
    options.max_bytes_in_flight = 1000;
    assert_int_equal(bow_server_new(&options, &s->t->server), 0);
    assert_int_equal(bow_server_start(s->t->server), -EINVAL);
    assert_non_null(strstr(bow_server_error(s->t->server),
                           "max_bytes_in_flight (1000) is less than two messages of "
                           "max_message_bytes (4194304) for each of 1 loops"));
}

static void test_flight_by_default_lets_messages_of_any_size_through(void **state)
{
    struct serving *s = *state;
    struct bow_server_options options;

    calls_server_options(s->t, &options);
    options.max_message_bytes = SIZE_MAX;
    serve_start(s, &options);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, serve_setup_bare, serve_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_flight_of_unread_messages_is_bounded_and_passes),
        TEST(test_flight_of_held_requests_is_bounded_and_passes),
        TEST(test_flight_f67_who_finds_no_room_is_told_when_to_come_again),
        TEST(test_flight_counts_what_requests_take_in_memory),
        TEST(test_flight_f30_decoded_request_without_room_is_refused),
        TEST(test_flight_of_requests_that_inflate_is_bounded),
        TEST(test_flight_counts_metadata),
        TEST(test_flight_counts_calls_that_nobody_waits_for),
        TEST(test_flight_f44_of_streams_is_what_they_take),
        TEST(test_flight_f44_of_small_requests_is_what_they_take),
        TEST(test_flight_f44_of_larger_requests_is_what_they_take),
        TEST(test_flight_smaller_than_two_messages_does_not_start),
        TEST(test_flight_by_default_lets_messages_of_any_size_through),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
