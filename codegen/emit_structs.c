/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * x.pb-c.h: enums, structs, initializers, and the declarations of what x.pb-c.c holds.
 * All of it as protobuf-c's own generator lays it out, so that a program does not see
 * which of the two has run. Nothing in it knows of Bowline.
 */

#include "codegen/c_type.h"
#include "codegen/emit.h"

/* What the emitted code asks of protobuf-c's header, and the generator that it is like. */
#define MIN_RUNTIME 1003000
#define LIKE_COMPILER 1004001

struct structs {
    struct printer *out;
    const struct model_file *file;
    const char *shown; /* dllexport_decl and a blank, or nothing */
};

static void emit_guard(struct structs *it)
{
    printer_printf(it->out,
                   "#ifndef PROTOBUF_C_%s__INCLUDED\n"
                   "#define PROTOBUF_C_%s__INCLUDED\n"
                   "\n"
                   "#include <protobuf-c/protobuf-c.h>\n",
                   it->file->id, it->file->id);
}

static void emit_version_check(struct printer *out)
{
    printer_printf(out,
                   "\n"
                   "#if PROTOBUF_C_VERSION_NUMBER < %d || "
                   "PROTOBUF_C_MIN_COMPILER_VERSION > %d\n"
                   "#error \"generated for another version of libprotobuf-c\"\n"
                   "#endif\n"
                   "\n"
                   "PROTOBUF_C__BEGIN_DECLS\n",
                   MIN_RUNTIME, LIKE_COMPILER);
}

static void emit_enum(struct structs *it, const struct model_enum *type)
{
    printer_text(it->out, "\n");
    emit_doc(it->out, "", type->place);
    printer_printf(it->out, "typedef enum %s {\n", type->tag);
    for (size_t i = 0; i < type->n_values; i++) {
        emit_doc(it->out, "    ", type->values[i].place);
        printer_printf(it->out, "    %s = %s,\n", type->values[i].constant,
                       emit_int(it->out->memory, type->values[i].proto->number));
    }
    printer_printf(it->out, "    %s = INT_MAX\n} %s;\n", type->size_mark, type->c_name);
}

static void emit_cases(struct structs *it, const struct model_message *message,
                       const struct model_oneof *oneof)
{
    printer_printf(it->out, "\ntypedef enum {\n    %s = 0,\n", oneof->not_set);
    for (size_t i = 0; i < message->n_fields; i++) {
        if (message->fields[i].oneof == oneof) {
            printer_printf(it->out, "    %s = %d,\n", message->fields[i].constant,
                           message->fields[i].proto->number);
        }
    }
    printer_printf(it->out, "    %s = INT_MAX\n} %s;\n", oneof->size_mark, oneof->c_type);
}

static void emit_member(struct structs *it, const char *indent, const struct model_field *field)
{
    const char *deprecated = field->is_deprecated ? " PROTOBUF_C__DEPRECATED" : "";

    emit_doc(it->out, indent, field->place);
    if (field->quantifier != NULL) {
        printer_printf(it->out, "%s%s %s%s;\n", indent,
                       field->is_repeated ? "size_t" : "protobuf_c_boolean", field->quantifier,
                       deprecated);
    }
    printer_printf(it->out, "%s%s%s%s%s;\n", indent, c_type_of(it->out->memory, it->file, field),
                   field->is_repeated ? "*" : "", field->member, deprecated);
}

/*
 * The widest member stands first in the union, for an initializer clears the first one only, and
 * from gcc 15 on not what is behind it: libprotobuf-c would take what is left there for a pointer.
 */
static const struct model_field *first_of(const struct model_message *message,
                                          const struct model_oneof *oneof)
{
    const struct model_field *first = NULL; /* model.c lets no oneof through that has none */

    for (size_t i = 0; i < message->n_fields; i++) {
        const struct model_field *field = &message->fields[i];
        if (field->oneof == oneof && (first == NULL || c_type_size(field) > c_type_size(first))) {
            first = field;
        }
    }
    return first;
}

static void emit_union(struct structs *it, const struct model_message *message,
                       const struct model_oneof *oneof)
{
    const struct model_field *first = first_of(message, oneof);

    emit_doc(it->out, "    ", oneof->place);
    printer_printf(it->out, "    %s %s;\n    union {\n", oneof->c_type, oneof->member);
    emit_member(it, "        ", first);
    for (size_t i = 0; i < message->n_fields; i++) {
        if (message->fields[i].oneof == oneof && &message->fields[i] != first) {
            emit_member(it, "        ", &message->fields[i]);
        }
    }
    printer_text(it->out, "    };\n");
}

static void emit_struct(struct structs *it, const struct model_message *message)
{
    printer_text(it->out, "\n");
    emit_doc(it->out, "", message->place);
    printer_printf(it->out, "struct %s {\n    ProtobufCMessage %s;\n", message->c_name,
                   message->base);
    for (size_t i = 0; i < message->n_fields; i++) {
        if (message->fields[i].oneof == NULL) {
            emit_member(it, "    ", &message->fields[i]);
        }
    }
    for (size_t i = 0; i < message->n_oneofs; i++) {
        emit_union(it, message, &message->oneofs[i]);
    }
    printer_text(it->out, "};\n");
}

