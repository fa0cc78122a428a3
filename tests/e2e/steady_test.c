/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls that go on alike take no memory from the system: neither fresh pages nor mappings, at any
 * size, on either side. Both sides are loops of one thread, which the test drives; what is counted
 * is exact.
 *
 *     steady_test PROTOCOL
 */

#include "lab.h"
#include "steady_count.h"
#include "tests/tls/certs.h"

#include <bowline/call.h>
#include <bowline/call_stream.h>
#include <bowline/client.h>
#include <bowline/context.h>
#include <bowline/loop.h>
#include <bowline/server.h>
#include <bowline/stream.h>
#include <bowline/tls.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MAX_IN_FLIGHT 4u
#define MAX_BYTES ((size_t)3 << 20)
#define N_MESSAGES 2u /* of a stream */
/* Calls of a round, or so many bytes of them. */
#define N_CALLS 40u
#define CALLS_BYTES ((size_t)12 << 20)
/* How much is in use at once is by chance at times more than before, which is kept then. So rounds
 * come until one takes nothing; what calls take each time shows in all of them. */
#define N_ROUNDS 10u

enum kind { UNARY, UNARY_UP, UNARY_DOWN, STREAM_UP, STREAM_DOWN, STREAM_BOTH, N_KINDS };

static const char *const kind_names[N_KINDS] = {
    "unary", "large request", "large reply", "client stream", "server stream", "bidi",
};

enum link { TCP, UNIX, TLS, N_LINKS };

static const char *const link_names[N_LINKS] = {"tcp", "unix", "tls"};

static const char *prefix = "";

/* What a handler is still to send. */
struct served {
    bool used;
    bool ended;
    unsigned n_owed;
    size_t n_bytes;
};

struct called {
    struct bow_stream *stream;
    unsigned n_sent;
};

struct world {
    struct bow_context *context[2]; /* of the server, of the client */
    struct bow_loop *loop[2];
    struct bow_tls_context *tls[2];
    struct bow_server *server;
    struct bow_client *client;
    struct served served[MAX_IN_FLIGHT + 1];
    struct called called[MAX_IN_FLIGHT];
    enum kind kind;
    size_t n_bytes;
    unsigned n_to_start;
    unsigned n_running;
};

static uint8_t body[MAX_BYTES];

static size_t bytes_up(const struct world *w)
{
    return w->kind == UNARY_DOWN || w->kind == STREAM_DOWN ? 1 : w->n_bytes;
}

static size_t bytes_down(const struct world *w)
{
    return w->kind == UNARY_UP || w->kind == STREAM_UP ? 1 : w->n_bytes;
}

static void set_body(Lab__Blob *message, size_t n)
{
    lab__blob__init(message);
    message->body.data = body;
    message->body.len = n;
}

/* The server */

static void echo(struct bow_call *call, const Lab__Blob *request, void *user)
{
    Lab__Blob reply;

    assert_int_equal(request->body.len, bytes_up(user));
    set_body(&reply, request->reply_bytes);
    assert_int_equal(lab__lab__echo__reply(call, &reply), 0);
}

static void send_owed(struct lab__lab__chat__call call, void *user)
{
    struct served *served = user;
    Lab__Blob reply;

    while (served->n_owed > 0) {
        set_body(&reply, served->n_bytes);
        if (lab__lab__chat__send(call, &reply) != 0) {
            return;
        }
        served->n_owed--;
    }
    if (served->ended) {
        served->ended = false;
        assert_int_equal(lab__lab__chat__finish(call), 0);
    }
}

static void on_request(struct lab__lab__chat__call call, const Lab__Blob *message, void *user)
{
    struct served *served = user;

    served->n_owed += (unsigned)message->id;
    served->n_bytes = message->reply_bytes;
    send_owed(call, user);
}

static void on_half_close(struct lab__lab__chat__call call, void *user)
{
    struct served *served = user;

    served->ended = true;
    send_owed(call, user);
}

static void on_served(struct lab__lab__chat__call call, const struct bow_status *status, void *user)
{
    struct served *served = user;

    (void)call;
    (void)status;
    served->used = false;
}

static void chat(struct lab__lab__chat__call call, void *user)
{
    static const struct lab__lab__chat__call_events events = {
        .on_message = on_request,
        .on_half_close = on_half_close,
        .on_writable = send_owed,
        .on_closed = on_served,
    };
    struct world *w = user;
    struct served *served = w->served;

    while (served->used) {
        served++;
        assert_true(served < w->served + MAX_IN_FLIGHT + 1);
    }
    *served = (struct served){.used = true};
    assert_int_equal(lab__lab__chat__listen(call, &events, served), 0);
}

