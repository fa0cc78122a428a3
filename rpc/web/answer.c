/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How calls of Connect and gRPC-Web are answered. A unary reply of Connect waits for its status,
 * which is in the head before it.
 */

#include "rpc/web/answer.h"
#include "base/base64.h"
#include "rpc/core/compression/encodings.h"
#include "rpc/web/codes.h"
#include "rpc/web/content_type.h"
#include "rpc/web/end_text.h"
#include "rpc/web/message_json.h"
#include "rpc/web/page.h"

#include <errno.h>
#include <string.h>

#define PREFIX_BYTES ((size_t)5)
#define COMPRESSED 0x01u
#define CONNECT_END 0x02u
#define GRPC_WEB_TRAILERS 0x80u

void bow__web_output_fini(struct bow__web_output *output)
{
    output->block = bow__block_unref(output->block);
    output->tail = bow__block_unref(output->tail);
}

static void put_prefix(uint8_t *at, unsigned flags, size_t len)
{
    at[0] = (uint8_t)flags;
    at[1] = (uint8_t)(len >> 24);
    at[2] = (uint8_t)(len >> 16);
    at[3] = (uint8_t)(len >> 8);
    at[4] = (uint8_t)len;
}

/* Heads */

static void add_constant(struct bow__web_call *call, const char *name, const char *value)
{
    bow__web_fields_add(&call->fields, &call->arena, name, bow__web_text(value));
}

/* Whatever a page's own call brings it may read. */
static void expose(struct bow__web_call *call)
{
    if (call->origin.len > 0) {
        add_constant(call, "access-control-expose-headers", "*");
    }
}

static int give_head(struct bow__web_call *call, const char *http_status,
                     struct bow__web_output *output)
{
    if (bow__arena_has_failed(&call->arena)) {
        return -ENOMEM;
    }
    output->http_status = http_status;
    output->fields = call->fields.items;
    output->n_fields = call->fields.n;
    call->is_begun = true;
    return 0;
}

static void add_encodings(struct bow__web_call *call)
{
    bool is_connect = call->kind == BOW__WEB_CONNECT_STREAM;

    if (call->out_encoding != BOW__ENCODING_IDENTITY) {
        add_constant(call, is_connect ? "connect-content-encoding" : "grpc-encoding",
                     bow__encoding_name(call->out_encoding));
    }
}

/* Of an answer in several parts, if it has not been given. */
static int begin_stream(struct bow__web_call *call, struct bow__web_output *output)
{
    if (call->is_begun) {
        return 0;
    }
    add_constant(call, "content-type", bow__web_content_type(call->kind, call->is_json));
    add_encodings(call);
    expose(call);
    return give_head(call, "200", output);
}

int bow__web_respond(struct bow__web_call *call, const struct bow_metadata *metadata,
                     enum bow__encoding encoding, struct bow__web_output *ret_output)
{
    *ret_output = (struct bow__web_output){.http_status = NULL};
    call->out_encoding = encoding;
    bow__web_fields_add_metadata(&call->fields, &call->arena, "", metadata);
    if (bow__arena_has_failed(&call->arena)) {
        return -ENOMEM;
    }
    return metadata->n > 0 && call->kind != BOW__WEB_CONNECT_UNARY ? begin_stream(call, ret_output)
                                                                   : 0;
}

/* Bodies */

static struct bow__block *copy_text(struct bow__web_call *call, struct bow_slice text)
{
    struct bow__block *block = bow__block_new_to_fill(call->context, text.len > 0 ? text.len : 1);

    if (block != NULL && text.len > 0) {
        memcpy(block->data, text.data, text.len);
    }
    return block;
}

/* Prefix and bytes as base64. */
static struct bow__block *to_base64(struct bow__web_call *call, unsigned flags,
                                    struct bow_slice bytes, size_t *ret_len)
{
    size_t len = (PREFIX_BYTES + bytes.len + 2) / 3 * 4;
    uint8_t head[6] = {0};
    size_t n_first = bytes.len > 0 ? 1 : 0; /* so that the head is whole quads */

