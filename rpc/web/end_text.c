/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Statuses as JSON and as trailers. What a client is asked to wait is among the details. */

#include "rpc/web/end_text.h"
#include "base/base64.h"
#include "rpc/core/codec/utf8.h"
#include "rpc/core/codec/wire.h"
#include "rpc/json/json_output.h"
#include "rpc/web/codes.h"
#include "rpc/web/fields.h"
#include "rpc/web/grpc_text.h"
#include "rpc/web/retry_info.h"

#include <bowline/system.h>
#include <stdio.h>
#include <string.h>

static struct bow_slice message_of(const struct bow_status *status)
{
    struct bow_slice text = bow__web_text(status->message != NULL ? status->message : "");

    text.len = bow__grpc_text_cut(text, BOW_LIMIT_STATUS_MESSAGE_BYTES);
    return text;
}

static uint64_t retry_after_ms(const struct bow_status *status)
{
    return status->retry_after_ns / 1000000 + (status->retry_after_ns % 1000000 != 0);
}

/* The status's own, or when to come again; those that a handler sent stay as they are. A serialized
 * google.rpc.Status. */
static struct bow_slice details_of(const struct bow_status *status,
                                   uint8_t memory[BOW__RETRY_INFO_BYTES])
{
    if (status->details.len > 0 || status->retry_after_ns == 0 ||
        status->retry_after_ns == BOW_NEVER || status->code == BOW_OK) {
        return status->details;
    }
    size_t len =
        bow__retry_info_encode(status->code, message_of(status), retry_after_ms(status), memory);
    return (struct bow_slice){memory, len};
}

/* JSON */

/* What is not UTF-8 is not JSON: '?' stands for it. */
static void put_text(struct bow__json_output *out, struct bow__arena *arena, struct bow_slice text)
{
    size_t n = bow__utf8_prefix(text, false);

    if (n == text.len) {
        (void)bow__json_put_string(out, (const char *)text.data, text.len);
        return;
    }
    char *copy = bow__arena_alloc_bytes(arena, text.len);
    if (copy == NULL) {
        bow__json_put(out, "\"\"");
        return;
    }
    for (size_t i = 0; i < text.len; i++) {
        bool is_good = text.data[i] != '\0' && text.data[i] < 0x80;
        copy[i] = i < n || is_good ? (char)text.data[i] : '?';
    }
    (void)bow__json_put_string(out, copy, text.len);
}

static void put_name(struct bow__json_output *out, const char *name)
{
    bow__json_next(out);
    (void)bow__json_put_string(out, name, strlen(name));
    bow__json_colon(out);
}

static void put_base64(struct bow__json_output *out, struct bow__arena *arena,
                       struct bow_slice bytes)
{
    char *text = bow__arena_alloc_bytes(arena, bow__base64_size(bytes.len));

    size_t len = text != NULL ? bow__base64_encode(bytes, text) : 0;
    (void)bow__json_put_string(out, text != NULL ? text : "", len);
}

/* A field of a message whose fields all have a length, or are varints. */
struct field {
    uint64_t tag;
    struct bow_slice bytes;
};

static bool take_varint(struct bow_slice *rest, uint64_t *ret_value)
{
    int n = bow__wire_decode_varint(*rest, ret_value);

    if (n <= 0) {
        return false;
    }
    *rest = (struct bow_slice){rest->data + n, rest->len - (size_t)n};
    return true;
}

/* False at its end, or for what is none of those. */
static bool next_field(struct bow_slice *rest, struct field *ret_field)
{
    uint64_t value = 0;

    if (rest->len == 0 || !take_varint(rest, &ret_field->tag) || !take_varint(rest, &value)) {
        return false;
    }
    ret_field->bytes = (struct bow_slice){NULL, 0};
    if ((ret_field->tag & 7) == BOW__WIRE_VARINT) {
        return true;
    }
    if ((ret_field->tag & 7) != BOW__WIRE_LEN || value > rest->len) {
        return false;
    }
    ret_field->bytes = (struct bow_slice){rest->data, (size_t)value};
    *rest = (struct bow_slice){rest->data + value, rest->len - (size_t)value};
    return true;
}

