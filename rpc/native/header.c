/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Header blocks as wire.proto has them; reading and writing of each message stand
 * together, in field order. The reader's error is sticky: fields are read one
 * after the other and looked at once, at the end.
 */

#include "rpc/native/header.h"
#include "rpc/core/wire.h"

#include <errno.h>
#include <string.h>

struct reader {
    const uint8_t *at;
    const uint8_t *end;
    uint32_t field; /* of the last tag */
    uint32_t type;
    struct bow__header_error error; /* `what` NULL: none yet */
};

static void set_error(struct reader *reader, const char *field, const char *what)
{
    if (reader->error.what == NULL) {
        reader->error = (struct bow__header_error){.field = field, .what = what};
    }
    reader->at = reader->end;
}

static uint64_t take_varint(struct reader *reader, const char *field)
{
    uint64_t value = 0;
    const uint8_t *next = bow__wire_read_varint(reader->at, reader->end, &value);

    if (next == NULL) {
        bool cut = bow__wire_is_cut(reader->at, reader->end);
        set_error(reader, field, cut ? "varint is cut short" : "varint exceeds 64 bits");
        return 0;
    }
    reader->at = next;
    return value;
}

static struct bow_slice take_bytes(struct reader *reader, const char *field)
{
    uint64_t len = take_varint(reader, field);

    if (len > (size_t)(reader->end - reader->at)) {
        set_error(reader, field, "length runs past the end");
        return (struct bow_slice){NULL, 0};
    }
    struct bow_slice bytes = {reader->at, (size_t)len};
    reader->at += bytes.len;
    return bytes;
}

static void skip_fixed(struct reader *reader, size_t n)
{
    if ((size_t)(reader->end - reader->at) < n) {
        set_error(reader, "unknown field", "fixed number is cut short");
        return;
    }
    reader->at += n;
}

static void skip_field(struct reader *reader)
{
    switch (reader->type) {
    case BOW__WIRE_VARINT:
        (void)take_varint(reader, "unknown field");
        return;
    case BOW__WIRE_FIXED64:
        skip_fixed(reader, 8);
        return;
    case BOW__WIRE_LEN:
        (void)take_bytes(reader, "unknown field");
        return;
    case BOW__WIRE_FIXED32:
        skip_fixed(reader, 4);
        return;
    default:
        set_error(reader, "unknown field", "groups and wire types above 5 are not allowed");
        return;
    }
}

static bool next_field(struct reader *reader)
{
    if (reader->at == reader->end) {
        return false;
    }
    uint64_t tag = take_varint(reader, "tag");
    if (tag > UINT32_MAX || (tag >> 3) == 0) {
        set_error(reader, "tag", "field number is out of range");
    }
    reader->field = (uint32_t)(tag >> 3);
    reader->type = (uint32_t)(tag & 7);
    return reader->error.what == NULL;
}

static bool has_type(struct reader *reader, const char *field, enum bow__wire_type type)
{
    if (reader->type == (uint32_t)type) {
        return true;
    }
    set_error(reader, field, "wrong wire type");
    return false;
}

static void read_u64(struct reader *reader, const char *field, uint64_t *ret_value)
{
    if (has_type(reader, field, BOW__WIRE_VARINT)) {
        *ret_value = take_varint(reader, field);
    }
}

static void read_u32(struct reader *reader, const char *field, uint32_t *ret_value)
{
    uint64_t value = 0;

    read_u64(reader, field, &value);
    if (value > UINT32_MAX) {
        set_error(reader, field, "number exceeds 32 bits");
        return;
    }
    *ret_value = (uint32_t)value;
}

static void read_bool(struct reader *reader, const char *field, bool *ret_value)
{
    uint64_t value = 0;

    read_u64(reader, field, &value);
    *ret_value = value != 0;
}

static void read_bytes(struct reader *reader, const char *field, struct bow_slice *ret_bytes)
{
    if (has_type(reader, field, BOW__WIRE_LEN)) {
        *ret_bytes = take_bytes(reader, field);
    }
}

static struct reader reader_of(struct bow_slice block)
{
    return (struct reader){.at = block.data,
                           .end = block.len > 0 ? block.data + block.len : block.data};
}

