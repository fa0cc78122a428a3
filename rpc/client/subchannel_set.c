/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What there is against what a resolver says, and the end of what is gone.
 */

#include "rpc/client/subchannel_set.h"
#include "base/alloc.h"
#include "base/clock.h"
#include <bowline/limits.h>

#include <errno.h>

/* One address, with its subchannels behind it. */
struct block {
    struct bow__target_address address;
    struct bow_resolver_address said; /* of it: what it is told by from others */
    struct bow__subchannel subchannels[];
};

static struct block *block_of(struct bow__subchannel *first)
{
    return BOW__CONTAINER(first, struct block, subchannels);
}

static struct bow_context *context_of(const struct bow__subchannel_set *set)
{
    return set->list->config->context;
}

static uint64_t now_of(const struct bow__subchannel_set *set)
{
    return bow_loop_now(set->timer.loop);
}

static size_t block_bytes(const struct bow__subchannel_set *set)
{
    return sizeof(struct block) + bow__subchannels_each(set->list) * sizeof(struct bow__subchannel);
}

static void free_block(struct bow__subchannel_set *set, struct block *block)
{
    bow__target_address_fini(&block->address, context_of(set));
    bow__free(context_of(set), block, block_bytes(set));
}

/* Not in the list yet. */
static struct block *new_block(struct bow__subchannel_set *set,
                               const struct bow_resolver_address *said)
{
    struct block *block = bow__alloc_zero(context_of(set), block_bytes(set));

    if (block == NULL) {
        return NULL;
    }
    if (bow__target_address_init(&block->address, context_of(set), &set->list->config->target,
                                 said) < 0) {
        bow__free(context_of(set), block, block_bytes(set));
        return NULL;
    }
    block->said = (struct bow_resolver_address){
        .address = block->address.text,
        .server_name = said->server_name != NULL ? block->address.server_name : NULL,
        .locality = block->address.locality,
    };
    return block;
}

/* The end of those that are gone */

static bool is_of(const struct bow__client_conn *conn, const struct bow__subchannel *first)
{
    return conn->subchannel >= first &&
           conn->subchannel < first + bow__subchannels_each(first->list);
}

static void cut(struct bow__subchannel *first)
{
    struct bow__link *conns = &first->list->conns;
    struct bow__link *next;

    first->drained_until_ns = BOW_NEVER;
    for (struct bow__link *at = conns->next; at != conns; at = next) {
        struct bow__client_conn *conn = BOW__CONTAINER(at, struct bow__client_conn, at);
        next = at->next;
        if (is_of(conn, first)) {
            bow__conn_close(&conn->conn,
                            "the name has this address no more, and its calls had their time "
                            "(BOW_LIMIT_RESOLVED_DRAIN_NS)",
                            0);
        }
    }
}

static void free_drained(struct bow__subchannel_set *set, struct bow__subchannel *first)
{
    bow__list_remove(&first->at);
    set->n_drained--;
    bow__subchannel_fini(first);
    free_block(set, block_of(first));
}

static void arm(struct bow__subchannel_set *set)
{
    uint64_t next_ns = BOW_NEVER;

    for (struct bow__link *at = set->drained.next; at != &set->drained; at = at->next) {
        const struct bow__subchannel *first = bow__subchannel_at(at);
        next_ns =
            bow__subchannel_is_empty(first) ? 0 : bow__time_min(next_ns, first->drained_until_ns);
    }
    bow_timer_start_at(&set->timer, next_ns);
}

static void on_timer(struct bow_timer *timer, void *user)
{
    struct bow__subchannel_set *set = user;
    struct bow__link *next;

    (void)timer;
    for (struct bow__link *at = set->drained.next; at != &set->drained; at = next) {
        struct bow__subchannel *first = bow__subchannel_at(at);
        next = at->next;
        if (bow__subchannel_is_empty(first)) {
            free_drained(set, first);
        } else if (first->drained_until_ns <= now_of(set)) {
            cut(first);
        }
    }
    arm(set);
}

void bow__subchannel_set_reap(struct bow__subchannel_set *set)
{
    bow_timer_start_at(&set->timer, 0);
}

void bow__subchannel_set_stop(struct bow__subchannel_set *set)
{
    bow_timer_stop(&set->timer);
}

