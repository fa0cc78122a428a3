/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Metrics as text, read by the letter; see the header. */

#include "metrics_reader.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MAX_FAMILIES 128u
#define NAME_BYTES 128u
#define LINE_BYTES 1024u

struct reader {
    const struct metrics_text *text;
    char families[MAX_FAMILIES][NAME_BYTES]; /* as TYPE names them */
    size_t n_families;
    char family[NAME_BYTES];
    char type[NAME_BYTES];
    char help_of[NAME_BYTES]; /* HELP was said, TYPE was not yet */
    /* Of the histogram under way: its labels but for le. */
    char series[LINE_BYTES];
    double last_le;
    double last_n;
    bool saw_infinite;
    char before[LINE_BYTES]; /* the sample before, name and labels */
};

int metrics_text_put(const char *text, size_t len, void *user)
{
    struct metrics_text *to = user;

    if (len == 0 || len >= METRICS_TEXT_BYTES - to->len) {
        return -ENOBUFS;
    }
    memcpy(to->bytes + to->len, text, len);
    to->len += len;
    to->bytes[to->len] = '\0';
    return 0;
}

static bool is_name_byte(char byte, bool first)
{
    return (byte >= 'a' && byte <= 'z') || byte == '_' || (!first && byte >= '0' && byte <= '9') ||
           (byte >= 'A' && byte <= 'Z');
}

static size_t name_len(const char *at)
{
    size_t len = 0;

    while (is_name_byte(at[len], len == 0)) {
        len++;
    }
    return len;
}

static void take_name(const char **at, char *name, const char *line)
{
    size_t len = name_len(*at);

    if (len == 0 || len >= NAME_BYTES) {
        fail_msg("no name at \"%s\" in: %s", *at, line);
    }
    memcpy(name, *at, len);
    name[len] = '\0';
    *at += len;
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text);
    size_t n_end = strlen(end);

    return len >= n_end && strcmp(text + len - n_end, end) == 0;
}

static void check_type(struct reader *reader, const char *rest, const char *line)
{
    bool is_open = reader->text->format == BOW_METRICS_OPENMETRICS;

    if (strcmp(reader->help_of, reader->family) != 0) {
        fail_msg("TYPE without HELP before it: %s", line);
    }
    reader->help_of[0] = '\0';
    for (size_t i = 0; i < reader->n_families; i++) {
        if (strcmp(reader->families[i], reader->family) == 0) {
            fail_msg("a family twice: %s", line);
        }
    }
    assert_true(reader->n_families < MAX_FAMILIES);
    strcpy(reader->families[reader->n_families++], reader->family);
    assert_true(strlen(rest) < NAME_BYTES);
    strcpy(reader->type, rest);
    if (strcmp(rest, "counter") == 0) {
        if (ends_with(reader->family, "_total") == is_open) {
            fail_msg("a counter's name: %s", line);
        }
    } else if (strcmp(rest, "gauge") != 0 && strcmp(rest, "histogram") != 0) {
        fail_msg("no type that is known: %s", line);
    } else if (ends_with(reader->family, "_total")) {
        fail_msg("no counter: %s", line);
    }
}

static void check_comment(struct reader *reader, const char *line)
{
    char keyword[NAME_BYTES];
    const char *at = line + 2;

    assert_memory_equal(line, "# ", 2);
    take_name(&at, keyword, line);
    assert_true(*at++ == ' ');
    if (strcmp(keyword, "UNIT") == 0) {
        char name[NAME_BYTES];
        char unit[NAME_BYTES] = "_";
        take_name(&at, name, line);
        assert_int_equal(reader->text->format, BOW_METRICS_OPENMETRICS);
        assert_string_equal(name, reader->family);
        assert_true(*at++ == ' ');
        strncat(unit, at, NAME_BYTES - 2);
        if (!ends_with(name, unit)) {
            fail_msg("a name without its unit: %s", line);
        }
        return;
    }
    take_name(&at, reader->family, line);
    assert_true(*at++ == ' ');
    if (strcmp(keyword, "HELP") == 0) {
        assert_true(strlen(at) > 0 && strchr(at, '\\') == NULL);
        strcpy(reader->help_of, reader->family);
    } else if (strcmp(keyword, "TYPE") == 0) {
        check_type(reader, at, line);
    } else {
        fail_msg("no keyword that is known: %s", line);
    }
}

/* Copies the labels but for le, and returns that one's value, or NULL. */
static const char *take_labels(const char **at, char *labels, char *le, const char *line)
{
    const char *found = NULL;

    labels[0] = '\0';
    if (**at != '{') {
        return NULL;
    }
    (*at)++;
    do {
        char name[NAME_BYTES];
        const char *begin = *at;
        take_name(at, name, line);
        if (strncmp(*at, "=\"", 2) != 0) {
            fail_msg("a label without a value at \"%s\" in: %s", *at, line);
        }
        *at += 2;
        const char *value = *at;
        while (**at != '"') {
            if (**at == '\\' && strchr("\\\"n", (*at)[1]) == NULL) {
                fail_msg("an escape at \"%s\" in: %s", *at, line);
            }
            *at += **at == '\\' ? 2 : 1;
            assert_true(**at != '\0');
        }
        if (strcmp(name, "le") == 0) {
            size_t n = (size_t)(*at - value);
            assert_true(n > 0 && n < NAME_BYTES);
            memcpy(le, value, n);
            le[n] = '\0';
            found = le;
        } else {
            strncat(labels, begin, (size_t)(*at - begin) + 1);
        }
        (*at)++;
    } while (*(*at)++ == ',');
    assert_true((*at)[-1] == '}');
    return found;
}

