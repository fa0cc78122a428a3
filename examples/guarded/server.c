/* SPDX-License-Identifier: 0BSD */
/* The greeter behind a token, which says who calls, with a log of its calls: lines of JSON on
 * stderr. SIGHUP would be a good time to call bow_bearer_reload(). A line of TOKENS is TOKEN or
 * SUBJECT:TOKEN. Usage: guarded-server TOKENS [ADDRESS] */

#include "greeter.bow.h"
#include <bowline/access_log.h>
#include <bowline/bearer.h>
#include <bowline/call.h>
#include <bowline/context.h>
#include <bowline/server.h>
#include <stdio.h>
#include <unistd.h>

static void say_hello(struct bow_call *call, const Demo__HelloRequest *request, void *user)
{
    Demo__HelloReply reply = DEMO__HELLO_REPLY__INIT;

    (void)user;
    const char *caller = bow_bearer_subject(call);
    reply.message = bow_call_printf(call, "Hello, %s, sent by %s", request->name,
                                    caller != NULL ? caller : "nobody in particular");
    demo__greeter__say_hello__reply(call, &reply);
}

static int add(struct bow_server *server, struct bow_interceptor *interceptor)
{
    int rc = bow_server_intercept(server, interceptor);

    if (rc < 0) {
        interceptor->release(interceptor->user);
    }
    return rc;
}

/* First, and so the outermost: it sees calls that are refused. */
static int add_log(struct bow_context *context, struct bow_server *server)
{
    struct bow_access_log_options options = BOW_ACCESS_LOG_OPTIONS_INIT;
    struct bow_interceptor interceptor;
    struct bow_access_log *log;

    options.context = context;
    options.fd = STDERR_FILENO;
    options.json = true;
    int rc = bow_access_log_new(&options, &log);
    if (rc < 0) {
        return rc;
    }
    bow_access_log_intercept(log, &interceptor);
    bow_access_log_unref(log);
    return add(server, &interceptor);
}

static int add_tokens(struct bow_context *context, struct bow_server *server, const char *file)
{
    struct bow_bearer_options options = BOW_BEARER_OPTIONS_INIT;
    struct bow_transport_error error = {.text = ""};
    struct bow_interceptor interceptor;
    struct bow_bearer *bearer;

    options.context = context;
    options.file = file;
    options.error = &error;
    int rc = bow_bearer_new(&options, &bearer);
    if (rc < 0) {
        fprintf(stderr, "guarded-server: %s\n", error.text);
        return rc;
    }
    bow_bearer_check(bearer, &interceptor);
    bow_bearer_unref(bearer);
    return add(server, &interceptor);
}

static void on_started(struct bow_server *server, void *user)
{
    (void)user;
    printf("listening on port %d\n", (int)bow_server_port(server));
    fflush(stdout);
}

static int run(struct bow_context *context, struct bow_server *server, const char *tokens)
{
    struct demo__greeter__handlers handlers = {.say_hello = say_hello};

    int rc = demo__greeter__serve(server, &handlers, NULL);
    if (rc == 0) {
        rc = add_log(context, server);
    }
    if (rc == 0) {
        rc = add_tokens(context, server, tokens);
    }
    if (rc == 0) {
        rc = bow_server_run(server);
    }
    return rc;
}

int main(int argc, char **argv)
{
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct bow_context *context;
    struct bow_server *server;

    if (argc < 2 || bow_context_new(NULL, &context) != 0) {
        fprintf(stderr, "usage: guarded-server TOKENS [ADDRESS]\n");
        return 2;
    }
    options.context = context;
    options.listen = argc > 2 ? argv[2] : "127.0.0.1:50051";
    options.on_started = on_started;
    if (bow_server_new(&options, &server) != 0) {
        return 1;
    }
    int rc = run(context, server, argv[1]);
    if (rc != 0) {
        fprintf(stderr, "guarded-server: %s\n", bow_server_error(server));
    }
    bow_server_free(server);
    bow_context_unref(context);
    return rc == 0 ? 0 : 1;
}
