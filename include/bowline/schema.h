/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_SCHEMA_H
#define BOWLINE_SCHEMA_H

/*
 * Messages whose .proto is known when the program runs, not when it is compiled: descriptors of
 * protobuf-c, made of serialized FileDescriptorProtos. Everything that takes a descriptor takes
 * these as it takes generated ones: <bowline/message.h>, <bowline/json.h>,
 * <bowline/message_print.h>, bow_client_call() and bow_client_open() with a struct bow_method.
 *
 *     new ──► add, add, .. ──► build ──► find, print, call ──► free
 *                 ▲               │
 *                 └── it fails: add what is missing, and build again
 *
 * The bytes come from `protoc --descriptor_set_out=FILE --include_imports`, from a server's
 * reflection, or from the struct bow_file of generated code.
 *
 *     struct bow_schema *schema;
 *     char reason[300];
 *     if (bow_schema_new(NULL, &schema) < 0 ||
 *         bow_schema_add_set(schema, bytes, reason, sizeof(reason)) < 0 ||
 *         bow_schema_build(schema, reason, sizeof(reason)) < 0) {
 *         puts(reason);        "shop.proto: shop.Order.item: no file declares its type .shop.Item"
 *     }
 *     const struct bow_method *method = bow_schema_method(schema, "shop.Orders/Get");
 *     int rc = bow_json_read(method->input, text, NULL, arena, &request, reason, sizeof(reason));
 *
 * All of proto2, proto3 and the editions 2023 and 2024 is taken. Extensions of messages are not
 * fields here, as they are none in generated code: what a peer sends of them is kept as unknown.
 *
 * Invariant: descriptors from a peer cannot hurt. Files are bounded in bytes, in what is made of
 * them, in depth, in names and in fields (BOW_LIMIT_SCHEMA_ in <bowline/limits.h>); what protoc
 * would not let through, and a codec relies on, is refused with the file and the element.
 */

#include <bowline/arena.h>
#include <bowline/service.h>
#include <bowline/slice.h>
#include <protobuf-c/protobuf-c.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_schema;

/**
 * Make an empty schema. Its memory comes from `context`, or (NULL) from one of its own.
 *
 * Thread:  any; one user at a time until it is built
 * Owns:    shares `context`; gives `*ret_schema`, to be freed with bow_schema_free()
 * Returns: 0; -ENOMEM
 */
BOW_EXPORT BOW_MUST_USE int bow_schema_new(struct bow_context *context,
                                           struct bow_schema **ret_schema);

/** Free a schema with all that was made of it: nothing may use its descriptors any more, no
 * message of them nor a client's method. NULL is allowed. Thread: any. */
BOW_EXPORT void bow_schema_free(struct bow_schema *schema);

/**
 * Add a file: a serialized FileDescriptorProto. One that is there with the same bytes is no fault,
 * and nothing is done. Files may come in any order.
 *
 * When it fails, `reason` (may be NULL) says which file and why, cut to `reason_size` bytes with
 * its NUL. So it is for all functions here.
 *
 * Thread:  as bow_schema_new()
 * Owns:    borrows `bytes`
 * Returns: 0; -EBADMSG when they are no FileDescriptorProto; -EEXIST when another file has that
 *          name; -EMSGSIZE above a limit; -EALREADY when the schema is built; -ENOMEM
 */
BOW_EXPORT BOW_MUST_USE int bow_schema_add(struct bow_schema *schema, struct bow_slice bytes,
                                           char *reason, size_t reason_size);

/** Add the files of a serialized FileDescriptorSet, what `protoc --descriptor_set_out` writes. For
 * the rest as bow_schema_add(), but that the files before a bad one have been added. */
BOW_EXPORT BOW_MUST_USE int bow_schema_add_set(struct bow_schema *schema, struct bow_slice bytes,
                                               char *reason, size_t reason_size);

/** Add a file that is linked into the program, and all that it imports. For the rest as
 * bow_schema_add(); -ENODATA for one that was generated with --bowline_opt=lite. */
BOW_EXPORT BOW_MUST_USE int bow_schema_add_file(struct bow_schema *schema,
                                                const struct bow_file *file, char *reason,
                                                size_t reason_size);

