/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Of x.pb-c.c: the file's serialized FileDescriptorProto, its imports, and what
 * protobuf-c's descriptors do not say of its messages.
 */

#include "codegen/emit.h"
#include "codegen/wire.h"

#include <stdlib.h>
#include <string.h>

#define BYTES_PER_LINE 20

enum { FILE_SOURCE_INFO = 9 }; /* of FileDescriptorProto */

/* Without source info: comments and lines have no use in a program and are most of the bytes. */
static struct bow_slice serialize(struct memory *memory, const struct model_file *file)
{
    uint8_t *bytes = memory_alloc(memory, file->bytes.len);
    struct bow_slice rest = file->bytes;
    struct wire_field field;
    size_t len = 0;

    for (const uint8_t *start = rest.data; wire_next(&rest, &field); start = rest.data) {
        if (field.number != FILE_SOURCE_INFO) {
            memcpy(bytes + len, start, (size_t)(rest.data - start));
            len += (size_t)(rest.data - start);
        }
    }
    return (struct bow_slice){.data = bytes, .len = len};
}

static void emit_bytes(struct printer *out, struct bow_slice bytes)
{
    printer_text(out, "\nstatic const uint8_t file_bytes[] = {");
    for (size_t i = 0; i < bytes.len; i++) {
        bool at_start = i % BYTES_PER_LINE == 0;
        printer_printf(out, "%s%u,", at_start ? "\n    " : " ", bytes.data[i]);
    }
    printer_text(out, "\n};\n");
}

static bool has_symbol(const struct model_file *import)
{
    return !import->options.no_generate;
}

static size_t emit_imports(struct printer *out, const struct model_file *file)
{
    size_t n = 0;

    for (size_t i = 0; i < file->n_imports; i++) {
        if (has_symbol(file->imports[i])) {
            n++;
        }
    }
    if (n == 0) {
        return 0;
    }
    printer_text(out, "\n/* Weak: an import that the program does not link is NULL here. */\n");
    for (size_t i = 0; i < file->n_imports; i++) {
        if (has_symbol(file->imports[i])) {
            printer_printf(out, "extern const struct bow_file %s __attribute__((weak));\n",
                           file->imports[i]->symbol);
        }
    }
    printer_text(out, "\nstatic const struct bow_file *const file_imports[] = {\n");
    for (size_t i = 0; i < file->n_imports; i++) {
        if (has_symbol(file->imports[i])) {
            printer_printf(out, "    &%s,\n", file->imports[i]->symbol);
        }
    }
    printer_text(out, "};\n");
    return n;
}

static const char *field_flags(struct memory *memory, const struct model_file *file,
                               const struct model_field *field)
{
    struct printer flags;

    printer_init(&flags, memory);
    printer_text(&flags, field->is_map ? " | BOW_FIELD_MAP" : "");
    printer_text(&flags, field->is_proto3_optional ? " | BOW_FIELD_PROTO3_OPTIONAL" : "");
    printer_text(&flags, field->is_secret ? " | BOW_FIELD_SECRET" : "");
    printer_text(&flags, field->is_group ? " | BOW_FIELD_GROUP" : "");
    printer_text(&flags, field->is_string && file->is_proto3 ? " | BOW_FIELD_UTF8" : "");
    return flags.len > 0 ? printer_finish(&flags) + 3 : "0";
}

static void emit_field(struct printer *out, const struct emit *emit,
                       const struct model_field *field)
{
    const Google__Protobuf__FieldDescriptorProto *proto = field->proto;

    printer_printf(out, "    {%d, %s, ", proto->number,
                   field_flags(out->memory, emit->file, field));
    if (emit->parameters->no_json) {
        printer_text(out, "NULL");
    } else {
        printer_string(out, proto->json_name != NULL ? proto->json_name : proto->name);
    }
    printer_printf(out, ", %d},\n", field->oneof_index);
}

static void emit_fields(struct printer *out, const struct emit *emit,
                        const struct model_message *message)
{
    if (message->n_fields == 0) {
        return;
    }
    const struct model_field **sorted = model_fields_by_number(out->memory, message);
    printer_printf(out, "\nstatic const struct bow_field_info %s__fields[] = {\n", message->lower);
    for (size_t i = 0; i < message->n_fields; i++) {
        emit_field(out, emit, sorted[i]);
    }
    printer_text(out, "};\n");
}

