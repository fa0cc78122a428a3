/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TOOLS_BOWLINE_BYTES_H
#define BOWLINE_TOOLS_BOWLINE_BYTES_H

/* Whole files in memory, and base64. */

#include <bowline/slice.h>
#include <stdbool.h>
#include <stdio.h>

/** All that is in a file ("-": standard input), with a NUL behind it, from malloc(). Returns
 * EXIT_OK, or what to exit with: it has said why. */
int bytes_read_file(const char *name, struct bow_slice *ret_bytes);

/** The same of a stream that is open. Returns false on an error. */
bool bytes_read(FILE *file, struct bow_slice *ret_bytes);

void bytes_free(struct bow_slice *bytes);

/** Decode base64, of either alphabet, into malloc()ed bytes. */
bool bytes_from_base64(const char *text, struct bow_slice *ret_bytes);

/** Write base64. */
void bytes_put_base64(FILE *file, struct bow_slice bytes);

#endif
