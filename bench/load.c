/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The measuring half of a bench client. Must not know the protocol. */

#include "load.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t bench_now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

struct costs costs_now(const struct io_counts *io)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return (struct costs){
        .minor_faults = (uint64_t)usage.ru_minflt,
        .system_calls = io->receives + io->sends + io->others,
    };
}

void load_parse(struct load *load, const struct io_counts *io, int argc, char **argv)
{
    if (argc != 6 && argc != 7) {
        fprintf(stderr, "usage: %s TARGET CONNECTIONS IN_FLIGHT CALLS WARMUP [BYTES]\n", argv[0]);
        exit(2);
    }
    *load = (struct load){
        .target = argv[1],
        .n_connections = (uint32_t)strtoul(argv[2], NULL, 10),
        .n_in_flight = (uint32_t)strtoul(argv[3], NULL, 10),
        .n_calls = strtoull(argv[4], NULL, 10),
        .n_warmup = strtoull(argv[5], NULL, 10),
        .text_bytes = argc == 7 ? (uint32_t)strtoul(argv[6], NULL, 10) : BENCH_TEXT_BYTES,
        .io = io,
    };
    if (load->n_connections == 0 || load->n_in_flight == 0 || load->n_calls == 0 ||
        load->text_bytes < sizeof(uint64_t)) {
        fprintf(stderr, "%s: counts must be above 0, BYTES at least 8\n", argv[0]);
        exit(2);
    }
    load->samples_ns = calloc(load->n_calls, sizeof(*load->samples_ns));
    if (load->samples_ns == NULL) {
        fprintf(stderr, "%s: no memory for %" PRIu64 " samples\n", argv[0], load->n_calls);
        exit(1);
    }
}

bool load_start(struct load *load)
{
    if (load->n_started == load->n_warmup + load->n_calls) {
        return false;
    }
    load->n_started++;
    return true;
}

bool load_done(struct load *load, uint64_t start_ns)
{
    uint64_t now = bench_now_ns();
    uint64_t took = now - start_ns;
    load->n_done++;
    if (load->n_done > load->n_warmup) {
        load->samples_ns[load->n_done - load->n_warmup - 1] =
            took > UINT32_MAX ? UINT32_MAX : (uint32_t)took;
    }
    if (load->n_done == load->n_warmup || load->begin_ns == 0) {
        load->begin = costs_now(load->io);
        load->begin_ns = now;
        load->begin_cpu_ns = read_clock(CLOCK_PROCESS_CPUTIME_ID);
    }
    if (load->n_done < load->n_warmup + load->n_calls) {
        return false;
    }
    load->end = costs_now(load->io);
    load->end_ns = now;
    load->end_cpu_ns = read_clock(CLOCK_PROCESS_CPUTIME_ID);
    return true;
}

static int by_value(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a;
    uint32_t right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

void load_print(struct load *load)
{
    double seconds = (double)(load->end_ns - load->begin_ns) / 1e9;
    uint64_t all = load->n_warmup + load->n_calls;
    qsort(load->samples_ns, load->n_calls, sizeof(*load->samples_ns), by_value);
    printf("{\"calls\": %" PRIu64 ", \"all_calls\": %" PRIu64 ", \"seconds\": %.6f, "
           "\"p50_us\": %.2f, \"p99_us\": %.2f, \"client_cpu_us\": %.4f, "
           "\"receives\": %" PRIu64 ", \"sends\": %" PRIu64 ", \"minor_faults\": %" PRIu64
           ", \"system_calls\": %" PRIu64 "}\n",
           load->n_calls, all, seconds, load->samples_ns[load->n_calls / 2] / 1e3,
           load->samples_ns[load->n_calls - 1 - load->n_calls / 100] / 1e3,
           (double)(load->end_cpu_ns - load->begin_cpu_ns) / 1e3 / (double)load->n_calls,
           load->io->receives, load->io->sends, load->end.minor_faults - load->begin.minor_faults,
           load->end.system_calls - load->begin.system_calls);
    free(load->samples_ns);
}
