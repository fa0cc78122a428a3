/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What OpenSSL says, in words: its reason, whose it is, and what to do about it. What the
 * peer's certificate says is escaped: anybody can write into one.
 */

#include "base/alloc.h"
#include "tls/connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <string.h>

#define MAX_NAMES 8
#define MAX_NAME_BYTES ((size_t)64)

/* What to do, by OpenSSL's reason. */
struct hint {
    int reason;
    const char *text;
};

static const struct hint reason_hints[] = {
    {SSL_R_UNSUPPORTED_PROTOCOL, "TLS 1.2 is the least that is spoken here"},
    {SSL_R_VERSION_TOO_LOW, "TLS 1.2 is the least that is spoken here"},
    {SSL_R_NO_SHARED_CIPHER, "the two sides have no cipher suite in common"},
    {SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE,
     "this server requires a client certificate, and the client sent none"},
    {SSL_R_NO_APPLICATION_PROTOCOL, "the client's ALPN names no protocol that is spoken here"},
    {SSL_R_NO_RENEGOTIATION, "renegotiation is off"},
};

/* The same by the alert that the peer sent. */
static const struct hint alert_hints[] = {
    {SSL_AD_UNKNOWN_CA, "it does not trust the CA of our certificate"},
    {SSL_AD_CERTIFICATE_REQUIRED,
     "it requires a client certificate: set certificate_file and key_file"},
    {SSL_AD_BAD_CERTIFICATE, "it does not accept our certificate, or its name"},
    {SSL_AD_CERTIFICATE_EXPIRED, "our certificate has expired"},
    {SSL_AD_HANDSHAKE_FAILURE,
     "there is no cipher suite in common, or it requires a client certificate"},
    {SSL_AD_PROTOCOL_VERSION, "there is no version of TLS that both speak"},
    {SSL_AD_NO_APPLICATION_PROTOCOL, "it speaks no protocol of our ALPN list"},
    {SSL_AD_UNRECOGNIZED_NAME, "it knows no server of that name"},
};

/* The same by the result of a verification. */
static const struct hint verify_hints[] = {
    {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, "set ca_file to the CA that issued it"},
    {X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, "to trust it, set ca_file to it"},
    {X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, "to trust that CA, set ca_file to it"},
    {X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE,
     "the peer must send the certificates between its own and the CA's"},
    {X509_V_ERR_CERT_NOT_YET_VALID, "is the clock of this machine right?"},
};

#define FIND(hints, reason) find(hints, sizeof(hints) / sizeof((hints)[0]), reason)

static const char *find(const struct hint *hints, size_t n, int reason)
{
    for (size_t i = 0; i < n; i++) {
        if (hints[i].reason == reason) {
            return hints[i].text;
        }
    }
    return NULL;
}

void bow__tls_say(struct bow_tls *tls, const char *why)
{
    if (tls->failure == NULL) {
        tls->failure = bow__dup(tls->tls_context->context, why, strlen(why));
    }
}

/* The queue */

static void print_hint(struct bow__text *text, const char *hint)
{
    if (hint != NULL) {
        bow__text_printf(text, " (%s)", hint);
    }
}

static void print_reason(struct bow__text *text, unsigned long error)
{
    const char *reason = ERR_reason_error_string(error);

    if (reason != NULL) {
        bow__text_printf(text, "%s", reason);
    } else {
        bow__text_printf(text, "OpenSSL error %08lx", error);
    }
}

/* OpenSSL 3.0 calls the alerts of TLS 1.3 "unknown". */
static void print_alert(struct bow__text *text, int alert)
{
    const char *name = SSL_alert_desc_string_long(alert);
    const char *hint = FIND(alert_hints, alert);

    bow__text_printf(text, "the peer refused the connection: ");
    if (strcmp(name, "unknown") != 0) {
        bow__text_printf(text, "%s", name);
        print_hint(text, hint);
    } else if (hint != NULL) {
        bow__text_printf(text, "%s", hint);
    } else {
        bow__text_printf(text, "TLS alert %d", alert);
    }
}

static void print_error(struct bow__text *text, unsigned long error)
{
    int reason = ERR_GET_REASON(error);

    if (ERR_GET_LIB(error) == ERR_LIB_SSL && reason > SSL_AD_REASON_OFFSET &&
        reason < SSL_AD_REASON_OFFSET + 256) {
        print_alert(text, reason - SSL_AD_REASON_OFFSET);
        return;
    }
    bow__text_printf(text, "TLS: ");
    print_reason(text, error);
    if (ERR_GET_LIB(error) == ERR_LIB_SSL) {
        print_hint(text, FIND(reason_hints, reason));
    }
}

static bool is_about(unsigned long error, int reason)
{
    return ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) == reason;
}

