/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Connections of the tests on virtual time over TLS: linked with one of them, it runs there.
 */

#include "tests/rpc/pair_security.h"
#include "tests/rpc/timed_fixture.h"

__attribute__((constructor)) static void secure_pairs(void)
{
    timed_pair_secure = pair_secure;
    timed_pair_unsecure = pair_unsecure;
}
