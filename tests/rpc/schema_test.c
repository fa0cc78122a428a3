/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Schemas: descriptors made at run time do what generated ones of the same .proto do; they are
 * printed as that .proto; and files that protoc would not have written are refused, by file and
 * element.
 */
#include "codec2.pb-c.h"
#include "codec3.pb-c.h"
#include "google/protobuf/struct.bow.h"
#include "google/protobuf/timestamp.bow.h"
#include "json.bow.h"
#include "json2.bow.h"
#include "rpc/core/codec/value.h"
#include "rpc/schema/generated/schema.pb-c.h"
#include "tests/support/alloc.h"
#include "tests/support/random_message.h"
#include <bowline/json.h>
#include <bowline/limits.h>
#include <bowline/message.h>
#include <bowline/message_print.h>
#include <bowline/schema.h>

#include <errno.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROUNDS 20
#define DEPTH 3

static const struct bow_file *file_of(const ProtobufCMessageDescriptor *type)
{
    return ((const struct bow_message_info *)type->reserved1)->file;
}

/* The files of one type of each, with all that they import. */
static struct bow_schema *schema_of(const ProtobufCMessageDescriptor *const *types, size_t n)
{
    struct bow_schema *schema = NULL;
    char reason[300] = "";

    assert_int_equal(bow_schema_new(NULL, &schema), 0);
    for (size_t i = 0; i < n; i++) {
        int rc = bow_schema_add_file(schema, file_of(types[i]), reason, sizeof(reason));
        assert_string_equal(reason, "");
        assert_int_equal(rc, 0);
    }
    int rc = bow_schema_build(schema, reason, sizeof(reason));
    assert_string_equal(reason, "");
    assert_int_equal(rc, 0);
    return schema;
}

static const ProtobufCMessageDescriptor *const known_types[] = {
    &json__everything__descriptor,         &json2__outer__descriptor,
    &google__protobuf__struct__descriptor, &google__protobuf__timestamp__descriptor,
    &codec2__defaults__descriptor,         &codec3__scalars__descriptor,
};
#define N_KNOWN (sizeof(known_types) / sizeof(known_types[0]))

/* The same as generated code */

static void assert_same_default(const ProtobufCFieldDescriptor *a,
                                const ProtobufCFieldDescriptor *b)
{
    if (b->default_value == NULL) {
        /* Generated code has the first value of an enum in its initializer. */
        assert_true(a->default_value == NULL || a->type == PROTOBUF_C_TYPE_ENUM);
        return;
    }
    assert_non_null(a->default_value);
    if (a->type == PROTOBUF_C_TYPE_STRING) {
        assert_string_equal(a->default_value, b->default_value);
    } else if (a->type == PROTOBUF_C_TYPE_BYTES) {
        const ProtobufCBinaryData *x = a->default_value;
        const ProtobufCBinaryData *y = b->default_value;
        assert_int_equal(x->len, y->len);
        assert_memory_equal(x->data, y->data, x->len);
    } else {
        assert_memory_equal(a->default_value, b->default_value, bow__value_size(a->type));
    }
}

static void assert_same_field(const ProtobufCMessageDescriptor *a,
                              const ProtobufCMessageDescriptor *b, unsigned i)
{
    const struct bow_field_info *x = &((const struct bow_message_info *)a->reserved1)->fields[i];
    const struct bow_field_info *y = &((const struct bow_message_info *)b->reserved1)->fields[i];

    assert_string_equal(a->fields[i].name, b->fields[i].name);
    assert_int_equal(a->fields[i].id, b->fields[i].id);
    assert_int_equal(a->fields[i].label, b->fields[i].label);
    if ((b->fields[i].flags & BOW_DESCRIPTOR_TEXT) != 0) { /* how generated C has it, no more */
        assert_int_equal(a->fields[i].type, PROTOBUF_C_TYPE_STRING);
    } else {
        assert_int_equal(a->fields[i].type, b->fields[i].type);
        assert_int_equal(a->fields[i].flags, b->fields[i].flags);
        assert_same_default(&a->fields[i], &b->fields[i]);
    }
    assert_int_equal(a->fields_sorted_by_name[i], b->fields_sorted_by_name[i]);
    assert_int_equal(x->number, y->number);
    assert_int_equal(x->flags, y->flags);
    assert_int_equal(x->oneof_index, y->oneof_index);
    assert_string_equal(x->json_name, y->json_name);
}

