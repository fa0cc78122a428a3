/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Frames in, frames out; each message in an arena of its own. */
#include "tests/support/message_peer.h"
#include <bowline/json.h>
#include <bowline/message.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct peer {
    const struct bow_file *const *files;
    size_t n_files;
    char mode;
    const ProtobufCMessageDescriptor *type;
    struct bow_arena *arena;
    char reason[512];
};

static const ProtobufCMessageDescriptor *find(const struct peer *peer, const char *name)
{
    for (size_t i = 0; i < peer->n_files; i++) {
        for (size_t k = 0; k < peer->files[i]->n_messages; k++) {
            if (strcmp(peer->files[i]->messages[k].full_name, name) == 0) {
                return peer->files[i]->messages[k].descriptor;
            }
        }
    }
    fprintf(stderr, "message_peer: no type %s\n", name);
    exit(1);
}

static int convert(struct peer *peer, struct bow_slice in, struct bow_slice *ret_out)
{
    struct bow_json_options options = BOW_JSON_OPTIONS_INIT;
    ProtobufCMessage *message = NULL;
    options.files = peer->files;
    options.n_files = peer->n_files;
    int rc = peer->mode == 'r' ? bow_json_read(peer->type, in, &options, peer->arena, &message,
                                               peer->reason, sizeof peer->reason)
                               : bow_message_decode(peer->type, in, NULL, peer->arena, &message,
                                                    peer->reason, sizeof peer->reason);
    if (rc < 0) {
        return rc;
    }
    return peer->mode == 'w' ? bow_json_write(message, &options, peer->arena, ret_out, peer->reason,
                                              sizeof peer->reason)
                             : bow_message_encode_new(message, peer->arena, ret_out);
}

int message_peer_run(const struct bow_file *const *files, size_t n_files)
{
    struct peer peer = {.files = files, .n_files = n_files};
    char name[512];
    size_t len;
    while (scanf("%c %511s %zu", &peer.mode, name, &len) == 3 && getchar() == '\n') {
        uint8_t *bytes = malloc(len + 1);
        if (bytes == NULL || fread(bytes, 1, len, stdin) != len) {
            return 1;
        }
        peer.type = find(&peer, name);
        peer.arena = bow_arena_new(NULL, 0);
        peer.reason[0] = '\0';
        struct bow_slice out;
        int rc = convert(&peer, (struct bow_slice){bytes, len}, &out);
        if (rc != 0) {
            out = (struct bow_slice){(const uint8_t *)peer.reason, strlen(peer.reason)};
        }
        printf("%s %zu\n", rc == 0 ? "ok" : "no", out.len);
        fwrite(out.data, 1, out.len, stdout);
        fflush(stdout);
        bow_arena_free(peer.arena);
        free(bytes);
    }
    return 0;
}
