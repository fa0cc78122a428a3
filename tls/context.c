/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A context: its references, and which setup new connections get. Knows nothing of what is in a
 * setup.
 */

#include "tls/context.h"
#include "base/alloc.h"
#include "tls/context_lock.h"

static void free_context(struct bow_tls_context *tls_context)
{
    struct bow_context *context = tls_context->context;

    bow__tls_sessions_clear(tls_context);
    bow__tls_setup_unref(tls_context->setup);
    BIO_meth_free(tls_context->bio_method);
    bow__free(context, tls_context->copy, tls_context->copy_bytes);
    pthread_mutex_destroy(&tls_context->mutex);
    bow__free(context, tls_context, sizeof(*tls_context));
    bow_context_unref(context);
}

struct bow_tls_context *bow_tls_context_ref(struct bow_tls_context *tls_context)
{
    /* relaxed: who takes a reference already holds one */
    atomic_fetch_add_explicit(&tls_context->refs, 1, memory_order_relaxed);
    return tls_context;
}

struct bow_tls_context *bow_tls_context_unref(struct bow_tls_context *tls_context)
{
    /* acq_rel, its own partner: the last holder sees what the others did */
    if (tls_context != NULL &&
        atomic_fetch_sub_explicit(&tls_context->refs, 1, memory_order_acq_rel) == 1) {
        free_context(tls_context);
    }
    return NULL;
}

int bow__tls_context_setup(struct bow_tls_context *tls_context, struct bow__tls_setup **ret_setup)
{
    int rc = bow__tls_context_lock(tls_context);
    if (rc < 0) {
        return rc;
    }
    *ret_setup = bow__tls_setup_ref(tls_context->setup);
    bow__tls_context_unlock(tls_context);
    return 0;
}
