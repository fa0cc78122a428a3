/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_HTTP1_FIELDS_H
#define BOWLINE_RPC_HTTP1_FIELDS_H

/*
 * Fields of HTTP/1.1 (RFC 9112 section 5, RFC 9110 section 5): one line read and checked, names
 * found in any case, lists of tokens looked through. Knows no message around them.
 */

#include <bowline/limits.h>
#include <bowline/slice.h>

#include <stdbool.h>

/** A field of a message; both lie in the bytes that were read. */
struct bow__http1_field {
    struct bow_slice name;  /* as it came: compared without regard to case */
    struct bow_slice value; /* without the blanks around it; no control characters but tabs */
};

/** The fields of a head or of trailers, in the order of the lines. */
struct bow__http1_fields {
    size_t n;
    struct bow__http1_field list[BOW_LIMIT_HTTP1_FIELDS];
};

/** What is wrong with a message, and the status to answer before the connection is closed. */
struct bow__http1_error {
    int status;       /* 400, 413, 414, 417, 431, 501, 505 */
    const char *text; /* constant, without a peer's bytes: for the answer and for logs */
};

/** `bytes` is one or more of what a token has (RFC 9110 section 5.6.2). */
bool bow__http1_is_token(struct bow_slice bytes);

/** `bytes` may be a field's value: visible characters, blanks, and bytes from 0x80 on. */
bool bow__http1_is_value(struct bow_slice bytes);

/** Equal, where letters of ASCII are equal in both cases. */
bool bow__http1_equals(struct bow_slice bytes, const char *text);

/**
 * Read the lines of `block`, which all end with CRLF, into `ret_fields`. Returns 0, or -EBADMSG
 * with
 * `*ret_error`: a line that is no field, or more of them than fields can hold.
 */
int bow__http1_fields_decode(struct bow_slice block, struct bow__http1_fields *ret_fields,
                             struct bow__http1_error *ret_error);

/** The first field from `*at` on that has the name, or NULL; `*at` is behind it then. */
const struct bow__http1_field *bow__http1_fields_next(const struct bow__http1_fields *fields,
                                                      const char *name, size_t *at);

/** The value of the only field with the name; nothing, with `data` NULL, if there is none or
 * several. */
struct bow_slice bow__http1_fields_get(const struct bow__http1_fields *fields, const char *name);

/** Take the first element off a list with commas. Returns false at its end; empty elements are
 * skipped (RFC 9110 section 5.6.1). */
bool bow__http1_list_next(struct bow_slice *list, struct bow_slice *ret_element);

/** Whether one of the fields with the name lists the token. */
bool bow__http1_fields_list(const struct bow__http1_fields *fields, const char *name,
                            const char *token);

#endif
