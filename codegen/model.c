/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * From the request to the model: first everything that is declared, then the types
 * that fields and methods name. Services are in model_service.c.
 */

#include "codegen/model.h"
#include "codegen/model_service.h"
#include "codegen/names.h"
#include "codegen/wire.h"

#include <stdlib.h>
#include <string.h>

/* Field numbers of descriptor.proto, for places. */
enum {
    FILE_MESSAGES = 4,
    FILE_ENUMS = 5,
    FILE_SERVICES = 6,
    MESSAGE_FIELDS = 2,
    MESSAGE_MESSAGES = 3,
    MESSAGE_ENUMS = 4,
    MESSAGE_ONEOFS = 8,
    ENUM_VALUES = 2,
    FIELD_DEFAULT = 7,
};

struct build {
    struct model *model;
    struct errors *errors;
};

static struct bow_slice key_of(const char *text)
{
    return (struct bow_slice){.data = (const uint8_t *)text, .len = strlen(text)};
}

bool model_check_name(struct errors *errors, struct place place, const char *name)
{
    if (name == NULL || !names_is_identifier(name)) {
        errors_add(errors, place, "'%s' is not a name", name != NULL ? name : "");
        return false;
    }
    return true;
}

static void put_once(struct build *build, struct bow__bytes_map *map, struct place place,
                     const char *name, void *value)
{
    if (bow__bytes_map_get(map, key_of(name)) != NULL) {
        errors_add(build->errors, place, "'%s' is declared twice", name);
        return;
    }
    memory_check(bow__bytes_map_put(map, key_of(name), value));
}

const char *model_effective_name(struct memory *memory, const struct model_file *file,
                                 const char *full_name)
{
    const char *c_package = file->options.c_package;

    if (c_package == NULL) {
        return full_name;
    }
    return memory_printf(memory, "%s%s%s", c_package, *file->package == '\0' ? "." : "",
                         full_name + strlen(file->package));
}

static const char *full_name_in(struct memory *memory, const char *scope, const char *name)
{
    return memory_printf(memory, "%s%s%s", scope, *scope != '\0' ? "." : "", name);
}

static size_t count_messages(Google__Protobuf__DescriptorProto *const *messages, size_t n_messages)
{
    size_t n = n_messages;

    for (size_t i = 0; i < n_messages; i++) {
        n += count_messages(messages[i]->nested_type, messages[i]->n_nested_type);
    }
    return n;
}

static size_t count_enums(Google__Protobuf__DescriptorProto *const *messages, size_t n_messages)
{
    size_t n = 0;

    for (size_t i = 0; i < n_messages; i++) {
        n += messages[i]->n_enum_type;
        n += count_enums(messages[i]->nested_type, messages[i]->n_nested_type);
    }
    return n;
}

static void add_enum(struct build *build, struct model_file *file, const char *scope,
                     struct place place, const Google__Protobuf__EnumDescriptorProto *proto)
{
    struct memory *memory = build->model->memory;

    if (!model_check_name(build->errors, place, proto->name)) {
        return;
    }
    struct model_enum *added = &file->enums[file->n_enums++];
    const char *full_name = full_name_in(memory, scope, proto->name);
    const char *c = model_effective_name(memory, file, full_name);
    *added = (struct model_enum){
        .proto = proto,
        .file = file,
        .place = place,
        .full_name = full_name,
        .c_name = names_type(memory, names_full_camel(memory, c)),
        .lower = names_full_lower(memory, c),
        .upper = names_full_upper(memory, c),
        .values = memory_array(memory, proto->n_value, sizeof(*added->values)),
        .n_values = proto->n_value,
    };
    for (size_t i = 0; i < proto->n_value; i++) {
        added->values[i] = (struct model_value){
            .proto = proto->value[i],
            .place = place_within(memory, place, ENUM_VALUES, i),
        };
        model_check_name(build->errors, place, proto->value[i]->name);
    }
    if (proto->n_value == 0) {
        errors_add(build->errors, place, "enum '%s' has no value", proto->name);
    }
    put_once(build, &build->model->enums_by_name, place, full_name, added);
}

