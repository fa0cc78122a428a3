/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What keeps calls from going, for the texts that say so.
 */

#include "rpc/client/balancer_stage.h"

#include <string.h>

static struct bow__subchannel *first_of(const struct bow__balancer *balancer)
{
    return bow__subchannel_list_first(&balancer->subchannels);
}

/* Why nothing newer is known of the name; empty, if it is. */
static void describe_unresolved(const struct bow__balancer *balancer, struct bow__text *text)
{
    if (balancer->names != NULL && balancer->names->error.len > 0) {
        bow__text_printf(text, "%sresolving %s: %s", text->len > 0 ? "; " : "",
                         balancer->subchannels.config->target.text, balancer->names->error.bytes);
    }
}

void bow__balancer_describe_failures(const struct bow__balancer *balancer, struct bow__text *text)
{
    const struct bow__subchannel *first = first_of(balancer);

    if (balancer->subchannels.n_addresses > 1) {
        bow__text_printf(text, "none of %u addresses takes calls: ",
                         (unsigned)balancer->subchannels.n_addresses);
    }
    for (const struct bow__subchannel *at = first; at != NULL; at = bow__subchannel_next(at)) {
        bow__text_printf(text, "%s%s", at != first ? "; " : "", at->last_error.bytes);
    }
    describe_unresolved(balancer, text);
}

static const struct bow__subchannel *later_failed(const struct bow__subchannel *last,
                                                  const struct bow__subchannel *subchannel)
{
    bool has_failed = subchannel->backoff_ns > 0 || bow__subchannel_is_unhealthy(subchannel);

    return has_failed && (last == NULL || subchannel->failed_at_ns > last->failed_at_ns)
               ? subchannel
               : last;
}

const struct bow__subchannel *bow__balancer_last_failed(const struct bow__balancer *balancer)
{
    const struct bow__subchannel *last = NULL;

    for (const struct bow__subchannel *at = first_of(balancer); at != NULL;
         at = bow__subchannel_next(at)) {
        for (uint32_t i = 0; i < bow__subchannels_each(at->list); i++) {
            last = later_failed(last, &at[i]);
        }
    }
    return last;
}

bool bow__balancer_lacks_streams(const struct bow__balancer *balancer)
{
    const struct bow__subchannel_list *list = &balancer->subchannels;
    bool lacks = !bow__list_is_empty(&list->further);

    for (const struct bow__subchannel *at = bow__subchannel_list_first(list); at != NULL && !lacks;
         at = bow__subchannel_next(at)) {
        lacks = at->state == BOW__CONNECTIVITY_READY && !bow__client_conn_is_candidate(at->conn);
    }
    return lacks;
}

static bool is_connecting(const struct bow__subchannel *subchannel)
{
    return subchannel->connect != NULL &&
           strcmp(bow_connect_stage(subchannel->connect), "resolving") != 0;
}

const char *bow__balancer_stage(const struct bow__balancer *balancer)
{
    bool resolves = balancer->subchannels.n_addresses == 0;

    for (const struct bow__subchannel *at = first_of(balancer); at != NULL;
         at = bow__subchannel_next(at)) {
        if (is_connecting(at)) {
            return "connecting to";
        }
        if (bow__subchannel_awaits_health(at)) {
            return "waiting for the health of";
        }
        resolves = resolves || at->connect != NULL;
    }
    return resolves ? "resolving the name of" : "connecting to";
}

const struct bow__client_conn *bow__balancer_silent(const struct bow__balancer *balancer)
{
    for (const struct bow__subchannel *at = first_of(balancer); at != NULL;
         at = bow__subchannel_next(at)) {
        const struct bow__client_conn *conn = bow__subchannel_silent_candidate(at);
        if (conn != NULL) {
            return conn;
        }
    }
    return NULL;
}
