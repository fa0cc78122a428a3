/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Services and their methods by path. Knows nothing of calls or connections.
 */

#include "rpc/core/registry.h"
#include "base/alloc.h"
#include <bowline/generic.h>
#include <bowline/system.h>

#include <errno.h>
#include <string.h>

struct bow__registered_service {
    struct bow__registered_service *next;
    const struct bow_service *service;
    void *handlers;
    size_t n_handlers; /* bytes */
    struct bow__registered_method *methods;
};

void bow__registry_init(struct bow__registry *registry, struct bow_context *context)
{
    const struct bow_system *system = bow__context_system(context);
    uint64_t seed = 0;

    /* Without random bytes peers could aim for collisions, but only in a table of fixed size. */
    (void)system->random(system->user, &seed, sizeof(seed));
    *registry = (struct bow__registry){.context = context};
    bow__bytes_map_init(&registry->methods, context, seed);
}

static void free_service(struct bow_context *context, struct bow__registered_service *added)
{
    bow__free(context, added->methods, added->service->n_methods * sizeof(*added->methods));
    bow__free(context, added->handlers, added->n_handlers);
    bow__free(context, added, sizeof(*added));
}

void bow__registry_fini(struct bow__registry *registry)
{
    if (registry->context == NULL) {
        return;
    }
    bow__bytes_map_fini(&registry->methods);
    while (registry->services != NULL) {
        struct bow__registered_service *added = registry->services;
        registry->services = added->next;
        free_service(registry->context, added);
    }
}

static int check(const struct bow__registry *registry, const struct bow_service *service,
                 size_t handlers_size, uint64_t hash, struct bow__text *reason)
{
    if (registry->sealed) {
        bow__text_printf(reason, "adding service %s: the server has been started", service->name);
        return -EBUSY;
    }
    if (service->abi != BOW_SERVICE_ABI) {
        bow__text_printf(reason, "adding service %s: its tables are of version %u, not %u",
                         service->name, service->abi, BOW_SERVICE_ABI);
        return -EINVAL;
    }
    if (service->n_methods > 0 && service->methods[0].invoke == NULL) {
        bow__text_printf(reason,
                         "adding service %s: it was generated for clients only "
                         "(--bowline_opt=client)",
                         service->name);
        return -EINVAL;
    }
    if (service->handlers_size != handlers_size || service->hash != hash) {
        bow__text_printf(reason,
                         "adding service %s: the generated header and source are not from the same "
                         ".proto; generate and compile both again",
                         service->name);
        return -EINVAL;
    }
    for (const struct bow__registered_service *s = registry->services; s != NULL; s = s->next) {
        if (strcmp(s->service->name, service->name) == 0) {
            bow__text_printf(reason, "adding service %s: it has been added before", service->name);
            return -EEXIST;
        }
    }
    return 0;
}

/* Zero-sized parts are NULL: a service may be without methods. */
static int copy_service(struct bow_context *context, const struct bow_service *service,
                        const void *handlers, size_t handlers_size,
                        struct bow__registered_service **ret_added)
{
    struct bow__registered_service *added = bow__alloc_zero(context, sizeof(*added));

    if (added == NULL) {
        return -ENOMEM;
    }
    added->service = service;
    if (service->n_methods > 0) {
        added->methods = bow__alloc_array(context, service->n_methods, sizeof(*added->methods));
    }
    if (handlers_size > 0) {
        added->handlers = bow__alloc(context, handlers_size);
        added->n_handlers = handlers_size;
    }
    if ((service->n_methods > 0 && added->methods == NULL) ||
        (handlers_size > 0 && added->handlers == NULL)) {
        free_service(context, added);
        return -ENOMEM;
    }
    if (handlers_size > 0) {
        memcpy(added->handlers, handlers, handlers_size);
    }
    *ret_added = added;
    return 0;
}

int bow__registry_add(struct bow__registry *registry, const struct bow_service *service,
                      const void *handlers, size_t handlers_size, uint64_t hash, void *user,
                      struct bow__text *reason)
{
    struct bow__registered_service *added = NULL;

    int rc = check(registry, service, handlers_size, hash, reason);
    if (rc < 0) {
        return rc;
    }
    rc = copy_service(registry->context, service, handlers, handlers_size, &added);
    if (rc < 0) {
        bow__text_printf(reason, "adding service %s: out of memory", service->name);
        return rc;
    }
    for (uint32_t i = 0; i < service->n_methods; i++) {
        added->methods[i] = (struct bow__registered_method){
            .method = &service->methods[i],
            .handlers = added->handlers,
            .user = user,
            .index = registry->n_methods + i,
        };
    }
    registry->n_methods += service->n_methods;
    added->next = registry->services;
    registry->services = added;
    return 0;
}

int bow__registry_set_fallback(struct bow__registry *registry, const struct bow_method *method,
                               const void *handlers, void *user, struct bow__text *reason)
{
    if (registry->sealed) {
        bow__text_printf(reason, "setting a fallback: the server has been started");
        return -EBUSY;
    }
    if (registry->fallback.method != NULL) {
        bow__text_printf(reason, "setting a fallback: the server has one");
        return -EALREADY;
    }
    registry->fallback = (struct bow__registered_method){
        .method = method,
        .handlers = handlers,
        .user = user,
    };
    return 0;
}

/* Paths are "/service/method". */
static bool is_named(const struct bow__registered_service *added,
                     const struct bow__registered_method *entry, const char *name)
{
    return strcmp(added->service->name, name) == 0 || strcmp(entry->method->path + 1, name) == 0;
}

