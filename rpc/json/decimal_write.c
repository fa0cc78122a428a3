/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Numbers to decimal text. For floating point by Schubfach (R. Giulietti, "The Schubfach way to
 * render doubles", 2020): of the decimals that read as the number, of which there are few at the
 * last place that matters, the shortest, and of those the nearest. Knows nothing of reading.
 */
#include "rpc/json/decimal.h"
#include "rpc/json/decimal_powers.h"
#include <math.h>
#include <string.h>

/* Integers */

static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                            "25262728293031323334353637383940414243444546474849"
                            "50515253545556575859606162636465666768697071727374"
                            "75767778798081828384858687888990919293949596979899";

char *bow__decimal_write_u64(char *to, uint64_t value)
{
    char digits[20];
    char *at = digits + sizeof digits;

    while (value >= 100) {
        at -= 2;
        memcpy(at, pairs + value % 100 * 2, 2);
        value /= 100;
    }
    if (value >= 10) {
        at -= 2;
        memcpy(at, pairs + value * 2, 2);
    } else {
        *--at = (char)('0' + value);
    }
    size_t n = (size_t)(digits + sizeof digits - at);
    memcpy(to, at, n);
    return to + n;
}

char *bow__decimal_write_i64(char *to, int64_t value)
{
    if (value >= 0) {
        return bow__decimal_write_u64(to, (uint64_t)value);
    }
    *to = '-';
    return bow__decimal_write_u64(to + 1, 0 - (uint64_t)value);
}

/* Floating point */

/* A finite one above 0: fraction × 2^exponent. */
struct binary {
    uint64_t fraction;
    int exponent;
    bool is_lower_closer; /* the number below is half as far as the one above */
};

struct digits {
    uint64_t digits;
    int exponent;
};

static int floor_log2_of_power(int ten)
{
    return ten * 1741647 >> 19;
}

/* The upper half of g × factor, its last bit set when anything below it is. */
static uint64_t round_to_odd(struct bow__decimal_power g, uint64_t factor)
{
    __extension__ typedef unsigned __int128 wide;
    wide low = (wide)g.low * factor;
    wide sum = (wide)g.high * factor + (uint64_t)(low >> 64);
    return (uint64_t)(sum >> 64) | ((uint64_t)sum > 1);
}

static struct digits shortest(struct binary number)
{
    int q = number.exponent;
    uint64_t c = number.fraction;
    int k = (q * 1262611 - (number.is_lower_closer ? 524031 : 0)) >> 22;
    int h = q + floor_log2_of_power(-k) + 1;
    struct bow__decimal_power g = bow__decimal_powers[-k - BOW__DECIMAL_POWER_MIN];
    uint64_t is_odd = c & 1; /* then the ends of the interval read as its neighbours */
    uint64_t lower = round_to_odd(g, (4 * c - 2 + number.is_lower_closer) << h) + is_odd;
    uint64_t value = round_to_odd(g, 4 * c << h); /* four times what the digits are to be */
    uint64_t upper = round_to_odd(g, (4 * c + 2) << h) - is_odd;
    uint64_t s = value / 4;

    if (s >= 10) {
        uint64_t tens = s / 10;
        bool is_below_in = lower <= 40 * tens;
        bool is_above_in = 40 * tens + 40 <= upper;
        if (is_below_in != is_above_in) {
            return (struct digits){tens + is_above_in, k + 1};
        }
    }
    bool is_below_in = lower <= 4 * s;
    bool is_above_in = 4 * s + 4 <= upper;
    if (is_below_in != is_above_in) {
        return (struct digits){s + is_above_in, k};
    }
    uint64_t middle = 4 * s + 2;
    bool is_up = value > middle || (value == middle && (s & 1) != 0);
    return (struct digits){s + is_up, k};
}

static struct digits shortest_double(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    int exponent = (int)(bits >> 52 & 0x7ff);

    if (exponent == 0) {
        return shortest((struct binary){fraction, -1074, false});
    }
    return shortest((struct binary){fraction | UINT64_C(1) << 52, exponent - 1075,
                                    fraction == 0 && exponent > 1});
}

static struct digits shortest_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t fraction = bits & ((UINT32_C(1) << 23) - 1);
    int exponent = (int)(bits >> 23 & 0xff);

    if (exponent == 0) {
        return shortest((struct binary){fraction, -149, false});
    }
    return shortest((struct binary){fraction | UINT32_C(1) << 23, exponent - 150,
                                    fraction == 0 && exponent > 1});
}

static char *write_zeros(char *to, int n)
{
    memset(to, '0', (size_t)n);
    return to + n;
}

static char *write_exponent(char *to, int exponent)
{
    *to++ = 'e';
    *to++ = exponent < 0 ? '-' : '+';
    return bow__decimal_write_u64(to, (uint64_t)(exponent < 0 ? -exponent : exponent));
}

/* As JavaScript does: with an exponent from 1e21 on and below 1e-6. */
static char *write_digits(char *to, struct digits number)
{
    char digits[20];
    while (number.digits % 10 == 0) {
        number.digits /= 10;
        number.exponent++;
    }
    int n = (int)(bow__decimal_write_u64(digits, number.digits) - digits);
    int point = n + number.exponent; /* digits before it */

    if (point > 21 || point < -5) {
        *to++ = digits[0];
        if (n > 1) {
            *to++ = '.';
            memcpy(to, digits + 1, (size_t)n - 1);
            to += n - 1;
        }
        return write_exponent(to, point - 1);
    }
    if (point <= 0) {
        memcpy(to, "0.", 2);
        to = write_zeros(to + 2, -point);
        memcpy(to, digits, (size_t)n);
        return to + n;
    }
    if (point >= n) {
        memcpy(to, digits, (size_t)n);
        return write_zeros(to + n, point - n);
    }
    memcpy(to, digits, (size_t)point);
    to[point] = '.';
    memcpy(to + point + 1, digits + point, (size_t)(n - point));
    return to + n + 1;
}

/* Integers that are exact are their own shortest digits. */
#define EXACT_DOUBLE 0x1p53
#define EXACT_FLOAT 0x1p24f

/* With a point, or who takes what has none for an integer (Python) loses the sign. */
static char *write_minus_zero(char *to)
{
    memcpy(to, "-0.0", 4);
    return to + 4;
}

char *bow__decimal_write_double(char *to, double value)
{
    if (signbit(value) && value == 0) {
        return write_minus_zero(to);
    }
    if (signbit(value)) {
        *to++ = '-';
        value = -value;
    }
    if (value < EXACT_DOUBLE && value == (double)(uint64_t)value) {
        return bow__decimal_write_u64(to, (uint64_t)value);
    }
    return write_digits(to, shortest_double(value));
}

char *bow__decimal_write_float(char *to, float value)
{
    if (signbit(value) && value == 0) {
        return write_minus_zero(to);
    }
    if (signbit(value)) {
        *to++ = '-';
        value = -value;
    }
    if (value < EXACT_FLOAT && value == (float)(uint32_t)value) {
        return bow__decimal_write_u64(to, (uint64_t)value);
    }
    return write_digits(to, shortest_float(value));
}
