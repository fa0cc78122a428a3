/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The data of a measurement, as messages. When they are sent is none of this file's business. */
#include "requests.h"
#include "say.h"
#include "template.h"

#include <stdlib.h>
#include <string.h>

struct request {
    struct bow_slice text; /* when it is to be filled in; in `kept` */
    ProtobufCMessage *message;
    bool has_template;
};

static int no_memory(void)
{
    return say_failed(EXIT_FAILED, "no memory");
}

static int fill(struct requests *it, const struct request *request, uint64_t seq,
                ProtobufCMessage **ret_message)
{
    bow_arena_reset(it->filled);
    struct bow_slice text = template_fill(request->text, seq, it->filled);
    if (text.data == NULL) {
        return no_memory();
    }
    return input_message(&it->input, text, it->type, it->schema, it->filled, ret_message);
}

static int keep_template(struct requests *it, struct request *request, struct bow_slice text)
{
    char unknown[41];
    uint8_t *copy = bow_arena_alloc(it->kept, text.len + 1);

    if (!template_check(text, unknown)) {
        return say_failed(EXIT_USAGE,
                          "%s: nothing is known to fill in for %s; there are {{seq}}, {{time_ns}}, "
                          "{{random}} and {{uuid}}",
                          it->input.name, unknown);
    }
    if (copy == NULL) {
        return no_memory();
    }
    memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    request->has_template = true;
    request->text = (struct bow_slice){copy, text.len};
    return fill(it, request, 0, &request->message); /* for what is wrong with it */
}

/* Room for one more grows by doubling. */
static int add(struct requests *it, struct bow_slice text)
{
    struct request request = {.has_template = false};

    if ((it->n & (it->n - 1)) == 0) {
        struct request *larger = realloc(it->list, (it->n > 0 ? 2 * it->n : 1) * sizeof(*larger));
        if (larger == NULL) {
            return no_memory();
        }
        it->list = larger;
    }
    int rc = template_is(text) ? keep_template(it, &request, text)
                               : input_message(&it->input, text, it->type, it->schema, it->kept,
                                               &request.message);
    if (rc == EXIT_OK) {
        it->list[it->n++] = request;
    }
    return rc;
}

int requests_read(struct requests *it, const char *given, const ProtobufCMessageDescriptor *type,
                  const struct bow_schema *schema)
{
    static const struct bow_slice empty = {(const uint8_t *)"{}", 2};
    struct bow_slice text;

    it->type = type;
    it->schema = schema;
    it->kept = bow_arena_new(NULL, 0);
    it->filled = bow_arena_new(NULL, 0);
    int rc = input_open(&it->input, given);
    if (rc != EXIT_OK) {
        return rc;
    }
    if (it->kept == NULL || it->filled == NULL) {
        return no_memory();
    }
    while (rc == EXIT_OK && input_next(&it->input, &text)) {
        rc = add(it, text);
    }
    return rc == EXIT_OK && it->n == 0 ? add(it, empty) : rc;
}

int requests_make(struct requests *it, uint64_t at, uint64_t seq,
                  const ProtobufCMessage **ret_message)
{
    const struct request *request = &it->list[at % it->n];
    ProtobufCMessage *message = request->message;

    int rc = request->has_template ? fill(it, request, seq, &message) : EXIT_OK;
    if (rc == EXIT_OK) {
        *ret_message = message;
    }
    return rc;
}

void requests_free(struct requests *it)
{
    bow_arena_free(it->kept);
    bow_arena_free(it->filled);
    free(it->list);
    input_close(&it->input);
}
