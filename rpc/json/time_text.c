/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Days and dates of the Gregorian calendar, also before it began, as RFC 3339 and protobuf have
 * them. Days are counted in years that begin with March, so that the odd one is the last.
 */
#include "rpc/json/time_text.h"
#include "rpc/json/decimal.h"
#include "rpc/well_known/known_type.h"

#define DAY_SECONDS 86400
#define ERA_DAYS 146097   /* 400 years */
#define EPOCH_DAYS 719468 /* from 0000-03-01 to 1970-01-01 */

struct date {
    unsigned year, month, day;
};

/* `days` since 0000-03-01. */
static struct date date_of(int64_t days)
{
    unsigned era = (unsigned)(days / ERA_DAYS), of_era = (unsigned)(days % ERA_DAYS);
    unsigned year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    unsigned of_year = of_era - (365 * year + year / 4 - year / 100);
    unsigned month = (5 * of_year + 2) / 153; /* 0: March */
    struct date date = {
        .year = year + era * 400 + (month >= 10),
        .month = month < 10 ? month + 3 : month - 9,
        .day = of_year - (153 * month + 2) / 5 + 1,
    };
    return date;
}

static int64_t days_of(struct date date)
{
    unsigned year = date.month <= 2 ? date.year - 1 : date.year;
    unsigned month = date.month > 2 ? date.month - 3 : date.month + 9;
    unsigned of_era = year % 400;
    unsigned of_year = (153 * month + 2) / 5 + date.day - 1;

    return (int64_t)(year / 400) * ERA_DAYS + of_era * 365 + of_era / 4 - of_era / 100 + of_year;
}

static char *write_padded(char *to, unsigned value, unsigned n_digits)
{
    for (unsigned i = n_digits; i > 0; i--) {
        to[i - 1] = (char)('0' + value % 10);
        value /= 10;
    }
    return to + n_digits;
}

static char *write_nanos(char *to, unsigned nanos)
{
    if (nanos == 0) {
        return to;
    }
    *to++ = '.';
    if (nanos % 1000000 == 0) {
        return write_padded(to, nanos / 1000000, 3);
    }
    return nanos % 1000 == 0 ? write_padded(to, nanos / 1000, 6) : write_padded(to, nanos, 9);
}

char *bow__time_write_timestamp(char *to, int64_t seconds, int32_t nanos)
{
    int64_t since = seconds + (int64_t)EPOCH_DAYS * DAY_SECONDS; /* never below 0 */
    struct date date = date_of(since / DAY_SECONDS);
    unsigned of_day = (unsigned)(since % DAY_SECONDS);

    to = write_padded(to, date.year, 4);
    *to++ = '-';
    to = write_padded(to, date.month, 2);
    *to++ = '-';
    to = write_padded(to, date.day, 2);
    *to++ = 'T';
    to = write_padded(to, of_day / 3600, 2);
    *to++ = ':';
    to = write_padded(to, of_day / 60 % 60, 2);
    *to++ = ':';
    to = write_padded(to, of_day % 60, 2);
    to = write_nanos(to, (unsigned)nanos);
    *to++ = 'Z';
    return to;
}

char *bow__time_write_duration(char *to, int64_t seconds, int32_t nanos)
{
    if (seconds < 0 || nanos < 0) {
        *to++ = '-';
        seconds = -seconds;
        nanos = -nanos;
    }
    to = bow__decimal_write_u64(to, (uint64_t)seconds);
    to = write_nanos(to, (unsigned)nanos);
    *to++ = 's';
    return to;
}

/* Reading: what does not fit clears `is_good`, and the rest is read in vain. */

struct cursor {
    const uint8_t *at, *end;
    bool is_good;
};

static bool has_digit(const struct cursor *c)
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

static void expect(struct cursor *c, char what)
{
    c->is_good &= take(c, what);
}

/* Exactly `n_digits`, whose value is from `min` to `max`. */
static unsigned number(struct cursor *c, unsigned n_digits, unsigned min, unsigned max)
{
    unsigned value = 0, i;

    for (i = 0; i < n_digits && has_digit(c); i++) {
        value = value * 10 + (unsigned)(*c->at++ - '0');
    }
    c->is_good &= i == n_digits && value >= min && value <= max;
    return value;
}

static int32_t fraction(struct cursor *c)
{
    int32_t nanos = 0;
    unsigned n = 0;

    if (!take(c, '.')) {
        return 0;
    }
    for (; n < 9 && has_digit(c); n++) {
        nanos = nanos * 10 + (*c->at++ - '0');
    }
    c->is_good &= n > 0 && !has_digit(c);
    for (; n < 9; n++) {
        nanos *= 10;
    }
    return nanos;
}

static unsigned days_in(unsigned year, unsigned month)
{
    static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    return month >= 1 && month <= 12 ? days[month - 1] + (unsigned)(month == 2 && is_leap) : 0;
}

/* Seconds by which the time stands ahead of UTC. */
static int64_t offset(struct cursor *c)
{
    if (take(c, 'Z')) {
        return 0;
    }
    bool is_behind = take(c, '-');
    if (!is_behind) {
        expect(c, '+');
    }
    int64_t seconds = number(c, 2, 0, 23) * 3600;
    expect(c, ':');
    seconds += number(c, 2, 0, 59) * 60;
    return is_behind ? -seconds : seconds;
}

bool bow__time_read_timestamp(struct bow_slice text, int64_t *ret_seconds, int32_t *ret_nanos)
{
    struct cursor c = {text.data, text.data + text.len, true};
    struct date date;

    date.year = number(&c, 4, 1, 9999);
    expect(&c, '-');
    date.month = number(&c, 2, 1, 12);
    expect(&c, '-');
    date.day = number(&c, 2, 1, days_in(date.year, date.month));
    expect(&c, 'T');
    int64_t seconds = number(&c, 2, 0, 23) * 3600;
    expect(&c, ':');
    seconds += number(&c, 2, 0, 59) * 60;
    expect(&c, ':');
    seconds += number(&c, 2, 0, 59);
    int32_t nanos = fraction(&c);
    seconds -= offset(&c);
    if (!c.is_good || c.at != c.end) {
        return false;
    }
    seconds += (days_of(date) - EPOCH_DAYS) * DAY_SECONDS;
    if (!bow__known_timestamp_is_valid(seconds, nanos)) {
        return false;
    }
    *ret_seconds = seconds;
    *ret_nanos = nanos;
    return true;
}

bool bow__time_read_duration(struct bow_slice text, int64_t *ret_seconds, int32_t *ret_nanos)
{
    struct cursor c = {text.data, text.data + text.len, true};
    bool is_negative = take(&c, '-');
    int64_t seconds = 0;

    c.is_good = has_digit(&c);
    for (; has_digit(&c) && seconds <= BOW__DURATION_MAX; c.at++) {
        seconds = seconds * 10 + (*c.at - '0');
    }
    int32_t nanos = fraction(&c);
    expect(&c, 's');
    if (is_negative) {
        seconds = -seconds;
        nanos = -nanos;
    }
    if (!c.is_good || c.at != c.end || !bow__known_duration_is_valid(seconds, nanos)) {
        return false;
    }
    *ret_seconds = seconds;
    *ret_nanos = nanos;
    return true;
}