static void assert_same_type(const ProtobufCMessageDescriptor *a,
                             const ProtobufCMessageDescriptor *b)
{
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->package_name, b->package_name);
    assert_int_equal(a->n_fields, b->n_fields);
    assert_int_equal(a->n_field_ranges, b->n_field_ranges);
    assert_int_equal(((const struct bow_message_info *)a->reserved1)->flags,
                     ((const struct bow_message_info *)b->reserved1)->flags);
    for (unsigned i = 0; i < a->n_fields; i++) {
        assert_same_field(a, b, i);
        assert_ptr_equal(protobuf_c_message_descriptor_get_field(a, a->fields[i].id),
                         &a->fields[i]);
        assert_ptr_equal(protobuf_c_message_descriptor_get_field_by_name(a, a->fields[i].name),
                         &a->fields[i]);
    }
}

/* One random message by generated code, through all that goes by descriptors. */
static void assert_same_message(const struct bow_schema *schema,
                                const ProtobufCMessageDescriptor *made,
                                const ProtobufCMessage *message)
{
    struct bow_json_options generated = BOW_JSON_OPTIONS_INIT;
    struct bow_json_options known = BOW_JSON_OPTIONS_INIT;
    const struct bow_file *file = file_of(message->descriptor);
    struct bow_arena *arena = bow_arena_new(NULL, 0);
    struct bow_slice bytes, again, text, same_text;
    ProtobufCMessage *decoded = NULL;
    ProtobufCMessage *read = NULL;
    char reason[300] = "";
    char line[2000], same_line[2000];

    generated.files = &file;
    generated.n_files = 1;
    known.files = bow_schema_files(schema, &known.n_files);
    assert_int_equal(bow_message_encode_new(message, arena, &bytes), 0);
    int rc = bow_message_decode(made, bytes, NULL, arena, &decoded, reason, sizeof(reason));
    assert_string_equal(reason, "");
    assert_int_equal(rc, 0);
    assert_int_equal(bow_message_encode_new(decoded, arena, &again), 0);
    assert_int_equal(again.len, bytes.len);
    assert_memory_equal(again.data, bytes.data, bytes.len);
    assert_true(bow_message_equal(decoded, bow_message_clone(decoded, arena)));

    bow_message_print(message, line, sizeof(line));
    bow_message_print(decoded, same_line, sizeof(same_line));
    assert_string_equal(line, same_line);

    rc = bow_json_write(message, &generated, arena, &text, reason, sizeof(reason));
    assert_int_equal(bow_json_write(decoded, &known, arena, &same_text, NULL, 0), rc);
    if (rc == 0) { /* of a random Timestamp there may be none */
        assert_string_equal(text.data, same_text.data);
        assert_int_equal(bow_json_read(made, text, &known, arena, &read, reason, sizeof(reason)),
                         0);
        assert_int_equal(bow_json_write(read, &known, arena, &same_text, NULL, 0), 0);
        assert_string_equal(text.data, same_text.data);
    }
    bow_arena_free(arena);
}

/* Whether a string of it may have a NUL inside in generated C. */
static bool has_text(const ProtobufCMessageDescriptor *type)
{
    for (unsigned i = 0; i < type->n_fields; i++) {
        if ((type->fields[i].flags & BOW_DESCRIPTOR_TEXT) != 0) {
            return true;
        }
    }
    return false;
}

static void assert_same_file(const struct bow_schema *schema, const struct bow_file *file,
                             struct test_random *random)
{
    for (size_t i = 0; i < file->n_messages; i++) {
        const ProtobufCMessageDescriptor *type = file->messages[i].descriptor;
        const ProtobufCMessageDescriptor *made =
            bow_schema_message(schema, file->messages[i].full_name);
        assert_non_null(made);
        assert_same_type(made, type);
        for (int round = has_text(type) ? ROUNDS : 0; round < ROUNDS; round++) {
            struct bow_arena *arena = bow_arena_new(NULL, 0);
            assert_same_message(
                schema, made, test_random_message(random, (struct bow__arena *)arena, type, DEPTH));
            bow_arena_free(arena);
        }
    }
}

static void test_schema_of_generated_files_does_the_same(void **state)
{
    struct bow_schema *schema = schema_of(known_types, N_KNOWN);
    struct test_random random = {.state = 7};

    (void)state;
    for (size_t i = 0; i < N_KNOWN; i++) {
        assert_same_file(schema, file_of(known_types[i]), &random);
    }
    bow_schema_free(schema);
}

