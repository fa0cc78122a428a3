/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Messages to JSON: fields in the order of their numbers, maps, Any. Messages call themselves for
 * those they hold, the depth being limited.
 */
#include "base/options.h"
#include "rpc/core/codec/map_entry.h"
#include "rpc/json/json_names.h"
#include "rpc/json/json_write_known.h"
#include "rpc/messages/member.h"
#include "rpc/messages/reason.h"
#include <bowline/message.h>
#include <stdlib.h>

static bool put_message(struct bow__json_writer *w, const ProtobufCMessage *message);

static const void *member_at(const ProtobufCMessage *message, unsigned offset)
{
    return (const char *)message + offset;
}

/* Which fields are written */

/* Whether a field that is not repeated is there to be written. A required one always is, that what
 * it lacks is said. */
static bool is_written(const struct bow__json_writer *w, const ProtobufCFieldDescriptor *field,
                       const ProtobufCMessage *message)
{
    if (field->label == PROTOBUF_C_LABEL_REQUIRED || bow__member_has(message, field)) {
        return true;
    }
    return w->always_print && field->label == PROTOBUF_C_LABEL_NONE && !bow__is_in_oneof(field) &&
           field->type != PROTOBUF_C_TYPE_MESSAGE;
}

/* Names */

static void put_camel(struct bow__json_output *out, const char *name)
{
    bool is_upper = false;

    bow__json_put_char(out, '"');
    for (; *name != '\0'; name++) {
        char c = bow__json_camel(*name, &is_upper);
        if (c != '\0') {
            bow__json_put_char(out, c);
        }
    }
    bow__json_put_char(out, '"');
}

static bool put_name(struct bow__json_writer *w, const ProtobufCFieldDescriptor *field,
                     const struct bow_field_info *info)
{
    bow__json_next(&w->out);
    if (info != NULL && !w->preserve_names && info->json_name != NULL) {
        bow__json_put_string(&w->out, info->json_name, strlen(info->json_name));
    } else if (field->name == NULL) {
        return bow__json_writer_refuse(w, ": its descriptor has no name, as it was made for size");
    } else if (w->preserve_names) {
        bow__json_put_string(&w->out, field->name, strlen(field->name));
    } else {
        put_camel(&w->out, field->name);
    }
    bow__json_colon(&w->out);
    return true;
}

/* Values */

static bool put_value(struct bow__json_writer *w, const ProtobufCFieldDescriptor *field,
                      const void *member)
{
    if (field->type != PROTOBUF_C_TYPE_MESSAGE) {
        return bow__json_write_scalar(w, field, member);
    }
    const ProtobufCMessage *message = *(ProtobufCMessage *const *)member;
    if (!bow__json_writer_is_whole(w, message)) {
        return false;
    }
    if (!bow__json_path_down(&w->path)) {
        return bow__json_writer_refuse(w, ": nested deeper than %zu levels", w->path.max_depth);
    }
    if (!put_message(w, message)) {
        return false;
    }
    bow__json_path_up(&w->path);
    return true;
}

/* A key that is no string stands in quotation marks, too: 64-bit numbers do anyway. */
static bool put_key(struct bow__json_writer *w, const ProtobufCFieldDescriptor *field,
                    const void *member)
{
    bool is_bare = field->type != PROTOBUF_C_TYPE_STRING &&
                   (field->type == PROTOBUF_C_TYPE_BOOL || bow__value_size(field->type) == 4);

    if (is_bare) {
        bow__json_put_char(&w->out, '"');
    }
    if (!bow__json_write_scalar(w, field, member)) {
        return false;
    }
    if (is_bare) {
        bow__json_put_char(&w->out, '"');
    }
    bow__json_colon(&w->out);
    return true;
}

static bool put_entry(struct bow__json_writer *w, const ProtobufCMessage *entry)
{
    const ProtobufCFieldDescriptor *fields = entry->descriptor->fields;

    if (!bow__json_path_down(&w->path)) {
        return bow__json_writer_refuse(w, ": nested deeper than %zu levels", w->path.max_depth);
    }
    bow__json_next(&w->out);
    bow__json_path_at(&w->path, &fields[0]);
    if (!put_key(w, &fields[0], member_at(entry, fields[0].offset))) {
        return false;
    }
    bow__json_path_at(&w->path, &fields[1]);
    if (!put_value(w, &fields[1], member_at(entry, fields[1].offset))) {
        return false;
    }
    bow__json_path_up(&w->path);
    return true;
}

static bool put_map(struct bow__json_writer *w, ProtobufCMessage *const *entries, size_t n)
{
    bow__json_open(&w->out, '{');
    if (n > 0 && !bow__json_write_entries(w, entries, n, put_entry)) {
        return false;
    }
    bow__json_close(&w->out, '}');
    return true;
}

