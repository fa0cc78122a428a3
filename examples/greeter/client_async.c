/* SPDX-License-Identifier: 0BSD */
/* Greets all NAMEs at once with callbacks on a loop. Usage: greeter-client-async ADDRESS NAME... */

#include "greeter.bow.h"
#include <bowline/client.h>
#include <bowline/context.h>
#include <bowline/loop.h>
#include <stdio.h>

struct greeting {
    struct bow_loop *loop;
    int n_open;
    int n_failed;
};

static void on_reply(struct bow_result *result, const Demo__HelloReply *reply, void *user)
{
    struct greeting *greeting = user;
    if (reply != NULL) {
        printf("%s\n", reply->message);
    } else {
        fprintf(stderr, "%s: %s\n", bow_code_name(result->status.code), result->status.message);
        greeting->n_failed++;
    }
    if (--greeting->n_open == 0) {
        bow_loop_shutdown(greeting->loop, 0, UINT64_C(1000000000));
    }
}

int main(int argc, char **argv)
{
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct greeting greeting = {0};
    struct bow_client *client;

    loop_options.thread = BOW_LOOP_OWNER; /* main's thread runs it */
    options.target = argc > 1 ? argv[1] : NULL;
    if (argc < 3 || bow_context_new(&context_options, &options.context) != 0 ||
        bow_loop_new(options.context, &loop_options, &options.loop) != 0 ||
        bow_client_new(&options, &client) != 0) {
        fprintf(stderr, "usage: %s ADDRESS NAME...\n", argv[0]);
        return 2;
    }
    greeting.loop = options.loop;
    for (int i = 2; i < argc; i++) {
        Demo__HelloRequest request = DEMO__HELLO_REQUEST__INIT;
        request.name = argv[i];
        if (demo__greeter__say_hello__start(client, &request, NULL, on_reply, &greeting, NULL) ==
            0) {
            greeting.n_open++;
        } else {
            greeting.n_failed++; /* no callback comes for a call that did not start */
        }
    }
    int rc = greeting.n_open > 0 ? bow_loop_run(options.loop) : 0;
    bow_client_free(client);
    bow_loop_unref(options.loop);
    bow_context_unref(options.context);
    return rc != 0 || greeting.n_failed > 0;
}