static int end_reading(const struct reader *reader, struct bow__header_error *ret_error)
{
    if (reader->error.what == NULL) {
        return 0;
    }
    *ret_error = reader->error;
    return -EBADMSG;
}

/* One entry: key = 1, value = 2. Nothing uses metadata yet, but its form is checked. */
static void read_metadata(struct reader *reader, uint32_t *n_entries)
{
    struct bow_slice block = {NULL, 0};
    struct bow_slice part;

    read_bytes(reader, "metadata", &block);
    struct reader entry = reader_of(block);
    while (next_field(&entry)) {
        if (entry.field == 1 || entry.field == 2) {
            read_bytes(&entry, entry.field == 1 ? "metadata.key" : "metadata.value", &part);
        } else {
            skip_field(&entry);
        }
    }
    if (entry.error.what != NULL) {
        set_error(reader, entry.error.field, entry.error.what);
        return;
    }
    ++*n_entries;
}

/* Writing. Field numbers are below 16: a tag is one byte. */

static size_t number_size(uint64_t value)
{
    return value == 0 ? 0 : 1 + bow__wire_varint_size(value);
}

static size_t bytes_size(struct bow_slice bytes)
{
    return bytes.len == 0 ? 0 : 1 + bow__wire_varint_size(bytes.len) + bytes.len;
}

static uint8_t *write_always(uint8_t *to, uint32_t field, uint64_t value)
{
    *to++ = (uint8_t)(field << 3 | BOW__WIRE_VARINT);
    return bow__wire_write_varint(to, value);
}

static uint8_t *write_number(uint8_t *to, uint32_t field, uint64_t value)
{
    return value == 0 ? to : write_always(to, field, value);
}

static uint8_t *write_bytes(uint8_t *to, uint32_t field, struct bow_slice bytes)
{
    if (bytes.len == 0) {
        return to;
    }
    *to++ = (uint8_t)(field << 3 | BOW__WIRE_LEN);
    to = bow__wire_write_varint(to, bytes.len);
    memcpy(to, bytes.data, bytes.len);
    return to + bytes.len;
}

/* Settings. A limit at its default is not written, for absent means just that. */

static const struct bow__header_settings default_settings = BOW__HEADER_SETTINGS_INIT;

static size_t limit_size(uint32_t value, uint32_t default_value)
{
    return value == default_value ? 0 : 1 + bow__wire_varint_size(value);
}

static uint8_t *write_limit(uint8_t *to, uint32_t field, uint32_t value, uint32_t default_value)
{
    return value == default_value ? to : write_always(to, field, value);
}

/* SETTINGS may only raise what holds already, so a lower value is as wrong as an unreadable one. */
static void read_limit(struct reader *reader, const char *field, uint32_t *value)
{
    uint32_t low = *value;
    uint32_t given = low;

    read_u32(reader, field, &given);
    if (given < low) {
        set_error(reader, field, "value is below the protocol's minimum");
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
           number_size(settings->min_ping_interval_us) + number_size(settings->unattended);
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
    to = write_number(to, 7, settings->min_ping_interval_us);
    return write_number(to, 9, settings->unattended);
}

static void read_encoding_name(struct reader *reader, uint32_t *n_encodings)
{
    struct bow_slice name;

    read_bytes(reader, "encodings", &name);
    ++*n_encodings;
}

static void read_settings_field(struct reader *reader, struct bow__header_settings *settings)
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
        read_u64(reader, "min_ping_interval_us", &settings->min_ping_interval_us);
        return;
    case 8:
        read_encoding_name(reader, &settings->n_encodings);
        return;
    case 9:
        read_bool(reader, "unattended", &settings->unattended);
        return;
    default:
        skip_field(reader);
        return;
    }
}

int bow__header_settings_decode(struct bow_slice block, struct bow__header_settings *ret_settings,
                                struct bow__header_error *ret_error)
{
    struct reader reader = reader_of(block);

    *ret_settings = default_settings;
    while (next_field(&reader)) {
        read_settings_field(&reader, ret_settings);
    }
    return end_reading(&reader, ret_error);
}

/* The request header. */

