/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Requests of HTTP/1.1 out of bytes as they come: where a head, a body, a chunk and trailers end.
 * What a head says is request.c's; who keeps bytes that are not consumed, its caller's.
 */
#include "rpc/http1/parser.h"

#include <errno.h>
#include <string.h>

/* Of a chunk's size: what 60 bits hold, so that no sum with it overflows. */
#define MAX_SIZE_DIGITS 15u

void bow__http1_parser_init(struct bow__http1_parser *parser,
                            const struct bow__http1_limits *limits)
{
    static const struct bow__http1_limits defaults = BOW__HTTP1_LIMITS_INIT;

    *parser = (struct bow__http1_parser){.limits = limits != NULL ? *limits : defaults};
}

static ssize_t refuse(struct bow__http1_parser *parser, int status, const char *text)
{
    parser->error = (struct bow__http1_error){status, text};
    parser->state = BOW__HTTP1_BROKEN;
    return -EBADMSG;
}

static void enter(struct bow__http1_parser *parser, enum bow__http1_state state)
{
    parser->state = state;
    parser->n_scanned = 0;
    parser->line_start = 0;
}

/* Look on through bytes for the end of a line; `max` is what it may have with its CRLF. Returns
 * where it ends, -EAGAIN, or -EBADMSG. A LF without CR before it and a CR without LF behind it are
 * ends of lines for some and not for others (RFC 9112 section 2.2). */
static ssize_t scan_line(struct bow__http1_parser *parser, struct bow_slice bytes)
{
    while (parser->n_scanned < bytes.len) {
        size_t at = parser->n_scanned;
        uint8_t c = bytes.data[at];
        bool behind_cr = at > parser->line_start && bytes.data[at - 1] == '\r';
        if (c == '\n' && !behind_cr) {
            return refuse(parser, 400, "a line feed without carriage return");
        }
        if (c != '\n' && behind_cr) {
            return refuse(parser, 400, "a carriage return without line feed");
        }
        if (c == '\0') {
            return refuse(parser, 400, "a NUL where there is text");
        }
        parser->n_scanned++;
        if (c == '\n') {
            return (ssize_t)parser->n_scanned;
        }
    }
    return -EAGAIN;
}

/* Lines up to an empty one, which is the end of a head or of trailers. */
static ssize_t scan_section(struct bow__http1_parser *parser, struct bow_slice bytes,
                            bool has_request_line)
{
    size_t max_bytes = parser->limits.max_head_bytes;
    ssize_t end;

    if (bytes.len > max_bytes) { /* what is behind may be the next request */
        bytes.len = max_bytes;
    }
    do {
        end = scan_line(parser, bytes);
        bool in_first = has_request_line && parser->line_start == 0;
        if (in_first && parser->n_scanned > parser->limits.max_line_bytes) {
            return refuse(parser, 414, "the request line is longer than max_line_bytes");
        }
        if (end < 0) {
            break;
        }
        bool is_empty = (size_t)end == parser->line_start + 2;
        parser->line_start = (size_t)end;
        if (is_empty) {
            return end;
        }
    } while (true);
    if (end == -EAGAIN && bytes.len == max_bytes) {
        return refuse(parser, 431, "the fields are longer than max_head_bytes");
    }
    return end;
}

static ssize_t check_body(struct bow__http1_parser *parser, uint64_t n_bytes)
{
    return n_bytes <= parser->limits.max_body_bytes
               ? 0
               : refuse(parser, 413, "the body is longer than max_body_bytes");
}

/* What frames is no event of its own; it is consumed by itself, so that none is read twice. */
static ssize_t end_framing(struct bow__http1_event *event, ssize_t n_bytes)
{
    event->kind = BOW__HTTP1_FRAMING;
    return n_bytes;
}

/* RFC 9112 section 2.2: an empty line before a request is skipped, as some clients send one behind
 * a body. */
static ssize_t skip_empty_line(struct bow__http1_parser *parser, struct bow__http1_event *event)
{
    if (parser->skipped_line) {
        return refuse(parser, 400, "more than one empty line before a request");
    }
    enter(parser, BOW__HTTP1_IN_HEAD);
    parser->skipped_line = true;
    parser->is_begun = false;
    return end_framing(event, 2);
}

