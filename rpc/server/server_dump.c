/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a server has in flight on all of its loops (<bowline/inspect.h>). What a loop tells of
 * itself is dispatch's, how it is joined and written rpc/inspect's. */
#include "rpc/server/server_dump.h"
#include "base/log.h"
#include "base/refuse.h"
#include "rpc/inspect/render.h"
#include "rpc/server/dispatch/dispatch_inspect.h"
#include "rpc/server/server_fork.h"

#include <string.h>
#include <unistd.h>

int bow__server_gather_new(struct bow_server *server, const struct bow__snapshot_limits *limits,
                           struct bow__gather **ret_gather)
{
    uint32_t n = atomic_load(&server->opened) ? server->n_workers : 0;

    int rc = bow__gather_new(server->context, &bow__dispatch_gather_ops, n, limits, ret_gather);
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        bow__gather_add(*ret_gather, server->workers[i]->loop, server->workers[i]);
    }
    return rc;
}

int bow_server_dump(struct bow_server *server, const struct bow_dump_options *options,
                    bow_dump_put_fn put, void *user)
{
    struct bow_dump_options known;
    struct bow__gather *gather = NULL;

    if (bow__dump_options_read(options, &known) < 0) {
        return bow__refuse(server->context, -EINVAL,
                           "bow_server_dump: begin with BOW_DUMP_OPTIONS_INIT, and set a known "
                           "format and parts");
    }
    if (bow__server_is_foreign(server)) {
        return -ECHILD;
    }
    struct bow__snapshot_limits limits = bow__dump_limits(&known);
    int rc = bow__server_gather_new(server, &limits, &gather);
    if (rc < 0) {
        return rc;
    }
    bow__gather_wait(gather, known.wait_ns);
    rc = bow__render_dump(gather, "server", &known, put, user);
    bow__gather_unref(gather);
    return rc;
}

int bow_server_dump_fd(struct bow_server *server, const struct bow_dump_options *options, int fd)
{
    return bow_server_dump(server, options, bow__dump_to_fd, &fd);
}

/* By signal */

/* This thread serves, too, or accepts. */
#define SIGNAL_WAIT_NS (UINT64_C(200) * 1000000u)

struct lines {
    struct bow_context *context;
    size_t len;
    char line[1024];
};

/* What comes ends with a line feed. */
static int log_lines(const char *text, size_t len, void *user)
{
    struct lines *lines = user;

    for (size_t i = 0; i < len; i++) {
        if (text[i] != '\n' && lines->len < sizeof(lines->line)) {
            lines->line[lines->len++] = text[i];
        }
        if (text[i] == '\n') {
            bow__log(lines->context, BOW_LOG_WARNING, "%.*s", (int)lines->len, lines->line);
            lines->len = 0;
        }
    }
    return 0;
}

void bow__server_dump_by_signal(struct bow_server *server)
{
    struct bow_dump_options options = BOW_DUMP_OPTIONS_INIT;
    struct lines lines = {.context = server->context};

    options.wait_ns = SIGNAL_WAIT_NS;
    int rc = bow__log_shows(server->context, BOW_LOG_WARNING)
                 ? bow_server_dump(server, &options, log_lines, &lines)
                 : bow_server_dump_fd(server, &options, STDERR_FILENO);
    if (rc < 0) {
        bow__log(server->context, BOW_LOG_ERROR, "server: a dump by SIGUSR1 failed: %s",
                 strerror(-rc));
    }
}
