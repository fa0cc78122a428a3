/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which subchannels a list has.
 */

#include "rpc/client/subchannel_list.h"
#include "base/alloc.h"

void bow__subchannel_add(struct bow__subchannel_list *list, struct bow__subchannel *subchannels,
                         const struct bow__target_address *address)
{
    for (uint32_t i = 0; i < bow__subchannels_each(list); i++) {
        bow__subchannel_init(&subchannels[i], list, address, i > 0);
    }
    bow__list_push_back(&list->addresses, &subchannels[0].at);
    list->n_addresses++;
    list->n_in[BOW__CONNECTIVITY_IDLE]++;
}

void bow__subchannel_list_init(struct bow__subchannel_list *list)
{
    bow__list_init(&list->addresses);
    bow__list_init(&list->ready);
    bow__list_init(&list->further);
    bow__list_init(&list->conns);
}

void bow__subchannel_list_add_target(struct bow__subchannel_list *list,
                                     struct bow__subchannel *subchannels)
{
    const struct bow__target *target = &list->config->target;

    for (uint32_t i = 0; i < target->n_addresses; i++) {
        bow__subchannel_add(list, &subchannels[i * bow__subchannels_each(list)],
                            &target->addresses[i]);
    }
}

void bow__subchannel_fini(struct bow__subchannel *first)
{
    for (uint32_t i = 0; i < bow__subchannels_each(first->list); i++) {
        bow__free(first->list->config->context, first[i].addresses, sizeof(*first[i].addresses));
        first[i].addresses = NULL;
    }
}

void bow__subchannel_list_fini(struct bow__subchannel_list *list)
{
    for (struct bow__subchannel *first = bow__subchannel_list_first(list); first != NULL;
         first = bow__subchannel_next(first)) {
        bow__subchannel_fini(first);
    }
}

bool bow__subchannel_is_empty(const struct bow__subchannel *first)
{
    bool is_empty = true;

    for (uint32_t i = 0; i < bow__subchannels_each(first->list) && is_empty; i++) {
        is_empty = first[i].n_conns == 0 && first[i].connect == NULL;
    }
    return is_empty;
}
