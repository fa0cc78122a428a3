/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Header blocks as wire.proto has them; reading and writing of each message stand
 * together, in field order.
 */

#include "rpc/native/header.h"

#include "base/hints.h"
#include "rpc/core/codec/utf8.h"
#include "rpc/core/codec/wire.h"
#include "rpc/core/metadata.h"

#include <bowline/limits.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Single fields. The reader's error is sticky: fields are read one after the other and looked at
 * once, at the end. */

/* Reading. */

struct field_reader {
    const uint8_t *at;
    const uint8_t *end;
    uint32_t field; /* of the last tag */
    uint32_t type;
    struct bow__header_error error; /* `what` NULL: none yet */
};

static inline void field_set_error(struct field_reader *reader, const char *field, const char *what)
{
    if (reader->error.what == NULL) {
        reader->error = (struct bow__header_error){.field = field, .what = what};
    }
    reader->at = reader->end;
}

static inline uint64_t field_take_varint(struct field_reader *reader, const char *field)
{
    uint64_t value = 0;
    const uint8_t *next = bow__wire_read_varint(reader->at, reader->end, &value);

    if (next == NULL) {
        bool cut = bow__wire_is_cut(reader->at, reader->end);
        field_set_error(reader, field, cut ? "varint is cut short" : "varint exceeds 64 bits");
        return 0;
    }
    reader->at = next;
    return value;
}

static inline struct bow_slice field_take_bytes(struct field_reader *reader, const char *field)
{
    uint64_t len = field_take_varint(reader, field);

    if (len > (size_t)(reader->end - reader->at)) {
        field_set_error(reader, field, "length runs past the end");
        return (struct bow_slice){NULL, 0};
    }
    struct bow_slice bytes = {reader->at, (size_t)len};
    reader->at += bytes.len;
    return bytes;
}

static inline void field_skip_fixed(struct field_reader *reader, size_t n)
{
    if ((size_t)(reader->end - reader->at) < n) {
        field_set_error(reader, "unknown field", "fixed number is cut short");
        return;
    }
    reader->at += n;
}

static inline void field_skip(struct field_reader *reader)
{
    switch (reader->type) {
    case BOW__WIRE_VARINT:
        (void)field_take_varint(reader, "unknown field");
        return;
    case BOW__WIRE_FIXED64:
        field_skip_fixed(reader, 8);
        return;
    case BOW__WIRE_LEN:
        (void)field_take_bytes(reader, "unknown field");
        return;
    case BOW__WIRE_FIXED32:
        field_skip_fixed(reader, 4);
        return;
    default:
        field_set_error(reader, "unknown field", "groups and wire types above 5 are not allowed");
        return;
    }
}

static inline bool field_next(struct field_reader *reader)
{
    if (reader->at == reader->end) {
        return false;
    }
    uint64_t tag = field_take_varint(reader, "tag");
    if (tag > UINT32_MAX || (tag >> 3) == 0) {
        field_set_error(reader, "tag", "field number is out of range");
    }
    reader->field = (uint32_t)(tag >> 3);
    reader->type = (uint32_t)(tag & 7);
    return reader->error.what == NULL;
}

static inline bool field_has_type(struct field_reader *reader, const char *field,
                                  enum bow__wire_type type)
{
    if (reader->type == (uint32_t)type) {
        return true;
    }
    field_set_error(reader, field, "wrong wire type");
    return false;
}

static inline void field_read_u64(struct field_reader *reader, const char *field,
                                  uint64_t *ret_value)
{
    if (field_has_type(reader, field, BOW__WIRE_VARINT)) {
        *ret_value = field_take_varint(reader, field);
    }
}

static inline void field_read_u32(struct field_reader *reader, const char *field,
                                  uint32_t *ret_value)
{
    uint64_t value = 0;

    field_read_u64(reader, field, &value);
    if (value > UINT32_MAX) {
        field_set_error(reader, field, "number exceeds 32 bits");
        return;
    }
    *ret_value = (uint32_t)value;
}

static inline void field_read_bool(struct field_reader *reader, const char *field, bool *ret_value)
{
    uint64_t value = 0;

    field_read_u64(reader, field, &value);
    *ret_value = value != 0;
}

