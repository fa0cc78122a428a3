/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What is emitted for every file, with services or without: its serialized
 * FileDescriptorProto, its imports, and what protobuf-c's descriptors do not say of its
 * messages.
 */

#include "codegen/emit.h"

#include <stdlib.h>
#include <string.h>

#define BYTES_PER_LINE 20

/* Without source info: comments and lines have no use in a program and are most of the bytes. */
static struct bow_slice serialize(struct memory *memory, const struct model_file *file)
{
    Google__Protobuf__FileDescriptorProto proto = *file->proto;

    proto.source_code_info = NULL;
    size_t len = protobuf_c_message_get_packed_size(&proto.base);
    uint8_t *bytes = memory_alloc(memory, len);
    protobuf_c_message_pack(&proto.base, bytes);
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

static int compare_numbers(const void *a, const void *b)
{
    int32_t x = (*(const struct model_field *const *)a)->proto->number;
    int32_t y = (*(const struct model_field *const *)b)->proto->number;

    return (x > y) - (x < y);
}

static const char *field_flags(const struct model_field *field)
{
    if (field->is_map) {
        return "BOW_FIELD_MAP";
    }
    return field->is_proto3_optional ? "BOW_FIELD_PROTO3_OPTIONAL" : "0";
}

static void emit_field(struct printer *out, const struct model_field *field)
{
    const Google__Protobuf__FieldDescriptorProto *proto = field->proto;

    printer_printf(out, "    {%d, %s, ", proto->number, field_flags(field));
    printer_string(out, proto->json_name != NULL ? proto->json_name : proto->name);
    printer_printf(out, ", %d},\n", field->oneof_index);
}

static void emit_fields(struct printer *out, const struct model_message *message)
{
    if (message->n_fields == 0) {
        return;
    }
    const struct model_field **sorted =
        memory_array(out->memory, message->n_fields, sizeof(const struct model_field *));
    for (size_t i = 0; i < message->n_fields; i++) {
        sorted[i] = &message->fields[i];
    }
    qsort(sorted, message->n_fields, sizeof(const struct model_field *), compare_numbers);
    printer_printf(out, "\nstatic const struct bow_field_info %s__fields[] = {\n", message->lower);
    for (size_t i = 0; i < message->n_fields; i++) {
        emit_field(out, sorted[i]);
    }
    printer_text(out, "};\n");
}

static int compare_full_names(const void *a, const void *b)
{
    return strcmp((*(const struct model_message *const *)a)->full_name,
                  (*(const struct model_message *const *)b)->full_name);
}

static void emit_message(struct printer *out, const struct model_message *message)
{
    printer_printf(out, "    {\"%s\", &%s__descriptor, ", message->full_name, message->lower);
    if (message->n_fields == 0) {
        printer_text(out, "NULL, 0, 0, NULL},\n");
        return;
    }
    printer_printf(out, "%s__fields, %zu, 0, NULL},\n", message->lower, message->n_fields);
}

static void emit_messages(struct printer *out, const struct model_file *file)
{
    if (file->n_messages == 0) {
        return;
    }
    const struct model_message **sorted =
        memory_array(out->memory, file->n_messages, sizeof(const struct model_message *));
    for (size_t i = 0; i < file->n_messages; i++) {
        sorted[i] = &file->messages[i];
        emit_fields(out, &file->messages[i]);
    }
    qsort(sorted, file->n_messages, sizeof(const struct model_message *), compare_full_names);
    printer_text(out, "\nstatic const struct bow_message_info file_messages[] = {\n");
    for (size_t i = 0; i < file->n_messages; i++) {
        emit_message(out, sorted[i]);
    }
    printer_text(out, "};\n");
}

void emit_file_tables(struct printer *out, const struct model_file *file)
{
    emit_bytes(out, serialize(out->memory, file));
    size_t n_imports = emit_imports(out, file);
    emit_messages(out, file);
    printer_printf(out, "\nconst struct bow_file %s = {\n    .name = ", file->symbol);
    printer_string(out, file->name);
    printer_text(out, ",\n"
                      "    .bytes = file_bytes,\n"
                      "    .n_bytes = sizeof(file_bytes),\n");
    if (n_imports > 0) {
        printer_printf(out, "    .imports = file_imports,\n    .n_imports = %zu,\n", n_imports);
    }
    if (file->n_messages > 0) {
        printer_printf(out, "    .messages = file_messages,\n    .n_messages = %zu,\n",
                       file->n_messages);
    }
    printer_text(out, "};\n");
}
