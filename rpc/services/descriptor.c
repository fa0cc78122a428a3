/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Reading descriptors, field by field. The numbers are descriptor.proto's.
 */

#include "rpc/services/descriptor.h"
#include "rpc/core/codec/wire.h"

enum {
    FILE_PACKAGE = 2,
    FILE_DEPENDENCY = 3,
    FILE_MESSAGE = 4,
    FILE_ENUM = 5,
    FILE_SERVICE = 6,
    FILE_EXTENSION = 7,
    FILE_PUBLIC_DEPENDENCY = 10,
    FILE_WEAK_DEPENDENCY = 11,

    MESSAGE_FIELD = 2,
    MESSAGE_NESTED = 3,
    MESSAGE_ENUM = 4,
    MESSAGE_EXTENSION = 6,
    MESSAGE_ONEOF = 8,

    FIELD_EXTENDEE = 2,
    FIELD_NUMBER = 3,
    FIELD_TYPE_NAME = 6,

    ENUM_VALUE = 2,
    SERVICE_METHOD = 2,
    METHOD_INPUT = 2,
    METHOD_OUTPUT = 3,

    ANY_NAME = 1, /* of all of them */
};

/* One field of a message: its value's bytes, or its varint. */
struct part {
    uint32_t number;
    enum bow__wire_type type;
    struct bow_slice bytes; /* LEN alone */
    uint64_t varint;        /* VARINT alone */
    struct bow_slice whole; /* with its tag */
};

struct walk {
    struct bow__arena *arena;
    const struct bow__descriptor_visitor *visitor;
    void *user;
};

/* Returns 1; 0 at the end; -EBADMSG. */
static int next(struct bow_slice *rest, struct part *part)
{
    const uint8_t *begin = rest->data;
    const uint8_t *end = begin + rest->len;
    uint64_t tag = 0;

    if (rest->len == 0) {
        return 0;
    }
    const uint8_t *at = bow__wire_read_varint(begin, end, &tag);
    if (at == NULL || tag >> 3 == 0 || tag >> 3 > BOW__WIRE_MAX_NUMBER) {
        return -EBADMSG;
    }
    *part = (struct part){.number = (uint32_t)(tag >> 3), .type = (enum bow__wire_type)(tag & 7)};
    size_t n_fixed = part->type == BOW__WIRE_FIXED64 ? 8 : part->type == BOW__WIRE_FIXED32 ? 4 : 0;
    if (part->type == BOW__WIRE_VARINT || part->type == BOW__WIRE_LEN) {
        at = bow__wire_read_varint(at, end, &part->varint);
    } else if (n_fixed == 0) {
        return -EBADMSG;
    }
    size_t n = part->type == BOW__WIRE_LEN ? part->varint : n_fixed;
    if (at == NULL || n > (size_t)(end - at)) {
        return -EBADMSG;
    }
    part->bytes = (struct bow_slice){at, n};
    part->whole = (struct bow_slice){begin, (size_t)(at + n - begin)};
    *rest = (struct bow_slice){at + n, (size_t)(end - at) - n};
    return 1;
}

/* The last field of that number, or nothing. */
static int find(struct bow_slice bytes, uint32_t number, struct part *ret_part)
{
    struct part part;
    int rc;

    *ret_part = (struct part){0};
    while ((rc = next(&bytes, &part)) > 0) {
        if (part.number == number) {
            *ret_part = part;
        }
    }
    return rc;
}

/* Walking */

/* `*ret_full` is "scope.name", of the name that is in `bytes`. */
static int tell_symbol(const struct walk *walk, struct bow_slice scope, struct bow_slice bytes,
                       bool is_message, struct bow_slice *ret_full)
{
    struct part name;
    int rc = find(bytes, ANY_NAME, &name);

    if (rc < 0 || walk->visitor->symbol == NULL) {
        return rc;
    }
    size_t n_scope = scope.len > 0 ? scope.len + 1 : 0;
    uint8_t *full = bow__arena_alloc_bytes(walk->arena, n_scope + name.bytes.len);
    if (full == NULL) {
        return -ENOMEM;
    }
    if (n_scope > 0) {
        memcpy(full, scope.data, scope.len);
        full[scope.len] = '.';
    }
    if (name.bytes.len > 0) {
        memcpy(full + n_scope, name.bytes.data, name.bytes.len);
    }
    *ret_full = (struct bow_slice){full, n_scope + name.bytes.len};
    return walk->visitor->symbol(*ret_full, is_message, walk->user);
}

