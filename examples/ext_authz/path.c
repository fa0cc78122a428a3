/* SPDX-License-Identifier: 0BSD */
/* Owns how a path is cut into segments. */

#include "path.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define BEHIND "?#" /* what ends a path */

static bool is_escape(const char *at)
{
    return at[0] == '%' && isxdigit((unsigned char)at[1]) && isxdigit((unsigned char)at[2]);
}

static char unescape(const char *at)
{
    const char digits[] = {at[1], at[2], '\0'};

    return (char)strtoul(digits, NULL, 16);
}

/* Its name is what stands before a semicolon; "..;x" goes up in some servers, as ".." does. */
static bool is_plain_segment(const char *segment, size_t len)
{
    size_t n_bytes = 0;
    size_t n_dots = 0;
    bool in_name = true;

    for (size_t i = 0; i < len;) {
        bool escaped = is_escape(segment + i);
        char c = escaped ? unescape(segment + i) : segment[i];
        if (c == '\\' || c == '/' || c == '\0') {
            return false;
        }
        in_name = in_name && c != ';';
        n_bytes += in_name;
        n_dots += in_name && c == '.';
        i += escaped ? 3 : 1;
    }
    return n_bytes > 2 || n_bytes > n_dots;
}

bool path_is_plain(const char *path)
{
    const char *stop = path + strcspn(path, BEHIND);

    if (path[0] != '/') {
        return false;
    }
    for (const char *at = path + 1; at < stop;) {
        size_t len = strcspn(at, "/" BEHIND);
        if (!is_plain_segment(at, len)) {
            return false;
        }
        at += len + (at[len] == '/');
    }
    return true;
}

bool path_is_below(const char *path, const char *prefix)
{
    size_t len = strlen(prefix);

    len -= len > 0 && prefix[len - 1] == '/';
    return strncmp(path, prefix, len) == 0 && strchr("/" BEHIND, path[len]) != NULL;
}
