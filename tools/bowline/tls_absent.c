/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A build without TLS. */
#include "say.h"
#include "tls.h"

int tool_tls_open(struct bow_context *context, const struct options *options,
                  struct tool_tls **ret_tls)
{
    (void)context;
    (void)options;
    (void)ret_tls;
    return say_failed(EXIT_USAGE, "this build of the tool has no TLS (meson's option tls)");
}

void tool_tls_close(struct tool_tls *tls)
{
    (void)tls;
}

struct bow_security *tool_tls_security(struct tool_tls *tls)
{
    (void)tls;
    return NULL;
}

const struct tool_tls_seen *tool_tls_seen(const struct tool_tls *tls)
{
    (void)tls;
    return NULL;
}
