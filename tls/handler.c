/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One connection's TLS as a handler of its channel: birth and end, the callbacks, and what can be
 * asked of it. Knows nothing of how bytes are encrypted or queued.
 */

#include "tls/handler.h"
#include "base/alloc.h"
#include "base/options.h"
#include "base/refuse.h"
#include "tls/context_lock.h"

#include <bowline/limits.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <string.h>

#define GOODBYE_PIECES 8

/* Of a host's name in the DNS (RFC 1035 section 2.3.4). */
#define MAX_NAME_BYTES ((size_t)253)

/* End */

void bow_tls_free(struct bow_tls *tls)
{
    if (tls == NULL) {
        return;
    }
    struct bow_tls_context *tls_context = tls->tls_context;
    struct bow_context *context = tls_context->context;

    if (tls->state == BOW__TLS_OPEN) {
        /* Or OpenSSL would forget the session of a connection that was merely lost. */
        SSL_set_shutdown(tls->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    }
    SSL_free(tls->ssl);
    ERR_clear_error();
    bow__tls_end_opening(tls);
    bow__tls_out_fini(&tls->wire.out);
    bow__tls_setup_unref(tls->chosen);
    bow__tls_setup_unref(tls->setup);
    if (tls->failure != NULL) {
        bow__free(context, tls->failure, strlen(tls->failure) + 1);
    }
    bow__free(context, tls, sizeof(*tls) + tls->key_len);
    bow__discharge_foreign(context, BOW__TLS_OPENSSL_BYTES);
    bow_tls_context_unref(tls_context); /* the last: it holds the context */
}

/* Callbacks: the time that a handshake has */

static void on_timer(struct bow_timer *timer, void *user)
{
    struct bow_tls *tls = user;
    struct bow__text text;

    (void)timer;
    bow__text_clear(&text);
    bow__text_printf(&text,
                     "the TLS handshake was not done after %.3g s (option handshake_timeout_ns); "
                     "%zu bytes came from the peer",
                     (double)tls->opening->timeout_ns / 1e9, tls->wire.n_read);
    bow__tls_fail(tls, -ETIMEDOUT, text.bytes);
}

/* Callbacks: being added and removed */

static void on_added(struct bow_handler *handler)
{
    struct bow_tls *tls = bow__tls_of_handler(handler);
    struct bow_loop *loop = bow_channel_loop(handler->channel);

    tls->wire.out.pool = bow__loop_pool(loop);
    bow_timer_init(&tls->opening->timer, loop, on_timer, tls);
    if (tls->opening->timeout_ns != BOW_NEVER) {
        bow_timer_start(&tls->opening->timer, tls->opening->timeout_ns);
    }
    bow_handler_flush(handler); /* a client begins */
}

static void on_inactive(struct bow_handler *handler, int error)
{
    struct bow_tls *tls = bow__tls_of_handler(handler);

    bow__tls_end_opening(tls);
    bow__tls_abandon_writes(tls, error < 0 ? error : -ECANCELED);
}

static void on_removed(struct bow_handler *handler)
{
    struct bow_tls *tls = bow__tls_of_handler(handler);

    bow__tls_abandon_writes(tls, -ECANCELED);
    bow_tls_free(tls);
}

/* The handlers behind are told when the handshake is done. */
static void on_active(struct bow_handler *handler)
{
    (void)handler;
}

static void on_read_complete(struct bow_handler *handler)
{
    struct bow_tls *tls = bow__tls_of_handler(handler);

    bow__tls_deliver_eof(tls); /* after a pause */
    if (tls->state == BOW__TLS_OPEN && !tls->is_quiet) {
        bow_handler_fire_read_complete(handler);
    }
    tls->is_quiet = false;
}

/* Callbacks: the end of the connection */

static void on_eof(struct bow_handler *handler)
{
    struct bow_tls *tls = bow__tls_of_handler(handler);

    if (tls->is_done) {
        bow__tls_deliver_eof(tls);
        return;
    }
    bow__tls_fail(tls, -EPROTO,
                  tls->state == BOW__TLS_HANDSHAKE
                      ? "the peer closed the connection during the TLS handshake; does it speak "
                        "TLS on this port?"
                      : "the connection was cut: the peer closed it without TLS's close_notify, "
                        "so its last bytes may be missing: has it crashed?");
}

static void on_close(struct bow_handler *handler, int error)
{
    struct bow_tls *tls = bow__tls_of_handler(handler);
    struct iovec pieces[GOODBYE_PIECES];

    if (tls->has_last_words) {
        return; /* it closes by itself, soon */
    }
    if (error == 0 && tls->state == BOW__TLS_OPEN && !tls->said_goodbye) {
        bow__tls_say_goodbye(tls);
        int n = bow__tls_out_pieces(&tls->wire.out, pieces, GOODBYE_PIECES);
        bow__filter_send_now(handler->channel, pieces, n);
    }
    bow_handler_close(handler, error);
}

static const struct bow_handler_ops tls_ops = {
    .name = "tls",
    .on_added = on_added,
    .on_removed = on_removed,
    .on_active = on_active,
    .on_read = bow__tls_on_read,
    .on_read_complete = on_read_complete,
    .on_eof = on_eof,
    .on_inactive = on_inactive,
    .on_write = bow__tls_on_write,
    .on_flush = bow__tls_on_flush,
    .on_close = on_close,
    .on_drain = bow__tls_on_drain,
    .on_sent = bow__tls_on_sent,
};

/* Birth */

/* The name without the dot that ends an absolute one, and the address without its zone, which says
 * what it is on this host alone: certificates and SNI have none. */
static size_t name_len(const char *name)
{
    size_t len = strcspn(name, "%");

    return len > 1 && name[len - 1] == '.' ? len - 1 : len;
}

static int read_options(struct bow_context *context, struct bow_tls_options *ret_options,
                        const struct bow_tls_options *given)
{
    *ret_options = (struct bow_tls_options)BOW_TLS_OPTIONS_INIT;
    if (given == NULL) {
        return 0;
    }
    int rc = bow__options_read(ret_options, sizeof(*ret_options), given);
    if (rc < 0) {
        return bow__refuse_options(context, "bow_tls_new", "BOW_TLS_OPTIONS_INIT");
    }
    if (ret_options->server_name != NULL) {
        size_t len = name_len(ret_options->server_name);
        if (len == 0 || len > MAX_NAME_BYTES) {
            return bow__refuse(context, -EINVAL,
                               "bow_tls_new: options.server_name has %zu bytes; 1 to %zu are a "
                               "name's",
                               len, (size_t)MAX_NAME_BYTES);
        }
    }
    size_t n_alpn = ret_options->alpn != NULL ? strlen(ret_options->alpn) : 0;
    return n_alpn < BOW__TLS_ALPN_BYTES ? 0 : -EINVAL;
}

/* As on the wire: each name behind its length. */
static void set_alpn(struct bow__tls_opening *opening, const char *names)
{
    size_t len = strlen(names);

    memcpy(opening->alpn + 1, names, len);
    opening->alpn_len = len + 1;
    for (size_t at = 0; at <= len;) {
        size_t n = strcspn(names + at, ",");
        opening->alpn[at] = (uint8_t)n;
        at += n + 1;
    }
}

static bool needs_name(const struct bow_tls_context *tls_context,
                       const struct bow__tls_setup *setup)
{
    return tls_context->side == BOW_TLS_CLIENT &&
           SSL_CTX_get_verify_mode(setup->ssl_ctx) != SSL_VERIFY_NONE;
}

/* Its key is server_name NUL session_key. */
static struct bow_tls *alloc(struct bow_context *context, const struct bow_tls_options *options)
{
    size_t n_name = options->server_name != NULL ? name_len(options->server_name) : 0;
    size_t n_key = options->session_key != NULL ? strlen(options->session_key) : 0;
    size_t key_len = n_name + 1 + n_key;
    size_t size = 0;

    if (__builtin_add_overflow(sizeof(struct bow_tls), key_len, &size)) {
        return NULL;
    }
    if (!bow__charge_foreign(context, BOW__TLS_OPENSSL_BYTES)) {
        return NULL;
    }
    struct bow_tls *tls = bow__alloc_zero(context, size);
    if (tls == NULL) {
        bow__discharge_foreign(context, BOW__TLS_OPENSSL_BYTES);
        return NULL;
    }
    tls->key_len = key_len;
    if (n_name > 0) {
        memcpy(tls->key, options->server_name, n_name);
    }
    if (n_key > 0) {
        memcpy(tls->key + n_name + 1, options->session_key, n_key);
    }
    return tls;
}

/* RFC 9525 section 6: names are those of the subjectAltName, a wildcard is a whole label. */
static unsigned host_flags(const struct bow__tls_setup *setup)
{
    unsigned flags = X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS;

    return setup->trust_common_name ? flags : flags | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT;
}

static int set_name(struct bow_tls *tls)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(tls->ssl);

    if (tls->key[0] == '\0' || X509_VERIFY_PARAM_set1_ip_asc(param, tls->key) == 1) {
        return 0;
    }
    ERR_clear_error();
    X509_VERIFY_PARAM_set_hostflags(param, host_flags(tls->setup));
    return X509_VERIFY_PARAM_set1_host(param, tls->key, 0) == 1 &&
                   SSL_set_tlsext_host_name(tls->ssl, tls->key) == 1
               ? 0
               : -ENOMEM;
}

