/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* On sockets: a crowd of silent openers, SIGPIPE, and the openssl command as the other end. */

#include "tests/support/net.h"
#include "tests/tls/certs.h"
#include "tests/tls/peer.h"

#include <arpa/inet.h>
#include <bowline/tls.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_CROWD 2000

extern char **environ;

/* What the tests have in common: both contexts, an echo server. */

struct scene {
    struct net net;
    struct certs certs;
    struct bow_tls_context *server;
    struct bow_tls_context *client;
    struct bow_acceptor *acceptor;
    int n_accepted;
    int n_ended;
    int n_timed_out;
    struct probe probe; /* of one connection */
};

struct echo {
    struct bow_handler handler;
    struct scene *scene;
};

static size_t echo_read(struct bow_handler *handler, const struct bow_buf *bytes)
{
    assert_int_equal(bow_channel_write_and_flush(handler->channel, bytes, NULL, NULL), 0);
    return bytes->len;
}

static void echo_error(struct bow_handler *handler, int error)
{
    struct scene *scene = ((struct echo *)(void *)handler)->scene;

    scene->n_timed_out += error == -ETIMEDOUT ? 1 : 0;
}

static void echo_inactive(struct bow_handler *handler, int error)
{
    (void)error;
    ((struct echo *)(void *)handler)->scene->n_ended++;
}

static const struct bow_handler_ops echo_ops = {
    .name = "echo",
    .on_read = echo_read,
    .on_error = echo_error,
    .on_inactive = echo_inactive,
};

static int add_echo(struct bow_channel *channel, void *user)
{
    struct echo *echo = bow_channel_data(channel);
    struct bow_tls *tls = NULL;

    echo->scene = user;
    echo->scene->n_accepted++;
    echo->handler.ops = &echo_ops;
    int rc = bow_tls_new(echo->scene->server, NULL, &tls);
    if (rc < 0) {
        return rc;
    }
    bow_channel_add_last(channel, bow_tls_handler(tls));
    bow_channel_add_last(channel, &echo->handler);
    return 0;
}

static struct bow_tls_context *make_context(struct scene *scene, enum bow_tls_side side)
{
    struct bow_tls_context_options options = BOW_TLS_CONTEXT_OPTIONS_INIT;
    struct bow_tls_context *context = NULL;
    char certificate[128];
    char key[128];
    char ca[128];

    options.side = side;
    if (side == BOW_TLS_SERVER) {
        options.certificate.certificate_file =
            certs_path(&scene->certs, "server.pem", certificate, sizeof(certificate));
        options.certificate.key_file = certs_path(&scene->certs, "server.key", key, sizeof(key));
    } else {
        options.ca_file = certs_path(&scene->certs, "ca.pem", ca, sizeof(ca));
    }
    assert_int_equal(bow_tls_context_new(scene->net.t.context, &options, &context, NULL), 0);
    return context;
}

static void begin(struct scene *scene, bool is_fake)
{
    struct bow_acceptor_options options = BOW_ACCEPTOR_OPTIONS_INIT;

    memset(scene, 0, sizeof(*scene));
    if (is_fake) {
        net_begin_fake(&scene->net);
    } else {
        net_begin(&scene->net);
    }
    certs_make(&scene->certs);
    scene->server = make_context(scene, BOW_TLS_SERVER);
    scene->client = make_context(scene, BOW_TLS_CLIENT);
    probe_init(&scene->probe, NULL);
    scene->probe.keeps = true;
    options.address = "127.0.0.1:0";
    options.loop = scene->net.loop;
    options.channel.data_bytes = sizeof(struct echo);
    options.channel.on_channel = add_echo;
    options.channel.user = scene;
    assert_int_equal(bow_acceptor_new(scene->net.t.context, &options, &scene->acceptor, NULL), 0);
    assert_int_equal(bow_acceptor_start(scene->acceptor), 0);
}

static void end(struct scene *scene)
{
    bow_acceptor_close(scene->acceptor, NULL, NULL);
    net_stop(&scene->net);
    bow_tls_context_unref(scene->server);
    bow_tls_context_unref(scene->client);
    probe_fini(&scene->probe);
    certs_remove(&scene->certs);
    loops_end(&scene->net.t);
}

static int dial(const struct scene *scene)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(bow_acceptor_port(scene->acceptor)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

/* A crowd */

static int crowd_size(void)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    /* Both ends are here, and some are open anyway. */
    return limit.rlim_cur >= 2 * MAX_CROWD + 100 ? MAX_CROWD : (int)(limit.rlim_cur - 100) / 2;
}

