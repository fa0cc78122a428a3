/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Fields of HTTP/1.1, a line each: read, checked, found. Knows no message around them. */
#include "rpc/http1/fields.h"

#include <errno.h>
#include <string.h>

/* tchar of RFC 9110 section 5.6.2. */
static bool is_token_byte(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

bool bow__http1_is_token(struct bow_slice bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        if (!is_token_byte(bytes.data[i])) {
            return false;
        }
    }
    return bytes.len > 0;
}

bool bow__http1_is_value(struct bow_slice bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        uint8_t c = bytes.data[i];
        if ((c < ' ' && c != '\t') || c == 0x7f) {
            return false;
        }
    }
    return true;
}

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c | 0x20) : c;
}

bool bow__http1_equals(struct bow_slice bytes, const char *text)
{
    if (bytes.len != strlen(text)) {
        return false;
    }
    for (size_t i = 0; i < bytes.len; i++) {
        if (lower(bytes.data[i]) != lower((uint8_t)text[i])) {
            return false;
        }
    }
    return true;
}

static struct bow_slice trim(struct bow_slice bytes)
{
    while (bytes.len > 0 && (*bytes.data == ' ' || *bytes.data == '\t')) {
        bytes.data++;
        bytes.len--;
    }
    while (bytes.len > 0 &&
           (bytes.data[bytes.len - 1] == ' ' || bytes.data[bytes.len - 1] == '\t')) {
        bytes.len--;
    }
    return bytes;
}

static int refuse(struct bow__http1_error *error, int status, const char *text)
{
    *error = (struct bow__http1_error){status, text};
    return -EBADMSG;
}

static int decode_line(struct bow_slice line, struct bow__http1_field *field,
                       struct bow__http1_error *error)
{
    /* RFC 9112 section 5.2; and section 2.2, of blanks before the first field. Who joins such a
     * line with the one before reads another field than who does not. */
    if (line.len > 0 && (*line.data == ' ' || *line.data == '\t')) {
        return refuse(error, 400, "a line of the header begins with a blank (obs-fold)");
    }
    const uint8_t *colon = line.len > 0 ? memchr(line.data, ':', line.len) : NULL;
    if (colon == NULL) {
        return refuse(error, 400, "a line of the header has no colon");
    }
    size_t len = (size_t)(colon - line.data);
    struct bow_slice name = {line.data, len};
    if (len > 0 && (colon[-1] == ' ' || colon[-1] == '\t')) {
        return refuse(error, 400, "a blank before the colon of a field"); /* RFC 9112 section 5.1 */
    }
    if (!bow__http1_is_token(name)) {
        return refuse(error, 400, "the name of a field is no token");
    }
    struct bow_slice value = trim((struct bow_slice){colon + 1, line.len - len - 1});
    if (!bow__http1_is_value(value)) { /* RFC 9110 section 5.5 */
        return refuse(error, 400, "a control character in the value of a field");
    }
    *field = (struct bow__http1_field){name, value};
    return 0;
}

int bow__http1_fields_decode(struct bow_slice block, struct bow__http1_fields *ret_fields,
                             struct bow__http1_error *ret_error)
{
    ret_fields->n = 0;
    while (block.len > 0) {
        const uint8_t *end = memchr(block.data, '\n', block.len);
        if (end == NULL || end == block.data) {
            return refuse(ret_error, 400, "a line of the header does not end with CRLF");
        }
        if (ret_fields->n == BOW_LIMIT_HTTP1_FIELDS) {
            return refuse(ret_error, 431, "more fields than BOW_LIMIT_HTTP1_FIELDS");
        }
        struct bow_slice line = {block.data, (size_t)(end - block.data) - 1};
        int rc = decode_line(line, &ret_fields->list[ret_fields->n], ret_error);
        if (rc < 0) {
            return rc;
        }
        ret_fields->n++;
        block.len -= line.len + 2;
        block.data = end + 1;
    }
    return 0;
}

const struct bow__http1_field *bow__http1_fields_next(const struct bow__http1_fields *fields,
                                                      const char *name, size_t *at)
{
    while (*at < fields->n) {
        const struct bow__http1_field *field = &fields->list[(*at)++];
        if (bow__http1_equals(field->name, name)) {
            return field;
        }
    }
    return NULL;
}

struct bow_slice bow__http1_fields_get(const struct bow__http1_fields *fields, const char *name)
{
    size_t at = 0;
    const struct bow__http1_field *field = bow__http1_fields_next(fields, name, &at);

    if (field == NULL || bow__http1_fields_next(fields, name, &at) != NULL) {
        return (struct bow_slice){NULL, 0};
    }
    return field->value;
}

bool bow__http1_list_next(struct bow_slice *list, struct bow_slice *ret_element)
{
    while (list->len > 0) {
        const uint8_t *comma = memchr(list->data, ',', list->len);
        size_t len = comma != NULL ? (size_t)(comma - list->data) : list->len;
        *ret_element = trim((struct bow_slice){list->data, len});
        len += comma != NULL;
        list->data += len;
        list->len -= len;
        if (ret_element->len > 0) {
            return true;
        }
    }
    return false;
}

bool bow__http1_fields_list(const struct bow__http1_fields *fields, const char *name,
                            const char *token)
{
    const struct bow__http1_field *field;
    size_t at = 0;

    while ((field = bow__http1_fields_next(fields, name, &at)) != NULL) {
        struct bow_slice list = field->value;
        struct bow_slice element;
        while (bow__http1_list_next(&list, &element)) {
            if (bow__http1_equals(element, token)) {
                return true;
            }
        }
    }
    return false;
}