size_t bow__header_request_size(const struct bow__header_request *request)
{
    size_t time_size =
        request->has_time_left ? 1 + bow__wire_varint_size(request->time_left_us) : 0;

    return number_size(request->method) + bytes_size(request->path) + time_size +
           bytes_size(request->encoding);
}

uint8_t *bow__header_request_encode(uint8_t *to, const struct bow__header_request *request)
{
    to = write_number(to, 1, request->method);
    to = write_bytes(to, 2, request->path);
    if (request->has_time_left) {
        to = write_always(to, 3, request->time_left_us);
    }
    return write_bytes(to, 5, request->encoding);
}

int bow__header_request_decode(struct bow_slice block, struct bow__header_request *ret_request,
                               struct bow__header_error *ret_error)
{
    struct reader reader = reader_of(block);

    *ret_request = (struct bow__header_request){0};
    while (next_field(&reader)) {
        switch (reader.field) {
        case 1:
            read_u32(&reader, "method", &ret_request->method);
            break;
        case 2:
            read_bytes(&reader, "path", &ret_request->path);
            break;
        case 3:
            read_u64(&reader, "time_left_us", &ret_request->time_left_us);
            ret_request->has_time_left = true;
            break;
        case 4:
            read_metadata(&reader, &ret_request->n_metadata);
            break;
        case 5:
            read_bytes(&reader, "encoding", &ret_request->encoding);
            break;
        default:
            skip_field(&reader);
            break;
        }
    }
    return end_reading(&reader, ret_error);
}

/* The response header. */

size_t bow__header_response_size(const struct bow__header_response *response)
{
    return bytes_size(response->encoding);
}

uint8_t *bow__header_response_encode(uint8_t *to, const struct bow__header_response *response)
{
    return write_bytes(to, 2, response->encoding);
}

int bow__header_response_decode(struct bow_slice block, struct bow__header_response *ret_response,
                                struct bow__header_error *ret_error)
{
    struct reader reader = reader_of(block);

    *ret_response = (struct bow__header_response){0};
    while (next_field(&reader)) {
        switch (reader.field) {
        case 1:
            read_metadata(&reader, &ret_response->n_metadata);
            break;
        case 2:
            read_bytes(&reader, "encoding", &ret_response->encoding);
            break;
        default:
            skip_field(&reader);
            break;
        }
    }
    return end_reading(&reader, ret_error);
}

/* The status header. */

size_t bow__header_status_size(const struct bow__header_status *status)
{
    return number_size(status->code) + bytes_size(status->message) + bytes_size(status->details) +
           number_size(status->not_processed) + number_size(status->retry_after_us) +
           bytes_size(status->encoding);
}

uint8_t *bow__header_status_encode(uint8_t *to, const struct bow__header_status *status)
{
    to = write_number(to, 1, status->code);
    to = write_bytes(to, 2, status->message);
    to = write_bytes(to, 3, status->details);
    to = write_number(to, 4, status->not_processed);
    to = write_number(to, 5, status->retry_after_us);
    return write_bytes(to, 7, status->encoding);
}

static void read_status_field(struct reader *reader, struct bow__header_status *status)
{
    switch (reader->field) {
    case 1:
        read_u32(reader, "code", &status->code);
        return;
    case 2:
        read_bytes(reader, "message", &status->message);
        return;
    case 3:
        read_bytes(reader, "details", &status->details);
        return;
    case 4:
        read_bool(reader, "not_processed", &status->not_processed);
        return;
    case 5:
        read_u64(reader, "retry_after_us", &status->retry_after_us);
        return;
    case 6:
        read_metadata(reader, &status->n_metadata);
        return;
    case 7:
        read_bytes(reader, "encoding", &status->encoding);
        return;
    default:
        skip_field(reader);
        return;
    }
}

int bow__header_status_decode(struct bow_slice block, struct bow__header_status *ret_status,
                              struct bow__header_error *ret_error)
{
    struct reader reader = reader_of(block);

    *ret_status = (struct bow__header_status){0};
    while (next_field(&reader)) {
        read_status_field(&reader, ret_status);
    }
    return end_reading(&reader, ret_error);
}
