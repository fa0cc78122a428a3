/* SPDX-License-Identifier: 0BSD */
/* A client on a loop that its owner drives, beside what else the program polls. Usage:
 * embedded-client TARGET NAME */

#include "greeter.bow.h"
#include <bowline/client.h>
#include <bowline/context.h>
#include <bowline/loop.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>

struct greeting {
    bool done;
    int status; /* of the program */
};

static void on_hello(struct bow_result *result, const Demo__HelloReply *reply, void *user)
{
    struct greeting *greeting = user;

    greeting->done = true;
    greeting->status = reply == NULL;
    if (reply != NULL) {
        printf("%s\n", reply->message);
    } else {
        fprintf(stderr, "embedded-client: %s: %s\n", bow_code_name(result->status.code),
                result->status.message);
    }
}

/* The program's own loop; its other descriptors would be polled here too. */
static int drive(struct bow_loop *loop, const struct greeting *greeting)
{
    struct pollfd ready = {.fd = bow_loop_fd(loop), .events = POLLIN};
    int rc = 0;

    while (!greeting->done && rc == 0) {
        if (poll(&ready, 1, -1) < 0 && errno != EINTR) {
            perror("embedded-client");
            return -errno;
        }
        rc = bow_loop_run_once(loop, 0); /* does what is due now, without waiting */
    }
    return rc;
}

static int greet(struct bow_client *client, struct bow_loop *loop, char *name)
{
    struct greeting greeting = {.status = 1};
    Demo__HelloRequest request = DEMO__HELLO_REQUEST__INIT;

    request.name = name;
    int rc = demo__greeter__say_hello__start(client, &request, NULL, on_hello, &greeting, NULL);
    if (rc == 0) {
        rc = drive(loop, &greeting);
    }
    return rc == 0 ? greeting.status : 1;
}

int main(int argc, char **argv)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
    struct bow_client *client = NULL;
    int status = 1;

    loop_options.thread = BOW_LOOP_OWNER; /* no thread is made for it */
    if (bow_context_new(NULL, &options.context) == 0 &&
        bow_loop_new(options.context, &loop_options, &options.loop) == 0) {
        options.target = argc > 1 ? argv[1] : "127.0.0.1:50051";
        if (bow_client_new(&options, &client) == 0) {
            status = greet(client, options.loop, argc > 2 ? argv[2] : "world");
        }
    }
    /* Nobody drives the loop any more: its last reference runs what is left of the client. */
    bow_client_free(client);
    bow_loop_unref(options.loop);
    bow_context_unref(options.context);
    return status;
}
