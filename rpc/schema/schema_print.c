/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Declarations as the text of a .proto. It is made of what protoc said, not of the descriptors:
 * those know of no reserved numbers, and of no order.
 */
#include "rpc/json/json_names.h"
#include "rpc/messages/storage.h"
#include "rpc/schema/proto_text.h"
#include "rpc/schema/schema.h"
#include <bowline/limits.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* google.protobuf.FieldDescriptorProto */
enum { LABEL_REQUIRED = 2, LABEL_REPEATED = 3 };
enum { TYPE_STRING = 9, TYPE_GROUP = 10, TYPE_MESSAGE = 11, TYPE_BYTES = 12, TYPE_ENUM = 14 };
enum { N_TYPES = 19 };
/* google.protobuf.MethodOptions.IdempotencyLevel */
enum { NO_SIDE_EFFECTS = 1, IDEMPOTENT = 2 };

#define MAX_FIELD_NUMBER ((1 << 29) - 1)
#define MAX_ENUM_NUMBER INT32_MAX

static const char *const type_names[N_TYPES] = {
    [1] = "double",  [2] = "float",     [3] = "int64",     [4] = "uint64",  [5] = "int32",
    [6] = "fixed64", [7] = "fixed32",   [8] = "bool",      [9] = "string",  [12] = "bytes",
    [13] = "uint32", [15] = "sfixed32", [16] = "sfixed64", [17] = "sint32", [18] = "sint64",
};

struct printing {
    const struct bow_schema *schema;
    const struct bow__schema_file *file;
    struct bow__proto_text text;
};

static void begin_line(struct printing *it)
{
    bow__proto_text_indent(&it->text);
}

static void open_block(struct printing *it, const char *keyword, const char *name)
{
    begin_line(it);
    bow__proto_text_printf(&it->text, "%s %s {\n", keyword, name);
    it->text.level++;
}

static void close_block(struct printing *it)
{
    it->text.level--;
    begin_line(it);
    bow__proto_text_printf(&it->text, "}\n");
}

/* Names of types */

static size_t package_length(const struct printing *it)
{
    return it->file->proto->package != NULL ? strlen(it->file->proto->package) : 0;
}

/* Whether `name`, looked up from inside `scope` outwards, is found below the package as something
 * else than `type`. */
static bool is_hidden(const struct printing *it, const char *scope, const char *name,
                      const char *type)
{
    char at[2 * BOW_LIMIT_SCHEMA_NAME_BYTES];
    size_t n_first = strcspn(name, ".");
    size_t n_scope = strlen(scope);

    while (n_scope > package_length(it)) {
        (void)snprintf(at, sizeof(at), "%.*s.%.*s", (int)n_scope, scope, (int)n_first, name);
        if (bow__schema_find(it->schema, at) != NULL) {
            size_t n = strlen(at);
            return strncmp(at, type, n) != 0 || (type[n] != '\0' && type[n] != '.');
        }
        while (n_scope > 0 && scope[n_scope - 1] != '.') {
            n_scope--;
        }
        n_scope -= n_scope > 0;
    }
    return false;
}

/* The type's name without the package, when it is the file's, and nothing hides it. */
static void put_type_name(struct printing *it, const char *scope, const char *type)
{
    size_t n = package_length(it);

    if (type == NULL || type[0] != '.') {
        bow__proto_text_put(&it->text, bow__schema_slice(type != NULL ? type : "?"));
        return;
    }
    const char *rest = type + 1;
    if (n > 0 && strncmp(rest, it->file->proto->package, n) == 0 && rest[n] == '.') {
        rest += n + 1;
    }
    bow__proto_text_put(&it->text,
                        bow__schema_slice(is_hidden(it, scope, rest, type + 1) ? type : rest));
}

static void put_field_type(struct printing *it, const char *scope, const Bow__Schema__Field *field)
{
    const char *name = field->type > 0 && field->type < N_TYPES ? type_names[field->type] : NULL;

    if (name != NULL) {
        bow__proto_text_printf(&it->text, "%s", name);
    } else {
        put_type_name(it, scope, field->type_name);
    }
}

/* The message that a field is of, or NULL. */
static const Bow__Schema__Message *message_of(const struct printing *it,
                                              const Bow__Schema__Field *field)
{
    const struct bow__schema_symbol *symbol = NULL;

    if ((field->type == TYPE_MESSAGE || field->type == TYPE_GROUP) && field->type_name != NULL &&
        field->type_name[0] == '.') {
        symbol = bow__schema_find(it->schema, field->type_name + 1);
    }
    return symbol != NULL && symbol->kind == BOW__SYMBOL_MESSAGE ? symbol->proto.message : NULL;
}

