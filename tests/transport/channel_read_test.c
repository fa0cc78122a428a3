/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* From the socket into the pipeline: batches, what is kept, pause and resume. */

#include "tests/support/net.h"

#include <bowline/limits.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static void put(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* Is pulled for a megabyte, and notes in the probe's log when some of it has left. */
struct puller {
    struct bow_handler handler;
    struct probe *probe;
    size_t left;
    uint8_t *bytes;
};

static int pull(struct bow_handler *handler, struct iovec *pieces, int max)
{
    struct puller *puller = (struct puller *)(void *)handler;

    assert_true(max > 0);
    pieces[0] = (struct iovec){puller->bytes, puller->left};
    return puller->left > 0 ? 1 : 0;
}

static void pulled(struct bow_handler *handler, size_t n)
{
    struct puller *puller = (struct puller *)(void *)handler;

    puller->left -= n;
    probe_note(puller->probe, " sent");
}

static const struct bow_handler_ops puller_ops = {
    .name = "puller", .on_drain = pull, .on_sent = pulled};

static void test_channel_l54_ready_to_write_comes_before_ready_to_read(void **state)
{
    struct net net;
    struct probe probe;
    struct puller puller = {.handler.ops = &puller_ops, .probe = &probe, .left = MIB};
    uint8_t sink[65536];
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&probe, &net);
    puller.bytes = calloc(1, MIB);
    struct bow_channel *channel = net_channel(&net, NET_UNIX, &peer, &probe, 1);
    bow_channel_add_last(channel, &puller.handler);
    bow_channel_flush(channel);
    net_run_until(&net, puller.left < MIB);
    net_turn(&net);
    probe.log_len = 0;
    /* One event says both: room for more, and bytes to read. */
    while (recv(peer, sink, sizeof(sink), 0) > 0) {
    }
    put(peer, "x");
    net_turn(&net);
    assert_memory_equal(probe.log, " sent", 5);
    assert_non_null(strstr(probe.log, " sent read:1 complete"));
    close(peer);
    net_end(&net);
    free(puller.bytes);
}

static void test_channel_l55_small_message_takes_one_receive(void **state)
{
    struct net net;
    struct probe probe;
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&probe, &net);
    net_channel(&net, NET_TCP, &peer, &probe, 1);
    put(peer, "hello");
    net_run_until(&net, probe.n_bytes == 5);
    assert_int_equal(atomic_load(&net.n_recv), 1); /* a short read is not asked again */
    assert_string_equal(probe.log, " added active read:5 complete");
    close(peer);
    net_end(&net);
    assert_non_null(strstr(probe.log, " eof inactive removed"));
}

static void test_channel_l55_f03_turn_reads_at_most_256_kib_in_16_reads(void **state)
{
    struct net net;
    struct probe probe;
    int peer;
    (void)state;
    net_begin_fake(&net);
    probe_init(&probe, &net);
    probe.checks_pattern = true;
    net_channel(&net, NET_TCP, &peer, &probe, 1);
    uint8_t *big = malloc(4 * MIB);
    net_fill_pattern(big, 4 * MIB, 0);
    size_t sent = 0;
    size_t largest = 0;
    int most = 0;

    while (probe.n_bytes < 4 * MIB) {
        /* Fill the socket up before each turn. */
        ssize_t n;
        while (sent < 4 * MIB && (n = send(peer, big + sent, 4 * MIB - sent, MSG_NOSIGNAL)) > 0) {
            sent += (size_t)n;
        }
        size_t before = probe.n_bytes;
        int reads_before = atomic_load(&net.n_recv);
        net_turn(&net);
        size_t got = probe.n_bytes - before;
        int reads = atomic_load(&net.n_recv) - reads_before;
        largest = got > largest ? got : largest;
        most = reads > most ? reads : most;
    }
    assert_true(largest <= 256 << 10);
    assert_true(largest > 100 << 10); /* or the bound was not reached at all */
    assert_true(most <= 16);
    assert_true(atomic_load(&net.max_asked) > 16 << 10); /* it grew */
    free(big);
    close(peer);
    net_end(&net);
}

/* What is asked for doubles while reads are full, and halves while they are small. */
static void test_channel_l55_what_a_read_asks_for_adapts_both_ways(void **state)
{
    struct net net;
    struct probe probe;
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&probe, &net);
    net_channel(&net, NET_UNIX, &peer, &probe, 1);
    uint8_t *big = calloc(1, MIB);
    net_send_all(&net, peer, big, MIB);
    net_run_until(&net, probe.n_bytes == MIB);
    assert_true(atomic_load(&net.max_asked) > 64 << 10);
    for (size_t i = 1; i <= 10; i++) {
        put(peer, "x");
        net_run_until(&net, probe.n_bytes == MIB + i);
    }
    atomic_store(&net.max_asked, 0);
    put(peer, "x");
    net_run_until(&net, probe.n_bytes == MIB + 11);
    assert_int_equal(atomic_load(&net.max_asked), 16 << 10);
    free(big);
    close(peer);
    net_end(&net);
}

