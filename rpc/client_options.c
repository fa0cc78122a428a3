/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A client's options: defaults, and what cannot be.
 */

#include "base/alloc.h"
#include "rpc/client_state.h"
#include "rpc/http2_built.h"
#include "transport/address.h"
#include "transport/transport_error.h"
#include <bowline/limits.h>

#include <errno.h>
#include <string.h>

#define MILLISECONDS(n) (UINT64_C(1000000) * (n))
#define SECONDS(n) (UINT64_C(1000000000) * (n))

static uint64_t or_default(uint64_t value, uint64_t otherwise)
{
    return value != 0 ? value : otherwise;
}

void bow__client_options_complete(struct bow_client_options *options)
{
    options->default_timeout_ns = or_default(options->default_timeout_ns, SECONDS(30));
    options->connect_timeout_ns = or_default(options->connect_timeout_ns, SECONDS(20));
    options->backoff_min_ns = or_default(options->backoff_min_ns, MILLISECONDS(100));
    options->backoff_max_ns = or_default(options->backoff_max_ns, SECONDS(30));
    options->heartbeat_ns = or_default(options->heartbeat_ns, SECONDS(20));
    options->heartbeat_timeout_ns = or_default(options->heartbeat_timeout_ns, SECONDS(10));
    options->idle_timeout_ns = or_default(options->idle_timeout_ns, SECONDS(1800));
    if (options->max_message_bytes == 0) {
        options->max_message_bytes = BOW_LIMIT_MESSAGE_BYTES;
    }
    if (options->max_queued_calls == 0) {
        options->max_queued_calls = BOW_LIMIT_QUEUED_CALLS;
    }
}

static int refuse(const struct bow_client_options *options, int rc, const char *reason)
{
    const char *target = options->target != NULL ? options->target : "NULL";

    return bow__transport_error(options->error, "making a client for", target, rc, reason);
}

/* Of a target that can be parsed. */
char *bow__client_server_name(struct bow_context *context, const struct bow_client_options *options,
                              const char *address)
{
    const char *end = strrchr(address, ':');

    if (options->server_name != NULL) {
        return bow__dup(context, options->server_name, strlen(options->server_name));
    }
    if (bow__address_is_hostless(address) || end == NULL) {
        return bow__dup(context, "localhost", strlen("localhost"));
    }
    if (*address == '[') {
        return bow__dup(context, address + 1, (size_t)(end - address) - 2);
    }
    return bow__dup(context, address, (size_t)(end - address));
}

static int check_target(const struct bow_client_options *options, const char *address)
{
    struct bow__address parsed;
    struct bow__text why;

    bow__text_clear(&why);
    int rc = bow__address_parse(address, &parsed, &why);
    if (rc < 0) {
        return refuse(options, rc, why.bytes);
    }
    if (bow_address_is_local(address) == 0 && !options->plaintext && options->security == NULL) {
        return refuse(options, -EPERM,
                      "it is beyond this host, and connections are not encrypted; set "
                      "options.security (see bow_tls_security()), or options.plaintext = true to "
                      "allow that");
    }
    return 0;
}

int bow__client_options_check(const struct bow_client_options *options, const char **ret_address,
                              bool *ret_http2)
{
    static const char grpc[] = "grpc:";
    const char *address = options->target;

    if (address == NULL) {
        return refuse(options, -EINVAL, "set options.target to HOST:PORT or unix:PATH");
    }
    if (options->loop != NULL && options->group != NULL) {
        return refuse(options, -EINVAL, "set options.loop or options.group, not both");
    }
    if (!bow__compression_is_known(options->compression)) {
        return refuse(options, -EINVAL, "options.compression is none of enum bow_compression");
    }
    bool http2 = strncmp(address, grpc, strlen(grpc)) == 0;
    if (http2 && !bow__http2_is_built()) {
        return refuse(options, -EINVAL, "this build of the library is without HTTP/2");
    }
    address += http2 ? strlen(grpc) : 0;
    int rc = check_target(options, address);
    if (rc == 0) {
        *ret_address = address;
        *ret_http2 = http2;
    }
    return rc;
}