    struct bow__block *block = bow__block_new_to_fill(call->context, len);
    if (block == NULL) {
        return NULL;
    }
    put_prefix(head, flags, bytes.len);
    if (n_first > 0) {
        head[PREFIX_BYTES] = bytes.data[0];
    }
    char *text = (char *)block->data;
    size_t at = bow__base64_encode_padded((struct bow_slice){head, PREFIX_BYTES + n_first}, text);
    if (bytes.len > n_first) {
        at += bow__base64_encode_padded(
            (struct bow_slice){bytes.data + n_first, bytes.len - n_first}, text + at);
    }
    *ret_len = at;
    return block;
}

/* The last part of a stream's answer. */
static int add_tail(struct bow__web_call *call, const struct bow_status *status,
                    struct bow__web_output *output)
{
    bool is_connect = call->kind == BOW__WEB_CONNECT_STREAM;
    unsigned flags = is_connect ? CONNECT_END : GRPC_WEB_TRAILERS;
    struct bow_slice text = is_connect ? bow__connect_end_text(&call->arena, status)
                                       : bow__grpc_web_trailers_text(&call->arena, status);

    if (bow__arena_has_failed(&call->arena) || text.data == NULL) {
        return -ENOMEM;
    }
    output->is_last = true;
    if (call->kind == BOW__WEB_GRPC_TEXT) {
        output->tail = to_base64(call, flags, text, &output->n_tail);
        return output->tail != NULL ? 0 : -ENOMEM;
    }
    output->tail = bow__block_new_to_fill(call->context, PREFIX_BYTES + text.len);
    if (output->tail == NULL) {
        return -ENOMEM;
    }
    put_prefix(output->tail->data, flags, text.len);
    memcpy(output->tail->data + PREFIX_BYTES, text.data, text.len);
    output->n_tail = PREFIX_BYTES + text.len;
    return 0;
}

/* Unary calls of Connect */

static int end_unary_well(struct bow__web_call *call, const struct bow_metadata *trailing,
                          struct bow__web_output *output)
{
    add_constant(call, "content-type", bow__web_content_type(call->kind, call->is_json));
    if (call->is_held_compressed) {
        add_constant(call, "content-encoding", bow__encoding_name(call->out_encoding));
    }
    bow__web_fields_add_metadata(&call->fields, &call->arena, "trailer-", trailing);
    expose(call);
    int rc = give_head(call, "200", output);
    if (rc < 0) {
        return rc;
    }
    output->block = call->held;
    output->offset = call->held_offset;
    output->len = call->n_held;
    output->is_last = true;
    call->held = NULL;
    return 0;
}

static int end_unary_badly(struct bow__web_call *call, const struct bow_status *status,
                           struct bow__web_output *output)
{
    struct bow_slice text = bow__connect_error_text(&call->arena, status);

    add_constant(call, "content-type", "application/json");
    bow__web_fields_add_metadata(&call->fields, &call->arena, "trailer-", &status->metadata);
    expose(call);
    if (text.data == NULL) {
        return -ENOMEM;
    }
    output->block = copy_text(call, text);
    if (output->block == NULL) {
        return -ENOMEM;
    }
    output->len = text.len;
    output->is_last = true;
    return give_head(call, bow__connect_http_status(status->code), output);
}

/* Messages */

/* In another form than it was given: as JSON. Takes `*block` for it. Returns 0; -EBADMSG with
 * `why`; -ENOMEM. */
static int turn_to_json(struct bow__web_call *call, struct bow__block **block, size_t *offset,
                        size_t *len, bool *compressed, struct bow__text *why)
{
    struct bow_slice bytes = {*len > 0 ? (*block)->data + *offset : (const uint8_t *)"", *len};
    struct bow__block *turned = NULL;

    int rc = bow__message_to_json(call, bytes, compressed, &turned, len, why);
    if (rc < 0) {
        return rc;
    }
    bow__block_unref(*block);
    *block = turned;
    *offset = 0;
    return 0;
}

static int put_message(struct bow__web_call *call, struct bow__block *block, size_t offset,
                       size_t len, bool compressed, struct bow__web_output *output)
{
    unsigned flags = compressed ? COMPRESSED : 0;

    int rc = begin_stream(call, output);
    if (rc < 0) {
        return rc;
    }
    if (call->kind == BOW__WEB_GRPC_TEXT) {
        struct bow_slice bytes = {block->data + offset, len};
        output->block = to_base64(call, flags, bytes, &output->len);
        if (output->block == NULL) {
            return -ENOMEM;
        }
        bow__block_unref(block);
        return 0;
    }
    put_prefix(output->prefix, flags, len);
    output->n_prefix = PREFIX_BYTES;
    output->block = block;
    output->offset = offset;
    output->len = len;
    return 0;
}

