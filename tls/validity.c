/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How long what a handshake verified may stand for the next one: until the first of its
 * certificates ends. Knows nothing of sessions or tickets, which carry that moment on.
 *
 * The clock is that of verification: the wall's, or what the SSL_CTX's X509_VERIFY_PARAM says.
 */

#include "tls/connection.h"

#include <time.h>

static int64_t now_s(SSL *ssl)
{
    const X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    unsigned long flags = X509_VERIFY_PARAM_get_flags(param);

    return (flags & X509_V_FLAG_USE_CHECK_TIME) != 0 ? X509_VERIFY_PARAM_get_time(param)
                                                     : time(NULL);
}

/* The epoch for a date that cannot be read: that is over. */
static int64_t end_of(const X509 *certificate)
{
    struct tm end;

    return ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &end) == 1 ? timegm(&end) : 0;
}

static int64_t earlier(int64_t until_s, const X509 *certificate)
{
    int64_t end_s = certificate != NULL ? end_of(certificate) : INT64_MAX;

    return end_s < until_s ? end_s : until_s;
}

/* Which dates counted for this connection; a client that trusts anyone looks at none. */
static bool checks_peer(SSL *ssl)
{
    return SSL_get_verify_mode(ssl) != SSL_VERIFY_NONE &&
           (X509_VERIFY_PARAM_get_flags(SSL_get0_param(ssl)) & X509_V_FLAG_NO_CHECK_TIME) == 0;
}

int64_t bow__tls_valid_until(SSL *ssl)
{
    STACK_OF(X509) *chain = checks_peer(ssl) ? SSL_get0_verified_chain(ssl) : NULL;
    int64_t until_s = INT64_MAX;

    for (int i = 0; i < sk_X509_num(chain); i++) {
        until_s = earlier(until_s, sk_X509_value(chain, i));
    }
    /* A server's own: not all clients look at the date again. A client's own may not have been
     * asked for; if it was, the server looks. */
    return SSL_is_server(ssl) ? earlier(until_s, SSL_get_certificate(ssl)) : until_s;
}

int64_t bow__tls_valid_for(SSL *ssl, int64_t until_s)
{
    int64_t now = now_s(ssl);

    if (until_s == INT64_MAX) {
        return INT64_MAX;
    }
    return until_s > now ? until_s - now : 0;
}
