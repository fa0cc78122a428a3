/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Requests of HTTP/1.1 at a whole server that never come to their end, a byte or a chunk at a time:
 * their calls end by max_deadline_ns, though each byte is life for the connection.
 */

#include "call_fixture.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define HEAD                                                                                       \
    "POST /calls.Echo/Say HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"

static void start(struct calls *t)
{
    struct bow_server_options options;

    calls_server_options(t, &options);
    options.protocols = BOW_PROTOCOL_CONNECT;
    options.max_deadline_ns = 50 * MS;
    t->server = calls_start_server(t, &options);
}

static void send_text(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* One `more` after the other until there is an answer; a moment between only so that it is few. */
static void drip_until_answered(struct calls *t, const char *head, const char *more)
{
    char answer[4096] = "";

    int fd = calls_raw_connect(t);
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    send_text(fd, head);
    while (poll(&readable, 1, 5) == 0) {
        send_text(fd, more);
    }
    assert_true(recv(fd, answer, sizeof(answer) - 1, 0) > 0);
    assert_memory_equal(answer, "HTTP/1.1 504", 12);
    assert_non_null(strstr(answer, "deadline_exceeded"));
    if (strstr(answer, "max_deadline_ns") == NULL) {
        fail_msg("%s does not name the limit", answer);
    }
    close(fd);
}

static void test_web_slow_body_ends_by_the_servers_deadline(void **state)
{
    struct calls *t = *state;

    start(t);
    drip_until_answered(t, HEAD "Content-Length: 200000\r\n\r\n{", " ");
    drip_until_answered(t, HEAD "Transfer-Encoding: chunked\r\n\r\n", "1\r\n \r\n");
    drip_until_answered(t, HEAD "Transfer-Encoding: chunked\r\n\r\n0\r\nA: ", "b");
    assert_int_equal(t->n_said, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_web_slow_body_ends_by_the_servers_deadline,
                                        calls_setup_bare, calls_teardown),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
