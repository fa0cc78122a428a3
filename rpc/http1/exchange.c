/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* One request of HTTP/1.1 and its answer: from events of the parser to those of the host, and from
 * what rpc/web/ says to what is written. */

#include "rpc/http1/exchange.h"
#include "rpc/core/call/generic.h"
#include "rpc/http1/head.h"
#include "rpc/web/request.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

/** Of a head's fields, on the stack: those of most clients fit. */
#define SCRATCH_BYTES ((size_t)4 << 10)

/* The first reason counts. */
void bow__http1_break(struct bow__http1_session *session, int error, enum bow_code code,
                      const char *format, ...)
{
    va_list args;

    if (session->broken) {
        return;
    }
    session->broken = true;
    session->is_closing = true;
    session->error = error;
    session->base.failure_code = code;
    bow__text_clear(&session->base.failure);
    va_start(args, format);
    bow__text_vprintf(&session->base.failure, format, args);
    va_end(args);
}

static void break_for_memory(struct bow__http1_session *session)
{
    bow__http1_break(session, -ENOMEM, BOW_RESOURCE_EXHAUSTED, "no memory for HTTP/1.1");
}

/* Answers */

/* What cannot be written whole leaves a connection of no use. */
void bow__http1_put(struct bow__http1_session *session, struct bow__web_output *output)
{
    bool goes_on = session->is_read || !output->is_last || session->is_body_short;

    session->out.asked.keep_alive =
        session->out.asked.keep_alive && goes_on && !session->is_leaving;
    session->answer = output->http_status != NULL ? BOW__HTTP1_ANSWER_BEGUN : session->answer;
    int rc = bow__http1_output_put(&session->out, output);
    bow__web_output_fini(output);
    if (rc < 0) {
        break_for_memory(session);
        return;
    }
    if (output->is_last) {
        session->answer = BOW__HTTP1_ANSWER_DONE;
        session->is_closing = session->is_closing || !session->out.asked.keep_alive;
    }
    session->was_high = session->was_high || session->out.bytes.n_bytes >= BOW__STREAM_HIGH_BYTES;
}

/* To what is no call, and to what cannot be read; the connection ends behind it. */
void bow__http1_answer_plainly(struct bow__http1_session *session, int status, const char *text)
{
    /* Without memory for it the connection just closes. */
    (void)bow__http1_output_plain(&session->out, status, text);
    session->base.requests_refused++;
    session->answer = BOW__HTTP1_ANSWER_DONE;
    session->is_closing = true;
}

/* The life of a request */

void bow__http1_detach(struct bow__http1_session *session)
{
    if (session->open) {
        session->open = false;
        session->base.n_streams--;
    }
}

/* The host hears of the call's end, for a reason of the session's own. */
void bow__http1_end_call(struct bow__http1_session *session, const struct bow_status *why)
{
    struct bow__session *base = &session->base;

    if (session->open) {
        bow__http1_detach(session);
        base->events->on_reset(base->owner, session->key, session->user, why);
    }
}

void bow__http1_answer_status(struct bow__http1_session *session, const struct bow_status *status)
{
    struct bow__web_output output;

    if (session->call == NULL || session->answer == BOW__HTTP1_ANSWER_DONE || session->broken) {
        return;
    }
    if (bow__web_end(session->call, status, &output) < 0) {
        break_for_memory(session);
        return;
    }
    bow__http1_put(session, &output);
}

static void refuse(struct bow__http1_session *session, enum bow_code code, const char *why)
{
    struct bow_status status = {.code = code, .message = why};

    if (code == BOW_RESOURCE_EXHAUSTED) {
        status.retry_after_ns = session->base.retry_after_ns;
    }
    bow__http1_answer_status(session, &status);
    bow__http1_end_call(session, &status);
}

/* Behind one that has come and was answered. Returns whether there was one. */
bool bow__http1_next_request(struct bow__http1_session *session)
{
    if (!session->has_request || !session->is_read || session->answer != BOW__HTTP1_ANSWER_DONE) {
        return false;
    }
    session->call = bow__web_call_free(session->call);
    session->has_request = false;
    session->is_read = false;
    session->remote_ended = false;
    session->takes_many = false;
    session->answer = BOW__HTTP1_ANSWER_NONE;
    session->user = NULL;
    session->n_unread = 0;
    session->n_discarded = 0;
    return true;
}