static int tell_named(const struct walk *walk, struct bow_slice scope, struct bow_slice bytes)
{
    struct bow_slice full = {0};

    return tell_symbol(walk, scope, bytes, false, &full);
}

static int tell_reference(const struct walk *walk, struct bow_slice bytes, uint32_t number)
{
    struct part type;
    int rc = find(bytes, number, &type);

    if (rc == 0 && type.bytes.len > 0 && walk->visitor->reference != NULL) {
        rc = walk->visitor->reference(type.bytes, walk->user);
    }
    return rc;
}

static int walk_field(const struct walk *walk, struct bow_slice scope, struct bow_slice bytes)
{
    int rc = tell_named(walk, scope, bytes);

    return rc == 0 ? tell_reference(walk, bytes, FIELD_TYPE_NAME) : rc;
}

static int walk_extension(const struct walk *walk, struct bow_slice scope, struct bow_slice bytes)
{
    struct part extendee;
    struct part number;
    int rc = walk_field(walk, scope, bytes);

    rc = rc == 0 ? tell_reference(walk, bytes, FIELD_EXTENDEE) : rc;
    rc = rc == 0 ? find(bytes, FIELD_EXTENDEE, &extendee) : rc;
    rc = rc == 0 ? find(bytes, FIELD_NUMBER, &number) : rc;
    if (rc == 0 && walk->visitor->extension != NULL) {
        rc = walk->visitor->extension(extendee.bytes, (int32_t)number.varint, walk->user);
    }
    return rc;
}

/* Values stand beside their enum, not in it. */
static int walk_enum(const struct walk *walk, struct bow_slice scope, struct bow_slice bytes)
{
    struct part part;
    int rc = tell_named(walk, scope, bytes);

    while (rc == 0 && (rc = next(&bytes, &part)) > 0) {
        rc = part.number == ENUM_VALUE ? tell_named(walk, scope, part.bytes) : 0;
    }
    return rc;
}

static int walk_message(const struct walk *walk, struct bow_slice scope, struct bow_slice bytes,
                        unsigned depth);

static int walk_message_part(const struct walk *walk, struct bow_slice full,
                             const struct part *part, unsigned depth)
{
    switch (part->number) {
    case MESSAGE_FIELD:
        return walk_field(walk, full, part->bytes);
    case MESSAGE_NESTED:
        return walk_message(walk, full, part->bytes, depth + 1);
    case MESSAGE_ENUM:
        return walk_enum(walk, full, part->bytes);
    case MESSAGE_EXTENSION:
        return walk_extension(walk, full, part->bytes);
    case MESSAGE_ONEOF:
        return tell_named(walk, full, part->bytes);
    default:
        return 0;
    }
}

static int walk_message(const struct walk *walk, struct bow_slice scope, struct bow_slice bytes,
                        unsigned depth)
{
    struct bow_slice full = {0};
    struct part part;

    if (depth > BOW__DESCRIPTOR_DEPTH) {
        return -EBADMSG;
    }
    int rc = tell_symbol(walk, scope, bytes, true, &full);
    while (rc == 0 && (rc = next(&bytes, &part)) > 0) {
        rc = walk_message_part(walk, full, &part, depth);
    }
    return rc;
}

static int walk_method(const struct walk *walk, struct bow_slice scope, struct bow_slice bytes)
{
    int rc = tell_named(walk, scope, bytes);

    rc = rc == 0 ? tell_reference(walk, bytes, METHOD_INPUT) : rc;
    return rc == 0 ? tell_reference(walk, bytes, METHOD_OUTPUT) : rc;
}

