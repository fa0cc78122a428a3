/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Connections in plaintext.
 */

#include "header_limit_security.h"

void header_limit_secure(struct bow_test *test, struct bow_server_options *server,
                         struct bow_client_options *client)
{
    (void)test;
    (void)server;
    (void)client;
}

void header_limit_unsecure(void)
{
}