static inline void field_read_bytes(struct field_reader *reader, const char *field,
                                    struct bow_slice *ret_bytes)
{
    if (field_has_type(reader, field, BOW__WIRE_LEN)) {
        *ret_bytes = field_take_bytes(reader, field);
    }
}

static inline struct field_reader field_reader_of(struct bow_slice block)
{
    return (struct field_reader){.at = block.data,
                                 .end = block.len > 0 ? block.data + block.len : block.data};
}

static inline int field_end(const struct field_reader *reader, struct bow__header_error *ret_error)
{
    if (reader->error.what == NULL) {
        return 0;
    }
    *ret_error = reader->error;
    return -EBADMSG;
}

/* Writing. Field numbers are below 16: a tag is one byte. */

static inline size_t field_number_size(uint64_t value)
{
    return value == 0 ? 0 : 1 + bow__wire_varint_size(value);
}

static inline size_t field_bytes_size(struct bow_slice bytes)
{
    return bytes.len == 0 ? 0 : 1 + bow__wire_varint_size(bytes.len) + bytes.len;
}

static inline uint8_t *field_write_always(uint8_t *to, uint32_t field, uint64_t value)
{
    *to++ = (uint8_t)(field << 3 | BOW__WIRE_VARINT);
    return bow__wire_write_varint(to, value);
}

static inline uint8_t *field_write_number(uint8_t *to, uint32_t field, uint64_t value)
{
    return value == 0 ? to : field_write_always(to, field, value);
}

static inline uint8_t *field_write_bytes(uint8_t *to, uint32_t field, struct bow_slice bytes)
{
    if (bytes.len == 0) {
        return to;
    }
    *to++ = (uint8_t)(field << 3 | BOW__WIRE_LEN);
    to = bow__wire_write_varint(to, bytes.len);
    memcpy(to, bytes.data, bytes.len);
    return to + bytes.len;
}

/* Metadata: entries of key = 1, value = 2, under another number in each message. */

static struct bow__header_entry read_entry(struct field_reader *reader)
{
    struct bow__header_entry entry = {{NULL, 0}, {NULL, 0}};

    while (field_next(reader)) {
        if (reader->field == 1) {
            field_read_bytes(reader, "metadata.key", &entry.key);
        } else if (reader->field == 2) {
            field_read_bytes(reader, "metadata.value", &entry.value);
        } else {
            field_skip(reader);
        }
    }
    return entry;
}

/* Counted when the block is read; what is in them is read when somebody wants it. */
static void count_entry(struct field_reader *reader, struct bow__header_entries *entries)
{
    struct bow_slice block = {NULL, 0};

    field_read_bytes(reader, "metadata", &block);
    struct field_reader inner = field_reader_of(block);
    struct bow__header_entry entry = read_entry(&inner);
    if (inner.error.what != NULL) {
        field_set_error(reader, inner.error.field, inner.error.what);
        return;
    }
    entries->n++;
    entries->n_bytes += entry.key.len + entry.value.len + BOW__METADATA_ENTRY_BYTES;
}

bool bow__header_entry_next(struct bow__header_entries *entries,
                            struct bow__header_entry *ret_entry)
{
    struct field_reader reader = field_reader_of(entries->block);
    struct bow_slice block = {NULL, 0};

    while (field_next(&reader)) {
        if (reader.field != entries->field) {
            field_skip(&reader);
            continue;
        }
        field_read_bytes(&reader, "metadata", &block);
        struct field_reader inner = field_reader_of(block);
        *ret_entry = read_entry(&inner);
        entries->block = (struct bow_slice){reader.at, (size_t)(reader.end - reader.at)};
        return true;
    }
    return false;
}

static size_t entry_size(const struct bow_metadata_entry *entry)
{
    struct bow_slice key = {(const uint8_t *)entry->key, strlen(entry->key)};

    return field_bytes_size(key) + field_bytes_size(entry->value);
}

static size_t metadata_size(const struct bow_metadata *metadata)
{
    size_t n = 0;

    for (size_t i = 0; i < metadata->n; i++) {
        size_t n_entry = entry_size(&metadata->entries[i]);
        n += 1 + bow__wire_varint_size(n_entry) + n_entry;
    }
    return n;
}

