/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_HAND_OVER_H
#define BOWLINE_RPC_SERVER_HAND_OVER_H

/*
 * The old one of two server processes: it offers its listening sockets on a Unix socket, to one
 * process at a time, and goes on serving until one of them serves.
 *
 *     offering ──► TAKE ──► sending ──► waiting ──► taken
 *         ▲          └──────────┴──────────┘ the other one ends, or takes too long
 *         └──────────────────────┘
 */

#include "rpc/server/server_state.h"

struct bow__hand_over;

/** Its sockets are another process's: what is left is to end. On the main loop. */
typedef void (*bow__hand_over_fn)(struct bow_server *server);

/** Bind and listen on `address`. Returns 0 or a negative errno with `ret_error` (may be NULL)
 * filled. Thread: any. */
int bow__hand_over_new(struct bow_server *server, const char *address, bow__hand_over_fn on_taken,
                       struct bow__hand_over **ret_hand_over,
                       struct bow_transport_error *ret_error);
/** Begin to offer. Thread: the main loop's. */
int bow__hand_over_start(struct bow__hand_over *hand_over);
/** Offer no more; who is about to take over is left alone with what it has. Idempotent; NULL is
 * allowed. Thread: the main loop's. */
void bow__hand_over_close(struct bow__hand_over *hand_over);
/** One that was not started, or is closed. NULL is allowed. */
void bow__hand_over_free(struct bow__hand_over *hand_over);

#endif
