/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A client's calls on their way past its interceptors: on the loop, before a call is queued or
 * sent. One that is held is in the table's list; its deadline, a cancel and the balancer's
 * end find it there. A second try of a call does not pass them again.
 */

#include "rpc/client/intercept_client.h"
#include "rpc/client/call/client_metadata.h"
#include "rpc/core/errors.h"

#include <errno.h>

static struct bow__client_interception *interception_of(const struct bow__intercepted *it)
{
    return (struct bow__client_interception *)(uintptr_t)it;
}

/* What interceptors ask */

static const struct bow__client_config *config_of(const struct bow__client_call *call)
{
    return bow__balancer_of(call)->subchannels.config;
}

/* Of a list it is the first one until the call has gone to another, of a name the target. */
static const char *address_of(const struct bow__client_call *call)
{
    const struct bow__target *target = &config_of(call)->target;

    if (call->conn != NULL) {
        return bow__client_conn_of(call->conn)->subchannel->address->text;
    }
    return target->n_addresses > 0 ? target->addresses[0].text : target->text;
}

static struct bow__intercept_facts facts(const struct bow__intercepted *it)
{
    const struct bow__client_call *call = interception_of(it)->call;
    const struct bow__client_config *config = config_of(call);

    return (struct bow__intercept_facts){
        .method = call->method,
        .peer = address_of(call),
        .protocol = config->target.http2 ? "grpc" : "native",
        .deadline_ns = call->deadline_ns,
        .loop = call->calls->loop,
        .request = call->metadata,
        .initial = call->initial,
        .secure = config->options.security != NULL,
    };
}

/* What the caller gave is the beginning of the list; it counts as if it had been added. */
static int add(struct bow__intercepted *it, enum bow__intercept_add what, const char *key,
               struct bow_slice value)
{
    struct bow__client_interception *own = interception_of(it);
    struct bow__client_call *call = own->call;
    struct bow__metadata_list *list = &own->request;

    if (what != BOW__ADD_REQUEST && what != BOW__SET_REQUEST) {
        return -EINVAL;
    }
    for (size_t i = list->n; i < call->metadata.n; i++) {
        const struct bow_metadata_entry *given = &call->metadata.entries[i];
        int rc = bow__metadata_add(list, it->arena, given->key, given->value);
        if (rc < 0) {
            return rc;
        }
    }
    return what == BOW__SET_REQUEST ? bow__client_call_set_metadata(call, list, key, value)
                                    : bow__client_call_add_metadata(call, list, key, value);
}

/* What becomes of a call */

static void show_request(struct bow__client_call *call)
{
    if (!bow__method_sends_many(call->method)) {
        bow__intercept_sent(call->intercepted,
                            call->block != NULL ? call->block->data : call->request,
                            call->n_request);
    }
}

static void hold(struct bow__client_call *call)
{
    call->state = BOW__CLIENT_CALL_HELD;
    bow__list_push_back(&call->calls->held, &call->at);
    call->calls->n_held++;
}

void bow__client_fail_submitted(struct bow__client_call *call, int rc,
                                const struct bow__text *reason)
{
    enum bow_code code = rc == -ENOTCONN ? BOW_UNAVAILABLE : bow__code_from_errno(rc);

    if (rc == -ESHUTDOWN) {
        bow__client_call_fail(call, BOW_CANCELLED, "the client was closed");
        return;
    }
    bow__client_call_fail(call, code,
                          reason->len > 0 ? reason->bytes : "the request cannot be sent");
}

static void submit(struct bow__client_call *call)
{
    struct bow__text reason;

    bow__text_clear(&reason);
    call->state = BOW__CLIENT_CALL_POSTED; /* in no list */
    int rc = bow__balancer_submit(bow__balancer_of(call), call, &reason);
    if (rc == -EAGAIN) {
        bow__client_call_count_refused(call);
    }
    if (rc < 0) {
        bow__client_fail_submitted(call, rc, &reason);
    }
}

static void go_on(struct bow__intercepted *it)
{
    struct bow__client_call *call = interception_of(it)->call;

    show_request(call);
    bow__list_remove(&call->at);
    call->calls->n_held--;
    submit(call);
}

static void refuse(struct bow__intercepted *it)
{
    bow__client_call_complete(interception_of(it)->call, &it->refusal);
}

static void run_deferred(struct bow__deferred *deferred)
{
    bow__intercepted_run(&BOW__CONTAINER(deferred, struct bow__client_interception, deferred)->it);
}

static void defer(struct bow__intercepted *it)
{
    struct bow__client_interception *own = interception_of(it);

    bow__loop_defer_flush(own->call->calls->loop, &own->deferred);
}

static const struct bow__intercept_ops ops = {
    .facts = facts,
    .add = add,
    .defer = defer,
    .go_on = go_on,
    .refuse = refuse,
};

/* What the client asks */

static int make(struct bow__client_call *call)
{
    struct bow__intercepted *it =
        bow__intercepted_new(&config_of(call)->interceptors, &ops, &call->memory->arena,
                             sizeof(struct bow__client_interception), call->started_ns);

    if (it == NULL) {
        return -ENOMEM;
    }
    struct bow__client_interception *own = interception_of(it);
    own->call = call;
    own->deferred.fn = run_deferred;
    bow__list_init(&own->deferred.link);
    call->intercepted = it;
    return 0;
}

static int check_held(const struct bow__client_call *call, struct bow__text *reason)
{
    uint32_t max = config_of(call)->options.max_queued_calls;

    if (call->calls->n_held < max) {
        return 0;
    }
    bow__text_printf(reason, "%u calls are held by interceptors already (max_queued_calls)", max);
    return -EAGAIN;
}

int bow__client_intercept(struct bow__client_call *call, struct bow__text *reason)
{
    if (call->calls->closing) {
        return 0; /* it is about to be refused */
    }
    int rc = check_held(call, reason);
    if (rc == 0) {
        rc = make(call);
    }
    if (rc < 0) {
        return rc;
    }
    enum bow__intercept_stage stage = bow__intercepted_start(call->intercepted);
    if (stage == BOW__INTERCEPT_PASSED) {
        show_request(call);
        return 0;
    }
    hold(call);
    if (stage == BOW__INTERCEPT_REFUSED) {
        defer(call->intercepted); /* a completion never comes from inside a start */
    }
    return 1;
}

void bow__client_intercept_undo(struct bow__client_call *call, int rc,
                                const struct bow__text *reason)
{
    struct bow_status status = BOW_STATUS_OK_INIT;

    status.code = bow__code_from_errno(rc);
    status.message = reason->len > 0 ? reason->bytes : "the call cannot be started";
    bow__client_call_end_interceptors(call, &status);
}
