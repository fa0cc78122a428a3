/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One table of all symbols, each with what it stands for and the file that has it.
 * Members of structs are named elsewhere.
 */

#include "codegen/symbols.h"
#include "codegen/message_names.h"
#include "codegen/model_service.h"
#include "codegen/names.h"
#include "codegen/names_reserved.h"

#include <string.h>

/* What a symbol comes from; each has several. */
struct owner {
    size_t file;
    struct place place;
    const char *what;   /* "method demo.Greeter.SayHello" */
    const char *option; /* that gives it another name in C; NULL: there is none */
    bool is_reported;
};

/* One of those that have a name, of which there are several when their files do not see each
 * other. The first one stays the first. */
struct holder {
    struct owner *owner;
    struct holder *next;
};

/* Behind names that are not free; further ones are numbered. */
#define UNDERSCORES "________"
#define MAX_UNDERSCORES (sizeof(UNDERSCORES) - 1)

struct symbols {
    struct model *model;
    struct memory *memory;
    struct errors *errors;
    struct bow__bytes_map holders;
    struct bow__bytes_map trials; /* of a file and a name: how often that was changed last */
    bool **sees; /* [i][j]: file i is file j, or imports it over any number of steps */
};

static struct bow_slice key_of(const char *name)
{
    return (struct bow_slice){.data = (const uint8_t *)name, .len = strlen(name)};
}

static const struct model_file *file_of(const struct symbols *symbols, const struct owner *owner)
{
    return &symbols->model->files[owner->file];
}

static bool is_free(const struct symbols *symbols, const struct owner *owner, const char *name)
{
    const struct holder *holder = bow__bytes_map_get(&symbols->holders, key_of(name));

    for (; holder != NULL; holder = holder->next) {
        if (symbols->sees[owner->file][holder->owner->file]) {
            return false;
        }
    }
    return !names_is_reserved(name);
}

static void report(struct symbols *symbols, struct owner *later, const struct owner *earlier,
                   const char *name)
{
    const char *option = later->option != NULL ? later->option : earlier->option;
    const char *remedy = "rename one of them, or give one of the files an option "
                         "(pb_c_file).c_package";
    int line = 0;
    int column = 0;

    if (option != NULL) {
        remedy = memory_printf(symbols->memory, "give one of them another name in C with option %s",
                               option);
    }
    later->is_reported = true;
    place_position(earlier->place, &line, &column);
    errors_add(symbols->errors, later->place,
               "%s would be '%s' in C, and so would %s (%s:%d:%d): %s", later->what, name,
               earlier->what, file_of(symbols, earlier)->name, line, column, remedy);
}

static void take(struct symbols *symbols, struct owner *owner, const char *name)
{
    struct holder *first = bow__bytes_map_get(&symbols->holders, key_of(name));
    struct holder *holder = memory_alloc(symbols->memory, sizeof(*holder));
    bool is_generated = model_is_generated(file_of(symbols, owner));

    if (file_of(symbols, owner)->options.no_generate) {
        return; /* there will be no C that has it */
    }
    *holder = (struct holder){.owner = owner};
    if (first == NULL) {
        memory_check(bow__bytes_map_put(&symbols->holders, key_of(name), holder));
        return;
    }
    holder->next = first->next;
    first->next = holder;
    if (!owner->is_reported &&
        (is_generated || model_is_generated(file_of(symbols, first->owner)))) {
        report(symbols, owner, first->owner, name);
    }
}

/* How often `name` was changed for the last of the file's that wanted it: what was not free then is
 * not now. Else as many messages of one name would cost the square of their number. */
static unsigned *trials_of(struct symbols *symbols, const struct owner *owner, const char *name)
{
    const char *key = memory_printf(symbols->memory, "%zu %s", owner->file, name);
    unsigned *n = bow__bytes_map_get(&symbols->trials, key_of(key));

    if (n == NULL) {
        n = memory_alloc(symbols->memory, sizeof(*n));
        *n = 0;
        memory_check(bow__bytes_map_put(&symbols->trials, key_of(key), n));
    }
    return n;
}

