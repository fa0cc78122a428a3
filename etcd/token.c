/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The user's token. See the header. */

#include "etcd/token.h"
#include "etcd/core.h"
#include "etcd/rpc.bow.h"
#include <bowline/metadata_interceptor.h>

#include <string.h>

bool bow__etcd_wants_token(const char *text)
{
    return strstr(text, "invalid auth token") != NULL ||
           strstr(text, "user name is empty") != NULL ||
           strstr(text, "revision of auth store is old") != NULL;
}

static int keep(struct bow__etcd_token *token, const char *text)
{
    size_t len = text != NULL ? strlen(text) : 0;

    return bow_metadata_interceptor_set(token->interceptor,
                                        (struct bow_slice){(const uint8_t *)text, len});
}

/* Who is told may leave, and may want another one, which is asked for anew then. */
static void tell_all(struct bow__etcd_token *token, const struct bow_status *status)
{
    struct bow__link told;
    struct bow__link *link;

    bow__list_init(&told);
    bow__list_move(&told, &token->waiters);
    while ((link = bow__list_pop_front(&told)) != NULL) {
        struct bow__etcd_waiter *waiter = BOW__CONTAINER(link, struct bow__etcd_waiter, link);
        waiter->fn(waiter, status);
    }
}

static void on_token(struct bow_result *result, const Bow__Etcd__AuthenticateResponse *reply,
                     void *user)
{
    struct bow_etcd *etcd = user;
    struct bow__etcd_token *token = &etcd->token;
    struct bow_status status = result->status;

    token->is_asked = false;
    if (reply != NULL && keep(token, reply->token) < 0) {
        status = (struct bow_status){.code = BOW_INTERNAL,
                                     .message = "the token that etcd gave cannot be sent"};
    }
    token->generation += status.code == BOW_OK;
    tell_all(token, &status);
    bow_etcd_unref(etcd);
}

static int ask(struct bow_etcd *etcd)
{
    struct bow__etcd_token *token = &etcd->token;
    Bow__Etcd__AuthenticateRequest request = BOW__ETCD__AUTHENTICATE_REQUEST__INIT;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;

    request.name = token->user;
    request.password = token->password;
    options.timeout_ns = etcd->timeout_ns;
    int rc = keep(token, NULL);
    if (rc < 0) {
        return rc;
    }
    rc = bow__etcd__auth__authenticate__start(etcd->client, &request, &options, on_token, etcd,
                                              &token->call);
    if (rc == 0) {
        token->is_asked = true;
        bow_etcd_ref(etcd); /* for on_token */
    }
    return rc;
}

int bow__etcd_token_want(struct bow_etcd *etcd, struct bow__etcd_waiter *waiter)
{
    int rc = etcd->token.is_asked ? 0 : ask(etcd);

    if (rc == 0) {
        bow__list_push_back(&etcd->token.waiters, &waiter->link);
    }
    return rc;
}

void bow__etcd_token_leave(struct bow_etcd *etcd, struct bow__etcd_waiter *waiter)
{
    bow__list_remove(&waiter->link);
    if (etcd->token.is_asked && bow__list_is_empty(&etcd->token.waiters)) {
        bow_client_cancel(etcd->client, etcd->token.call);
    }
}
