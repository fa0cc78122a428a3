/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_METADATA_INTERCEPTOR_H
#define BOWLINE_METADATA_INTERCEPTOR_H

/*
 * One key and value of metadata that go along with all calls of a client: a tenant, an API key, the
 * token of a server that takes it under a key of its own ("token" of etcd). The value may be set
 * anew while calls are made, as tokens expire.
 *
 *     bow_metadata_interceptor_new ──► bow_metadata_interceptor_send(&interceptor)
 *           │                                    └──► options of a client
 *           └─► set, from any thread; unref when it is registered
 *
 * A call whose own metadata has the key is left as it is. Tokens of "authorization: Bearer" are for
 * <bowline/bearer.h>, which knows where they come from.
 *
 * A value may be a secret: it goes over a secured connection only, unless options.plaintext says
 * otherwise.
 */

#include <bowline/interceptor.h>
#include <bowline/transport_error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_context;
struct bow_metadata_interceptor;

/** What one is made with; begin with BOW_METADATA_INTERCEPTOR_OPTIONS_INIT. */
struct bow_metadata_interceptor_options {
    size_t size;                       /* sizeof this struct, set by the INIT */
    struct bow_context *context;       /* shared; not NULL */
    const char *key;                   /* as <bowline/metadata.h> has keys; copied */
    struct bow_slice value;            /* copied; with data NULL nothing is sent until one is set */
    bool plaintext;                    /* send it over a connection that is not secured too */
    struct bow_transport_error *error; /* NULL, or filled on failure; borrowed */
};

#define BOW_METADATA_INTERCEPTOR_OPTIONS_INIT BOW__INIT(struct bow_metadata_interceptor_options, )

/**
 * Make one.
 *
 * Thread:  any
 * Owns:    gives `*ret_interceptor`; drop it with bow_metadata_interceptor_unref()
 * Returns: 0; -ENOMEM; -EINVAL (options: their size, no context, a key or value that
 *          <bowline/metadata.h> does not allow); -EMSGSIZE for more than
 *          BOW_LIMIT_HEADER_BYTES_MAX. `*options->error` then says which
 */
BOW_EXPORT BOW_MUST_USE int
bow_metadata_interceptor_new(const struct bow_metadata_interceptor_options *options,
                             struct bow_metadata_interceptor **ret_interceptor);

/**
 * Send `value` with the calls that begin from now on; with data NULL, none. On failure it stays
 * what it was.
 *
 * Thread:  any
 * Owns:    copies `value`
 * Returns: 0; -ENOMEM; -EINVAL for a value that <bowline/metadata.h> does not allow; -EMSGSIZE as
 *          above; -ECHILD after fork(), when it was used by the parent process
 */
BOW_EXPORT BOW_MUST_USE int
bow_metadata_interceptor_set(struct bow_metadata_interceptor *interceptor, struct bow_slice value);

/**
 * Make the interceptor that sends it with a client's calls. It is for one registration, and has a
 * reference of its own: whoever does not register it after all calls its release.
 *
 * Thread:  any
 */
BOW_EXPORT void bow_metadata_interceptor_send(struct bow_metadata_interceptor *interceptor,
                                              struct bow_interceptor *ret_send);

/** Take one more reference. Thread: any. Returns: `interceptor`. */
BOW_EXPORT struct bow_metadata_interceptor *
bow_metadata_interceptor_ref(struct bow_metadata_interceptor *interceptor);
/** Drop a reference; NULL is allowed. Thread: any. */
BOW_EXPORT void bow_metadata_interceptor_unref(struct bow_metadata_interceptor *interceptor);

#ifdef __cplusplus
}
#endif
#endif
