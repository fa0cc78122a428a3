/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Bodies of requests: base64 undone, prefixes taken off, messages put together. */

#include "rpc/web/reader.h"
#include "rpc/core/in_flight.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#define COMPRESSED 0x01u
#define CONNECT_END 0x02u
#define GRPC_WEB_TRAILERS 0x80u

/* Of a body that does not say how long it is. */
#define FIRST_BYTES ((size_t)1 << 10)
/* Of base64 undone at a time. */
#define QUADS_BYTES ((size_t)3 << 10)

void bow__web_reader_init(struct bow__web_reader *reader, struct bow_context *context,
                          enum bow__web_framing framing, struct bow__in_flight_share *in_flight,
                          size_t max_message_bytes)
{
    reader->context = context;
    reader->framing = framing;
    reader->in_flight = in_flight;
    reader->max_message_bytes = max_message_bytes;
}

static void give_reserved(struct bow__web_reader *reader)
{
    if (reader->n_reserved > 0) {
        bow__in_flight_give_message(reader->in_flight, reader->n_reserved);
        reader->n_reserved = 0;
    }
}

void bow__web_reader_fini(struct bow__web_reader *reader)
{
    reader->block = bow__block_unref(reader->block);
    give_reserved(reader);
}

static int refuse(struct bow__web_reader *reader, int rc, enum bow_code code)
{
    reader->code = code;
    return rc;
}

static int refuse_size(struct bow__web_reader *reader, size_t n, struct bow__text *why)
{
    bow__text_printf(why, "message of %zu bytes%s exceeds the server's max_message_bytes (%zu)", n,
                     reader->framing == BOW__WEB_BARE ? " and more" : "",
                     reader->max_message_bytes);
    return refuse(reader, -EMSGSIZE, BOW_RESOURCE_EXHAUSTED);
}

/* Of what comes in pieces `n` bytes will be held. */
static int reserve(struct bow__web_reader *reader, size_t n, struct bow__text *why)
{
    if (n <= reader->n_reserved || reader->in_flight == NULL) {
        return 0;
    }
    if (!bow__in_flight_take_message(reader->in_flight, n - reader->n_reserved)) {
        bow__text_printf(why, "no room for a message of %zu bytes: ", n);
        bow__in_flight_describe(reader->in_flight->in_flight, why);
        return refuse(reader, -EMSGSIZE, BOW_RESOURCE_EXHAUSTED);
    }
    reader->n_reserved = n;
    return 0;
}

static int keep(struct bow__web_reader *reader, struct bow_slice bytes, size_t whole,
                struct bow__text *why)
{
    if (bytes.len == 0) {
        return 0;
    }
    if (bow__block_make_room(reader->context, &reader->block, reader->n_bytes + bytes.len, whole) <
        0) {
        bow__text_printf(why, "no memory for a message of %zu bytes", reader->n_bytes + bytes.len);
        return refuse(reader, -ENOMEM, BOW_RESOURCE_EXHAUSTED);
    }
    memcpy(reader->block->data + reader->n_bytes, bytes.data, bytes.len);
    reader->n_bytes += bytes.len;
    return 0;
}

/* The message is whole: in the block, or where `bytes` lie. */
static int emit(struct bow__web_reader *reader, struct bow_slice bytes,
                struct bow__message *ret_message)
{
    *ret_message = (struct bow__message){
        .bytes = reader->block != NULL ? (struct bow_slice){reader->block->data, reader->n_bytes}
                                       : bytes,
        .block = reader->block,
        .compressed = (reader->prefix[0] & COMPRESSED) != 0,
    };
    give_reserved(reader);
    reader->block = NULL;
    reader->n_bytes = 0;
    reader->n_prefix = 0;
    return 1;
}

/* Bare bodies */

static int feed_bare(struct bow__web_reader *reader, struct bow_slice *bytes, struct bow__text *why)
{
    size_t n = reader->n_bytes + bytes->len;

    if (n > reader->max_message_bytes) {
        return refuse_size(reader, n, why);
    }
    int rc = reserve(reader, n, why);
    if (rc == 0) {
        /* Nobody has said how long it is. */
        rc = keep(reader, *bytes, 2 * n > FIRST_BYTES ? 2 * n : FIRST_BYTES, why);
    }
    *bytes = (struct bow_slice){bytes->data + bytes->len, 0};
    return rc;
}

