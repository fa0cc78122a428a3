/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_REGISTRY_H
#define BOWLINE_RPC_CORE_REGISTRY_H

/*
 * Which method answers to which path. Filled before a server starts, sealed by
 * its start, and read by all loops without locks from then on.
 *
 *     init ──► add* ──► seal ──► find* ──► fini
 */

#include "base/map.h"
#include "base/text.h"
#include <bowline/service.h>
#include <stdatomic.h>

struct bow_executor;
struct bow__registered_service;

/** Where handlers run instead of on the loop: what the methods that are bound to one executor
 * share. The server's. */
struct bow__handler_executor {
    struct bow_executor *executor; /* a reference */
    uint32_t max_waiting;
    atomic_uint n_waiting; /* relaxed: calls whose handler has not been entered */
    struct bow__handler_executor *next;
};

/** One method that can be called. */
struct bow__registered_method {
    const struct bow_method *method;
    const void *handlers; /* the server's copy of the user's struct */
    void *user;
    uint32_t index; /* in the order of adding: names its counters */
    bool is_bound;  /* `executor` was said, NULL for the loop */
    struct bow__handler_executor *executor;
    uint32_t max_calls; /* in progress; 0: no limit */
    bool is_exempt;     /* from the limit of all the server's calls; unary ones from that of bytes
                           in flight, too */
};

struct bow__registry {
    struct bow_context *context;
    struct bow__registered_service *services; /* newest first */
    struct bow__bytes_map methods;            /* path → struct bow__registered_method */
    uint32_t n_methods;
    struct bow__registered_method fallback; /* of paths that are not there; its method is NULL:
                                               none. Its index is n_methods, from seal on */
    bool sealed;
};

void bow__registry_init(struct bow__registry *registry, struct bow_context *context);
void bow__registry_fini(struct bow__registry *registry);

/**
 * Add a service; `handlers` is copied. Returns 0; -ENOMEM; -EBUSY once sealed; -EEXIST;
 * -EINVAL when tables, size and hash do not fit each other. `reason` says what.
 */
int bow__registry_add(struct bow__registry *registry, const struct bow_service *service,
                      const void *handlers, size_t handlers_size, uint64_t hash, void *user,
                      struct bow__text *reason);

/** Have one more method take what is called by a path that is not there. Returns 0; -EALREADY when
 * one does; -EBUSY once sealed. `reason` says what. */
int bow__registry_set_fallback(struct bow__registry *registry, const struct bow_method *method,
                               const void *handlers, void *user, struct bow__text *reason);

/** Bind the methods of `name`, a service, "service/method" or "*" for the fallback, to `executor`;
 * with NULL for a name all that have not been bound and have all of `flags` (0: whichever). Returns
 * how many those are. Before seal. */
uint32_t bow__registry_bind(struct bow__registry *registry, const char *name, uint32_t flags,
                            struct bow__handler_executor *executor);

/** A method that is declared to block and has not been bound; NULL: there is none. */
const struct bow_method *bow__registry_unbound_blocking(const struct bow__registry *registry);

/** Limit the calls in progress of each method of `name`, as bow__registry_bind() finds them; 0: no
 * limit. Returns how many those are. Before seal. */
uint32_t bow__registry_limit(struct bow__registry *registry, const char *name, uint32_t max_calls);

/** Exempt the methods of the service `name`, see `is_exempt`. Before seal. */
void bow__registry_exempt(struct bow__registry *registry, const char *name);

/** Call `fn` for each service, newest first, until it fails. Returns 0, or what it did. */
int bow__registry_each(const struct bow__registry *registry,
                       int (*fn)(const struct bow_service *service, void *user), void *user);

/** Make the paths findable and end adding; idempotent. Returns 0 or -ENOMEM. */
int bow__registry_seal(struct bow__registry *registry);

/** NULL: unknown. Thread: any, after seal. */
const struct bow__registered_method *bow__registry_find(const struct bow__registry *registry,
                                                        struct bow_slice path);

/** The fallback, if there is one and `path` is that of a method: "/service/method" in visible
 * ASCII, so that it can be a C string. NULL: neither. Thread: any, after seal. */
const struct bow__registered_method *bow__registry_fallback(const struct bow__registry *registry,
                                                            struct bow_slice path);

/** Whether `path` may be that of a method. Thread: any. */
bool bow__is_method_path(struct bow_slice path);

/** Whether the service of `path` is there, whatever its methods. Thread: any, after seal. */
bool bow__registry_has_service(const struct bow__registry *registry, struct bow_slice path);

/** The method with that index, or NULL. Thread: any, after seal. */
const struct bow__registered_method *bow__registry_at(const struct bow__registry *registry,
                                                      uint32_t index);

#endif
