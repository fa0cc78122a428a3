/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What one loop has on it, as copies that are bounded in number. Knows neither sessions nor loops.
 */
#include "rpc/inspect/snapshot.h"
#include "base/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ENTRIES 16u

const char *bow__call_stage_text(enum bow__call_stage stage)
{
    static const char *const texts[BOW__N_STAGES] = {
        [BOW__STAGE_RECEIVING] = "receiving the request",
        [BOW__STAGE_INTERCEPTED] = "held by an interceptor",
        [BOW__STAGE_BEFORE_HANDLER] = "waiting before the handler",
        [BOW__STAGE_THREAD] = "waiting for a thread",
        [BOW__STAGE_HANDLER] = "in the handler",
        [BOW__STAGE_CREDIT] = "waiting for flow-control credit",
        [BOW__STAGE_SOCKET] = "waiting for the socket",
        [BOW__STAGE_REPLY] = "reply being sent",
        [BOW__STAGE_CONNECTION] = "waiting for a connection",
        [BOW__STAGE_STREAM] = "waiting for a stream",
        [BOW__STAGE_SERVER] = "waiting for the server",
        [BOW__STAGE_READER] = "waiting for the reader",
        [BOW__STAGE_ATTEMPT] = "waiting for its next attempt",
    };

    return texts[stage];
}

void bow__snapshot_init(struct bow__snapshot *snapshot, struct bow_context *context,
                        const struct bow__snapshot_limits *limits)
{
    *snapshot = (struct bow__snapshot){.context = context, .limits = *limits};
}

void bow__snapshot_fini(struct bow__snapshot *snapshot)
{
    bow__free(snapshot->context, snapshot->calls,
              snapshot->cap_calls * sizeof(struct bow__call_entry));
    bow__free(snapshot->context, snapshot->connections,
              snapshot->cap_connections * sizeof(struct bow__connection_entry));
}

/* Room for one more of `n`, by doubling. Returns false at `max`, and out of memory. */
static bool grow(struct bow_context *context, void **entries, uint32_t n, uint32_t *cap,
                 uint32_t max, size_t entry_bytes)
{
    if (n < *cap) {
        return true;
    }
    uint32_t larger = *cap == 0 ? FIRST_ENTRIES : 2 * *cap;
    larger = larger < max ? larger : max;
    if (larger <= *cap) {
        return false;
    }
    void *moved = bow__resize(context, *entries, *cap * entry_bytes, larger * entry_bytes);
    if (moved == NULL) {
        return false;
    }
    *entries = moved;
    *cap = larger;
    return true;
}

/* The calls are a heap with the youngest at its top, which goes when an older one comes. */

static void swap(struct bow__call_entry *a, struct bow__call_entry *b)
{
    struct bow__call_entry held = *a;
    *a = *b;
    *b = held;
}

static struct bow__call_entry *sift_up(struct bow__snapshot *snapshot, uint32_t at)
{
    struct bow__call_entry *calls = snapshot->calls;

    while (at > 0 && calls[(at - 1) / 2].started_ns < calls[at].started_ns) {
        swap(&calls[(at - 1) / 2], &calls[at]);
        at = (at - 1) / 2;
    }
    return &calls[at];
}

static struct bow__call_entry *sift_down(struct bow__snapshot *snapshot)
{
    struct bow__call_entry *calls = snapshot->calls;
    uint32_t at = 0;

    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= snapshot->n_calls) {
            return &calls[at];
        }
        if (child + 1 < snapshot->n_calls &&
            calls[child + 1].started_ns > calls[child].started_ns) {
            child++;
        }
        if (calls[child].started_ns <= calls[at].started_ns) {
            return &calls[at];
        }
        swap(&calls[child], &calls[at]);
        at = child;
    }
}

struct bow__call_entry *bow__snapshot_add_call(struct bow__snapshot *snapshot, uint64_t started_ns)
{
    void *calls = snapshot->calls;

    snapshot->n_calls_seen++;
    bool has_room = grow(snapshot->context, &calls, snapshot->n_calls, &snapshot->cap_calls,
                         snapshot->limits.max_calls, sizeof(struct bow__call_entry));
    snapshot->calls = calls;
    if (has_room) {
        snapshot->calls[snapshot->n_calls] = (struct bow__call_entry){.started_ns = started_ns};
        return sift_up(snapshot, snapshot->n_calls++);
    }
    if (snapshot->n_calls == 0 || snapshot->calls[0].started_ns <= started_ns) {
        return NULL;
    }
    snapshot->calls[0] = (struct bow__call_entry){.started_ns = started_ns};
    return sift_down(snapshot);
}

struct bow__connection_entry *bow__snapshot_add_connection(struct bow__snapshot *snapshot)
{
    void *connections = snapshot->connections;

    snapshot->n_connections_seen++;
    bool has_room =
        grow(snapshot->context, &connections, snapshot->n_connections, &snapshot->cap_connections,
             snapshot->limits.max_connections, sizeof(struct bow__connection_entry));
    snapshot->connections = connections;
    if (!has_room) {
        return NULL;
    }
    struct bow__connection_entry *entry = &snapshot->connections[snapshot->n_connections++];
    *entry = (struct bow__connection_entry){0};
    return entry;
}

void bow__snapshot_copy(char *to, const char *text)
{
    snprintf(to, BOW__SNAPSHOT_TEXT_BYTES, "%s", text != NULL ? text : "");
}

static int by_age(const void *a, const void *b)
{
    uint64_t one = ((const struct bow__call_entry *)a)->started_ns;
    uint64_t other = ((const struct bow__call_entry *)b)->started_ns;

    return one < other ? -1 : one > other;
}

void bow__snapshot_sort(struct bow__snapshot *snapshot)
{
    if (snapshot->n_calls > 1) {
        qsort(snapshot->calls, snapshot->n_calls, sizeof(snapshot->calls[0]), by_age);
    }
}
