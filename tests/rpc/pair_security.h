/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_RPC_PAIR_SECURITY_H
#define BOWLINE_TESTS_RPC_PAIR_SECURITY_H

/* What the connections of a pair are secured with: nothing, or TLS where that is built. */

#include <bowline/testing.h>

/** Begin; the options of both sides get what they need. */
void pair_secure(struct bow_test *test, struct bow_server_options *server,
                 struct bow_client_options *client);
/** Before bow_test_end(). */
void pair_unsecure(void);

#endif
