/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Fields of HTTP/1.1 as metadata: keys in lower case, base64 undone. What breaks the rules of
 * metadata is left out, field by field. */

#include "rpc/http1/head.h"
#include "base/base64.h"
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

/* HTTP may have joined several with commas; they are one here if they were so there. */
static void keep_binary(struct bow__web_head *head, struct bow__arena *arena, const char *key,
                        struct bow_slice text)
{
    uint8_t *bytes = bow__arena_alloc_bytes(arena, text.len + 1);
    size_t len = 0;

    if (bytes != NULL && bow__base64_decode(text, bytes, &len) == 0) {
        bytes[len] = '\0';
        keep(head, key, (struct bow_slice){bytes, len});
    }
}

static bool is_binary(const char *key)
{
    size_t len = strlen(key);

    return len >= 4 && memcmp(key + len - 4, "-bin", 4) == 0;
}

static void read_metadata(struct bow__web_head *head, struct bow__arena *arena,
                          const struct bow__http1_field *field)
{
    const char *key = key_of(arena, field->name);

    if (key == NULL || has_name(field, "expect")) {
        return;
    }
    if (is_binary(key)) {
        keep_binary(head, arena, key, field->value);
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
    size_t n = request->fields.n;
    int rc = 0;

    *ret_head = (struct bow__web_head){
        .method = request->method,
        .target = request->target,
        .time_left_ns = BOW_NEVER,
        .entries = bow__arena_alloc(arena, (n > 0 ? n : 1) * sizeof(struct bow_metadata_entry)),
    };
    if (ret_head->entries == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = read_field(ret_head, arena, &request->fields.list[i]);
    }
    return rc == 0 && bow__arena_has_failed(arena) ? -ENOMEM : rc;
}