static void test_schema_empty_message_is_as_generated(void **state)
{
    struct bow_json_options options = BOW_JSON_OPTIONS_INIT;
    struct bow_schema *schema = schema_of(known_types, N_KNOWN);
    const struct bow_file *file = file_of(&codec2__defaults__descriptor);

    (void)state;
    options.always_print = true;
    for (size_t i = 0; i < file->n_messages; i++) {
        struct bow_arena *arena = bow_arena_new(NULL, 0);
        struct bow_slice a, b;
        const ProtobufCMessage *x = bow_message_new(file->messages[i].descriptor, arena);
        const ProtobufCMessage *y =
            bow_message_new(bow_schema_message(schema, file->messages[i].full_name), arena);
        int rc = bow_json_write(x, &options, arena, &a, NULL, 0);
        assert_int_equal(bow_json_write(y, &options, arena, &b, NULL, 0), rc);
        if (rc == 0) {
            assert_string_equal(a.data, b.data);
        }
        bow_arena_free(arena);
    }
    bow_schema_free(schema);
}

/* A .proto as protoc says it */

struct proto {
    Bow__Schema__File file;
    Bow__Schema__Message message, inner;
    Bow__Schema__Message *messages[2], *inners[1];
    Bow__Schema__Field fields[4], value_fields[2];
    Bow__Schema__Field *field_list[4], *value_list[2];
    Bow__Schema__Oneof oneof;
    Bow__Schema__Oneof *oneofs[1];
    Bow__Schema__Enum enumeration;
    Bow__Schema__Enum *enums[1];
    Bow__Schema__EnumValue values[2];
    Bow__Schema__EnumValue *value_enum_list[2];
    Bow__Schema__MessageOptions entry_options;
    Bow__Schema__Service service;
    Bow__Schema__Service *services[1];
    Bow__Schema__Method method;
    Bow__Schema__Method *methods[1];
    const char *dependencies[1];
};

static void set_field(Bow__Schema__Field *field, const char *name, int32_t number, int32_t label,
                      int32_t type, const char *type_name)
{
    *field = (Bow__Schema__Field)BOW__SCHEMA__FIELD__INIT;
    field->name = name;
    field->has_number = field->has_label = field->has_type = true;
    field->number = number;
    field->label = label;
    field->type = type;
    field->type_name = type_name;
}

static void set_messages(struct proto *p)
{
    p->message = (Bow__Schema__Message)BOW__SCHEMA__MESSAGE__INIT;
    p->inner = (Bow__Schema__Message)BOW__SCHEMA__MESSAGE__INIT;
    set_field(&p->fields[0], "id", 1, 1, 5, NULL);
    set_field(&p->fields[1], "tags", 2, 3, 11, ".shop.Order.TagsEntry");
    set_field(&p->fields[2], "state", 3, 1, 14, ".shop.State");
    set_field(&p->fields[3], "note_text", 4, 1, 9, NULL);
    p->fields[3].has_oneof_index = true;
    p->oneof = (Bow__Schema__Oneof)BOW__SCHEMA__ONEOF__INIT;
    p->oneof.name = "more";
    p->oneofs[0] = &p->oneof;
    set_field(&p->value_fields[0], "key", 1, 1, 9, NULL);
    set_field(&p->value_fields[1], "value", 2, 1, 3, NULL);
    for (int i = 0; i < 4; i++) {
        p->field_list[i] = &p->fields[i];
    }
    p->value_list[0] = &p->value_fields[0];
    p->value_list[1] = &p->value_fields[1];
    p->entry_options = (Bow__Schema__MessageOptions)BOW__SCHEMA__MESSAGE_OPTIONS__INIT;
    p->entry_options.has_map_entry = p->entry_options.map_entry = true;
    p->message.name = "Order";
    p->message.n_field = 4;
    p->message.field = p->field_list;
    p->message.n_oneof = 1;
    p->message.oneof = p->oneofs;
    p->message.n_message = 1;
    p->message.message = p->inners;
    p->inners[0] = &p->inner;
    p->inner.name = "TagsEntry";
    p->inner.n_field = 2;
    p->inner.field = p->value_list;
    p->inner.options = &p->entry_options;
    p->messages[0] = &p->message;
}

static void set_enum(struct proto *p)
{
    p->enumeration = (Bow__Schema__Enum)BOW__SCHEMA__ENUM__INIT;
    p->enumeration.name = "State";
    p->enumeration.n_value = 2;
    p->enumeration.value = p->value_enum_list;
    for (int i = 0; i < 2; i++) {
        p->values[i] = (Bow__Schema__EnumValue)BOW__SCHEMA__ENUM_VALUE__INIT;
        p->values[i].name = i == 0 ? "NEW" : "OLD";
        p->values[i].has_number = true;
        p->values[i].number = i;
        p->value_enum_list[i] = &p->values[i];
    }
    p->enums[0] = &p->enumeration;
}

