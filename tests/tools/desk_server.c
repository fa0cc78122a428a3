/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The server of the tool's tests.
 *
 *     desk-server ADDRESS [--reflection] [--not-serving] [--tls CERTIFICATE KEY]
 *                         [--operations ADDRESS] [--max-connections N] [--token TOKEN]
 *                         [--workers N]
 *
 * It says where it listens, and at its end, of each method, how many calls began and how many ended
 * well, and of those with how many took up to how many nanoseconds, as finely as it knows.
 */
#include "desk.bow.h"
#include <bowline/bearer.h>
#include <bowline/context.h>
#include <bowline/health.h>
#include <bowline/interceptor.h>
#include <bowline/loop.h>
#include <bowline/metrics.h>
#include <bowline/server.h>
#include <bowline/timer.h>
#include <bowline/tls.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void echo(struct bow_call *call, const Desk__Note *note, void *user)
{
    const struct bow_slice *seen = bow_metadata_find(bow_call_metadata(call), "x-note");

    (void)user;
    if (seen != NULL && (bow_call_add_initial(call, "x-seen", *seen) < 0 ||
                         bow_call_add_trailing(call, "x-end", *seen) < 0)) {
        (void)bow_call_fail(call, BOW_INTERNAL, "no metadata");
        return;
    }
    (void)bow_call_reply(call, &note->base);
}

struct working {
    struct bow_timer timer;
    struct bow_call *call;
};

static void on_time(struct bow_timer *timer, void *user)
{
    struct working *working = user;
    Desk__Note note = DESK__NOTE__INIT;

    (void)timer;
    note.text = "done";
    (void)bow_call_reply(working->call, &note.base);
}

/* The timer lies in the call's memory. */
static void on_cancel(struct bow_call *call, enum bow_code why, void *user)
{
    struct working *working = user;

    bow_timer_stop(&working->timer);
    (void)bow_call_fail(call, why, "nobody waits");
}

static void work(struct bow_call *call, const Desk__Task *task, void *user)
{
    struct working *working = bow_call_alloc(call, sizeof(*working));

    (void)user;
    if (task->fail_code != 0 || working == NULL) {
        (void)bow_call_fail(call, (enum bow_code)task->fail_code, "as was asked");
        return;
    }
    working->call = call;
    bow_timer_init(&working->timer, bow_call_loop(call), on_time, working);
    bow_timer_start(&working->timer, (uint64_t)task->sleep_us * 1000);
    bow_call_on_cancel(call, on_cancel, working);
}

static void add(struct desk__desk__sum__call call, const Desk__Note *note, void *user)
{
    (void)call;
    *(int64_t *)user += note->number;
}

static void reply_sum(struct desk__desk__sum__call call, void *user)
{
    Desk__Note note = DESK__NOTE__INIT;

    note.number = *(int64_t *)user;
    (void)bow_call_reply(call.call, &note.base);
}

static void sum(struct desk__desk__sum__call call, void *user)
{
    static const struct desk__desk__sum__call_events events = {
        .on_message = add,
        .on_half_close = reply_sum,
    };
    int64_t *total = bow_call_alloc(call.call, sizeof(*total));

    (void)user;
    *total = 0;
    (void)bow_call_listen(call.call, &events, total);
}

static void count(struct desk__desk__count__call call, const Desk__Task *task, void *user)
{
    Desk__Note note = DESK__NOTE__INIT;

    (void)user;
    for (note.number = 1; note.number <= task->n; note.number++) {
        if (bow_call_send(call.call, &note.base) < 0) {
            break;
        }
    }
    if (task->fail_code != 0) {
        (void)bow_call_fail(call.call, (enum bow_code)task->fail_code, "as was asked");
    } else {
        (void)bow_call_finish(call.call);
    }
}

static void on_chat(struct desk__desk__chat__call call, const Desk__Note *note, void *user)
{
    (void)user;
    if (strcmp(note->text, "bye") == 0) {
        (void)bow_call_finish(call.call);
    } else if (bow_call_send(call.call, &note->base) < 0) {
        (void)bow_call_fail(call.call, BOW_INTERNAL, "too much waits to be sent");
    }
}

static void end_chat(struct desk__desk__chat__call call, void *user)
{
    (void)user;
    (void)bow_call_finish(call.call);
}

static void chat(struct desk__desk__chat__call call, void *user)
{
    static const struct desk__desk__chat__call_events events = {
        .on_message = on_chat,
        .on_half_close = end_chat,
    };

    (void)bow_call_listen(call.call, &events, user);
}

/* Its life */

static void on_started(struct bow_server *server, void *user)
{
    const struct bow_server_options *options = user;

    if (options->operations_listen != NULL) {
        printf("operations at %s\n", bow_server_operations_addresses(server));
    }
    printf("listening on %s, port %d\n", options->listen, (int)bow_server_port(server));
    fflush(stdout);
}