static bool is_entry(const Bow__Schema__Message *message)
{
    return message != NULL && message->options != NULL && message->options->map_entry;
}

/* Options */

static const char *next_option(unsigned *n)
{
    return (*n)++ == 0 ? " [" : ", ";
}

static bool is_derived(const char *name, const char *json_name)
{
    bool is_upper = false;

    for (; *name != '\0'; name++) {
        char c = bow__json_camel(*name, &is_upper);
        if (c != '\0' && c != *json_name++) {
            return false;
        }
    }
    return *json_name == '\0';
}

static void put_default(struct printing *it, const Bow__Schema__Field *field, unsigned *n)
{
    struct bow_slice text = {field->default_value.data, field->default_value.len};

    if (!field->has_default_value) {
        return;
    }
    bow__proto_text_printf(&it->text, "%sdefault = ", next_option(n));
    if (field->type == TYPE_STRING) {
        bow__proto_text_quote(&it->text, text);
    } else if (field->type == TYPE_BYTES) { /* escaped as it is */
        bow__proto_text_printf(&it->text, "\"");
        bow__proto_text_put(&it->text, text);
        bow__proto_text_printf(&it->text, "\"");
    } else {
        bow__proto_text_put(&it->text, text);
    }
}

static void put_field_options(struct printing *it, const Bow__Schema__Field *field)
{
    const Bow__Schema__FieldOptions *options = field->options;
    unsigned n = 0;

    put_default(it, field, &n);
    if (field->json_name != NULL && !is_derived(field->name, field->json_name)) {
        bow__proto_text_printf(&it->text, "%sjson_name = ", next_option(&n));
        bow__proto_text_quote(&it->text, bow__schema_slice(field->json_name));
    }
    if (options != NULL && options->has_packed) {
        bow__proto_text_printf(&it->text, "%spacked = %s", next_option(&n),
                               options->packed ? "true" : "false");
    }
    if (options != NULL && options->deprecated) {
        bow__proto_text_printf(&it->text, "%sdeprecated = true", next_option(&n));
    }
    if (options != NULL && options->debug_redact) {
        bow__proto_text_printf(&it->text, "%sdebug_redact = true", next_option(&n));
    }
    if (options != NULL && options->secret) {
        bow__proto_text_printf(&it->text, "%s(bowline.secret) = true", next_option(&n));
    }
    bow__proto_text_printf(&it->text, "%s", n > 0 ? "]" : "");
}

static void put_deprecated(struct printing *it, bool is_deprecated)
{
    if (is_deprecated) {
        begin_line(it);
        bow__proto_text_printf(&it->text, "option deprecated = true;\n");
    }
}

/* Ranges; `last` is of a message's the first number that is none of it, of an enum's the last that
 * is. */

static void put_range(struct printing *it, int32_t first, int32_t last, int32_t greatest)
{
    if (first == last) {
        bow__proto_text_printf(&it->text, "%d", (int)first);
    } else if (last == greatest) {
        bow__proto_text_printf(&it->text, "%d to max", (int)first);
    } else {
        bow__proto_text_printf(&it->text, "%d to %d", (int)first, (int)last);
    }
}

static void put_ranges(struct printing *it, const char *keyword, Bow__Schema__Range *const *ranges,
                       size_t n, bool of_enum)
{
    if (n == 0) {
        return;
    }
    begin_line(it);
    bow__proto_text_printf(&it->text, "%s ", keyword);
    for (size_t i = 0; i < n; i++) {
        bow__proto_text_printf(&it->text, "%s", i > 0 ? ", " : "");
        put_range(it, ranges[i]->start,
                  of_enum || ranges[i]->end == INT32_MIN ? ranges[i]->end : ranges[i]->end - 1,
                  of_enum ? MAX_ENUM_NUMBER : MAX_FIELD_NUMBER);
    }
    bow__proto_text_printf(&it->text, ";\n");
}

static void put_reserved_names(struct printing *it, const char *const *names, size_t n)
{
    if (n == 0) {
        return;
    }
    begin_line(it);
    bow__proto_text_printf(&it->text, "reserved ");
    for (size_t i = 0; i < n; i++) {
        bow__proto_text_printf(&it->text, "%s", i > 0 ? ", " : "");
        bow__proto_text_quote(&it->text, bow__schema_slice(names[i]));
    }
    bow__proto_text_printf(&it->text, ";\n");
}

