/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which of the sockets that another process has handed over is the one that an address means. Owns
 * those that nobody has taken. Knows nothing of acceptors, and not how the sockets came.
 */

#include "transport/channel/handed.h"
#include "base/alloc.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_SOCKETS 8u

static int grow(struct bow__handed *handed)
{
    uint32_t cap = handed->cap_sockets > 0 ? handed->cap_sockets * 2 : FIRST_SOCKETS;
    struct bow__handed_socket *sockets =
        bow__resize(handed->context, handed->sockets, handed->cap_sockets * sizeof(*sockets),
                    cap * sizeof(*sockets));

    if (sockets == NULL) {
        return -ENOMEM;
    }
    handed->sockets = sockets;
    handed->cap_sockets = cap;
    return 0;
}

int bow__handed_add(struct bow__handed *handed, int fd, const char *address, dev_t device,
                    ino_t inode)
{
    const struct bow_system *system = bow__context_system(handed->context);
    struct bow__handed_socket socket = {.fd = fd, .device = device, .inode = inode};

    int rc = system->getsockname(system->user, fd, &socket.bound);
    if (rc == 0 && handed->n_sockets == handed->cap_sockets) {
        rc = grow(handed);
    }
    if (rc < 0) {
        system->close(system->user, fd);
        return rc;
    }
    snprintf(socket.address, sizeof(socket.address), "%s", address);
    handed->sockets[handed->n_sockets++] = socket;
    return 0;
}

static const struct sockaddr_in *as_v4(const struct bow_sockaddr *address)
{
    return (const struct sockaddr_in *)(const void *)&address->storage;
}

static const struct sockaddr_in6 *as_v6(const struct bow_sockaddr *address)
{
    return (const struct sockaddr_in6 *)(const void *)&address->storage;
}

static bool is_same_host(const struct bow_sockaddr *a, const struct bow_sockaddr *b)
{
    if (a->storage.ss_family != b->storage.ss_family) {
        return false;
    }
    if (a->storage.ss_family == AF_INET) {
        return as_v4(a)->sin_addr.s_addr == as_v4(b)->sin_addr.s_addr;
    }
    return a->storage.ss_family == AF_INET6 && as_v6(a)->sin6_scope_id == as_v6(b)->sin6_scope_id &&
           memcmp(&as_v6(a)->sin6_addr, &as_v6(b)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

static bool is_any_host(const struct bow_sockaddr *address)
{
    return (address->storage.ss_family == AF_INET6 &&
            IN6_IS_ADDR_UNSPECIFIED(&as_v6(address)->sin6_addr)) ||
           (address->storage.ss_family == AF_INET && as_v4(address)->sin_addr.s_addr == INADDR_ANY);
}

static uint16_t port_of(const struct bow_sockaddr *address)
{
    return ntohs(address->storage.ss_family == AF_INET ? as_v4(address)->sin_port
                                                       : as_v6(address)->sin6_port);
}

/* Of two sockets that were bound to one path, one after the other, the path names the later. */
static bool is_named(const struct bow__handed_socket *socket)
{
    const char *path = bow__address_unix_path(&socket->bound);
    struct stat found;

    return path == NULL || (lstat(path, &found) == 0 && found.st_dev == socket->device &&
                            found.st_ino == socket->inode);
}

static bool is_wanted(const struct bow__handed_socket *socket, const struct bow__address *wanted,
                      const char *text)
{
    const struct bow_sockaddr *bound = &socket->bound;

    switch (wanted->kind) {
    case BOW__ADDRESS_UNIX:
        return bound->len == wanted->sockaddr.len &&
               memcmp(&bound->storage, &wanted->sockaddr.storage, bound->len) == 0 &&
               is_named(socket);
    case BOW__ADDRESS_NUMERIC:
        if (!is_same_host(bound, &wanted->sockaddr)) {
            return false;
        }
        break;
    case BOW__ADDRESS_ANY:
        if (!is_any_host(bound)) {
            return false;
        }
        break;
    default:
        return false;
    }
    uint16_t port = wanted->kind == BOW__ADDRESS_ANY ? wanted->port : port_of(&wanted->sockaddr);
    return port != 0 ? port == port_of(bound) : strcmp(text, socket->address) == 0;
}

struct bow__handed_socket *bow__handed_find(struct bow__handed *handed,
                                            const struct bow__address *wanted, const char *text)
{
    for (uint32_t i = 0; i < handed->n_sockets; i++) {
        struct bow__handed_socket *socket = &handed->sockets[i];
        if (socket->fd >= 0 && is_wanted(socket, wanted, text)) {
            return socket;
        }
    }
    return NULL;
}

void bow__handed_fini(struct bow__handed *handed)
{
    if (handed->context == NULL) {
        return;
    }
    for (uint32_t i = 0; i < handed->n_sockets; i++) {
        if (handed->sockets[i].fd >= 0) {
            close(handed->sockets[i].fd);
        }
    }
    bow__free(handed->context, handed->sockets, handed->cap_sockets * sizeof(*handed->sockets));
    *handed = (struct bow__handed){.context = NULL};
}
