/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Sessions that clients may take up again: the newest one for each key, as many keys as a
 * limit says, the ones used longest ago go first. Knows nothing of connections.
 */

#include "base/alloc.h"
#include "tls/context.h"

#include <bowline/limits.h>
#include <string.h>

struct session {
    struct bow__link link;
    SSL_SESSION *session;
    size_t key_len;
    char key[];
};

static struct session *session_of(struct bow__link *link)
{
    return BOW__CONTAINER(link, struct session, link);
}

static void forget(struct bow_tls_context *tls_context, struct session *entry)
{
    bow__list_remove(&entry->link);
    tls_context->n_sessions--;
    SSL_SESSION_free(entry->session);
    bow__free(tls_context->context, entry, sizeof(*entry) + entry->key_len);
}

static struct session *find(struct bow_tls_context *tls_context, struct bow_slice key)
{
    struct bow__link *link = tls_context->sessions.next;

    for (; link != &tls_context->sessions; link = link->next) {
        struct session *entry = session_of(link);
        if (entry->key_len == key.len && memcmp(entry->key, key.data, key.len) == 0) {
            return entry;
        }
    }
    return NULL;
}

/* The caller holds the mutex. Without memory the session is not kept: the next handshake is whole.
 */
static void put(struct bow_tls_context *tls_context, struct bow_slice key, SSL_SESSION *session)
{
    struct session *old = find(tls_context, key);

    if (old == NULL && tls_context->n_sessions == BOW_LIMIT_TLS_SESSIONS) {
        old = session_of(tls_context->sessions.prev);
    }
    if (old != NULL) {
        forget(tls_context, old);
    }
    struct session *entry = bow__alloc(tls_context->context, sizeof(*entry) + key.len);
    if (entry == NULL) {
        return;
    }
    SSL_SESSION_up_ref(session);
    entry->session = session;
    entry->key_len = key.len;
    memcpy(entry->key, key.data, key.len);
    bow__list_init(&entry->link);
    bow__list_push_front(&tls_context->sessions, &entry->link);
    tls_context->n_sessions++;
}

void bow__tls_sessions_put(struct bow_tls_context *tls_context, const struct bow__tls_setup *setup,
                           struct bow_slice key, SSL_SESSION *session)
{
    pthread_mutex_lock(&tls_context->mutex);
    /* A session skips the verification: one made under an older setup must not. */
    if (tls_context->setup == setup) {
        put(tls_context, key, session);
    }
    pthread_mutex_unlock(&tls_context->mutex);
}

SSL_SESSION *bow__tls_sessions_get(struct bow_tls_context *tls_context,
                                   const struct bow__tls_setup *setup, struct bow_slice key)
{
    SSL_SESSION *session = NULL;

    pthread_mutex_lock(&tls_context->mutex);
    struct session *entry = tls_context->setup == setup ? find(tls_context, key) : NULL;
    if (entry != NULL) {
        session = entry->session;
        SSL_SESSION_up_ref(session);
        /* RFC 8446 appendix C.4: a ticket is used once, or observers can link connections. */
        if (SSL_SESSION_get_protocol_version(session) >= TLS1_3_VERSION) {
            forget(tls_context, entry);
        }
    }
    pthread_mutex_unlock(&tls_context->mutex);
    return session;
}

void bow__tls_sessions_clear(struct bow_tls_context *tls_context)
{
    while (tls_context->n_sessions > 0) {
        forget(tls_context, session_of(tls_context->sessions.next));
    }
}
