/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TOOLS_BOWLINE_TLS_H
#define BOWLINE_TOOLS_BOWLINE_TLS_H

/*
 * TLS by the command line, and what a connection's handshake came to. A build without TLS refuses
 * it (tls_absent.c).
 */

#include "options.h"
#include <bowline/security.h>

struct bow_context;
struct tool_tls;

/** What the last handshake came to; "" for what is not known. */
struct tool_tls_seen {
    char version[16];
    char protocol[32]; /* by ALPN */
    char subject[256]; /* of the server's certificate */
    bool is_verified;
};

/** Read the files. Returns EXIT_OK, or what to exit with: it has said why. */
int tool_tls_open(struct bow_context *context, const struct options *options,
                  struct tool_tls **ret_tls);
void tool_tls_close(struct tool_tls *tls);

struct bow_security *tool_tls_security(struct tool_tls *tls);

/** Once a call has been answered. */
const struct tool_tls_seen *tool_tls_seen(const struct tool_tls *tls);

#endif
