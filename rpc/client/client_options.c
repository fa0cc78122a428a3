/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A client's options: defaults, and what cannot be.
 */

#include "rpc/client/client_options.h"
#include "rpc/client/resolve/scheme.h"
#include "rpc/connection/loop_compression.h"
#include "rpc/core/codec/utf8.h"
#include "rpc/core/header_limit.h"
#include "rpc/core/metadata.h"
#include "transport/address/address.h"
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
    options->write_timeout_ns = or_default(options->write_timeout_ns, BOW_LIMIT_WRITE_NS);
    options->idle_timeout_ns = or_default(options->idle_timeout_ns, BOW_LIMIT_CLIENT_IDLE_NS);
    if (options->max_message_bytes == 0) {
        options->max_message_bytes = BOW_LIMIT_MESSAGE_BYTES;
    }
    options->max_header_bytes = bow__header_limit_or_default(options->max_header_bytes);
    if (options->max_queued_bytes == 0) {
        options->max_queued_bytes = BOW_LIMIT_QUEUED_BYTES;
    }
    if (options->max_queued_calls == 0) {
        options->max_queued_calls = BOW_LIMIT_QUEUED_CALLS;
    }
    if (options->max_connections_per_address == 0) {
        options->max_connections_per_address = 1;
    }
}

/* What metadata that is text may be. */
static bool is_user_agent(const char *text)
{
    size_t len = strlen(text);

    return len > 0 && len < BOW_USER_AGENT_BYTES &&
           bow__metadata_is_valid("x", (struct bow_slice){(const uint8_t *)text, len});
}

/* Of RFC 3986: a name or an address, in brackets or not, with or without a port. Who asks is no
 * part of it (RFC 9113, 8.3.1). */
static bool is_authority(const char *text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "-._~%!$&'()*+,;=:[]";
    size_t len = strlen(text);

    return len > 0 && len < BOW_AUTHORITY_BYTES && strspn(text, allowed) == len;
}

static struct bow_slice encodings_of(const struct bow_client_options *options)
{
    const char *list = options->assumed_encodings != NULL ? options->assumed_encodings : "";

    return (struct bow_slice){(const uint8_t *)list, strlen(list)};
}

uint32_t bow__client_options_encodings(const struct bow_client_options *options)
{
    return bow__encodings_of(encodings_of(options), NULL);
}

static int check_encodings(const struct bow_client_options *options)
{
    struct bow_slice unknown = {NULL, 0};
    struct bow__text reason;

    (void)bow__encodings_of(encodings_of(options), &unknown);
    if (unknown.len == 0) {
        return 0;
    }
    bow__text_clear(&reason);
    bow__text_printf(&reason, "options.assumed_encodings names \"");
    bow__text_escape(&reason, unknown, 32);
    bow__text_printf(&reason, "\", which this build has not (it has ");
    bow__encodings_describe(&reason);
    bow__text_printf(&reason, ")");
    return bow__target_refuse(options, -EINVAL, reason.bytes);
}

static int check_health_service(const struct bow_client_options *options)
{
    const char *service = options->health_service;

    if (service == NULL) {
        return 0;
    }
    if (options->loop == NULL && options->group == NULL) {
        return bow__target_refuse(options, -EINVAL,
                                  "options.health_service needs options.loop or options.group: "
                                  "between its calls a confined client hears nothing");
    }
    size_t len = strlen(service);
    if (len >= BOW_HEALTH_SERVICE_BYTES ||
        bow__utf8_prefix((struct bow_slice){(const uint8_t *)service, len}, false) != len) {
        return bow__target_refuse(options, -EINVAL,
                                  "options.health_service has BOW_HEALTH_SERVICE_BYTES or more, or "
                                  "is not UTF-8");
    }
    return 0;
}

int bow__client_options_check(const struct bow_client_options *options)
{
    struct bow_sockaddr source;
    struct bow__text reason;

    if (options->loop != NULL && options->group != NULL) {
        return bow__target_refuse(options, -EINVAL, "set options.loop or options.group, not both");
    }
    if (!bow__compression_is_known(options->compression)) {
        return bow__target_refuse(options, -EINVAL,
                                  "options.compression is none of enum bow_compression");
    }
    if (check_encodings(options) < 0) {
        return -EINVAL;
    }
    if (bow__header_limit_check(options->max_header_bytes, &reason) < 0) {
        return bow__target_refuse(options, -EINVAL, reason.bytes);
    }
    if (options->source != NULL && (strlen(options->source) >= BOW__SOURCE_BYTES ||
                                    bow__sockaddr_parse_ip(options->source, &source) < 0)) {
        return bow__target_refuse(
            options, -EINVAL,
            "options.source is no address of IP, as 192.0.2.1 or 2001:db8::1, "
            "without a port");
    }
    if (options->user_agent != NULL && !is_user_agent(options->user_agent)) {
        return bow__target_refuse(options, -EINVAL,
                                  "options.user_agent is empty, has BOW_USER_AGENT_BYTES, or a "
                                  "character that is none of ASCII's printable ones");
    }
    if (options->authority != NULL && !is_authority(options->authority)) {
        return bow__target_refuse(options, -EINVAL,
                                  "options.authority is empty, has BOW_AUTHORITY_BYTES, or a "
                                  "character that neither a host nor a port has");
    }
    if (check_health_service(options) < 0) {
        return -EINVAL;
    }
    bow__text_clear(&reason);
    if (bow__scheme_check_tables(options->resolvers, options->n_resolvers, &reason) < 0) {
        return bow__target_refuse(options, -EINVAL, reason.bytes);
    }
    if (options->max_connections_per_address > BOW_LIMIT_CONNECTIONS_PER_ADDRESS) {
        bow__text_clear(&reason);
        bow__text_printf(&reason,
                         "options.max_connections_per_address is %u, and at most %u "
                         "(BOW_LIMIT_CONNECTIONS_PER_ADDRESS)",
                         options->max_connections_per_address, BOW_LIMIT_CONNECTIONS_PER_ADDRESS);
        return bow__target_refuse(options, -EINVAL, reason.bytes);
    }
    return bow__target_check(options);
}
