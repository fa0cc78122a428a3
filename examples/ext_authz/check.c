/* SPDX-License-Identifier: 0BSD */
/* Owns the answer. It is encoded where it is sent, so all of it may lie on the stack. */

#include "check.h"
#include <bowline/call.h>
#include <stdio.h>
#include <string.h>

#define KEY_HEADER "x-api-key"
#define NAME_HEADER "x-client-name"

typedef Envoy__Config__Core__V3__HeaderValue HeaderValue;
typedef Envoy__Config__Core__V3__HeaderValueOption HeaderValueOption;
typedef Envoy__Service__Auth__V3__AttributeContext__HttpRequest HttpRequest;
typedef Envoy__Service__Auth__V3__AttributeContext__HttpRequest__HeadersEntry HeadersEntry;
typedef Envoy__Service__Auth__V3__AttributeContext__Peer Peer;
typedef Envoy__Service__Auth__V3__CheckRequest CheckRequest;
typedef Envoy__Service__Auth__V3__CheckResponse CheckResponse;
typedef Envoy__Service__Auth__V3__DeniedHttpResponse DeniedHttpResponse;
typedef Envoy__Service__Auth__V3__OkHttpResponse OkHttpResponse;
typedef Envoy__Type__V3__HttpStatus HttpStatus;
typedef Google__Rpc__Status Status;

/* Reading the request */

static const HttpRequest *find_http(const CheckRequest *request)
{
    const Envoy__Service__Auth__V3__AttributeContext *attributes = request->attributes;

    return attributes != NULL && attributes->request != NULL ? attributes->request->http : NULL;
}

static const char *find_header(const HttpRequest *http, const char *name)
{
    for (size_t i = http->n_headers; i > 0; i--) { /* of a map's entries the last counts */
        const HeadersEntry *entry = http->headers[i - 1];
        if (strcmp(entry->key, name) == 0) {
            return entry->value;
        }
    }
    return NULL;
}

static const char *find_client(const CheckRequest *request)
{
    const Peer *source = request->attributes != NULL ? request->attributes->source : NULL;

    if (source != NULL && source->address != NULL &&
        source->address->address_case == ENVOY__CONFIG__CORE__V3__ADDRESS__ADDRESS_SOCKET_ADDRESS) {
        return source->address->socket_address->address;
    }
    return "somebody";
}

/* Answering */

struct header {
    HeaderValueOption option;
    HeaderValue value;
};

/* In the place of what the client may have sent: by default Envoy would add to that, or not,
 * depending on its age. */
static void set_header(struct header *header, const char *key, const char *value)
{
    header->option = (HeaderValueOption)ENVOY__CONFIG__CORE__V3__HEADER_VALUE_OPTION__INIT;
    header->value = (HeaderValue)ENVOY__CONFIG__CORE__V3__HEADER_VALUE__INIT;
    header->value.key = (char *)key;
    header->value.value = (char *)value;
    header->option.header = &header->value;
    header->option.append_action =
        ENVOY__CONFIG__CORE__V3__HEADER_VALUE_OPTION__HEADER_APPEND_ACTION__OVERWRITE_IF_EXISTS_OR_ADD;
}

static void allow(struct bow_call *call, const char *name)
{
    CheckResponse response = ENVOY__SERVICE__AUTH__V3__CHECK_RESPONSE__INIT;
    OkHttpResponse ok = ENVOY__SERVICE__AUTH__V3__OK_HTTP_RESPONSE__INIT;
    Status status = GOOGLE__RPC__STATUS__INIT;
    char secret[] = KEY_HEADER;
    struct header header;

    set_header(&header, NAME_HEADER, name);
    ok.n_headers = 1;
    ok.headers = (HeaderValueOption *[]){&header.option};
    ok.n_headers_to_remove = 1;
    ok.headers_to_remove = (char *[]){secret};
    status.code = BOW_OK;
    response.status = &status;
    response.http_response_case =
        ENVOY__SERVICE__AUTH__V3__CHECK_RESPONSE__HTTP_RESPONSE_OK_RESPONSE;
    response.ok_response = &ok;
    envoy__service__auth__v3__authorization__check__reply(call, &response);
}

/* The status is what denies: an answer without one lets the request pass. */
static void deny(struct bow_call *call, const CheckRequest *request,
                 Envoy__Type__V3__StatusCode http_code, struct header *header, const char *why)
{
    CheckResponse response = ENVOY__SERVICE__AUTH__V3__CHECK_RESPONSE__INIT;
    DeniedHttpResponse denied = ENVOY__SERVICE__AUTH__V3__DENIED_HTTP_RESPONSE__INIT;
    HttpStatus http_status = ENVOY__TYPE__V3__HTTP_STATUS__INIT;
    Status status = GOOGLE__RPC__STATUS__INIT;

    printf("%d to %s: %s\n", (int)http_code, find_client(request), why);
    http_status.code = http_code;
    denied.status = &http_status;
    denied.n_headers = 1;
    denied.headers = (HeaderValueOption *[]){&header->option};
    denied.body = bow_call_printf(call, "%s\n", why);
    status.code = http_code == ENVOY__TYPE__V3__STATUS_CODE__Unauthorized ? BOW_UNAUTHENTICATED
                                                                          : BOW_PERMISSION_DENIED;
    status.message = (char *)why;
    response.status = &status;
    response.http_response_case =
        ENVOY__SERVICE__AUTH__V3__CHECK_RESPONSE__HTTP_RESPONSE_DENIED_RESPONSE;
    response.denied_response = &denied;
    envoy__service__auth__v3__authorization__check__reply(call, &response);
}

void check(struct bow_call *call, const CheckRequest *request, const struct keys *keys)
{
    const HttpRequest *http = find_http(request);
    const char *key = http != NULL ? find_header(http, KEY_HEADER) : NULL;
    const char *name = key != NULL ? keys_name(keys, key) : NULL;
    struct header header;

    if (name == NULL) {
        set_header(&header, "www-authenticate", "ApiKey");
        deny(call, request, ENVOY__TYPE__V3__STATUS_CODE__Unauthorized, &header,
             key == NULL ? "send an API key in the header " KEY_HEADER : "nobody has this API key");
    } else if (!keys_allow(keys, key, http->path)) {
        set_header(&header, NAME_HEADER, name);
        deny(call, request, ENVOY__TYPE__V3__STATUS_CODE__Forbidden, &header,
             "this API key does not open this path");
    } else {
        allow(call, name);
    }
}
