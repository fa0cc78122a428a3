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

struct model_file;
struct model_message;

struct model_field {
    const Google__Protobuf__FieldDescriptorProto *proto;
    struct place place;
    const char *member;                  /* of protobuf-c's struct */
    const struct model_message *message; /* the type, when it is a message; else NULL */
    const struct model_file *type_file;  /* where the type is declared; NULL for a scalar */
    bool is_repeated;
    bool is_map;
    bool is_proto3_optional;
    int32_t oneof_index; /* -1: in none, also when proto3 optional */
};

struct model_message {
    const Google__Protobuf__DescriptorProto *proto;
    const struct model_file *file;
    struct place place;
    const char *full_name;      /* without a dot in front */
    const char *c_name;         /* the struct */
    const char *lower;          /* of `lower`__descriptor */
    const char *upper;          /* of `upper`__INIT */
    struct model_field *fields; /* in the order of the .proto */
    size_t n_fields;
};

struct model_enum {
    const Google__Protobuf__EnumDescriptorProto *proto;
    const struct model_file *file;
    struct place place;
    const char *full_name;
    const char *c_name;
    const char *lower;
    const char *upper;
};

struct model_method {
    const Google__Protobuf__MethodDescriptorProto *proto;
    struct place place;
    const char *name;
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
    struct place place;
    const char *name;
    const char *stem;    /* the name without .proto */
    const char *id;      /* the name as part of an identifier */
    const char *symbol;  /* of the struct bow_file */
    const char *package; /* "" for none */
    struct file_options options;
    bool is_named;      /* on protoc's command line */
    bool has_functions; /* its messages and enums have typed functions */
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
 * Build the model of `request`. What a request of protoc cannot hold (a type that
 * nothing declares, a name that is no name) is added to `errors`; the model is then not to be
 * used, but has to be finished all the same.
 */
void model_build(struct model *model, struct memory *memory,
                 const Bowline__Codegen__Request *request, struct errors *errors);
void model_fini(struct model *model);

/** The file that declares the message or enum `type_name` (with a dot in front), or NULL. */
const struct model_file *model_find_type_file(const struct model *model, const char *type_name);

/** Whether files come out for `file`. */
bool model_is_generated(const struct model_file *file);

#endif
