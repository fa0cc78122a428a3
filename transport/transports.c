/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The kinds of addresses there are. One that is new needs a line here, and one in address.c. */

#include "transport/channel/transport.h"
#include "transport/memory/inproc.h"

const struct bow__transport *const bow__transports[] = {
    &bow__socket_transport,
    &bow__inproc_transport,
    NULL,
};
