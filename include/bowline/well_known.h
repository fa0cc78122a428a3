/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_WELL_KNOWN_H
#define BOWLINE_WELL_KNOWN_H

/*
 * Protobuf's own types, google/protobuf/X.proto: what they say as C has it. A program generates
 * them with its other messages, so here they are messages of any kind, whose descriptor tells what
 * they are; give `&order->created->base`. One of another type is refused, and so is NULL.
 *
 *     struct timespec time;
 *     if (bow_timestamp_get(&order->created->base, &time) == 0) { ... }
 *
 *     bow_struct_set_string(&details->base, "city", "London", arena);
 *     ProtobufCMessage *sizes = bow_struct_set_list(&details->base, "sizes", arena);
 *     bow_list_add_number(sizes, 42, arena);
 *
 * `arena` is where the message's memory comes from, NULL the heap, as in <bowline/message.h>.
 *
 * Thread: any; one user of a message and of an arena at a time.
 */

#include <bowline/arena.h>
#include <protobuf-c/protobuf-c.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Timestamp and Duration */

/** Get a Timestamp as a time since 1970. Returns 0; -EINVAL when it is none; -ERANGE when it says
 * no time of the years 1 to 9999. */
BOW_EXPORT BOW_MUST_USE int bow_timestamp_get(const ProtobufCMessage *timestamp,
                                              struct timespec *ret_time);

/** Set a Timestamp. Returns 0; -EINVAL when it is none; -ERANGE for a time that is not of the years
 * 1 to 9999, or whose nanoseconds are not from 0 to 999999999. */
BOW_EXPORT int bow_timestamp_set(ProtobufCMessage *timestamp, const struct timespec *time);

/** Get a Duration in nanoseconds. Returns 0; -EINVAL when it is none; -ERANGE when it is no valid
 * one, or beyond some 292 years, where the nanoseconds of 64 bits end. */
BOW_EXPORT BOW_MUST_USE int bow_duration_get_ns(const ProtobufCMessage *duration, int64_t *ret_ns);

/** Set a Duration of so many nanoseconds. Returns 0; -EINVAL when it is none. */
BOW_EXPORT int bow_duration_set_ns(ProtobufCMessage *duration, int64_t ns);

/* Any */

/**
 * Make an Any hold a copy of `message`, encoded, as "type.googleapis.com/" and its full name.
 *
 * Owns:    borrows `message`
 * Returns: 0; -EINVAL when `any` is none, or `message` cannot be encoded; -ENOMEM, which the arena
 *          remembers. What fails has changed nothing.
 */
BOW_EXPORT BOW_MUST_USE int bow_any_pack(ProtobufCMessage *any, const ProtobufCMessage *message,
                                         struct bow_arena *arena);

/** Whether an Any holds a message of `type`: by its name, whatever comes before that in the URL. */
BOW_EXPORT bool bow_any_is(const ProtobufCMessage *any, const ProtobufCMessageDescriptor *type);

/**
 * Decode what an Any holds.
 *
 * Owns:    gives `*ret_message`, as bow_message_decode()
 * Returns: 0; -EINVAL when `any` is none; -ENOMSG when it holds another type; -EBADMSG when its
 * bytes are no message of `type`; -ENOMEM, which the arena remembers
 */
BOW_EXPORT BOW_MUST_USE int bow_any_unpack(const ProtobufCMessage *any,
                                           const ProtobufCMessageDescriptor *type,
                                           struct bow_arena *arena, ProtobufCMessage **ret_message);

/*
 * Struct and ListValue. Results are true, or the message asked for; false (NULL) when the message
 * is none of that type, for a key or a text that is NULL, and when there is no memory, which the
 * arena remembers. A key that a Struct has gets the new value; all its entries are looked through
 * for it.
 */

/** Set a member of a Struct to null. */
BOW_EXPORT bool bow_struct_set_null(ProtobufCMessage *structure, const char *key,
                                    struct bow_arena *arena);
/** Set a member of a Struct to a number. */
BOW_EXPORT bool bow_struct_set_number(ProtobufCMessage *structure, const char *key, double value,
                                      struct bow_arena *arena);
/** Set a member of a Struct to true or false. */
BOW_EXPORT bool bow_struct_set_bool(ProtobufCMessage *structure, const char *key, bool value,
                                    struct bow_arena *arena);
/** Set a member of a Struct to a copy of `value`. */
BOW_EXPORT bool bow_struct_set_string(ProtobufCMessage *structure, const char *key,
                                      const char *value, struct bow_arena *arena);
/** Set a member of a Struct to an empty Struct. Returns it, to be filled. */
BOW_EXPORT ProtobufCMessage *bow_struct_set_struct(ProtobufCMessage *structure, const char *key,
                                                   struct bow_arena *arena);
/** Set a member of a Struct to an empty ListValue. Returns it, to be filled. */
BOW_EXPORT ProtobufCMessage *bow_struct_set_list(ProtobufCMessage *structure, const char *key,
                                                 struct bow_arena *arena);
/** The Value that a Struct has for `key`; NULL: it has none. */
BOW_EXPORT const ProtobufCMessage *bow_struct_get(const ProtobufCMessage *structure,
                                                  const char *key);

/** Add null to a ListValue. */
BOW_EXPORT bool bow_list_add_null(ProtobufCMessage *list, struct bow_arena *arena);
/** Add a number to a ListValue. */
BOW_EXPORT bool bow_list_add_number(ProtobufCMessage *list, double value, struct bow_arena *arena);
/** Add true or false to a ListValue. */
BOW_EXPORT bool bow_list_add_bool(ProtobufCMessage *list, bool value, struct bow_arena *arena);
/** Add a copy of `value` to a ListValue. */
BOW_EXPORT bool bow_list_add_string(ProtobufCMessage *list, const char *value,
                                    struct bow_arena *arena);
/** Add an empty Struct to a ListValue. Returns it, to be filled. */
BOW_EXPORT ProtobufCMessage *bow_list_add_struct(ProtobufCMessage *list, struct bow_arena *arena);
/** Add an empty ListValue to a ListValue. Returns it, to be filled. */
BOW_EXPORT ProtobufCMessage *bow_list_add_list(ProtobufCMessage *list, struct bow_arena *arena);

/* FieldMask */

/**
 * Make each field of `target` that `mask` names what it is in `source`: set to a copy, also where
 * `target` has something (messages and lists are replaced, not merged), or cleared where `source`
 * has none. Messages on a path to a field are made in `target` when `source` has them.
 *
 * Paths are of names as in the .proto, "address.city"; repeated fields and maps stand at an end
 * only.
 *
 * Owns:    borrows `mask` and `source`, which may be `target` itself, but no other part of it
 * Returns: 0; -EINVAL when `mask` is no FieldMask, or `source` and `target` are not of one type;
 *          -ENOENT when a path names no field: then nothing has changed; -ENOMEM, which the arena
 *          remembers: some fields may have changed
 */
BOW_EXPORT BOW_MUST_USE int bow_field_mask_apply(const ProtobufCMessage *mask,
                                                 const ProtobufCMessage *source,
                                                 ProtobufCMessage *target, struct bow_arena *arena);

/* Enums */

/** The name of an enum's value; of several, the first. NULL: the number has none. */
BOW_EXPORT const char *bow_enum_name(const ProtobufCEnumDescriptor *type, int32_t number);

/** Get the number of an enum's value. Returns 0; -ENOENT when no value has that name. */
BOW_EXPORT BOW_MUST_USE int bow_enum_number(const ProtobufCEnumDescriptor *type, const char *name,
                                            int32_t *ret_number);

#ifdef __cplusplus
}
#endif
#endif