int bow__tls_explain(struct bow_tls *tls, struct bow__text *text)
{
    unsigned long error = ERR_peek_error();

    ERR_clear_error();
    bow__text_clear(text);
    if (tls->wire.out_of_memory || (error != 0 && ERR_GET_REASON(error) == ERR_R_MALLOC_FAILURE)) {
        bow__text_printf(text, "out of memory");
        return -ENOMEM;
    }
    if (error == 0) {
        bow__text_printf(text, "TLS: OpenSSL stopped without a reason (it wants what is not "
                               "supported here)");
        return -EPROTO;
    }
    print_error(text, error);
    return is_about(error, SSL_R_CERTIFICATE_VERIFY_FAILED) ? -EKEYREJECTED : -EPROTO;
}

/* The peer's certificate */

static void print_name(struct bow__text *text, const GENERAL_NAME *name)
{
    char address[INET6_ADDRSTRLEN];
    int type = 0;
    const ASN1_STRING *value = GENERAL_NAME_get0_value(name, &type);
    const unsigned char *bytes = ASN1_STRING_get0_data(value);
    size_t len = (size_t)ASN1_STRING_length(value);

    if (type == GEN_IPADD && (len == 4 || len == 16) &&
        inet_ntop(len == 4 ? AF_INET : AF_INET6, bytes, address, sizeof(address)) != NULL) {
        bow__text_printf(text, "%s", address);
        return;
    }
    bow__text_escape(text, (struct bow_slice){bytes, len}, MAX_NAME_BYTES);
}

static bool is_name_of_host(const GENERAL_NAME *name)
{
    int type = 0;

    (void)GENERAL_NAME_get0_value(name, &type);
    return type == GEN_DNS || type == GEN_IPADD;
}

/* Whom it is for; returns how many were printed. */
static int print_names(struct bow__text *text, X509 *certificate)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    int n_printed = 0;

    for (int i = 0; i < sk_GENERAL_NAME_num(names) && n_printed < MAX_NAMES; i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        if (is_name_of_host(name)) {
            bow__text_printf(text, "%s", n_printed > 0 ? ", " : "");
            print_name(text, name);
            n_printed++;
        }
    }
    GENERAL_NAMES_free(names);
    return n_printed;
}

static void print_subject(struct bow__text *text, X509 *certificate)
{
    char name[BOW__TEXT_BYTES];

    if (X509_NAME_oneline(X509_get_subject_name(certificate), name, (int)sizeof(name)) != NULL) {
        bow__text_escape(text, (struct bow_slice){(const uint8_t *)name, strlen(name)},
                         BOW__TEXT_BYTES);
    }
}

static const char *hint_without_names(const struct bow_tls *tls, int error)
{
    if (error == X509_V_ERR_IP_ADDRESS_MISMATCH) {
        return "it names no address in its subjectAltName, and nothing else counts";
    }
    return tls->setup->trust_common_name
               ? NULL
               : "it names no host in its subjectAltName, and the CN does not count; until it is "
                 "renewed with one: option trust_common_name";
}

static void print_mismatch(struct bow__text *text, const struct bow_tls *tls, int error,
                           X509 *certificate)
{
    bow__text_printf(text, ": wanted ");
    bow__text_escape(text, (struct bow_slice){(const uint8_t *)tls->key, strlen(tls->key)},
                     BOW__TEXT_BYTES);
    bow__text_printf(text, ", got ");
    if (print_names(text, certificate) == 0) {
        print_subject(text, certificate);
        print_hint(text, hint_without_names(tls, error));
    }
}

static void print_time(struct bow__text *text, const ASN1_TIME *time)
{
    char printed[64];
    struct tm when;

    if (ASN1_TIME_to_tm(time, &when) == 1 &&
        strftime(printed, sizeof(printed), "%Y-%m-%d %H:%M:%S UTC", &when) > 0) {
        bow__text_printf(text, " %s", printed);
    }
}

static void print_certificate(struct bow__text *text, int error, X509 *certificate)
{
    bow__text_printf(text, ": ");
    print_subject(text, certificate);
    if (error == X509_V_ERR_CERT_HAS_EXPIRED) {
        bow__text_printf(text, ", on");
        print_time(text, X509_get0_notAfter(certificate));
    } else if (error == X509_V_ERR_CERT_NOT_YET_VALID) {
        bow__text_printf(text, ", but from");
        print_time(text, X509_get0_notBefore(certificate));
    }
}

int bow__tls_on_verify(int ok, X509_STORE_CTX *store)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct bow_tls *tls = SSL_get_app_data(ssl);
    X509 *certificate = X509_STORE_CTX_get_current_cert(store);
    int error = X509_STORE_CTX_get_error(store);
    struct bow__text text;

    if (ok) {
        return ok;
    }
    bow__text_clear(&text);
    bow__text_printf(&text, "certificate verify failed: %s", X509_verify_cert_error_string(error));
    if (error == X509_V_ERR_HOSTNAME_MISMATCH || error == X509_V_ERR_IP_ADDRESS_MISMATCH) {
        print_mismatch(&text, tls, error, X509_STORE_CTX_get0_cert(store));
    } else if (certificate != NULL) {
        print_certificate(&text, error, certificate);
    }
    print_hint(&text, FIND(verify_hints, error));
    bow__tls_say(tls, text.bytes);
    return ok;
}
