/* SPDX-License-Identifier: 0BSD */
/* The server. SIGHUP reads the keys again. Usage: ext-authz KEYS [ADDRESS] */

#include "check.h"
#include "keys.h"
#include <bowline/server.h>
#include <stdio.h>

/* There is one loop, on the thread of bow_server_run(), and all below runs there: no locks. */
struct program {
    const char *file;
    struct keys keys;
};

static bool load(struct program *program)
{
    char error[512];

    if (!keys_load(&program->keys, program->file, error, sizeof(error))) {
        fprintf(stderr, "ext-authz: %s\n", error);
        return false;
    }
    printf("%zu rights in %s\n", program->keys.n, program->file);
    return true;
}

static void on_check(struct bow_call *call, const Envoy__Service__Auth__V3__CheckRequest *request,
                     void *user)
{
    const struct program *program = user;

    check(call, request, &program->keys);
}

static void on_reload(struct bow_server *server, int error, const char *text, void *user)
{
    (void)server;
    (void)error; /* of certificates, which there are none of */
    (void)text;
    if (!load(user)) {
        fprintf(stderr, "ext-authz: the keys from before go on\n");
    }
}

static void on_started(struct bow_server *server, void *user)
{
    (void)user;
    printf("listening on %s\n", bow_server_addresses(server));
}

int main(int argc, char **argv)
{
    const struct envoy__service__auth__v3__authorization__handlers handlers = {.check = on_check};
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct program program = {.file = argv[1]};
    struct bow_server *server;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc < 2) {
        fprintf(stderr, "usage: ext-authz KEYS [ADDRESS]\n");
        return 2;
    }
    if (!load(&program)) {
        return 1;
    }
    options.listen = argc > 2 ? argv[2] : "127.0.0.1:9001";
    options.reload_on_sighup = true;
    options.on_reload = on_reload;
    options.reload_user = &program;
    options.on_started = on_started;
    if (bow_server_new(&options, &server) != 0) {
        fprintf(stderr, "ext-authz: out of memory\n");
        keys_clear(&program.keys);
        return 1;
    }
    int rc = envoy__service__auth__v3__authorization__serve(server, &handlers, &program);
    if (rc == 0) {
        rc = bow_server_run(server);
    }
    if (rc != 0) {
        fprintf(stderr, "ext-authz: %s\n", bow_server_error(server));
    }
    bow_server_free(server);
    keys_clear(&program.keys);
    return rc == 0 ? 0 : 1;
}