bool bow__subchannel_set_has_attempt(const struct bow__subchannel_set *set)
{
    for (struct bow__link *at = set->drained.next; at != &set->drained; at = at->next) {
        const struct bow__subchannel *first = bow__subchannel_at(at);
        for (uint32_t i = 0; i < bow__subchannels_each(set->list); i++) {
            if (first[i].connect != NULL) {
                return true;
            }
        }
    }
    return false;
}

/* One that was cut is there until its connections have closed. */
static void cut_oldest(struct bow__subchannel_set *set)
{
    struct bow__link *at = set->drained.next;

    while (at != &set->drained && bow__subchannel_at(at)->drained_until_ns == BOW_NEVER) {
        at = at->next;
    }
    if (at != &set->drained) {
        cut(bow__subchannel_at(at));
    }
}

static void drain(struct bow__subchannel_set *set, struct bow__subchannel *first)
{
    bow__subchannel_drain(first, bow__time_add(now_of(set), BOW_LIMIT_RESOLVED_DRAIN_NS));
    bow__list_push_back(&set->drained, &first->at);
    if (++set->n_drained > BOW_LIMIT_RESOLVED_ADDRESSES) {
        cut_oldest(set);
    }
}

/* Updates */

/* `of`: those of `said` that are there. */
static void find_known(const struct bow__subchannel_set *set, const struct bow__address_set *said,
                       struct bow__subchannel **of)
{
    for (struct bow__subchannel *first = bow__subchannel_list_first(set->list); first != NULL;
         first = bow__subchannel_next(first)) {
        int i = bow__address_set_find(said, &block_of(first)->said);
        if (i >= 0) {
            of[i] = first;
        }
    }
}

/* The others. Returns 0, or -ENOMEM with none made. */
static int make_others(struct bow__subchannel_set *set, const struct bow__address_set *said,
                       struct bow__subchannel **of)
{
    for (uint32_t i = 0; i < said->n; i++) {
        if (of[i] != NULL) {
            continue;
        }
        struct block *block = new_block(set, &said->items[i]);
        if (block != NULL) {
            of[i] = block->subchannels;
            continue;
        }
        for (uint32_t k = 0; k < i; k++) {
            if (of[k]->list == NULL) {
                free_block(set, block_of(of[k]));
            }
        }
        return -ENOMEM;
    }
    return 0;
}

/* New ones have no list. What is left in front of them is gone. */
static void arrange(struct bow__subchannel_set *set, const struct bow__address_set *said,
                    struct bow__subchannel **of)
{
    uint32_t n_gone = set->list->n_addresses;

    for (uint32_t i = 0; i < said->n; i++) {
        struct block *block = block_of(of[i]);
        block->address.weight = said->items[i].weight;
        if (of[i]->list == NULL) {
            bow__subchannel_add(set->list, of[i], &block->address);
            continue;
        }
        bow__list_remove(&of[i]->at);
        bow__list_push_back(&set->list->addresses, &of[i]->at);
        n_gone--;
    }
    for (; n_gone > 0; n_gone--) {
        drain(set, bow__subchannel_list_first(set->list));
    }
}

int bow__subchannel_set_update(struct bow__subchannel_set *set, const struct bow__address_set *said)
{
    struct bow__subchannel **of = bow__alloc_zero(context_of(set), said->n * sizeof(*of));

    if (of == NULL) {
        return -ENOMEM;
    }
    find_known(set, said, of);
    int rc = make_others(set, said, of);
    if (rc == 0) {
        arrange(set, said, of);
        arm(set);
    }
    bow__free(context_of(set), of, said->n * sizeof(*of));
    return rc;
}

/* Life */

void bow__subchannel_set_init(struct bow__subchannel_set *set, struct bow__subchannel_list *list)
{
    set->list = list;
    bow__list_init(&set->drained);
    bow_timer_init(&set->timer, list->calls->loop, on_timer, set);
}

void bow__subchannel_set_fini(struct bow__subchannel_set *set)
{
    struct bow__subchannel *first;

    while (!bow__list_is_empty(&set->drained)) {
        free_drained(set, bow__subchannel_at(set->drained.next));
    }
    if (set->list->config->target.resolver == NULL) {
        bow__subchannel_list_fini(set->list);
        return;
    }
    while ((first = bow__subchannel_list_first(set->list)) != NULL) {
        bow__list_remove(&first->at);
        bow__subchannel_fini(first);
        free_block(set, block_of(first));
    }
}
