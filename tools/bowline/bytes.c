/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Files and base64. */
#include "bytes.h"
#include "say.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FILE_BYTES ((size_t)256 << 20)
#define FIRST_BYTES ((size_t)4096)

bool bytes_read(FILE *file, struct bow_slice *ret_bytes)
{
    size_t size = FIRST_BYTES;
    size_t len = 0;
    char *bytes = malloc(size);

    while (bytes != NULL && !feof(file) && !ferror(file)) {
        len += fread(bytes + len, 1, size - len - 1, file);
        if (len == size - 1) {
            size *= 2;
            char *larger = size <= MAX_FILE_BYTES ? realloc(bytes, size) : NULL;
            if (larger == NULL) {
                errno = EFBIG;
                free(bytes);
                return false;
            }
            bytes = larger;
        }
    }
    if (bytes == NULL || ferror(file)) {
        free(bytes);
        return false;
    }
    bytes[len] = '\0';
    *ret_bytes = (struct bow_slice){(const uint8_t *)bytes, len};
    return true;
}

int bytes_read_file(const char *name, struct bow_slice *ret_bytes)
{
    bool is_input = strcmp(name, "-") == 0;
    FILE *file = is_input ? stdin : fopen(name, "rbe");

    if (file == NULL) {
        return say_failed(EXIT_USAGE, "%s: %s", name, strerror(errno));
    }
    bool is_read = bytes_read(file, ret_bytes);
    int error = errno;
    if (!is_input) {
        fclose(file);
    }
    if (!is_read) {
        return say_failed(EXIT_USAGE, "%s: %s", is_input ? "standard input" : name,
                          strerror(error));
    }
    return EXIT_OK;
}

void bytes_free(struct bow_slice *bytes)
{
    free((void *)(uintptr_t)bytes->data);
    *bytes = (struct bow_slice){NULL, 0};
}

/* Base64 */

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int value_of(char c)
{
    const char *found = c != '\0' ? strchr(alphabet, c) : NULL;

    if (c == '-' || c == '_') {
        return c == '-' ? 62 : 63;
    }
    return found != NULL ? (int)(found - alphabet) : -1;
}

bool bytes_from_base64(const char *text, struct bow_slice *ret_bytes)
{
    uint8_t *bytes = malloc(strlen(text) + 1);
    size_t len = 0;
    unsigned bits = 0;
    int n_bits = 0;

    for (; bytes != NULL && *text != '\0' && *text != '='; text++) {
        int value = value_of(*text);
        if (value < 0) {
            free(bytes);
            return false;
        }
        bits = bits << 6 | (unsigned)value;
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            bytes[len++] = (uint8_t)(bits >> n_bits);
        }
    }
    *ret_bytes = (struct bow_slice){bytes, len};
    return bytes != NULL;
}

void bytes_put_base64(FILE *file, struct bow_slice bytes)
{
    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t n = bytes.len - i < 3 ? bytes.len - i : 3;
        unsigned bits = 0;
        for (size_t k = 0; k < 3; k++) {
            bits = bits << 8 | (k < n ? bytes.data[i + k] : 0u);
        }
        for (size_t k = 0; k < 4; k++) {
            fputc(k <= n ? alphabet[bits >> (18 - 6 * k) & 63] : '=', file);
        }
    }
}
