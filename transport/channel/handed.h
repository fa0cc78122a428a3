/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_CHANNEL_HANDED_H
#define BOWLINE_TRANSPORT_CHANNEL_HANDED_H

/*
 * Listening sockets that another process has handed to this one, until an acceptor takes them. How
 * they come is not known here.
 */

#include "transport/address/address.h"

#include <sys/types.h>

/** One socket, still listening in the process that it comes from. */
struct bow__handed_socket {
    int fd;     /* -1: taken, or closed */
    bool taken; /* an acceptor listens on it */
    struct bow_sockaddr bound;
    dev_t device; /* of a Unix socket's file, as that process knows it; 0: it has none */
    ino_t inode;
    char address[BOW__HOST_BYTES]; /* as it stands in that process's options */
};

struct bow__handed {
    struct bow_context *context;
    struct bow__handed_socket *sockets;
    uint32_t n_sockets;
    uint32_t cap_sockets;
};

/** Add one. Takes `fd`, also on failure. Returns 0; -ENOMEM; what asking for its address failed
 * with. */
int bow__handed_add(struct bow__handed *handed, int fd, const char *address, dev_t device,
                    ino_t inode);
/**
 * The next socket that listens where `wanted`, written as `text`, says: port 0 is any port that
 * `text` was given in the other process. A Unix socket has to be the one that its path names now.
 * NULL: none is left. The caller takes its descriptor and says so.
 */
struct bow__handed_socket *bow__handed_find(struct bow__handed *handed,
                                            const struct bow__address *wanted, const char *text);
/** Close what nobody took. A zeroed one is allowed. */
void bow__handed_fini(struct bow__handed *handed);

#endif
