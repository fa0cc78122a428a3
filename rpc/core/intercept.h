/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_INTERCEPT_H
#define BOWLINE_RPC_CORE_INTERCEPT_H

/*
 * A chain of interceptors, and where in it a call is. What differs between a server's call and a
 * client's is behind struct bow__intercept_ops; neither messages' encodings nor connections
 * are known here.
 *
 *     begin ──► STARTING ──all started──────────────► PASSED ──► end
 *                  │  ▲                                 ▲
 *                  ▼  └─proceed in on_start──┐          │ the rest of the chain
 *                 HELD ──────────────────────┴─proceed─► PROCEEDING (deferred)
 *                  └──refuse──► REFUSED (deferred, or told by begin)
 *
 * All on the loop of the call. Its memory is one piece of the call's arena: the side's own
 * struct, of which struct bow__intercepted is the first member, then one struct
 * bow_interception for each interceptor, then their states.
 */

#include "base/arena.h"
#include "base/text.h"
#include <bowline/interceptor.h>

#define BOW__INTERCEPTOR_NAME_BYTES 32

struct bow__intercepted;

struct bow__interceptor {
    struct bow_interceptor public; /* `name` points below */
    char name[BOW__INTERCEPTOR_NAME_BYTES];
    size_t state_offset; /* behind the views */
};

/** The chain of a server or client: filled before its first call, and read by all loops then. */
struct bow__interceptors {
    struct bow_context *context;
    struct bow__interceptor *entries;
    uint32_t n;
    size_t n_state_bytes;
};

/** What can be asked of a call. */
struct bow__intercept_facts {
    const struct bow_method *method;
    const char *peer;
    const char *protocol;
    uint64_t deadline_ns;
    struct bow_loop *loop;
    const struct bow_call *call; /* NULL on a client */
    struct bow_metadata request;
    struct bow_metadata initial; /* received by a client */
    bool secure;
};

enum bow__intercept_add {
    BOW__ADD_REQUEST,
    BOW__SET_REQUEST,
    BOW__ADD_INITIAL,
    BOW__ADD_TRAILING,
};

struct bow__intercept_ops {
    bool server;
    struct bow__intercept_facts (*facts)(const struct bow__intercepted *it);
    /** Returns as bow_interception_add_request(); -EINVAL for what the side does not send. */
    int (*add)(struct bow__intercepted *it, enum bow__intercept_add what, const char *key,
               struct bow_slice value);
    /** Have bow__intercepted_run() run soon, unless the call ends before. */
    void (*defer)(struct bow__intercepted *it);
    /** From bow__intercepted_run(): the call goes on, or has been refused by it->refusal. */
    void (*go_on)(struct bow__intercepted *it);
    void (*refuse)(struct bow__intercepted *it);
};

enum bow__intercept_stage {
    BOW__INTERCEPT_STARTING = 0,
    BOW__INTERCEPT_HELD,
    BOW__INTERCEPT_PROCEEDING,
    BOW__INTERCEPT_REFUSED,
    BOW__INTERCEPT_PASSED,
    BOW__INTERCEPT_ENDED,
};

struct bow_interception {
    struct bow__intercepted *it;
    void *state;     /* NULL: none */
    const void *key; /* its interceptor's state_key: the call may outlive the chain */
};

struct bow__intercepted {
    const struct bow__interceptors *chain;
    const struct bow__intercept_ops *ops;
    struct bow__arena *arena; /* the call's; while it is the loop's, until PASSED */
    struct bow_interception *views;
    uint32_t n_views;
    uint32_t n_started;
    uint64_t started_ns;
    enum bow__intercept_stage stage;
    bool inside;               /* on_start is running */
    struct bow__text *reason;  /* on_message of a received message is running: for a refusal */
    bool message_refused;      /* it has refused, with refusal.code */
    struct bow_status refusal; /* its text in the arena */
    const struct bow_metadata *trace; /* of child calls, in the arena; NULL: as it came */
    uint64_t n_messages[2];           /* received, sent */
    uint64_t n_message_bytes[2];      /* likewise */
};

void bow__interceptors_init(struct bow__interceptors *chain, struct bow_context *context);
/** `releases`: their owner had taken them. */
void bow__interceptors_fini(struct bow__interceptors *chain, bool releases);
/** Append one. `reason` is empty. Returns 0; -EINVAL or -ENOMEM, with which one and why in
 * `reason`. */
int bow__interceptors_add(struct bow__interceptors *chain,
                          const struct bow_interceptor *interceptor, struct bow__text *reason);

/** A call was refused before it passed them. */
void bow__interceptors_tell_refused(const struct bow__interceptors *chain,
                                    const struct bow_refused_call *call);

/** Memory of a call that passes `chain`, from `arena`, zeroed: `side_bytes` for a struct of the
 * side's that begins with a struct bow__intercepted. NULL out of memory. */
struct bow__intercepted *bow__intercepted_new(const struct bow__interceptors *chain,
                                              const struct bow__intercept_ops *ops,
                                              struct bow__arena *arena, size_t side_bytes,
                                              uint64_t started_ns);

/** Start the interceptors that have not been. Returns the stage: PASSED, HELD or REFUSED. */
enum bow__intercept_stage bow__intercepted_start(struct bow__intercepted *it);
/** What was deferred. */
void bow__intercepted_run(struct bow__intercepted *it);

/** A message is about to be sent. */
void bow__intercepted_sends(struct bow__intercepted *it, struct bow_slice bytes);
/** One has come, and is about to be decoded. Returns 0, or -EACCES when one refuses it: with code
 * it->refusal.code, and the text in `reason` in place of what was there. */
int bow__intercepted_receives(struct bow__intercepted *it, struct bow_slice bytes, bool compressed,
                              struct bow__text *reason);

/** A client's call is sent once more because of `status`. */
void bow__intercepted_retries(struct bow__intercepted *it, const struct bow_status *status);

/** Tell those that were started of the end; nothing follows. `now_ns` is the time of that. */
void bow__intercepted_end(struct bow__intercepted *it, const struct bow_status *status,
                          uint64_t now_ns);

/** The state known by `key`; NULL: there is none. `it` may have ended. Thread: any. */
void *bow__intercepted_state(const struct bow__intercepted *it, const void *key);

/** The name of the interceptor that holds the call, or NULL. */
const char *bow__intercepted_holder(const struct bow__intercepted *it);

/** Whether the messages of a call have to wait; NULL is a call that nobody intercepts. */
static inline bool bow__intercepted_waits(const struct bow__intercepted *it)
{
    return it != NULL && it->stage != BOW__INTERCEPT_PASSED;
}

/** Whether the message that has just failed to be decoded was refused instead. */
static inline bool bow__intercepted_refused(const struct bow__intercepted *it)
{
    return it != NULL && it->message_refused;
}

/** bow__intercepted_sends(), where there may be no interceptors. */
static inline void bow__intercept_sent(struct bow__intercepted *it, const void *bytes, size_t len)
{
    if (it != NULL) {
        bow__intercepted_sends(it, (struct bow_slice){bytes, len});
    }
}

/** bow__intercepted_receives(), likewise. */
static inline int bow__intercept_received(struct bow__intercepted *it, struct bow_slice bytes,
                                          struct bow__text *reason)
{
    return it != NULL ? bow__intercepted_receives(it, bytes, false, reason) : 0;
}

#endif
