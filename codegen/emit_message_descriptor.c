/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The descriptor of a message: its fields by number, their indices by name, and the
 * ranges in which numbers follow each other, by which protobuf-c finds a field.
 */

#include "codegen/c_type.h"
#include "codegen/emit.h"
#include "codegen/names.h"

#include <stdlib.h>
#include <string.h>

/* A field with its place among those sorted by number. */
struct numbered {
    const struct model_field *field;
    const char *name; /* in the descriptor */
    size_t index;
};

struct descriptor {
    struct printer *out;
    const struct model_message *message;
    struct numbered *fields; /* by number */
    bool is_small;           /* optimize_for = CODE_SIZE: without any name */
};

static int compare_numbers(const void *a, const void *b)
{
    int32_t x = ((const struct numbered *)a)->field->proto->number;
    int32_t y = ((const struct numbered *)b)->field->proto->number;

    return (x > y) - (x < y);
}

/* Their own ones, also where the descriptor calls them by their oneof. */
static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct numbered *)a)->field->proto->name,
                  ((const struct numbered *)b)->field->proto->name);
}

static const char *name_of(const struct model_file *file, const struct model_field *field)
{
    if (file->options.use_oneof_field_name && field->oneof != NULL) {
        return field->oneof->proto->name;
    }
    return field->proto->name;
}

static void sort_fields(struct descriptor *it)
{
    const struct model_message *message = it->message;

    it->fields = memory_array(it->out->memory, message->n_fields, sizeof(*it->fields));
    for (size_t i = 0; i < message->n_fields; i++) {
        it->fields[i].field = &message->fields[i];
        it->fields[i].name = name_of(message->file, &message->fields[i]);
    }
    qsort(it->fields, message->n_fields, sizeof(*it->fields), compare_numbers);
    for (size_t i = 0; i < message->n_fields; i++) {
        it->fields[i].index = i;
    }
}

static const char *label_of(const struct model_file *file, const struct model_field *field)
{
    if (field->is_repeated) {
        return "PROTOBUF_C_LABEL_REPEATED";
    }
    if (file->is_proto3) {
        return "PROTOBUF_C_LABEL_NONE";
    }
    return field->proto->label == GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__LABEL__LABEL_REQUIRED
               ? "PROTOBUF_C_LABEL_REQUIRED"
               : "PROTOBUF_C_LABEL_OPTIONAL";
}

static bool is_packed(const struct model_file *file, const struct model_field *field)
{
    const Google__Protobuf__FieldOptions *options = field->proto->options;

    if (!field->is_repeated || !c_type_is_packable(field)) {
        return false;
    }
    return options != NULL && options->has_packed ? options->packed : file->is_proto3;
}

static const char *flags_of(struct memory *memory, const struct model_file *file,
                            const struct model_field *field)
{
    struct printer flags;

    printer_init(&flags, memory);
    printer_text(&flags, is_packed(file, field) ? " | PROTOBUF_C_FIELD_FLAG_PACKED" : "");
    printer_text(&flags, field->is_deprecated ? " | PROTOBUF_C_FIELD_FLAG_DEPRECATED" : "");
    printer_text(&flags, field->oneof != NULL ? " | PROTOBUF_C_FIELD_FLAG_ONEOF" : "");
    printer_text(&flags, field->is_group ? " | BOW_DESCRIPTOR_GROUP" : "");
    bool is_text =
        field->proto->type == GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_STRING;
    printer_text(&flags, is_text && field->is_bytes ? " | BOW_DESCRIPTOR_TEXT" : "");
    if (is_text && !file->is_proto3) {
        printer_text(&flags, " | BOW_DESCRIPTOR_UNCHECKED");
    }
    return flags.len > 0 ? printer_finish(&flags) + 3 : "0";
}

static const char *offset_of(struct memory *memory, const struct model_message *message,
                             const char *member)
{
    return member != NULL ? memory_printf(memory, "offsetof(%s, %s)", message->c_name, member)
                          : "0";
}

static const char *quantifier_offset(struct memory *memory, const struct model_message *message,
                                     const struct model_field *field)
{
    return offset_of(memory, message,
                     field->oneof != NULL ? field->oneof->member : field->quantifier);
}

static const char *type_descriptor(struct memory *memory, const struct model_field *field)
{
    if (field->message != NULL) {
        return memory_printf(memory, "&%s__descriptor", field->message->lower);
    }
    if (field->enumeration != NULL) {
        return memory_printf(memory, "&%s__descriptor", field->enumeration->lower);
    }
    return "NULL";
}

static const char *default_of(struct memory *memory, const struct model_file *file,
                              const struct model_field *field)
{
    if (field->default_symbol != NULL) {
        return memory_printf(memory, "&%s", field->default_symbol);
    }
    return field->is_string && file->is_proto3 ? "&protobuf_c_empty_string" : "NULL";
}

