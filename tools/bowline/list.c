/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * `bowline list` and `bowline describe`: what there is to call. With files the target may be left
 * out, and nobody is connected to when it is not.
 */
#include "commands.h"
#include "peer.h"
#include "say.h"
#include "source.h"

#include <stdlib.h>
#include <string.h>

/* What the command line names: no target where files do, unless there is one. */
struct asked {
    const char *target;
    const char *symbol;
};

static int what_is_asked(const struct options *options, struct asked *ret_asked)
{
    bool is_files = source_is_files(options);

    *ret_asked = (struct asked){NULL, NULL};
    if (options->n_args == 2) {
        *ret_asked = (struct asked){options->args[0], options->args[1]};
    } else if (options->n_args == 1 && is_files && strchr(options->args[0], ':') != NULL) {
        ret_asked->target = options->args[0]; /* no name in a .proto has a colon */
    } else if (options->n_args == 1 && is_files) {
        ret_asked->symbol = options->args[0];
    } else if (options->n_args == 1) {
        ret_asked->target = options->args[0];
    } else if (!is_files) {
        return say_failed(EXIT_USAGE, "say where: a target, --proto FILE or --protoset FILE");
    }
    return EXIT_OK;
}

/* list */

static const char *kind_of(const struct bow_method *method)
{
    bool client = (method->flags & BOW_METHOD_CLIENT_STREAMING) != 0;
    bool server = (method->flags & BOW_METHOD_SERVER_STREAMING) != 0;

    if (client) {
        return server ? "bidi" : "client_stream";
    }
    return server ? "server_stream" : "unary";
}

static void put_method_json(const struct bow_method *method, bool is_first)
{
    printf("%s{\"name\":\"%s\",\"kind\":\"%s\",\"input\":\"%s\",\"output\":\"%s\"}",
           is_first ? "" : ",", method->path + 1, kind_of(method), method->input->name,
           method->output->name);
}

static int list_methods(struct peer *peer, const struct options *options, const char *name)
{
    struct bow_schema *schema = NULL;

    int rc = source_schema(peer, options, name, &schema);
    if (rc != EXIT_OK) {
        return rc;
    }
    const struct bow_service *service = bow_schema_service(schema, name);
    if (service == NULL) {
        struct near near = {.wanted = name};
        char meant[400];
        const struct bow_service *other;
        for (size_t i = 0; (other = bow_schema_service_at(schema, i)) != NULL; i++) {
            near_add(&near, other->name);
        }
        near_text(&near, meant, sizeof(meant));
        rc = say_failed(EXIT_USAGE, "there is no service %s%s", name, meant);
    } else if (options->json) {
        printf("{\"service\":\"%s\",\"methods\":[", service->name);
        for (uint32_t i = 0; i < service->n_methods; i++) {
            put_method_json(&service->methods[i], i == 0);
        }
        printf("]}\n");
    } else {
        for (uint32_t i = 0; i < service->n_methods; i++) {
            printf("%s\n", service->methods[i].path + 1);
        }
    }
    bow_schema_free(schema);
    return rc;
}

static void put_name(const struct options *options, const char *name, bool is_first)
{
    if (options->json) {
        printf("%s", is_first ? "" : ",");
        say_json_string(stdout, name, strlen(name));
    } else {
        say_text(stdout, name);
        putchar('\n');
    }
}

static int list_services(struct peer *peer, const struct options *options)
{
    struct source_names names;

    int rc = source_services(peer, options, &names);
    if (rc == EXIT_OK && options->json) {
        printf("{\"services\":[");
    }
    for (size_t i = 0; rc == EXIT_OK && i < names.n; i++) {
        put_name(options, names.names[i], i == 0);
    }
    if (rc == EXIT_OK && options->json) {
        printf("]}\n");
    }
    source_names_free(&names);
    return rc;
}

static int list(struct peer *peer, const struct options *options, const char *symbol)
{
    return symbol != NULL ? list_methods(peer, options, symbol) : list_services(peer, options);
}

