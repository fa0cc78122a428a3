/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Listening on any address: what a text names, which transport serves it, and that one's word from
 * then on. Knows nothing of what each does.
 */

#include "transport/channel/listen.h"
#include "base/alloc.h"
#include "transport/address/transport_error.h"

#include <errno.h>
#include <string.h>

/* A file of hosts may name one twice. */
static bool is_among(const struct bow__address *addresses, int n, const struct bow_sockaddr *found)
{
    for (int i = 0; i < n; i++) {
        if (addresses[i].sockaddr.len == found->len &&
            memcmp(&addresses[i].sockaddr.storage, &found->storage, found->len) == 0) {
            return true;
        }
    }
    return false;
}

static int resolve(struct bow_context *context, const char *text, const struct bow__address *name,
                   struct bow__address *ret_addresses, struct bow_transport_error *ret_error)
{
    const struct bow_system *system = bow__context_system(context);
    struct bow_sockaddr found[BOW__LISTEN_MAX];
    const char *reason = NULL;
    int n = 0;

    int n_found =
        system->resolve(system->user, name->host, name->port, found, BOW__LISTEN_MAX, &reason);
    if (n_found <= 0) {
        return bow__transport_error(ret_error, "resolving", text, n_found < 0 ? n_found : -ENOENT,
                                    reason);
    }
    for (int i = 0; i < n_found; i++) {
        if (!is_among(ret_addresses, n, &found[i])) {
            ret_addresses[n++] = (struct bow__address){
                .kind = BOW__ADDRESS_NUMERIC, .port = name->port, .sockaddr = found[i]};
        }
    }
    return n;
}

int bow__listen_addresses(struct bow_context *context, const char *text,
                          struct bow__address ret_addresses[BOW__LISTEN_MAX],
                          struct bow_transport_error *ret_error)
{
    struct bow__address address;
    struct bow__text why;

    bow__text_clear(&why);
    if (bow__address_parse(text, &address, &why) < 0) {
        return bow__transport_error(ret_error, "parsing", text != NULL ? text : "the address",
                                    -EINVAL, why.bytes);
    }
    if (address.kind == BOW__ADDRESS_NAME) {
        return resolve(context, text, &address, ret_addresses, ret_error);
    }
    ret_addresses[0] = address;
    return 1;
}

int bow__listening_open(struct bow__listening *listening, struct bow_context *context,
                        const struct bow__address *address, const char *text, int backlog,
                        struct bow_transport_error *ret_error)
{
    listening->fd = -1;
    listening->transport = bow__transport_of(address->kind);
    listening->system = bow__context_system(context);
    return listening->transport->listen(listening, context, address, text, backlog, ret_error);
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

void bow__listening_undo(struct bow__listening *listening)
{
    if (listening->transport != NULL) {
        listening->transport->undo(listening);
    }
}