/* Heads */

static void refuse_head(struct bow__http1_session *session)
{
    struct bow__web_output output;

    session->base.requests_refused += bow__web_is_at_fault(session->call);
    if (bow__web_refuse(session->call, &output) < 0) {
        break_for_memory(session);
        return;
    }
    bow__http1_put(session, &output);
}

static bool is_two_way(const struct bow__web_call *call)
{
    const uint32_t both = BOW_METHOD_CLIENT_STREAMING | BOW_METHOD_SERVER_STREAMING;

    /* Of one that is not known it may be either way: it has one after the other. */
    return call->method != NULL && (call->method->flags & both) == both &&
           !bow__method_is_generic(call->method);
}

static void refuse_two_way(struct bow__http1_session *session)
{
    static const struct bow_status status = {
        .code = BOW_UNIMPLEMENTED,
        .message = "streams both ways need HTTP/2",
    };

    bow__session_refused(&session->base, session->call->path, &status, "http_version");
    bow__http1_answer_plainly(session, 505, status.message);
}

static void continue_body(struct bow__http1_session *session,
                          const struct bow__http1_request *request)
{
    struct bow_slice text = bow__http1_continue();

    if (request->expects_continue && session->answer == BOW__HTTP1_ANSWER_NONE &&
        bow__outbuf_append(&session->out.bytes, text.data, text.len) < 0) {
        break_for_memory(session);
    }
}

static void open_call(struct bow__http1_session *session, const struct bow__web_head *head)
{
    struct bow__session *base = &session->base;
    const struct bow__web_call *call = session->call;
    struct bow__request_head opened = {
        .path = call->path,
        .time_left_ns = call->time_left_ns,
        .metadata = {head->entries, head->n_entries},
        .encoding = call->encoding,
        .protocol = bow__web_protocol(call),
        .n_beside = bow__web_call_bytes(call),
    };

    session->takes_many =
        call->method != NULL && (call->method->flags & BOW_METHOD_CLIENT_STREAMING) != 0;
    session->key = session->next_key++;
    session->open = true;
    base->n_streams++;
    session->user = base->events->on_open(base->owner, session->key, &opened);
}

static void refuse_joined(struct bow__http1_session *session)
{
    static const struct bow_status status = {
        .code = BOW_RESOURCE_EXHAUSTED,
        .message = "more fields than BOW_LIMIT_HTTP1_FIELDS, as some are joined with commas",
    };

    bow__session_refused(&session->base, (struct bow_slice){NULL, 0}, &status, "max_header_bytes");
    bow__http1_answer_plainly(session, 431, status.message);
}

static void begin_call(struct bow__http1_session *session, const struct bow__http1_request *request,
                       struct bow__arena *scratch)
{
    struct bow__web_head head;

    int rc = bow__http1_web_head(request, scratch, &head);
    if (rc == -EBADMSG) {
        bow__http1_answer_plainly(session, 400, "grpc-timeout is malformed");
        return;
    }
    if (rc == -EMSGSIZE) {
        refuse_joined(session);
        return;
    }
    if (rc < 0 || bow__web_begin(&session->web, &head, &session->call) < 0) {
        break_for_memory(session);
        return;
    }
    if (bow__web_is_refused(session->call)) {
        refuse_head(session);
    } else if (is_two_way(session->call)) {
        refuse_two_way(session);
    } else {
        open_call(session, &head);
    }
}

