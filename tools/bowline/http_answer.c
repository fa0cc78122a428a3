/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Heads and bodies of HTTP/1.1. Where they come from is none of this file's business. */
#include "http_answer.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/types.h>

#define VERSION "HTTP/1."
#define MAX_CHUNK_LINE ((size_t)256)

struct head {
    size_t n_head; /* with the empty line */
    size_t n_body;
    bool has_length;
    bool in_chunks;
    int status;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "HTTP/1.1 200 OK". */
static int read_status(const char *line, size_t len, int *ret_status)
{
    const size_t n = strlen(VERSION);

    if (len < n + 5 || memcmp(line, VERSION, n) != 0 || !is_digit(line[n]) || line[n + 1] != ' ' ||
        !is_digit(line[n + 2]) || !is_digit(line[n + 3]) || !is_digit(line[n + 4])) {
        return -EBADMSG;
    }
    *ret_status = (line[n + 2] - '0') * 100 + (line[n + 3] - '0') * 10 + (line[n + 4] - '0');
    return 0;
}

static int read_length(struct bow_slice text, size_t *ret_length)
{
    size_t length = 0;

    for (size_t i = 0; i < text.len; i++) {
        if (!is_digit((char)text.data[i])) {
            return -EBADMSG;
        }
        length = length * 10 + (size_t)(text.data[i] - '0');
        if (length > HTTP_MAX_BODY_BYTES) {
            return -EMSGSIZE;
        }
    }
    *ret_length = length;
    return text.len > 0 ? 0 : -EBADMSG;
}

static bool is_named(struct bow_slice text, const char *name)
{
    return text.len == strlen(name) && strncasecmp((const char *)text.data, name, text.len) == 0;
}

static struct bow_slice trim(const char *text, size_t len)
{
    while (len > 0 && (*text == ' ' || *text == '\t')) {
        text++;
        len--;
    }
    while (len > 0 && (text[len - 1] == ' ' || text[len - 1] == '\t')) {
        len--;
    }
    return (struct bow_slice){(const uint8_t *)text, len};
}

static int read_field(const char *line, size_t len, struct head *head)
{
    const char *colon = memchr(line, ':', len);

    if (colon == NULL) {
        return -EBADMSG;
    }
    const struct bow_slice name = {(const uint8_t *)line, (size_t)(colon - line)};
    struct bow_slice value = trim(colon + 1, len - name.len - 1);
    if (is_named(name, "Content-Length")) {
        head->has_length = true;
        return read_length(value, &head->n_body);
    }
    if (is_named(name, "Transfer-Encoding")) {
        head->in_chunks = is_named(value, "chunked");
        return head->in_chunks ? 0 : -EBADMSG;
    }
    return 0;
}

/* The length of the line at `at` without its end; `*ret_next` is where the next begins. -EAGAIN:
 * it is not whole yet. */
static ssize_t line_at(const char *bytes, size_t len, size_t at, size_t *ret_next)
{
    const char *end = memchr(bytes + at, '\n', len - at);

    if (end == NULL) {
        return -EAGAIN;
    }
    size_t n = (size_t)(end - bytes) - at;
    *ret_next = at + n + 1;
    return (ssize_t)(n > 0 && bytes[at + n - 1] == '\r' ? n - 1 : n);
}

static int read_head(const char *bytes, size_t len, struct head *head)
{
    size_t limit = len < HTTP_MAX_HEAD_BYTES ? len : HTTP_MAX_HEAD_BYTES;
    size_t at = 0;
    size_t next = 0;

    /* What is no answer is known by its first bytes, before a line has an end. */
    if (memcmp(bytes, VERSION, len < strlen(VERSION) ? len : strlen(VERSION)) != 0) {
        return -EBADMSG;
    }
    for (;; at = next) {
        ssize_t n = line_at(bytes, limit, at, &next);
        if (n < 0) {
            return limit == HTTP_MAX_HEAD_BYTES ? -EMSGSIZE : -EAGAIN;
        }
        if (n == 0 && at > 0) {
            head->n_head = next;
            return 0;
        }
        int rc = at == 0 ? read_status(bytes, (size_t)n, &head->status)
                         : read_field(bytes + at, (size_t)n, head);
        if (rc < 0) {
            return rc;
        }
    }
}

static int hex_of(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *found =
        c != '\0' ? strchr(digits, c >= 'A' && c <= 'F' ? c + ('a' - 'A') : c) : NULL;

    return found != NULL ? (int)(found - digits) : -1;
}

/* "1f4;extension". */
static int read_chunk_size(const char *line, size_t len, size_t *ret_size)
{
    size_t size = 0;
    size_t n = 0;

    while (n < len && hex_of(line[n]) >= 0) {
        size = size * 16 + (size_t)hex_of(line[n++]);
        if (size > HTTP_MAX_BODY_BYTES) {
            return -EMSGSIZE;
        }
    }
    if (n == 0 || (n < len && line[n] != ';' && line[n] != ' ')) {
        return -EBADMSG;
    }
    *ret_size = size;
    return 0;
}

/* Walk the chunks, and with `joined` also move each behind the one before it. */
static int walk_chunks(char *bytes, size_t len, size_t at, char *joined, size_t *ret_len)
{
    size_t n_joined = 0;

    for (;;) {
        size_t size = 0;
        size_t next = 0;
        ssize_t n = line_at(bytes, len, at, &next);
        if (n < 0) {
            return len - at > MAX_CHUNK_LINE ? -EBADMSG : -EAGAIN;
        }
        int rc = read_chunk_size(bytes + at, (size_t)n, &size);
        if (rc < 0) {
            return rc;
        }
        if (size == 0) { /* what may follow it is of no use here */
            *ret_len = n_joined;
            return 0;
        }
        if (len - next < size + 2) {
            return -EAGAIN;
        }
        if (joined != NULL) {
            memmove(joined + n_joined, bytes + next, size);
        }
        n_joined += size;
        at = next + size;
        n = line_at(bytes, len, at, &next);
        if (n != 0) {
            return n < 0 ? (int)n : -EBADMSG;
        }
        at = next;
    }
}

static int read_body(char *bytes, size_t len, bool is_over, const struct head *head,
                     struct bow_slice *ret_body)
{
    char *body = bytes + head->n_head;
    size_t n_body = len - head->n_head;

    if (head->in_chunks) {
        int rc = walk_chunks(bytes, len, head->n_head, NULL, &n_body);
        if (rc == 0) {
            rc = walk_chunks(bytes, len, head->n_head, body, &n_body);
        }
        if (rc < 0) {
            return rc;
        }
    } else if (head->has_length) {
        if (n_body < head->n_body) {
            return -EAGAIN;
        }
        n_body = head->n_body;
    } else if (!is_over) {
        return -EAGAIN;
    }
    *ret_body = (struct bow_slice){(const uint8_t *)body, n_body};
    return 0;
}

int http_answer_read(char *bytes, size_t len, bool is_over, struct http_answer *ret_answer)
{
    struct head head = {0};
    struct bow_slice body = {NULL, 0};

    if (len == 0) { /* `bytes` may be NULL */
        return is_over ? -EBADMSG : -EAGAIN;
    }
    int rc = read_head(bytes, len, &head);
    if (rc == 0) {
        rc = read_body(bytes, len, is_over, &head, &body);
    }
    if (rc == -EAGAIN && len > HTTP_MAX_HEAD_BYTES + HTTP_MAX_BODY_BYTES) {
        return -EMSGSIZE;
    }
    if (rc == 0) {
        *ret_answer = (struct http_answer){head.status, body};
    }
    return rc == -EAGAIN && is_over ? -EBADMSG : rc;
}
