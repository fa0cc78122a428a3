/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_HTTP1_EXCHANGE_H
#define BOWLINE_RPC_HTTP1_EXCHANGE_H

/*
 * One request of HTTP/1.1 and its answer, and the state of the session that has one at a time:
 *
 *     request   none ──head──► has_request ──end──► is_read      both, and then the next:
 *     answer    NONE ──put───► BEGUN ────────last─► DONE         bow__http1_next_request()
 *
 * A call that is answered before its body has come ends the connection behind the answer, unless
 * that body is short.
 */

#include "rpc/core/session.h"
#include "rpc/http1/output.h"
#include "rpc/http1/parser.h"
#include "rpc/web/request.h"

/** Of a body that nobody reads any more. */
#define BOW__HTTP1_DISCARDED_BYTES ((size_t)256 << 10)

enum bow__http1_answer {
    BOW__HTTP1_ANSWER_NONE,
    BOW__HTTP1_ANSWER_BEGUN,
    BOW__HTTP1_ANSWER_DONE,
};

struct bow__http1_session {
    struct bow__session base;
    struct bow__web_options web;
    struct bow__http1_parser parser;
    struct bow__http1_output out;
    uint64_t next_key;

    /* The request under way. */
    bool has_request;
    bool is_read; /* all of its body has come */
    enum bow__http1_answer answer;
    bool is_body_short;         /* so that it is taken in vain rather than a connection ended */
    struct bow__web_call *call; /* NULL: none is needed */
    uint64_t key;
    void *user;
    bool open;          /* the host may use the key and awaits events */
    bool remote_ended;  /* it has heard of that */
    bool takes_many;    /* its client may take its time between messages */
    size_t n_unread;    /* bytes of messages the host has not consumed */
    size_t n_discarded; /* of the body, behind the answer */
    bool was_high;      /* so much of its answer waits that its producer was to stop */

    uint64_t now_ns;
    uint64_t life_ns;  /* when the last byte came */
    uint64_t begun_ns; /* when the first byte of the head under way did; BOW_NEVER: none has */
    uint64_t vain_ns;  /* since when its body comes though the call has ended; BOW_NEVER: unknown */
    uint64_t heartbeat_ns;
    uint64_t heartbeat_timeout_ns;
    bool in_feed;
    bool has_pending; /* bytes have come that were not taken */
    bool is_paused;   /* the host does not read */
    bool is_ready_told;
    bool is_leaving;
    bool is_closing; /* no further request is taken */
    bool broken;
    bool is_failed;
    int error;
};

/** Break the connection: the first reason counts. */
void bow__http1_break(struct bow__http1_session *session, int error, enum bow_code code,
                      const char *format, ...) BOW_PRINTF(4, 5);

/** An event of the parser. */
void bow__http1_on_event(struct bow__http1_session *session, const struct bow__http1_event *event);
/** It has found what is no HTTP/1.1, as its `error` says. */
void bow__http1_on_bad(struct bow__http1_session *session);

/** Write a step of the answer. What cannot be written whole breaks the connection. */
void bow__http1_put(struct bow__http1_session *session, struct bow__web_output *output);
/** End the answer with a status, if it has no end yet. */
void bow__http1_answer_status(struct bow__http1_session *session, const struct bow_status *status);
/** Answer what is no call, or cannot be read, in words; the connection ends behind it. */
void bow__http1_answer_plainly(struct bow__http1_session *session, int status, const char *text);

/** The host is done with the call: no event follows. */
void bow__http1_detach(struct bow__http1_session *session);
/** The host hears of its end, for a reason of the session's own. */
void bow__http1_end_call(struct bow__http1_session *session, const struct bow_status *why);
/** Behind a request that has come and was answered. Returns whether there was one. */
bool bow__http1_next_request(struct bow__http1_session *session);

#endif
