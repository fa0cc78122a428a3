/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * JSON to messages: the members of objects to fields, and Any. Messages call themselves for those
 * they hold, the depth being limited.
 */
#include "base/hints.h"
#include "base/options.h"
#include "rpc/core/codec/encode.h"
#include "rpc/core/codec/map_entry.h"
#include "rpc/json/json_names.h"
#include "rpc/json/json_read_known.h"
#include "rpc/json/json_read_value.h"
#include "rpc/messages/reason.h"
#include <bowline/message.h>

static bool read_message(struct bow__json_reader *r, ProtobufCMessage *message);

/* Fields */

/* Null stands for no value, unless it is one. */
static bool takes_null(const ProtobufCFieldDescriptor *field)
{
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        return bow__known_type(field->descriptor) == BOW__KNOWN_VALUE;
    }
    return field->type == PROTOBUF_C_TYPE_ENUM && bow__known_null_value(field->descriptor);
}

static bool is_null(struct bow__json_reader *r)
{
    return bow__json_peek(r) == 'n' && bow__json_take_word(r, "null");
}

static enum bow__json_got read_value(struct bow__json_reader *r,
                                     const ProtobufCFieldDescriptor *field, void *member)
{
    if (field->type != PROTOBUF_C_TYPE_MESSAGE) {
        return bow__json_read_scalar(r, field, member);
    }
    ProtobufCMessage *message = bow__json_new(r, field->descriptor);
    if (message == NULL) {
        return BOW__JSON_FAILED;
    }
    if (!bow__json_path_down(&r->path)) {
        bow__json_too_deep(r);
        return BOW__JSON_FAILED;
    }
    if (!read_message(r, message)) {
        return BOW__JSON_FAILED;
    }
    bow__json_path_up(&r->path);
    *(ProtobufCMessage **)member = message;
    return BOW__JSON_VALUE;
}

static bool read_single(struct bow__json_reader *r, ProtobufCMessage *message,
                        const ProtobufCFieldDescriptor *field)
{
    const char *quantifier = (const char *)message + field->quantifier_offset;

    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0 &&
        *(const uint32_t *)(const void *)quantifier != 0) {
        return bow__json_refuse(r, r->at, "another field of its oneof is there already");
    }
    bow__json_peek(r);
    const uint8_t *begin = r->at;
    enum bow__json_got got = read_value(r, field, (char *)message + field->offset);
    if (got == BOW__JSON_VALUE) {
        bow__json_mark(message, field);
    } else if (got == BOW__JSON_NOTHING && field->label == PROTOBUF_C_LABEL_REQUIRED) {
        return bow__json_refuse(r, begin, "required, and no value that is known");
    }
    return got != BOW__JSON_FAILED;
}

static bool read_field(struct bow__json_reader *r, ProtobufCMessage *message, unsigned index)
{
    const ProtobufCFieldDescriptor *field = &message->descriptor->fields[index];

    if (field->label != PROTOBUF_C_LABEL_REPEATED) {
        if (takes_null(field) || !is_null(r)) {
            return read_single(r, message, field);
        }
        return field->label != PROTOBUF_C_LABEL_REQUIRED ||
               bow__json_refuse(r, r->at - strlen("null"), "required, and null");
    }
    if (is_null(r)) {
        return true;
    }
    return bow__is_map(message->descriptor, field)
               ? bow__json_read_entries(r, message, field, read_value)
               : bow__json_read_elements(r, message, field, read_value);
}

/* Which fields were there: a bit for each */

#define FEW_FIELDS 256u

struct seen {
    uint64_t few[FEW_FIELDS / 64];
    uint64_t *bits;
    bool has_type; /* "@type", which is no field */
};

static bool seen_begin(struct bow__json_reader *r, struct seen *seen, unsigned n_fields)
{
    size_t n_words = ((size_t)n_fields + 63) / 64;

    seen->bits = seen->few;
    seen->has_type = false;
    if (n_fields > FEW_FIELDS) {
        seen->bits = bow__arena_alloc(r->arena, n_words * sizeof seen->bits[0]);
        if (seen->bits == NULL) {
            return bow__json_no_memory(r);
        }
    }
    memset(seen->bits, 0, n_words * sizeof seen->bits[0]);
    return true;
}

