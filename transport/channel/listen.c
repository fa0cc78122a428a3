/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Listening on any address: which transport serves it, and that one's word from then on. Knows
 * nothing of what each does.
 */

#include "transport/channel/listen.h"
#include "base/alloc.h"
#include "transport/address/transport_error.h"

#include <errno.h>

int bow__listening_open(struct bow__listening *listening, struct bow_context *context,
                        const char *text, int backlog, struct bow_transport_error *ret_error)
{
    struct bow__address address;
    struct bow__text why;

    listening->fd = -1;
    bow__text_clear(&why);
    if (bow__address_parse(text, &address, &why) < 0) {
        return bow__transport_error(ret_error, "parsing", text != NULL ? text : "the address",
                                    -EINVAL, why.bytes);
    }
    listening->transport = bow__transport_of(address.kind);
    listening->system = bow__context_system(context);
    return listening->transport->listen(listening, context, &address, text, backlog, ret_error);
}

int bow__listening_accept(struct bow__listening *listening, struct bow__socket *ret_socket,
                          struct bow_sockaddr *ret_peer)
{
    return listening->transport->accept(listening, ret_socket, ret_peer);
}

bool bow__listening_refuse_new(struct bow__listening *listening)
{
    return listening->transport->refuse_new(listening);
}

void bow__listening_close(struct bow__listening *listening)
{
    if (listening->transport != NULL) {
        listening->transport->close(listening);
    }
}
