/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * x.bow.h: the typed functions of messages and enums, thin over <bowline/message.h>,
 * <bowline/message_field.h> and protobuf-c. A struct's member is named in three of them only: the
 * set of a scalar that is always there, which costs a store, the get of a map, of its entry, and
 * the clear of a oneof.
 */

#include "codegen/c_type.h"
#include "codegen/emit.h"
#include "codegen/message_names.h"

#include <string.h>

static const char new_text[] = "\n"
                               "static inline $struct$ *\n"
                               "$function$(struct bow_arena *arena)\n"
                               "{\n"
                               "    return ($struct$ *)bow_message_new(\n"
                               "        &$lower$__descriptor, arena);\n"
                               "}\n";

static const char clone_text[] = "\n"
                                 "static inline $struct$ *\n"
                                 "$function$(const $struct$ *message, struct bow_arena *arena)\n"
                                 "{\n"
                                 "    return ($struct$ *)bow_message_clone(\n"
                                 "        (const ProtobufCMessage *)message, arena);\n"
                                 "}\n";

static const char equal_text[] =
    "\n"
    "static inline bool\n"
    "$function$(const $struct$ *a, const $struct$ *b)\n"
    "{\n"
    "    return bow_message_equal(\n"
    "        (const ProtobufCMessage *)a, (const ProtobufCMessage *)b);\n"
    "}\n";

static const char clear_text[] = "\n"
                                 "static inline void\n"
                                 "$function$($struct$ *message, struct bow_arena *arena)\n"
                                 "{\n"
                                 "    bow_message_clear((ProtobufCMessage *)message, arena);\n"
                                 "}\n";

static const char free_text[] = "\n"
                                "static inline void\n"
                                "$function$($struct$ *message)\n"
                                "{\n"
                                "    bow_message_free((ProtobufCMessage *)message);\n"
                                "}\n";

static const char decode_text[] =
    "\n"
    "BOW_MUST_USE static inline int\n"
    "$function$(struct bow_slice bytes,\n"
    "    const struct bow_decode_options *options, struct bow_arena *arena,\n"
    "    $struct$ **ret_message, char *reason, size_t reason_size)\n"
    "{\n"
    "    ProtobufCMessage *made;\n"
    "    int rc = bow_message_decode(&$lower$__descriptor, bytes, options,\n"
    "        arena, &made, reason, reason_size);\n"
    "\n"
    "    if (rc == 0) {\n"
    "        *ret_message = ($struct$ *)made;\n"
    "    }\n"
    "    return rc;\n"
    "}\n";

static const char encode_text[] =
    "\n"
    "BOW_MUST_USE static inline int\n"
    "$function$(const $struct$ *message,\n"
    "    void *data, size_t size, size_t *ret_len)\n"
    "{\n"
    "    return bow_message_encode(\n"
    "        (const ProtobufCMessage *)message, data, size, ret_len);\n"
    "}\n";

static const char encode_new_text[] =
    "\n"
    "BOW_MUST_USE static inline int\n"
    "$function$(const $struct$ *message,\n"
    "    struct bow_arena *arena, struct bow_slice *ret_bytes)\n"
    "{\n"
    "    return bow_message_encode_new(\n"
    "        (const ProtobufCMessage *)message, arena, ret_bytes);\n"
    "}\n";

/* Of a scalar without presence. */
static const char store_text[] = "\n"
                                 "static inline bool\n"
                                 "$function$($struct$ *message, $type$ value)\n"
                                 "{\n"
                                 "    if (message == NULL) {\n"
                                 "        return false;\n"
                                 "    }\n"
                                 "    message->$member$ = value;\n"
                                 "    return true;\n"
                                 "}\n";

/* All others that only hand on: what they return, what comes between the message and the arena,
 * and what is called with it. */
