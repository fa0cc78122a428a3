/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_OPERATIONS_PAGE_H
#define BOWLINE_RPC_SERVER_OPERATIONS_PAGE_H

/* page.html as tools/embed-page embeds it: one file that loads nothing, and the policy that allows
 * its own script and style by their hashes, and nothing else. */

#include <stddef.h>

extern const char bow__operations_page[];
extern const size_t bow__operations_page_bytes;
extern const char bow__operations_page_policy[];

#endif
