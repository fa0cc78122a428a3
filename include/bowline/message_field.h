/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_MESSAGE_FIELD_H
#define BOWLINE_MESSAGE_FIELD_H

/*
 * One field of a message, by its descriptor. Generated code stands on these, and has them by name
 * and type; here they are for generic tools.
 *
 *     message   of any kind; NULL is left alone, and what is asked of it is false, 0 or NULL. So a
 *               message that could not be allocated is filled like any other, and who allocated it
 *               asks at the end: bow_arena_failed(), or bow_call_reply() does
 *     field     of the message's own descriptor
 *     arena     where the message's memory comes from, as in <bowline/message.h>: an arena, or NULL
 *               for the heap, where setting a field frees what it had
 *
 * What a field had before is freed in the heap, unless it is a default of its type, so that it must
 * have come from malloc(): from these functions, bow_message_decode(), bow_message_clone() or
 * protobuf_c_message_unpack(). An arena takes anything: a text of the program's, an array of its
 * own.
 *
 * Setting the member of a oneof selects it: the value and the case change together, and the former
 * member is freed in the heap. A proto3 `optional` field is a oneof of one, a proto2 one has its
 * `has_` set.
 *
 * Results are true, or the message asked for; false (NULL) when `message` is NULL, when there is no
 * memory, which the arena remembers, and for a field of another type or label than the function's.
 * What fails has changed nothing.
 *
 * Thread: any; one user of a message and of an arena at a time.
 */

#include <bowline/arena.h>
#include <protobuf-c/protobuf-c.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Fields that are not repeated */

/** Set a string to a copy of `value`; NULL clears the field. */
BOW_EXPORT bool bow_message_set_string(ProtobufCMessage *message,
                                       const ProtobufCFieldDescriptor *field, const char *value,
                                       struct bow_arena *arena);

/** Set a string to a copy of the `len` bytes at `value`, and a NUL. */
BOW_EXPORT bool bow_message_set_string_n(ProtobufCMessage *message,
                                         const ProtobufCFieldDescriptor *field, const char *value,
                                         size_t len, struct bow_arena *arena);

/** Set a string to `value` itself, which is kept: it must stay as long as the message is used. NULL
 * clears the field. Not for a message of the heap. */
BOW_EXPORT bool bow_message_set_string_ref(ProtobufCMessage *message,
                                           const ProtobufCFieldDescriptor *field,
                                           const char *value);

/** Set bytes to a copy of the `len` at `data`, which may be NULL when `len` is 0. */
BOW_EXPORT bool bow_message_set_bytes(ProtobufCMessage *message,
                                      const ProtobufCFieldDescriptor *field, const void *data,
                                      size_t len, struct bow_arena *arena);

/** Set bytes to the `len` at `data` themselves, which are kept, as bow_message_set_string_ref(). */
BOW_EXPORT bool bow_message_set_bytes_ref(ProtobufCMessage *message,
                                          const ProtobufCFieldDescriptor *field, const void *data,
                                          size_t len);

/** Set a number, bool or enum to what `value` points to: one of the field's C type. No memory is
 * taken; the arena matters in a oneof, whose former member may have to be freed. */
BOW_EXPORT bool bow_message_set_scalar(ProtobufCMessage *message,
                                       const ProtobufCFieldDescriptor *field, const void *value,
                                       struct bow_arena *arena);

/** The message that a field holds, to be changed; made when there is none. */
BOW_EXPORT ProtobufCMessage *bow_message_mutable(ProtobufCMessage *message,
                                                 const ProtobufCFieldDescriptor *field,
                                                 struct bow_arena *arena);

/** Set a field to the message `value` itself, which must be of the field's type: the field takes it
 * in the heap, and refers to it else. NULL clears the field. */
BOW_EXPORT bool bow_message_set_message(ProtobufCMessage *message,
                                        const ProtobufCFieldDescriptor *field,
                                        ProtobufCMessage *value, struct bow_arena *arena);

/* Repeated fields. The array is the functions' own and has room ahead; one that somebody else made
 * (the program, in an arena) is copied with the first element that is added. */

