/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_ETCD_ENDPOINT_H
#define BOWLINE_ETCD_ENDPOINT_H

/*
 * How a server is written down in etcd: its key and value, in both layouts, made and read. What
 * comes from etcd may have been written by anybody. Knows nothing of requests.
 */

#include <bowline/arena.h>
#include <bowline/etcd.h>
#include <bowline/slice.h>

/** A server that was read, in memory of its own. */
struct bow__etcd_endpoint {
    struct bow_arena *arena; /* in which this lies itself */
    struct bow_slice key;
    struct bow_etcd_server server;
};

/** Whether a client could use it as a target, by its looks: HOST:PORT, unix:PATH. */
bool bow__etcd_is_address(const char *address);

/** PREFIX SERVICE "/", in `arena`; NULL: there is no memory. */
const char *bow__etcd_service_key(struct bow_arena *arena, const char *prefix, const char *service);
/** The key of the server, below `service_key` (in go-zero's layout of `lease`), in `arena`; NULL:
 * there is no memory. */
const char *bow__etcd_server_key(struct bow_arena *arena, enum bow_etcd_layout layout,
                                 const char *service_key, const char *address, int64_t lease);

/** The value of a server's key, in `arena`. Returns 0; -ENOMEM; -EINVAL for a text that is no
 * UTF-8; -EMSGSIZE beyond BOW_LIMIT_ETCD_VALUE_BYTES. */
int bow__etcd_server_value(struct bow_arena *arena, enum bow_etcd_layout layout,
                           const struct bow_etcd_registration_options *options,
                           struct bow_slice *ret_value);

/** Read a key with its value. Returns 0; -ENOMEM; -EMSGSIZE for one beyond the limit; -EBADMSG for
 * what is no server's. */
int bow__etcd_endpoint_read(struct bow_context *context, enum bow_etcd_layout layout,
                            struct bow_slice key, struct bow_slice value,
                            struct bow__etcd_endpoint **ret_endpoint);
/** NULL is allowed. */
void bow__etcd_endpoint_free(struct bow__etcd_endpoint *endpoint);

#endif