static uint8_t *write_metadata(uint8_t *to, uint32_t field, const struct bow_metadata *metadata)
{
    for (size_t i = 0; i < metadata->n; i++) {
        const struct bow_metadata_entry *entry = &metadata->entries[i];
        struct bow_slice key = {(const uint8_t *)entry->key, strlen(entry->key)};
        *to++ = (uint8_t)(field << 3 | BOW__WIRE_LEN);
        to = bow__wire_write_varint(to, entry_size(entry));
        to = field_write_bytes(to, 1, key);
        to = field_write_bytes(to, 2, entry->value);
    }
    return to;
}

/* Encodings. */

static const struct bow_slice encoding_names[BOW__N_ENCODINGS] = {
    [BOW__ENCODING_IDENTITY] = {NULL, 0},
    [BOW__ENCODING_ZSTD] = {(const uint8_t *)"zstd", 4},
    [BOW__ENCODING_GZIP] = {(const uint8_t *)"gzip", 4},
    [BOW__ENCODING_DEFLATE] = {(const uint8_t *)"deflate", 7},
};

struct bow_slice bow__header_encoding_name(enum bow__encoding encoding)
{
    return encoding_names[encoding];
}

enum bow__encoding bow__header_encoding_of(struct bow_slice name)
{
    static const char identity[] = "identity";

    if (name.len == sizeof(identity) - 1 && memcmp(name.data, identity, name.len) == 0) {
        return BOW__ENCODING_IDENTITY;
    }
    for (unsigned i = 0; i < BOW__N_ENCODINGS; i++) {
        const struct bow_slice *known = &encoding_names[i];
        if (name.len == known->len &&
            (name.len == 0 || memcmp(name.data, known->data, name.len) == 0)) {
            return (enum bow__encoding)i;
        }
    }
    return BOW__ENCODING_UNKNOWN;
}

static size_t encodings_size(uint32_t encodings)
{
    size_t n = 0;

    for (unsigned i = 1; i < BOW__N_ENCODINGS; i++) {
        n += (encodings & 1u << i) != 0 ? field_bytes_size(encoding_names[i]) : 0;
    }
    return n;
}

static uint8_t *write_encodings(uint8_t *to, uint32_t field, uint32_t encodings)
{
    for (unsigned i = 1; i < BOW__N_ENCODINGS; i++) {
        if ((encodings & 1u << i) != 0) {
            to = field_write_bytes(to, field, encoding_names[i]);
        }
    }
    return to;
}

static void read_encoding_name(struct field_reader *reader, uint32_t *encodings)
{
    struct bow_slice name = {NULL, 0};

    field_read_bytes(reader, "encodings", &name);
    enum bow__encoding encoding = bow__header_encoding_of(name);
    if (encoding != BOW__ENCODING_UNKNOWN) {
        *encodings |= 1u << encoding;
    }
}

/* Settings. A limit at its default is not written, for absent means just that. */

static const struct bow__header_settings default_settings = BOW__HEADER_SETTINGS_INIT;

static size_t limit_size(uint32_t value, uint32_t default_value)
{
    return value == default_value ? 0 : 1 + bow__wire_varint_size(value);
}

static uint8_t *write_limit(uint8_t *to, uint32_t field, uint32_t value, uint32_t default_value)
{
    return value == default_value ? to : field_write_always(to, field, value);
}

/* SETTINGS may only raise what holds already, so a lower value is as wrong as an unreadable one. */
static void read_limit(struct field_reader *reader, const char *field, uint32_t *value)
{
    uint32_t low = *value;
    uint32_t given = low;

    field_read_u32(reader, field, &given);
    if (given < low) {
        field_set_error(reader, field, "value is below the protocol's minimum");
        return;
    }
    *value = given;
}

