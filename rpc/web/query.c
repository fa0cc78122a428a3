/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* URLs: the query of a GET. */

#include "rpc/web/query.h"

#include <string.h>

static const uint8_t *find(struct bow_slice text, char c)
{
    return text.len > 0 ? memchr(text.data, c, text.len) : NULL;
}

/* What stands before `c`; `*text` is what stands behind it. All of it without one. */
static struct bow_slice cut(struct bow_slice *text, char c)
{
    const uint8_t *at = find(*text, c);
    struct bow_slice before = *text;

    if (at == NULL) {
        *text = (struct bow_slice){text->data, 0};
        return before;
    }
    before.len = (size_t)(at - text->data);
    *text = (struct bow_slice){at + 1, text->len - before.len - 1};
    return before;
}

void bow__query_split(struct bow_slice target, struct bow_slice *ret_path,
                      struct bow_slice *ret_query)
{
    *ret_path = cut(&target, '?');
    *ret_query = target;
}

bool bow__query_find(struct bow_slice query, const char *name, struct bow_slice *ret_value)
{
    while (query.len > 0) {
        struct bow_slice value = cut(&query, '&');
        struct bow_slice key = cut(&value, '=');
        if (key.len == strlen(name) && memcmp(key.data, name, key.len) == 0) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

static int digit(uint8_t c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

size_t bow__query_decode(struct bow_slice text, uint8_t *out)
{
    size_t n = 0;

    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.data[i];
        if (c == '%') {
            int high = i + 2 < text.len ? digit(text.data[i + 1]) : -1;
            int low = i + 2 < text.len ? digit(text.data[i + 2]) : -1;
            if (high < 0 || low < 0) {
                return SIZE_MAX;
            }
            c = (uint8_t)(high << 4 | low);
            i += 2;
        } else if (c == '+') {
            c = ' ';
        }
        out[n++] = c;
    }
    return n;
}