/* Behind prefixes */

static int begin_message(struct bow__web_reader *reader, struct bow__text *why)
{
    const uint8_t *prefix = reader->prefix;

    reader->len = (uint32_t)prefix[1] << 24 | (uint32_t)prefix[2] << 16 | (uint32_t)prefix[3] << 8 |
                  prefix[4];
    if ((prefix[0] & ~COMPRESSED) != 0) {
        bow__text_printf(why, "message prefix has flags 0x%02x, of a client only 0x01 is known",
                         prefix[0]);
        return refuse(reader, -EPROTO,
                      (prefix[0] & (CONNECT_END | GRPC_WEB_TRAILERS)) != 0 ? BOW_INVALID_ARGUMENT
                                                                           : BOW_INTERNAL);
    }
    return reader->len > reader->max_message_bytes ? refuse_size(reader, reader->len, why) : 0;
}

static struct bow_slice take(struct bow_slice *bytes, size_t max)
{
    size_t n = bytes->len < max ? bytes->len : max;
    struct bow_slice taken = {bytes->data, n};

    *bytes = (struct bow_slice){bytes->data + n, bytes->len - n};
    return taken;
}

static int take_prefix(struct bow__web_reader *reader, struct bow_slice *bytes,
                       struct bow__text *why)
{
    struct bow_slice taken = take(bytes, sizeof(reader->prefix) - reader->n_prefix);

    if (taken.len > 0) {
        memcpy(reader->prefix + reader->n_prefix, taken.data, taken.len);
        reader->n_prefix = (uint8_t)(reader->n_prefix + taken.len);
    }
    return reader->n_prefix == sizeof(reader->prefix) ? begin_message(reader, why) : 0;
}

static int feed_prefixed(struct bow__web_reader *reader, struct bow_slice *bytes,
                         struct bow__message *ret_message, struct bow__text *why)
{
    if (reader->n_prefix < sizeof(reader->prefix)) {
        int rc = take_prefix(reader, bytes, why);
        if (rc < 0 || reader->n_prefix < sizeof(reader->prefix)) {
            return rc;
        }
    }
    size_t missing = reader->len - reader->n_bytes;
    struct bow_slice taken = take(bytes, missing);
    bool is_in_place = reader->framing == BOW__WEB_PREFIXED || missing == 0;
    if (taken.len == missing && reader->block == NULL && is_in_place) {
        return emit(reader, taken, ret_message);
    }
    if (taken.len == 0) {
        return 0;
    }
    int rc = reserve(reader, reader->len, why);
    rc = rc == 0 ? keep(reader, taken, reader->len, why) : rc;
    if (rc < 0 || reader->n_bytes < reader->len) {
        return rc;
    }
    return emit(reader, taken, ret_message);
}

/* Base64, of which a client may pad each piece that it writes */

