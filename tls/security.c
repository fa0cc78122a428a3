/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * TLS as servers and clients of calls use it: the table of <bowline/security.h>.
 */

#include "base/list.h"
#include "tls/context.h"
#include "tls/handler.h"

#include <bowline/security.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct bow_tls_context *context_of(struct bow_security *security)
{
    return BOW__CONTAINER(security, struct bow_tls_context, security);
}

static struct bow_security *ref(struct bow_security *security)
{
    return &bow_tls_context_ref(context_of(security))->security;
}

static void unref(struct bow_security *security)
{
    bow_tls_context_unref(context_of(security));
}

static int add(struct bow_security *security, struct bow_channel *channel,
               const struct bow_security_request *request)
{
    struct bow_tls_options options = BOW_TLS_OPTIONS_INIT;
    struct bow_tls *tls = NULL;

    options.server_name = request->server_name;
    options.alpn = request->alpn;
    int rc = bow_tls_new(context_of(security), &options, &tls);
    if (rc < 0) {
        return rc;
    }
    bow_channel_add_last(channel, bow_tls_handler(tls));
    return 0;
}

static const char *failure(struct bow_channel *channel)
{
    const struct bow_tls *tls = bow_tls_of(channel);

    return tls != NULL ? bow_tls_failure(tls) : "";
}

static int peer_subject(struct bow_channel *channel, char *text, size_t size)
{
    const struct bow_tls *tls = bow_tls_of(channel);

    return tls != NULL ? bow_tls_peer_subject(tls, text, size) : -ENODATA;
}

static int reload(struct bow_security *security, char *text, size_t size)
{
    struct bow_tls_error error = {0};

    int rc = bow_tls_context_reload(context_of(security), &error);
    if (rc < 0) {
        snprintf(text, size, "%s", error.text);
    }
    return rc;
}

const struct bow_security_ops bow__tls_security_ops = {
    .name = "tls",
    .ref = ref,
    .unref = unref,
    .add = add,
    .failure = failure,
    .peer_subject = peer_subject,
    .reload = reload,
};

struct bow_security *bow_tls_security(struct bow_tls_context *tls_context)
{
    return &tls_context->security;
}