static const char field_text[] = "\n"
                                 "static inline $returns$\n"
                                 "$function$($struct$ *message$parameters$)\n"
                                 "{\n"
                                 "$statements$"
                                 "    $return$$callee$((ProtobufCMessage *)message,\n"
                                 "        &$lower$__descriptor.fields[$index$]$arguments$);\n"
                                 "}\n";

static const char has_text[] = "\n"
                               "static inline bool\n"
                               "$function$(const $struct$ *message)\n"
                               "{\n"
                               "    return bow_message_has((const ProtobufCMessage *)message,\n"
                               "        &$lower$__descriptor.fields[$index$]);\n"
                               "}\n";

static const char get_text[] = "\n"
                               "static inline const $type$ *\n"
                               "$function$(const $struct$ *message$parameters$)\n"
                               "{\n"
                               "$statements$"
                               "    const $entry$ *entry = (const $entry$ *)\n"
                               "        bow_message_get_entry((const ProtobufCMessage *)message,\n"
                               "            &$lower$__descriptor.fields[$index$]$arguments$);\n"
                               "\n"
                               "    return entry != NULL ? $value$ : NULL;\n"
                               "}\n";

/* A program may have set the case to a number that no member has. */
static const char clear_oneof_text[] =
    "\n"
    "/* oneof $name$ */\n"
    "\n"
    "static inline void\n"
    "$function$($struct$ *message, struct bow_arena *arena)\n"
    "{\n"
    "    if (message == NULL) {\n"
    "        return;\n"
    "    }\n"
    "    const ProtobufCFieldDescriptor *found = protobuf_c_message_descriptor_get_field(\n"
    "        &$lower$__descriptor, (unsigned)message->$case$);\n"
    "\n"
    "    if (found != NULL) {\n"
    "        bow_message_clear_field((ProtobufCMessage *)message, found, arena);\n"
    "    }\n"
    "    message->$case$ = $not_set$;\n"
    "}\n";

static const char enum_text[] =
    "\n"
    "/* enum $full_name$ */\n"
    "\n"
    "/** NULL: no value has that number. */\n"
    "static inline const char *\n"
    "$name$($enum$ value)\n"
    "{\n"
    "    const ProtobufCEnumValue *found = protobuf_c_enum_descriptor_get_value(\n"
    "        &$lower$__descriptor, (int)value);\n"
    "\n"
    "    return found != NULL ? found->name : NULL;\n"
    "}\n"
    "\n"
    "/** Returns false when no value has that name. */\n"
    "static inline bool\n"
    "$parse$(const char *name, $enum$ *ret_value)\n"
    "{\n"
    "    const ProtobufCEnumValue *found = protobuf_c_enum_descriptor_get_value_by_name(\n"
    "        &$lower$__descriptor, name);\n"
    "\n"
    "    if (found != NULL) {\n"
    "        *ret_value = ($enum$)found->value;\n"
    "    }\n"
    "    return found != NULL;\n"
    "}\n";

/* A type as the .proto spells it. */
static const char *proto_type(const struct model_field *field)
{
    static const char *const names[] = {
        "?",       "double",   "float",    "int64",  "uint64", "int32", "fixed64",
        "fixed32", "bool",     "string",   "group",  "",       "bytes", "uint32",
        "",        "sfixed32", "sfixed64", "sint32", "sint64",
    };

    if (field->proto->type_name != NULL) {
        return field->proto->type_name + 1; /* behind the dot in front */
    }
    return names[field->proto->type];
}

/* The line above a field's functions: its declaration. */
static void emit_field_heading(struct printer *out, const struct model_field *field)
{
    const char *name = field->proto->name;
    int number = field->proto->number;

    if (field->is_map) {
        printer_printf(out, "\n/* map<%s, %s> %s = %d */\n", proto_type(model_map_key(field)),
                       proto_type(model_map_value(field)), name, number);
        return;
    }
    printer_printf(out, "\n/* %s%s %s = %d */\n", field->is_repeated ? "repeated " : "",
                   proto_type(field), name, number);
}

