/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Name resolution of the operating system's table: getaddrinfo, blocking, its
 * errors turned into errnos. Knows nothing of the thread it blocks.
 */

#include "transport/system/system_linux.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

static int error_of(int rc, int saved_errno)
{
    switch (rc) {
    case EAI_NONAME:
    case EAI_NODATA:
    case EAI_ADDRFAMILY:
        return -ENOENT;
    case EAI_AGAIN:
        return -EAGAIN;
    case EAI_MEMORY:
        return -ENOMEM;
    case EAI_SYSTEM:
        return saved_errno != 0 ? -saved_errno : -EIO;
    default:
        return -EIO;
    }
}

static int copy_addresses(const struct addrinfo *found, struct bow_sockaddr *addresses, int max)
{
    int n = 0;

    for (const struct addrinfo *info = found; info != NULL && n < max; info = info->ai_next) {
        if (info->ai_addrlen > sizeof(addresses[n].storage)) {
            continue;
        }
        memset(&addresses[n], 0, sizeof(addresses[n]));
        memcpy(&addresses[n].storage, info->ai_addr, info->ai_addrlen);
        addresses[n].len = info->ai_addrlen;
        n++;
    }
    return n;
}

int bow__linux_resolve(void *user, const char *host, uint16_t port, struct bow_sockaddr *addresses,
                       int max, const char **ret_reason)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    char service[8];

    (void)user;
    snprintf(service, sizeof(service), "%u", port);
    errno = 0;
    int rc = getaddrinfo(host, service, &hints, &found);
    if (rc != 0) {
        int saved_errno = errno;
        *ret_reason = gai_strerror(rc);
        return error_of(rc, saved_errno);
    }
    int n = copy_addresses(found, addresses, max);
    freeaddrinfo(found);
    return n;
}
