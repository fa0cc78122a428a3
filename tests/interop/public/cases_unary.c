/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Cases of one request and one response. */

#include "cases.h"
#include <bowline/metadata.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define LARGE_REQUEST 271828
#define LARGE_RESPONSE 314159
#define PICKED_CALLS 100

bool case_empty_unary(struct run *run)
{
    Grpc__Testing__Empty request = GRPC__TESTING__EMPTY__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    METHOD(empty_call__call)(run->client, &request, NULL, &result);
    bool is_met = expect_status(run, "EmptyCall", &result, BOW_OK);
    bow_result_fini(&result);
    return is_met;
}

bool case_large_unary(struct run *run)
{
    Grpc__Testing__SimpleRequest request = GRPC__TESTING__SIMPLE_REQUEST__INIT;
    Grpc__Testing__Payload payload = payload_of(LARGE_REQUEST);
    struct bow_result result = BOW_RESULT_INIT;

    request.response_size = LARGE_RESPONSE;
    request.payload = &payload;
    const Grpc__Testing__SimpleResponse *response =
        METHOD(unary_call__call)(run->client, &request, NULL, &result);
    bool is_met = expect_status(run, "UnaryCall", &result, BOW_OK) &&
                  expect_payload(run, "a response", response->payload, LARGE_RESPONSE);
    bow_result_fini(&result);
    return is_met;
}

/* Two calls whose responses a cache between may have made one. */

static bool call_cacheable(struct run *run, const Grpc__Testing__SimpleRequest *request,
                           struct bow_result *result)
{
    static const struct bow_metadata_entry entry = {"x-user-ip", {(const uint8_t *)"1.2.3.4", 7}};
    struct bow_metadata metadata = {&entry, 1};
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;

    options.metadata = &metadata;
    METHOD(cacheable_unary_call__call)(run->client, request, &options, result);
    return expect_status(run, "CacheableUnaryCall", result, BOW_OK);
}

static const Grpc__Testing__Payload *payload_in(const struct bow_result *result)
{
    static const Grpc__Testing__Payload none = GRPC__TESTING__PAYLOAD__INIT;
    const Grpc__Testing__SimpleResponse *response = (const void *)result->reply;

    return response->payload != NULL ? response->payload : &none;
}

bool case_cacheable_unary(struct run *run)
{
    Grpc__Testing__SimpleRequest request = GRPC__TESTING__SIMPLE_REQUEST__INIT;
    Grpc__Testing__Payload payload = GRPC__TESTING__PAYLOAD__INIT;
    struct bow_result results[2] = {BOW_RESULT_INIT, BOW_RESULT_INIT};
    struct timespec now;
    char text[32];

    clock_gettime(CLOCK_REALTIME, &now);
    payload.body.len = (size_t)snprintf(text, sizeof(text), "%ld", now.tv_nsec);
    payload.body.data = (uint8_t *)text;
    request.payload = &payload;
    bool is_met =
        call_cacheable(run, &request, &results[0]) && call_cacheable(run, &request, &results[1]);
    if (is_met) {
        const ProtobufCBinaryData *one = &payload_in(&results[0])->body;
        const ProtobufCBinaryData *other = &payload_in(&results[1])->body;
        is_met = expect(run,
                        one->len == other->len &&
                            (one->len == 0 || memcmp(one->data, other->data, one->len) == 0),
                        "two responses with the same payload");
    }
    bow_result_fini(&results[0]);
    bow_result_fini(&results[1]);
    return is_met;
}

/* Of several servers behind one name all calls go to one. */

static bool call_picked(struct run *run, char *id, size_t n_id)
{
    Grpc__Testing__SimpleRequest request = GRPC__TESTING__SIMPLE_REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    request.response_size = 1;
    request.fill_server_id = true;
    const Grpc__Testing__SimpleResponse *response =
        METHOD(unary_call__call)(run->client, &request, NULL, &result);
    bool is_met = expect_status(run, "UnaryCall", &result, BOW_OK) &&
                  expect(run, response->server_id[0] != '\0', "a response with the server's id");
    if (is_met && id[0] == '\0') {
        snprintf(id, n_id, "%s", response->server_id);
    }
    is_met =
        is_met && expect(run, strcmp(id, response->server_id) == 0,
                         "all calls to go to server %s, not one to %s", id, response->server_id);
    bow_result_fini(&result);
    return is_met;
}

bool case_pick_first_unary(struct run *run)
{
    char id[256] = "";

    for (int i = 0; i < PICKED_CALLS; i++) {
        if (!call_picked(run, id, sizeof(id))) {
            return false;
        }
    }
    return true;
}

/* The load of a call, which its server reports in trailing metadata. */

static bool has_value(const struct run *run, size_t n, Grpc__Testing__NamedValue *const *values,
                      const Grpc__Testing__NamedValue *asked)
{
    return expect(
        run, n == 1 && strcmp(values[0]->key, asked->key) == 0 && values[0]->value == asked->value,
        "a report of %s=%g alone", asked->key, asked->value);
}

static bool is_report(const struct run *run, const struct bow_slice *bytes,
                      const Grpc__Testing__TestOrcaReport *asked)
{
    Grpc__Testing__LoadReport *report =
        bytes != NULL ? grpc__testing__load_report__unpack(NULL, bytes->len, bytes->data) : NULL;

    bool is_met =
        expect(run, report != NULL, "a report in endpoint-load-metrics-bin") &&
        expect(run,
               report->cpu_utilization == asked->cpu_utilization &&
                   report->mem_utilization == asked->memory_utilization,
               "a report of the load that was asked for") &&
        has_value(run, report->n_request_cost, report->request_cost, asked->request_cost[0]) &&
        has_value(run, report->n_utilization, report->utilization, asked->utilization[0]);
    if (report != NULL) {
        grpc__testing__load_report__free_unpacked(report, NULL);
    }
    return is_met;
}

bool case_orca_per_rpc(struct run *run)
{
    Grpc__Testing__SimpleRequest request = GRPC__TESTING__SIMPLE_REQUEST__INIT;
    Grpc__Testing__TestOrcaReport asked = GRPC__TESTING__TEST_ORCA_REPORT__INIT;
    Grpc__Testing__NamedValue cost = GRPC__TESTING__NAMED_VALUE__INIT;
    Grpc__Testing__NamedValue utilization = GRPC__TESTING__NAMED_VALUE__INIT;
    Grpc__Testing__NamedValue *costs[] = {&cost};
    Grpc__Testing__NamedValue *utilizations[] = {&utilization};
    struct bow_result result = BOW_RESULT_INIT;

    cost.key = (char *)(uintptr_t) "cost";
    cost.value = 3456.32;
    utilization.key = (char *)(uintptr_t) "util";
    utilization.value = 0.30499;
    asked.cpu_utilization = 0.8210;
    asked.memory_utilization = 0.5847;
    asked.n_request_cost = 1;
    asked.request_cost = costs;
    asked.n_utilization = 1;
    asked.utilization = utilizations;
    request.orca_per_query_report = &asked;
    METHOD(unary_call__call)(run->client, &request, NULL, &result);
    bool is_met =
        expect_status(run, "UnaryCall", &result, BOW_OK) &&
        is_report(run, bow_metadata_find(&result.status.metadata, "endpoint-load-metrics-bin"),
                  &asked);
    bow_result_fini(&result);
    return is_met;
}
