/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A server whose last address is taken has not started: the addresses before it are free at once,
 * what was handed down is as it was, and the same call succeeds when the address has come free.
 */

#include "bound.h"
#include "tests/support/scratch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#define N_FAILURES 2

struct place {
    char address[128];
    int fd;                    /* listens there, without Bowline; -1: nobody */
    struct bow_server *server; /* the same, where only a server can */
};

struct scene {
    struct bound bound;
    bool per_worker;
    struct place free;
    struct place handed_down; /* its descriptor is, unless it is -1 */
    char handed_down_as[32];
    int flags;
    struct place taken;
};

/* Who listens without Bowline */

static int listen_at_port(struct place *place, uint16_t port)
{
    struct sockaddr_in in = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(in);

    place->fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(place->fd >= 0);
    if (bind(place->fd, (struct sockaddr *)&in, len) < 0 || listen(place->fd, 16) < 0) {
        return -errno;
    }
    assert_int_equal(getsockname(place->fd, (struct sockaddr *)&in, &len), 0);
    snprintf(place->address, sizeof(place->address), "127.0.0.1:%u", ntohs(in.sin_port));
    return 0;
}

static void listen_at_path(struct place *place)
{
    static int n;
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    char name[32];

    snprintf(name, sizeof(name), "undo-%d-%d", (int)getpid(), n++);
    scratch_path(un.sun_path, sizeof(un.sun_path), name);
    place->fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_true(place->fd >= 0);
    assert_int_equal(bind(place->fd, (struct sockaddr *)&un, sizeof(un)), 0);
    assert_int_equal(listen(place->fd, 16), 0);
    snprintf(place->address, sizeof(place->address), "unix:%s", un.sun_path);
}

static const char *path_of(const struct place *place)
{
    return place->address + strlen("unix:");
}

static void take(struct calls *t, struct place *place)
{
    struct bow_server_options options;

    *place = (struct place){.fd = -1};
    if (calls_has_port()) {
        assert_int_equal(listen_at_port(place, 0), 0);
    } else if (calls_is_unix()) {
        listen_at_path(place);
    } else {
        calls_name_address(place->address, sizeof(place->address));
        calls_server_options(t, &options);
        options.listen = place->address;
        assert_int_equal(bow_server_new(&options, &place->server), 0);
        assert_int_equal(bow_server_start(place->server), 0);
    }
}

static void let_go(struct place *place)
{
    if (place->fd >= 0) {
        assert_int_equal(close(place->fd), 0);
        place->fd = -1;
    }
    if (calls_is_unix()) {
        assert_int_equal(unlink(path_of(place)), 0);
    }
    bow_server_free(place->server);
    place->server = NULL;
}

/* What is to be found after a failure */

static void expect_free(const struct place *place)
{
    struct place again = {.fd = -1};
    char lock[160];

    if (calls_has_port()) {
        int port = atoi(strchr(place->address, ':') + 1);
        assert_int_equal(listen_at_port(&again, (uint16_t)port), 0);
        close(again.fd);
    } else if (calls_is_unix()) {
        snprintf(lock, sizeof(lock), "%s.lock", path_of(place));
        assert_int_equal(access(path_of(place), F_OK), -1);
        assert_int_equal(access(lock, F_OK), -1);
    }
}

static void expect_taken(const struct place *place)
{
    if (calls_is_unix()) {
        assert_int_equal(access(path_of(place), F_OK), 0);
    }
}

static void expect_handed_down(const struct scene *s)
{
    struct sockaddr_in in;
    socklen_t len = sizeof(in);
    int listener = s->handed_down.fd;

    if (listener < 0) {
        return;
    }
    assert_int_equal(fcntl(listener, F_GETFL), s->flags);
    assert_int_equal(fcntl(listener, F_GETFD), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&in, &len), 0);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(client, (struct sockaddr *)&in, len), 0);
    int accepted = accept(listener, NULL, NULL);
    assert_true(accepted >= 0);
    close(accepted);
    close(client);
}

static void expect_failure(const struct scene *s, const struct bow_server *server, int rc)
{
    assert_int_equal(rc, -EADDRINUSE);
    assert_non_null(strstr(bow_server_error(server), s->taken.address));
    assert_string_equal(bow_server_addresses(server), "");
    assert_int_equal(bow_server_port(server), 0);
    expect_free(&s->free);
    expect_handed_down(s);
    expect_taken(&s->taken);
}

