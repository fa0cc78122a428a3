/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What travels beside messages: metadata both ways, and what an error says. Each is made of the
 * call's number, and is to arrive as it was sent.
 */

#include "world.h"

#include <bowline/metadata.h>
#include <errno.h>
#include <string.h>

#define MESSAGE "as asked"
#define MAX_DETAILS 300

static int index_of(const struct sim_call *call)
{
    return (int)(call - call->world->calls);
}

struct bow_slice sim_told_number(const struct sim_call *call, uint8_t bytes[8])
{
    uint64_t number = sim_number(call, 0);

    for (int i = 0; i < 8; i++) {
        bytes[i] = (uint8_t)(number >> (56 - 8 * i));
    }
    return (struct bow_slice){bytes, 8};
}

static void check(const struct sim_call *call, const struct bow_metadata *metadata, const char *key)
{
    uint8_t bytes[8];
    const struct bow_slice *value = bow_metadata_find(metadata, key);

    (void)sim_told_number(call, bytes);
    if (value == NULL || value->len != 8 || memcmp(value->data, bytes, 8) != 0) {
        sim_violate(call->world, "call %d: its metadata \"%s\" did not come", index_of(call), key);
    }
}

/* The server */

void sim_told_enter(struct bow_call *call, struct sim_call *of)
{
    uint8_t bytes[8];
    struct bow_slice number = sim_told_number(of, bytes);

    if (!of->has_metadata) {
        return;
    }
    check(of, bow_call_metadata(call), "number-bin");
    int rc = bow_call_add_initial(call, "initial-bin", number);
    rc = rc == 0 ? bow_call_add_trailing(call, "trailing-bin", number) : rc;
    of->has_said = rc == 0;
    if (rc != 0 && rc != -ENOMEM) {
        sim_violate(of->world, "metadata of call %d was refused: %d", index_of(of), rc);
    }
}

static uint32_t n_details(const struct sim_call *call)
{
    return (uint32_t)index_of(call) % MAX_DETAILS;
}

static uint64_t retry_after(const struct sim_call *call)
{
    return (uint64_t)(index_of(call) % 50) * SIM_MS;
}

int sim_told_fail(struct bow_call *call, const struct sim_call *of)
{
    struct bow_status status = BOW_STATUS_OK_INIT;
    ProtobufCBinaryData details;

    sim_fill(sim_number(of, 0), n_details(of), &details);
    status.code = BOW_ABORTED;
    status.message = MESSAGE;
    status.details = (struct bow_slice){details.data, details.len};
    status.retry_after_ns = retry_after(of);
    return bow_call_fail_status(call, &status);
}

/* The client */

static void check_error(const struct sim_call *call, const struct bow_status *status)
{
    ProtobufCBinaryData details = {status->details.len, (uint8_t *)(uintptr_t)status->details.data};

    if (strcmp(status->message, MESSAGE) != 0 || status->retry_after_ns != retry_after(call) ||
        !sim_is_filled(sim_number(call, 0), n_details(call), &details)) {
        sim_violate(call->world,
                    "call %d: its error came as \"%s\", with %zu bytes of details, to be tried "
                    "again after %.3f ms",
                    index_of(call), status->message, status->details.len,
                    (double)status->retry_after_ns / 1e6);
    }
}

void sim_told_check(const struct sim_call *call, const struct bow_result *result)
{
    const struct bow_status *status = &result->status;
    bool is_answer = status->code == BOW_OK || status->code == BOW_ABORTED;

    /* Without memory an answer is sent with less. */
    if (sim_is_short_of_memory(call)) {
        return;
    }
    if (status->code == BOW_ABORTED) {
        check_error(call, status);
    }
    if (is_answer && call->has_said) {
        check(call, &result->initial, "initial-bin");
        check(call, &status->metadata, "trailing-bin");
    }
    if (status->code == BOW_RESOURCE_EXHAUSTED && status->retry_after_ns == 0) {
        sim_violate(call->world, "call %d was refused, and is not told to wait", index_of(call));
    }
}
