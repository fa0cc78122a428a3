/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the raw server and client share: addresses and socket options. */

#include "raw.h"
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sockaddr_in raw_address(const char *text)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    char host[64];
    const char *colon = strrchr(text, ':');
    if (colon == NULL || (size_t)(colon - text) >= sizeof(host)) {
        fprintf(stderr, "'%s' is no HOST:PORT\n", text);
        exit(2);
    }
    memcpy(host, text, (size_t)(colon - text));
    host[colon - text] = '\0';
    address.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) {
        fprintf(stderr, "'%s' is no IPv4 address\n", host);
        exit(2);
    }
    return address;
}

void raw_tune(int fd)
{
    int one = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
}
