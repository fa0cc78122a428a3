/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One reading of options and files into an SSL_CTX, or a reference to the user's. Knows
 * nothing of connections, but for the two questions that OpenSSL asks while one is
 * set up: which certificate, which protocol.
 */

#include "base/alloc.h"
#include "tls/connection.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <string.h>

#define MAX_ALPN_NAME_BYTES ((size_t)255)

/* ALPN */

static size_t name_len(const char *names)
{
    return strcspn(names, ",");
}

/* The list as on the wire is as long as the text with a comma in front. */
static int parse_alpn(struct bow__tls_setup *setup, const char *names, struct bow__text *why)
{
    size_t at = 0;

    setup->alpn_len = strlen(names) + 1;
    setup->alpn = bow__alloc(setup->context, setup->alpn_len);
    if (setup->alpn == NULL) {
        return -ENOMEM;
    }
    while (at < setup->alpn_len) {
        size_t len = name_len(names + at);
        if (len == 0 || len > MAX_ALPN_NAME_BYTES) {
            bow__text_printf(why,
                             "alpn \"%s\": names of 1 to 255 bytes with commas between them, as "
                             "\"h2,http/1.1\"",
                             names);
            return -EINVAL;
        }
        setup->alpn[at] = (uint8_t)len;
        memcpy(setup->alpn + at + 1, names + at, len);
        at += len + 1;
    }
    return 0;
}

static int choose_protocol(SSL *ssl, const unsigned char **ret_name, unsigned char *ret_len,
                           const unsigned char *offered, unsigned n_offered, void *user)
{
    const struct bow__tls_setup *setup = user;
    const struct bow_tls *tls = SSL_get_app_data(ssl);
    const uint8_t *spoken = setup->alpn != NULL ? setup->alpn : tls->opening->alpn;
    size_t len = setup->alpn != NULL ? setup->alpn_len : tls->opening->alpn_len;
    unsigned char *name = NULL;

    if (len == 0) {
        return SSL_TLSEXT_ERR_NOACK;
    }
    int rc = SSL_select_next_proto(&name, ret_len, spoken, (unsigned)len, offered, n_offered);
    if (rc != OPENSSL_NPN_NEGOTIATED) {
        return SSL_TLSEXT_ERR_ALERT_FATAL; /* RFC 7301 section 3.2 */
    }
    *ret_name = name;
    return SSL_TLSEXT_ERR_OK;
}

static int set_alpn(struct bow__tls_setup *setup, const struct bow_tls_context_options *options,
                    struct bow__text *why)
{
    int rc = options->alpn != NULL ? parse_alpn(setup, options->alpn, why) : 0;
    if (rc < 0) {
        return rc;
    }
    if (options->side == BOW_TLS_SERVER) {
        SSL_CTX_set_alpn_select_cb(setup->ssl_ctx, choose_protocol, setup);
        return 0;
    }
    if (options->alpn == NULL) {
        return 0;
    }
    /* This one returns 0 for success. */
    return SSL_CTX_set_alpn_protos(setup->ssl_ctx, setup->alpn, (unsigned)setup->alpn_len) == 0
               ? 0
               : -ENOMEM;
}

/* Certificates */

static int use_pair(SSL_CTX *ssl_ctx, const struct bow__tls_pair *pair)
{
    return SSL_CTX_use_cert_and_key(ssl_ctx, pair->leaf, pair->key, pair->chain, 1);
}

static bool is_for(X509 *certificate, const char *name)
{
    return X509_check_host(certificate, name, 0, 0, NULL) == 1;
}

/* Called when the client's hello is read. Returns 1 to go on. */
static int choose_certificate(SSL *ssl, void *user)
{
    const struct bow__tls_setup *setup = user;
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);

    if (name == NULL || is_for(SSL_CTX_get0_certificate(setup->ssl_ctx), name)) {
        return 1;
    }
    for (size_t i = 0; i < setup->n_more; i++) {
        const struct bow__tls_pair *pair = &setup->more[i];
        if (is_for(pair->leaf, name)) {
            return SSL_use_cert_and_key(ssl, pair->leaf, pair->key, pair->chain, 1);
        }
    }
    return 1;
}

