/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_CODEGEN_EMIT_H
#define BOWLINE_CODEGEN_EMIT_H

/*
 * Writing the two files that stand beside protoc-gen-c's: x.bow.h (what a user
 * reads) and x.bow.c (the tables behind it). Of protobuf-c's names they use the
 * struct types and their descriptors only. The same model gives the same bytes.
 */

#include "codegen/model.h"

/** What follows the file's stem. */
#define EMIT_HEADER_ENDING ".bow.h"
#define EMIT_SOURCE_ENDING ".bow.c"

void emit_header(struct printer *out, const struct model_file *file);
void emit_source(struct printer *out, const struct model_file *file);

/** Of emit_source(): the serialized file and the tables of its messages. */
void emit_file_tables(struct printer *out, const struct model_file *file);

/** Of emit_header(): the typed handles of a streaming method; `vars` as for its other functions. */
void emit_stream_handles(struct printer *out, const struct printer_var *vars,
                         const struct model_method *method);

/** Of emit_header(): the typed functions of its messages and enums, and what they include. */
void emit_message_includes(struct printer *out, const struct model_file *file);
void emit_message_functions(struct printer *out, const struct model_file *file);

/** Of emit_source(): from untyped events to those of a streaming method. */
void emit_thunks(struct printer *out, const struct model_method *method);

/** Of both: the licence line and where the file came from. */
void emit_banner(struct printer *out, const struct model_file *file);

#endif