static ssize_t next_head(struct bow__http1_parser *parser, struct bow_slice bytes,
                         struct bow__http1_event *event)
{
    struct bow__http1_request *request = &event->request;

    parser->is_begun = parser->is_begun || bytes.len > 0;
    ssize_t end = scan_section(parser, bytes, true);
    if (end < 0) {
        return end;
    }
    if (end == 2) {
        return skip_empty_line(parser, event);
    }
    struct bow_slice head = {bytes.data, (size_t)end};
    if (bow__http1_request_decode(head, request, &parser->error) < 0) {
        parser->state = BOW__HTTP1_BROKEN;
        return -EBADMSG;
    }
    if (check_body(parser, request->content_length) < 0) {
        return -EBADMSG;
    }
    static const enum bow__http1_state next[] = {
        [BOW__HTTP1_NO_BODY] = BOW__HTTP1_AT_END,
        [BOW__HTTP1_LENGTH] = BOW__HTTP1_IN_LENGTH,
        [BOW__HTTP1_CHUNKED] = BOW__HTTP1_IN_CHUNK_SIZE,
    };
    enter(parser, next[request->body]);
    parser->n_left = request->content_length;
    parser->n_body = 0;
    parser->n_framing = 0;
    event->kind = BOW__HTTP1_HEAD;
    return end;
}

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* What may stand behind a chunk's size: nothing, or a semicolon, blanks before it, and an
 * extension, which is not read (RFC 9112 section 7.1.1). */
static bool is_extension(struct bow_slice bytes)
{
    size_t at = 0;

    while (at < bytes.len && (bytes.data[at] == ' ' || bytes.data[at] == '\t')) {
        at++;
    }
    return bytes.len == 0 ||
           (at < bytes.len && bytes.data[at] == ';' && bow__http1_is_value(bytes));
}

/* chunk-size [ chunk-ext ] CRLF (RFC 9112 section 7.1). */
static ssize_t next_chunk_size(struct bow__http1_parser *parser, struct bow_slice bytes,
                               struct bow__http1_event *event)
{
    ssize_t end = scan_line(parser, bytes);
    size_t n_line = end >= 0 ? (size_t)end : parser->n_scanned;
    uint64_t size = 0;
    size_t n_digits = 0;

    if (end == -EBADMSG) {
        return end;
    }
    if (n_line > parser->limits.max_framing_bytes - parser->n_framing + MAX_SIZE_DIGITS + 2) {
        return refuse(parser, 400, "the chunk extensions are longer than max_framing_bytes");
    }
    if (end < 0) {
        return end;
    }
    while (n_digits < n_line && hex_digit(bytes.data[n_digits]) >= 0) {
        size = size << 4 | (uint64_t)hex_digit(bytes.data[n_digits]);
        n_digits++;
        if (n_digits > MAX_SIZE_DIGITS) {
            return refuse(parser, 400, "the size of a chunk has too many digits");
        }
    }
    struct bow_slice extension = {bytes.data + n_digits, n_line - n_digits - 2};
    if (n_digits == 0 || !is_extension(extension)) {
        return refuse(parser, 400, "the size of a chunk is no hexadecimal number");
    }
    if (extension.len > parser->limits.max_framing_bytes - parser->n_framing) {
        return refuse(parser, 400, "the chunk extensions are longer than max_framing_bytes");
    }
    parser->n_framing += extension.len;
    if (check_body(parser, parser->n_body + size) < 0) {
        return -EBADMSG;
    }
    parser->n_body += size;
    parser->n_left = size;
    enter(parser, size > 0 ? BOW__HTTP1_IN_CHUNK : BOW__HTTP1_IN_TRAILERS);
    return end_framing(event, end);
}

