/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_CODEGEN_EMIT_H
#define BOWLINE_CODEGEN_EMIT_H

/*
 * Writing the four files of a .proto. Messages: x.pb-c.h (structs, as protobuf-c's users
 * know them) and x.pb-c.c (their descriptors, and the tables that say what descriptors
 * do not). Services: x.bow.h (what a user includes) and x.bow.c (the tables behind it),
 * which of the messages use the struct types and their descriptors only. The same model
 * gives the same bytes.
 */

#include "codegen/includes.h"
#include "codegen/model.h"
#include "codegen/request.h"

/** What follows the file's stem. */
#define EMIT_MESSAGE_HEADER_ENDING ".pb-c.h"
#define EMIT_MESSAGE_SOURCE_ENDING ".pb-c.c"
#define EMIT_HEADER_ENDING ".bow.h"
#define EMIT_SOURCE_ENDING ".bow.c"

/** One of the files to write, and what it is written from. */
struct emit {
    const struct model *model;
    const struct model_file *file;
    const struct parameters *parameters;
};

void emit_message_header(struct printer *out, const struct emit *emit);
void emit_message_source(struct printer *out, const struct emit *emit);
void emit_header(struct printer *out, const struct emit *emit);
void emit_source(struct printer *out, const struct emit *emit);

/** Of emit_message_source(): a message's fields and its descriptor; `info` is the C of the pointer
 * to its struct bow_message_info. */
void emit_message_descriptor(struct printer *out, const struct model_message *message,
                             const char *info);

/**
 * Of emit_message_source(): the serialized file and the tables of its messages, in two parts, for
 * the descriptors stand between them: each points to its entry, and the entry to it.
 */
void emit_table_declarations(struct printer *out, const struct model_file *file);
void emit_tables(struct printer *out, const struct emit *emit);

/** The C of the pointer to the entry of `message`. */
const char *emit_table_entry(struct memory *memory, const struct model_message *message);

/** Of emit_header(): the typed handles of a streaming method; `vars` as for its other functions. */
void emit_stream_handles(struct printer *out, const struct emit *emit,
                         const struct printer_var *vars, const struct model_method *method);

/** Of emit_header(): the typed functions of its messages and enums, and what they include. */
void emit_message_includes(struct printer *out, const struct emit *emit);
void emit_message_functions(struct printer *out, const struct emit *emit);

/** Of emit_source(): from untyped events to those of a streaming method. */
void emit_thunks(struct printer *out, const struct emit *emit, const struct model_method *method);

/** Of all: the licence line and where the file came from. */
void emit_banner(struct printer *out, const struct model_file *file);

/** The #include of one of a file's headers. */
void emit_include(struct printer *out, const struct emit *emit, const struct model_file *file,
                  const char *ending);

/** Refuse to compile against other tables than these. */
void emit_abi_check(struct printer *out);

/** The comment of the .proto as a doc comment; nothing when it has none. */
void emit_doc(struct printer *out, const char *indent, struct place place);

/** An int32 as C, also the least, which has no literal. */
const char *emit_int(struct memory *memory, int32_t value);

#endif
