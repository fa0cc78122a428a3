/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Cases of many requests, or many responses, and of streams that their client gives up. */

#include "cases.h"

#define N_STEPS 4

static const size_t request_sizes[N_STEPS] = {27182, 8, 1828, 45904};
static const int32_t response_sizes[N_STEPS] = {31415, 9, 2653, 58979};

bool case_client_streaming(struct run *run)
{
    struct METHOD(streaming_input_call__stream) stream;
    struct bow_result result = BOW_RESULT_INIT;
    bool is_met = true;

    if (!expect(run,
                METHOD(streaming_input_call__open)(run->client, NULL, NULL, NULL, &stream) == 0,
                "StreamingInputCall to begin")) {
        return false;
    }
    for (int i = 0; i < N_STEPS && is_met; i++) {
        Grpc__Testing__StreamingInputCallRequest request =
            GRPC__TESTING__STREAMING_INPUT_CALL_REQUEST__INIT;
        Grpc__Testing__Payload payload = payload_of(request_sizes[i]);
        request.payload = &payload;
        is_met =
            expect(run, METHOD(streaming_input_call__stream_write)(stream, &request, PATIENCE) == 0,
                   "request %d to be taken", i);
    }
    const Grpc__Testing__StreamingInputCallResponse *response =
        METHOD(streaming_input_call__stream_finish)(stream, &result);
    is_met = is_met && expect_status(run, "StreamingInputCall", &result, BOW_OK) &&
             expect(run, response->aggregated_payload_size == 74922, "74922 bytes in all, not %d",
                    response->aggregated_payload_size);
    bow_result_fini(&result);
    return is_met;
}

bool case_server_streaming(struct run *run)
{
    Grpc__Testing__StreamingOutputCallRequest request =
        GRPC__TESTING__STREAMING_OUTPUT_CALL_REQUEST__INIT;
    Grpc__Testing__ResponseParameters parameters[N_STEPS];
    Grpc__Testing__ResponseParameters *pointers[N_STEPS];
    const Grpc__Testing__StreamingOutputCallResponse *response = NULL;
    struct METHOD(streaming_output_call__stream) stream;
    struct bow_result result = BOW_RESULT_INIT;
    bool is_met = true;

    for (int i = 0; i < N_STEPS; i++) {
        grpc__testing__response_parameters__init(&parameters[i]);
        parameters[i].size = response_sizes[i];
        pointers[i] = &parameters[i];
    }
    request.n_response_parameters = N_STEPS;
    request.response_parameters = pointers;
    if (!expect(run,
                METHOD(streaming_output_call__open)(run->client, &request, NULL, NULL, NULL,
                                                    &stream) == 0,
                "StreamingOutputCall to begin")) {
        return false;
    }
    for (int i = 0; i < N_STEPS && is_met; i++) {
        is_met =
            expect(run,
                   METHOD(streaming_output_call__stream_receive)(stream, PATIENCE, &response) == 1,
                   "%d responses, not %d", N_STEPS, i) &&
            expect_payload(run, "a response", response->payload, (size_t)response_sizes[i]);
    }
    is_met =
        is_met &&
        expect(run, METHOD(streaming_output_call__stream_receive)(stream, PATIENCE, &response) == 0,
               "%d responses and no more", N_STEPS);
    METHOD(streaming_output_call__stream_finish)(stream, &result);
    is_met = is_met && expect_status(run, "StreamingOutputCall", &result, BOW_OK);
    bow_result_fini(&result);
    return is_met;
}

/* FullDuplexCall */

static bool open_duplex(struct run *run, const struct bow_call_options *options,
                        struct METHOD(full_duplex_call__stream) * ret_stream)
{
    return expect(run,
                  METHOD(full_duplex_call__open)(run->client, options, NULL, NULL, ret_stream) == 0,
                  "FullDuplexCall to begin");
}

static int ask(struct METHOD(full_duplex_call__stream) stream, size_t request_size,
               int32_t response_size)
{
    Grpc__Testing__StreamingOutputCallRequest request =
        GRPC__TESTING__STREAMING_OUTPUT_CALL_REQUEST__INIT;
    Grpc__Testing__ResponseParameters parameters = GRPC__TESTING__RESPONSE_PARAMETERS__INIT;
    Grpc__Testing__ResponseParameters *pointer = &parameters;
    Grpc__Testing__Payload payload = payload_of(request_size);

    parameters.size = response_size;
    request.n_response_parameters = 1;
    request.response_parameters = &pointer;
    request.payload = &payload;
    return METHOD(full_duplex_call__stream_write)(stream, &request, PATIENCE);
}

