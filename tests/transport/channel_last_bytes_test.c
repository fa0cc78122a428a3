/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The last bytes of a channel, and what becomes of those that can't be sent. */

#include "tests/support/net.h"
#include "transport/channel/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static void put(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static void start_paused(struct probe *probe, const char *event)
{
    if (strcmp(event, "active") == 0) {
        bow_channel_pause_read(probe->handler.channel);
    }
}

/* F14: what is written into a reset connection fails, by each way, and raises no signal. */
static void test_channel_l62_f14_write_into_a_reset_connection_raises_no_sigpipe(void **state)
{
    struct net net;
    struct sigaction before;
    struct sigaction after;
    (void)state;
    assert_int_equal(sigaction(SIGPIPE, NULL, &before), 0);
    assert_true(before.sa_handler == SIG_DFL); /* it would kill this test */
    net_begin(&net);
    for (int way = 0; way < 3; way++) {
        struct probe probe;
        int peer;
        probe_init(&probe, &net);
        probe.on_event = start_paused;
        struct bow_channel *channel =
            net_channel(&net, way == 0 ? NET_UNIX : NET_TCP, &peer, &probe, 1);
        const struct bow_buf buf = bow_buf_borrow("x", 1);
        net_reset(peer);
        assert_int_equal(bow_channel_write(channel, &buf, probe_done, &probe), 0);
        if (way == 2) {
            bow_channel_close_after_flush(channel, FAKE_S);
        } else {
            bow_channel_flush(channel);
        }
        net_run_until(&net, probe.n_removed == 1);
        assert_int_equal(probe.n_completions, 1);
        assert_true(probe.completion_error < 0);
        assert_int_equal(probe.n_inactive, 1);
    }
    net_end(&net);
    assert_int_equal(sigaction(SIGPIPE, NULL, &after), 0);
    assert_true(after.sa_handler == SIG_DFL);
}

struct crossing {
    struct probe probe;
    struct bow_channel *channel;
    int peer;
};

/* The loop looks at the socket next turn; the flush of this one meets the end first. */
static int write_after_the_peer_has_gone(void *user)
{
    struct crossing *crossing = user;
    const struct bow_buf buf = bow_buf_borrow("x", 1);

    put(crossing->peer, "reason");
    close(crossing->peer);
    return bow_channel_write_and_flush(crossing->channel, &buf, probe_done, &crossing->probe);
}

static void
test_channel_l59_f09_bytes_before_a_reset_are_delivered_when_writing_finds_it(void **state)
{
    struct net net;
    struct crossing crossing;
    struct probe *probe = &crossing.probe;
    (void)state;
    net_begin(&net);
    probe_init(probe, &net);
    crossing.channel = net_channel(&net, NET_UNIX, &crossing.peer, probe, 1);
    assert_int_equal(bow_loop_execute(net.loop, "write", write_after_the_peer_has_gone, &crossing),
                     0);
    net_run_until(&net, probe->n_removed == 1);
    assert_int_equal(probe->n_bytes, 6);
    assert_int_equal(probe->n_inactive, 1);
    assert_int_equal(probe->n_completions, 1);
    assert_int_equal(probe->completion_error, -EPIPE);
    net_end(&net);
}

/* F29: a reply and close at once; the peer goes on sending meanwhile. */
static size_t reply_and_close(struct probe *probe, const struct bow_buf *bytes)
{
    struct bow_channel *channel = probe->handler.channel;
    uint8_t reply[1000];

    net_fill_pattern(reply, sizeof(reply), 0);
    for (size_t at = 0; at < sizeof(reply); at += 100) {
        const struct bow_buf buf = bow_buf_borrow(reply + at, 100);
        assert_int_equal(bow_channel_write(channel, &buf, probe_done, probe), 0);
    }
    bow_channel_close_after_flush(channel, 5 * FAKE_S);
    return bytes->len;
}

static void test_channel_l59_f29_reply_and_close_at_once_loses_nothing(void **state)
{
    const int *n_rounds = *state;
    struct net net;
    net_begin(&net);
    for (int i = 0; i < *n_rounds; i++) {
        struct probe probe;
        int peer;
        probe_init(&probe, &net);
        probe.on_read = reply_and_close;
        net_channel(&net, i % 2 == 0 ? NET_TCP : NET_UNIX, &peer, &probe, 1);
        put(peer, "request");
        net_run_until(&net, probe.n_bytes > 0);
        put(peer, "more");
        assert_int_equal(net_recv_pattern(&net, peer), 1000);
        /* It still listens: a closed socket would answer this with a reset. */
        put(peer, "more");
        net_turn(&net);
        assert_int_equal(probe.n_removed, 0);
        assert_int_equal(probe.n_completions, 10);
        assert_int_equal(probe.completion_error, 0);
        close(peer);
        net_run_until(&net, probe.n_removed == 1);
        assert_int_equal(probe.inactive_error, 0);
    }
    net_end(&net);
}

