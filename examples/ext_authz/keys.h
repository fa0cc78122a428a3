/* SPDX-License-Identifier: 0BSD */
#ifndef BOWLINE_EXAMPLES_EXT_AUTHZ_KEYS_H
#define BOWLINE_EXAMPLES_EXT_AUTHZ_KEYS_H

/*
 * Who may go where: a file with a line for each right.
 *
 *     # key                   name      below
 *     7e0c43b55d1c4d9a93f1    ada       /orders
 *     7e0c43b55d1c4d9a93f1    ada       /stock
 *     1f4d2a6e9b0747c8a5e2    grace     /
 *
 * A list, for some hundreds of rights: each question goes through all of it. Knows nothing of Envoy
 * and of calls.
 */

#include <stdbool.h>
#include <stddef.h>

struct right {
    char *line; /* which the others lie in */
    const char *key;
    const char *name;
    const char *prefix;
};

/** Begin with all zeroes. */
struct keys {
    struct right *rights;
    size_t n;
};

/** Read `file`, and put what it says in the place of what was there. Returns whether that could be
 * done; else nothing has changed, and `error` says why and in which line. */
bool keys_load(struct keys *keys, const char *file, char *error, size_t error_size);

/** Whose key it is; NULL: nobody's. Takes as long for a key that is nearly right as for any other
 * of its length. */
const char *keys_name(const struct keys *keys, const char *key);

/** Whether the key opens `path`. */
bool keys_allow(const struct keys *keys, const char *key, const char *path);

void keys_clear(struct keys *keys);

#endif
