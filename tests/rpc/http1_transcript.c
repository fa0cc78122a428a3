/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Events of a parser of HTTP/1.1 as text. */
#include "tests/rpc/http1_transcript.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void http1_transcript_init(struct http1_transcript *transcript,
                           const struct bow__http1_limits *limits)
{
    bow__http1_parser_init(&transcript->parser, limits);
    transcript->n_bytes = 0;
    transcript->in_body = false;
    transcript->text[0] = '\0';
}

static void say(struct http1_transcript *transcript, const void *bytes, size_t len)
{
    size_t room = sizeof(transcript->text) - transcript->n_bytes - 1;

    len = len < room ? len : room;
    if (len > 0) {
        memcpy(transcript->text + transcript->n_bytes, bytes, len);
    }
    transcript->n_bytes += len;
    transcript->text[transcript->n_bytes] = '\0';
}

static void say_text(struct http1_transcript *transcript, const char *text)
{
    say(transcript, text, strlen(text));
}

static void say_fields(struct http1_transcript *transcript, const struct bow__http1_fields *fields)
{
    for (size_t i = 0; i < fields->n; i++) {
        const struct bow__http1_field *field = &fields->list[i];
        say_text(transcript, i > 0 ? "|" : "");
        say(transcript, field->name.data, field->name.len);
        say_text(transcript, ":");
        say(transcript, field->value.data, field->value.len);
    }
}

static void say_head(struct http1_transcript *transcript, const struct bow__http1_request *request)
{
    say(transcript, request->method.data, request->method.len);
    say_text(transcript, " ");
    say(transcript, request->path.data, request->path.len);
    say_text(transcript, request->query.data != NULL ? "?" : "");
    say(transcript, request->query.data, request->query.len);
    say_text(transcript, " host=");
    say(transcript, request->host.data, request->host.len);
    say_text(transcript, request->keep_alive ? " keep" : " close");
    say_text(transcript, request->expects_continue ? " expects" : "");
    say_text(transcript, " fields=");
    say_fields(transcript, &request->fields);
    say_text(transcript, "\n");
}

static void say_event(struct http1_transcript *transcript, const struct bow__http1_event *event)
{
    if (event->kind == BOW__HTTP1_BODY) {
        say_text(transcript, transcript->in_body ? "" : "body=");
        say(transcript, event->body.data, event->body.len);
        transcript->in_body = true;
    } else if (event->kind == BOW__HTTP1_HEAD) {
        say_head(transcript, &event->request);
    } else if (event->kind == BOW__HTTP1_END) {
        say_text(transcript, transcript->in_body ? "\nend " : "end ");
        say_fields(transcript, &event->request.fields);
        say_text(transcript, "\n");
        transcript->in_body = false;
    }
}

size_t http1_transcript_feed(struct http1_transcript *transcript, struct bow_slice bytes)
{
    bool was_broken = transcript->parser.state == BOW__HTTP1_BROKEN;
    struct bow__http1_event event;
    size_t n_consumed = 0;
    ssize_t n;

    while ((n = bow__http1_next(&transcript->parser, bytes, &event)) >= 0) {
        if ((size_t)n > bytes.len) {
            abort();
        }
        say_event(transcript, &event);
        bytes.data += n;
        bytes.len -= (size_t)n;
        n_consumed += (size_t)n;
    }
    if (n == -EBADMSG && !was_broken) {
        char line[128];
        snprintf(line, sizeof(line), "%s%d %s\n", transcript->in_body ? "\n" : "",
                 transcript->parser.error.status, transcript->parser.error.text);
        say_text(transcript, line);
    }
    return n_consumed;
}

/* What the parser may look at is copied each time, so that a look beyond it shows. */
void http1_transcript_feed_steps(struct http1_transcript *transcript, struct bow_slice bytes,
                                 size_t step)
{
    size_t begin = 0;

    for (size_t end = 0; end < bytes.len;) {
        end = bytes.len - end > step ? end + step : bytes.len;
        uint8_t *copy = malloc(end - begin + 1);
        if (copy == NULL) {
            abort();
        }
        memcpy(copy, bytes.data + begin, end - begin);
        begin += http1_transcript_feed(transcript, (struct bow_slice){copy, end - begin});
        free(copy);
    }
}
