/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A server with what the library brings, for others to ask: health, and reflection. Once it is told
 * to end it is a lame duck until it is told again.
 *
 *     interop_services_server ADDRESS      prints its port
 */

#include "interop.bow.h"

#include <bowline/health.h>
#include <bowline/server.h>
#include <stdio.h>
#include <string.h>

#define LAME_DUCK_NS (UINT64_C(3600) * 1000000000)

/* A message of "health=N" sets the health of this service. */
static void echo(struct bow_call *call, const Interop__Request *request, void *user)
{
    Interop__Reply reply = INTEROP__REPLY__INIT;
    int state = -1;

    if (sscanf(request->message, "health=%d", &state) == 1 &&
        bow_health_set(*(struct bow_server **)user, "interop.Interop",
                       (enum bow_health_state)state) != 0) {
        bow_call_fail(call, BOW_INVALID_ARGUMENT, "no state");
        return;
    }
    reply.body = request->body;
    interop__interop__echo__reply(call, &reply);
}

static void tell_port(struct bow_server *server, void *user)
{
    (void)user;
    printf("%u\n", bow_server_port(server));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct interop__interop__handlers handlers = {.echo = echo};
    struct bow_server *server;

    options.listen = argc == 2 ? argv[1] : NULL;
    options.reflection = true;
    options.lame_duck_ns = LAME_DUCK_NS;
    options.grace_ns = LAME_DUCK_NS;
    options.on_started = tell_port;
    if (bow_server_new(&options, &server) != 0 ||
        interop__interop__serve(server, &handlers, &server) != 0) {
        return 2;
    }
    int rc = bow_server_run(server);
    if (rc != 0) {
        fprintf(stderr, "%s\n", bow_server_error(server));
    }
    bow_server_free(server);
    return rc != 0;
}
