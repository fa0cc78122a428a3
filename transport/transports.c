/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The kinds of addresses there are. One that is new needs a line here, a table like that of
 * channel/socket.c, a kind in address/address.h with its text in address.c, and a look at where
 * channel/connector.c tells kinds apart.
 */

#include "transport/channel/transport.h"
#include "transport/memory/inproc.h"

const struct bow__transport *const bow__transports[] = {
    &bow__socket_transport,
    &bow__inproc_transport,
    NULL,
};