static void take_up_session(struct bow_tls *tls)
{
    if (tls->key_len == 1) {
        return; /* no name, no key: there is nothing to know the server by */
    }
    SSL_SESSION *session = bow__tls_sessions_get(tls);
    if (session != NULL) {
        (void)SSL_set_session(tls->ssl, session); /* if not, the handshake is whole */
        SSL_SESSION_free(session);
    }
}

static int begin_as_client(struct bow_tls *tls)
{
    SSL_set_connect_state(tls->ssl);
    /* It returns 0 for success. */
    if (tls->opening->alpn_len > 0 && tls->setup->alpn == NULL && !tls->setup->is_users &&
        SSL_set_alpn_protos(tls->ssl, tls->opening->alpn, (unsigned)tls->opening->alpn_len) != 0) {
        return -ENOMEM;
    }
    int rc = set_name(tls);
    if (rc == 0 && !tls->setup->is_users) {
        take_up_session(tls);
    }
    return rc;
}

/* What holds for all connections, those of a user's own SSL_CTX too. */
static void set_modes(SSL *ssl)
{
    int verify = SSL_get_verify_mode(ssl);

    SSL_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
    SSL_set_read_ahead(ssl, 0);
    SSL_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    if (SSL_get_min_proto_version(ssl) < TLS1_2_VERSION) {
        (void)SSL_set_min_proto_version(ssl, TLS1_2_VERSION);
    }
    if (verify != SSL_VERIFY_NONE && SSL_get_verify_callback(ssl) == NULL) {
        SSL_set_verify(ssl, verify, bow__tls_on_verify);
    }
}