#define MUCH ((size_t)192 << 10) /* more than the peer's window takes, less than our kernel */

static struct bow_channel *send_much_and_close(struct net *net, struct probe *probe, int *ret_peer)
{
    struct bow_channel *channel = net_channel(net, NET_TCP, ret_peer, probe, 1);
    uint8_t *big = malloc(MUCH);
    const struct bow_buf buf = bow_buf_borrow(big, MUCH);
    int small = 4096;
    int large = 1 << 20;

    assert_int_equal(setsockopt(*ret_peer, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
    assert_int_equal(setsockopt(channel->watch.fd, SOL_SOCKET, SO_SNDBUF, &large, sizeof(large)),
                     0);
    net_fill_pattern(big, MUCH, 0);
    assert_int_equal(bow_channel_write(channel, &buf, probe_done, probe), 0);
    bow_channel_close_after_flush(channel, 60 * FAKE_S);
    net_run_until(net, probe->n_completions == 1);
    assert_int_equal(probe->completion_error, 0);
    free(big);
    return channel;
}

/* F36: what the kernel still has for a slow reader, which says so now and then. */
static void test_channel_f36_close_after_flush_waits_for_a_slow_reader(void **state)
{
    struct net net;
    struct probe probe;
    int peer;
    (void)state;
    net_begin_fake(&net);
    probe_init(&probe, &net);
    send_much_and_close(&net, &probe, &peer);
    for (int i = 0; i < 50; i++) {
        fake_system_advance(&net.t.fake, FAKE_S);
        net_turn(&net);
    }
    put(peer, "more"); /* a closed socket would answer with a reset */
    net_turn(&net);
    assert_int_equal(net_recv_pattern(&net, peer), MUCH);
    close(peer);
    net_run_until(&net, probe.n_removed == 1);
    assert_int_equal(probe.inactive_error, 0);
    net_end(&net);
}

/* Its kernel has all, and from its words it takes something now and then. */
static void test_channel_f36_close_after_flush_waits_while_the_peer_speaks(void **state)
{
    struct net net;
    struct probe probe;
    int peer;
    (void)state;
    net_begin_fake(&net);
    probe_init(&probe, &net);
    struct bow_channel *channel = net_channel(&net, NET_TCP, &peer, &probe, 1);
    bow_channel_close_after_flush(channel, 60 * FAKE_S);
    for (int i = 0; i < 50; i++) {
        put(peer, "x");
        net_turn(&net);
        fake_system_advance(&net.t.fake, 900 * FAKE_MS);
        assert_int_equal(probe.n_inactive, 0);
    }
    fake_system_advance(&net.t.fake, FAKE_S);
    net_run_until(&net, probe.n_removed == 1);
    assert_int_equal(probe.inactive_error, 0);
    close(peer);
    net_end(&net);
}

static void test_channel_f36_close_after_flush_waits_within_its_timeout(void **state)
{
    struct net net;
    struct probe probe;
    int peer;
    (void)state;
    net_begin_fake(&net);
    for (int i = 0; i < 2; i++) {
        probe_init(&probe, &net);
        struct bow_channel *channel = send_much_and_close(&net, &probe, &peer);
        fake_system_advance(&net.t.fake, 30 * FAKE_S);
        net_turn(&net);
        assert_int_equal(probe.n_inactive, 0);
        if (i == 1) { /* by word of who will not wait so long */
            bow_channel_close_after_flush(channel, FAKE_S);
        }
        uint64_t from = bow_loop_now(net.loop);
        fake_system_advance(&net.t.fake, i == 0 ? 30 * FAKE_S : FAKE_S);
        net_run_until(&net, probe.n_removed == 1);
        assert_true(bow_loop_now(net.loop) - from <= 30 * FAKE_S);
        assert_true(i == 0 || bow_loop_now(net.loop) - from <= 2 * FAKE_S);
        close(peer);
    }
    net_end(&net);
}

static void test_channel_close_after_flush_gives_up_after_its_timeout(void **state)
{
    struct net net;
    struct probe probe;
    int peer;
    (void)state;
    net_begin_fake(&net);
    probe_init(&probe, &net);
    struct bow_channel *channel = net_channel(&net, NET_UNIX, &peer, &probe, 1);
    uint8_t *big = calloc(1, MIB);
    const struct bow_buf buf = bow_buf_borrow(big, MIB);
    assert_int_equal(bow_channel_write(channel, &buf, probe_done, &probe), 0);
    uint64_t from = bow_loop_now(net.loop);
    bow_channel_close_after_flush(channel, 500 * FAKE_MS);
    net_run_until(&net, probe.n_removed == 1);
    assert_true(bow_loop_now(net.loop) - from >= 500 * FAKE_MS);
    assert_true(bow_loop_now(net.loop) - from < 600 * FAKE_MS);
    assert_int_equal(probe.inactive_error, -ETIMEDOUT);
    assert_int_equal(probe.completion_error, -ETIMEDOUT);
    free(big);
    close(peer);
    net_end(&net);
}

/* Going on in the next turn, again and again, puts off no deadline. */
static void test_channel_close_after_flush_gives_up_though_reading_is_resumed(void **state)
{
    struct net net;
    struct probe probe;
    int peer;
    (void)state;
    net_begin_fake(&net);
    probe_init(&probe, &net);
    struct bow_channel *channel = net_channel(&net, NET_UNIX, &peer, &probe, 1);
    uint8_t *big = calloc(1, MIB);
    const struct bow_buf buf = bow_buf_borrow(big, MIB);
    assert_int_equal(bow_channel_write(channel, &buf, probe_done, &probe), 0);
    uint64_t until = bow_loop_now(net.loop) + 500 * FAKE_MS;
    bow_channel_pause_read(channel);
    bow_channel_resume_read(channel); /* before the deadline is set */
    bow_channel_close_after_flush(channel, 500 * FAKE_MS);
    for (int i = 0; i < 5; i++) {
        net_turn(&net);
        fake_system_advance(&net.t.fake, 90 * FAKE_MS);
        bow_channel_pause_read(channel);
        bow_channel_resume_read(channel); /* and after */
        assert_int_equal(probe.n_inactive, 0);
    }
    net_run_until(&net, probe.n_removed == 1);
    assert_true(bow_loop_now(net.loop) >= until);
    assert_true(bow_loop_now(net.loop) < until + 100 * FAKE_MS);
    assert_int_equal(probe.inactive_error, -ETIMEDOUT);
    free(big);
    close(peer);
    net_end(&net);
}

static size_t take_nothing_and_pause(struct probe *probe, const struct bow_buf *bytes)
{
    (void)bytes;
    bow_channel_pause_read(probe->handler.channel);
    return 0;
}

static size_t answer_and_close_at_once(struct probe *probe, const struct bow_buf *bytes)
{
    struct bow_channel *channel = probe->handler.channel;
    const struct bow_buf buf = bow_buf_borrow("x", 1);

    assert_int_equal(bow_channel_write(channel, &buf, probe_done, probe), 0);
    bow_channel_close_after_flush(channel, 0);
    return bytes->len;
}

/* The bytes come when reading is resumed: with the timer that has the deadline too. */
static void test_channel_close_after_flush_without_time_sends_what_fits(void **state)
{
    struct net net;
    struct probe probe;
    int peer;
    (void)state;
    net_begin_fake(&net);
    probe_init(&probe, &net);
    struct bow_channel *channel = net_channel(&net, NET_UNIX, &peer, &probe, 1);
    put(peer, "request");
    probe.on_read = take_nothing_and_pause;
    net_run_until(&net, probe.n_reads == 1);
    probe.on_read = answer_and_close_at_once;
    bow_channel_resume_read(channel);
    net_run_until(&net, probe.n_removed == 1);
    assert_int_equal(probe.n_completions, 1);
    assert_int_equal(probe.completion_error, 0);
    assert_int_equal(probe.inactive_error, 0);
    close(peer);
    net_end(&net);
}

/* By the kernel, on the wall's clock, of which the test's knows nothing. */
static void wait_for_fin_taken(int fd)
{
    uint64_t until = net_deadline();
    struct tcp_info info = {.tcpi_state = 0};
    socklen_t len = sizeof(info);

    while (info.tcpi_state != TCP_FIN_WAIT2) {
        assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len), 0);
        assert_false(net_is_late(until));
    }
}