static bool put_list(struct bow__json_writer *w, const ProtobufCFieldDescriptor *field,
                     const char *elements, size_t n)
{
    size_t size = bow__value_size(field->type);

    bow__json_open(&w->out, '[');
    for (size_t i = 0; i < n; i++) {
        bow__json_path_index(&w->path, i);
        bow__json_next(&w->out);
        if (!put_value(w, field, elements + i * size)) {
            return false;
        }
    }
    bow__json_close(&w->out, ']');
    return true;
}

static bool put_repeated(struct bow__json_writer *w, const ProtobufCMessage *message,
                         unsigned index, const struct bow_field_info *infos)
{
    const ProtobufCFieldDescriptor *field = &message->descriptor->fields[index];
    size_t n = *(const size_t *)member_at(message, field->quantifier_offset);
    const void *elements = *(const void *const *)member_at(message, field->offset);

    if (n == 0 && !w->always_print) {
        return true;
    }
    if (!bow__json_writer_has_array(w, elements, n) ||
        !put_name(w, field, infos != NULL ? &infos[index] : NULL)) {
        return false;
    }
    return bow__is_map(message->descriptor, field)
               ? put_map(w, (ProtobufCMessage *const *)elements, n)
               : put_list(w, field, elements, n);
}

/* The members of a message's object, without its braces. */
static bool put_fields(struct bow__json_writer *w, const ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    const struct bow_field_info *infos = bow__json_fields(type);

    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        bow__json_path_at(&w->path, field);
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            if (!put_repeated(w, message, i, infos)) {
                return false;
            }
            continue;
        }
        if (!is_written(w, field, message)) {
            continue;
        }
        if (!put_name(w, field, infos != NULL ? &infos[i] : NULL) ||
            !put_value(w, field, member_at(message, field->offset))) {
            return false;
        }
    }
    bow__json_path_at(&w->path, NULL);
    return true;
}

/* Any */

/* What an Any holds, below its "@type". */
static bool put_content(struct bow__json_writer *w, const ProtobufCMessage *content)
{
    if (bow__known_type(content->descriptor) == BOW__KNOWN_NONE) {
        return put_fields(w, content);
    }
    bow__json_next(&w->out);
    bow__json_put(&w->out, "\"value\"");
    bow__json_colon(&w->out);
    return put_message(w, content);
}

static bool decode_content(struct bow__json_writer *w, const ProtobufCMessage *any, const char *url,
                           ProtobufCMessage **ret_content)
{
    const ProtobufCBinaryData *bytes = bow__known_member(any, BOW__ANY_VALUE);
    const ProtobufCMessageDescriptor *type = NULL;
    struct bow_decode_options options = BOW_DECODE_OPTIONS_INIT;
    char reason[BOW__TEXT_BYTES];

    int rc = bow__json_types_find(&w->types, w->out.arena, bow__known_any_name(url), &type);
    if (rc == -ENOMEM) {
        return bow__json_writer_no_memory(w);
    }
    if (rc < 0) {
        struct bow__text shown = bow__json_shown_url(url);
        return bow__json_writer_refuse(w, " holds \"%s\", which is not in options.files",
                                       shown.bytes);
    }
    options.max_message_bytes = bytes->len > 0 ? bytes->len : 1;
    rc = bow_message_decode(type, (struct bow_slice){bytes->data, bytes->len}, &options,
                            bow__arena_as_public(w->out.arena), ret_content, reason, sizeof reason);
    if (rc < 0) {
        bow__json_writer_refuse(w, " holds what cannot be decoded: %s", reason);
        w->error = rc == -ENOMEM ? rc : -EINVAL;
        return false;
    }
    return true;
}

static bool put_any(struct bow__json_writer *w, const ProtobufCMessage *any)
{
    const char *url = *(const char *const *)bow__known_member(any, BOW__ANY_TYPE_URL);
    ProtobufCMessage *content = NULL;

    bow__json_path_at(&w->path, &any->descriptor->fields[BOW__ANY_VALUE]);
    if (url == NULL || url[0] == '\0') {
        if (((const ProtobufCBinaryData *)bow__known_member(any, BOW__ANY_VALUE))->len > 0) {
            return bow__json_writer_refuse(w, ": bytes of no type");
        }
        bow__json_put(&w->out, "{}");
        return true;
    }
    if (!bow__json_path_down(&w->path)) {
        return bow__json_writer_refuse(w, ": nested deeper than %zu levels", w->path.max_depth);
    }
    if (!decode_content(w, any, url, &content)) {
        return false;
    }
    bow__json_open(&w->out, '{');
    bow__json_next(&w->out);
    bow__json_put(&w->out, "\"@type\"");
    bow__json_colon(&w->out);
    bool is_put = (bow__json_put_string(&w->out, url, strlen(url)) ||
                   bow__json_writer_refuse(w, ": the type's URL is not UTF-8")) &&
                  put_content(w, content);
    if (w->out.arena == NULL) {
        bow_message_free(content);
    }
    if (!is_put) {
        return false;
    }
    bow__json_close(&w->out, '}');
    bow__json_path_up(&w->path);
    return true;
}

