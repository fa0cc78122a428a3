/* SPDX-License-Identifier: 0BSD */
#ifndef BOWLINE_EXAMPLES_ETCD_ETCD_PAGES_H
#define BOWLINE_EXAMPLES_ETCD_ETCD_PAGES_H

/*
 * All keys below a prefix, page by page, as they were at one revision: what is put between two
 * pages is in none. Says what to ask next, and leaves the asking to others.
 *
 *     init ──► request ──► KV.Range ──► turn ──► request … until there is no more ──► fini
 */

#include "etcd.bow.h"

struct etcd_pages {
    Etcdserverpb__RangeRequest request; /* public, read-only: for the next page */
    uint8_t *prefix;                    /* private, as what follows */
    uint8_t *end;
    uint8_t *key;
    size_t n_prefix;
};

/** Begin with `prefix`, which is copied, and pages of `limit` keys. Returns: 0; -ENOMEM. */
BOW_MUST_USE int etcd_pages_init(struct etcd_pages *pages, const char *prefix, int64_t limit);
/** Begin anew, at the revision that there is then. */
void etcd_pages_rewind(struct etcd_pages *pages);
/** After `page`. Returns: 1: there is more; 0: that was all; -ENOMEM; -EBADMSG for a reply that
 * says there is more and has nothing, or no revision. */
BOW_MUST_USE int etcd_pages_turn(struct etcd_pages *pages, const Etcdserverpb__RangeResponse *page);
/** The revision of all pages; 0 before the first. */
int64_t etcd_pages_revision(const struct etcd_pages *pages);
void etcd_pages_fini(struct etcd_pages *pages);

#endif
