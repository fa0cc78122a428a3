/* SPDX-License-Identifier: 0BSD */
#ifndef BOWLINE_EXAMPLES_WEB_PAGE_H
#define BOWLINE_EXAMPLES_WEB_PAGE_H

/* page.html, and the policy that allows its own script and style and nothing else: made by
 * tools/embed-page. */

#include <stddef.h>

extern const char web_page[];
extern const size_t web_page_bytes;
extern const char web_page_policy[];

#endif
