/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Cases of many calls one after the other: over one channel, or each over one of its own. */

#include "cases.h"
#include <bowline/transport_error.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#define MILLISECOND UINT64_C(1000000)

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

static void wait_until(uint64_t ns)
{
    struct timespec until = {.tv_sec = (time_t)(ns / SECOND), .tv_nsec = (long)(ns % SECOND)};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
}

static bool call_once(struct run *run)
{
    Grpc__Testing__SimpleRequest request = GRPC__TESTING__SIMPLE_REQUEST__INIT;
    Grpc__Testing__Payload payload = payload_of(run->soak_request_size);
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    struct bow_result result = BOW_RESULT_INIT;
    uint64_t start_ns = now_ns();

    request.response_size = (int32_t)run->soak_response_size;
    request.payload = &payload;
    options.timeout_ns = run->soak_timeout_s * SECOND;
    const Grpc__Testing__SimpleResponse *response =
        METHOD(unary_call__call)(run->client, &request, &options, &result);
    uint64_t ms = (now_ns() - start_ns) / MILLISECOND;
    bool is_met =
        expect_status(run, "UnaryCall", &result, BOW_OK) &&
        expect_payload(run, "a response", response->payload, run->soak_response_size) &&
        expect(run, ms <= run->soak_max_latency_ms,
               "a call to take %" PRIu64 " ms at most, not %" PRIu64, run->soak_max_latency_ms, ms);
    bow_result_fini(&result);
    return is_met;
}

static bool renew_channel(struct run *run)
{
    struct bow_transport_error error;

    bow_client_free(run->client);
    run->client = NULL;
    run->options.error = &error;
    return expect(run, bow_client_new(&run->options, &run->client) == 0, "a channel: %s",
                  error.text);
}

static bool soak(struct run *run, bool renews)
{
    uint64_t end_ns = now_ns() + run->soak_timeout_s * SECOND;
    uint64_t n_failed = 0;
    uint64_t n = 0;

    for (; n < run->soak_iterations && now_ns() < end_ns; n++) {
        uint64_t next_ns = now_ns() + run->soak_min_time_ms * MILLISECOND;
        if (renews && !renew_channel(run)) {
            return false;
        }
        n_failed += !call_once(run);
        wait_until(next_ns);
    }
    fprintf(stderr, "%s: %" PRIu64 " of %" PRIu64 " calls made, %" PRIu64 " failed\n",
            run->test_case, n, run->soak_iterations, n_failed);
    return expect(run, n == run->soak_iterations, "all calls within %" PRIu64 " s",
                  run->soak_timeout_s) &&
           expect(run, n_failed <= run->soak_max_failures, "%" PRIu64 " failures at most",
                  run->soak_max_failures);
}

bool case_rpc_soak(struct run *run)
{
    return soak(run, false);
}

bool case_channel_soak(struct run *run)
{
    return soak(run, true);
}
