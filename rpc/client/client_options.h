/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_CLIENT_OPTIONS_H
#define BOWLINE_RPC_CLIENT_CLIENT_OPTIONS_H

/*
 * What a client was made with. Constant while there is one, so all its loops read it.
 */

#include "rpc/client/retry/retries.h"
#include "rpc/client/target.h"
#include "rpc/core/intercept.h"
#include <bowline/client.h>

/** The longest address of IPv6, with a zone. */
#define BOW__SOURCE_BYTES 64
/** options.user_agent with what the library says of itself behind it. */
#define BOW__USER_AGENT_TEXT_BYTES (BOW_USER_AGENT_BYTES + 64)

struct bow__client_config {
    struct bow_context *context;
    struct bow_client_options options; /* complete; without what only its making needs */
    struct bow__target target;
    struct bow__interceptors interceptors;
    char source[BOW__SOURCE_BYTES];                /* options.source, unless that is NULL */
    char health_service[BOW_HEALTH_SERVICE_BYTES]; /* options.health_service, unless that is NULL */
    char user_agent[BOW__USER_AGENT_TEXT_BYTES];   /* whole; "": the library's alone */
    uint32_t assumed_encodings; /* options.assumed_encodings, as a set of those of this build */
    struct bow__retry_config retry;
    bool confined; /* to the thread that made it, which drives its loop */
};

/** Of one loop. */
static inline uint32_t bow__client_config_n_subchannels(const struct bow__client_config *config)
{
    return config->target.n_addresses * config->options.max_connections_per_address;
}

/** Returns 0, or as bow_client_new() with options->error filled. */
int bow__client_options_check(const struct bow_client_options *options);
/** The set of those that options->assumed_encodings names and this build has, of checked options.
 */
uint32_t bow__client_options_encodings(const struct bow_client_options *options);
/** Put the defaults in place of zeros. */
void bow__client_options_complete(struct bow_client_options *options);

#endif
