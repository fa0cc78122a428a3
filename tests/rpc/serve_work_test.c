/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Messages of a stream that cost their server much, and come together or waited until its handler
 * would read them, and small calls that come together: others of the loop have their turn in
 * between, and none is lost.
 */

#include "rpc/core/compression/encodings.h"
#include "serve_fixture.h"
#include "tests/rpc/turns.h"

#include <bowline/executor.h>
#include <bowline/interceptor.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#define N 60
#define N_BYTES ((size_t)256 << 10)
/* What a turn is for, and the two phases of one in which streams may go on. */
#define MOST 8

static struct turns turns;

static enum bow__encoding one_of_ours(void)
{
    enum bow__encoding encoding = BOW__ENCODING_GZIP;

    while (encoding > 0 && (bow__encodings_built() >> encoding & 1u) == 0) {
        encoding--;
    }
    return encoding;
}

/* Not sent yet. */
static void put_packed(struct serving *s, uint64_t number, uint32_t flags)
{
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow__coders coders;
    struct bow__block *block = NULL;
    static uint8_t payload[N_BYTES];
    static uint8_t bytes[N_BYTES + 64];
    size_t len = 0;

    request.number = number;
    request.payload = (ProtobufCBinaryData){sizeof(payload), payload};
    size_t n = calls__request__pack(&request, bytes);
    bow__coders_init(&coders, s->peer_context);
    assert_int_equal(
        bow__deflate(&coders, s->peer.encoding, 0, (struct bow_slice){bytes, n}, &block, &len), 0);
    bow__coders_trim(&coders);
    assert_int_equal(s->peer.session->ops->send(s->peer.session, s->peer.key,
                                                flags | BOW__SEND_COMPRESSED, block, 0, len),
                     0);
}

static void put_all(struct serving *s)
{
    for (uint64_t i = 1; i <= N; i++) {
        put_packed(s, i, i == N ? BOW__SEND_END : 0);
    }
}

static void count(struct serving *s, struct bow_call *call)
{
    (void)s;
    (void)call;
    turns_step(&turns);
}

static void listen_later(struct serving *s, struct bow_call *call)
{
    s->loop = bow_call_loop(call);
}

static void listen_and_pause(struct serving *s, struct bow_call *call)
{
    serve_listen(s, call);
    bow_call_pause(call);
}

static void finish(struct serving *s, struct bow_call *call)
{
    s->rc = bow_call_finish(call);
}

static bool start(struct serving *s, struct bow_executor *executor)
{
    struct bow_server_options options;

    calls_server_options(s->t, &options);
    options.handlers_on = executor;
    serve_start(s, &options);
    serve_connect(s);
    s->peer.encoding = one_of_ours();
    s->in_half_close = finish;
    if (s->peer.encoding == 0) {
        print_message("left out: this build has no encoding to pack with\n");
    }
    return s->peer.encoding != 0;
}

static void expect_all(struct serving *s)
{
    serve_expect_status(s, BOW_OK, "");
    assert_int_equal(serve_count(s, &s->n_messages), N);
    assert_int_equal(s->n_disordered, 0);
}

static void begin_counting(struct serving *s)
{
    turns_begin(&turns, bow_call_loop(s->call));
}

static void expect_turns(struct serving *s)
{
    expect_all(s);
    int most = turns_end(&turns);
    print_message("%d messages at most in a turn\n", most);
    assert_in_range(most, 1, MOST);
}

/* They come in one read; over HTTP/2 in one frame. */
static void test_work_f34_messages_of_one_read_leave_others_their_turn(void **state)
{
    struct serving *s = *state;

    if (!start(s, NULL)) {
        return;
    }
    s->in_message = count;
    serve_begin(s, SERVE_BOTH);
    serve_on_loop(s, begin_counting);
    put_all(s);
    session_peer_flush(&s->peer);
    expect_turns(s);
}

