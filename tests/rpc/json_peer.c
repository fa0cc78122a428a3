/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Converts messages for json_oracle.py. It reads frames "MODE TYPE LEN\n" and LEN bytes: 'r' from
 * JSON to protobuf, 'w' the other way; and answers "ok LEN\n" with the result, "no LEN\n" with the
 * reason.
 */
#include "tests/rpc/json_fixture.h"
#include <stdio.h>
#include <stdlib.h>

static const struct {
    const char *name;
    const ProtobufCMessageDescriptor *type;
} types[] = {
    {"Scalars", &json__scalars__descriptor},
    {"Optionals", &json__optionals__descriptor},
    {"Lists", &json__lists__descriptor},
    {"Maps", &json__maps__descriptor},
    {"Choice", &json__choice__descriptor},
    {"Names", &json__names__descriptor},
    {"Tree", &json__tree__descriptor},
    {"Known", &json__known__descriptor},
    {"Everything", &json__everything__descriptor},
    {"Pairs", &json__pairs__descriptor},
};

static const ProtobufCMessageDescriptor *find(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i].name, name) == 0) {
            return types[i].type;
        }
    }
    abort();
}

static int convert(char mode, const ProtobufCMessageDescriptor *type, struct bow_slice in,
                   struct bow_arena *arena, struct bow_slice *ret_out, char *reason, size_t size)
{
    struct bow_json_options options = BOW_JSON_OPTIONS_INIT;
    ProtobufCMessage *message = NULL;
    options.files = json_files;
    options.n_files = JSON_FILES;
    if (mode == 'r') {
        int rc = bow_json_read(type, in, &options, arena, &message, reason, size);
        return rc == 0 ? bow_message_encode_new(message, arena, ret_out) : rc;
    }
    int rc = bow_message_decode(type, in, NULL, arena, &message, reason, size);
    return rc == 0 ? bow_json_write(message, &options, arena, ret_out, reason, size) : rc;
}

int main(int argc, char **argv)
{
    char mode, name[32], reason[512];
    size_t len;
    json_choose_descriptors(argc, argv);
    while (scanf("%c %31s %zu", &mode, name, &len) == 3 && getchar() == '\n') {
        uint8_t *bytes = malloc(len + 1);
        if (bytes == NULL || fread(bytes, 1, len, stdin) != len) {
            return 1;
        }
        struct bow_arena *arena = bow_arena_new(NULL, 0);
        struct bow_slice out;
        int rc = convert(mode, find(name), (struct bow_slice){bytes, len}, arena, &out, reason,
                         sizeof reason);
        if (rc != 0) {
            out = (struct bow_slice){(const uint8_t *)reason, strlen(reason)};
        }
        printf("%s %zu\n", rc == 0 ? "ok" : "no", out.len);
        fwrite(out.data, 1, out.len, stdout);
        fflush(stdout);
        bow_arena_free(arena);
        free(bytes);
    }
    return 0;
}
