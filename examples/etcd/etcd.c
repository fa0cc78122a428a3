/* SPDX-License-Identifier: 0BSD */
/* Owns the client and the token. Knows nothing of keys, watches and leases. */

#include "etcd.h"
#include <errno.h>
#include <string.h>

/* A server that is back is found within this, however long it was away. */
#define BACKOFF_MAX_NS (UINT64_C(2) * 1000000000u)
/* Of a server that says nothing one hears after 10 s and as long again. */
#define HEARTBEAT_NS (UINT64_C(10) * 1000000000u)
#define LOGIN_TIMEOUT_NS (UINT64_C(10) * 1000000000u)

ProtobufCBinaryData etcd_bytes(const char *text)
{
    return (ProtobufCBinaryData){strlen(text), (uint8_t *)text};
}

static int make_token(struct etcd *etcd, const struct etcd_options *options,
                      struct bow_transport_error *ret_error)
{
    struct bow_metadata_interceptor_options token = BOW_METADATA_INTERCEPTOR_OPTIONS_INIT;

    token.context = options->context;
    token.key = "token";
    token.plaintext = options->plaintext;
    token.error = ret_error;
    return bow_metadata_interceptor_new(&token, &etcd->token);
}

int etcd_open(struct etcd *etcd, const struct etcd_options *options,
              struct bow_transport_error *ret_error)
{
    struct bow_client_options client = BOW_CLIENT_OPTIONS_INIT;
    struct bow_interceptor send;
    const struct bow_interceptor *interceptors[] = {&send};

    *etcd =
        (struct etcd){.loop = options->loop, .user = options->user, .password = options->password};
    client.context = options->context;
    client.target = options->target;
    client.loop = options->loop;
    client.plaintext = options->plaintext;
    client.security = options->security;
    client.backoff_max_ns = BACKOFF_MAX_NS;
    client.heartbeat_ns = HEARTBEAT_NS;
    client.error = ret_error;
    if (etcd->user == NULL) {
        return bow_client_new(&client, &etcd->client);
    }
    int rc = make_token(etcd, options, ret_error);
    if (rc < 0) {
        return rc;
    }
    bow_metadata_interceptor_send(etcd->token, &send);
    client.interceptors = interceptors;
    client.n_interceptors = 1;
    rc = bow_client_new(&client, &etcd->client);
    if (rc < 0) {
        send.release(send.user); /* it is ours still */
        bow_metadata_interceptor_unref(etcd->token);
    }
    return rc;
}

void etcd_close(struct etcd *etcd)
{
    bow_client_free(etcd->client);
    bow_metadata_interceptor_unref(etcd->token);
}

/* The texts are all that tells these apart, in a status as in a watch's cancel_reason. */
static bool wants_login(const char *text)
{
    return strstr(text, "invalid auth token") != NULL ||
           strstr(text, "user name is empty") != NULL ||
           strstr(text, "revision of auth store is old") != NULL;
}

struct bow_status etcd_status_of(const char *reason)
{
    enum bow_code code = BOW_FAILED_PRECONDITION;

    if (reason[0] == '\0') {
        return (struct bow_status){.code = BOW_UNAVAILABLE, .message = "no reason was given"};
    }
    if (wants_login(reason)) {
        code = BOW_UNAUTHENTICATED;
    } else if (strstr(reason, "permission denied") != NULL) {
        code = BOW_PERMISSION_DENIED;
    }
    return (struct bow_status){.code = code, .message = reason};
}

enum etcd_remedy etcd_remedy(const struct etcd *etcd, const struct bow_status *status)
{
    if (wants_login(status->message)) {
        return etcd->token != NULL ? ETCD_LOG_IN : ETCD_GIVE_UP;
    }
    switch (status->code) {
    case BOW_CANCELLED: /* of a server that ends, as the others */
    case BOW_UNKNOWN:
    case BOW_DEADLINE_EXCEEDED:
    case BOW_INTERNAL:
    case BOW_UNAVAILABLE:
        return ETCD_TRY_AGAIN;
    default:
        return ETCD_GIVE_UP;
    }
}

/* etcd refuses who asks for a token with one that is none any more. */
static int forget(struct etcd *etcd)
{
    return bow_metadata_interceptor_set(etcd->token, (struct bow_slice){NULL, 0});
}

static Etcdserverpb__AuthenticateRequest who(const struct etcd *etcd)
{
    Etcdserverpb__AuthenticateRequest request = ETCDSERVERPB__AUTHENTICATE_REQUEST__INIT;

    request.name = (char *)etcd->user;
    request.password = (char *)etcd->password;
    return request;
}

static int keep(struct etcd *etcd, const Etcdserverpb__AuthenticateResponse *reply)
{
    ProtobufCBinaryData token = etcd_bytes(reply->token);

    return bow_metadata_interceptor_set(etcd->token, (struct bow_slice){token.data, token.len});
}

bool etcd_login(struct etcd *etcd, struct bow_result *ret_result)
{
    Etcdserverpb__AuthenticateRequest request = who(etcd);

    if (forget(etcd) < 0) {
        return false;
    }
    const Etcdserverpb__AuthenticateResponse *reply =
        etcdserverpb__auth__authenticate__call(etcd->client, &request, NULL, ret_result);
    return reply != NULL && keep(etcd, reply) == 0;
}

static void on_token(struct bow_result *result, const Etcdserverpb__AuthenticateResponse *reply,
                     void *user)
{
    struct etcd_login *login = user;
    struct bow_status status = result->status;

    if (reply != NULL && keep(login->etcd, reply) < 0) {
        status = (struct bow_status){.code = BOW_INTERNAL, .message = "the token cannot be sent"};
    }
    login->fn(&status, login->user);
}

int etcd_login_start(struct etcd_login *login, uint64_t *ret_id)
{
    Etcdserverpb__AuthenticateRequest request = who(login->etcd);
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;

    int rc = forget(login->etcd);
    if (rc < 0) {
        return rc;
    }
    options.wait_for_ready = true;
    options.timeout_ns = LOGIN_TIMEOUT_NS;
    return etcdserverpb__auth__authenticate__start(login->etcd->client, &request, &options,
                                                   on_token, login, ret_id);
}