static void test_channel_close_after_flush_does_not_wait_long_for_a_silent_peer(void **state)
{
    struct net net;
    struct probe probe;
    int peer;
    (void)state;
    net_begin_fake(&net);
    probe_init(&probe, &net);
    struct bow_channel *channel = net_channel(&net, NET_TCP, &peer, &probe, 1);
    uint64_t from = bow_loop_now(net.loop);
    bow_channel_close_after_flush(channel, 60 * FAKE_S);
    assert_true(bow_loop_run_once(net.loop, 0) >= 0);
    wait_for_fin_taken(channel->watch.fd);
    net_run_until(&net, probe.n_removed == 1);
    assert_true(bow_loop_now(net.loop) - from <= BOW__CHANNEL_LINGER_NS + 100 * FAKE_MS);
    assert_int_equal(probe.inactive_error, 0);
    close(peer);
    net_end(&net);
}

/* What cannot be read must not wake the loop again and again. */
static void test_channel_close_after_flush_without_memory_to_read_ends(void **state)
{
    struct net net;
    struct probe probe;
    int peer;
    (void)state;
    net_begin_fake(&net);
    probe_init(&probe, &net);
    struct bow_channel *channel = net_channel(&net, NET_UNIX, &peer, &probe, 1);
    bow_channel_close_after_flush(channel, FAKE_S);
    net_turn(&net);
    assert_int_equal(probe.n_inactive, 0);
    net.t.alloc.fail_at = atomic_load(&net.t.alloc.n_calls) + 1;
    net.t.alloc.fail_after = true;
    put(peer, "more");
    net_turn(&net);
    assert_int_equal(probe.n_inactive, 1);
    net.t.alloc.fail_at = 0;
    close(peer);
    net_end(&net);
}

