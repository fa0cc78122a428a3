/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What bad input gets, on real sockets: an answer that names what was wrong, a counter, and a
 * server that goes on serving its other connections; and a client that says what it met when
 * the other end is no Bowline server.
 */

#include "lab.h"
#include <arpa/inet.h>
#include <bowline/metrics.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define PREFACE "\xb0OW\x01"
#define SETTINGS "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"

struct bad_input {
    const char *name;
    const char *bytes;
    size_t n_bytes;
    size_t counter;     /* offset in struct bow_metrics of what must have grown */
    const char *answer; /* a part of what the server sends before it closes */
};

#define BYTES(text) (text), sizeof(text) - 1
#define COUNTER(field) offsetof(struct bow_metrics, field)

static const struct bad_input bad_inputs[] = {
    {"garbage", BYTES("hello there"), COUNTER(bad_prefaces), ""},
    {"HTTP/1.1", BYTES("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), COUNTER(bad_prefaces), "HTTP/1.1 400"},
    {"TLS", BYTES("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), COUNTER(bad_prefaces), ""},
    {"native, unknown version", BYTES("\xb0OW\x7f"), COUNTER(protocol_errors), PREFACE},
    {"native, a frame that claims 4 GiB - 1",
     BYTES(PREFACE SETTINGS "\xff\xff\xff\xff\x01\x01\x00\x00\x00\x00\x00\x01"),
     COUNTER(protocol_errors), "4294967295"},
    {"native, an unknown type that must be understood",
     BYTES(PREFACE SETTINGS "\x00\x00\x00\x00\x63\x00\x00\x00\x00\x00\x00\x01"),
     COUNTER(protocol_errors), "type 99"},
    {"native, a first frame that is not SETTINGS",
     BYTES(PREFACE "\x00\x00\x00\x08\x07\x00\x00\x00\x00\x00\x00\x00"
                   "12345678"),
     COUNTER(protocol_errors), "SETTINGS"},
    {"native, a request header that does not parse",
     BYTES(PREFACE SETTINGS "\x00\x00\x00\x05\x01\x01\x00\x00\x00\x00\x00\x01\x04\xff\xff\xff\xff"),
     COUNTER(protocol_errors), "header"},
    {"HTTP/2, garbage after the preface",
     BYTES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nthis is no frame at all, but it is long enough"),
     COUNTER(protocol_errors), ""},
};

static int connect_to(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval limit = {.tv_sec = 10};
    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* What the peer sends until it closes. */
static size_t read_all(int fd, char *bytes, size_t size)
{
    size_t all = 0;
    ssize_t n;
    while (all < size && (n = recv(fd, bytes + all, size - all, 0)) > 0) {
        all += (size_t)n;
    }
    return all;
}

static uint64_t counter(const struct lab *lab, size_t offset)
{
    struct bow_metrics metrics = BOW_METRICS_INIT;
    uint64_t value;
    assert_int_equal(bow_server_metrics(lab->server, &metrics), 0);
    memcpy(&value, (const char *)&metrics + offset, sizeof(value));
    return value;
}

static void wait_counter(const struct lab *lab, size_t offset, uint64_t above, const char *name)
{
    uint64_t end = lab_now_ns() + 5000 * LAB_MS;
    while (counter(lab, offset) <= above) {
        if (lab_now_ns() > end) {
            fail_msg("%s: the counter did not grow", name);
        }
        sched_yield();
    }
}

static void echo_works(struct bow_client *client)
{
    struct bow_result result = BOW_RESULT_INIT;
    Lab__Blob request = LAB__BLOB__INIT;
    request.id = 7;
    const Lab__Blob *reply = lab__lab__echo__call(client, &request, NULL, &result);
    if (reply == NULL) {
        fail_msg("the good neighbour was hurt: %s", result.status.message);
    }
    assert_int_equal(reply->id, 7);
    bow_result_fini(&result);
}

static void test_bad_input_is_answered_counted_and_hurts_nobody(void **state)
{
    struct lab lab;
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_client *neighbour;
    static char answer[65536];
    (void)state;
    lab_start(&lab, "");
    options.target = lab.target;
    assert_int_equal(bow_client_new(&options, &neighbour), 0);
    echo_works(neighbour);
    for (size_t i = 0; i < sizeof(bad_inputs) / sizeof(bad_inputs[0]); i++) {
        const struct bad_input *bad = &bad_inputs[i];
        uint64_t before = counter(&lab, bad->counter);
        int fd = connect_to(lab.port);
        assert_int_equal(send(fd, bad->bytes, bad->n_bytes, MSG_NOSIGNAL), (ssize_t)bad->n_bytes);
        size_t n = read_all(fd, answer, sizeof(answer));
        close(fd);
        if (memmem(answer, n, bad->answer, strlen(bad->answer)) == NULL) {
            fail_msg("%s: the answer of %zu bytes does not say '%s'", bad->name, n, bad->answer);
        }
        wait_counter(&lab, bad->counter, before, bad->name);
        echo_works(neighbour);
    }
    bow_client_free(neighbour);
    lab_stop(&lab);
}

static void test_bad_input_truncated_anywhere_hurts_nobody(void **state)
{
    struct lab lab;
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_client *neighbour;
    static const char whole[] = PREFACE SETTINGS "\x00\x00\x00\x10\x01\x09\x00\x00\x00\x00\x00\x01"
                                                 "\x0f\x0a\x0d/lab.Lab/Echo";
    (void)state;
    lab_start(&lab, "");
    options.target = lab.target;
    assert_int_equal(bow_client_new(&options, &neighbour), 0);
    for (size_t n = 0; n < sizeof(whole); n++) {
        int fd = connect_to(lab.port);
        assert_int_equal(send(fd, whole, n, MSG_NOSIGNAL), (ssize_t)n);
        close(fd);
        echo_works(neighbour);
    }
    bow_client_free(neighbour);
    lab_stop(&lab);
}

/* Another protocol's server: accepts once, says `words`, closes after the client did or at once. */
struct stranger {
    int listener;
    uint16_t port;
    const char *words;
    pthread_t thread;
};

static void *run_stranger(void *user)
{
    struct stranger *stranger = user;
    int fd;
    while ((fd = accept(stranger->listener, NULL, NULL)) >= 0) {
        (void)send(fd, stranger->words, strlen(stranger->words), MSG_NOSIGNAL);
        shutdown(fd, SHUT_WR);
        char ignored[4096];
        while (recv(fd, ignored, sizeof(ignored), 0) > 0) {
        }
        close(fd);
    }
    return NULL;
}

static void stranger_start(struct stranger *stranger, const char *words)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    stranger->words = words;
    stranger->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(stranger->listener, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(stranger->listener, 16), 0);
    assert_int_equal(getsockname(stranger->listener, (struct sockaddr *)&address, &len), 0);
    stranger->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&stranger->thread, NULL, run_stranger, stranger), 0);
}

static void stranger_stop(struct stranger *stranger)
{
    shutdown(stranger->listener, SHUT_RDWR);
    pthread_join(stranger->thread, NULL);
    close(stranger->listener);
}

static void client_meets(const char *prefix, const char *words, const char *expected)
{
    struct stranger stranger;
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_call_options call_options = BOW_CALL_OPTIONS_INIT;
    struct bow_result result = BOW_RESULT_INIT;
    struct bow_client *client;
    Lab__Blob request = LAB__BLOB__INIT;
    char target[64];
    stranger_start(&stranger, words);
    snprintf(target, sizeof(target), "%s127.0.0.1:%u", prefix, stranger.port);
    options.target = target;
    call_options.timeout_ns = 5000 * LAB_MS;
    assert_int_equal(bow_client_new(&options, &client), 0);
    assert_null(lab__lab__echo__call(client, &request, &call_options, &result));
    print_message("%s\n", result.status.message);
    assert_int_equal(result.status.code, BOW_UNAVAILABLE);
    if (strstr(result.status.message, expected) == NULL) {
        fail_msg("'%s' does not say '%s'", result.status.message, expected);
    }
    bow_result_fini(&result);
    bow_client_free(client);
    stranger_stop(&stranger);
}

static void test_bad_input_client_names_what_answered(void **state)
{
    (void)state;
    client_meets("", "SSH-2.0-OpenSSH_9.2p1\r\n", "SSH-2.0");
    client_meets("", "HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP/1.1 400");
    client_meets("grpc:", "SSH-2.0-OpenSSH_9.2p1\r\n", "127.0.0.1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_input_is_answered_counted_and_hurts_nobody),
        cmocka_unit_test(test_bad_input_truncated_anywhere_hurts_nobody),
        cmocka_unit_test(test_bad_input_client_names_what_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