/* Connect has the name alone of "type.googleapis.com/a.B". */
static struct bow_slice type_name(struct bow_slice url)
{
    const uint8_t *slash = url.len > 0 ? memrchr(url.data, '/', url.len) : NULL;
    size_t n = slash != NULL ? (size_t)(slash + 1 - url.data) : 0;

    return (struct bow_slice){url.data + n, url.len - n};
}

static void put_detail(struct bow__json_output *out, struct bow__arena *arena, struct bow_slice any)
{
    struct bow_slice type = {NULL, 0};
    struct bow_slice value = {NULL, 0};
    struct field field;

    while (next_field(&any, &field)) {
        if (field.tag == bow__wire_tag(1, BOW__WIRE_LEN)) {
            type = field.bytes;
        } else if (field.tag == bow__wire_tag(2, BOW__WIRE_LEN)) {
            value = field.bytes;
        }
    }
    bow__json_next(out);
    bow__json_open(out, '{');
    put_name(out, "type");
    put_text(out, arena, type_name(type));
    put_name(out, "value");
    put_base64(out, arena, value);
    bow__json_close(out, '}');
}

static void put_details(struct bow__json_output *out, struct bow__arena *arena,
                        struct bow_slice status)
{
    struct field field;
    bool has_any = false;

    while (next_field(&status, &field)) {
        if (field.tag != bow__wire_tag(3, BOW__WIRE_LEN)) {
            continue;
        }
        if (!has_any) {
            put_name(out, "details");
            bow__json_open(out, '[');
            has_any = true;
        }
        put_detail(out, arena, field.bytes);
    }
    if (has_any) {
        bow__json_close(out, ']');
    }
}

static void put_error(struct bow__json_output *out, struct bow__arena *arena,
                      const struct bow_status *status)
{
    uint8_t memory[BOW__RETRY_INFO_BYTES];
    struct bow_slice message = message_of(status);
    const char *code = bow__connect_code_name(status->code);

    bow__json_open(out, '{');
    put_name(out, "code");
    (void)bow__json_put_string(out, code, strlen(code));
    if (message.len > 0) {
        put_name(out, "message");
        put_text(out, arena, message);
    }
    put_details(out, arena, details_of(status, memory));
    bow__json_close(out, '}');
}

/* Whether the key has stood before. */
static bool is_repeated(const struct bow_metadata *metadata, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (strcmp(metadata->entries[i].key, metadata->entries[index].key) == 0) {
            return true;
        }
    }
    return false;
}

static void put_values(struct bow__json_output *out, struct bow__arena *arena,
                       const struct bow_metadata *metadata, size_t first)
{
    bow__json_open(out, '[');
    for (size_t i = first; i < metadata->n; i++) {
        if (strcmp(metadata->entries[i].key, metadata->entries[first].key) == 0) {
            bow__json_next(out);
            put_text(out, arena, bow__web_value(arena, &metadata->entries[i]));
        }
    }
    bow__json_close(out, ']');
}

static void put_metadata(struct bow__json_output *out, struct bow__arena *arena,
                         const struct bow_metadata *metadata)
{
    put_name(out, "metadata");
    bow__json_open(out, '{');
    for (size_t i = 0; i < metadata->n; i++) {
        if (!is_repeated(metadata, i)) {
            put_name(out, metadata->entries[i].key);
            put_values(out, arena, metadata, i);
        }
    }
    bow__json_close(out, '}');
}

static struct bow_slice end_output(struct bow__json_output *out)
{
    size_t len = bow__json_output_end(out);

    return out->no_memory ? (struct bow_slice){NULL, 0}
                          : (struct bow_slice){(const uint8_t *)out->begin, len};
}

struct bow_slice bow__connect_error_text(struct bow__arena *arena, const struct bow_status *status)
{
    struct bow__arena scratch;
    struct bow__json_output out;

    bow__arena_init(&scratch, arena->context, NULL, 0, SIZE_MAX);
    bow__json_output_begin(&out, arena, 0);
    put_error(&out, &scratch, status);
    struct bow_slice text = end_output(&out);
    bow__arena_fini(&scratch);
    return text;
}