/* Enums */

static void put_enum(struct printing *it, const Bow__Schema__Enum *proto)
{
    open_block(it, "enum", proto->name);
    if (proto->options != NULL && proto->options->allow_alias) {
        begin_line(it);
        bow__proto_text_printf(&it->text, "option allow_alias = true;\n");
    }
    put_deprecated(it, proto->options != NULL && proto->options->deprecated);
    for (size_t i = 0; i < proto->n_value; i++) {
        const Bow__Schema__EnumValue *value = proto->value[i];
        begin_line(it);
        bow__proto_text_printf(
            &it->text, "%s = %d%s;\n", value->name, (int)value->number,
            value->options != NULL && value->options->deprecated ? " [deprecated = true]" : "");
    }
    put_ranges(it, "reserved", proto->reserved_range, proto->n_reserved_range, true);
    put_reserved_names(it, (const char *const *)proto->reserved_name, proto->n_reserved_name);
    close_block(it);
}

/* Messages */

static void put_message(struct printing *it, const char *full_name,
                        const Bow__Schema__Message *proto);

static const char *label_of(const struct printing *it, const Bow__Schema__Field *field)
{
    bool is_in_oneof = field->has_oneof_index && !field->proto3_optional;

    if (field->label == LABEL_REPEATED) {
        return "repeated ";
    }
    if (field->label == LABEL_REQUIRED && it->file->is_proto2) {
        return "required ";
    }
    return field->proto3_optional || (it->file->is_proto2 && !is_in_oneof) ? "optional " : "";
}

static void put_map_type(struct printing *it, const char *scope, const Bow__Schema__Message *entry)
{
    bow__proto_text_printf(&it->text, "map<");
    for (size_t i = 0; i < entry->n_field; i++) {
        bow__proto_text_printf(&it->text, "%s", i > 0 ? ", " : "");
        put_field_type(it, scope, entry->field[i]);
    }
    bow__proto_text_printf(&it->text, ">");
}

/* A group declares its message with it: `optional group Name = 1 { .. }`. */
static void put_group(struct printing *it, const Bow__Schema__Field *field,
                      const Bow__Schema__Message *message)
{
    char keyword[64];

    (void)snprintf(keyword, sizeof(keyword), "%sgroup", label_of(it, field));
    begin_line(it);
    bow__proto_text_printf(&it->text, "%s %s = %d {\n", keyword, message->name, (int)field->number);
    it->text.level++;
    for (size_t i = 0; i < message->n_field; i++) {
        const Bow__Schema__Field *inner = message->field[i];
        begin_line(it);
        bow__proto_text_printf(&it->text, "%s", label_of(it, inner));
        put_field_type(it, field->type_name + 1, inner);
        bow__proto_text_printf(&it->text, " %s = %d", inner->name, (int)inner->number);
        put_field_options(it, inner);
        bow__proto_text_printf(&it->text, ";\n");
    }
    close_block(it);
}

static void put_field(struct printing *it, const char *scope, const Bow__Schema__Field *field)
{
    const Bow__Schema__Message *message = message_of(it, field);

    if (field->type == TYPE_GROUP && message != NULL) {
        put_group(it, field, message);
        return;
    }
    begin_line(it);
    if (is_entry(message)) {
        put_map_type(it, scope, message);
    } else {
        bow__proto_text_printf(&it->text, "%s", label_of(it, field));
        put_field_type(it, scope, field);
    }
    bow__proto_text_printf(&it->text, " %s = %d", field->name, (int)field->number);
    put_field_options(it, field);
    bow__proto_text_printf(&it->text, ";\n");
}

/* Where its first field stands. */
static void put_oneof(struct printing *it, const char *scope, const Bow__Schema__Message *message,
                      int32_t index)
{
    open_block(it, "oneof", message->oneof[index]->name);
    for (size_t i = 0; i < message->n_field; i++) {
        if (message->field[i]->has_oneof_index && message->field[i]->oneof_index == index) {
            put_field(it, scope, message->field[i]);
        }
    }
    close_block(it);
}

static bool is_first_of_oneof(const Bow__Schema__Message *message, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (message->field[i]->has_oneof_index &&
            message->field[i]->oneof_index == message->field[at]->oneof_index) {
            return false;
        }
    }
    return true;
}

