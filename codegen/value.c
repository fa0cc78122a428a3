/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Numbers are read and written again, so that nothing of the .proto's text reaches the
 * C unseen.
 */

#include "codegen/value.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* C11 5.2.4.1 promises 4095 characters; -Wpedantic holds to it. */
#define MAX_LITERAL 4000
#define PER_LINE 8

/* -2147483648 is an operator and a number too large for its type: of long here, unsigned there. */
const char *value_int32(struct memory *memory, const char *text)
{
    long long value = strtoll(text, NULL, 10);

    if (value <= INT32_MIN) {
        return "(-2147483647 - 1)";
    }
    return memory_printf(memory, "%lld", value);
}

const char *value_int64(struct memory *memory, const char *text)
{
    long long value = strtoll(text, NULL, 10);

    if (value == INT64_MIN) {
        return "(-9223372036854775807ll - 1)";
    }
    return memory_printf(memory, "%lldll", value);
}

const char *value_uint32(struct memory *memory, const char *text)
{
    return memory_printf(memory, "%lluu", strtoull(text, NULL, 10));
}

const char *value_uint64(struct memory *memory, const char *text)
{
    return memory_printf(memory, "%lluull", strtoull(text, NULL, 10));
}

/* What no digits can say; the macros of math.h are not constant everywhere, and warned of when the
 * value does not fit a type. NULL for a finite number. */
static const char *not_finite(double value, const char *inf, const char *minus_inf, const char *nan,
                              const char *minus_nan)
{
    if (isnan(value)) {
        return signbit(value) ? minus_nan : nan;
    }
    if (isinf(value)) {
        return value < 0 ? minus_inf : inf;
    }
    return NULL;
}

/* A number without a point would be an integer, and -0 then 0. */
static const char *with_point(struct memory *memory, const char *number, const char *suffix)
{
    const char *point = strpbrk(number, ".e") != NULL ? "" : ".0";
    return memory_printf(memory, "%s%s%s", number, point, suffix);
}

/* The fewest digits that read back as the same value. */
static const char *shortest_double(struct memory *memory, double value)
{
    for (int digits = 15; digits < 17; digits++) {
        const char *number = memory_printf(memory, "%.*g", digits, value);
        if (strtod(number, NULL) == value) {
            return number;
        }
    }
    return memory_printf(memory, "%.17g", value);
}

static const char *shortest_float(struct memory *memory, float value)
{
    for (int digits = 6; digits < 9; digits++) {
        const char *number = memory_printf(memory, "%.*g", digits, (double)value);
        if (strtof(number, NULL) == value) {
            return number;
        }
    }
    return memory_printf(memory, "%.9g", (double)value);
}

const char *value_double(struct memory *memory, const char *text)
{
    double value = strtod(text, NULL);
    const char *words = not_finite(value, "__builtin_inf()", "(-__builtin_inf())",
                                   "__builtin_nan(\"\")", "(-__builtin_nan(\"\"))");

    return words != NULL ? words : with_point(memory, shortest_double(memory, value), "");
}

const char *value_float(struct memory *memory, const char *text)
{
    float value = strtof(text, NULL);
    const char *words = not_finite((double)value, "__builtin_inff()", "(-__builtin_inff())",
                                   "__builtin_nanf(\"\")", "(-__builtin_nanf(\"\"))");

    return words != NULL ? words : with_point(memory, shortest_float(memory, value), "f");
}

const char *value_bool(const char *text)
{
    return strcmp(text, "true") == 0 ? "1" : "0";
}

static bool is_octal(char c)
{
    return c >= '0' && c <= '7';
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    char lower = c >= 'A' && c <= 'F' ? (char)(c - 'A' + 'a') : c;
    const char *found = lower != '\0' ? strchr(digits, lower) : NULL;

    return found != NULL ? (int)(found - digits) : -1;
}

static const char *take_octal(const char *text, uint8_t *ret_byte)
{
    unsigned value = 0;

    for (int i = 0; i < 3 && is_octal(*text); i++) {
        value = value * 8 + (unsigned)(*text++ - '0');
    }
    *ret_byte = (uint8_t)value;
    return text;
}

static const char *take_hex(const char *text, uint8_t *ret_byte)
{
    unsigned value = 0;

    for (int i = 0; i < 2 && hex_digit(*text) >= 0; i++) {
        value = value * 16 + (unsigned)hex_digit(*text++);
    }
    *ret_byte = (uint8_t)value;
    return text;
}

/* After the backslash. */
static const char *take_escape(const char *text, uint8_t *ret_byte)
{
    static const char letters[] = "abfnrtv";
    static const char meanings[] = "\a\b\f\n\r\t\v";
    const char *letter = strchr(letters, *text);

    if (is_octal(*text)) {
        return take_octal(text, ret_byte);
    }
    if (*text == 'x' || *text == 'X') {
        return take_hex(text + 1, ret_byte);
    }
    *ret_byte = (uint8_t)(*text != '\0' && letter != NULL ? meanings[letter - letters] : *text);
    return text + (*text != '\0');
}

struct bow_slice value_unescape(struct memory *memory, const char *text)
{
    uint8_t *bytes = memory_alloc(memory, strlen(text) + 1);
    size_t len = 0;

    while (*text != '\0') {
        if (*text != '\\') {
            bytes[len++] = (uint8_t)*text++;
            continue;
        }
        text = take_escape(text + 1, &bytes[len++]);
    }
    return (struct bow_slice){.data = bytes, .len = len};
}

static void emit_list(struct printer *out, const char *element, struct bow_slice bytes)
{
    printer_text(out, "{");
    for (size_t i = 0; i < bytes.len; i++) {
        printer_text(out, i % PER_LINE == 0 ? "\n    " : " ");
        printer_printf(out, "(%s)%u,", element, bytes.data[i]);
    }
    printer_text(out, "\n    0}");
}

void value_emit_bytes(struct printer *out, const char *element, struct bow_slice bytes)
{
    if (bytes.len > MAX_LITERAL) {
        emit_list(out, element, bytes);
        return;
    }
    printer_string_bytes(out, (const char *)bytes.data, bytes.len);
}
