/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_ETCD_RESOLVER_H
#define BOWLINE_ETCD_RESOLVER_H

/* The table of scheme "etcd", which is part of its bow_etcd. */

struct bow_etcd;

void bow__etcd_resolver_init(struct bow_etcd *etcd);

#endif
