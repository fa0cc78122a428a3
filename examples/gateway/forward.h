/* SPDX-License-Identifier: 0BSD */
#ifndef BOWLINE_EXAMPLES_GATEWAY_FORWARD_H
#define BOWLINE_EXAMPLES_GATEWAY_FORWARD_H

/* One call handed on: what comes on it goes to a server behind, what that answers goes back. */

#include <bowline/generic.h>

/* A fallback handler; `user` is the struct bow_client of the servers behind, on the loops of the
 * server that the call came to. */
void forward_call(struct bow_call *call, void *user);

#endif
