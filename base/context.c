/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The life of a context: from options to the last reference. Of the system table it knows only
 * that it exists.
 */

#include "base/context.h"
#include "base/alloc.h"
#include "base/log.h"
#include "base/options.h"
#include "base/slot.h"
#include "base/text.h"

#include <bowline/system.h>
#include <errno.h>

#ifdef NDEBUG
#define HAS_ASSERTIONS false
#else
#define HAS_ASSERTIONS true
#endif
#ifdef __OPTIMIZE__
#define IS_OPTIMIZED true
#else
#define IS_OPTIMIZED false
#endif

static bool allocator_is_whole(const struct bow_allocator *allocator)
{
    return allocator->alloc != NULL && allocator->resize != NULL && allocator->free != NULL;
}

/* There is no context to do it yet. */
static int refuse(const struct bow_context_options *options, const char *why)
{
    struct bow__text line;

    if (options->log != NULL) {
        bow__text_clear(&line);
        bow__text_printf(&line, "refused: bow_context_new: %s", why);
        options->log(BOW_LOG_ERROR, line.bytes, options->log_user);
    }
    return -EINVAL;
}

int bow_context_new(const struct bow_context_options *given, struct bow_context **ret_context)
{
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;
    int rc = given != NULL ? bow__options_read(&options, sizeof(options), given) : 0;
    if (rc < 0) {
        return rc;
    }
    /* Makes the context itself, which is no large block: what large ones need lies in it. */
    const struct bow_allocator small = bow__large_allocator(NULL);
    const struct bow_allocator *allocator = options.allocator != NULL ? options.allocator : &small;
    const struct bow_system *system =
        options.system != NULL ? options.system : bow_system_default();
    if (!allocator_is_whole(allocator) || system->size != sizeof(*system)) {
        return refuse(&options, allocator_is_whole(allocator)
                                    ? "options.system has a size that this library does not know"
                                    : "options.allocator lacks a function");
    }

    struct bow_context *context = allocator->alloc(allocator->user, sizeof(*context));
    if (context == NULL) {
        return -ENOMEM;
    }
    *context = (struct bow_context){
        .max_bytes = options.max_bytes,
        .allocator = *allocator,
        .system = system,
        .log = options.log,
        .log_user = options.log_user,
        .log_level = options.log_level,
        .aborts_on_misuse = HAS_ASSERTIONS,
        .quarantines = HAS_ASSERTIONS && !IS_OPTIMIZED,
    };
    bow__process_init(&context->process);
    bow__large_init(&context->large);
    atomic_init(&context->refs, 1);
    bow__trim_init(&context->trim, options.allocator == NULL && !options.keep_freed);
    atomic_init(&context->n_bytes, 0);
    atomic_init(&context->refusals_ns, 0);
    atomic_init(&context->n_mapped, 0);
    if (options.allocator == NULL) {
        context->allocator = bow__large_allocator(&context->large);
    }
    *ret_context = context;
    return 0;
}

struct bow_context *bow_context_ref(struct bow_context *context)
{
    /* relaxed: who takes a reference already holds one */
    atomic_fetch_add_explicit(&context->refs, 1, memory_order_relaxed);
    return context;
}

struct bow_context *bow_context_unref(struct bow_context *context)
{
    if (context == NULL) {
        return NULL;
    }
    /* acq_rel, its own partner: the last holder sees what the others did before they let go */
    if (atomic_fetch_sub_explicit(&context->refs, 1, memory_order_acq_rel) != 1) {
        return NULL;
    }
    bow__context_end_slots(context);
    size_t n_left = bow_context_bytes(context);
    if (n_left != 0) {
        bow__log(context, BOW_LOG_ERROR, "context: last reference dropped, %zu bytes still in use",
                 n_left);
    }
    bow__large_fini(&context->large);
    bow__process_fini(&context->process);
    struct bow_allocator allocator = context->allocator;
    allocator.free(allocator.user, context, sizeof(*context));
    return NULL;
}

size_t bow_context_bytes(const struct bow_context *context)
{
    return atomic_load_explicit(&context->n_bytes, memory_order_relaxed);
}

size_t bow_context_max_bytes(const struct bow_context *context)
{
    return context->max_bytes;
}

const struct bow_system *bow__context_system(const struct bow_context *context)
{
    return context->system;
}

const struct bow__process *bow__context_process(const struct bow_context *context)
{
    return &context->process;
}