/* How a value, or a map's key, is handed over: the parameters, the statements that make of it
 * what can be pointed to, and the arguments. */
struct passing {
    const char *parameters;
    const char *statements;
    const char *arguments;
};

static const struct passing pass_arena = {", struct bow_arena *arena", "", ", arena"};

static bool is_bool(const struct model_field *field)
{
    return field->proto->type == GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_BOOL;
}

/* The type of a number, bool or enum as an argument. */
static const char *argument_type(struct memory *memory, const struct model_field *field)
{
    if (is_bool(field)) {
        return "bool";
    }
    const char *type = c_type_of(memory, NULL, field);
    return memory_dup(memory, type, strlen(type) - 1); /* without the space */
}

static struct passing pass_scalar(struct memory *memory, const struct model_field *field,
                                  const char *name)
{
    if (is_bool(field)) { /* protobuf-c's is an int */
        return (struct passing){
            .parameters = memory_printf(memory, ", bool %s", name),
            .statements =
                memory_printf(memory, "    protobuf_c_boolean %s_member = %s;\n", name, name),
            .arguments = memory_printf(memory, ", &%s_member", name),
        };
    }
    return (struct passing){
        .parameters = memory_printf(memory, ", %s %s", argument_type(memory, field), name),
        .statements = "",
        .arguments = memory_printf(memory, ", &%s", name),
    };
}

static struct passing pass(struct memory *memory, const struct model_field *field, const char *name)
{
    switch (message_value_of(field)) {
    case MESSAGE_VALUE_STRING:
        return (struct passing){
            .parameters = memory_printf(memory, ", const char *%s", name),
            .statements = "",
            .arguments = memory_printf(memory, ", %s", name),
        };
    case MESSAGE_VALUE_BYTES:
        return (struct passing){", const void *data, size_t len", "", ", data, len"};
    case MESSAGE_VALUE_MESSAGE:
        return (struct passing){
            .parameters = memory_printf(memory, ", %s *%s", field->message->c_name, name),
            .statements = "",
            .arguments = memory_printf(memory, ", (ProtobufCMessage *)%s", name),
        };
    default:
        return pass_scalar(memory, field, name);
    }
}

static struct passing and_then(struct memory *memory, struct passing first, struct passing second)
{
    return (struct passing){
        .parameters = memory_printf(memory, "%s%s", first.parameters, second.parameters),
        .statements = memory_printf(memory, "%s%s", first.statements, second.statements),
        .arguments = memory_printf(memory, "%s%s", first.arguments, second.arguments),
    };
}

static struct passing pass_with_arena(struct memory *memory, const struct model_field *field)
{
    return and_then(memory, pass(memory, field, "value"), pass_arena);
}

/* One function of a field. */
struct emission {
    struct printer *out;
    const struct model_message *message;
    const struct message_function *function;
};

/* `type` NULL: the function returns bool, or nothing when `callee` does; else a `type` *. */
static void emit_call(const struct emission *emission, const char *callee, const char *type,
                      struct passing passing)
{
    struct memory *memory = emission->out->memory;
    bool is_void = emission->function->kind == MESSAGE_CLEAR_FIELD;
    const char *returns = is_void ? "void" : "bool";
    const char *statements = passing.statements;

    if (type != NULL) {
        returns = memory_printf(memory, "%s *", type);
    }
    const struct printer_var vars[] = {
        {"returns", returns},
        {"function", emission->function->name},
        {"struct", emission->message->c_name},
        {"lower", emission->message->lower},
        {"index", memory_printf(memory, "%zu", emission->function->index)},
        {"parameters", passing.parameters},
        {"statements", *statements != '\0' ? memory_printf(memory, "%s\n", statements) : ""},
        {"return", type != NULL ? memory_printf(memory, "return (%s)", returns)
                   : is_void    ? ""
                                : "return "},
        {"callee", callee},
        {"arguments", passing.arguments},
        {NULL, NULL},
    };
    printer_template(emission->out, vars, field_text);
}

