/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What becomes of channels, acceptors and connect attempts that a new poller does not take (L19).
 */

#include "tests/support/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int fail_once(struct fake_system *fake, uint64_t timeout_ns, void *user)
{
    (void)timeout_ns;
    (void)user;
    fake->on_wait = NULL;
    return -EBADF;
}

/* The next poll fails, and the new poller takes the wake-up and `n` watches. */
static void fail_next_poll(struct net *net, int n)
{
    struct fake_system *fake = &net->t.fake;

    fake->on_wait = fail_once;
    fake->add_error = -ENOSPC;
    fake->n_adds_before_error = 1 + n;
}

static void test_channel_l19_that_a_new_poller_refuses_is_closed_with_the_error(void **state)
{
    struct net net;
    struct probe probes[2];
    struct bow_channel *channels[2];
    int peers[2];

    (void)state;
    net_begin_fake(&net);
    for (int i = 0; i < 2; i++) {
        probe_init(&probes[i], &net);
        channels[i] = bow_channel_ref(net_channel(&net, NET_UNIX, &peers[i], &probes[i], 1));
    }
    fail_next_poll(&net, 1);
    net_turn(&net);
    assert_int_equal(probes[1].n_errors, 1);
    assert_int_equal(probes[1].last_error, -ENOSPC);
    assert_int_equal(probes[1].n_inactive, 1);
    assert_int_equal(probes[1].inactive_error, -ENOSPC);
    assert_int_equal(probes[1].n_removed, 1);
    assert_int_equal(recv(peers[1], &(char){0}, 1, 0), 0); /* its descriptor is closed */

    assert_int_equal(probes[0].n_errors, 0); /* its neighbour goes on */
    assert_int_equal(send(peers[0], "hi", 2, MSG_NOSIGNAL), 2);
    net_run_until(&net, probes[0].n_bytes == 2);
    for (int i = 0; i < 2; i++) {
        bow_channel_close(channels[i], 0);
        bow_channel_unref(channels[i]);
        close(peers[i]);
    }
    net_turn(&net);
    for (int i = 0; i < 2; i++) {
        probe_fini(&probes[i]);
    }
    net_end(&net);
}

static int note_channel(struct bow_channel *channel, void *user)
{
    (void)channel;
    ++*(int *)user;
    return 0;
}

static void test_acceptor_l19_that_a_new_poller_refuses_asks_again_after_a_while(void **state)
{
    struct net net;
    struct bow_acceptor_options options = BOW_ACCEPTOR_OPTIONS_INIT;
    struct bow_acceptor *acceptor = NULL;
    int n_channels = 0;

    (void)state;
    net_begin_fake(&net);
    options.address = "127.0.0.1:0";
    options.loop = net.loop;
    options.channel.on_channel = note_channel;
    options.channel.user = &n_channels;
    assert_int_equal(bow_acceptor_new(net.t.context, &options, &acceptor, NULL), 0);
    assert_int_equal(bow_acceptor_start(acceptor), 0);
    net_turn(&net);
    fail_next_poll(&net, 0);
    net_turn(&net);

    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(bow_acceptor_port(acceptor)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    uint64_t before = atomic_load(&net.t.fake.now_ns);
    net_turn(&net);
    assert_int_equal(n_channels, 0);
    net.t.fake.add_error = 0;
    net_run_until(&net, n_channels == 1);
    assert_in_range(atomic_load(&net.t.fake.now_ns) - before, 90 * FAKE_MS, 110 * FAKE_MS);
    close(fd);
    bow_acceptor_close(acceptor, NULL, NULL);
    net_end(&net);
}

static void on_connected(struct bow_channel *channel, const struct bow_transport_error *error,
                         void *user)
{
    assert_null(channel);
    *(int *)user = error->error;
}

static void test_connector_l19_that_a_new_poller_refuses_fails_with_the_error(void **state)
{
    struct net net;
    struct bow_channel_options options = BOW_CHANNEL_OPTIONS_INIT;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    char target[32];
    int error = 0;

    (void)state;
    net_begin_fake(&net);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &len), 0);
    snprintf(target, sizeof(target), "127.0.0.1:%u", (unsigned)ntohs(address.sin_port));
    assert_int_equal(
        bow_connect_start(net.loop, target, &options, FAKE_S, on_connected, &error, NULL, NULL), 0);
    net_turn(&net); /* begins */
    fail_next_poll(&net, 0);
    net_run_until(&net, error != 0);
    assert_int_equal(error, -ENOSPC);
    close(listener);
    net_end(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_channel_l19_that_a_new_poller_refuses_is_closed_with_the_error),
        cmocka_unit_test(test_acceptor_l19_that_a_new_poller_refuses_asks_again_after_a_while),
        cmocka_unit_test(test_connector_l19_that_a_new_poller_refuses_fails_with_the_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