/**
 * Get the name of a file that one of those added imports, and that was not added: what to ask a
 * server's reflection for. A schema can be built without it when none of its types is used.
 *
 * Thread:  any; one user at a time until it is built
 * Owns:    the schema's
 * Returns: the `index`-th of them, from 0 on; NULL when there are fewer
 */
BOW_EXPORT const char *bow_schema_missing(const struct bow_schema *schema, size_t index);

/**
 * Make the descriptors of all that the files declare. What fails has made none, and may be tried
 * again with more files.
 *
 * Thread:  as bow_schema_new(); from its success on all that only reads may be called on any
 * Returns: 0; -EBADMSG when a type is missing, declared twice, or none that protobuf allows, such
 *          as a field with the number of another; -EMSGSIZE above a limit; -ENOTSUP for an edition
 *          that this library does not know; -EALREADY when it is built; -ENOMEM
 */
BOW_EXPORT BOW_MUST_USE int bow_schema_build(struct bow_schema *schema, char *reason,
                                             size_t reason_size);

/*
 * Finding. Names are full ones, "shop.Order", with a dot in front or without. What is found lives
 * as long as the schema; before it is built nothing is.
 */

/** The message type of that name, or NULL. Thread: any. */
BOW_EXPORT const ProtobufCMessageDescriptor *bow_schema_message(const struct bow_schema *schema,
                                                                const char *name);

/** The enum of that name, or NULL. Thread: any. */
BOW_EXPORT const ProtobufCEnumDescriptor *bow_schema_enum(const struct bow_schema *schema,
                                                          const char *name);

/** The service of that name, or NULL. It can be called, not served. Thread: any. */
BOW_EXPORT const struct bow_service *bow_schema_service(const struct bow_schema *schema,
                                                        const char *name);

/** The method of that name, or NULL: "shop.Orders/Get", with a slash in front or without, or
 * "shop.Orders.Get". The events of its streams are a struct bow_schema_stream_events. Thread: any.
 */
BOW_EXPORT const struct bow_method *bow_schema_method(const struct bow_schema *schema,
                                                      const char *name);

/** All services, by name: the `index`-th, from 0 on; NULL when there are fewer. Thread: any. */
BOW_EXPORT const struct bow_service *bow_schema_service_at(const struct bow_schema *schema,
                                                           size_t index);

/** All files, in the order in which they were added, for options.files of <bowline/json.h>, so that
 * an Any may hold each of their messages. Thread: any. Owns: the schema's. */
BOW_EXPORT const struct bow_file *const *bow_schema_files(const struct bow_schema *schema,
                                                          size_t *ret_n);

/**
 * Write what declares `name` as the text of a .proto: a message with all in it, an enum, a service,
 * a method; or all of a file, by its name, "dir/shop.proto". Options are shown that change what
 * travels or what JSON looks like, and deprecation. Types of the same package stand there without
 * it.
 *
 * Thread:  any; one user of `arena` at a time
 * Owns:    gives `ret_text->data`, which has a NUL behind its last byte: it lies in `arena`, or
 *          (NULL) is freed with free()
 * Returns: 0; -ENOENT when there is none of that name; -ENOMEM, which the arena remembers
 */
BOW_EXPORT BOW_MUST_USE int bow_schema_print(const struct bow_schema *schema, const char *name,
                                             struct bow_arena *arena, struct bow_slice *ret_text);

/* Streams of methods that no code was generated for. */

struct bow_stream;
struct bow_result;
struct bow_metadata;

/** The events of a stream in the callback style, untyped: `events` of bow_client_open() for a
 * method of a schema. Each may be NULL. When they come is said in <bowline/stream.h>. */
struct bow_schema_stream_events {
    void (*on_headers)(struct bow_stream *stream, const struct bow_metadata *initial, void *user);
    void (*on_message)(struct bow_stream *stream, const ProtobufCMessage *message, void *user);
    void (*on_writable)(struct bow_stream *stream, void *user);
    void (*on_closed)(struct bow_stream *stream, struct bow_result *result, void *user);
};

#ifdef __cplusplus
}
#endif
#endif
