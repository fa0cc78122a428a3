/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_WEB_QUERY_H
#define BOWLINE_RPC_WEB_QUERY_H

/*
 * A URL's path and query: /demo.Greeter/SayHello?connect=v1&encoding=json&message=%7B%7D. Pure
 * functions over slices.
 */

#include <bowline/slice.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Cut `target` at its first '?'; without one the query is empty. */
void bow__query_split(struct bow_slice target, struct bow_slice *ret_path,
                      struct bow_slice *ret_query);
/** The value of the first parameter of that name, as it is written. Returns whether there is one.
 */
bool bow__query_find(struct bow_slice query, const char *name, struct bow_slice *ret_value);
/** Undo %XX and '+' into `out`, which has room for `text.len`. Returns the length, or SIZE_MAX when
 * a '%' is not followed by two hex digits. */
size_t bow__query_decode(struct bow_slice text, uint8_t *out);

#endif