static void wait_until_quiet(struct serving *s)
{
    struct bow_metrics metrics = BOW_METRICS_INIT;
    uint64_t n_bytes;

    session_peer_flush(&s->peer);
    do {
        n_bytes = metrics.bytes_received;
        (void)session_peer_serve(&s->peer, 100);
        assert_int_equal(bow_server_metrics(s->t->server, &metrics), 0);
    } while (metrics.bytes_received != n_bytes);
}

static void wait_until_kept(struct serving *s)
{
    put_all(s);
    wait_until_quiet(s);
    assert_int_equal(serve_count(s, &s->n_messages), 0);
}

static void resume(struct serving *s)
{
    begin_counting(s);
    bow_call_resume(s->call);
}

static void test_work_f34_messages_that_waited_leave_others_their_turn(void **state)
{
    struct serving *s = *state;

    if (!start(s, NULL)) {
        return;
    }
    s->enter = listen_and_pause;
    s->in_message = count;
    serve_begin(s, SERVE_BOTH);
    wait_until_kept(s);
    serve_on_loop(s, resume);
    expect_turns(s);
}

static void listen_now(struct serving *s)
{
    begin_counting(s);
    serve_listen(s, s->call);
}

static void test_work_f34_messages_before_their_listener_leave_others_their_turn(void **state)
{
    struct serving *s = *state;

    if (!start(s, NULL)) {
        return;
    }
    s->enter = listen_later;
    s->in_message = count;
    serve_begin(s, SERVE_BOTH);
    wait_until_kept(s);
    serve_on_loop(s, listen_now);
    expect_turns(s);
}

/* A call that ends while its messages wait for their turn. */
static void test_work_f34_call_is_cancelled_while_messages_wait(void **state)
{
    struct serving *s = *state;

    if (!start(s, NULL)) {
        return;
    }
    serve_begin(s, SERVE_BOTH);
    put_all(s);
    session_peer_cancel(&s->peer);
    serve_expect_closed(s, BOW_CANCELLED, "");
}

static void test_work_f34_connection_goes_while_messages_wait(void **state)
{
    struct serving *s = *state;

    if (!start(s, NULL)) {
        return;
    }
    serve_begin(s, SERVE_BOTH);
    put_all(s);
    session_peer_flush(&s->peer);
    shutdown(s->peer.fd, SHUT_RDWR);
    serve_wait(s, &s->n_closed, 1);
}

static void test_work_f34_handlers_on_an_executor_get_all(void **state)
{
    struct bow_executor_options options = BOW_EXECUTOR_OPTIONS_INIT;
    struct serving *s = *state;
    struct bow_executor *executor = NULL;

    options.n_threads = 1;
    assert_int_equal(bow_executor_new(s->t->context, &options, &executor), 0);
    if (start(s, executor)) {
        serve_begin(s, SERVE_BOTH);
        put_all(s);
        session_peer_flush(&s->peer);
        expect_all(s);
    }
    bow_server_free(s->t->server);
    s->t->server = NULL;
    bow_executor_shutdown(executor, 0, 0);
    assert_int_equal(bow_executor_join(executor, BOW_NEVER), 0);
    bow_executor_unref(executor);
}

/* Calls that an interceptor holds, and lets go all at once */

static struct bow_interception *held[N];
static atomic_int n_held;

static void hold(struct bow_interception *at, void *user)
{
    struct serving *s = user;

    s->loop = bow_interception_loop(at);
    assert_int_equal(bow_interception_hold(at), 0);
    held[n_held++] = at;
}

static void watch(struct serving *s)
{
    static struct bow_interceptor interceptor;

    interceptor = (struct bow_interceptor)BOW_INTERCEPTOR_INIT;
    interceptor.name = "holder";
    interceptor.on_start = hold;
    interceptor.user = s;
    n_held = 0;
    assert_int_equal(bow_server_intercept(s->t->server, &interceptor), 0);
}

static void count_and_reply(struct serving *s, struct bow_call *call)
{
    s->rc = serve_reply(call, 1);
    turns_step(&turns);
}

