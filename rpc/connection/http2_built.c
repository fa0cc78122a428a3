/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * For builds with HTTP/2.
 */

#include "rpc/connection/http2_built.h"

bool bow__http2_is_built(void)
{
    return true;
}
