/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Sockets that go from one server to another when not all goes well: who asks is nobody, is too
 * many, ends before it serves, speaks otherwise, is another user. Both servers live in this
 * process; what a bad one says is written by hand.
 */

#include "rpc/server/hand_over_frame.h"

#include <arpa/inet.h>
#include <bowline/context.h>
#include <bowline/server.h>
#include <bowline/system.h>
#include <bowline/transport_error.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char place[64];

static struct bow_server *new_server_of(struct bow_context *context, const char *listen,
                                        uint64_t lame_duck_ns)
{
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct bow_server *server = NULL;

    options.context = context;
    options.listen = listen;
    options.take_over = place;
    options.lame_duck_ns = lame_duck_ns;
    assert_int_equal(bow_server_new(&options, &server), 0);
    return server;
}

static struct bow_server *new_server(const char *listen, uint64_t lame_duck_ns)
{
    return new_server_of(NULL, listen, lame_duck_ns);
}

static struct bow_server *start_server(const char *listen, uint64_t lame_duck_ns)
{
    struct bow_server *server = new_server(listen, lame_duck_ns);

    if (bow_server_start(server) < 0) {
        fail_msg("%s", bow_server_error(server));
    }
    return server;
}

static void offer(struct bow_server *server)
{
    struct bow_transport_error error = {0};

    if (bow_server_hand_over(server, place, &error) < 0) {
        fail_msg("%s", error.text);
    }
}

static bool can_connect(uint16_t port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(fd >= 0);
    int rc = connect(fd, (struct sockaddr *)&in, sizeof(in));
    close(fd);
    return rc == 0;
}

/* A new process, by hand */

static socklen_t name_place(struct sockaddr_un *ret_un)
{
    const char *name = place + strlen("unix-abstract:");

    *ret_un = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(ret_un->sun_path + 1, name, strlen(name));
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
}

static int ask(void)
{
    struct sockaddr_un un;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    socklen_t len = name_place(&un);
    assert_int_equal(connect(fd, (struct sockaddr *)&un, len), 0);
    return fd;
}

static struct bow__hand_over_frame hear(int fd)
{
    struct bow__hand_over_reader reader;
    struct bow__hand_over_frame frame = {.fd = -1};

    bow__hand_over_reader_init(&reader);
    assert_int_equal(bow__hand_over_read(fd, &reader, &frame), 0);
    return frame;
}

/* Ask until the one before has been noticed to have ended, and have the one socket. */
static int take_when_free(int *ret_socket)
{
    struct bow__hand_over_frame frame = {.type = BOW__HAND_OVER_REFUSED};
    int fd = -1;

    while (frame.type == BOW__HAND_OVER_REFUSED) {
        if (fd >= 0) {
            close(fd);
        }
        fd = ask();
        /* Who is refused may not be heard any more. */
        const struct bow__hand_over_frame wish = {.type = BOW__HAND_OVER_TAKE, .fd = -1};
        (void)bow__hand_over_write(fd, &wish);
        frame = hear(fd);
    }
    assert_int_equal(frame.type, BOW__HAND_OVER_SOCKET);
    assert_true(frame.fd >= 0);
    assert_string_equal(frame.text, "127.0.0.1:0");
    *ret_socket = frame.fd;
    frame = hear(fd);
    assert_int_equal(frame.type, BOW__HAND_OVER_END);
    assert_int_equal(frame.number, 1);
    return fd;
}

/* Tests */

static void test_hand_over_taken_drains_without_a_lame_duck(void **state)
{
    (void)state;
    struct bow_server *old = start_server("127.0.0.1:0", UINT64_C(3600) * 1000000000u);
    uint16_t port = bow_server_port(old);

    offer(old);
    struct bow_server *next = start_server("127.0.0.1:0", 0);
    assert_int_equal(bow_server_port(next), port);
    assert_int_equal(bow_server_join(old), 0);
    bow_server_free(old);
    assert_true(can_connect(port));
    /* The place is free again. */
    offer(next);
    assert_int_equal(bow_server_hand_over(next, place, NULL), -EALREADY);
    bow_server_free(next);
    assert_false(can_connect(port));
}

static void test_hand_over_taker_that_ends_changes_nothing(void **state)
{
    (void)state;
    struct bow_server *old = start_server("127.0.0.1:0", 0);
    uint16_t port = bow_server_port(old);
    int taken = -1;

    offer(old);
    int fd = take_when_free(&taken);
    close(fd);
    close(taken);
    fd = take_when_free(&taken);
    close(fd);
    close(taken);
    assert_true(can_connect(port));
    bow_server_free(old);
    assert_false(can_connect(port));
}