static void emit_initializer(struct structs *it, const struct model_message *message)
{
    struct memory *memory = it->out->memory;

    printer_printf(it->out,
                   "#define %s__INIT \\\n"
                   "    { PROTOBUF_C_MESSAGE_INIT(&%s__descriptor)",
                   message->upper, message->lower);
    for (size_t i = 0; i < message->n_fields; i++) {
        const struct model_field *field = &message->fields[i];
        if (field->oneof == NULL) {
            printer_printf(it->out, ", \\\n      %s%s", field->quantifier != NULL ? "0, " : "",
                           c_type_initial(memory, it->file, field));
        }
    }
    for (size_t i = 0; i < message->n_oneofs; i++) {
        const struct model_oneof *oneof = &message->oneofs[i];
        printer_printf(it->out, ", \\\n      %s, %s", oneof->not_set,
                       c_type_zero_union(memory, first_of(message, oneof)));
    }
    printer_text(it->out, " }\n");
}

static void emit_default_declarations(struct structs *it, const struct model_message *message)
{
    for (size_t i = 0; i < message->n_fields; i++) {
        const struct model_field *field = &message->fields[i];
        if (field->default_symbol != NULL && field->is_string) {
            printer_printf(it->out, "extern %schar %s[];\n", it->shown, field->default_symbol);
        } else if (field->default_symbol != NULL && field->is_bytes) {
            printer_printf(it->out, "extern %suint8_t %s[];\n", it->shown, field->default_data);
        }
    }
}

static const char pack_text[] =
    "$shown$size_t $lower$__get_packed_size(const $type$ *message);\n"
    "$shown$size_t $lower$__pack(const $type$ *message, uint8_t *out);\n"
    "$shown$size_t $lower$__pack_to_buffer(const $type$ *message, ProtobufCBuffer *buffer);\n"
    "$shown$$type$ *$lower$__unpack(ProtobufCAllocator *allocator, size_t len,\n"
    "    const uint8_t *data);\n"
    "$shown$void $lower$__free_unpacked($type$ *message, ProtobufCAllocator *allocator);\n";

static void emit_functions(struct structs *it, const struct model_message *message)
{
    const struct printer_var vars[] = {
        {"shown", it->shown},
        {"lower", message->lower},
        {"type", message->c_name},
        {NULL, NULL},
    };

    if (message->helpers.with_init) {
        printer_template(it->out, vars, "$shown$void $lower$__init($type$ *message);\n");
    }
    printer_template(it->out, vars, message->helpers.with_pack ? pack_text : "");
}

static void emit_message(struct structs *it, const struct model_message *message)
{
    const struct printer_var vars[] = {
        {"shown", it->shown},
        {"lower", message->lower},
        {"type", message->c_name},
        {NULL, NULL},
    };

    for (size_t i = 0; i < message->n_oneofs; i++) {
        emit_cases(it, message, &message->oneofs[i]);
    }
    emit_struct(it, message);
    printer_template(it->out, vars,
                     "\n"
                     "extern $shown$const ProtobufCMessageDescriptor $lower$__descriptor;\n");
    emit_default_declarations(it, message);
    emit_initializer(it, message);
    emit_functions(it, message);
    printer_template(it->out, vars,
                     "typedef void (*$type$_Closure)(const $type$ *message,\n"
                     "    void *closure_data);\n");
}

static void emit_types(struct structs *it)
{
    const struct model_file *file = it->file;

    printer_text(it->out, file->n_messages > 0 ? "\n" : "");
    for (size_t i = 0; i < file->n_messages; i++) {
        const char *name = file->messages[i].c_name;
        printer_printf(it->out, "typedef struct %s %s;\n", name, name);
    }
    for (size_t i = 0; i < file->n_enums; i++) {
        emit_enum(it, &file->enums[i]);
        printer_printf(it->out, "\nextern %sconst ProtobufCEnumDescriptor %s__descriptor;\n",
                       it->shown, file->enums[i].lower);
    }
    for (size_t i = 0; i < file->n_messages; i++) {
        emit_message(it, &file->messages[i]);
    }
}

void emit_message_header(struct printer *out, const struct emit *emit)
{
    const char *shown = emit->parameters->dllexport_decl;
    struct structs it = {
        .out = out,
        .file = emit->file,
        .shown = shown != NULL ? memory_printf(out->memory, "%s ", shown) : "",
    };
    struct includes includes;

    emit_banner(out, emit->file);
    emit_guard(&it);
    includes_find(emit->model, emit->file, &includes);
    printer_text(out, includes.n_files > 0 ? "\n" : "");
    for (size_t i = 0; i < includes.n_files; i++) {
        emit_include(out, emit, includes.files[i], EMIT_MESSAGE_HEADER_ENDING);
    }
    emit_version_check(out);
    emit_types(&it);
    printer_text(out, "\nPROTOBUF_C__END_DECLS\n\n#endif\n");
}
