/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_CHANNEL_LISTEN_H
#define BOWLINE_TRANSPORT_CHANNEL_LISTEN_H

/*
 * From an address to what listens there (a descriptor, or a name within the context), and
 * back. Knows nothing of loops.
 */

#include "transport/address/address.h"
#include "transport/memory/inproc.h"

#include <bowline/channel.h>

struct bow__listening {
    int fd;                              /* -1: closed, or inproc */
    struct bow__inproc_listener *inproc; /* instead of `fd`; NULL: closed, or a descriptor */
    uint16_t port;
    bool shares_port; /* set before opening: others may listen on the port as well */
    bool inherited;
    struct bow_sockaddr peer;                /* whom all connections of an inproc name come from */
    char unix_path[BOW__ADDRESS_TEXT_BYTES]; /* ours to unlink; "" for none */
};

static inline bool bow__listening_is_open(const struct bow__listening *listening)
{
    return listening->fd >= 0 || listening->inproc != NULL;
}

/** Bind and listen; `listening` is zeroed but for shares_port. A name is resolved at once,
 * blocking. The descriptor of "fd:N" is taken on success only. Returns 0, or a negative errno with
 * `ret_error` (may be NULL) filled. */
int bow__listening_open(struct bow__listening *listening, struct bow_context *context,
                        const char *address, int backlog, struct bow_transport_error *ret_error);

/** One more socket on the port of `first`, which shares it. Returns 0 or a negative errno. */
int bow__listening_open_beside(struct bow__listening *listening, const struct bow_system *system,
                               const struct bow__listening *first, int backlog);

/** Take a connection that waits: `*ret_socket` is the caller's to close. Returns 0, or a negative
 * errno as accept() says it. */
int bow__listening_accept(struct bow__listening *listening, const struct bow_system *system,
                          struct bow__socket *ret_socket, struct bow_sockaddr *ret_peer);

/* unlisten.c */

/**
 * Let no further connection come; those that wait can still be accepted. Of TCP the kernel goes on
 * completing what has begun. Returns whether what waits is ours to take: an inherited socket may
 * outlive us, and what waits in it is its next server's.
 */
bool bow__listening_fence(struct bow__listening *listening, const struct bow_system *system);

/** Idempotent. What waits is reset, unless the socket was inherited and others have it. */
void bow__listening_close(struct bow__listening *listening, const struct bow_system *system);

#endif
