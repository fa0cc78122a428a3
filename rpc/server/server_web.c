/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Origins, the page and files, made once and read by all workers. */

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

int bow__server_check_page(const struct bow_server_options *options, struct bow__text *reason)
{
    bow__text_clear(reason);
    if (options->web_page.len > 0 && (options->protocols & BOW__WEB_PROTOCOLS) == 0) {
        bow__text_printf(reason, "options.web_page is for browsers: options.protocols needs "
                                 "BOW_PROTOCOL_CONNECT or BOW_PROTOCOL_GRPC_WEB");
        return -EINVAL;
    }
    return bow__web_page_check(options->web_page, options->web_page_policy, reason);
}

int bow__server_keep_page(struct bow_server *server)
{
    struct bow_server_options *options = &server->options;

    int rc = bow__web_page_new(server->context, options->web_page, options->web_page_policy,
                               &server->limits.web_page);
    options->web_page = (struct bow_slice){NULL, 0}; /* they were borrowed */
    options->web_page_policy = NULL;
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
