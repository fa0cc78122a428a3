/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Memory, names and reasons of a schema. Knows nothing of what is made of them.
 */
#include "rpc/schema/schema.h"
#include <bowline/limits.h>

#include <errno.h>
#include <stdio.h>

#define SHOWN_NAME_BYTES 200u

void *bow__schema_array(struct bow_schema *schema, size_t n, size_t size)
{
    size_t n_bytes = 0;

    if (__builtin_mul_overflow(n, size, &n_bytes)) {
        bow__arena_note_failure(&schema->arena);
        return NULL;
    }
    void *memory = bow__arena_alloc(&schema->arena, n_bytes);
    if (memory != NULL) {
        memset(memory, 0, n_bytes);
    }
    return memory;
}

/* Reasons */

static void put_name(struct bow__text *reason, const char *name)
{
    bow__text_escape(reason, bow__schema_slice(name), SHOWN_NAME_BYTES);
}

int bow__schema_refuse(struct bow__text *reason, int rc, const struct bow__schema_file *file,
                       const char *element, const char *format, ...)
{
    va_list args;

    bow__text_clear(reason);
    if (file != NULL && file->file.name != NULL) {
        put_name(reason, file->file.name);
        bow__text_printf(reason, ": ");
    }
    if (element != NULL) {
        put_name(reason, element);
        bow__text_printf(reason, ": ");
    }
    va_start(args, format);
    bow__text_vprintf(reason, format, args);
    va_end(args);
    return rc;
}

int bow__schema_no_memory(const struct bow_schema *schema, struct bow__text *reason)
{
    bow__text_clear(reason);
    if (schema->arena.used >= BOW_LIMIT_SCHEMA_MEMORY_BYTES / 2) {
        bow__text_printf(reason,
                         "the files declare more than fits into BOW_LIMIT_SCHEMA_MEMORY_BYTES, %zu",
                         BOW_LIMIT_SCHEMA_MEMORY_BYTES);
        return -EMSGSIZE;
    }
    bow__text_printf(reason, "no memory");
    return -ENOMEM;
}

/* Names */

bool bow__schema_is_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

    return name != NULL && name[0] != '\0' && !(name[0] >= '0' && name[0] <= '9') &&
           name[strspn(name, letters)] == '\0';
}

int bow__schema_full_name(struct bow_schema *schema, const struct bow__schema_file *file,
                          const char *scope, const char *name, struct bow__text *reason,
                          const char **ret_full_name)
{
    if (!bow__schema_is_name(name)) {
        (void)bow__schema_refuse(reason, -EBADMSG, file, scope[0] != '\0' ? scope : NULL,
                                 "declares something by a name that is none: \"");
        put_name(reason, name != NULL ? name : "");
        bow__text_printf(reason, "\"");
        return -EBADMSG;
    }
    size_t n_scope = strlen(scope);
    size_t size = n_scope + strlen(name) + 2;
    if (size > BOW_LIMIT_SCHEMA_NAME_BYTES) {
        return bow__schema_refuse(reason, -EMSGSIZE, file, scope[0] != '\0' ? scope : NULL,
                                  "a name is longer than BOW_LIMIT_SCHEMA_NAME_BYTES, %zu",
                                  BOW_LIMIT_SCHEMA_NAME_BYTES);
    }
    char *full_name = bow__arena_alloc_bytes(&schema->arena, size);
    if (full_name == NULL) {
        return bow__schema_no_memory(schema, reason);
    }
    (void)snprintf(full_name, size, "%s%s%s", scope, n_scope > 0 ? "." : "", name);
    *ret_full_name = full_name;
    return 0;
}

/* Types */

static const char *kind_name(enum bow__symbol_kind kind)
{
    switch (kind) {
    case BOW__SYMBOL_MESSAGE:
        return "a message";
    case BOW__SYMBOL_ENUM:
        return "an enum";
    case BOW__SYMBOL_SERVICE:
        return "a service";
    default:
        return "a method";
    }
}

/* That a file is missing is why, mostly. */
static void add_missing_file(const struct bow_schema *schema, const struct bow__schema_file *file,
                             struct bow__text *reason)
{
    for (size_t i = 0; i < file->proto->n_dependency; i++) {
        const char *name = file->proto->dependency[i];
        if (bow__bytes_map_get(&schema->files_by_name, bow__schema_slice(name)) == NULL) {
            bow__text_printf(reason, "; add the file that it imports, ");
            put_name(reason, name);
            return;
        }
    }
}

int bow__schema_resolve(struct bow_schema *schema, const struct bow__schema_file *file,
                        const char *element, const char *type_name, enum bow__symbol_kind kind,
                        struct bow__text *reason, struct bow__schema_symbol **ret_symbol)
{
    struct bow__schema_symbol *symbol = NULL;

    if (type_name != NULL && type_name[0] == '.') {
        symbol = bow__schema_find(schema, type_name + 1);
    }
    if (symbol == NULL) {
        (void)bow__schema_refuse(reason, -EBADMSG, file, element, "no file declares its type ");
        put_name(reason, type_name != NULL ? type_name : "\"\"");
        add_missing_file(schema, file, reason);
        return -EBADMSG;
    }
    if (symbol->kind != kind) {
        (void)bow__schema_refuse(reason, -EBADMSG, file, element, "its type ");
        put_name(reason, type_name);
        bow__text_printf(reason, " is %s, not %s", kind_name(symbol->kind), kind_name(kind));
        return -EBADMSG;
    }
    *ret_symbol = symbol;
    return 0;
}
