/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which sockets an acceptor listens on, all or none: one, or one for each address of a name; with
 * per_worker each for each worker, and as many as another process had there that hands over its own
 * (handed.h). Binding is in socket.c. Knows nothing of accepting.
 */

#include "transport/channel/acceptor_open.h"
#include "base/alloc.h"
#include "base/log.h"
#include "transport/address/transport_error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PORT_TRIES 8

static void close_opened(struct bow_acceptor *acceptor)
{
    for (uint32_t i = 0; i < acceptor->n_listeners; i++) {
        bow__acceptor_forget_lent(&acceptor->listeners[i]);
        bow__listening_undo(&acceptor->listeners[i].listening);
        acceptor->listeners[i].listening = (struct bow__listening){.fd = -1};
        acceptor->listeners[i].lent = false;
        acceptor->listeners[i].begins_place = false;
    }
    acceptor->n_listeners = 0;
}

/* "localhost:80 ([::1]:80)", or the text alone when it says as much. */
static void name_place(const struct bow__opening *opening, int index, struct bow__text *text)
{
    char address[BOW__ADDRESS_TEXT_BYTES];

    bow__text_clear(text);
    bow__text_printf(text, "%s", opening->text);
    if (opening->n_addresses > 1) {
        bow__address_format(&opening->addresses[index].sockaddr, address);
        bow__text_printf(text, " (%s)", address);
    }
}

static void prepare_listening(const struct bow_acceptor *acceptor, struct bow__listening *listening)
{
    const struct bow_acceptor_options *options = &acceptor->options;

    listening->shares = !options->per_worker   ? BOW__SHARES_NOTHING
                        : options->shares_port ? BOW__SHARES_WITH_ALL
                                               : BOW__SHARES_AMONG_US;
    listening->unix_rights = (struct bow__unix_rights){
        .mode = options->unix_mode, .owner = options->unix_owner, .group = options->unix_group};
}

/* All that the other process has there: each has connections of its own. */
static int open_handed(struct bow_acceptor *acceptor, const struct bow__opening *opening, int index,
                       const char *place, struct bow_transport_error *ret_error)
{
    struct bow__handed_socket *socket;

    if (opening->handed == NULL) {
        return 0;
    }
    while ((socket = bow__handed_find(opening->handed, &opening->addresses[index],
                                      opening->text)) != NULL) {
        struct bow__acceptor_listener *listener = &acceptor->listeners[acceptor->n_listeners];
        prepare_listening(acceptor, &listener->listening);
        int rc = bow__socket_listen_handed(&listener->listening, acceptor->context, socket,
                                           acceptor->options.backlog);
        if (rc < 0) {
            return bow__transport_error(ret_error, "taking over", place, rc, NULL);
        }
        socket->fd = -1;
        socket->taken = true;
        listener->lent = true;
        acceptor->n_listeners++;
    }
    return 0;
}

static int open_first(struct bow_acceptor *acceptor, const struct bow__opening *opening, int index,
                      const char *place, struct bow_transport_error *ret_error)
{
    struct bow__listening *first = &acceptor->listeners[acceptor->n_listeners].listening;

    prepare_listening(acceptor, first);
    int rc = bow__listening_open(first, acceptor->context, &opening->addresses[index], place,
                                 acceptor->options.backlog, ret_error);
    acceptor->n_listeners += rc == 0;
    return rc;
}

static int open_place(struct bow_acceptor *acceptor, const struct bow__opening *opening, int index,
                      struct bow_transport_error *ret_error)
{
    struct bow__acceptor_listener *first = &acceptor->listeners[opening->n_before];
    struct bow__text place;

    name_place(opening, index, &place);
    int rc = open_handed(acceptor, opening, index, place.bytes, ret_error);
    if (rc == 0 && acceptor->n_listeners == opening->n_before) {
        rc = open_first(acceptor, opening, index, place.bytes, ret_error);
    }
    if (rc < 0) {
        return rc;
    }
    first->begins_place = true;
    while (acceptor->n_listeners - opening->n_before < opening->n_each) {
        rc = bow__socket_listen_beside(&acceptor->listeners[acceptor->n_listeners].listening,
                                       &first->listening, acceptor->options.backlog);
        if (rc < 0) {
            return bow__transport_error(ret_error, "binding", place.bytes, rc, NULL);
        }
        acceptor->n_listeners++;
    }
    return 0;
}

/* A name's address that this host has not, with none of its sockets: names of hosts are the same
 * with IPv6 and without. */
static bool may_skip(const struct bow_acceptor *acceptor, const struct bow__opening *opening,
                     int error)
{
    return opening->n_addresses > 1 && acceptor->n_listeners == opening->n_before &&
           (error == -EADDRNOTAVAIL || error == -EAFNOSUPPORT);
}

