/* SPDX-License-Identifier: 0BSD */
/* Hands every call on to one of several servers, whatever its method: no .proto is known here.
 * Usage: gateway LISTEN TARGET, as in: gateway '*:50051' grpc:list:10.0.0.1:50051,10.0.0.2:50051
 *
 * Calls go round over the servers that are ready; a server that goes away costs the calls on it.
 * Which server a call goes to is the client's choice: to send those of one user, say, to one
 * server, it is here that a key of bow_call_metadata() would choose among several clients. */

#include "forward.h"
#include <bowline/context.h>
#include <bowline/group.h>
#include <bowline/metrics.h>
#include <stdio.h>

#define LOOPS 2

static void on_started(struct bow_server *server, void *user)
{
    (void)user;
    printf("listening on %s\n", bow_server_addresses(server));
    fflush(stdout);
}

/* What both sides share: the loops above all, so that a call is begun where it came, and stays
 * there. */
struct shared {
    struct bow_context *context;
    struct bow_group *group;
};

static int serve(const struct shared *shared, const char *listen, struct bow_client *client)
{
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct bow_server *server = NULL;

    options.listen = listen;
    options.context = shared->context;
    options.group = shared->group;
    options.on_started = on_started;
    options.no_health = true; /* that of the servers behind is handed on, too */
    if (bow_server_new(&options, &server) < 0) {
        fprintf(stderr, "gateway: out of memory\n");
        return 1;
    }
    int rc = bow_server_set_fallback(server, forward_call, client);
    if (rc == 0) {
        rc = bow_server_run(server); /* until SIGTERM: calls in flight have grace_ns to end */
    }
    if (rc < 0) {
        fprintf(stderr, "gateway: %s\n", bow_server_error(server));
    }
    bow_server_free(server);
    return rc < 0;
}

static int connect_and_serve(const struct shared *shared, const char *listen, const char *target)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_transport_error error = {0};
    struct bow_client *client = NULL;

    options.target = target;
    options.context = shared->context;
    options.group = shared->group;
    options.error = &error;
    if (bow_client_new(&options, &client) < 0) {
        fprintf(stderr, "gateway: %s\n", error.text);
        return 1;
    }
    int failed = serve(shared, listen, client);
    bow_client_free(client);
    return failed;
}

int main(int argc, char **argv)
{
    struct bow_group_options options = BOW_GROUP_OPTIONS_INIT;
    struct shared shared = {NULL, NULL};
    int failed = 1;

    if (argc != 3) {
        fprintf(stderr, "usage: %s LISTEN TARGET\n", argv[0]);
        return 2;
    }
    options.n_loops = LOOPS;
    if (bow_context_new(NULL, &shared.context) < 0 ||
        bow_group_new(shared.context, &options, &shared.group) < 0) {
        fprintf(stderr, "gateway: out of memory\n");
    } else {
        failed = connect_and_serve(&shared, argv[1], argv[2]);
    }
    bow_group_unref(shared.group);
    bow_context_unref(shared.context);
    return failed;
}
