/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a client sends to begin and to give up a call: REQUEST and CANCEL, and the
 * method numbers that requests bind.
 */

#include "base/alloc.h"
#include "rpc/native/internal.h"

#include <bowline/limits.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static int bind_path(struct bow__native *session, struct bow_slice path)
{
    if (session->n_bound == session->bound_cap) {
        size_t cap = session->bound_cap == 0 ? 4 : 2 * session->bound_cap;
        size_t unit = sizeof(struct bow__native_bound *);
        void *grown = bow__resize(session->base.context, session->bound, session->bound_cap * unit,
                                  cap * unit);
        if (grown == NULL) {
            return -ENOMEM;
        }
        session->bound = grown;
        session->bound_cap = cap;
    }
    struct bow__native_bound *bound = bow__alloc(session->base.context, sizeof(*bound) + path.len);
    if (bound == NULL) {
        return -ENOMEM;
    }
    bound->cache = NULL;
    bound->len = path.len;
    memcpy(bound->path, path.data, path.len);
    session->bound[session->n_bound++] = bound;
    return 0;
}

static int bind_method(struct bow__native *session, const struct bow__frame *frame,
                       const struct bow__header_request *header)
{
    uint32_t next = session->n_bound + 1;

    if (header->method < next) {
        return bow__native_break_at(session, frame, "method number %u is bound already",
                                    header->method);
    }
    if (header->method > session->own.max_bound_methods) {
        return bow__native_break_at(session, frame,
                                    "method number %u exceeds max_bound_methods (%u)",
                                    header->method, session->own.max_bound_methods);
    }
    if (header->method > next) {
        return bow__native_break_at(session, frame, "method number %u comes before %u",
                                    header->method, next);
    }
    if (header->path.len > BOW_LIMIT_BOUND_PATH_BYTES) {
        return bow__native_break_at(session, frame,
                                    "path of %zu bytes is bound to a number, above "
                                    "BOW_LIMIT_BOUND_PATH_BYTES (%zu)",
                                    header->path.len, BOW_LIMIT_BOUND_PATH_BYTES);
    }
    if (bind_path(session, header->path) < 0) {
        (void)bow__native_break(session, BOW_RESOURCE_EXHAUSTED,
                                "REQUEST frame, stream %llu: out of memory for method number %u",
                                (unsigned long long)frame->stream, header->method);
        session->broken_rc = -ENOMEM;
        return -ENOMEM;
    }
    return 0;
}

/* Which method: what the host is told of it. */
static int find_method(struct bow__native *session, const struct bow__frame *frame,
                       const struct bow__header_request *header, struct bow__request_head *head)
{
    uint32_t number = header->method;

    head->path = header->path;
    if (number == 0) {
        return header->path.len > 0
                   ? 0
                   : bow__native_break_at(session, frame, "header block: names no method");
    }
    if (header->path.len > 0) {
        int rc = bind_method(session, frame, header);
        if (rc < 0) {
            return rc;
        }
    } else if (number > session->n_bound) {
        return bow__native_break_at(session, frame, "method number %u is not bound", number);
    }
    struct bow__native_bound *bound = session->bound[number - 1];
    head->path = (struct bow_slice){(const uint8_t *)bound->path, bound->len};
    head->path_cache = &bound->cache;
    return 0;
}

/* What a call is refused by: `name` as on_refused has it, and the words with a number behind. */
struct limit {
    enum bow_code code;
    const char *name;
    const char *words;
    unsigned value;
};

static int refuse_new(struct bow__native *session, const struct bow__frame *frame,
                      struct bow_slice path, struct limit limit)
{
    enum bow_code code = limit.code;
    char text[128];
    struct bow_status why = {.code = code, .message = text, .not_processed = true};

    /* Overload is waited out; a draining server is left for another one. */
    why.retry_after_ns = code == BOW_RESOURCE_EXHAUSTED ? BOW__CROWDED_RETRY_AFTER_NS : 0;
    session->base.calls_refused += code == BOW_RESOURCE_EXHAUSTED;
    session->base.requests_refused += code != BOW_RESOURCE_EXHAUSTED;
    snprintf(text, sizeof(text), "%s (%u)", limit.words, limit.value);
    bow__session_refused(&session->base, path, &why, limit.name);
    return bow__native_refuse_id(session, frame->stream, &why);
}

