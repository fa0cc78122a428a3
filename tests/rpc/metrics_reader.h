/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_RPC_METRICS_READER_H
#define BOWLINE_TESTS_RPC_METRICS_READER_H

/*
 * A strict reader of metrics as text: it fails the test at the first line that a scraper might
 * refuse, and finds samples by their name and labels.
 */

#include <bowline/metrics_text.h>
#include <stdbool.h>

#define METRICS_TEXT_BYTES ((size_t)1 << 18)

struct metrics_text {
    enum bow_metrics_format format;
    size_t len;
    char bytes[METRICS_TEXT_BYTES]; /* with a NUL behind */
};

/** A bow_metrics_put_fn; `user` is a struct metrics_text that was zeroed. */
int metrics_text_put(const char *text, size_t len, void *user);

/** Check all of it: each family is there once, with HELP and TYPE before its samples; names, labels
 * and escapes are well formed; buckets rise to what _count says, with +Inf last; counters end in
 * _total; in OpenMetrics UNIT fits the name, and # EOF ends it. */
void metrics_text_check(const struct metrics_text *text);

/** The value of the one sample that begins so, as `name{label="value"}` up to the blank, whole.
 * Fails the test when there is none. */
double metrics_text_get(const struct metrics_text *text, const char *sample);
bool metrics_text_has(const struct metrics_text *text, const char *sample);

#endif
