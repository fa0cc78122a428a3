/* SPDX-License-Identifier: 0BSD */
/* A chat server over the transport alone. Usage: chat [ADDRESS]; then: nc 127.0.0.1 7008 */

#include "room.h"
#include <signal.h>
#include <stdio.h>

static int serve(struct room *room, struct bow_loop *loop, const char *address)
{
    struct bow_acceptor_options options = BOW_ACCEPTOR_OPTIONS_INIT;
    struct bow_acceptor *acceptor;
    struct bow_transport_error error;
    sigset_t signals;
    int number;

    options.address = address;
    options.loop = loop;
    options.channel.data_bytes = sizeof(struct member);
    options.channel.on_channel = room_on_channel;
    options.channel.user = room;
    if (bow_acceptor_new(room->context, &options, &acceptor, &error) != 0) {
        fprintf(stderr, "chat: %s\n", error.text);
        return 1;
    }
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    int rc = bow_acceptor_start(acceptor);
    if (rc == 0) {
        printf("listening on %s, port %d\n", address, (int)bow_acceptor_port(acceptor));
        sigwait(&signals, &number);
    }
    bow_acceptor_close(acceptor, NULL, NULL);
    return rc == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
    struct room room = {0};
    struct bow_loop *loop = NULL;
    int status = 1;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (bow_context_new(&context_options, &room.context) == 0 &&
        bow_loop_new(room.context, &loop_options, &loop) == 0) {
        status = serve(&room, loop, argc > 1 ? argv[1] : "127.0.0.1:7008");
    }
    bow_loop_unref(loop); /* closes what is open and waits for the loop's thread */
    bow_context_unref(room.context);
    return status;
}
