/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TOOLS_BOWLINE_COMMANDS_H
#define BOWLINE_TOOLS_BOWLINE_COMMANDS_H

/* The commands. Each does what the command line says, and returns what to exit with. */

#include "options.h"
#include <time.h>

int command_call(const struct options *options);
int command_list(const struct options *options);
int command_describe(const struct options *options);
int command_ping(const struct options *options);
int command_health(const struct options *options);
int command_bench(const struct options *options);
int command_watch(const struct options *options);
int command_new(const struct options *options);

/** Nanoseconds of a clock that only goes forward. */
static inline uint64_t clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
