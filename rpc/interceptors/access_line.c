/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Lines of an access log: their fields, as text and as JSON; where the values come from:
 * access_log.c. Whatever comes from a peer passes escape(): printable ASCII but for
 * quote and backslash as it is, all else as \u00XX, byte by byte; of a path, which stands without
 * quotes in a line of text, blanks too. Both forms quote alike, so that neither can be made to end
 * early, nor to look like two lines or to move a terminal.
 */

#include "rpc/interceptors/access_line.h"

#include <bowline/system.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define MAX_ID_BYTES 128u
#define MAX_MESSAGE_BYTES 200u
#define MAX_PEER_BYTES 128u
#define MAX_PATH_BYTES 128u

/* An escaped byte is six. */
_Static_assert(6 * (MAX_ID_BYTES + MAX_MESSAGE_BYTES + MAX_PEER_BYTES + MAX_PATH_BYTES) + 512 <
                   BOW__ACCESS_LINE_BYTES,
               "a line has room");

struct writer {
    char *next;
    char *end; /* the line feed and the NUL go behind it */
};

static void append(struct writer *to, const char *format, ...) BOW_PRINTF(2, 3);

static void append(struct writer *to, const char *format, ...)
{
    size_t room = (size_t)(to->end - to->next);
    va_list args;

    va_start(args, format);
    int n = vsnprintf(to->next, room, format, args);
    va_end(args);
    to->next += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
}

/* `first`: of the bytes that stand as they are. */
static void escape_from(struct writer *to, uint8_t first, const char *bytes, size_t len, size_t max)
{
    for (size_t i = 0; i < len && i < max; i++) {
        uint8_t byte = (uint8_t)bytes[i];
        if (byte >= first && byte < 0x7F && byte != '"' && byte != '\\') {
            if (to->end - to->next > 1) {
                *to->next++ = (char)byte;
            }
        } else {
            append(to, "\\u%04x", byte);
        }
    }
    if (len > max) {
        append(to, "...");
    }
}

static void escape(struct writer *to, const char *bytes, size_t len, size_t max)
{
    escape_from(to, ' ', bytes, len, max);
}

/* One word of a line of text. */
static void append_path(struct writer *to, struct bow_slice path)
{
    if (path.len == 0) {
        append(to, "-");
    }
    escape_from(to, ' ' + 1, (const char *)path.data, path.len, MAX_PATH_BYTES);
}

static void append_time(struct writer *to, uint64_t unix_ns)
{
    time_t seconds = (time_t)(unix_ns / 1000000000u);
    struct tm utc;
    char text[32];

    if (gmtime_r(&seconds, &utc) == NULL ||
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc) == 0) {
        append(to, "-");
        return;
    }
    append(to, "%s.%06" PRIu64 "Z", text, unix_ns / 1000 % 1000000);
}

static struct writer begin(char *to)
{
    return (struct writer){to, to + BOW__ACCESS_LINE_BYTES - 1};
}

static size_t finish(const struct writer *writer, char *to)
{
    writer->next[0] = '\n';
    writer->next[1] = '\0';
    return (size_t)(writer->next - to);
}

static void append_quoted(struct writer *to, const char *bytes, size_t len, size_t max)
{
    append(to, "\"");
    escape(to, bytes, len, max);
    append(to, "\"");
}

/* Of a call that has none: "-", or with quotes "". */
static void append_span(struct writer *to, const struct bow_span_context *span, bool quoted)
{
    char trace_id[BOW_TRACE_ID_TEXT_BYTES] = "-";
    char span_id[BOW_SPAN_ID_TEXT_BYTES] = "-";

    if (span != NULL) {
        bow_trace_id_write(span, trace_id);
        bow_span_id_write(span, span_id);
    }
    if (!quoted) {
        append(to, " trace_id=%s span_id=%s", trace_id, span_id);
        return;
    }
    append(to, ",\"trace_id\":\"%s\",\"span_id\":\"%s\"", span != NULL ? trace_id : "",
           span != NULL ? span_id : "");
}

size_t bow__access_line_text(const struct bow__access_line *line, char *to)
{
    const struct bow_intercepted_end *end = line->end;
    struct writer writer = begin(to);

    append_time(&writer, line->unix_ns);
    append(&writer, " ");
    escape(&writer, line->peer, strlen(line->peer), MAX_PEER_BYTES);
    append(&writer, " %s ", line->protocol);
    append_path(&writer, line->path);
    append(&writer, " %s", bow_code_name(end->status->code));
    append(&writer, " in=%" PRIu64 "/%" PRIu64 " out=%" PRIu64 "/%" PRIu64 " us=%" PRIu64,
           end->messages_received, end->bytes_received, end->messages_sent, end->bytes_sent,
           end->elapsed_ns / 1000);
    if (end->deadline_left_ns == BOW_NEVER) {
        append(&writer, " left_us=-");
    } else {
        append(&writer, " left_us=%" PRIu64, end->deadline_left_ns / 1000);
    }
    append(&writer, " id=");
    append_quoted(&writer, (const char *)line->id.data, line->id.len, MAX_ID_BYTES);
    append(&writer, " message=");
    append_quoted(&writer, end->status->message, strlen(end->status->message), MAX_MESSAGE_BYTES);
    if (line->has_trace) {
        append_span(&writer, line->span, false);
    }
    if (line->refused != NULL) {
        append(&writer, " refused=%s unlogged=%" PRIu64, line->refused, line->n_unlogged);
    }
    return finish(&writer, to);
}

size_t bow__access_line_json(const struct bow__access_line *line, char *to)
{
    const struct bow_intercepted_end *end = line->end;
    struct writer writer = begin(to);

    append(&writer, "{\"time\":\"");
    append_time(&writer, line->unix_ns);
    append(&writer, "\",\"peer\":");
    append_quoted(&writer, line->peer, strlen(line->peer), MAX_PEER_BYTES);
    append(&writer, ",\"protocol\":\"%s\",\"method\":", line->protocol);
    append_quoted(&writer, (const char *)line->path.data, line->path.len, MAX_PATH_BYTES);
    append(&writer, ",\"code\":\"%s\"", bow_code_name(end->status->code));
    append(&writer,
           ",\"in\":%" PRIu64 ",\"in_bytes\":%" PRIu64 ",\"out\":%" PRIu64 ",\"out_bytes\":%" PRIu64
           ",\"us\":%" PRIu64,
           end->messages_received, end->bytes_received, end->messages_sent, end->bytes_sent,
           end->elapsed_ns / 1000);
    if (end->deadline_left_ns == BOW_NEVER) {
        append(&writer, ",\"left_us\":null");
    } else {
        append(&writer, ",\"left_us\":%" PRIu64, end->deadline_left_ns / 1000);
    }
    append(&writer, ",\"id\":");
    append_quoted(&writer, (const char *)line->id.data, line->id.len, MAX_ID_BYTES);
    append(&writer, ",\"message\":");
    append_quoted(&writer, end->status->message, strlen(end->status->message), MAX_MESSAGE_BYTES);
    if (line->has_trace) {
        append_span(&writer, line->span, true);
    }
    if (line->refused != NULL) {
        append(&writer, ",\"refused\":\"%s\",\"unlogged\":%" PRIu64, line->refused,
               line->n_unlogged);
    }
    append(&writer, "}");
    return finish(&writer, to);
}
