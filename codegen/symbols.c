/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One table of all symbols, each with what it stands for. Members of structs are
 * checked elsewhere.
 */

#include "codegen/symbols.h"
#include "codegen/message_names.h"
#include "codegen/names.h"

#include <string.h>

enum { ENUM_VALUES = 2 }; /* of EnumDescriptorProto, for places */

/* What a symbol comes from; each has several. */
struct owner {
    const struct model_file *file;
    struct place place;
    const char *what;   /* "method demo.Greeter.SayHello" */
    const char *option; /* that gives it another name in C; NULL: there is none */
    bool is_reported;
};

struct symbols {
    struct memory *memory;
    struct errors *errors;
    struct bow__bytes_map by_name;
};

static void report(struct symbols *symbols, struct owner *later, const struct owner *earlier,
                   const char *name)
{
    const char *option = later->option != NULL ? later->option : earlier->option;
    const char *remedy = "rename one of them";
    int line = 0;
    int column = 0;

    if (option != NULL) {
        remedy = memory_printf(symbols->memory, "give one of them another name in C with option %s",
                               option);
    } else if (later->file != earlier->file) {
        remedy = "rename one of them, or give one of the files an option (pb_c_file).c_package";
    }
    later->is_reported = true;
    place_position(earlier->place, &line, &column);
    errors_add(symbols->errors, later->place,
               "%s would be '%s' in C, and so would %s (%s:%d:%d): %s", later->what, name,
               earlier->what, earlier->file->name, line, column, remedy);
}

static void add(struct symbols *symbols, struct owner *owner, const char *name)
{
    struct bow_slice key = {.data = (const uint8_t *)name, .len = strlen(name)};
    const struct owner *there = bow__bytes_map_get(&symbols->by_name, key);
    bool is_generated = model_is_generated(owner->file);

    if (owner->is_reported) {
        return;
    }
    if (there == NULL) {
        memory_check(bow__bytes_map_put(&symbols->by_name, key, owner));
    } else if (is_generated || model_is_generated(there->file)) {
        report(symbols, owner, there, name);
    }
    if (is_generated && !owner->is_reported && !names_is_identifier(name)) {
        owner->is_reported = true;
        errors_add(symbols->errors, owner->place,
                   "%s would be '%s', which is no name in C: rename it", owner->what, name);
    }
}

/* The symbols `stem` + each of `endings`, which NULL ends. */
static void add_all(struct symbols *symbols, struct owner *owner, const char *stem,
                    const char *const *endings)
{
    for (; *endings != NULL; endings++) {
        add(symbols, owner, memory_printf(symbols->memory, "%s%s", stem, *endings));
    }
}

static struct owner *new_owner(struct symbols *symbols, const struct model_file *file,
                               struct place place, const char *kind, const char *name)
{
    struct owner *owner = memory_alloc(symbols->memory, sizeof(*owner));

    *owner = (struct owner){
        .file = file,
        .place = place,
        .what = memory_printf(symbols->memory, "%s %s", kind, name),
    };
    return owner;
}

static void add_oneof(struct symbols *symbols, const struct model_message *message, size_t index)
{
    struct memory *memory = symbols->memory;
    const char *name = message->proto->oneof_decl[index]->name;
    const char *full = memory_printf(memory, "%s.%s", message->full_name, name);
    struct owner *owner = new_owner(symbols, message->file, message->place, "oneof", full);
    const char *upper = names_upper(memory, name);

    add(symbols, owner,
        memory_printf(memory, "%s__%sCase", message->c_name, names_camel(memory, name)));
    add(symbols, owner, memory_printf(memory, "%s__%s__NOT_SET", message->upper, upper));
    for (size_t i = 0; i < message->n_fields; i++) {
        const struct model_field *field = &message->fields[i];
        if (field->proto->has_oneof_index && (size_t)field->proto->oneof_index == index) {
            add(symbols, owner,
                memory_printf(memory, "%s__%s_%s", message->upper, upper,
                              names_upper(memory, field->proto->name)));
        }
    }
}

static void add_functions(struct symbols *symbols, struct owner *owner,
                          const struct model_message *message)
{
    struct message_functions functions;

    message_functions_of(symbols->memory, message, &functions);
    for (size_t i = 0; i < functions.n_functions; i++) {
        add(symbols, owner, functions.functions[i].name);
    }
}

