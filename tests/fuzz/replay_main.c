/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Runs a fuzz target over every file of its corpus, without a fuzzer: once a
 * finding is fixed, its input stays in the corpus and is a test. Exits with 1 when
 * the folder can't be read or holds nothing, for a test over nothing is none.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_INPUT_BYTES ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fprintf(stderr, "replay: can't read %s\n", path);
        return 1;
    }
    /* Of exactly the input's size, so that AddressSanitizer sees a read beyond it. */
    uint8_t *whole = malloc(MAX_INPUT_BYTES);
    size_t size = whole != NULL ? fread(whole, 1, MAX_INPUT_BYTES, file) : 0;
    fclose(file);
    uint8_t *input = malloc(size > 0 ? size : 1);
    if (whole == NULL || input == NULL) {
        free(whole);
        free(input);
        return 1;
    }
    for (size_t i = 0; i < size; i++) {
        input[i] = whole[i];
    }
    free(whole);
    LLVMFuzzerTestOneInput(input, size);
    free(input);
    return 0;
}

int main(int argc, char **argv)
{
    struct dirent **entries;
    int n = argc == 2 ? scandir(argv[1], &entries, NULL, alphasort) : -1;
    if (n < 0) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 1;
    }
    int n_files = 0;
    int rc = 0;
    for (int i = 0; i < n; i++) {
        if (entries[i]->d_name[0] != '.') {
            n_files++;
            rc |= replay(argv[1], entries[i]->d_name);
        }
        free(entries[i]);
    }
    free(entries);
    printf("%d inputs\n", n_files);
    return n_files == 0 ? 1 : rc;
}
