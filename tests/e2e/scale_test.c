/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Streams at scale: many small messages each way at once, and a long row of large ones, all in
 * their order and as they were sent, with memory bounded by the windows; and a reader that
 * is slow, which holds back who sends to it and nobody else.
 *
 *     scale_test native|grpc [long]
 */

#include "scale.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB ((size_t)1 << 20)

/* What a stream's window is before it grows. */
#define NATIVE_WINDOW ((size_t)64 << 10)
#define GRPC_WINDOW ((size_t)256 << 10)

static const char *prefix = "";
static bool is_long;

/* How much: a sanitizer makes it many times slower. */
static uint64_t amount(uint64_t n_long, uint64_t n_short)
{
    if (is_long) {
        return n_long;
    }
    return lab_is_instrumented() ? n_short / 4 : n_short;
}

/* Peak of this process, from here on. */

static void forget_peak(void)
{
    int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);

    if (fd >= 0) {
        assert_int_equal(write(fd, "5", 1), 1);
        close(fd);
    }
}

static size_t peak_rss(void)
{
    char line[256];
    size_t kib = 0;
    FILE *status = fopen("/proc/self/status", "r");

    assert_non_null(status);
    while (fgets(line, sizeof(line), status) != NULL) {
        (void)sscanf(line, "VmHWM: %zu", &kib);
    }
    fclose(status);
    return kib << 10;
}

static void begin(struct scale *t)
{
    forget_peak();
    scale_begin(t, prefix);
}

static void end(struct scale *t, size_t rss_before)
{
    size_t server = atomic_load(&t->server_memory.peak);
    size_t client = atomic_load(&t->client_memory.peak);

    print_message("peak: server %zu KiB, client %zu KiB, resident +%zu KiB\n", server >> 10,
                  client >> 10, (peak_rss() - rss_before) >> 10);
    scale_end(t);
}

static size_t first_window(void)
{
    return prefix[0] != '\0' ? GRPC_WINDOW : NATIVE_WINDOW;
}

/*
 * What one side may hold at most, however much goes through it: of what it sends, the
 * producer's mark and as much before the socket; of what it gets, the stream's window; and three
 * messages in the making. The rest is what a loop keeps for the next time.
 */
static size_t bound(size_t body_bytes)
{
    return 2 * (2 * BOW_STREAM_WRITABLE_BYTES + first_window() + 3 * body_bytes) + 4 * MIB;
}

static void expect_bound(const struct scale *t, size_t bytes)
{
    assert_in_range(atomic_load(&t->server_memory.peak), 1, bytes);
    assert_in_range(atomic_load(&t->client_memory.peak), 1, bytes);
}

static void run_both_ways(uint64_t n, size_t body_bytes)
{
    struct scale_wish wish = {.n_from_client = n, .n_from_server = n, .body_bytes = body_bytes};
    struct scale t;
    size_t before = lab_rss_bytes();

    begin(&t);
    uint64_t start = lab_now_ns();
    struct scale_talk *talk = scale_talk(&t, 0, &wish);
    scale_expect_all(talk);
    uint64_t took = lab_now_ns() - start;
    print_message("%lu messages of %zu bytes each way in %lu ms\n", (unsigned long)n, body_bytes,
                  (unsigned long)(took / LAB_MS));
    expect_bound(&t, bound(body_bytes));
    end(&t, before);
}

static void test_scale_small_messages_both_ways_at_once(void **state)
{
    (void)state;
    run_both_ways(amount(1000000, 20000), 32);
}

static void test_scale_large_messages_both_ways_at_once(void **state)
{
    (void)state;
    run_both_ways(amount(1024, 24), MIB);
}

static void run_one_way(uint64_t n_from_client, uint64_t n_from_server)
{
    struct scale_wish wish = {n_from_client, n_from_server, MIB, false, false};
    struct scale t;
    size_t before = lab_rss_bytes();

    begin(&t);
    uint64_t start = lab_now_ns();
    scale_expect_all(scale_talk(&t, 0, &wish));
    print_message("%lu MiB to the server and %lu MiB back in %lu ms\n",
                  (unsigned long)n_from_client, (unsigned long)n_from_server,
                  (unsigned long)((lab_now_ns() - start) / LAB_MS));
    expect_bound(&t, bound(MIB));
    end(&t, before);
}