size_t bow__header_settings_size(const struct bow__header_settings *settings)
{
    const struct bow__header_settings *low = &default_settings;

    return limit_size(settings->max_frame_bytes, low->max_frame_bytes) +
           limit_size(settings->stream_window_bytes, low->stream_window_bytes) +
           limit_size(settings->connection_window_bytes, low->connection_window_bytes) +
           limit_size(settings->max_calls, low->max_calls) +
           limit_size(settings->max_message_bytes, low->max_message_bytes) +
           limit_size(settings->max_bound_methods, low->max_bound_methods) +
           field_number_size(settings->min_ping_interval_us) + encodings_size(settings->encodings) +
           field_number_size(settings->unattended) +
           limit_size(settings->max_header_bytes, low->max_header_bytes);
}

uint8_t *bow__header_settings_encode(uint8_t *to, const struct bow__header_settings *settings)
{
    const struct bow__header_settings *low = &default_settings;

    to = write_limit(to, 1, settings->max_frame_bytes, low->max_frame_bytes);
    to = write_limit(to, 2, settings->stream_window_bytes, low->stream_window_bytes);
    to = write_limit(to, 3, settings->connection_window_bytes, low->connection_window_bytes);
    to = write_limit(to, 4, settings->max_calls, low->max_calls);
    to = write_limit(to, 5, settings->max_message_bytes, low->max_message_bytes);
    to = write_limit(to, 6, settings->max_bound_methods, low->max_bound_methods);
    to = field_write_number(to, 7, settings->min_ping_interval_us);
    to = write_encodings(to, 8, settings->encodings);
    to = field_write_number(to, 9, settings->unattended);
    return write_limit(to, 10, settings->max_header_bytes, low->max_header_bytes);
}

static void read_settings_field(struct field_reader *reader, struct bow__header_settings *settings)
{
    switch (reader->field) {
    case 1:
        read_limit(reader, "max_frame_bytes", &settings->max_frame_bytes);
        return;
    case 2:
        read_limit(reader, "stream_window_bytes", &settings->stream_window_bytes);
        return;
    case 3:
        read_limit(reader, "connection_window_bytes", &settings->connection_window_bytes);
        return;
    case 4:
        read_limit(reader, "max_calls", &settings->max_calls);
        return;
    case 5:
        read_limit(reader, "max_message_bytes", &settings->max_message_bytes);
        return;
    case 6:
        read_limit(reader, "max_bound_methods", &settings->max_bound_methods);
        return;
    case 7:
        field_read_u64(reader, "min_ping_interval_us", &settings->min_ping_interval_us);
        return;
    case 8:
        read_encoding_name(reader, &settings->encodings);
        return;
    case 9:
        field_read_bool(reader, "unattended", &settings->unattended);
        return;
    case 10:
        read_limit(reader, "max_header_bytes", &settings->max_header_bytes);
        return;
    default:
        field_skip(reader);
        return;
    }
}

int bow__header_settings_decode(struct bow_slice block, struct bow__header_settings *ret_settings,
                                struct bow__header_error *ret_error)
{
    struct field_reader reader = field_reader_of(block);

    *ret_settings = default_settings;
    while (field_next(&reader)) {
        read_settings_field(&reader, ret_settings);
    }
    return field_end(&reader, ret_error);
}

/* The request header. */

size_t bow__header_request_size(const struct bow__header_request *request)
{
    size_t time_size =
        request->has_time_left ? 1 + bow__wire_varint_size(request->time_left_us) : 0;

    return field_number_size(request->method) + field_bytes_size(request->path) + time_size +
           metadata_size(&request->metadata) + field_bytes_size(request->encoding);
}

uint8_t *bow__header_request_encode(uint8_t *to, const struct bow__header_request *request)
{
    to = field_write_number(to, 1, request->method);
    to = field_write_bytes(to, 2, request->path);
    if (request->has_time_left) {
        to = field_write_always(to, 3, request->time_left_us);
    }
    to = write_metadata(to, 4, &request->metadata);
    return field_write_bytes(to, 5, request->encoding);
}

