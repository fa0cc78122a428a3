/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What cases expect, and the words when it is not met. */

#include "cases.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_PAYLOAD ((size_t)4 << 20)

bool expect(const struct run *run, bool is_met, const char *format, ...)
{
    va_list args;

    if (!is_met) {
        fprintf(stderr, "%s: expected ", run->test_case);
        va_start(args, format);
        vfprintf(stderr, format, args);
        va_end(args);
        fprintf(stderr, "\n");
    }
    return is_met;
}

bool expect_status(const struct run *run, const char *what, const struct bow_result *result,
                   enum bow_code code)
{
    return expect(run, result->status.code == code, "%s to end with %s, not %s: %s", what,
                  bow_code_name(code), bow_code_name(result->status.code), result->status.message);
}

bool expect_words(const struct run *run, const char *what, const struct bow_result *result,
                  enum bow_code code, const char *message)
{
    return expect_status(run, what, result, code) &&
           expect(run, strcmp(result->status.message, message) == 0,
                  "%s to end with the words \"%s\", not \"%s\"", what, message,
                  result->status.message);
}

static bool is_zero(const ProtobufCBinaryData *body)
{
    return body->len == 0 ||
           (body->data[0] == 0 && memcmp(body->data, body->data + 1, body->len - 1) == 0);
}

bool expect_payload(const struct run *run, const char *what, const Grpc__Testing__Payload *payload,
                    size_t size)
{
    size_t n = payload != NULL ? payload->body.len : 0;

    return expect(run, n == size, "%s with a payload of %zu bytes, not %zu", what, size, n) &&
           expect(run, n == 0 || is_zero(&payload->body), "%s with a payload of zeros alone", what);
}

Grpc__Testing__Payload payload_of(size_t size)
{
    static uint8_t zeros[MAX_PAYLOAD];
    Grpc__Testing__Payload payload = GRPC__TESTING__PAYLOAD__INIT;

    payload.body = (ProtobufCBinaryData){size < sizeof(zeros) ? size : sizeof(zeros), zeros};
    return payload;
}
