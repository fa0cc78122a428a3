/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Owns nothing: looks at the subchannels and says which is to connect. Must not know calls that
 * wait.
 */

#include "rpc/client/further.h"

/* Its server takes no call at all on it. */
static bool is_of_no_use(const struct bow__subchannel *subchannel)
{
    return subchannel->state == BOW__CONNECTIVITY_READY &&
           bow__conn_n_calls(&subchannel->conn->conn) == 0 &&
           !bow__client_conn_takes_calls(subchannel->conn);
}

/* The first that is not in use; or NULL, also while one of them rests, which it does until its
 * timer tells, or is of no use, as another would be. `*ret_n_used`: how many are in use. */
static struct bow__subchannel *find_unused(struct bow__subchannel *first, uint32_t *ret_n_used)
{
    struct bow__subchannel *unused = NULL;

    *ret_n_used = 0;
    for (uint32_t i = 1; i < bow__subchannels_each(first->list); i++) {
        struct bow__subchannel *further = &first[i];
        if (bow__subchannel_is_resting(further)) {
            bow__subchannel_request_connection(further, false);
            return NULL;
        }
        if (is_of_no_use(further)) {
            return NULL;
        }
        if (further->state > BOW__CONNECTIVITY_IDLE) {
            (*ret_n_used)++;
        } else if (unused == NULL) {
            unused = further;
        }
    }
    return unused;
}

struct bow__subchannel *bow__further_find(const struct bow__subchannel_list *list)
{
    struct bow__subchannel *found = NULL;
    uint32_t least = UINT32_MAX;

    for (struct bow__subchannel *first = bow__subchannel_list_first(list); first != NULL;
         first = bow__subchannel_next(first)) {
        uint32_t n_used;
        struct bow__subchannel *unused = find_unused(first, &n_used);
        if (unused != NULL && n_used < least && first->state == BOW__CONNECTIVITY_READY &&
            !bow__client_conn_is_candidate(first->conn) && !is_of_no_use(first)) {
            found = unused;
            least = n_used;
        }
    }
    return found;
}