/* shop.proto */
static void proto_init(struct proto *p)
{
    *p = (struct proto){.file = BOW__SCHEMA__FILE__INIT};
    set_messages(p);
    set_enum(p);
    p->method = (Bow__Schema__Method)BOW__SCHEMA__METHOD__INIT;
    p->method.name = "Watch";
    p->method.input_type = p->method.output_type = ".shop.Order";
    p->method.has_server_streaming = p->method.server_streaming = true;
    p->methods[0] = &p->method;
    p->service = (Bow__Schema__Service)BOW__SCHEMA__SERVICE__INIT;
    p->service.name = "Orders";
    p->service.n_method = 1;
    p->service.method = p->methods;
    p->services[0] = &p->service;
    p->file.name = "shop.proto";
    p->file.package = "shop";
    p->file.syntax = "proto3";
    p->file.n_message = 1;
    p->file.message = p->messages;
    p->file.n_enumeration = 1;
    p->file.enumeration = p->enums;
    p->file.n_service = 1;
    p->file.service = p->services;
    p->file.dependency = p->dependencies;
}

/* Add and build it. Returns the first failure. */
static int build(struct proto *p, struct bow_schema **ret_schema, char *reason, size_t size)
{
    struct bow_slice bytes;
    struct bow_arena *arena = bow_arena_new(NULL, 0);

    assert_int_equal(bow_schema_new(NULL, ret_schema), 0);
    assert_int_equal(bow_message_encode_new(&p->file.base, arena, &bytes), 0);
    int rc = bow_schema_add(*ret_schema, bytes, reason, size);
    if (rc == 0) {
        rc = bow_schema_build(*ret_schema, reason, size);
    }
    bow_arena_free(arena);
    return rc;
}

static void test_schema_finds_what_its_files_declare(void **state)
{
    struct bow_schema *schema;
    struct proto p;
    char reason[300] = "";

    (void)state;
    proto_init(&p);
    assert_int_equal(build(&p, &schema, reason, sizeof(reason)), 0);
    assert_string_equal(reason, "");
    assert_string_equal(bow_schema_message(schema, ".shop.Order")->name, "shop.Order");
    assert_null(bow_schema_message(schema, "shop.State"));
    assert_string_equal(bow_schema_enum(schema, "shop.State")->values[1].name, "OLD");
    assert_int_equal(bow_schema_service(schema, "shop.Orders")->n_methods, 1);
    assert_ptr_equal(bow_schema_service_at(schema, 0), bow_schema_service(schema, "shop.Orders"));
    assert_null(bow_schema_service_at(schema, 1));
    const struct bow_method *method = bow_schema_method(schema, "shop.Orders/Watch");
    assert_non_null(method);
    assert_ptr_equal(bow_schema_method(schema, "/shop.Orders/Watch"), method);
    assert_ptr_equal(bow_schema_method(schema, "shop.Orders.Watch"), method);
    assert_null(bow_schema_method(schema, "shop.Orders/Get"));
    assert_string_equal(method->path, "/shop.Orders/Watch");
    assert_string_equal(method->name, "Watch");
    assert_int_equal(method->flags, BOW_METHOD_SERVER_STREAMING);
    assert_non_null(method->stream_thunks->on_message);
    assert_ptr_equal(method->input, bow_schema_message(schema, "shop.Order"));
    bow_schema_free(schema);
}

static const char shop_text[] = "syntax = \"proto3\";\n"
                                "\n"
                                "package shop;\n"
                                "\n"
                                "service Orders {\n"
                                "  rpc Watch(Order) returns (stream Order);\n"
                                "}\n"
                                "\n"
                                "message Order {\n"
                                "  int32 id = 1;\n"
                                "  map<string, int64> tags = 2;\n"
                                "  State state = 3;\n"
                                "  oneof more {\n"
                                "    string note_text = 4;\n"
                                "  }\n"
                                "}\n"
                                "\n"
                                "enum State {\n"
                                "  NEW = 0;\n"
                                "  OLD = 1;\n"
                                "}\n";

static void test_schema_prints_a_proto(void **state)
{
    struct bow_schema *schema;
    struct bow_slice text;
    struct proto p;

    (void)state;
    proto_init(&p);
    assert_int_equal(build(&p, &schema, NULL, 0), 0);
    assert_int_equal(bow_schema_print(schema, "shop.proto", NULL, &text), 0);
    assert_string_equal(text.data, shop_text);
    free((void *)(uintptr_t)text.data);
    assert_int_equal(bow_schema_print(schema, "shop.Orders.Watch", NULL, &text), 0);
    assert_string_equal(text.data, "rpc Watch(Order) returns (stream Order);\n");
    free((void *)(uintptr_t)text.data);
    assert_int_equal(bow_schema_print(schema, "shop.Nothing", NULL, &text), -ENOENT);
    bow_schema_free(schema);
}

