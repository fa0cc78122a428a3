/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_CALL_CLIENT_METHODS_H
#define BOWLINE_RPC_CLIENT_CALL_CLIENT_METHODS_H

/*
 * Which methods were called on one loop, and what is counted of each. A client has no registry:
 * what it calls is known when it is called.
 *
 * Design. Found and added on the loop. Readers on any thread walk the list from its newest on:
 * `newest` is stored with release once what it points to is complete, and loaded with acquire;
 * nothing leaves the list before all of it does.
 */

#include "base/map.h"
#include "rpc/metrics/method_counts.h"
#include <bowline/service.h>

#define BOW__CLIENT_METHODS_CACHED 32u

struct bow__client_method {
    struct bow__client_method *next; /* older; constant from when it is shown */
    struct bow__method_counts counts;
    size_t n_path;
    char path[]; /* a copy: methods may go with what they were loaded from */
};

struct bow__client_methods {
    struct bow_context *context;
    _Atomic(struct bow__client_method *) newest;
    uint32_t n;
    struct bow__bytes_map by_path;
    struct {
        const struct bow_method *method; /* its address is compared, then its path */
        struct bow__client_method *found;
    } cache[BOW__CLIENT_METHODS_CACHED];
    struct bow__method_counts others; /* above BOW_LIMIT_CLIENT_METHODS, and without memory */
};

/** Zeroed memory. */
void bow__client_methods_init(struct bow__client_methods *methods, struct bow_context *context);
void bow__client_methods_fini(struct bow__client_methods *methods);

/** Where calls of `method` are counted. Loop. */
struct bow__method_counts *bow__client_methods_find(struct bow__client_methods *methods,
                                                    const struct bow_method *method);
/** The same if there were calls of `path`, else the others'; "*" names these. Thread: any. */
struct bow__method_counts *bow__client_methods_look(struct bow__client_methods *methods,
                                                    const char *path);

#endif
