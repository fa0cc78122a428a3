/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* An operations listener's JSON, by the library's own reader. What is made of it is picture.c's. */
#include "sample.h"
#include <bowline/json.h>

#include <errno.h>
#include <stdio.h>

/* The largest answer, as messages. */
#define MAX_ARENA_BYTES ((size_t)256 << 20)

int sample_read(struct bow_slice json, uint64_t at_ns, struct sample *ret_sample, char *reason,
                size_t reason_size)
{
    struct bow_json_options options = BOW_JSON_OPTIONS_INIT;
    struct bow_arena *arena = bow_arena_new(NULL, MAX_ARENA_BYTES);
    ProtobufCMessage *message = NULL;

    options.ignore_unknown = true; /* a server may be newer than the tool */
    int rc = arena != NULL ? bow_json_read(&told__server__descriptor, json, &options, arena,
                                           &message, reason, reason_size)
                           : -ENOMEM;
    if (rc == -ENOMEM) {
        snprintf(reason, reason_size, "it is too large, or there is no memory for it");
    }
    const Told__Server *told = (const Told__Server *)message;
    if (rc == 0 && (told->config == NULL || told->counters == NULL)) {
        snprintf(reason, reason_size, "it has no \"config\" and \"counters\"");
        rc = -EBADMSG;
    }
    if (rc < 0) {
        bow_arena_free(arena);
        return rc;
    }
    *ret_sample = (struct sample){arena, told, at_ns};
    return 0;
}

void sample_fini(struct sample *sample)
{
    bow_arena_free(sample->arena);
    *sample = (struct sample){.arena = NULL};
}
