/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BENCH_SERVICE_H
#define BOWLINE_BENCH_SERVICE_H

/*
 * What a bench server is asked for, and what its messages cost it: printed as one JSON
 * object for tools/bench. Knows nothing of what is served.
 */

#include "load.h"

struct service {
    const char *listen;
    uint32_t text_bytes;
    uint64_t n_warmup;
    uint64_t n_calls; /* measured, after the warm-up; 0: nothing is */
    uint64_t n_done;
    struct io_counts io;
    struct costs begin;
    struct costs end;
};

/** Arguments: HOST:PORT [BYTES WARMUP CALLS]. Exits with a message when they are wrong. */
void service_parse(struct service *service, int argc, char **argv);

/** `n` more messages are done. */
void service_count(struct service *service, uint64_t n);

void service_print(const struct service *service);

#endif
