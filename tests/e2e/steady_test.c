/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls that go on alike take no memory from the system: neither fresh pages nor mappings, at any
 * size, on either side, however they travel and wherever they are served; also after many at once,
 * whose memory is given back when nobody has wanted it for a while.
 *
 *     steady_test PROTOCOL [large]
 */

#include "lab.h"
#include "steady_count.h"
#include "steady_world.h"

#include <bowline/context.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define FEW_IN_FLIGHT 4u

static const char *prefix = "";
static bool is_large;
static struct certs certs;
static struct steady_world world;

struct steady_kinds {
    enum steady_kind first; /* to the last, by steps */
    unsigned step;
};

static const struct steady_kinds all_kinds = {STEADY_UNARY, 1};
/* A call and a stream, with messages both ways. */
static const struct steady_kinds both_ways = {STEADY_UNARY, STEADY_STREAM_BOTH};

/* Each size has a world of its own, in which nothing of the others' waits and is given back. */
static unsigned measure(const struct steady_setting *setting, const struct steady_kinds *kinds,
                        const size_t *sizes, size_t n_sizes)
{
    unsigned n_wrong = 0;

    for (size_t i = 0; i < n_sizes; i++) {
        steady_begin(&world, setting, &certs);
        world.n_bytes = sizes[i];
        for (unsigned kind = kinds->first; kind < STEADY_N_KINDS; kind += kinds->step) {
            world.kind = kind;
            n_wrong += steady_measure(&world, 1);
            n_wrong += steady_measure(&world, FEW_IN_FLIGHT);
        }
        steady_end(&world);
    }
    return n_wrong;
}

static void test_steady_f68_calls_take_no_memory(void **state)
{
    static const size_t sizes[] = {32, 1 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, 1 * MIB, 3 * MIB};
    static const struct steady_setting setting = {.name = "tcp"};

    (void)state;
    assert_int_equal(measure(&setting, &all_kinds, sizes, sizeof(sizes) / sizeof(sizes[0])), 0);
}

static void test_steady_f68_however_they_travel(void **state)
{
    static const size_t sizes[] = {2 * KIB, 64 * KIB, 1 * MIB};
    static const struct steady_setting settings[] = {
        {.name = "unix", .link = STEADY_UNIX},
        {.name = "tls", .link = STEADY_TLS},
        {.name = "zstd", .packing = STEADY_ZSTD},
        {.name = "gzip", .packing = STEADY_GZIP},
    };
    unsigned n_wrong = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        n_wrong += measure(&settings[i], &both_ways, sizes, sizeof(sizes) / sizeof(sizes[0]));
    }
    assert_int_equal(n_wrong, 0);
}

static void test_steady_f68_wherever_they_are_served(void **state)
{
    static const size_t sizes[] = {2 * KIB, 64 * KIB, 1 * MIB};
    static const struct steady_setting settings[] = {
        {.name = "executor", .is_on_executor = true},
        {.name = "two workers", .n_workers = 2},
        {.name = "two workers, executor", .n_workers = 2, .is_on_executor = true},
    };
    unsigned n_wrong = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        n_wrong += measure(&settings[i], &both_ways, sizes, sizeof(sizes) / sizeof(sizes[0]));
    }
    assert_int_equal(n_wrong, 0);
}

/* Far above what messages are by default. */
static void test_steady_f68_at_the_largest(void **state)
{
    static const size_t size = 64 * MIB;
    static const struct steady_setting settings[] = {
        {.name = "tcp", .max_message_bytes = 65 * MIB},
        {.name = "tls", .link = STEADY_TLS, .max_message_bytes = 65 * MIB},
    };
    unsigned n_wrong = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        steady_begin(&world, &settings[i], &certs);
        world.n_bytes = size;
        for (unsigned kind = 0; kind < STEADY_N_KINDS; kind++) {
            world.kind = kind;
            n_wrong += steady_measure(&world, 1);
        }
        steady_end(&world);
    }
    assert_int_equal(n_wrong, 0);
}

/* After a burst */

#define N_BURST 100u
#define N_CALM 4u     /* and the first of them may take some */
#define QUIET_MS 2500 /* a second in which nobody wants any, and the looks around it */
#define LOOK_MS 100
#define CALL_BYTES (8 * KIB) /* of one that waits for the next, on both sides together */

static size_t counted(void)
{
    return bow_context_bytes(world.context[0]) + bow_context_bytes(world.context[1]);
}

static void be_quiet(void)
{
    for (int ms = 0; ms < QUIET_MS; ms += LOOK_MS) {
        steady_pass(&world, LOOK_MS * LAB_MS);
    }
}

static void burst(const struct steady_setting *setting, enum steady_kind kind, size_t n_bytes)
{
    steady_begin(&world, setting, &certs);
    world.kind = kind;
    world.n_bytes = n_bytes;
    steady_run(&world, N_CALM, 1);
    be_quiet();
    size_t before = lab_rss_bytes();
    size_t counted_before = counted();
    steady_run(&world, N_BURST, N_BURST);
    size_t after = lab_rss_bytes();
    steady_run(&world, N_CALM, 1);
    assert_int_equal(steady_measure(&world, 1), 0);
    be_quiet();
    size_t idle = lab_rss_bytes();
    print_message("%s%s: before %zu KiB, after %u at once %zu, idle %zu; counted %zu, then %zu\n",
                  prefix, setting->name, before / KIB, N_BURST, after / KIB, idle / KIB,
                  counted_before / KIB, counted() / KIB);
    assert_true(idle <= before + before / 4);
    assert_true(counted() <= counted_before + N_BURST * CALL_BYTES);
    steady_end(&world);
}

static void test_steady_f68_after_a_burst(void **state)
{
    static const struct steady_setting settings[] = {
        {.name = "tcp"},
        {.name = "tls", .link = STEADY_TLS},
        {.name = "gzip", .packing = STEADY_GZIP},
        {.name = "executor", .is_on_executor = true},
    };

    (void)state;
    burst(&settings[0], STEADY_UNARY_UP, 1 * MIB);
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        burst(&settings[i], STEADY_STREAM_BOTH, 256 * KIB);
    }
}

static int setup(void **state)
{
    (void)state;
    steady_choose(prefix, is_large ? 64 * MIB : 3 * MIB);
    return certs_make(&certs), 0;
}

static int teardown(void **state)
{
    (void)state;
    certs_remove(&certs);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steady_f68_calls_take_no_memory),
        cmocka_unit_test(test_steady_f68_however_they_travel),
        cmocka_unit_test(test_steady_f68_wherever_they_are_served),
        cmocka_unit_test(test_steady_f68_after_a_burst),
    };
    const struct CMUnitTest large[] = {
        cmocka_unit_test(test_steady_f68_at_the_largest),
    };

    if (lab_is_instrumented()) {
        print_message("a sanitizer's own memory would be counted\n");
        return 77;
    }
    prefix = argc > 1 && strcmp(argv[1], "grpc") == 0 ? "grpc:" : "";
    is_large = argc > 2 && strcmp(argv[2], "large") == 0;
    return is_large ? cmocka_run_group_tests(large, setup, teardown)
                    : cmocka_run_group_tests(tests, setup, teardown);
}
