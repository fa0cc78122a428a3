/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Listening on a name: at each address that it has, or at none. */

#include "tests/support/net.h"
#include "transport/address/address.h"

#include <arpa/inet.h>
#include <bowline/group.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct fixture {
    struct net net;
    const char *const *addresses; /* of every name; NULL at the end */
    int n_binds;
    int busy_bind; /* which bind() finds the port taken; 0: none */
    int n_closed;
};

static struct fixture *fixture_of(void *user)
{
    struct net *net = (struct net *)(void *)((char *)user - offsetof(struct net, t.fake));

    return (struct fixture *)(void *)((char *)net - offsetof(struct fixture, net));
}

static int resolve(void *user, const char *host, uint16_t port, struct bow_sockaddr *addresses,
                   int max, const char **ret_reason)
{
    const char *const *at = fixture_of(user)->addresses;
    int n = 0;
    (void)host;
    (void)ret_reason;

    for (; at[n] != NULL; n++) {
        assert_true(n < max);
        assert_int_equal(bow__sockaddr_parse_ip(at[n], &addresses[n]), 0);
        bow__sockaddr_set_port(&addresses[n], port);
    }
    return n;
}

static int count_bind(void *user, int fd, const struct bow_sockaddr *address)
{
    struct fixture *f = fixture_of(user);

    f->n_binds++;
    return f->n_binds == f->busy_bind ? -EADDRINUSE : bow_system_default()->bind(NULL, fd, address);
}

static void begin(struct fixture *f, const char *const *addresses)
{
    memset(f, 0, sizeof(*f));
    net_begin(&f->net);
    f->net.system.resolve = resolve;
    f->net.system.bind = count_bind;
    f->addresses = addresses;
}

static struct bow_acceptor *try_listen(struct fixture *f, const char *name, int error, char *text,
                                       size_t size)
{
    struct bow_acceptor_options options = BOW_ACCEPTOR_OPTIONS_INIT;
    struct bow_acceptor *acceptor = NULL;
    struct bow_transport_error reason = {0};

    options.address = name;
    options.loop = f->net.loop;
    int rc = bow_acceptor_new(f->net.t.context, &options, &acceptor, &reason);
    if (rc != error) {
        fail_msg("%d: %s", rc, reason.text);
    }
    if (text != NULL) {
        snprintf(text, size, "%s", reason.text);
    }
    return acceptor;
}

static void on_closed(void *user)
{
    (*(int *)user)++;
}

static void close_acceptor(struct fixture *f, struct bow_acceptor *acceptor)
{
    int n_closed = f->n_closed;

    bow_acceptor_close(acceptor, on_closed, &f->n_closed);
    net_run_until(&f->net, f->n_closed == n_closed + 1);
}

static bool is_served(const char *host, uint16_t port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

    assert_int_equal(inet_pton(AF_INET, host, &in.sin_addr), 1);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_connected = connect(fd, (struct sockaddr *)&in, sizeof(in)) == 0;
    close(fd);
    return is_connected;
}

/* A file of hosts may name an address twice. */
static const char *const two[] = {"127.0.0.1", "127.0.0.2", "127.0.0.1", NULL};
/* The second is of a network for documentation. */
static const char *const one_of_ours[] = {"127.0.0.1", "198.51.100.1", NULL};
static const char *const ours_last[] = {"198.51.100.1", "127.0.0.1", NULL};
static const char *const none_of_ours[] = {"198.51.100.1", "198.51.100.2", NULL};

static void test_listen_f52_name_is_listened_on_at_each_of_its_addresses(void **state)
{
    struct fixture f;
    char expected[64];
    (void)state;
    begin(&f, two);
    struct bow_acceptor *acceptor = try_listen(&f, "localhost:0", 0, NULL, 0);
    uint16_t port = bow_acceptor_port(acceptor);
    snprintf(expected, sizeof(expected), "127.0.0.1:%u, 127.0.0.2:%u", port, port);
    assert_string_equal(bow_acceptor_addresses(acceptor), expected);
    assert_int_equal(bow_acceptor_start(acceptor), 0);
    assert_true(is_served("127.0.0.1", port));
    assert_true(is_served("127.0.0.2", port));
    close_acceptor(&f, acceptor);
    assert_false(is_served("127.0.0.1", port));
    assert_false(is_served("127.0.0.2", port));
    net_end(&f.net);
}

