/* SPDX-License-Identifier: 0BSD */
/* A page and the calls that it makes, from one port. A countdown is a timer in the memory of its
 * call, which ends when nobody listens any more. Usage: web-server [ADDRESS [ORIGINS]] */

#include "launch.bow.h"
#include "page.h"
#include <bowline/call_stream.h>
#include <bowline/server.h>
#include <bowline/timer.h>
#include <bowline/transport_error.h>
#include <errno.h>
#include <stdio.h>

#define NS_PER_MS 1000000ull
#define MAX_FROM 1000
#define MAX_INTERVAL_MS 10000

static void greet(struct bow_call *call, const Demo__GreetRequest *request, void *user)
{
    Demo__GreetReply reply = DEMO__GREET_REPLY__INIT;

    (void)user;
    if (request->name[0] == '\0') {
        bow_call_fail(call, BOW_INVALID_ARGUMENT, "nobody can be greeted without a name");
        return;
    }
    reply.message = bow_call_printf(call, "Hello, %s", request->name);
    demo__launch__greet__reply(call, &reply);
}

struct countdown {
    struct bow_timer timer;
    struct demo__launch__count_down__call call;
    uint64_t interval_ns;
    uint32_t left;
};

static void on_tick(struct bow_timer *timer, void *user)
{
    struct countdown *countdown = user;
    Demo__Tick tick = DEMO__TICK__INIT;

    tick.left = countdown->left;
    int rc = demo__launch__count_down__send(countdown->call, &tick);
    if (rc < 0 && rc != -EAGAIN) {
        bow_call_fail(countdown->call.call, BOW_RESOURCE_EXHAUSTED, "no memory for a number");
        return;
    }
    if (rc == 0 && countdown->left == 0) {
        demo__launch__count_down__finish(countdown->call);
        return;
    }
    /* -EAGAIN: it is read too slowly, and the same number comes later. */
    countdown->left -= rc == 0 ? 1 : 0;
    bow_timer_start(timer, countdown->interval_ns);
}

/* The last event, however the call ended: its memory, and the timer in it, go after this. */
static void on_closed(struct demo__launch__count_down__call call, const struct bow_status *status,
                      void *user)
{
    struct countdown *countdown = user;

    (void)call;
    bow_timer_stop(&countdown->timer);
    printf("a countdown ended before %u: %s\n", countdown->left, bow_code_name(status->code));
    fflush(stdout);
}

static void count_down(struct demo__launch__count_down__call call,
                       const Demo__CountDownRequest *request, void *user)
{
    static const struct demo__launch__count_down__call_events events = {.on_closed = on_closed};

    (void)user;
    if (request->from > MAX_FROM || request->interval_ms == 0 ||
        request->interval_ms > MAX_INTERVAL_MS) {
        bow_call_fail(call.call, BOW_OUT_OF_RANGE,
                      "a countdown is from at most %d, each number 1 to %d ms after the last",
                      MAX_FROM, MAX_INTERVAL_MS);
        return;
    }
    struct countdown *countdown = bow_call_alloc(call.call, sizeof(*countdown));
    if (countdown == NULL) {
        bow_call_fail(call.call, BOW_RESOURCE_EXHAUSTED, "no memory to count");
        return;
    }
    countdown->call = call;
    countdown->left = request->from;
    countdown->interval_ns = request->interval_ms * NS_PER_MS;
    bow_timer_init(&countdown->timer, bow_call_loop(call.call), on_tick, countdown);
    bow_timer_start(&countdown->timer, 0);
    demo__launch__count_down__listen(call, &events, countdown);
}

static void on_started(struct bow_server *server, void *user)
{
    (void)user;
    printf("listening on port %u\n", bow_server_port(server));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const struct demo__launch__handlers handlers = {.greet = greet, .count_down = count_down};
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct bow_transport_error error = {.text = ""};
    struct bow_server *server;

    options.listen = argc > 1 ? argv[1] : "127.0.0.1:8080";
    options.web_origins = argc > 2 ? argv[2] : NULL;
    options.protocols =
        BOW_PROTOCOL_NATIVE | BOW_PROTOCOL_GRPC | BOW_PROTOCOL_CONNECT | BOW_PROTOCOL_GRPC_WEB;
    options.web_page = (struct bow_slice){(const uint8_t *)web_page, web_page_bytes};
    options.web_page_policy = web_page_policy;
    options.on_started = on_started;
    options.error = &error;
    if (bow_server_new(&options, &server) != 0) {
        fprintf(stderr, "web-server: %s\n", error.text);
        return 1;
    }
    int rc = demo__launch__serve(server, &handlers, NULL);
    if (rc == 0) {
        rc = bow_server_run(server);
    }
    if (rc != 0) {
        fprintf(stderr, "web-server: %s\n", bow_server_error(server));
    }
    bow_server_free(server);
    return rc != 0;
}