/* The socket of who is about to take over stays as it is when the old one is told to stop. */
static void test_hand_over_stopped_meanwhile_spoils_no_socket(void **state)
{
    (void)state;
    struct bow_server *old = start_server("127.0.0.1:0", 0);
    uint16_t port = bow_server_port(old);
    int taken = -1;

    offer(old);
    int fd = take_when_free(&taken);
    bow_server_free(old);
    assert_true(can_connect(port));
    int accepted = accept(taken, NULL, NULL);
    assert_true(accepted >= 0);
    close(accepted);
    close(taken);
    close(fd);
}

static void test_hand_over_second_taker_is_refused(void **state)
{
    (void)state;
    struct bow_server *old = start_server("127.0.0.1:0", 0);
    struct bow_server *second = new_server("127.0.0.1:0", 0);
    int taken = -1;

    offer(old);
    int fd = take_when_free(&taken);
    assert_int_equal(bow_server_start(second), -EBUSY);
    assert_non_null(strstr(bow_server_error(second), "is taking over at this moment"));
    assert_non_null(strstr(bow_server_error(second), place));
    bow_server_free(second);
    close(fd);
    close(taken);
    bow_server_free(old);
}

static void test_hand_over_new_one_that_cannot_start_changes_nothing(void **state)
{
    (void)state;
    struct bow_server *old = start_server("127.0.0.1:0", 0);
    struct bow_server *other = start_server("127.0.0.1:0", 0);
    uint16_t port = bow_server_port(old);
    char listen[64];

    offer(old);
    snprintf(listen, sizeof(listen), "127.0.0.1:0,127.0.0.1:%u", bow_server_port(other));
    struct bow_server *next = new_server(listen, 0);
    assert_int_equal(bow_server_start(next), -EADDRINUSE);
    bow_server_free(next);
    bow_server_free(other);
    assert_true(can_connect(port));
    /* It would not drain of itself. */
    assert_int_equal(bow_server_hand_over(old, place, NULL), -EALREADY);
    bow_server_free(old);
}

static void test_hand_over_other_version_is_refused(void **state)
{
    (void)state;
    static const uint8_t take_2[BOW__HAND_OVER_HEADER_BYTES] = {'B', 'O', 'W',
                                                                'H', 2,   BOW__HAND_OVER_TAKE};
    struct bow_server *old = start_server("127.0.0.1:0", 0);

    offer(old);
    int fd = ask();
    assert_int_equal(send(fd, take_2, sizeof(take_2), MSG_NOSIGNAL), sizeof(take_2));
    struct bow__hand_over_frame frame = hear(fd);
    assert_int_equal(frame.type, BOW__HAND_OVER_REFUSED);
    assert_int_equal(frame.number, EPROTONOSUPPORT);
    assert_non_null(strstr(frame.text, "in versions 1 (the old one) and 2"));
    close(fd);
    bow_server_free(old);
}

static void test_hand_over_other_user_is_refused(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("not root: another user cannot be played\n");
        return;
    }
    struct bow_server *old = start_server("127.0.0.1:0", 0);
    int status = 0;

    offer(old);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int fd = setuid(65534) == 0 ? ask() : -1;
        struct bow__hand_over_frame frame = hear(fd);
        _exit(frame.type == BOW__HAND_OVER_REFUSED && frame.number == EPERM ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    bow_server_free(old);
}

/* An old process, by hand: it has no sockets, and hears too late that the new one serves. */

static void *be_late(void *user)
{
    const struct bow__hand_over_frame end = {.type = BOW__HAND_OVER_END, .fd = -1};
    const struct bow__hand_over_frame refused = {.type = BOW__HAND_OVER_REFUSED,
                                                 .number = ETIMEDOUT,
                                                 .text = "late",
                                                 .text_len = 4,
                                                 .fd = -1};
    const int *listening = user;
    int fd = accept(*listening, NULL, NULL);

    assert_true(fd >= 0);
    assert_int_equal(hear(fd).type, BOW__HAND_OVER_TAKE);
    assert_int_equal(bow__hand_over_write(fd, &end), 0);
    assert_int_equal(hear(fd).type, BOW__HAND_OVER_SERVING);
    assert_int_equal(bow__hand_over_write(fd, &refused), 0);
    close(fd);
    return NULL;
}

