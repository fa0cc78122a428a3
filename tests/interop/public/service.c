/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The methods of TestService that take one message and answer it with one, and what streams do
 * likewise.
 */

#include "service.h"
#include <bowline/call.h>
#include <bowline/metadata.h>
#include <bowline/server.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What a client asks for */

static int echo_metadata(struct bow_call *call)
{
    const struct bow_metadata *metadata = bow_call_metadata(call);
    const struct bow_slice *initial = bow_metadata_find(metadata, "x-grpc-test-echo-initial");
    const struct bow_slice *trailing = bow_metadata_find(metadata, "x-grpc-test-echo-trailing-bin");
    int rc = 0;

    if (initial != NULL) {
        rc = bow_call_add_initial(call, "x-grpc-test-echo-initial", *initial);
    }
    if (rc == 0 && trailing != NULL) {
        rc = bow_call_add_trailing(call, "x-grpc-test-echo-trailing-bin", *trailing);
    }
    return rc;
}

bool service_echo_metadata(struct bow_call *call)
{
    if (echo_metadata(call) < 0) {
        bow_call_fail(call, BOW_INTERNAL, "the metadata cannot be sent back");
        return false;
    }
    return true;
}

bool service_fail_as_asked(struct bow_call *call, const Grpc__Testing__EchoStatus *status)
{
    if (status == NULL || status->code == BOW_OK) {
        return false;
    }
    bow_call_fail(call, (enum bow_code)status->code, "%s", status->message);
    return true;
}

bool service_came_as_expected(struct bow_call *call, const Grpc__Testing__BoolValue *compressed)
{
    bool came_compressed = bow_call_request_was_compressed(call);

    if (compressed == NULL || (compressed->value != 0) == came_compressed) {
        return true;
    }
    bow_call_fail(call, BOW_INVALID_ARGUMENT, "the message came %s",
                  came_compressed ? "compressed" : "as it is");
    return false;
}

bool service_fill(struct bow_call *call, int32_t size, Grpc__Testing__Payload *ret_payload)
{
    static uint8_t zeros[MAX_PAYLOAD];

    if (size < 0 || (size_t)size > sizeof(zeros)) {
        bow_call_fail(call, BOW_INVALID_ARGUMENT, "%d is no size of a payload: 0 to %zu are", size,
                      sizeof(zeros));
        return false;
    }
    ret_payload->body = (ProtobufCBinaryData){(size_t)size, zeros};
    return true;
}

/* The load that a client asks to be told of (xds.data.orca.v3) */

static int report_load(struct bow_call *call, const Grpc__Testing__TestOrcaReport *asked)
{
    Grpc__Testing__LoadReport report = GRPC__TESTING__LOAD_REPORT__INIT;

    report.cpu_utilization = asked->cpu_utilization;
    report.mem_utilization = asked->memory_utilization;
    report.n_request_cost = asked->n_request_cost;
    report.request_cost = asked->request_cost;
    report.n_utilization = asked->n_utilization;
    report.utilization = asked->utilization;
    size_t size = grpc__testing__load_report__get_packed_size(&report);
    uint8_t *bytes = bow_call_alloc(call, size > 0 ? size : 1);
    if (bytes == NULL) {
        return -1;
    }
    grpc__testing__load_report__pack(&report, bytes);
    return bow_call_add_trailing(call, "endpoint-load-metrics-bin",
                                 (struct bow_slice){bytes, size});
}

/* Methods */

static void empty_call(struct bow_call *call, const Grpc__Testing__Empty *request, void *user)
{
    (void)user;
    if (service_echo_metadata(call)) {
        METHOD(empty_call__reply)(call, request);
    }
}

/* The same for all of this server's calls, and another for each server. */
static const char *server_id(void)
{
    static char id[64];

    if (id[0] == '\0') {
        snprintf(id, sizeof(id), "bowline-%ld", (long)getpid());
    }
    return id;
}

static void unary_call(struct bow_call *call, const Grpc__Testing__SimpleRequest *request,
                       void *user)
{
    Grpc__Testing__SimpleResponse response = GRPC__TESTING__SIMPLE_RESPONSE__INIT;
    Grpc__Testing__Payload payload = GRPC__TESTING__PAYLOAD__INIT;
    char hostname[256] = "";

    (void)user;
    if (!service_came_as_expected(call, request->expect_compressed) ||
        !service_echo_metadata(call) || service_fail_as_asked(call, request->response_status) ||
        !service_fill(call, request->response_size, &payload)) {
        return;
    }
    if ((request->response_compressed != NULL &&
         bow_call_compress(call, request->response_compressed->value) < 0) ||
        (request->orca_per_query_report != NULL &&
         report_load(call, request->orca_per_query_report) < 0)) {
        bow_call_fail(call, BOW_INTERNAL, "the response cannot be made as it was asked for");
        return;
    }
    (void)gethostname(hostname, sizeof(hostname) - 1);
    payload.type = request->response_type;
    response.payload = &payload;
    response.hostname = hostname;
    if (request->fill_server_id) {
        response.server_id = (char *)(uintptr_t)server_id();
    }
    METHOD(unary_call__reply)(call, &response);
}

static void cacheable_unary_call(struct bow_call *call, const Grpc__Testing__SimpleRequest *request,
                                 void *user)
{
    static const char control[] = "max-age=60, public";

    if (bow_call_add_initial(call, "cache-control",
                             (struct bow_slice){(const uint8_t *)control, strlen(control)}) < 0) {
        bow_call_fail(call, BOW_INTERNAL, "no memory for cache-control");
        return;
    }
    unary_call(call, request, user);
}

int service_add(struct bow_server *server)
{
    static const struct METHOD(handlers) handlers = {
        .empty_call = empty_call,
        .unary_call = unary_call,
        .cacheable_unary_call = cacheable_unary_call,
        .streaming_output_call = service_streaming_output,
        .streaming_input_call = service_streaming_input,
        .full_duplex_call = service_full_duplex,
        .half_duplex_call = service_half_duplex,
    };

    return METHOD(serve)(server, &handlers, NULL);
}
