/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which context serves a name, when the application says so: OpenSSL asks once, when a
 * client's hello has been read, before certificates and protocols are chosen. Knows nothing of
 * files.
 *
 * A session vouches for a client's certificate without showing it again, and knows only
 * the context it began in. So contexts that ask clients for certificates take no part.
 */

#include "base/refuse.h"
#include "tls/context_lock.h"
#include "tls/handler.h"

#include <errno.h>
#include <openssl/err.h>
#include <string.h>

#define MAX_NAME_BYTES ((size_t)64)

static void say_refused(struct bow_tls *tls, const char *name, int error)
{
    struct bow__text text;

    bow__text_clear(&text);
    bow__text_printf(&text, "the client asked for ");
    if (name != NULL) {
        bow__text_escape(&text, (struct bow_slice){(const uint8_t *)name, strlen(name)},
                         MAX_NAME_BYTES);
    } else {
        bow__text_printf(&text, "nobody by name");
    }
    bow__text_printf(&text, ", and on_server_name refused that: ");
    bow__text_errno(&text, error);
    bow__tls_say(tls, text.bytes);
}

/* OpenSSL's callback for each client's hello; `user` is the setup. */
static int on_server_name(SSL *ssl, int *alert, void *user)
{
    const struct bow__tls_setup *setup = user;
    struct bow_tls *tls = SSL_get_app_data(ssl);
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);

    if (setup->on_server_name == NULL) {
        return SSL_TLSEXT_ERR_OK; /* with it the name becomes part of the session */
    }
    tls->is_choosing = true;
    int rc = setup->on_server_name(tls, name, setup->user);
    tls->is_choosing = false;
    if (rc < 0) {
        say_refused(tls, name, rc);
        *alert = SSL_AD_UNRECOGNIZED_NAME;
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    return SSL_TLSEXT_ERR_OK;
}

void bow__tls_choose_by_name(struct bow__tls_setup *setup)
{
    if (setup->is_users) {
        return;
    }
    SSL_CTX_set_tlsext_servername_callback(setup->ssl_ctx, on_server_name);
    SSL_CTX_set_tlsext_servername_arg(setup->ssl_ctx, setup);
}

static bool asks_clients(const SSL_CTX *ssl_ctx)
{
    return SSL_CTX_get_verify_mode(ssl_ctx) != SSL_VERIFY_NONE;
}

int bow_tls_use(struct bow_tls *tls, struct bow_tls_context *tls_context)
{
    if (!tls->is_choosing || tls_context->side != BOW_TLS_SERVER) {
        return bow__refuse(tls_context->context, -EINVAL, "bow_tls_use: %s",
                           tls->is_choosing ? "the context is a client's"
                                            : "only inside on_server_name");
    }
    struct bow__tls_setup *setup = NULL;
    int rc = bow__tls_context_setup(tls_context, &setup);
    if (rc < 0) {
        return bow__refuse(tls_context->context, rc, "bow_tls_use: " BOW__TLS_FOREIGN);
    }
    rc = -EINVAL;
    if (asks_clients(setup->ssl_ctx) || asks_clients(tls->setup->ssl_ctx)) {
        (void)bow__refuse(tls_context->context, rc,
                          "bow_tls_use: neither context may ask for certificates: options.clients "
                          "is BOW_TLS_PEER_ANY");
        goto drop;
    }
    if (SSL_set_SSL_CTX(tls->ssl, setup->ssl_ctx) == NULL) {
        ERR_clear_error();
        rc = -ENOMEM;
        goto drop;
    }
    bow__tls_setup_unref(tls->chosen);
    tls->chosen = setup; /* OpenSSL calls its callbacks from now on */
    return 0;

drop:
    bow__tls_setup_unref(setup);
    return rc;
}
