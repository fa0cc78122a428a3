/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Origins and files, made once and read by all workers. */

#include "rpc/server/server_web.h"
#include "base/alloc.h"

#include <errno.h>

int bow__server_check_origins(const struct bow_server_options *options, struct bow__text *reason)
{
    bow__text_clear(reason);
    bow__text_printf(reason, "options.web_origins: ");
    return bow__web_origins_check(options->web_origins, reason);
}

int bow__server_keep_origins(struct bow_server *server)
{
    int rc = bow__web_origins_new(server->context, server->options.web_origins,
                                  &server->limits.web_origins);

    server->options.web_origins = NULL; /* it was borrowed */
    return rc;
}

static int count(const struct bow_service *service, void *user)
{
    size_t *n = user;

    (void)service;
    ++*n;
    return 0;
}

static int list(const struct bow_service *service, void *user)
{
    struct bow__worker_limits *limits = user;

    if (service->file != NULL) {
        limits->web_files[limits->n_web_files++] = service->file;
    }
    return 0;
}

int bow__server_list_files(struct bow_server *server)
{
    struct bow__worker_limits *limits = &server->limits;
    size_t n = 0;

    (void)bow__registry_each(&server->registry, count, &n);
    if (n == 0 || limits->web_files != NULL) {
        return 0;
    }
    limits->web_files = bow__alloc(server->context, n * sizeof(*limits->web_files));
    if (limits->web_files == NULL) {
        return -ENOMEM;
    }
    limits->n_web_files = 0;
    limits->cap_web_files = n;
    (void)bow__registry_each(&server->registry, list, limits);
    return 0;
}