static void add_message(struct symbols *symbols, const struct model_message *message)
{
    static const char *const lower_endings[] = {
        "__descriptor",     "__init",   "__get_packed_size", "__pack",
        "__pack_to_buffer", "__unpack", "__free_unpacked",   NULL,
    };
    static const char *const camel_endings[] = {"", "_Closure", NULL};
    struct memory *memory = symbols->memory;
    struct owner *owner =
        new_owner(symbols, message->file, message->place, "message", message->full_name);

    add_all(symbols, owner, message->c_name, camel_endings);
    add_all(symbols, owner, message->lower, lower_endings);
    add(symbols, owner, memory_printf(memory, "%s__INIT", message->upper));
    for (size_t i = 0; i < message->n_fields; i++) {
        const struct model_field *field = &message->fields[i];
        if (field->proto->default_value != NULL) {
            add(symbols, owner,
                memory_printf(memory, "%s__%s__default_value", message->lower,
                              names_lower(memory, field->proto->name)));
        }
    }
    for (size_t i = 0; i < message->proto->n_oneof_decl; i++) {
        add_oneof(symbols, message, i);
    }
    if (message->file->has_functions) {
        add_functions(symbols, owner, message);
    }
}

static void add_enum(struct symbols *symbols, const struct model_enum *type)
{
    struct memory *memory = symbols->memory;
    struct owner *owner = new_owner(symbols, type->file, type->place, "enum", type->full_name);

    add(symbols, owner, type->c_name);
    add(symbols, owner, memory_printf(memory, "%s__descriptor", type->lower));
    if (type->file->has_functions) {
        add(symbols, owner, message_enum_name(memory, type));
        add(symbols, owner, message_enum_parse(memory, type));
    }
    for (size_t i = 0; i < type->proto->n_value; i++) {
        const char *name = type->proto->value[i]->name;
        const char *full = memory_printf(memory, "%s.%s", type->full_name, name);
        struct place place = place_within(memory, type->place, ENUM_VALUES, i);
        add(symbols, new_owner(symbols, type->file, place, "enum value", full),
            memory_printf(memory, "%s__%s", type->upper, name));
    }
}

static void add_method(struct symbols *symbols, const struct model_service *service,
                       const struct model_method *method)
{
    static const char *const endings[] = {
        "__method", "__invoke", "__reply", "__call", "__fn", "__on_done", "__start", NULL,
    };
    static const char *const stream_endings[] = {
        "__call_events",
        "__call_on_closed",
        "__call_on_half_close",
        "__call_on_message",
        "__call_on_writable",
        "__call_thunks",
        "__finish",
        "__listen",
        "__open",
        "__send",
        "__stream",
        "__stream_events",
        "__stream_finish",
        "__stream_on_closed",
        "__stream_on_headers",
        "__stream_on_message",
        "__stream_on_writable",
        "__stream_receive",
        "__stream_send",
        "__stream_thunks",
        "__stream_write",
        NULL,
    };
    const char *full = memory_printf(symbols->memory, "%s.%s", service->full_name, method->name);
    struct owner *owner = new_owner(symbols, service->file, method->place, "method", full);

    owner->option = "(bowline.c_name)";
    add_all(symbols, owner, method->lower, endings);
    if (method->is_streaming) {
        add_all(symbols, owner, method->lower, stream_endings);
    }
}

static void add_service(struct symbols *symbols, const struct model_service *service)
{
    static const char *const endings[] = {
        "__service", "__methods", "__handlers", "__serve", NULL,
    };
    struct owner *owner =
        new_owner(symbols, service->file, service->place, "service", service->full_name);

    owner->option = "(bowline.c_service_name)";
    add_all(symbols, owner, service->lower, endings);
    /* Methods of a service that clashes as a whole would all be said to clash as well. */
    for (size_t i = 0; i < service->n_methods && !owner->is_reported; i++) {
        add_method(symbols, service, &service->methods[i]);
    }
}

static void add_file(struct symbols *symbols, const struct model_file *file)
{
    add(symbols, new_owner(symbols, file, file->place, "file", file->name), file->symbol);
    for (size_t i = 0; i < file->n_enums; i++) {
        add_enum(symbols, &file->enums[i]);
    }
    for (size_t i = 0; i < file->n_messages; i++) {
        add_message(symbols, &file->messages[i]);
    }
    for (size_t i = 0; i < file->n_services; i++) {
        add_service(symbols, &file->services[i]);
    }
}

void symbols_check(const struct model *model, struct errors *errors)
{
    struct symbols symbols = {.memory = model->memory, .errors = errors};

    bow__bytes_map_init(&symbols.by_name, model->memory->context, 0);
    for (size_t i = 0; i < model->n_files; i++) {
        if (!model->files[i].options.no_generate) {
            add_file(&symbols, &model->files[i]);
        }
    }
    bow__bytes_map_fini(&symbols.by_name);
}
