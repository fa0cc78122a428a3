/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_JSON_JSON_READER_H
#define BOWLINE_RPC_JSON_JSON_READER_H

/*
 * JSON on its way to a message: where in the text the reader is, where in the message, and why it
 * failed. It pulls what it needs next and puts it where it belongs; there are no tokens between.
 * Shared by the files that read; each of their functions fails with `error` and `reason` set.
 */

#include "base/arena.h"
#include "base/text.h"
#include "rpc/json/decimal.h"
#include "rpc/json/json_path.h"
#include "rpc/json/json_types.h"
#include "rpc/well_known/known_type.h"
#include <errno.h>

struct bow__json_reader {
    const uint8_t *at;
    const uint8_t *end;
    const uint8_t *begin;
    struct bow__arena *arena;
    struct bow__json_path path;
    struct bow__json_types types;
    bool ignore_unknown;
    size_t n_searched; /* bytes, for types of Anys */
    int error;
    struct bow__text reason;
};

/** What came of reading a value. */
enum bow__json_got {
    BOW__JSON_FAILED,
    BOW__JSON_VALUE,
    BOW__JSON_NOTHING, /* it is to be ignored */
};

/* Reasons. Each returns false. */

/** Refuse what stands at `at` of the text. */
bool bow__json_refuse(struct bow__json_reader *r, const uint8_t *at, const char *what, ...)
    BOW_PRINTF(3, 4);
/** Refuse what comes next, since it is not `what`, or the text is over. */
bool bow__json_refuse_next(struct bow__json_reader *r, const char *what);
bool bow__json_no_memory(struct bow__json_reader *r);
bool bow__json_too_deep(struct bow__json_reader *r);

/* The text */

/** The first character that is not blank, which stays; NUL at the end. */
static inline char bow__json_peek(struct bow__json_reader *r)
{
    while (r->at < r->end) {
        uint8_t c = *r->at;
        if (c > ' ') {
            return (char)c;
        }
        if (c != ' ' && c != '\n' && c != '\r' && c != '\t') {
            return '\0';
        }
        r->at++;
    }
    return '\0';
}

/** Take `c`, if it comes next. */
static inline bool bow__json_take(struct bow__json_reader *r, char c)
{
    if (bow__json_peek(r) != c) {
        return false;
    }
    r->at++;
    return true;
}

/** Take the word ("null"), if it comes next. */
bool bow__json_take_word(struct bow__json_reader *r, const char *word);

/** Read a string that comes next. Without escapes it is where it is in the text, else in the arena.
 */
bool bow__json_read_text(struct bow__json_reader *r, struct bow_slice *ret_text);
/** The same, as a C string in the arena, in which no NUL may be. */
bool bow__json_read_string(struct bow__json_reader *r, char **ret_text);
/** Read a number, which may stand in quotation marks. */
bool bow__json_read_number(struct bow__json_reader *r, struct bow__decimal *ret_number);

/** Read a member's name and the colon behind it. */
bool bow__json_read_name(struct bow__json_reader *r, struct bow_slice *ret_name);
/** Behind a member or an element: true when another one follows; else the end is taken, or `error`
 * set. */
bool bow__json_has_next(struct bow__json_reader *r, char bracket);

/** Read any value, and forget it. `depth`: brackets that it stands in, below the path. */
bool bow__json_skip(struct bow__json_reader *r, size_t depth);

#endif