/* The client */

static struct world *the_world;

static void start_next(struct called *called);

static void on_end(struct called *called, const struct bow_result *result)
{
    if (result->status.code != BOW_OK) {
        fail_msg("%s", result->status.message);
    }
    the_world->n_running--;
    start_next(called);
}

static void on_reply(struct bow_result *result, const Lab__Blob *reply, void *user)
{
    if (reply != NULL) {
        assert_int_equal(reply->body.len, bytes_down(the_world));
    }
    on_end(user, result);
}

static void say(struct lab__lab__chat__stream stream, void *user)
{
    struct called *called = user;
    unsigned n_to_send = the_world->kind == STREAM_DOWN ? 1 : N_MESSAGES;
    Lab__Blob message;

    if (called->n_sent > n_to_send) {
        return;
    }
    while (called->n_sent < n_to_send) {
        set_body(&message, bytes_up(the_world));
        message.id = N_MESSAGES / n_to_send;
        message.reply_bytes = bytes_down(the_world);
        if (lab__lab__chat__stream_send(stream, &message) != 0) {
            return;
        }
        called->n_sent++;
    }
    called->n_sent++;
    assert_int_equal(bow_stream_half_close(stream.stream), 0);
}

static void on_message(struct lab__lab__chat__stream stream, const Lab__Blob *message, void *user)
{
    (void)stream;
    (void)user;
    assert_int_equal(message->body.len, bytes_down(the_world));
}

static void on_closed(struct lab__lab__chat__stream stream, struct bow_result *result, void *user)
{
    bow_stream_unref(stream.stream);
    on_end(user, result);
}

static void open_stream(struct called *called)
{
    static const struct lab__lab__chat__stream_events events = {
        .on_message = on_message,
        .on_writable = say,
        .on_closed = on_closed,
    };
    struct lab__lab__chat__stream stream;

    called->n_sent = 0;
    assert_int_equal(lab__lab__chat__open(the_world->client, NULL, &events, called, &stream), 0);
    say(stream, called);
}

static void start_next(struct called *called)
{
    struct world *w = the_world;
    Lab__Blob request;

    if (w->n_to_start == 0) {
        return;
    }
    w->n_to_start--;
    w->n_running++;
    if (w->kind >= STREAM_UP) {
        open_stream(called);
        return;
    }
    set_body(&request, bytes_up(w));
    request.reply_bytes = bytes_down(w);
    assert_int_equal(lab__lab__echo__start(w->client, &request, NULL, on_reply, called, NULL), 0);
}

/* The world */

static void secure(struct world *w, const struct certs *certs, int side)
{
    struct bow_tls_context_options options = BOW_TLS_CONTEXT_OPTIONS_INIT;
    struct bow_tls_error error;
    char certificate[128];
    char key[128];
    char ca[128];

    options.side = side == 0 ? BOW_TLS_SERVER : BOW_TLS_CLIENT;
    if (side == 0) {
        options.certificate.certificate_file =
            certs_path(certs, "server.pem", certificate, sizeof(certificate));
        options.certificate.key_file = certs_path(certs, "server.key", key, sizeof(key));
    } else {
        options.ca_file = certs_path(certs, "ca.pem", ca, sizeof(ca));
    }
    if (bow_tls_context_new(w->context[side], &options, &w->tls[side], &error) < 0) {
        fail_msg("%s", error.text);
    }
}

static void begin_side(struct world *w, enum link link, const struct certs *certs, int side)
{
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;

    options.thread = BOW_LOOP_OWNER;
    assert_int_equal(bow_context_new(NULL, &w->context[side]), 0);
    assert_int_equal(bow_loop_new(w->context[side], &options, &w->loop[side]), 0);
    if (link == TLS) {
        secure(w, certs, side);
    }
}

