/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Making TLS contexts; see the header. */

#include "tests/tls/contexts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct bow_tls_context *contexts_new(struct bow_context *context,
                                     const struct bow_tls_context_options *options)
{
    struct bow_tls_context *tls = NULL;
    struct bow_tls_error error;

    if (bow_tls_context_new(context, options, &tls, &error) < 0) {
        fail_msg("%s", error.text);
    }
    return tls;
}