/* Half of them send the beginning of a hello, a byte for each second that passes. */
static void test_tls_f12_crowd_of_silent_and_slow_openers_is_closed_in_time(void **state)
{
    static const uint8_t hello[] = {0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, 1, 2, 3, 4, 5};
    struct scene scene;
    static int fds[MAX_CROWD];
    const int n = crowd_size();
    (void)state;

    begin(&scene, true);
    scene.net.t.fake.stands_still = true;
    for (int i = 0; i < n; i++) {
        fds[i] = dial(&scene);
        if (i % 100 == 99) {
            net_turn(&scene.net);
        }
    }
    net_run_until(&scene.net, scene.n_accepted == n);
    for (size_t second = 0; second <= 10; second++) {
        assert_int_equal(scene.n_ended, 0);
        for (int i = 0; i < n; i += 2) {
            assert_int_equal(send(fds[i], hello + second, 1, MSG_NOSIGNAL), 1);
        }
        net_turn(&scene.net);
        fake_system_advance(&scene.net.t.fake, FAKE_S);
    }
    net_run_until(&scene.net, scene.n_ended == n);
    assert_int_equal(scene.n_timed_out, n);
    for (int i = 0; i < n; i++) {
        close(fds[i]);
    }
    end(&scene);
}

/* SIGPIPE */

static int source_drain(struct bow_handler *handler, struct iovec *pieces, int max)
{
    static char x[] = "x";
    (void)handler;

    if (max < 1) {
        return 0;
    }
    pieces[0] = (struct iovec){x, 1};
    return 1;
}

static void source_sent(struct bow_handler *handler, size_t n)
{
    (void)handler;
    (void)n;
}

static int add_tls_and_probe(struct bow_channel *channel, void *user)
{
    struct scene *scene = user;
    struct bow_tls *tls = NULL;

    assert_int_equal(bow_tls_new(scene->server, NULL, &tls), 0);
    bow_channel_add_last(channel, bow_tls_handler(tls));
    bow_channel_add_last(channel, &scene->probe.handler);
    return 0;
}

enum path {
    PATH_PUSH,
    PATH_PULL,
    PATH_CLOSE,
    PATH_SHUTDOWN,
    N_PATHS,
};

static void write_by(struct bow_channel *channel, enum path path)
{
    const struct bow_buf buf = bow_buf_borrow("x", 1);

    switch (path) {
    case PATH_PUSH:
        (void)!bow_channel_write_and_flush(channel, &buf, NULL, NULL);
        return;
    case PATH_PULL:
        bow_channel_flush(channel);
        return;
    case PATH_CLOSE:
        bow_channel_close(channel, 0);
        return;
    case PATH_SHUTDOWN:
        bow_channel_shutdown_write(channel);
        return;
    case N_PATHS:
        return;
    }
}

static void run_path(enum path path)
{
    static const struct bow_handler_ops source_ops = {
        .name = "source", .on_drain = source_drain, .on_sent = source_sent};
    struct bow_handler source = {.ops = &source_ops};
    struct scene scene;
    struct tls_peer peer;
    int fd;

    begin(&scene, false);
    struct bow_channel_options options = BOW_CHANNEL_OPTIONS_INIT;
    options.on_channel = add_tls_and_probe;
    options.user = &scene;
    scene.net.options = options;
    struct bow_channel *channel = bow_channel_ref(net_channel(&scene.net, NET_TCP, &fd, NULL, 0));
    tls_peer_init(&peer, fd);
    net_run_until(&scene.net, tls_peer_shake_hands(&peer) && bow_tls_is_open(bow_tls_of(channel)));
    net_reset(peer.fd);
    peer.fd = -1;
    /* Outside of a turn: the reset is there, and the loop has not seen it. */
    if (path == PATH_PULL) {
        bow_channel_add_last(channel, &source);
    }
    write_by(channel, path);
    net_run_until(&scene.net, scene.probe.n_removed == 1);
    tls_peer_fini(&peer);
    bow_channel_unref(channel);
    end(&scene);
}

static void test_tls_f14_writes_after_a_reset_raise_no_signal(void **state)
{
    struct sigaction before;
    struct sigaction after;
    (void)state;

    assert_int_equal(sigaction(SIGPIPE, NULL, &before), 0);
    assert_true(before.sa_handler == SIG_DFL);
    for (int path = 0; path < N_PATHS; path++) {
        run_path((enum path)path);
    }
    assert_int_equal(sigaction(SIGPIPE, NULL, &after), 0);
    assert_true(after.sa_handler == SIG_DFL);
}

/* The openssl command */

struct command {
    pid_t pid;
    int input;
    int output;
    char text[16384];
    size_t len;
};

