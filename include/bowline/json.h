/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_JSON_H
#define BOWLINE_JSON_H

/*
 * Messages as JSON and back, by protobuf's own mapping (ProtoJSON), so that every other
 * implementation of it reads what is written here, and the other way round. Of any message that has
 * a descriptor: Bowline's generator gives it the names that JSON has, for one of protoc-gen-c they
 * are derived from the fields' names.
 *
 *     struct bow_arena *arena = bow_arena_new(NULL, 0);
 *     struct bow_slice text;
 *     char reason[200];
 *     if (bow_json_write(&order->base, NULL, arena, &text, reason, sizeof(reason)) < 0 ||
 *         bow_json_read(&demo__order__descriptor, text, NULL, arena, &message, reason,
 *                       sizeof(reason)) < 0) {
 *         puts(reason);                  "demo.Order.items[3].price at 7:14: not a number"
 *     }
 *     bow_arena_free(arena);
 *
 * What JSON has where the messages have it:
 *
 * - Field names: lowerCamelCase, or what json_name says; both it and the name in the .proto are
 *   read.
 * - 64-bit integers: a string, "123", for JavaScript's numbers end at 2^53; numbers are read, too,
 *   and 1.0 and 1e2 for any integer.
 * - float, double: the fewest digits that read as the same number; "NaN", "Infinity", "-Infinity".
 * - bytes: base64; read in its URL form, too, with padding or without.
 * - enums: the value's name; its number, where it has none.
 * - null: as if the field were not there; a required one has to be.
 * - google.protobuf.*: Timestamp "2024-02-29T12:00:00.500Z", Duration "1.500s", FieldMask
 *   "user.displayName,photo", Struct, Value and ListValue any JSON, wrappers the value alone, Any
 *   the message it holds and its "@type".
 *
 * Invariant: what comes from a peer cannot hurt. The text has to be UTF-8 and JSON to its last
 * byte, an object has each field once, depth is limited, time is linear in the text but for a
 * factor of its depth or the logarithm of a map's size, and memory ends at the arena's own limit.
 */

#include <bowline/arena.h>
#include <bowline/slice.h>
#include <protobuf-c/protobuf-c.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_file;

/** How JSON is written and read; begin with BOW_JSON_OPTIONS_INIT. */
struct bow_json_options {
    size_t size; /* sizeof this struct, set by the INIT */

    /* The files whose messages an Any may hold, with all that they import; generated code has one
     * for each .proto. They are kept while a function runs. */
    const struct bow_file *const *files;
    size_t n_files;

    /* Levels of messages below the first. 0: BOW_LIMIT_MESSAGE_DEPTH, which is also the most, since
     * deeper ones cannot be encoded. An array or object of a Value takes two. */
    uint32_t max_depth;

    uint32_t indent;       /* writing: blanks for each level, on lines of their own; 0: one line */
    bool always_print;     /* writing: fields without presence and empty lists, too */
    bool preserve_names;   /* writing: names as in the .proto */
    bool enums_as_numbers; /* writing */
    bool ignore_unknown;   /* reading: fields and names of enum values that are not known */
};

#define BOW_JSON_OPTIONS_INIT BOW__INIT(struct bow_json_options, BOW__SET(files, NULL))

/**
 * Write `message` as JSON. `options` NULL: the defaults.
 *
 * Fields come in the order of their numbers. Of a map that has a key twice the last entry counts.
 * Unknown fields are left out.
 *
 * When it fails, `reason` (may be NULL) says where and why: "demo.Order.created: a timestamp has
 * nanos from 0 to 999999999", cut to `reason_size` bytes with its NUL. What was taken from the
 * arena stays taken.
 *
 * Thread:  any; one user of `arena` at a time
 * Owns:    borrows `message` and `options`; gives `ret_text->data`, which has a NUL behind its last
 *          byte: it lies in `arena`, or (NULL) is freed with free()
 * Returns: 0; -EINVAL when there is no JSON for it: a string is not UTF-8, a pointer is NULL where
 * a value is needed, it is nested too deep, a google.protobuf type has a value out of its range, an
 * Any holds a type that is not among `options->files`; or for an option out of its range, or an
 * unknown size; -ENOMEM, which the arena remembers
 */
BOW_EXPORT BOW_MUST_USE int bow_json_write(const ProtobufCMessage *message,
                                           const struct bow_json_options *options,
                                           struct bow_arena *arena, struct bow_slice *ret_text,
                                           char *reason, size_t reason_size);

/**
 * The same into [text, text + size), with a NUL behind it. Memory is taken from malloc(), and only
 * for what an Any holds and for maps of more than a few entries.
 *
 * Thread:  any
 * Returns: 0, and `*ret_len` is the length without the NUL; -ENOSPC when that is not below `size`:
 *          `*ret_len` is what it would be, and what is in `text` is of no use; else as
 *          bow_json_write()
 */
BOW_EXPORT BOW_MUST_USE int bow_json_write_to(const ProtobufCMessage *message,
                                              const struct bow_json_options *options, char *text,
                                              size_t size, size_t *ret_len, char *reason,
                                              size_t reason_size);

/**
 * Read `text` as a message of `type`. `options` NULL: the defaults.
 *
 * A string must not have a NUL inside, of which C would see the text before it; "\u0000" is
 * refused, except where protobuf-c's string_as_bytes has made the length known. Required fields
 * (proto2) have to be there.
 *
 * When it fails, `reason` (may be NULL) says where and why: the field's path, line and column, both
 * from 1 on and the latter in characters, as in "demo.HelloRequest.name at 3:14: a string is
 * needed", cut to `reason_size` bytes with its NUL. What was taken from the arena stays taken.
 *
 * Thread:  any; one user of `arena` at a time
 * Owns:    borrows `text` and `options`; gives `*ret_message`: it lies in `arena`, or (NULL) is
 *          freed with bow_message_free()
 * Returns: 0; -EBADMSG when the text is no such message; -ENOMEM, which the arena remembers;
 * -EINVAL for an option out of its range, or an unknown size
 */
BOW_EXPORT BOW_MUST_USE int bow_json_read(const ProtobufCMessageDescriptor *type,
                                          struct bow_slice text,
                                          const struct bow_json_options *options,
                                          struct bow_arena *arena, ProtobufCMessage **ret_message,
                                          char *reason, size_t reason_size);

#ifdef __cplusplus
}
#endif
#endif
