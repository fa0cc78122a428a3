/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_RESOLVE_DNS_CHANNEL_H
#define BOWLINE_RPC_CLIENT_RESOLVE_DNS_CHANNEL_H

/*
 * A channel of c-ares on a loop: its sockets are watched by the loop, its time-outs are a timer's,
 * so no thread waits, and no other name's answer is waited for. Knows nothing of what is asked.
 *
 * What c-ares allocates is the C library's, not the context's: it has one allocator a process.
 */

#include "base/text.h"
#include "transport/loop/loop.h"
#include <ares.h>
#include <bowline/timer.h>

/** A query has one, or two when its answer was truncated; of each server. */
#define BOW__DNS_SOCKETS 32

struct bow__dns_socket {
    struct bow__watch watch;
    struct bow__dns_channel *channel; /* NULL: it is free */
};

struct bow__dns_channel {
    struct bow_loop *loop;
    ares_channel ares;
    struct bow_timer timer; /* the next time-out of c-ares */
    struct bow__dns_socket sockets[BOW__DNS_SOCKETS];
};

/** `servers`: "192.0.2.1:53,[2001:db8::1]:53"; NULL: the system's. Returns 0, or a status of c-ares
 * with nothing left. Loop. */
int bow__dns_channel_init(struct bow__dns_channel *channel, struct bow_loop *loop,
                          const char *servers);
/** What is asked ends with ARES_EDESTRUCTION, in here. Takes what a failed init has left. */
void bow__dns_channel_fini(struct bow__dns_channel *channel);
/** Something was asked. */
void bow__dns_channel_arm(struct bow__dns_channel *channel);

#endif
