/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_DISPATCH_DISPATCH_INSPECT_H
#define BOWLINE_RPC_SERVER_DISPATCH_DISPATCH_INSPECT_H

/* What a worker has in flight, for who asks what a server does: at which stage each call is is said
 * here. Changes nothing. */

#include "rpc/inspect/gather.h"

/** Of workers: each source is a struct bow__worker. */
extern const struct bow__gather_ops bow__dispatch_gather_ops;

#endif