static void put_fields(struct printing *it, const char *scope, const Bow__Schema__Message *message)
{
    for (size_t i = 0; i < message->n_field; i++) {
        const Bow__Schema__Field *field = message->field[i];
        if (!field->has_oneof_index || field->proto3_optional) {
            put_field(it, scope, field);
        } else if (is_first_of_oneof(message, i)) {
            put_oneof(it, scope, message, field->oneof_index);
        }
    }
}

/* The message of a group stands where its field does. */
static bool is_group_of(const Bow__Schema__Message *message, const Bow__Schema__Message *inner)
{
    for (size_t i = 0; i < message->n_field; i++) {
        const char *type = message->field[i]->type_name;
        const char *dot = type != NULL ? strrchr(type, '.') : NULL;
        if (message->field[i]->type == TYPE_GROUP && dot != NULL &&
            strcmp(dot + 1, inner->name) == 0) {
            return true;
        }
    }
    return false;
}

static void put_inner(struct printing *it, const char *full_name,
                      const Bow__Schema__Message *message)
{
    char inner[BOW_LIMIT_SCHEMA_NAME_BYTES];

    for (size_t i = 0; i < message->n_message; i++) {
        if (!is_entry(message->message[i]) && !is_group_of(message, message->message[i])) {
            (void)snprintf(inner, sizeof(inner), "%s.%s", full_name, message->message[i]->name);
            put_message(it, inner, message->message[i]);
            bow__proto_text_printf(&it->text, "\n");
        }
    }
    for (size_t i = 0; i < message->n_enumeration; i++) {
        put_enum(it, message->enumeration[i]);
        bow__proto_text_printf(&it->text, "\n");
    }
}

/* As deep as the decoder let them be. */
static void put_message(struct printing *it, const char *full_name,
                        const Bow__Schema__Message *proto)
{
    open_block(it, "message", proto->name);
    if (proto->options != NULL && proto->options->message_set_wire_format) {
        begin_line(it);
        bow__proto_text_printf(&it->text, "option message_set_wire_format = true;\n");
    }
    put_deprecated(it, proto->options != NULL && proto->options->deprecated);
    put_inner(it, full_name, proto);
    put_fields(it, full_name, proto);
    put_ranges(it, "extensions", proto->extension_range, proto->n_extension_range, false);
    put_ranges(it, "reserved", proto->reserved_range, proto->n_reserved_range, false);
    put_reserved_names(it, (const char *const *)proto->reserved_name, proto->n_reserved_name);
    close_block(it);
}

/* Services */

static void put_method(struct printing *it, const char *scope, const Bow__Schema__Method *proto)
{
    const Bow__Schema__MethodOptions *options = proto->options;
    bool is_deprecated = options != NULL && options->deprecated;
    int32_t level = options != NULL ? options->idempotency_level : 0;

    begin_line(it);
    bow__proto_text_printf(&it->text, "rpc %s(%s", proto->name,
                           proto->client_streaming ? "stream " : "");
    put_type_name(it, scope, proto->input_type);
    bow__proto_text_printf(&it->text, ") returns (%s", proto->server_streaming ? "stream " : "");
    put_type_name(it, scope, proto->output_type);
    if (!is_deprecated && level == 0) {
        bow__proto_text_printf(&it->text, ");\n");
        return;
    }
    bow__proto_text_printf(&it->text, ") {\n");
    it->text.level++;
    put_deprecated(it, is_deprecated);
    if (level == NO_SIDE_EFFECTS || level == IDEMPOTENT) {
        begin_line(it);
        bow__proto_text_printf(&it->text, "option idempotency_level = %s;\n",
                               level == IDEMPOTENT ? "IDEMPOTENT" : "NO_SIDE_EFFECTS");
    }
    close_block(it);
}

static void put_service(struct printing *it, const char *full_name,
                        const Bow__Schema__Service *proto)
{
    open_block(it, "service", proto->name);
    put_deprecated(it, proto->options != NULL && proto->options->deprecated);
    for (size_t i = 0; i < proto->n_method; i++) {
        put_method(it, full_name, proto->method[i]);
    }
    close_block(it);
}

/* Files */