static void test_channel_f68_others_have_their_turn_after_one_long_read(void **state)
{
    struct net net;
    struct probe probe;
    int peer;
    (void)state;
    net_begin_fake(&net);
    probe_init(&probe, &net);
    net.options.max_bytes_per_turn = MIB;
    net_channel(&net, NET_TCP, &peer, &probe, 1);
    uint8_t *big = calloc(1, MIB);

    /* Reads become large while they are full. */
    while (probe.n_bytes < 4 * MIB) {
        net.call_ns = probe.n_bytes < 2 * MIB ? 0 : 150 * FAKE_US;
        while (send(peer, big, MIB, MSG_NOSIGNAL) > 0) {
        }
        int n_before = net.n_recv;
        net_turn(&net);
        if (net.call_ns > 0) {
            assert_int_equal(net.n_recv - n_before, 1);
        }
    }
    free(big);
    close(peer);
    net_end(&net);
}

static void test_channel_l55_f03_busy_peer_does_not_starve_a_quiet_one(void **state)
{
    struct net net;
    struct probe busy;
    struct probe quiet;
    int busy_peer;
    int quiet_peer;
    (void)state;
    net_begin(&net);
    probe_init(&busy, &net);
    probe_init(&quiet, &net);
    net_channel(&net, NET_TCP, &busy_peer, &busy, 1);
    net_channel(&net, NET_TCP, &quiet_peer, &quiet, 1);
    uint8_t *big = calloc(1, 4 * MIB);

    while (send(busy_peer, big, 4 * MIB, MSG_NOSIGNAL) > 0) {
    }
    put(quiet_peer, "x");
    net_turn(&net);
    assert_int_equal(quiet.n_bytes, 1);
    assert_true(busy.n_bytes > 0 && busy.n_bytes <= 256 << 10);
    free(big);
    close(busy_peer);
    close(quiet_peer);
    net_end(&net);
}

static size_t read_fours(struct probe *probe, const struct bow_buf *bytes)
{
    (void)probe;
    return bytes->len - bytes->len % 4;
}

static void test_channel_l63_what_is_not_consumed_comes_again_with_more(void **state)
{
    struct net net;
    struct probe probe;
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&probe, &net);
    probe.keeps = true;
    probe.on_read = read_fours;
    net_channel(&net, NET_UNIX, &peer, &probe, 1);
    put(peer, "abcdef");
    net_run_until(&net, probe.n_bytes == 4);
    put(peer, "ghij");
    net_run_until(&net, probe.n_bytes == 8);
    put(peer, "kl");
    net_run_until(&net, probe.n_bytes == 12);
    assert_memory_equal(probe.bytes, "abcdefghijkl", 12);
    assert_non_null(strstr(probe.log, " read:6 complete read:6 complete read:4 complete"));
    close(peer);
    net_end(&net);
    probe_fini(&probe);
}

static void test_channel_l63_idle_connection_owns_no_buffer(void **state)
{
    struct net net;
    struct probe probe;
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&probe, &net);
    probe.on_read = read_fours;
    net_channel(&net, NET_UNIX, &peer, &probe, 1);
    put(peer, "abcd");
    net_run_until(&net, probe.n_bytes == 4); /* the loop's own buffer is there now */
    size_t idle = bow_context_bytes(net.t.context);
    put(peer, "efg");
    net_run_until(&net, probe.n_completes == 2);
    assert_true(bow_context_bytes(net.t.context) > idle);
    assert_true(bow_context_bytes(net.t.context) < idle + 1024);
    put(peer, "h");
    net_run_until(&net, probe.n_bytes == 8);
    assert_int_equal(bow_context_bytes(net.t.context), idle);
    close(peer);
    net_end(&net);
}

static size_t read_megabyte(struct probe *probe, const struct bow_buf *bytes)
{
    (void)probe;
    return bytes->len - bytes->len % MIB;
}