static bool exchange(struct run *run, struct METHOD(full_duplex_call__stream) stream, int i)
{
    const Grpc__Testing__StreamingOutputCallResponse *response = NULL;

    return expect(run, ask(stream, request_sizes[i], response_sizes[i]) == 0,
                  "request %d to be taken", i) &&
           expect(run, METHOD(full_duplex_call__stream_receive)(stream, PATIENCE, &response) == 1,
                  "a response to request %d", i) &&
           expect_payload(run, "a response", response->payload, (size_t)response_sizes[i]);
}

static bool end_duplex(struct run *run, struct METHOD(full_duplex_call__stream) stream, bool is_met,
                       enum bow_code code)
{
    struct bow_result result = BOW_RESULT_INIT;

    METHOD(full_duplex_call__stream_finish)(stream, &result);
    is_met = is_met && expect_status(run, "FullDuplexCall", &result, code);
    bow_result_fini(&result);
    return is_met;
}

static bool has_ended(struct run *run, struct METHOD(full_duplex_call__stream) stream)
{
    const Grpc__Testing__StreamingOutputCallResponse *response = NULL;

    return expect(run, bow_stream_half_close(stream.stream) == 0, "the stream to half-close") &&
           expect(run, METHOD(full_duplex_call__stream_receive)(stream, PATIENCE, &response) == 0,
                  "no further response");
}

bool case_ping_pong(struct run *run)
{
    struct METHOD(full_duplex_call__stream) stream;
    bool is_met = true;

    if (!open_duplex(run, NULL, &stream)) {
        return false;
    }
    for (int i = 0; i < N_STEPS && is_met; i++) {
        is_met = exchange(run, stream, i);
    }
    is_met = is_met && has_ended(run, stream);
    return end_duplex(run, stream, is_met, BOW_OK);
}

bool case_empty_stream(struct run *run)
{
    struct METHOD(full_duplex_call__stream) stream;

    return open_duplex(run, NULL, &stream) &&
           end_duplex(run, stream, has_ended(run, stream), BOW_OK);
}

bool case_cancel_after_begin(struct run *run)
{
    struct METHOD(streaming_input_call__stream) stream;
    struct bow_result result = BOW_RESULT_INIT;

    if (!expect(run,
                METHOD(streaming_input_call__open)(run->client, NULL, NULL, NULL, &stream) == 0,
                "StreamingInputCall to begin")) {
        return false;
    }
    bow_stream_cancel(stream.stream);
    METHOD(streaming_input_call__stream_finish)(stream, &result);
    bool is_met = expect_status(run, "a stream that was cancelled", &result, BOW_CANCELLED);
    bow_result_fini(&result);
    return is_met;
}

bool case_cancel_after_first_response(struct run *run)
{
    struct METHOD(full_duplex_call__stream) stream;

    if (!open_duplex(run, NULL, &stream)) {
        return false;
    }
    bool is_met = exchange(run, stream, 0);
    bow_stream_cancel(stream.stream);
    return end_duplex(run, stream, is_met, BOW_CANCELLED);
}

bool case_timeout_on_sleeping_server(struct run *run)
{
    Grpc__Testing__StreamingOutputCallRequest request =
        GRPC__TESTING__STREAMING_OUTPUT_CALL_REQUEST__INIT;
    Grpc__Testing__Payload payload = payload_of(27182);
    struct METHOD(full_duplex_call__stream) stream;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    const Grpc__Testing__StreamingOutputCallResponse *response = NULL;

    options.timeout_ns = SECOND / 1000;
    request.payload = &payload;
    if (!open_duplex(run, &options, &stream)) {
        return false;
    }
    /* The time may be over by then. Nothing is asked for, so nothing comes before it is. */
    (void)!METHOD(full_duplex_call__stream_write)(stream, &request, PATIENCE);
    bool is_met =
        expect(run, METHOD(full_duplex_call__stream_receive)(stream, PATIENCE, &response) == 0,
               "no response");
    return end_duplex(run, stream, is_met, BOW_DEADLINE_EXCEEDED);
}
