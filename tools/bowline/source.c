/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Schemas of files, of protoc, of reflection. */
#include "source.h"
#include "bytes.h"
#include "protoc.h"
#include "reflect.h"
#include "say.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NAME 1024

bool source_is_files(const struct options *options)
{
    return options->protos.n > 0 || options->protosets.n > 0;
}

/* Files */

static int add_set(struct bow_schema *schema, const char *name, struct bow_slice bytes)
{
    char reason[400];
    int rc = bow_schema_add_set(schema, bytes, reason, sizeof(reason));

    if (rc < 0 && rc != -EEXIST) {
        return say_failed(EXIT_USAGE, "%s: %s", name, reason);
    }
    return EXIT_OK;
}

static int add_all_files(const struct options *options, struct bow_schema *schema)
{
    struct bow_slice bytes = {NULL, 0};
    int rc = EXIT_OK;

    for (size_t i = 0; i < options->protosets.n && rc == EXIT_OK; i++) {
        rc = bytes_read_file(options->protosets.values[i], &bytes);
        if (rc == EXIT_OK) {
            rc = add_set(schema, options->protosets.values[i], bytes);
            bytes_free(&bytes);
        }
    }
    if (rc == EXIT_OK && options->protos.n > 0) {
        rc = protoc_run(options, &bytes);
        if (rc == EXIT_OK) {
            rc = add_set(schema, options->protos.values[0], bytes);
            bytes_free(&bytes);
        }
    }
    return rc;
}

/* Reflection */

