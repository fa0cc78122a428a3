/* SPDX-License-Identifier: 0BSD */
/* Greets each NAME with a blocking call. Usage: greeter-client ADDRESS NAME... */

#include "greeter.bow.h"
#include <bowline/client.h>
#include <stdio.h>

static int greet(struct bow_client *client, char *name)
{
    Demo__HelloRequest request = DEMO__HELLO_REQUEST__INIT;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    struct bow_result result = BOW_RESULT_INIT;
    const Demo__HelloReply *reply;

    request.name = name;
    options.timeout_ns = UINT64_C(2000000000);
    reply = demo__greeter__say_hello__call(client, &request, &options, &result);
    if (reply != NULL) {
        printf("%s\n", reply->message);
    } else {
        fprintf(stderr, "greeter-client: %s: %s\n", bow_code_name(result.status.code),
                result.status.message);
    }
    int failed = reply == NULL;
    bow_result_fini(&result);
    return failed;
}

int main(int argc, char **argv)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_transport_error error;
    struct bow_client *client;
    int failed = 0;

    if (argc < 3) {
        fprintf(stderr, "usage: %s ADDRESS NAME...\n", argv[0]);
        return 2;
    }
    options.target = argv[1]; /* "grpc:HOST:PORT" calls a gRPC server */
    options.error = &error;
    if (bow_client_new(&options, &client) != 0) {
        fprintf(stderr, "greeter-client: %s\n", error.text);
        return 2;
    }
    for (int i = 2; i < argc; i++) {
        failed |= greet(client, argv[i]);
    }
    bow_client_free(client);
    return failed;
}
