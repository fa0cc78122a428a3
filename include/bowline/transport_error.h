/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_ERROR_H
#define BOWLINE_TRANSPORT_ERROR_H

/*
 * What to tell people about an address that cannot be used. Functions that take
 * one fill it in when they fail, and leave it alone when they do not.
 */

#include <bowline/visibility.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Why it failed: where, with whom, what, and a sentence for people. */
struct bow_transport_error {
    const char *stage; /* what was being done: "parsing", "resolving", "binding", "listening",
                          "connecting", "making a client for", "reading tokens from", … */
    int error;         /* negative errno */
    char text[512];    /* stage, address, errno and what to try */
};

#ifdef __cplusplus
}
#endif
#endif
