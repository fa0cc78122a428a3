/* SPDX-License-Identifier: 0BSD */
#ifndef BOWLINE_EXAMPLES_EXT_AUTHZ_PATH_H
#define BOWLINE_EXAMPLES_EXT_AUTHZ_PATH_H

/*
 * Paths of requests, as far as rights hang on them. Envoy hands them over as they came, and what
 * stands behind it may read them otherwise: "/open/../admin" begins with "/open/".
 */

#include <stdbool.h>

/** Whether everybody reads `path` alike: no segments "." and "..", also with "%2e" or parameters
 * (";x"), none that is empty, no escaped slash, no backslash. A query is not looked at. */
bool path_is_plain(const char *path);

/** Whether `path` is `prefix` or lies below it: "/orders" has "/orders", "/orders/7" and
 * "/orders?all", but not "/orders-of-others". A slash at the prefix's end makes no difference. */
bool path_is_below(const char *path, const char *prefix);

#endif