/* The CRLF behind a chunk's bytes: anything else means that the size was another for somebody. */
static ssize_t next_chunk_end(struct bow__http1_parser *parser, struct bow_slice bytes,
                              struct bow__http1_event *event)
{
    if ((bytes.len > 0 && bytes.data[0] != '\r') || (bytes.len > 1 && bytes.data[1] != '\n')) {
        return refuse(parser, 400, "no CRLF behind the bytes of a chunk");
    }
    if (bytes.len < 2) {
        return -EAGAIN;
    }
    enter(parser, BOW__HTTP1_IN_CHUNK_SIZE);
    return end_framing(event, 2);
}

static ssize_t next_body(struct bow__http1_parser *parser, struct bow_slice bytes,
                         struct bow__http1_event *event)
{
    if (bytes.len == 0) {
        return -EAGAIN;
    }
    event->kind = BOW__HTTP1_BODY;
    event->body = bytes;
    if (event->body.len > parser->n_left) {
        event->body.len = (size_t)parser->n_left;
    }
    parser->n_left -= event->body.len;
    if (parser->n_left == 0) {
        bool chunked = parser->state == BOW__HTTP1_IN_CHUNK;
        enter(parser, chunked ? BOW__HTTP1_BEHIND_CHUNK : BOW__HTTP1_AT_END);
    }
    return (ssize_t)event->body.len;
}

static ssize_t end_request(struct bow__http1_parser *parser, struct bow__http1_event *event,
                           size_t n_bytes)
{
    event->kind = BOW__HTTP1_END;
    enter(parser, BOW__HTTP1_IN_HEAD);
    parser->skipped_line = false;
    parser->is_begun = false;
    return (ssize_t)n_bytes;
}

/* RFC 9110 section 6.5.1: what frames or routes a message is none of a trailer's, and who took it
 * for a field of the head would read another message. */
static bool is_forbidden(const struct bow__http1_fields *trailers)
{
    static const char *const names[] = {"Transfer-Encoding", "Content-Length", "Host",
                                        "Connection",        "Expect",         "Trailer"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t at = 0;
        if (bow__http1_fields_next(trailers, names[i], &at) != NULL) {
            return true;
        }
    }
    return false;
}

static ssize_t next_trailers(struct bow__http1_parser *parser, struct bow_slice bytes,
                             struct bow__http1_event *event)
{
    struct bow__http1_fields *fields = &event->request.fields;
    ssize_t end = scan_section(parser, bytes, false);

    if (end < 0) {
        return end;
    }
    struct bow_slice lines = {bytes.data, (size_t)end - 2};
    if (bow__http1_fields_decode(lines, fields, &parser->error) < 0) {
        parser->state = BOW__HTTP1_BROKEN;
        return -EBADMSG;
    }
    if (is_forbidden(fields)) {
        return refuse(parser, 400, "a trailer that no trailer may be");
    }
    return end_request(parser, event, (size_t)end);
}

ssize_t bow__http1_next(struct bow__http1_parser *parser, struct bow_slice bytes,
                        struct bow__http1_event *ret_event)
{
    switch (parser->state) {
    case BOW__HTTP1_IN_HEAD:
        return next_head(parser, bytes, ret_event);
    case BOW__HTTP1_IN_LENGTH:
    case BOW__HTTP1_IN_CHUNK:
        return next_body(parser, bytes, ret_event);
    case BOW__HTTP1_IN_CHUNK_SIZE:
        return next_chunk_size(parser, bytes, ret_event);
    case BOW__HTTP1_BEHIND_CHUNK:
        return next_chunk_end(parser, bytes, ret_event);
    case BOW__HTTP1_IN_TRAILERS:
        return next_trailers(parser, bytes, ret_event);
    case BOW__HTTP1_AT_END:
        ret_event->request.fields.n = 0;
        return end_request(parser, ret_event, 0);
    case BOW__HTTP1_BROKEN:
        break;
    }
    return -EBADMSG;
}

int bow__http1_parser_limit_body(struct bow__http1_parser *parser, uint64_t max_bytes)
{
    parser->limits.max_body_bytes = max_bytes;
    bool has_length = parser->state == BOW__HTTP1_IN_LENGTH;
    return (int)check_body(parser, has_length ? parser->n_left : 0);
}
