/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Methods that a client calls, by their path: an address may come to name another method, when a
 * program unloads what it had it from.
 */

#include "rpc/client/call/client_methods.h"
#include "base/alloc.h"
#include "rpc/core/call/generic.h"

#include <bowline/limits.h>
#include <string.h>

/* What is called is the program's own choice: nobody aims at this table. */
#define SEED UINT64_C(0x9E3779B97F4A7C15)

void bow__client_methods_init(struct bow__client_methods *methods, struct bow_context *context)
{
    methods->context = context;
    bow__bytes_map_init(&methods->by_path, context, SEED);
}

static size_t bytes_of(const struct bow__client_method *found)
{
    return sizeof(*found) + found->n_path + 1;
}

void bow__client_methods_fini(struct bow__client_methods *methods)
{
    struct bow__client_method *at = atomic_load_explicit(&methods->newest, memory_order_relaxed);

    while (at != NULL) {
        struct bow__client_method *next = at->next;
        bow__method_counts_fini(&at->counts, methods->context);
        bow__free(methods->context, at, bytes_of(at));
        at = next;
    }
    atomic_store_explicit(&methods->newest, NULL, memory_order_relaxed);
    bow__method_counts_fini(&methods->others, methods->context);
    bow__bytes_map_fini(&methods->by_path);
}

static struct bow_slice path_of(const struct bow__client_method *found)
{
    return (struct bow_slice){(const uint8_t *)found->path, found->n_path};
}

static struct bow__client_method *add(struct bow__client_methods *methods, const char *path)
{
    size_t n_path = strlen(path);

    if (methods->n >= BOW_LIMIT_CLIENT_METHODS) {
        return NULL;
    }
    struct bow__client_method *added =
        bow__alloc_zero(methods->context, sizeof(*added) + n_path + 1);
    if (added == NULL) {
        return NULL;
    }
    added->n_path = n_path;
    memcpy(added->path, path, n_path + 1);
    if (bow__bytes_map_put(&methods->by_path, path_of(added), added) < 0) {
        bow__free(methods->context, added, bytes_of(added));
        return NULL;
    }
    added->next = atomic_load_explicit(&methods->newest, memory_order_relaxed);
    atomic_store_explicit(&methods->newest, added, memory_order_release);
    methods->n++;
    return added;
}

struct bow__method_counts *bow__client_methods_find(struct bow__client_methods *methods,
                                                    const struct bow_method *method)
{
    size_t slot = ((uintptr_t)method / sizeof(*method)) % BOW__CLIENT_METHODS_CACHED;
    struct bow__client_method *found = methods->cache[slot].found;

    if (methods->cache[slot].method == method && strcmp(found->path, method->path) == 0) {
        return &found->counts;
    }
    if (bow__method_is_generic(method)) {
        return &methods->others;
    }
    found = bow__bytes_map_get(
        &methods->by_path, (struct bow_slice){(const uint8_t *)method->path, strlen(method->path)});
    found = found != NULL ? found : add(methods, method->path);
    if (found == NULL) {
        return &methods->others;
    }
    methods->cache[slot].method = method;
    methods->cache[slot].found = found;
    return &found->counts;
}

struct bow__method_counts *bow__client_methods_look(struct bow__client_methods *methods,
                                                    const char *path)
{
    struct bow__client_method *at = atomic_load_explicit(&methods->newest, memory_order_acquire);

    while (at != NULL && strcmp(at->path, path) != 0) {
        at = at->next;
    }
    return at != NULL ? &at->counts : &methods->others;
}
