/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Many connections at once; see the header. */

#include "tests/support/crowd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void allow_many_descriptors(void)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* The clients; nothing of cmocka here: a failure is their exit code. */

static bool greet_plainly(int fd)
{
    char got[CROWD_WORD_BYTES];

    return send(fd, CROWD_WORD, CROWD_WORD_BYTES, MSG_NOSIGNAL) == CROWD_WORD_BYTES &&
           recv(fd, got, sizeof(got), MSG_WAITALL) == CROWD_WORD_BYTES &&
           memcmp(got, CROWD_WORD, sizeof(got)) == 0;
}

static bool come_once(const struct crowd *crowd, const struct sockaddr_in *address)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0) {
        return false;
    }
    return crowd->greet != NULL ? crowd->greet(fd, crowd->user) != 0 : greet_plainly(fd);
}

_Noreturn static void be_clients(const struct crowd *crowd, int commands, int answers)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int n = 0;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    address.sin_port = htons(bow_acceptor_port(crowd->acceptor));
    while (read(commands, &n, sizeof(n)) == (ssize_t)sizeof(n)) {
        for (int i = 0; i < n; i++) {
            if (!come_once(crowd, &address)) {
                _exit(1);
            }
        }
        if (write(answers, "x", 1) != 1) {
            _exit(2);
        }
    }
    _exit(0);
}

static void start_clients(struct crowd *crowd)
{
    int commands[2];
    int answers[2];

    assert_int_equal(pipe2(commands, O_CLOEXEC), 0);
    assert_int_equal(pipe2(answers, O_CLOEXEC), 0);
    crowd->clients = fork();
    assert_true(crowd->clients >= 0);
    if (crowd->clients == 0) {
        close(commands[1]);
        close(answers[0]);
        be_clients(crowd, commands[0], answers[1]);
    }
    close(commands[0]);
    close(answers[1]);
    crowd->command_fd = commands[1];
    crowd->answer_fd = answers[0];
    assert_int_equal(fcntl(crowd->answer_fd, F_SETFL, O_NONBLOCK), 0);
}

/* The server */

struct visitor {
    struct bow_handler handler;
    struct crowd *crowd;
};

static size_t echo(struct bow_handler *handler, const struct bow_buf *bytes)
{
    assert_int_equal(bow_channel_write_and_flush(handler->channel, bytes, NULL, NULL), 0);
    return bytes->len;
}

static void on_inactive(struct bow_handler *handler, int error)
{
    (void)error;
    ((struct visitor *)(void *)handler)->crowd->n_ended++;
}

static const struct bow_handler_ops visitor_ops = {
    .name = "visitor", .on_read = echo, .on_inactive = on_inactive};

static int add_visitor(struct bow_channel *channel, void *user)
{
    struct visitor *visitor = bow_channel_data(channel);
    struct crowd *crowd = user;

    visitor->handler.ops = &visitor_ops;
    visitor->crowd = crowd;
    crowd->n_accepted++;
    int rc = crowd->on_channel != NULL ? crowd->on_channel(channel, crowd->user) : 0;
    if (rc == 0) {
        bow_channel_add_last(channel, &visitor->handler);
    }
    return rc;
}

void crowd_begin(struct crowd *crowd, bow_channel_init_fn on_channel,
                 int (*greet)(int fd, void *user), void *user)
{
    struct bow_acceptor_options options = BOW_ACCEPTOR_OPTIONS_INIT;

    memset(crowd, 0, sizeof(*crowd));
    allow_many_descriptors();
    net_begin(&crowd->net);
    crowd->on_channel = on_channel;
    crowd->greet = greet;
    crowd->user = user;
    options.address = "127.0.0.1:0";
    options.loop = crowd->net.loop;
    options.channel.data_bytes = sizeof(struct visitor);
    options.channel.on_channel = add_visitor;
    options.channel.user = crowd;
    assert_int_equal(bow_acceptor_new(crowd->net.t.context, &options, &crowd->acceptor, NULL), 0);
    assert_int_equal(bow_acceptor_start(crowd->acceptor), 0);
    start_clients(crowd);
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t crowd_come(struct crowd *crowd, int n)
{
    const uint64_t started = now_ns();
    char answer;
    ssize_t rc;

    assert_int_equal(write(crowd->command_fd, &n, sizeof(n)), sizeof(n));
    while ((rc = read(crowd->answer_fd, &answer, 1)) < 0) {
        assert_int_equal(errno, EAGAIN);
        net_turn(&crowd->net);
    }
    assert_int_equal(rc, 1); /* 0: they have given up */
    return now_ns() - started;
}

void crowd_end(struct crowd *crowd)
{
    int status = 0;

    close(crowd->command_fd);
    close(crowd->answer_fd);
    assert_int_equal(waitpid(crowd->clients, &status, 0), crowd->clients);
    assert_int_equal(status, 0);
    net_run_until(&crowd->net, crowd->n_ended == crowd->n_accepted);
    bow_acceptor_close(crowd->acceptor, NULL, NULL);
    net_stop(&crowd->net);
    assert_int_equal(bow_context_bytes(crowd->net.t.context), 0);
}
