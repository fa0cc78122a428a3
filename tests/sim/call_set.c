/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Sets of unary calls: one callback when all are done, once, with the result of each. In some of
 * them the first that fails ends the others.
 */

#include "world.h"

#include <errno.h>

static void end_one(struct sim_call *call, const struct bow_result *result)
{
    const Sim__Reply *reply = (const Sim__Reply *)result->reply;

    if ((reply != NULL) != (result->status.code == BOW_OK)) {
        sim_violate(call->world, "a call of a set: a reply means OK");
    } else if (reply != NULL) {
        sim_client_check_reply(call, reply, 0);
    }
    sim_told_check(call, result);
    sim_verdict_end(call, &result->status);
}

static void on_all_done(struct bow_call_set *of, void *user)
{
    struct sim_set *set = user;

    if (set->set != of || bow_call_set_n_calls(of) != set->n_started) {
        sim_violate(set->client->machine->world, "a set of calls is done twice, or has others");
        return;
    }
    for (uint32_t i = 0; i < set->n_started; i++) {
        set->started[i]->code = bow_call_set_result(of, i)->status.code;
    }
    for (uint32_t i = 0; i < set->n_started; i++) {
        end_one(set->started[i], bow_call_set_result(of, i));
    }
    sim_verdict_set(set);
    bow_call_set_free(of);
    set->set = NULL;
}

int sim_set_add(struct sim_call *call, const Sim__Request *request,
                const struct bow_call_options *options)
{
    struct sim_set *set = call->set;
    int number = bow_call_set_start(set->set, call->client->client, sim__calls__say__method(),
                                    &request->base, options);

    if (number < 0) {
        return number;
    }
    if ((uint32_t)number != set->n_started) {
        sim_violate(call->world, "a call is number %d of its set", number);
    }
    set->started[set->n_started++] = call;
    set->latest_ns = call->deadline_ns > set->latest_ns ? call->deadline_ns : set->latest_ns;
    return 0;
}

void sim_set_start(struct sim_set *set)
{
    struct bow_call_set_options options = BOW_CALL_SET_OPTIONS_INIT;
    struct sim_client *client = set->client;

    if (client->is_freed) {
        return;
    }
    options.max_calls = (uint32_t)set->n_calls;
    options.cancels_rest = set->cancels_rest;
    int rc = bow_call_set_new(client->machine->loop, &options, on_all_done, set, &set->set);
    if (rc < 0) {
        if (rc != -ENOMEM || client->machine->memory_failed_ns == 0) {
            sim_violate(client->machine->world, "a set of calls cannot be made: %d", rc);
        }
        return;
    }
    for (int i = 0; i < set->n_calls; i++) {
        sim_client_call(set->calls + i);
    }
    bow_call_set_commit(set->set);
    sim_machine_wake(client->machine);
}

void sim_set_cancel(struct sim_set *set)
{
    for (uint32_t i = 0; i < set->n_started; i++) {
        set->started[i]->is_cancelled = true;
    }
    bow_call_set_cancel(set->set);
}