static int keep_name(const char *name, void *user)
{
    struct source_names *names = user;
    char **more = realloc(names->names, (names->n + 1) * sizeof(*more));

    if (more == NULL) {
        return say_failed(EXIT_FAILED, "no memory");
    }
    names->names = more;
    names->names[names->n] = strdup(name);
    if (names->names[names->n] == NULL) {
        return say_failed(EXIT_FAILED, "no memory");
    }
    names->n++;
    return EXIT_OK;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int reflected_names(struct peer *peer, struct source_names *names)
{
    struct reflect reflect;

    reflect_init(&reflect, peer);
    int rc = reflect_services(&reflect, keep_name, names);
    reflect_fini(&reflect);
    if (rc == EXIT_OK && names->n > 0) {
        qsort(names->names, names->n, sizeof(*names->names), compare);
    }
    return rc;
}

/* The service of "package.Service/Method"; of a dotted name all of it. */
static void service_of(const char *symbol, char *name, size_t size)
{
    const char *slash = strrchr(symbol, '/');
    size_t len = slash != NULL && slash != symbol ? (size_t)(slash - symbol) : strlen(symbol);

    snprintf(name, size, "%.*s", (int)len, symbol);
}

static int unknown_symbol(struct peer *peer, const char *symbol)
{
    struct source_names names = {NULL, 0};
    struct near near = {.wanted = symbol};
    char meant[400];

    int rc = reflected_names(peer, &names);
    if (rc == EXIT_OK) {
        for (size_t i = 0; i < names.n; i++) {
            near_add(&near, names.names[i]);
        }
        near_text(&near, meant, sizeof(meant));
        rc = say_failed(EXIT_USAGE, "%s declares no %s%s%s", peer->target, symbol, meant,
                        near.n == 0 ? "; bowline list shows what it has" : "");
    }
    source_names_free(&names);
    return rc;
}

static int add_reflected(struct peer *peer, const char *symbol, struct bow_schema *schema)
{
    struct reflect reflect;
    char name[MAX_NAME];
    bool unknown = false;

    service_of(symbol[0] == '.' || symbol[0] == '/' ? symbol + 1 : symbol, name, sizeof(name));
    reflect_init(&reflect, peer);
    int rc = reflect_symbol(&reflect, name, schema, &unknown);
    if (rc == EXIT_OK && !unknown) {
        rc = reflect_imports(&reflect, schema);
    }
    reflect_fini(&reflect);
    return rc == EXIT_OK && unknown ? unknown_symbol(peer, name) : rc;
}

static int add_all_reflected(struct peer *peer, struct bow_schema *schema)
{
    struct source_names names = {NULL, 0};
    int rc = reflected_names(peer, &names);

    for (size_t i = 0; i < names.n && rc == EXIT_OK; i++) {
        rc = add_reflected(peer, names.names[i], schema);
    }
    source_names_free(&names);
    return rc;
}

/* Both */

int source_schema(struct peer *peer, const struct options *options, const char *symbol,
                  struct bow_schema **ret_schema)
{
    struct bow_schema *schema = NULL;
    char reason[400];
    int rc = EXIT_OK;

    if (bow_schema_new(NULL, &schema) < 0) {
        return say_failed(EXIT_FAILED, "no memory");
    }
    if (source_is_files(options)) {
        rc = add_all_files(options, schema);
    } else if (symbol != NULL) {
        rc = add_reflected(peer, symbol, schema);
    } else {
        rc = add_all_reflected(peer, schema);
    }
    if (rc == EXIT_OK && bow_schema_build(schema, reason, sizeof(reason)) < 0) {
        rc = say_failed(source_is_files(options) ? EXIT_USAGE : EXIT_FAILED, "%s", reason);
    }
    if (rc != EXIT_OK) {
        bow_schema_free(schema);
        return rc;
    }
    *ret_schema = schema;
    return EXIT_OK;
}

int source_services(struct peer *peer, const struct options *options,
                    struct source_names *ret_names)
{
    struct bow_schema *schema = NULL;
    const struct bow_service *service;

    *ret_names = (struct source_names){NULL, 0};
    if (!source_is_files(options)) {
        return reflected_names(peer, ret_names);
    }
    int rc = source_schema(peer, options, NULL, &schema);
    for (size_t i = 0; rc == EXIT_OK && (service = bow_schema_service_at(schema, i)) != NULL; i++) {
        rc = keep_name(service->name, ret_names);
    }
    bow_schema_free(schema);
    return rc;
}

void source_names_free(struct source_names *names)
{
    for (size_t i = 0; i < names->n; i++) {
        free(names->names[i]);
    }
    free(names->names);
}

static int unknown_method(const struct bow_schema *schema, const char *name)
{
    struct near near = {.wanted = name[0] == '/' ? name + 1 : name};
    const struct bow_service *service;
    char meant[400];

    for (size_t i = 0; (service = bow_schema_service_at(schema, i)) != NULL; i++) {
        for (uint32_t k = 0; k < service->n_methods; k++) {
            near_add(&near, service->methods[k].path + 1);
        }
    }
    near_text(&near, meant, sizeof(meant));
    return say_failed(EXIT_USAGE, "there is no method %s%s%s", name, meant,
                      near.n == 0 ? "; methods are called package.Service/Method, and bowline list "
                                    "shows them"
                                  : "");
}

/* "package.Service.Method" is what some tools write: the server is asked for the service. */
static void with_slash(const char *name, char *slashed, size_t size)
{
    snprintf(slashed, size, "%s", name);
    char *dot = strrchr(slashed, '.');
    if (strchr(slashed, '/') == NULL && dot != NULL) {
        *dot = '/';
    }
}

int source_method(struct peer *peer, const struct options *options, const char *name,
                  struct bow_schema **ret_schema, const struct bow_method **ret_method)
{
    char slashed[MAX_NAME];

    with_slash(name, slashed, sizeof(slashed));
    int rc = source_schema(peer, options, slashed, ret_schema);
    if (rc != EXIT_OK) {
        return rc;
    }
    *ret_method = bow_schema_method(*ret_schema, slashed);
    if (*ret_method == NULL) {
        rc = unknown_method(*ret_schema, slashed);
        bow_schema_free(*ret_schema);
        *ret_schema = NULL;
    }
    return rc;
}
