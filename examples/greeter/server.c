/* SPDX-License-Identifier: 0BSD */
/* A greeter that serves Bowline's own protocol and gRPC on one port. Usage: greeter-server
 * [ADDRESS] */

#include "greeter.bow.h"
#include <bowline/call.h>
#include <bowline/server.h>
#include <stdio.h>

static void say_hello(struct bow_call *call, const Demo__HelloRequest *request, void *user)
{
    Demo__HelloReply reply = DEMO__HELLO_REPLY__INIT;
    (void)user;
    if (request->name[0] == '\0') {
        bow_call_fail(call, BOW_INVALID_ARGUMENT, "the name is empty");
        return;
    }
    reply.message = bow_call_printf(call, "Hello, %s", request->name);
    demo__greeter__say_hello__reply(call, &reply);
}

int main(int argc, char **argv)
{
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct demo__greeter__handlers handlers = {.say_hello = say_hello};
    struct bow_server *server;
    int rc;

    options.listen = argc > 1 ? argv[1] : "127.0.0.1:50051";
    if (bow_server_new(&options, &server) != 0) {
        fprintf(stderr, "greeter-server: out of memory\n");
        return 1;
    }
    rc = demo__greeter__serve(server, &handlers, NULL);
    if (rc == 0) {
        rc = bow_server_start(server);
    }
    if (rc == 0) {
        printf("listening on %s, port %d\n", options.listen, (int)bow_server_port(server));
        fflush(stdout);
        rc = bow_server_run(server); /* until SIGTERM or SIGINT: drains, then returns */
    }
    if (rc != 0) {
        fprintf(stderr, "greeter-server: %s\n", bow_server_error(server));
    }
    bow_server_free(server);
    return rc == 0 ? 0 : 1;
}
