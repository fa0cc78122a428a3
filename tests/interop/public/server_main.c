/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * interop-server --port=N [--host=ADDRESS] [--use_tls=true --cert_file=FILE --key_file=FILE]
 *
 * Serves what gRPC's public interoperability cases ask for, over gRPC and Bowline's own protocol,
 * until SIGTERM. Prints its port once it listens.
 */

#include "flags.h"
#include "service.h"
#include <bowline/context.h>
#include <bowline/server.h>
#include <bowline/tls.h>
#include <bowline/transport_error.h>
#include <inttypes.h>
#include <stdio.h>

static void on_started(struct bow_server *server, void *user)
{
    (void)user;
    printf("%u\n", bow_server_port(server));
    fflush(stdout);
}

static bool secure(struct bow_context *context, const char *cert_file, const char *key_file,
                   struct bow_tls_context **ret_tls)
{
    struct bow_tls_context_options options = BOW_TLS_CONTEXT_OPTIONS_INIT;
    struct bow_tls_error error;

    options.side = BOW_TLS_SERVER;
    options.certificate.certificate_file = cert_file;
    options.certificate.key_file = key_file;
    if (bow_tls_context_new(context, &options, ret_tls, &error) < 0) {
        fprintf(stderr, "--use_tls: %s\n", error.text);
        return false;
    }
    return true;
}

static int serve(struct bow_server_options *options)
{
    struct bow_transport_error error;
    struct bow_server *server = NULL;

    options->error = &error;
    if (bow_server_new(options, &server) < 0) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    int rc = service_add(server);
    if (rc == 0) {
        rc = bow_server_run(server);
    }
    if (rc < 0) {
        fprintf(stderr, "%s\n", bow_server_error(server));
    }
    bow_server_free(server);
    return rc < 0;
}

int main(int argc, char **argv)
{
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct bow_tls_context *tls = NULL;
    const char *host = "0.0.0.0";
    const char *cert_file = NULL;
    const char *key_file = NULL;
    uint64_t port = 0;
    bool use_tls = false;
    char address[300];
    const struct flag flags[] = {
        {.name = "port", .number = &port},       {.name = "host", .text = &host},
        {.name = "use_tls", .truth = &use_tls},  {.name = "cert_file", .text = &cert_file},
        {.name = "key_file", .text = &key_file}, {.name = NULL},
    };

    if (!flags_read(flags, argc, argv) || bow_context_new(NULL, &options.context) < 0) {
        return 2;
    }
    snprintf(address, sizeof(address), "%s:%" PRIu64, host, port);
    options.listen = address;
    options.plaintext = !use_tls;
    options.on_started = on_started;
    int rc = 2;
    if (!use_tls || secure(options.context, cert_file, key_file, &tls)) {
        options.security = tls != NULL ? bow_tls_security(tls) : NULL;
        rc = serve(&options);
    }
    bow_tls_context_unref(tls);
    bow_context_unref(options.context);
    return rc;
}
