/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_INTERCEPTORS_AUTH_TOKENS_H
#define BOWLINE_RPC_INTERCEPTORS_AUTH_TOKENS_H

/*
 * The tokens of a file, as they are compared and sent. Neither calls nor metadata are known
 * here. Tokens are wiped before their memory goes.
 */

#include <bowline/bearer.h>

struct bow__tokens {
    char *text;  /* NULL: there are none; "TOKEN" or "SUBJECT:TOKEN", a NUL after each */
    size_t size; /* of `text` */
    size_t n;
};

/** Read `path`, into an empty one. Returns as bow_bearer_reload(), with `error` (may be NULL). */
int bow__tokens_read(struct bow__tokens *tokens, struct bow_context *context, const char *path,
                     struct bow_transport_error *error);
void bow__tokens_fini(struct bow__tokens *tokens, struct bow_context *context);

/** Whether `token` is one of them, and whose (borrowed; empty: the file does not say). All are
 * looked at, and of those that are as long all bytes. */
bool bow__tokens_have(const struct bow__tokens *tokens, struct bow_slice token,
                      struct bow_slice *ret_subject);
/** The first token; there is one. */
const char *bow__tokens_first(const struct bow__tokens *tokens);

/** Whether it has the form of RFC 6750, 2.1. */
bool bow__token_is_valid(const char *token, size_t len);
/** Whether it is a subject: not empty, shorter than BOW_BEARER_SUBJECT_BYTES, UTF-8 without control
 * characters. */
bool bow__subject_is_valid(const char *subject, size_t len);

#endif
