/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What is set on sockets that connect and are accepted: probes of the kernel, the source. */

#include "tests/support/net.h"
#include "transport/address/address.h"
#include "transport/channel/channel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct fixture {
    struct net net;
    struct bow_acceptor *acceptor;
    char target[32];
    char peer[64]; /* of what was accepted */
    struct bow_channel *accepted;
    struct bow_channel *connected;
    int n_done;
    int error;
    char text[512];
};

static int on_accepted(struct bow_channel *channel, void *user)
{
    struct fixture *f = user;

    snprintf(f->peer, sizeof(f->peer), "%s", bow_channel_peer(channel));
    f->accepted = channel;
    return 0;
}

static void on_connected(struct bow_channel *channel, const struct bow_transport_error *error,
                         void *user)
{
    struct fixture *f = user;

    f->n_done++;
    f->connected = channel;
    f->error = error != NULL ? error->error : 0;
    snprintf(f->text, sizeof(f->text), "%s", error != NULL ? error->text : "");
}

/* Both ends have `channel`'s options. */
static void begin(struct fixture *f, const struct bow_channel_options *channel)
{
    struct bow_acceptor_options options = BOW_ACCEPTOR_OPTIONS_INIT;
    struct bow_transport_error error;

    memset(f, 0, sizeof(*f));
    net_begin(&f->net);
    options.address = "127.0.0.1:0";
    options.loop = f->net.loop;
    options.channel = *channel;
    options.channel.on_channel = on_accepted;
    options.channel.user = f;
    if (bow_acceptor_new(f->net.t.context, &options, &f->acceptor, &error) < 0) {
        fail_msg("%s", error.text);
    }
    assert_int_equal(bow_acceptor_start(f->acceptor), 0);
    snprintf(f->target, sizeof(f->target), "127.0.0.1:%u", bow_acceptor_port(f->acceptor));
}

static void dial(struct fixture *f, const char *target, const struct bow_channel_options *channel)
{
    struct bow_connect *connect = NULL;
    int n_done = f->n_done;

    assert_int_equal(
        bow_connect_start(f->net.loop, target, channel, FAKE_S, on_connected, f, &connect, NULL),
        0);
    net_run_until(&f->net, f->n_done == n_done + 1);
}

static void end(struct fixture *f)
{
    bow_acceptor_close(f->acceptor, NULL, NULL);
    net_end(&f->net);
}

static int option_of(const struct bow_channel *channel, int level, int name)
{
    int value = -1;
    socklen_t len = sizeof(value);

    assert_int_equal(getsockopt(channel->watch.fd, level, name, &value, &len), 0);
    return value;
}

static void expect_probes(const struct bow_channel *channel, int seconds, int timeout_ms)
{
    assert_int_equal(option_of(channel, SOL_SOCKET, SO_KEEPALIVE), seconds > 0);
    assert_int_equal(option_of(channel, IPPROTO_TCP, TCP_USER_TIMEOUT), timeout_ms);
    assert_int_equal(option_of(channel, IPPROTO_TCP, TCP_NODELAY), 1);
    if (seconds > 0) {
        assert_int_equal(option_of(channel, IPPROTO_TCP, TCP_KEEPIDLE), seconds);
        assert_int_equal(option_of(channel, IPPROTO_TCP, TCP_KEEPINTVL), seconds);
        assert_int_equal(option_of(channel, IPPROTO_TCP, TCP_KEEPCNT), 3);
    }
}

static void check_probes(uint64_t keepalive_ns, uint64_t timeout_ns, int seconds, int timeout_ms)
{
    struct fixture f;
    struct bow_channel_options channel = BOW_CHANNEL_OPTIONS_INIT;

    channel.keepalive_ns = keepalive_ns;
    channel.tcp_timeout_ns = timeout_ns;
    begin(&f, &channel);
    dial(&f, f.target, &channel);
    assert_int_equal(f.error, 0);
    expect_probes(f.connected, seconds, timeout_ms);
    net_run_until(&f.net, f.accepted != NULL);
    expect_probes(f.accepted, seconds, timeout_ms);
    end(&f);
}

