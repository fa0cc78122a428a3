/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The services of the sweep: handlers that take any want of memory as an error of the call.
 */

#include "sweep.h"

#include <bowline/call.h>
#include <bowline/call_stream.h>
#include <bowline/metadata.h>
#include <string.h>

static void no_memory(struct bow_call *call)
{
    (void)bow_call_fail(call, BOW_RESOURCE_EXHAUSTED, "no memory in the handler");
}

/* Echo */

static void say(struct bow_call *call, const Calls__Request *request, void *user)
{
    static const struct bow_slice value = {(const uint8_t *)"yes", 3};
    Calls__Reply reply = CALLS__REPLY__INIT;
    (void)user;

    reply.number = request->number;
    if (request->text[0] != '\0' && (bow_call_add_initial(call, "first", value) < 0 ||
                                     bow_call_add_trailing(call, "last", value) < 0)) {
        no_memory(call);
        return;
    }
    if (request->reply_bytes > 0) {
        reply.payload.data = bow_call_alloc(call, request->reply_bytes);
        if (reply.payload.data == NULL) {
            no_memory(call);
            return;
        }
        memset(reply.payload.data, 'x', request->reply_bytes);
        reply.payload.len = request->reply_bytes;
    }
    (void)calls__echo__say__reply(call, &reply);
}

/* All: sum */

static void on_summand(struct kinds__all__sum__call call, const Kinds__Number *message, void *user)
{
    (void)call;
    *(uint64_t *)user += message->value;
}

static void on_last_summand(struct kinds__all__sum__call call, void *user)
{
    Kinds__Number reply = KINDS__NUMBER__INIT;

    reply.value = *(uint64_t *)user;
    (void)kinds__all__sum__reply(call, &reply);
}

static void sum(struct kinds__all__sum__call call, void *user)
{
    static const struct kinds__all__sum__call_events events = {.on_message = on_summand,
                                                               .on_half_close = on_last_summand};
    uint64_t *total = bow_call_alloc(call.call, sizeof(*total));
    (void)user;

    if (total == NULL) {
        no_memory(call.call);
        return;
    }
    *total = 0;
    (void)kinds__all__sum__listen(call, &events, total);
}

/* All: count, and double */

static void count(struct kinds__all__count__call call, const Kinds__Number *request, void *user)
{
    Kinds__Number number = KINDS__NUMBER__INIT;
    int rc = 0;
    (void)user;

    while (rc == 0 && number.value < request->value) {
        number.value++;
        rc = kinds__all__count__send(call, &number);
    }
    if (rc < 0) {
        no_memory(call.call);
    } else {
        (void)kinds__all__count__finish(call);
    }
}

static void on_single(struct kinds__all__double__call call, const Kinds__Number *message,
                      void *user)
{
    Kinds__Number twice = KINDS__NUMBER__INIT;
    (void)user;

    twice.value = 2 * message->value;
    if (kinds__all__double__send(call, &twice) == -ENOMEM) {
        no_memory(call.call);
    }
}

static void on_last_single(struct kinds__all__double__call call, void *user)
{
    (void)user;
    (void)kinds__all__double__finish(call);
}

static void twice(struct kinds__all__double__call call, void *user)
{
    static const struct kinds__all__double__call_events events = {.on_message = on_single,
                                                                  .on_half_close = on_last_single};

    (void)kinds__all__double__listen(call, &events, user);
}

/* All: ask, which calls on */

static void on_said(struct bow_result *result, const Calls__Reply *said, void *user)
{
    struct bow_call *call = user;
    Kinds__Number reply = KINDS__NUMBER__INIT;

    if (said == NULL) {
        (void)bow_call_fail(call, result->status.code, "%s", result->status.message);
        return;
    }
    reply.value = said->number;
    (void)kinds__all__ask__reply(call, &reply);
}

static void ask(struct bow_call *call, const Kinds__Number *request, void *user)
{
    const struct sweep *sweep = user;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request on = CALLS__REQUEST__INIT;

    options.parent = call;
    on.number = request->value;
    if (calls__echo__say__start(sweep->pair->client, &on, &options, on_said, call, NULL) < 0) {
        no_memory(call);
    }
}

int sweep_serve(struct bow_server *server, void *user)
{
    const struct calls__echo__handlers echo = {.say = say};
    const struct kinds__all__handlers all = {
        .sum = sum, .count = count, .double_ = twice, .ask = ask};
    struct sweep *sweep = user;

    int rc = calls__echo__serve(server, &echo, sweep);
    if (rc == 0) {
        rc = kinds__all__serve(server, &all, sweep);
    }
    if (rc == 0 && sweep->prepare != NULL) {
        rc = sweep->prepare(sweep, server);
    }
    return rc;
}