static bool seen_has(const struct seen *seen, unsigned index)
{
    return (seen->bits[index / 64] >> (index % 64) & 1) != 0;
}

static void seen_add(struct seen *seen, unsigned index)
{
    seen->bits[index / 64] |= UINT64_C(1) << (index % 64);
}

/* Objects */

static bool is_type_name(struct bow_slice name)
{
    return name.len == 5 && memcmp(name.data, "@type", 5) == 0;
}

/* A member that no field has the name of. */
BOW__LONG_WAY static bool read_unknown(struct bow__json_reader *r, const uint8_t *at,
                                       struct bow_slice name)
{
    char shown[64];
    size_t n = 0;

    if (r->ignore_unknown) {
        return bow__json_skip(r, 0);
    }
    for (size_t i = 0; i < name.len && n < sizeof shown - 1; i++) {
        uint8_t c = name.data[i];
        shown[n++] = (char)(c >= 0x20 && c < 0x7f ? c : '?');
    }
    shown[n] = '\0';
    return bow__json_refuse(r, at, "no field \"%s\"", shown);
}

/* The "@type" of an Any, which find_url() has read. */
static bool skip_type(struct bow__json_reader *r, const uint8_t *at, bool *has_type)
{
    if (*has_type) {
        return bow__json_refuse(r, at, "a member is there twice");
    }
    *has_type = true;
    return bow__json_skip(r, 0);
}

/* One member; `guess` is the field that probably comes. */
static bool read_member(struct bow__json_reader *r, ProtobufCMessage *message, struct seen *seen,
                        bool has_type, unsigned *guess)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    const struct bow_field_info *infos = bow__json_fields(type);
    struct bow_slice name;

    bow__json_path_at(&r->path, NULL);
    bow__json_peek(r);
    const uint8_t *begin = r->at;
    if (!bow__json_read_name(r, &name)) {
        return false;
    }
    unsigned index = bow__json_find(type, infos, name, *guess);
    if (index == type->n_fields) {
        return has_type && is_type_name(name) ? skip_type(r, begin, &seen->has_type)
                                              : read_unknown(r, begin, name);
    }
    bow__json_path_at(&r->path, &type->fields[index]);
    if (seen_has(seen, index)) {
        return bow__json_refuse(r, begin, "the field is there twice");
    }
    seen_add(seen, index);
    *guess = index + 1;
    return read_field(r, message, index);
}

static bool has_required(struct bow__json_reader *r, const ProtobufCMessage *message,
                         const struct seen *seen)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;

    bow__json_path_at(&r->path, NULL);
    for (unsigned i = 0; i < type->n_fields; i++) {
        if (type->fields[i].label == PROTOBUF_C_LABEL_REQUIRED && !seen_has(seen, i)) {
            bow__json_path_at(&r->path, &type->fields[i]);
            return bow__json_refuse(r, r->at - 1, "required, and missing");
        }
    }
    return true;
}

/* The members of an object; with `has_type` it is that of an Any, whose "@type" is known already.
 */
static bool read_fields(struct bow__json_reader *r, ProtobufCMessage *message, bool has_type)
{
    struct seen seen;
    unsigned guess = 0;

    if (!bow__json_take(r, '{')) {
        return bow__json_refuse_next(r, "an object");
    }
    if (!seen_begin(r, &seen, message->descriptor->n_fields)) {
        return false;
    }
    if (!bow__json_take(r, '}')) {
        do {
            if (!read_member(r, message, &seen, has_type, &guess)) {
                return false;
            }
        } while (bow__json_has_next(r, '}'));
        if (r->error != 0) {
            return false;
        }
    }
    return has_required(r, message, &seen);
}

/* Any */

/* Look for "@type" in the object that comes next, which stays. `*ret_url` is NULL when the object
 * is empty. */
