/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Descriptors: a FileDescriptorSet is refused with a reason, or built; then each of its messages is
 * made, written as JSON, encoded and decoded, and each of its files is printed. Nothing of it may
 * hurt, and what is encoded must be decoded as the same.
 */
#include <bowline/json.h>
#include <bowline/message.h>
#include <bowline/schema.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool is_true, const char *what, const char *name)
{
    if (!is_true) {
        fprintf(stderr, "%s: %s\n", what, name);
        abort();
    }
}

static void use(const struct bow_schema *schema, const ProtobufCMessageDescriptor *type)
{
    struct bow_json_options options = BOW_JSON_OPTIONS_INIT;
    struct bow_arena *arena = bow_arena_new(NULL, (size_t)8 << 20);
    ProtobufCMessage *message = arena != NULL ? bow_message_new(type, arena) : NULL;
    ProtobufCMessage *decoded = NULL;
    struct bow_slice text, bytes;

    options.files = bow_schema_files(schema, &options.n_files);
    options.always_print = true;
    if (message != NULL) {
        char reason[300] = "";
        int rc = bow_json_write(message, &options, arena, &text, reason, sizeof(reason));
        require(rc == 0 || reason[0] != '\0', "a reason for what has no JSON", type->name);
        if (bow_message_encode_new(message, arena, &bytes) == 0 &&
            bow_message_decode(type, bytes, NULL, arena, &decoded, NULL, 0) == 0) {
            require(bow_message_equal(message, decoded), "what is decoded is the same", type->name);
        }
        require(bow_schema_message(schema, type->name) == type, "it is found", type->name);
    }
    bow_arena_free(arena);
}

static void print(const struct bow_schema *schema, const char *file)
{
    struct bow_slice text;

    if (bow_schema_print(schema, file, NULL, &text) == 0) {
        free((void *)(uintptr_t)text.data);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bow_schema *schema;
    char reason[300] = "";
    size_t n;

    if (bow_schema_new(NULL, &schema) < 0) {
        return 0;
    }
    int rc = bow_schema_add_set(schema, (struct bow_slice){data, size}, reason, sizeof(reason));
    if (rc == 0) {
        rc = bow_schema_build(schema, reason, sizeof(reason));
    }
    require((rc == 0) == (reason[0] == '\0'), "a reason for what is refused", reason);
    const struct bow_file *const *files = bow_schema_files(schema, &n);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        for (size_t k = 0; k < files[i]->n_messages; k++) {
            use(schema, files[i]->messages[k].descriptor);
        }
        print(schema, files[i]->name);
    }
    bow_schema_free(schema);
    return 0;
}