static bool is_meant(const struct bow__registered_service *added,
                     const struct bow__registered_method *entry, const char *name, uint32_t flags)
{
    if (name != NULL) {
        return is_named(added, entry, name);
    }
    return !entry->is_bound && (entry->method->flags & flags) == flags;
}

/* As is_meant() of the others. */
static bool is_fallback_meant(const struct bow__registry *registry, const char *name,
                              uint32_t flags)
{
    const struct bow__registered_method *fallback = &registry->fallback;

    if (fallback->method == NULL) {
        return false;
    }
    return name != NULL ? strcmp(name, BOW_FALLBACK_NAME) == 0 : !fallback->is_bound && flags == 0;
}

uint32_t bow__registry_bind(struct bow__registry *registry, const char *name, uint32_t flags,
                            struct bow__handler_executor *executor)
{
    uint32_t n = 0;

    if (is_fallback_meant(registry, name, flags)) {
        registry->fallback.executor = executor;
        registry->fallback.is_bound = true;
        n++;
    }
    for (struct bow__registered_service *s = registry->services; s != NULL; s = s->next) {
        for (uint32_t i = 0; i < s->service->n_methods; i++) {
            struct bow__registered_method *entry = &s->methods[i];
            if (!is_meant(s, entry, name, flags)) {
                continue;
            }
            entry->executor = executor;
            entry->is_bound = true;
            n++;
        }
    }
    return n;
}

const struct bow_method *bow__registry_unbound_blocking(const struct bow__registry *registry)
{
    for (const struct bow__registered_service *s = registry->services; s != NULL; s = s->next) {
        for (uint32_t i = 0; i < s->service->n_methods; i++) {
            if (is_meant(s, &s->methods[i], NULL, BOW_METHOD_BLOCKING)) {
                return s->methods[i].method;
            }
        }
    }
    return NULL;
}

uint32_t bow__registry_limit(struct bow__registry *registry, const char *name, uint32_t max_calls)
{
    uint32_t n = 0;

    if (is_fallback_meant(registry, name, 0)) {
        registry->fallback.max_calls = max_calls;
        n++;
    }
    for (struct bow__registered_service *s = registry->services; s != NULL; s = s->next) {
        for (uint32_t i = 0; i < s->service->n_methods; i++) {
            if (is_named(s, &s->methods[i], name)) {
                s->methods[i].max_calls = max_calls;
                n++;
            }
        }
    }
    return n;
}

void bow__registry_exempt(struct bow__registry *registry, const char *name)
{
    for (struct bow__registered_service *s = registry->services; s != NULL; s = s->next) {
        for (uint32_t i = 0; i < s->service->n_methods; i++) {
            s->methods[i].is_exempt |= is_named(s, &s->methods[i], name);
        }
    }
}

int bow__registry_each(const struct bow__registry *registry,
                       int (*fn)(const struct bow_service *service, void *user), void *user)
{
    int rc = 0;

    for (const struct bow__registered_service *s = registry->services; s != NULL && rc == 0;
         s = s->next) {
        rc = fn(s->service, user);
    }
    return rc;
}

static struct bow_slice path_of(const struct bow_method *method)
{
    return (struct bow_slice){(const uint8_t *)method->path, strlen(method->path)};
}

int bow__registry_seal(struct bow__registry *registry)
{
    for (struct bow__registered_service *s = registry->services; s != NULL; s = s->next) {
        for (uint32_t i = 0; i < s->service->n_methods; i++) {
            struct bow_slice path = path_of(s->methods[i].method);
            if (bow__bytes_map_get(&registry->methods, path) != NULL) {
                continue;
            }
            int rc = bow__bytes_map_put(&registry->methods, path, &s->methods[i]);
            if (rc < 0) {
                return rc;
            }
        }
    }
    registry->fallback.index = registry->n_methods;
    registry->sealed = true;
    return 0;
}

const struct bow__registered_method *bow__registry_find(const struct bow__registry *registry,
                                                        struct bow_slice path)
{
    return bow__bytes_map_get(&registry->methods, path);
}

bool bow__is_method_path(struct bow_slice path)
{
    const uint8_t *method = path.len > 1 ? memchr(path.data + 1, '/', path.len - 1) : NULL;

    if (method == NULL || path.data[0] != '/' || method == path.data + 1 ||
        method + 1 == path.data + path.len) {
        return false;
    }
    for (size_t i = 0; i < path.len; i++) {
        if (path.data[i] <= ' ' || path.data[i] >= 0x7f) {
            return false;
        }
    }
    return true;
}

const struct bow__registered_method *bow__registry_fallback(const struct bow__registry *registry,
                                                            struct bow_slice path)
{
    return registry->fallback.method != NULL && bow__is_method_path(path) ? &registry->fallback
                                                                          : NULL;
}

bool bow__registry_has_service(const struct bow__registry *registry, struct bow_slice path)
{
    for (const struct bow__registered_service *s = registry->services; s != NULL; s = s->next) {
        size_t n = strlen(s->service->name);
        if (path.len > n + 1 && path.data[n + 1] == '/' &&
            memcmp(path.data + 1, s->service->name, n) == 0) {
            return true;
        }
    }
    return false;
}

const struct bow__registered_method *bow__registry_at(const struct bow__registry *registry,
                                                      uint32_t index)
{
    for (const struct bow__registered_service *s = registry->services; s != NULL; s = s->next) {
        uint32_t n = s->service->n_methods;
        if (n > 0 && index >= s->methods[0].index && index - s->methods[0].index < n) {
            return &s->methods[index - s->methods[0].index];
        }
    }
    return NULL;
}
