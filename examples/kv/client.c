/* SPDX-License-Identifier: 0BSD */
/* Usage: kv-client ADDRESS get KEY | put KEY VALUE | watch PREFIX */

#include "kv.bow.h"
#include <bowline/client.h>
#include <stdio.h>
#include <string.h>

static int failed(const struct bow_result *result)
{
    if (result->status.code == BOW_OK) {
        return 0;
    }
    fprintf(stderr, "kv-client: %s: %s\n", bow_code_name(result->status.code),
            result->status.message);
    return 1;
}

static void print_entry(const Demo__Entry *entry)
{
    printf("%s = %s\n", entry->key, entry->value);
    fflush(stdout);
}

static int get(struct bow_client *client, char *key)
{
    Demo__Key request = DEMO__KEY__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    request.key = key;
    const Demo__Entry *entry = demo__kv__get__call(client, &request, NULL, &result);
    if (entry != NULL) {
        print_entry(entry);
    }
    int rc = failed(&result);
    bow_result_fini(&result);
    return rc;
}

static int put(struct bow_client *client, char *key, char *value)
{
    Demo__Entry request = DEMO__ENTRY__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    request.key = key;
    request.value = value;
    (void)demo__kv__put__call(client, &request, NULL, &result);
    int rc = failed(&result);
    bow_result_fini(&result);
    return rc;
}

/* One stream, until it ends. Returns whether another is worth while: the server went away. */
static bool watch_once(struct bow_client *client, char *prefix)
{
    Demo__WatchRequest request = DEMO__WATCH_REQUEST__INIT;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    struct bow_result result = BOW_RESULT_INIT;
    struct demo__kv__watch__stream stream;
    const Demo__Entry *entry;

    request.prefix = prefix;
    options.wait_for_ready = true;
    if (demo__kv__watch__open(client, &request, &options, NULL, NULL, &stream) < 0) {
        fprintf(stderr, "kv-client: out of memory\n");
        return false;
    }
    while (demo__kv__watch__stream_receive(stream, BOW_NEVER, &entry) > 0) {
        print_entry(entry);
    }
    demo__kv__watch__stream_finish(stream, &result);
    failed(&result);
    bool again = result.status.code == BOW_UNAVAILABLE;
    bow_result_fini(&result);
    return again;
}

/* The store is in the server's memory: one that comes back counts its revisions anew, so a new
 * watch begins at the beginning. */
static int watch(struct bow_client *client, char *prefix)
{
    while (watch_once(client, prefix)) {
        fprintf(stderr, "kv-client: watching again\n");
    }
    return 1;
}

int main(int argc, char **argv)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_transport_error error = {0};
    struct bow_client *client;
    const char *what = argc > 3 ? argv[2] : "";
    int rc = 2;

    options.target = argc > 1 ? argv[1] : NULL;
    options.error = &error;
    if (bow_client_new(&options, &client) != 0) {
        fprintf(stderr, "kv-client: %s\n", error.text);
        return 2;
    }
    if (strcmp(what, "get") == 0) {
        rc = get(client, argv[3]);
    } else if (strcmp(what, "put") == 0 && argc > 4) {
        rc = put(client, argv[3], argv[4]);
    } else if (strcmp(what, "watch") == 0) {
        rc = watch(client, argv[3]);
    } else {
        fprintf(stderr, "usage: %s ADDRESS get KEY | put KEY VALUE | watch PREFIX\n", argv[0]);
    }
    bow_client_free(client);
    return rc;
}
