/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A server's tickets: each carries, under the seal of its key, until when it may be taken up, and
 * so do those that a resumed connection is given. Without that a client that comes often enough
 * would be known by a certificate for ever. And which servers take each other's: those with the
 * same rules for clients' certificates, where an application shares keys between them. Knows
 * nothing of the sessions that clients keep.
 */

#include "tls/connection.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <string.h>

/* Seal */

/* In the ticket's lifetime, too: the client need not come with it then. A second at least, for
 * OpenSSL fails on one without any. */
static void limit_lifetime(SSL *ssl, SSL_SESSION *session, int64_t until_s)
{
    int64_t left_s = bow__tls_valid_for(ssl, until_s);

    if (left_s < SSL_SESSION_get_timeout(session)) {
        (void)SSL_SESSION_set_timeout(session, left_s > 0 ? (long)left_s : 1);
    }
}

/* OpenSSL's callback before it seals a ticket. Returns 1 to go on. */
static int on_seal(SSL *ssl, void *user)
{
    struct bow_tls *tls = SSL_get_app_data(ssl);
    SSL_SESSION *session = SSL_get_session(ssl);

    (void)user;
    if (SSL_session_reused(ssl) == 0) {
        tls->valid_until_s = bow__tls_valid_until(ssl);
    }
    limit_lifetime(ssl, session, tls->valid_until_s);
    /* Out of memory: a ticket that says nothing is not taken up. */
    if (SSL_SESSION_set1_ticket_appdata(session, &tls->valid_until_s, sizeof(tls->valid_until_s)) !=
        1) {
        ERR_clear_error();
    }
    return 1;
}

/* Open */

static bool is_valid(SSL *ssl, SSL_SESSION *session)
{
    struct bow_tls *tls = SSL_get_app_data(ssl);
    void *said = NULL;
    size_t len = 0;

    if (SSL_SESSION_get0_ticket_appdata(session, &said, &len) != 1 ||
        len != sizeof(tls->valid_until_s)) {
        return false;
    }
    memcpy(&tls->valid_until_s, said, len);
    return bow__tls_valid_for(ssl, tls->valid_until_s) > 0;
}

/* OpenSSL's callback for a ticket that a client shows. One that is not used costs the client a
 * whole handshake, with all that is verified there. */
static SSL_TICKET_RETURN on_open(SSL *ssl, SSL_SESSION *session, const unsigned char *key_name,
                                 size_t key_name_len, SSL_TICKET_STATUS status, void *user)
{
    (void)key_name;
    (void)key_name_len;
    (void)user;
    if ((status != SSL_TICKET_SUCCESS && status != SSL_TICKET_SUCCESS_RENEW) ||
        !is_valid(ssl, session)) {
        return SSL_TICKET_RETURN_IGNORE_RENEW;
    }
    return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}

/* Rules */

static bool digest_authorities(EVP_MD_CTX *digest, X509_STORE *store)
{
    STACK_OF(X509) *authorities = X509_STORE_get1_all_certs(store);
    unsigned char one[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    bool is_done = authorities != NULL;

    for (int i = 0; is_done && i < sk_X509_num(authorities); i++) {
        is_done = X509_digest(sk_X509_value(authorities, i), EVP_sha256(), one, &len) == 1 &&
                  EVP_DigestUpdate(digest, one, len) == 1;
    }
    sk_X509_pop_free(authorities, X509_free);
    return is_done;
}

/* Whether certificates are asked for, are required, and whose count. */
static bool digest_rules(EVP_MD_CTX *digest, const SSL_CTX *ssl_ctx)
{
    int mode = SSL_CTX_get_verify_mode(ssl_ctx);

    return EVP_DigestInit_ex(digest, EVP_sha256(), NULL) == 1 &&
           EVP_DigestUpdate(digest, &mode, sizeof(mode)) == 1 &&
           (mode == SSL_VERIFY_NONE || digest_authorities(digest, SSL_CTX_get_cert_store(ssl_ctx)));
}

static int set_rules(SSL_CTX *ssl_ctx)
{
    unsigned char rules[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    EVP_MD_CTX *digest = EVP_MD_CTX_new();

    bool is_done = digest != NULL && digest_rules(digest, ssl_ctx) &&
                   EVP_DigestFinal_ex(digest, rules, &len) == 1 &&
                   SSL_CTX_set_session_id_context(ssl_ctx, rules, len) == 1;
    EVP_MD_CTX_free(digest);
    return is_done ? 0 : -ENOMEM;
}

int bow__tls_tickets_set(SSL_CTX *ssl_ctx)
{
    (void)SSL_CTX_set_session_ticket_cb(ssl_ctx, on_seal, on_open, NULL); /* cannot fail */
    return set_rules(ssl_ctx);
}
