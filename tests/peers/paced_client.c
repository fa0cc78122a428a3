/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls Echo for peers_floods.py: for each line, a number of seconds, one call after the other with
 * a pause of a millisecond, over one connection. Prints
 *     CALLS FAILED ENDED SECONDS [ERROR]
 * and on the next line how many microseconds each call took. ENDED is how often the connection was
 * ready and then was not.
 * Usage: paced_client TARGET BYTES
 */

#include "echo.bow.h"
#include <bowline/client.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_CALLS 100000u /* in a window */
#define TIMEOUT_NS UINT64_C(30000000000)
#define PAUSE_NS 1000000

struct paced {
    struct bow_client *client;
    uint8_t *body;
    size_t n_bytes;
    atomic_bool ready;
    atomic_uint n_ended; /* connections; counted by the client's loop */
    uint64_t us[MAX_CALLS];
    size_t n_calls;
    uint64_t n_failed;
    char error[512]; /* the first of a window */
};

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void on_state(struct bow_client *client, struct bow_loop *loop, enum bow_client_state state,
                     void *user)
{
    struct paced *paced = user;

    (void)client;
    (void)loop;
    if (atomic_exchange(&paced->ready, state == BOW_CLIENT_READY) && state != BOW_CLIENT_READY) {
        atomic_fetch_add(&paced->n_ended, 1);
    }
}

static void note_failure(struct paced *paced, const char *code, const char *message)
{
    if (paced->n_failed++ == 0) {
        snprintf(paced->error, sizeof(paced->error), "%s: %s", code, message);
    }
}

static void call(struct paced *paced)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    struct bow_result result = BOW_RESULT_INIT;
    Peers__Message request = PEERS__MESSAGE__INIT;
    uint64_t start = now_ns();

    options.timeout_ns = TIMEOUT_NS;
    request.body = (ProtobufCBinaryData){.len = paced->n_bytes, .data = paced->body};
    const Peers__Message *reply =
        peers__echo__say__call(paced->client, &request, &options, &result);
    paced->us[paced->n_calls++] = (now_ns() - start) / 1000;
    if (reply == NULL) {
        note_failure(paced, bow_code_name(result.status.code), result.status.message);
    } else if (reply->body.len != paced->n_bytes ||
               memcmp(reply->body.data, paced->body, paced->n_bytes) != 0) {
        note_failure(paced, "wrong", "the reply is another call's");
    }
    bow_result_fini(&result);
}

static void run_window(struct paced *paced, double seconds)
{
    static const struct timespec pause = {.tv_nsec = PAUSE_NS};
    uint64_t start = now_ns();
    uint64_t end = start + (uint64_t)(seconds * 1e9);
    unsigned n_ended = atomic_load(&paced->n_ended);

    paced->n_calls = 0;
    paced->n_failed = 0;
    paced->error[0] = '\0';
    while (now_ns() < end && paced->n_calls < MAX_CALLS) {
        call(paced);
        (void)nanosleep(&pause, NULL);
    }
    printf("%zu %" PRIu64 " %u %.3f %s\n", paced->n_calls, paced->n_failed,
           atomic_load(&paced->n_ended) - n_ended, (double)(now_ns() - start) / 1e9, paced->error);
    for (size_t i = 0; i < paced->n_calls; i++) {
        printf("%" PRIu64 " ", paced->us[i]);
    }
    puts("");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static struct paced paced;
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    char line[64];

    if (argc != 3) {
        fprintf(stderr, "usage: paced_client TARGET BYTES\n");
        return 2;
    }
    options.target = argv[1];
    options.on_state = on_state;
    options.state_user = &paced;
    paced.n_bytes = strtoull(argv[2], NULL, 10);
    paced.body = malloc(paced.n_bytes);
    if (paced.body == NULL || bow_client_new(&options, &paced.client) != 0) {
        return 1;
    }
    memset(paced.body, 'x', paced.n_bytes);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        run_window(&paced, strtod(line, NULL));
    }
    bow_client_free(paced.client);
    free(paced.body);
    return 0;
}