static void test_socket_f55_kernel_probes_where_that_is_asked_for(void **state)
{
    (void)state;
    check_probes(0, 0, 0, 0);
    check_probes(UINT64_C(30) * FAKE_S, UINT64_C(45) * FAKE_S, 30, 45000);
    check_probes(1, 1, 1, 1); /* what is set is not to become the system's default */
    check_probes(FAKE_S + 1, FAKE_MS + 1, 2, 2);
    check_probes(BOW_NEVER, BOW_NEVER, 32767, INT_MAX);
}

static void test_socket_f55_connects_from_the_source_that_is_named(void **state)
{
    struct fixture f;
    struct bow_channel_options channel = BOW_CHANNEL_OPTIONS_INIT;
    char source[] = "127.0.0.77";
    struct bow_connect *connect = NULL;
    (void)state;
    begin(&f, &channel);
    channel.source = source;
    assert_int_equal(
        bow_connect_start(f.net.loop, f.target, &channel, FAKE_S, on_connected, &f, &connect, NULL),
        0);
    memset(source, 'x', sizeof(source) - 1); /* it was copied */
    net_run_until(&f.net, f.n_done == 1 && f.accepted != NULL);
    assert_int_equal(f.error, 0);
    assert_memory_equal(f.peer, "127.0.0.77:", 11);
    end(&f);
}

static int resolve_both(void *user, const char *host, uint16_t port, struct bow_sockaddr *addresses,
                        int max, const char **ret_reason)
{
    (void)user;
    (void)host;
    (void)max;
    (void)ret_reason;
    assert_int_equal(bow__sockaddr_parse_ip("::1", &addresses[0]), 0);
    assert_int_equal(bow__sockaddr_parse_ip("127.0.0.1", &addresses[1]), 0);
    bow__sockaddr_set_port(&addresses[0], port);
    bow__sockaddr_set_port(&addresses[1], port);
    return 2;
}

static void test_socket_f55_addresses_of_the_other_family_are_left_out(void **state)
{
    struct fixture f;
    struct bow_channel_options channel = BOW_CHANNEL_OPTIONS_INIT;
    char target[32];
    (void)state;
    begin(&f, &channel);
    f.net.system.resolve = resolve_both;
    channel.source = "127.0.0.77";
    snprintf(target, sizeof(target), "both:%u", bow_acceptor_port(f.acceptor));
    dial(&f, target, &channel);
    net_run_until(&f.net, f.accepted != NULL);
    assert_memory_equal(f.peer, "127.0.0.77:", 11);
    dial(&f, "[::1]:1", &channel);
    assert_int_equal(f.error, -EAFNOSUPPORT);
    assert_non_null(strstr(f.text, "the source address, of that family?"));
    channel.source = "198.51.100.1"; /* another host's */
    dial(&f, f.target, &channel);
    assert_int_equal(f.error, -EADDRNOTAVAIL);
    end(&f);
}

static void test_socket_f55_source_that_is_no_address_is_refused(void **state)
{
    static const char *const bad[] = {"", "localhost", "127.0.0.1:0", "*"};
    struct fixture f;
    struct bow_channel_options channel = BOW_CHANNEL_OPTIONS_INIT;
    struct bow_connect *connect = NULL;
    struct bow_transport_error error;
    (void)state;
    begin(&f, &channel);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        channel.source = bad[i];
        assert_int_equal(bow_connect_start(f.net.loop, f.target, &channel, FAKE_S, on_connected, &f,
                                           &connect, &error),
                         -EINVAL);
        assert_non_null(strstr(error.text, "a source is an address of IP"));
    }
    assert_int_equal(f.n_done, 0);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_socket_f55_kernel_probes_where_that_is_asked_for),
        cmocka_unit_test(test_socket_f55_connects_from_the_source_that_is_named),
        cmocka_unit_test(test_socket_f55_addresses_of_the_other_family_are_left_out),
        cmocka_unit_test(test_socket_f55_source_that_is_no_address_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
