/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* protobuf-c as the judge of the codec: which bytes both must read alike, and where it is known to
 * be wrong. */
#include "tests/support/codec_oracle.h"
#include "rpc/core/codec/decode.h"
#include "rpc/core/codec/encode.h"
#include "rpc/core/codec/wire.h"
#include <bowline/service.h>
#include <stdlib.h>

#define MAX_SINGULAR 512 /* fields of one message that are looked at for coming twice */

static unsigned wire_type_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return BOW__WIRE_FIXED32;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return BOW__WIRE_FIXED64;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return BOW__WIRE_LEN;
    default:
        return BOW__WIRE_VARINT;
    }
}

struct piece {
    uint32_t number;
    unsigned wire_type;
    struct bow_slice body; /* of length-prefixed ones */
};

/* The field at the front of `bytes`; false when there is none that can be read. */
static bool next_piece(struct bow_slice *bytes, struct piece *ret_piece)
{
    const uint8_t *at = bytes->data;
    const uint8_t *end = at + bytes->len;
    uint64_t tag = 0;
    uint64_t value = 0;
    at = bow__wire_read_varint(at, end, &tag);
    if (at == NULL) {
        return false;
    }
    *ret_piece = (struct piece){.number = (uint32_t)tag >> 3, .wire_type = tag & 7};
    switch (tag & 7) {
    case BOW__WIRE_VARINT:
        at = bow__wire_read_varint(at, end, &value);
        break;
    case BOW__WIRE_FIXED64:
    case BOW__WIRE_FIXED32: {
        size_t size = (tag & 7) == BOW__WIRE_FIXED64 ? 8 : 4;
        at = (size_t)(end - at) >= size ? at + size : NULL;
        break;
    }
    case BOW__WIRE_LEN:
        at = bow__wire_read_varint(at, end, &value);
        if (at != NULL && value <= (size_t)(end - at)) {
            ret_piece->body = (struct bow_slice){at, (size_t)value};
            at += value;
        } else {
            at = NULL;
        }
        break;
    default: /* groups: what is inside reads as fields of the same message, which will do */
        break;
    }
    if (at == NULL) {
        return false;
    }
    *bytes = (struct bow_slice){at, (size_t)(end - at)};
    return true;
}

static bool can_merge(const ProtobufCFieldDescriptor *field)
{
    return field->label != PROTOBUF_C_LABEL_REPEATED &&
           (field->type == PROTOBUF_C_TYPE_MESSAGE ||
            (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0);
}

/* The same for all members of a oneof. */
static size_t slot_of(const ProtobufCMessageDescriptor *type, const ProtobufCFieldDescriptor *field)
{
    size_t i = (size_t)(field - type->fields);
    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) {
        for (i = 0; type->fields[i].quantifier_offset != field->quantifier_offset; i++) {
        }
    }
    return i;
}

/* Whether an entry with `seen` fields lacks one that would be a NULL pointer. */
static bool is_partial_entry(const ProtobufCMessageDescriptor *type, const bool *seen)
{
    if (type->n_fields != 2 || type->fields[0].name == NULL ||
        strcmp(type->fields[0].name, "key") != 0) {
        return false;
    }
    for (unsigned i = 0; i < 2; i++) {
        bool is_pointer = type->fields[i].type == PROTOBUF_C_TYPE_MESSAGE ||
                          (type->fields[i].type == PROTOBUF_C_TYPE_STRING &&
                           type->fields[i].label == PROTOBUF_C_LABEL_OPTIONAL);
        if (is_pointer && !seen[i]) {
            return true;
        }
    }
    return false;
}

static unsigned excuses_at(const ProtobufCMessageDescriptor *type, struct bow_slice bytes,
                           unsigned depth)
{
    bool seen[MAX_SINGULAR] = {false};
    unsigned excuses = 0;
    struct piece piece;
    if (depth > BOW_LIMIT_MESSAGE_DEPTH) {
        return CODEC_LEVELS;
    }
    while (next_piece(&bytes, &piece)) {
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field(type, piece.number);
        if (piece.wire_type == BOW__WIRE_GROUP_START || piece.wire_type == BOW__WIRE_GROUP_END) {
            excuses |= CODEC_WIRE;
        }
        if (field == NULL) {
            continue;
        }
        bool is_packed = field->label == PROTOBUF_C_LABEL_REPEATED &&
                         piece.wire_type == BOW__WIRE_LEN &&
                         wire_type_of(field->type) != BOW__WIRE_LEN;
        bool is_group = (field->flags & BOW_DESCRIPTOR_GROUP) != 0;
        if (is_group || (wire_type_of(field->type) != piece.wire_type && !is_packed)) {
            excuses |= CODEC_WIRE;
            continue;
        }
        size_t slot = slot_of(type, field);
        if (slot < MAX_SINGULAR) {
            excuses |= seen[slot] && can_merge(field) ? CODEC_MERGES : 0;
            seen[slot] = true;
        }
        if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
            excuses |= excuses_at(field->descriptor, piece.body, depth + 1);
        }
    }
    return excuses | (is_partial_entry(type, seen) ? CODEC_ENTRY : 0);
}

