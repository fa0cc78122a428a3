/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_INTEROP_PUBLIC_CASES_H
#define BOWLINE_TESTS_INTEROP_PUBLIC_CASES_H

/*
 * gRPC's public interoperability cases, each a function that returns whether the server met what
 * the case expects; what it did not is said on stderr.
 */

#include "testing.bow.h"
#include <bowline/client.h>
#include <bowline/stream.h>

#define METHOD(name) grpc__testing__test_service__##name
#define SECOND UINT64_C(1000000000)
#define PATIENCE (20 * SECOND)

/** What a case is run with. */
struct run {
    const char *test_case;
    struct bow_client_options options;
    struct bow_client *client;
    uint64_t soak_iterations;
    uint64_t soak_max_failures;
    uint64_t soak_max_latency_ms; /* of one call */
    uint64_t soak_min_time_ms;    /* between two */
    uint64_t soak_timeout_s;      /* of all */
    uint64_t soak_request_size;
    uint64_t soak_response_size;
};

typedef bool (*case_fn)(struct run *run);

/** One for each name; NULL for a name that is none. */
case_fn case_find(const char *name);
/** Print the names, one a line. */
void case_list(void);

/* What cases expect: cases_expect.c. Each returns `is_met`, and says what was expected else. */

bool expect(const struct run *run, bool is_met, const char *format, ...) BOW_PRINTF(3, 4);
bool expect_status(const struct run *run, const char *what, const struct bow_result *result,
                   enum bow_code code);
/** With that very message. */
bool expect_words(const struct run *run, const char *what, const struct bow_result *result,
                  enum bow_code code, const char *message);
/** So many zeros. */
bool expect_payload(const struct run *run, const char *what, const Grpc__Testing__Payload *payload,
                    size_t size);

/** A payload of so many zeros, 4 MiB at most. */
Grpc__Testing__Payload payload_of(size_t size);

/* The cases, by theme. */

/* cases_unary.c */
bool case_empty_unary(struct run *run);
bool case_large_unary(struct run *run);
bool case_cacheable_unary(struct run *run);
bool case_pick_first_unary(struct run *run);
bool case_orca_per_rpc(struct run *run);
/* cases_compressed.c */
bool case_client_compressed_unary(struct run *run);
bool case_server_compressed_unary(struct run *run);
bool case_client_compressed_streaming(struct run *run);
bool case_server_compressed_streaming(struct run *run);
/* cases_streams.c */
bool case_client_streaming(struct run *run);
bool case_server_streaming(struct run *run);
bool case_ping_pong(struct run *run);
bool case_empty_stream(struct run *run);
bool case_cancel_after_begin(struct run *run);
bool case_cancel_after_first_response(struct run *run);
bool case_timeout_on_sleeping_server(struct run *run);
/* cases_status.c */
bool case_custom_metadata(struct run *run);
bool case_status_code_and_message(struct run *run);
bool case_special_status_message(struct run *run);
bool case_unimplemented_method(struct run *run);
bool case_unimplemented_service(struct run *run);
/* cases_soak.c */
bool case_rpc_soak(struct run *run);
bool case_channel_soak(struct run *run);

#endif
