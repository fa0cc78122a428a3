/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Sessions that clients may take up again: the newest one for each key, as many keys as a
 * limit says, the ones used longest ago go first. Knows of connections only which OpenSSL tells of.
 *
 * Kept as bytes: an SSL_SESSION belongs to the loop of its connection, which goes on reading it,
 * and connections on other loops take it up. So no thread has one of another's, and the context
 * counts the memory.
 */

#include "base/alloc.h"
#include "tls/connection.h"
#include "tls/context_lock.h"

#include <bowline/limits.h>
#include <openssl/err.h>
#include <string.h>

struct session {
    struct bow__link link;
    int64_t valid_until_s;
    size_t key_len;
    size_t n_bytes;
    uint8_t bytes[]; /* the key, then the session as DER */
};

static struct session *session_of(struct bow__link *link)
{
    return BOW__CONTAINER(link, struct session, link);
}

static void forget(struct bow_tls_context *tls_context, struct session *entry)
{
    bow__list_remove(&entry->link);
    tls_context->n_sessions--;
    bow__free(tls_context->context, entry, sizeof(*entry) + entry->key_len + entry->n_bytes);
}

static struct session *find(struct bow_tls_context *tls_context, struct bow_slice key)
{
    struct bow__link *link = tls_context->sessions.next;

    for (; link != &tls_context->sessions; link = link->next) {
        struct session *entry = session_of(link);
        if (entry->key_len == key.len && memcmp(entry->bytes, key.data, key.len) == 0) {
            return entry;
        }
    }
    return NULL;
}

/* NULL without memory, or for one that cannot be kept: the next handshake is whole. */
static struct session *encode(struct bow_context *context, struct bow_slice key,
                              SSL_SESSION *session)
{
    int n = i2d_SSL_SESSION(session, NULL);

    if (n <= 0) {
        ERR_clear_error();
        return NULL;
    }
    struct session *entry = bow__alloc(context, sizeof(*entry) + key.len + (size_t)n);
    if (entry == NULL) {
        return NULL;
    }
    entry->key_len = key.len;
    entry->n_bytes = (size_t)n;
    bow__list_init(&entry->link);
    memcpy(entry->bytes, key.data, key.len);
    uint8_t *to = entry->bytes + key.len;
    (void)i2d_SSL_SESSION(session, &to);
    return entry;
}

static SSL_SESSION *decode(const struct session *entry)
{
    const uint8_t *from = entry->bytes + entry->key_len;
    SSL_SESSION *session = d2i_SSL_SESSION(NULL, &from, (long)entry->n_bytes);

    if (session == NULL) {
        ERR_clear_error(); /* out of memory */
    }
    return session;
}

/* The caller holds the mutex. */
static void put(struct bow_tls *tls, SSL_SESSION *session, int64_t until_s)
{
    struct bow_tls_context *tls_context = tls->tls_context;
    struct session *old = find(tls_context, bow__tls_key(tls));

    if (old == NULL && tls_context->n_sessions == BOW_LIMIT_TLS_SESSIONS) {
        old = session_of(tls_context->sessions.prev);
    }
    if (old != NULL) {
        forget(tls_context, old);
    }
    struct session *entry = encode(tls_context->context, bow__tls_key(tls), session);
    if (entry != NULL) {
        entry->valid_until_s = until_s;
        bow__list_push_front(&tls_context->sessions, &entry->link);
        tls_context->n_sessions++;
    }
}

/* The caller holds the mutex. NULL when there is none, or a certificate it was made with has ended:
 * the handshake is whole then, and says so. */
static struct session *find_valid(struct bow_tls *tls)
{
    struct session *entry = find(tls->tls_context, bow__tls_key(tls));

    if (entry != NULL && bow__tls_valid_for(tls->ssl, entry->valid_until_s) == 0) {
        forget(tls->tls_context, entry);
        return NULL;
    }
    return entry;
}

SSL_SESSION *bow__tls_sessions_get(struct bow_tls *tls)
{
    struct bow_tls_context *tls_context = tls->tls_context;
    SSL_SESSION *session = NULL;

    if (bow__tls_context_lock(tls_context) < 0) {
        return NULL;
    }
    struct session *entry = tls_context->setup == tls->setup ? find_valid(tls) : NULL;
    if (entry != NULL) {
        session = decode(entry);
        tls->valid_until_s = entry->valid_until_s;
        /* RFC 8446 appendix C.4: a ticket is used once, or observers can link connections. */
        if (session == NULL || SSL_SESSION_get_protocol_version(session) >= TLS1_3_VERSION) {
            forget(tls_context, entry);
        }
    }
    bow__tls_context_unlock(tls_context);
    return session;
}

int bow__tls_on_session(SSL *ssl, SSL_SESSION *session)
{
    struct bow_tls *tls = SSL_get_app_data(ssl);
    struct bow_tls_context *tls_context = tls->tls_context;

    if (tls->key_len == 1) {
        return 0;
    }
    /* A resumed connection's certificates are those of the first. */
    int64_t until_s = SSL_session_reused(ssl) == 1 ? tls->valid_until_s : bow__tls_valid_until(ssl);
    if (bow__tls_context_lock(tls_context) < 0) {
        return 0;
    }
    /* A session skips the verification: one made under an older setup must not. */
    if (tls_context->setup == tls->setup) {
        put(tls, session, until_s);
    }
    bow__tls_context_unlock(tls_context);
    return 0; /* the reference is OpenSSL's still */
}

void bow__tls_sessions_clear(struct bow_tls_context *tls_context)
{
    while (tls_context->n_sessions > 0) {
        forget(tls_context, session_of(tls_context->sessions.next));
    }
}
