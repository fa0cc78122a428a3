/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Trace contexts as text (https://www.w3.org/TR/trace-context/, levels 1 and 2): pure functions
 * over bytes. What spans are made of them is others' business.
 */

#include "rpc/interceptors/trace_context.h"
#include "base/text.h"

#include <errno.h>
#include <string.h>

/* traceparent: "00-" 32 digits "-" 16 digits "-" 2 digits */
#define TRACE_ID_AT 3u
#define SPAN_ID_AT 36u
#define FLAGS_AT 53u
#define PARENT_BYTES 55u

/* The recommendation's number: when a tracestate is too long, members above this go first. */
#define LONG_MEMBER_BYTES 128u
#define KEY_BYTES 256u
#define VALUE_BYTES 256u
#define TENANT_BYTES 241u
#define SYSTEM_BYTES 14u

static const uint8_t known_flags = BOW_SPAN_SAMPLED | BOW_SPAN_RANDOM;

/* Digits */

static int digit(uint8_t c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_hex(const uint8_t *text, uint8_t *to, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int high = digit(text[2 * i]);
        int low = digit(text[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        to[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static char *write_hex(char *to, const uint8_t *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < n; i++) {
        *to++ = digits[bytes[i] >> 4];
        *to++ = digits[bytes[i] & 0xF];
    }
    return to;
}

static bool is_zero(const uint8_t *bytes, size_t n)
{
    uint8_t any = 0;

    for (size_t i = 0; i < n; i++) {
        any |= bytes[i];
    }
    return any == 0;
}

/* traceparent */

/* Of a later version something may follow, behind a dash. Version ff is forbidden. */
static bool has_form(struct bow_slice text)
{
    uint8_t version = 0;

    if (text.len < PARENT_BYTES || !read_hex(text.data, &version, 1) || version == 0xFF) {
        return false;
    }
    if (text.len > PARENT_BYTES && (version == 0 || text.data[PARENT_BYTES] != '-')) {
        return false;
    }
    return text.data[TRACE_ID_AT - 1] == '-' && text.data[SPAN_ID_AT - 1] == '-' &&
           text.data[FLAGS_AT - 1] == '-';
}

int bow_span_context_read(struct bow_slice traceparent, struct bow_span_context *ret_context)
{
    struct bow_span_context read;

    if (!has_form(traceparent) ||
        !read_hex(traceparent.data + TRACE_ID_AT, read.trace_id, sizeof(read.trace_id)) ||
        !read_hex(traceparent.data + SPAN_ID_AT, read.span_id, sizeof(read.span_id)) ||
        !read_hex(traceparent.data + FLAGS_AT, &read.flags, 1)) {
        return -EBADMSG;
    }
    if (is_zero(read.trace_id, sizeof(read.trace_id)) ||
        is_zero(read.span_id, sizeof(read.span_id))) {
        return -EBADMSG;
    }
    read.flags &= known_flags;
    *ret_context = read;
    return 0;
}

void bow_span_context_write(const struct bow_span_context *context,
                            char text[BOW_TRACEPARENT_BYTES])
{
    uint8_t flags = context->flags & known_flags;

    memcpy(text, "00-", TRACE_ID_AT);
    char *next = write_hex(text + TRACE_ID_AT, context->trace_id, sizeof(context->trace_id));
    *next++ = '-';
    next = write_hex(next, context->span_id, sizeof(context->span_id));
    *next++ = '-';
    next = write_hex(next, &flags, 1);
    *next = '\0';
}

void bow_trace_id_write(const struct bow_span_context *context, char text[BOW_TRACE_ID_TEXT_BYTES])
{
    *write_hex(text, context->trace_id, sizeof(context->trace_id)) = '\0';
}

void bow_span_id_write(const struct bow_span_context *context, char text[BOW_SPAN_ID_TEXT_BYTES])
{
    *write_hex(text, context->span_id, sizeof(context->span_id)) = '\0';
}

int bow__trace_context_find(const struct bow_metadata *metadata,
                            struct bow_span_context *ret_context)
{
    const struct bow_slice *found = NULL;

    for (size_t i = 0; i < metadata->n; i++) {
        if (strcmp(metadata->entries[i].key, BOW__TRACEPARENT_KEY) != 0) {
            continue;
        }
        if (found != NULL) {
            return -ENODATA;
        }
        found = &metadata->entries[i].value;
    }
    return found != NULL && bow_span_context_read(*found, ret_context) == 0 ? 0 : -ENODATA;
}

/* tracestate */

static bool is_letter(uint8_t c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_letter_or_digit(uint8_t c)
{
    return is_letter(c) || (c >= '0' && c <= '9');
}

/* Behind the first character of each part. */
static bool are_key_characters(const uint8_t *key, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!is_letter_or_digit(key[i]) && memchr("_-*/", key[i], 4) == NULL) {
            return false;
        }
    }
    return true;
}

/* "vendor", or "tenant@system" */
static bool is_key(const uint8_t *key, size_t len)
{
    const uint8_t *at = len > 0 ? memchr(key, '@', len) : NULL;

    if (at == NULL) {
        return len > 0 && len <= KEY_BYTES && is_letter(key[0]) && are_key_characters(key, len);
    }
    size_t n_tenant = (size_t)(at - key);
    size_t n_system = len - n_tenant - 1;
    return n_tenant > 0 && n_tenant <= TENANT_BYTES && n_system > 0 && n_system <= SYSTEM_BYTES &&
           is_letter_or_digit(key[0]) && are_key_characters(key, n_tenant) && is_letter(at[1]) &&
           are_key_characters(at + 1, n_system);
}

static bool is_value(const uint8_t *value, size_t len)
{
    if (len == 0 || len > VALUE_BYTES || value[len - 1] == ' ') {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (value[i] < ' ' || value[i] > '~' || value[i] == ',' || value[i] == '=') {
            return false;
        }
    }
    return true;
}

static bool is_member(struct bow_slice member)
{
    const uint8_t *equals = memchr(member.data, '=', member.len);

    if (equals == NULL) {
        return false;
    }
    size_t n_key = (size_t)(equals - member.data);
    return is_key(member.data, n_key) && is_value(equals + 1, member.len - n_key - 1);
}

struct members {
    struct bow_slice list[BOW_LIMIT_TRACESTATE_MEMBERS];
    size_t n;
    size_t n_bytes; /* with a comma behind each */
};

/* Empty members are allowed, and nothing. Returns whether all of it is as it should be. */
static bool take_members(struct members *members, struct bow_slice text)
{
    const uint8_t *at = text.data;
    const uint8_t *end = text.data + text.len;

    while (at < end) {
        const uint8_t *comma = memchr(at, ',', (size_t)(end - at));
        const uint8_t *stop = comma != NULL ? comma : end;
        struct bow_slice member = bow__text_trim((struct bow_slice){at, (size_t)(stop - at)});
        at = comma != NULL ? comma + 1 : end;
        if (member.len == 0) {
            continue;
        }
        if (members->n == BOW_LIMIT_TRACESTATE_MEMBERS || !is_member(member)) {
            return false;
        }
        members->list[members->n++] = member;
        members->n_bytes += member.len + 1;
    }
    return true;
}

static bool collect(struct members *members, const struct bow_metadata *metadata)
{
    for (size_t i = 0; i < metadata->n; i++) {
        const struct bow_metadata_entry *entry = &metadata->entries[i];
        if (strcmp(entry->key, BOW__TRACESTATE_KEY) == 0 && !take_members(members, entry->value)) {
            return false;
        }
    }
    return true;
}

static bool is_too_long(const struct members *members)
{
    return members->n_bytes > BOW_LIMIT_TRACESTATE_BYTES + 1; /* the last comma is not written */
}

static void remove_member(struct members *members, size_t i)
{
    members->n_bytes -= members->list[i].len + 1;
    members->n--;
    memmove(&members->list[i], &members->list[i + 1], (members->n - i) * sizeof(members->list[0]));
}

static void shorten(struct members *members)
{
    for (size_t i = members->n; i-- > 0 && is_too_long(members);) {
        if (members->list[i].len > LONG_MEMBER_BYTES) {
            remove_member(members, i);
        }
    }
    while (is_too_long(members)) {
        remove_member(members, members->n - 1);
    }
}

size_t bow__tracestate_read(const struct bow_metadata *metadata, char to[BOW__TRACESTATE_BYTES])
{
    struct members members = {.n = 0};
    char *next = to;

    if (collect(&members, metadata)) {
        shorten(&members);
        for (size_t i = 0; i < members.n; i++) {
            if (i > 0) {
                *next++ = ',';
            }
            memcpy(next, members.list[i].data, members.list[i].len);
            next += members.list[i].len;
        }
    }
    *next = '\0';
    return (size_t)(next - to);
}
