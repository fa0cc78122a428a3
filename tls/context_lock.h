/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TLS_CONTEXT_LOCK_H
#define BOWLINE_TLS_CONTEXT_LOCK_H

/* The mutex of a context, which belongs to the process that first took it. */

#include "base/alloc.h"
#include "base/claim.h"
#include "tls/context.h"

#include <errno.h>

/** What is said where taking it fails. */
#define BOW__TLS_FOREIGN                                                                           \
    "the TLS context was used before fork(), by the parent process: make another one in the child"

/** Take the mutex. Returns: 0; -ECHILD for a context that the parent process has used. */
static inline int bow__tls_context_lock(struct bow_tls_context *tls_context)
{
    if (!bow__claim(bow__context_process(tls_context->context), &tls_context->used_by)) {
        return -ECHILD;
    }
    pthread_mutex_lock(&tls_context->mutex);
    return 0;
}

static inline void bow__tls_context_unlock(struct bow_tls_context *tls_context)
{
    pthread_mutex_unlock(&tls_context->mutex);
}

#endif
