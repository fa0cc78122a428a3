/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * SRV: c-ares reads the records, and leaves out how long they hold.
 */

#include "rpc/client/resolve/dns_srv.h"

#include <arpa/nameser.h>
#include <stdbool.h>

/* Bytes of a record between its name and its data: type, class, TTL, length. */
#define FIXED_BYTES 10
#define HEADER_BYTES 12

static unsigned get16(const unsigned char *at)
{
    return (unsigned)at[0] << 8 | at[1];
}

static uint32_t get32(const unsigned char *at)
{
    return (uint32_t)get16(at) << 16 | get16(at + 2);
}

/* The offset behind the name at `at`, or -1. */
static long skip_name(const unsigned char *bytes, int len, long at)
{
    char *name = NULL;
    long n_encoded = 0;

    if (at >= len || ares_expand_name(bytes + at, bytes, len, &name, &n_encoded) != ARES_SUCCESS) {
        return -1;
    }
    ares_free_string(name);
    return at + n_encoded;
}

/* c-ares has read them, so what is amiss here was not there. */
static uint32_t least_ttl(const unsigned char *bytes, int len)
{
    uint32_t least = UINT32_MAX;
    long at = HEADER_BYTES;

    if (len < HEADER_BYTES) {
        return 0;
    }
    for (unsigned n = get16(bytes + 4); n > 0 && at >= 0; n--) {
        at = skip_name(bytes, len, at);
        at = at >= 0 ? at + 4 : -1;
    }
    for (unsigned n = get16(bytes + 6); n > 0 && at >= 0; n--) {
        at = skip_name(bytes, len, at);
        if (at < 0 || at + FIXED_BYTES > len) {
            break;
        }
        uint32_t ttl = get32(bytes + at + 4);
        least = ttl < least ? ttl : least;
        at += FIXED_BYTES + (long)get16(bytes + at + 8);
    }
    return least != UINT32_MAX ? least : 0;
}

int bow__dns_srv_parse(const unsigned char *bytes, int len, struct ares_srv_reply **ret_records,
                       uint32_t *ret_ttl)
{
    int status = ares_parse_srv_reply(bytes, len, ret_records);

    if (status == ARES_SUCCESS) {
        *ret_ttl = least_ttl(bytes, len);
    }
    return status;
}

/* RFC 2782: a target of "." says that there is no such service. */
static bool is_target(const struct ares_srv_reply *record)
{
    return record->host != NULL && record->host[0] != '\0' && record->host[0] != '.';
}

uint32_t bow__dns_srv_best(const struct ares_srv_reply *records,
                           const struct ares_srv_reply **ret_best, uint32_t max)
{
    unsigned best = UINT16_MAX + 1;
    uint32_t n = 0;

    for (const struct ares_srv_reply *at = records; at != NULL; at = at->next) {
        best = is_target(at) && at->priority < best ? at->priority : best;
    }
    for (const struct ares_srv_reply *at = records; at != NULL && n < max; at = at->next) {
        if (is_target(at) && at->priority == best) {
            ret_best[n++] = at;
        }
    }
    return n;
}