static int listen_at_place(void)
{
    struct sockaddr_un un;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    socklen_t len = name_place(&un);
    assert_int_equal(bind(fd, (struct sockaddr *)&un, len), 0);
    assert_int_equal(listen(fd, 1), 0);
    return fd;
}

static void count_stopping(struct bow_server *server, void *user)
{
    int *n_told = user;

    (void)server;
    ++*n_told;
}

static void test_hand_over_heard_of_too_late_fails_the_start(void **state)
{
    (void)state;
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct bow_server *server = NULL;
    int listening = listen_at_place();
    int n_told = 0;
    pthread_t thread;

    options.listen = "127.0.0.1:0";
    options.take_over = place;
    options.on_stopping = count_stopping;
    options.stopping_user = &n_told;
    assert_int_equal(bow_server_new(&options, &server), 0);
    assert_int_equal(pthread_create(&thread, NULL, be_late, &listening), 0);
    assert_int_equal(bow_server_start(server), -ETIMEDOUT);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_non_null(strstr(bow_server_error(server), "it refuses: late"));
    assert_int_equal(bow_server_join(server), 0);
    assert_int_equal(n_told, 1);
    bow_server_free(server);
    close(listening);
}

static void test_hand_over_refuses_what_is_no_place(void **state)
{
    (void)state;
    struct bow_server *server = new_server("127.0.0.1:0", 0);
    struct bow_transport_error error = {0};

    assert_int_equal(bow_server_hand_over(server, place, &error), -ESHUTDOWN);
    assert_int_equal(bow_server_start(server), 0); /* nobody offers anything */
    assert_int_equal(bow_server_hand_over(server, "127.0.0.1:1", &error), -EINVAL);
    assert_non_null(strstr(error.text, "unix:PATH"));
    assert_int_equal(bow_server_hand_over(server, NULL, &error), -EINVAL);
    bow_server_free(server);
}

/* A system whose first accept() finds no descriptor free. */
struct short_system {
    struct bow_system system;
    uint32_t n_accepts;
    uint64_t failed_ns;
    uint64_t again_ns; /* when it was tried next */
};

static int short_accept(void *user, int fd, struct bow_sockaddr *ret_address)
{
    struct short_system *is_short = user;
    uint64_t now = bow_system_default()->now_ns(NULL);

    is_short->n_accepts++;
    if (is_short->n_accepts == 1) {
        is_short->failed_ns = now;
        return -EMFILE;
    }
    if (is_short->n_accepts == 2) {
        is_short->again_ns = now;
    }
    return bow_system_default()->accept(NULL, fd, ret_address);
}

static void note_shortage(enum bow_log_level level, const char *line, void *user)
{
    int *n_told = user;

    (void)level;
    *n_told += strstr(line, "EMFILE") != NULL;
}

static void test_hand_over_out_of_descriptors_pauses(void **state)
{
    (void)state;
    struct short_system is_short = {.system = *bow_system_default()};
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_context *context = NULL;
    int n_told = 0;
    int taken = -1;

    is_short.system.user = &is_short;
    is_short.system.accept = short_accept;
    options.system = &is_short.system;
    options.log = note_shortage;
    options.log_user = &n_told;
    assert_int_equal(bow_context_new(&options, &context), 0);
    struct bow_server *old = new_server_of(context, "127.0.0.1:0", 0);
    assert_int_equal(bow_server_start(old), 0);
    offer(old);
    int fd = take_when_free(&taken);
    close(fd);
    close(taken);
    bow_server_free(old);
    bow_context_unref(context);
    assert_true(is_short.again_ns - is_short.failed_ns >= UINT64_C(90) * 1000000u);
    assert_int_equal(n_told, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hand_over_taken_drains_without_a_lame_duck),
        cmocka_unit_test(test_hand_over_taker_that_ends_changes_nothing),
        cmocka_unit_test(test_hand_over_stopped_meanwhile_spoils_no_socket),
        cmocka_unit_test(test_hand_over_second_taker_is_refused),
        cmocka_unit_test(test_hand_over_new_one_that_cannot_start_changes_nothing),
        cmocka_unit_test(test_hand_over_other_version_is_refused),
        cmocka_unit_test(test_hand_over_other_user_is_refused),
        cmocka_unit_test(test_hand_over_out_of_descriptors_pauses),
        cmocka_unit_test(test_hand_over_heard_of_too_late_fails_the_start),
        cmocka_unit_test(test_hand_over_refuses_what_is_no_place),
    };

    snprintf(place, sizeof(place), "unix-abstract:bowline-hand-over-unit-%d", (int)getpid());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