/* What came of a REQUEST: its header, and `n` of its `len` message bytes. */
struct request {
    struct bow__header_request header;
    size_t n_block;
    bool is_too_large; /* the header */
    const uint8_t *bytes;
    size_t n;
    size_t len;
};

static int refuse_header(struct bow__native *session, const struct bow__frame *frame,
                         struct bow_slice path, const struct request *request)
{
    struct bow__text text;
    struct bow_status why = {.code = BOW_RESOURCE_EXHAUSTED, .message = text.bytes};

    bow__native_describe_header(session, request->n_block, &request->header.entries, &text);
    session->base.requests_refused++;
    bow__session_refused(&session->base, path, &why, "max_header_bytes");
    return bow__native_refuse_id(session, frame->stream, &why);
}

/* NULL: refused, or broken when `*ret_rc` is negative. */
static struct bow__native_stream *accept_call(struct bow__native *session,
                                              const struct bow__frame *frame, struct bow_slice path,
                                              const struct request *request, int *ret_rc)
{
    session->highest_id = frame->stream;
    *ret_rc = 0;
    if (frame->stream > session->accepted_id) {
        *ret_rc = refuse_new(
            session, frame, path,
            (struct limit){BOW_UNAVAILABLE, "draining",
                           "the server takes no new calls on this connection; calls in flight",
                           session->base.n_streams});
        return NULL;
    }
    if (request->is_too_large) {
        *ret_rc = refuse_header(session, frame, path, request);
        return NULL;
    }
    if (session->base.n_streams >= session->max_calls) {
        *ret_rc =
            refuse_new(session, frame, path,
                       (struct limit){BOW_RESOURCE_EXHAUSTED, "max_calls",
                                      "too many calls in flight on this connection; max_calls",
                                      session->max_calls});
        return NULL;
    }
    struct bow__native_stream *stream = bow__native_stream_new(session, frame->stream, NULL);
    if (stream == NULL) {
        *ret_rc = refuse_new(session, frame, path,
                             (struct limit){BOW_RESOURCE_EXHAUSTED, "memory",
                                            "out of memory for the call; calls in flight",
                                            session->base.n_streams});
    }
    return stream;
}

static uint64_t ns_of(const struct bow__header_request *header)
{
    if (!header->has_time_left || header->time_left_us > BOW_NEVER / 1000) {
        return BOW_NEVER;
    }
    return header->time_left_us * 1000;
}

/* Tell the host. Returns how many message bytes were taken. */
static ssize_t open_call(struct bow__native *session, struct bow__native_stream *stream,
                         const struct bow__frame *frame, const struct bow__request_head *head,
                         const struct request *request)
{
    bool has_message = (frame->flags & BOW__FRAME_HAS_MESSAGE) != 0;

    session->target = NULL;
    session->n_body_left = request->len;
    int rc = bow__native_receive_credit_spend(session, frame, stream, request->len);
    if (rc < 0) {
        return rc;
    }
    stream->in_encoding = (uint8_t)head->encoding;
    stream->user = session->base.events->on_open(session->base.owner, stream->id, head);
    if (!stream->open) {
        bow__work_spend(&session->base.work, BOW__WORK_CALL_BYTES);
        return 0;
    }
    if (has_message) {
        return bow__native_take_whole_message(session, stream, frame, request->bytes, request->n,
                                              request->len);
    }
    if ((frame->flags & BOW__FRAME_END) != 0) {
        bow__native_take_half_close(session, stream);
    }
    return 0;
}

/* The message of a call that was refused. */
static ssize_t skip_message(struct bow__native *session, const struct bow__frame *frame,
                            uint64_t overdue_ns, size_t len)
{
    if ((frame->flags & BOW__FRAME_END) == 0) {
        session->late_credit += session->own.stream_window_bytes;
    }
    bow__native_expect_late(session, overdue_ns);
    session->target = NULL;
    session->n_body_left = len;
    return bow__native_receive_credit_spend(session, frame, NULL, len);
}

static ssize_t begin_call(struct bow__native *session, const struct bow__frame *frame,
                          struct bow__request_head *head, const struct request *request)
{
    struct bow__native_metadata metadata;
    uint64_t overdue_ns = bow__overdue_time(session->base.work.came_ns, head->time_left_ns);
    int rc = 0;