static int compare_full_names(const void *a, const void *b)
{
    return strcmp((*(const struct model_message *const *)a)->full_name,
                  (*(const struct model_message *const *)b)->full_name);
}

/* All messages of the file by their full names: the order of the table. */
static const struct model_message **sort_messages(struct memory *memory,
                                                  const struct model_file *file)
{
    const struct model_message **sorted =
        memory_array(memory, file->n_messages, sizeof(const struct model_message *));

    for (size_t i = 0; i < file->n_messages; i++) {
        sorted[i] = &file->messages[i];
    }
    qsort(sorted, file->n_messages, sizeof(const struct model_message *), compare_full_names);
    return sorted;
}

static const char *message_flags(struct memory *memory, const struct model_message *message)
{
    const Google__Protobuf__MessageOptions *options = message->proto->options;
    bool is_set = options != NULL && options->message_set_wire_format;
    struct printer flags;

    printer_init(&flags, memory);
    printer_text(&flags, message->is_map_entry ? " | BOW_MESSAGE_MAP_ENTRY" : "");
    printer_text(&flags, is_set ? " | BOW_MESSAGE_SET" : "");
    printer_text(&flags, message->file->is_proto3 ? "" : " | BOW_MESSAGE_PROTO2");
    return flags.len > 0 ? printer_finish(&flags) + 3 : "0";
}

static void emit_entry(struct printer *out, const struct model_message *message)
{
    printer_printf(out,
                   "    {\n"
                   "        .full_name = \"%s\",\n"
                   "        .descriptor = &%s__descriptor,\n",
                   message->full_name, message->lower);
    if (message->n_fields > 0) {
        printer_printf(out,
                       "        .fields = %s__fields,\n"
                       "        .n_fields = %zu,\n",
                       message->lower, message->n_fields);
    }
    printer_printf(out,
                   "        .flags = %s,\n"
                   "        .file = &%s,\n"
                   "    },\n",
                   message_flags(out->memory, message), message->file->symbol);
}

static void emit_entries(struct printer *out, const struct emit *emit)
{
    const struct model_file *file = emit->file;

    if (file->n_messages == 0) {
        return;
    }
    for (size_t i = 0; i < file->n_messages; i++) {
        emit_fields(out, emit, &file->messages[i]);
    }
    const struct model_message **sorted = sort_messages(out->memory, file);
    printer_printf(out, "\nstatic const struct bow_message_info file_messages[%zu] = {\n",
                   file->n_messages);
    for (size_t i = 0; i < file->n_messages; i++) {
        emit_entry(out, sorted[i]);
    }
    printer_text(out, "};\n");
}

void emit_table_declarations(struct printer *out, const struct model_file *file)
{
    printer_printf(out, "\nextern const struct bow_file %s;\n", file->symbol);
    if (file->n_messages > 0) {
        printer_printf(out, "static const struct bow_message_info file_messages[%zu];\n",
                       file->n_messages);
    }
}

/* By way of a number, for compilers that are asked to warn when const is cast away. */
const char *emit_table_entry(struct memory *memory, const struct model_message *message)
{
    const struct model_file *file = message->file;
    size_t index = 0;

    for (size_t i = 0; i < file->n_messages; i++) {
        index += strcmp(file->messages[i].full_name, message->full_name) < 0 ? 1 : 0;
    }
    return memory_printf(memory, "(void *)(uintptr_t)&file_messages[%zu]", index);
}

void emit_tables(struct printer *out, const struct emit *emit)
{
    const struct model_file *file = emit->file;

    if (!emit->parameters->lite) {
        emit_bytes(out, serialize(out->memory, file));
    }
    size_t n_imports = emit_imports(out, file);
    emit_entries(out, emit);
    printer_printf(out, "\nconst struct bow_file %s = {\n    .name = ", file->symbol);
    printer_string(out, file->name);
    printer_text(out, ",\n");
    if (!emit->parameters->lite) {
        printer_text(out, "    .bytes = file_bytes,\n"
                          "    .n_bytes = sizeof(file_bytes),\n");
    }
    if (n_imports > 0) {
        printer_printf(out, "    .imports = file_imports,\n    .n_imports = %zu,\n", n_imports);
    }
    if (file->n_messages > 0) {
        printer_printf(out, "    .messages = file_messages,\n    .n_messages = %zu,\n",
                       file->n_messages);
    }
    printer_text(out, "};\n");
}