/* The scene */

static void hand_down(struct scene *s)
{
    s->handed_down.fd = -1;
    if (s->per_worker) {
        return;
    }
    assert_int_equal(listen_at_port(&s->handed_down, 0), 0);
    s->flags = fcntl(s->handed_down.fd, F_GETFL);
    assert_int_equal(s->flags & O_NONBLOCK, 0);
    snprintf(s->handed_down_as, sizeof(s->handed_down_as), "fd:%d", s->handed_down.fd);
}

static struct bow_server *begin(struct scene *s, struct calls *t, enum binding binding,
                                bool per_worker)
{
    *s = (struct scene){.bound.t = t, .per_worker = per_worker};
    bound_begin(&s->bound, binding);
    take(t, &s->free);
    let_go(&s->free);
    take(t, &s->taken);
    hand_down(s);
    struct bow_server *server = bound_make_server(&s->bound);
    bound_listen(server, s->free.address, per_worker);
    if (s->handed_down.fd >= 0) {
        bound_listen(server, s->handed_down_as, false);
    }
    bound_listen(server, s->taken.address, per_worker);
    return server;
}

static void expect_served(struct scene *s, const char *address)
{
    struct bow_client_options options;
    struct calls *t = s->bound.t;

    snprintf(t->target, sizeof(t->target), "%s%s", calls_is_grpc() ? "grpc:" : "", address);
    calls_client_options(t, &options);
    struct bow_client *client = calls_new_client(t, &options);
    bound_expect_say(t, client, bound_driven(&s->bound));
    bow_client_free(client);
}

static void expect_started(struct scene *s, struct bow_server *server)
{
    int rc = bow_server_start(server);

    if (rc != 0) {
        fail_msg("binding %d: %d: %s", (int)s->bound.binding, rc, bow_server_error(server));
    }
    expect_served(s, s->free.address);
    expect_served(s, s->taken.address);
    if (s->handed_down.fd >= 0) {
        expect_served(s, s->handed_down.address);
    }
    bound_stop_server(&s->bound, server);
    bow_server_free(server);
    if (s->handed_down.fd >= 0) {
        assert_int_equal(fcntl(s->handed_down.fd, F_GETFD), -1); /* the server's, since it began */
    }
}

static void fail_and_start(struct calls *t, enum binding binding, bool per_worker)
{
    struct scene s;
    struct bow_server *server = begin(&s, t, binding, per_worker);

    for (int i = 0; i < N_FAILURES; i++) {
        expect_failure(&s, server, bow_server_start(server));
    }
    let_go(&s.taken);
    expect_started(&s, server);
    bound_end(&s.bound);
}

static void test_undo_failed_start_has_done_nothing_and_may_be_repeated(void **state)
{
    for (int binding = OWN; binding < N_BINDINGS; binding++) {
        for (int per_worker = 0; per_worker <= calls_has_port(); per_worker++) {
            fail_and_start(*state, (enum binding)binding, per_worker > 0);
        }
    }
}

static void test_undo_failed_run_has_done_nothing(void **state)
{
    struct scene s;
    struct bow_server *server = begin(&s, *state, OWN, false);

    for (int i = 0; i < N_FAILURES; i++) {
        expect_failure(&s, server, bow_server_run(server));
    }
    let_go(&s.taken);
    expect_started(&s, server);
    bound_end(&s.bound);
}

/* Whoever gives up need not wait for the loop either. */
static void test_undo_failed_server_is_freed(void **state)
{
    for (int binding = OWN; binding < N_BINDINGS; binding++) {
        struct scene s;
        struct bow_server *server = begin(&s, *state, (enum binding)binding, false);
        expect_failure(&s, server, bow_server_start(server));
        bow_server_free(server);
        bound_end(&s.bound);
        expect_handed_down(&s);
        assert_int_equal(close(s.handed_down.fd), 0);
        let_go(&s.taken);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, calls_setup_bare, calls_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_undo_failed_start_has_done_nothing_and_may_be_repeated),
        TEST(test_undo_failed_run_has_done_nothing),
        TEST(test_undo_failed_server_is_freed),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
