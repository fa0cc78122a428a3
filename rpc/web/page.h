/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_WEB_PAGE_H
#define BOWLINE_RPC_WEB_PAGE_H

/* The one document of a server, which browsers get at "/": its bytes, and what its head says of
 * them. Made once and shared by all threads, however many read it slowly. */

#include "base/arena.h"
#include "base/block.h"
#include "base/text.h"
#include "rpc/web/fields.h"
#include <bowline/slice.h>
#include <stdbool.h>

struct bow__web_page {
    struct bow_context *context;
    size_t size; /* of this, with its texts */
    struct bow__block *block;
    size_t n_bytes;
    char policy[];
};

/** Whether they can be a page; `reason` says why not. Returns 0 or -EINVAL. */
int bow__web_page_check(struct bow_slice bytes, const char *policy, struct bow__text *reason);
/** Keep copies. Returns 0, with NULL for no bytes; or -ENOMEM. */
int bow__web_page_new(struct bow_context *context, struct bow_slice bytes, const char *policy,
                      struct bow__web_page **ret_page);
/** NULL is allowed. */
void bow__web_page_free(struct bow__web_page *page);
/** Whether that is where it is, by whatever query. Thread: any. */
bool bow__web_page_is_at(const struct bow__web_page *page, struct bow_slice path);
/** Add the fields of its head. Thread: any. */
void bow__web_page_describe(const struct bow__web_page *page, struct bow__web_fields *fields,
                            struct bow__arena *arena);

#endif
