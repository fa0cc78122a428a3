/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_METRICS_TEXT_WRITER_H
#define BOWLINE_RPC_METRICS_TEXT_WRITER_H

/*
 * The grammar of Prometheus' and of OpenMetrics' text: families, samples, labels, numbers. Knows no
 * single metric.
 *
 *     # HELP name What it is.
 *     # TYPE name_total counter
 *     name_total{label="value"} 12
 *
 * What `put` fails with once is the end: nothing is written any more, and finish() says it.
 */

#include <bowline/metrics_text.h>
#include <stdbool.h>

#define BOW__TEXT_WRITER_BYTES ((size_t)4 << 10)

enum bow__family_type {
    BOW__COUNTER = 0, /* samples end in _total */
    BOW__GAUGE,
    BOW__HISTOGRAM,
};

/** One metric with all its samples, which follow each other. */
struct bow__family {
    const char *name; /* ends with the unit, if there is one; without _total */
    const char *unit; /* "seconds", "bytes"; NULL: none */
    const char *help; /* without backslashes and line ends */
    enum bow__family_type type;
};

struct bow__text_writer {
    enum bow_metrics_format format;
    bow_metrics_put_fn put;
    void *user;
    int rc;
    const struct bow__family *family;
    bool in_labels; /* one was written */
    size_t len;
    char bytes[BOW__TEXT_WRITER_BYTES];
};

void bow__text_writer_init(struct bow__text_writer *writer, enum bow_metrics_format format,
                           bow_metrics_put_fn put, void *user);
/** Write what is left. Returns 0, or what `put` failed with. */
int bow__text_writer_finish(struct bow__text_writer *writer);

/** Begin `family` (kept): its samples follow. */
void bow__text_writer_family(struct bow__text_writer *writer, const struct bow__family *family);

/** A sample: begin, labels, one value. `suffix` of a histogram: "_bucket", "_count", "_sum"; else
 * "". */
void bow__text_writer_begin(struct bow__text_writer *writer, const char *suffix);
/** The value may be any bytes. */
void bow__text_writer_label(struct bow__text_writer *writer, const char *name, const char *value);
void bow__text_writer_label_n(struct bow__text_writer *writer, const char *name, uint64_t n);
/** The upper bound of a bucket, of whole ones and billionths. */
void bow__text_writer_le(struct bow__text_writer *writer, uint64_t whole, uint64_t billionths);
void bow__text_writer_le_infinite(struct bow__text_writer *writer);
void bow__text_writer_value(struct bow__text_writer *writer, uint64_t value);
void bow__text_writer_value_ns(struct bow__text_writer *writer, uint64_t ns);

#endif
