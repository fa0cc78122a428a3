/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_SECURITY_H
#define BOWLINE_SECURITY_H

/*
 * What secures connections, as servers and clients know it: a table of functions that
 * libbowline-tls fills in, so that a program without TLS loads no OpenSSL.
 *
 *     bow_tls_context_new(context, &tls_options, &tls, &error);
 *     options.security = bow_tls_security(tls);      of a server or a client, which share it
 *
 * Somebody else's security (a tunnel, a test's) fills in the same table.
 */

#include <bowline/channel.h>
#include <bowline/visibility.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_security;

/** What a connection is to be secured for. */
struct bow_security_request {
    const char *server_name; /* client: whom the peer must be; NULL on a server */
    const char *alpn;        /* client: the protocol that is spoken; server: those that are, with
                                commas between them */
};

/** The functions of one kind of security. */
struct bow_security_ops {
    const char *name;
    /** Take and drop a reference. Thread: any. */
    struct bow_security *(*ref)(struct bow_security *security);
    void (*unref)(struct bow_security *security);
    /** Add the handler that secures `channel`, before those that speak through it. In on_channel.
     * Returns 0 or a negative errno: there is no connection then. */
    int (*add)(struct bow_security *security, struct bow_channel *channel,
               const struct bow_security_request *request);
    /** Why it failed, in words; "" when it has not. Thread: loop. */
    const char *(*failure)(struct bow_channel *channel);
    /** Who the peer was proved to be. Returns 0; -ENODATA; -ENOSPC. Thread: loop. */
    int (*peer_subject)(struct bow_channel *channel, char *text, size_t size);
    /** Read its files again, for connections to come; on failure nothing has changed, and `text`
     * says why. NULL: there is nothing to read. Returns 0 or a negative errno. Thread: any. */
    int (*reload)(struct bow_security *security, char *text, size_t size);
};

/** One source of secured connections; embedded first in what it is. */
struct bow_security {
    const struct bow_security_ops *ops;
};

#ifdef __cplusplus
}
#endif
#endif