static int walk_service(const struct walk *walk, struct bow_slice scope, struct bow_slice bytes)
{
    struct bow_slice full = {0};
    struct part part;
    int rc = tell_symbol(walk, scope, bytes, false, &full);

    while (rc == 0 && (rc = next(&bytes, &part)) > 0) {
        rc = part.number == SERVICE_METHOD ? walk_method(walk, full, part.bytes) : 0;
    }
    return rc;
}

static int walk_file_part(const struct walk *walk, struct bow_slice package,
                          const struct part *part)
{
    switch (part->number) {
    case FILE_DEPENDENCY:
        return walk->visitor->dependency != NULL
                   ? walk->visitor->dependency(part->bytes, walk->user)
                   : 0;
    case FILE_MESSAGE:
        return walk_message(walk, package, part->bytes, 0);
    case FILE_ENUM:
        return walk_enum(walk, package, part->bytes);
    case FILE_SERVICE:
        return walk_service(walk, package, part->bytes);
    case FILE_EXTENSION:
        return walk_extension(walk, package, part->bytes);
    default:
        return 0;
    }
}

int bow__descriptor_walk(struct bow_slice bytes, struct bow__arena *arena,
                         const struct bow__descriptor_visitor *visitor, void *user)
{
    const struct walk walk = {.arena = arena, .visitor = visitor, .user = user};
    struct part package;
    struct part part;
    int rc = find(bytes, FILE_PACKAGE, &package);

    while (rc == 0 && (rc = next(&bytes, &part)) > 0) {
        rc = walk_file_part(&walk, package.bytes, &part);
    }
    return rc;
}

/* Stripping */

struct stripping {
    bool (*keeps)(struct bow_slice name, void *user);
    void *user;
    struct bow_slice bytes; /* the whole file */
    uint8_t *to;
};

/* The number that the import `index` has among those that are kept; -1 for one that is not. */
static int64_t kept_index(const struct stripping *stripping, uint64_t index)
{
    struct bow_slice bytes = stripping->bytes;
    struct part part;
    int64_t n_kept = 0;
    uint64_t i = 0;

    while (next(&bytes, &part) > 0) {
        if (part.number != FILE_DEPENDENCY) {
            continue;
        }
        bool is_kept = stripping->keeps(part.bytes, stripping->user);
        if (i++ == index) {
            return is_kept ? n_kept : -1;
        }
        n_kept += is_kept;
    }
    return -1;
}

static void copy(struct stripping *stripping, struct bow_slice whole)
{
    memcpy(stripping->to, whole.data, whole.len);
    stripping->to += whole.len;
}

/* The new number is no larger, and takes no more bytes. */
static void copy_numbered(struct stripping *stripping, const struct part *part)
{
    int64_t index = kept_index(stripping, part->varint);

    if (index >= 0) {
        *stripping->to++ = (uint8_t)bow__wire_tag(part->number, BOW__WIRE_VARINT);
        stripping->to = bow__wire_write_varint(stripping->to, (uint64_t)index);
    }
}

int bow__descriptor_strip(struct bow_slice bytes, struct bow__arena *arena,
                          bool (*keeps)(struct bow_slice name, void *user), void *user,
                          struct bow_slice *ret_bytes)
{
    uint8_t *to = bow__arena_alloc_bytes(arena, bytes.len);
    struct stripping stripping = {.keeps = keeps, .user = user, .bytes = bytes, .to = to};
    struct part part;
    int rc;

    if (to == NULL) {
        return -ENOMEM;
    }
    while ((rc = next(&bytes, &part)) > 0) {
        bool is_numbered =
            (part.number == FILE_PUBLIC_DEPENDENCY || part.number == FILE_WEAK_DEPENDENCY) &&
            part.type == BOW__WIRE_VARINT;
        if (is_numbered) {
            copy_numbered(&stripping, &part);
        } else if (part.number != FILE_DEPENDENCY || keeps(part.bytes, user)) {
            copy(&stripping, part.whole);
        }
    }
    if (rc == 0) {
        *ret_bytes = (struct bow_slice){to, (size_t)(stripping.to - to)};
    }
    return rc;
}
