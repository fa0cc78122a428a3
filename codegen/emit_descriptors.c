/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * x.pb-c.c: the functions of protobuf-c's users, the defaults of proto2, and the
 * descriptors of enums and messages, each of these with its entry in the tables.
 */

#include "codegen/c_type.h"
#include "codegen/emit.h"
#include "codegen/value.h"

#include <stdlib.h>
#include <string.h>

static const char init_text[] = "\n"
                                "void $lower$__init($type$ *message)\n"
                                "{\n"
                                "    static const $type$ init_value = $upper$__INIT;\n"
                                "    *message = init_value;\n"
                                "}\n";

static const char pack_text[] =
    "\n"
    "size_t $lower$__get_packed_size(const $type$ *message)\n"
    "{\n"
    "    assert(message->$base$.descriptor == &$lower$__descriptor);\n"
    "    return protobuf_c_message_get_packed_size((const ProtobufCMessage *)message);\n"
    "}\n"
    "\n"
    "size_t $lower$__pack(const $type$ *message, uint8_t *out)\n"
    "{\n"
    "    assert(message->$base$.descriptor == &$lower$__descriptor);\n"
    "    return protobuf_c_message_pack((const ProtobufCMessage *)message, out);\n"
    "}\n"
    "\n"
    "size_t $lower$__pack_to_buffer(const $type$ *message, ProtobufCBuffer *buffer)\n"
    "{\n"
    "    assert(message->$base$.descriptor == &$lower$__descriptor);\n"
    "    return protobuf_c_message_pack_to_buffer((const ProtobufCMessage *)message, buffer);\n"
    "}\n"
    "\n"
    "$type$ *$lower$__unpack(ProtobufCAllocator *allocator, size_t len,\n"
    "    const uint8_t *data)\n"
    "{\n"
    "    return ($type$ *)protobuf_c_message_unpack(\n"
    "        &$lower$__descriptor, allocator, len, data);\n"
    "}\n"
    "\n"
    "void $lower$__free_unpacked($type$ *message, ProtobufCAllocator *allocator)\n"
    "{\n"
    "    if (message == NULL) {\n"
    "        return;\n"
    "    }\n"
    "    assert(message->$base$.descriptor == &$lower$__descriptor);\n"
    "    protobuf_c_message_free_unpacked((ProtobufCMessage *)message, allocator);\n"
    "}\n";

static void emit_functions(struct printer *out, const struct model_message *message)
{
    const struct printer_var vars[] = {
        {"lower", message->lower},
        {"upper", message->upper},
        {"type", message->c_name},
        {"base", message->base},
        {NULL, NULL},
    };

    printer_template(out, vars, message->helpers.with_init ? init_text : "");
    printer_template(out, vars, message->helpers.with_pack ? pack_text : "");
}

static void emit_default(struct printer *out, const struct model_file *file,
                         const struct model_field *field)
{
    struct memory *memory = out->memory;

    if (field->is_string) {
        printer_printf(out, "char %s[] = ", field->default_symbol);
        value_emit_bytes(out, "char", c_type_default_bytes(memory, field));
        printer_text(out, ";\n");
    } else if (field->is_bytes) {
        struct bow_slice bytes = c_type_default_bytes(memory, field);
        printer_printf(out, "uint8_t %s[] = ", field->default_data);
        value_emit_bytes(out, "uint8_t", bytes);
        printer_printf(out, ";\nstatic const ProtobufCBinaryData %s = {%zu, %s};\n",
                       field->default_symbol, bytes.len, field->default_data);
    } else {
        printer_printf(out, "static const %s%s = %s;\n", c_type_of(memory, file, field),
                       field->default_symbol, c_type_default(memory, field));
    }
}

static void emit_defaults(struct printer *out, const struct model_message *message)
{
    const char *separator = "\n";

    for (size_t i = 0; i < message->n_fields; i++) {
        if (message->fields[i].default_symbol != NULL) {
            printer_text(out, separator);
            emit_default(out, message->file, &message->fields[i]);
            separator = "";
        }
    }
}

/* A value with its place among those sorted by number, of which aliases have none. */
struct numbered {
    const struct model_value *value;
    size_t declared; /* its place in the .proto */
    size_t index;
};

static int compare_numbers(const void *a, const void *b)
{
    const struct numbered *x = a;
    const struct numbered *y = b;
    int32_t n = x->value->proto->number;
    int32_t m = y->value->proto->number;

    return n != m ? (n > m) - (n < m) : (x->declared > y->declared) - (x->declared < y->declared);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct numbered *)a)->value->proto->name,
                  ((const struct numbered *)b)->value->proto->name);
}

/* An alias gets the index of the first value of its number. Returns how many numbers there are. */
static size_t sort_values(const struct model_enum *type, struct numbered *values)
{
    size_t n_numbers = 0;

    for (size_t i = 0; i < type->n_values; i++) {
        values[i] = (struct numbered){.value = &type->values[i], .declared = i};
    }
    qsort(values, type->n_values, sizeof(*values), compare_numbers);
    for (size_t i = 0; i < type->n_values; i++) {
        bool is_alias =
            i > 0 && values[i].value->proto->number == values[i - 1].value->proto->number;
        n_numbers += is_alias ? 0 : 1;
        values[i].index = n_numbers - 1;
    }
    return n_numbers;
}