static int set_up_ssl(struct bow_tls *tls)
{
    tls->ssl = SSL_new(tls->setup->ssl_ctx);
    if (tls->ssl == NULL) {
        return -ENOMEM;
    }
    BIO *bio = bow__tls_bio_new(tls->tls_context->bio_method, &tls->wire);
    if (bio == NULL) {
        return -ENOMEM;
    }
    SSL_set_bio(tls->ssl, bio, bio);
    SSL_set_app_data(tls->ssl, tls);
    set_modes(tls->ssl);
    if (tls->tls_context->side == BOW_TLS_CLIENT) {
        return begin_as_client(tls);
    }
    SSL_set_accept_state(tls->ssl);
    return 0;
}

static struct bow__tls_opening *new_opening(struct bow_context *context,
                                            const struct bow_tls_options *options)
{
    struct bow__tls_opening *opening = bow__alloc_zero(context, sizeof(*opening));

    if (opening == NULL) {
        return NULL;
    }
    opening->timeout_ns = options->handshake_timeout_ns != 0 ? options->handshake_timeout_ns
                                                             : BOW_LIMIT_TLS_HANDSHAKE_NS;
    if (options->alpn != NULL) {
        set_alpn(opening, options->alpn);
    }
    return opening;
}

static int make(struct bow_tls_context *tls_context, struct bow__tls_setup *setup,
                const struct bow_tls_options *options, struct bow_tls **ret_tls)
{
    if (needs_name(tls_context, setup) && options->server_name == NULL) {
        return bow__refuse(tls_context->context, -EINVAL,
                           "bow_tls_new: a client that verifies its server needs "
                           "options.server_name: whom the certificate must be for");
    }
    struct bow_tls *tls = alloc(tls_context->context, options);
    if (tls == NULL) {
        return -ENOMEM;
    }
    tls->handler.ops = &tls_ops;
    tls->tls_context = bow_tls_context_ref(tls_context);
    tls->setup = bow__tls_setup_ref(setup);
    tls->opening = new_opening(tls_context->context, options);
    int rc = tls->opening != NULL ? set_up_ssl(tls) : -ENOMEM;
    ERR_clear_error();
    if (rc < 0) {
        bow_tls_free(tls);
        return rc;
    }
    *ret_tls = tls;
    return 0;
}

