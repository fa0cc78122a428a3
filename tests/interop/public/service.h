/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_INTEROP_PUBLIC_SERVICE_H
#define BOWLINE_TESTS_INTEROP_PUBLIC_SERVICE_H

/*
 * The TestService of testing.proto, as gRPC's public interoperability cases want it.
 */

#include "testing.bow.h"

#define METHOD(name) grpc__testing__test_service__##name

/** The largest payload that is sent. */
#define MAX_PAYLOAD ((size_t)4 << 20)

/** Add it. Returns as bow_server_add_service(). */
int service_add(struct bow_server *server);

/* What the calls of one message and streams have in common. */

/** Send the metadata back that a client asks to have echoed. Returns false when the call has been
 * failed for it. */
bool service_echo_metadata(struct bow_call *call);
/** Fail the call with the status that its client asks for. Returns whether it did. */
bool service_fail_as_asked(struct bow_call *call, const Grpc__Testing__EchoStatus *status);
/** Whether a message came as its client said; else the call has been failed. */
bool service_came_as_expected(struct bow_call *call, const Grpc__Testing__BoolValue *compressed);
/** A payload of so many zeros. Returns false when the call has been failed for its size. */
bool service_fill(struct bow_call *call, int32_t size, Grpc__Testing__Payload *ret_payload);

/* The streams: service_streams.c. */

void service_streaming_output(struct METHOD(streaming_output_call__call) call,
                              const Grpc__Testing__StreamingOutputCallRequest *request, void *user);
void service_streaming_input(struct METHOD(streaming_input_call__call) call, void *user);
void service_full_duplex(struct METHOD(full_duplex_call__call) call, void *user);
void service_half_duplex(struct METHOD(half_duplex_call__call) call, void *user);

#endif