/* `name`, changed `n` times. */
static const char *changed(const struct symbols *symbols, const char *name, unsigned n)
{
    if (n <= MAX_UNDERSCORES) {
        return memory_printf(symbols->memory, "%s%.*s", name, (int)n, UNDERSCORES);
    }
    return memory_printf(symbols->memory, "%s_%u_", name, n);
}

/* `name`, or what it becomes so that it is free; it is then taken. */
static const char *take_free(struct symbols *symbols, struct owner *owner, const char *name)
{
    if (!is_free(symbols, owner, name)) {
        unsigned *n = trials_of(symbols, owner, name);
        const char *stem = name;
        while (!is_free(symbols, owner, name)) {
            name = changed(symbols, stem, ++*n);
        }
    }
    take(symbols, owner, name);
    return name;
}

/* `stem` + each of `endings`, which NULL ends. */
static bool all_free(const struct symbols *symbols, const struct owner *owner, const char *stem,
                     const char *const *endings)
{
    for (; *endings != NULL; endings++) {
        if (!is_free(symbols, owner, memory_printf(symbols->memory, "%s%s", stem, *endings))) {
            return false;
        }
    }
    return true;
}

static void take_all(struct symbols *symbols, struct owner *owner, const char *stem,
                     const char *const *endings)
{
    for (; *endings != NULL; endings++) {
        take(symbols, owner, memory_printf(symbols->memory, "%s%s", stem, *endings));
    }
}

static struct owner *new_owner(struct symbols *symbols, size_t file, struct place place,
                               const char *kind, const char *name)
{
    struct owner *owner = memory_alloc(symbols->memory, sizeof(*owner));

    *owner = (struct owner){
        .file = file,
        .place = place,
        .what = memory_printf(symbols->memory, "%s %s", kind, name),
    };
    return owner;
}

static void name_oneof(struct symbols *symbols, size_t file, const struct model_message *message,
                       struct model_oneof *oneof)
{
    struct memory *memory = symbols->memory;
    const char *name = oneof->proto->name;
    const char *full = memory_printf(memory, "%s.%s", message->full_name, name);
    struct owner *owner = new_owner(symbols, file, oneof->place, "oneof", full);
    const char *camel = names_camel(memory, name);
    const char *upper = memory_printf(memory, "%s__%s", message->upper, names_upper(memory, name));

    oneof->c_type =
        take_free(symbols, owner, memory_printf(memory, "%s__%sCase", message->c_name, camel));
    oneof->not_set = take_free(symbols, owner, memory_printf(memory, "%s__NOT_SET", upper));
    oneof->size_mark =
        take_free(symbols, owner, memory_printf(memory, "_%s__CASE_IS_INT_SIZE", upper));
    for (size_t i = 0; i < message->n_fields; i++) {
        struct model_field *field = &message->fields[i];
        if (field->oneof == oneof) {
            const char *piece = names_upper(memory, field->proto->name);
            field->constant =
                take_free(symbols, owner, memory_printf(memory, "%s_%s", upper, piece));
        }
    }
}

static void name_default(struct symbols *symbols, struct owner *owner,
                         const struct model_message *message, struct model_field *field)
{
    struct memory *memory = symbols->memory;
    const char *piece = names_lower(memory, field->proto->name);
    const char *stem = memory_printf(memory, "%s__%s__default_value", message->lower, piece);

    field->default_symbol = take_free(symbols, owner, stem);
    if (field->is_bytes) {
        field->default_data =
            take_free(symbols, owner, memory_printf(memory, "%s_data", field->default_symbol));
    }
}

static struct owner *name_message(struct symbols *symbols, size_t file,
                                  struct model_message *message)
{
    static const char *const lower_endings[] = {
        "__descriptor",
        "__init",
        "__get_packed_size",
        "__pack",
        "__pack_to_buffer",
        "__unpack",
        "__free_unpacked",
        "__field_descriptors",
        "__field_indices_by_name",
        "__number_ranges",
        "__fields",
        NULL,
    };
    static const char *const camel_endings[] = {"", "_Closure", NULL};
    static const char *const upper_endings[] = {"__INIT", NULL};
    struct owner *owner = new_owner(symbols, file, message->place, "message", message->full_name);