/* describe */

static int show_text(const struct options *options, const char *name, struct bow_slice text)
{
    if (options->json) {
        printf("{\"symbol\":");
        say_json_string(stdout, name, strlen(name));
        printf(",\"proto\":");
        say_json_string(stdout, (const char *)text.data, text.len);
        printf("}\n");
    } else {
        fwrite(text.data, 1, text.len, stdout);
    }
    free((void *)(uintptr_t)text.data);
    return EXIT_OK;
}

/* What is near of the messages, of the services and of their methods. */
static int nothing_called(const struct bow_schema *schema, const char *symbol)
{
    struct near near = {.wanted = symbol};
    char meant[400];
    size_t n;
    const struct bow_file *const *files = bow_schema_files(schema, &n);
    const struct bow_service *service;

    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < files[i]->n_messages; k++) {
            near_add(&near, files[i]->messages[k].full_name);
        }
    }
    for (size_t i = 0; (service = bow_schema_service_at(schema, i)) != NULL; i++) {
        near_add(&near, service->name);
        for (uint32_t k = 0; k < service->n_methods; k++) {
            near_add(&near, service->methods[k].path + 1);
        }
    }
    near_text(&near, meant, sizeof(meant));
    return say_failed(EXIT_USAGE, "nothing is called %s%s", symbol, meant);
}

static int describe_one(const struct options *options, const struct bow_schema *schema,
                        const char *symbol)
{
    struct bow_slice text;
    char dotted[1024];

    snprintf(dotted, sizeof(dotted), "%s", symbol);
    if (bow_schema_print(schema, dotted, NULL, &text) == 0) {
        return show_text(options, symbol, text);
    }
    char *slash = strrchr(dotted, '/'); /* of a method */
    if (slash != NULL) {
        *slash = '.';
    }
    if (slash != NULL && bow_schema_print(schema, dotted, NULL, &text) == 0) {
        return show_text(options, symbol, text);
    }
    return nothing_called(schema, symbol);
}

/* Files that declare services; what they import can be asked for by name. */
static int describe_all(const struct options *options, const struct bow_schema *schema)
{
    const struct bow_service *service;
    int rc = EXIT_OK;

    for (size_t i = 0; rc == EXIT_OK && (service = bow_schema_service_at(schema, i)) != NULL; i++) {
        printf("%s", i > 0 && !options->json ? "\n" : "");
        if (!options->json) {
            printf("%s// %s, of %s%s\n", colour_on(stdout, COLOUR_DIM), service->name,
                   service->file->name, colour_off(stdout));
        }
        rc = describe_one(options, schema, service->name);
    }
    return rc;
}

static int describe(struct peer *peer, const struct options *options, const char *symbol)
{
    struct bow_schema *schema = NULL;
    bool is_file =
        symbol != NULL && strlen(symbol) > 6 && strcmp(symbol + strlen(symbol) - 6, ".proto") == 0;

    int rc = source_schema(peer, options, is_file ? NULL : symbol, &schema);
    if (rc == EXIT_OK) {
        rc = symbol != NULL ? describe_one(options, schema, symbol) : describe_all(options, schema);
    }
    bow_schema_free(schema);
    return rc;
}

static int with_peer(const struct options *options,
                     int (*fn)(struct peer *peer, const struct options *options,
                               const char *symbol))
{
    struct asked asked;
    struct peer peer = {0};

    int rc = what_is_asked(options, &asked);
    if (rc != EXIT_OK) {
        return rc;
    }
    if (source_is_files(options)) {
        return fn(&peer, options, asked.symbol);
    }
    rc = peer_open(&peer, options, asked.target);
    if (rc == EXIT_OK) {
        rc = fn(&peer, options, asked.symbol);
    }
    peer_close(&peer);
    return rc;
}

int command_list(const struct options *options)
{
    return with_peer(options, list);
}

int command_describe(const struct options *options)
{
    return with_peer(options, describe);
}