static double number(const char *text, const char *line)
{
    char *end = NULL;
    double value = strcmp(text, "+Inf") == 0 ? (double)1e300 : strtod(text, &end);

    if (end != NULL && (*end != '\0' || end == text)) {
        fail_msg("no number: %s", line);
    }
    return value;
}

static void check_bucket(struct reader *reader, const char *labels, const char *le, double n,
                         const char *line)
{
    double bound = number(le, line);

    if (reader->text->format == BOW_METRICS_OPENMETRICS && strcmp(le, "+Inf") != 0 &&
        strchr(le, '.') == NULL) {
        fail_msg("a bound that is no float: %s", line);
    }
    if (strcmp(labels, reader->series) != 0) {
        strcpy(reader->series, labels);
        reader->last_le = -1;
        reader->last_n = 0;
    }
    if (bound <= reader->last_le || n < reader->last_n) {
        fail_msg("buckets rise: %s", line);
    }
    reader->last_le = bound;
    reader->last_n = n;
    reader->saw_infinite = strcmp(le, "+Inf") == 0;
}

static void check_histogram(struct reader *reader, const char *suffix, const char *labels,
                            const char *le, double n, const char *line)
{
    if (strcmp(suffix, "_bucket") == 0 && le != NULL) {
        check_bucket(reader, labels, le, n, line);
        return;
    }
    if (le != NULL || strcmp(labels, reader->series) != 0 || !reader->saw_infinite) {
        fail_msg("not of the buckets before it: %s", line);
    }
    if (strcmp(suffix, "_count") == 0) {
        assert_true(n == reader->last_n);
        reader->series[0] = '\0';
        reader->saw_infinite = false;
    } else if (strcmp(suffix, "_sum") != 0) {
        fail_msg("nothing of a histogram: %s", line);
    }
}

static void check_sample(struct reader *reader, const char *line)
{
    bool is_open = reader->text->format == BOW_METRICS_OPENMETRICS;
    char name[NAME_BYTES];
    char labels[LINE_BYTES];
    char le[NAME_BYTES];
    const char *at = line;

    take_name(&at, name, line);
    const char *bound = take_labels(&at, labels, le, line);
    if (*at != ' ') {
        fail_msg("one blank before the value: %s", line);
    }
    size_t n_series = (size_t)(at - line);
    if (strncmp(reader->before, line, n_series) == 0 && reader->before[n_series] == '\0') {
        fail_msg("the same sample twice: %s", line);
    }
    memcpy(reader->before, line, n_series);
    reader->before[n_series] = '\0';
    double value = number(at + 1, line);
    if (strncmp(name, reader->family, strlen(reader->family)) != 0 || reader->help_of[0] != '\0') {
        fail_msg("not of the family before it: %s", line);
    }
    const char *suffix = name + strlen(reader->family);
    if (strcmp(reader->type, "histogram") == 0) {
        check_histogram(reader, suffix, labels, bound, value, line);
    } else if (strcmp(suffix, is_open && strcmp(reader->type, "counter") == 0 ? "_total" : "") !=
               0) {
        fail_msg("a name that its type has not: %s", line);
    }
    assert_true(value >= 0);
}

void metrics_text_check(const struct metrics_text *text)
{
    struct reader *reader = calloc(1, sizeof(*reader));
    const char *at = text->bytes;
    bool ended = false;

    assert_non_null(reader);
    reader->text = text;
    while (*at != '\0') {
        char line[LINE_BYTES];
        const char *end = strchr(at, '\n');
        assert_non_null(end);
        assert_true(end - at > 0 && (size_t)(end - at) < sizeof(line));
        assert_false(ended);
        memcpy(line, at, (size_t)(end - at));
        line[end - at] = '\0';
        if (strcmp(line, "# EOF") == 0) {
            ended = true;
        } else if (line[0] == '#') {
            check_comment(reader, line);
        } else {
            check_sample(reader, line);
        }
        at = end + 1;
    }
    assert_int_equal(ended, text->format == BOW_METRICS_OPENMETRICS);
    assert_true(reader->n_families > 0);
    free(reader);
}

static const char *find(const struct metrics_text *text, const char *sample)
{
    size_t len = strlen(sample);
    const char *at = text->bytes;

    while ((at = strstr(at, sample)) != NULL) {
        if ((at == text->bytes || at[-1] == '\n') && at[len] == ' ') {
            return at + len + 1;
        }
        at++;
    }
    return NULL;
}

bool metrics_text_has(const struct metrics_text *text, const char *sample)
{
    return find(text, sample) != NULL;
}

double metrics_text_get(const struct metrics_text *text, const char *sample)
{
    const char *at = find(text, sample);

    if (at == NULL) {
        fail_msg("no sample %s in:\n%s", sample, text->bytes);
    }
    return strtod(at, NULL);
}