static void test_scale_large_messages_to_the_server(void **state)
{
    (void)state;
    run_one_way(amount(1024, 24), 0);
}

static void test_scale_large_messages_to_the_client(void **state)
{
    (void)state;
    run_one_way(0, amount(1024, 24));
}

/* A reader that is slow */

/* One talk on the connection of the slow one, and one on another: how long both take. */
static uint64_t neighbours(struct scale *t, unsigned first, uint64_t n)
{
    struct scale_wish wish = {.n_from_client = n, .n_from_server = n, .body_bytes = 32};

    uint64_t start = lab_now_ns();
    struct scale_talk *one = scale_talk(t, first, &wish);
    struct scale_talk *other = scale_talk(t, first + 1, &wish);
    scale_expect_all(one);
    scale_expect_all(other);
    return lab_now_ns() - start;
}

/* What disturbs the machine does not disturb each round. */
static uint64_t best_of_neighbours(struct scale *t, unsigned first, uint64_t n)
{
    uint64_t best = UINT64_MAX;

    for (int i = 0; i < (is_long ? 5 : 1); i++) {
        uint64_t ns = neighbours(t, first, n);
        best = ns < best ? ns : best;
        scale_forget(t, first);
    }
    return best;
}

/* No more was sent than the stream's first window holds, the producer's mark, and two messages. */
static void expect_held_back(const struct scale_end *end)
{
    uint64_t bytes = atomic_load(&end->n_sent) * end->body_bytes;

    assert_in_range(bytes, 1, first_window() + BOW_STREAM_WRITABLE_BYTES + 2 * end->body_bytes);
}

static void slow_reader(bool client_stalls, bool server_stalls)
{
    uint64_t n = amount(100000, 3000);
    struct scale_wish slow = {
        .n_from_client = server_stalls ? n : 0,
        .n_from_server = client_stalls ? n : 0,
        .body_bytes = 1000,
        .client_stalls = client_stalls,
        .server_stalls = server_stalls,
    };
    struct scale t;
    size_t before = lab_rss_bytes();

    begin(&t);
    uint64_t alone = best_of_neighbours(&t, 0, n);
    struct scale_talk *stalled = scale_talk(&t, 0, &slow);
    scale_expect_all(scale_talk(&t, 1, &(struct scale_wish){.body_bytes = 1}));
    uint64_t beside = best_of_neighbours(&t, 2, n);
    print_message("neighbours: %lu ms alone, %lu ms beside a slow reader\n",
                  (unsigned long)(alone / LAB_MS), (unsigned long)(beside / LAB_MS));
    const struct scale_end *producer = client_stalls ? &stalled->server : &stalled->client;
    const struct scale_end *reader = client_stalls ? &stalled->client : &stalled->server;
    assert_int_equal(atomic_load(&reader->n_received), 1);
    expect_held_back(producer);
    if (is_long && !lab_is_instrumented()) {
        assert_in_range(beside, 1, 2 * alone + 100 * LAB_MS);
    }
    scale_read_on(stalled);
    scale_expect_all(stalled);
    expect_bound(&t, bound(1000));
    end(&t, before);
}

static void test_scale_slow_client_holds_back_its_producer_alone(void **state)
{
    (void)state;
    slow_reader(true, false);
}

static void test_scale_slow_server_holds_back_its_producer_alone(void **state)
{
    (void)state;
    slow_reader(false, true);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scale_small_messages_both_ways_at_once),
        cmocka_unit_test(test_scale_large_messages_both_ways_at_once),
        cmocka_unit_test(test_scale_large_messages_to_the_server),
        cmocka_unit_test(test_scale_large_messages_to_the_client),
        cmocka_unit_test(test_scale_slow_client_holds_back_its_producer_alone),
        cmocka_unit_test(test_scale_slow_server_holds_back_its_producer_alone),
    };

    prefix = argc > 1 && strcmp(argv[1], "grpc") == 0 ? "grpc:" : "";
    is_long = argc > 2 && strcmp(argv[2], "long") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
