/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which limits of the server and of a method a new call meets (max_server_calls,
 * bow_server_limit_calls()), and what one that meets them is told. How calls are counted over
 * several loops is in quota.c. The limit of a connection, max_calls, is its session's:
 * rpc/native/requests.c, rpc/http2/nghttp2_receive.c; waiting for it: dispatch_enter.c.
 */

#include "rpc/server/dispatch/admission.h"
#include "base/alloc.h"
#include "base/ceiling.h"
#include "base/count.h"
#include "rpc/core/errors.h"

#include <errno.h>

/* The limits */

static size_t bytes_of(uint32_t n)
{
    return sizeof(struct bow__quotas) + n * sizeof(struct bow__quota);
}

static bool is_any_limited(const struct bow__registry *registry)
{
    if (registry->fallback.max_calls > 0) {
        return true;
    }
    for (uint32_t i = 0; i < registry->n_methods; i++) {
        const struct bow__registered_method *entry = bow__registry_at(registry, i);
        if (entry->max_calls > 0) {
            return true;
        }
    }
    return false;
}

int bow__quotas_new(struct bow_context *context, const struct bow__registry *registry,
                    uint32_t max_server_calls, uint32_t n_loops, struct bow__quotas **ret_quotas)
{
    uint32_t n = 1 + registry->n_methods + 1;

    if (max_server_calls == 0 && !is_any_limited(registry)) {
        *ret_quotas = NULL;
        return 0;
    }
    struct bow__quotas *quotas = bow__alloc_zero(context, bytes_of(n));
    if (quotas == NULL) {
        return -ENOMEM;
    }
    quotas->context = bow_context_ref(context);
    quotas->n = n;
    atomic_init(&quotas->refs, 1);
    bow__quota_init(&quotas->quota[0], max_server_calls, n_loops);
    for (uint32_t i = 0; i < registry->n_methods; i++) {
        const struct bow__registered_method *entry = bow__registry_at(registry, i);
        bow__quota_init(&quotas->quota[1 + i], entry->max_calls, n_loops);
        quotas->quota[1 + i].is_exempt = entry->is_exempt;
    }
    bow__quota_init(&quotas->quota[n - 1], registry->fallback.max_calls, n_loops);
    *ret_quotas = quotas;
    return 0;
}

