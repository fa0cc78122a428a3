/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_MESSAGE_H
#define BOWLINE_MESSAGE_H

/*
 * Whole messages: made, copied, compared, encoded and decoded. They are protobuf-c's structs, of
 * any type that has a descriptor; generated code has the same by type, and
 * <bowline/message_field.h> what sets one field.
 *
 * Where a message's memory comes from is said by `arena`, in each function that takes any:
 *
 *     an arena    all of it lies there, and goes with it: nothing is freed alone
 *     NULL        the heap: each piece comes from malloc(), and bow_message_free() frees them all
 *                 (it is what protobuf_c_message_free_unpacked(message, NULL) does)
 *
 * Keep to one of the two for all of a message. One on the stack, begun with its type's __INIT, may
 * have its fields in an arena, or in the heap: then bow_message_clear() frees those.
 *
 *     struct bow_arena *arena = bow_arena_new(NULL, 0);
 *     ProtobufCMessage *message = NULL;
 *     char reason[200];
 *     int rc = bow_message_decode(&demo__order__descriptor, bytes, NULL, arena, &message, reason,
 *                                 sizeof(reason));
 *     if (rc < 0) {
 *         puts(reason);       "demo.Order.items[3].name at byte 7: not UTF-8"
 *     }
 *     ...
 *     bow_arena_free(arena);
 *
 * Invariant: what comes from a peer cannot hurt. No function here needs stack or time that grow
 * beyond their limits with how deep a message is nested: copying, clearing and freeing go to any
 * depth, encoding and comparing to BOW_LIMIT_MESSAGE_DEPTH levels, decoding to what is asked for.
 */

#include <bowline/arena.h>
#include <bowline/slice.h>
#include <protobuf-c/protobuf-c.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Make an empty message of `type`, as its __INIT has it.
 *
 * Thread:  any; one user of `arena` at a time
 * Owns:    gives the message: it lives in `arena`, or is freed with bow_message_free()
 * Returns: NULL out of memory, which the arena remembers
 */
BOW_EXPORT ProtobufCMessage *bow_message_new(const ProtobufCMessageDescriptor *type,
                                             struct bow_arena *arena);

/**
 * Copy a message with all that it refers to, unknown fields too. Nothing of the copy points into
 * `message` (but where both have a default of their type), which must be a tree.
 *
 * Thread:  any; one user of `arena` at a time
 * Owns:    borrows `message`; gives the copy, as bow_message_new()
 * Returns: NULL out of memory, which the arena remembers, and for a `message` that is NULL
 */
BOW_EXPORT ProtobufCMessage *bow_message_clone(const ProtobufCMessage *message,
                                               struct bow_arena *arena);

/**
 * Whether two messages say the same.
 *
 * A field that is set to its default is not one that is not set, where the two differ when they are
 * sent. Numbers are compared bit for bit: a NaN equals itself, and -0.0 is not 0.0. Maps are
 * compared as sets, in which the last entry of a key counts. Unknown fields are compared by their
 * bytes, in order. Two NULLs are equal; messages of different types, and such as are nested deeper
 * than BOW_LIMIT_MESSAGE_DEPTH levels, are not.
 *
 * It takes memory only for maps of more than a few entries, from malloc(), and goes on without it,
 * in more time.
 *
 * Thread:  any
 */
BOW_EXPORT bool bow_message_equal(const ProtobufCMessage *a, const ProtobufCMessage *b);

/**
 * Make a message empty again, as its type's __INIT has it, unknown fields gone too. NULL is
 * allowed. With `arena` NULL what its fields have is freed, but not the message itself.
 *
 * Thread:  any
 */
BOW_EXPORT void bow_message_clear(ProtobufCMessage *message, struct bow_arena *arena);

/** Free a message of the heap with all that it refers to. NULL is allowed. Never one that lies in
 * an arena. Thread: any. */
BOW_EXPORT void bow_message_free(ProtobufCMessage *message);

/** What bow_message_decode() does beside decoding; begin with BOW_DECODE_OPTIONS_INIT. */
struct bow_decode_options {
    size_t size; /* sizeof this struct, set by the INIT */
    /* Bytes that one message may have. 0: BOW_LIMIT_MESSAGE_BYTES; protobuf ends at 2 GiB - 1. */
    size_t max_message_bytes;
    uint32_t max_depth; /* levels below the message; 0: BOW_LIMIT_MESSAGE_DEPTH */
    bool allow_nul;     /* inside strings, of which C sees the text before it */
    /* Bytes fields and unknown fields point into the input, which then has to stay as long as the
     * message does. Strings are copied all the same, for they need a NUL behind them; and all is,
     * where the message is to lie in the heap. */
    bool borrow;
};

#define BOW_DECODE_OPTIONS_INIT BOW__INIT(struct bow_decode_options, BOW__SET(max_message_bytes, 0))

