/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Decimal text to numbers. What is exact in a few operations is done here, the rest is strtod()'s,
 * which gets integers with an exponent: they have no point that a locale could write otherwise.
 * Knows nothing of writing.
 */
#include "base/hints.h"
#include "rpc/json/decimal.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAR_EXPONENT INT64_C(1000000) /* no text that fits a memory brings it back into range */

/* Where the text goes on. Out of line nothing is worth: each digit of each number passes here. */
struct cursor {
    const uint8_t *at;
    const uint8_t *end;
};

static bool is_digit(const struct cursor *c)
{
    return c->at < c->end && *c->at >= '0' && *c->at <= '9';
}

static bool take(struct cursor *c, char what)
{
    if (c->at == c->end || *c->at != what) {
        return false;
    }
    c->at++;
    return true;
}

/* Digits before (`step` 0) or behind the point (1). */
static void take_digits(struct cursor *c, struct bow__decimal *d, int64_t step)
{
    for (; is_digit(c); c->at++) {
        uint64_t digit = (uint64_t)(*c->at - '0');
        uint64_t longer;
        if (d->digits >= UINT64_MAX / 10 && !d->is_full) {
            d->is_full = __builtin_mul_overflow(d->digits, 10, &longer) ||
                         __builtin_add_overflow(longer, digit, &longer);
        }
        if (!d->is_full) {
            d->digits = d->digits * 10 + digit;
            d->exponent -= step;
            continue;
        }
        d->is_cut |= digit != 0;
        d->exponent += 1 - step;
    }
}

static bool take_exponent(struct cursor *c, struct bow__decimal *d)
{
    int64_t exponent = 0;
    bool is_negative = take(c, '-');

    if (!is_negative) {
        take(c, '+');
    }
    if (!is_digit(c)) {
        return false;
    }
    for (; is_digit(c); c->at++) {
        if (exponent < FAR_EXPONENT * FAR_EXPONENT) {
            exponent = exponent * 10 + (*c->at - '0');
        }
    }
    d->exponent += is_negative ? -exponent : exponent;
    return true;
}

size_t bow__decimal_read(struct bow_slice text, struct bow__decimal *ret_decimal)
{
    struct cursor c = {text.data, text.data + text.len};
    struct bow__decimal d = {.is_negative = take(&c, '-')};

    if (!is_digit(&c)) {
        return 0;
    }
    bool is_zero = *c.at == '0';
    if (is_zero) {
        c.at++;
    }
    if (is_zero && is_digit(&c)) {
        return 0;
    }
    take_digits(&c, &d, 0);
    if (take(&c, '.')) {
        if (!is_digit(&c)) {
            return 0;
        }
        take_digits(&c, &d, 1);
    }
    if ((take(&c, 'e') || take(&c, 'E')) && !take_exponent(&c, &d)) {
        return 0;
    }
    d.text = (struct bow_slice){text.data, (size_t)(c.at - text.data)};
    *ret_decimal = d;
    return d.text.len;
}

/* Integers */

/* Without its sign. */
static enum bow__decimal_fit magnitude(const struct bow__decimal *decimal, uint64_t *ret_value)
{
    uint64_t value = decimal->digits;
    int64_t exponent = decimal->exponent;

    if (value == 0) {
        *ret_value = 0;
        return BOW__DECIMAL_FITS;
    }
    if (decimal->is_cut) { /* so its digits are above 10^18 */
        return exponent < 0 ? BOW__DECIMAL_FRACTION : BOW__DECIMAL_OUT_OF_RANGE;
    }
    for (; exponent < 0; exponent++) {
        if (value % 10 != 0) {
            return BOW__DECIMAL_FRACTION;
        }
        value /= 10;
    }
    for (; exponent > 0; exponent--) {
        if (__builtin_mul_overflow(value, 10, &value)) {
            return BOW__DECIMAL_OUT_OF_RANGE;
        }
    }
    *ret_value = value;
    return BOW__DECIMAL_FITS;
}

enum bow__decimal_fit bow__decimal_to_u64(const struct bow__decimal *decimal, uint64_t max,
                                          uint64_t *ret_value)
{
    uint64_t value;
    enum bow__decimal_fit fit = magnitude(decimal, &value);

    if (fit != BOW__DECIMAL_FITS) {
        return fit;
    }
    if (value > max || (decimal->is_negative && value > 0)) {
        return BOW__DECIMAL_OUT_OF_RANGE;
    }
    *ret_value = value;
    return BOW__DECIMAL_FITS;
}

