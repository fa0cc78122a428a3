/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Servers that do not play along, over both protocols: what a client's call comes to,
 * and how many connections it took. Each is a script: what is said at once, what after
 * the request was seen, and whether the connection is then closed.
 */

#include "hostile.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

struct script {
    const char *name;
    bool http2;
    void (*hello)(struct hostile_bytes *to); /* NULL: nothing */
    void (*answer)(struct hostile_bytes *to);
    void (*second)(struct hostile_bytes *to); /* on later connections; NULL: as the first */
    bool closes;
    size_t request_bytes;
    enum bow_code code;
    const char *text; /* a part of the status's */
    unsigned n_connections;
};

struct victim {
    const struct script *script;
    int listener;
    uint16_t port;
    pthread_t thread;
    atomic_uint n_connections;
};

/* The server */

/* Until the request's head has come, or the peer is gone. */
static void await_request(int fd)
{
    static const char path[] = "/lab.Lab/Echo";
    uint8_t bytes[4096];
    size_t n = 0;
    ssize_t more;

    /* HTTP/2 may have it Huffman-coded, but then its HEADERS are long. */
    while (n < sizeof(bytes) && (more = recv(fd, bytes + n, sizeof(bytes) - n, 0)) > 0) {
        n += (size_t)more;
        if (memmem(bytes, n, path, sizeof(path) - 1) != NULL ||
            memmem(bytes, n, "\x01\x04\x00\x00\x00\x01", 6) != NULL) {
            return;
        }
    }
}

static void say(int fd, void (*put)(struct hostile_bytes *to))
{
    static struct hostile_bytes bytes;

    bytes.n = 0;
    if (put != NULL) {
        put(&bytes);
        (void)!send(fd, bytes.data, bytes.n, MSG_NOSIGNAL);
    }
}

static void play(const struct script *script, int fd, bool is_first)
{
    char ignored[65536];

    say(fd, script->hello);
    await_request(fd);
    say(fd, is_first || script->second == NULL ? script->answer : script->second);
    if (script->closes && (is_first || script->second == NULL)) {
        shutdown(fd, SHUT_WR);
    }
    while (recv(fd, ignored, sizeof(ignored), 0) > 0) {
    }
    close(fd);
}

static void *serve(void *user)
{
    struct victim *server = user;
    int fd;

    while ((fd = accept(server->listener, NULL, NULL)) >= 0) {
        play(server->script, fd, atomic_fetch_add(&server->n_connections, 1) == 0);
    }
    return NULL;
}

/* Native answers */

static void put_status(struct hostile_bytes *to, uint64_t stream, const char *header, size_t n,
                       const char *message)
{
    size_t len = message != NULL ? strlen(message) : 0;

    hostile_native_header(to, (uint32_t)(1 + n + len), 4, message != NULL ? 9 : 1, stream);
    hostile_put_u8(to, (uint8_t)n);
    hostile_put(to, header, n);
    hostile_put(to, message, len);
}

static void native_ok(struct hostile_bytes *to)
{
    put_status(to, 1, "", 0, "\x08\x07");
}

static void native_two_statuses(struct hostile_bytes *to)
{
    native_ok(to);
    put_status(to, 1, "\x08\x0a", 2, NULL);
}

static void native_unknown_stream(struct hostile_bytes *to)
{
    put_status(to, 77, "", 0, "\x08\x07");
}

static void native_aborted(struct hostile_bytes *to)
{
    put_status(to, 1,
               "\x08\x0a\x12\x05"
               "early",
               9, NULL);
}

static void native_undecodable(struct hostile_bytes *to)
{
    put_status(to, 1, "", 0, "\x0a\xff\xff");
}

static void native_nothing(struct hostile_bytes *to)
{
    put_status(to, 1, "", 0, NULL);
}

static void native_unknown_code(struct hostile_bytes *to)
{
    put_status(to, 1, "\x08\x63\x12\x02hm", 6, NULL);
}

static void native_bad_block(struct hostile_bytes *to)
{
    put_status(to, 1, "\x12\x7f", 2, NULL);
}