static bool is_map_entry(const Google__Protobuf__DescriptorProto *proto)
{
    return proto->options != NULL && proto->options->map_entry;
}

/* Of messages inside others no pack functions are made, unless an option asks for them. */
static struct helper_options inner_helpers(struct helper_options helpers)
{
    helpers.with_pack = helpers.with_pack && helpers.is_pack_chosen;
    return helpers;
}

static void add_message(struct build *build, struct model_file *file, const char *scope,
                        struct place place, const Google__Protobuf__DescriptorProto *proto,
                        struct helper_options helpers)
{
    struct memory *memory = build->model->memory;

    if (!model_check_name(build->errors, place, proto->name)) {
        return;
    }
    struct model_message *added = &file->messages[file->n_messages++];
    const char *full_name = full_name_in(memory, scope, proto->name);
    const char *c = model_effective_name(memory, file, full_name);
    *added = (struct model_message){
        .proto = proto,
        .file = file,
        .place = place,
        .full_name = full_name,
        .c_name = names_type(memory, names_full_camel(memory, c)),
        .lower = names_full_lower(memory, c),
        .upper = names_full_upper(memory, c),
        .helpers = options_helpers(proto->options, helpers),
        .is_map_entry = is_map_entry(proto),
    };
    put_once(build, &build->model->messages_by_name, place, full_name, added);

    for (size_t i = 0; i < proto->n_enum_type; i++) {
        add_enum(build, file, full_name, place_within(memory, place, MESSAGE_ENUMS, i),
                 proto->enum_type[i]);
    }
    for (size_t i = 0; i < proto->n_nested_type; i++) {
        add_message(build, file, full_name, place_within(memory, place, MESSAGE_MESSAGES, i),
                    proto->nested_type[i], inner_helpers(added->helpers));
    }
}

static void add_types(struct build *build, struct model_file *file)
{
    struct memory *memory = build->model->memory;
    const Google__Protobuf__FileDescriptorProto *proto = file->proto;
    size_t n_messages = count_messages(proto->message_type, proto->n_message_type);
    size_t n_enums = proto->n_enum_type + count_enums(proto->message_type, proto->n_message_type);

    file->messages = memory_array(memory, n_messages, sizeof(*file->messages));
    file->enums = memory_array(memory, n_enums, sizeof(*file->enums));
    for (size_t i = 0; i < proto->n_enum_type; i++) {
        add_enum(build, file, file->package, place_within(memory, file->place, FILE_ENUMS, i),
                 proto->enum_type[i]);
    }
    for (size_t i = 0; i < proto->n_message_type; i++) {
        add_message(build, file, file->package, place_within(memory, file->place, FILE_MESSAGES, i),
                    proto->message_type[i], file->options.helpers);
    }
}

static bool check_package(struct build *build, const struct model_file *file, const char *package)
{
    struct memory *memory = build->model->memory;

    while (*package != '\0') {
        size_t len = strcspn(package, ".");
        if (!model_check_name(build->errors, file->place, memory_dup(memory, package, len))) {
            return false;
        }
        package += len + (package[len] == '.');
    }
    return true;
}

