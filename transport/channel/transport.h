/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_CHANNEL_TRANSPORT_H
#define BOWLINE_TRANSPORT_CHANNEL_TRANSPORT_H

/*
 * How connections of one kind of address are made and taken: sockets of the system
 * (socket.c), names within the process (transport/memory/inproc.c). What comes of it is a
 * struct bow__socket, and from there on channels know no kinds.
 *
 * bow__transports lists them all; one that is new is a table of its own and a line there.
 */

#include "transport/address/address.h"
#include "transport/channel/socket.h"
#include "transport/channel/unix_file.h"

#include <bowline/channel.h>

struct bow__transport;

/** Who may listen on the same port. */
enum bow__shares {
    BOW__SHARES_NOTHING,  /* nobody */
    BOW__SHARES_AMONG_US, /* sockets that are opened beside this one */
    BOW__SHARES_WITH_ALL, /* other processes as well */
};

/** What listens on an address. */
struct bow__listening {
    const struct bow__transport *transport; /* NULL: never opened */
    const struct bow_system *system;
    int fd;                     /* -1: closed, or without a descriptor */
    void *object;               /* the transport's own, instead of `fd`; NULL: closed, or none */
    struct bow__source *source; /* tells of connections that wait; NULL: the loop's poller */
    uint16_t port;
    enum bow__shares shares; /* set before opening */
    bool inherited;
    int inherited_flags; /* F_GETFL and F_GETFD, as it was handed down */
    int inherited_fd_flags;
    struct bow_sockaddr peer;            /* whom all connections come from, without `fd` */
    struct bow__unix_rights unix_rights; /* set before opening */
    struct bow__unix_file unix_file;     /* ours to remove */
};

struct bow__transport {
    /** Whether addresses of that kind are its own. */
    bool (*serves)(enum bow__address_kind kind);

    /** Begin to connect, over IP from `source` if that is set. Returns 1 when `*ret_socket` is
     * connected, 0 when that is under way and told by BOW_POLL_OUT, -EAGAIN when too many wait
     * there, or a negative errno. */
    int (*connect)(struct bow_context *context, const struct bow_sockaddr *address,
                   const struct bow_sockaddr *source, struct bow__socket *ret_socket);
    /** Whether a connection has met itself: both ends have one name. It is closed by a reset then.
     * NULL: that cannot be. */
    bool (*is_own_peer)(const struct bow__socket *socket);
    /** Close a connection that no channel was made of. */
    void (*abandon)(const struct bow__socket *socket);
    /** What to do about a failure to connect, in words, where it is not the usual; or NULL. */
    const char *(*advice)(int error);

    /** As bow__listening_open(), `address` being no name, and `listening` being of this transport
     * and closed. */
    int (*listen)(struct bow__listening *listening, struct bow_context *context,
                  const struct bow__address *address, const char *text, int backlog,
                  struct bow_transport_error *ret_error);
    /** These four as those of listen.h. */
    int (*accept)(struct bow__listening *listening, struct bow__socket *ret_socket,
                  struct bow_sockaddr *ret_peer);
    bool (*refuse_new)(struct bow__listening *listening);
    void (*close)(struct bow__listening *listening);
    void (*undo)(struct bow__listening *listening);
};

/** Sockets of the system. */
extern const struct bow__transport bow__socket_transport;

/** All there are, NULL at the end: see transport/transports.c. */
extern const struct bow__transport *const bow__transports[];

/** The one that serves addresses of that kind. */
static inline const struct bow__transport *bow__transport_of(enum bow__address_kind kind)
{
    const struct bow__transport *const *at = bow__transports;

    while (*at != NULL && !(*at)->serves(kind)) {
        at++;
    }
    return *at;
}

#endif