    struct bow__native_stream *stream = accept_call(session, frame, head->path, request, &rc);
    if (stream == NULL) {
        bow__work_spend(&session->base.work, BOW__WORK_CALL_BYTES);
        return rc < 0 ? rc : skip_message(session, frame, overdue_ns, request->len);
    }
    if (bow__native_metadata_take(session, &request->header.entries, &metadata) < 0) {
        bow__native_stream_end(session, stream);
        rc = refuse_new(session, frame, head->path,
                        (struct limit){BOW_RESOURCE_EXHAUSTED, "memory",
                                       "out of memory for the call's metadata; calls in flight",
                                       session->base.n_streams});
        return rc < 0 ? rc : skip_message(session, frame, overdue_ns, request->len);
    }
    stream->overdue_ns = overdue_ns;
    head->metadata = metadata.list;
    ssize_t used = open_call(session, stream, frame, head, request);
    bow__native_metadata_give(session, &metadata);
    return used;
}

static int read_head(struct bow__native *session, const struct bow__frame *frame,
                     struct bow_slice block, struct request *request,
                     struct bow__request_head *ret_head)
{
    struct bow__header_request *header = &request->header;
    struct bow__header_error error;

    if (bow__header_request_decode(block, header, &error) < 0) {
        return bow__native_break_block(session, frame, &error);
    }
    request->n_block = block.len;
    int rc = bow__native_check_header(session, frame, block.len, &header->entries,
                                      &request->is_too_large);
    if (rc == 0) {
        rc = find_method(session, frame, header, ret_head);
    }
    if (rc < 0) {
        return rc;
    }
    ret_head->time_left_ns = ns_of(header);
    if (header->encoding.len > 0) {
        ret_head->encoding = bow__header_encoding_of(header->encoding);
    }
    return 0;
}

ssize_t bow__native_take_request(struct bow__native *session, const struct bow__frame *frame,
                                 const uint8_t *body, size_t n)
{
    struct bow_slice block;
    struct request request;
    struct bow__request_head head = {0};

    if (frame->stream <= session->highest_id) {
        return bow__native_break_at(session, frame, "stream ids must rise, the last was %llu",
                                    (unsigned long long)session->highest_id);
    }
    ssize_t used = bow__native_take_block(session, frame, body, n, &block);
    if (used < 0) {
        return used;
    }
    request.bytes = body + used;
    request.n = n - (size_t)used;
    request.len = frame->length - (size_t)used;
    int rc = bow__native_check_flags(session, frame, request.len);
    if (rc == 0) {
        rc = read_head(session, frame, block, &request, &head);
    }
    if (rc < 0) {
        return rc;
    }
    ssize_t used_message = begin_call(session, frame, &head, &request);
    return used_message < 0 ? used_message : used + used_message;
}

/* CANCEL. */

/* For its deadline, whether that ended it here or there, or was overtaken by the answer: that is no
 * rapid reset. */
static bool is_due(struct bow__native *session, const struct bow__native_stream *stream)
{
    return stream != NULL ? session->now_ns >= stream->overdue_ns
                          : bow__frames_take(&session->cancels_due);
}

ssize_t bow__native_take_cancel(struct bow__native *session, const struct bow__frame *frame,
                                const uint8_t *body, size_t n)
{
    char text[64];
    uint32_t code = bow__get_u32(body);

    (void)n;
    struct bow__native_stream *stream = bow__native_stream_find(session, frame->stream);
    int rc = is_due(session, stream)
                 ? 0
                 : bow__native_count(session, frame, &session->cancels,
                                     BOW_LIMIT_CANCELS_PER_SECOND, "BOW_LIMIT_CANCELS_PER_SECOND");
    if (rc < 0) {
        return rc;
    }
    if (stream == NULL) {
        return bow__native_take_late(session, frame, 0);
    }
    enum bow_code known = code <= BOW_UNAUTHENTICATED ? (enum bow_code)code : BOW_UNKNOWN;
    /* OK would say that the call went well. */
    struct bow_status why = {.code = known == BOW_OK ? BOW_CANCELLED : known, .message = text};
    snprintf(text, sizeof(text), "the client gave the call up (%s)", bow_code_name(why.code));
    stream->peer_ended = true;
    stream->peer_done = true;
    bow__native_end_with_reset(session, stream, &why);
    return (ssize_t)frame->length;
}