/* The function of message_field.h for `verb` and what `field` holds. */
static const char *callee_for(struct memory *memory, const char *verb,
                              const struct model_field *field, const char *ending)
{
    static const char *const kinds[] = {
        [MESSAGE_VALUE_SCALAR] = "scalar",
        [MESSAGE_VALUE_STRING] = "string",
        [MESSAGE_VALUE_BYTES] = "bytes",
        [MESSAGE_VALUE_MESSAGE] = "message",
    };

    return memory_printf(memory, "bow_message_%s_%s%s", verb, kinds[message_value_of(field)],
                         ending);
}

static void emit_store(const struct emission *emission)
{
    const struct model_field *field = emission->function->field;
    const struct printer_var vars[] = {
        {"function", emission->function->name},
        {"struct", emission->message->c_name},
        {"type", argument_type(emission->out->memory, field)},
        {"member", field->member},
        {NULL, NULL},
    };

    printer_template(emission->out, vars, store_text);
}

/* A scalar takes an arena in a oneof only, where the former member may have to be freed. */
static void emit_set(const struct emission *emission)
{
    const struct model_field *field = emission->function->field;
    struct memory *memory = emission->out->memory;
    bool is_scalar = message_value_of(field) == MESSAGE_VALUE_SCALAR;

    /* Who includes the header is not to be warned of a member that it alone touches. */
    bool is_plain = is_scalar && !message_has_presence(emission->message, field);
    if (is_plain && !field->is_deprecated) {
        emit_store(emission);
        return;
    }
    struct passing passing = pass_with_arena(memory, field);
    if (is_scalar && field->oneof_index < 0) {
        static const struct passing pass_null = {"", "", ", NULL"};
        passing = and_then(memory, pass(memory, field, "value"), pass_null);
    }
    emit_call(emission, callee_for(memory, "set", field, ""), NULL, passing);
}

static void emit_add(const struct emission *emission)
{
    const struct model_field *field = emission->function->field;
    struct memory *memory = emission->out->memory;
    const char *callee = callee_for(memory, "add", field, "");

    if (field->message != NULL) {
        emit_call(emission, callee, field->message->c_name, pass_arena);
        return;
    }
    emit_call(emission, callee, NULL, pass_with_arena(memory, field));
}

static void emit_put(const struct emission *emission)
{
    const struct model_field *field = emission->function->field;
    const struct model_field *value = model_map_value(field);
    struct memory *memory = emission->out->memory;
    struct passing key = pass(memory, model_map_key(field), "key");
    const char *callee = callee_for(memory, "put", value, "");

    if (value->message != NULL) {
        emit_call(emission, callee, value->message->c_name, and_then(memory, key, pass_arena));
        return;
    }
    emit_call(emission, callee, NULL, and_then(memory, key, pass_with_arena(memory, value)));
}

static void emit_mutable(const struct emission *emission)
{
    const struct model_field *field = emission->function->field;
    struct memory *memory = emission->out->memory;

    if (field->is_map) {
        emit_call(emission, "bow_message_mutable_value", model_map_value(field)->message->c_name,
                  and_then(memory, pass(memory, model_map_key(field), "key"), pass_arena));
        return;
    }
    emit_call(emission, "bow_message_mutable", field->message->c_name, pass_arena);
}

/* What a map's get points to. */
static const char *type_of_value(struct memory *memory, const struct model_field *value)
{
    switch (message_value_of(value)) {
    case MESSAGE_VALUE_STRING:
        return "char";
    case MESSAGE_VALUE_BYTES:
        return "ProtobufCBinaryData";
    case MESSAGE_VALUE_MESSAGE:
        return value->message->c_name;
    default:
        return is_bool(value) ? "protobuf_c_boolean" : argument_type(memory, value);
    }
}