static int load_more(struct bow__tls_setup *setup, const struct bow_tls_context_options *options,
                     struct bow__text *why)
{
    if (options->n_more_certificates == 0) {
        return 0;
    }
    setup->more =
        bow__alloc_array(setup->context, options->n_more_certificates, sizeof(*setup->more));
    if (setup->more == NULL) {
        return -ENOMEM;
    }
    setup->n_more = options->n_more_certificates;
    for (size_t i = 0; i < setup->n_more; i++) {
        int rc = bow__tls_pair_load(&options->more_certificates[i], &setup->more[i], why);
        if (rc < 0) {
            return rc;
        }
    }
    SSL_CTX_set_cert_cb(setup->ssl_ctx, choose_certificate, setup);
    return 0;
}

static int load_certificates(struct bow__tls_setup *setup,
                             const struct bow_tls_context_options *options, struct bow__text *why)
{
    struct bow__tls_pair pair = {0};

    if (options->certificate.certificate_file == NULL && options->certificate.key_file == NULL) {
        if (options->side == BOW_TLS_CLIENT) {
            return 0;
        }
        bow__text_printf(why, "a server needs a certificate.certificate_file");
        return -EINVAL;
    }
    int rc = bow__tls_pair_load(&options->certificate, &pair, why);
    if (rc < 0) {
        return rc;
    }
    if (use_pair(setup->ssl_ctx, &pair) != 1) {
        const char *reason = ERR_reason_error_string(ERR_peek_last_error());
        bow__text_printf(why, "OpenSSL does not accept the certificate in %s: %s",
                         options->certificate.certificate_file, reason != NULL ? reason : "?");
        rc = -EINVAL;
    }
    bow__tls_pair_fini(&pair);
    return rc < 0 ? rc : load_more(setup, options, why);
}

/* Whom to trust */

static int verify_mode(const struct bow_tls_context_options *options)
{
    if (options->side == BOW_TLS_CLIENT) {
        return options->trust_anyone ? SSL_VERIFY_NONE : SSL_VERIFY_PEER;
    }
    switch (options->clients) {
    case BOW_TLS_PEER_REQUEST:
        return SSL_VERIFY_PEER;
    case BOW_TLS_PEER_REQUIRE:
        return SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    case BOW_TLS_PEER_ANY:
        break;
    }
    return SSL_VERIFY_NONE;
}

static int set_trust(struct bow__tls_setup *setup, const struct bow_tls_context_options *options,
                     struct bow__text *why)
{
    int mode = verify_mode(options);
    bool is_server = options->side == BOW_TLS_SERVER;

    SSL_CTX_set_verify(setup->ssl_ctx, mode, NULL);
    if (options->ca_file != NULL) {
        return bow__tls_trust_load(setup->ssl_ctx, options->ca_file, is_server, why);
    }
    if (mode == SSL_VERIFY_NONE) {
        return 0;
    }
    if (is_server) {
        bow__text_printf(why, "a server that verifies its clients needs a ca_file: whom to trust");
        return -EINVAL;
    }
    return SSL_CTX_set_default_verify_paths(setup->ssl_ctx) == 1 ? 0 : -ENOMEM;
}

/* All of it */

static int protocol_version(enum bow_tls_version version, int otherwise)
{
    if (version == BOW_TLS_VERSION_DEFAULT) {
        return otherwise;
    }
    return version == BOW_TLS_VERSION_1_2 ? TLS1_2_VERSION : TLS1_3_VERSION;
}

static bool is_known(enum bow_tls_version version)
{
    return version == BOW_TLS_VERSION_DEFAULT || version == BOW_TLS_VERSION_1_2 ||
           version == BOW_TLS_VERSION_1_3;
}

static int set_versions(struct bow__tls_setup *setup, const struct bow_tls_context_options *options,
                        struct bow__text *why)
{
    int min = protocol_version(options->min_version, TLS1_2_VERSION);
    int max = protocol_version(options->max_version, TLS1_3_VERSION);

    if (!is_known(options->min_version) || !is_known(options->max_version) || min > max) {
        bow__text_printf(why, "min_version and max_version leave no version of TLS");
        return -EINVAL;
    }
    return SSL_CTX_set_min_proto_version(setup->ssl_ctx, min) == 1 &&
                   SSL_CTX_set_max_proto_version(setup->ssl_ctx, max) == 1
               ? 0
               : -EINVAL;
}

