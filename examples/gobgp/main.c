/* SPDX-License-Identifier: 0BSD */
/* The command line: each command is one call, and waits for its end. */

#include "gobgp.bow.h"
#include "path.h"
#include <bowline/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UUID_BYTES 16u

static const char usage[] =
    "usage: gobgp-client TARGET COMMAND\n"
    "  TARGET is grpc:unix:PATH or grpc:HOST:PORT\n"
    "commands:\n"
    "  show                          who the daemon is\n"
    "  start ASN ROUTER_ID [PORT [ADDRESS]]\n"
    "                                speak BGP; without PORT only with whom it connects to\n"
    "  stop\n"
    "  add PREFIX/LENGTH NEXT_HOP    tell the peers of a path; prints its UUID\n"
    "  delete UUID\n"
    "  list                          the best paths and the others\n";

static int show(struct bow_client *client, char **words, struct bow_result *result)
{
    Apipb__GetBgpRequest request = APIPB__GET_BGP_REQUEST__INIT;

    (void)words;
    const Apipb__GetBgpResponse *reply =
        apipb__gobgp_api__get_bgp__call(client, &request, NULL, result);
    if (reply != NULL && (reply->global == NULL || reply->global->asn == 0)) {
        printf("not started\n");
    } else if (reply != NULL) {
        printf("AS %u, router %s, port %d\n", reply->global->asn, reply->global->router_id,
               reply->global->listen_port);
    }
    return reply != NULL ? 0 : 1;
}

static int start(struct bow_client *client, char **words, struct bow_result *result)
{
    Apipb__Global global = APIPB__GLOBAL__INIT;
    Apipb__StartBgpRequest request = APIPB__START_BGP_REQUEST__INIT;

    global.asn = (uint32_t)strtoul(words[0], NULL, 10);
    global.router_id = words[1];
    global.listen_port = words[2] != NULL ? (int32_t)strtol(words[2], NULL, 10) : -1;
    if (words[2] != NULL && words[3] != NULL) { /* else all that the host has */
        global.n_listen_addresses = 1;
        global.listen_addresses = &words[3];
    }
    request.global = &global;
    return apipb__gobgp_api__start_bgp__call(client, &request, NULL, result) != NULL ? 0 : 1;
}

static int stop(struct bow_client *client, char **words, struct bow_result *result)
{
    Apipb__StopBgpRequest request = APIPB__STOP_BGP_REQUEST__INIT;

    (void)words;
    return apipb__gobgp_api__stop_bgp__call(client, &request, NULL, result) != NULL ? 0 : 1;
}

static int add(struct bow_client *client, char **words, struct bow_result *result)
{
    Apipb__AddPathRequest request = APIPB__ADD_PATH_REQUEST__INIT;
    struct path path;

    if (path_init(&path, words[0], words[1]) < 0) {
        fprintf(stderr, "gobgp-client: a path is PREFIX/LENGTH NEXT_HOP, of IPv4\n");
        return 2;
    }
    request.path = &path.path;
    const Apipb__AddPathResponse *reply =
        apipb__gobgp_api__add_path__call(client, &request, NULL, result);
    for (size_t i = 0; reply != NULL && i < reply->uuid.len; i++) {
        printf("%02x%s", reply->uuid.data[i], i + 1 == reply->uuid.len ? "\n" : "");
    }
    return reply != NULL ? 0 : 1;
}

static bool parse_uuid(const char *text, uint8_t uuid[UUID_BYTES])
{
    if (strlen(text) != 2 * UUID_BYTES || strspn(text, "0123456789abcdef") != 2 * UUID_BYTES) {
        return false;
    }
    for (size_t i = 0; i < UUID_BYTES; i++) {
        (void)sscanf(text + 2 * i, "%2hhx", &uuid[i]);
    }
    return true;
}

static int delete (struct bow_client *client, char **words, struct bow_result *result)
{
    Apipb__DeletePathRequest request = APIPB__DELETE_PATH_REQUEST__INIT;
    Apipb__Family family = path_family();
    uint8_t uuid[UUID_BYTES];

    if (!parse_uuid(words[0], uuid)) {
        fprintf(stderr, "gobgp-client: a UUID is what add has printed\n");
        return 2;
    }
    request.family = &family;
    request.uuid = (ProtobufCBinaryData){sizeof(uuid), uuid};
    return apipb__gobgp_api__delete_path__call(client, &request, NULL, result) != NULL ? 0 : 1;
}

/* A stream: the daemon sends one destination after the other, and the table may be large. */
static int list(struct bow_client *client, char **words, struct bow_result *result)
{
    Apipb__ListPathRequest request = APIPB__LIST_PATH_REQUEST__INIT;
    Apipb__Family family = path_family();
    struct apipb__gobgp_api__list_path__stream stream;
    const Apipb__ListPathResponse *reply;

    (void)words;
    request.family = &family;
    if (apipb__gobgp_api__list_path__open(client, &request, NULL, NULL, NULL, &stream) < 0) {
        fprintf(stderr, "gobgp-client: out of memory\n");
        return 1;
    }
    while (apipb__gobgp_api__list_path__stream_receive(stream, BOW_NEVER, &reply) > 0) {
        const Apipb__Destination *destination = reply->destination;
        for (size_t i = 0; destination != NULL && i < destination->n_paths; i++) {
            path_print(destination->prefix, destination->paths[i]);
        }
    }
    apipb__gobgp_api__list_path__stream_finish(stream, result);
    return result->status.code == BOW_OK ? 0 : 1;
}

static const struct command {
    const char *name;
    int n_words; /* at least */
    int (*fn)(struct bow_client *client, char **words, struct bow_result *result);
} commands[] = {
    {"show", 0, show}, {"start", 2, start},   {"stop", 0, stop},
    {"add", 2, add},   {"delete", 1, delete}, {"list", 0, list},
};

static const struct command *find_command(int n_words, char **words)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]) && n_words > 0; i++) {
        if (strcmp(commands[i].name, words[0]) == 0 && n_words > commands[i].n_words) {
            return &commands[i];
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const struct command *command = find_command(argc - 2, argv + 2);
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_transport_error error = {.text = "out of memory or descriptors"};
    struct bow_result result = BOW_RESULT_INIT;
    struct bow_client *client;

    if (command == NULL) {
        fputs(usage, stderr);
        return 2;
    }
    options.target = argv[1];
    options.error = &error;
    if (bow_client_new(&options, &client) != 0) {
        fprintf(stderr, "gobgp-client: %s\n", error.text);
        return 2;
    }
    int rc = command->fn(client, argv + 3, &result);
    if (result.status.code != BOW_OK) {
        fprintf(stderr, "gobgp-client: %s: %s\n", bow_code_name(result.status.code),
                result.status.message);
    }
    bow_result_fini(&result);
    bow_client_free(client);
    return rc;
}
