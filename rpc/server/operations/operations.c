/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The operations listener's life: where it listens, its connections, its end. */
#include "rpc/server/operations/operations.h"
#include "base/alloc.h"
#include "rpc/server/operations/operations_conn.h"
#include "transport/channel/acceptor.h"

#include <bowline/limits.h>
#include <errno.h>
#include <string.h>

struct bow__operations {
    struct bow_context *context;
    struct bow__operations_options options;
    struct bow_acceptor *acceptor; /* NULL once it closes */
    struct bow__text addresses;    /* of its: they are told when it has gone, too */
    bool started;
    bool closing;
    struct bow__link conns;
    uint32_t n_left; /* connections, and the acceptor */
    void (*closed)(void *user);
    void *user;
};

static void count_down(struct bow__operations *operations)
{
    if (--operations->n_left == 0) {
        operations->closed(operations->user);
    }
}

static void on_gone(void *user)
{
    count_down(user);
}

static int on_channel(struct bow_channel *channel, void *user)
{
    struct bow__operations *operations = user;

    if (operations->closing) {
        return -ESHUTDOWN;
    }
    operations->n_left++;
    bow__operations_conn_init(bow_channel_data(channel), channel, operations->context,
                              &operations->options.host, &operations->conns, on_gone, operations);
    return 0;
}

static int check_address(const struct bow__operations_options *options, struct bow__text *error)
{
    /* What cannot be parsed the acceptor explains. */
    if (options->exposed || bow_address_is_local(options->address) != 0) {
        return 0;
    }
    bow__text_printf(
        error,
        "listening for operations on %s: it can be reached from other hosts, and tells "
        "anybody what the server does, without encryption; listen on 127.0.0.1, [::1] "
        "or a Unix socket, or set options.operations_exposed = true to allow that in a "
        "network that nobody else is in",
        options->address);
    return -EPERM;
}

int bow__operations_new(struct bow_context *context, const struct bow__operations_options *options,
                        struct bow__operations **ret_operations, struct bow__text *error)
{
    struct bow_acceptor_options acceptor_options = BOW_ACCEPTOR_OPTIONS_INIT;
    struct bow_transport_error transport_error = {0};

    int rc = check_address(options, error);
    if (rc < 0) {
        return rc;
    }
    struct bow__operations *operations = bow__alloc_zero(context, sizeof(*operations));
    if (operations == NULL) {
        return -ENOMEM;
    }
    operations->context = context;
    operations->options = *options;
    operations->options.host.any_host = strncmp(options->address, "unix", strlen("unix")) == 0;
    operations->n_left = 1;
    bow__list_init(&operations->conns);
    acceptor_options.address = options->address;
    acceptor_options.loop = options->loop;
    acceptor_options.max_channels = BOW_LIMIT_OPERATIONS_CONNECTIONS;
    acceptor_options.channel.data_bytes = sizeof(struct bow__operations_conn);
    acceptor_options.channel.on_channel = on_channel;
    acceptor_options.channel.user = operations;
    rc = bow__acceptor_new_from(context, &acceptor_options, options->handed, &operations->acceptor,
                                &transport_error);
    if (rc < 0) {
        bow__text_printf(error, "the operations listener: %s", transport_error.text);
        bow__free(context, operations, sizeof(*operations));
        return rc;
    }
    bow__text_printf(&operations->addresses, "%s", bow_acceptor_addresses(operations->acceptor));
    *ret_operations = operations;
    return 0;
}

int bow__operations_start(struct bow__operations *operations)
{
    int rc = bow_acceptor_start(operations->acceptor);

    operations->started = rc == 0;
    return rc;
}

struct bow_acceptor *bow__operations_acceptor(const struct bow__operations *operations)
{
    return operations->acceptor;
}

const char *bow__operations_addresses(const struct bow__operations *operations)
{
    return operations->addresses.bytes;
}

void bow__operations_close(struct bow__operations *operations, void (*closed)(void *user),
                           void *user)
{
    struct bow_acceptor *acceptor = operations->acceptor;
    struct bow__link *next;

    operations->closing = true;
    operations->closed = closed;
    operations->user = user;
    operations->acceptor = NULL;
    for (struct bow__link *at = operations->conns.next; at != &operations->conns; at = next) {
        next = at->next;
        bow__operations_conn_close(BOW__CONTAINER(at, struct bow__operations_conn, link));
    }
    bow_acceptor_close(acceptor, on_gone, operations);
}

void bow__operations_free(struct bow__operations *operations)
{
    if (operations == NULL) {
        return;
    }
    if (operations->acceptor != NULL) {
        bow__acceptor_undo(operations->acceptor);
    }
    bow__free(operations->context, operations, sizeof(*operations));
}
