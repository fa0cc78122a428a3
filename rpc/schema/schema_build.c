/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The life of a schema, and finding what it holds. All declarations come before all that refers to
 * them, so that files may come in any order.
 */
#include "base/alloc.h"
#include "rpc/messages/reason.h"
#include "rpc/schema/declare.h"
#include "rpc/schema/enum_type.h"
#include "rpc/schema/message_type.h"
#include "rpc/schema/schema_files.h"
#include "rpc/schema/service_type.h"
#include <bowline/limits.h>

#include <errno.h>
#include <stdlib.h>

/* Life */

int bow_schema_new(struct bow_context *context, struct bow_schema **ret_schema)
{
    struct bow_context *own = NULL;

    if (context == NULL) {
        int rc = bow_context_new(NULL, &own);
        if (rc < 0) {
            return rc;
        }
        context = own;
    }
    struct bow_schema *schema = bow__alloc_zero(context, sizeof(*schema));
    if (schema == NULL) {
        bow_context_unref(own);
        return -ENOMEM;
    }
    schema->context = own != NULL ? own : bow_context_ref(context);
    bow__arena_init(&schema->arena, context, NULL, 0, BOW_LIMIT_SCHEMA_MEMORY_BYTES);
    /* What is looked up may be a peer's, and so may be what is stored: but whoever aims for
     * collisions makes his own schema slow, and BOW_LIMIT_SCHEMA_BYTES bounds by how much. */
    bow__bytes_map_init(&schema->files_by_name, context, (uint64_t)(uintptr_t)schema);
    bow__bytes_map_init(&schema->symbols, context, (uint64_t)(uintptr_t)schema);
    bow__bytes_map_init(&schema->imports_by_name, context, (uint64_t)(uintptr_t)schema);
    schema->last_link = &schema->first;
    schema->last_import_link = &schema->first_import;
    *ret_schema = schema;
    return 0;
}

void bow_schema_free(struct bow_schema *schema)
{
    if (schema == NULL) {
        return;
    }
    struct bow_context *context = schema->context;
    bow__bytes_map_fini(&schema->files_by_name);
    bow__bytes_map_fini(&schema->imports_by_name);
    bow__bytes_map_fini(&schema->symbols);
    bow__arena_fini(&schema->arena);
    bow__free(context, schema, sizeof(*schema));
    bow_context_unref(context);
}

/* Building */

static int make_symbol(struct bow_schema *schema, struct bow__schema_symbol *symbol,
                       struct bow__text *reason)
{
    switch (symbol->kind) {
    case BOW__SYMBOL_MESSAGE:
        return bow__schema_make_message(schema, symbol, reason);
    case BOW__SYMBOL_ENUM:
        return bow__schema_make_enum(schema, symbol, reason);
    case BOW__SYMBOL_SERVICE:
        schema->n_services++;
        return bow__schema_make_service(schema, symbol, reason);
    default:
        return 0;
    }
}

static int make_symbols(struct bow_schema *schema, struct bow__text *reason)
{
    int rc = 0;

    for (struct bow__schema_file *file = schema->first; file != NULL && rc == 0;
         file = file->next) {
        rc = bow__schema_declare(schema, file, reason);
    }
    for (struct bow__schema_file *file = schema->first; file != NULL; file = file->next) {
        for (struct bow__schema_symbol *at = file->symbols; at != NULL && rc == 0; at = at->next) {
            rc = make_symbol(schema, at, reason);
        }
    }
    return rc;
}

static int compare_services(const void *a, const void *b)
{
    return strcmp((*(const struct bow_service *const *)a)->name,
                  (*(const struct bow_service *const *)b)->name);
}

