/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Fields of HTTP/1.1 as metadata: keys in lower case, base64 undone. What breaks the rules of
 * metadata is left out, field by field. */

#include "rpc/http1/head.h"
#include "base/base64.h"
#include "base/text.h"
#include "rpc/core/compression/encodings.h"
#include "rpc/core/metadata.h"
#include "rpc/web/grpc_text.h"

#include <errno.h>
#include <string.h>

static bool has_name(const struct bow__http1_field *field, const char *name)
{
    return bow__http1_equals(field->name, name);
}

/* In lower case, with a NUL. */
static char *key_of(struct bow__arena *arena, struct bow_slice name)
{
    char *key = bow__arena_dup(arena, name.data, name.len);

    for (size_t i = 0; key != NULL && i < name.len; i++) {
        key[i] = (char)(key[i] >= 'A' && key[i] <= 'Z' ? key[i] | 0x20 : key[i]);
    }
    return key;
}

static void keep(struct bow__web_head *head, const char *key, struct bow_slice value)
{
    if (bow__metadata_is_valid(key, value)) {
        head->entries[head->n_entries++] = (struct bow_metadata_entry){key, value};
    }
}

static void keep_text(struct bow__web_head *head, struct bow__arena *arena, const char *key,
                      struct bow_slice value)
{
    char *text = bow__arena_dup(arena, value.data, value.len);

    if (text != NULL) {
        keep(head, key, (struct bow_slice){(const uint8_t *)text, value.len});
    }
}

static void keep_binary(struct bow__web_head *head, struct bow__arena *arena, const char *key,
                        struct bow_slice text)
{
    uint8_t *bytes = bow__arena_alloc_bytes(arena, text.len + 1);
    size_t len = 0;

    text = bow__text_trim(text);
    if (bytes != NULL && bow__base64_decode(text, bytes, &len) == 0) {
        bytes[len] = '\0';
        keep(head, key, (struct bow_slice){bytes, len});
    }
}

/* HTTP may have joined several fields of one name with commas, which base64 has none of. */
static void keep_binaries(struct bow__web_head *head, struct bow__arena *arena, const char *key,
                          struct bow_slice text)
{
    const uint8_t *comma = NULL;

    while (text.len > 0 && (comma = memchr(text.data, ',', text.len)) != NULL) {
        size_t len = (size_t)(comma - text.data);
        keep_binary(head, arena, key, (struct bow_slice){text.data, len});
        text = (struct bow_slice){comma + 1, text.len - len - 1};
    }
    keep_binary(head, arena, key, text);
}

static bool is_binary(struct bow_slice name)
{
    return name.len >= 4 &&
           bow__http1_equals((struct bow_slice){name.data + name.len - 4, 4}, "-bin");
}

/* As many as they were before they were joined. */
static size_t count_values(const struct bow__http1_field *field)
{
    size_t n = 1;

    for (size_t i = 0; is_binary(field->name) && i < field->value.len; i++) {
        n += field->value.data[i] == ',' ? 1 : 0;
    }
    return n;
}

static void read_metadata(struct bow__web_head *head, struct bow__arena *arena,
                          const struct bow__http1_field *field)
{
    const char *key = key_of(arena, field->name);

    if (key == NULL || has_name(field, "expect")) {
        return;
    }
    if (is_binary(field->name)) {
        keep_binaries(head, arena, key, field->value);
    } else {
        keep_text(head, arena, key, field->value);
    }
}

static int read_timeout(struct bow__web_head *head, struct bow_slice value)
{
    int rc = bow__grpc_timeout_decode(value, &head->time_left_ns);

    /* Clients write the least there is when none is left: it is positive on the wire. */
    head->time_left_ns -= rc == 0 && head->time_left_ns == 1 ? 1 : 0;
    return rc;
}

static int read_field(struct bow__web_head *head, struct bow__arena *arena,
                      const struct bow__http1_field *field)
{
    if (has_name(field, "content-type")) {
        head->content_type = field->value;
    } else if (has_name(field, "accept-encoding")) {
        head->accept_encoding = field->value;
    } else if (has_name(field, "grpc-timeout")) {
        return read_timeout(head, field->value);
    } else if (has_name(field, "grpc-encoding")) {
        head->encoding = bow__encoding_of(field->value);
    } else if (has_name(field, "grpc-accept-encoding")) {
        head->accepts |= bow__encodings_of(field->value, NULL);
    } else {
        read_metadata(head, arena, field);
    }
    return 0;
}

int bow__http1_web_head(const struct bow__http1_request *request, struct bow__arena *arena,
                        struct bow__web_head *ret_head)
{
    size_t n = 0;
    int rc = 0;

    for (size_t i = 0; i < request->fields.n; i++) {
        n += count_values(&request->fields.list[i]);
    }
    if (n > BOW_LIMIT_HTTP1_FIELDS) {
        return -EMSGSIZE;
    }
    *ret_head = (struct bow__web_head){
        .method = request->method,
        .target = request->target,
        .time_left_ns = BOW_NEVER,
        .entries = bow__arena_alloc(arena, (n > 0 ? n : 1) * sizeof(struct bow_metadata_entry)),
    };
    if (ret_head->entries == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < request->fields.n && rc == 0; i++) {
        rc = read_field(ret_head, arena, &request->fields.list[i]);
    }
    return rc == 0 && bow__arena_has_failed(arena) ? -ENOMEM : rc;
}