static int set_sessions(struct bow__tls_setup *setup, const struct bow_tls_context_options *options)
{
    /* Servers give tickets and remember nothing; clients' sessions are kept in sessions.c, which
     * the connection tells of them. */
    SSL_CTX_set_session_cache_mode(setup->ssl_ctx,
                                   options->side == BOW_TLS_CLIENT
                                       ? SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL
                                       : SSL_SESS_CACHE_OFF);
    if (options->side == BOW_TLS_SERVER) {
        return bow__tls_tickets_set(setup->ssl_ctx);
    }
    SSL_CTX_sess_set_new_cb(setup->ssl_ctx, bow__tls_on_session);
    return 0;
}

static int make_ssl_ctx(struct bow__tls_setup *setup, const struct bow_tls_context_options *options,
                        struct bow__text *why)
{
    bool is_server = options->side == BOW_TLS_SERVER;

    setup->ssl_ctx = SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method());
    if (setup->ssl_ctx == NULL) {
        return -ENOMEM;
    }
    if (is_server) {
        setup->on_server_name = options->on_server_name;
        setup->user = options->user;
    }
    int rc = set_versions(setup, options, why);
    if (rc == 0) {
        rc = load_certificates(setup, options, why);
    }
    if (rc == 0) {
        rc = set_trust(setup, options, why);
    }
    if (rc == 0) {
        rc = set_sessions(setup, options);
    }
    return rc < 0 ? rc : set_alpn(setup, options, why);
}

static int share_ssl_ctx(struct bow__tls_setup *setup,
                         const struct bow_tls_context_options *options, struct bow__text *why)
{
    if (options->certificate.certificate_file != NULL || options->certificate.key_file != NULL ||
        options->n_more_certificates > 0 || options->ca_file != NULL || options->alpn != NULL ||
        options->clients != BOW_TLS_PEER_ANY || options->trust_anyone ||
        options->on_server_name != NULL || options->min_version != BOW_TLS_VERSION_DEFAULT ||
        options->max_version != BOW_TLS_VERSION_DEFAULT) {
        bow__text_printf(why, "an ssl_ctx stands in place of all other options but side");
        return -EINVAL;
    }
    SSL_CTX_up_ref(options->ssl_ctx);
    setup->ssl_ctx = options->ssl_ctx;
    setup->is_users = true;
    return 0;
}

int bow__tls_setup_new(struct bow_context *context, const struct bow_tls_context_options *options,
                       struct bow__tls_setup **ret_setup, struct bow__text *why)
{
    struct bow__tls_setup *setup = bow__alloc_zero(context, sizeof(*setup));

    if (setup == NULL) {
        return -ENOMEM;
    }
    setup->context = context;
    setup->trust_common_name = options->trust_common_name;
    atomic_init(&setup->refs, 1);
    ERR_clear_error();
    int rc = options->ssl_ctx != NULL ? share_ssl_ctx(setup, options, why)
                                      : make_ssl_ctx(setup, options, why);
    ERR_clear_error();
    if (rc < 0) {
        bow__tls_setup_unref(setup);
        return rc;
    }
    *ret_setup = setup;
    return 0;
}

struct bow__tls_setup *bow__tls_setup_ref(struct bow__tls_setup *setup)
{
    /* relaxed: who takes a reference already holds one */
    atomic_fetch_add_explicit(&setup->refs, 1, memory_order_relaxed);
    return setup;
}

void bow__tls_setup_unref(struct bow__tls_setup *setup)
{
    /* acq_rel, its own partner: the last holder sees what the others did */
    if (setup == NULL || atomic_fetch_sub_explicit(&setup->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    SSL_CTX_free(setup->ssl_ctx);
    for (size_t i = 0; i < setup->n_more; i++) {
        bow__tls_pair_fini(&setup->more[i]);
    }
    bow__free(setup->context, setup->more, setup->n_more * sizeof(*setup->more));
    bow__free(setup->context, setup->alpn, setup->alpn_len);
    bow__free(setup->context, setup, sizeof(*setup));
}