static int make_lists(struct bow_schema *schema, struct bow__text *reason)
{
    size_t n_files = 0;
    size_t n_services = 0;

    schema->files = bow__schema_array(schema, schema->n_files, sizeof(const struct bow_file *));
    schema->services =
        bow__schema_array(schema, schema->n_services, sizeof(const struct bow_service *));
    if (schema->files == NULL || schema->services == NULL) {
        return bow__schema_no_memory(schema, reason);
    }
    for (struct bow__schema_file *file = schema->first; file != NULL; file = file->next) {
        schema->files[n_files++] = &file->file;
        for (struct bow__schema_symbol *at = file->symbols; at != NULL; at = at->next) {
            if (at->kind == BOW__SYMBOL_SERVICE) {
                schema->services[n_services++] = at->made.service;
            }
        }
    }
    qsort(schema->services, n_services, sizeof(const struct bow_service *), compare_services);
    return 0;
}

static int build(struct bow_schema *schema, struct bow__text *reason)
{
    int rc = bow__schema_link_files(schema, reason);

    if (rc == 0) {
        rc = make_symbols(schema, reason);
    }
    return rc == 0 ? make_lists(schema, reason) : rc;
}

/* What was declared goes; its memory stays until the end, so each try takes some. */
static void undo(struct bow_schema *schema)
{
    bow__bytes_map_fini(&schema->symbols);
    bow__bytes_map_init(&schema->symbols, schema->context, (uint64_t)(uintptr_t)schema);
    for (struct bow__schema_file *file = schema->first; file != NULL; file = file->next) {
        file->symbols = NULL;
    }
    schema->n_services = 0;
}

int bow_schema_build(struct bow_schema *schema, char *reason, size_t reason_size)
{
    struct bow__text text;
    int rc = 0;

    bow__text_clear(&text);
    if (schema->is_built) {
        rc = bow__schema_refuse(&text, -EALREADY, NULL, NULL, "the schema is built");
    } else {
        rc = build(schema, &text);
        if (rc < 0) {
            undo(schema);
        }
        schema->is_built = rc == 0;
    }
    bow__reason_give(&text, reason, reason_size);
    return rc;
}

/* Finding */

static const struct bow__schema_symbol *find(const struct bow_schema *schema, const char *name,
                                             enum bow__symbol_kind kind)
{
    const struct bow__schema_symbol *symbol = bow__schema_find(schema, name + (name[0] == '.'));

    return symbol != NULL && symbol->kind == kind ? symbol : NULL;
}

const ProtobufCMessageDescriptor *bow_schema_message(const struct bow_schema *schema,
                                                     const char *name)
{
    const struct bow__schema_symbol *symbol = find(schema, name, BOW__SYMBOL_MESSAGE);

    return symbol != NULL ? symbol->made.message : NULL;
}

const ProtobufCEnumDescriptor *bow_schema_enum(const struct bow_schema *schema, const char *name)
{
    const struct bow__schema_symbol *symbol = find(schema, name, BOW__SYMBOL_ENUM);

    return symbol != NULL ? symbol->made.enumeration : NULL;
}

const struct bow_service *bow_schema_service(const struct bow_schema *schema, const char *name)
{
    const struct bow__schema_symbol *symbol = find(schema, name, BOW__SYMBOL_SERVICE);

    return symbol != NULL ? symbol->made.service : NULL;
}

const struct bow_method *bow_schema_method(const struct bow_schema *schema, const char *name)
{
    char dotted[2 * BOW_LIMIT_SCHEMA_NAME_BYTES];
    size_t len = strlen(name);

    if (len >= sizeof(dotted)) {
        return NULL;
    }
    memcpy(dotted, name, len + 1);
    char *slash = strrchr(dotted, '/');
    if (slash != NULL && slash != dotted) {
        *slash = '.';
    }
    const struct bow__schema_symbol *symbol =
        find(schema, dotted + (dotted[0] == '/'), BOW__SYMBOL_METHOD);
    return symbol != NULL ? symbol->made.method : NULL;
}

const struct bow_service *bow_schema_service_at(const struct bow_schema *schema, size_t index)
{
    return schema->is_built && index < schema->n_services ? schema->services[index] : NULL;
}

const struct bow_file *const *bow_schema_files(const struct bow_schema *schema, size_t *ret_n)
{
    *ret_n = schema->is_built ? schema->n_files : 0;
    return schema->files;
}
