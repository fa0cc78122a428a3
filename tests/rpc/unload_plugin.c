/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A plug-in that links the library: it serves a call on a kind of loop, and ends all of it. Its
 * host, unload_test, takes it out of the process at once.
 */

#include "unload_plugin.h"
#include "protos/echo.bow.h"

#include <bowline/client.h>
#include <bowline/context.h>
#include <bowline/group.h>
#include <bowline/loop.h>
#include <bowline/server.h>
#include <errno.h>
#include <stdio.h>

struct serving {
    struct bow_context *context;
    struct bow_loop *loop;
    struct bow_group *group;
    struct bow_server *server;
    struct bow_client *client;
};

static void say(struct bow_call *call, const Calls__Request *request, void *user)
{
    Calls__Reply reply = CALLS__REPLY__INIT;

    (void)user;
    reply.number = request->number;
    (void)calls__echo__say__reply(call, &reply);
}

static int make_loops(struct serving *serving, enum unload_binding binding)
{
    struct bow_group_options options = BOW_GROUP_OPTIONS_INIT;

    int rc = bow_context_new(NULL, &serving->context);
    if (rc == 0 && (binding == UNLOAD_LOOP || binding == UNLOAD_CLIENT_ON_LOOP)) {
        rc = bow_loop_new(serving->context, NULL, &serving->loop);
    }
    if (rc == 0 && (binding == UNLOAD_GROUP || binding == UNLOAD_PER_WORKER)) {
        options.n_loops = 2;
        rc = bow_group_new(serving->context, &options, &serving->group);
    }
    return rc;
}

static int start(struct serving *serving, enum unload_binding binding)
{
    static const struct calls__echo__handlers handlers = {.say = say};
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct bow_listen_options listen = BOW_LISTEN_OPTIONS_INIT;

    options.context = serving->context;
    options.loop = serving->loop;
    options.group = serving->group;
    options.workers = binding == UNLOAD_WORKERS ? 2 : 0;
    listen.address = "127.0.0.1:0";
    listen.per_worker = binding == UNLOAD_PER_WORKER;
    int rc = bow_server_new(&options, &serving->server);
    if (rc == 0) {
        rc = calls__echo__serve(serving->server, &handlers, NULL);
    }
    if (rc == 0) {
        rc = bow_server_listen(serving->server, &listen);
    }
    return rc == 0 ? bow_server_start(serving->server) : rc;
}

static int call(struct serving *serving, enum unload_binding binding)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_result result = BOW_RESULT_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;
    char target[64];

    snprintf(target, sizeof(target), "127.0.0.1:%u", bow_server_port(serving->server));
    options.context = serving->context;
    options.target = target;
    options.loop = binding == UNLOAD_CLIENT_ON_LOOP ? serving->loop : NULL;
    int rc = bow_client_new(&options, &serving->client);
    if (rc == 0) {
        rc = calls__echo__say__call(serving->client, &request, NULL, &result) != NULL ? 0 : -EIO;
        bow_result_fini(&result);
    }
    return rc;
}

int unload_serve(enum unload_binding binding)
{
    struct serving serving = {.context = NULL};

    int rc = make_loops(&serving, binding);
    if (rc == 0) {
        rc = start(&serving, binding);
    }
    if (rc == 0) {
        rc = call(&serving, binding);
    }
    bow_client_free(serving.client);
    bow_server_free(serving.server);
    bow_loop_unref(serving.loop);
    bow_group_unref(serving.group);
    if (rc == 0 && bow_context_bytes(serving.context) > 0) {
        rc = -EBUSY;
    }
    bow_context_unref(serving.context);
    return rc;
}
