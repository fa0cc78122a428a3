/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_INSPECT_OUT_H
#define BOWLINE_RPC_INSPECT_OUT_H

/*
 * Text and JSON on their way to a function that takes them, in pieces of some size. Peers' bytes
 * are escaped: in texts as \xNN, in JSON by its own rules, where a byte beyond ASCII becomes \u00NN
 * (they need not be UTF-8). Once `put` has failed nothing more is given to it.
 */

#include <bowline/visibility.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>

struct bow__out {
    int (*put)(const char *text, size_t len, void *user);
    void *user;
    int error; /* 0, or what `put` said */
    size_t n;
    bool has_before; /* JSON: the next member or element begins with a comma */
    char bytes[2048];
};

void bow__out_init(struct bow__out *out, int (*put)(const char *text, size_t len, void *user),
                   void *user);
/** Give what is left. Returns 0, or what `put` failed with. */
int bow__out_end(struct bow__out *out);

void bow__out_bytes(struct bow__out *out, const char *bytes, size_t len);
/** Of the program's own, not of a peer's; a text of more than a kilobyte is cut. */
void bow__out_printf(struct bow__out *out, const char *format, ...) BOW_PRINTF(2, 3);
/** A text that may be a peer's: printable ASCII as it is. */
void bow__out_escaped(struct bow__out *out, const char *text);
/** "3.204 s" */
void bow__out_seconds(struct bow__out *out, uint64_t ns);

/* JSON. `name` NULL: an element of an array. */

void bow__out_open(struct bow__out *out, const char *name, char bracket);
void bow__out_close(struct bow__out *out, char bracket);
void bow__out_string(struct bow__out *out, const char *name, const char *text); /* NULL: null */
void bow__out_number(struct bow__out *out, const char *name, uint64_t number);
void bow__out_bool(struct bow__out *out, const char *name, bool value);
void bow__out_null(struct bow__out *out, const char *name);

#endif
