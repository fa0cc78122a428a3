/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_OPERATIONS_ANSWER_H
#define BOWLINE_RPC_SERVER_OPERATIONS_ANSWER_H

/*
 * The answer to one request of the operations listener while it is made: status, type, and a body
 * that grows up to a limit. Knows no connection.
 */

#include "rpc/inspect/out.h"

#include <bowline/context.h>
#include <stdint.h>

#define BOW__ANSWER_TEXT "text/plain; charset=utf-8"
#define BOW__ANSWER_JSON "application/json"

struct bow__operations_answer {
    struct bow_context *context;
    int status;
    const char *type;   /* of the body; lives for ever */
    const char *policy; /* Content-Security-Policy; NULL: the one that allows nothing */
    const char *allow;  /* of 405; NULL: none */
    char *body;         /* owned */
    size_t n_body;
    size_t cap_body;
    int error; /* 0; -ENOMEM; -EMSGSIZE above BOW_LIMIT_OPERATIONS_BODY_BYTES: what there is is not
                  to be sent */
    struct bow__out out; /* into the body; its error is the one above */
};

/** `status` 200, a text, empty. */
void bow__operations_answer_init(struct bow__operations_answer *answer,
                                 struct bow_context *context);
void bow__operations_answer_fini(struct bow__operations_answer *answer);

/** Append to the body: a function for bow__out_init() and its like, with the answer as user. */
int bow__operations_answer_put(const char *text, size_t len, void *answer);

/** What was written is whole; what could not be written is an answer of its own (503). */
void bow__operations_answer_end(struct bow__operations_answer *answer);

/** A line of text alone, instead of what there is. */
void bow__operations_answer_say(struct bow__operations_answer *answer, int status,
                                const char *line);

#endif
