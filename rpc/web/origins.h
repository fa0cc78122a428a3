/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_WEB_ORIGINS_H
#define BOWLINE_RPC_WEB_ORIGINS_H

/*
 * The origins ("https://shop.example", "http://127.0.0.1:8080") whose pages may call a server that
 * is another: what browsers ask by CORS (https://fetch.spec.whatwg.org/#http-cors-protocol).
 */

#include "base/text.h"
#include <bowline/slice.h>
#include <stdbool.h>
#include <stddef.h>

struct bow_context;
struct bow__web_origins;

/** Whether it is a list of origins, with commas and blanks between, "*" for all; NULL is an empty
 * one. Returns 0, or -EINVAL, and appends to `reason` which is no origin. */
int bow__web_origins_check(const char *list, struct bow__text *reason);
/** Keep one that is. Returns 0, with NULL for an empty list; or -ENOMEM. */
int bow__web_origins_new(struct bow_context *context, const char *list,
                         struct bow__web_origins **ret_origins);
/** NULL is allowed. */
void bow__web_origins_free(struct bow_context *context, struct bow__web_origins *origins);
/** Whether it is one of them; NULL has none. Thread: any. */
bool bow__web_origins_have(const struct bow__web_origins *origins, struct bow_slice origin);

#endif
