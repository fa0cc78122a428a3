/* SPDX-License-Identifier: 0BSD */
/* The services behind, and somebody who asks; see the header. */

#include "shop.h"
#include <bowline/call.h>
#include <bowline/client.h>
#include <bowline/server.h>
#include <stdio.h>
#include <string.h>

static void count(struct bow_call *call, const Shop__Item *item, void *user)
{
    Shop__Amount amount = SHOP__AMOUNT__INIT;
    (void)user;
    if (strcmp(item->name, "unicorn") == 0) {
        bow_call_fail(call, BOW_NOT_FOUND, "there is no %s", item->name);
        return;
    }
    amount.value = 3;
    shop__stock__count__reply(call, &amount);
}

static void price(struct bow_call *call, const Shop__Item *item, void *user)
{
    Shop__Amount amount = SHOP__AMOUNT__INIT;
    (void)user;
    amount.value = 40 * (uint32_t)strlen(item->name);
    shop__prices__price__reply(call, &amount);
}

struct bow_server *shop_start_back(struct bow_context *context)
{
    const struct shop__stock__handlers stock = {.count = count};
    const struct shop__prices__handlers prices = {.price = price};
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct bow_server *server = NULL;
    options.context = context;
    options.listen = SHOP_BACK;
    if (bow_server_new(&options, &server) < 0 || shop__stock__serve(server, &stock, NULL) < 0 ||
        shop__prices__serve(server, &prices, NULL) < 0 || bow_server_start(server) < 0) {
        fprintf(stderr, "shop: the back does not start\n");
        bow_server_free(server);
        return NULL;
    }
    return server;
}

int shop_start_front(struct bow_server *server)
{
    int rc = server != NULL ? bow_server_start(server) : -1;
    if (rc < 0) {
        fprintf(stderr, "shop: %s\n", server != NULL ? bow_server_error(server) : "no memory");
    }
    return rc;
}

int shop_ask(struct bow_context *context, const char *name)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_result result = BOW_RESULT_INIT;
    struct bow_client *client = NULL;
    Shop__Item item = SHOP__ITEM__INIT;
    options.context = context;
    options.target = SHOP_FRONT;
    if (bow_client_new(&options, &client) < 0) {
        return 1;
    }
    item.name = (char *)(uintptr_t)name;
    const Shop__Offer *offer = shop__front__quote__call(client, &item, NULL, &result);
    if (offer != NULL) {
        printf("%s\n", offer->text);
    } else {
        printf("%s: %s\n", bow_code_name(result.status.code), result.status.message);
    }
    int failed = offer == NULL;
    bow_result_fini(&result);
    bow_client_free(client);
    return failed;
}
