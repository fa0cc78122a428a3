/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* From handlers into the socket: queue, flush, pull, water marks, stalls. */

#include "tests/support/net.h"
#include "transport/channel/channel.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static void write_text(struct bow_channel *channel, const char *text, struct probe *probe)
{
    const struct bow_buf buf = bow_buf_borrow(text, strlen(text));
    assert_int_equal(bow_channel_write(channel, &buf, probe != NULL ? probe_done : NULL, probe), 0);
}

static void test_channel_l56_write_queues_and_flush_sends(void **state)
{
    struct net net;
    struct probe probe;
    char text[8] = {0};
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&probe, &net);
    struct bow_channel *channel = net_channel(&net, NET_UNIX, &peer, &probe, 1);
    write_text(channel, "abc", &probe);
    net_turn(&net);
    net_turn(&net);
    assert_int_equal(recv(peer, text, sizeof(text), 0), -1);
    assert_int_equal(probe.n_completions, 0);
    bow_channel_flush(channel);
    assert_int_equal(probe.n_completions, 0); /* not inside the call */
    net_run_until(&net, probe.n_completions == 1);
    assert_int_equal(probe.completion_error, 0);
    assert_int_equal(recv(peer, text, sizeof(text), 0), 3);
    assert_string_equal(text, "abc");
    close(peer);
    net_end(&net);
}

static size_t echo_bytes_apart(struct probe *probe, const struct bow_buf *bytes)
{
    struct bow_channel *channel = probe->handler.channel;

    for (size_t i = 0; i < bytes->len; i++) {
        const struct bow_buf one = bow_buf_borrow(bytes->data + i, 1);
        assert_int_equal(bow_channel_write_and_flush(channel, &one, probe_done, probe), 0);
    }
    return bytes->len;
}

static void test_channel_l56_f32_flushes_of_one_batch_are_one_sendmsg(void **state)
{
    struct net net;
    struct probe probe;
    char text[16] = {0};
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&probe, &net);
    probe.on_read = echo_bytes_apart;
    net_channel(&net, NET_TCP, &peer, &probe, 1);
    assert_int_equal(send(peer, "0123456789", 10, MSG_NOSIGNAL), 10);
    net_run_until(&net, probe.n_completions == 10);
    assert_int_equal(atomic_load(&net.n_send), 1);
    assert_int_equal(atomic_load(&net.n_pieces), 10);
    net_recv_all(&net, peer, text, 10);
    assert_string_equal(text, "0123456789");
    close(peer);
    net_end(&net);
}

static void test_channel_l56_counted_buf_is_shared_and_released(void **state)
{
    struct net net;
    struct probe probe;
    struct bow_buf counted;
    char text[8] = {0};
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&probe, &net);
    struct bow_channel *channel = net_channel(&net, NET_UNIX, &peer, &probe, 1);
    const struct bow_buf borrowed = bow_buf_borrow("hello", 5);
    const struct bow_buf empty = bow_buf_borrow(NULL, 0);
    assert_int_equal(bow_buf_share(net.t.context, &borrowed, &counted), 0);
    assert_int_equal(bow_channel_write(channel, &empty, probe_done, &probe), 0);
    assert_int_equal(bow_channel_write(channel, &counted, probe_done, &probe), 0);
    assert_int_equal(bow_channel_write_and_flush(channel, &empty, probe_done, &probe), 0);
    bow_buf_unref(&counted);
    net_run_until(&net, probe.n_completions == 3); /* empty ones complete too */
    assert_int_equal(recv(peer, text, sizeof(text), 0), 5);
    assert_string_equal(text, "hello");
    close(peer);
    net_end(&net);
}

