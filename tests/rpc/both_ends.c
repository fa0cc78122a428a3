/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The loop is the test's own: it runs in turns, and its first one is before the server starts.
 */

#include "both_ends.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static int open_server(struct both_ends *ends, struct bow_context *context, const char *address,
                       const struct calls__echo__handlers *handlers, void *user)
{
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;

    options.context = context;
    options.loop = ends->loop;
    options.listen = address;
    options.grace_ns = 1;
    int rc = bow_server_new(&options, &ends->server);
    if (rc == 0) {
        rc = calls__echo__serve(ends->server, handlers, user);
    }
    return rc == 0 ? bow_server_start(ends->server) : rc;
}

int both_ends_open(struct both_ends *ends, struct bow_context *context,
                   const struct calls__echo__handlers *handlers, void *user)
{
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    char address[64];
    char target[80];

    memset(ends, 0, sizeof(*ends));
    calls_name_address(address, sizeof(address));
    loop_options.thread = BOW_LOOP_OWNER;
    int rc = bow_loop_new(context, &loop_options, &ends->loop);
    if (rc == 0) {
        rc = bow_loop_run_once(ends->loop, 0);
    }
    if (rc == 0) {
        rc = open_server(ends, context, address, handlers, user);
    }
    if (rc == 0 && calls_has_port()) {
        snprintf(address, sizeof(address), "127.0.0.1:%u", bow_server_port(ends->server));
    }
    snprintf(target, sizeof(target), "%s%s", calls_is_grpc() ? "grpc:" : "", address);
    options.context = context;
    options.target = target;
    options.loop = ends->loop;
    return rc == 0 ? bow_client_new(&options, &ends->client) : rc;
}

void both_ends_close(struct both_ends *ends)
{
    if (ends->loop == NULL) {
        bow_server_free(ends->server);
        return;
    }
    bow_client_free(ends->client);
    bow_server_free(ends->server);
    assert_int_equal(bow_loop_shutdown(ends->loop, 0, 0), 0);
    assert_int_equal(bow_loop_run(ends->loop), 0);
    bow_loop_unref(ends->loop);
}
