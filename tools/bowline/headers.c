/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Keys and values of the command line; what the library refuses of them it says itself. */
#include "headers.h"
#include "bytes.h"
#include "say.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool is_binary(const char *key)
{
    size_t len = strlen(key);

    return len > 4 && strcmp(key + len - 4, "-bin") == 0;
}

static char *lower(const char *text, size_t len)
{
    char *key = strndup(text, len);

    for (size_t i = 0; key != NULL && key[i] != '\0'; i++) {
        key[i] = (char)tolower((unsigned char)key[i]);
    }
    return key;
}

static int read_one(const char *text, struct bow_metadata_entry *entry)
{
    const char *colon = strchr(text, ':');

    if (colon == NULL || colon == text) {
        return say_failed(EXIT_USAGE, "-H \"%s\": write KEY: VALUE", text);
    }
    const char *value = colon + 1 + strspn(colon + 1, " \t");
    entry->key = lower(text, (size_t)(colon - text));
    if (entry->key != NULL && is_binary(entry->key)) {
        if (!bytes_from_base64(value, &entry->value)) {
            return say_failed(EXIT_USAGE, "-H \"%s\": the value of a -bin key is base64", text);
        }
        return EXIT_OK;
    }
    entry->value = (struct bow_slice){(const uint8_t *)strdup(value), strlen(value)};
    return entry->key != NULL && entry->value.data != NULL ? EXIT_OK
                                                           : say_failed(EXIT_FAILED, "no memory");
}

int headers_read(const struct options *options, struct headers *headers)
{
    int rc = EXIT_OK;

    *headers = (struct headers){0};
    headers->metadata.entries = headers->entries;
    for (size_t i = 0; i < options->headers.n && rc == EXIT_OK; i++) {
        rc = read_one(options->headers.values[i], &headers->entries[i]);
        headers->metadata.n = i + 1;
    }
    return rc;
}

void headers_free(struct headers *headers)
{
    for (size_t i = 0; i < headers->metadata.n; i++) {
        free((void *)(uintptr_t)headers->entries[i].key);
        bytes_free(&headers->entries[i].value);
    }
}
