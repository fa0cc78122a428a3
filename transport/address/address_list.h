/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_ADDRESS_ADDRESS_LIST_H
#define BOWLINE_TRANSPORT_ADDRESS_ADDRESS_LIST_H

/*
 * The addresses of a name, in the order in which they are tried, and which of them have been. It
 * outlives the connections that are made from it: one that takes a connection and then does not
 * serve is followed by those that are left, and the one that served is the first the next time.
 * Zeroed memory is an empty list.
 */

#include "transport/address/resolver.h"

struct bow__address_list {
    struct bow_sockaddr addresses[BOW__RESOLVE_MAX];
    bool is_spent[BOW__RESOLVE_MAX]; /* has failed, or was connected to */
    int n;                           /* 0: not resolved */
    int connected;                   /* the last that was connected to */
    struct bow_sockaddr good;        /* the last that served; its `len` is 0: none has */
};

/** Take what a name has, at least one: the one that served last first, then, as RFC 8305 (section
 * 4) says, the families in turn. */
void bow__address_list_fill(struct bow__address_list *list, const struct bow__resolved *resolved);
/** Forget all but the one that served last. */
void bow__address_list_clear(struct bow__address_list *list);
/** The first that is left from index `from` on, or -1. */
int bow__address_list_next(const struct bow__address_list *list, int from);
/** The address at `index` has served. */
void bow__address_list_remember(struct bow__address_list *list, int index);
/** None has, as far as is known. */
void bow__address_list_forget(struct bow__address_list *list);

#endif
