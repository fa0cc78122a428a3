/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A server and its clients, made in one call, and their end. */

#include "base/clock.h"
#include "base/options.h"
#include "testing/test.h"

#include <bowline/metrics.h>
#include <stdio.h>
#include <stdlib.h>

/* A server that drains has time-outs of its own, which are shorter. */
#define MAX_STOP_NS (UINT64_C(24) * 3600 * 1000000000u)

struct pair {
    struct bow_test_pair visible;
    struct bow__link link;
    char address[32];
    char target[40];
    struct bow_transport_error error; /* of the one that could not be made */
};

static int start_server(struct bow_test *test, const struct bow_test_pair_options *given,
                        struct pair *pair)
{
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;

    int rc =
        given->server != NULL ? bow__options_read(&options, sizeof(options), given->server) : 0;
    if (rc < 0) {
        return rc;
    }
    options.context = test->context;
    options.loop = test->loop;
    options.group = NULL;
    options.workers = 0;
    options.listen = pair->address;
    options.error = &pair->error;
    rc = bow_server_new(&options, &pair->visible.server);
    if (rc == 0) {
        rc = given->serve(pair->visible.server, given->user);
    }
    return rc == 0 ? bow_server_start(pair->visible.server) : rc;
}

static int make_clients(struct bow_test *test, const struct bow_test_pair_options *given,
                        struct pair *pair)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;

    int rc =
        given->client != NULL ? bow__options_read(&options, sizeof(options), given->client) : 0;
    if (rc < 0) {
        return rc;
    }
    options.context = test->context;
    options.target = pair->target;
    options.group = NULL;
    options.loop = test->loop;
    options.error = &pair->error;
    rc = bow_client_new(&options, &pair->visible.client);
    if (rc < 0) {
        return rc;
    }
    options.loop = NULL;
    return bow_client_new(&options, &pair->visible.blocking);
}

static void explain(const struct pair *pair, int rc)
{
    const struct bow_server *server = pair->visible.server;
    const char *why =
        server != NULL && pair->error.error == 0 ? bow_server_error(server) : pair->error.text;

    fprintf(stderr, "bowline test: no pair: %d%s%s\n", rc, *why != '\0' ? ": " : "", why);
}

int bow_test_pair_new(struct bow_test *test, const struct bow_test_pair_options *given,
                      struct bow_test_pair **ret_pair)
{
    struct bow_test_pair_options options = BOW_TEST_PAIR_OPTIONS_INIT;

    if (bow__options_read(&options, sizeof(options), given) < 0 || options.serve == NULL) {
        fprintf(stderr, "bowline test: no pair: begin the options with "
                        "BOW_TEST_PAIR_OPTIONS_INIT, and set options.serve\n");
        return -EINVAL;
    }
    struct pair *pair = calloc(1, sizeof(*pair));
    if (pair == NULL) {
        return -ENOMEM;
    }
    snprintf(pair->address, sizeof(pair->address), "inproc:test-%u", test->n_names++);
    snprintf(pair->target, sizeof(pair->target), "%s%s", options.grpc ? "grpc:" : "",
             pair->address);
    pair->visible.target = pair->target;
    bow__list_push_back(&test->pairs, &pair->link);
    int rc = start_server(test, &options, pair);
    if (rc == 0) {
        rc = make_clients(test, &options, pair);
    }
    if (rc < 0) {
        if (rc != -ENOMEM) {
            explain(pair, rc);
        }
        bow_test_pair_free(test, &pair->visible);
        return rc;
    }
    *ret_pair = &pair->visible;
    return 0;
}

/* The end */

static void stop(struct bow_test *test, struct bow_server *server)
{
    const uint64_t until = bow__time_add(bow_test_now(test), MAX_STOP_NS);
    struct bow_metrics metrics = BOW_METRICS_INIT;
    int rc = 0;

    bow_server_stop(server);
    do {
        rc = bow__test_step(test, until);
    } while (rc == 0 && bow_server_join(server) != 0);
    if (bow_server_join(server) != 0) {
        bow__test_find(test, "a server does not stop (%d)", rc);
        return;
    }
    (void)bow_server_metrics(server, &metrics);
    if (metrics.calls_unanswered > 0) {
        bow__test_find(test, "%llu calls were never answered by their handlers",
                       (unsigned long long)metrics.calls_unanswered);
    }
}

void bow_test_pair_free(struct bow_test *test, struct bow_test_pair *visible)
{
    if (visible == NULL) {
        return;
    }
    struct pair *pair = BOW__CONTAINER(visible, struct pair, visible);
    bow_client_free(visible->client);
    bow_client_free(visible->blocking);
    (void)bow_test_run(test);
    if (visible->server != NULL) {
        stop(test, visible->server);
    }
    bow_server_free(visible->server);
    (void)bow_test_run(test);
    bow__list_remove(&pair->link);
    free(pair);
}

void bow__test_free_pairs(struct bow_test *test)
{
    while (!bow__list_is_empty(&test->pairs)) {
        struct pair *pair = BOW__CONTAINER(test->pairs.next, struct pair, link);
        bow_test_pair_free(test, &pair->visible);
    }
}
