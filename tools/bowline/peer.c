/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The client of the command line's server. What is called through it is none of this file's
 * business. */
#include "peer.h"
#include "diagnose.h"
#include "say.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_CONNECT_NS (UINT64_C(5) * 1000000000u)
#define DEFAULT_MESSAGE_BYTES ((size_t)64 << 20)

bool peer_is_grpc(const struct peer *peer)
{
    return strncmp(peer->target, "grpc:", 5) == 0;
}

/* The token of the environment. */
static int get_token(struct bow_interception *at, char *token, size_t size, void *user)
{
    const char *text = getenv(user);

    (void)at;
    if (text == NULL || strlen(text) >= size) {
        return -EINVAL;
    }
    memcpy(token, text, strlen(text) + 1);
    return 0;
}

static int open_bearer(struct peer *peer)
{
    struct bow_bearer_options options = BOW_BEARER_OPTIONS_INIT;
    struct bow_transport_error error = {0};
    const char *name = peer->options->token_env;

    if (name == NULL && peer->options->token_file == NULL) {
        return EXIT_OK;
    }
    if (!peer->options->tls) {
        return say_failed(EXIT_USAGE, "a token is sent over TLS alone, where nobody else reads it: "
                                      "--tls, --ca FILE or --insecure");
    }
    if (name != NULL && getenv(name) == NULL) {
        return say_failed(EXIT_USAGE, "the environment has no %s for --token-env", name);
    }
    options.context = peer->context;
    options.file = peer->options->token_file;
    options.error = &error;
    if (name != NULL) {
        options.get = get_token;
        options.user = (void *)(uintptr_t)name;
    }
    if (bow_bearer_new(&options, &peer->bearer) < 0) {
        return say_failed(EXIT_FAILED, "%s", error.text);
    }
    return EXIT_OK;
}

/* The host of an authority: a certificate names no port. */
static void host_of(const char *authority, char *host, size_t size)
{
    size_t len = strcspn(authority, ":");

    if (authority[0] == '[') {
        snprintf(host, size, "%.*s", (int)strcspn(authority + 1, "]"), authority + 1);
    } else {
        snprintf(host, size, "%.*s", (int)len, authority);
    }
}

int peer_client(struct peer *peer, struct bow_loop *loop, struct bow_client **ret_client)
{
    const struct options *given = peer->options;
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_transport_error error = {0};
    struct bow_interceptor send = {0};
    const struct bow_interceptor *interceptors[] = {&send};
    char host[BOW_AUTHORITY_BYTES];

    options.context = peer->context;
    options.target = peer->target;
    options.loop = loop;
    options.group = loop == NULL ? peer->group : NULL;
    options.plaintext = true; /* who asks for no TLS on the command line wants none */
    options.security = peer->tls != NULL ? tool_tls_security(peer->tls) : NULL;
    options.authority = given->authority;
    options.server_name = given->server_name;
    if (options.server_name == NULL && given->authority != NULL) {
        host_of(given->authority, host, sizeof(host));
        options.server_name = host;
    }
    options.connect_timeout_ns =
        given->connect_timeout_ns != 0 ? given->connect_timeout_ns : DEFAULT_CONNECT_NS;
    options.max_message_bytes =
        given->max_message_bytes != 0 ? (size_t)given->max_message_bytes : DEFAULT_MESSAGE_BYTES;
    options.max_queued_calls = given->concurrency;
    options.user_agent = "bowline-tool/" BOWLINE_VERSION;
    options.error = &error;
    if (peer->bearer != NULL) {
        bow_bearer_send(peer->bearer, &send);
        options.interceptors = interceptors;
        options.n_interceptors = 1;
    }
    if (bow_client_new(&options, ret_client) < 0) {
        return say_failed(EXIT_USAGE, "%s", error.text);
    }
    return EXIT_OK;
}

int peer_open(struct peer *peer, const struct options *options, const char *target)
{
    struct bow_group_options group = BOW_GROUP_OPTIONS_INIT;

    *peer = (struct peer){.options = options, .target = target};
    if (options->authority != NULL && !options->tls && !peer_is_grpc(peer)) {
        return say_failed(EXIT_USAGE,
                          "--authority is of no use in Bowline's own protocol: put grpc: "
                          "in front of the target, or take --tls or --ca FILE");
    }
    group.n_loops = 1;
    if (bow_context_new(NULL, &peer->context) < 0 ||
        bow_group_new(peer->context, &group, &peer->group) < 0) {
        return say_failed(EXIT_FAILED, "no memory, or no descriptors, for an event loop");
    }
    int rc = EXIT_OK;
    if (options->tls) {
        rc = tool_tls_open(peer->context, options, &peer->tls);
    }
    if (rc == EXIT_OK) {
        rc = open_bearer(peer);
    }
    return rc == EXIT_OK ? peer_client(peer, NULL, &peer->client) : rc;
}

void peer_close(struct peer *peer)
{
    bow_client_free(peer->client);
    bow_group_unref(peer->group);
    tool_tls_close(peer->tls);
    bow_bearer_unref(peer->bearer);
    bow_context_unref(peer->context);
}

/* Failures */

static bool is_about_connecting(const struct bow_status *status)
{
    return status->code == BOW_UNAVAILABLE ||
           (status->code == BOW_DEADLINE_EXCEEDED && status->not_processed);
}

int peer_failed(const struct peer *peer, const struct bow_status *status)
{
    char advice[200] = "";

    if (is_about_connecting(status)) {
        diagnose(peer->target, peer->options->tls, advice, sizeof(advice));
    } else if (status->code == BOW_DEADLINE_EXCEEDED) {
        snprintf(advice, sizeof(advice), "; --deadline gives it more time");
    } else if (status->code == BOW_UNAUTHENTICATED && peer->bearer == NULL) {
        snprintf(advice, sizeof(advice), "; --token-file or --token-env sends a token%s",
                 peer->tls == NULL ? ", with --tls or --ca" : "");
    }
    return say_failed(exit_of(status->code), "%s: %s%s", bow_code_name(status->code),
                      status->message, advice);
}
