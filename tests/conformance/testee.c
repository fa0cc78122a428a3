/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What protobuf's conformance runner asks: it writes a ConformanceRequest with its length before
 * it, in four bytes, and reads a ConformanceResponse likewise, until it closes the pipe. The
 * requests are messages of our own generator, too.
 *
 * Knows no single case: conformance.py has the list of those that fail.
 */
#include "conformance/conformance.bow.h"
#include "google/protobuf/any.bow.h"
#include "google/protobuf/test_messages_proto2.bow.h"
#include "google/protobuf/test_messages_proto3.bow.h"
#include <bowline/json.h>
#include <bowline/message.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const ProtobufCMessageDescriptor *const types[] = {
    &protobuf_test_messages__proto3__test_all_types_proto3__descriptor,
    &protobuf_test_messages__proto2__test_all_types_proto2__descriptor,
    &protobuf_test_messages__proto2__test_all_required_types_proto2__descriptor,
    &conformance__failure_set__descriptor,
};

/* These import all that an Any of the cases holds. */
static const struct bow_file *const files[] = {
    &protobuf_test_messages__proto3__file__google_2fprotobuf_2ftest_5fmessages_5fproto3_2eproto,
    &protobuf_test_messages__proto2__file__google_2fprotobuf_2ftest_5fmessages_5fproto2_2eproto,
};

/* One request. */
struct work {
    Conformance__ConformanceRequest *request;
    Conformance__ConformanceResponse response;
    struct bow_json_options json;
    struct bow_arena *arena;
    char reason[512];
};

static const ProtobufCMessageDescriptor *find_type(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i]->name, name) == 0) {
            return types[i];
        }
    }
    return NULL;
}

static int read_payload(struct work *w, const ProtobufCMessageDescriptor *type,
                        ProtobufCMessage **ret_message)
{
    const Conformance__ConformanceRequest *request = w->request;
    if (request->payload_case == CONFORMANCE__CONFORMANCE_REQUEST__PAYLOAD_JSON_PAYLOAD) {
        const char *text = request->json_payload;
        return bow_json_read(type, (struct bow_slice){(const uint8_t *)text, strlen(text)},
                             &w->json, w->arena, ret_message, w->reason, sizeof w->reason);
    }
    struct bow_slice bytes = {request->protobuf_payload.data, request->protobuf_payload.len};
    return bow_message_decode(type, bytes, NULL, w->arena, ret_message, w->reason,
                              sizeof w->reason);
}

static int write_payload(struct work *w, const ProtobufCMessage *message)
{
    struct bow_slice out;
    int rc;
    if (w->request->requested_output_format == CONFORMANCE__WIRE_FORMAT__JSON) {
        rc = bow_json_write(message, &w->json, w->arena, &out, w->reason, sizeof w->reason);
        if (rc == 0) {
            conformance__conformance_response__set_json_payload_ref(&w->response,
                                                                    (char *)(uintptr_t)out.data);
        }
        return rc;
    }
    rc = bow_message_encode_new(message, w->arena, &out);
    if (rc == 0) {
        conformance__conformance_response__set_protobuf_payload_ref(&w->response, out.data,
                                                                    out.len);
    } else {
        bow_message_check(message, w->reason, sizeof w->reason);
    }
    return rc;
}

/* What there is not: JSPB, text, and messages of editions. */
static const char *why_skipped(const Conformance__ConformanceRequest *request)
{
    if (find_type(request->message_type) == NULL) {
        return "a type of an edition";
    }
    if (request->payload_case != CONFORMANCE__CONFORMANCE_REQUEST__PAYLOAD_JSON_PAYLOAD &&
        request->payload_case != CONFORMANCE__CONFORMANCE_REQUEST__PAYLOAD_PROTOBUF_PAYLOAD) {
        return "neither binary nor JSON";
    }
    if (request->requested_output_format != CONFORMANCE__WIRE_FORMAT__PROTOBUF &&
        request->requested_output_format != CONFORMANCE__WIRE_FORMAT__JSON) {
        return "neither binary nor JSON";
    }
    return NULL;
}

static void answer(struct work *w)
{
    ProtobufCMessage *message;
    const char *skipped = why_skipped(w->request);
    if (skipped != NULL) {
        conformance__conformance_response__set_skipped(&w->response, skipped, w->arena);
    } else if (read_payload(w, find_type(w->request->message_type), &message) < 0) {
        conformance__conformance_response__set_parse_error(&w->response, w->reason, w->arena);
    } else if (write_payload(w, message) < 0) {
        conformance__conformance_response__set_serialize_error(&w->response, w->reason, w->arena);
    }
}

/* Whether there was a request, and it was answered. */
static bool serve_one(void)
{
    uint8_t head[4];
    if (fread(head, 1, sizeof head, stdin) != sizeof head) {
        return false;
    }
    size_t len = head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
    struct work w = {
        .response = CONFORMANCE__CONFORMANCE_RESPONSE__INIT,
        .json = BOW_JSON_OPTIONS_INIT,
        .arena = bow_arena_new(NULL, 0),
    };
    uint8_t *bytes = bow_arena_alloc(w.arena, len + 1);
    if (bytes == NULL || fread(bytes, 1, len, stdin) != len ||
        conformance__conformance_request__decode((struct bow_slice){bytes, len}, NULL, w.arena,
                                                 &w.request, w.reason, sizeof w.reason) < 0) {
        fprintf(stderr, "testee: no request: %s\n", w.reason);
        exit(1);
    }
    w.json.files = files;
    w.json.n_files = sizeof files / sizeof files[0];
    w.json.ignore_unknown =
        w.request->test_category == CONFORMANCE__TEST_CATEGORY__JSON_IGNORE_UNKNOWN_PARSING_TEST;
    answer(&w);
    struct bow_slice out;
    if (bow_message_encode_new(&w.response.base, w.arena, &out) < 0) {
        exit(1);
    }
    for (size_t i = 0; i < sizeof head; i++) {
        head[i] = (uint8_t)(out.len >> 8 * i);
    }
    fwrite(head, 1, sizeof head, stdout);
    fwrite(out.data, 1, out.len, stdout);
    fflush(stdout);
    bow_arena_free(w.arena);
    return true;
}

int main(void)
{
    while (serve_one()) {
    }
    return 0;
}
