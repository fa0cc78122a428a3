/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_JSON_DECIMAL_H
#define BOWLINE_RPC_JSON_DECIMAL_H

/*
 * Numbers as decimal text, both ways, whatever the locale. Floating-point numbers are written with
 * the fewest digits that read as the same number again, in the form that JavaScript gives them (but
 * "-0.0"); what is read is rounded correctly. Knows nothing of messages.
 */

#include <bowline/slice.h>
#include <stdbool.h>

/** Room that each of the writers below needs at most. */
#define BOW__DECIMAL_BYTES 32

/** Write at `to`; returns the first byte after. */
char *bow__decimal_write_u64(char *to, uint64_t value);
char *bow__decimal_write_i64(char *to, int64_t value);
/** Finite ones only. */
char *bow__decimal_write_double(char *to, double value);
char *bow__decimal_write_float(char *to, float value);

/** A number of JSON as it is written: ± digits × 10^exponent. */
struct bow__decimal {
    struct bow_slice text;
    uint64_t digits;  /* as many as fit */
    int64_t exponent; /* far beyond any type's range it is not exact */
    bool is_negative;
    bool is_full; /* not all digits fit; the exponent counts the others' places */
    bool is_cut;  /* and one of those is not 0 */
};

/** What a number is to a type that it is read for. */
enum bow__decimal_fit {
    BOW__DECIMAL_FITS,
    BOW__DECIMAL_FRACTION,     /* no integer */
    BOW__DECIMAL_OUT_OF_RANGE, /* of the type */
};

/**
 * Read a number in JSON's grammar at the front of `text`. Returns the bytes it has; 0 when there is
 * none.
 */
size_t bow__decimal_read(struct bow_slice text, struct bow__decimal *ret_decimal);

/** As a signed integer from `min` to `max`; 1.0 and 1e2 are integers, too. */
enum bow__decimal_fit bow__decimal_to_i64(const struct bow__decimal *decimal, int64_t min,
                                          int64_t max, int64_t *ret_value);
/** As an unsigned integer up to `max`. */
enum bow__decimal_fit bow__decimal_to_u64(const struct bow__decimal *decimal, uint64_t max,
                                          uint64_t *ret_value);
/** The nearest one; false when it is beyond the largest finite one. */
bool bow__decimal_to_double(const struct bow__decimal *decimal, double *ret_value);
bool bow__decimal_to_float(const struct bow__decimal *decimal, float *ret_value);

#endif