static void on_head(struct bow__http1_session *session, const struct bow__http1_request *request)
{
    struct bow__session *base = &session->base;
    struct bow__arena scratch;
    _Alignas(BOW__ARENA_ALIGNMENT) uint8_t slab[SCRATCH_BYTES];

    bow__work_spend(&base->work, BOW__WORK_CALL_BYTES + request->fields.n * BOW__WORK_FIELD_BYTES);
    session->has_request = true;
    session->begun_ns = BOW_NEVER;
    session->vain_ns = BOW_NEVER;
    session->out.asked = bow__http1_asked_of(request);
    session->is_body_short = request->body == BOW__HTTP1_NO_BODY ||
                             (request->body == BOW__HTTP1_LENGTH &&
                              request->content_length <= BOW__HTTP1_DISCARDED_BYTES);
    /* How much of it is taken depends on the call. */
    if (bow__http1_parser_limit_body(&session->parser, UINT64_MAX) < 0) {
        return; /* the next event says so */
    }
    if (!session->is_ready_told) {
        session->is_ready_told = true;
        base->events->on_ready(base->owner);
    }
    bow__arena_init(&scratch, base->context, slab, sizeof(slab), SIZE_MAX);
    begin_call(session, request, &scratch);
    bow__arena_fini(&scratch);
    if (!session->open) {
        bow__work_spend(&base->work, BOW__WORK_CALL_BYTES);
    }
    continue_body(session, request);
}

/* Bodies */

static void emit(struct bow__http1_session *session, struct bow__message *message, bool end)
{
    struct bow__session *base = &session->base;

    session->n_unread += bow__consumed_bytes(message->bytes.len);
    session->remote_ended = session->remote_ended || end;
    base->events->on_message(base->owner, session->key, session->user, message, end);
    bow__block_unref(message->block);
}

static void on_body(struct bow__http1_session *session, struct bow_slice bytes)
{
    struct bow__message message;
    struct bow__text why;
    int rc = 1;

    bow__work_spend(&session->base.work, BOW__WORK_FRAME_BYTES);
    if (!session->open) {
        session->n_discarded += bytes.len;
        return;
    }
    while (rc > 0 && session->open && !session->broken) {
        bow__text_clear(&why);
        rc = bow__web_read(session->call, &bytes, &message, &why);
        if (rc > 0) {
            emit(session, &message, false);
        }
    }
    if (rc < 0) {
        refuse(session, session->call->reader.code, why.bytes);
    }
}

static void on_end(struct bow__http1_session *session)
{
    struct bow__session *base = &session->base;
    struct bow__message message;
    struct bow__text why;

    session->is_read = true;
    if (!session->open) {
        return;
    }
    bow__text_clear(&why);
    int rc = bow__web_read_end(session->call, &message, &why);
    if (rc < 0) {
        refuse(session, session->call->reader.code, why.bytes);
    } else if (rc > 0) {
        emit(session, &message, true);
    } else if (!session->remote_ended) {
        session->remote_ended = true;
        base->events->on_half_close(base->owner, session->key, session->user);
    }
}

/* Events */

/* What came of a head was more than is taken. */
static void tell_refused(const struct bow__http1_session *session)
{
    const struct bow__http1_error *error = &session->parser.error;
    const struct bow_status status = {.code = BOW_RESOURCE_EXHAUSTED, .message = error->text};

    if (!session->has_request && (error->status == 414 || error->status == 431)) {
        bow__session_refused(&session->base, (struct bow_slice){NULL, 0}, &status,
                             "max_header_bytes");
    }
}

void bow__http1_on_bad(struct bow__http1_session *session)
{
    const struct bow__http1_error *error = &session->parser.error;
    struct bow_status why = {.code = BOW_INTERNAL, .message = error->text};

    tell_refused(session);
    bow__http1_end_call(session, &why);
    if (session->answer == BOW__HTTP1_ANSWER_NONE) {
        bow__http1_answer_plainly(session, error->status, error->text);
    }
    bow__http1_break(session, -EPROTO, BOW_INTERNAL, "the client's HTTP/1.1 is refused with %d: %s",
                     error->status, error->text);
}

void bow__http1_on_event(struct bow__http1_session *session, const struct bow__http1_event *event)
{
    switch (event->kind) {
    case BOW__HTTP1_FRAMING:
        break;
    case BOW__HTTP1_HEAD:
        on_head(session, &event->request);
        break;
    case BOW__HTTP1_BODY:
        on_body(session, event->body);
        break;
    case BOW__HTTP1_END:
        bow__work_spend(&session->base.work, event->request.fields.n * BOW__WORK_FIELD_BYTES);
        on_end(session);
        break;
    }
    (void)bow__http1_next_request(session);
}