void bow__quotas_unref(struct bow__quotas *quotas)
{
    if (quotas == NULL || atomic_fetch_sub_explicit(&quotas->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    struct bow_context *context = quotas->context;
    bow__free(context, quotas, bytes_of(quotas->n));
    bow_context_unref(context);
}

/* A loop's side */

int bow__admission_init(struct bow__admission *admission, struct bow_context *context,
                        struct bow__quotas *quotas, uint64_t retry_after_ns)
{
    *admission = (struct bow__admission){
        .context = context,
        .retry_after_ns = retry_after_ns,
        .has_limits = quotas != NULL || bow_context_max_bytes(context) > 0,
    };
    bow__admission_watch(admission, false);
    if (quotas == NULL) {
        return 0;
    }
    admission->locals = bow__alloc_array(context, quotas->n, sizeof(*admission->locals));
    if (admission->locals == NULL) {
        return -ENOMEM;
    }
    admission->quotas = quotas;
    atomic_fetch_add_explicit(&quotas->refs, 1, memory_order_relaxed);
    return 0;
}

void bow__admission_watch(struct bow__admission *admission, bool is_short)
{
    admission->is_on = admission->has_limits || is_short;
}

void bow__admission_fini(struct bow__admission *admission)
{
    struct bow__quotas *quotas = admission->quotas;

    if (quotas != NULL) {
        bow__free(admission->context, admission->locals, quotas->n * sizeof(*admission->locals));
        bow__quotas_unref(quotas);
        admission->quotas = NULL;
    }
}

static bool acquire(struct bow__admission *admission, uint32_t i)
{
    struct bow__quota *quota = &admission->quotas->quota[i];

    return quota->max == 0 || bow__quota_acquire(quota, &admission->locals[i]);
}

static void release(struct bow__admission *admission, uint32_t i, bool off_loop)
{
    struct bow__quota *quota = &admission->quotas->quota[i];

    if (quota->max == 0) {
        return;
    }
    if (off_loop) {
        bow__quota_release_remote(quota);
    } else {
        bow__quota_release(quota, &admission->locals[i]);
    }
}

/* Refusing */

static void refuse(const struct bow__admission *admission, struct bow__text *text,
                   struct bow_status *ret_status)
{
    bow__text_printf(text, "; try again in ");
    bow__text_duration(text, admission->retry_after_ns);
    ret_status->code = BOW_RESOURCE_EXHAUSTED;
    ret_status->message = text->bytes;
    ret_status->not_processed = true;
    ret_status->retry_after_ns = admission->retry_after_ns;
}

static bool is_short_of_memory(const struct bow__admission *admission, struct bow__text *text)
{
    if (!bow__is_near_ceiling(admission->context)) {
        return false;
    }
    bow__text_printf(text, "the server has no memory for new calls: ");
    bow__describe_ceiling(admission->context, text);
    return true;
}

static bool is_crowded(const struct bow__in_flight_share *share, struct bow__text *text)
{
    if (!bow__in_flight_refuses_call(share)) {
        return false;
    }
    bow__in_flight_describe(share->in_flight, text);
    return true;
}

/* Its call holds nothing, as one that watches does. */
static bool is_probe(const struct bow__registered_method *entry)
{
    return entry->is_exempt && (entry->method->flags & BOW_METHOD_SERVER_STREAMING) == 0;
}

/* Of the server's calls. */
static bool is_counted(const struct bow__admission *admission, uint32_t index)
{
    return !admission->quotas->quota[1 + index].is_exempt;
}

static bool is_server_full(struct bow__admission *admission, uint32_t index, struct bow__text *text)
{
    if (admission->quotas == NULL || !is_counted(admission, index) || acquire(admission, 0)) {
        return false;
    }
    bow__text_printf(text,
                     "the server is overloaded: as many calls are in progress as its "
                     "max_server_calls (%u) allows",
                     admission->quotas->quota[0].max);
    return true;
}

static bool is_method_full(struct bow__admission *admission, uint32_t index, struct bow__text *text)
{
    if (admission->quotas == NULL || acquire(admission, 1 + index)) {
        return false;
    }
    if (is_counted(admission, index)) {
        release(admission, 0, false);
    }
    bow__text_printf(text,
                     "the method is overloaded: as many of its calls are in progress as "
                     "bow_server_limit_calls() (%u) allows",
                     admission->quotas->quota[1 + index].max);
    return true;
}

const char *bow__admission_admit(struct bow__admission *admission,
                                 const struct bow__registered_method *entry,
                                 const struct bow__in_flight_share *share,
                                 struct bow_metrics *metrics,
                                 _Atomic(uint64_t) refused[BOW_N_REFUSALS], struct bow__text *text,
                                 struct bow_status *ret_status)
{
    enum bow_refusal refusal;

    bow__text_clear(text);
    bow__text_printf(text, "%s: ", entry->method->path);
    if (is_short_of_memory(admission, text)) {
        metrics->calls_refused_memory++;
        refusal = BOW_REFUSED_MEMORY;
    } else if (!is_probe(entry) && is_crowded(share, text)) {
        metrics->calls_refused_bytes++;
        refusal = BOW_REFUSED_BYTES;
    } else if (is_server_full(admission, entry->index, text)) {
        metrics->calls_refused_server++;
        refusal = BOW_REFUSED_SERVER;
    } else if (is_method_full(admission, entry->index, text)) {
        metrics->calls_refused_method++;
        refusal = BOW_REFUSED_METHOD;
    } else {
        return NULL;
    }
    bow__count(&refused[refusal], 1);
    refuse(admission, text, ret_status);
    return bow_refusal_name(refusal);
}

void bow__admission_leave(struct bow__admission *admission, uint32_t index, bool off_loop)
{
    if (admission->quotas != NULL) {
        if (is_counted(admission, index)) {
            release(admission, 0, off_loop);
        }
        release(admission, 1 + index, off_loop);
    }
}
