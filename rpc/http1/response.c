/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Responses of HTTP/1.1, written into memory of the caller. Knows no sockets. */
#include "rpc/http1/response.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct bow__http1_asked bow__http1_asked_of(const struct bow__http1_request *request)
{
    return (struct bow__http1_asked){
        .is_head = request->method.len == 4 && memcmp(request->method.data, "HEAD", 4) == 0,
        .minor = request->minor,
        .keep_alive = request->keep_alive,
    };
}

void bow__http1_writer_init(struct bow__http1_writer *writer, void *bytes, size_t size)
{
    *writer = (struct bow__http1_writer){.bytes = bytes, .size = size};
}

static void put(struct bow__http1_writer *writer, const void *bytes, size_t len)
{
    if (writer->error == 0 && len > writer->size - writer->len) {
        writer->error = -ENOBUFS;
    }
    if (writer->error == 0 && len > 0) {
        memcpy(writer->bytes + writer->len, bytes, len);
        writer->len += len;
    }
}

static void put_text(struct bow__http1_writer *writer, const char *text)
{
    put(writer, text, strlen(text));
}

/* Those of RFC 9110 that are answered here. */
static const char *reason_of(int status)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {
        {200, "OK"},
        {204, "No Content"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {406, "Not Acceptable"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {421, "Misdirected Request"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {499, "Client Closed Request"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
    };

    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        if (reasons[i].status == status) {
            return reasons[i].reason;
        }
    }
    return "";
}

void bow__http1_write_status(struct bow__http1_writer *writer, int status)
{
    char line[64];

    /* The version is the server's own, whatever the request's was (RFC 9112 section 2.3). */
    snprintf(line, sizeof(line), "HTTP/1.1 %03d %s\r\n", status, reason_of(status));
    put_text(writer, line);
}

void bow__http1_write_field_slice(struct bow__http1_writer *writer, struct bow_slice name,
                                  struct bow_slice value)
{
    if (writer->error == 0 && (!bow__http1_is_token(name) || !bow__http1_is_value(value))) {
        writer->error = -EINVAL;
    }
    put(writer, name.data, name.len);
    put_text(writer, ": ");
    put(writer, value.data, value.len);
    put_text(writer, "\r\n");
}

void bow__http1_write_field(struct bow__http1_writer *writer, const char *name, const char *value)
{
    bow__http1_write_field_slice(writer, (struct bow_slice){(const uint8_t *)name, strlen(name)},
                                 (struct bow_slice){(const uint8_t *)value, strlen(value)});
}

/* RFC 9110 section 6.4.1: these have none, whatever their fields say. */
static bool has_body(int status)
{
    return status >= 200 && status != 204 && status != 304;
}

static void write_connection(struct bow__http1_writer *writer, const struct bow__http1_asked *asked)
{
    if (!asked->keep_alive) {
        bow__http1_write_field(writer, "Connection", "close");
    } else if (asked->minor == 0) {
        bow__http1_write_field(writer, "Connection", "keep-alive");
    }
}

enum bow__http1_framing bow__http1_end_head(struct bow__http1_writer *writer, int status,
                                            const struct bow__http1_asked *asked, uint64_t length)
{
    char digits[24];

    if (status >= 200) {
        write_connection(writer, asked);
    }
    if (has_body(status)) {
        snprintf(digits, sizeof(digits), "%" PRIu64, length);
        bow__http1_write_field(writer, "Content-Length", digits);
    }
    bow__http1_write_end(writer);
    return has_body(status) && !asked->is_head ? BOW__HTTP1_SENDS_LENGTH : BOW__HTTP1_SENDS_NOTHING;
}

enum bow__http1_framing bow__http1_end_head_open(struct bow__http1_writer *writer, int status,
                                                 struct bow__http1_asked *asked)
{
    if (!has_body(status)) {
        return bow__http1_end_head(writer, status, asked, 0);
    }
    bool chunked = asked->minor > 0; /* RFC 9112 section 6.1: not to who speaks HTTP/1.0 */
    asked->keep_alive = asked->keep_alive && (chunked || asked->is_head);
    write_connection(writer, asked);
    if (chunked) {
        bow__http1_write_field(writer, "Transfer-Encoding", "chunked");
    }
    bow__http1_write_end(writer);
    if (asked->is_head) {
        return BOW__HTTP1_SENDS_NOTHING;
    }
    return chunked ? BOW__HTTP1_SENDS_CHUNKS : BOW__HTTP1_SENDS_TO_CLOSE;
}

void bow__http1_write_chunk(struct bow__http1_writer *writer, size_t n_bytes)
{
    char line[24];

    if (writer->error == 0 && n_bytes == 0) { /* it would be the last */
        writer->error = -EINVAL;
    }
    snprintf(line, sizeof(line), "%zx\r\n", n_bytes);
    put_text(writer, line);
}

void bow__http1_write_chunk_end(struct bow__http1_writer *writer)
{
    put_text(writer, "\r\n");
}

void bow__http1_write_last_chunk(struct bow__http1_writer *writer)
{
    put_text(writer, "0\r\n");
}

void bow__http1_write_end(struct bow__http1_writer *writer)
{
    put_text(writer, "\r\n");
}

struct bow_slice bow__http1_continue(void)
{
    static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";

    return (struct bow_slice){(const uint8_t *)text, sizeof(text) - 1};
}