/**
 * Decode `bytes` as one message of `type`. `options` NULL: the defaults.
 *
 * Strings are to be UTF-8 without a NUL inside; map entries have both their key and their value;
 * a known field of another wire type is kept as an unknown one. Of memory it may take 64 times the
 * bytes and 64 KiB; of more than 1 MiB, at least 64 MiB, and 3 times the bytes.
 *
 * When it fails, `reason` (may be NULL) says where and why: "demo.Order.items[3].name at byte 7:
 * not UTF-8", cut to `reason_size` bytes with its NUL. What was taken from the arena stays taken.
 *
 * Thread:  any; one user of `arena` at a time
 * Owns:    borrows `bytes`, or keeps them, see `borrow`; gives `*ret_message`: it lives in `arena`,
 *          or (NULL) is freed with bow_message_free()
 * Returns: 0; -EBADMSG when the bytes are no such message; -EMSGSIZE above max_message_bytes;
 *          -ENOMEM, which the arena remembers; -EINVAL when the size of `options` is not a known
 * one
 */
BOW_EXPORT BOW_MUST_USE int
bow_message_decode(const ProtobufCMessageDescriptor *type, struct bow_slice bytes,
                   const struct bow_decode_options *options, struct bow_arena *arena,
                   ProtobufCMessage **ret_message, char *reason, size_t reason_size);

/**
 * Decode the message at the front of `bytes` that has its length before it, a varint, as
 * bow_message_encode_delimited() writes it and other languages' writeDelimitedTo(). So messages
 * stand in a file one behind the other.
 *
 * Thread and ownership as bow_message_decode().
 * Returns: 0, and `*ret_used` is how many bytes that were; -EAGAIN when there are fewer than it
 * has, and `*ret_used` is how many there must be to try again, as far as can be told; else what
 *          bow_message_decode() returns: -EBADMSG also for a length above 64 bits, -EMSGSIZE also
 *          for one above 2 GiB - 1
 */
BOW_EXPORT BOW_MUST_USE int
bow_message_decode_delimited(const ProtobufCMessageDescriptor *type, struct bow_slice bytes,
                             const struct bow_decode_options *options, struct bow_arena *arena,
                             ProtobufCMessage **ret_message, size_t *ret_used, char *reason,
                             size_t reason_size);

/** Bytes of the longest length that bow_message_encode_delimited() writes before a message. */
#define BOW_MESSAGE_DELIMITER_BYTES 5

/**
 * Tell how many bytes a message has, encoded.
 *
 * Thread:  any
 * Returns: 0; -EINVAL when it cannot be encoded: bow_message_check() says why
 */
BOW_EXPORT BOW_MUST_USE int bow_message_size(const ProtobufCMessage *message, size_t *ret_size);

/**
 * Encode a message into [data, data + size). It takes no memory. All of the room may be written to,
 * also on failure.
 *
 * Thread:  any
 * Returns: 0; -ENOSPC when it does not fit: bow_message_size() tells what it needs; -EINVAL when it
 *          cannot be encoded: bow_message_check() says why
 */
BOW_EXPORT BOW_MUST_USE int bow_message_encode(const ProtobufCMessage *message, void *data,
                                               size_t size, size_t *ret_len);

/**
 * Encode a message into memory of its own.
 *
 * Thread:  any; one user of `arena` at a time
 * Owns:    gives `ret_bytes->data`: it lies in `arena`, or (NULL) is freed with free(), and is not
 *          NULL for a message of 0 bytes either
 * Returns: 0; -EINVAL as bow_message_encode(); -ENOMEM, which the arena remembers
 */
BOW_EXPORT BOW_MUST_USE int bow_message_encode_new(const ProtobufCMessage *message,
                                                   struct bow_arena *arena,
                                                   struct bow_slice *ret_bytes);

/** Encode a message with its length before it; for the rest as bow_message_encode(). It needs up to
 * BOW_MESSAGE_DELIMITER_BYTES more. Thread: any. Returns: as bow_message_encode(). */
BOW_EXPORT BOW_MUST_USE int bow_message_encode_delimited(const ProtobufCMessage *message,
                                                         void *data, size_t size, size_t *ret_len);

/**
 * Say whether a message can be encoded, and if not, why: "demo.Order.items[3].name is NULL, but a
 * string is needed: set it ("" for an empty one)", cut to `reason_size` bytes with its NUL.
 * `reason` may be NULL; it is "" for a message that can.
 *
 * Thread:  any
 * Returns: 0; -EINVAL: a pointer is NULL where a value is needed, it is nested deeper than
 *          BOW_LIMIT_MESSAGE_DEPTH levels, it has more than 2 GiB - 1, or it has no descriptor
 */
BOW_EXPORT int bow_message_check(const ProtobufCMessage *message, char *reason, size_t reason_size);

#ifdef __cplusplus
}
#endif
#endif