static bool is_first(const struct numbered *values, size_t i)
{
    return i == 0 || values[i].index != values[i - 1].index;
}

static void emit_values(struct printer *out, const struct model_enum *type,
                        const struct numbered *values, bool is_small)
{
    printer_printf(out, "\nstatic const ProtobufCEnumValue %s__enum_values_by_number[] = {\n",
                   type->lower);
    for (size_t i = 0; i < type->n_values; i++) {
        const struct model_value *value = values[i].value;
        const char *number = emit_int(out->memory, value->proto->number);
        if (!is_first(values, i)) {
            continue;
        }
        if (is_small) {
            printer_printf(out, "    {NULL, NULL, %s},\n", number);
        } else {
            printer_printf(out, "    {\"%s\", \"%s\", %s},\n", value->proto->name, value->constant,
                           number);
        }
    }
    printer_text(out, "};\n");
}

static size_t emit_value_ranges(struct printer *out, const struct model_enum *type,
                                const struct numbered *values, size_t n_numbers)
{
    size_t n_ranges = 0;
    int64_t next = 0;

    printer_printf(out, "\nstatic const ProtobufCIntRange %s__value_ranges[] = {\n", type->lower);
    for (size_t i = 0; i < type->n_values; i++) {
        int32_t number = values[i].value->proto->number;
        if (!is_first(values, i)) {
            continue;
        }
        if (i == 0 || number != next) {
            printer_printf(out, "    {%s, %zu},\n", emit_int(out->memory, number), values[i].index);
            n_ranges++;
        }
        next = (int64_t)number + 1;
    }
    printer_printf(out, "    {0, %zu},\n};\n", n_numbers);
    return n_ranges;
}

static void emit_values_by_name(struct printer *out, const struct model_enum *type,
                                struct numbered *values)
{
    qsort(values, type->n_values, sizeof(*values), compare_names);
    printer_printf(out, "\nstatic const ProtobufCEnumValueIndex %s__enum_values_by_name[] = {\n",
                   type->lower);
    for (size_t i = 0; i < type->n_values; i++) {
        printer_printf(out, "    {\"%s\", %zu},\n", values[i].value->proto->name, values[i].index);
    }
    printer_text(out, "};\n");
}

static void emit_enum_names(struct printer *out, const struct model_enum *type)
{
    printer_printf(out,
                   "    .name = \"%s\",\n"
                   "    .short_name = \"%s\",\n"
                   "    .c_name = \"%s\",\n"
                   "    .package_name = \"%s\",\n",
                   type->full_name, type->proto->name, type->c_name, type->file->package);
}

static void emit_enum(struct printer *out, const struct model_enum *type)
{
    bool is_small = model_is_small(type->file);
    struct numbered *values = memory_array(out->memory, type->n_values, sizeof(*values));
    size_t n_numbers = sort_values(type, values);

    emit_values(out, type, values, is_small);
    size_t n_ranges = emit_value_ranges(out, type, values, n_numbers);
    if (!is_small) {
        emit_values_by_name(out, type, values);
    }
    printer_printf(out,
                   "\nconst ProtobufCEnumDescriptor %s__descriptor = {\n"
                   "    .magic = PROTOBUF_C__ENUM_DESCRIPTOR_MAGIC,\n",
                   type->lower);
    if (!is_small) {
        emit_enum_names(out, type);
    }
    printer_printf(out,
                   "    .n_values = %zu,\n"
                   "    .values = %s__enum_values_by_number,\n",
                   n_numbers, type->lower);
    if (!is_small) {
        printer_printf(out,
                       "    .n_value_names = %zu,\n"
                       "    .values_by_name = %s__enum_values_by_name,\n",
                       type->n_values, type->lower);
    }
    printer_printf(out,
                   "    .n_value_ranges = %zu,\n"
                   "    .value_ranges = %s__value_ranges,\n"
                   "};\n",
                   n_ranges, type->lower);
}

static void emit_start(struct printer *out, const struct emit *emit)
{
    emit_banner(out, emit->file);
    printer_text(out, "#ifndef PROTOBUF_C__NO_DEPRECATED\n"
                      "#define PROTOBUF_C__NO_DEPRECATED\n"
                      "#endif\n");
    emit_include(out, emit, emit->file, EMIT_MESSAGE_HEADER_ENDING);
    printer_text(out, "\n"
                      "#include <assert.h>\n"
                      "#include <bowline/service.h>\n");
    emit_abi_check(out);
}

void emit_message_source(struct printer *out, const struct emit *emit)
{
    const struct model_file *file = emit->file;

    emit_start(out, emit);
    emit_table_declarations(out, file);
    for (size_t i = 0; i < file->n_enums; i++) {
        emit_enum(out, &file->enums[i]);
    }
    for (size_t i = 0; i < file->n_messages; i++) {
        const struct model_message *message = &file->messages[i];
        emit_functions(out, message);
        emit_defaults(out, message);
        emit_message_descriptor(out, message, emit_table_entry(out->memory, message));
    }
    emit_tables(out, emit);
}
