/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TLS_CONTEXT_H
#define BOWLINE_TLS_CONTEXT_H

/*
 * What connections share, from inside:
 *
 *     files.c        certificates and keys from PEM files
 *     sessions.c     sessions that clients may take up again
 *     tickets.c      sessions that a server gives away, and takes up again
 *     setup.c        one reading of options and files into an SSL_CTX
 *     context.c      references, which setup new connections get
 *     name.c         another context, chosen by the name that a client asks for
 *     security.c     making contexts, reload, what servers and clients of calls see of one
 *
 * A setup never changes once it is made; a reload makes another one. Connections
 * hold the one they began with.
 *
 * Design
 *
 *     refs (both)      relaxed up, acq_rel down            each other
 *     mutex            guards `setup`, `copy`, the sessions
 *     used_by          as base/claim.h says: in a child process the mutex, and the locks
 *                      in OpenSSL's objects, may be held by a thread that is not there
 */

#include "base/list.h"
#include "base/text.h"

#include <bowline/security.h>
#include <bowline/slice.h>
#include <bowline/tls.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>

/** A certificate with what belongs to it. */
struct bow__tls_pair {
    X509 *leaf;
    EVP_PKEY *key;
    STACK_OF(X509) * chain;
};

struct bow__tls_setup {
    struct bow_context *context;
    atomic_uint refs;
    SSL_CTX *ssl_ctx;
    bool is_users; /* the SSL_CTX: its callbacks are not ours to set */
    bool trust_common_name;
    struct bow__tls_pair *more;
    size_t n_more;
    uint8_t *alpn; /* as on the wire: length, name, length, name … */
    size_t alpn_len;
    bow_tls_name_fn on_server_name;
    void *user;
};

struct bow_tls_context {
    struct bow_security security;
    struct bow_context *context;
    atomic_uint refs;
    enum bow_tls_side side;
    BIO_METHOD *bio_method;
    atomic_int used_by; /* the process that first took the mutex; 0: none has yet */
    pthread_mutex_t mutex;
    struct bow__tls_setup *setup;
    struct bow_tls_context_options *copy; /* of the options, in one piece with its texts */
    size_t copy_bytes;
    struct bow__link sessions; /* newest first */
    size_t n_sessions;
};

/* context.c */

/** The setup for a new connection, with a reference. Returns: 0; -ECHILD for a context
 * that the parent process has used. */
int bow__tls_context_setup(struct bow_tls_context *tls_context, struct bow__tls_setup **ret_setup);

/* setup.c */

/** Returns as bow_tls_context_new(), with `why` filled. */
int bow__tls_setup_new(struct bow_context *context, const struct bow_tls_context_options *options,
                       struct bow__tls_setup **ret_setup, struct bow__text *why);
struct bow__tls_setup *bow__tls_setup_ref(struct bow__tls_setup *setup);
/** NULL is allowed. */
void bow__tls_setup_unref(struct bow__tls_setup *setup);

/* files.c */

int bow__tls_pair_load(const struct bow_tls_certificate *files, struct bow__tls_pair *ret_pair,
                       struct bow__text *why);
void bow__tls_pair_fini(struct bow__tls_pair *pair);
/** Trust the certificates of `file`; a server also names them to its clients. */
int bow__tls_trust_load(SSL_CTX *ssl_ctx, const char *file, bool names_them, struct bow__text *why);

/* tickets.c */

/** Have a server's tickets end with the certificates they were given for, and hold only where its
 * rules for clients' certificates do, which are set. Returns: 0; -ENOMEM. */
int bow__tls_tickets_set(SSL_CTX *ssl_ctx);

/* sessions.c */

/** One for `tls` to take up, the caller's own; or NULL. Its end is in `tls->valid_until_s`. */
SSL_SESSION *bow__tls_sessions_get(struct bow_tls *tls);
/** OpenSSL's callback for a client's new session. */
int bow__tls_on_session(SSL *ssl, SSL_SESSION *session);
/** Forget all. The mutex is held, or nobody else has the context. */
void bow__tls_sessions_clear(struct bow_tls_context *tls_context);

#endif