static void begin(struct world *w, enum link link, bool is_packed, const struct certs *certs)
{
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct bow_client_options client_options = BOW_CLIENT_OPTIONS_INIT;
    struct lab__lab__handlers handlers = {.echo = echo, .chat = chat};
    char address[64] = "127.0.0.1:0";
    char target[80];

    *w = (struct world){.n_running = 0};
    the_world = w;
    begin_side(w, link, certs, 0);
    begin_side(w, link, certs, 1);
    if (link == UNIX) {
        snprintf(address, sizeof(address), "unix-abstract:bowline-steady-%d", (int)getpid());
    }
    options.context = w->context[0];
    options.loop = w->loop[0];
    options.listen = address;
    options.grace_ns = 1;
    options.compression = is_packed ? BOW_COMPRESSION_AUTO : BOW_COMPRESSION_OFF;
    options.security = link == TLS ? bow_tls_security(w->tls[0]) : NULL;
    assert_int_equal(bow_server_new(&options, &w->server), 0);
    assert_int_equal(lab__lab__serve(w->server, &handlers, w), 0);
    if (bow_server_start(w->server) < 0) {
        fail_msg("%s", bow_server_error(w->server));
    }
    if (link != UNIX) {
        snprintf(address, sizeof(address), "127.0.0.1:%u", bow_server_port(w->server));
    }
    snprintf(target, sizeof(target), "%s%s", prefix, address);
    client_options.context = w->context[1];
    client_options.loop = w->loop[1];
    client_options.target = target;
    client_options.compression = options.compression;
    client_options.security = link == TLS ? bow_tls_security(w->tls[1]) : NULL;
    client_options.server_name = link == TLS ? "server.test" : NULL;
    assert_int_equal(bow_client_new(&client_options, &w->client), 0);
}

static void turn(struct world *w)
{
    assert_int_equal(bow_loop_run_once(w->loop[1], 0), 0);
    assert_int_equal(bow_loop_run_once(w->loop[0], 0), 0);
}

static void end(struct world *w)
{
    bow_client_free(w->client);
    turn(w);
    bow_server_stop(w->server);
    while (bow_server_join(w->server) != 0) {
        turn(w);
    }
    bow_server_free(w->server);
    for (int side = 0; side < 2; side++) {
        bow_tls_context_unref(w->tls[side]);
        bow_loop_unref(w->loop[side]);
        assert_int_equal(bow_context_bytes(w->context[side]), 0);
        bow_context_unref(w->context[side]);
    }
}

static void run(struct world *w, unsigned n_calls, unsigned n_in_flight)
{
    w->n_to_start = n_calls;
    for (unsigned i = 0; i < n_in_flight; i++) {
        start_next(&w->called[i]);
    }
    while (w->n_running > 0) {
        turn(w);
    }
}

static unsigned measure(struct world *w, const char *name, unsigned n_in_flight)
{
    size_t n_fit = CALLS_BYTES / w->n_bytes;
    unsigned n_calls = n_fit < N_CALLS ? (unsigned)n_fit : N_CALLS;
    struct steady_counts before;
    struct steady_counts taken;

    run(w, n_in_flight * n_calls, n_in_flight);
    for (unsigned i = 0; i < N_ROUNDS; i++) {
        steady_count(&before);
        run(w, n_calls, n_in_flight);
        steady_taken(&before, &taken);
        if (taken.n_faults + taken.n_mapping_calls == 0) {
            return 0;
        }
    }
    print_message("%s%s, %s, %zu bytes, %u in flight: the last %u calls took %lu minor faults, %lu "
                  "calls of mmap and its like\n",
                  prefix, name, kind_names[w->kind], w->n_bytes, n_in_flight, n_calls,
                  taken.n_faults, taken.n_mapping_calls);
    return 1;
}

/* Each size has a world of its own, in which nothing of the others' waits and is given back. */
static unsigned measure_all(enum link link, bool is_packed, const struct certs *certs)
{
    static const size_t sizes[] = {32, 1 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, MAX_BYTES};
    static struct world w;
    unsigned n_wrong = 0;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        begin(&w, link, is_packed, certs);
        w.n_bytes = sizes[i];
        for (unsigned kind = 0; kind < N_KINDS; kind++) {
            w.kind = kind;
            n_wrong += measure(&w, is_packed ? "packed" : link_names[link], 1);
            n_wrong += measure(&w, is_packed ? "packed" : link_names[link], MAX_IN_FLIGHT);
        }
        end(&w);
    }
    return n_wrong;
}

static void test_steady_f68_calls_take_no_memory(void **state)
{
    struct certs certs;
    unsigned n_wrong = 0;

    (void)state;
    if (lab_is_instrumented()) {
        print_message("a sanitizer's own memory would be counted\n");
        skip();
    }
    certs_make(&certs);
    for (unsigned link = 0; link < N_LINKS; link++) {
        n_wrong += measure_all(link, false, &certs);
    }
    n_wrong += measure_all(TCP, true, &certs);
    certs_remove(&certs);
    assert_int_equal(n_wrong, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steady_f68_calls_take_no_memory),
    };

    if (argc > 1 && strcmp(argv[1], "grpc") == 0) {
        prefix = "grpc:";
    }
    for (size_t i = 0; i < sizeof(body); i++) {
        body[i] = (uint8_t)(i / 64 * 31);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
