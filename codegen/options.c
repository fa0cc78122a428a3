/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Reading custom options out of unknown fields. Field numbers are those of the
 * .proto files that declare them.
 */

#include "codegen/options.h"
#include "codegen/wire.h"

enum {
    PB_C_OPTIONS = 1019, /* the same number in FileOptions, MessageOptions and FieldOptions */
    PB_C_FILE_NO_GENERATE = 1,
    PB_C_FILE_GEN_PACK_HELPERS = 2,
    PB_C_FILE_GEN_INIT_HELPERS = 3,
    PB_C_FILE_CONST_STRINGS = 4,
    PB_C_FILE_USE_ONEOF_FIELD_NAME = 5,
    PB_C_FILE_C_PACKAGE = 6,
    PB_C_MSG_GEN_PACK_HELPERS = 1,
    PB_C_MSG_GEN_INIT_HELPERS = 2,
    PB_C_MSG_BASE_FIELD_NAME = 3,
    PB_C_FIELD_STRING_AS_BYTES = 1,
    BOWLINE_C_NAME = 50873,
    BOWLINE_BLOCKING = 50874,
    BOWLINE_SECRET = 50875,
    DEBUG_REDACT = 16, /* of FieldOptions, from protobuf 22 on */
};

/* The next unknown field of this number whose value is bytes; false when there is none. The last
 * one counts for a string, and a message that comes twice is merged, so callers visit all. */
static bool next_unknown(const ProtobufCMessage *message, uint32_t number, unsigned *cursor,
                         struct bow_slice *ret_bytes)
{
    while (message != NULL && *cursor < message->n_unknown_fields) {
        const ProtobufCMessageUnknownField *unknown = &message->unknown_fields[(*cursor)++];
        if (unknown->tag != number || unknown->wire_type != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED) {
            continue;
        }
        /* protobuf-c keeps the length prefix in `data` */
        struct bow_slice data = {.data = unknown->data, .len = unknown->len};
        if (wire_take_bytes(&data, ret_bytes)) {
            return true;
        }
    }
    return false;
}

static const char *text(struct memory *memory, struct bow_slice bytes)
{
    return memory_dup(memory, (const char *)bytes.data, bytes.len);
}

static void read_file_options(struct memory *memory, struct bow_slice bytes,
                              struct file_options *options)
{
    struct wire_field field;

    while (wire_next(&bytes, &field)) {
        if (field.type == 2 && field.number == PB_C_FILE_C_PACKAGE) {
            options->c_package = text(memory, field.bytes);
        }
        if (field.type != 0) {
            continue;
        }
        if (field.number == PB_C_FILE_NO_GENERATE) {
            options->no_generate = field.value != 0;
        } else if (field.number == PB_C_FILE_USE_ONEOF_FIELD_NAME) {
            options->use_oneof_field_name = field.value != 0;
        } else if (field.number == PB_C_FILE_CONST_STRINGS) {
            options->const_strings = field.value != 0;
        } else if (field.number == PB_C_FILE_GEN_PACK_HELPERS) {
            options->helpers.with_pack = field.value != 0;
            options->helpers.is_pack_chosen = true;
        } else if (field.number == PB_C_FILE_GEN_INIT_HELPERS) {
            options->helpers.with_init = field.value != 0;
        }
    }
}

void options_of_file(struct memory *memory, const Google__Protobuf__FileOptions *options,
                     struct file_options *ret_options)
{
    unsigned cursor = 0;
    struct bow_slice bytes;

    *ret_options = (struct file_options){.helpers = {.with_pack = true, .with_init = true}};
    while (next_unknown((const ProtobufCMessage *)options, PB_C_OPTIONS, &cursor, &bytes)) {
        read_file_options(memory, bytes, ret_options);
    }
}

const char *options_base_field(struct memory *memory,
                               const Google__Protobuf__MessageOptions *options)
{
    const char *base = "base";
    unsigned cursor = 0;
    struct bow_slice bytes;
    struct wire_field field;

    while (next_unknown((const ProtobufCMessage *)options, PB_C_OPTIONS, &cursor, &bytes)) {
        while (wire_next(&bytes, &field)) {
            if (field.number == PB_C_MSG_BASE_FIELD_NAME && field.type == 2) {
                base = text(memory, field.bytes);
            }
        }
    }
    return base;
}

static const char *last_text(struct memory *memory, const ProtobufCMessage *options)
{
    const char *name = NULL;
    unsigned cursor = 0;
    struct bow_slice bytes;

    while (next_unknown(options, BOWLINE_C_NAME, &cursor, &bytes)) {
        name = text(memory, bytes);
    }
    return name;
}

const char *options_method_c_name(struct memory *memory,
                                  const Google__Protobuf__MethodOptions *options)
{
    return last_text(memory, (const ProtobufCMessage *)options);
}

/* The last value of a bool that descriptor.proto does not know. */
static bool last_bool(const ProtobufCMessage *options, uint32_t number)
{
    uint64_t value = 0;

    for (unsigned i = 0; options != NULL && i < options->n_unknown_fields; i++) {
        const ProtobufCMessageUnknownField *unknown = &options->unknown_fields[i];
        struct bow_slice data = {.data = unknown->data, .len = unknown->len};
        if (unknown->tag == number && unknown->wire_type == PROTOBUF_C_WIRE_TYPE_VARINT) {
            (void)wire_take_varint(&data, &value);
        }
    }
    return value != 0;
}

bool options_method_blocks(const Google__Protobuf__MethodOptions *options)
{
    return last_bool((const ProtobufCMessage *)options, BOWLINE_BLOCKING);
}

bool options_is_secret(const Google__Protobuf__FieldOptions *options)
{
    return last_bool((const ProtobufCMessage *)options, BOWLINE_SECRET) ||
           last_bool((const ProtobufCMessage *)options, DEBUG_REDACT);
}

struct helper_options options_helpers(const Google__Protobuf__MessageOptions *options,
                                      struct helper_options outer)
{
    struct helper_options helpers = outer;
    unsigned cursor = 0;
    struct bow_slice bytes;
    struct wire_field field;

    while (next_unknown((const ProtobufCMessage *)options, PB_C_OPTIONS, &cursor, &bytes)) {
        while (wire_next(&bytes, &field)) {
            if (field.number == PB_C_MSG_GEN_PACK_HELPERS && field.type == 0) {
                helpers.with_pack = field.value != 0;
                helpers.is_pack_chosen = true;
            } else if (field.number == PB_C_MSG_GEN_INIT_HELPERS && field.type == 0) {
                helpers.with_init = field.value != 0;
            }
        }
    }
    return helpers;
}

bool options_string_as_bytes(const Google__Protobuf__FieldOptions *options)
{
    bool as_bytes = false;
    unsigned cursor = 0;
    struct bow_slice bytes;
    struct wire_field field;

    while (next_unknown((const ProtobufCMessage *)options, PB_C_OPTIONS, &cursor, &bytes)) {
        while (wire_next(&bytes, &field)) {
            if (field.number == PB_C_FIELD_STRING_AS_BYTES && field.type == 0) {
                as_bytes = field.value != 0;
            }
        }
    }
    return as_bytes;
}

const char *options_service_c_name(struct memory *memory,
                                   const Google__Protobuf__ServiceOptions *options)
{
    return last_text(memory, (const ProtobufCMessage *)options);
}
