/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The name rules. Knows nothing of messages, files or services.
 */

#include "codegen/names.h"
#include "codegen/names_reserved.h"

#include <string.h>

typedef size_t (*piece_fn)(char *out, const char *piece, size_t len);

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_alnum(char c)
{
    return is_upper(c) || is_lower(c) || (c >= '0' && c <= '9');
}

static char to_upper(char c)
{
    return is_lower(c) ? (char)(c - 'a' + 'A') : c;
}

static char to_lower(char c)
{
    return is_upper(c) ? (char)(c - 'A' + 'a') : c;
}

static size_t camel_piece(char *out, const char *piece, size_t len)
{
    bool at_start = true;
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        if (piece[i] == '_') {
            at_start = true;
            continue;
        }
        out[n++] = at_start ? to_upper(piece[i]) : piece[i];
        at_start = false;
    }
    return n;
}

static size_t split_piece(char *out, const char *piece, size_t len, char (*convert)(char))
{
    bool was_upper = true;
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        bool upper = is_upper(piece[i]);
        if (upper && !was_upper) {
            out[n++] = '_';
        }
        out[n++] = convert(piece[i]);
        was_upper = upper;
    }
    return n;
}

static size_t lower_piece(char *out, const char *piece, size_t len)
{
    return split_piece(out, piece, len, to_lower);
}

static size_t upper_piece(char *out, const char *piece, size_t len)
{
    return split_piece(out, piece, len, to_upper);
}

/* No transform more than doubles a piece, and a dot becomes two characters. */
static char *room_for(struct memory *memory, const char *name)
{
    return memory_alloc(memory, 2 * strlen(name) + 1);
}

static char *one_piece(struct memory *memory, const char *piece, piece_fn transform)
{
    char *out = room_for(memory, piece);

    out[transform(out, piece, strlen(piece))] = '\0';
    return out;
}

static char *all_pieces(struct memory *memory, const char *full_name, piece_fn transform)
{
    char *out = room_for(memory, full_name);
    size_t n = 0;

    while (*full_name != '\0') {
        size_t len = strcspn(full_name, ".");
        if (len > 0 && n > 0) {
            out[n++] = '_';
            out[n++] = '_';
        }
        n += transform(out + n, full_name, len);
        full_name += len + (full_name[len] == '.');
    }
    out[n] = '\0';
    return out;
}

char *names_camel(struct memory *memory, const char *piece)
{
    return one_piece(memory, piece, camel_piece);
}

char *names_lower(struct memory *memory, const char *piece)
{
    return one_piece(memory, piece, lower_piece);
}

char *names_upper(struct memory *memory, const char *piece)
{
    return one_piece(memory, piece, upper_piece);
}

char *names_full_camel(struct memory *memory, const char *full_name)
{
    return all_pieces(memory, full_name, camel_piece);
}

char *names_full_lower(struct memory *memory, const char *full_name)
{
    return all_pieces(memory, full_name, lower_piece);
}

char *names_full_upper(struct memory *memory, const char *full_name)
{
    return all_pieces(memory, full_name, upper_piece);
}

char *names_field(struct memory *memory, const char *field)
{
    size_t len = strlen(field);
    char *member = memory_alloc(memory, len + 2);

    for (size_t i = 0; i < len; i++) {
        member[i] = to_lower(field[i]);
    }
    if (names_is_reserved(member)) {
        member[len] = '_';
    }
    return member;
}

char *names_handler(struct memory *memory, const char *lower)
{
    bool reserved = names_is_reserved(lower) || names_is_called_macro(lower);
    return memory_printf(memory, "%s%s", lower, reserved ? "_" : "");
}

char *names_type(struct memory *memory, const char *camel)
{
    bool is_spelled = names_is_identifier(camel);
    return memory_printf(memory, "%s%s%s", is_spelled ? "" : "X", camel,
                         names_is_reserved(camel) ? "_" : "");
}

char *names_file_id(struct memory *memory, const char *file)
{
    static const char digits[] = "0123456789abcdef";
    char *id = memory_alloc(memory, 3 * strlen(file) + 1);
    size_t n = 0;

    for (; *file != '\0'; file++) {
        unsigned char c = (unsigned char)*file;
        if (is_alnum(*file)) {
            id[n++] = *file;
            continue;
        }
        id[n++] = '_';
        id[n++] = digits[c >> 4];
        id[n++] = digits[c & 15];
    }
    return id;
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text);
    size_t end_len = strlen(end);

    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

char *names_file_stem(struct memory *memory, const char *file)
{
    size_t len = strlen(file);

    if (ends_with(file, ".protodevel")) {
        len -= strlen(".protodevel");
    } else if (ends_with(file, ".proto")) {
        len -= strlen(".proto");
    }
    return memory_dup(memory, file, len);
}

bool names_is_identifier(const char *name)
{
    if (!is_upper(*name) && !is_lower(*name) && *name != '_') {
        return false;
    }
    while (*name == '_' || is_alnum(*name)) {
        name++;
    }
    return *name == '\0';
}
