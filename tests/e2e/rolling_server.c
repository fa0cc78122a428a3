/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The Court service as a program that tests restart. Prints its port, a line when a client with a
 * number has hit a ball for the first time, and in the end how many calls each method had.
 * Usage: rolling_server ADDRESS LAME_DUCK_MS [TAKE_OVER WORKERS]
 * With TAKE_OVER it takes the sockets over that are offered there, and offers its own; of WORKERS
 * each listens itself.
 */

#include "rolling.bow.h"
#include <bowline/call.h>
#include <bowline/server.h>
#include <bowline/transport_error.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CLIENTS 4

struct court {
    atomic_bool seen[MAX_CLIENTS];
    atomic_ulong n_hits;
    atomic_ulong n_plays;
    const char *take_over;
};

static void note_client(struct court *court, uint32_t client)
{
    if (client > 0 && client < MAX_CLIENTS && !atomic_exchange(&court->seen[client], true)) {
        printf("client %u\n", client);
        fflush(stdout);
    }
}

static void hit(struct bow_call *call, const Rolling__Ball *ball, void *user)
{
    struct court *court = user;

    court->n_hits++;
    note_client(court, ball->client);
    rolling__court__hit__reply(call, ball);
}

static void on_ball(struct rolling__court__play__call call, const Rolling__Ball *ball, void *user)
{
    (void)user;
    if (rolling__court__play__send(call, ball) < 0) {
        (void)bow_call_fail(call.call, BOW_RESOURCE_EXHAUSTED, "the ball cannot go back");
    }
}

static void on_half_close(struct rolling__court__play__call call, void *user)
{
    (void)user;
    rolling__court__play__finish(call);
}

static void play(struct rolling__court__play__call call, void *user)
{
    static const struct rolling__court__play__call_events events = {
        .on_message = on_ball,
        .on_half_close = on_half_close,
    };
    struct court *court = user;

    court->n_plays++;
    rolling__court__play__listen(call, &events, user);
}

static void tell_port(const struct bow_server *server)
{
    printf("%u\n", bow_server_port(server));
    fflush(stdout);
}

static void on_started(struct bow_server *server, void *user)
{
    const struct court *court = user;
    struct bow_transport_error error;

    if (bow_server_hand_over(server, court->take_over, &error) < 0) {
        fprintf(stderr, "%s\n", error.text);
    }
    tell_port(server);
}

static int run(struct bow_server *server, const struct court *court)
{
    int rc = 0;

    if (court->take_over == NULL) {
        rc = bow_server_start(server);
        if (rc < 0) {
            return rc;
        }
        tell_port(server);
    }
    return bow_server_run(server);
}

static int listen_on(struct bow_server *server, const char *address, bool per_worker)
{
    struct bow_listen_options options = BOW_LISTEN_OPTIONS_INIT;

    options.address = address;
    options.per_worker = per_worker;
    return bow_server_listen(server, &options);
}

/* Who waits for that may send the signal that ends the lame duck. */
static void on_stopping(struct bow_server *server, void *user)
{
    (void)server;
    (void)user;
    printf("stopping\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct rolling__court__handlers handlers = {.hit = hit, .play = play};
    struct court court = {.take_over = argc == 5 ? argv[3] : NULL};
    struct bow_server *server;

    if (argc != 3 && argc != 5) {
        fprintf(stderr, "usage: %s ADDRESS LAME_DUCK_MS [TAKE_OVER WORKERS]\n", argv[0]);
        return 2;
    }
    if (argc == 5) {
        options.take_over = argv[3];
        options.workers = (uint32_t)strtoul(argv[4], NULL, 10);
        options.on_started = on_started;
        options.started_user = &court;
        options.on_stopping = on_stopping;
    }
    options.lame_duck_ns = strtoull(argv[2], NULL, 10) * UINT64_C(1000000);
    if (bow_server_new(&options, &server) != 0 ||
        listen_on(server, argv[1], options.workers > 0) != 0 ||
        rolling__court__serve(server, &handlers, &court) != 0) {
        return 2;
    }
    int rc = run(server, &court);
    if (rc == 0) {
        printf("%lu %lu\n", atomic_load(&court.n_hits), atomic_load(&court.n_plays));
    } else {
        fprintf(stderr, "%s\n", bow_server_error(server));
    }
    bow_server_free(server);
    return rc != 0;
}