static bool is_named(const Bowline__Codegen__Request *request, const char *name)
{
    for (size_t i = 0; i < request->n_file_to_generate; i++) {
        if (strcmp(request->file_to_generate[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static const char *file_symbol(struct memory *memory, const struct model_file *file)
{
    const char *package = names_full_lower(
        memory, file->options.c_package != NULL ? file->options.c_package : file->package);

    return memory_printf(memory, "%s%sfile__%s", package, *package != '\0' ? "__" : "", file->id);
}

/* Whether it can stand between the quotes of an #include, where nothing is escaped and two question
 * marks may begin a trigraph. */
static bool is_includable(const char *name)
{
    return name != NULL && *name != '\0' && strpbrk(name, "\n\r\"\\") == NULL &&
           strstr(name, "??") == NULL;
}

static void add_file(struct build *build, struct model_file *file,
                     const Google__Protobuf__FileDescriptorProto *proto)
{
    struct memory *memory = build->model->memory;

    *file = (struct model_file){
        .proto = proto,
        .place = {.file = proto},
        .name = proto->name,
        .package = proto->package != NULL ? proto->package : "",
        .is_proto3 = proto->syntax != NULL && strcmp(proto->syntax, "proto3") == 0,
    };
    options_of_file(memory, proto->options, &file->options);
    if (!is_includable(file->name)) {
        errors_add(build->errors, (struct place){0}, "a file of the request has no usable name");
        file->name = "";
        return;
    }
    file->stem = names_file_stem(memory, file->name);
    file->id = names_file_id(memory, file->name);
    put_once(build, &build->model->files_by_name, file->place, file->name, file);
    const char *c_package = file->options.c_package;
    if (!check_package(build, file, file->package) ||
        (c_package != NULL && !check_package(build, file, c_package))) {
        return;
    }
    file->symbol = file_symbol(memory, file);
    add_types(build, file);
}

static void resolve_imports(struct build *build, struct model_file *file)
{
    const Google__Protobuf__FileDescriptorProto *proto = file->proto;

    file->imports = memory_array(build->model->memory, proto->n_dependency, sizeof(*file->imports));
    for (size_t i = 0; i < proto->n_dependency; i++) {
        struct model_file *import =
            bow__bytes_map_get(&build->model->files_by_name, key_of(proto->dependency[i]));
        if (import == NULL) {
            errors_add(build->errors, file->place, "imports '%s', which the request lacks",
                       proto->dependency[i]);
            continue;
        }
        file->imports[file->n_imports++] = import;
    }
}

const struct model_message *model_find_message(const struct model *model, const char *type_name)
{
    if (type_name == NULL || type_name[0] != '.') {
        return NULL;
    }
    return bow__bytes_map_get(&model->messages_by_name, key_of(type_name + 1));
}

static const struct model_enum *find_enum(const struct model *model, const char *type_name)
{
    if (type_name == NULL || type_name[0] != '.') {
        return NULL;
    }
    return bow__bytes_map_get(&model->enums_by_name, key_of(type_name + 1));
}

static bool is_message_type(Google__Protobuf__FieldDescriptorProto__Type type)
{
    return type == GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_MESSAGE ||
           type == GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_GROUP;
}

static bool is_known_type(Google__Protobuf__FieldDescriptorProto__Type type)
{
    return type >= GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_DOUBLE &&
           type <= GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_SINT64;
}

static void resolve_type(struct build *build, struct model_field *field)
{
    const Google__Protobuf__FieldDescriptorProto *proto = field->proto;

    if (is_message_type(proto->type)) {
        field->message = model_find_message(build->model, proto->type_name);
        field->type_file = field->message != NULL ? field->message->file : NULL;
    } else if (proto->type == GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_ENUM) {
        field->enumeration = find_enum(build->model, proto->type_name);
        field->type_file = field->enumeration != NULL ? field->enumeration->file : NULL;
    } else {
        if (!is_known_type(proto->type)) {
            errors_add(build->errors, field->place, "field '%s' has no type", proto->name);
        }
        return;
    }
    if (field->type_file == NULL) {
        errors_add(build->errors, field->place, "type '%s' is not declared in the request",
                   proto->type_name != NULL ? proto->type_name : "");
    }
}

static void resolve_kind(struct model_field *field)
{
    const Google__Protobuf__FieldDescriptorProto *proto = field->proto;
    bool is_string = proto->type == GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_STRING;
    bool as_bytes = is_string && options_string_as_bytes(proto->options);

    field->is_string = is_string && !as_bytes;
    field->is_bytes =
        as_bytes || proto->type == GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_BYTES;
    field->is_deprecated = proto->options != NULL && proto->options->deprecated;
    field->is_secret = options_is_secret(proto->options);
}

/* From the bytes of the file, along the field's place: what libprotobuf-c has decoded ends at a
 * NUL. */
static struct bow_slice default_bytes(const struct model_file *file,
                                      const struct model_field *field)
{
    struct bow_slice bytes = file->bytes;
    bool is_there = field->has_default;

    for (size_t i = 0; is_there && i + 1 < field->place.n_path; i += 2) {
        is_there = wire_find(bytes, (uint32_t)field->place.path[i],
                             (size_t)field->place.path[i + 1], &bytes);
    }
    if (!is_there || !wire_find(bytes, FIELD_DEFAULT, 0, &bytes)) {
        return (struct bow_slice){0};
    }
    return bytes;
}

static void resolve_field(struct build *build, const struct model_message *message,
                          struct model_field *field,
                          const Google__Protobuf__FieldDescriptorProto *proto)
{
    field->proto = proto;
    field->oneof_index = -1;
    if (!model_check_name(build->errors, field->place, proto->name)) {
        return;
    }
    field->is_repeated =
        proto->label == GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__LABEL__LABEL_REPEATED;
    field->is_group = proto->type == GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_GROUP;
    field->is_proto3_optional = proto->proto3_optional;
    resolve_kind(field);
    resolve_type(build, field);
    field->has_default =
        proto->default_value != NULL && !field->is_repeated && field->message == NULL;
    field->default_bytes = default_bytes(message->file, field);
    field->is_map = field->is_repeated && field->message != NULL && field->message->is_map_entry;
    if (!proto->has_oneof_index) {
        return;
    }
    if (proto->oneof_index < 0 || (size_t)proto->oneof_index >= message->proto->n_oneof_decl) {
        errors_add(build->errors, field->place, "names a oneof that is not there");
        return;
    }
    field->oneof = &message->oneofs[proto->oneof_index];
    field->oneof_index = field->is_proto3_optional ? -1 : proto->oneof_index;
}

/* A union has to have a member. */
static void check_oneofs(struct build *build, const struct model_message *message)
{
    bool *has_field = memory_array(build->model->memory, message->n_oneofs, sizeof(*has_field));

    for (size_t i = 0; i < message->n_fields; i++) {
        if (message->fields[i].oneof != NULL) {
            has_field[message->fields[i].oneof - message->oneofs] = true;
        }
    }
    for (size_t i = 0; i < message->n_oneofs; i++) {
        if (!has_field[i]) {
            errors_add(build->errors, message->oneofs[i].place, "oneof '%s' has no field",
                       message->oneofs[i].proto->name);
        }
    }
}

static void resolve_message(struct build *build, struct model_message *message)
{
    struct memory *memory = build->model->memory;
    const Google__Protobuf__DescriptorProto *proto = message->proto;

    message->oneofs = memory_array(memory, proto->n_oneof_decl, sizeof(*message->oneofs));
    message->n_oneofs = proto->n_oneof_decl;
    for (size_t i = 0; i < proto->n_oneof_decl; i++) {
        message->oneofs[i] = (struct model_oneof){
            .proto = proto->oneof_decl[i],
            .place = place_within(memory, message->place, MESSAGE_ONEOFS, i),
        };
        model_check_name(build->errors, message->place, proto->oneof_decl[i]->name);
    }
    message->fields = memory_array(memory, proto->n_field, sizeof(*message->fields));
    message->n_fields = proto->n_field;
    for (size_t i = 0; i < proto->n_field; i++) {
        message->fields[i].place = place_within(memory, message->place, MESSAGE_FIELDS, i);
        resolve_field(build, message, &message->fields[i], proto->field[i]);
    }
    check_oneofs(build, message);
}

static void resolve_file(struct build *build, struct model_file *file)
{
    struct memory *memory = build->model->memory;
    const Google__Protobuf__FileDescriptorProto *proto = file->proto;

    resolve_imports(build, file);
    for (size_t i = 0; i < file->n_messages; i++) {
        resolve_message(build, &file->messages[i]);
    }
    file->services = memory_array(memory, proto->n_service, sizeof(*file->services));
    for (size_t i = 0; i < proto->n_service; i++) {
        struct model_service *service = &file->services[file->n_services];
        struct place place = place_within(memory, file->place, FILE_SERVICES, i);
        if (model_add_service(build->model, build->errors, file, place, proto->service[i],
                              service)) {
            file->n_services++;
        }
    }
}

static void check_named_files(struct build *build, const Bowline__Codegen__Request *request)
{
    for (size_t i = 0; i < request->n_file_to_generate; i++) {
        const char *name = request->file_to_generate[i];
        if (bow__bytes_map_get(&build->model->files_by_name, key_of(name)) == NULL) {
            errors_add(build->errors, (struct place){0}, "the request lacks the file '%s'", name);
        }
    }
}

void model_build(struct model *model, struct memory *memory, const struct request *given,
                 bool with_imports, struct errors *errors)
{
    const Bowline__Codegen__Request *request = given->message;
    struct build build = {.model = model, .errors = errors};

    *model = (struct model){.memory = memory};
    bow__bytes_map_init(&model->files_by_name, memory->context, 0);
    bow__bytes_map_init(&model->messages_by_name, memory->context, 0);
    bow__bytes_map_init(&model->enums_by_name, memory->context, 0);
    model->files = memory_array(memory, request->n_proto_file, sizeof(*model->files));
    model->n_files = request->n_proto_file;
    for (size_t i = 0; i < model->n_files; i++) {
        add_file(&build, &model->files[i], request->proto_file[i]);
        model->files[i].bytes = given->files[i];
        model->files[i].is_named = is_named(request, model->files[i].name);
        model->files[i].is_wanted = with_imports || model->files[i].is_named;
    }
    check_named_files(&build, request);
    if (errors->n_errors > 0) {
        return;
    }
    for (size_t i = 0; i < model->n_files; i++) {
        resolve_file(&build, &model->files[i]);
    }
}

void model_fini(struct model *model)
{
    bow__bytes_map_fini(&model->files_by_name);
    bow__bytes_map_fini(&model->messages_by_name);
    bow__bytes_map_fini(&model->enums_by_name);
}

bool model_is_generated(const struct model_file *file)
{
    return file->is_wanted && !file->options.no_generate;
}

bool model_is_small(const struct model_file *file)
{
    const Google__Protobuf__FileOptions *options = file->proto->options;

    return options != NULL &&
           options->optimize_for == GOOGLE__PROTOBUF__FILE_OPTIONS__OPTIMIZE_MODE__CODE_SIZE;
}

static int compare_numbers(const void *a, const void *b)
{
    int32_t x = (*(const struct model_field *const *)a)->proto->number;
    int32_t y = (*(const struct model_field *const *)b)->proto->number;

    return (x > y) - (x < y);
}

const struct model_field **model_fields_by_number(struct memory *memory,
                                                  const struct model_message *message)
{
    const struct model_field **sorted =
        memory_array(memory, message->n_fields, sizeof(const struct model_field *));

    for (size_t i = 0; i < message->n_fields; i++) {
        sorted[i] = &message->fields[i];
    }
    if (message->n_fields > 0) {
        qsort(sorted, message->n_fields, sizeof(const struct model_field *), compare_numbers);
    }
    return sorted;
}

static const struct model_field *entry_field(const struct model_field *map, int32_t number)
{
    const struct model_message *entry = map->message;

    return &entry->fields[entry->fields[0].proto->number == number ? 0 : 1];
}

const struct model_field *model_map_key(const struct model_field *map)
{
    return entry_field(map, 1);
}

const struct model_field *model_map_value(const struct model_field *map)
{
    return entry_field(map, 2);
}