static void native_goaway(struct hostile_bytes *to)
{
    hostile_native_header(to, 10, 8, 0, 0);
    hostile_put(to, "\x00\x00\x00\x00\x00\x00\x08\x0e\x12\x00", 10);
}

static void native_not_processed(struct hostile_bytes *to)
{
    put_status(to, 1, "\x08\x0e\x20\x01", 4, NULL);
}

static void native_low_settings(struct hostile_bytes *to)
{
    hostile_put(to, "\xb0OW\x01", 4);
    hostile_native_header(to, 3, 0, 0, 0);
    hostile_put(to, "\x08\x80\x08", 3);
}

static void native_claim(struct hostile_bytes *to)
{
    hostile_native_header(to, 0xffffffff, 3, 8, 1);
}

static void native_large_claim(struct hostile_bytes *to)
{
    hostile_native_header(to, 4, 3, 2 | 8, 1);
    hostile_put_u32(to, 0xffffffff);
}

static void native_request(struct hostile_bytes *to)
{
    hostile_native_request(to, 1, "/lab.Lab/Echo", "", 0);
}

static void native_two_messages(struct hostile_bytes *to)
{
    for (int i = 0; i < 2; i++) {
        hostile_native_header(to, 2, 3, 8, 1);
        hostile_put(to, "\x08\x07", 2);
    }
    native_nothing(to);
}

static void native_window_overflow(struct hostile_bytes *to)
{
    hostile_native_header(to, 4, 6, 0, 1);
    hostile_put_u32(to, 0x7fffffff);
}

/* HTTP/2 answers */

static void http2_hello(struct hostile_bytes *to)
{
    hostile_http2_header(to, 0, 4, 0, 0);
}

static void put_headers(struct hostile_bytes *to, uint8_t flags, const char *block, size_t n)
{
    hostile_http2_header(to, (uint32_t)n, 1, 4 | flags, 1);
    hostile_put(to, block, n);
}

#define OK_200                                                                                     \
    "\x88\x0f\x10\x10"                                                                             \
    "application/grpc"
#define STATUS_0                                                                                   \
    "\x00\x0b"                                                                                     \
    "grpc-status"                                                                                  \
    "\x01"                                                                                         \
    "0"

static void put_data(struct hostile_bytes *to, uint8_t flags, const char *bytes, size_t n)
{
    hostile_http2_header(to, (uint32_t)n, 0, flags, 1);
    hostile_put(to, bytes, n);
}

static void http2_ok(struct hostile_bytes *to)
{
    put_headers(to, 0, OK_200, sizeof(OK_200) - 1);
    put_data(to, 0, "\x00\x00\x00\x00\x02\x08\x07", 7);
    put_headers(to, 1, STATUS_0, sizeof(STATUS_0) - 1);
}

static void http2_no_status(struct hostile_bytes *to)
{
    put_headers(to, 0, OK_200, sizeof(OK_200) - 1);
    put_data(to, 1, "\x00\x00\x00\x00\x02\x08\x07", 7);
}

static void http2_no_message(struct hostile_bytes *to)
{
    put_headers(to, 1, OK_200 STATUS_0, sizeof(OK_200 STATUS_0) - 1);
}

static void http2_not_found(struct hostile_bytes *to)
{
    put_headers(to, 1, "\x8d", 1);
}

static void http2_undecodable(struct hostile_bytes *to)
{
    put_headers(to, 0, OK_200, sizeof(OK_200) - 1);
    put_data(to, 0, "\x00\x00\x00\x00\x03\x0a\xff\xff", 8);
    put_headers(to, 1, STATUS_0, sizeof(STATUS_0) - 1);
}

static void http2_cut_message(struct hostile_bytes *to)
{
    put_headers(to, 0, OK_200, sizeof(OK_200) - 1);
    put_data(to, 0, "\x00\x00\x00\x00\x09\x0a", 6);
    put_headers(to, 1, STATUS_0, sizeof(STATUS_0) - 1);
}

static void http2_large_claim(struct hostile_bytes *to)
{
    put_headers(to, 0, OK_200, sizeof(OK_200) - 1);
    put_data(to, 0, "\x00\xff\xff\xff\xff", 5);
}

