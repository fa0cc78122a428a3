/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * JSON. The first byte chooses the type and the options, the rest are the text; what is read must
 * be written, and read again as the same. Of what is refused there must be a reason.
 */
#include "google/protobuf/struct.bow.h"
#include "google/protobuf/timestamp.bow.h"
#include "json.bow.h"
#include "json2.bow.h"
#include <bowline/json.h>
#include <bowline/message.h>
#include <bowline/message_print.h>
#include <bowline/service.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const ProtobufCMessageDescriptor *const types[] = {
    &json__everything__descriptor, &json__known__descriptor, &json__maps__descriptor,
    &json__choice__descriptor,     &json__names__descriptor, &google__protobuf__value__descriptor,
    &json2__outer__descriptor,     &json__lists__descriptor,
};
#define N_TYPES (sizeof types / sizeof types[0])

static const struct bow_file *const files[] = {
    &json__file__json_2eproto,
    &google__protobuf__file__google_2fprotobuf_2ftimestamp_2eproto,
    &google__protobuf__file__google_2fprotobuf_2fstruct_2eproto,
};

static void require(bool is_true, const char *what, const char *reason)
{
    if (!is_true) {
        fprintf(stderr, "%s: %s\n", what, reason);
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bow_json_options options = BOW_JSON_OPTIONS_INIT;
    ProtobufCMessage *message = NULL, *again = NULL;
    struct bow_slice text;
    char reason[300], line[50];
    if (size == 0) {
        return 0;
    }
    const ProtobufCMessageDescriptor *type = types[data[0] % N_TYPES];
    options.files = files;
    options.n_files = sizeof files / sizeof files[0];
    options.ignore_unknown = (data[0] & 0x10) != 0;
    options.indent = (data[0] & 0x20) != 0 ? 2 : 0;
    options.always_print = (data[0] & 0x40) != 0;
    struct bow_arena *arena = bow_arena_new(NULL, (size_t)8 << 20);
    if (arena == NULL) {
        return 0;
    }
    int rc = bow_json_read(type, (struct bow_slice){data + 1, size - 1}, &options, arena, &message,
                           reason, sizeof reason);
    require((rc == 0) == (reason[0] == '\0'), "a reason for what is refused", reason);
    if (rc == 0) {
        bow_message_print(message, line, sizeof line);
        rc = bow_json_write(message, &options, arena, &text, reason, sizeof reason);
        require(rc == 0 || rc == -ENOMEM, "what was read is written", reason);
    }
    if (rc == 0) {
        rc = bow_json_read(type, text, &options, arena, &again, reason, sizeof reason);
        require(rc == 0 || rc == -ENOMEM, "what was written is read", reason);
    }
    if (rc == 0) {
        require(bow_message_equal(message, again), "what is read again is the same",
                (const char *)text.data);
    }
    bow_arena_free(arena);
    return 0;
}