/* What most requests consist of: a number of one byte, and the time. Returns what follows. */
static const uint8_t *read_plain_request(const uint8_t *at, const uint8_t *end,
                                         struct bow__header_request *request)
{
    if (end - at >= 2 && at[0] == (1 << 3 | BOW__WIRE_VARINT) && at[1] < 0x80) {
        request->method = at[1];
        at += 2;
    }
    if (at < end && *at == (3 << 3 | BOW__WIRE_VARINT)) {
        const uint8_t *next = bow__wire_read_varint(at + 1, end, &request->time_left_us);
        request->has_time_left = next != NULL;
        at = next != NULL ? next : at;
    }
    return at;
}

static BOW__LONG_WAY int read_request_fields(struct field_reader *reader,
                                             struct bow__header_request *ret_request,
                                             struct bow__header_error *ret_error)
{
    while (field_next(reader)) {
        switch (reader->field) {
        case 1:
            field_read_u32(reader, "method", &ret_request->method);
            break;
        case 2:
            field_read_bytes(reader, "path", &ret_request->path);
            break;
        case 3:
            field_read_u64(reader, "time_left_us", &ret_request->time_left_us);
            ret_request->has_time_left = true;
            break;
        case 4:
            count_entry(reader, &ret_request->entries);
            break;
        case 5:
            field_read_bytes(reader, "encoding", &ret_request->encoding);
            break;
        default:
            field_skip(reader);
            break;
        }
    }
    return field_end(reader, ret_error);
}

int bow__header_request_decode(struct bow_slice block, struct bow__header_request *ret_request,
                               struct bow__header_error *ret_error)
{
    const uint8_t *end = block.len > 0 ? block.data + block.len : block.data;

    bow__zero_struct(ret_request, sizeof(*ret_request));
    ret_request->entries.block = block;
    ret_request->entries.field = 4;
    const uint8_t *at = read_plain_request(block.data, end, ret_request);
    if (at == end) {
        return 0;
    }
    struct field_reader reader = {.at = at, .end = end};
    return read_request_fields(&reader, ret_request, ret_error);
}

/* The response header. */

size_t bow__header_response_size(const struct bow__header_response *response)
{
    return metadata_size(&response->metadata) + field_bytes_size(response->encoding);
}

uint8_t *bow__header_response_encode(uint8_t *to, const struct bow__header_response *response)
{
    to = write_metadata(to, 1, &response->metadata);
    return field_write_bytes(to, 2, response->encoding);
}

int bow__header_response_decode(struct bow_slice block, struct bow__header_response *ret_response,
                                struct bow__header_error *ret_error)
{
    struct field_reader reader = field_reader_of(block);

    *ret_response = (struct bow__header_response){.entries = {.block = block, .field = 1}};
    while (field_next(&reader)) {
        switch (reader.field) {
        case 1:
            count_entry(&reader, &ret_response->entries);
            break;
        case 2:
            field_read_bytes(&reader, "encoding", &ret_response->encoding);
            break;
        default:
            field_skip(&reader);
            break;
        }
    }
    return field_end(&reader, ret_error);
}

/* The status header. */

size_t bow__header_status_size(const struct bow__header_status *status)
{
    return field_number_size(status->code) + field_bytes_size(status->message) +
           field_bytes_size(status->details) + field_number_size(status->not_processed) +
           field_number_size(status->retry_after_us) + metadata_size(&status->metadata) +
           field_bytes_size(status->encoding);
}

uint8_t *bow__header_status_encode(uint8_t *to, const struct bow__header_status *status)
{
    to = field_write_number(to, 1, status->code);
    to = field_write_bytes(to, 2, status->message);
    to = field_write_bytes(to, 3, status->details);
    to = field_write_number(to, 4, status->not_processed);
    to = field_write_number(to, 5, status->retry_after_us);
    to = write_metadata(to, 6, &status->metadata);
    return field_write_bytes(to, 7, status->encoding);
}

static void read_status_field(struct field_reader *reader, struct bow__header_status *status)
{
    switch (reader->field) {
    case 1:
        field_read_u32(reader, "code", &status->code);
        return;
    case 2:
        field_read_bytes(reader, "message", &status->message);
        return;
    case 3:
        field_read_bytes(reader, "details", &status->details);
        return;
    case 4:
        field_read_bool(reader, "not_processed", &status->not_processed);
        return;
    case 5:
        field_read_u64(reader, "retry_after_us", &status->retry_after_us);
        return;
    case 6:
        count_entry(reader, &status->entries);
        return;
    case 7:
        field_read_bytes(reader, "encoding", &status->encoding);
        return;
    default:
        field_skip(reader);
        return;
    }
}

