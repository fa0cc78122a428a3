/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Syntax, and types for which no C is made.
 */

#include "codegen/check.h"

#include <string.h>

struct check {
    struct errors *errors;
    const struct model_file *file;
};

/* Of FileDescriptorProto.syntax; protoc gives `edition` no place of its own before 25. */
static const int32_t syntax_path[] = {12};

static void check_syntax(const struct check *check)
{
    const char *syntax = check->file->proto->syntax;
    struct place place = {.file = check->file->proto, .path = syntax_path, .n_path = 1};

    if (syntax != NULL && *syntax != '\0' && strcmp(syntax, "proto2") != 0 &&
        strcmp(syntax, "proto3") != 0) {
        errors_add(check->errors, place,
                   "syntax \"%s\" is not supported: write syntax = \"proto3\" or "
                   "\"proto2\"",
                   syntax);
    }
}

/* There is no header of such a file, so its types are not declared. */
static void check_type_file(const struct check *check, struct place place, const char *what,
                            const char *name, const struct model_file *type_file)
{
    if (type_file == NULL || type_file == check->file || !type_file->options.no_generate) {
        return;
    }
    errors_add(check->errors, place,
               "%s '%s' has a type of %s, for which no C is made since it says option "
               "(pb_c_file).no_generate: remove that option there",
               what, name, type_file->name);
}

static void check_service(const struct check *check, const struct model_service *service)
{
    for (size_t i = 0; i < service->n_methods; i++) {
        const struct model_method *method = &service->methods[i];
        check_type_file(check, method->place, "method", method->name, method->input->file);
        if (method->output->file != method->input->file) {
            check_type_file(check, method->place, "method", method->name, method->output->file);
        }
    }
}

static void check_file(const struct check *check)
{
    const struct model_file *file = check->file;

    check_syntax(check);
    for (size_t i = 0; i < file->n_messages; i++) {
        for (size_t j = 0; j < file->messages[i].n_fields; j++) {
            const struct model_field *field = &file->messages[i].fields[j];
            check_type_file(check, field->place, "field", field->proto->name, field->type_file);
        }
    }
    for (size_t i = 0; i < file->n_services; i++) {
        check_service(check, &file->services[i]);
    }
}

/* A file of options says so in good faith; one with services would lose them without a word. */
static void check_not_generated(const struct check *check)
{
    for (size_t i = 0; i < check->file->n_services; i++) {
        errors_add(check->errors, check->file->services[i].place,
                   "service '%s' stands in a file with option (pb_c_file).no_generate, for which "
                   "no C is made: remove that option",
                   check->file->services[i].proto->name);
    }
}

void check_model(const struct model *model, struct errors *errors)
{
    for (size_t i = 0; i < model->n_files; i++) {
        const struct check check = {.errors = errors, .file = &model->files[i]};
        if (model_is_generated(check.file)) {
            check_file(&check);
        } else if (check.file->is_named) {
            check_not_generated(&check);
        }
    }
}
