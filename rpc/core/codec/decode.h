/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_CODEC_DECODE_H
#define BOWLINE_RPC_CORE_CODEC_DECODE_H

/*
 * Protobuf bytes → protobuf-c structs, driven by the generated descriptors, with
 * all memory from one arena. The result is what protobuf_c_message_unpack() would
 * give (and packs as such), but it belongs to the arena: never give it to
 * protobuf_c_message_free_unpacked().
 *
 * What a peer sends can't hurt:
 *  - no recursion: the stack used is the same at any depth, and depth is limited;
 *  - time is linear in the bytes: a sub-message that comes twice is merged in place,
 *    arrays grow by doubling;
 *  - memory ends at the arena's cap;
 *  - strings have no NUL inside, for C sees the text before it only, and are UTF-8,
 *    except those of proto2 (BOW_DESCRIPTOR_UNCHECKED), which may be any other bytes.
 *
 * Where protobuf-c departs from the protobuf specification, this follows the
 * specification:
 *  - a known field that comes with another wire type is kept as an unknown field;
 *  - groups are taken, at any depth within the limit: a field that is one
 *    (BOW_DESCRIPTOR_GROUP) as a sub-message, which it is not when it comes with a
 *    length; any other is kept as an unknown field of wire type 3, whose data is all
 *    that follows its start tag, the end tag included;
 *  - a singular sub-message that comes again is merged: fields that only the
 *    earlier one had keep their values, repeated fields are concatenated, and so
 *    for a oneof's sub-message while its case stays the same;
 *  - required fields are checked over all occurrences of a message together.
 *
 * Maps are repeated entries, in the order of the wire, the same key possibly more
 * than once (the last one counts). An entry that came without a key or a value is
 * completed (an empty string, an empty message), so that no pointer in an entry
 * is NULL. What makes a message an entry: its info says so (BOW_MESSAGE_MAP_ENTRY), or,
 * where there is none, it is named as protoc names entries.
 */

#include "base/arena.h"
#include "base/text.h"
#include <bowline/limits.h>
#include <bowline/slice.h>
#include <protobuf-c/protobuf-c.h>

struct bow__block;

struct bow__decode_options {
    /* NULL, or the block that holds the bytes and nothing else: bytes fields, unknown fields and
     * long strings then point into it, the arena having adopted it. Tags in it are overwritten by
     * the NULs of strings, unless others hold the block. */
    struct bow__block *block;
    uint32_t max_depth; /* levels below the message itself; 0: BOW_LIMIT_MESSAGE_DEPTH */
    bool allow_nul;     /* inside strings, also those that need not be UTF-8 */
};

/** What a call's arena may hold beside `n_bytes` from a peer, decoded: of a large message the block
 * it came in, which may be twice as long, and its strings once more. Whoever works with the call
 * has that much. */
static inline size_t bow__call_cap(size_t n_bytes)
{
    if (n_bytes <= BOW_LIMIT_CALL_ARENA_BYTES / 4) {
        return BOW_LIMIT_CALL_ARENA_BYTES;
    }
    size_t most = n_bytes > SIZE_MAX / 4 ? SIZE_MAX : 3 * n_bytes + ((size_t)64 << 10);
    return most > BOW_LIMIT_CALL_ARENA_BYTES ? most : BOW_LIMIT_CALL_ARENA_BYTES;
}

/** What decoding them may take of it: it may amplify, but not by more than the largest of messages
 * needs. */
static inline size_t bow__decode_cap(size_t n_bytes)
{
    if (n_bytes >= BOW_LIMIT_CALL_ARENA_BYTES / 64) {
        return bow__call_cap(n_bytes);
    }
    size_t cap = n_bytes * 64 + ((size_t)64 << 10);
    return cap < BOW_LIMIT_CALL_ARENA_BYTES ? cap : BOW_LIMIT_CALL_ARENA_BYTES;
}

/**
 * Decode `bytes` as one message of `type` into `arena`.
 *
 * `options` may be NULL. On failure what is wrong is appended to `reason`: the
 * field's path, the byte's offset, and what, as in
 * "demo.HelloRequest.name at byte 7: not UTF-8"; what was taken from the arena
 * stays there until its reset.
 *
 * Thread:  any; one user of `arena` at a time
 * Owns:    gives nothing; `*ret_message` lives in `arena`. Borrows `bytes`, keeps
 *          them when `options->block` is set
 * Returns: 0, or -EBADMSG, or -ENOMEM (the arena's cap, which the reason names, or
 *          an allocation)
 */
int bow__decode(const ProtobufCMessageDescriptor *type, struct bow_slice bytes,
                const struct bow__decode_options *options, struct bow__arena *arena,
                ProtobufCMessage **ret_message, struct bow__text *reason);

#endif
