/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Who is at the other end of a Unix socket, accepted or connected to; and naming a peer anew. */

#include "tests/support/net.h"
#include "transport/channel/channel.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void assert_is_this_process(const struct bow_channel *channel)
{
    struct bow_peer_credentials credentials = {.pid = 0};

    assert_int_equal(bow_channel_peer_credentials(channel, &credentials), 0);
    assert_int_equal(credentials.pid, getpid());
    assert_int_equal(credentials.uid, getuid());
    assert_int_equal(credentials.gid, getgid());
}

struct ends {
    struct bow_channel *accepted;
    struct bow_channel *connected;
};

static int on_accepted(struct bow_channel *channel, void *user)
{
    struct ends *ends = user;

    ends->accepted = bow_channel_ref(channel);
    return 0;
}

static void on_connected(struct bow_channel *channel, const struct bow_transport_error *error,
                         void *user)
{
    struct ends *ends = user;

    assert_null(error);
    ends->connected = bow_channel_ref(channel);
}

static void test_peer_credentials_of_both_ends_of_a_unix_socket_outlive_the_close(void **state)
{
    struct net net;
    struct ends ends = {.accepted = NULL};
    struct bow_acceptor_options options = BOW_ACCEPTOR_OPTIONS_INIT;
    struct bow_channel_options client = BOW_CHANNEL_OPTIONS_INIT;
    struct bow_acceptor *acceptor = NULL;
    struct bow_connect *connect = NULL;
    char address[64];
    (void)state;
    net_begin(&net);
    snprintf(address, sizeof(address), "unix-abstract:bow-credentials-%d", getpid());
    options.address = address;
    options.loop = net.loop;
    options.channel.on_channel = on_accepted;
    options.channel.user = &ends;
    assert_int_equal(bow_acceptor_new(net.t.context, &options, &acceptor, NULL), 0);
    assert_int_equal(bow_acceptor_start(acceptor), 0);
    net_turn(&net);
    assert_int_equal(
        bow_connect_start(net.loop, address, &client, FAKE_S, on_connected, &ends, &connect, NULL),
        0);
    net_run_until(&net, ends.accepted != NULL && ends.connected != NULL);
    assert_is_this_process(ends.accepted);
    assert_is_this_process(ends.connected);
    bow_channel_close(ends.connected, 0);
    net_run_until(&net, !bow_channel_is_active(ends.accepted));
    assert_is_this_process(ends.accepted);
    bow_channel_unref(ends.accepted);
    bow_channel_unref(ends.connected);
    bow_acceptor_close(acceptor, NULL, NULL);
    net_end(&net);
}

static void test_peer_credentials_of_a_tcp_peer_are_not_there(void **state)
{
    struct bow_peer_credentials credentials;
    struct net net;
    int peer;
    (void)state;
    net_begin(&net);
    struct bow_channel *channel = net_channel(&net, NET_TCP, &peer, NULL, 0);
    assert_int_equal(bow_channel_peer_credentials(channel, &credentials), -ENOTSUP);
    close(peer);
    net_end(&net);
}

static void test_peer_named_anew_keeps_the_old_name_for_those_who_read_it(void **state)
{
    struct net net;
    int peer;
    (void)state;
    net_begin(&net);
    struct bow_channel *channel = net_channel(&net, NET_UNIX, &peer, NULL, 0);
    const char *before = bow_channel_peer(channel);
    assert_int_equal(bow__channel_name_peer(channel, "192.0.2.7:1234"), 0);
    assert_string_equal(bow_channel_peer(channel), "192.0.2.7:1234");
    assert_string_equal(before, "unix:");
    assert_int_equal(bow__channel_name_peer(channel, "192.0.2.8:1"), -EALREADY);
    assert_string_equal(bow_channel_peer(channel), "192.0.2.7:1234");
    close(peer);
    net_end(&net);
}

static void test_peer_named_anew_without_memory_keeps_its_name(void **state)
{
    struct net net;
    int peer;
    (void)state;
    net_begin(&net);
    struct bow_channel *channel = net_channel(&net, NET_UNIX, &peer, NULL, 0);
    net.t.alloc.fail_at = net.t.alloc.n_calls + 1;
    assert_int_equal(bow__channel_name_peer(channel, "192.0.2.7:1234"), -ENOMEM);
    assert_string_equal(bow_channel_peer(channel), "unix:");
    close(peer);
    net_end(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_peer_credentials_of_both_ends_of_a_unix_socket_outlive_the_close),
        cmocka_unit_test(test_peer_credentials_of_a_tcp_peer_are_not_there),
        cmocka_unit_test(test_peer_named_anew_keeps_the_old_name_for_those_who_read_it),
        cmocka_unit_test(test_peer_named_anew_without_memory_keeps_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
