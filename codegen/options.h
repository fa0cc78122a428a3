/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_CODEGEN_OPTIONS_H
#define BOWLINE_CODEGEN_OPTIONS_H

/*
 * Options that descriptor.proto does not know and that arrive as unknown fields:
 * protobuf-c's (protobuf-c/protobuf-c.proto) and ours (bowline/options.proto).
 */

#include "codegen/memory.h"

#include "descriptor.pb-c.h"

/** Which functions a message gets beside its descriptor. */
struct helper_options {
    bool with_pack;      /* __pack, __unpack and their like */
    bool with_init;      /* __init */
    bool is_pack_chosen; /* an option says so: it goes for the messages inside as well */
};

struct file_options {
    bool no_generate;
    bool use_oneof_field_name;
    bool const_strings;
    struct helper_options helpers;
    const char *c_package; /* NULL: none */
};

/** `options` may be NULL, here and below. */
void options_of_file(struct memory *memory, const Google__Protobuf__FileOptions *options,
                     struct file_options *ret_options);

/** The name of the member that every message struct begins with: "base" unless it says another. */
const char *options_base_field(struct memory *memory,
                               const Google__Protobuf__MessageOptions *options);

/** What a message makes of `outer`, the options of what it stands in. */
struct helper_options options_helpers(const Google__Protobuf__MessageOptions *options,
                                      struct helper_options outer);

/** (pb_c_field).string_as_bytes. */
bool options_string_as_bytes(const Google__Protobuf__FieldOptions *options);

/** (bowline.secret), or debug_redact of descriptor.proto. */
bool options_is_secret(const Google__Protobuf__FieldOptions *options);

/** (bowline.blocking). */
bool options_method_blocks(const Google__Protobuf__MethodOptions *options);

/** (bowline.c_name) and (bowline.c_service_name), or NULL. */
const char *options_method_c_name(struct memory *memory,
                                  const Google__Protobuf__MethodOptions *options);
const char *options_service_c_name(struct memory *memory,
                                   const Google__Protobuf__ServiceOptions *options);

#endif