/** Add an empty message behind the others. Returns it, to be filled. */
BOW_EXPORT ProtobufCMessage *bow_message_add_message(ProtobufCMessage *message,
                                                     const ProtobufCFieldDescriptor *field,
                                                     struct bow_arena *arena);

/** Add a number, bool or enum: what `value` points to, one of the field's C type. */
BOW_EXPORT bool bow_message_add_scalar(ProtobufCMessage *message,
                                       const ProtobufCFieldDescriptor *field, const void *value,
                                       struct bow_arena *arena);

/** Add a copy of a string; NULL is refused. */
BOW_EXPORT bool bow_message_add_string(ProtobufCMessage *message,
                                       const ProtobufCFieldDescriptor *field, const char *value,
                                       struct bow_arena *arena);

/** Add a copy of `len` bytes. */
BOW_EXPORT bool bow_message_add_bytes(ProtobufCMessage *message,
                                      const ProtobufCFieldDescriptor *field, const void *data,
                                      size_t len, struct bow_arena *arena);

/*
 * Maps: repeated fields whose elements are entries of a key and a value. `key` is the text of a
 * string, and for numbers and bools points to one of the key's C type. An entry with that key gets
 * the new value, else one is added. Each call looks through all entries, from the last on; to fill
 * a large map whose keys are known to differ, bow_message_add_message() adds entries without a
 * look: were a key there twice, the last one would count.
 */

/** Put a number, bool or enum into a map: what `value` points to. */
BOW_EXPORT bool bow_message_put_scalar(ProtobufCMessage *message,
                                       const ProtobufCFieldDescriptor *field, const void *key,
                                       const void *value, struct bow_arena *arena);

/** Put a copy of a string into a map; NULL is refused. */
BOW_EXPORT bool bow_message_put_string(ProtobufCMessage *message,
                                       const ProtobufCFieldDescriptor *field, const void *key,
                                       const char *value, struct bow_arena *arena);

/** Put a copy of `len` bytes into a map. */
BOW_EXPORT bool bow_message_put_bytes(ProtobufCMessage *message,
                                      const ProtobufCFieldDescriptor *field, const void *key,
                                      const void *data, size_t len, struct bow_arena *arena);

/** Put an empty message into a map, in place of the one that the key had. Returns it, to be filled.
 */
BOW_EXPORT ProtobufCMessage *bow_message_put_message(ProtobufCMessage *message,
                                                     const ProtobufCFieldDescriptor *field,
                                                     const void *key, struct bow_arena *arena);

/** The message that a map has for `key`, to be changed; an empty one is put there when there is
 * none. */
BOW_EXPORT ProtobufCMessage *bow_message_mutable_value(ProtobufCMessage *message,
                                                       const ProtobufCFieldDescriptor *field,
                                                       const void *key, struct bow_arena *arena);

/** Take all entries of a key out of a map; the others keep their order. Returns whether there was
 * one. */
BOW_EXPORT bool bow_message_remove(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                                   const void *key, struct bow_arena *arena);

/** The entry of a map that counts for `key`: the last one; its fields are the key and the value.
 * NULL: there is none. */
BOW_EXPORT const ProtobufCMessage *bow_message_get_entry(const ProtobufCMessage *message,
                                                         const ProtobufCFieldDescriptor *field,
                                                         const void *key);

/* Any field */

/**
 * Whether a field is set: a repeated one that has elements, the member of a oneof that is selected,
 * an optional one that is there; one without presence (proto3) when it is not its default, a
 * required one unless it is a pointer that is NULL.
 */
BOW_EXPORT bool bow_message_has(const ProtobufCMessage *message,
                                const ProtobufCFieldDescriptor *field);

/** Set a field to what it is in an empty message. In a oneof, only the member that is selected. */
BOW_EXPORT void bow_message_clear_field(ProtobufCMessage *message,
                                        const ProtobufCFieldDescriptor *field,
                                        struct bow_arena *arena);

#ifdef __cplusplus
}
#endif
#endif
