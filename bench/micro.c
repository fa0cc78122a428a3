/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Rounds, medians, CPUs; see the header. */

#include "micro.h"
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

void micro_print(const char *name, double *values)
{
    qsort(values, MICRO_ROUNDS, sizeof(*values), by_value);
    printf("{\"name\": \"%s\", \"median_ns\": %.2f, \"low_ns\": %.2f, \"high_ns\": %.2f}\n", name,
           values[MICRO_ROUNDS / 2], values[MICRO_ROUNDS / 4],
           values[MICRO_ROUNDS - 1 - MICRO_ROUNDS / 4]);
}

void micro_run(const char *name, micro_round_fn round, void *user)
{
    double values[MICRO_ROUNDS];
    (void)round(user);
    for (int i = 0; i < MICRO_ROUNDS; i++) {
        values[i] = round(user);
    }
    micro_print(name, values);
}

static cpu_set_t usable(void)
{
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0) {
        CPU_SET(0, &cpus);
    }
    return cpus;
}

int micro_n_cpus(void)
{
    cpu_set_t cpus = usable();
    return CPU_COUNT(&cpus);
}

int micro_cpu(int i)
{
    static cpu_set_t cpus; /* as they were before a thread was pinned */
    int last = 0;
    if (CPU_COUNT(&cpus) == 0) {
        cpus = usable();
    }
    for (size_t cpu = 0; cpu < CPU_SETSIZE && i >= 0; cpu++) {
        if (CPU_ISSET(cpu, &cpus)) {
            last = (int)cpu;
            i--;
        }
    }
    return last;
}

void micro_pin(int i)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)micro_cpu(i), &one);
    (void)pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
}

uint64_t micro_random(uint64_t *state, uint64_t below)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*state >> 33) % below;
}

noreturn void micro_fail(const char *what, int error)
{
    fprintf(stderr, "%s: %s\n", what, strerror(error < 0 ? -error : error));
    exit(1);
}
