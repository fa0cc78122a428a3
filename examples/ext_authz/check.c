/* SPDX-License-Identifier: 0BSD */
/* Owns the answer. It is made in the call's memory; where there is none, the reply says so, so
 * nobody here asks. */

#include "check.h"
#include <bowline/call.h>
#include <stdio.h>
#include <string.h>

#define KEY_HEADER "x-api-key"
#define NAME_HEADER "x-client-name"

typedef Envoy__Config__Core__V3__HeaderValue HeaderValue;
typedef Envoy__Config__Core__V3__HeaderValueOption HeaderValueOption;
typedef Envoy__Service__Auth__V3__AttributeContext__HttpRequest HttpRequest;
typedef Envoy__Service__Auth__V3__AttributeContext__Peer Peer;
typedef Envoy__Service__Auth__V3__CheckRequest CheckRequest;
typedef Envoy__Service__Auth__V3__CheckResponse CheckResponse;
typedef Envoy__Service__Auth__V3__DeniedHttpResponse DeniedHttpResponse;
typedef Envoy__Service__Auth__V3__OkHttpResponse OkHttpResponse;
typedef Google__Rpc__Status Status;

/* Reading the request */

static const HttpRequest *find_http(const CheckRequest *request)
{
    const Envoy__Service__Auth__V3__AttributeContext *attributes = request->attributes;

    return attributes != NULL && attributes->request != NULL ? attributes->request->http : NULL;
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
    const char *key;
    const char *value;
};

/* In the place of what the client may have sent: by default Envoy would add to that, or not,
 * depending on its age. */
static void set_header(HeaderValueOption *option, const char *key, const char *value,
                       struct bow_arena *arena)
{
    HeaderValue *header =
        envoy__config__core__v3__header_value_option__mutable_header(option, arena);

    envoy__config__core__v3__header_value__set_key(header, key, arena);
    envoy__config__core__v3__header_value__set_value(header, value, arena);
    envoy__config__core__v3__header_value_option__set_append_action(
        option,
        ENVOY__CONFIG__CORE__V3__HEADER_VALUE_OPTION__HEADER_APPEND_ACTION__OVERWRITE_IF_EXISTS_OR_ADD);
}

/* Of what Envoy reads, the status is what denies: an answer without one lets the request pass. */
static CheckResponse *new_response(enum bow_code code, const char *message, struct bow_arena *arena)
{
    CheckResponse *response = envoy__service__auth__v3__check_response__new(arena);
    Status *status = envoy__service__auth__v3__check_response__mutable_status(response, arena);

    google__rpc__status__set_code(status, (int32_t)code);
    google__rpc__status__set_message(status, message, arena);
    return response;
}

static void allow(struct bow_call *call, const char *name)
{
    struct bow_arena *arena = bow_call_arena(call);
    CheckResponse *response = new_response(BOW_OK, "", arena);
    OkHttpResponse *ok =
        envoy__service__auth__v3__check_response__mutable_ok_response(response, arena);

    set_header(envoy__service__auth__v3__ok_http_response__add_headers(ok, arena), NAME_HEADER,
               name, arena);
    envoy__service__auth__v3__ok_http_response__add_headers_to_remove(ok, KEY_HEADER, arena);
    envoy__service__auth__v3__authorization__check__reply(call, response);
}

static void deny(struct bow_call *call, const CheckRequest *request,
                 Envoy__Type__V3__StatusCode http_code, struct header header, const char *why)
{
    struct bow_arena *arena = bow_call_arena(call);
    bool is_unknown = http_code == ENVOY__TYPE__V3__STATUS_CODE__Unauthorized;
    CheckResponse *response =
        new_response(is_unknown ? BOW_UNAUTHENTICATED : BOW_PERMISSION_DENIED, why, arena);
    DeniedHttpResponse *denied =
        envoy__service__auth__v3__check_response__mutable_denied_response(response, arena);

    printf("%d to %s: %s\n", (int)http_code, find_client(request), why);
    envoy__type__v3__http_status__set_code(
        envoy__service__auth__v3__denied_http_response__mutable_status(denied, arena), http_code);
    set_header(envoy__service__auth__v3__denied_http_response__add_headers(denied, arena),
               header.key, header.value, arena);
    envoy__service__auth__v3__denied_http_response__set_body(
        denied, bow_call_printf(call, "%s\n", why), arena);
    envoy__service__auth__v3__authorization__check__reply(call, response);
}

void check(struct bow_call *call, const CheckRequest *request, const struct keys *keys)
{
    const HttpRequest *http = find_http(request);
    const char *key = envoy__service__auth__v3__attribute_context__http_request__get_headers(
        http, KEY_HEADER); /* NULL for no http, too */
    const char *name = key != NULL ? keys_name(keys, key) : NULL;

    if (name == NULL) {
        deny(call, request, ENVOY__TYPE__V3__STATUS_CODE__Unauthorized,
             (struct header){"www-authenticate", "ApiKey"},
             key == NULL ? "send an API key in the header " KEY_HEADER : "nobody has this API key");
    } else if (!keys_allow(keys, key, http->path)) {
        deny(call, request, ENVOY__TYPE__V3__STATUS_CODE__Forbidden,
             (struct header){NAME_HEADER, name}, "this API key does not open this path");
    } else {
        allow(call, name);
    }
}