static void print_times(const struct bow_histogram *times)
{
    uint64_t least = 0;
    uint64_t greatest = 0;

    for (size_t i = 0; i < BOW_HISTOGRAM_BUCKETS; i++) {
        if (times->buckets[i] > 0 && bow_histogram_bounds(i, &least, &greatest) == 0) {
            printf(" %" PRIu64 ":%" PRIu64, greatest, times->buckets[i]);
        }
    }
}

static void print_method(const struct bow_method_metrics *metrics, void *user)
{
    struct bow_histogram times;

    (void)user;
    printf("method %s started %" PRIu64 " ok %" PRIu64 "\n", metrics->path, metrics->started,
           metrics->ended[BOW_OK]);
    printf("times %s", metrics->path);
    bow_method_metrics_times(metrics, BOW_TIME_CALL, BOW_OK, &times);
    print_times(&times);
    printf("\n");
}

static struct bow_tls_context *read_tls(struct bow_context *context, char **files)
{
    struct bow_tls_context_options options = BOW_TLS_CONTEXT_OPTIONS_INIT;
    struct bow_tls_context *tls = NULL;
    struct bow_tls_error error = {0};

    options.side = BOW_TLS_SERVER;
    options.certificate.certificate_file = files[0];
    options.certificate.key_file = files[1];
    if (bow_tls_context_new(context, &options, &tls, &error) < 0) {
        fprintf(stderr, "desk-server: %s\n", error.text);
    }
    return tls;
}

static bool is_token(struct bow_interception *at, struct bow_slice token, void *user)
{
    (void)at;
    return token.len == strlen(user) && memcmp(token.data, user, token.len) == 0;
}

static int ask_for_token(struct bow_server *server, struct bow_context *context, char *token)
{
    struct bow_bearer_options options = BOW_BEARER_OPTIONS_INIT;
    struct bow_interceptor check = {0};
    struct bow_bearer *bearer = NULL;

    options.context = context;
    options.check = is_token;
    options.user = token;
    int rc = bow_bearer_new(&options, &bearer);
    if (rc < 0) {
        return rc;
    }
    bow_bearer_check(bearer, &check);
    bow_bearer_unref(bearer);
    rc = bow_server_intercept(server, &check);
    if (rc < 0) {
        check.release(check.user);
    }
    return rc;
}

static bool read_arguments(int argc, char **argv, struct bow_server_options *options,
                           struct bow_tls_context **ret_tls, bool *ret_serving, char **ret_token)
{
    options->listen = argc > 1 ? argv[1] : "127.0.0.1:0";
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--reflection") == 0) {
            options->reflection = true;
        } else if (strcmp(argv[i], "--not-serving") == 0) {
            *ret_serving = false;
        } else if (strcmp(argv[i], "--token") == 0 && i + 1 < argc) {
            *ret_token = argv[++i];
        } else if (strcmp(argv[i], "--operations") == 0 && i + 1 < argc) {
            options->operations_listen = argv[++i];
        } else if (strcmp(argv[i], "--max-connections") == 0 && i + 1 < argc) {
            options->max_connections = (uint32_t)atoi(argv[++i]);
        } else if (strcmp(argv[i], "--tls") == 0 && i + 2 < argc) {
            *ret_tls = read_tls(options->context, &argv[i + 1]);
            if (*ret_tls == NULL) {
                return false;
            }
            options->security = bow_tls_security(*ret_tls);
            i += 2;
        } else if (strcmp(argv[i], "--workers") == 0 && i + 1 < argc) {
            options->workers = (uint32_t)strtoul(argv[++i], NULL, 10);
        }
    }
    return true;
}

static int serve(struct bow_server *server, bool is_serving)
{
    const struct desk__desk__handlers handlers = {
        .echo = echo, .work = work, .sum = sum, .count = count, .chat = chat};

    int rc = desk__desk__serve(server, &handlers, NULL);
    if (rc == 0) {
        rc = bow_health_set(server, "desk.Desk",
                            is_serving ? BOW_HEALTH_SERVING : BOW_HEALTH_NOT_SERVING);
    }
    return rc == 0 ? bow_server_run(server) : rc;
}

int main(int argc, char **argv)
{
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct bow_tls_context *tls = NULL;
    struct bow_server *server = NULL;
    bool is_serving = true;
    char *token = NULL;

    if (bow_context_new(NULL, &options.context) < 0) {
        return 1;
    }
    options.on_started = on_started;
    options.started_user = &options;
    if (!read_arguments(argc, argv, &options, &tls, &is_serving, &token) ||
        bow_server_new(&options, &server) < 0 ||
        (token != NULL && ask_for_token(server, options.context, token) < 0)) {
        return 1;
    }
    int rc = serve(server, is_serving);
    if (rc < 0) {
        fprintf(stderr, "desk-server: %s\n", bow_server_error(server));
    }
    bow_server_each_method(server, print_method, NULL);
    bow_server_free(server);
    bow_tls_context_unref(tls);
    bow_context_unref(options.context);
    return rc == 0 ? 0 : 1;
}
