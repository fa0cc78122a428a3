/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* JSON values one behind the other. What is in them is the JSON reader's business. */
#include "input.h"
#include "say.h"
#include <bowline/json.h>

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNK_BYTES ((size_t)65536)

int input_open(struct input *input, const char *given)
{
    *input = (struct input){.name = "the data", .fd = -1, .stop_fd = -1, .line = 1};
    if (given == NULL) {
        return EXIT_OK;
    }
    if (strcmp(given, "-") == 0 || strcmp(given, "@-") == 0) {
        input_from_stdin(input);
        return EXIT_OK;
    }
    if (given[0] == '@') {
        input->name = given + 1;
        input->fd = open(given + 1, O_RDONLY | O_CLOEXEC);
        return input->fd >= 0 ? EXIT_OK
                              : say_failed(EXIT_USAGE, "%s: %s", given + 1, strerror(errno));
    }
    input->text = strdup(given);
    input->len = strlen(given);
    return input->text != NULL ? EXIT_OK : say_failed(EXIT_FAILED, "no memory");
}

void input_from_stdin(struct input *input)
{
    input->name = "standard input";
    input->fd = STDIN_FILENO;
}

void input_close(struct input *input)
{
    if (input->fd > STDIN_FILENO) {
        close(input->fd);
    }
    free(input->text);
}

/* Some more behind what is there, as soon as there is some. */
static bool read_more(struct input *input)
{
    struct pollfd wait[] = {{.fd = input->fd, .events = POLLIN},
                            {.fd = input->stop_fd, .events = POLLIN}};

    if (input->fd < 0) {
        return false;
    }
    char *text = realloc(input->text, input->len + CHUNK_BYTES + 1);
    if (text == NULL) {
        return false;
    }
    input->text = text;
    while (poll(wait, 2, -1) < 0 && errno == EINTR) {
    }
    if (wait[1].revents != 0) {
        return false;
    }
    ssize_t n = read(input->fd, text + input->len, CHUNK_BYTES);
    if (n <= 0) {
        return false;
    }
    input->len += (size_t)n;
    text[input->len] = '\0';
    return true;
}

static void drop_given(struct input *input)
{
    if (input->fd >= 0 && input->at > 0) {
        input->len -= input->at;
        memmove(input->text, input->text + input->at, input->len);
        input->at = 0;
    }
}

/* Where the value that begins at `at` ends: behind its last brace, or at the end of its line where
 * it has none. SIZE_MAX: not yet. */
static size_t end_of(const struct input *input, size_t at)
{
    bool in_string = false;
    bool has_brace = input->text[at] == '{' || input->text[at] == '[';
    size_t depth = 0;

    for (size_t i = at; i < input->len; i++) {
        char c = input->text[i];
        if (in_string) {
            i += c == '\\';
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if ((c == '}' || c == ']') && depth > 0 && --depth == 0) {
            return i + 1;
        } else if (c == '\n' && !has_brace) {
            return i;
        }
    }
    return SIZE_MAX;
}

static bool skip_blanks(struct input *input)
{
    for (;;) {
        while (input->at < input->len && isspace((unsigned char)input->text[input->at])) {
            input->line += input->text[input->at] == '\n';
            input->at++;
        }
        if (input->at < input->len) {
            return true;
        }
        if (!read_more(input)) {
            return false;
        }
    }
}

static void count_lines(struct input *input, size_t end)
{
    for (; input->at < end; input->at++) {
        input->line += input->text[input->at] == '\n';
    }
}

bool input_next(struct input *input, struct bow_slice *ret_text)
{
    drop_given(input);
    if (input->text == NULL && input->fd < 0) {
        return false;
    }
    if (!skip_blanks(input)) {
        return false;
    }
    size_t end = end_of(input, input->at);
    while (end == SIZE_MAX && read_more(input)) {
        end = end_of(input, input->at);
    }
    end = end == SIZE_MAX ? input->len : end;
    *ret_text = (struct bow_slice){(const uint8_t *)input->text + input->at, end - input->at};
    count_lines(input, end);
    return true;
}

int input_message(const struct input *input, struct bow_slice text,
                  const ProtobufCMessageDescriptor *type, const struct bow_schema *schema,
                  struct bow_arena *arena, ProtobufCMessage **ret_message)
{
    struct bow_json_options options = BOW_JSON_OPTIONS_INIT;
    char reason[400];
    unsigned n_lines = 0;

    options.files = bow_schema_files(schema, &options.n_files);
    if (bow_json_read(type, text, &options, arena, ret_message, reason, sizeof(reason)) == 0) {
        return EXIT_OK;
    }
    for (size_t i = 0; i < text.len; i++) {
        n_lines += text.data[i] == '\n';
    }
    unsigned first = input->line - n_lines;
    if (first > 1) {
        return say_failed(EXIT_USAGE, "%s, the message from line %u on: %s", input->name, first,
                          reason);
    }
    return say_failed(EXIT_USAGE, "%s: %s", input->name, reason);
}
