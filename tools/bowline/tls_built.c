/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The library's TLS, behind a security of the tool's own: that adds a handler of its own behind TLS
 * to each connection, which looks at what the handshake came to.
 */
#include "say.h"
#include "tls.h"
#include <bowline/handler.h>
#include <bowline/tls.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct tool_tls {
    struct bow_security security; /* what clients hold */
    struct bow_tls_context *context;
    struct tool_tls_seen seen; /* written on the loop, read once a call on it was answered */
};

/* Looks, and frees itself. */
struct look {
    struct bow_handler handler;
    struct tool_tls *tls;
};

static void on_active(struct bow_handler *handler)
{
    struct look *look = (struct look *)handler;
    struct bow_tls *tls = bow_tls_of(handler->channel);
    struct tool_tls_seen *seen = &look->tls->seen;

    if (tls != NULL) {
        struct bow_slice alpn = bow_tls_alpn(tls);
        snprintf(seen->version, sizeof(seen->version), "%s", bow_tls_version_name(tls));
        snprintf(seen->protocol, sizeof(seen->protocol), "%.*s", (int)alpn.len,
                 (const char *)alpn.data);
        if (bow_tls_peer_subject(tls, seen->subject, sizeof(seen->subject)) < 0) {
            seen->subject[0] = '\0';
        }
    }
    bow_handler_fire_active(handler);
}

static void on_removed(struct bow_handler *handler)
{
    free(handler);
}

static const struct bow_handler_ops look_ops = {
    .name = "look",
    .on_active = on_active,
    .on_removed = on_removed,
};

static struct bow_security *inner(struct bow_security *security)
{
    return bow_tls_security(((struct tool_tls *)security)->context);
}

/* The tool outlives its clients, so that there is nothing to count. */
static struct bow_security *ref(struct bow_security *security)
{
    return security;
}

static void unref(struct bow_security *security)
{
    (void)security;
}

static int add(struct bow_security *security, struct bow_channel *channel,
               const struct bow_security_request *request)
{
    struct look *look = calloc(1, sizeof(*look));

    if (look == NULL) {
        return -ENOMEM;
    }
    int rc = inner(security)->ops->add(inner(security), channel, request);
    if (rc < 0) {
        free(look);
        return rc;
    }
    look->handler.ops = &look_ops;
    look->tls = (struct tool_tls *)security;
    bow_channel_add_last(channel, &look->handler);
    return 0;
}

static const char *failure(struct bow_channel *channel)
{
    struct bow_tls *tls = bow_tls_of(channel);

    return tls != NULL ? bow_tls_failure(tls) : "";
}

static int peer_subject(struct bow_channel *channel, char *text, size_t size)
{
    struct bow_tls *tls = bow_tls_of(channel);

    return tls != NULL ? bow_tls_peer_subject(tls, text, size) : -ENODATA;
}

static const struct bow_security_ops security_ops = {
    .name = "TLS",
    .ref = ref,
    .unref = unref,
    .add = add,
    .failure = failure,
    .peer_subject = peer_subject,
};

int tool_tls_open(struct bow_context *context, const struct options *options,
                  struct tool_tls **ret_tls)
{
    struct bow_tls_context_options made = BOW_TLS_CONTEXT_OPTIONS_INIT;
    struct tool_tls *tls = calloc(1, sizeof(*tls));
    struct bow_tls_error error = {0};

    if (tls == NULL) {
        return say_failed(EXIT_FAILED, "no memory");
    }
    tls->security.ops = &security_ops;
    tls->seen.is_verified = !options->insecure;
    made.side = BOW_TLS_CLIENT;
    made.ca_file = options->ca;
    made.trust_anyone = options->insecure;
    made.certificate.certificate_file = options->cert;
    made.certificate.key_file = options->key;
    if (bow_tls_context_new(context, &made, &tls->context, &error) < 0) {
        free(tls);
        return say_failed(EXIT_USAGE, "%s", error.text);
    }
    *ret_tls = tls;
    return EXIT_OK;
}

void tool_tls_close(struct tool_tls *tls)
{
    if (tls != NULL) {
        bow_tls_context_unref(tls->context);
        free(tls);
    }
}

struct bow_security *tool_tls_security(struct tool_tls *tls)
{
    return &tls->security;
}

const struct tool_tls_seen *tool_tls_seen(const struct tool_tls *tls)
{
    return &tls->seen;
}
