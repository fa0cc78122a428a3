/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TOOLS_BOWLINE_PICTURE_H
#define BOWLINE_TOOLS_BOWLINE_PICTURE_H

/*
 * What a server did between two samples, and what it has on it at the second: rates, percentiles of
 * the calls that ended between them, what is nearest to its limit. All texts are the server's or
 * its peers', unescaped, and live as long as the second sample.
 */

#include "options.h"
#include "sample.h"

/** Of the calls that ended between the samples; of none, `n` is 0. */
struct picture_times {
    uint64_t n;
    uint64_t p50_us, p99_us, max_us;
};

struct picture_method {
    const char *name;     /* with its slash in front; "*": of no method that is known */
    double calls, errors; /* that ended, and not with OK, a second */
    uint64_t n_ever;      /* calls that began since the server's start */
    uint64_t in_flight;
    struct picture_times times;
};

struct picture_loop {
    const Told__Loop *told;
    size_t place; /* among those that the server tells */
    double busy;  /* 0 to 1 */
    double turns; /* a second */
};

struct picture_limit {
    const char *name; /* of the server's option */
    const char *note; /* what it is held against; "" */
    uint64_t now, most;
    bool is_bytes;
};

#define PICTURE_LIMITS 4

struct picture {
    const Told__Server *told;
    double seconds;                                   /* between the samples */
    double calls, errors, bytes_received, bytes_sent; /* a second */
    uint64_t in_flight;
    struct picture_times times; /* of all methods */
    struct picture_method *methods;
    size_t n_methods;           /* those that were ever called */
    struct picture_loop *loops; /* those that do not run first */
    size_t n_loops;
    const Told__Call **calls_shown; /* the slowest first */
    size_t n_calls_shown;
    struct picture_limit limits[PICTURE_LIMITS]; /* the nearest first */
    size_t n_limits;
};

/** Whether the server was started anew between the samples, so that there is nothing between. */
bool picture_is_restart(const struct sample *then, const struct sample *now);

/** Returns 0 or -ENOMEM. */
int picture_make(const struct sample *then, const struct sample *now, enum watch_sort sort,
                 struct picture *ret_picture);
void picture_fini(struct picture *picture);

#endif
