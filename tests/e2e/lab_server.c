/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The Lab service as a program that tests kill. Prints its port. Usage: lab_server ADDRESS */

#include "lab.bow.h"
#include <bowline/call.h>
#include <bowline/server.h>
#include <stdio.h>

static void echo(struct bow_call *call, const Lab__Blob *request, void *user)
{
    (void)user;
    lab__lab__echo__reply(call, request);
}

/* Deliberately never answered: whoever kills this process wants the call open. */
static void hang(struct bow_call *call, const Lab__Blob *request, void *user)
{
    (void)call;
    (void)request;
    (void)user;
}

/* Each message goes back; while there is no room for more, none is read. */
static void on_said(struct lab__lab__chat__call call, const Lab__Blob *message, void *user)
{
    (void)user;
    if (lab__lab__chat__send(call, message) != 0) {
        (void)bow_call_fail(call.call, BOW_RESOURCE_EXHAUSTED, "no room to say it again");
        return;
    }
    if (!bow_call_is_writable(call.call)) {
        bow_call_pause(call.call);
    }
}

static void on_room(struct lab__lab__chat__call call, void *user)
{
    (void)user;
    bow_call_resume(call.call);
}

static void on_all_said(struct lab__lab__chat__call call, void *user)
{
    (void)user;
    (void)lab__lab__chat__finish(call);
}

static void chat(struct lab__lab__chat__call call, void *user)
{
    static const struct lab__lab__chat__call_events events = {
        .on_message = on_said,
        .on_half_close = on_all_said,
        .on_writable = on_room,
    };

    (void)lab__lab__chat__listen(call, &events, user);
}

int main(int argc, char **argv)
{
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct lab__lab__handlers handlers = {.echo = echo, .hang = hang, .chat = chat};
    struct bow_server *server;
    options.listen = argc == 2 ? argv[1] : NULL;
    options.plaintext = true; /* on a network that a test has made, too */
    if (bow_server_new(&options, &server) != 0 || lab__lab__serve(server, &handlers, NULL) != 0) {
        return 2;
    }
    int rc = bow_server_start(server);
    if (rc == 0) {
        printf("%u\n", bow_server_port(server));
        fflush(stdout);
        rc = bow_server_run(server);
    } else {
        fprintf(stderr, "%s\n", bow_server_error(server));
    }
    bow_server_free(server);
    return rc != 0;
}