static void test_channel_l63_long_message_grows_with_what_has_arrived(void **state)
{
    struct net net;
    struct probe probe;
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&probe, &net);
    probe.checks_pattern = true;
    probe.on_read = read_megabyte;
    net_channel(&net, NET_TCP, &peer, &probe, 1);
    uint8_t *big = malloc(2 * MIB);
    net_fill_pattern(big, 2 * MIB, 0);

    net_send_all(&net, peer, big, 100000);
    net_run_until(&net, probe.n_reads > 0);
    net_turn(&net);
    assert_true(bow_context_bytes(net.t.context) < (256 << 10) + (300 << 10) + 65536);
    net_send_all(&net, peer, big + 100000, 2 * MIB - 100000);
    net_run_until(&net, probe.n_bytes == 2 * MIB);
    free(big);
    close(peer);
    net_end(&net);
}

/* A rest that is kept where it is, and frames of which two bytes are left when that is filled. */
#define LONG_REST ((size_t)9000)
#define LONG_FRAME (2 * LONG_REST - 2)

static size_t read_long_frames(struct probe *probe, const struct bow_buf *bytes)
{
    (void)probe;
    return bytes->len - bytes->len % LONG_FRAME;
}

/* A read without room would look like the end of the peer. */
static void test_channel_l63_few_bytes_at_the_end_of_what_is_kept_are_gone_on_from(void **state)
{
    struct net net;
    struct probe probe;
    uint8_t bytes[2 * LONG_FRAME];
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&probe, &net);
    probe.checks_pattern = true;
    probe.on_read = read_long_frames;
    net_channel(&net, NET_UNIX, &peer, &probe, 1);
    net_fill_pattern(bytes, sizeof(bytes), 0);

    net_send_all(&net, peer, bytes, LONG_REST);
    net_run_until(&net, probe.n_completes == 1);
    net_send_all(&net, peer, bytes + LONG_REST, 2 * LONG_REST);
    net_run_until(&net, probe.n_bytes == LONG_FRAME);
    net_send_all(&net, peer, bytes + 3 * LONG_REST, sizeof(bytes) - 3 * LONG_REST);
    net_run_until(&net, probe.n_bytes == sizeof(bytes));
    assert_int_equal(probe.n_eofs, 0);
    close(peer);
    net_end(&net);
}

/* Consumes one byte a call, and pauses after each. */
static size_t read_one_and_pause(struct probe *probe, const struct bow_buf *bytes)
{
    (void)bytes;
    bow_channel_pause_read(probe->handler.channel);
    return 1;
}

static void test_channel_l63_f10_pause_in_mid_batch_and_resume_without_new_bytes(void **state)
{
    struct net net;
    struct probe probe;
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&probe, &net);
    probe.keeps = true;
    probe.on_read = read_one_and_pause;
    struct bow_channel *channel = net_channel(&net, NET_UNIX, &peer, &probe, 1);
    put(peer, "abc");
    for (size_t i = 1; i <= 3; i++) {
        net_run_until(&net, probe.n_bytes == i);
        int n_recv = atomic_load(&net.n_recv);
        net_turn(&net);
        net_turn(&net);
        assert_int_equal(probe.n_bytes, i); /* nothing is delivered while it is paused */
        bow_channel_resume_read(channel);
        bow_channel_resume_read(channel);
        assert_int_equal(probe.n_bytes, i); /* and nothing inside of resume */
        assert_int_equal(atomic_load(&net.n_recv), n_recv);
    }
    assert_memory_equal(probe.bytes, "abc", 3);
    close(peer);
    net_end(&net);
    probe_fini(&probe);
}

static size_t read_all_and_pause(struct probe *probe, const struct bow_buf *bytes)
{
    bow_channel_pause_read(probe->handler.channel);
    return bytes->len;
}

static void test_channel_l57_paused_reading_leaves_bytes_in_the_socket(void **state)
{
    struct net net;
    struct probe probe;
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&probe, &net);
    probe.on_read = read_all_and_pause;
    struct bow_channel *channel = net_channel(&net, NET_UNIX, &peer, &probe, 1);
    put(peer, "a");
    net_run_until(&net, probe.n_bytes == 1);
    put(peer, "b");
    int n_recv = atomic_load(&net.n_recv);
    net_turn(&net);
    net_turn(&net);
    assert_int_equal(atomic_load(&net.n_recv), n_recv);
    bow_channel_resume_read(channel);
    net_run_until(&net, probe.n_bytes == 2);
    close(peer);
    net_end(&net);
}

static void replace_me(struct probe *probe)
{
    struct probe *successor = probe->user;

    bow_channel_add_after(&probe->handler, &successor->handler);
    bow_channel_remove(&probe->handler);
}

static size_t read_two_and_replace(struct probe *probe, const struct bow_buf *bytes)
{
    (void)bytes;
    replace_me(probe);
    return 2;
}

