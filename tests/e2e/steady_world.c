/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Calls that go on alike; see steady_world.h. */

#include "steady_world.h"
#include "rpc/core/compression/encodings.h"
#include "steady_count.h"

#include <bowline/call.h>
#include <bowline/call_stream.h>
#include <bowline/context.h>
#include <bowline/loop.h>
#include <bowline/server.h>
#include <bowline/stream.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define N_MESSAGES 2u /* of a stream */
/* Calls of a round, or so many bytes of them. */
#define N_CALLS 20u
#define CALLS_BYTES ((size_t)6 << 20)
/* How much is in use at once is by chance at times more than before, which is kept then. So rounds
 * come until one takes nothing; what calls take each time shows in all of them. */
#define N_ROUNDS 10u
/* What is waited for at once, where another thread has to do something. */
#define WAIT_NS (1 * LAB_MS)
#define TIMEOUT_NS (300000 * LAB_MS) /* of a call, on a machine that has much else to do */

static const char *const kind_names[STEADY_N_KINDS] = {
    "unary", "large request", "large reply", "client stream", "server stream", "bidi",
};

static const char *prefix = "";
static uint8_t *body;

void steady_choose(const char *chosen, size_t max_bytes)
{
    prefix = chosen;
    body = malloc(max_bytes);
    assert_non_null(body);
    for (size_t i = 0; i < max_bytes; i++) {
        body[i] = (uint8_t)(i / 64 * 31);
    }
}

/* Encodings: each side says what it takes, and the best is taken. */

static bool has_zstd = true;

uint32_t __wrap_bow__encodings_built(void);
uint32_t __real_bow__encodings_built(void);

uint32_t __wrap_bow__encodings_built(void)
{
    uint32_t built = __real_bow__encodings_built();

    return has_zstd ? built : built & ~(1u << BOW__ENCODING_ZSTD);
}

/* The clock */

static _Atomic uint64_t ahead_ns; /* of the system's */

static uint64_t tell_now(void *user)
{
    return bow_system_default()->now_ns(user) + atomic_load(&ahead_ns);
}

void steady_pass(struct steady_world *w, uint64_t ns)
{
    atomic_fetch_add(&ahead_ns, ns);
    steady_turn(w);
}

static size_t bytes_up(const struct steady_world *w)
{
    return w->kind == STEADY_UNARY_DOWN || w->kind == STEADY_STREAM_DOWN ? 1 : w->n_bytes;
}

static size_t bytes_down(const struct steady_world *w)
{
    return w->kind == STEADY_UNARY_UP || w->kind == STEADY_STREAM_UP ? 1 : w->n_bytes;
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
    struct steady_served *served = user;
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
    struct steady_served *served = user;

    served->n_owed += (unsigned)message->id;
    served->n_bytes = message->reply_bytes;
    send_owed(call, user);
}

static void on_half_close(struct lab__lab__chat__call call, void *user)
{
    struct steady_served *served = user;

    served->ended = true;
    send_owed(call, user);
}

static void on_served(struct lab__lab__chat__call call, const struct bow_status *status, void *user)
{
    struct steady_served *served = user;

    (void)call;
    (void)status;
    atomic_store(&served->is_used, false);
}

/* On any thread of the server's. */
static struct steady_served *take_served(struct steady_world *w)
{
    for (unsigned i = 0; i <= STEADY_MAX_IN_FLIGHT; i++) {
        if (!atomic_exchange(&w->served[i].is_used, true)) {
            return &w->served[i];
        }
    }
    fail_msg("more streams than were opened");
    return NULL;
}

static void chat(struct lab__lab__chat__call call, void *user)
{
    static const struct lab__lab__chat__call_events events = {
        .on_message = on_request,
        .on_half_close = on_half_close,
        .on_writable = send_owed,
        .on_closed = on_served,
    };
    struct steady_served *served = take_served(user);

    served->n_owed = 0;
    served->ended = false;
    assert_int_equal(lab__lab__chat__listen(call, &events, served), 0);
}

/* The client */

static void start_next(struct steady_called *called);

static void on_end(struct steady_called *called, const struct bow_result *result)
{
    if (result->status.code != BOW_OK) {
        fail_msg("%s", result->status.message);
    }
    called->world->n_running--;
    start_next(called);
}

