/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Cases in which a message is to be compressed, or not, and who gets it sees that it was so. Those
 * of the client begin with one that says so and is not: a server that sees nothing would take it.
 */

#include "cases.h"

#define LARGE_REQUEST 271828
#define LARGE_RESPONSE 314159

/* One request that says of itself that it is compressed, and may be. */
static bool call_saying(struct run *run, bool says, bool is, enum bow_code code)
{
    Grpc__Testing__SimpleRequest request = GRPC__TESTING__SIMPLE_REQUEST__INIT;
    Grpc__Testing__BoolValue said = GRPC__TESTING__BOOL_VALUE__INIT;
    Grpc__Testing__Payload payload = payload_of(LARGE_REQUEST);
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    struct bow_result result = BOW_RESULT_INIT;

    said.value = says;
    request.response_size = LARGE_RESPONSE;
    request.payload = &payload;
    request.expect_compressed = &said;
    options.compression = is ? BOW_COMPRESSION_ON : BOW_COMPRESSION_OFF;
    const Grpc__Testing__SimpleResponse *response =
        METHOD(unary_call__call)(run->client, &request, &options, &result);
    bool is_met = expect_status(
        run, is ? "a compressed request" : "a request that is not compressed", &result, code);
    if (is_met && code == BOW_OK) {
        is_met = expect_payload(run, "a response", response->payload, LARGE_RESPONSE);
    }
    bow_result_fini(&result);
    return is_met;
}

bool case_client_compressed_unary(struct run *run)
{
    return call_saying(run, true, false, BOW_INVALID_ARGUMENT) &&
           call_saying(run, true, true, BOW_OK) && call_saying(run, false, false, BOW_OK);
}

static bool call_for(struct run *run, bool compressed)
{
    Grpc__Testing__SimpleRequest request = GRPC__TESTING__SIMPLE_REQUEST__INIT;
    Grpc__Testing__BoolValue asked = GRPC__TESTING__BOOL_VALUE__INIT;
    Grpc__Testing__Payload payload = payload_of(LARGE_REQUEST);
    struct bow_result result = BOW_RESULT_INIT;

    asked.value = compressed;
    request.response_size = LARGE_RESPONSE;
    request.payload = &payload;
    request.response_compressed = &asked;
    const Grpc__Testing__SimpleResponse *response =
        METHOD(unary_call__call)(run->client, &request, NULL, &result);
    bool is_met = expect_status(run, "UnaryCall", &result, BOW_OK) &&
                  expect_payload(run, "a response", response->payload, LARGE_RESPONSE) &&
                  expect(run, bow_result_reply_was_compressed(&result) == compressed,
                         "a response that is %scompressed", compressed ? "" : "not ");
    bow_result_fini(&result);
    return is_met;
}

bool case_server_compressed_unary(struct run *run)
{
    return call_for(run, true) && call_for(run, false);
}

/* Streams */

static bool write_saying(struct run *run, struct bow_stream *stream, bool says, bool is,
                         size_t size)
{
    Grpc__Testing__StreamingInputCallRequest request =
        GRPC__TESTING__STREAMING_INPUT_CALL_REQUEST__INIT;
    Grpc__Testing__BoolValue said = GRPC__TESTING__BOOL_VALUE__INIT;
    Grpc__Testing__Payload payload = payload_of(size);

    said.value = says;
    request.payload = &payload;
    request.expect_compressed = &said;
    return expect(run,
                  bow_stream_compress(stream, is) == 0 &&
                      bow_stream_write(stream, &request.base, PATIENCE) == 0,
                  "a request of %zu bytes to be taken", size);
}

static int open_input(struct run *run, struct METHOD(streaming_input_call__stream) * ret_stream)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;

    options.compression = BOW_COMPRESSION_ON;
    options.timeout_ns = PATIENCE;
    return METHOD(streaming_input_call__open)(run->client, &options, NULL, NULL, ret_stream);
}

static bool stream_lying(struct run *run)
{
    struct METHOD(streaming_input_call__stream) stream;
    struct bow_result result = BOW_RESULT_INIT;

    if (!expect(run, open_input(run, &stream) == 0, "StreamingInputCall to begin")) {
        return false;
    }
    bool is_met = write_saying(run, stream.stream, true, false, 27182);
    METHOD(streaming_input_call__stream_finish)(stream, &result);
    is_met = is_met && expect_status(run, "a stream whose request is not compressed as it says",
                                     &result, BOW_INVALID_ARGUMENT);
    bow_result_fini(&result);
    return is_met;
}

bool case_client_compressed_streaming(struct run *run)
{
    struct METHOD(streaming_input_call__stream) stream;
    struct bow_result result = BOW_RESULT_INIT;

    if (!stream_lying(run) ||
        !expect(run, open_input(run, &stream) == 0, "StreamingInputCall to begin")) {
        return false;
    }
    bool is_met = write_saying(run, stream.stream, true, true, 27182) &&
                  write_saying(run, stream.stream, false, false, 45904);
    const Grpc__Testing__StreamingInputCallResponse *response =
        METHOD(streaming_input_call__stream_finish)(stream, &result);
    is_met = is_met && expect_status(run, "StreamingInputCall", &result, BOW_OK) &&
             expect(run, response->aggregated_payload_size == 73086, "73086 bytes in all, not %d",
                    response->aggregated_payload_size);
    bow_result_fini(&result);
    return is_met;
}

static bool receive_compressed(struct run *run, struct METHOD(streaming_output_call__stream) stream,
                               size_t size, bool compressed)
{
    const Grpc__Testing__StreamingOutputCallResponse *response = NULL;

    return expect(run,
                  METHOD(streaming_output_call__stream_receive)(stream, PATIENCE, &response) == 1,
                  "a response of %zu bytes", size) &&
           expect_payload(run, "a response", response->payload, size) &&
           expect(run, bow_stream_message_was_compressed(stream.stream) == compressed,
                  "a response of %zu bytes that is %scompressed", size, compressed ? "" : "not ");
}

bool case_server_compressed_streaming(struct run *run)
{
    Grpc__Testing__StreamingOutputCallRequest request =
        GRPC__TESTING__STREAMING_OUTPUT_CALL_REQUEST__INIT;
    Grpc__Testing__ResponseParameters one = GRPC__TESTING__RESPONSE_PARAMETERS__INIT;
    Grpc__Testing__ResponseParameters other = GRPC__TESTING__RESPONSE_PARAMETERS__INIT;
    Grpc__Testing__BoolValue yes = GRPC__TESTING__BOOL_VALUE__INIT;
    Grpc__Testing__BoolValue no = GRPC__TESTING__BOOL_VALUE__INIT;
    Grpc__Testing__ResponseParameters *parameters[] = {&one, &other};
    struct METHOD(streaming_output_call__stream) stream;
    struct bow_result result = BOW_RESULT_INIT;

    yes.value = true;
    one.size = 31415;
    one.compressed = &yes;
    other.size = 92653;
    other.compressed = &no;
    request.n_response_parameters = 2;
    request.response_parameters = parameters;
    if (!expect(run,
                METHOD(streaming_output_call__open)(run->client, &request, NULL, NULL, NULL,
                                                    &stream) == 0,
                "StreamingOutputCall to begin")) {
        return false;
    }
    bool is_met = receive_compressed(run, stream, 31415, true) &&
                  receive_compressed(run, stream, 92653, false);
    METHOD(streaming_output_call__stream_finish)(stream, &result);
    is_met = is_met && expect_status(run, "StreamingOutputCall", &result, BOW_OK);
    bow_result_fini(&result);
    return is_met;
}
