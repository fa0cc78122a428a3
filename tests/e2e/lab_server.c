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

int main(int argc, char **argv)
{
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct lab__lab__handlers handlers = {.echo = echo, .hang = hang};
    struct bow_server *server;
    options.listen = argc == 2 ? argv[1] : NULL;
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