static bool put_message(struct bow__json_writer *w, const ProtobufCMessage *message)
{
    enum bow__known_type kind = bow__known_type(message->descriptor);
    if (kind == BOW__KNOWN_ANY) {
        return put_any(w, message);
    }
    if (kind != BOW__KNOWN_NONE) {
        return bow__json_write_known(w, message, kind);
    }
    bow__json_open(&w->out, '{');
    if (!put_fields(w, message)) {
        return false;
    }
    bow__json_close(&w->out, '}');
    return true;
}

/* The whole */

static void say_no_memory(char *reason, size_t size)
{
    if (reason != NULL) {
        (void)snprintf(reason, size, "no memory for the text");
    }
}

/* All but where the text goes. */
static int begin(struct bow__json_writer *w, const ProtobufCMessage *message,
                 const struct bow_json_options *given, uint32_t *ret_indent)
{
    struct bow_json_options options = BOW_JSON_OPTIONS_INIT;
    int rc = given != NULL ? bow__options_read(&options, sizeof options, given) : 0;

    w->error = 0;
    bow__text_clear(&w->reason);
    w->path.root = NULL;
    if (rc < 0 || options.max_depth > BOW_LIMIT_MESSAGE_DEPTH || options.indent > 16) {
        bow__text_printf(&w->reason, "options: a size that is not known, or a value out of range");
        return -EINVAL;
    }
    if (message == NULL || message->descriptor == NULL) {
        bow__text_printf(&w->reason, "no message, or one without a descriptor");
        return -EINVAL;
    }
    uint32_t depth = options.max_depth > 0 ? options.max_depth : BOW_LIMIT_MESSAGE_DEPTH;
    bow__json_path_begin(&w->path, message->descriptor, depth);
    w->types = (struct bow__json_types){.given = options.files, .n_given = options.n_files};
    w->always_print = options.always_print;
    w->preserve_names = options.preserve_names;
    w->enums_as_numbers = options.enums_as_numbers;
    *ret_indent = options.indent;
    return 0;
}

int bow_json_write_to(const ProtobufCMessage *message, const struct bow_json_options *options,
                      char *text, size_t size, size_t *ret_len, char *reason, size_t reason_size)
{
    struct bow__json_writer w;
    uint32_t indent = 0;
    int rc = begin(&w, message, options, &indent);

    if (rc == 0) {
        bow__json_output_begin_in(&w.out, text, size, indent);
        rc = put_message(&w, message) ? 0 : w.error;
        bow__json_types_fini(&w.types);
    }
    bow__reason_give(&w.reason, reason, reason_size);
    if (rc < 0) {
        return rc;
    }
    *ret_len = bow__json_output_end(&w.out);
    return *ret_len < size ? 0 : -ENOSPC;
}

static int write_into_arena(const ProtobufCMessage *message, const struct bow_json_options *options,
                            struct bow__arena *arena, struct bow_slice *ret_text, char *reason,
                            size_t reason_size)
{
    struct bow__json_writer w;
    uint32_t indent = 0;
    int rc = begin(&w, message, options, &indent);

    if (rc == 0) {
        bow__json_output_begin(&w.out, arena, indent);
        rc = put_message(&w, message) ? 0 : w.error;
    }
    if (rc == 0) {
        size_t len = bow__json_output_end(&w.out);
        if (!w.out.no_memory) {
            *ret_text = (struct bow_slice){(const uint8_t *)w.out.begin, len};
            bow__reason_give(&w.reason, reason, reason_size);
            return 0;
        }
        bow__text_printf(&w.reason, "no memory for the text");
        rc = -ENOMEM;
    }
    bow__reason_give(&w.reason, reason, reason_size);
    return rc;
}

int bow_json_write(const ProtobufCMessage *message, const struct bow_json_options *options,
                   struct bow_arena *arena, struct bow_slice *ret_text, char *reason,
                   size_t reason_size)
{
    struct bow_slice text = {NULL, 0};

    if (arena != NULL) {
        return write_into_arena(message, options, bow__arena_of(arena), ret_text, reason,
                                reason_size);
    }
    struct bow_arena *own = bow_arena_new(NULL, 0);
    if (own == NULL) {
        say_no_memory(reason, reason_size);
        return -ENOMEM;
    }
    int rc = write_into_arena(message, options, bow__arena_of(own), &text, reason, reason_size);
    if (rc == 0) {
        uint8_t *copy = malloc(text.len + 1);
        if (copy != NULL) {
            memcpy(copy, text.data, text.len + 1);
            *ret_text = (struct bow_slice){copy, text.len};
        } else {
            say_no_memory(reason, reason_size);
            rc = -ENOMEM;
        }
    }
    bow_arena_free(own);
    return rc;
}
