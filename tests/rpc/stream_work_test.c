/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Messages of a stream that cost their client much, and come together or waited until it would
 * read them: others of the loop have their turn in between, and none is lost.
 */

#include "rpc/core/compression/encodings.h"
#include "stream_fixture.h"
#include "tests/rpc/turns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

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
static void put_packed(struct stream_peer *peer, uint64_t number)
{
    Calls__Reply reply = CALLS__REPLY__INIT;
    struct bow__coders coders;
    struct bow__block *block = NULL;
    static uint8_t payload[N_BYTES];
    static uint8_t bytes[N_BYTES + 64];
    size_t len = 0;

    reply.number = number;
    reply.payload = (ProtobufCBinaryData){sizeof(payload), payload};
    size_t n = calls__reply__pack(&reply, bytes);
    bow__coders_init(&coders, peer->context);
    assert_int_equal(
        bow__deflate(&coders, one_of_ours(), 0, (struct bow_slice){bytes, n}, &block, &len), 0);
    bow__coders_trim(&coders);
    assert_int_equal(
        peer->session->ops->send(peer->session, peer->key, BOW__SEND_COMPRESSED, block, 0, len), 0);
}

static void send_all(struct streams *s, bool is_finished)
{
    struct bow_metadata none = {0};
    struct bow_status ok = BOW_STATUS_OK_INIT;

    assert_int_equal(
        s->peer.session->ops->respond(s->peer.session, s->peer.key, &none, one_of_ours()), 0);
    for (uint64_t i = 1; i <= N; i++) {
        put_packed(&s->peer, i);
    }
    if (is_finished) {
        assert_int_equal(s->peer.session->ops->finish(s->peer.session, s->peer.key, &ok), 0);
    }
    (void)stream_peer_serve(&s->peer, 0);
}

static void count(struct streams *s, struct bow_stream *stream)
{
    (void)s;
    (void)stream;
    turns_step(&turns);
}

static bool begin(struct streams *s)
{
    if (one_of_ours() == 0) {
        print_message("left out: this build has no encoding to pack with\n");
        return false;
    }
    streams_begin(s, &streams_pour);
    return true;
}

static void begin_counting(struct streams *s)
{
    s->in_message = count;
    turns_begin(&turns, bow_stream_loop(s->stream));
}

static void expect_turns(struct streams *s)
{
    while (s->n_closed == 0) {
        (void)stream_peer_serve(&s->peer, 1);
    }
    streams_expect_closed(s, BOW_OK, NULL);
    assert_int_equal(s->n_messages, N);
    assert_int_equal(s->n_disordered, 0);
    int most = turns_end(&turns);
    print_message("%d messages at most in a turn\n", most);
    assert_in_range(most, 1, MOST);
}

/* They come in one read; over HTTP/2 in one frame. */
static void test_work_f34_replies_of_one_read_leave_others_their_turn(void **state)
{
    struct streams *s = *state;

    if (!begin(s)) {
        return;
    }
    streams_on_loop(s, begin_counting);
    send_all(s, true);
    expect_turns(s);
}

static void pause(struct streams *s)
{
    bow_stream_pause(s->stream);
}

static void resume(struct streams *s)
{
    begin_counting(s);
    bow_stream_resume(s->stream);
}

/* The end has come as well, or not yet. */
static void check_waited(struct streams *s, bool is_finished)
{
    if (!begin(s)) {
        return;
    }
    streams_on_loop(s, pause);
    send_all(s, is_finished);
    for (int i = 0; i < 10; i++) {
        (void)stream_peer_serve(&s->peer, 10);
    }
    assert_int_equal(s->n_messages, 0);
    streams_on_loop(s, resume);
    if (!is_finished) {
        streams_wait_serving(s, &s->n_messages, N);
        stream_peer_finish(&s->peer, BOW_OK, "");
    }
    expect_turns(s);
}

static void test_work_f34_replies_that_waited_leave_others_their_turn(void **state)
{
    check_waited(*state, false);
}

static void test_work_f34_replies_of_an_ended_call_leave_others_their_turn(void **state)
{
    check_waited(*state, true);
}

static void test_work_f34_stream_is_cancelled_while_replies_wait(void **state)
{
    struct streams *s = *state;

    if (!begin(s)) {
        return;
    }
    send_all(s, false);
    bow_stream_cancel(s->stream);
    streams_expect_closed(s, BOW_CANCELLED, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, streams_setup, streams_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_work_f34_replies_of_one_read_leave_others_their_turn),
        TEST(test_work_f34_replies_that_waited_leave_others_their_turn),
        TEST(test_work_f34_replies_of_an_ended_call_leave_others_their_turn),
        TEST(test_work_f34_stream_is_cancelled_while_replies_wait),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
