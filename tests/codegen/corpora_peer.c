/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The messages of a shared object that corpora_test.py has made of generated C:
 *
 *     corpora_peer OBJECT SYMBOL...      each the struct bow_file of a .proto
 */
#include "tests/support/message_peer.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    void *object = argc > 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    size_t n_files = argc > 2 ? (size_t)argc - 2 : 0;
    const struct bow_file **files = calloc(n_files + 1, sizeof(*files));
    if (object == NULL || files == NULL) {
        fprintf(stderr, "corpora_peer: %s\n", argc > 2 ? dlerror() : "OBJECT SYMBOL...");
        return 2;
    }
    for (size_t i = 0; i < n_files; i++) {
        files[i] = dlsym(object, argv[i + 2]);
        if (files[i] == NULL) {
            fprintf(stderr, "corpora_peer: no %s\n", argv[i + 2]);
            return 2;
        }
    }
    return message_peer_run(files, n_files);
}
