/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The parser of HTTP/1.1 requests, fed with anything: whole, in pieces and byte by byte it must
 * make the same events, consume no more than there is, and keep its limits; what it has of a head
 * must be writable as fields of a response.
 */
#include "rpc/http1/parser.h"
#include "rpc/http1/response.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_BODY 4096

struct made {
    uint64_t events; /* hash of all that came, without where bodies were cut */
    uint64_t n_body;
    bool in_request;
    int error;
};

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void note(struct made *made, const void *bytes, size_t len)
{
    const uint8_t *at = bytes;

    for (size_t i = 0; i < len; i++) {
        made->events = (made->events ^ at[i]) * UINT64_C(0x100000001b3);
    }
}

static void note_slice(struct made *made, struct bow_slice slice)
{
    note(made, &slice.len, sizeof(slice.len));
    note(made, slice.data, slice.len);
}

static void note_fields(struct made *made, const struct bow__http1_fields *fields)
{
    static uint8_t room[2 * BOW_LIMIT_HEADER_BYTES];
    struct bow__http1_writer writer;

    require(fields->n <= BOW_LIMIT_HTTP1_FIELDS);
    bow__http1_writer_init(&writer, room, sizeof(room));
    for (size_t i = 0; i < fields->n; i++) {
        bow__http1_write_field_slice(&writer, fields->list[i].name, fields->list[i].value);
        note_slice(made, fields->list[i].name);
        note_slice(made, fields->list[i].value);
    }
    require(writer.error == 0);
}

static void note_event(struct made *made, const struct bow__http1_event *event)
{
    const struct bow__http1_request *request = &event->request;

    if (event->kind == BOW__HTTP1_BODY) {
        require(made->in_request && event->body.len > 0);
        made->n_body += event->body.len;
        require(made->n_body <= MAX_BODY);
        note(made, event->body.data, event->body.len);
    } else if (event->kind == BOW__HTTP1_HEAD) {
        require(!made->in_request && request->method.len > 0);
        require(request->content_length <= MAX_BODY);
        made->in_request = true;
        made->n_body = 0;
        note(made, "H", 1);
        note_slice(made, request->path);
        note_slice(made, request->query);
        note_slice(made, request->host);
        note_fields(made, &request->fields);
    } else if (event->kind == BOW__HTTP1_END) {
        require(made->in_request);
        made->in_request = false;
        note(made, "E", 1);
        note_fields(made, &request->fields);
    }
}

/* Pieces of `step` bytes, in memory of exactly what is there. */
static struct made feed(const uint8_t *data, size_t size, size_t step)
{
    struct bow__http1_limits limits = BOW__HTTP1_LIMITS_INIT;
    struct bow__http1_parser parser;
    struct bow__http1_event event;
    struct made made = {.events = 1};
    size_t begin = 0;
    size_t end = 0;

    limits.max_body_bytes = MAX_BODY;
    limits.max_head_bytes = 512;
    limits.max_line_bytes = 128;
    limits.max_framing_bytes = 64;
    bow__http1_parser_init(&parser, &limits);
    while (end < size && made.error == 0) {
        end = size - end > step ? end + step : size;
        uint8_t *copy = malloc(end - begin + 1);
        require(copy != NULL);
        memcpy(copy, data + begin, end - begin);
        struct bow_slice bytes = {copy, end - begin};
        ssize_t n;
        while ((n = bow__http1_next(&parser, bytes, &event)) >= 0) {
            require((size_t)n <= bytes.len);
            note_event(&made, &event);
            require(event.kind != BOW__HTTP1_END || bow__http1_parser_is_idle(&parser));
            bytes.data += n;
            bytes.len -= (size_t)n;
            begin += (size_t)n;
        }
        /* What is kept for the next time is bounded by what a head may have. */
        require(n == -EBADMSG || bytes.len < limits.max_head_bytes);
        made.error = n == -EBADMSG ? parser.error.status : 0;
        free(copy);
    }
    return made;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t steps[] = {1, 7, 60};

    if (size > 65536) {
        return 0;
    }
    struct made whole = feed(data, size, size);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        struct made cut = feed(data, size, steps[i]);
        require(cut.events == whole.events && cut.error == whole.error);
    }
    return 0;
}
