/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Serves Echo for peers.py. Prints its port; when SIGTERM has drained it, what it counted.
 * Usage: echo_server [-c MAX_CALLS] [-a MAX_AGE_MS] [-d DELAY_MS] ADDRESS
 */

#include "echo.bow.h"
#include <bowline/call.h>
#include <bowline/loop.h>
#include <bowline/metrics.h>
#include <bowline/server.h>
#include <bowline/timer.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MS UINT64_C(1000000)

struct setup {
    struct bow_server_options options;
    uint64_t delay_ns; /* before each answer of Say */
};

/* Each message goes back. Who does not read what comes back is not read from. */
static void on_talk(struct peers__echo__talk__call call, const Peers__Message *message, void *user)
{
    (void)user;
    if (peers__echo__talk__send(call, message) != 0) {
        bow_call_fail(call.call, BOW_INTERNAL, "a message did not go back");
        return;
    }
    if (!bow_call_is_writable(call.call)) {
        bow_call_pause(call.call);
    }
}

static void on_talk_writable(struct peers__echo__talk__call call, void *user)
{
    (void)user;
    bow_call_resume(call.call);
}

static void on_talk_half_close(struct peers__echo__talk__call call, void *user)
{
    (void)user;
    peers__echo__talk__finish(call);
}

static void talk(struct peers__echo__talk__call call, void *user)
{
    static const struct peers__echo__talk__call_events events = {
        .on_message = on_talk,
        .on_half_close = on_talk_half_close,
        .on_writable = on_talk_writable,
    };

    peers__echo__talk__listen(call, &events, user);
}

/* A call that is answered later. */
struct later {
    struct bow_timer timer;
    const Peers__Message *request;
};

static void answer(struct bow_timer *timer, void *user)
{
    peers__echo__say__reply(user, ((struct later *)(void *)timer)->request);
}

static void say(struct bow_call *call, const Peers__Message *request, void *user)
{
    const struct setup *setup = user;

    if (setup->delay_ns == 0) {
        peers__echo__say__reply(call, request);
        return;
    }
    struct later *later = bow_call_alloc(call, sizeof(*later));
    if (later == NULL) {
        bow_call_fail(call, BOW_RESOURCE_EXHAUSTED, "no memory");
        return;
    }
    later->request = request;
    bow_timer_init(&later->timer, bow_call_loop(call), answer, call);
    bow_timer_start(&later->timer, setup->delay_ns);
}

static void on_started(struct bow_server *server, void *user)
{
    (void)user;
    printf("%u\n", bow_server_port(server));
    fflush(stdout);
}

static void note_ends(const struct bow_method_metrics *metrics, void *user)
{
    uint64_t *n_failed = user;

    for (int code = BOW_OK + 1; code < BOW_N_CODES; code++) {
        *n_failed += metrics->ended[code];
    }
}

static void print_counters(struct bow_server *server)
{
    struct bow_metrics metrics = BOW_METRICS_INIT;
    uint64_t n_failed = 0;

    if (bow_server_metrics(server, &metrics) != 0) {
        return;
    }
    bow_server_each_method(server, note_ends, &n_failed);
    printf("started=%" PRIu64 " ended=%" PRIu64 " not_ok=%" PRIu64 " opened=%" PRIu64
           " aged=%" PRIu64 " refused=%" PRIu64 " protocol_errors=%" PRIu64 " broken=%" PRIu64 "\n",
           metrics.calls_started, metrics.calls_ended, n_failed, metrics.connections_opened,
           metrics.connections_aged, metrics.calls_refused_connection, metrics.protocol_errors,
           metrics.bad_prefaces + metrics.undecodable_messages + metrics.heartbeats_lost +
               metrics.first_frame_timeouts + metrics.connections_stalled +
               metrics.connections_untaken);
}

static bool parse(struct setup *setup, int argc, char **argv)
{
    int option;

    while ((option = getopt(argc, argv, "c:a:d:")) != -1) {
        switch (option) {
        case 'c':
            setup->options.max_calls = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case 'a':
            setup->options.max_age_ns = strtoull(optarg, NULL, 10) * MS;
            break;
        case 'd':
            setup->delay_ns = strtoull(optarg, NULL, 10) * MS;
            break;
        default:
            return false;
        }
    }
    setup->options.listen = argv[optind];
    return optind + 1 == argc;
}

int main(int argc, char **argv)
{
    struct setup setup = {.options = BOW_SERVER_OPTIONS_INIT};
    struct bow_server *server;

    setup.options.on_started = on_started;
    if (!parse(&setup, argc, argv)) {
        fprintf(stderr,
                "usage: echo_server [-c MAX_CALLS] [-a MAX_AGE_MS] [-d DELAY_MS] ADDRESS\n");
        return 2;
    }
    if (bow_server_new(&setup.options, &server) != 0 ||
        peers__echo__serve(server, &(struct peers__echo__handlers){.say = say, .talk = talk},
                           &setup) != 0) {
        return 2;
    }
    int rc = bow_server_run(server);
    if (rc != 0) {
        fprintf(stderr, "%s\n", bow_server_error(server));
    }
    print_counters(server);
    bow_server_free(server);
    return rc != 0;
}
