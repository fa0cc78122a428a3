/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_JSON_JSON_OUTPUT_H
#define BOWLINE_RPC_JSON_JSON_OUTPUT_H

/*
 * JSON text as it is made: into memory of an arena that grows, or into a caller's that does not.
 * Knows what JSON looks like, and nothing of messages.
 *
 * Invariant: there is always room: where memory ends, what is written goes into `spill`, from there
 * to the caller's memory if it fits, and else only its length counts. So nobody looks for errors
 * but who takes the whole.
 */

#include "base/arena.h"
#include <bowline/slice.h>
#include <string.h>

/** The most that is asked for at once. */
#define BOW__JSON_SPILL_BYTES 512

struct bow__json_output {
    char *at;
    char *end;
    char *begin;
    struct bow__arena *arena; /* NULL: the caller's memory */
    size_t n_before;          /* bytes written before `begin` */
    char *left;               /* of the caller's memory, while `at` is in `spill` */
    char *left_end;
    unsigned indent; /* blanks for each level; 0: no lines */
    unsigned level;
    bool is_first;    /* nothing stands in the innermost object or array */
    bool is_spilling; /* `at` is in `spill` */
    bool is_lost;     /* something did not fit */
    bool no_memory;
    char spill[BOW__JSON_SPILL_BYTES];
};

/** Write into `arena`. */
void bow__json_output_begin(struct bow__json_output *out, struct bow__arena *arena,
                            unsigned indent);
/** Write into `text`, of `size` bytes. */
void bow__json_output_begin_in(struct bow__json_output *out, char *text, size_t size,
                               unsigned indent);
/** End the text with a NUL. Returns its length without it; when that does not fit with its NUL, it
 * is not all there. */
size_t bow__json_output_end(struct bow__json_output *out);

/** bow__json_room() where there is none. */
void bow__json_make_room(struct bow__json_output *out, size_t n);

/** Where `n` bytes, at most BOW__JSON_SPILL_BYTES, can be written; then `at` is moved. */
static inline char *bow__json_room(struct bow__json_output *out, size_t n)
{
    if (n > (size_t)(out->end - out->at)) {
        bow__json_make_room(out, n);
    }
    return out->at;
}

static inline void bow__json_put_char(struct bow__json_output *out, char c)
{
    *bow__json_room(out, 1) = c;
    out->at++;
}

/** A few characters that are known: "true". */
static inline void bow__json_put(struct bow__json_output *out, const char *text)
{
    size_t len = strlen(text);
    memcpy(bow__json_room(out, len), text, len);
    out->at += len;
}

/** Begin a line where there are lines. */
void bow__json_put_line(struct bow__json_output *out);

/** '{' or '['. */
static inline void bow__json_open(struct bow__json_output *out, char bracket)
{
    bow__json_put_char(out, bracket);
    out->is_first = true;
    out->level++;
}

/** Before each member or element. */
static inline void bow__json_next(struct bow__json_output *out)
{
    if (!out->is_first) {
        bow__json_put_char(out, ',');
    }
    out->is_first = false;
    if (out->indent > 0) {
        bow__json_put_line(out);
    }
}

/** '}' or ']'. */
static inline void bow__json_close(struct bow__json_output *out, char bracket)
{
    out->level--;
    if (out->indent > 0 && !out->is_first) {
        bow__json_put_line(out);
    }
    out->is_first = false;
    bow__json_put_char(out, bracket);
}

/** Between a name and its value. */
static inline void bow__json_colon(struct bow__json_output *out)
{
    bow__json_put_char(out, ':');
    if (out->indent > 0) {
        bow__json_put_char(out, ' ');
    }
}

/** A string with its quotation marks. False: it is not UTF-8. */
bool bow__json_put_string(struct bow__json_output *out, const char *text, size_t len);
/** Base64 with its quotation marks. */
void bow__json_put_bytes(struct bow__json_output *out, struct bow_slice bytes);

void bow__json_put_u64(struct bow__json_output *out, uint64_t value);
void bow__json_put_i64(struct bow__json_output *out, int64_t value);
/** Those that JSON has no number for are strings: "NaN". */
void bow__json_put_double(struct bow__json_output *out, double value);
void bow__json_put_float(struct bow__json_output *out, float value);

#endif
