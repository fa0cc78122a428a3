/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Descriptors of enums: each number once, by number, with its first name; all names, by name,
 * aliases too; and the ranges in which numbers follow each other.
 */
#include "rpc/schema/enum_type.h"
#include "rpc/schema/ranges.h"

#include <errno.h>
#include <stdlib.h>

/* A value with its place among those sorted by number, of which aliases have none. */
struct numbered {
    const Bow__Schema__EnumValue *value;
    size_t declared; /* its place in the .proto */
    unsigned index;
};

static int compare_numbers(const void *a, const void *b)
{
    const struct numbered *x = a;
    const struct numbered *y = b;

    if (x->value->number != y->value->number) {
        return x->value->number < y->value->number ? -1 : 1;
    }
    return (x->declared > y->declared) - (x->declared < y->declared);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct numbered *)a)->value->name,
                  ((const struct numbered *)b)->value->name);
}

static int check_values(const struct bow__schema_symbol *symbol, struct bow__text *reason)
{
    const Bow__Schema__Enum *proto = symbol->proto.enumeration;

    if (proto->n_value == 0) {
        return bow__schema_refuse(reason, -EBADMSG, symbol->file, symbol->full_name,
                                  "an enum has to have a value");
    }
    for (size_t i = 0; i < proto->n_value; i++) {
        if (!bow__schema_is_name(proto->value[i]->name)) {
            return bow__schema_refuse(reason, -EBADMSG, symbol->file, symbol->full_name,
                                      "value %zu has no name", i);
        }
    }
    return 0;
}

/* All that is behind the same number is an alias of the first. */
static void put_numbers(ProtobufCEnumDescriptor *type, ProtobufCEnumValue *values,
                        ProtobufCIntRange *ranges, struct numbered *sorted, size_t n)
{
    struct bow__ranges building = {.ranges = ranges};
    unsigned n_values = 0;

    for (size_t i = 0; i < n; i++) {
        const Bow__Schema__EnumValue *value = sorted[i].value;
        if (i == 0 || value->number != sorted[i - 1].value->number) {
            bow__ranges_add(&building, value->number, n_values);
            values[n_values++] = (ProtobufCEnumValue){
                .name = value->name, .c_name = value->name, .value = value->number};
        }
        sorted[i].index = n_values - 1;
    }
    bow__ranges_end(&building, n_values);
    type->n_values = n_values;
    type->values = values;
    type->n_value_ranges = building.n;
    type->value_ranges = ranges;
}

static int put_names(const struct bow__schema_symbol *symbol, ProtobufCEnumValueIndex *names,
                     struct numbered *sorted, size_t n, struct bow__text *reason)
{
    ProtobufCEnumDescriptor *type = symbol->made.enumeration;

    qsort(sorted, n, sizeof(*sorted), compare_names);
    for (size_t i = 0; i < n; i++) {
        names[i] =
            (ProtobufCEnumValueIndex){.name = sorted[i].value->name, .index = sorted[i].index};
        if (i > 0 && strcmp(names[i].name, names[i - 1].name) == 0) {
            return bow__schema_refuse(reason, -EBADMSG, symbol->file, symbol->full_name,
                                      "two values are called %s", names[i].name);
        }
    }
    type->n_value_names = (unsigned)n;
    type->values_by_name = names;
    return 0;
}

int bow__schema_make_enum(struct bow_schema *schema, struct bow__schema_symbol *symbol,
                          struct bow__text *reason)
{
    const Bow__Schema__Enum *proto = symbol->proto.enumeration;
    ProtobufCEnumDescriptor *type = symbol->made.enumeration;
    size_t n = proto->n_value;

    int rc = check_values(symbol, reason);
    if (rc < 0) {
        return rc;
    }
    struct numbered *sorted = bow__schema_array(schema, n, sizeof(*sorted));
    ProtobufCEnumValue *values = bow__schema_array(schema, n, sizeof(*values));
    ProtobufCEnumValueIndex *names = bow__schema_array(schema, n, sizeof(*names));
    ProtobufCIntRange *ranges = bow__schema_array(schema, n + 1, sizeof(*ranges));
    if (sorted == NULL || values == NULL || names == NULL || ranges == NULL) {
        return bow__schema_no_memory(schema, reason);
    }
    *type = (ProtobufCEnumDescriptor){
        .magic = PROTOBUF_C__ENUM_DESCRIPTOR_MAGIC,
        .name = symbol->full_name,
        .short_name = proto->name,
        .c_name = proto->name,
        .package_name = symbol->file->proto->package != NULL ? symbol->file->proto->package : "",
    };
    for (size_t i = 0; i < n; i++) {
        sorted[i] = (struct numbered){.value = proto->value[i], .declared = i};
    }
    qsort(sorted, n, sizeof(*sorted), compare_numbers);
    put_numbers(type, values, ranges, sorted, n);
    return put_names(symbol, names, sorted, n, reason);
}
