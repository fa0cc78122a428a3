/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Connections over TLS.
 */

#include "certs.h"
#include "contexts.h"
#include "tests/rpc/pair_security.h"

#include <bowline/tls.h>
#include <stddef.h>

static struct bow_tls_context *contexts[2];
static struct certs certs;

void pair_secure(struct bow_test *test, struct bow_server_options *server,
                 struct bow_client_options *client)
{
    struct bow_tls_context_options ours = BOW_TLS_CONTEXT_OPTIONS_INIT;
    struct bow_tls_context_options theirs = BOW_TLS_CONTEXT_OPTIONS_INIT;
    char paths[3][128];

    certs_make(&certs);
    ours.certificate.certificate_file =
        certs_path(&certs, "server.pem", paths[0], sizeof(paths[0]));
    ours.certificate.key_file = certs_path(&certs, "server.key", paths[1], sizeof(paths[1]));
    theirs.side = BOW_TLS_CLIENT;
    theirs.ca_file = certs_path(&certs, "ca.pem", paths[2], sizeof(paths[2]));
    contexts[0] = contexts_new(bow_test_context(test), &ours);
    contexts[1] = contexts_new(bow_test_context(test), &theirs);
    server->security = bow_tls_security(contexts[0]);
    client->security = bow_tls_security(contexts[1]);
    client->server_name = "server.test";
}

void pair_unsecure(void)
{
    if (contexts[0] == NULL) {
        return;
    }
    for (size_t i = 0; i < 2; i++) {
        bow_tls_context_unref(contexts[i]);
        contexts[i] = NULL;
    }
    certs_remove(&certs);
}
