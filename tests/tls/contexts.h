/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_TLS_CONTEXTS_H
#define BOWLINE_TESTS_TLS_CONTEXTS_H

/* TLS contexts whose options are good: one that cannot be made fails the test. */

#include <bowline/tls.h>

/** Fails the test with the reason; the caller's, to unref. */
struct bow_tls_context *contexts_new(struct bow_context *context,
                                     const struct bow_tls_context_options *options);

#endif
