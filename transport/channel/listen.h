/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_CHANNEL_LISTEN_H
#define BOWLINE_TRANSPORT_CHANNEL_LISTEN_H

/*
 * From an address to what listens there (a descriptor, or an object of its transport), and
 * back. Knows nothing of loops.
 */

#include "transport/channel/handed.h"
#include "transport/channel/transport.h"

static inline bool bow__listening_is_open(const struct bow__listening *listening)
{
    return listening->fd >= 0 || listening->object != NULL;
}

/** Of a name; more are not listened on. */
#define BOW__LISTEN_MAX 32

/** The addresses that `text` names: one, or each once of a name, which is resolved at once,
 * blocking. Returns how many, at least 1; or a negative errno with `ret_error` (may be NULL)
 * filled. */
int bow__listen_addresses(struct bow_context *context, const char *text,
                          struct bow__address ret_addresses[BOW__LISTEN_MAX],
                          struct bow_transport_error *ret_error);

/** Bind and listen on one of them; `text` is for errors; `listening` is zeroed but for what is set
 * before opening. The descriptor of "fd:N" is taken on success only. Returns 0, or a negative errno
 * with `ret_error` (may be NULL) filled. */
int bow__listening_open(struct bow__listening *listening, struct bow_context *context,
                        const struct bow__address *address, const char *text, int backlog,
                        struct bow_transport_error *ret_error);

/** socket.c: one more socket on the port of `first`, which shares it. Returns 0 or a negative
 * errno. */
int bow__socket_listen_beside(struct bow__listening *listening, const struct bow__listening *first,
                              int backlog);

/** socket.c: on a socket that another process has handed over, whose descriptor is taken on
 * success. Returns 0 or a negative errno. */
int bow__socket_listen_handed(struct bow__listening *listening, struct bow_context *context,
                              const struct bow__handed_socket *socket, int backlog);

/** Take a connection that waits: `*ret_socket` is the caller's to close. Returns 0, or a negative
 * errno as accept() says it. */
int bow__listening_accept(struct bow__listening *listening, struct bow__socket *ret_socket,
                          struct bow_sockaddr *ret_peer);

/**
 * Let no further connection come; those that wait can still be accepted. Of TCP the kernel goes on
 * completing what has begun. Returns whether what waits is ours to take: an inherited socket may
 * outlive us, and what waits in it is its next server's.
 */
bool bow__listening_refuse_new(struct bow__listening *listening);

/** Idempotent. What waits is reset, unless the socket was inherited and others have it. */
void bow__listening_close(struct bow__listening *listening);

/** The same for one that nothing was accepted from, as if it had not been opened: a socket that was
 * inherited stays open, and its flags are as they were. (One that was bound only goes on
 * listening.) */
void bow__listening_undo(struct bow__listening *listening);

#endif
