/* SPDX-License-Identifier: 0BSD */
#ifndef BOWLINE_EXAMPLES_ETCD_ETCD_KV_H
#define BOWLINE_EXAMPLES_ETCD_ETCD_KV_H

/*
 * Keys and values, in calls that wait for their answers: of an etcd opened without a loop, or on
 * another thread than its loop's.
 *
 * Each fills `*ret_result` (to be empty), which the caller finishes with bow_result_fini(), and
 * returns the reply in it, or NULL. UNAVAILABLE and DEADLINE_EXCEEDED of what changes something say
 * that it may have been done: read before you do it again, or make it depend on a revision.
 */

#include "etcd.h"

const Etcdserverpb__PutResponse *etcd_put(struct etcd *etcd, const char *key, const char *value,
                                          int64_t lease, struct bow_result *ret_result);

/** The reply has one key, or none. */
const Etcdserverpb__RangeResponse *etcd_get(struct etcd *etcd, const char *key,
                                            struct bow_result *ret_result);

const Etcdserverpb__DeleteRangeResponse *etcd_delete(struct etcd *etcd, const char *key,
                                                     struct bow_result *ret_result);

/** Forget what happened before `revision`. */
const Etcdserverpb__CompactionResponse *etcd_compact(struct etcd *etcd, int64_t revision,
                                                     struct bow_result *ret_result);

/** Put only while the key's mod_revision is `revision`, 0 for a key that there is not. The reply's
 * `succeeded` says whether; if not, its one response is a range with what is there. */
const Etcdserverpb__TxnResponse *etcd_put_if(struct etcd *etcd, const char *key, const char *value,
                                             int64_t revision, struct bow_result *ret_result);

/** Told of a page. Its memory ends when this returns. */
typedef void (*etcd_page_fn)(const Etcdserverpb__RangeResponse *page, void *user);

/** All that begin with `prefix`, in pages of `limit` keys, all of them as at the first page's
 * revision. Returns: whether it came to the end, else `*ret_result` says why not (with OK: there
 * was no memory, or a reply made no sense). */
bool etcd_range(struct etcd *etcd, const char *prefix, int64_t limit, etcd_page_fn fn, void *user,
                struct bow_result *ret_result);

#endif
