/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_RESOLVE_DNS_SRV_H
#define BOWLINE_RPC_CLIENT_RESOLVE_DNS_SRV_H

/*
 * Answers to a question for SRV (RFC 2782), read. Bytes of a stranger.
 */

#include <ares.h>
#include <stdint.h>

/** The records, of any priority; free with ares_free_data(). `*ret_ttl`: the least of theirs, in
 * seconds. Returns a status of c-ares. */
int bow__dns_srv_parse(const unsigned char *bytes, int len, struct ares_srv_reply **ret_records,
                       uint32_t *ret_ttl);

/** Those of the best priority, at most `max`. Returns how many. */
uint32_t bow__dns_srv_best(const struct ares_srv_reply *records,
                           const struct ares_srv_reply **ret_best, uint32_t max);

#endif
