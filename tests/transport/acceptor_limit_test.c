/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Out of descriptors in earnest: the server is a child process with a low limit, this
 * one has more clients than that.
 */

#include <arpa/inet.h>
#include <bowline/channel.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT 64
#define N_CLIENTS (LIMIT + 20)

struct report {
    uint64_t cpu_us;
    int n_logged;
    size_t n_bytes_left;
};

/* The server's process */

static size_t echo_read(struct bow_handler *handler, const struct bow_buf *bytes)
{
    return bow_channel_write_and_flush(handler->channel, bytes, NULL, NULL) == 0 ? bytes->len : 0;
}

static int add_echo(struct bow_channel *channel, void *user)
{
    static const struct bow_handler_ops echo_ops = {.name = "echo", .on_read = echo_read};
    struct bow_handler *handler = bow_channel_data(channel);

    (void)user;
    handler->ops = &echo_ops;
    bow_channel_add_last(channel, handler);
    return 0;
}

static void count_line(enum bow_log_level level, const char *line, void *user)
{
    struct report *report = user;

    (void)level;
    report->n_logged += strstr(line, "EMFILE") != NULL ? 1 : 0;
}

static uint64_t cpu_us(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000u +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* Serves until `commands` ends; its port, and at the end its report, go to `answers`. */
static int serve(int commands, int answers)
{
    const struct rlimit limit = {LIMIT, LIMIT};
    struct report report = {.cpu_us = 0};
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
    struct bow_acceptor_options options = BOW_ACCEPTOR_OPTIONS_INIT;
    struct pollfd ending = {.fd = commands, .events = POLLIN};
    struct bow_context *context = NULL;
    struct bow_acceptor *acceptor = NULL;

    context_options.log = count_line;
    context_options.log_user = &report;
    loop_options.thread = BOW_LOOP_OWNER;
    options.address = "127.0.0.1:0";
    options.channel.data_bytes = sizeof(struct bow_handler);
    options.channel.on_channel = add_echo;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0 || bow_context_new(&context_options, &context) < 0 ||
        bow_loop_new(context, &loop_options, &options.loop) < 0 ||
        bow_acceptor_new(context, &options, &acceptor, NULL) < 0 ||
        bow_acceptor_start(acceptor) < 0) {
        return 1;
    }
    uint16_t port = bow_acceptor_port(acceptor);
    if (write(answers, &port, sizeof(port)) != sizeof(port)) {
        return 1;
    }
    uint64_t from_us = cpu_us();
    while (poll(&ending, 1, 0) == 0) {
        if (bow_loop_run_once(options.loop, 100u * 1000000u) < 0) {
            return 1;
        }
    }
    report.cpu_us = cpu_us() - from_us;
    bow_acceptor_close(acceptor, NULL, NULL);
    bow_loop_unref(options.loop);
    report.n_bytes_left = bow_context_bytes(context);
    bow_context_unref(context);
    return write(answers, &report, sizeof(report)) == sizeof(report) ? 0 : 1;
}

/* The clients' */

static int dial(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(send(fd, "ping", 4, MSG_NOSIGNAL), 4);
    return fd;
}

/* Take answers until none has come for `quiet_ms` or all `max` have. Served ones leave `clients`
 * for `served`. */
static int take_answers(struct pollfd *clients, int *served, int max, int quiet_ms)
{
    int n = 0;

    while (n < max && poll(clients, N_CLIENTS, quiet_ms) > 0) {
        for (int i = 0; i < N_CLIENTS; i++) {
            char text[4];
            if (clients[i].fd < 0 || clients[i].revents == 0) {
                continue;
            }
            assert_int_equal(recv(clients[i].fd, text, 4, MSG_WAITALL), 4);
            served[n++] = clients[i].fd;
            clients[i].fd = -1;
        }
    }
    return n;
}

static void close_all(const int *fds, int n)
{
    for (int i = 0; i < n; i++) {
        close(fds[i]);
    }
}

static pid_t start_server(int *ret_commands, int *ret_answers)
{
    int commands[2];
    int answers[2];

    assert_int_equal(pipe(commands), 0);
    assert_int_equal(pipe(answers), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(commands[1]);
        close(answers[0]);
        _exit(serve(commands[0], answers[1]));
    }
    close(commands[0]);
    close(answers[1]);
    *ret_commands = commands[1];
    *ret_answers = answers[0];
    return pid;
}

static void
test_acceptor_l53_f11_more_clients_than_descriptors_are_all_served_in_the_end(void **state)
{
    struct pollfd clients[N_CLIENTS];
    struct report report;
    int served[N_CLIENTS];
    int commands = -1;
    int answers = -1;
    int status = -1;
    uint16_t port = 0;
    (void)state;
    pid_t pid = start_server(&commands, &answers);
    assert_int_equal(read(answers, &port, sizeof(port)), sizeof(port));
    for (int i = 0; i < N_CLIENTS; i++) {
        clients[i] = (struct pollfd){.fd = dial(port), .events = POLLIN};
    }
    /* As many as there are descriptors; then a second in which nothing moves. */
    int n_first = take_answers(clients, served, N_CLIENTS, 1000);
    assert_true(n_first >= LIMIT - 20 && n_first < LIMIT);
    /* One by one: each comes back and is used up again at once. */
    int n_waiting = N_CLIENTS - n_first;
    int again[N_CLIENTS];
    for (int i = 0; i < 5; i++) {
        close(served[i]);
        assert_int_equal(take_answers(clients, again + i, 1, 5000), 1);
    }
    close_all(served + 5, n_first - 5);
    int n_rest = take_answers(clients, again + 5, n_waiting - 5, 5000);
    assert_int_equal(n_rest, n_waiting - 5);
    close_all(again, n_waiting);
    close(commands);
    assert_int_equal(read(answers, &report, sizeof(report)), sizeof(report));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(answers);
    /* Spinning would take all of more than a second. */
    assert_true(report.cpu_us < 400000);
    assert_int_equal(report.n_logged, 1);
    assert_int_equal(report.n_bytes_left, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_acceptor_l53_f11_more_clients_than_descriptors_are_all_served_in_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
