/* SPDX-License-Identifier: 0BSD */
/*
 * A handler that asks two services one after the other, and waits: it runs on an executor, whose
 * threads may block. Usage: sequential NAME...
 */

#include "shop.h"
#include <bowline/call.h>
#include <bowline/client.h>
#include <bowline/context.h>
#include <bowline/executor.h>
#include <bowline/loop.h>
#include <bowline/server.h>
#include <stdio.h>

/* On a thread of the executor. */
static void quote(struct bow_call *call, const Shop__Item *item, void *user)
{
    struct bow_client *back = *(struct bow_client **)user;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    struct bow_result counted = BOW_RESULT_INIT;
    struct bow_result priced = BOW_RESULT_INIT;
    Shop__Offer offer = SHOP__OFFER__INIT;
    options.parent = call; /* our deadline is theirs, and a cancel ends the wait */
    const Shop__Amount *count = shop__stock__count__call(back, item, &options, &counted);
    const Shop__Amount *price =
        count != NULL ? shop__prices__price__call(back, item, &options, &priced) : NULL;
    if (price != NULL) {
        offer.text = bow_call_printf(call, "%u at %u cents", count->value, price->value);
        shop__front__quote__reply(call, &offer);
    } else {
        bow_call_fail_status(call, count == NULL ? &counted.status : &priced.status);
    }
    bow_result_fini(&counted);
    bow_result_fini(&priced);
}

static int make_front(struct bow_context *context, struct bow_client **back,
                      struct bow_executor *executor, struct bow_server **ret_front)
{
    const struct shop__front__handlers handlers = {.quote = quote};
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    options.context = context;
    options.listen = SHOP_FRONT;
    int rc = bow_server_new(&options, ret_front);
    if (rc == 0) {
        rc = shop__front__serve(*ret_front, &handlers, back);
    }
    if (rc == 0) {
        rc = bow_server_bind(*ret_front, "shop.Front/Quote", executor);
    }
    return rc == 0 ? shop_start_front(*ret_front) : rc;
}

int main(int argc, char **argv)
{
    struct bow_executor_options threads = BOW_EXECUTOR_OPTIONS_INIT;
    struct bow_client_options client = BOW_CLIENT_OPTIONS_INIT;
    struct bow_context *context = NULL;
    struct bow_executor *executor = NULL;
    struct bow_client *to_back = NULL; /* one for all threads; its loop is one of its own */
    struct bow_server *front = NULL;
    int failed = 1;
    threads.n_threads = 8; /* as many quotes wait at once; more wait for their turn */
    if (bow_context_new(NULL, &context) < 0 || bow_loop_new(context, NULL, &client.loop) < 0) {
        return 1;
    }
    struct bow_server *back = shop_start_back(context);
    client.context = context;
    client.target = SHOP_BACK;
    if (back != NULL && bow_client_new(&client, &to_back) == 0 &&
        bow_executor_new(context, &threads, &executor) == 0 &&
        make_front(context, &to_back, executor, &front) == 0) {
        failed = 0;
        for (int i = 1; i < argc; i++) {
            failed |= shop_ask(context, argv[i]);
        }
    }
    bow_server_free(front);
    bow_executor_unref(executor);
    bow_client_free(to_back);
    bow_server_free(back);
    bow_loop_unref(client.loop);
    bow_context_unref(context);
    return failed;
}
