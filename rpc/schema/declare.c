/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What files declare, by full names. Nothing is resolved here: files may come in any order, and
 * types refer to each other in rings.
 */
#include "rpc/schema/declare.h"

#include <errno.h>
#include <stdlib.h>

/* One file on its way into the schema. Messages lie in each other as deep as the decoder lets them,
 * BOW_LIMIT_MESSAGE_DEPTH. */
struct declaring {
    struct bow_schema *schema;
    struct bow__schema_file *file;
    struct bow__text *reason;
    size_t n_messages;
};

static int put_symbol(struct declaring *it, struct bow__schema_symbol *symbol)
{
    const struct bow__schema_symbol *other = bow__schema_find(it->schema, symbol->full_name);

    if (other != NULL) {
        return bow__schema_refuse(it->reason, -EBADMSG, it->file, symbol->full_name,
                                  "is declared twice, before in %.200s", other->file->file.name);
    }
    if (bow__bytes_map_put(&it->schema->symbols, bow__schema_slice(symbol->full_name), symbol) <
        0) {
        return bow__schema_no_memory(it->schema, it->reason);
    }
    symbol->next = it->file->symbols;
    it->file->symbols = symbol;
    return 0;
}

static size_t made_size(enum bow__symbol_kind kind)
{
    switch (kind) {
    case BOW__SYMBOL_MESSAGE:
        return sizeof(ProtobufCMessageDescriptor);
    case BOW__SYMBOL_ENUM:
        return sizeof(ProtobufCEnumDescriptor);
    case BOW__SYMBOL_SERVICE:
        return sizeof(struct bow_service);
    default:
        return 0; /* methods lie in their service */
    }
}

static int add_symbol(struct declaring *it, const char *scope, const char *name,
                      enum bow__symbol_kind kind, struct bow__schema_symbol **ret_symbol)
{
    struct bow__schema_symbol *symbol = bow__schema_array(it->schema, 1, sizeof(*symbol));
    void *made = bow__schema_array(it->schema, 1, made_size(kind));

    if (symbol == NULL || made == NULL) {
        return bow__schema_no_memory(it->schema, it->reason);
    }
    int rc =
        bow__schema_full_name(it->schema, it->file, scope, name, it->reason, &symbol->full_name);
    if (rc < 0) {
        return rc;
    }
    symbol->kind = kind;
    symbol->file = it->file;
    switch (kind) {
    case BOW__SYMBOL_MESSAGE:
        symbol->made.message = made;
        break;
    case BOW__SYMBOL_ENUM:
        symbol->made.enumeration = made;
        break;
    case BOW__SYMBOL_SERVICE:
        symbol->made.service = made;
        break;
    default:
        break;
    }
    rc = put_symbol(it, symbol);
    *ret_symbol = symbol;
    return rc;
}

static int declare_enum(struct declaring *it, const char *scope, const Bow__Schema__Enum *proto)
{
    struct bow__schema_symbol *symbol;

    int rc = add_symbol(it, scope, proto->name, BOW__SYMBOL_ENUM, &symbol);
    if (rc == 0) {
        symbol->proto.enumeration = proto;
    }
    return rc;
}

static int declare_message(struct declaring *it, const char *scope, struct bow__features around,
                           const Bow__Schema__Message *proto)
{
    struct bow__schema_symbol *symbol;

    int rc = add_symbol(it, scope, proto->name, BOW__SYMBOL_MESSAGE, &symbol);
    if (rc < 0) {
        return rc;
    }
    it->n_messages++;
    symbol->proto.message = proto;
    symbol->features =
        bow__features_over(around, proto->options != NULL ? proto->options->features : NULL);
    for (size_t i = 0; i < proto->n_enumeration && rc == 0; i++) {
        rc = declare_enum(it, symbol->full_name, proto->enumeration[i]);
    }
    for (size_t i = 0; i < proto->n_message && rc == 0; i++) {
        rc = declare_message(it, symbol->full_name, symbol->features, proto->message[i]);
    }
    return rc;
}

static int declare_service(struct declaring *it, const char *scope,
                           const Bow__Schema__Service *proto)
{
    struct bow__schema_symbol *symbol;
    struct bow__schema_symbol *method;

    int rc = add_symbol(it, scope, proto->name, BOW__SYMBOL_SERVICE, &symbol);
    if (rc < 0) {
        return rc;
    }
    symbol->proto.service = proto;
    for (size_t i = 0; i < proto->n_method && rc == 0; i++) {
        rc = add_symbol(it, symbol->full_name, proto->method[i]->name, BOW__SYMBOL_METHOD, &method);
        if (rc == 0) {
            method->proto.method = proto->method[i];
        }
    }
    return rc;
}

/* A package may be "a.b.c". */
static int check_package(struct declaring *it, const char *package)
{
    const char *reason_name = package;
    char piece[64];

    while (*package != '\0') {
        size_t len = strcspn(package, ".");
        size_t n = len < sizeof(piece) - 1 ? len : sizeof(piece) - 1;
        memcpy(piece, package, n);
        piece[n] = '\0';
        if (!bow__schema_is_name(piece) || (package[len] == '.' && package[len + 1] == '\0')) {
            return bow__schema_refuse(it->reason, -EBADMSG, it->file, reason_name,
                                      "is no name of a package");
        }
        package += len + (package[len] == '.');
    }
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(struct bow__schema_symbol *const *)a)->full_name,
                  (*(struct bow__schema_symbol *const *)b)->full_name);
}

/* Lookups go by the order of the table. */
static int make_table(struct declaring *it)
{
    struct bow__schema_symbol **sorted =
        bow__schema_array(it->schema, it->n_messages, sizeof(struct bow__schema_symbol *));
    struct bow_message_info *infos = bow__schema_array(it->schema, it->n_messages, sizeof(*infos));
    size_t n = 0;

    if (sorted == NULL || infos == NULL) {
        return bow__schema_no_memory(it->schema, it->reason);
    }
    for (struct bow__schema_symbol *at = it->file->symbols; at != NULL; at = at->next) {
        if (at->kind == BOW__SYMBOL_MESSAGE) {
            sorted[n++] = at;
        }
    }
    qsort(sorted, n, sizeof(struct bow__schema_symbol *), compare_names);
    for (size_t i = 0; i < n; i++) {
        infos[i].full_name = sorted[i]->full_name;
        infos[i].descriptor = sorted[i]->made.message;
        infos[i].file = &it->file->file;
        sorted[i]->info = &infos[i];
    }
    it->file->file.messages = infos;
    it->file->file.n_messages = n;
    return 0;
}

int bow__schema_declare(struct bow_schema *schema, struct bow__schema_file *file,
                        struct bow__text *reason)
{
    struct declaring it = {.schema = schema, .file = file, .reason = reason};
    const Bow__Schema__File *proto = file->proto;
    const char *package = proto->package != NULL ? proto->package : "";

    file->symbols = NULL;
    int rc = check_package(&it, package);
    for (size_t i = 0; i < proto->n_enumeration && rc == 0; i++) {
        rc = declare_enum(&it, package, proto->enumeration[i]);
    }
    for (size_t i = 0; i < proto->n_message && rc == 0; i++) {
        rc = declare_message(&it, package, file->features, proto->message[i]);
    }
    for (size_t i = 0; i < proto->n_service && rc == 0; i++) {
        rc = declare_service(&it, package, proto->service[i]);
    }
    return rc == 0 ? make_table(&it) : rc;
}
