/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A list of origins: compared byte by byte, as browsers write them. */

#include "rpc/web/origins.h"
#include "base/alloc.h"

#include <errno.h>
#include <string.h>

struct bow__web_origins {
    size_t size; /* of the allocation */
    bool is_any;
    char list[]; /* as it was given */
};

#define SHOWN_BYTES 80

static bool is_separator(char c)
{
    return c == ',' || c == ' ' || c == '\t' || c == '\n';
}

/* The next of the list; false at its end. */
static bool next(const char **at, struct bow_slice *ret_origin)
{
    while (is_separator(**at)) {
        (*at)++;
    }
    const char *begin = *at;
    while (**at != '\0' && !is_separator(**at)) {
        (*at)++;
    }
    *ret_origin = (struct bow_slice){(const uint8_t *)begin, (size_t)(*at - begin)};
    return ret_origin->len > 0;
}

static bool is_any(struct bow_slice origin)
{
    return origin.len == 1 && origin.data[0] == '*';
}

/* SCHEME://HOST[:PORT] in lower case, without a path: anything else would never match. */
static bool is_origin(struct bow_slice origin)
{
    const char *text = (const char *)origin.data;
    size_t scheme = 0;

    while (scheme < origin.len && text[scheme] >= 'a' && text[scheme] <= 'z') {
        scheme++;
    }
    if (scheme == 0 || origin.len - scheme < 4 || memcmp(text + scheme, "://", 3) != 0) {
        return false;
    }
    for (size_t i = scheme + 3; i < origin.len; i++) {
        if (text[i] <= ' ' || text[i] > '~' || text[i] == '/' || text[i] == '*' ||
            (text[i] >= 'A' && text[i] <= 'Z')) {
            return false;
        }
    }
    return true;
}

int bow__web_origins_check(const char *list, struct bow__text *reason)
{
    struct bow_slice origin;

    while (list != NULL && next(&list, &origin)) {
        if (!is_any(origin) && !is_origin(origin)) {
            bow__text_printf(reason, "\"");
            bow__text_escape(reason, origin, SHOWN_BYTES);
            bow__text_printf(reason, "\" is no origin, as https://shop.example or "
                                     "http://127.0.0.1:8080 is: scheme and host in lower case, "
                                     "without a path; or \"*\" for all");
            return -EINVAL;
        }
    }
    return 0;
}

int bow__web_origins_new(struct bow_context *context, const char *list,
                         struct bow__web_origins **ret_origins)
{
    const char *at = list;
    struct bow_slice origin;
    bool any = false;
    size_t n = 0;

    while (at != NULL && next(&at, &origin)) {
        any = any || is_any(origin);
        n++;
    }
    *ret_origins = NULL;
    if (n == 0) {
        return 0;
    }
    size_t len = strlen(list);
    struct bow__web_origins *origins = bow__alloc(context, sizeof(*origins) + len + 1);
    if (origins == NULL) {
        return -ENOMEM;
    }
    origins->size = sizeof(*origins) + len + 1;
    origins->is_any = any;
    memcpy(origins->list, list, len + 1);
    *ret_origins = origins;
    return 0;
}

void bow__web_origins_free(struct bow_context *context, struct bow__web_origins *origins)
{
    if (origins != NULL) {
        bow__free(context, origins, origins->size);
    }
}

bool bow__web_origins_have(const struct bow__web_origins *origins, struct bow_slice origin)
{
    struct bow_slice own;

    if (origins == NULL || origin.len == 0) {
        return false;
    }
    const char *at = origins->list;
    bool found = origins->is_any;
    while (!found && next(&at, &own)) {
        found = own.len == origin.len && memcmp(own.data, origin.data, own.len) == 0;
    }
    return found;
}