/* Of extensions nothing is made, so nobody has looked at them; a terminal is to be safe all the
 * same. */
static void test_schema_prints_no_control_characters(void **state)
{
    Bow__Schema__Field extension;
    Bow__Schema__Field *extensions[] = {&extension};
    struct bow_schema *schema;
    struct bow_slice text;
    struct proto p;

    (void)state;
    proto_init(&p);
    set_field(&extension, "more", 100, 1, 11, ".shop.\033[31m");
    extension.extendee = "\033[2J";
    extension.json_name = "\033";
    extension.has_default_value = true;
    extension.default_value = (ProtobufCBinaryData){1, (uint8_t *)(uintptr_t) "\033"};
    p.file.n_extension = 1;
    p.file.extension = extensions;
    assert_int_equal(build(&p, &schema, NULL, 0), 0);
    assert_int_equal(bow_schema_print(schema, "shop.proto", NULL, &text), 0);
    assert_non_null(strstr((const char *)text.data, "\\033[2J"));
    assert_null(strchr((const char *)text.data, '\033'));
    free((void *)(uintptr_t)text.data);
    bow_schema_free(schema);
}

/* Refusals */

static struct bow_slice encoded(struct proto *p, struct bow_arena *arena)
{
    struct bow_slice bytes;

    assert_int_equal(bow_message_encode_new(&p->file.base, arena, &bytes), 0);
    return bytes;
}

static void assert_refused(struct proto *p, int expected, const char *reason)
{
    struct bow_schema *schema;
    char said[400] = "";

    assert_int_equal(build(p, &schema, said, sizeof(said)), expected);
    assert_string_equal(said, reason);
    assert_null(bow_schema_message(schema, "shop.Order"));
    assert_null(bow_schema_service_at(schema, 0));
    bow_schema_free(schema);
}

static void test_schema_refuses_fields_that_clash(void **state)
{
    struct proto p;

    (void)state;
    proto_init(&p);
    p.fields[2].number = 1;
    assert_refused(&p, -EBADMSG,
                   "shop.proto: shop.Order: field state has the number of another field");
    proto_init(&p);
    p.fields[2].name = "id";
    assert_refused(&p, -EBADMSG, "shop.proto: shop.Order: field id has the name of another field");
    proto_init(&p);
    p.fields[0].number = 0;
    assert_refused(
        &p, -EBADMSG,
        "shop.proto: shop.Order: field id has a number that is none: 1 to 536870911 are");
    proto_init(&p);
    p.fields[3].oneof_index = 1;
    assert_refused(&p, -EBADMSG,
                   "shop.proto: shop.Order: field note_text names a oneof that is not there");
}

static void test_schema_refuses_types_that_are_missing_or_others(void **state)
{
    struct proto p;

    (void)state;
    proto_init(&p);
    p.fields[2].type_name = ".shop.Colour";
    assert_refused(&p, -EBADMSG,
                   "shop.proto: shop.Order.state: no file declares its type .shop.Colour");
    p.file.n_dependency = 1;
    p.dependencies[0] = "colours.proto";
    assert_refused(&p, -EBADMSG,
                   "shop.proto: shop.Order.state: no file declares its type .shop.Colour; add the "
                   "file that it imports, colours.proto");
    proto_init(&p);
    p.fields[2].type_name = ".shop.Order";
    assert_refused(&p, -EBADMSG,
                   "shop.proto: shop.Order.state: its type .shop.Order is a message, not an enum");
    proto_init(&p);
    p.fields[0].type = 19;
    assert_refused(&p, -EBADMSG, "shop.proto: shop.Order: field id has no type");
    proto_init(&p);
    p.method.output_type = ".shop.State";
    assert_refused(&p, -EBADMSG,
                   "shop.proto: shop.Orders.Watch: its type .shop.State is an enum, not a message");
}

/* A codec that reads a map relies on its entries' shape. */
static void test_schema_refuses_maps_that_are_none(void **state)
{
    struct proto p;

    (void)state;
    proto_init(&p);
    p.value_fields[1].number = 3;
    assert_refused(&p, -EBADMSG,
                   "shop.proto: shop.Order.TagsEntry: is to be a map's entry, which has a key 1 "
                   "and a value 2");
    proto_init(&p);
    p.value_fields[0].type = 1;
    assert_refused(&p, -EBADMSG,
                   "shop.proto: shop.Order.TagsEntry: field key is of a type that no key of a map "
                   "can have");
    proto_init(&p);
    p.fields[1].label = 1;
    assert_refused(&p, -EBADMSG,
                   "shop.proto: shop.Order: field tags is an entry of a map, and not repeated");
}