static void test_channel_l63_handler_replaced_in_mid_batch_loses_no_byte(void **state)
{
    struct net net;
    struct probe first;
    struct probe second;
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&first, &net);
    probe_init(&second, &net);
    first.keeps = second.keeps = true;
    first.user = &second;
    first.on_read = read_two_and_replace;
    net_channel(&net, NET_UNIX, &peer, &first, 1);
    put(peer, "abcdef");
    net_run_until(&net, second.n_bytes == 4); /* in the same batch, without new bytes */
    assert_memory_equal(first.bytes, "ab", 2);
    assert_memory_equal(second.bytes, "cdef", 4);
    assert_int_equal(first.n_removed, 1);
    assert_int_equal(atomic_load(&net.n_recv), 1);
    close(peer);
    net_end(&net);
    probe_fini(&first);
    probe_fini(&second);
}

static size_t read_two_and_leave(struct probe *probe, const struct bow_buf *bytes)
{
    (void)bytes;
    bow_channel_remove(&probe->handler);
    return 2;
}

static void test_channel_l63_bytes_wait_for_a_handler_that_is_added_later(void **state)
{
    struct net net;
    struct probe first;
    struct probe second;
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&first, &net);
    probe_init(&second, &net);
    second.keeps = true;
    first.on_read = read_two_and_leave;
    struct bow_channel *channel = net_channel(&net, NET_UNIX, &peer, &first, 1);
    put(peer, "abcdef");
    net_run_until(&net, first.n_removed == 1);
    put(peer, "gh");
    net_turn(&net);
    net_turn(&net);
    bow_channel_add_last(channel, &second.handler);
    net_run_until(&net, second.n_bytes == 6);
    assert_memory_equal(second.bytes, "cdefgh", 6);
    close(peer);
    net_end(&net);
    probe_fini(&second);
}

static size_t pass_on(struct probe *probe, const struct bow_buf *bytes)
{
    return bow_handler_fire_read(&probe->handler, bytes);
}

static void test_channel_l63_what_a_later_handler_leaves_is_kept_for_it(void **state)
{
    struct net net;
    struct probe probes[2];
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&probes[0], &net);
    probe_init(&probes[1], &net);
    probes[0].on_read = pass_on;
    probes[1].on_read = read_fours;
    probes[1].keeps = true;
    struct bow_channel *channel = net_channel(&net, NET_UNIX, &peer, probes, 2);
    put(peer, "abcde");
    net_run_until(&net, probes[1].n_bytes == 4);
    assert_int_equal(probes[0].n_bytes, 5);
    put(peer, "fgh");
    net_run_until(&net, probes[1].n_bytes == 8);
    put(peer, "ij");
    net_run_until(&net, probes[0].n_bytes == 10);
    /* Its unread bytes go to its successor, which comes later. */
    struct probe last;
    probe_init(&last, &net);
    last.keeps = true;
    bow_channel_add_last(channel, &last.handler);
    bow_channel_remove(&probes[1].handler);
    put(peer, "kl");
    net_run_until(&net, last.n_bytes == 4);
    assert_memory_equal(last.bytes, "ijkl", 4);
    close(peer);
    net_end(&net);
    probe_fini(&probes[1]);
    probe_fini(&last);
}

static void test_channel_l63_pause_of_a_later_handler_stops_the_earlier(void **state)
{
    struct net net;
    struct probe probes[2];
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&probes[0], &net);
    probe_init(&probes[1], &net);
    probes[0].on_read = pass_on;
    probes[1].on_read = read_one_and_pause;
    probes[1].keeps = true;
    struct bow_channel *channel = net_channel(&net, NET_UNIX, &peer, probes, 2);
    put(peer, "abc");
    net_run_until(&net, probes[1].n_bytes == 1);
    net_turn(&net);
    assert_int_equal(probes[1].n_bytes, 1);
    bow_channel_resume_read(channel);
    net_run_until(&net, probes[1].n_bytes == 2);
    bow_channel_resume_read(channel);
    net_run_until(&net, probes[1].n_bytes == 3);
    assert_memory_equal(probes[1].bytes, "abc", 3);
    close(peer);
    net_end(&net);
    probe_fini(&probes[1]);
}

