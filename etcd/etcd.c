/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* How a bow_etcd is made: its options, its client. */

#include "base/alloc.h"
#include "base/options.h"
#include "etcd/core.h"
#include "etcd/resolver.h"
#include "transport/address/transport_error.h"
#include <bowline/metadata_interceptor.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SECOND_NS UINT64_C(1000000000)
#define DEFAULT_TARGET "127.0.0.1:2379"
#define MESSAGE_BYTES ((size_t)16 << 20) /* a page of values, of which each may be 1.5 MB */
#define GRPC "grpc:"
#define LIST "list:"

static int refuse(const struct bow_etcd_options *options, int rc, const char *what)
{
    return bow__transport_error(options->error, "making a client of etcd at",
                                options->target != NULL ? options->target : DEFAULT_TARGET, rc,
                                what);
}

static int read_options(const struct bow_etcd_options *given, struct bow_etcd_options *ret_options)
{
    struct bow_etcd_options *options = ret_options;

    int rc = bow__options_read(options, sizeof(*options), given);
    if (rc < 0) {
        return given != NULL && given->size == 0
                   ? refuse(given, rc, "begin the options with BOW_ETCD_OPTIONS_INIT")
                   : rc;
    }
    if (options->context == NULL) {
        return refuse(options, -EINVAL, "set options.context");
    }
    if ((options->user == NULL) != (options->password == NULL)) {
        return refuse(options, -EINVAL, "set both options.user and options.password, or none");
    }
    if (options->layout != BOW_ETCD_LAYOUT_NAMING && options->layout != BOW_ETCD_LAYOUT_GO_ZERO) {
        return refuse(options, -EINVAL, "options.layout is none of enum bow_etcd_layout");
    }
    options->target = options->target != NULL ? options->target : DEFAULT_TARGET;
    options->prefix = options->prefix != NULL ? options->prefix : "";
    options->timeout_ns = options->timeout_ns > 0 ? options->timeout_ns : 5 * SECOND_NS;
    options->backoff_min_ns =
        options->backoff_min_ns > 0 ? options->backoff_min_ns : SECOND_NS / 10;
    options->backoff_max_ns = options->backoff_max_ns > 0 ? options->backoff_max_ns : 5 * SECOND_NS;
    return 0;
}

static bool has_scheme(const char *target)
{
    return strncmp(target, LIST, strlen(LIST)) == 0 || strstr(target, ":///") != NULL ||
           strncmp(target, "ipv4:", 5) == 0 || strncmp(target, "ipv6:", 5) == 0;
}

static char *make_target(struct bow_etcd *etcd, const char *target)
{
    target += strncmp(target, GRPC, strlen(GRPC)) == 0 ? strlen(GRPC) : 0;
    bool is_list = strchr(target, ',') != NULL && !has_scheme(target);
    size_t size = strlen(GRPC) + (is_list ? strlen(LIST) : 0) + strlen(target) + 1;
    char *made = bow__alloc(etcd->context, size);

    if (made != NULL) {
        (void)snprintf(made, size, "%s%s%s", GRPC, is_list ? LIST : "", target);
    }
    return made;
}

static int copy(struct bow_etcd *etcd, const char *text, char **ret_text)
{
    if (text == NULL) {
        return 0;
    }
    *ret_text = bow__dup(etcd->context, text, strlen(text));
    return *ret_text != NULL ? 0 : -ENOMEM;
}

static int make_interceptor(struct bow_etcd *etcd, const struct bow_etcd_options *options)
{
    struct bow_metadata_interceptor_options token = BOW_METADATA_INTERCEPTOR_OPTIONS_INIT;

    if (options->user == NULL) {
        return 0;
    }
    token.context = etcd->context;
    token.key = "token";
    token.plaintext = options->plaintext;
    token.error = options->error;
    return bow_metadata_interceptor_new(&token, &etcd->token.interceptor);
}

static int make_client(struct bow_etcd *etcd, const struct bow_etcd_options *options)
{
    struct bow_client_options client = BOW_CLIENT_OPTIONS_INIT;
    struct bow_interceptor send;
    const struct bow_interceptor *interceptors[] = {&send};

    client.context = etcd->context;
    client.target = etcd->target;
    client.loop = etcd->loop;
    client.plaintext = options->plaintext;
    client.security = options->security;
    client.server_name = options->server_name;
    client.connect_timeout_ns = options->timeout_ns;
    client.backoff_min_ns = options->backoff_min_ns;
    client.backoff_max_ns = options->backoff_max_ns;
    client.heartbeat_ns = 10 * SECOND_NS;
    client.max_message_bytes = MESSAGE_BYTES;
    client.error = options->error;
    if (etcd->token.interceptor == NULL) {
        return bow_client_new(&client, &etcd->client);
    }
    bow_metadata_interceptor_send(etcd->token.interceptor, &send);
    client.interceptors = interceptors;
    client.n_interceptors = 1;
    int rc = bow_client_new(&client, &etcd->client);
    if (rc < 0) {
        send.release(send.user); /* it is ours still */
    }
    return rc;
}

static int fill(struct bow_etcd *etcd, const struct bow_etcd_options *options)
{
    bow__etcd_resolver_init(etcd);
    etcd->layout = options->layout;
    etcd->timeout_ns = options->timeout_ns;
    etcd->backoff_min_ns = options->backoff_min_ns;
    etcd->backoff_max_ns = options->backoff_max_ns;
    etcd->target = make_target(etcd, options->target);
    if (etcd->target == NULL || copy(etcd, options->prefix, &etcd->prefix) < 0 ||
        copy(etcd, options->user, &etcd->token.user) < 0 ||
        copy(etcd, options->password, &etcd->token.password) < 0) {
        return refuse(options, -ENOMEM, NULL);
    }
    int rc = make_interceptor(etcd, options);
    return rc == 0 ? make_client(etcd, options) : rc;
}

int bow_etcd_new(const struct bow_etcd_options *given, struct bow_etcd **ret_etcd)
{
    struct bow_etcd_options options;

    int rc = read_options(given, &options);
    if (rc < 0) {
        return rc;
    }
    struct bow_etcd *etcd = bow__alloc_zero(options.context, sizeof(*etcd));
    if (etcd == NULL) {
        return refuse(&options, -ENOMEM, NULL);
    }
    etcd->context = options.context;
    etcd->loop = options.loop;
    rc = bow__etcd_core_init(etcd);
    if (rc < 0) {
        (void)refuse(&options, rc, NULL);
    } else {
        rc = fill(etcd, &options);
    }
    if (rc < 0) {
        struct bow_loop *loop = etcd->loop;
        bow__etcd_core_free(etcd);
        (void)bow_loop_unref(loop);
        return rc;
    }
    *ret_etcd = etcd;
    return 0;
}
