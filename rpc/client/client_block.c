/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Waiting for a call: on a condition while another thread runs the loop, or by
 * driving the loop of a confined client.
 */

#include "rpc/client/client.h"
#include "rpc/client/client_start.h"

#include <errno.h>

/* What a process is told that was forked after the client had been used. */
#define FORKED_TEXT                                                                                \
    "the client was used before fork(), and belongs to the parent process: make one in the child"

struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t done_cond;
    bool done;
    struct bow_result *result;
};

static void fill_error(struct bow_client *client, int rc, struct bow__text *reason, bool begun,
                       struct bow_result *ret_result)
{
    if (rc == -ECHILD) {
        bow__text_clear(reason);
        bow__text_printf(reason, "%s", FORKED_TEXT);
    }
    if (reason->len == 0) {
        bow__text_printf(reason, "starting the call: ");
        bow__text_errno(reason, rc);
    }
    bow__result_fail(client->config.context, rc, reason->bytes, begun, ret_result);
}

/* Another thread runs the loop */

static void on_done(struct bow_result *result, bow_any_fn fn, void *user)
{
    struct waiter *waiter = user;

    (void)fn;
    pthread_mutex_lock(&waiter->lock);
    bow_result_move(waiter->result, result);
    waiter->done = true;
    pthread_cond_signal(&waiter->done_cond);
    pthread_mutex_unlock(&waiter->lock);
}

static void wait_until_done(struct waiter *waiter)
{
    pthread_mutex_lock(&waiter->lock);
    while (!waiter->done) {
        pthread_cond_wait(&waiter->done_cond, &waiter->lock);
    }
    pthread_mutex_unlock(&waiter->lock);
}

static void call_and_wait(struct bow_client *client, const struct bow_method *method,
                          const ProtobufCMessage *request, const struct bow_call_options *options,
                          struct bow_result *ret_result)
{
    struct waiter waiter = {.lock = PTHREAD_MUTEX_INITIALIZER,
                            .done_cond = PTHREAD_COND_INITIALIZER,
                            .result = ret_result};
    struct bow__client_begin begin = {
        .method = method,
        .request = request,
        .options = options,
        .done = on_done,
        .user = &waiter,
    };
    struct bow__text reason;

    bow__text_clear(&reason);
    int rc = bow__client_begin(client, &begin, &reason);
    if (rc == 0) {
        wait_until_done(&waiter);
    } else {
        fill_error(client, rc, &reason, false, ret_result);
    }
    pthread_cond_destroy(&waiter.done_cond);
    pthread_mutex_destroy(&waiter.lock);
}

/* This thread does */

static void on_done_here(struct bow_result *result, bow_any_fn fn, void *user)
{
    struct waiter *waiter = user;

    (void)fn;
    bow_result_move(waiter->result, result);
    waiter->done = true;
}

static void call_and_drive(struct bow_client *client, const struct bow_method *method,
                           const ProtobufCMessage *request, const struct bow_call_options *options,
                           struct bow_result *ret_result)
{
    struct waiter waiter = {.result = ret_result};
    struct bow__client_begin begin = {
        .method = method,
        .request = request,
        .options = options,
        .done = on_done_here,
        .user = &waiter,
    };
    struct bow__text reason;

    bow__text_clear(&reason);
    int rc = bow__client_catch_up(client);
    if (rc == 0) {
        rc = bow__client_begin(client, &begin, &reason);
    }
    bool begun = rc == 0;
    while (rc == 0 && !waiter.done) {
        rc = bow__client_drive(client, BOW_NEVER);
    }
    if (!waiter.done) {
        fill_error(client, rc, &reason, begun, ret_result);
    }
    bow__client_end_drive(client);
}

const ProtobufCMessage *bow_client_call(struct bow_client *client, const struct bow_method *method,
                                        const ProtobufCMessage *request,
                                        const struct bow_call_options *options,
                                        struct bow_result *ret_result)
{
    if (client->config.confined && !pthread_equal(client->thread, pthread_self())) {
        bow__result_fail(client->config.context, -EINVAL, BOW__CONFINED_TEXT, false, ret_result);
    } else if (client->config.confined ? client->driving : bow__client_in_loops(client)) {
        bow__result_fail(client->config.context, -EDEADLK,
                         "a blocking call on the client's own loop would wait for itself: use the "
                         "callback form, bow_client_start() or the method's __start()",
                         false, ret_result);
    } else if (client->config.confined) {
        call_and_drive(client, method, request, options, ret_result);
    } else {
        call_and_wait(client, method, request, options, ret_result);
    }
    return ret_result->reply;
}