static void let_go(struct serving *s)
{
    turns_begin(&turns, s->loop);
    for (int i = 0; i < n_held; i++) {
        assert_int_equal(bow_interception_proceed(held[i]), 0);
    }
}

static void test_work_f34_calls_that_were_held_leave_others_their_turn(void **state)
{
    struct serving *s = *state;

    s->before_start = watch;
    s->enter = count_and_reply;
    if (!start(s, NULL)) {
        return;
    }
    for (int i = 0; i < N; i++) {
        session_peer_begin_stream(&s->peer, SERVE_PLAIN, BOW_NEVER, NULL);
        put_packed(s, 1, BOW__SEND_END);
    }
    wait_until_quiet(s);
    assert_int_equal(n_held, N);
    serve_on_loop(s, let_go);
    session_peer_wait(&s->peer, &s->peer.n_ends, N);
    assert_int_equal(s->peer.code, BOW_OK);
    int most = turns_end(&turns);
    print_message("%d calls at most in a turn\n", most);
    assert_in_range(most, 1, MOST);
}

/* Messages that wait, beside calls that fill each turn */

static int n_entered;
static int n_heard;
static int n_heard_before_the_last; /* when the last call was entered */
static int n_entered_before_the_last;

static void enter_beside(struct serving *s, struct bow_call *call)
{
    n_entered++;
    n_heard_before_the_last = n_heard;
    s->rc = serve_reply(call, 1);
}

static void hear_beside(struct serving *s, struct bow_call *call)
{
    (void)s;
    (void)call;
    n_heard++;
    n_entered_before_the_last = n_entered;
}

/* Not sent yet. */
static void put_packed_call(struct serving *s)
{
    struct session_peer *peer = &s->peer;
    struct bow__request_head head = {
        .path = {(const uint8_t *)SERVE_PLAIN, sizeof(SERVE_PLAIN) - 1},
        .time_left_ns = BOW_NEVER,
        .encoding = peer->encoding,
    };

    assert_int_equal(peer->session->ops->open(peer->session, &head, peer, &peer->key), 0);
    put_packed(s, 1, BOW__SEND_END);
}

/* Here, so that the loop meets all of them at once. */
static void resume_and_send(struct serving *s)
{
    s->enter = enter_beside;
    s->in_message = hear_beside;
    session_peer_flush(&s->peer);
    bow_call_resume(s->call);
}

static void test_work_f34_messages_that_waited_have_their_share_beside_calls(void **state)
{
    struct serving *s = *state;

    n_entered = 0;
    n_heard = 0;
    if (!start(s, NULL)) {
        return;
    }
    s->enter = listen_and_pause;
    serve_begin(s, SERVE_BOTH);
    wait_until_kept(s);
    for (int i = 0; i < N; i++) {
        put_packed_call(s);
    }
    serve_on_loop(s, resume_and_send);
    session_peer_wait(&s->peer, &s->peer.n_ends, N + 1);
    assert_int_equal(s->peer.code, BOW_OK);
    assert_int_equal(n_entered, N);
    assert_int_equal(n_heard, N);
    print_message("%d messages before the last call, %d calls before the last message\n",
                  n_heard_before_the_last, n_entered_before_the_last);
    assert_in_range(n_heard_before_the_last, N / 4, N);
    assert_in_range(n_entered_before_the_last, N / 4, N);
}

/* Many small calls in one read */

#define N_MANY 1000
/* In both halves of a turn, and the task that counts may run before or behind either. */
#define MOST_MANY (3 * BOW_LIMIT_CALLS_PER_TURN)

static void put_small(struct session_peer *peer)
{
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow__request_head head = {
        .path = {(const uint8_t *)SERVE_PLAIN, sizeof(SERVE_PLAIN) - 1},
        .time_left_ns = BOW_NEVER,
        .path_key = 1,
    };

    request.number = 1;
    size_t n = calls__request__get_packed_size(&request);
    struct bow__block *block = bow__block_new(peer->context, n);
    assert_non_null(block);
    (void)calls__request__pack(&request, block->data);
    assert_int_equal(peer->session->ops->open(peer->session, &head, peer, &peer->key), 0);
    assert_int_equal(peer->session->ops->send(peer->session, peer->key, BOW__SEND_END, block, 0, n),
                     0);
}