static void test_channel_l54_write_interest_only_while_the_socket_is_full(void **state)
{
    struct net net;
    struct probe probe;
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&probe, &net);
    struct bow_channel *channel = net_channel(&net, NET_UNIX, &peer, &probe, 1);
    uint8_t *big = malloc(MIB);
    net_fill_pattern(big, MIB, 0);
    const struct bow_buf buf = bow_buf_borrow(big, MIB);
    assert_int_equal(channel->watch.events & BOW_POLL_OUT, 0);
    assert_int_equal(bow_channel_write_and_flush(channel, &buf, probe_done, &probe), 0);
    net_run_until(&net, atomic_load(&net.n_send) > 0);
    net_turn(&net);
    assert_int_equal(channel->watch.events & BOW_POLL_OUT, BOW_POLL_OUT);
    int n_send = atomic_load(&net.n_send);
    net_turn(&net);
    bow_channel_flush(channel);
    net_turn(&net);
    assert_int_equal(atomic_load(&net.n_send), n_send); /* no retry while it is full */
    uint8_t *got = malloc(MIB);
    net_recv_all(&net, peer, got, MIB);
    assert_memory_equal(got, big, MIB);
    net_run_until(&net, probe.n_completions == 1);
    net_turn(&net);
    assert_int_equal(channel->watch.events & BOW_POLL_OUT, 0);
    free(got);
    free(big);
    close(peer);
    net_end(&net);
}

static void test_channel_l57_water_marks_tell_once_each_way(void **state)
{
    struct net net;
    struct probe probe;
    uint8_t sink[4096];
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&probe, &net);
    struct bow_channel *channel = net_channel(&net, NET_UNIX, &peer, &probe, 1);
    bow_channel_set_water_marks(channel, 4, 8);
    write_text(channel, "12345678", NULL);
    assert_true(bow_channel_is_writable(channel));
    net_turn(&net);
    assert_null(strstr(probe.log, "writable"));
    write_text(channel, "9", NULL);
    assert_false(bow_channel_is_writable(channel));
    assert_null(strstr(probe.log, "unwritable")); /* told later, never inside write */
    net_run_until(&net, strstr(probe.log, " unwritable") != NULL);
    write_text(channel, "0", NULL);
    net_turn(&net);
    bow_channel_flush(channel);
    net_run_until(&net, strstr(probe.log, " writable") != NULL);
    assert_true(bow_channel_is_writable(channel));
    assert_string_equal(probe.log, " added active unwritable writable");
    assert_int_equal(recv(peer, sink, sizeof(sink), 0), 10);
    close(peer);
    net_end(&net);
}

/* Marks that move past what is queued tell it like the queue that moves past a mark. */
static void test_channel_l57_moved_marks_tell_too(void **state)
{
    struct net net;
    struct probe probe;
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&probe, &net);
    struct bow_channel *channel = net_channel(&net, NET_UNIX, &peer, &probe, 1);
    write_text(channel, "12345678", NULL);
    bow_channel_set_water_marks(channel, 2, 4);
    assert_false(bow_channel_is_writable(channel));
    net_run_until(&net, strstr(probe.log, " unwritable") != NULL);
    bow_channel_set_water_marks(channel, 8, 100); /* not under the low one yet */
    assert_false(bow_channel_is_writable(channel));
    bow_channel_set_water_marks(channel, 9, 100);
    assert_true(bow_channel_is_writable(channel));
    net_run_until(&net, strstr(probe.log, " writable") != NULL);
    assert_string_equal(probe.log, " added active unwritable writable");
    close(peer);
    net_end(&net);
}

static void test_channel_l57_mark_crossed_within_a_turn_is_still_told(void **state)
{
    struct net net;
    struct probe probe;
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&probe, &net);
    struct bow_channel *channel = net_channel(&net, NET_UNIX, &peer, &probe, 1);
    bow_channel_set_water_marks(channel, 1, 1);
    write_text(channel, "123", NULL);
    assert_false(bow_channel_is_writable(channel)); /* so whoever asked waits for the word */
    bow_channel_flush(channel);
    net_run_until(&net, bow_channel_is_writable(channel));
    assert_string_equal(probe.log, " added active unwritable writable");
    close(peer);
    net_end(&net);
}

/* A source that is pulled: `left` bytes of the pattern. */
struct source {
    struct bow_handler handler;
    size_t position;
    size_t left;
    size_t piece_bytes;
    int n_drains;
    uint8_t bytes[65536];
};