static void test_listen_f52_name_is_listened_on_by_each_worker(void **state)
{
    struct fixture f;
    struct bow_group_options group_options = BOW_GROUP_OPTIONS_INIT;
    struct bow_acceptor_options options = BOW_ACCEPTOR_OPTIONS_INIT;
    struct bow_acceptor *acceptor = NULL;
    char expected[64];
    (void)state;
    begin(&f, two);
    group_options.n_loops = 2;
    assert_int_equal(bow_group_new(f.net.t.context, &group_options, &options.workers), 0);
    options.address = "localhost:0";
    options.per_worker = true;
    assert_int_equal(bow_acceptor_new(f.net.t.context, &options, &acceptor, NULL), 0);
    assert_int_equal(f.n_binds, 4);
    uint16_t port = bow_acceptor_port(acceptor);
    snprintf(expected, sizeof(expected), "127.0.0.1:%u, 127.0.0.2:%u", port, port);
    assert_string_equal(bow_acceptor_addresses(acceptor), expected);
    assert_true(is_served("127.0.0.2", port));
    bow_acceptor_close(acceptor, NULL, NULL);
    bow_group_unref(options.workers);
    net_end(&f.net);
}

static void expect_one_left_out(const char *const *addresses)
{
    struct fixture f;
    char expected[64];

    begin(&f, addresses);
    struct bow_acceptor *acceptor = try_listen(&f, "localhost:0", 0, NULL, 0);
    uint16_t port = bow_acceptor_port(acceptor);
    snprintf(expected, sizeof(expected), "127.0.0.1:%u", port);
    assert_string_equal(bow_acceptor_addresses(acceptor), expected);
    assert_true(is_served("127.0.0.1", port));
    assert_non_null(strstr(f.net.t.log, "1 of the 2 addresses of localhost:0 could not be had: "
                                        "binding localhost:0 (198.51.100.1:"));
    close_acceptor(&f, acceptor);
    net_end(&f.net);
}

static void test_listen_f52_address_that_this_host_has_not_is_left_out(void **state)
{
    (void)state;
    expect_one_left_out(one_of_ours);
    expect_one_left_out(ours_last);
}

static void test_listen_f52_none_of_the_addresses_is_an_error(void **state)
{
    struct fixture f;
    char text[512];
    (void)state;
    begin(&f, none_of_ours);
    assert_null(try_listen(&f, "other:80", -EADDRNOTAVAIL, text, sizeof(text)));
    assert_non_null(strstr(text, "binding other:80 (198.51.100.2:80): EADDRNOTAVAIL"));
    net_end(&f.net);
}

static void test_listen_f52_taken_address_leaves_none(void **state)
{
    static const char *const second[] = {"127.0.0.2", NULL};
    struct fixture f;
    char name[32];
    char text[512];
    (void)state;
    begin(&f, second);
    for (int i = 0; i < 100; i++) {
        f.addresses = second;
        struct bow_acceptor *first = try_listen(&f, "first:0", 0, NULL, 0);
        uint16_t port = bow_acceptor_port(first);
        f.addresses = two;
        snprintf(name, sizeof(name), "both:%u", port);
        assert_null(try_listen(&f, name, -EADDRINUSE, text, sizeof(text)));
        close_acceptor(&f, first);
        if (strstr(text, "(127.0.0.1:") == NULL) { /* or another program has that one */
            assert_non_null(strstr(text, "(127.0.0.2:"));
            assert_false(is_served("127.0.0.1", port));
            net_end(&f.net);
            return;
        }
    }
    fail_msg("no port is free at both addresses");
}

/* Free at the first address, it may be taken at the second. */
static void test_listen_f52_port_is_chosen_anew_until_all_have_it(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, two);
    f.busy_bind = 2;
    struct bow_acceptor *acceptor = try_listen(&f, "localhost:0", 0, NULL, 0);
    assert_int_equal(f.n_binds, 4);
    assert_true(is_served("127.0.0.1", bow_acceptor_port(acceptor)));
    assert_true(is_served("127.0.0.2", bow_acceptor_port(acceptor)));
    close_acceptor(&f, acceptor);
    net_end(&f.net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_listen_f52_name_is_listened_on_at_each_of_its_addresses),
        cmocka_unit_test(test_listen_f52_name_is_listened_on_by_each_worker),
        cmocka_unit_test(test_listen_f52_address_that_this_host_has_not_is_left_out),
        cmocka_unit_test(test_listen_f52_none_of_the_addresses_is_an_error),
        cmocka_unit_test(test_listen_f52_taken_address_leaves_none),
        cmocka_unit_test(test_listen_f52_port_is_chosen_anew_until_all_have_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
