/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The head of a request, whole: what it asks, and what follows it. Knows nothing of how it arrived.
 */
#include "rpc/http1/request.h"

#include <errno.h>
#include <string.h>

static int refuse(struct bow__http1_error *error, int status, const char *text)
{
    *error = (struct bow__http1_error){status, text};
    return -EBADMSG;
}

static bool is_method(const struct bow__http1_request *request, const char *method)
{
    return request->method.len == strlen(method) &&
           memcmp(request->method.data, method, request->method.len) == 0;
}

static bool begins(struct bow_slice bytes, const char *text)
{
    return bytes.len >= strlen(text) &&
           bow__http1_equals((struct bow_slice){bytes.data, strlen(text)}, text);
}

static struct bow_slice behind(struct bow_slice bytes, size_t n)
{
    return (struct bow_slice){bytes.data + n, bytes.len - n};
}

/* uri-host [":" port], or nothing: what a Host field may be, without user information, blanks or a
 * path, by which others would tell another host (RFC 9112 section 3.2, RFC 3986 section 3.2). */
static bool is_host(struct bow_slice host)
{
    for (size_t i = 0; i < host.len; i++) {
        uint8_t c = host.data[i];
        if (c <= ' ' || c >= 0x7f || strchr("/?#@\\\"<>^`{|},", c) != NULL) {
            return false;
        }
    }
    return true;
}

static void split_query(struct bow__http1_request *request, struct bow_slice path)
{
    const uint8_t *mark = path.len > 0 ? memchr(path.data, '?', path.len) : NULL;

    request->path = path;
    if (mark != NULL) {
        request->path.len = (size_t)(mark - path.data);
        request->query = behind(path, request->path.len + 1);
    }
}

/* http://HOST[/PATH][?QUERY] (RFC 9112 section 3.2.2). */
static int decode_absolute(struct bow__http1_request *request, size_t n_scheme,
                           struct bow__http1_error *error)
{
    struct bow_slice rest = behind(request->target, n_scheme);
    size_t len = 0;

    while (len < rest.len && rest.data[len] != '/' && rest.data[len] != '?') {
        len++;
    }
    request->host = (struct bow_slice){rest.data, len};
    if (len == 0 || !is_host(request->host)) {
        return refuse(error, 400, "the target of the request has no host");
    }
    split_query(request, behind(rest, len));
    if (request->path.len == 0) {
        request->path = (struct bow_slice){(const uint8_t *)"/", 1};
    }
    return 0;
}

/* The four forms of RFC 9112 section 3.2. */
static int decode_target(struct bow__http1_request *request, struct bow__http1_error *error)
{
    struct bow_slice target = request->target;

    for (size_t i = 0; i < target.len; i++) {
        if (target.data[i] <= ' ' || target.data[i] >= 0x7f || target.data[i] == '#') {
            return refuse(error, 400, "the target of the request has a byte that none may have");
        }
    }
    if (is_method(request, "CONNECT")) {
        request->host = target;
        return target.len > 0 && is_host(target)
                   ? 0
                   : refuse(error, 400, "the target of CONNECT is no host");
    }
    if (target.len > 0 && *target.data == '/') {
        split_query(request, target);
        return 0;
    }
    if (begins(target, "http://")) {
        return decode_absolute(request, strlen("http://"), error);
    }
    if (begins(target, "https://")) {
        return decode_absolute(request, strlen("https://"), error);
    }
    if (is_method(request, "OPTIONS") && bow__http1_equals(target, "*")) {
        request->path = target;
        return 0;
    }
    return refuse(error, 400, "the target of the request is no path");
}

/* HTTP/1.0 and HTTP/1.1; a later 1.x is read as the latter (RFC 9110 section 2.5). */
static int decode_version(struct bow_slice version, unsigned *ret_minor,
                          struct bow__http1_error *error)
{
    if (version.len != strlen("HTTP/1.1") || memcmp(version.data, "HTTP/", 5) != 0 ||
        version.data[5] < '0' || version.data[5] > '9' || version.data[6] != '.' ||
        version.data[7] < '0' || version.data[7] > '9') {
        return refuse(error, 400, "the request line does not end with a version of HTTP");
    }
    if (version.data[5] != '1') {
        return refuse(error, 505, "the version of HTTP is none that is spoken here: 1.0, 1.1");
    }
    *ret_minor = version.data[7] == '0' ? 0 : 1;
    return 0;
}

/* method SP request-target SP HTTP-version, with one blank each time (RFC 9112 section 3). */
static int decode_line(struct bow_slice line, struct bow__http1_request *request,
                       struct bow__http1_error *error)
{
    const uint8_t *first = line.len > 0 ? memchr(line.data, ' ', line.len) : NULL;
    const uint8_t *last = line.len > 0 ? memrchr(line.data, ' ', line.len) : NULL;

    if (first == NULL || first == last) {
        return refuse(error, 400, "the request line is not method, target and version");
    }
    request->method = (struct bow_slice){line.data, (size_t)(first - line.data)};
    request->target = (struct bow_slice){first + 1, (size_t)(last - first) - 1};
    if (!bow__http1_is_token(request->method)) {
        return refuse(error, 400, "the method of the request is no token");
    }
    struct bow_slice version = behind(line, (size_t)(last + 1 - line.data));
    int rc = decode_version(version, &request->minor, error);
    return rc < 0 ? rc : decode_target(request, error);
}