static void put_reset(struct hostile_bytes *to, uint32_t error)
{
    hostile_http2_header(to, 4, 3, 0, 1);
    hostile_put_u32(to, error);
}

static void http2_refused(struct hostile_bytes *to)
{
    put_reset(to, 7);
}

static void http2_goaway(struct hostile_bytes *to)
{
    hostile_http2_header(to, 8, 7, 0, 0);
    hostile_put(to, "\x00\x00\x00\x00\x00\x00\x00\x00", 8);
}

static void http2_reset_after_headers(struct hostile_bytes *to)
{
    put_headers(to, 0, OK_200, sizeof(OK_200) - 1);
    put_reset(to, 0);
}

static void http2_reset_after_data(struct hostile_bytes *to)
{
    put_headers(to, 0, OK_200, sizeof(OK_200) - 1);
    put_data(to, 0, "\x00\x00\x00\x00\x02\x08\x07", 7);
    put_reset(to, 0);
}

static void http2_reset_amid_data(struct hostile_bytes *to)
{
    put_headers(to, 0, OK_200, sizeof(OK_200) - 1);
    put_data(to, 0, "\x00\x00\x00\x00\x02\x08", 6);
    put_reset(to, 0);
}

static void put_ping(struct hostile_bytes *to)
{
    hostile_http2_header(to, 8, 6, 0, 0);
    hostile_put(to, "pingpong", 8);
}

/* Wherever one may stand. */
static void http2_pings(struct hostile_bytes *to)
{
    put_ping(to);
    put_headers(to, 0, OK_200, sizeof(OK_200) - 1);
    put_ping(to);
    put_data(to, 0, "\x00\x00\x00\x00\x02\x08", 6);
    put_ping(to);
    put_data(to, 0, "\x07", 1);
    put_ping(to);
    put_headers(to, 1, STATUS_0, sizeof(STATUS_0) - 1);
}

static void http2_data_first(struct hostile_bytes *to)
{
    put_data(to, 0, "\x00\x00\x00\x00\x02\x08\x07", 7);
}

static void http2_garbage(struct hostile_bytes *to)
{
    put_headers(to, 0, "\xff\xff\xff\xff\xff\xff", 6);
}

static void http2_push(struct hostile_bytes *to)
{
    hostile_http2_header(to, 5, 5, 4, 1);
    hostile_put(to, "\x00\x00\x00\x02\x82", 5);
    http2_ok(to);
}

static void http2_unopened(struct hostile_bytes *to)
{
    hostile_http2_header(to, 1, 0, 0, 77);
    hostile_put_u8(to, 0);
}

#define NATIVE false, hostile_native_opening
#define HTTP2 true, http2_hello
#define SMALL 10
#define LARGE ((size_t)3 << 20)

