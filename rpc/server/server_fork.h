/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_SERVER_FORK_H
#define BOWLINE_RPC_SERVER_SERVER_FORK_H

/*
 * A server that is the parent process's.
 */

#include "rpc/server/server_state.h"

/** Whether a process that this one was forked from serves with it: its lock may be held for ever.
 * Thread: any. */
bool bow__server_is_foreign(const struct bow_server *server);
/** Whether such a process runs one of its loops. Thread: who starts it. */
bool bow__server_has_foreign_loop(const struct bow_server *server);
/** Say so in its error, and return -ECHILD. */
int bow__server_refuse_foreign(struct bow_server *server, const char *stage);
/** Close what can be of this process's copies of its descriptors; its memory stays for ever. */
void bow__server_forsake(struct bow_server *server);

#endif