static void test_schema_refuses_names(void **state)
{
    static char deep[BOW_LIMIT_SCHEMA_NAME_BYTES + 1];
    struct proto p;

    (void)state;
    proto_init(&p);
    p.message.name = "Or der\n";
    assert_refused(&p, -EBADMSG,
                   "shop.proto: shop: declares something by a name that is none: \"Or der\\x0a\"");
    proto_init(&p);
    p.oneof.name = "\033";
    assert_refused(&p, -EBADMSG, "shop.proto: shop.Order: one of its oneofs has no name");
    proto_init(&p);
    p.enumeration.name = "Order";
    assert_refused(&p, -EBADMSG, "shop.proto: shop.Order: is declared twice, before in shop.proto");
    proto_init(&p);
    p.values[1].name = "NEW";
    assert_refused(&p, -EBADMSG, "shop.proto: shop.State: two values are called NEW");
    proto_init(&p);
    p.enumeration.n_value = 0;
    assert_refused(&p, -EBADMSG, "shop.proto: shop.State: an enum has to have a value");
    proto_init(&p);
    memset(deep, 'a', sizeof(deep) - 6); /* behind "shop.", and no room for the NUL */
    p.message.name = deep;
    p.message.n_message = 0;
    assert_refused(&p, -EMSGSIZE,
                   "shop.proto: shop: a name is longer than BOW_LIMIT_SCHEMA_NAME_BYTES, 1024");
}

static void test_schema_name_at_the_limit_is_taken(void **state)
{
    static char longest[BOW_LIMIT_SCHEMA_NAME_BYTES];
    struct bow_schema *schema;
    struct proto p;
    char reason[300] = "";

    (void)state;
    proto_init(&p);
    memset(longest, 'a', sizeof(longest) - 6); /* with "shop." and the NUL */
    p.enumeration.name = longest;
    p.message.n_field = 1;
    assert_int_equal(build(&p, &schema, reason, sizeof(reason)), 0);
    bow_schema_free(schema);
}

static void test_schema_refuses_a_syntax_it_does_not_know(void **state)
{
    struct proto p;

    (void)state;
    proto_init(&p);
    p.file.syntax = "editions";
    p.file.has_edition = true;
    p.file.edition = 9999;
    assert_refused(&p, -ENOTSUP,
                   "shop.proto: syntax \"editions\", edition 9999, is not known: proto2, proto3 "
                   "and the editions 2023 (1000) and 2024 (1001) are");
}

static void test_schema_of_an_edition_goes_by_its_features(void **state)
{
    Bow__Schema__Features features = BOW__SCHEMA__FEATURES__INIT;
    Bow__Schema__FieldOptions options = BOW__SCHEMA__FIELD_OPTIONS__INIT;
    struct bow_schema *schema;
    struct proto p;

    (void)state;
    proto_init(&p);
    p.file.syntax = "editions";
    p.file.has_edition = true;
    p.file.edition = 1000;
    features.has_field_presence = true;
    features.field_presence = 2; /* IMPLICIT */
    options.features = &features;
    p.fields[2].options = &options;
    assert_int_equal(build(&p, &schema, NULL, 0), 0);
    const ProtobufCMessageDescriptor *type = bow_schema_message(schema, "shop.Order");
    assert_int_equal(type->fields[0].label, PROTOBUF_C_LABEL_OPTIONAL);
    assert_int_not_equal(type->fields[0].quantifier_offset, 0);
    assert_int_equal(type->fields[2].label, PROTOBUF_C_LABEL_NONE);
    bow_schema_free(schema);
}

static void test_schema_default_is_read_whatever_the_locale(void **state)
{
    (void)state;
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") == NULL) {
        print_message("no locale de_DE.UTF-8, which has a comma: read with a point\n");
    }
    struct bow_schema *schema = schema_of(known_types, N_KNOWN);
    (void)setlocale(LC_NUMERIC, "C");
    const ProtobufCMessageDescriptor *type =
        bow_schema_message(schema, codec2__defaults__descriptor.name);
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(type, "f_double");
    assert_true(*(const double *)field->default_value == 1.5);
    bow_schema_free(schema);
}

static void test_schema_default_that_is_none_is_refused(void **state)
{
    struct proto p;

    (void)state;
    proto_init(&p);
    p.file.syntax = NULL;
    p.fields[0].has_default_value = true;
    p.fields[0].default_value = (ProtobufCBinaryData){10, (uint8_t *)(uintptr_t) "3000000000"};
    assert_refused(&p, -EBADMSG,
                   "shop.proto: shop.Order: field id has a default that is no value of its type");
    p.fields[0].default_value = (ProtobufCBinaryData){2, (uint8_t *)(uintptr_t) "7x"};
    assert_refused(&p, -EBADMSG,
                   "shop.proto: shop.Order: field id has a default that is no value of its type");
}

