/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Text for Prometheus, piece by piece. Numbers are made of whole ones, so that no locale puts a
 * comma into them.
 */

#include "rpc/metrics/text_writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BILLION UINT64_C(1000000000)

/* Bytes */

static void flush(struct bow__text_writer *writer)
{
    if (writer->len > 0 && writer->rc == 0) {
        int rc = writer->put(writer->bytes, writer->len, writer->user);
        writer->rc = rc < 0 ? rc : 0;
    }
    writer->len = 0;
}

static void write_byte(struct bow__text_writer *writer, char byte)
{
    if (writer->len == sizeof(writer->bytes)) {
        flush(writer);
    }
    writer->bytes[writer->len++] = byte;
}

static void write_text(struct bow__text_writer *writer, const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        write_byte(writer, *at);
    }
}

static void write_number(struct bow__text_writer *writer, uint64_t n)
{
    char digits[24];

    (void)snprintf(digits, sizeof(digits), "%" PRIu64, n);
    write_text(writer, digits);
}

/* Without zeros that say nothing; OpenMetrics wants a point in each bound. */
static void write_decimal(struct bow__text_writer *writer, uint64_t whole, uint64_t billionths,
                          bool pointed)
{
    char digits[16];

    write_number(writer, whole);
    if (billionths == 0 && !pointed) {
        return;
    }
    (void)snprintf(digits, sizeof(digits), ".%09" PRIu64, billionths);
    size_t len = strlen(digits);
    while (len > 2 && digits[len - 1] == '0') {
        len--;
    }
    digits[len] = '\0';
    write_text(writer, digits);
}

void bow__text_writer_init(struct bow__text_writer *writer, enum bow_metrics_format format,
                           bow_metrics_put_fn put, void *user)
{
    writer->format = format;
    writer->put = put;
    writer->user = user;
    writer->rc = 0;
    writer->family = NULL;
    writer->in_labels = false;
    writer->len = 0;
}

int bow__text_writer_finish(struct bow__text_writer *writer)
{
    if (writer->format == BOW_METRICS_OPENMETRICS) {
        write_text(writer, "# EOF\n");
    }
    flush(writer);
    return writer->rc;
}

/* Families */

static bool is_open(const struct bow__text_writer *writer)
{
    return writer->format == BOW_METRICS_OPENMETRICS;
}

/* In Prometheus' own form a counter's family has the name of its samples. */
static void write_line(struct bow__text_writer *writer, const char *keyword, const char *text)
{
    const struct bow__family *family = writer->family;

    write_text(writer, "# ");
    write_text(writer, keyword);
    write_byte(writer, ' ');
    write_text(writer, family->name);
    write_text(writer, family->type == BOW__COUNTER && !is_open(writer) ? "_total " : " ");
    write_text(writer, text);
    write_byte(writer, '\n');
}

void bow__text_writer_family(struct bow__text_writer *writer, const struct bow__family *family)
{
    static const char *const types[] = {
        [BOW__COUNTER] = "counter",
        [BOW__GAUGE] = "gauge",
        [BOW__HISTOGRAM] = "histogram",
    };

    writer->family = family;
    write_line(writer, "HELP", family->help);
    write_line(writer, "TYPE", types[family->type]);
    if (is_open(writer) && family->unit != NULL) {
        write_line(writer, "UNIT", family->unit);
    }
}

/* Samples */

void bow__text_writer_begin(struct bow__text_writer *writer, const char *suffix)
{
    write_text(writer, writer->family->name);
    write_text(writer, writer->family->type == BOW__COUNTER ? "_total" : suffix);
    writer->in_labels = false;
}

static void begin_label(struct bow__text_writer *writer, const char *name)
{
    write_byte(writer, writer->in_labels ? ',' : '{');
    writer->in_labels = true;
    write_text(writer, name);
    write_text(writer, "=\"");
}

/* A byte that is not of printable ASCII may be of no valid UTF-8, which a reader refuses with all
 * the text. */
static void write_escaped(struct bow__text_writer *writer, char byte)
{
    if (byte == '\n') {
        write_text(writer, "\\n");
        return;
    }
    if (byte == '\\' || byte == '"') {
        write_byte(writer, '\\');
    }
    write_byte(writer, byte >= ' ' && byte <= '~' ? byte : '?');
}

void bow__text_writer_label(struct bow__text_writer *writer, const char *name, const char *value)
{
    begin_label(writer, name);
    for (const char *at = value; *at != '\0'; at++) {
        write_escaped(writer, *at);
    }
    write_byte(writer, '"');
}

void bow__text_writer_label_n(struct bow__text_writer *writer, const char *name, uint64_t n)
{
    begin_label(writer, name);
    write_number(writer, n);
    write_byte(writer, '"');
}

void bow__text_writer_le(struct bow__text_writer *writer, uint64_t whole, uint64_t billionths)
{
    begin_label(writer, "le");
    write_decimal(writer, whole, billionths, is_open(writer));
    write_byte(writer, '"');
}

void bow__text_writer_le_infinite(struct bow__text_writer *writer)
{
    bow__text_writer_label(writer, "le", "+Inf");
}

static void end_labels(struct bow__text_writer *writer)
{
    write_text(writer, writer->in_labels ? "} " : " ");
}

void bow__text_writer_value(struct bow__text_writer *writer, uint64_t value)
{
    end_labels(writer);
    write_number(writer, value);
    write_byte(writer, '\n');
}

void bow__text_writer_value_ns(struct bow__text_writer *writer, uint64_t ns)
{
    end_labels(writer);
    write_decimal(writer, ns / BILLION, ns % BILLION, false);
    write_byte(writer, '\n');
}