/* 1*DIGIT, below 2^63. */
static bool decode_length(struct bow_slice digits, uint64_t *ret_length)
{
    uint64_t length = 0;

    for (size_t i = 0; i < digits.len; i++) {
        if (digits.data[i] < '0' || digits.data[i] > '9' || length > (INT64_MAX - 9) / 10) {
            return false;
        }
        length = length * 10 + (uint64_t)(digits.data[i] - '0');
    }
    *ret_length = length;
    return digits.len > 0;
}

/* Where the body ends (RFC 9112 section 6.3). What could be read in two ways is refused. */
static int decode_framing(struct bow__http1_request *request, struct bow__http1_error *error)
{
    size_t at = 0;
    const struct bow__http1_field *length =
        bow__http1_fields_next(&request->fields, "Content-Length", &at);

    if (length != NULL && bow__http1_fields_next(&request->fields, "Content-Length", &at) != NULL) {
        return refuse(error, 400, "more than one Content-Length");
    }
    at = 0;
    const struct bow__http1_field *coding =
        bow__http1_fields_next(&request->fields, "Transfer-Encoding", &at);
    if (coding == NULL && length == NULL) {
        return 0;
    }
    if (coding == NULL) {
        if (!decode_length(length->value, &request->content_length)) {
            return refuse(error, 400, "the Content-Length is no number");
        }
        request->body = request->content_length > 0 ? BOW__HTTP1_LENGTH : BOW__HTTP1_NO_BODY;
        return 0;
    }
    if (length != NULL) {
        return refuse(error, 400, "both Content-Length and Transfer-Encoding");
    }
    if (request->minor == 0) { /* RFC 9112 section 6.1: faulty framing */
        return refuse(error, 400, "a Transfer-Encoding in HTTP/1.0");
    }
    if (bow__http1_fields_next(&request->fields, "Transfer-Encoding", &at) != NULL) {
        return refuse(error, 400, "more than one Transfer-Encoding");
    }
    if (!bow__http1_equals(coding->value, "chunked")) { /* RFC 9112 section 6.1 */
        return refuse(error, 501, "a Transfer-Encoding that is not chunked alone");
    }
    request->body = BOW__HTTP1_CHUNKED;
    return 0;
}

/* Exactly one Host in HTTP/1.1, whatever the target is (RFC 9112 section 3.2). */
static int decode_host(struct bow__http1_request *request, struct bow__http1_error *error)
{
    size_t at = 0;
    const struct bow__http1_field *host = bow__http1_fields_next(&request->fields, "Host", &at);

    if (host == NULL) {
        return request->minor == 0 ? 0 : refuse(error, 400, "no Host");
    }
    if (bow__http1_fields_next(&request->fields, "Host", &at) != NULL) {
        return refuse(error, 400, "more than one Host");
    }
    if (!is_host(host->value)) {
        return refuse(error, 400, "the Host is no name or address with a port");
    }
    if (request->host.data == NULL) {
        request->host = host->value;
    }
    return 0;
}

/* RFC 9110 section 10.1.1; a peer of HTTP/1.0 does not wait. */
static int decode_expectation(struct bow__http1_request *request, struct bow__http1_error *error)
{
    const struct bow__http1_field *field;
    size_t at = 0;

    while ((field = bow__http1_fields_next(&request->fields, "Expect", &at)) != NULL) {
        if (!bow__http1_equals(field->value, "100-continue")) {
            return refuse(error, 417, "an expectation that is not 100-continue");
        }
        request->expects_continue = request->minor > 0 && request->body != BOW__HTTP1_NO_BODY;
    }
    return 0;
}

static int decode_fields(struct bow__http1_request *request, struct bow__http1_error *error)
{
    int rc = decode_host(request, error);
    if (rc == 0) {
        rc = decode_framing(request, error);
    }
    if (rc == 0) {
        rc = decode_expectation(request, error);
    }
    bool closes = bow__http1_fields_list(&request->fields, "Connection", "close");
    bool persists = bow__http1_fields_list(&request->fields, "Connection", "keep-alive");
    request->keep_alive = !closes && (request->minor > 0 || persists); /* RFC 9112 section 9.3 */
    return rc;
}

int bow__http1_request_decode(struct bow_slice head, struct bow__http1_request *ret_request,
                              struct bow__http1_error *ret_error)
{
    const uint8_t *end = head.len >= 4 ? memchr(head.data, '\n', head.len - 2) : NULL;

    if (end == NULL || end == head.data) {
        return refuse(ret_error, 400, "the head of the request is not whole");
    }
    struct bow_slice line = {head.data, (size_t)(end - head.data) - 1};
    /* All but the fields: they are many, and their number says which of them there are. */
    memset(ret_request, 0, offsetof(struct bow__http1_request, fields));
    int rc = decode_line(line, ret_request, ret_error);
    if (rc < 0) {
        return rc;
    }
    struct bow_slice fields = {end + 1, head.len - line.len - 4};
    rc = bow__http1_fields_decode(fields, &ret_request->fields, ret_error);
    return rc < 0 ? rc : decode_fields(ret_request, ret_error);
}