static const struct script scripts[] = {
    {"never speaks", false, NULL, NULL, NULL, false, SMALL, BOW_DEADLINE_EXCEEDED, "", 1},
    {"closes at once", false, NULL, NULL, NULL, true, SMALL, BOW_UNAVAILABLE, "closed", 1},
    {"settings only", NATIVE, NULL, NULL, false, SMALL, BOW_DEADLINE_EXCEEDED, "", 1},
    {"settings, then closes", NATIVE, NULL, NULL, true, SMALL, BOW_UNAVAILABLE, "closed", 1},
    {"OK", NATIVE, native_ok, NULL, false, SMALL, BOW_OK, "", 1},
    {"two statuses", NATIVE, native_two_statuses, NULL, false, SMALL, BOW_OK, "", 1},
    {"a stream never opened", NATIVE, native_unknown_stream, NULL, false, SMALL, BOW_UNAVAILABLE,
     "77", 1},
    {"a status amid the request", NATIVE, native_aborted, NULL, false, LARGE, BOW_ABORTED, "early",
     1},
    {"OK amid the request", NATIVE, native_ok, NULL, false, LARGE, BOW_OK, "", 1},
    {"an undecodable reply", NATIVE, native_undecodable, NULL, false, SMALL, BOW_INTERNAL,
     "decoded", 1},
    {"OK and nothing", NATIVE, native_nothing, NULL, false, SMALL, BOW_INTERNAL, "no reply", 1},
    {"a code of the future", NATIVE, native_unknown_code, NULL, false, SMALL, BOW_UNKNOWN, "hm", 1},
    {"a header block that is none", NATIVE, native_bad_block, NULL, false, SMALL, BOW_UNAVAILABLE,
     "header block", 1},
    {"GOAWAY, retried", NATIVE, native_goaway, native_ok, true, SMALL, BOW_OK, "", 2},
    {"GOAWAY left open, retried", NATIVE, native_goaway, native_ok, false, SMALL, BOW_OK, "", 2},
    {"GOAWAY again and again", NATIVE, native_goaway, NULL, true, SMALL, BOW_UNAVAILABLE, "", 2},
    {"GOAWAY, too large to retry", NATIVE, native_goaway, native_ok, true, LARGE, BOW_UNAVAILABLE,
     "", 1},
    {"not processed, again and again", NATIVE, native_not_processed, NULL, true, SMALL,
     BOW_UNAVAILABLE, "", 0},
    {"lower settings", false, native_low_settings, NULL, NULL, false, SMALL, BOW_UNAVAILABLE,
     "max_frame_bytes", 1},
    {"a frame of 4 GiB", NATIVE, native_claim, NULL, false, SMALL, BOW_UNAVAILABLE, "4294967295",
     1},
    {"a reply of 4 GiB", NATIVE, native_large_claim, NULL, false, SMALL, BOW_RESOURCE_EXHAUSTED,
     "max_message_bytes", 1},
    {"a request", NATIVE, native_request, NULL, false, SMALL, BOW_UNAVAILABLE, "REQUEST", 1},
    {"two replies", NATIVE, native_two_messages, NULL, false, SMALL, BOW_INTERNAL, "second", 1},
    {"window overflow", NATIVE, native_window_overflow, NULL, false, SMALL, BOW_UNAVAILABLE,
     "credit", 1},
    {"HTTP/2: settings only", HTTP2, NULL, NULL, false, SMALL, BOW_DEADLINE_EXCEEDED, "", 1},
    {"HTTP/2: settings, then closes", HTTP2, NULL, NULL, true, SMALL, BOW_UNAVAILABLE, "", 1},
    {"HTTP/2: OK", HTTP2, http2_ok, NULL, false, SMALL, BOW_OK, "", 1},
    {"HTTP/2: OK amid the request", HTTP2, http2_ok, NULL, false, LARGE, BOW_OK, "", 1},
    {"HTTP/2: no status", HTTP2, http2_no_status, NULL, false, SMALL, BOW_UNKNOWN, "", 1},
    {"HTTP/2: no message", HTTP2, http2_no_message, NULL, false, SMALL, BOW_INTERNAL, "", 1},
    {"HTTP/2: 404", HTTP2, http2_not_found, NULL, false, SMALL, BOW_UNIMPLEMENTED, "404", 1},
    {"HTTP/2: an undecodable reply", HTTP2, http2_undecodable, NULL, false, SMALL, BOW_INTERNAL,
     "decoded", 1},
    {"HTTP/2: a message cut", HTTP2, http2_cut_message, NULL, false, SMALL, BOW_INTERNAL, "", 1},
    {"HTTP/2: a reply of 4 GiB", HTTP2, http2_large_claim, NULL, false, SMALL,
     BOW_RESOURCE_EXHAUSTED, "max_message_bytes", 1},
    {"HTTP/2: refused again and again", HTTP2, http2_refused, NULL, true, SMALL, BOW_UNAVAILABLE,
     "", 0},
    {"HTTP/2: GOAWAY, retried", HTTP2, http2_goaway, http2_ok, true, SMALL, BOW_OK, "", 2},
    {"HTTP/2: GOAWAY again and again", HTTP2, http2_goaway, NULL, true, SMALL, BOW_UNAVAILABLE, "",
     2},
    {"HTTP/2: reset after the headers", HTTP2, http2_reset_after_headers, NULL, false, SMALL,
     BOW_INTERNAL, "reset", 1},
    {"HTTP/2: reset after the reply", HTTP2, http2_reset_after_data, NULL, false, SMALL,
     BOW_INTERNAL, "reset", 1},
    {"HTTP/2: reset amid the reply", HTTP2, http2_reset_amid_data, NULL, false, SMALL, BOW_INTERNAL,
     "reset", 1},
    {"HTTP/2: PINGs between the frames", HTTP2, http2_pings, NULL, false, SMALL, BOW_OK, "", 1},
    {"HTTP/2: DATA first", HTTP2, http2_data_first, NULL, false, SMALL, BOW_UNAVAILABLE, "DATA", 1},
    {"HTTP/2: HPACK garbage", HTTP2, http2_garbage, NULL, false, SMALL, BOW_UNAVAILABLE, "", 1},
    {"HTTP/2: a push before the settings are acknowledged", HTTP2, http2_push, NULL, false, SMALL,
     BOW_OK, "", 1},
    {"HTTP/2: a stream never opened", HTTP2, http2_unopened, NULL, false, SMALL, BOW_UNAVAILABLE,
     "", 1},
};

