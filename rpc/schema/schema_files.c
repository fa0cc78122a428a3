/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The files of a schema, as they come: decoded, kept, and which of their imports are not there.
 * Knows nothing of what they declare.
 */
#include "rpc/schema/schema_files.h"
#include "rpc/core/codec/utf8.h"
#include "rpc/messages/reason.h"
#include <bowline/limits.h>
#include <bowline/message.h>

#include <errno.h>

static struct bow__schema_file *find_file(const struct bow_schema *schema, const char *name)
{
    return bow__bytes_map_get(&schema->files_by_name, bow__schema_slice(name));
}

/* Adding */

static int check_size(const struct bow_schema *schema, size_t len, struct bow__text *reason)
{
    if (len > BOW_LIMIT_SCHEMA_BYTES - schema->n_bytes) {
        return bow__schema_refuse(reason, -EMSGSIZE, NULL, NULL,
                                  "the files have more bytes than BOW_LIMIT_SCHEMA_BYTES, %zu",
                                  BOW_LIMIT_SCHEMA_BYTES);
    }
    return 0;
}

/* What is decoded may point into `bytes`, which are the schema's. */
static int decode_kept(struct bow_schema *schema, const ProtobufCMessageDescriptor *type,
                       struct bow_slice bytes, ProtobufCMessage **ret_message,
                       struct bow__text *reason)
{
    struct bow_decode_options options = BOW_DECODE_OPTIONS_INIT;
    char why[BOW__TEXT_BYTES];

    options.max_message_bytes = BOW_LIMIT_SCHEMA_BYTES;
    options.borrow = true;
    int rc = bow_message_decode(type, bytes, &options, bow__arena_as_public(&schema->arena),
                                ret_message, why, sizeof(why));
    if (rc < 0) {
        (void)bow__schema_refuse(reason, rc, NULL, NULL, "no descriptor of a file: %s", why);
    }
    return rc;
}

static int check_name(const Bow__Schema__File *proto, struct bow__text *reason)
{
    size_t len = proto->name != NULL ? strlen(proto->name) : 0;

    if (len == 0 || len >= BOW_LIMIT_SCHEMA_NAME_BYTES ||
        bow__utf8_prefix((struct bow_slice){(const uint8_t *)proto->name, len}, false) != len) {
        return bow__schema_refuse(reason, len >= BOW_LIMIT_SCHEMA_NAME_BYTES ? -EMSGSIZE : -EBADMSG,
                                  NULL, NULL, "a file has no usable name");
    }
    return 0;
}

static int note_imports(struct bow_schema *schema, const Bow__Schema__File *proto)
{
    for (size_t i = 0; i < proto->n_dependency; i++) {
        struct bow_slice name = bow__schema_slice(proto->dependency[i]);
        if (bow__bytes_map_get(&schema->imports_by_name, name) != NULL) {
            continue;
        }
        struct bow__schema_import *import = bow__schema_array(schema, 1, sizeof(*import));
        if (import == NULL || bow__bytes_map_put(&schema->imports_by_name, name, import) < 0) {
            return -ENOMEM;
        }
        import->name = proto->dependency[i];
        *schema->last_import_link = import;
        schema->last_import_link = &import->next;
    }
    return 0;
}

static int keep_file(struct bow_schema *schema, const Bow__Schema__File *proto,
                     struct bow_slice bytes, struct bow__text *reason)
{
    struct bow__schema_file *file = bow__schema_array(schema, 1, sizeof(*file));

    if (file == NULL) {
        return bow__schema_no_memory(schema, reason);
    }
    file->proto = proto;
    file->file.name = proto->name;
    file->file.bytes = bytes.data;
    file->file.n_bytes = bytes.len;
    file->is_edition = proto->syntax != NULL && strcmp(proto->syntax, "editions") == 0;
    file->is_proto2 = proto->syntax == NULL || strcmp(proto->syntax, "proto2") == 0;
    if (!bow__features_of_file(proto, &file->features)) {
        return bow__schema_refuse(reason, -ENOTSUP, file, NULL,
                                  "syntax \"%.40s\", edition %d, is not known: proto2, proto3 and "
                                  "the editions 2023 (1000) and 2024 (1001) are",
                                  bow__schema_is_name(proto->syntax) ? proto->syntax : "?",
                                  (int)proto->edition);
    }
    if (note_imports(schema, proto) < 0 ||
        bow__bytes_map_put(&schema->files_by_name, bow__schema_slice(proto->name), file) < 0) {
        return bow__schema_no_memory(schema, reason);
    }
    *schema->last_link = file;
    schema->last_link = &file->next;
    schema->n_files++;
    schema->n_bytes += bytes.len;
    return 0;
}

