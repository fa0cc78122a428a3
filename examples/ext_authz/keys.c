/* SPDX-License-Identifier: 0BSD */
/* Owns the file's form, and how keys are compared. */

#include "keys.h"
#include "path.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r\n"

/* Reading */

/* Of what may stand in a header: the name is sent in one, and the key arrives in one. */
static bool is_printable(const char *word)
{
    for (; *word != '\0'; word++) {
        if (*word < '!' || *word > '~') {
            return false;
        }
    }
    return true;
}

static bool has_other_name(const struct keys *keys, const struct right *right)
{
    for (size_t i = 0; i < keys->n; i++) {
        if (strcmp(keys->rights[i].key, right->key) == 0 &&
            strcmp(keys->rights[i].name, right->name) != 0) {
            return true;
        }
    }
    return false;
}

/* NULL, or what is wrong with the line. Takes `line`, which is cut into its words. */
static const char *add_line(struct keys *keys, char *line)
{
    char *rest;
    struct right right = {.line = line};

    right.key = strtok_r(line, BLANKS, &rest);
    right.name = strtok_r(NULL, BLANKS, &rest);
    right.prefix = strtok_r(NULL, BLANKS, &rest);
    const char *wrong = NULL;
    if (right.prefix == NULL || strtok_r(NULL, BLANKS, &rest) != NULL) {
        wrong = "is not KEY NAME PREFIX";
    } else if (!is_printable(right.key) || !is_printable(right.name)) {
        wrong = "has letters that no header takes";
    } else if (!path_is_plain(right.prefix)) {
        wrong = "has a prefix that is no plain path";
    } else if (has_other_name(keys, &right)) {
        wrong = "gives another name to a key from above";
    }
    struct right *rights =
        wrong == NULL ? realloc(keys->rights, (keys->n + 1) * sizeof(right)) : NULL;
    if (rights == NULL) {
        free(line);
        return wrong != NULL ? wrong : "is too much: out of memory";
    }
    rights[keys->n++] = right;
    keys->rights = rights;
    return NULL;
}

static bool is_comment(const char *line)
{
    const char *first = line + strspn(line, BLANKS);

    return *first == '\0' || *first == '#';
}

static const char *add_lines(struct keys *keys, FILE *file, unsigned *ret_number)
{
    const char *wrong = NULL;
    char *line = NULL;
    size_t size = 0;

    for (*ret_number = 1; wrong == NULL && getline(&line, &size, file) >= 0; ++*ret_number) {
        if (!is_comment(line)) {
            wrong = add_line(keys, line);
            line = NULL; /* getline() makes another */
            size = 0;
        }
    }
    free(line);
    --*ret_number;
    return wrong == NULL && ferror(file) ? "cannot be read" : wrong;
}

bool keys_load(struct keys *keys, const char *file, char *error, size_t error_size)
{
    struct keys fresh = {.n = 0};
    unsigned number;
    FILE *stream = fopen(file, "re");

    if (stream == NULL) {
        snprintf(error, error_size, "%s: %s", file, strerror(errno));
        return false;
    }
    const char *wrong = add_lines(&fresh, stream, &number);
    fclose(stream);
    if (wrong != NULL) {
        snprintf(error, error_size, "%s:%u: the line %s", file, number, wrong);
        keys_clear(&fresh);
        return false;
    }
    keys_clear(keys);
    *keys = fresh;
    return true;
}

void keys_clear(struct keys *keys)
{
    for (size_t i = 0; i < keys->n; i++) {
        free(keys->rights[i].line);
    }
    free(keys->rights);
    *keys = (struct keys){.n = 0};
}

/* Asking */

/* Every byte is looked at, so that the time does not tell how many of them are right. */
static bool is_same(const char *secret, const char *key)
{
    size_t len = strlen(key);
    size_t n = strlen(secret);
    unsigned difference = len != n;

    for (size_t i = 0; i < len; i++) {
        difference |= (unsigned)(key[i] ^ secret[i < n ? i : 0]);
    }
    return difference == 0;
}

const char *keys_name(const struct keys *keys, const char *key)
{
    const char *name = NULL;

    for (size_t i = 0; i < keys->n; i++) {
        if (is_same(keys->rights[i].key, key)) {
            name = keys->rights[i].name;
        }
    }
    return name;
}

bool keys_allow(const struct keys *keys, const char *key, const char *path)
{
    bool allowed = false;

    for (size_t i = 0; i < keys->n; i++) {
        allowed |= is_same(keys->rights[i].key, key) && path_is_below(path, keys->rights[i].prefix);
    }
    return allowed && path_is_plain(path);
}
