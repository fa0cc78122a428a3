/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BENCH_COUNTED_SYSTEM_H
#define BOWLINE_BENCH_COUNTED_SYSTEM_H

/*
 * The operating system's table with two changes: receives and sends are counted,
 * and TCP sockets use reno, which does not pace loopback as bbr does.
 */

#include "load.h"
#include <bowline/system.h>

struct bow_system counted_system(struct io_counts *counts);

/** Have `system` count the calls of its poller, too, one table in a process. */
void counted_system_poller(struct bow_system *system, struct io_counts *counts);

#endif
