/* SPDX-License-Identifier: 0BSD */
#ifndef BOWLINE_EXAMPLES_SHOP_SHOP_H
#define BOWLINE_EXAMPLES_SHOP_SHOP_H

/* What the examples of handlers that call on share: the services behind, and somebody who asks. */

#include "shop.bow.h"

#define SHOP_BACK "inproc:back"
#define SHOP_FRONT "inproc:front"

/** A server with Stock and Prices on SHOP_BACK, started; free it. NULL when that failed. */
struct bow_server *shop_start_back(struct bow_context *context);

/** Add Front to `server` (which may be NULL), start it. Returns 0, or says on stderr what is wrong.
 */
int shop_start_front(struct bow_server *server);

/** Ask SHOP_FRONT for a quote, and print it. Returns 0 when there was one. */
int shop_ask(struct bow_context *context, const char *name);

#endif
