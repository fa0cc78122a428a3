/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * JSON at the edge. Fields that a method's message has not are left out, as unknown ones are of
 * protobuf's bytes, so that a client may be newer than its server.
 */

#include "rpc/web/message_json.h"
#include "rpc/core/codec/decode.h"
#include "rpc/core/codec/encode.h"
#include "rpc/core/compression/compression.h"
#include <bowline/json.h>

#include <errno.h>
#include <string.h>

/* On the stack: most messages fit. */
#define SCRATCH_BYTES ((size_t)4 << 10)
#define REASON_BYTES 256

struct scratch {
    struct bow__arena arena;
    _Alignas(BOW__ARENA_ALIGNMENT) uint8_t slab[SCRATCH_BYTES];
};

static void scratch_init(struct scratch *scratch, struct bow_context *context, size_t max)
{
    bow__arena_init(&scratch->arena, context, scratch->slab, sizeof(scratch->slab), max);
}

static struct bow_json_options options_of(const struct bow__web *web)
{
    struct bow_json_options options = BOW_JSON_OPTIONS_INIT;

    options.files = web->files;
    options.n_files = web->n_files;
    options.ignore_unknown = true;
    return options;
}

/* To protobuf */

static int read_json(struct bow__web_call *call, struct bow_slice text, struct scratch *scratch,
                     ProtobufCMessage **ret_message, struct bow__text *why)
{
    struct bow_json_options options = options_of(call->web);
    char reason[REASON_BYTES] = "";

    int rc =
        bow_json_read(call->method->input, text, &options, bow__arena_as_public(&scratch->arena),
                      ret_message, reason, sizeof(reason));
    if (rc < 0) {
        bow__text_printf(why, "%s", reason[0] != '\0' ? reason : "there is no memory for it");
    }
    return rc;
}

static int encode(struct bow__web_call *call, const ProtobufCMessage *decoded,
                  struct bow__block **ret_block, size_t *ret_len, struct bow__text *why)
{
    size_t size = bow__encoded_size(decoded);
    size_t cap = size > 0 && size != SIZE_MAX ? size : 1;

    struct bow__block *block = bow__block_new_to_fill(call->context, cap);
    if (block == NULL) {
        bow__text_printf(why, "there is no memory for it");
        return -ENOMEM;
    }
    ssize_t n = bow__encode_sized(decoded, block->data, cap, why);
    if (n < 0) {
        bow__block_unref(block);
        return -EBADMSG;
    }
    *ret_block = block;
    *ret_len = (size_t)n;
    return 0;
}

static int transcode(struct bow__web_call *call, struct bow__message *message,
                     struct bow__text *why)
{
    struct scratch scratch;
    ProtobufCMessage *decoded = NULL;
    struct bow__block *block = NULL;
    size_t len = 0;

    scratch_init(&scratch, call->context, bow__decode_cap(message->bytes.len));
    int rc = read_json(call, message->bytes, &scratch, &decoded, why);
    rc = rc == 0 ? encode(call, decoded, &block, &len, why) : rc;
    message->n_made += scratch.arena.used + len;
    bow__arena_fini(&scratch.arena);
    if (rc == 0) {
        bow__block_unref(message->block);
        message->block = block;
        message->bytes = (struct bow_slice){block->data, len};
    }
    return rc;
}

int bow__message_from_json(struct bow__web_call *call, struct bow__message *message,
                           struct bow__text *why)
{
    int rc = bow__compression_inflate(call->web->compression, message, why);

    return rc == 0 ? transcode(call, message, why) : rc;
}

/* From protobuf */

static int write_json(struct bow__web_call *call, const ProtobufCMessage *decoded,
                      struct scratch *scratch, struct bow_slice *ret_text, struct bow__text *why)
{
    struct bow_json_options options = options_of(call->web);
    char reason[REASON_BYTES] = "";

    int rc = bow_json_write(decoded, &options, bow__arena_as_public(&scratch->arena), ret_text,
                            reason, sizeof(reason));
    if (rc == -EINVAL) {
        bow__text_printf(why, "%s", reason);
        return -EBADMSG;
    }
    return rc;
}

static int copy(struct bow__web_call *call, struct bow_slice text, struct bow__block **ret_block,
                size_t *ret_len)
{
    struct bow__block *block = bow__block_new_to_fill(call->context, text.len);

    if (block == NULL) {
        return -ENOMEM;
    }
    memcpy(block->data, text.data, text.len);
    *ret_block = block;
    *ret_len = text.len;
    return 0;
}

/* What does not get smaller goes as it is. */
static int pack(struct bow__web_call *call, struct bow_slice text, bool *compressed,
                struct bow__block **ret_block, size_t *ret_len)
{
    struct bow__compression *compression = call->web->compression;

    if (*compressed && bow__deflate(&compression->coders, call->out_encoding, compression->level,
                                    text, ret_block, ret_len) == 0) {
        return 0;
    }
    *compressed = false;
    return copy(call, text, ret_block, ret_len);
}

/* It was made here, so its size is bounded by what made it. */
static int write_message(struct bow__web_call *call, struct bow_slice bytes, bool *compressed,
                         struct bow__block **ret_block, size_t *ret_len, struct bow__text *why)
{
    struct scratch scratch;
    ProtobufCMessage *decoded = NULL;
    struct bow_slice text = {NULL, 0};

    scratch_init(&scratch, call->context, SIZE_MAX);
    int rc = bow__decode(call->method->output, bytes, NULL, &scratch.arena, &decoded, why);
    rc = rc == 0 ? write_json(call, decoded, &scratch, &text, why) : rc;
    rc = rc == 0 ? pack(call, text, compressed, ret_block, ret_len) : rc;
    bow__arena_fini(&scratch.arena);
    return rc;
}

int bow__message_to_json(struct bow__web_call *call, struct bow_slice bytes, bool *compressed,
                         struct bow__block **ret_block, size_t *ret_len, struct bow__text *why)
{
    struct bow__message message = {
        .bytes = bytes, .compressed = *compressed, .encoding = call->out_encoding};

    int rc = bow__compression_inflate(call->web->compression, &message, why);
    if (rc == 0) {
        rc = write_message(call, message.bytes, compressed, ret_block, ret_len, why);
    }
    bow__block_unref(message.block);
    return rc;
}
