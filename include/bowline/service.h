/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_SERVICE_H
#define BOWLINE_SERVICE_H

/*
 * The constant tables that protoc-gen-bowline emits, one struct bow_service a
 * service, and the untyped calls that its typed wrappers stand on. Programs use
 * the generated functions; these are for generators and generic tools.
 *
 * Invariant: everything here is const and static: registering a service copies nothing of it.
 */

#include <bowline/visibility.h>
#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_call;
struct bow_metadata;
struct bow_result;
struct bow_status;
struct bow_stream;

/** The version of these tables. Generated files refuse to compile against another. */
#define BOW_SERVICE_ABI 3

/**
 * Calls the handler of one method out of the user's handlers struct; `request` is NULL for a
 * method whose client streams. Returns false when that member is NULL: the call is then still
 * the caller's.
 */
typedef bool (*bow_method_invoke_fn)(struct bow_call *call, const void *request,
                                     const void *handlers, void *user);

/*
 * From untyped events of a streaming call to the members of the user's typed `events` (which
 * may be NULL each).
 */

/** The server's: of METHOD__call_events. on_message is NULL where the client sends one message. */
struct bow_call_thunks {
    void (*on_message)(struct bow_call *call, const void *message, const void *events, void *user);
    void (*on_half_close)(struct bow_call *call, const void *events, void *user);
    void (*on_writable)(struct bow_call *call, const void *events, void *user);
    void (*on_closed)(struct bow_call *call, const struct bow_status *status, const void *events,
                      void *user);
};

/** The client's: of METHOD__stream_events. on_message is NULL where the server sends one message.
 */
struct bow_stream_thunks {
    void (*on_headers)(struct bow_stream *stream, const struct bow_metadata *initial,
                       const void *events, void *user);
    void (*on_message)(struct bow_stream *stream, const void *message, const void *events,
                       void *user);
    void (*on_writable)(struct bow_stream *stream, const void *events, void *user);
    void (*on_closed)(struct bow_stream *stream, struct bow_result *result, const void *events,
                      void *user);
};

/** What a method's declaration says of it. */
enum bow_method_flags {
    BOW_METHOD_CLIENT_STREAMING = 1,
    BOW_METHOD_SERVER_STREAMING = 2,
    BOW_METHOD_IDEMPOTENT = 4,
    BOW_METHOD_NO_SIDE_EFFECTS = 8,
    BOW_METHOD_DEPRECATED = 16,
    BOW_METHOD_BLOCKING = 32, /* its handler runs on the server's options.blocking_on */
};

/** One method of a service. */
struct bow_method {
    const char *path; /* "/package.Service/Method", as on the wire */
    const char *name; /* points at "Method" in `path` */
    const ProtobufCMessageDescriptor *input;
    const ProtobufCMessageDescriptor *output;
    bow_method_invoke_fn invoke;                   /* NULL with --bowline_opt=client */
    const struct bow_call_thunks *call_thunks;     /* NULL for a unary method, and there too */
    const struct bow_stream_thunks *stream_thunks; /* NULL for a unary method; with =server, too */
    uint32_t flags;                                /* BOW_METHOD_ bits */
};

/** What a protobuf-c descriptor does not say of a field; sorted by number, as there. */
struct bow_field_info {
    uint32_t number;
    uint32_t flags;        /* BOW_FIELD_ bits */
    const char *json_name; /* NULL with --bowline_opt=no_json */
    int32_t oneof_index;   /* -1: in none (a proto3 optional is in none) */
};

/** What a field's declaration says of it. */
enum bow_field_flags {
    BOW_FIELD_MAP = 1,
    BOW_FIELD_PROTO3_OPTIONAL = 2,
    BOW_FIELD_SECRET = 4, /* option (bowline.secret) or debug_redact: not to be printed */
    BOW_FIELD_GROUP = 8,  /* of proto2: between two tags on the wire */
    BOW_FIELD_UTF8 = 16,  /* a string of proto3: nothing but UTF-8 */
};

/**
 * What a codec has to know of a field, in ProtobufCFieldDescriptor.flags.
 *
 * The bits stand above the PROTOBUF_C_FIELD_FLAG_ ones. libprotobuf-c does not look at them.
 */
enum bow_descriptor_flags {
    /* Of PROTOBUF_C_TYPE_MESSAGE: a group on the wire. libprotobuf-c's pack writes a length. */
    BOW_DESCRIPTOR_GROUP = 1 << 16,
    BOW_DESCRIPTOR_UNCHECKED = 1 << 17, /* a string of proto2: need not be UTF-8 */
    /* Of PROTOBUF_C_TYPE_BYTES: a string all the same, by protobuf-c's string_as_bytes, which may
     * have a NUL inside. */
    BOW_DESCRIPTOR_TEXT = 1 << 18,
};

/** What a message's declaration says of it. */
enum bow_message_flags {
    BOW_MESSAGE_MAP_ENTRY = 1,
    BOW_MESSAGE_SET = 2, /* option message_set_wire_format */
    BOW_MESSAGE_PROTO2 = 4,
};

struct bow_file;

/**
 * One message type, with what its protobuf-c descriptor does not say.
 *
 * `reserved1` of that descriptor points to it, when protoc-gen-bowline made it (protoc-gen-c leaves
 * NULL there).
 */
struct bow_message_info {
    const char *full_name;
    const ProtobufCMessageDescriptor *descriptor;
    const struct bow_field_info *fields;
    size_t n_fields;
    uint32_t flags; /* BOW_MESSAGE_ bits */
    const struct bow_file *file;
};

/** One .proto file: its FileDescriptorProto without source info, its imports, its messages. */
struct bow_file {
    const char *name;     /* as given to protoc: "dir/name.proto" */
    const uint8_t *bytes; /* NULL with --bowline_opt=lite */
    size_t n_bytes;
    const struct bow_file *const *imports; /* an element is NULL when that file is not linked */
    size_t n_imports;
    const struct bow_message_info *messages; /* all, nested and map entries too, by full_name */
    size_t n_messages;
};

/** One service with its methods. */
struct bow_service {
    uint32_t abi;     /* BOW_SERVICE_ABI */
    const char *name; /* "package.Service" */
    const struct bow_method *methods;
    uint32_t n_methods;
    uint64_t hash;        /* over all that the handlers struct depends on */
    size_t handlers_size; /* sizeof the generated handlers struct in the .c; 0 with =client */
    const struct bow_file *file;
};

#ifdef __cplusplus
}
#endif
#endif