static void emit_get(const struct emission *emission)
{
    const struct model_field *field = emission->function->field;
    const struct model_field *key = model_map_key(field);
    const struct model_field *value = model_map_value(field);
    struct memory *memory = emission->out->memory;
    struct passing passing = pass(memory, key, "key");
    enum message_value kind = message_value_of(value);
    bool is_pointer = kind == MESSAGE_VALUE_STRING || kind == MESSAGE_VALUE_MESSAGE;
    const struct printer_var vars[] = {
        {"function", emission->function->name},
        {"struct", emission->message->c_name},
        {"lower", emission->message->lower},
        {"index", memory_printf(memory, "%zu", emission->function->index)},
        {"type", type_of_value(memory, value)},
        {"entry", field->message->c_name},
        {"parameters", passing.parameters},
        {"statements", passing.statements},
        {"arguments", passing.arguments},
        {"value", memory_printf(memory, "%sentry->%s", is_pointer ? "" : "&", value->member)},
        {NULL, NULL},
    };

    printer_template(emission->out, vars, get_text);
}

static void emit_has(const struct emission *emission)
{
    const struct printer_var vars[] = {
        {"function", emission->function->name},
        {"struct", emission->message->c_name},
        {"lower", emission->message->lower},
        {"index", memory_printf(emission->out->memory, "%zu", emission->function->index)},
        {NULL, NULL},
    };

    printer_template(emission->out, vars, has_text);
}

static void emit_field_function(const struct emission *emission)
{
    const struct model_field *field = emission->function->field;
    struct memory *memory = emission->out->memory;

    switch (emission->function->kind) {
    case MESSAGE_SET:
        emit_set(emission);
        return;
    case MESSAGE_SET_REF:
        emit_call(emission, callee_for(memory, "set", field, "_ref"), NULL,
                  pass(memory, field, "value"));
        return;
    case MESSAGE_MUTABLE:
        emit_mutable(emission);
        return;
    case MESSAGE_ADD:
        emit_add(emission);
        return;
    case MESSAGE_PUT:
        emit_put(emission);
        return;
    case MESSAGE_GET:
        emit_get(emission);
        return;
    case MESSAGE_REMOVE:
        emit_call(emission, "bow_message_remove", NULL,
                  and_then(memory, pass(memory, model_map_key(field), "key"), pass_arena));
        return;
    case MESSAGE_HAS:
        emit_has(emission);
        return;
    default:
        emit_call(emission, "bow_message_clear_field", NULL, pass_arena);
        return;
    }
}

static void emit_clear_oneof(const struct emission *emission)
{
    const struct model_message *message = emission->message;
    size_t index = emission->function->index;
    const struct printer_var vars[] = {
        {"name", message->oneofs[index].proto->name},
        {"function", emission->function->name},
        {"struct", message->c_name},
        {"lower", message->lower},
        {"case", message->oneofs[index].member},
        {"not_set", message->oneofs[index].not_set},
        {NULL, NULL},
    };

    printer_template(emission->out, vars, clear_oneof_text);
}

static void emit_message_function(const struct emission *emission)
{
    static const char *const texts[] = {
        [MESSAGE_NEW] = new_text,       [MESSAGE_CLONE] = clone_text,
        [MESSAGE_EQUAL] = equal_text,   [MESSAGE_CLEAR] = clear_text,
        [MESSAGE_FREE] = free_text,     [MESSAGE_DECODE] = decode_text,
        [MESSAGE_ENCODE] = encode_text, [MESSAGE_ENCODE_NEW] = encode_new_text,
    };
    const struct printer_var vars[] = {
        {"function", emission->function->name},
        {"struct", emission->message->c_name},
        {"lower", emission->message->lower},
        {NULL, NULL},
    };

    printer_template(emission->out, vars, texts[emission->function->kind]);
}