int bow__header_status_decode(struct bow_slice block, struct bow__header_status *ret_status,
                              struct bow__header_error *ret_error)
{
    struct field_reader reader = field_reader_of(block);

    *ret_status = (struct bow__header_status){.entries = {.block = block, .field = 6}};
    while (field_next(&reader)) {
        read_status_field(&reader, ret_status);
    }
    return field_end(&reader, ret_error);
}

/* The status of a call, as the host has it. */

static struct bow_slice slice_of(const char *text)
{
    return (struct bow_slice){(const uint8_t *)text, strlen(text)};
}

/* The front of `text` that fits and ends with a whole character. */
static struct bow_slice clip_text(struct bow_slice text, size_t max)
{
    if (text.len > max) {
        text.len = max;
        while (text.len > 0 && (text.data[text.len] & 0xC0) == 0x80) {
            text.len--;
        }
    }
    return text;
}

struct bow__header_status bow__header_of_status(const struct bow_status *status, size_t max_bytes)
{
    struct bow__header_status wire = {
        .code = (uint32_t)status->code,
        .message = clip_text(slice_of(status->message), BOW_LIMIT_STATUS_MESSAGE_BYTES),
        .details = status->details,
        .not_processed = status->not_processed,
        .retry_after_us = status->retry_after_ns / 1000 + (status->retry_after_ns % 1000 > 0),
        .metadata = status->metadata,
    };

    if (bow__metadata_bytes(&wire.metadata) > max_bytes) {
        wire.metadata.n = 0;
    }
    if (wire.details.len > max_bytes || bow__header_status_size(&wire) > max_bytes) {
        wire.details.len = 0;
    }
    if (bow__header_status_size(&wire) > max_bytes) {
        wire.metadata.n = 0;
    }
    return wire;
}

/* A peer's text as a string: what is not UTF-8, and NUL, becomes '?'; too much is cut. */
static void copy_text(char *to, struct bow_slice text)
{
    size_t n =
        text.len < BOW_LIMIT_STATUS_MESSAGE_BYTES ? text.len : BOW_LIMIT_STATUS_MESSAGE_BYTES;
    size_t at = 0;

    if (n > 0) {
        memcpy(to, text.data, n);
    }
    while (at < n) {
        struct bow_slice rest = {(const uint8_t *)to + at, n - at};
        at += bow__utf8_prefix(rest, false);
        if (at < n) {
            to[at++] = '?';
        }
    }
    to[n] = '\0';
}

/* What it says all the same goes behind that; cut, for the room is that of a message. */
static enum bow_code refuse_code(uint32_t code, char *text)
{
    char message[BOW__STATUS_TEXT_BYTES];

    memcpy(message, text, strlen(text) + 1);
    int n = snprintf(text, BOW__STATUS_TEXT_BYTES, "the peer's status code %" PRIu32 " is none%s",
                     code, message[0] != '\0' ? ": " : "");
    size_t left = BOW__STATUS_TEXT_BYTES - 1 - (size_t)n;
    struct bow_slice rest = {(const uint8_t *)message, strlen(message)};
    rest.len = rest.len < left ? rest.len : left;
    rest.len = bow__utf8_prefix(rest, false);
    memcpy(text + n, message, rest.len);
    text[(size_t)n + rest.len] = '\0';
    return BOW_UNKNOWN;
}

struct bow_status bow__status_of_header(const struct bow__header_status *wire, char *text)
{
    uint64_t us = wire->retry_after_us;

    copy_text(text, wire->message);
    return (struct bow_status){
        .code = wire->code <= BOW_UNAUTHENTICATED ? (enum bow_code)wire->code
                                                  : refuse_code(wire->code, text),
        .message = text,
        .details = wire->details,
        .not_processed = wire->not_processed,
        .retry_after_ns = us > BOW_NEVER / 1000 ? BOW_NEVER : us * 1000,
    };
}