static int add_file(struct bow_schema *schema, struct bow_slice bytes, struct bow__text *reason)
{
    ProtobufCMessage *message = NULL;

    int rc = check_size(schema, bytes.len, reason);
    if (rc < 0) {
        return rc;
    }
    uint8_t *copy = bow__arena_alloc_bytes(&schema->arena, bytes.len);
    if (copy == NULL) {
        return bow__schema_no_memory(schema, reason);
    }
    if (bytes.len > 0) {
        memcpy(copy, bytes.data, bytes.len);
    }
    bytes.data = copy;
    rc = decode_kept(schema, &bow__schema__file__descriptor, bytes, &message, reason);
    const Bow__Schema__File *proto = (const Bow__Schema__File *)message;
    if (rc == 0) {
        rc = check_name(proto, reason);
    }
    if (rc < 0) {
        return rc;
    }
    const struct bow__schema_file *other = find_file(schema, proto->name);
    if (other == NULL) {
        return keep_file(schema, proto, bytes, reason);
    }
    if (other->file.n_bytes != bytes.len || memcmp(other->file.bytes, copy, bytes.len) != 0) {
        return bow__schema_refuse(reason, -EEXIST, other, NULL,
                                  "another file of that name was added before");
    }
    return 0;
}

static int check_open(const struct bow_schema *schema, struct bow__text *reason)
{
    if (schema->is_built) {
        return bow__schema_refuse(reason, -EALREADY, NULL, NULL,
                                  "the schema is built; begin another for more files");
    }
    return 0;
}

int bow_schema_add(struct bow_schema *schema, struct bow_slice bytes, char *reason,
                   size_t reason_size)
{
    struct bow__text text;

    bow__text_clear(&text);
    int rc = check_open(schema, &text);
    if (rc == 0) {
        rc = add_file(schema, bytes, &text);
    }
    bow__reason_give(&text, reason, reason_size);
    return rc;
}

/* The set is only looked through: each of its files is copied. */
static int add_set(struct bow_schema *schema, struct bow_slice bytes, struct bow__text *reason)
{
    struct bow_decode_options options = BOW_DECODE_OPTIONS_INIT;
    struct bow_arena *arena = bow_arena_new(schema->context, BOW_LIMIT_SCHEMA_MEMORY_BYTES);
    ProtobufCMessage *message = NULL;
    char why[BOW__TEXT_BYTES];

    if (arena == NULL) {
        return bow__schema_no_memory(schema, reason);
    }
    options.max_message_bytes = BOW_LIMIT_SCHEMA_BYTES;
    options.borrow = true;
    int rc = bow_message_decode(&bow__schema__file_set__descriptor, bytes, &options, arena,
                                &message, why, sizeof(why));
    if (rc < 0) {
        (void)bow__schema_refuse(reason, rc, NULL, NULL, "no set of files: %s", why);
    }
    const Bow__Schema__FileSet *set = (const Bow__Schema__FileSet *)message;
    for (size_t i = 0; rc == 0 && i < set->n_file; i++) {
        rc = add_file(schema, (struct bow_slice){set->file[i].data, set->file[i].len}, reason);
    }
    bow_arena_free(arena);
    return rc;
}

int bow_schema_add_set(struct bow_schema *schema, struct bow_slice bytes, char *reason,
                       size_t reason_size)
{
    struct bow__text text;

    bow__text_clear(&text);
    int rc = check_open(schema, &text);
    if (rc == 0) {
        rc = check_size(schema, bytes.len, &text);
    }
    if (rc == 0) {
        rc = add_set(schema, bytes, &text);
    }
    bow__reason_give(&text, reason, reason_size);
    return rc;
}

/* Imports of generated code are few levels deep, and may be shared: one that is there has its own.
 */
static int add_linked(struct bow_schema *schema, const struct bow_file *file,
                      struct bow__text *reason)
{
    if (find_file(schema, file->name) != NULL) {
        return 0;
    }
    if (file->bytes == NULL) {
        return bow__schema_refuse(reason, -ENODATA, NULL, file->name,
                                  "was generated with --bowline_opt=lite, which leaves out what a "
                                  "schema is made of");
    }
    int rc = add_file(schema, (struct bow_slice){file->bytes, file->n_bytes}, reason);
    for (size_t i = 0; i < file->n_imports && rc == 0; i++) {
        if (file->imports[i] != NULL) {
            rc = add_linked(schema, file->imports[i], reason);
        }
    }
    return rc;
}

int bow_schema_add_file(struct bow_schema *schema, const struct bow_file *file, char *reason,
                        size_t reason_size)
{
    struct bow__text text;

    bow__text_clear(&text);
    int rc = check_open(schema, &text);
    if (rc == 0) {
        rc = add_linked(schema, file, &text);
    }
    bow__reason_give(&text, reason, reason_size);
    return rc;
}

/* Imports */

const char *bow_schema_missing(const struct bow_schema *schema, size_t index)
{
    for (const struct bow__schema_import *at = schema->first_import; at != NULL; at = at->next) {
        if (find_file(schema, at->name) == NULL && index-- == 0) {
            return at->name;
        }
    }
    return NULL;
}

int bow__schema_link_files(struct bow_schema *schema, struct bow__text *reason)
{
    for (struct bow__schema_file *file = schema->first; file != NULL; file = file->next) {
        size_t n = file->proto->n_dependency;
        const struct bow_file **imports =
            bow__schema_array(schema, n, sizeof(const struct bow_file *));
        if (imports == NULL) {
            return bow__schema_no_memory(schema, reason);
        }
        for (size_t i = 0; i < n; i++) {
            const struct bow__schema_file *import = find_file(schema, file->proto->dependency[i]);
            imports[i] = import != NULL ? &import->file : NULL;
        }
        file->file.imports = imports;
        file->file.n_imports = n;
    }
    return 0;
}
