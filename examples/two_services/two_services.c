/* SPDX-License-Identifier: 0BSD */
/*
 * A handler that asks two services at once, with callbacks: nobody waits, one thread serves any
 * number of such calls. Usage: two_services NAME...
 */

#include "shop.h"
#include <bowline/call.h>
#include <bowline/call_set.h>
#include <bowline/context.h>
#include <bowline/loop.h>
#include <bowline/server.h>
#include <stdio.h>

enum { COUNT = 0, PRICE = 1 }; /* the calls' numbers in the set */

static uint32_t amount_of(const struct bow_call_set *set, uint32_t number)
{
    return ((const Shop__Amount *)bow_call_set_result(set, number)->reply)->value;
}

/* The first one that failed of itself: the other one was cancelled for it. */
static const struct bow_status *failure_of(const struct bow_call_set *set)
{
    const struct bow_status *count = &bow_call_set_result(set, COUNT)->status;
    const struct bow_status *price = &bow_call_set_result(set, PRICE)->status;
    if (count->code != BOW_OK && count->code != BOW_CANCELLED) {
        return count;
    }
    return price->code != BOW_OK ? price : count->code != BOW_OK ? count : NULL;
}

static void on_both(struct bow_call_set *set, void *user)
{
    struct bow_call *call = user;
    Shop__Offer offer = SHOP__OFFER__INIT;
    const struct bow_status *failure = failure_of(set);
    if (failure != NULL) {
        bow_call_fail_status(call, failure);
    } else {
        offer.text =
            bow_call_printf(call, "%u at %u cents", amount_of(set, COUNT), amount_of(set, PRICE));
        shop__front__quote__reply(call, &offer);
    }
    bow_call_set_free(set);
}

static void quote(struct bow_call *call, const Shop__Item *item, void *user)
{
    struct bow_client *back = *(struct bow_client **)user;
    struct bow_call_set_options options = BOW_CALL_SET_OPTIONS_INIT;
    struct bow_call_options each = BOW_CALL_OPTIONS_INIT;
    struct bow_call_set *set = NULL;
    options.max_calls = 2;
    options.cancels_rest = true;
    each.parent = call; /* our deadline is theirs, and so is a cancel */
    if (bow_call_set_new(bow_call_loop(call), &options, on_both, call, &set) < 0 ||
        bow_call_set_start(set, back, shop__stock__count__method(), &item->base, &each) < 0 ||
        bow_call_set_start(set, back, shop__prices__price__method(), &item->base, &each) < 0) {
        bow_call_set_free(set);
        bow_call_fail(call, BOW_RESOURCE_EXHAUSTED, "can't ask");
        return;
    }
    bow_call_set_commit(set); /* on_both runs later, in any case */
}

int main(int argc, char **argv)
{
    const struct shop__front__handlers handlers = {.quote = quote};
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct bow_client_options client = BOW_CLIENT_OPTIONS_INIT;
    struct bow_context *context = NULL;
    struct bow_client *to_back = NULL; /* on the loop of the handlers */
    struct bow_server *front = NULL;
    int failed = 1;
    if (bow_context_new(NULL, &context) < 0 || bow_loop_new(context, NULL, &options.loop) < 0) {
        return 1;
    }
    struct bow_server *back = shop_start_back(context);
    client.context = options.context = context;
    client.loop = options.loop;
    client.target = SHOP_BACK;
    options.listen = SHOP_FRONT;
    if (back != NULL && bow_client_new(&client, &to_back) == 0 &&
        bow_server_new(&options, &front) == 0 &&
        shop__front__serve(front, &handlers, &to_back) == 0 && shop_start_front(front) == 0) {
        failed = 0;
        for (int i = 1; i < argc; i++) {
            failed |= shop_ask(context, argv[i]);
        }
    }
    bow_server_free(front);
    bow_client_free(to_back);
    bow_server_free(back);
    bow_loop_unref(options.loop);
    bow_context_unref(context);
    return failed;
}
