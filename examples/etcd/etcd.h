/* SPDX-License-Identifier: 0BSD */
#ifndef BOWLINE_EXAMPLES_ETCD_ETCD_H
#define BOWLINE_EXAMPLES_ETCD_ETCD_H

/*
 * A connection to etcd: its client, who one is there, and what to do after an error. Keys are in
 * etcd_kv.h, watches in etcd_watch.h, leases in etcd_lease.h.
 *
 *     etcd_open ──► calls ──► etcd_close      a loop of yours: callbacks; none: blocking calls
 *
 * With a user and a password etcd gives a token for them (Auth.Authenticate), which goes along with
 * each call under the key "token". It is fetched when the server asks for one, and again when it
 * takes it for none of its own any more: it has expired, or the server was restarted. To an etcd
 * without users they do no harm.
 */

#include "etcd.bow.h"
#include <bowline/metadata_interceptor.h>

struct etcd_options {
    const char *target;          /* "grpc:HOST:PORT", "grpc:list:HOST:PORT,HOST:PORT" */
    struct bow_context *context; /* shared */
    struct bow_loop *loop;       /* kept; NULL: calls of one thread, that block */
    const char *user;            /* NULL: none; borrowed until etcd_close(), as the password */
    const char *password;
    bool plaintext;                /* not only to this host, and the token, too, goes over it */
    struct bow_security *security; /* bow_tls_security() */
};

struct etcd {
    struct bow_client *client;
    struct bow_loop *loop;                  /* NULL: none */
    struct bow_metadata_interceptor *token; /* NULL without a user */
    const char *user;
    const char *password;
};

/** Connects to nothing yet. Returns: 0; or a negative errno, and `*ret_error` says what to do. */
int etcd_open(struct etcd *etcd, const struct etcd_options *options,
              struct bow_transport_error *ret_error);
void etcd_close(struct etcd *etcd);

/** What is worth while after an error. */
enum etcd_remedy {
    ETCD_GIVE_UP,   /* it would be the same again */
    ETCD_TRY_AGAIN, /* the server or the connection to it was lost */
    ETCD_LOG_IN,    /* the token is missing, or is none any more; nothing was done */
};

enum etcd_remedy etcd_remedy(const struct etcd *etcd, const struct bow_status *status);

/** A watch's cancel_reason as a status, which borrows it. */
struct bow_status etcd_status_of(const char *reason);

/** Bytes of a string, without its NUL. */
ProtobufCBinaryData etcd_bytes(const char *text);

/** Fetch a token, and wait for it. Returns whether there is one; else `*ret_result` (to be empty)
 * says why (with OK: there was no memory for it). */
bool etcd_login(struct etcd *etcd, struct bow_result *ret_result);

/** Fetching a token on the client's loop. */
struct etcd_login {
    struct etcd *etcd;
    void (*fn)(const struct bow_status *status, void *user);
    void *user;
};

/** `fn` runs once, later, with OK when there is a token. Keeps `login` until then. Returns: as
 * bow_client_start(), whose `ret_id` this is. */
BOW_MUST_USE int etcd_login_start(struct etcd_login *login, uint64_t *ret_id);

#endif
