/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * interop-client --server_host=HOST --server_port=PORT --test_case=NAME [--use_tls=true]
 *     [--ca_file=FILE] [--server_host_override=NAME] [--soak_...]
 *
 * Runs one of gRPC's public interoperability cases against a server. Exits with 0 when all that the
 * case expects was met; else says what was not. --test_case=list prints the names of all;
 * --protocol=native takes Bowline's own protocol instead of gRPC.
 */

#include "cases.h"
#include "flags.h"
#include <bowline/context.h>
#include <bowline/tls.h>
#include <bowline/transport_error.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    case_fn run;
} cases[] = {
#define CASE(name)                                                                                 \
    {                                                                                              \
#name, case_##name                                                                         \
    }
    CASE(empty_unary),
    CASE(large_unary),
    CASE(cacheable_unary),
    CASE(client_compressed_unary),
    CASE(server_compressed_unary),
    CASE(client_streaming),
    CASE(client_compressed_streaming),
    CASE(server_streaming),
    CASE(server_compressed_streaming),
    CASE(ping_pong),
    CASE(empty_stream),
    CASE(custom_metadata),
    CASE(status_code_and_message),
    CASE(special_status_message),
    CASE(unimplemented_method),
    CASE(unimplemented_service),
    CASE(cancel_after_begin),
    CASE(cancel_after_first_response),
    CASE(timeout_on_sleeping_server),
    CASE(pick_first_unary),
    CASE(orca_per_rpc),
    CASE(rpc_soak),
    CASE(channel_soak),
};
#define N_CASES (sizeof(cases) / sizeof(cases[0]))

case_fn case_find(const char *name)
{
    for (size_t i = 0; i < N_CASES; i++) {
        if (strcmp(cases[i].name, name) == 0) {
            return cases[i].run;
        }
    }
    return NULL;
}

void case_list(void)
{
    for (size_t i = 0; i < N_CASES; i++) {
        printf("%s\n", cases[i].name);
    }
}

/* Whoever has the cases of compression takes it, and not each says so with an error. */
#ifndef ASSUMED_ENCODINGS
#define ASSUMED_ENCODINGS NULL
#endif

struct settings {
    const char *host;
    const char *host_override;
    const char *ca_file;
    const char *protocol;
    uint64_t port;
    uint64_t n_soak_threads;
    bool use_tls;
    bool use_test_ca;
};

static bool secure(const struct settings *settings, struct bow_context *context,
                   struct bow_tls_context **ret_tls)
{
    struct bow_tls_context_options options = BOW_TLS_CONTEXT_OPTIONS_INIT;
    struct bow_tls_error error;

    options.side = BOW_TLS_CLIENT;
    options.ca_file = settings->ca_file;
    if (bow_tls_context_new(context, &options, ret_tls, &error) < 0) {
        fprintf(stderr, "--use_tls: %s\n", error.text);
        return false;
    }
    return true;
}

static int run_case(struct run *run, case_fn fn)
{
    struct bow_transport_error error;

    run->options.error = &error;
    if (bow_client_new(&run->options, &run->client) < 0) {
        fprintf(stderr, "%s\n", error.text);
        return 2;
    }
    bool is_met = fn(run);
    bow_client_free(run->client);
    printf("%s: %s\n", run->test_case, is_met ? "passed" : "failed");
    return is_met ? 0 : 1;
}

static int run_with(struct run *run, const struct settings *settings, case_fn fn)
{
    struct bow_tls_context *tls = NULL;
    char target[400];

    if (bow_context_new(NULL, &run->options.context) < 0) {
        return 2;
    }
    bool is_native = strcmp(settings->protocol, "native") == 0;
    snprintf(target, sizeof(target), "%s%s:%" PRIu64, is_native ? "" : "grpc:", settings->host,
             settings->port);
    run->options.target = target;
    run->options.plaintext = !settings->use_tls;
    run->options.server_name = settings->host_override;
    run->options.assumed_encodings = ASSUMED_ENCODINGS;
    int rc = 2;
    if (!settings->use_tls || secure(settings, run->options.context, &tls)) {
        run->options.security = tls != NULL ? bow_tls_security(tls) : NULL;
        rc = run_case(run, fn);
    }
    bow_tls_context_unref(tls);
    bow_context_unref(run->options.context);
    return rc;
}

int main(int argc, char **argv)
{
    struct settings settings = {.host = "localhost", .protocol = "grpc", .n_soak_threads = 1};
    struct run run = {
        .test_case = "large_unary",
        .options = BOW_CLIENT_OPTIONS_INIT,
        .soak_iterations = 10,
        .soak_max_latency_ms = 1000,
        .soak_timeout_s = 10,
        .soak_request_size = 271828,
        .soak_response_size = 314159,
    };
    const struct flag flags[] = {
        {.name = "server_host", .text = &settings.host},
        {.name = "server_port", .number = &settings.port},
        {.name = "server_host_override", .text = &settings.host_override},
        {.name = "test_case", .text = &run.test_case},
        {.name = "use_tls", .truth = &settings.use_tls},
        {.name = "use_test_ca", .truth = &settings.use_test_ca},
        {.name = "ca_file", .text = &settings.ca_file},
        {.name = "protocol", .text = &settings.protocol},
        {.name = "soak_iterations", .number = &run.soak_iterations},
        {.name = "soak_max_failures", .number = &run.soak_max_failures},
        {.name = "soak_per_iteration_max_acceptable_latency_ms",
         .number = &run.soak_max_latency_ms},
        {.name = "soak_min_time_ms_between_rpcs", .number = &run.soak_min_time_ms},
        {.name = "soak_overall_timeout_seconds", .number = &run.soak_timeout_s},
        {.name = "soak_num_threads", .number = &settings.n_soak_threads},
        {.name = "soak_request_size", .number = &run.soak_request_size},
        {.name = "soak_response_size", .number = &run.soak_response_size},
        {.name = NULL},
    };

    if (!flags_read(flags, argc, argv)) {
        return 2;
    }
    if (strcmp(run.test_case, "list") == 0) {
        case_list();
        return 0;
    }
    case_fn fn = case_find(run.test_case);
    if (fn == NULL) {
        fprintf(stderr, "%s is no test case; --test_case=list prints them\n", run.test_case);
        return 2;
    }
    if (settings.n_soak_threads != 1) {
        fprintf(stderr, "--soak_num_threads: one thread calls here\n");
        return 2;
    }
    if (settings.use_test_ca && settings.ca_file == NULL) {
        fprintf(stderr, "--use_test_ca: say with --ca_file where it is\n");
        return 2;
    }
    return run_with(&run, &settings, fn);
}