static void on_reply(struct bow_result *result, const Lab__Blob *reply, void *user)
{
    struct steady_called *called = user;

    if (reply != NULL) {
        assert_int_equal(reply->body.len, bytes_down(called->world));
    }
    on_end(called, result);
}

static void say(struct lab__lab__chat__stream stream, void *user)
{
    struct steady_called *called = user;
    const struct steady_world *w = called->world;
    unsigned n_to_send = w->kind == STEADY_STREAM_DOWN ? 1 : N_MESSAGES;
    Lab__Blob message;

    if (called->n_sent > n_to_send) {
        return;
    }
    while (called->n_sent < n_to_send) {
        set_body(&message, bytes_up(w));
        message.id = N_MESSAGES / n_to_send;
        message.reply_bytes = bytes_down(w);
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
    struct steady_called *called = user;

    (void)stream;
    assert_int_equal(message->body.len, bytes_down(called->world));
}

static void on_closed(struct lab__lab__chat__stream stream, struct bow_result *result, void *user)
{
    bow_stream_unref(stream.stream);
    on_end(user, result);
}

static void open_stream(struct steady_called *called)
{
    static const struct lab__lab__chat__stream_events events = {
        .on_message = on_message,
        .on_writable = say,
        .on_closed = on_closed,
    };
    struct lab__lab__chat__stream stream;

    called->n_sent = 0;
    assert_int_equal(lab__lab__chat__open(called->client, NULL, &events, called, &stream), 0);
    say(stream, called);
}

static void start_next(struct steady_called *called)
{
    struct steady_world *w = called->world;
    Lab__Blob request;

    if (w->n_to_start == 0) {
        return;
    }
    w->n_to_start--;
    w->n_running++;
    if (w->kind >= STEADY_STREAM_UP) {
        open_stream(called);
        return;
    }
    set_body(&request, bytes_up(w));
    request.reply_bytes = bytes_down(w);
    assert_int_equal(lab__lab__echo__start(called->client, &request, NULL, on_reply, called, NULL),
                     0);
}

/* The world */

static void secure(struct steady_world *w, const struct certs *certs, int side)
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

static void begin_side(struct steady_world *w, const struct certs *certs, int side)
{
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;

    w->system[side] = *bow_system_default();
    w->system[side].now_ns = tell_now;
    context_options.system = &w->system[side];
    options.thread = BOW_LOOP_OWNER;
    assert_int_equal(bow_context_new(&context_options, &w->context[side]), 0);
    if (side == 1 || w->setting->n_workers == 0) {
        assert_int_equal(bow_loop_new(w->context[side], &options, &w->loop[side]), 0);
    }
    if (w->setting->link == STEADY_TLS) {
        secure(w, certs, side);
    }
}

static enum bow_compression compression_of(const struct steady_setting *setting)
{
    return setting->packing != STEADY_PLAIN ? BOW_COMPRESSION_AUTO : BOW_COMPRESSION_OFF;
}

static void begin_executor(struct steady_world *w)
{
    struct bow_executor_options options = BOW_EXECUTOR_OPTIONS_INIT;

    options.n_threads = 2;
    assert_int_equal(bow_executor_new(w->context[0], &options, &w->executor), 0);
}

static void begin_server(struct steady_world *w, const char *address)
{
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct lab__lab__handlers handlers = {.echo = echo, .chat = chat};
    const struct steady_setting *setting = w->setting;

    if (setting->is_on_executor) {
        begin_executor(w);
    }
    options.context = w->context[0];
    options.loop = w->loop[0];
    options.workers = setting->n_workers;
    options.handlers_on = w->executor;
    options.listen = address;
    options.grace_ns = 1;
    options.max_message_bytes = setting->max_message_bytes;
    options.compression = compression_of(setting);
    options.security = setting->link == STEADY_TLS ? bow_tls_security(w->tls[0]) : NULL;
    assert_int_equal(bow_server_new(&options, &w->server), 0);
    assert_int_equal(lab__lab__serve(w->server, &handlers, w), 0);
    if (bow_server_start(w->server) < 0) {
        fail_msg("%s", bow_server_error(w->server));
    }
}

static void begin_client(struct steady_world *w, const char *target)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    const struct steady_setting *setting = w->setting;

    options.context = w->context[1];
    options.loop = w->loop[1];
    options.target = target;
    options.default_timeout_ns = TIMEOUT_NS;
    options.max_message_bytes = setting->max_message_bytes;
    options.compression = compression_of(setting);
    options.security = setting->link == STEADY_TLS ? bow_tls_security(w->tls[1]) : NULL;
    options.server_name = setting->link == STEADY_TLS ? "server.test" : NULL;
    assert_int_equal(bow_client_new(&options, &w->clients[w->n_clients++]), 0);
}