struct bow_slice bow__connect_end_text(struct bow__arena *arena, const struct bow_status *status)
{
    struct bow__arena scratch;
    struct bow__json_output out;

    bow__arena_init(&scratch, arena->context, NULL, 0, SIZE_MAX);
    bow__json_output_begin(&out, arena, 0);
    bow__json_open(&out, '{');
    if (status->code != BOW_OK) {
        put_name(&out, "error");
        put_error(&out, &scratch, status);
    }
    if (status->metadata.n > 0) {
        put_metadata(&out, &scratch, &status->metadata);
    }
    bow__json_close(&out, '}');
    struct bow_slice text = end_output(&out);
    bow__arena_fini(&scratch);
    return text;
}

/* Trailers */

#define NUMBER_BYTES 24

struct lines {
    char *at;
    size_t n;
};

/* Without memory, when its size is asked for. */
static void put(struct lines *lines, struct bow_slice bytes)
{
    if (lines->at != NULL && bytes.len > 0) {
        memcpy(lines->at + lines->n, bytes.data, bytes.len);
    }
    lines->n += bytes.len;
}

static void put_line(struct lines *lines, struct bow_slice name, struct bow_slice value)
{
    put(lines, name);
    put(lines, bow__web_text(": "));
    put(lines, value);
    put(lines, bow__web_text("\r\n"));
}

static void put_lines(struct lines *lines, const struct bow__web_fields *fields)
{
    for (size_t i = 0; i < fields->n; i++) {
        put_line(lines, fields->items[i].name, fields->items[i].value);
    }
}

static struct bow_slice print_number(struct bow__arena *arena, uint64_t number)
{
    char *text = bow__arena_alloc_bytes(arena, NUMBER_BYTES);

    if (text == NULL) {
        return (struct bow_slice){NULL, 0};
    }
    int len = snprintf(text, NUMBER_BYTES, "%llu", (unsigned long long)number);
    return (struct bow_slice){(const uint8_t *)text, (size_t)len};
}

static struct bow_slice encode_percent(struct bow__arena *arena, struct bow_slice text)
{
    char *out = bow__arena_alloc_bytes(arena, bow__grpc_percent_size(text));

    return (struct bow_slice){(const uint8_t *)out,
                              out != NULL ? bow__grpc_percent_encode(text, out) : 0};
}

static void list_trailers(struct bow__web_fields *fields, struct bow__arena *arena,
                          const struct bow_status *status)
{
    uint8_t memory[BOW__RETRY_INFO_BYTES];
    struct bow_slice message = message_of(status);
    struct bow_metadata_entry details = {"-bin", details_of(status, memory)};

    bow__web_fields_add(fields, arena, "grpc-status", print_number(arena, (uint64_t)status->code));
    if (message.len > 0) {
        bow__web_fields_add(fields, arena, "grpc-message", encode_percent(arena, message));
    }
    if (details.value.len > 0) {
        bow__web_fields_add(fields, arena, "grpc-status-details-bin",
                            bow__web_value(arena, &details));
    }
    if (status->retry_after_ns > 0) {
        bow__web_fields_add(fields, arena, "grpc-retry-pushback-ms",
                            status->retry_after_ns == BOW_NEVER
                                ? bow__web_text("-1")
                                : print_number(arena, retry_after_ms(status)));
    }
    bow__web_fields_add_metadata(fields, arena, "", &status->metadata);
}

struct bow_slice bow__grpc_web_trailers_text(struct bow__arena *arena,
                                             const struct bow_status *status)
{
    struct bow__web_fields fields = {NULL, 0, 0};
    struct lines lines = {NULL, 0};

    list_trailers(&fields, arena, status);
    put_lines(&lines, &fields);
    char *text = bow__arena_alloc_bytes(arena, lines.n);
    lines = (struct lines){text, 0};
    if (text != NULL) {
        put_lines(&lines, &fields);
    }
    return (struct bow_slice){(const uint8_t *)text, lines.n};
}
