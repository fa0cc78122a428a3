/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_TLS_CERTS_H
#define BOWLINE_TESTS_TLS_CERTS_H

/*
 * Certificates for tests, made afresh in a folder of their own, so that none can expire.
 *
 *     ca.pem               the CA of all but the last two
 *     server.pem, .key     server.test, *.wild.test, 127.0.0.1
 *     second.pem, .key     second.test
 *     nameless.pem, .key   only a subject, CN=nameless.test
 *     elsewise.pem, .key   CN=server.test; its other names are no host's
 *     brief.pem, .key      server.test, for an hour
 *     brief_client.pem     CN=alice,O=Example, for an hour; .key
 *     below_chain.pem      server.test, for a day, under a CA that has an hour left; below.key
 *     below_client_chain.pem   CN=alice,O=Example, as below_chain.pem; below_client.key
 *     expired.pem, .key    server.test, until a day ago
 *     future.pem, .key     server.test, from tomorrow on
 *     client.pem, .key     CN=alice,O=Example
 *     both.pem             client.pem and client.key in one file
 *     other_ca.pem         another CA
 *     stranger.pem, .key   server.test, of the other CA
 */

#include <stdbool.h>
#include <stddef.h>

#define CERTS_N_PATHS 4

struct certs {
    char folder[64];
    char paths[CERTS_N_PATHS][128]; /* of certs_file() */
    int next_path;
};

void certs_make(struct certs *certs);
void certs_remove(struct certs *certs);
/** The path of `name`; in `path`, which is returned. */
const char *certs_path(const struct certs *certs, const char *name, char *path, size_t size);
/** The same; it lives until so many more were asked for as CERTS_N_PATHS says. */
const char *certs_file(struct certs *certs, const char *name);
/** Copy one file of the folder over another. */
void certs_copy(const struct certs *certs, const char *from, const char *to);

#endif
