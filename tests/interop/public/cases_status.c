/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Cases of what travels beside messages: metadata, codes and words, methods that nobody serves. */

#include "cases.h"
#include <bowline/metadata.h>
#include <string.h>

/* Metadata that comes back */

static const char initial_key[] = "x-grpc-test-echo-initial";
static const char trailing_key[] = "x-grpc-test-echo-trailing-bin";
static const struct bow_slice initial_value = {(const uint8_t *)"test_initial_metadata_value", 27};
static const struct bow_slice trailing_value = {(const uint8_t *)"\xab\xab\xab", 3};

static bool came_back(const struct run *run, const char *what, const struct bow_metadata *metadata,
                      const char *key, struct bow_slice sent)
{
    const struct bow_slice *value = bow_metadata_find(metadata, key);

    return expect(run,
                  value != NULL && value->len == sent.len &&
                      memcmp(value->data, sent.data, sent.len) == 0,
                  "%s to bring %s back", what, key);
}

static bool has_metadata(const struct run *run, const char *what, const struct bow_result *result)
{
    return expect_status(run, what, result, BOW_OK) &&
           came_back(run, what, &result->initial, initial_key, initial_value) &&
           came_back(run, what, &result->status.metadata, trailing_key, trailing_value);
}

static bool unary_with_metadata(struct run *run, const struct bow_call_options *options)
{
    Grpc__Testing__SimpleRequest request = GRPC__TESTING__SIMPLE_REQUEST__INIT;
    Grpc__Testing__Payload payload = payload_of(271828);
    struct bow_result result = BOW_RESULT_INIT;

    request.response_size = 314159;
    request.payload = &payload;
    METHOD(unary_call__call)(run->client, &request, options, &result);
    bool is_met = has_metadata(run, "UnaryCall", &result);
    bow_result_fini(&result);
    return is_met;
}

static bool duplex_with_metadata(struct run *run, const struct bow_call_options *options)
{
    Grpc__Testing__StreamingOutputCallRequest request =
        GRPC__TESTING__STREAMING_OUTPUT_CALL_REQUEST__INIT;
    Grpc__Testing__ResponseParameters parameters = GRPC__TESTING__RESPONSE_PARAMETERS__INIT;
    Grpc__Testing__ResponseParameters *pointer = &parameters;
    Grpc__Testing__Payload payload = payload_of(271828);
    const Grpc__Testing__StreamingOutputCallResponse *response = NULL;
    struct METHOD(full_duplex_call__stream) stream;
    struct bow_result result = BOW_RESULT_INIT;

    parameters.size = 314159;
    request.n_response_parameters = 1;
    request.response_parameters = &pointer;
    request.payload = &payload;
    if (!expect(run, METHOD(full_duplex_call__open)(run->client, options, NULL, NULL, &stream) == 0,
                "FullDuplexCall to begin")) {
        return false;
    }
    bool is_met =
        expect(run,
               METHOD(full_duplex_call__stream_write)(stream, &request, PATIENCE) == 0 &&
                   METHOD(full_duplex_call__stream_receive)(stream, PATIENCE, &response) == 1,
               "FullDuplexCall to answer");
    METHOD(full_duplex_call__stream_finish)(stream, &result);
    is_met = is_met && has_metadata(run, "FullDuplexCall", &result);
    bow_result_fini(&result);
    return is_met;
}

bool case_custom_metadata(struct run *run)
{
    const struct bow_metadata_entry entries[] = {{initial_key, initial_value},
                                                 {trailing_key, trailing_value}};
    struct bow_metadata metadata = {entries, 2};
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;

    options.metadata = &metadata;
    return unary_with_metadata(run, &options) && duplex_with_metadata(run, &options);
}

/* Codes and words */

static bool unary_that_fails(struct run *run, Grpc__Testing__EchoStatus *status)
{
    Grpc__Testing__SimpleRequest request = GRPC__TESTING__SIMPLE_REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    request.response_status = status;
    METHOD(unary_call__call)(run->client, &request, NULL, &result);
    bool is_met =
        expect_words(run, "UnaryCall", &result, (enum bow_code)status->code, status->message);
    bow_result_fini(&result);
    return is_met;
}

static bool duplex_that_fails(struct run *run, Grpc__Testing__EchoStatus *status)
{
    Grpc__Testing__StreamingOutputCallRequest request =
        GRPC__TESTING__STREAMING_OUTPUT_CALL_REQUEST__INIT;
    struct METHOD(full_duplex_call__stream) stream;
    struct bow_result result = BOW_RESULT_INIT;

    request.response_status = status;
    if (!expect(run, METHOD(full_duplex_call__open)(run->client, NULL, NULL, NULL, &stream) == 0,
                "FullDuplexCall to begin")) {
        return false;
    }
    bool is_met =
        expect(run, METHOD(full_duplex_call__stream_write)(stream, &request, PATIENCE) == 0,
               "the request to be taken");
    METHOD(full_duplex_call__stream_finish)(stream, &result);
    is_met = is_met && expect_words(run, "FullDuplexCall", &result, (enum bow_code)status->code,
                                    status->message);
    bow_result_fini(&result);
    return is_met;
}

bool case_status_code_and_message(struct run *run)
{
    Grpc__Testing__EchoStatus status = GRPC__TESTING__ECHO_STATUS__INIT;

    status.code = BOW_UNKNOWN;
    status.message = (char *)(uintptr_t) "test status message";
    return unary_that_fails(run, &status) && duplex_that_fails(run, &status);
}

bool case_special_status_message(struct run *run)
{
    Grpc__Testing__EchoStatus status = GRPC__TESTING__ECHO_STATUS__INIT;

    status.code = BOW_UNKNOWN;
    status.message = (char *)(uintptr_t) "\t\ntest with whitespace\r\nand Unicode BMP \xE2\x98\xBA "
                                         "and non-BMP \xF0\x9F\x98\x88\t\n";
    return unary_that_fails(run, &status);
}

/* Nobody serves these */

bool case_unimplemented_method(struct run *run)
{
    Grpc__Testing__Empty request = GRPC__TESTING__EMPTY__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    METHOD(unimplemented_call__call)(run->client, &request, NULL, &result);
    bool is_met = expect_status(run, "UnimplementedCall", &result, BOW_UNIMPLEMENTED);
    bow_result_fini(&result);
    return is_met;
}

bool case_unimplemented_service(struct run *run)
{
    Grpc__Testing__Empty request = GRPC__TESTING__EMPTY__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    grpc__testing__unimplemented_service__unimplemented_call__call(run->client, &request, NULL,
                                                                   &result);
    bool is_met = expect_status(run, "UnimplementedService's call", &result, BOW_UNIMPLEMENTED);
    bow_result_fini(&result);
    return is_met;
}
