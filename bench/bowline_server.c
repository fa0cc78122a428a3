/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The echo server through generated stubs, on one loop. Usage: bowline_server HOST:PORT */

#include "counted_system.h"
#include "echo.bow.h"
#include <bowline/call.h>
#include <bowline/context.h>
#include <bowline/server.h>
#include <inttypes.h>
#include <stdio.h>

static void unary(struct bow_call *call, const Bench__Text *request, void *user)
{
    Bench__Text reply = BENCH__TEXT__INIT;
    (void)user;
    reply.text = request->text;
    bench__echo__unary__reply(call, &reply);
}

int main(int argc, char **argv)
{
    struct io_counts counts = {0};
    struct bow_system system = counted_system(&counts);
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct bow_server *server = NULL;
    context_options.system = &system;
    options.listen = argc == 2 ? argv[1] : NULL;
    if (bow_context_new(&context_options, &options.context) != 0 ||
        bow_server_new(&options, &server) != 0 ||
        bench__echo__serve(server, &(struct bench__echo__handlers){.unary = unary}, NULL) != 0) {
        fprintf(stderr, "usage: %s HOST:PORT\n", argv[0]);
        return 2;
    }
    int rc = bow_server_run(server);
    if (rc != 0) {
        fprintf(stderr, "bowline_server: %s\n", bow_server_error(server));
    }
    bow_server_free(server);
    bow_context_unref(options.context);
    printf("{\"receives\": %" PRIu64 ", \"sends\": %" PRIu64 "}\n", counts.receives, counts.sends);
    return rc != 0;
}