static bool find_url(struct bow__json_reader *r, char **ret_url)
{
    const uint8_t *begin = r->at;
    struct bow_slice name;
    bool is_found = false;

    *ret_url = NULL;
    if (!bow__json_take(r, '{')) {
        return bow__json_refuse_next(r, "an object");
    }
    if (bow__json_take(r, '}')) {
        return true;
    }
    do {
        if (!bow__json_read_name(r, &name)) {
            return false;
        }
        is_found = is_type_name(name);
        if (is_found ? !bow__json_read_string(r, ret_url) : !bow__json_skip(r, 1)) {
            return false;
        }
    } while (!is_found && bow__json_has_next(r, '}'));
    if (r->error != 0) {
        return false;
    }
    if (!is_found) {
        return bow__json_refuse(r, begin, "an object with \"@type\" is needed");
    }
    r->n_searched += (size_t)(r->at - begin);
    if (r->n_searched / BOW_LIMIT_JSON_TYPE_SEARCHES > (size_t)(r->end - r->begin)) {
        return bow__json_refuse(r, begin,
                                "\"@type\" stands behind too much too often: put it first "
                                "(BOW_LIMIT_JSON_TYPE_SEARCHES, %u)",
                                BOW_LIMIT_JSON_TYPE_SEARCHES);
    }
    r->at = begin;
    return true;
}

/* An Empty has no form of its own in JSON, but some (Go) write it as if it had one. */
static bool is_empty_type(const ProtobufCMessageDescriptor *type)
{
    return type->n_fields == 0 && type->name != NULL &&
           strcmp(type->name, "google.protobuf.Empty") == 0;
}

/* The object of an Any whose content has a form of its own, as "value"; of an Empty that may be
 * missing. */
static bool read_wrapped(struct bow__json_reader *r, ProtobufCMessage *content)
{
    bool has_type = false, has_value = false;

    bow__json_take(r, '{'); /* find_url() has seen it */
    do {
        struct bow_slice name;
        bow__json_peek(r);
        const uint8_t *begin = r->at;
        if (!bow__json_read_name(r, &name)) {
            return false;
        }
        bool is_value = name.len == 5 && memcmp(name.data, "value", 5) == 0;
        if (is_value && has_value) {
            return bow__json_refuse(r, begin, "a member is there twice");
        }
        has_value |= is_value;
        if (is_value             ? !read_message(r, content)
            : is_type_name(name) ? !skip_type(r, begin, &has_type)
                                 : !read_unknown(r, begin, name)) {
            return false;
        }
    } while (bow__json_has_next(r, '}'));
    return r->error == 0 &&
           (has_value || is_empty_type(content->descriptor) ||
            bow__json_refuse(r, r->at - 1, "\"value\" is needed beside \"@type\""));
}

/* Encode `content` as what `any` holds. */
static bool store_content(struct bow__json_reader *r, ProtobufCMessage *any,
                          const ProtobufCMessage *content)
{
    size_t size = bow__encoded_size(content);

    if (size == SIZE_MAX) {
        return bow__json_refuse(r, r->at, "nested too deep, or too large, to be encoded");
    }
    uint8_t *data = bow__arena_alloc_bytes(r->arena, size);
    if (data == NULL) {
        return bow__json_no_memory(r);
    }
    bow__encode(content, data, size, NULL);
    *(ProtobufCBinaryData *)bow__known_member(any, BOW__ANY_VALUE) =
        (ProtobufCBinaryData){.len = size, .data = data};
    return true;
}

BOW__LONG_WAY static bool refuse_type(struct bow__json_reader *r, const uint8_t *at,
                                      const char *url)
{
    struct bow__text shown = bow__json_shown_url(url);
    return bow__json_refuse(r, at, "the type \"%s\" is not among those that options.files has",
                            shown.bytes);
}

static bool read_any(struct bow__json_reader *r, ProtobufCMessage *any)
{
    const ProtobufCMessageDescriptor *type = NULL;
    char *url;

    bow__json_peek(r);
    const uint8_t *begin = r->at;
    if (!find_url(r, &url)) {
        return false;
    }
    if (url == NULL) {
        return true;
    }
    int rc = bow__json_types_find(&r->types, r->arena, bow__known_any_name(url), &type);
    if (rc < 0) {
        return rc == -ENOMEM ? bow__json_no_memory(r) : refuse_type(r, begin, url);
    }
    ProtobufCMessage *content = bow__json_new(r, type);
    if (content == NULL) {
        return false;
    }
    bow__json_path_at(&r->path, &any->descriptor->fields[BOW__ANY_VALUE]);
    if (!bow__json_path_down(&r->path)) {
        return bow__json_too_deep(r);
    }
    bool is_plain = bow__known_type(type) == BOW__KNOWN_NONE && !is_empty_type(type);
    if (!(is_plain ? read_fields(r, content, true) : read_wrapped(r, content))) {
        return false;
    }
    bow__json_path_up(&r->path);
    *(char **)bow__known_member(any, BOW__ANY_TYPE_URL) = url;
    return store_content(r, any, content);
}