static void test_channel_close_fails_queued_writes(void **state)
{
    struct net net;
    struct probe probe;
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&probe, &net);
    struct bow_channel *channel = net_channel(&net, NET_UNIX, &peer, &probe, 1);
    const struct bow_buf buf = bow_buf_borrow("x", 1);
    assert_int_equal(bow_channel_write(channel, &buf, probe_done, &probe), 0);
    bow_channel_close(channel, 0);
    assert_int_equal(bow_channel_write(channel, &buf, probe_done, &probe), -EPIPE);
    assert_int_equal(probe.n_completions, 0); /* not inside close */
    net_run_until(&net, probe.n_removed == 1);
    assert_string_equal(probe.log, " added active done:-125 inactive removed");
    assert_int_equal(probe.inactive_error, 0);
    close(peer);
    net_end(&net);
}

static void test_channel_l62_descriptors_are_nonblocking_and_close_on_exec(void **state)
{
    struct net net;
    struct bow_sockaddr address;
    (void)state;
    net_begin(&net);
    int fd = net.system.socket(net.system.user, AF_INET, SOCK_STREAM, 0);
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    memset(&address, 0, sizeof(address));
    address.storage.ss_family = AF_INET;
    address.len = 16;
    assert_int_equal(net.system.bind(net.system.user, fd, &address), 0);
    assert_int_equal(net.system.listen(net.system.user, fd, 1), 0);
    assert_int_equal(net.system.getsockname(net.system.user, fd, &address), 0);
    int client = net.system.socket(net.system.user, AF_INET, SOCK_STREAM, 0);
    (void)net.system.connect(net.system.user, client, &address);
    int accepted = net.system.accept(net.system.user, fd, NULL);
    assert_true(accepted >= 0);
    assert_int_equal(fcntl(accepted, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(fcntl(accepted, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    close(accepted);
    close(client);
    close(fd);
    net_end(&net);
}

/* usage: channel_last_bytes_test [ROUNDS] */
int main(int argc, char **argv)
{
    int n_rounds = argc > 1 ? atoi(argv[1]) : 500;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_channel_l62_f14_write_into_a_reset_connection_raises_no_sigpipe),
        cmocka_unit_test(
            test_channel_l59_f09_bytes_before_a_reset_are_delivered_when_writing_finds_it),
        cmocka_unit_test_prestate(test_channel_l59_f29_reply_and_close_at_once_loses_nothing,
                                  &n_rounds),
        cmocka_unit_test(test_channel_f36_close_after_flush_waits_for_a_slow_reader),
        cmocka_unit_test(test_channel_f36_close_after_flush_waits_while_the_peer_speaks),
        cmocka_unit_test(test_channel_f36_close_after_flush_waits_within_its_timeout),
        cmocka_unit_test(test_channel_close_after_flush_gives_up_after_its_timeout),
        cmocka_unit_test(test_channel_close_after_flush_gives_up_though_reading_is_resumed),
        cmocka_unit_test(test_channel_close_after_flush_without_time_sends_what_fits),
        cmocka_unit_test(test_channel_close_after_flush_does_not_wait_long_for_a_silent_peer),
        cmocka_unit_test(test_channel_close_after_flush_without_memory_to_read_ends),
        cmocka_unit_test(test_channel_close_fails_queued_writes),
        cmocka_unit_test(test_channel_l62_descriptors_are_nonblocking_and_close_on_exec),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
