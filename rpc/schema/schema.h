/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SCHEMA_SCHEMA_H
#define BOWLINE_RPC_SCHEMA_SCHEMA_H

/*
 * What a schema holds: its files as they were added, and the symbols that they declare, by their
 * full names. All lies in one arena; nothing is freed before the schema is.
 */

#include "base/arena.h"
#include "base/map.h"
#include "base/text.h"
#include "rpc/schema/features.h"
#include "rpc/schema/generated/schema.pb-c.h"
#include <bowline/schema.h>

#include <string.h>

enum bow__symbol_kind {
    BOW__SYMBOL_MESSAGE,
    BOW__SYMBOL_ENUM,
    BOW__SYMBOL_SERVICE,
    BOW__SYMBOL_METHOD,
};

struct bow__schema_file {
    struct bow__schema_file *next;
    struct bow_file file;
    const Bow__Schema__File *proto;
    struct bow__features features;
    bool is_proto2;
    bool is_edition;
    struct bow__schema_symbol *symbols; /* all that it declares, once it is being built */
};

/** A message, enum, service or method that a file declares. */
struct bow__schema_symbol {
    enum bow__symbol_kind kind;
    const char *full_name;
    struct bow__schema_file *file;
    struct bow__schema_symbol *next; /* of the same file */
    struct bow__features features;
    union {
        const Bow__Schema__Message *message;
        const Bow__Schema__Enum *enumeration;
        const Bow__Schema__Service *service;
        const Bow__Schema__Method *method;
    } proto;
    union {
        ProtobufCMessageDescriptor *message;
        ProtobufCEnumDescriptor *enumeration;
        struct bow_service *service;
        struct bow_method *method;
    } made;
    struct bow_message_info *info; /* of a message */
};

/** The name of a file that another one imports, each once. */
struct bow__schema_import {
    struct bow__schema_import *next;
    const char *name;
};

struct bow_schema {
    struct bow_context *context;
    struct bow__arena arena;
    struct bow__bytes_map files_by_name;   /* to struct bow__schema_file */
    struct bow__bytes_map symbols;         /* to struct bow__schema_symbol; once built */
    struct bow__bytes_map imports_by_name; /* to struct bow__schema_import */
    struct bow__schema_import *first_import;
    struct bow__schema_import **last_import_link;
    struct bow__schema_file *first;
    struct bow__schema_file **last_link;
    size_t n_files;
    size_t n_bytes;
    const struct bow_file **files; /* once built */
    const struct bow_service **services;
    size_t n_services;
    bool is_built;
};

static inline struct bow_slice bow__schema_slice(const char *text)
{
    return (struct bow_slice){(const uint8_t *)text, strlen(text)};
}

/** `n` zeroed elements of the schema's memory; NULL out of it. */
void *bow__schema_array(struct bow_schema *schema, size_t n, size_t size);

/** The symbol of that name, or NULL. */
static inline struct bow__schema_symbol *bow__schema_find(const struct bow_schema *schema,
                                                          const char *full_name)
{
    return (struct bow__schema_symbol *)bow__bytes_map_get(&schema->symbols,
                                                           bow__schema_slice(full_name));
}

/** Say what is wrong with `element` (may be NULL) of `file`. Returns: `rc`. */
int bow__schema_refuse(struct bow__text *reason, int rc, const struct bow__schema_file *file,
                       const char *element, const char *format, ...) BOW_PRINTF(5, 6);

/** Say that there is no memory, or that the schema's limit is reached. Returns: -ENOMEM, or
 * -EMSGSIZE. */
int bow__schema_no_memory(const struct bow_schema *schema, struct bow__text *reason);

/** Whether `name` is an identifier of a .proto. NULL is none. */
bool bow__schema_is_name(const char *name);

/** `scope.name` in the schema's memory, or `name` in no scope (""); checks both name and length. */
int bow__schema_full_name(struct bow_schema *schema, const struct bow__schema_file *file,
                          const char *scope, const char *name, struct bow__text *reason,
                          const char **ret_full_name);

/** The type that a field or method names, ".package.Type", of `kind`; it says what is wrong. */
int bow__schema_resolve(struct bow_schema *schema, const struct bow__schema_file *file,
                        const char *element, const char *type_name, enum bow__symbol_kind kind,
                        struct bow__text *reason, struct bow__schema_symbol **ret_symbol);

#endif