static void emit_message(struct printer *out, const struct model_message *message)
{
    const struct model_field *above = NULL;

    if (message->n_functions == 0) {
        return;
    }
    printer_printf(out, "\n/*\n * Message %s\n */\n", message->full_name);
    for (size_t i = 0; i < message->n_functions; i++) {
        const struct message_function *function = &message->functions[i];
        const struct emission emission = {out, message, function};
        if (function->kind == MESSAGE_CLEAR_ONEOF) {
            emit_clear_oneof(&emission);
            continue;
        }
        if (function->field == NULL) {
            emit_message_function(&emission);
            continue;
        }
        if (function->field != above) {
            above = function->field;
            emit_field_heading(out, above);
        }
        emit_field_function(&emission);
    }
}

static void emit_enum(struct printer *out, const struct model_enum *type)
{
    const struct printer_var vars[] = {
        {"enum", type->c_name},        {"full_name", type->full_name},  {"lower", type->lower},
        {"name", type->name_function}, {"parse", type->parse_function}, {NULL, NULL},
    };

    printer_template(out, vars, enum_text);
}

static struct bow_slice key_slice(const char *text)
{
    return (struct bow_slice){.data = (const uint8_t *)text, .len = strlen(text)};
}

static bool has_any(const struct emit *emit)
{
    return !emit->parameters->no_messages && emit->file->n_messages + emit->file->n_enums > 0;
}

/* Whoever fills a message of another file's type calls functions of that file. */
static void emit_type_files(struct printer *out, const struct emit *emit)
{
    const struct model_file *file = emit->file;
    struct bow__bytes_map seen;

    bow__bytes_map_init(&seen, out->memory->context, 0);
    memory_check(bow__bytes_map_put(&seen, key_slice(file->name), out));
    for (size_t i = 0; i < file->n_messages; i++) {
        for (size_t j = 0; j < file->messages[i].n_fields; j++) {
            const struct model_file *other = file->messages[i].fields[j].type_file;
            if (other == NULL || bow__bytes_map_get(&seen, key_slice(other->name)) != NULL) {
                continue;
            }
            memory_check(bow__bytes_map_put(&seen, key_slice(other->name), out));
            emit_include(out, emit, other, EMIT_HEADER_ENDING);
        }
    }
    bow__bytes_map_fini(&seen);
}

void emit_message_includes(struct printer *out, const struct emit *emit)
{
    if (!has_any(emit)) {
        return;
    }
    printer_text(out, "\n#ifndef BOW_NO_MESSAGES\n");
    emit_type_files(out, emit);
    printer_text(out, "#include <bowline/message.h>\n"
                      "#include <bowline/message_field.h>\n"
                      "#endif\n");
}

static const char summary[] =
    "\n"
    "/*\n"
    " * Messages: <bowline/message.h> and <bowline/message_field.h>, by type. `arena` is where a\n"
    " * message's memory comes from; NULL is the heap. A NULL message is left alone, and an\n"
    " * allocation that failed is remembered by the arena.\n"
    " *\n"
    " *     set_       a value; strings and bytes are copied, and referred to by set_..._ref\n"
    " *     mutable_   the message in a field, or of a key, made when there is none\n"
    " *     add_       an element at the end; one that is a message is returned, to be filled\n"
    " *     put_       the value of a key, as add_; get_ points to it (NULL: there is no such "
    "key)\n"
    " *     remove_    takes a key out\n"
    " *     has_       whether the field is set; clear_ unsets it, or a oneof\n"
    " *\n"
    " * BOW_NO_MESSAGES, defined before this file is included, leaves them out.\n"
    " */\n"
    "\n"
    "#ifndef BOW_NO_MESSAGES\n";

void emit_message_functions(struct printer *out, const struct emit *emit)
{
    const struct model_file *file = emit->file;

    if (!has_any(emit)) {
        return;
    }
    printer_text(out, summary);
    for (size_t i = 0; i < file->n_enums; i++) {
        emit_enum(out, &file->enums[i]);
    }
    for (size_t i = 0; i < file->n_messages; i++) {
        emit_message(out, &file->messages[i]);
    }
    printer_text(out, "\n#endif\n");
}