static int source_drain(struct bow_handler *handler, struct iovec *pieces, int max)
{
    struct source *source = (struct source *)(void *)handler;
    size_t total = source->left < sizeof(source->bytes) ? source->left : sizeof(source->bytes);
    int n = 0;

    source->n_drains++;
    net_fill_pattern(source->bytes, total, source->position);
    for (size_t at = 0; at < total && n < max; n++) {
        size_t len = total - at < source->piece_bytes ? total - at : source->piece_bytes;
        pieces[n] = (struct iovec){source->bytes + at, len};
        at += len;
    }
    return n;
}

static void source_sent(struct bow_handler *handler, size_t n)
{
    struct source *source = (struct source *)(void *)handler;

    assert_true(n <= source->left);
    source->position += n;
    source->left -= n;
}

static const struct bow_handler_ops source_ops = {
    .name = "source", .on_drain = source_drain, .on_sent = source_sent};

static void test_channel_l56_flush_pulls_from_a_handler_until_it_has_no_more(void **state)
{
    struct net net;
    struct probe probe;
    struct source *source = calloc(1, sizeof(*source));
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&probe, &net);
    struct bow_channel *channel = net_channel(&net, NET_TCP, &peer, &probe, 1);
    source->handler.ops = &source_ops;
    source->left = 10 * MIB;
    source->piece_bytes = 1500;
    bow_channel_add_first(channel, &source->handler);
    net_turn(&net);
    assert_int_equal(source->n_drains, 0);
    bow_channel_flush(channel);
    bow_channel_shutdown_write(channel);
    assert_int_equal(net_recv_pattern(&net, peer), 10 * MIB);
    assert_int_equal(source->left, 0);
    close(peer);
    net_end(&net);
    free(source);
}

static void test_channel_f68_others_have_their_turn_after_one_long_send(void **state)
{
    struct net net;
    struct probe probe;
    struct source *source = calloc(1, sizeof(*source));
    int peer;
    (void)state;
    net_begin_fake(&net);
    probe_init(&probe, &net);
    struct bow_channel *channel = net_channel(&net, NET_TCP, &peer, &probe, 1);
    source->handler.ops = &source_ops;
    source->left = MIB;
    source->piece_bytes = sizeof(source->bytes);
    bow_channel_add_first(channel, &source->handler);
    bow_channel_flush(channel);
    net.call_ns = 150 * FAKE_US;
    for (int turn = 1; turn <= 3; turn++) {
        net_turn(&net);
        /* What could not go on at once does so when the timers of the turn run. */
        assert_int_equal(net.n_send, 1 + turn);
    }
    /* Short ones share a turn. */
    net.call_ns = 30 * FAKE_US;
    net_turn(&net);
    assert_int_equal(net.n_send, 4 + 4);
    bow_channel_shutdown_write(channel);
    assert_int_equal(net_recv_pattern(&net, peer), MIB);
    assert_int_equal(source->left, 0);
    close(peer);
    net_end(&net);
    free(source);
}

static void test_channel_l56_pushed_bytes_leave_before_pulled_ones(void **state)
{
    struct net net;
    struct probe probe;
    struct source *source = calloc(1, sizeof(*source));
    uint8_t got[16];
    uint8_t pattern[2];
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&probe, &net);
    struct bow_channel *channel = net_channel(&net, NET_UNIX, &peer, &probe, 1);
    source->handler.ops = &source_ops;
    source->left = 2;
    source->piece_bytes = 1;
    bow_channel_add_last(channel, &source->handler);
    write_text(channel, "push", &probe);
    bow_channel_flush(channel);
    net_run_until(&net, source->left == 0);
    assert_int_equal(recv(peer, got, sizeof(got), 0), 6);
    assert_memory_equal(got, "push", 4);
    net_fill_pattern(pattern, 2, 0);
    assert_memory_equal(got + 4, pattern, 2);
    close(peer);
    net_end(&net);
    free(source);
}

