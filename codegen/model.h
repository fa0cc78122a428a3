/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_CODEGEN_MODEL_H
#define BOWLINE_CODEGEN_MODEL_H

/*
 * All files of a request with their C names made and their types resolved: what
 * the checks and the emitters read. Messages and enums of a file are flat lists,
 * an outer one before those inside it. Everything lives in the run's memory and
 * points into the request.
 */

#include "base/map.h"
#include "codegen/options.h"
#include "codegen/place.h"
#include "codegen/request.h"

struct message_function;
struct model_enum;
struct model_file;
struct model_message;

/** A oneof as the .proto has it, or the one of one member that a proto3 `optional` is. */
struct model_oneof {
    const Google__Protobuf__OneofDescriptorProto *proto;
    struct place place;
    const char *member;    /* x_case */
    const char *c_type;    /* the enum of its cases */
    const char *not_set;   /* its constant 0 */
    const char *size_mark; /* its constant that makes it as wide as int */
};

struct model_field {
    const Google__Protobuf__FieldDescriptorProto *proto;
    struct place place;
    const char *member;                  /* of the struct */
    const char *quantifier;              /* the member before it: n_x or has_x; NULL: it has none */
    const char *constant;                /* of the oneof's cases; NULL: in none */
    const char *default_symbol;          /* where its default lies; NULL: the .proto gives none */
    const char *default_data;            /* and the bytes of that, when it is bytes */
    const struct model_message *message; /* the type, when it is a message; else NULL */
    const struct model_enum *enumeration; /* the type, when it is an enum; else NULL */
    const struct model_file *type_file;   /* where the type is declared; NULL for a scalar */
    const struct model_oneof *oneof;      /* NULL: in none; a proto3 optional has its own */
    bool is_repeated;
    bool is_map;
    bool is_group;
    bool is_proto3_optional;
    bool is_string;
    bool is_bytes; /* also a string that protobuf-c's string_as_bytes makes bytes */
    bool is_deprecated;
    bool is_secret;
    bool has_default;               /* a number, string or bytes that the .proto gives */
    struct bow_slice default_bytes; /* as protoc spells it; a string may have a NUL inside */
    int32_t oneof_index;            /* -1: in none, also when proto3 optional */
};

struct model_message {
    const Google__Protobuf__DescriptorProto *proto;
    const struct model_file *file;
    struct place place;
    const char *full_name;      /* without a dot in front */
    const char *c_name;         /* the struct */
    const char *lower;          /* of `lower`__descriptor */
    const char *upper;          /* of `upper`__INIT */
    const char *base;           /* its first member */
    struct model_oneof *oneofs; /* in the order of the .proto */
    size_t n_oneofs;
    struct model_field *fields; /* in the order of the .proto */
    size_t n_fields;
    struct helper_options helpers;      /* which of protobuf-c's functions it gets */
    struct message_function *functions; /* the typed ones: message_names.h */
    size_t n_functions;
    bool is_map_entry;
};

struct model_value {
    const Google__Protobuf__EnumValueDescriptorProto *proto;
    struct place place;
    const char *constant;
};

struct model_enum {
    const Google__Protobuf__EnumDescriptorProto *proto;
    const struct model_file *file;
    struct place place;
    const char *full_name;
    const char *c_name;
    const char *tag; /* enum `tag` is the type that `c_name` stands for */
    const char *lower;
    const char *upper;
    const char *size_mark;      /* its constant that makes it as wide as int */
    const char *name_function;  /* from a value to its name */
    const char *parse_function; /* and back */
    struct model_value *values; /* in the order of the .proto */
    size_t n_values;
};

struct model_method {
    const Google__Protobuf__MethodDescriptorProto *proto;
    struct place place;
    const char *name;
    const char *piece;  /* its part of the prefix */
    const char *lower;  /* the whole prefix: pkg__service__method */
    const char *member; /* of the handlers struct */
    const struct model_message *input;
    const struct model_message *output;
    bool is_streaming; /* on either side */
};

struct model_service {
    const Google__Protobuf__ServiceDescriptorProto *proto;
    const struct model_file *file;
    struct place place;
    const char *full_name;
    const char *lower; /* pkg__service */
    struct model_method *methods;
    size_t n_methods;
    uint64_t hash; /* of all that the layout of the handlers struct depends on */
};

struct model_file {
    const Google__Protobuf__FileDescriptorProto *proto;
    struct bow_slice bytes; /* what `proto` was decoded from */
    struct place place;
    const char *name;
    const char *stem;    /* the name without .proto */
    const char *id;      /* the name as part of an identifier */
    const char *symbol;  /* of the struct bow_file */
    const char *package; /* "" for none */
    struct file_options options;
    bool is_named;  /* on protoc's command line */
    bool is_wanted; /* that, or imported by one that is where those are asked for */
    bool is_proto3;
    struct model_file **imports;
    size_t n_imports;
    struct model_message *messages;
    size_t n_messages;
    struct model_enum *enums;
    size_t n_enums;
    struct model_service *services;
    size_t n_services;
};

struct model {
    struct memory *memory;
    struct model_file *files; /* in protoc's order: what is imported comes before */
    size_t n_files;
    struct bow__bytes_map files_by_name;
    struct bow__bytes_map messages_by_name;
    struct bow__bytes_map enums_by_name;
};

/**
 * Build the model of `request`, all names as the .proto alone gives them: model_members_name() and
 * symbols_name() make them different from each other. Files come out for those that are named,
 * `with_imports` for all. What a request of protoc cannot hold (a type that
 * nothing declares, a name that is no name) is added to `errors`; the model is then not to be
 * used, but has to be finished all the same.
 */
void model_build(struct model *model, struct memory *memory, const struct request *request,
                 bool with_imports, struct errors *errors);
void model_fini(struct model *model);

/** Whether files come out for `file`. */
bool model_is_generated(const struct model_file *file);

/** Whether it asks for small code: option optimize_for = CODE_SIZE, for which protobuf-c's
 * descriptors have no names. */
bool model_is_small(const struct model_file *file);

/** The fields by number, as descriptors have them. */
const struct model_field **model_fields_by_number(struct memory *memory,
                                                  const struct model_message *message);

/** What the entries of `map`, a field that is one, have for a key. */
const struct model_field *model_map_key(const struct model_field *map);

/** ... and for a value. */
const struct model_field *model_map_value(const struct model_field *map);

#endif
