/* SPDX-License-Identifier: 0BSD */
/* The service: a server and a timer on a loop that its owner drives. */

#include "service.h"
#include "greeter.bow.h"
#include <bowline/call.h>
#include <bowline/server.h>
#include <bowline/timer.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define TICK_NS UINT64_C(100000000)

struct service {
    struct bow_context *context;
    struct bow_loop *loop;
    struct bow_server *server;
    struct bow_timer tick;
    int n_ticks;
};

static struct bow_loop *signalled_loop;
static volatile sig_atomic_t signalled;

static void on_signal(int number)
{
    (void)number;
    signalled = 1;
    bow_loop_wake(signalled_loop); /* service_fd() becomes readable */
}

static void say_hello(struct bow_call *call, const Demo__HelloRequest *request, void *user)
{
    const struct service *service = user;
    Demo__HelloReply reply = DEMO__HELLO_REPLY__INIT;
    reply.message =
        bow_call_printf(call, "Hello, %s, after %d ticks", request->name, service->n_ticks);
    demo__greeter__say_hello__reply(call, &reply);
}

static void on_tick(struct bow_timer *timer, void *user)
{
    struct service *service = user;
    service->n_ticks++;
    bow_timer_start(timer, TICK_NS);
}

static int make_loop(struct service *service)
{
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
    int rc = bow_context_new(&context_options, &service->context);
    if (rc < 0) {
        return rc;
    }
    loop_options.thread = BOW_LOOP_OWNER; /* no thread is made for it */
    return bow_loop_new(service->context, &loop_options, &service->loop);
}

static int make_server(struct service *service, const char *address)
{
    struct demo__greeter__handlers handlers = {.say_hello = say_hello};
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    options.context = service->context;
    options.listen = address;
    options.loop = service->loop;
    int rc = bow_server_new(&options, &service->server);
    if (rc < 0) {
        return rc;
    }
    rc = demo__greeter__serve(service->server, &handlers, service);
    return rc < 0 ? rc : bow_server_start(service->server);
}

struct service *service_start(const char *address)
{
    const struct sigaction action = {.sa_handler = on_signal};
    struct service *service = calloc(1, sizeof(*service));
    if (service == NULL || make_loop(service) < 0 || make_server(service, address) < 0) {
        const char *why = service != NULL && service->server != NULL
                              ? bow_server_error(service->server)
                              : "out of memory or descriptors";
        fprintf(stderr, "embedded: %s\n", why);
        service_free(service);
        return NULL;
    }
    bow_timer_init(&service->tick, service->loop, on_tick, service);
    bow_timer_start(&service->tick, TICK_NS);
    signalled_loop = service->loop;
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    printf("listening on %s, port %d\n", address, (int)bow_server_port(service->server));
    fflush(stdout);
    return service;
}

int service_fd(const struct service *service)
{
    return bow_loop_fd(service->loop);
}

bool service_turn(struct service *service)
{
    if (signalled) {
        bow_server_stop(service->server); /* drains: calls in flight are answered */
    }
    (void)!bow_loop_run_once(service->loop, 0);          /* fails only for a loop with a thread */
    return bow_server_join(service->server) == -EDEADLK; /* it has not stopped yet */
}

void service_free(struct service *service)
{
    if (service == NULL) {
        return;
    }
    bow_server_free(service->server);
    bow_loop_unref(service->loop);
    bow_context_unref(service->context);
    free(service);
}
