/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A small certificate authority; see the header. */

#include "tests/tls/certs.h"
#include "tests/support/scratch.h"

#include <dirent.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define DAY 86400L
#define HOUR 3600L

struct wish {
    const char *name; /* of the files */
    const char *common_name;
    const char *organization;
    const char *alt_names; /* as of openssl.cnf; NULL: none */
    long from_s;           /* from now */
    long until_s;
    bool is_ca;
};

struct made {
    X509 *certificate;
    EVP_PKEY *key;
};

const char *certs_path(const struct certs *certs, const char *name, char *path, size_t size)
{
    assert_true(snprintf(path, size, "%s/%s", certs->folder, name) < (int)size);
    return path;
}

const char *certs_file(struct certs *certs, const char *name)
{
    char *path = certs->paths[certs->next_path];

    certs->next_path = (certs->next_path + 1) % CERTS_N_PATHS;
    return certs_path(certs, name, path, sizeof(certs->paths[0]));
}

static FILE *open_file(const struct certs *certs, const char *name, const char *suffix,
                       const char *mode)
{
    char path[256];

    assert_true(snprintf(path, sizeof(path), "%s/%s%s", certs->folder, name, suffix) <
                (int)sizeof(path));
    FILE *file = fopen(path, mode);
    assert_non_null(file);
    return file;
}