static void hold(struct bow__web_call *call, struct bow__block *block, size_t offset, size_t len,
                 bool compressed)
{
    bow__block_unref(call->held);
    call->held = block;
    call->held_offset = offset;
    call->n_held = len;
    call->is_held_compressed = compressed;
}

/* Its form is as it travels. Takes the block if it succeeds. */
static int send_turned(struct bow__web_call *call, uint32_t flags, struct bow__block *block,
                       size_t offset, size_t len, struct bow__web_output *output)
{
    static const struct bow_status ok = BOW_STATUS_OK_INIT;
    bool compressed = (flags & BOW__SEND_COMPRESSED) != 0;
    bool is_last = (flags & BOW__SEND_END) != 0;

    if (call->kind == BOW__WEB_CONNECT_UNARY) {
        hold(call, block, offset, len, compressed);
        int rc = is_last ? end_unary_well(call, &ok.metadata, output) : 0;
        call->held = rc < 0 ? NULL : call->held;
        return rc;
    }
    if (is_last && add_tail(call, &ok, output) < 0) {
        return -ENOMEM;
    }
    return put_message(call, block, offset, len, compressed, output);
}

static int send_message(struct bow__web_call *call, uint32_t flags, struct bow__block *block,
                        size_t offset, size_t len, struct bow__web_output *output,
                        struct bow__text *why)
{
    bool compressed = (flags & BOW__SEND_COMPRESSED) != 0;
    struct bow__block *turned = bow__block_ref(block);
    struct bow__text reason;

    bow__text_clear(&reason);
    int rc = turn_to_json(call, &turned, &offset, &len, &compressed, &reason);
    if (rc == 0) {
        flags = (flags & ~(uint32_t)BOW__SEND_COMPRESSED) |
                (compressed ? (uint32_t)BOW__SEND_COMPRESSED : 0);
        rc = send_turned(call, flags, turned, offset, len, output);
    } else if (rc == -EBADMSG) {
        bow__text_clear(why);
        bow__text_printf(why, "the reply of %s cannot be JSON: %s", call->method->path,
                         reason.bytes);
    }
    if (rc < 0) {
        bow__block_unref(turned);
        return rc;
    }
    bow__block_unref(block);
    return 0;
}

int bow__web_send(struct bow__web_call *call, uint32_t flags, struct bow__block *block,
                  size_t offset, size_t len, struct bow__web_output *ret_output,
                  struct bow__text *why)
{
    *ret_output = (struct bow__web_output){.http_status = NULL};
    int rc = call->is_json ? send_message(call, flags, block, offset, len, ret_output, why)
                           : send_turned(call, flags, block, offset, len, ret_output);
    if (rc < 0) {
        bow__web_output_fini(ret_output);
        return rc;
    }
    call->is_ended = ret_output->is_last;
    return 0;
}

int bow__web_end(struct bow__web_call *call, const struct bow_status *status,
                 struct bow__web_output *ret_output)
{
    int rc = 0;

    *ret_output = (struct bow__web_output){.http_status = NULL};
    if (call->kind == BOW__WEB_CONNECT_UNARY) {
        rc = status->code == BOW_OK ? end_unary_well(call, &status->metadata, ret_output)
                                    : end_unary_badly(call, status, ret_output);
    } else {
        rc = begin_stream(call, ret_output);
        rc = rc == 0 ? add_tail(call, status, ret_output) : rc;
    }
    if (rc < 0) {
        bow__web_output_fini(ret_output);
        return rc;
    }
    call->is_ended = true;
    return 0;
}

int bow__web_refuse(struct bow__web_call *call, struct bow__web_output *ret_output)
{
    if (call->kind != BOW__WEB_NONE) {
        return bow__web_end(call,
                            &(struct bow_status){.code = call->code, .message = call->reason.bytes},
                            ret_output);
    }
    *ret_output = (struct bow__web_output){.is_last = true};
    call->is_ended = true;
    if (call->is_page) {
        ret_output->block = bow__block_ref(call->web->page->block);
        ret_output->len = call->web->page->n_bytes;
    }
    return give_head(call, call->http_status, ret_output);
}