static void test_channel_stalled_write_shows_when_it_began_to_wait(void **state)
{
    struct net net;
    struct probe probe;
    uint8_t sink[65536];
    int peer;
    (void)state;
    net_begin_fake(&net);
    probe_init(&probe, &net);
    struct bow_channel *channel = net_channel(&net, NET_UNIX, &peer, &probe, 1);
    uint8_t *big = calloc(1, MIB);
    const struct bow_buf buf = bow_buf_borrow(big, MIB);
    assert_int_equal(bow__channel_stalled_since(channel), 0);
    assert_int_equal(bow_channel_write_and_flush(channel, &buf, probe_done, &probe), 0);
    net_run_until(&net, bow__channel_stalled_since(channel) != 0);
    uint64_t since = bow__channel_stalled_since(channel);
    net_turn(&net);
    net_turn(&net);
    assert_true(bow_loop_now(net.loop) > since);
    assert_int_equal(bow__channel_stalled_since(channel), since);
    /* Progress moves it. */
    assert_true(recv(peer, sink, sizeof(sink), 0) > 0);
    while (recv(peer, sink, sizeof(sink), 0) > 0) {
    }
    net_run_until(&net, bow__channel_stalled_since(channel) > since);
    while (probe.n_completions == 0) {
        while (recv(peer, sink, sizeof(sink), 0) > 0) {
        }
        net_turn(&net);
    }
    assert_int_equal(bow__channel_stalled_since(channel), 0);
    free(big);
    close(peer);
    net_end(&net);
}

static void test_channel_write_without_memory_refuses_and_runs_no_completion(void **state)
{
    struct net net;
    struct probe probe;
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&probe, &net);
    struct bow_channel *channel = net_channel(&net, NET_UNIX, &peer, &probe, 1);
    const struct bow_buf buf = bow_buf_borrow("x", 1);
    net.t.alloc.fail_at = net.t.alloc.n_calls + 1;
    assert_int_equal(bow_channel_write(channel, &buf, probe_done, &probe), -ENOMEM);
    net.t.alloc.fail_at = 0;
    assert_int_equal(bow_channel_write_and_flush(channel, &buf, probe_done, &probe), 0);
    net_run_until(&net, probe.n_completions == 1);
    close(peer);
    net_end(&net);
    assert_int_equal(probe.n_completions, 1);
}

/* A filter: doubles each byte on its way out, in a buf of its own. */
struct doubler {
    struct bow_handler handler;
    int n_flushes;
};

static int double_write(struct bow_handler *handler, struct bow_buf *buf, bow_write_fn done,
                        void *user)
{
    uint8_t bytes[64];

    assert_true(buf->len <= 32);
    for (size_t i = 0; i < buf->len; i++) {
        bytes[2 * i] = bytes[2 * i + 1] = buf->data[i];
    }
    struct bow_buf doubled = bow_buf_borrow(bytes, 2 * buf->len);
    int rc = bow_handler_write(handler, &doubled, done, user);
    if (rc == 0) {
        bow_buf_unref(buf);
    }
    return rc;
}

static void count_flush(struct bow_handler *handler)
{
    ((struct doubler *)(void *)handler)->n_flushes++;
    bow_handler_flush(handler);
}

static const struct bow_handler_ops doubler_ops = {
    .name = "doubler", .on_write = double_write, .on_flush = count_flush};

static void test_channel_l58_outbound_goes_through_handlers_tail_to_head(void **state)
{
    struct net net;
    struct probe probe;
    struct doubler doublers[2] = {{.handler.ops = &doubler_ops}, {.handler.ops = &doubler_ops}};
    char text[16] = {0};
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&probe, &net);
    struct bow_channel *channel = net_channel(&net, NET_UNIX, &peer, &probe, 1);
    bow_channel_add_last(channel, &doublers[0].handler);
    bow_channel_add_last(channel, &doublers[1].handler);
    write_text(channel, "ab", &probe);
    bow_channel_flush(channel);
    net_run_until(&net, probe.n_completions == 1);
    assert_int_equal(doublers[0].n_flushes, 1);
    assert_int_equal(doublers[1].n_flushes, 1);
    assert_int_equal(recv(peer, text, sizeof(text), 0), 8);
    assert_string_equal(text, "aaaabbbb");
    close(peer);
    net_end(&net);
}

