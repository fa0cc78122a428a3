/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Distances between names: how many characters have to be changed, added or taken away, whatever
 * their case. */
#include "near.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define MAX_NAME 200

static size_t least(size_t a, size_t b, size_t c)
{
    size_t n = a < b ? a : b;
    return n < c ? n : c;
}

static size_t distance(const char *a, const char *b)
{
    size_t row[MAX_NAME + 1];
    size_t n = strlen(b);

    if (n > MAX_NAME || strlen(a) > MAX_NAME) {
        return MAX_NAME;
    }
    for (size_t k = 0; k <= n; k++) {
        row[k] = k;
    }
    for (size_t i = 0; a[i] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t k = 1; k <= n; k++) {
            size_t above = row[k];
            size_t same = tolower((unsigned char)a[i]) == tolower((unsigned char)b[k - 1]) ? 0 : 1;
            row[k] = least(above + 1, row[k - 1] + 1, diagonal + same);
            diagonal = above;
        }
    }
    return row[n];
}

/* Of "shop.Orders/Get" the method may be what was meant, in whatever package. */
static const char *last_part(const char *name)
{
    const char *slash = strrchr(name, '/');
    const char *dot = strrchr(name, '.');

    if (slash != NULL) {
        return slash + 1;
    }
    return dot != NULL ? dot + 1 : name;
}

void near_add(struct near *near, const char *name)
{
    size_t whole = distance(near->wanted, name);
    size_t part = distance(last_part(near->wanted), last_part(name)) * 2 + 1;
    size_t far = whole < part ? whole : part;
    size_t at = near->n;

    if (far > strlen(near->wanted) / 3 + 1) {
        return;
    }
    while (at > 0 && near->distances[at - 1] > far) {
        at--;
    }
    if (at == NEAR_MAX) {
        return;
    }
    near->n += near->n < NEAR_MAX;
    for (size_t i = near->n - 1; i > at; i--) {
        near->names[i] = near->names[i - 1];
        near->distances[i] = near->distances[i - 1];
    }
    near->names[at] = name;
    near->distances[at] = far;
}

void near_text(const struct near *near, char *text, size_t size)
{
    size_t len = 0;
    size_t n = near->n;

    text[0] = '\0';
    /* What is twice as far as the nearest is not meant. */
    while (n > 1 && near->distances[n - 1] > 2 * near->distances[0] + 1) {
        n--;
    }
    for (size_t i = 0; i < n && len < size; i++) {
        const char *before = i == 0 ? "; did you mean " : i + 1 == n ? " or " : ", ";
        len += (size_t)snprintf(text + len, size - len, "%s%s", before, near->names[i]);
    }
    if (near->n > 0 && len < size) {
        snprintf(text + len, size - len, "?");
    }
}