    const char *c_name = message->c_name;
    const char *lower = message->lower;
    const char *upper = message->upper;
    unsigned *n = trials_of(symbols, owner, memory_printf(symbols->memory, "%s %s", c_name, lower));
    for (;; (*n)++) {
        message->c_name = changed(symbols, c_name, *n);
        message->lower = changed(symbols, lower, *n);
        message->upper = changed(symbols, upper, *n);
        if (all_free(symbols, owner, message->c_name, camel_endings) &&
            all_free(symbols, owner, message->lower, lower_endings) &&
            all_free(symbols, owner, message->upper, upper_endings)) {
            break;
        }
    }
    take_all(symbols, owner, message->c_name, camel_endings);
    take_all(symbols, owner, message->lower, lower_endings);
    take_all(symbols, owner, message->upper, upper_endings);
    for (size_t i = 0; i < message->n_fields; i++) {
        if (message->fields[i].has_default) {
            name_default(symbols, owner, message, &message->fields[i]);
        }
    }
    for (size_t i = 0; i < message->n_oneofs; i++) {
        name_oneof(symbols, file, message, &message->oneofs[i]);
    }
    return owner;
}

static void name_values(struct symbols *symbols, size_t file, struct model_enum *type)
{
    struct memory *memory = symbols->memory;

    for (size_t i = 0; i < type->n_values; i++) {
        struct model_value *value = &type->values[i];
        const char *name = value->proto->name;
        const char *full = memory_printf(memory, "%s.%s", type->full_name, name);
        struct owner *owner = new_owner(symbols, file, value->place, "enum value", full);
        value->constant =
            take_free(symbols, owner, memory_printf(memory, "%s__%s", type->upper, name));
    }
}

static struct owner *name_enum(struct symbols *symbols, size_t file, struct model_enum *type)
{
    static const char *const camel_endings[] = {"", NULL};
    static const char *const lower_endings[] = {
        "__descriptor", "__value_ranges", "__enum_values_by_number", "__enum_values_by_name", NULL,
    };
    struct owner *owner = new_owner(symbols, file, type->place, "enum", type->full_name);

    const char *c_name = type->c_name;
    const char *lower = type->lower;
    const char *upper = type->upper;
    unsigned *n = trials_of(symbols, owner, memory_printf(symbols->memory, "%s %s", c_name, lower));
    for (;; (*n)++) {
        type->c_name = changed(symbols, c_name, *n);
        type->lower = changed(symbols, lower, *n);
        type->upper = changed(symbols, upper, *n);
        if (all_free(symbols, owner, type->c_name, camel_endings) &&
            all_free(symbols, owner, type->lower, lower_endings)) {
            break;
        }
    }
    take_all(symbols, owner, type->c_name, camel_endings);
    take_all(symbols, owner, type->lower, lower_endings);
    type->tag = take_free(symbols, owner, memory_printf(symbols->memory, "_%s", type->c_name));
    type->size_mark =
        take_free(symbols, owner, memory_printf(symbols->memory, "_%s_IS_INT_SIZE", type->upper));
    name_values(symbols, file, type);
    return owner;
}