static void start(struct command *command, const char *const arguments[])
{
    posix_spawn_file_actions_t actions;
    int in[2];
    int out[2];

    memset(command, 0, sizeof(*command));
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    posix_spawn_file_actions_adddup2(&actions, out[1], 2);
    int rc = posix_spawnp(&command->pid, arguments[0], &actions, NULL,
                          (char *const *)(uintptr_t)arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    assert_int_equal(rc, 0);
    command->input = in[1];
    command->output = out[0];
    assert_int_equal(fcntl(command->output, F_SETFL, O_NONBLOCK), 0);
}

static bool says(struct command *command, const char *part)
{
    ssize_t n = read(command->output, command->text + command->len,
                     sizeof(command->text) - 1 - command->len);
    command->len += n > 0 ? (size_t)n : 0;
    return strstr(command->text, part) != NULL;
}

static void stop(struct command *command)
{
    close(command->input);
    close(command->output);
    kill(command->pid, SIGKILL);
    waitpid(command->pid, NULL, 0);
}

static bool has_openssl(void)
{
    return system("command -v openssl >/dev/null 2>&1") == 0;
}

static void run_s_client(const char *version)
{
    struct scene scene;
    struct command command;
    char address[32];
    char ca[128];

    begin(&scene, false);
    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", bow_acceptor_port(scene.acceptor));
    const char *const arguments[] = {
        "openssl",     "s_client",
        "-connect",    address,
        version,       "-servername",
        "server.test", "-verify_hostname",
        "server.test", "-verify_return_error",
        "-CAfile",     certs_path(&scene.certs, "ca.pem", ca, sizeof(ca)),
        NULL};
    start(&command, arguments);
    net_run_until(&scene.net, says(&command, "Verify return code: 0 (ok)"));
    assert_int_equal(write(command.input, "over there\n", 11), 11);
    net_run_until(&scene.net, says(&command, "over there"));
    assert_int_equal(write(command.input, "Q\n", 2), 2);
    net_run_until(&scene.net, scene.n_ended == 1);
    stop(&command);
    end(&scene);
}

static void test_tls_openssl_s_client_is_served(void **state)
{
    (void)state;
    if (!has_openssl()) {
        skip();
    }
    run_s_client("-tls1_2");
    run_s_client("-tls1_3");
}

static int add_client(struct bow_channel *channel, void *user)
{
    struct bow_tls_options options = BOW_TLS_OPTIONS_INIT;
    struct scene *scene = user;
    struct bow_tls *tls = NULL;

    options.server_name = "server.test";
    assert_int_equal(bow_tls_new(scene->client, &options, &tls), 0);
    bow_channel_add_last(channel, bow_tls_handler(tls));
    bow_channel_add_last(channel, &scene->probe.handler);
    return 0;
}

static void on_connected(struct bow_channel *channel, const struct bow_transport_error *error,
                         void *user)
{
    const struct bow_buf line = bow_buf_borrow("stressed\n", 9);
    (void)user;

    if (channel == NULL) {
        fail_msg("%s", error->text);
    }
    /* The handshake has just begun; it waits. */
    assert_int_equal(bow_channel_write_and_flush(channel, &line, NULL, NULL), 0);
}

/* s_server sends each line back reversed. */
static void run_s_server(const char *version)
{
    struct scene scene;
    struct command command;
    char certificate[128];
    char key[128];
    char target[32];
    struct bow_connect *attempt = NULL;

    begin(&scene, false);
    const char *const arguments[] = {
        "openssl", "s_server",
        "-accept", "127.0.0.1:0",
        version,   "-rev",
        "-cert",   certs_path(&scene.certs, "server.pem", certificate, sizeof(certificate)),
        "-key",    certs_path(&scene.certs, "server.key", key, sizeof(key)),
        NULL};
    start(&command, arguments);
    net_run_until(&scene.net, says(&command, "ACCEPT 127.0.0.1:") &&
                                  strchr(strstr(command.text, "ACCEPT"), '\n') != NULL);
    const char *port = strstr(command.text, "ACCEPT 127.0.0.1:") + 17;
    (void)snprintf(target, sizeof(target), "127.0.0.1:%d", atoi(port));
    struct bow_channel_options options = BOW_CHANNEL_OPTIONS_INIT;
    options.on_channel = add_client;
    options.user = &scene;
    assert_int_equal(bow_connect_start(scene.net.loop, target, &options, 5 * FAKE_S, on_connected,
                                       NULL, &attempt, NULL),
                     0);
    net_run_until(&scene.net, scene.probe.n_bytes == 9);
    assert_memory_equal(scene.probe.bytes, "desserts\n", 9);
    bow_channel_close_after_flush(scene.probe.handler.channel, FAKE_S);
    net_run_until(&scene.net, scene.probe.n_removed == 1);
    assert_int_equal(scene.probe.inactive_error, 0);
    stop(&command);
    end(&scene);
}

static void test_tls_openssl_s_server_is_spoken_to(void **state)
{
    (void)state;
    if (!has_openssl()) {
        skip();
    }
    run_s_server("-tls1_2");
    run_s_server("-tls1_3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tls_f12_crowd_of_silent_and_slow_openers_is_closed_in_time),
        cmocka_unit_test(test_tls_f14_writes_after_a_reset_raise_no_signal),
        cmocka_unit_test(test_tls_openssl_s_client_is_served),
        cmocka_unit_test(test_tls_openssl_s_server_is_spoken_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
