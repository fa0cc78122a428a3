/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One message to many compressed streams of a server: as one payload, and as a payload for each,
 * which is what it costs to compress it anew. Counted is the CPU time of the server's loop in
 * sending, to the session; what the sockets cost is the same. Usage: micro_fanout [grpc:]
 */

#include "echo.bow.h"
#include "micro.h"
#include <bowline/call_stream.h>
#include <bowline/client.h>
#include <bowline/loop.h>
#include <bowline/server.h>
#include <bowline/stream.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { N_STREAMS = 100, TEXT_BYTES = 64 << 10 };

struct fanout {
    struct bow_context *context;
    struct bench__fan__listen__call calls[N_STREAMS];
    int n_calls;
    struct bow_payload *payloads[N_STREAMS]; /* what each gets */
    struct bow_loop *loop;                   /* of the calls */
    atomic_int n_left;                       /* that have not got it */
    sem_t all;
    double took_ns;
};

static void note_one(struct fanout *fanout)
{
    if (atomic_fetch_sub(&fanout->n_left, 1) == 1) {
        sem_post(&fanout->all);
    }
}

static void await_all(struct fanout *fanout)
{
    while (sem_wait(&fanout->all) != 0) {
    }
}

/* The server keeps its calls. */

static void on_call_closed(struct bench__fan__listen__call call, const struct bow_status *status,
                           void *user)
{
    (void)call;
    (void)status;
    (void)user;
}

static void listen_to(struct bench__fan__listen__call call, const Bench__Text *request, void *user)
{
    static const struct bench__fan__listen__call_events events = {.on_closed = on_call_closed};
    struct fanout *fanout = user;

    (void)request;
    fanout->loop = bow_call_loop(call.call);
    fanout->calls[fanout->n_calls++] = call;
    if (bench__fan__listen__listen(call, &events, fanout) != 0) {
        micro_fail("listen", 0);
    }
    note_one(fanout);
}

/* The client counts. */

static void on_message(struct bench__fan__listen__stream stream, const Bench__Text *message,
                       void *user)
{
    (void)stream;
    if (strlen(message->text) != TEXT_BYTES) {
        micro_fail("another text", 0);
    }
    note_one(user);
}

static const struct bench__fan__listen__stream_events events = {.on_message = on_message};

/* A round */

static double cpu_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int send_to_all(void *user)
{
    struct fanout *fanout = user;
    double begin_ns = cpu_ns();

    for (int i = 0; i < N_STREAMS; i++) {
        int rc = bow_call_send_payload(fanout->calls[i].call, fanout->payloads[i]);
        if (rc != 0) {
            micro_fail("send", rc);
        }
    }
    fanout->took_ns = cpu_ns() - begin_ns;
    return 0;
}

/* Lines of a log, of which no two are the same. */
static void fill(char *text)
{
    uint64_t seed = 1;

    for (size_t n = 0; n < TEXT_BYTES;) {
        char line[80];
        int len = snprintf(
            line, sizeof(line), "{\"id\": %u, \"price\": %u.%02u, \"side\": \"%s\"}\n",
            (unsigned)micro_random(&seed, 1000000), (unsigned)micro_random(&seed, 900),
            (unsigned)micro_random(&seed, 100), micro_random(&seed, 2) == 0 ? "buy" : "sell");
        size_t room = TEXT_BYTES - n;
        size_t n_line = (size_t)len < room ? (size_t)len : room;
        memcpy(text + n, line, n_line);
        n += n_line;
    }
}

static double run(struct fanout *fanout, bool one_for_all)
{
    static char text[TEXT_BYTES + 1];
    Bench__Text message = BENCH__TEXT__INIT;

    fill(text);
    message.text = text;
    for (int i = 0; i < N_STREAMS; i++) {
        if (one_for_all && i > 0) {
            fanout->payloads[i] = bow_payload_ref(fanout->payloads[0]);
        } else if (bow_payload_new(fanout->context, &message.base, &fanout->payloads[i]) != 0) {
            micro_fail("no memory for a payload", 0);
        }
    }
    atomic_store(&fanout->n_left, N_STREAMS);
    int rc = bow_loop_execute(fanout->loop, "fan out", send_to_all, fanout);
    if (rc != 0) {
        micro_fail("bow_loop_execute", rc);
    }
    await_all(fanout);
    for (int i = 0; i < N_STREAMS; i++) {
        bow_payload_unref(fanout->payloads[i]);
    }
    return fanout->took_ns;
}

static double run_one(void *user)
{
    return run(user, true);
}

static double run_each(void *user)
{
    return run(user, false);
}

/* Both sides, in one process */

static struct bow_server *serve(struct fanout *fanout, enum bow_compression compression)
{
    static const struct bench__fan__handlers handlers = {.listen = listen_to};
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct bow_server *server = NULL;

    options.context = fanout->context;
    options.listen = "127.0.0.1:0";
    options.workers = 1;
    options.compression = compression;
    if (bow_server_new(&options, &server) != 0 ||
        bench__fan__serve(server, &handlers, fanout) != 0 || bow_server_start(server) != 0) {
        micro_fail("the server does not start", 0);
    }
    return server;
}

static struct bow_client *join(struct fanout *fanout, struct bow_loop *loop, unsigned port,
                               const char *scheme)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    Bench__Text request = BENCH__TEXT__INIT;
    struct bow_client *client = NULL;
    char target[64];

    snprintf(target, sizeof(target), "%s127.0.0.1:%u", scheme, port);
    options.context = fanout->context;
    options.target = target;
    options.loop = loop;
    if (bow_client_new(&options, &client) != 0) {
        micro_fail("bow_client_new", 0);
    }
    for (int i = 0; i < N_STREAMS; i++) {
        int rc = bench__fan__listen__open(client, &request, NULL, &events, fanout, NULL);
        if (rc != 0) {
            micro_fail("open", rc);
        }
    }
    await_all(fanout);
    return client;
}

static void measure(const char *scheme, enum bow_compression compression)
{
    struct fanout fanout = {.n_left = N_STREAMS};
    struct bow_loop *loop = NULL;
    const char *how = compression == BOW_COMPRESSION_AUTO ? "compressed" : "plain";
    char name[96];

    if (bow_context_new(NULL, &fanout.context) != 0 ||
        bow_loop_new(fanout.context, NULL, &loop) != 0 || sem_init(&fanout.all, 0, 0) != 0) {
        micro_fail("bow_loop_new", 0);
    }
    struct bow_server *server = serve(&fanout, compression);
    struct bow_client *client = join(&fanout, loop, bow_server_port(server), scheme);
    snprintf(name, sizeof(name), "64 KiB to 100 streams, %s, a payload each", how);
    micro_run(name, run_each, &fanout);
    snprintf(name, sizeof(name), "64 KiB to 100 streams, %s, one payload", how);
    micro_run(name, run_one, &fanout);
    bow_client_free(client);
    bow_server_free(server);
    bow_loop_unref(loop);
    bow_context_unref(fanout.context);
    sem_destroy(&fanout.all);
}

int main(int argc, char **argv)
{
    const char *scheme = argc > 1 ? argv[1] : "";

    measure(scheme, BOW_COMPRESSION_OFF);
    measure(scheme, BOW_COMPRESSION_AUTO);
    return 0;
}