/* Files */

static void test_schema_file_added_twice_is_one(void **state)
{
    struct bow_arena *arena = bow_arena_new(NULL, 0);
    struct bow_schema *schema;
    struct proto p;
    char reason[300];

    (void)state;
    proto_init(&p);
    assert_int_equal(bow_schema_new(NULL, &schema), 0);
    assert_int_equal(bow_schema_add(schema, encoded(&p, arena), NULL, 0), 0);
    assert_int_equal(bow_schema_add(schema, encoded(&p, arena), NULL, 0), 0);
    p.fields[0].number = 9;
    assert_int_equal(bow_schema_add(schema, encoded(&p, arena), reason, sizeof(reason)), -EEXIST);
    assert_string_equal(reason, "shop.proto: another file of that name was added before");
    assert_int_equal(bow_schema_build(schema, NULL, 0), 0);
    assert_int_equal(bow_schema_build(schema, NULL, 0), -EALREADY);
    assert_int_equal(bow_schema_add(schema, encoded(&p, arena), NULL, 0), -EALREADY);
    bow_schema_free(schema);
    bow_arena_free(arena);
}

/* As whoever asks a server's reflection does. */
static void test_schema_is_built_when_what_was_missing_has_come(void **state)
{
    struct bow_arena *arena = bow_arena_new(NULL, 0);
    struct bow_schema *schema;
    struct proto p, other;

    (void)state;
    proto_init(&p);
    p.file.n_dependency = 1;
    p.dependencies[0] = "state.proto";
    p.file.n_enumeration = 0;
    assert_int_equal(bow_schema_new(NULL, &schema), 0);
    assert_int_equal(bow_schema_add(schema, encoded(&p, arena), NULL, 0), 0);
    assert_string_equal(bow_schema_missing(schema, 0), "state.proto");
    assert_null(bow_schema_missing(schema, 1));
    assert_int_equal(bow_schema_build(schema, NULL, 0), -EBADMSG);
    proto_init(&other);
    other.file.name = "state.proto";
    other.file.n_message = 0;
    other.file.n_service = 0;
    assert_int_equal(bow_schema_add(schema, encoded(&other, arena), NULL, 0), 0);
    assert_null(bow_schema_missing(schema, 0));
    assert_int_equal(bow_schema_build(schema, NULL, 0), 0);
    assert_non_null(bow_schema_message(schema, "shop.Order"));
    bow_schema_free(schema);
    bow_arena_free(arena);
}

static void test_schema_set_of_files_is_taken(void **state)
{
    Bow__Schema__FileSet set = BOW__SCHEMA__FILE_SET__INIT;
    struct bow_arena *arena = bow_arena_new(NULL, 0);
    struct bow_schema *schema;
    struct bow_slice bytes;
    struct proto p;

    (void)state;
    proto_init(&p);
    bytes = encoded(&p, arena);
    ProtobufCBinaryData file = {bytes.len, (uint8_t *)(uintptr_t)bytes.data};
    set.n_file = 1;
    set.file = &file;
    assert_int_equal(bow_message_encode_new(&set.base, arena, &bytes), 0);
    assert_int_equal(bow_schema_new(NULL, &schema), 0);
    assert_int_equal(bow_schema_add_set(schema, bytes, NULL, 0), 0);
    assert_int_equal(bow_schema_build(schema, NULL, 0), 0);
    assert_non_null(bow_schema_method(schema, "shop.Orders/Watch"));
    bow_schema_free(schema);
    bow_arena_free(arena);
}

static void test_schema_bytes_at_the_limit(void **state)
{
    uint8_t *bytes = calloc(1, BOW_LIMIT_SCHEMA_BYTES + 1);
    struct bow_schema *schema;
    char reason[300];

    (void)state;
    assert_non_null(bytes);
    assert_int_equal(bow_schema_new(NULL, &schema), 0);
    assert_int_equal(bow_schema_add(schema, (struct bow_slice){bytes, BOW_LIMIT_SCHEMA_BYTES + 1},
                                    reason, sizeof(reason)),
                     -EMSGSIZE);
    assert_string_equal(reason, "the files have more bytes than BOW_LIMIT_SCHEMA_BYTES, 16777216");
    assert_int_equal(bow_schema_add(schema, (struct bow_slice){bytes, BOW_LIMIT_SCHEMA_BYTES},
                                    reason, sizeof(reason)),
                     -EBADMSG);
    bow_schema_free(schema);
    free(bytes);
}

