/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* An answer of the operations listener while it is made. Knows no connection. */
#include "rpc/server/operations/answer.h"
#include "base/alloc.h"

#include <bowline/limits.h>
#include <errno.h>
#include <string.h>

#define FIRST_BYTES ((size_t)4096)

void bow__operations_answer_init(struct bow__operations_answer *answer, struct bow_context *context)
{
    *answer = (struct bow__operations_answer){
        .context = context, .status = 200, .type = BOW__ANSWER_TEXT};
    bow__out_init(&answer->out, bow__operations_answer_put, answer);
}

void bow__operations_answer_fini(struct bow__operations_answer *answer)
{
    bow__free(answer->context, answer->body, answer->cap_body);
    answer->body = NULL;
    answer->n_body = 0;
    answer->cap_body = 0;
}

static int grow(struct bow__operations_answer *answer, size_t least)
{
    size_t larger = answer->cap_body > 0 ? 2 * answer->cap_body : FIRST_BYTES;

    if (least > BOW_LIMIT_OPERATIONS_BODY_BYTES) {
        return -EMSGSIZE;
    }
    while (larger < least) {
        larger *= 2;
    }
    char *body = bow__resize(answer->context, answer->body, answer->cap_body, larger);
    if (body == NULL) {
        return -ENOMEM;
    }
    answer->body = body;
    answer->cap_body = larger;
    return 0;
}

int bow__operations_answer_put(const char *text, size_t len, void *user)
{
    struct bow__operations_answer *answer = user;

    if (answer->error == 0 && len > answer->cap_body - answer->n_body) {
        answer->error = grow(answer, answer->n_body + len);
    }
    if (answer->error < 0) {
        return answer->error;
    }
    memcpy(answer->body + answer->n_body, text, len);
    answer->n_body += len;
    return 0;
}

void bow__operations_answer_say(struct bow__operations_answer *answer, int status, const char *line)
{
    struct bow_context *context = answer->context;

    bow__operations_answer_fini(answer);
    bow__operations_answer_init(answer, context);
    answer->status = status;
    bow__out_printf(&answer->out, "%s\n", line);
    (void)bow__out_end(&answer->out);
}

void bow__operations_answer_end(struct bow__operations_answer *answer)
{
    (void)bow__out_end(&answer->out);
    if (answer->error == -EMSGSIZE) {
        bow__operations_answer_say(answer, 503,
                                   "the answer is longer than BOW_LIMIT_OPERATIONS_BODY_BYTES");
    } else if (answer->error < 0) {
        bow__operations_answer_say(answer, 503, "the server has no memory for the answer");
    }
}