static void test_channel_l55_reads_per_turn_are_bounded_too(void **state)
{
    struct net net;
    struct probe probe;
    int peer;
    (void)state;
    net_begin_fake(&net); /* or a slow machine ends the turn sooner */
    net.options.max_reads_per_turn = 2;
    net.options.max_bytes_per_turn = MIB;
    probe_init(&probe, &net);
    net_channel(&net, NET_UNIX, &peer, &probe, 1);
    uint8_t *big = calloc(1, MIB);
    while (send(peer, big, 65536, MSG_NOSIGNAL) > 0) {
    }
    net_turn(&net);
    assert_int_equal(atomic_load(&net.n_recv), 2);
    assert_int_equal(probe.n_completes, 1);
    net_turn(&net);
    assert_int_equal(atomic_load(&net.n_recv), 4);
    free(big);
    close(peer);
    net_end(&net);
}

static void test_channel_l63_bytes_of_the_last_reader_wait_for_a_new_one(void **state)
{
    struct net net;
    struct probe probes[2];
    struct probe last;
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&probes[0], &net);
    probe_init(&probes[1], &net);
    probe_init(&last, &net);
    probes[0].on_read = pass_on;
    probes[1].on_read = read_fours;
    last.keeps = true;
    struct bow_channel *channel = net_channel(&net, NET_UNIX, &peer, probes, 2);
    put(peer, "abcdef");
    net_run_until(&net, probes[1].n_bytes == 4);
    bow_channel_remove(&probes[1].handler);
    net_run_until(&net, probes[1].n_removed == 1);
    bow_channel_add_last(channel, &last.handler);
    net_run_until(&net, last.n_bytes == 2);
    put(peer, "gh");
    net_run_until(&net, last.n_bytes == 4);
    assert_memory_equal(last.bytes, "efgh", 4);
    close(peer);
    net_end(&net);
    probe_fini(&last);
}

static size_t read_nothing(struct probe *probe, const struct bow_buf *bytes)
{
    (void)probe;
    (void)bytes;
    return 0;
}

static void test_channel_l63_handler_that_takes_nothing_ends_at_a_limit(void **state)
{
    struct net net;
    struct probe probe;
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&probe, &net);
    probe.on_read = read_nothing;
    net_channel(&net, NET_UNIX, &peer, &probe, 1);
    uint8_t *bytes = calloc(1, MIB);
    assert_non_null(bytes);
    size_t sent = 0;
    while (probe.n_errors == 0 && sent <= BOW_LIMIT_UNREAD_BYTES + 2 * MIB) {
        ssize_t n = send(peer, bytes, MIB, MSG_NOSIGNAL);
        sent += n > 0 ? (size_t)n : 0;
        net_turn(&net);
    }
    assert_int_equal(probe.n_errors, 1);
    assert_int_equal(probe.last_error, -EMSGSIZE);
    assert_true(sent >= BOW_LIMIT_UNREAD_BYTES);
    net_run_until(&net, probe.n_removed == 1);
    free(bytes);
    close(peer);
    net_end(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_channel_l54_ready_to_write_comes_before_ready_to_read),
        cmocka_unit_test(test_channel_l55_small_message_takes_one_receive),
        cmocka_unit_test(test_channel_l55_f03_turn_reads_at_most_256_kib_in_16_reads),
        cmocka_unit_test(test_channel_l55_what_a_read_asks_for_adapts_both_ways),
        cmocka_unit_test(test_channel_f68_others_have_their_turn_after_one_long_read),
        cmocka_unit_test(test_channel_l55_f03_busy_peer_does_not_starve_a_quiet_one),
        cmocka_unit_test(test_channel_l57_paused_reading_leaves_bytes_in_the_socket),
        cmocka_unit_test(test_channel_l63_what_is_not_consumed_comes_again_with_more),
        cmocka_unit_test(test_channel_l63_idle_connection_owns_no_buffer),
        cmocka_unit_test(test_channel_l63_few_bytes_at_the_end_of_what_is_kept_are_gone_on_from),
        cmocka_unit_test(test_channel_l63_long_message_grows_with_what_has_arrived),
        cmocka_unit_test(test_channel_l63_f10_pause_in_mid_batch_and_resume_without_new_bytes),
        cmocka_unit_test(test_channel_l63_handler_replaced_in_mid_batch_loses_no_byte),
        cmocka_unit_test(test_channel_l63_bytes_wait_for_a_handler_that_is_added_later),
        cmocka_unit_test(test_channel_l63_what_a_later_handler_leaves_is_kept_for_it),
        cmocka_unit_test(test_channel_l63_pause_of_a_later_handler_stops_the_earlier),
        cmocka_unit_test(test_channel_l55_reads_per_turn_are_bounded_too),
        cmocka_unit_test(test_channel_l63_bytes_of_the_last_reader_wait_for_a_new_one),
        cmocka_unit_test(test_channel_l63_handler_that_takes_nothing_ends_at_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