static void start_server(struct victim *server, const struct script *script)
{
    *server = (struct victim){.script = script};
    server->listener = hostile_listen(&server->port);
    assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

static void stop_server(struct victim *server)
{
    shutdown(server->listener, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    close(server->listener);
}

static void check(const struct script *script, const struct bow_result *result,
                  const struct victim *server)
{
    unsigned n = atomic_load(&server->n_connections);

    print_message("%s: %s: %s (%u connections)\n", script->name, bow_code_name(result->status.code),
                  result->status.message, n);
    if (result->status.code != script->code ||
        strstr(result->status.message, script->text) == NULL) {
        fail_msg("%s: not %s with '%s'", script->name, bow_code_name(script->code), script->text);
    }
    if (script->n_connections != 0 && n != script->n_connections) {
        fail_msg("%s: not %u connections", script->name, script->n_connections);
    }
}

static void run(const struct script *script)
{
    static uint8_t body[LARGE];
    struct victim server;
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_context *context = NULL;
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_call_options call_options = BOW_CALL_OPTIONS_INIT;
    struct bow_result result = BOW_RESULT_INIT;
    struct bow_client *client = NULL;
    Lab__Blob request = LAB__BLOB__INIT;
    char target[64];

    start_server(&server, script);
    snprintf(target, sizeof(target), "%s127.0.0.1:%u", script->http2 ? "grpc:" : "", server.port);
    /* A claim of gigabytes would not fit. */
    context_options.max_bytes = (size_t)16 << 20;
    assert_int_equal(bow_context_new(&context_options, &context), 0);
    options.context = context;
    options.target = target;
    options.max_message_bytes = 1 << 20;
    assert_int_equal(bow_client_new(&options, &client), 0);
    call_options.timeout_ns = script->code == BOW_DEADLINE_EXCEEDED ? 100 * LAB_MS : 10000 * LAB_MS;
    request.body.data = body;
    request.body.len = script->request_bytes;
    uint64_t start = lab_now_ns();
    lab__lab__echo__call(client, &request, &call_options, &result);
    uint64_t ms = (lab_now_ns() - start) / LAB_MS;
    bow_client_free(client);
    check(script, &result, &server);
    if (ms > 5000) {
        fail_msg("%s: took %llu ms", script->name, (unsigned long long)ms);
    }
    bow_result_fini(&result);
    stop_server(&server);
    assert_int_equal(bow_context_bytes(context), 0);
    bow_context_unref(context);
}

static void test_hostile_server_is_told_apart(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        run(&scripts[i]);
    }
}

/* One listener, on the address that is tried second where localhost has two. */
static void test_hostile_server_whose_first_address_refuses_is_reached(void **state)
{
    struct lab lab;
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_client *client = NULL;
    char target[64];

    (void)state;
    lab_start(&lab, "");
    for (int http2 = 0; http2 < 2; http2++) {
        snprintf(target, sizeof(target), "%slocalhost:%u", http2 != 0 ? "grpc:" : "", lab.port);
        options.target = target;
        assert_int_equal(bow_client_new(&options, &client), 0);
        hostile_neighbour_works(client, target);
        bow_client_free(client);
    }
    lab_stop(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hostile_server_is_told_apart),
        cmocka_unit_test(test_hostile_server_whose_first_address_refuses_is_reached),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
