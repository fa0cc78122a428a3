/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Certificates and keys from PEM files, with errors that name the file. Knows nothing
 * of connections.
 */

#include "tls/context.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>

/* OpenSSL's own would ask on the terminal. */
static int no_password(char *buf, int size, int writing, void *user)
{
    (void)buf;
    (void)size;
    (void)writing;
    (void)user;
    return -1;
}

static void say_reason(struct bow__text *why)
{
    const char *reason = ERR_reason_error_string(ERR_peek_error());

    if (reason != NULL) {
        bow__text_printf(why, ": %s", reason);
    }
    ERR_clear_error();
}

static int open_file(const char *file, const char *what, BIO **ret_bio, struct bow__text *why)
{
    errno = 0;
    BIO *bio = BIO_new_file(file, "re");
    if (bio == NULL) {
        int error = errno != 0 ? -errno : -ENOMEM;
        ERR_clear_error();
        bow__text_printf(why, "cannot open the %s file %s: ", what, file);
        bow__text_errno(why, error);
        return error;
    }
    *ret_bio = bio;
    return 0;
}

static int read_chain(BIO *bio, struct bow__tls_pair *pair)
{
    X509 *next;

    pair->chain = sk_X509_new_null();
    if (pair->chain == NULL) {
        return -ENOMEM;
    }
    while ((next = PEM_read_bio_X509(bio, NULL, no_password, NULL)) != NULL) {
        if (sk_X509_push(pair->chain, next) == 0) {
            X509_free(next);
            return -ENOMEM;
        }
    }
    ERR_clear_error(); /* the end of the file is an error to OpenSSL */
    return 0;
}

static int read_certificate(const char *file, struct bow__tls_pair *pair, struct bow__text *why)
{
    BIO *bio = NULL;

    int rc = open_file(file, "certificate", &bio, why);
    if (rc < 0) {
        return rc;
    }
    pair->leaf = PEM_read_bio_X509(bio, NULL, no_password, NULL);
    if (pair->leaf == NULL) {
        bow__text_printf(why, "%s holds no certificate in PEM form", file);
        say_reason(why);
        rc = -EBADMSG;
    } else {
        rc = read_chain(bio, pair);
    }
    BIO_free(bio);
    return rc;
}

static int read_key(const char *file, struct bow__tls_pair *pair, struct bow__text *why)
{
    BIO *bio = NULL;

    int rc = open_file(file, "key", &bio, why);
    if (rc < 0) {
        return rc;
    }
    pair->key = PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL);
    if (pair->key == NULL) {
        bow__text_printf(why,
                         "%s holds no private key in PEM form that can be read without a "
                         "password",
                         file);
        say_reason(why);
        rc = -EBADMSG;
    }
    BIO_free(bio);
    return rc;
}

int bow__tls_pair_load(const struct bow_tls_certificate *files, struct bow__tls_pair *ret_pair,
                       struct bow__text *why)
{
    const char *key_file = files->key_file != NULL ? files->key_file : files->certificate_file;
    struct bow__tls_pair pair = {0};

    if (files->certificate_file == NULL) {
        bow__text_printf(why, "a key_file without a certificate_file");
        return -EINVAL;
    }
    int rc = read_certificate(files->certificate_file, &pair, why);
    if (rc == 0) {
        rc = read_key(key_file, &pair, why);
    }
    if (rc == 0 && X509_check_private_key(pair.leaf, pair.key) != 1) {
        ERR_clear_error();
        bow__text_printf(why, "the key in %s does not belong to the certificate in %s", key_file,
                         files->certificate_file);
        rc = -EINVAL;
    }
    if (rc < 0) {
        bow__tls_pair_fini(&pair);
        return rc;
    }
    *ret_pair = pair;
    return 0;
}

void bow__tls_pair_fini(struct bow__tls_pair *pair)
{
    X509_free(pair->leaf);
    EVP_PKEY_free(pair->key);
    sk_X509_pop_free(pair->chain, X509_free);
    *pair = (struct bow__tls_pair){0};
}

static int trust(SSL_CTX *ssl_ctx, X509 *authority, bool names_it)
{
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(ssl_ctx), authority) != 1 ||
        (names_it && SSL_CTX_add_client_CA(ssl_ctx, authority) != 1)) {
        return -ENOMEM;
    }
    return 0;
}

int bow__tls_trust_load(SSL_CTX *ssl_ctx, const char *file, bool names_them, struct bow__text *why)
{
    X509 *authority;
    BIO *bio = NULL;
    size_t n = 0;

    int rc = open_file(file, "CA", &bio, why);
    if (rc < 0) {
        return rc;
    }
    while (rc == 0 && (authority = PEM_read_bio_X509(bio, NULL, no_password, NULL)) != NULL) {
        rc = trust(ssl_ctx, authority, names_them);
        X509_free(authority);
        n++;
    }
    BIO_free(bio);
    if (rc == 0 && n == 0) {
        bow__text_printf(why, "%s holds no certificate in PEM form", file);
        say_reason(why);
        return -EBADMSG;
    }
    ERR_clear_error();
    return rc;
}
