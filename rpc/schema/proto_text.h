/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SCHEMA_PROTO_TEXT_H
#define BOWLINE_RPC_SCHEMA_PROTO_TEXT_H

/*
 * The text of a .proto while it is written: it grows in the heap, and each line begins with the
 * blanks of its level. Knows nothing of what a .proto says.
 */

#include <bowline/slice.h>
#include <bowline/visibility.h>
#include <stdbool.h>

struct bow__proto_text {
    char *bytes; /* with a NUL behind the last one */
    size_t len;
    size_t size;
    unsigned level;
    bool failed; /* no memory */
};

void bow__proto_text_fini(struct bow__proto_text *text);

/** Begin a line: the blanks of its level. */
void bow__proto_text_indent(struct bow__proto_text *text);

void bow__proto_text_printf(struct bow__proto_text *text, const char *format, ...) BOW_PRINTF(2, 3);

/** Bytes as they are, but for control characters, which are escaped: nobody has looked at them. */
void bow__proto_text_put(struct bow__proto_text *text, struct bow_slice bytes);

/** A string between quotes, with the escapes of a .proto; the bytes of UTF-8 stay. */
void bow__proto_text_quote(struct bow__proto_text *text, struct bow_slice bytes);

#endif