static void test_schema_fields_at_the_limit(void **state)
{
    size_t n = BOW_LIMIT_SCHEMA_FIELDS + 1;
    Bow__Schema__Field *fields = calloc(n, sizeof(*fields));
    Bow__Schema__Field **list = calloc(n, sizeof(*list));
    char(*names)[12] = calloc(n, sizeof(*names));
    struct bow_schema *schema;
    struct proto p;

    (void)state;
    assert_true(fields != NULL && list != NULL && names != NULL);
    proto_init(&p);
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "f%zu", i);
        set_field(&fields[i], names[i], (int32_t)i + 1, 1, 5, NULL);
        list[i] = &fields[i];
    }
    p.message.field = list;
    p.message.n_field = n;
    assert_refused(&p, -EMSGSIZE,
                   "shop.proto: shop.Order: has 65537 fields, of BOW_LIMIT_SCHEMA_FIELDS 65536");
    p.message.n_field = n - 1;
    assert_int_equal(build(&p, &schema, NULL, 0), 0);
    bow_schema_free(schema);
    free(fields);
    free(list);
    free(names);
}

static int scenario(struct bow_context *context, void *user)
{
    struct bow_schema *schema = NULL;

    int rc = bow_schema_new(context, &schema);
    if (rc == 0) {
        rc = bow_schema_add(schema, *(struct bow_slice *)user, NULL, 0);
    }
    if (rc == 0) {
        rc = bow_schema_build(schema, NULL, 0);
    }
    bow_schema_free(schema);
    return rc;
}

static void test_schema_without_memory_says_so(void **state)
{
    struct bow_arena *arena = bow_arena_new(NULL, 0);
    struct proto p;

    (void)state;
    proto_init(&p);
    struct bow_slice bytes = encoded(&p, arena);
    assert_true(test_alloc_fail_each(NULL, scenario, &bytes) > 3);
    bow_arena_free(arena);
}

/* Cut at each byte, and with each byte another: refused with a reason, or built. */
static void test_schema_of_tampered_bytes_is_refused_or_built(void **state)
{
    struct bow_arena *arena = bow_arena_new(NULL, 0);
    struct proto p;

    (void)state;
    proto_init(&p);
    struct bow_slice whole = encoded(&p, arena);
    for (size_t i = 0; i < 2 * whole.len; i++) {
        uint8_t *bytes = malloc(whole.len);
        size_t len = i < whole.len ? i : whole.len;
        struct bow_schema *schema;
        char reason[300] = "";
        assert_non_null(bytes);
        memcpy(bytes, whole.data, whole.len);
        if (i >= whole.len) {
            bytes[i - whole.len] ^= 0x15;
        }
        assert_int_equal(bow_schema_new(NULL, &schema), 0);
        int rc = bow_schema_add(schema, (struct bow_slice){bytes, len}, reason, sizeof(reason));
        free(bytes);
        if (rc == 0) {
            rc = bow_schema_build(schema, reason, sizeof(reason));
        }
        assert_int_equal(rc < 0, reason[0] != '\0');
        bow_schema_free(schema);
    }
    bow_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schema_of_generated_files_does_the_same),
        cmocka_unit_test(test_schema_empty_message_is_as_generated),
        cmocka_unit_test(test_schema_finds_what_its_files_declare),
        cmocka_unit_test(test_schema_prints_a_proto),
        cmocka_unit_test(test_schema_prints_no_control_characters),
        cmocka_unit_test(test_schema_refuses_fields_that_clash),
        cmocka_unit_test(test_schema_refuses_types_that_are_missing_or_others),
        cmocka_unit_test(test_schema_refuses_maps_that_are_none),
        cmocka_unit_test(test_schema_refuses_names),
        cmocka_unit_test(test_schema_name_at_the_limit_is_taken),
        cmocka_unit_test(test_schema_refuses_a_syntax_it_does_not_know),
        cmocka_unit_test(test_schema_of_an_edition_goes_by_its_features),
        cmocka_unit_test(test_schema_default_is_read_whatever_the_locale),
        cmocka_unit_test(test_schema_default_that_is_none_is_refused),
        cmocka_unit_test(test_schema_file_added_twice_is_one),
        cmocka_unit_test(test_schema_is_built_when_what_was_missing_has_come),
        cmocka_unit_test(test_schema_set_of_files_is_taken),
        cmocka_unit_test(test_schema_bytes_at_the_limit),
        cmocka_unit_test(test_schema_fields_at_the_limit),
        cmocka_unit_test(test_schema_without_memory_says_so),
        cmocka_unit_test(test_schema_of_tampered_bytes_is_refused_or_built),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