static int value_of(uint8_t c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* A quad is whole. Returns whether it is one. */
static bool decode_quad(struct bow__web_reader *reader)
{
    const uint8_t *quad = reader->quad;
    size_t n = quad[3] != '=' ? 3 : quad[2] != '=' ? 2 : 1;
    uint32_t bits = 0;

    for (size_t i = 0; i < 4; i++) {
        int value = i <= n ? value_of(quad[i]) : 0;
        if (value < 0) {
            return false;
        }
        bits = bits << 6 | (uint32_t)value;
    }
    for (size_t i = 0; i < sizeof(reader->decoded); i++) {
        reader->decoded[i] = (uint8_t)(bits >> (16 - 8 * i));
    }
    reader->n_decoded = (uint8_t)n;
    reader->n_quad = 0;
    return true;
}

static int refuse_quad(struct bow__web_reader *reader, struct bow__text *why)
{
    bow__text_printf(why, "the body is not base64: \"");
    bow__text_escape(why, (struct bow_slice){reader->quad, sizeof(reader->quad)},
                     sizeof(reader->quad));
    bow__text_printf(why, "\" is none");
    return refuse(reader, -EPROTO, BOW_INVALID_ARGUMENT);
}

/* Decode the next quad, if it is whole. Returns 1, 0, or -EPROTO. */
static int take_quad(struct bow__web_reader *reader, struct bow_slice *bytes, struct bow__text *why)
{
    struct bow_slice taken = take(bytes, sizeof(reader->quad) - reader->n_quad);

    if (taken.len > 0) {
        memcpy(reader->quad + reader->n_quad, taken.data, taken.len);
        reader->n_quad = (uint8_t)(reader->n_quad + taken.len);
    }
    if (reader->n_quad < sizeof(reader->quad)) {
        return 0;
    }
    return decode_quad(reader) ? 1 : refuse_quad(reader, why);
}

/* Decode quads that are whole, to at most `max` bytes. Returns how many, or -EPROTO. */
static int take_quads(struct bow__web_reader *reader, struct bow_slice *bytes, uint8_t *out,
                      size_t max, struct bow__text *why)
{
    size_t n = 0;

    while (bytes->len >= sizeof(reader->quad) && n + sizeof(reader->decoded) <= max) {
        memcpy(reader->quad, take(bytes, sizeof(reader->quad)).data, sizeof(reader->quad));
        if (!decode_quad(reader)) {
            return refuse_quad(reader, why);
        }
        memcpy(out + n, reader->decoded, reader->n_decoded);
        n += reader->n_decoded;
        reader->n_decoded = 0;
    }
    return (int)n;
}

/* Of a body quads go in many at a time, as long as they are its alone. Returns as feed. */
static int feed_quads(struct bow__web_reader *reader, struct bow_slice *bytes,
                      struct bow__message *ret_message, struct bow__text *why)
{
    uint8_t decoded[QUADS_BYTES];
    size_t missing = reader->len - reader->n_bytes;

    int n = take_quads(reader, bytes, decoded,
                       missing < sizeof(decoded) ? missing : sizeof(decoded), why);
    if (n < 0) {
        return n;
    }
    struct bow_slice left = {decoded, (size_t)n};
    return feed_prefixed(reader, &left, ret_message, why);
}

static bool is_amid_body(const struct bow__web_reader *reader)
{
    return reader->n_quad == 0 && reader->n_decoded == 0 &&
           reader->n_prefix == sizeof(reader->prefix) &&
           reader->len - reader->n_bytes >= sizeof(reader->decoded);
}

/* The quad at the border of two messages is both's: what is the second's waits. */
static int feed_base64(struct bow__web_reader *reader, struct bow_slice *bytes,
                       struct bow__message *ret_message, struct bow__text *why)
{
    int rc = 0;

    while (rc == 0 && (bytes->len > 0 || reader->n_decoded > 0)) {
        if (is_amid_body(reader) && bytes->len >= sizeof(reader->quad)) {
            rc = feed_quads(reader, bytes, ret_message, why);
            continue;
        }
        if (reader->n_decoded == 0) {
            rc = take_quad(reader, bytes, why);
            if (rc <= 0) {
                return rc;
            }
        }
        struct bow_slice left = {reader->decoded, reader->n_decoded};
        rc = feed_prefixed(reader, &left, ret_message, why);
        memmove(reader->decoded, left.data, left.len);
        reader->n_decoded = (uint8_t)left.len;
    }
    return rc;
}

int bow__web_reader_feed(struct bow__web_reader *reader, struct bow_slice *bytes,
                         struct bow__message *ret_message, struct bow__text *why)
{
    if (bytes->len == 0 && reader->n_decoded == 0) {
        return 0;
    }
    switch (reader->framing) {
    case BOW__WEB_BARE:
        return feed_bare(reader, bytes, why);
    case BOW__WEB_PREFIXED:
        return feed_prefixed(reader, bytes, ret_message, why);
    case BOW__WEB_PREFIXED_BASE64:
        return feed_base64(reader, bytes, ret_message, why);
    }
    return 0;
}

int bow__web_reader_end(struct bow__web_reader *reader, struct bow__message *ret_message,
                        struct bow__text *why)
{
    if (reader->framing == BOW__WEB_BARE) {
        return emit(reader, (struct bow_slice){(const uint8_t *)"", 0}, ret_message);
    }
    if (reader->n_prefix == 0 && reader->n_quad == 0) {
        return 0;
    }
    bow__text_printf(why,
                     "the body ended inside a message: %u of its 5 prefix bytes, %zu of %u bytes "
                     "came",
                     reader->n_prefix, reader->n_bytes,
                     reader->n_prefix == sizeof(reader->prefix) ? reader->len : 0);
    return refuse(reader, -EPROTO, BOW_INVALID_ARGUMENT);
}
