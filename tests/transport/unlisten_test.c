/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A listener that is about to close: who waits can be accepted, and nobody comes any more. */

#include "base/alloc.h"
#include "tests/support/alloc.h"
#include "tests/support/scratch.h"
#include "transport/channel/listen.h"
#include "transport/memory/inproc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    struct test_alloc alloc;
    struct bow_context *context;
    struct bow__listening listening;
};

static void begin(struct fixture *t, const char *address)
{
    struct bow__address parsed[BOW__LISTEN_MAX];
    struct bow_transport_error error;

    test_alloc_init(&t->alloc);
    t->context = test_context_new(&t->alloc);
    t->listening = (struct bow__listening){.unix_rights = {.owner = (uid_t)-1, .group = (gid_t)-1}};
    if (bow__listen_addresses(t->context, address, parsed, &error) < 0 ||
        bow__listening_open(&t->listening, t->context, parsed, address, 0, &error) < 0) {
        fail_msg("%s", error.text);
    }
}

static void end(struct fixture *t)
{
    bow__listening_close(&t->listening);
    bow__listening_close(&t->listening);
    test_context_end(t->context, &t->alloc);
}

static bool accept_one(struct fixture *t)
{
    struct bow__socket socket;
    struct bow_sockaddr peer;

    int rc = bow__listening_accept(&t->listening, &socket, &peer);
    if (rc == 0) {
        bow__socket_close(&socket);
        return true;
    }
    assert_int_equal(rc, -EAGAIN);
    return false;
}

/* Returns whether it is connected at once, or within so long. */
static bool dial(const struct sockaddr *address, socklen_t len, int patience_ms, int *ret_fd)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct pollfd ready = {.fd = fd, .events = POLLOUT};

    assert_true(fd >= 0);
    *ret_fd = fd;
    if (connect(fd, address, len) == 0) {
        return true;
    }
    return errno == EINPROGRESS && poll(&ready, 1, patience_ms) == 1 &&
           (ready.revents & POLLERR) == 0;
}

static void expect_refuses_new(struct fixture *t, const struct sockaddr *address, socklen_t len)
{
    enum { PATIENCE_MS = 10000, LONG_MS = 100 };
    struct pollfd waiting = {.fd = t->listening.fd, .events = POLLIN};
    int fds[2];

    assert_true(dial(address, len, PATIENCE_MS, &fds[0]));
    assert_int_equal(poll(&waiting, 1, PATIENCE_MS), 1);
    assert_true(bow__listening_refuse_new(&t->listening));
    assert_false(dial(address, len, LONG_MS, &fds[1]));
    assert_true(accept_one(t));
    assert_false(accept_one(t));
    close(fds[0]);
    close(fds[1]);
}

static void test_unlisten_tcp_port_takes_no_further_connection(void **state)
{
    struct fixture t;
    (void)state;

    begin(&t, "127.0.0.1:0");
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons(t.listening.port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    expect_refuses_new(&t, (struct sockaddr *)&in, sizeof(in));
    end(&t);
}

static bool has_version_6(void)
{
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool has = fd >= 0 && bind(fd, (struct sockaddr *)&in6, sizeof(in6)) == 0;

    close(fd);
    return has;
}

static void test_unlisten_tcp_port_of_version_6_takes_no_further_connection(void **state)
{
    struct fixture t;
    (void)state;

    if (!has_version_6()) {
        print_message("skipped: this machine has no IPv6\n");
        skip();
    }
    begin(&t, "[::1]:0");
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6,
                               .sin6_port = htons(t.listening.port),
                               .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    expect_refuses_new(&t, (struct sockaddr *)&in6, sizeof(in6));
    end(&t);
}

static void test_unlisten_unix_path_is_free_at_once(void **state)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    char address[128];
    char name[32];
    struct fixture t;
    struct fixture next;
    (void)state;

    snprintf(name, sizeof(name), "unlisten-%ld", (long)getpid());
    scratch_path(un.sun_path, sizeof(un.sun_path), name);
    snprintf(address, sizeof(address), "unix:%s", un.sun_path);
    begin(&t, address);
    expect_refuses_new(&t, (struct sockaddr *)&un, sizeof(un));
    begin(&next, address);
    end(&t); /* and leaves the file of the next one alone */
    int fd = -1;
    assert_true(dial((struct sockaddr *)&un, sizeof(un), 0, &fd));
    close(fd);
    end(&next);
}

static void test_unlisten_abstract_name_takes_no_further_connection(void **state)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    char address[128];
    struct fixture t;
    (void)state;

    int n = snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "bow-unlisten-%ld", (long)getpid());
    snprintf(address, sizeof(address), "unix-abstract:%s", un.sun_path + 1);
    begin(&t, address);
    expect_refuses_new(&t, (struct sockaddr *)&un,
                       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n));
    end(&t);
}

static void test_unlisten_inproc_name_takes_no_further_connection(void **state)
{
    struct bow__inproc_end *ends[2];
    struct fixture t;
    (void)state;

    begin(&t, "inproc:here");
    assert_int_equal(bow__inproc_connect(t.context, "here", &ends[0]), 0);
    assert_true(bow__listening_refuse_new(&t.listening));
    assert_int_equal(bow__inproc_connect(t.context, "here", &ends[1]), -ECONNREFUSED);
    assert_true(accept_one(&t));
    assert_false(accept_one(&t));
    bow__inproc_reset(ends[0]);
    end(&t);
}

/* Who handed it down may hand it to the next server, with all who wait. */
static void test_unlisten_inherited_socket_is_left_as_it_is(void **state)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(in);
    char address[32];
    struct fixture t;
    int client = -1;
    (void)state;

    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&in, len), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
    snprintf(address, sizeof(address), "fd:%d", fcntl(fd, F_DUPFD_CLOEXEC, 0));
    begin(&t, address);
    assert_false(bow__listening_refuse_new(&t.listening));
    end(&t);
    assert_true(dial((struct sockaddr *)&in, len, 10000, &client));
    int accepted = accept(fd, NULL, NULL);
    assert_true(accepted >= 0);
    close(accepted);
    close(client);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unlisten_tcp_port_takes_no_further_connection),
        cmocka_unit_test(test_unlisten_tcp_port_of_version_6_takes_no_further_connection),
        cmocka_unit_test(test_unlisten_unix_path_is_free_at_once),
        cmocka_unit_test(test_unlisten_abstract_name_takes_no_further_connection),
        cmocka_unit_test(test_unlisten_inproc_name_takes_no_further_connection),
        cmocka_unit_test(test_unlisten_inherited_socket_is_left_as_it_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