static void name_method(struct symbols *symbols, size_t file, const struct model_service *service,
                        struct model_method *method)
{
    static const char *const endings[] = {
        "__method", "__invoke", "__reply", "__call", "__fn", "__on_done", "__start", NULL,
    };
    static const char *const stream_endings[] = {
        "__method",
        "__invoke",
        "__reply",
        "__call",
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
    const char *const *all = method->is_streaming ? stream_endings : endings;
    const char *full = memory_printf(symbols->memory, "%s.%s", service->full_name, method->name);
    struct owner *owner = new_owner(symbols, file, method->place, "method", full);

    owner->option = "(bowline.c_name)";
    const char *lower = memory_printf(symbols->memory, "%s__%s", service->lower, method->piece);
    unsigned *n = trials_of(symbols, owner, lower);
    for (method->lower = lower; !all_free(symbols, owner, method->lower, all);) {
        method->lower = changed(symbols, lower, ++*n);
    }
    take_all(symbols, owner, method->lower, all);
}

static void name_service(struct symbols *symbols, size_t file, struct model_service *service)
{
    static const char *const endings[] = {
        "__service", "__methods", "__handlers", "__serve", NULL,
    };
    struct owner *owner = new_owner(symbols, file, service->place, "service", service->full_name);

    owner->option = "(bowline.c_service_name)";
    const char *lower = service->lower;
    unsigned *n = trials_of(symbols, owner, lower);
    while (!all_free(symbols, owner, service->lower, endings)) {
        service->lower = changed(symbols, lower, ++*n);
    }
    take_all(symbols, owner, service->lower, endings);
    /* Methods of a service that clashes as a whole would all be said to clash as well. */
    for (size_t i = 0; i < service->n_methods && !owner->is_reported; i++) {
        name_method(symbols, file, service, &service->methods[i]);
    }
}

static void name_enum_functions(struct symbols *symbols, struct owner *owner,
                                struct model_enum *type)
{
    message_functions_name_enum(symbols->memory, type);
    type->name_function = take_free(symbols, owner, type->name_function);
    type->parse_function = take_free(symbols, owner, type->parse_function);
}

static void name_message_functions(struct symbols *symbols, struct owner *owner,
                                   struct model_message *message)
{
    message_functions_name(symbols->memory, message);
    for (size_t i = 0; i < message->n_functions; i++) {
        struct message_function *function = &message->functions[i];
        function->name = take_free(symbols, owner, function->name);
    }
}

/* Functions come behind all else in the file, so that nothing else has a name for their sake. */
static void name_file(struct symbols *symbols, size_t index)
{
    struct model_file *file = &symbols->model->files[index];
    struct owner **enums = memory_array(symbols->memory, file->n_enums, sizeof(struct owner *));
    struct owner **messages =
        memory_array(symbols->memory, file->n_messages, sizeof(struct owner *));

    file->symbol = take_free(symbols, new_owner(symbols, index, file->place, "file", file->name),
                             file->symbol);
    for (size_t i = 0; i < file->n_enums; i++) {
        enums[i] = name_enum(symbols, index, &file->enums[i]);
    }
    for (size_t i = 0; i < file->n_messages; i++) {
        messages[i] = name_message(symbols, index, &file->messages[i]);
    }
    for (size_t i = 0; i < file->n_services; i++) {
        name_service(symbols, index, &file->services[i]);
    }
    for (size_t i = 0; i < file->n_enums; i++) {
        name_enum_functions(symbols, enums[i], &file->enums[i]);
    }
    for (size_t i = 0; i < file->n_messages; i++) {
        name_message_functions(symbols, messages[i], &file->messages[i]);
    }
}

/* Imports come before those who import them, so theirs are known by then. */
static bool *seen_by(struct symbols *symbols, size_t index)
{
    const struct model *model = symbols->model;
    const struct model_file *file = &model->files[index];
    bool *sees = memory_array(symbols->memory, model->n_files, sizeof(*sees));

    sees[index] = true;
    for (size_t i = 0; i < file->n_imports; i++) {
        size_t import = (size_t)(file->imports[i] - model->files);
        const bool *theirs = symbols->sees[import];
        sees[import] = true;
        for (size_t j = 0; theirs != NULL && j < model->n_files; j++) {
            sees[j] = sees[j] || theirs[j];
        }
    }
    return sees;
}

void symbols_name(struct model *model, struct errors *errors)
{
    struct symbols symbols = {
        .model = model,
        .memory = model->memory,
        .errors = errors,
        .sees = memory_array(model->memory, model->n_files, sizeof(*symbols.sees)),
    };

    bow__bytes_map_init(&symbols.holders, model->memory->context, 0);
    bow__bytes_map_init(&symbols.trials, model->memory->context, 0);
    for (size_t i = 0; i < model->n_files; i++) {
        symbols.sees[i] = seen_by(&symbols, i);
        name_file(&symbols, i);
    }
    bow__bytes_map_fini(&symbols.holders);
    bow__bytes_map_fini(&symbols.trials);
    for (size_t i = 0; i < model->n_files; i++) {
        for (size_t j = 0; j < model->files[i].n_services; j++) {
            struct model_service *service = &model->files[i].services[j];
            service->hash = model_hash_service(service);
        }
    }
}