static void emit_field(struct descriptor *it, const struct numbered *numbered)
{
    struct memory *memory = it->out->memory;
    const struct model_message *message = it->message;
    const struct model_file *file = message->file;
    const struct model_field *field = numbered->field;
    const struct printer_var vars[] = {
        {"name", it->is_small ? "NULL" : memory_printf(memory, "\"%s\"", numbered->name)},
        {"number", memory_printf(memory, "%d", field->proto->number)},
        {"label", label_of(file, field)},
        {"type", c_type_constant(field)},
        {"quantifier", quantifier_offset(memory, message, field)},
        {"offset", offset_of(memory, message, field->member)},
        {"descriptor", type_descriptor(memory, field)},
        {"default", default_of(memory, file, field)},
        {"flags", flags_of(memory, file, field)},
        {NULL, NULL},
    };

    printer_template(it->out, vars,
                     "    {\n"
                     "        .name = $name$,\n"
                     "        .id = $number$,\n"
                     "        .label = $label$,\n"
                     "        .type = $type$,\n"
                     "        .quantifier_offset = $quantifier$,\n"
                     "        .offset = $offset$,\n"
                     "        .descriptor = $descriptor$,\n"
                     "        .default_value = $default$,\n"
                     "        .flags = $flags$,\n"
                     "    },\n");
}

static void emit_fields(struct descriptor *it)
{
    const struct model_message *message = it->message;

    printer_printf(it->out, "\nstatic const ProtobufCFieldDescriptor %s__field_descriptors[] = {\n",
                   message->lower);
    for (size_t i = 0; i < message->n_fields; i++) {
        emit_field(it, &it->fields[i]);
    }
    printer_text(it->out, "};\n");
}

static void emit_indices_by_name(struct descriptor *it)
{
    const struct model_message *message = it->message;
    struct numbered *by_name = memory_array(it->out->memory, message->n_fields, sizeof(*by_name));

    memcpy(by_name, it->fields, message->n_fields * sizeof(*by_name));
    qsort(by_name, message->n_fields, sizeof(*by_name), compare_names);
    printer_printf(it->out, "\nstatic const unsigned %s__field_indices_by_name[] = {\n",
                   message->lower);
    for (size_t i = 0; i < message->n_fields; i++) {
        printer_printf(it->out, "    %zu, /* %s */\n", by_name[i].index,
                       by_name[i].field->proto->name);
    }
    printer_text(it->out, "};\n");
}

/* Each range by its first number and that one's index; the last says how many fields there are. */
static size_t emit_ranges(struct descriptor *it)
{
    const struct model_message *message = it->message;
    size_t n_ranges = 0;
    int64_t next = -1;

    printer_printf(it->out, "\nstatic const ProtobufCIntRange %s__number_ranges[] = {\n",
                   message->lower);
    for (size_t i = 0; i < message->n_fields; i++) {
        int32_t number = it->fields[i].field->proto->number;
        if (i == 0 || number != next) {
            printer_printf(it->out, "    {%d, %zu},\n", number, i);
            n_ranges++;
        }
        next = (int64_t)number + 1;
    }
    printer_printf(it->out, "    {0, %zu},\n};\n", message->n_fields);
    return n_ranges;
}

static void emit_names(struct descriptor *it)
{
    const struct model_message *message = it->message;

    if (it->is_small) {
        return;
    }
    printer_printf(it->out,
                   "    .name = \"%s\",\n"
                   "    .short_name = \"%s\",\n"
                   "    .c_name = \"%s\",\n"
                   "    .package_name = \"%s\",\n",
                   message->full_name, names_camel(it->out->memory, message->proto->name),
                   message->c_name, message->file->package);
}

static void emit_descriptor(struct descriptor *it, size_t n_ranges, const char *info)
{
    const struct model_message *message = it->message;
    const char *lower = message->lower;

    printer_printf(it->out,
                   "\nconst ProtobufCMessageDescriptor %s__descriptor = {\n"
                   "    .magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,\n",
                   lower);
    emit_names(it);
    printer_printf(it->out, "    .sizeof_message = sizeof(%s),\n", message->c_name);
    if (message->n_fields > 0) {
        printer_printf(it->out,
                       "    .n_fields = %zu,\n"
                       "    .fields = %s__field_descriptors,\n",
                       message->n_fields, lower);
        if (!it->is_small) {
            printer_printf(it->out, "    .fields_sorted_by_name = %s__field_indices_by_name,\n",
                           lower);
        }
        printer_printf(it->out,
                       "    .n_field_ranges = %zu,\n"
                       "    .field_ranges = %s__number_ranges,\n",
                       n_ranges, lower);
    }
    if (message->helpers.with_init) {
        printer_printf(it->out, "    .message_init = (ProtobufCMessageInit)%s__init,\n", lower);
    }
    printer_printf(it->out, "    .reserved1 = %s,\n};\n", info);
}

void emit_message_descriptor(struct printer *out, const struct model_message *message,
                             const char *info)
{
    struct descriptor it = {
        .out = out,
        .message = message,
        .is_small = model_is_small(message->file),
    };
    size_t n_ranges = 0;

    if (message->n_fields > 0) {
        sort_fields(&it);
        emit_fields(&it);
        if (!it.is_small) {
            emit_indices_by_name(&it);
        }
        n_ranges = emit_ranges(&it);
    }
    emit_descriptor(&it, n_ranges, info);
}
