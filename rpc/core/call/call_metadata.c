/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a server's call sends beside its messages: metadata, and whether they are compressed. Knows
 * nothing of how it travels.
 */

#include "rpc/core/call/call_metadata.h"
#include "base/refuse.h"
#include "rpc/core/call/call_gone.h"
#include "rpc/core/call/call_stream.h"
#include "rpc/core/compression/compression.h"
#include "rpc/core/errors.h"
#include "rpc/core/header_limit.h"
#include "rpc/core/intercept.h"

#include <bowline/limits.h>
#include <errno.h>
#include <string.h>

static struct bow__call_metadata *get(struct bow_call *call)
{
    if (call->metadata == NULL) {
        call->metadata = bow__arena_alloc(&call->arena, sizeof(*call->metadata));
        if (call->metadata != NULL) {
            memset(call->metadata, 0, sizeof(*call->metadata));
        }
    }
    return call->metadata;
}

int bow__call_receive_metadata(struct bow_call *call, const struct bow_metadata *metadata)
{
    if (metadata->n == 0) {
        return 0;
    }
    struct bow__call_metadata *kept = get(call);
    return kept != NULL ? bow__metadata_copy(&call->arena, metadata, &kept->received) : -ENOMEM;
}

const struct bow_metadata *bow_call_metadata(const struct bow_call *call)
{
    static const struct bow_metadata none = BOW_METADATA_INIT;

    if (bow__call_is_gone(call)) {
        (void)bow__call_is_misused(call, "asked for its metadata");
        return &none;
    }
    return call->metadata != NULL ? &call->metadata->received : &none;
}

const struct bow_metadata *bow__call_trace(const struct bow_call *call)
{
    const struct bow_metadata *received = bow_call_metadata(call);

    return !bow__call_is_gone(call) && call->states != NULL && call->states->trace != NULL
               ? call->states->trace
               : received;
}

/* A stream whose handler has said that it does not compress may say otherwise later. */
static bool names_encoding(const struct bow_call *call)
{
    unsigned mode = bow__call_compresses(call);

    return mode >= BOW_COMPRESSION_AUTO ||
           (mode == BOW_COMPRESSION_OFF &&
            (call->method->flags & BOW_METHOD_SERVER_STREAMING) != 0);
}

int bow__call_respond_now(struct bow_call *call)
{
    struct bow__call_metadata *sent = call->metadata;
    struct bow_metadata initial = BOW_METADATA_INIT;
    bool has_initial = sent != NULL && sent->initial.n > 0;
    bool names = names_encoding(call);

    if (!names && !has_initial) {
        return 0;
    }
    if (has_initial) {
        initial = bow__metadata_of(&sent->initial);
    }
    enum bow__encoding encoding =
        names ? bow__compression_choose(call->session, call->key) : BOW__ENCODING_IDENTITY;
    int rc = call->session->ops->respond(call->session, call->key, &initial, encoding);
    call->responded = rc == 0;
    call->encoding = (uint8_t)(rc == 0 ? encoding : BOW__ENCODING_IDENTITY);
    return rc;
}

int bow__call_check_trailing(struct bow_call *call)
{
    struct bow_metadata trailing = bow__call_trailing(call);

    return trailing.n > 0 ? call->session->ops->check_trailing(call->session, &trailing) : 0;
}

void bow__call_describe_unsent(const struct bow_call *call, int rc, struct bow__text *text,
                               struct bow_status *ret_status)
{
    bow__text_clear(text);
    if (rc == -EMSGSIZE) {
        bow__text_printf(text, "the %s metadata of %s cannot be sent: ",
                         call->session->excess.is_trailing ? "trailing" : "initial",
                         call->method->path);
        bow__header_limit_unsent(text, call->session);
    } else if (rc == -EBADMSG) {
        bow__text_printf(text, "%s", call->session->failure.bytes);
    } else {
        bow__text_printf(text, "the server has no memory to send the reply of %s",
                         call->method->path);
    }
    *ret_status = (struct bow_status)BOW_STATUS_OK_INIT;
    ret_status->code = bow__code_from_errno(rc);
    ret_status->message = text->bytes;
}

static int refuse_late(const struct bow_call *call, const char *function)
{
    return bow__refuse(call->arena.context, -EALREADY,
                       "%s: the first message of the call of %s has been sent", function,
                       call->method->path);
}

static int refuse_unnamed(const struct bow_call *call)
{
    return bow__refuse(
        call->arena.context, -EALREADY,
        "bow_call_compress: the first message of the call of %s has been sent, and no "
        "encoding was named before it: say before it whether the call compresses",
        call->method->path);
}

/* The value may be a secret. */
static int refuse_entry(const struct bow_call *call, int rc, const char *function, const char *key)
{
    struct bow__text text;

    if (rc != -EINVAL && rc != -EMSGSIZE) {
        return rc;
    }
    bow__text_clear(&text);
    bow__text_escape(&text, (struct bow_slice){(const uint8_t *)key, strlen(key)}, 128);
    return bow__refuse(
        call->arena.context, rc, "%s: %s: \"%s\" %s", function, call->method->path, text.bytes,
        rc == -EINVAL ? "or its value is not as <bowline/metadata.h> wants it"
                      : "is too much: all of it is above BOW_LIMIT_HEADER_BYTES_MAX");
}

int bow_call_compress(struct bow_call *call, bool on)
{
    if (bow__call_is_gone(call)) {
        return bow__call_is_misused(call, "told to compress");
    }
    bool is_unasked = bow__call_compresses(call) == BOW_COMPRESSION_DEFAULT;
    if (is_unasked && call->stream != NULL &&
        atomic_load_explicit(&call->stream->began, memory_order_relaxed)) {
        return on ? refuse_unnamed(call) : 0;
    }
    atomic_store_explicit(&call->compresses, on ? BOW_COMPRESSION_ON : BOW_COMPRESSION_OFF,
                          memory_order_relaxed);
    return 0;
}

bool bow_call_request_was_compressed(const struct bow_call *call)
{
    if (bow__call_is_gone(call)) {
        return bow__call_is_misused(call, "asked whether its request was compressed") == 0;
    }
    return call->request_compressed;
}

int bow_call_add_initial(struct bow_call *call, const char *key, struct bow_slice value)
{
    if (bow__call_is_gone(call)) {
        return bow__call_is_misused(call, "given metadata");
    }
    if (call->stream != NULL && atomic_load_explicit(&call->stream->began, memory_order_relaxed)) {
        return refuse_late(call, "bow_call_add_initial");
    }
    struct bow__call_metadata *sent = get(call);
    int rc = sent != NULL ? bow__metadata_add(&sent->initial, &call->arena, key, value) : -ENOMEM;
    return refuse_entry(call, rc, "bow_call_add_initial", key);
}

int bow_call_add_trailing(struct bow_call *call, const char *key, struct bow_slice value)
{
    if (bow__call_is_gone(call)) {
        return bow__call_is_misused(call, "given metadata");
    }
    struct bow__call_metadata *sent = get(call);

    int rc = sent != NULL ? bow__metadata_add(&sent->trailing, &call->arena, key, value) : -ENOMEM;
    return refuse_entry(call, rc, "bow_call_add_trailing", key);
}

int bow__call_add_status(struct bow_call *call, const struct bow_metadata *metadata)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < metadata->n; i++) {
        rc = bow_call_add_trailing(call, metadata->entries[i].key, metadata->entries[i].value);
    }
    return rc;
}