unsigned codec_oracle_excuses(const ProtobufCMessageDescriptor *type, struct bow_slice bytes)
{
    return excuses_at(type, bytes, 0);
}

/* What only this decoder refuses. */
static bool is_stricter(const char *reason)
{
    static const char *const texts[] = {"not UTF-8",     "NUL inside a string", "field number 0",
                                        "above 64 bits", "field number above",  "no memory"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (strstr(reason, texts[i]) != NULL) {
            return true;
        }
    }
    return false;
}

static bool pack_alike(const ProtobufCMessage *ours, const ProtobufCMessage *theirs)
{
    size_t len = protobuf_c_message_get_packed_size(theirs);
    if (protobuf_c_message_get_packed_size(ours) != len) {
        return false;
    }
    uint8_t *bytes = malloc(2 * len + 1);
    if (bytes == NULL) {
        return true;
    }
    protobuf_c_message_pack(ours, bytes);
    protobuf_c_message_pack(theirs, bytes + len);
    bool alike = memcmp(bytes, bytes + len, len) == 0;
    free(bytes);
    return alike;
}

/* Our own encoder must give what decodes to the same again. */
static const char *check_round_trip(const ProtobufCMessage *message, struct bow__arena *arena)
{
    struct bow__text reason = {0};
    size_t size = bow__encoded_size(message);
    if (size == SIZE_MAX) {
        return "decoded, and can't be encoded";
    }
    uint8_t *bytes = malloc(size > 0 ? size : 1);
    if (bytes == NULL) {
        return NULL;
    }
    const char *fault = NULL;
    ProtobufCMessage *again = NULL;
    if (bow__encode(message, bytes, size, NULL) != (ssize_t)size) {
        fault = "encoded to another size than measured";
    } else {
        int rc = bow__decode(message->descriptor, (struct bow_slice){bytes, size}, NULL, arena,
                             &again, &reason);
        if (rc == -EBADMSG || (rc == 0 && !pack_alike(again, message))) {
            fault = "decodes to something else after encoding";
        }
    }
    free(bytes);
    return fault;
}

static const char *compare(const ProtobufCMessageDescriptor *type, struct bow_slice bytes,
                           struct bow__arena *arena, struct bow__text *reason)
{
    ProtobufCMessage *ours = NULL;
    int rc = bow__decode(type, bytes, NULL, arena, &ours, reason);
    if ((rc == 0) != (ours != NULL) || (rc == 0) != (reason->len == 0)) {
        return "result and outputs contradict each other";
    }
    const char *fault = rc == 0 ? check_round_trip(ours, arena) : NULL;
    unsigned excuses = codec_oracle_excuses(type, bytes);
    if (fault != NULL || (excuses & CODEC_LEVELS) != 0) {
        return fault; /* too deep for protobuf-c's recursion as well */
    }
    ProtobufCMessage *theirs = protobuf_c_message_unpack(type, NULL, bytes.len, bytes.data);
    if (rc != 0 && theirs != NULL && !is_stricter(reason->bytes) && excuses == 0) {
        fault = "protobuf-c accepts what was refused";
    } else if (rc == 0 && theirs == NULL && (excuses & (CODEC_WIRE | CODEC_MERGES)) == 0) {
        fault = "protobuf-c refuses what was accepted";
    } else if (rc == 0 && theirs != NULL && excuses == 0 && !pack_alike(ours, theirs)) {
        fault = "decoded to something else than protobuf-c does";
    }
    if (theirs != NULL) {
        protobuf_c_message_free_unpacked(theirs, NULL);
    }
    return fault;
}

bool codec_oracle_agrees(const ProtobufCMessageDescriptor *type, struct bow_slice bytes,
                         struct bow__arena *arena, struct bow__text *fault)
{
    struct bow__text reason = {0};
    const char *what = compare(type, bytes, arena, &reason);
    if (what == NULL) {
        return true;
    }
    bow__text_printf(fault, "%s: %s (%s)", type->name != NULL ? type->name : "?", what,
                     reason.bytes);
    return false;
}