void steady_begin(struct steady_world *w, const struct steady_setting *setting,
                  const struct certs *certs)
{
    char address[64] = "127.0.0.1:0";
    char target[80];

    memset(w, 0, sizeof(*w));
    w->setting = setting;
    has_zstd = setting->packing != STEADY_GZIP;
    begin_side(w, certs, 0);
    begin_side(w, certs, 1);
    if (setting->link == STEADY_UNIX) {
        snprintf(address, sizeof(address), "unix-abstract:bowline-steady-%d", (int)getpid());
    }
    begin_server(w, address);
    if (setting->link != STEADY_UNIX) {
        snprintf(address, sizeof(address), "127.0.0.1:%u", bow_server_port(w->server));
    }
    snprintf(target, sizeof(target), "%s%s", prefix, address);
    do {
        begin_client(w, target);
    } while (w->n_clients < setting->n_workers);
    for (unsigned i = 0; i < STEADY_MAX_IN_FLIGHT; i++) {
        w->called[i] = (struct steady_called){.world = w, .client = w->clients[i % w->n_clients]};
    }
}

/* Who is waited for may be on another thread. */
void steady_turn(struct steady_world *w)
{
    bool waits = w->setting->n_workers > 0 || w->setting->is_on_executor;

    assert_int_equal(bow_loop_run_once(w->loop[1], w->loop[0] == NULL ? WAIT_NS : 0), 0);
    if (w->loop[0] != NULL) {
        assert_int_equal(bow_loop_run_once(w->loop[0], waits ? WAIT_NS : 0), 0);
    }
}

void steady_end(struct steady_world *w)
{
    for (unsigned i = 0; i < w->n_clients; i++) {
        bow_client_free(w->clients[i]);
    }
    steady_turn(w);
    bow_server_stop(w->server);
    while (bow_server_join(w->server) != 0) {
        steady_turn(w);
    }
    bow_server_free(w->server);
    bow_executor_unref(w->executor);
    for (int side = 0; side < 2; side++) {
        bow_tls_context_unref(w->tls[side]);
        bow_loop_unref(w->loop[side]);
        assert_int_equal(bow_context_bytes(w->context[side]), 0);
        bow_context_unref(w->context[side]);
    }
}

void steady_run(struct steady_world *w, unsigned n_calls, unsigned n_in_flight)
{
    w->n_to_start = n_calls;
    for (unsigned i = 0; i < n_in_flight; i++) {
        start_next(&w->called[i]);
    }
    while (w->n_running > 0) {
        steady_turn(w);
    }
}

static unsigned calls_of_a_round(const struct steady_world *w)
{
    size_t n_fit = CALLS_BYTES / w->n_bytes;

    return n_fit >= N_CALLS ? N_CALLS : n_fit > 0 ? (unsigned)n_fit : 1;
}

unsigned steady_measure(struct steady_world *w, unsigned n_in_flight)
{
    unsigned n_calls = calls_of_a_round(w);
    struct steady_counts before;
    struct steady_counts taken;

    steady_run(w, n_in_flight * n_calls, n_in_flight);
    for (unsigned i = 0; i < N_ROUNDS; i++) {
        steady_count(&before);
        steady_run(w, n_calls, n_in_flight);
        steady_taken(&before, &taken);
        if (taken.n_faults + taken.n_mapping_calls == 0) {
            return 0;
        }
    }
    print_message("%s%s, %s, %zu bytes, %u in flight: the last %u calls took %lu minor faults, %lu "
                  "calls of mmap and its like\n",
                  prefix, w->setting->name, kind_names[w->kind], w->n_bytes, n_in_flight, n_calls,
                  taken.n_faults, taken.n_mapping_calls);
    return 1;
}