static void add_extension(X509 *certificate, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;

    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    assert_non_null(extension);
    assert_int_equal(X509_add_ext(certificate, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

static void add_name(X509 *certificate, const char *field, const char *value)
{
    X509_NAME *subject = X509_get_subject_name(certificate);

    if (value != NULL) {
        assert_int_equal(X509_NAME_add_entry_by_txt(subject, field, MBSTRING_UTF8,
                                                    (const unsigned char *)value, -1, -1, 0),
                         1);
    }
}

static X509 *make_certificate(const struct wish *wish, EVP_PKEY *key, const struct made *issuer)
{
    X509 *certificate = X509_new();

    assert_non_null(certificate);
    X509 *signer = issuer != NULL ? issuer->certificate : certificate;
    assert_int_equal(X509_set_version(certificate, X509_VERSION_3), 1);
    assert_int_equal(ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate),
                                             (uint64_t)(uintptr_t)certificate | 1),
                     1);
    assert_non_null(X509_gmtime_adj(X509_getm_notBefore(certificate), wish->from_s));
    assert_non_null(X509_gmtime_adj(X509_getm_notAfter(certificate), wish->until_s));
    add_name(certificate, "O", wish->organization);
    add_name(certificate, "CN", wish->common_name);
    assert_int_equal(X509_set_issuer_name(certificate, X509_get_subject_name(signer)), 1);
    assert_int_equal(X509_set_pubkey(certificate, key), 1);
    add_extension(certificate, signer, NID_basic_constraints,
                  wish->is_ca ? "critical,CA:TRUE" : "CA:FALSE");
    add_extension(certificate, signer, NID_subject_key_identifier, "hash");
    if (wish->alt_names != NULL) {
        add_extension(certificate, signer, NID_subject_alt_name, wish->alt_names);
    }
    assert_true(X509_sign(certificate, issuer != NULL ? issuer->key : key, EVP_sha256()) > 0);
    return certificate;
}

static struct made make(const struct certs *certs, const struct wish *wish,
                        const struct made *issuer)
{
    struct made made = {.key = EVP_EC_gen("P-256")};

    assert_non_null(made.key);
    made.certificate = make_certificate(wish, made.key, issuer);
    FILE *file = open_file(certs, wish->name, ".pem", "w");
    assert_int_equal(PEM_write_X509(file, made.certificate), 1);
    fclose(file);
    file = open_file(certs, wish->name, ".key", "w");
    assert_int_equal(PEM_write_PrivateKey(file, made.key, NULL, NULL, 0, NULL, NULL), 1);
    fclose(file);
    return made;
}

static void forget(struct made made)
{
    X509_free(made.certificate);
    EVP_PKEY_free(made.key);
}

static void append(const struct certs *certs, const char *from, FILE *into)
{
    char bytes[4096];
    size_t n;
    FILE *file = open_file(certs, from, "", "r");

    while ((n = fread(bytes, 1, sizeof(bytes), file)) > 0) {
        assert_int_equal(fwrite(bytes, 1, n, into), n);
    }
    fclose(file);
}

void certs_copy(const struct certs *certs, const char *from, const char *to)
{
    FILE *into = open_file(certs, to, "", "w");

    append(certs, from, into);
    fclose(into);
}

static void make_under(const struct certs *certs, const struct made *ca, const struct wish *wishes,
                       size_t n)
{
    for (size_t i = 0; i < n; i++) {
        forget(make(certs, &wishes[i], ca));
    }
}

/* Two that live for a day under one that lives for an hour. */
static void make_chain(const struct certs *certs, const struct made *ca)
{
    static const struct wish between = {"between", "Brief CA", NULL, NULL, -DAY, HOUR, true};
    static const struct wish wishes[] = {
        {"below", "server.test", NULL, "DNS:server.test", -DAY, DAY, false},
        {"below_client", "alice", "Example", NULL, -DAY, DAY, false},
    };
    struct made brief = make(certs, &between, ca);

    make_under(certs, &brief, wishes, 2);
    forget(brief);
    for (int i = 0; i < 2; i++) {
        FILE *chain = open_file(certs, wishes[i].name, "_chain.pem", "w");
        append(certs, i == 0 ? "below.pem" : "below_client.pem", chain);
        append(certs, "between.pem", chain);
        fclose(chain);
    }
}

void certs_make(struct certs *certs)
{
    static const struct wish ca_wish = {"ca", "Test CA", "Example", NULL, -DAY, DAY, true};
    static const struct wish other_wish = {"other_ca", "Other CA", NULL, NULL, -DAY, DAY, true};
    static const char names[] = "DNS:server.test,DNS:*.wild.test,IP:127.0.0.1";
    static const struct wish wishes[] = {
        {"server", "server.test", NULL, names, -DAY, DAY, false},
        {"second", "second.test", NULL, "DNS:second.test", -DAY, DAY, false},
        {"nameless", "nameless.test", NULL, NULL, -DAY, DAY, false},
        {"elsewise", "server.test", NULL, "email:a@server.test,URI:http://server.test", -DAY, DAY,
         false},
        {"brief", "server.test", NULL, names, -DAY, HOUR, false},
        {"brief_client", "alice", "Example", NULL, -DAY, HOUR, false},
        {"expired", "server.test", NULL, names, -3 * DAY, -DAY, false},
        {"future", "server.test", NULL, names, DAY, 2 * DAY, false},
        {"client", "alice", "Example", NULL, -DAY, DAY, false},
    };
    static const struct wish stranger = {"stranger", "server.test", NULL, names, -DAY, DAY, false};

    certs->next_path = 0;
    assert_non_null(mkdtemp(scratch_path(certs->folder, sizeof(certs->folder), "certs-XXXXXX")));
    struct made ca = make(certs, &ca_wish, NULL);
    make_under(certs, &ca, wishes, sizeof(wishes) / sizeof(wishes[0]));
    make_chain(certs, &ca);
    forget(ca);
    struct made other = make(certs, &other_wish, NULL);
    make_under(certs, &other, &stranger, 1);
    forget(other);
    FILE *both = open_file(certs, "both.pem", "", "w");
    append(certs, "client.pem", both);
    append(certs, "client.key", both);
    fclose(both);
    ERR_clear_error();
}

void certs_remove(struct certs *certs)
{
    char path[512];
    DIR *folder = opendir(certs->folder);
    const struct dirent *entry;

    assert_non_null(folder);
    while ((entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] != '.') {
            (void)snprintf(path, sizeof(path), "%s/%s", certs->folder, entry->d_name);
            unlink(path);
        }
    }
    closedir(folder);
    rmdir(certs->folder);
}