enum bow__decimal_fit bow__decimal_to_i64(const struct bow__decimal *decimal, int64_t min,
                                          int64_t max, int64_t *ret_value)
{
    uint64_t value;
    enum bow__decimal_fit fit = magnitude(decimal, &value);
    uint64_t most = decimal->is_negative ? 0 - (uint64_t)min : (uint64_t)max;

    if (fit != BOW__DECIMAL_FITS) {
        return fit;
    }
    if (value > most) {
        return BOW__DECIMAL_OUT_OF_RANGE;
    }
    *ret_value = (int64_t)(decimal->is_negative ? 0 - value : value);
    return BOW__DECIMAL_FITS;
}

/* Floating point */

/* More digits than can decide how a double is rounded; one more stands for all that follow. */
#define DECISIVE_DIGITS 780
#define INTEGER_BYTES (DECISIVE_DIGITS + 32)

/* The number without sign and point: "12345e-3". */
static void write_integer(char text[INTEGER_BYTES], const struct bow__decimal *d)
{
    size_t n = 0;
    int64_t exponent = 0;
    bool is_behind = false, has_rest = false;
    const uint8_t *at = d->text.data + d->is_negative;
    const uint8_t *end = d->text.data + d->text.len;

    for (; at < end && *at != 'e' && *at != 'E'; at++) {
        if (*at == '.') {
            is_behind = true;
            continue;
        }
        if (n < DECISIVE_DIGITS) {
            exponent -= is_behind;
            if (n > 0 || *at != '0') {
                text[n++] = (char)*at;
            }
            continue;
        }
        has_rest |= *at != '0';
        exponent += !is_behind;
    }
    if (at < end) {
        struct cursor c = {at + 1, end};
        struct bow__decimal written = {.exponent = exponent};
        take_exponent(&c, &written);
        exponent = written.exponent;
    }
    if (has_rest) {
        text[n++] = '1';
        exponent--;
    }
    if (n == 0) {
        text[n++] = '0';
    }
    if (exponent > FAR_EXPONENT) {
        exponent = FAR_EXPONENT;
    }
    if (exponent < -FAR_EXPONENT) {
        exponent = -FAR_EXPONENT;
    }
    snprintf(text + n, INTEGER_BYTES - n, "e%d", (int)exponent);
}

BOW__LONG_WAY static double read_double_slowly(const struct bow__decimal *decimal)
{
    char text[INTEGER_BYTES];
    write_integer(text, decimal);
    return strtod(text, NULL);
}

BOW__LONG_WAY static float read_float_slowly(const struct bow__decimal *decimal)
{
    char text[INTEGER_BYTES];
    write_integer(text, decimal);
    return strtof(text, NULL);
}

/* Rounded once, where digits and power of ten are both exact (W. Clinger, 1990). */
static bool read_quickly(const struct bow__decimal *decimal, double *ret_value)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    int64_t exponent = decimal->exponent;

    if (decimal->is_cut || decimal->digits > UINT64_C(1) << 53 || exponent < -22 || exponent > 22) {
        return false;
    }
    double digits = (double)decimal->digits;
    *ret_value = exponent < 0 ? digits / powers[-exponent] : digits * powers[exponent];
    return true;
}

bool bow__decimal_to_double(const struct bow__decimal *decimal, double *ret_value)
{
    double value;

    if (!read_quickly(decimal, &value)) {
        value = read_double_slowly(decimal);
    }
    if (isinf(value)) {
        return false;
    }
    *ret_value = decimal->is_negative ? -value : value;
    return true;
}

/* Whether a double, rounded once more, may not be the nearest float: it lies half-way between two,
 * or where floats have fewer bits than usual. */
static bool is_doubtful(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (bits & 0x1fffffff) == 0x10000000 || (value < 2 * (double)FLT_MIN && value > 0) ||
           value > (double)FLT_MAX;
}

bool bow__decimal_to_float(const struct bow__decimal *decimal, float *ret_value)
{
    double exact;
    float value;

    if (read_quickly(decimal, &exact) && !is_doubtful(exact)) {
        value = (float)exact;
    } else {
        value = read_float_slowly(decimal);
    }
    if (isinf(value)) {
        return false;
    }
    *ret_value = decimal->is_negative ? -value : value;
    return true;
}
