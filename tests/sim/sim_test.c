/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Runs seeds of the simulation:
 *
 *     sim_test [--seeds N] [--first SEED] [--time S]     quiet; stops at the first violation
 *     sim_test --seed SEED                               one, with its story
 *
 * A violation prints the seed and the command that tells its story.
 */

#include "world.h"

#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct sim_world world;
static volatile sig_atomic_t seed_now;

/* A seed that crashes is to be known, too. */
static void on_crash(int signal)
{
    char text[] = "seed 0000000000: crashed\n";
    unsigned long seed = (unsigned long)seed_now;

    for (char *digit = text + 14; seed > 0 && digit >= text + 5; digit--, seed /= 10) {
        *digit = (char)('0' + seed % 10);
    }
    (void)!write(STDOUT_FILENO, text, sizeof(text) - 1);
    (void)raise(signal);
}

static void watch_crashes(void)
{
    static const int signals[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE};
    struct sigaction action = {.sa_handler = on_crash, .sa_flags = (int)SA_RESETHAND};

    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        (void)sigaction(signals[i], &action, NULL);
    }
}

static int tell(uint64_t seed)
{
    const char *violation = sim_run(&world, seed, true);

    printf("seed %" PRIu64 ": %s\n", seed, violation[0] != '\0' ? violation : "no violation");
    return violation[0] != '\0';
}

static int run(const char *program, uint64_t first, uint64_t n, uint64_t seconds)
{
    uint64_t n_calls = 0;
    uint64_t n_ended[17] = {0};
    time_t end = time(NULL) + (time_t)seconds;
    uint64_t i = 0;

    for (; i < n && (seconds == 0 || time(NULL) < end); i++) {
        seed_now = (sig_atomic_t)(first + i);
        const char *violation = sim_run(&world, first + i, false);
        if (violation[0] != '\0') {
            printf("seed %" PRIu64 ": %s\nits story: %s --seed %" PRIu64 "\n", first + i, violation,
                   program, first + i);
            return 1;
        }
        n_calls += (uint64_t)world.n_calls;
        for (int code = 0; code < 17; code++) {
            n_ended[code] += world.n_ended[code];
        }
    }
    printf("%" PRIu64 " seeds from %" PRIu64 ", %" PRIu64 " calls, no violation\n", i, first,
           n_calls);
    for (int code = 0; code < 17; code++) {
        if (n_ended[code] > 0) {
            printf("  %-20s %" PRIu64 "\n", bow_code_name((enum bow_code)code), n_ended[code]);
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    uint64_t first = 1;
    uint64_t n = 100;
    uint64_t seconds = 0;

    /* Memory that was given back is wanted again in a moment. */
    (void)mallopt(M_MMAP_THRESHOLD, 64 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, 64 << 20);
    watch_crashes();
    for (int i = 1; i + 1 < argc; i += 2) {
        uint64_t value = strtoull(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--seed") == 0) {
            return tell(value);
        }
        if (strcmp(argv[i], "--seeds") == 0) {
            n = value;
        } else if (strcmp(argv[i], "--first") == 0) {
            first = value;
        } else if (strcmp(argv[i], "--time") == 0) {
            seconds = value;
        } else {
            fprintf(stderr, "sim_test: unknown option %s\n", argv[i]);
            return 2;
        }
    }
    return run(argv[0], first, n, seconds);
}
