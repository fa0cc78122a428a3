/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The Court service as a program that tests restart. Prints its port, a line when a client with a
 * number has hit a ball for the first time, and in the end how many calls each method had.
 * Usage: rolling_server ADDRESS LAME_DUCK_MS
 */

#include "rolling.bow.h"
#include <bowline/call.h>
#include <bowline/server.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_CLIENTS 4

struct court {
    bool seen[MAX_CLIENTS];
    unsigned long n_hits;
    unsigned long n_plays;
};

static void note_client(struct court *court, uint32_t client)
{
    if (client > 0 && client < MAX_CLIENTS && !court->seen[client]) {
        court->seen[client] = true;
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

int main(int argc, char **argv)
{
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct rolling__court__handlers handlers = {.hit = hit, .play = play};
    struct court court = {0};
    struct bow_server *server;

    if (argc != 3) {
        fprintf(stderr, "usage: %s ADDRESS LAME_DUCK_MS\n", argv[0]);
        return 2;
    }
    options.listen = argv[1];
    options.lame_duck_ns = strtoull(argv[2], NULL, 10) * UINT64_C(1000000);
    if (bow_server_new(&options, &server) != 0 ||
        rolling__court__serve(server, &handlers, &court) != 0) {
        return 2;
    }
    int rc = bow_server_start(server);
    if (rc == 0) {
        printf("%u\n", bow_server_port(server));
        fflush(stdout);
        rc = bow_server_run(server);
        printf("%lu %lu\n", court.n_hits, court.n_plays);
    } else {
        fprintf(stderr, "%s\n", bow_server_error(server));
    }
    bow_server_free(server);
    return rc != 0;
}