static bool read_message(struct bow__json_reader *r, ProtobufCMessage *message)
{
    enum bow__known_type kind = bow__known_type(message->descriptor);

    if (kind == BOW__KNOWN_NONE) {
        return read_fields(r, message, false);
    }
    return kind == BOW__KNOWN_ANY ? read_any(r, message) : bow__json_read_known(r, message, kind);
}

/* The whole */

static void say_no_memory(char *reason, size_t size)
{
    if (reason != NULL) {
        (void)snprintf(reason, size, "no memory for the message");
    }
}

static int begin(struct bow__json_reader *r, const ProtobufCMessageDescriptor *type,
                 struct bow_slice text, const struct bow_json_options *given)
{
    struct bow_json_options options = BOW_JSON_OPTIONS_INIT;
    int rc = given != NULL ? bow__options_read(&options, sizeof options, given) : 0;

    r->error = 0;
    r->n_searched = 0;
    bow__text_clear(&r->reason);
    if (rc < 0 || options.max_depth > BOW_LIMIT_MESSAGE_DEPTH || type == NULL) {
        bow__text_printf(&r->reason, "options: a size that is not known, or a value out of range");
        return -EINVAL;
    }
    uint32_t depth = options.max_depth > 0 ? options.max_depth : BOW_LIMIT_MESSAGE_DEPTH;
    bow__json_path_begin(&r->path, type, depth);
    r->begin = r->at = text.len > 0 ? text.data : (const uint8_t *)"";
    r->end = r->begin + text.len;
    r->types = (struct bow__json_types){.given = options.files, .n_given = options.n_files};
    r->ignore_unknown = options.ignore_unknown;
    return 0;
}

static int read_into_arena(const ProtobufCMessageDescriptor *type, struct bow_slice text,
                           const struct bow_json_options *options, struct bow__arena *arena,
                           ProtobufCMessage **ret_message, char *reason, size_t reason_size)
{
    struct bow__json_reader r;
    int rc = begin(&r, type, text, options);

    if (rc == 0) {
        r.arena = arena;
        ProtobufCMessage *message = bow__json_new(&r, type);
        bool is_read = message != NULL && read_message(&r, message);
        if (is_read && (bow__json_peek(&r) != '\0' || r.at < r.end)) {
            bow__json_path_at(&r.path, NULL);
            bow__json_refuse(&r, r.at, "text behind the message");
        }
        rc = r.error;
        if (rc == 0) {
            *ret_message = message;
        }
    }
    bow__reason_give(&r.reason, reason, reason_size);
    return rc;
}

int bow_json_read(const ProtobufCMessageDescriptor *type, struct bow_slice text,
                  const struct bow_json_options *options, struct bow_arena *arena,
                  ProtobufCMessage **ret_message, char *reason, size_t reason_size)
{
    ProtobufCMessage *message = NULL;

    if (arena != NULL) {
        return read_into_arena(type, text, options, bow__arena_of(arena), ret_message, reason,
                               reason_size);
    }
    struct bow_arena *own = bow_arena_new(NULL, 0);
    if (own == NULL) {
        say_no_memory(reason, reason_size);
        return -ENOMEM;
    }
    int rc =
        read_into_arena(type, text, options, bow__arena_of(own), &message, reason, reason_size);
    if (rc == 0) {
        ProtobufCMessage *copy = bow_message_clone(message, NULL);
        if (copy != NULL) {
            *ret_message = copy;
        } else {
            say_no_memory(reason, reason_size);
            rc = -ENOMEM;
        }
    }
    bow_arena_free(own);
    return rc;
}
