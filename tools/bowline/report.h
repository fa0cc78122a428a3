/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TOOLS_BOWLINE_REPORT_H
#define BOWLINE_TOOLS_BOWLINE_REPORT_H

/*
 * What a measurement came to, as text, as JSON and as a page.
 */

#include "histogram.h"
#include "options.h"
#include <bowline/status.h>

#define REPORT_CODES 18 /* the last: codes that are none of gRPC's */

struct report {
    const struct options *options;
    const char *target, *method;
    struct histogram histogram;     /* of measured calls that ended with OK */
    uint64_t n_ended[REPORT_CODES]; /* measured ones, by status */
    uint64_t n_measured;
    uint64_t n_total;    /* with those of the warm-up */
    uint64_t n_messages; /* received on streams */
    uint64_t n_late;     /* that should have begun by the end, and had not */
    double seconds;      /* of the measurement */
    char failure[300];   /* the text of the first call that failed */
};

void report_text(const struct report *report);
void report_json(const struct report *report);
/** Returns EXIT_OK, or what to exit with: it has said why. */
int report_html(const struct report *report, const char *file);

#endif