/* Port 0 is chosen with the first of a name's addresses, and all have the same. */
static void set_port(struct bow__opening *opening, uint16_t port)
{
    for (int i = 0; i < opening->n_addresses; i++) {
        bow__sockaddr_set_port(&opening->addresses[i].sockaddr, port);
    }
}

static int open_places(struct bow_acceptor *acceptor, struct bow__opening *opening,
                       struct bow_transport_error *ret_error)
{
    bool chooses = opening->n_addresses > 1 && opening->addresses[0].port == 0;
    int rc = 0;

    opening->n_skipped = 0;
    for (int i = 0; i < opening->n_addresses; i++) {
        struct bow_transport_error error = {0};
        opening->n_before = acceptor->n_listeners;
        rc = open_place(acceptor, opening, i, &error);
        if (rc < 0 && may_skip(acceptor, opening, rc)) {
            opening->n_skipped++;
            opening->skipped = error;
            continue;
        }
        if (rc < 0) {
            opening->skipped = error;
            break;
        }
        if (chooses && opening->n_before == 0) {
            set_port(opening, acceptor->listeners[0].listening.port);
        }
    }
    if (rc < 0 && acceptor->n_listeners > 0 && may_skip(acceptor, opening, rc)) {
        rc = 0; /* the last one was skipped, not the only one */
    }
    if (rc < 0) {
        close_opened(acceptor);
        if (ret_error != NULL) {
            *ret_error = opening->skipped;
        }
    }
    return rc;
}

/* Opens all or none. */
int bow__acceptor_open(struct bow_acceptor *acceptor, struct bow__opening *opening,
                       struct bow_transport_error *ret_error)
{
    bool chooses = opening->n_addresses > 1 && opening->addresses[0].port == 0;
    int rc = open_places(acceptor, opening, ret_error);

    /* The port that is free at one address may be taken at another. */
    for (int i = 1; chooses && rc == -EADDRINUSE && i < PORT_TRIES; i++) {
        set_port(opening, 0);
        rc = open_places(acceptor, opening, ret_error);
    }
    return rc;
}

/* Room for what name_addresses() writes, before anything is opened that could not be given back. */
int bow__acceptor_alloc_addresses(struct bow_acceptor *acceptor, const struct bow__opening *opening)
{
    size_t text_bytes = strlen(opening->text) + 1;
    size_t n_bytes = (size_t)opening->n_addresses * (BOW__ADDRESS_TEXT_BYTES + 2);

    acceptor->addresses_bytes = n_bytes > text_bytes ? n_bytes : text_bytes;
    acceptor->addresses = bow__alloc(acceptor->context, acceptor->addresses_bytes);
    return acceptor->addresses != NULL ? 0 : -ENOMEM;
}

/* Where it listens, in words: each address once, "127.0.0.1:80, [::1]:80". */
static void name_addresses(struct bow_acceptor *acceptor, const struct bow__opening *opening)
{
    char address[BOW__ADDRESS_TEXT_BYTES];
    size_t len = 0;

    for (uint32_t i = 0; i < acceptor->n_listeners; i++) {
        const struct bow__listening *listening = &acceptor->listeners[i].listening;
        struct bow_sockaddr bound = {.len = 0};
        if (!acceptor->listeners[i].begins_place) {
            continue;
        }
        int rc = listening->fd >= 0 ? listening->system->getsockname(listening->system->user,
                                                                     listening->fd, &bound)
                                    : -EBADF;
        bow__address_format(&bound, address);
        len += (size_t)snprintf(acceptor->addresses + len, acceptor->addresses_bytes - len, "%s%s",
                                i > 0 ? ", " : "",
                                rc == 0 || opening->n_addresses > 1 ? address : opening->text);
    }
}

/* A name says too little of where one is listened to. */
static void tell_addresses(const struct bow_acceptor *acceptor, const struct bow__opening *opening)
{
    if (opening->n_addresses > 1) {
        bow__log(acceptor->context, BOW_LOG_INFO, "%s is listened on at %s", opening->text,
                 acceptor->addresses);
    }
    if (opening->n_skipped > 0) {
        bow__log(acceptor->context, BOW_LOG_WARNING,
                 "%d of the %d addresses of %s could not be had: %s", opening->n_skipped,
                 opening->n_addresses, opening->text, opening->skipped.text);
    }
}

void bow__acceptor_name_addresses(struct bow_acceptor *acceptor, const struct bow__opening *opening)
{
    name_addresses(acceptor, opening);
    tell_addresses(acceptor, opening);
}
