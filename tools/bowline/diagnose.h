/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TOOLS_BOWLINE_DIAGNOSE_H
#define BOWLINE_TOOLS_BOWLINE_DIAGNOSE_H

#include <stdbool.h>
#include <stddef.h>

/** Of a server that could not be called: look what listens there, and write what to do to `advice`,
 * beginning with "; ", or "". It takes two seconds at most. */
void diagnose(const char *target, bool with_tls, char *advice, size_t size);

#endif
