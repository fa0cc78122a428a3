/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Connections in plaintext.
 */

#include "pair_security.h"

void pair_secure(struct bow_test *test, struct bow_server_options *server,
                 struct bow_client_options *client)
{
    (void)test;
    (void)server;
    (void)client;
}

void pair_unsecure(void)
{
}
