/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BEARER_H
#define BOWLINE_BEARER_H

/*
 * Calls with a bearer token (RFC 6750) in their metadata, "authorization: Bearer TOKEN", as
 * two interceptors: one that a server checks tokens with, and one that a client sends its own
 * with. A call without a token that is accepted ends with UNAUTHENTICATED, and its handler
 * does not run; what it says never contains a token.
 *
 *     bow_bearer_new ──► bow_bearer_check(&interceptor) ──► bow_server_intercept()
 *           │        └─► bow_bearer_send(&interceptor)  ──► options of a client
 *           └─► reload, from any thread; unref when it is registered
 *
 * A file of tokens has one to a line, as TOKEN or as SUBJECT:TOKEN, which says whose it is; blank
 * lines and those that begin with '#' are skipped. A server compares a token with all of them,
 * each in a time that does not tell how much of it is right; a handler asks bow_bearer_subject()
 * who calls. A client sends the first.
 *
 * A token is a secret that whoever reads it can use: a client sends it over a secured
 * connection only, unless options.plaintext says otherwise.
 */

#include <bowline/interceptor.h>
#include <bowline/transport_error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_bearer;
struct bow_call;
struct bow_context;

/** Bytes of a token at most, with a NUL. */
#define BOW_BEARER_TOKEN_BYTES ((size_t)4 << 10)

/** Bytes of a subject at most, with a NUL: UTF-8 without control characters. */
#define BOW_BEARER_SUBJECT_BYTES ((size_t)256)

/** Bytes of a file of tokens at most. */
#define BOW_BEARER_FILE_BYTES ((size_t)64 << 10)

/** Where tokens come from: a file, or a callback. Begin with BOW_BEARER_OPTIONS_INIT. */
struct bow_bearer_options {
    size_t size;                 /* sizeof this struct, set by the INIT */
    struct bow_context *context; /* shared; not NULL */
    const char *file;            /* of tokens; copied; NULL: there is a callback */
    /** Server: whether `token` (borrowed, not terminated) is accepted; bow_bearer_set_subject()
     * says whose it is. What takes time to find out is for an interceptor of your own that holds
     * the call. Thread: the call's loop. */
    bool (*check)(struct bow_interception *at, struct bow_slice token, void *user);
    /** Client: write the call's token with a NUL to `token`. Returns 0, or a negative errno that
     * ends the call. Thread: the call's loop. */
    int (*get)(struct bow_interception *at, char *token, size_t size, void *user);
    void *user;     /* kept */
    bool plaintext; /* client: send it over a connection that is not secured too */
    struct bow_transport_error *error; /* NULL, or filled on failure; borrowed */
    const char *open; /* server: what needs no token, "pkg.Service" or "pkg.Service/Method", several
                         separated by commas, as "grpc.health.v1.Health" for probes; copied; NULL:
                         nothing */
};

#define BOW_BEARER_OPTIONS_INIT BOW__INIT(struct bow_bearer_options, )

/**
 * Make one, and read its file.
 *
 * Thread:  any
 * Owns:    gives `*ret_bearer`; drop it with bow_bearer_unref()
 * Returns: 0; -EINVAL (options: their size, no context, neither file nor callback, or both; an
 *          empty name in `open`); as bow_bearer_reload()
 */
BOW_EXPORT BOW_MUST_USE int bow_bearer_new(const struct bow_bearer_options *options,
                                           struct bow_bearer **ret_bearer);

/**
 * Read the file again; calls that begin from now on go by it. On failure the tokens stay what they
 * were. Blocks while the file is read.
 *
 * Thread:  any
 * Returns: 0, and so without a file; what opening or reading it fails with; -EFBIG above
 *          BOW_BEARER_FILE_BYTES; -EBADMSG for a line that is no token; -ENODATA when there is
 *          none; -ECHILD after fork(), when it was used by the parent process. `*error` (may be
 *          NULL) then says which file and line.
 */
BOW_EXPORT BOW_MUST_USE int bow_bearer_reload(struct bow_bearer *bearer,
                                              struct bow_transport_error *error);

/**
 * Make the interceptor that checks the tokens of a server's calls. It is for one registration, and
 * has a reference of its own: whoever does not register it after all calls its release. A server
 * has one of them.
 *
 * Thread:  any
 */
BOW_EXPORT void bow_bearer_check(struct bow_bearer *bearer, struct bow_interceptor *ret_check);

/**
 * In the callback `check` of a bearer: the token is `subject`'s. Copied; the last one counts.
 *
 * Thread:  the call's loop
 * Returns: 0; -ENOMEM; -EINVAL for what is no subject, or when `at` is not a bearer's
 */
BOW_EXPORT BOW_MUST_USE int bow_bearer_set_subject(struct bow_interception *at,
                                                   const char *subject);

/**
 * Whose token `call` came with. Lives as long as the call.
 *
 * Thread:  any that holds the call
 * Returns: NULL when nobody has said, or the server checks no tokens
 */
BOW_EXPORT const char *bow_bearer_subject(const struct bow_call *call);

/** Make the interceptor that sends the token with a client's calls; thread and ownership as
 * bow_bearer_check(). */
BOW_EXPORT void bow_bearer_send(struct bow_bearer *bearer, struct bow_interceptor *ret_send);

/** Take one more reference. Thread: any. Returns: `bearer`. */
BOW_EXPORT struct bow_bearer *bow_bearer_ref(struct bow_bearer *bearer);
/** Drop a reference; NULL is allowed. Thread: any. */
BOW_EXPORT void bow_bearer_unref(struct bow_bearer *bearer);

#ifdef __cplusplus
}
#endif
#endif
