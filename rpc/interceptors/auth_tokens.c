/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A file of tokens: read whole, checked line by line, compared in a time that depends
 * on lengths alone.
 */

#include "rpc/interceptors/auth_tokens.h"
#include "base/alloc.h"
#include "base/text.h"
#include "rpc/core/codec/utf8.h"
#include "transport/address/transport_error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool is_token_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("-._~+/", c) != NULL);
}

bool bow__token_is_valid(const char *token, size_t len)
{
    size_t n = 0;

    while (n < len && is_token_byte(token[n])) {
        n++;
    }
    size_t n_bytes = n;
    while (n < len && token[n] == '=') {
        n++;
    }
    return n_bytes > 0 && n == len && len < BOW_BEARER_TOKEN_BYTES;
}

bool bow__subject_is_valid(const char *subject, size_t len)
{
    struct bow_slice bytes = {(const uint8_t *)subject, len};

    for (size_t i = 0; i < len; i++) {
        if (bytes.data[i] < 0x20 || bytes.data[i] == 0x7F) {
            return false;
        }
    }
    return len > 0 && len < BOW_BEARER_SUBJECT_BYTES && bow__utf8_prefix(bytes, false) == len;
}

/* Lines */

/* No token has a colon, and a subject may. */
static const char *token_of(const char *line)
{
    const char *colon = strrchr(line, ':');

    return colon != NULL ? colon + 1 : line;
}

static struct bow_slice subject_of(const char *line, const char *token)
{
    size_t len = token > line ? (size_t)(token - line) - 1 : 0;

    return (struct bow_slice){(const uint8_t *)line, len};
}

static bool is_valid(const char *line)
{
    const char *token = token_of(line);
    struct bow_slice subject = subject_of(line, token);

    return bow__token_is_valid(token, strlen(token)) &&
           (token == line || bow__subject_is_valid((const char *)subject.data, subject.len));
}

static char *trimmed(char *line, char *end)
{
    while (end > line && (end[-1] == '\r' || end[-1] == ' ' || end[-1] == '\t')) {
        end--;
    }
    *end = '\0';
    return line + strspn(line, " \t");
}

/* Moves the lines of `text` that have a token together at its front. Returns 0, or the number of
 * the line that is none. */
static size_t gather(struct bow__tokens *tokens, char *text, size_t len)
{
    char *to = text;
    char *line = text;
    char *end_of_file = text + len;

    for (size_t number = 1; line < end_of_file; number++) {
        char *end = memchr(line, '\n', (size_t)(end_of_file - line));
        char *next = end != NULL ? end + 1 : end_of_file;
        char *entry = trimmed(line, end != NULL ? end : end_of_file);
        size_t n = strlen(entry);
        line = next;
        if (n == 0 || *entry == '#') {
            continue;
        }
        if (!is_valid(entry)) {
            return number;
        }
        memmove(to, entry, n + 1);
        to += n + 1;
        tokens->n++;
    }
    return 0;
}

static int parse(struct bow__tokens *tokens, size_t len, const char *path,
                 struct bow_transport_error *error)
{
    char detail[64];

    size_t bad = gather(tokens, tokens->text, len);
    if (bad != 0) {
        (void)snprintf(detail, sizeof(detail), "line %zu is not a token, nor SUBJECT:TOKEN", bad);
        return bow__transport_error(error, "reading tokens from", path, -EBADMSG, detail);
    }
    if (tokens->n == 0) {
        return bow__transport_error(error, "reading tokens from", path, -ENODATA,
                                    "it has no token; put one on a line");
    }
    return 0;
}

/* The file */

/* Returns how many bytes, at most `size`. */
static ssize_t read_all(int fd, char *to, size_t size)
{
    size_t len = 0;

    while (len < size) {
        ssize_t n = read(fd, to + len, size - len);
        if (n < 0 && errno != EINTR) {
            return -errno;
        }
        if (n == 0) {
            break;
        }
        len += n > 0 ? (size_t)n : 0;
    }
    return (ssize_t)len;
}

static ssize_t read_file(const char *path, char *to, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        return -errno;
    }
    ssize_t n = read_all(fd, to, size);
    (void)close(fd);
    return n;
}

int bow__tokens_read(struct bow__tokens *tokens, struct bow_context *context, const char *path,
                     struct bow_transport_error *error)
{
    tokens->size = BOW_BEARER_FILE_BYTES + 2; /* one to see that it is larger, and a NUL */
    tokens->text = bow__alloc_zero(context, tokens->size);
    if (tokens->text == NULL) {
        return bow__transport_error(error, "reading tokens from", path, -ENOMEM, NULL);
    }
    ssize_t n = read_file(path, tokens->text, tokens->size - 1);
    int rc = n < 0 ? (int)n : (size_t)n > BOW_BEARER_FILE_BYTES ? -EFBIG : 0;
    if (rc < 0) {
        (void)bow__transport_error(error, "reading tokens from", path, rc,
                                   rc == -EFBIG ? "it is larger than BOW_BEARER_FILE_BYTES" : NULL);
    } else {
        rc = parse(tokens, (size_t)n, path, error);
    }
    if (rc < 0) {
        bow__tokens_fini(tokens, context);
    }
    return rc;
}

void bow__tokens_fini(struct bow__tokens *tokens, struct bow_context *context)
{
    if (tokens->text != NULL) {
        explicit_bzero(tokens->text, tokens->size);
        bow__free(context, tokens->text, tokens->size);
    }
    *tokens = (struct bow__tokens){0};
}

/* Comparing */

/* No branch on what the bytes are. Other lengths are told at once: a peer's token may be much
 * longer than the secrets, and would cost its length for each of them. */
static unsigned differ(const uint8_t *token, size_t n, const char *secret, size_t n_secret)
{
    volatile unsigned difference = 0;

    if (n != n_secret) {
        return 1;
    }
    for (size_t i = 0; i < n; i++) {
        difference |= (unsigned)(token[i] ^ (uint8_t)secret[i]);
    }
    return difference;
}

bool bow__tokens_have(const struct bow__tokens *tokens, struct bow_slice token,
                      struct bow_slice *ret_subject)
{
    const char *line = tokens->text;
    bool found = false;

    for (size_t i = 0; i < tokens->n; i++) {
        const char *secret = token_of(line);
        size_t n_secret = strlen(secret);
        if (differ(token.data, token.len, secret, n_secret) == 0) {
            *ret_subject = subject_of(line, secret);
            found = true;
        }
        line = secret + n_secret + 1;
    }
    return found;
}

const char *bow__tokens_first(const struct bow__tokens *tokens)
{
    return token_of(tokens->text);
}
