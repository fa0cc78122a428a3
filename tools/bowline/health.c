/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * `bowline health`: what grpc.health.v1 says of a service, once or at each change. Its exit code
 * makes it a probe.
 */
#include "commands.h"
#include "grpc/health/v1/health.bow.h"
#include "headers.h"
#include "peer.h"
#include "say.h"
#include <bowline/stream.h>
#include <bowline/well_known.h>

#include <string.h>

#define SERVING BOW__HEALTH__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING
#define DEFAULT_DEADLINE_NS (UINT64_C(5) * 1000000000u)

struct asking {
    const struct options *options;
    struct peer peer;
    struct headers headers;
    const char *service;
};

static int show(const struct asking *it, const Bow__Health__HealthCheckResponse *response)
{
    const char *name = bow_enum_name(
        &bow__health__health_check_response__serving_status__descriptor, (int32_t)response->status);
    enum colour colour = response->status == SERVING ? COLOUR_GREEN : COLOUR_RED;

    name = name != NULL ? name : "UNKNOWN";
    if (it->options->json) {
        printf("{\"service\":");
        say_json_string(stdout, it->service, strlen(it->service));
        printf(",\"status\":\"%s\"}\n", name);
    } else {
        printf("%s%s%s\n", colour_on(stdout, colour), name, colour_off(stdout));
    }
    fflush(stdout);
    return response->status == SERVING ? EXIT_OK : EXIT_NOT_SERVING;
}

static int failed(const struct asking *it, const struct bow_status *status)
{
    if (status->code == BOW_UNIMPLEMENTED) {
        return say_failed(exit_of(status->code), "%s does not tell its health (grpc.health.v1)",
                          it->peer.target);
    }
    if (status->code == BOW_NOT_FOUND) {
        return say_failed(
            exit_of(status->code),
            "%s knows no service \"%s\"; without SERVICE it tells of the whole server",
            it->peer.target, it->service);
    }
    return peer_failed(&it->peer, status);
}

static int check(struct asking *it, struct bow_call_options *options)
{
    Bow__Health__HealthCheckRequest request = BOW__HEALTH__HEALTH_CHECK_REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    request.service = it->service;
    options->timeout_ns =
        it->options->deadline_ns != 0 ? it->options->deadline_ns : DEFAULT_DEADLINE_NS;
    const ProtobufCMessage *reply = bow_client_call(
        it->peer.client, &bow__health__health__service.methods[0], &request.base, options, &result);
    int rc = reply != NULL ? show(it, (const Bow__Health__HealthCheckResponse *)reply)
                           : failed(it, &result.status);
    bow_result_fini(&result);
    return rc;
}

static const struct bow_method *watch_method(void)
{
    const struct bow_service *service = &bow__health__health__service;

    for (uint32_t i = 0; i < service->n_methods; i++) {
        if (strcmp(service->methods[i].name, "Watch") == 0) {
            return &service->methods[i];
        }
    }
    return NULL;
}

static int watch(struct asking *it, struct bow_call_options *options)
{
    Bow__Health__HealthCheckRequest request = BOW__HEALTH__HEALTH_CHECK_REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;
    struct bow_stream *stream = NULL;
    const ProtobufCMessage *message = NULL;

    request.service = it->service;
    options->timeout_ns = it->options->deadline_ns;
    int rc = bow_client_open(it->peer.client, watch_method(), &request.base, options, NULL, NULL,
                             &stream);
    if (rc < 0) {
        return say_failed(EXIT_FAILED, "the call cannot begin: %s", strerror(-rc));
    }
    while (bow_stream_receive(stream, BOW_NEVER, &message) == 1) {
        rc = show(it, (const Bow__Health__HealthCheckResponse *)message);
    }
    (void)bow_stream_finish(stream, &result);
    if (result.status.code == BOW_DEADLINE_EXCEEDED && it->options->deadline_ns != 0) {
        /* That was how long to watch: the last answer counts. */
    } else if (result.status.code != BOW_OK) {
        rc = failed(it, &result.status);
    }
    bow_result_fini(&result);
    return rc;
}

int command_health(const struct options *options)
{
    struct asking it = {.options = options, .service = options->n_args > 1 ? options->args[1] : ""};
    struct bow_call_options call_options = BOW_CALL_OPTIONS_INIT;

    int rc = peer_open(&it.peer, options, options->args[0]);
    if (rc == EXIT_OK) {
        rc = headers_read(options, &it.headers);
    }
    call_options.metadata = &it.headers.metadata;
    if (rc == EXIT_OK) {
        rc = options->watch ? watch(&it, &call_options) : check(&it, &call_options);
    }
    peer_close(&it.peer);
    headers_free(&it.headers);
    return rc;
}