struct outside {
    struct bow_channel *channel;
    struct probe *probe;
    int rc;
};

static void *write_outside(void *argument)
{
    struct outside *outside = argument;
    const struct bow_buf buf = bow_buf_borrow("ab", 2);

    outside->rc = bow_channel_write_and_flush(outside->channel, &buf, probe_done, outside->probe);
    return NULL;
}

static int refuse_write(struct bow_handler *handler, struct bow_buf *buf, bow_write_fn done,
                        void *user)
{
    (void)handler;
    (void)buf;
    (void)done;
    (void)user;
    return -EPERM;
}

static const struct bow_handler_ops refuser_ops = {.name = "refuser", .on_write = refuse_write};

/* One write of another thread; returns what its completion was told. */
static int error_of_write_outside(const struct bow_handler_ops *ops, char text[16])
{
    struct net net;
    struct probe probe;
    struct doubler filter = {.handler.ops = ops};
    pthread_t thread;
    int peer;

    net_begin(&net);
    probe_init(&probe, &net);
    struct outside outside = {net_channel(&net, NET_UNIX, &peer, &probe, 1), &probe, 1};
    bow_channel_add_last(outside.channel, &filter.handler);
    assert_int_equal(pthread_create(&thread, NULL, write_outside, &outside), 0);
    pthread_join(thread, NULL);
    assert_int_equal(outside.rc, 0); /* accepted: the loop has yet to look at it */
    assert_int_equal(probe.n_completions, 0);
    net_run_until(&net, probe.n_completions == 1);
    (void)!recv(peer, text, 15, 0);
    close(peer);
    net_end(&net);
    assert_int_equal(probe.n_completions, 1);
    return probe.completion_error;
}

static void test_channel_l58_writes_of_other_threads_go_through_handlers_too(void **state)
{
    char text[16] = {0};

    (void)state;
    assert_int_equal(error_of_write_outside(&doubler_ops, text), 0);
    assert_string_equal(text, "aabb");
    memset(text, 0, sizeof(text));
    assert_int_equal(error_of_write_outside(&refuser_ops, text), -EPERM);
    assert_string_equal(text, "");
}

static void test_channel_l56_f32_tcp_sends_small_writes_without_delay(void **state)
{
    struct net net;
    struct probe probe;
    int on = 0;
    socklen_t len = sizeof(on);
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&probe, &net);
    struct bow_channel *channel = net_channel(&net, NET_TCP, &peer, &probe, 1);
    assert_int_equal(getsockopt(channel->watch.fd, IPPROTO_TCP, TCP_NODELAY, &on, &len), 0);
    assert_int_not_equal(on, 0);
    close(peer);
    net_end(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_channel_l54_write_interest_only_while_the_socket_is_full),
        cmocka_unit_test(test_channel_l56_write_queues_and_flush_sends),
        cmocka_unit_test(test_channel_l56_f32_flushes_of_one_batch_are_one_sendmsg),
        cmocka_unit_test(test_channel_l56_counted_buf_is_shared_and_released),
        cmocka_unit_test(test_channel_l56_flush_pulls_from_a_handler_until_it_has_no_more),
        cmocka_unit_test(test_channel_f68_others_have_their_turn_after_one_long_send),
        cmocka_unit_test(test_channel_l56_pushed_bytes_leave_before_pulled_ones),
        cmocka_unit_test(test_channel_l57_water_marks_tell_once_each_way),
        cmocka_unit_test(test_channel_l57_moved_marks_tell_too),
        cmocka_unit_test(test_channel_l57_mark_crossed_within_a_turn_is_still_told),
        cmocka_unit_test(test_channel_l58_outbound_goes_through_handlers_tail_to_head),
        cmocka_unit_test(test_channel_l58_writes_of_other_threads_go_through_handlers_too),
        cmocka_unit_test(test_channel_stalled_write_shows_when_it_began_to_wait),
        cmocka_unit_test(test_channel_write_without_memory_refuses_and_runs_no_completion),
        cmocka_unit_test(test_channel_l56_f32_tcp_sends_small_writes_without_delay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