static void note_loop(struct serving *s, struct bow_call *call)
{
    s->loop = bow_call_loop(call);
    s->rc = serve_reply(call, 1);
}

/* Here, so that the loop meets all of them at once. */
static void send_many(struct serving *s)
{
    s->enter = count_and_reply;
    turns_begin(&turns, s->loop);
    session_peer_flush(&s->peer);
}

static void test_work_f34_calls_of_one_read_leave_others_their_turn(void **state)
{
    struct serving *s = *state;
    struct bow_server_options options;

    calls_server_options(s->t, &options);
    s->enter = note_loop;
    serve_start(s, &options);
    serve_connect(s);
    put_small(&s->peer);
    session_peer_wait(&s->peer, &s->peer.n_ends, 1);
    for (int i = 0; i < N_MANY; i++) {
        put_small(&s->peer);
    }
    serve_on_loop(s, send_many);
    session_peer_wait(&s->peer, &s->peer.n_ends, 1 + N_MANY);
    assert_int_equal(s->peer.code, BOW_OK);
    assert_int_equal(s->peer.n_messages, 1 + N_MANY);
    int most = turns_end(&turns);
    print_message("%d calls at most in a turn\n", most);
    assert_in_range(most, 1, MOST_MANY);
}

/* Calls with large replies that waited before their handlers */

#define REPLY_BYTES ((size_t)300 << 10)

static struct bow_call *first;

static void answer_large(struct serving *s, struct bow_call *call)
{
    static uint8_t payload[REPLY_BYTES]; /* never written to */
    Calls__Reply reply = CALLS__REPLY__INIT;

    (void)s;
    reply.payload = (ProtobufCBinaryData){sizeof(payload), payload};
    (void)bow_call_reply(call, &reply.base);
    turns_step(&turns);
}

static void hold_first(struct serving *s, struct bow_call *call)
{
    first = call;
    s->loop = bow_call_loop(call);
    s->enter = answer_large;
}

static void answer_first(struct serving *s)
{
    turns_begin(&turns, s->loop);
    answer_large(s, first);
}

static void test_work_f34_calls_that_waited_leave_others_their_turn(void **state)
{
    struct serving *s = *state;
    struct bow_server_options options;

    if (calls_is_grpc()) { /* whose clients know of max_calls, and begin no more */
        return;
    }
    calls_server_options(s->t, &options);
    options.max_calls = 1;
    s->enter = hold_first;
    serve_start(s, &options);
    serve_connect(s);
    for (int i = 0; i < 1 + N; i++) {
        put_small(&s->peer);
    }
    session_peer_flush(&s->peer);
    CALLS_WAIT_METRIC(s->t, calls_delayed, N);
    serve_on_loop(s, answer_first);
    session_peer_wait(&s->peer, &s->peer.n_ends, 1 + N);
    assert_int_equal(s->peer.n_messages, 1 + N);
    int most = turns_end(&turns);
    print_message("%d calls at most in a turn\n", most);
    assert_in_range(most, 1, MOST);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, serve_setup_bare, serve_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_work_f34_messages_of_one_read_leave_others_their_turn),
        TEST(test_work_f34_messages_that_waited_leave_others_their_turn),
        TEST(test_work_f34_messages_before_their_listener_leave_others_their_turn),
        TEST(test_work_f34_call_is_cancelled_while_messages_wait),
        TEST(test_work_f34_connection_goes_while_messages_wait),
        TEST(test_work_f34_handlers_on_an_executor_get_all),
        TEST(test_work_f34_calls_that_were_held_leave_others_their_turn),
        TEST(test_work_f34_messages_that_waited_have_their_share_beside_calls),
        TEST(test_work_f34_calls_of_one_read_leave_others_their_turn),
        TEST(test_work_f34_calls_that_waited_leave_others_their_turn),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
