/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Results of calls: their memory, moving and ending them.
 */

#include "rpc/client/call/result.h"
#include "base/alloc.h"
#include "base/block.h"
#include "rpc/core/errors.h"
#include "rpc/core/metadata.h"
#include <bowline/limits.h>

#include <string.h>

struct bow_result_memory *bow__result_memory_new(struct bow_context *context)
{
    struct bow_result_memory *memory = bow__alloc(context, BOW__RESULT_BYTES);

    if (memory == NULL) {
        return NULL;
    }
    memory->context = bow_context_ref(context);
    memory->reply_compressed = false;
    bow__arena_init(&memory->arena, context, memory->slab, BOW__RESULT_BYTES - sizeof(*memory),
                    BOW_LIMIT_CALL_ARENA_BYTES);
    return memory;
}

void bow__result_memory_free(struct bow_result_memory *memory)
{
    if (memory == NULL) {
        return;
    }
    struct bow_context *context = memory->context;
    bow__arena_fini(&memory->arena);
    bow__free(context, memory, BOW__RESULT_BYTES);
    bow_context_unref(context);
}

struct bow_status bow__result_keep_status(struct bow_result_memory *memory,
                                          const struct bow_status *status)
{
    struct bow_status kept = *status;

    /* Empty ones too are the session's, and gone when it returns. */
    kept.message = "";
    kept.details = (struct bow_slice){NULL, 0};
    kept.metadata = (struct bow_metadata)BOW_METADATA_INIT;
    if (memory == NULL) {
        return kept;
    }
    if (*status->message != '\0') {
        size_t len =
            bow__utf8_cut(status->message, strlen(status->message), BOW_LIMIT_STATUS_MESSAGE_BYTES);
        const char *message = bow__arena_dup(&memory->arena, status->message, len);
        kept.message = message != NULL ? message : "";
    }
    if (status->details.len > 0) {
        const char *details =
            bow__arena_dup(&memory->arena, status->details.data, status->details.len);
        if (details != NULL) {
            kept.details = (struct bow_slice){(const uint8_t *)details, status->details.len};
        }
    }
    (void)bow__metadata_copy(&memory->arena, &status->metadata, &kept.metadata);
    return kept;
}

void bow__result_fail(struct bow_context *context, int rc, const char *message, bool begun,
                      struct bow_result *ret_result)
{
    struct bow_status status = BOW_STATUS_OK_INIT;

    status.code = bow__code_from_errno(rc);
    status.message = message;
    status.not_processed = !begun;
    ret_result->memory = bow__result_memory_new(context);
    ret_result->status = bow__result_keep_status(ret_result->memory, &status);
    ret_result->reply = NULL;
}

bool bow_result_reply_was_compressed(const struct bow_result *result)
{
    return result->reply != NULL && result->memory != NULL && result->memory->reply_compressed;
}

struct bow_arena *bow_result_arena(struct bow_result *result)
{
    return result->memory != NULL ? bow__arena_as_public(&result->memory->arena) : NULL;
}

void bow_result_fini(struct bow_result *result)
{
    struct bow_result empty = BOW_RESULT_INIT;

    bow__result_memory_free(result->memory);
    *result = empty;
}

void bow_result_move(struct bow_result *to, struct bow_result *from)
{
    struct bow_result empty = BOW_RESULT_INIT;

    *to = *from;
    *from = empty;
}
