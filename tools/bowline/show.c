/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Results as text and as JSON. */
#include "show.h"
#include "bytes.h"
#include "say.h"
#include <bowline/json.h>

#include <stdio.h>
#include <string.h>

int show_message(const struct options *options, const struct bow_schema *schema,
                 const ProtobufCMessage *message, bool is_one)
{
    struct bow_json_options json = BOW_JSON_OPTIONS_INIT;
    struct bow_arena *arena = bow_arena_new(NULL, 0);
    struct bow_slice text = {NULL, 0};
    char reason[400] = "no memory";

    json.files = bow_schema_files(schema, &json.n_files);
    json.always_print = options->always_print;
    json.indent = is_one && !options->json && !options->compact ? 2 : 0;
    int rc = bow_json_write(message, &json, arena, &text, reason, sizeof(reason));
    if (rc < 0) {
        bow_arena_free(arena);
        return say_failed(EXIT_FAILED, "a message came that has no JSON: %s", reason);
    }
    printf(options->json ? "{\"message\":%s}\n" : "%s\n", (const char *)text.data);
    fflush(stdout);
    bow_arena_free(arena);
    return EXIT_OK;
}

static bool is_binary(const char *key)
{
    size_t len = strlen(key);

    return len > 4 && strcmp(key + len - 4, "-bin") == 0;
}

void show_metadata(const char *title, const struct bow_metadata *metadata)
{
    fprintf(stderr, "%s%s%s%s\n", colour_on(stderr, COLOUR_DIM), title,
            metadata->n == 0 ? ": none" : ":", colour_off(stderr));
    for (size_t i = 0; i < metadata->n; i++) {
        const struct bow_metadata_entry *entry = &metadata->entries[i];
        fprintf(stderr, "  %s: ", entry->key);
        if (is_binary(entry->key)) {
            bytes_put_base64(stderr, entry->value);
        } else {
            fprintf(stderr, "%.*s", (int)entry->value.len, (const char *)entry->value.data);
        }
        fputc('\n', stderr);
    }
}

static void put_metadata(const struct bow_metadata *metadata)
{
    putchar('[');
    for (size_t i = 0; i < metadata->n; i++) {
        const struct bow_metadata_entry *entry = &metadata->entries[i];
        printf("%s{\"key\":", i > 0 ? "," : "");
        say_json_string(stdout, entry->key, strlen(entry->key));
        printf(",\"value\":");
        if (is_binary(entry->key)) {
            putchar('"');
            bytes_put_base64(stdout, entry->value);
            putchar('"');
        } else {
            say_json_string(stdout, (const char *)entry->value.data, entry->value.len);
        }
        putchar('}');
    }
    putchar(']');
}

void show_end(const struct bow_result *result, uint64_t total_ns)
{
    const struct bow_status *status = &result->status;

    printf("{\"status\":\"%s\",\"code\":%d,\"text\":", bow_code_name(status->code),
           (int)status->code);
    say_json_string(stdout, status->message, strlen(status->message));
    printf(",\"details\":\"");
    bytes_put_base64(stdout, status->details);
    printf("\",\"headers\":");
    put_metadata(&result->initial);
    printf(",\"trailers\":");
    put_metadata(&status->metadata);
    printf(",\"seconds\":%.6f}\n", (double)total_ns / 1e9);
    fflush(stdout);
}
