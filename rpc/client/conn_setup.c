/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a client's connection is made with.
 */

#include "rpc/client/conn_setup.h"
#include "base/clock.h"
#include <bowline/limits.h>

#include <string.h>

static const struct bow_client_options *options_of(const struct bow__subchannel *subchannel)
{
    return &subchannel->list->config->options;
}

void bow__conn_setup_configure(struct bow__conn *conn, struct bow__session_options *options)
{
    const struct bow__client_conn *ours = bow__client_conn_of(conn);
    const struct bow__client_config *config = ours->subchannel->list->config;
    const char *authority = ours->subchannel->address->authority;

    options->unattended = config->confined;
    options->max_message_bytes = config->options.max_message_bytes;
    options->max_header_bytes = config->options.max_header_bytes;
    options->heartbeat_ns = config->options.heartbeat_ns;
    options->heartbeat_timeout_ns = config->options.heartbeat_timeout_ns;
    options->encodings = bow__encodings_built();
    options->user_agent = config->user_agent[0] != '\0' ? config->user_agent : NULL;
    options->secured = conn->security != NULL;
    options->assumed_encodings = config->assumed_encodings;
    options->authority = (struct bow_slice){(const uint8_t *)authority, strlen(authority)};
}

/* A further one is there for a burst. */
uint64_t bow__conn_setup_idle_ns(const struct bow__subchannel *subchannel)
{
    uint64_t timeout = options_of(subchannel)->idle_timeout_ns;

    return subchannel->is_further ? bow__time_min(timeout, BOW_LIMIT_FURTHER_IDLE_NS) : timeout;
}

const char *bow__conn_setup_idle_reason(const struct bow__subchannel *subchannel, const char *why)
{
    return bow__conn_setup_idle_ns(subchannel) < options_of(subchannel)->idle_timeout_ns
               ? "there was no call for 10 s (BOW_LIMIT_FURTHER_IDLE_NS) on the connection, which "
                 "was "
                 "one more to its address"
               : why;
}

int bow__conn_setup_secure(const struct bow__subchannel *subchannel, struct bow_channel *channel)
{
    const struct bow__client_config *config = subchannel->list->config;
    struct bow_security *security = config->options.security;
    struct bow_security_request request = {
        .server_name = subchannel->address->server_name,
        .alpn = config->target.http2 ? "h2" : "bowline/1",
    };

    return security->ops->add(security, channel, &request);
}
