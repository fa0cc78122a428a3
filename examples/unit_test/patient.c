/* SPDX-License-Identifier: 0BSD */
/* A timer for each call, in the call's memory; stopped when nobody waits any more. */

#include "patient.h"
#include <bowline/call.h>
#include <bowline/timer.h>

#define THINKING_NS (5 * 1000000000ull)

struct thought {
    struct bow_timer timer;
    struct bow_call *call;
    struct patient *patient;
    const char *name;
};

static void on_thought(struct bow_timer *timer, void *user)
{
    struct thought *thought = user;
    Demo__HelloReply reply = DEMO__HELLO_REPLY__INIT;
    (void)timer;
    thought->patient->n_waiting--;
    reply.message = bow_call_printf(thought->call, "Hello, %s", thought->name);
    demo__greeter__say_hello__reply(thought->call, &reply);
}

static void on_cancel(struct bow_call *call, enum bow_code why, void *user)
{
    struct thought *thought = user;
    bow_timer_stop(&thought->timer);
    thought->patient->n_waiting--;
    bow_call_fail(call, why, "nobody waits any more");
}

static void say_hello(struct bow_call *call, const Demo__HelloRequest *request, void *user)
{
    struct thought *thought = bow_call_alloc(call, sizeof(*thought));
    if (thought == NULL) {
        bow_call_fail(call, BOW_RESOURCE_EXHAUSTED, "no memory to think");
        return;
    }
    thought->call = call;
    thought->patient = user;
    thought->name = request->name; /* lives as long as the call */
    thought->patient->n_waiting++;
    bow_timer_init(&thought->timer, bow_call_loop(call), on_thought, thought);
    bow_timer_start(&thought->timer, THINKING_NS);
    bow_call_on_cancel(call, on_cancel, thought);
}

int patient_serve(struct bow_server *server, struct patient *patient)
{
    const struct demo__greeter__handlers handlers = {.say_hello = say_hello};
    return demo__greeter__serve(server, &handlers, patient);
}
