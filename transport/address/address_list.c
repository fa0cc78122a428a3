/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The order in which the addresses of a name are tried, and what is left of them. Knows nothing of
 * connections.
 */

#include "transport/address/address_list.h"

#include <string.h>

static int family_of(const struct bow_sockaddr *address)
{
    return address->storage.ss_family;
}

static bool is_same(const struct bow_sockaddr *a, const struct bow_sockaddr *b)
{
    return a->len == b->len && memcmp(&a->storage, &b->storage, a->len) == 0;
}

/* The one that served last, if the name still has it. */
static int first_of(const struct bow__address_list *list, const struct bow__resolved *resolved)
{
    for (int i = 0; i < resolved->n && list->good.len > 0; i++) {
        if (is_same(&resolved->addresses[i], &list->good)) {
            return i;
        }
    }
    return 0;
}

/* The first that is not taken, of that family if there is one. */
static int choose(const struct bow__resolved *resolved, const bool *is_taken, int family)
{
    int chosen = -1;

    for (int i = 0; i < resolved->n; i++) {
        if (!is_taken[i] && family_of(&resolved->addresses[i]) == family) {
            return i;
        }
        if (!is_taken[i] && chosen < 0) {
            chosen = i;
        }
    }
    return chosen;
}

void bow__address_list_fill(struct bow__address_list *list, const struct bow__resolved *resolved)
{
    bool is_taken[BOW__RESOLVE_MAX] = {false};
    int chosen = first_of(list, resolved);

    bow__address_list_clear(list);
    while (chosen >= 0) {
        int family = family_of(&resolved->addresses[chosen]);
        is_taken[chosen] = true;
        list->addresses[list->n++] = resolved->addresses[chosen];
        chosen = choose(resolved, is_taken, family == AF_INET6 ? AF_INET : AF_INET6);
    }
}

void bow__address_list_clear(struct bow__address_list *list)
{
    memset(list->is_spent, 0, sizeof(list->is_spent));
    list->n = 0;
    list->connected = 0;
}

int bow__address_list_next(const struct bow__address_list *list, int from)
{
    for (int i = from; i < list->n; i++) {
        if (!list->is_spent[i]) {
            return i;
        }
    }
    return -1;
}

void bow__address_list_remember(struct bow__address_list *list, int index)
{
    list->good = list->addresses[index];
}

void bow__address_list_forget(struct bow__address_list *list)
{
    list->good.len = 0;
}