int bow_tls_new(struct bow_tls_context *tls_context, const struct bow_tls_options *options,
                struct bow_tls **ret_tls)
{
    struct bow_tls_options known;

    int rc = read_options(tls_context->context, &known, options);
    if (rc < 0) {
        return rc;
    }
    struct bow__tls_setup *setup = NULL;
    rc = bow__tls_context_setup(tls_context, &setup);
    if (rc < 0) {
        return bow__refuse(tls_context->context, rc, "bow_tls_new: " BOW__TLS_FOREIGN);
    }
    rc = make(tls_context, setup, &known, ret_tls);
    bow__tls_setup_unref(setup);
    return rc;
}

struct bow_handler *bow_tls_handler(struct bow_tls *tls)
{
    return &tls->handler;
}

/* Asking */

struct bow_tls *bow_tls_of(struct bow_channel *channel)
{
    struct bow_handler *handler = bow__filter_find(channel, &tls_ops);

    return handler != NULL ? bow__tls_of_handler(handler) : NULL;
}

bool bow_tls_is_open(const struct bow_tls *tls)
{
    return tls->state == BOW__TLS_OPEN;
}

const char *bow_tls_failure(const struct bow_tls *tls)
{
    if (tls->state != BOW__TLS_FAILED) {
        return "";
    }
    return tls->failure != NULL ? tls->failure : "out of memory";
}

struct bow_slice bow_tls_alpn(const struct bow_tls *tls)
{
    struct bow_slice name = {NULL, 0};
    unsigned len = 0;

    SSL_get0_alpn_selected(tls->ssl, &name.data, &len);
    name.len = len;
    return name;
}

bool bow_tls_alpn_is(const struct bow_tls *tls, const char *protocol)
{
    struct bow_slice name = bow_tls_alpn(tls);

    return name.len > 0 && name.len == strlen(protocol) &&
           memcmp(name.data, protocol, name.len) == 0;
}

const char *bow_tls_version_name(const struct bow_tls *tls)
{
    return SSL_get_version(tls->ssl);
}

bool bow_tls_is_resumed(const struct bow_tls *tls)
{
    return SSL_session_reused(tls->ssl) == 1;
}

const char *bow_tls_server_name(const struct bow_tls *tls)
{
    return SSL_get_servername(tls->ssl, TLSEXT_NAMETYPE_host_name);
}

int bow_tls_peer_subject(const struct bow_tls *tls, char *text, size_t size)
{
    X509 *certificate = SSL_get0_peer_certificate(tls->ssl);
    const char *subject = NULL;

    if (certificate == NULL) {
        return -ENODATA;
    }
    BIO *bio = BIO_new(BIO_s_mem());
    if (bio == NULL ||
        X509_NAME_print_ex(bio, X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253) < 0) {
        BIO_free(bio);
        ERR_clear_error();
        return -ENOMEM;
    }
    size_t len = (size_t)BIO_get_mem_data(bio, &subject);
    bool fits = len < size;
    if (fits) {
        memcpy(text, subject, len);
        text[len] = '\0';
    }
    BIO_free(bio);
    return fits ? 0 : -ENOSPC;
}

struct ssl_st *bow_tls_ssl(const struct bow_tls *tls)
{
    return tls->ssl;
}
