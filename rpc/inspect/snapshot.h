/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_INSPECT_SNAPSHOT_H
#define BOWLINE_RPC_INSPECT_SNAPSHOT_H

/*
 * What one loop has on it at one moment, as copies: calls and connections. It is filled on that
 * loop, and read elsewhere afterwards. Bounded: of the calls the oldest are kept, of the
 * connections the first; how many there were is counted. Knows neither sessions nor loops.
 */

#include <bowline/context.h>
#include <stdint.h>

enum bow__call_stage {
    BOW__STAGE_RECEIVING = 0,
    BOW__STAGE_INTERCEPTED,
    BOW__STAGE_BEFORE_HANDLER,
    BOW__STAGE_THREAD,
    BOW__STAGE_HANDLER,
    BOW__STAGE_CREDIT,
    BOW__STAGE_SOCKET,
    BOW__STAGE_REPLY,
    BOW__STAGE_CONNECTION,
    BOW__STAGE_STREAM,
    BOW__STAGE_SERVER,
    BOW__STAGE_READER,
    BOW__STAGE_ATTEMPT,
    BOW__N_STAGES,
};

/** As <bowline/inspect.h> has it. */
const char *bow__call_stage_text(enum bow__call_stage stage);

#define BOW__SNAPSHOT_TEXT_BYTES 96

struct bow__call_entry {
    enum bow__call_stage stage;
    const char *method;   /* the path; of a table of the program's; NULL: `path` is a copy */
    const char *protocol; /* "native", "grpc", "connect", "grpc-web"; NULL: no connection yet */
    uint64_t started_ns;
    uint64_t deadline_ns; /* BOW_NEVER: none */
    size_t n_waiting;     /* bytes of its messages that wait to be sent */
    char path[BOW__SNAPSHOT_TEXT_BYTES];
    char peer[BOW__SNAPSHOT_TEXT_BYTES];
    char detail[BOW__SNAPSHOT_TEXT_BYTES]; /* of the stage; "": nothing more is to be said */
};

static inline const char *bow__call_entry_method(const struct bow__call_entry *entry)
{
    return entry->method != NULL ? entry->method : entry->path;
}

struct bow__connection_entry {
    char peer[BOW__SNAPSHOT_TEXT_BYTES];
    char listening[BOW__SNAPSHOT_TEXT_BYTES]; /* where it was accepted; "": of a client */
    const char *protocol;                     /* NULL: the first bytes have not come */
    const char *state; /* "opening", "open", "leaving" (no new calls), "closing" */
    bool secure;
    bool is_blocked;    /* bytes stand before a full socket */
    bool is_paused;     /* nothing is read from it, for what it has waiting or for what it costs */
    uint32_t n_calls;   /* in flight */
    uint32_t n_sending; /* replies that have yet to leave */
    size_t n_waiting;   /* memory of what waits to be sent */
    uint64_t quiet_ns;  /* when the last call began or ended */
    uint64_t rtt_ns;    /* of the last heartbeat; 0: none was answered yet */
};

struct bow__snapshot_limits {
    uint32_t max_calls;
    uint32_t max_connections;
};

struct bow__snapshot {
    struct bow_context *context;
    struct bow__snapshot_limits limits;
    uint64_t taken_ns;             /* the loop's time */
    struct bow__call_entry *calls; /* a heap with the youngest first, until sorted */
    uint32_t n_calls;
    uint32_t cap_calls;
    struct bow__connection_entry *connections;
    uint32_t n_connections;
    uint32_t cap_connections;
    uint64_t n_calls_seen; /* with those that are not here, for the limit or for want of memory */
    uint64_t n_connections_seen;
    uint64_t n_abandoned; /* calls that handlers have and nobody waits for */
};

void bow__snapshot_init(struct bow__snapshot *snapshot, struct bow_context *context,
                        const struct bow__snapshot_limits *limits);
void bow__snapshot_fini(struct bow__snapshot *snapshot);

/** Room for a call that began then, or NULL: it is only counted. Zeroed but for `started_ns`. */
struct bow__call_entry *bow__snapshot_add_call(struct bow__snapshot *snapshot, uint64_t started_ns);
/** Room for a connection, or NULL: it is only counted. Zeroed. */
struct bow__connection_entry *bow__snapshot_add_connection(struct bow__snapshot *snapshot);

/** Copy a text, cut to what there is room for; NULL is "". */
void bow__snapshot_copy(char *to, const char *text);

/** Once it is filled: the oldest call first. */
void bow__snapshot_sort(struct bow__snapshot *snapshot);

#endif