static void put_head(struct printing *it)
{
    const Bow__Schema__File *proto = it->file->proto;

    if (it->file->is_edition) {
        bow__proto_text_printf(&it->text, "edition = \"%d\";\n", (int)proto->edition - 1000 + 2023);
    } else {
        bow__proto_text_printf(&it->text, "syntax = \"%s\";\n",
                               it->file->is_proto2 ? "proto2" : "proto3");
    }
    if (package_length(it) > 0) {
        bow__proto_text_printf(&it->text, "\npackage %s;\n", proto->package);
    }
    bow__proto_text_printf(&it->text, "%s", proto->n_dependency > 0 ? "\n" : "");
    for (size_t i = 0; i < proto->n_dependency; i++) {
        bow__proto_text_printf(&it->text, "import ");
        bow__proto_text_quote(&it->text, bow__schema_slice(proto->dependency[i]));
        bow__proto_text_printf(&it->text, ";\n");
    }
}

static void put_extensions(struct printing *it, const char *package)
{
    const Bow__Schema__File *proto = it->file->proto;

    for (size_t i = 0; i < proto->n_extension; i++) {
        if (!bow__schema_is_name(proto->extension[i]->name)) {
            continue; /* nothing is made of extensions, so nobody has looked at them */
        }
        bow__proto_text_printf(&it->text, "\nextend ");
        put_type_name(it, package, proto->extension[i]->extendee);
        bow__proto_text_printf(&it->text, " {\n");
        it->text.level++;
        put_field(it, package, proto->extension[i]);
        close_block(it);
    }
}

static const char *joined(char *name, size_t size, const char *package, const char *rest)
{
    (void)snprintf(name, size, "%s%s%s", package, package[0] != '\0' ? "." : "", rest);
    return name;
}

static void put_file(struct printing *it)
{
    const Bow__Schema__File *proto = it->file->proto;
    const char *package = proto->package != NULL ? proto->package : "";
    char name[BOW_LIMIT_SCHEMA_NAME_BYTES];

    put_head(it);
    for (size_t i = 0; i < proto->n_service; i++) {
        bow__proto_text_printf(&it->text, "\n");
        put_service(it, joined(name, sizeof(name), package, proto->service[i]->name),
                    proto->service[i]);
    }
    for (size_t i = 0; i < proto->n_message; i++) {
        bow__proto_text_printf(&it->text, "\n");
        put_message(it, joined(name, sizeof(name), package, proto->message[i]->name),
                    proto->message[i]);
    }
    for (size_t i = 0; i < proto->n_enumeration; i++) {
        bow__proto_text_printf(&it->text, "\n");
        put_enum(it, proto->enumeration[i]);
    }
    put_extensions(it, package);
}

static void put_symbol(struct printing *it, const struct bow__schema_symbol *symbol)
{
    const char *dot = strrchr(symbol->full_name, '.');
    char scope[BOW_LIMIT_SCHEMA_NAME_BYTES];

    it->file = symbol->file;
    switch (symbol->kind) {
    case BOW__SYMBOL_MESSAGE:
        put_message(it, symbol->full_name, symbol->proto.message);
        break;
    case BOW__SYMBOL_ENUM:
        put_enum(it, symbol->proto.enumeration);
        break;
    case BOW__SYMBOL_SERVICE:
        put_service(it, symbol->full_name, symbol->proto.service);
        break;
    default:
        (void)snprintf(scope, sizeof(scope), "%.*s", (int)(dot - symbol->full_name),
                       symbol->full_name);
        put_method(it, scope, symbol->proto.method);
        break;
    }
}

static int give(struct printing *it, struct bow_arena *arena, struct bow_slice *ret_text)
{
    char *copy = NULL;

    if (!it->text.failed) {
        copy = bow__storage_copy_text(arena, it->text.bytes, it->text.len);
    }
    if (copy != NULL) {
        *ret_text = (struct bow_slice){(const uint8_t *)copy, it->text.len};
    }
    bow__proto_text_fini(&it->text);
    return copy != NULL ? 0 : -ENOMEM;
}

int bow_schema_print(const struct bow_schema *schema, const char *name, struct bow_arena *arena,
                     struct bow_slice *ret_text)
{
    struct printing it = {.schema = schema};

    if (!schema->is_built) {
        return -ENOENT;
    }
    const struct bow__schema_symbol *symbol =
        bow__schema_find(schema, name + (name[0] == '.' || name[0] == '/'));
    if (symbol != NULL) {
        put_symbol(&it, symbol);
        return give(&it, arena, ret_text);
    }
    it.file = bow__bytes_map_get(&schema->files_by_name, bow__schema_slice(name));
    if (it.file == NULL) {
        return -ENOENT;
    }
    put_file(&it);
    return give(&it, arena, ret_text);
}
