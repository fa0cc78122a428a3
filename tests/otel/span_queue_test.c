/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Spans that wait: in their order, copied, and no more of them than there is room for. */

#include "otel/span_queue.h"
#include "tests/support/alloc.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct test_alloc alloc;
static struct bow_context *context;
static struct bow__otel_span_queue queue;

static int setup(void **state)
{
    (void)state;
    test_alloc_init(&alloc);
    context = test_context_new(&alloc);
    bow__otel_span_queue_init(&queue, context, 10, (size_t)64 << 10);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    bow__otel_span_queue_fini(&queue);
    assert_int_equal(bow__otel_span_queue_count(&queue), 0);
    assert_int_equal(queue.n_bytes, 0);
    test_context_end(context, &alloc);
    return 0;
}

static struct bow_span span_of(uint64_t number)
{
    return (struct bow_span){
        .start_unix_ns = number,
        .tracestate = "",
        .path = "/a.B/C",
        .peer = "unix:",
        .protocol = "grpc",
        .message = "",
    };
}

static uint64_t push(uint64_t number)
{
    struct bow_span span = span_of(number);

    return bow__otel_span_queue_push(&queue, &span, 1);
}

static void expect(struct bow__otel_parcel *parcels, uint64_t first, uint64_t last)
{
    struct bow__otel_parcel *parcel = parcels;

    for (uint64_t number = first; number <= last; number++, parcel = parcel->next) {
        assert_non_null(parcel);
        assert_int_equal(parcel->spans[0].start_unix_ns, number);
    }
    assert_null(parcel);
    bow__otel_span_queue_free(&queue, parcels);
}

static void test_span_queue_keeps_the_order(void **state)
{
    (void)state;
    assert_null(bow__otel_span_queue_take(&queue, 10, SIZE_MAX));
    for (uint64_t i = 1; i <= 3; i++) {
        assert_int_equal(push(i), i);
    }
    expect(bow__otel_span_queue_take(&queue, 2, SIZE_MAX), 1, 2);
    assert_int_equal(push(4), 2);
    assert_int_equal(push(5), 3);
    expect(bow__otel_span_queue_take(&queue, 10, SIZE_MAX), 3, 5);
    assert_null(bow__otel_span_queue_take(&queue, 10, SIZE_MAX));
    assert_int_equal(push(6), 1);
    expect(bow__otel_span_queue_take(&queue, 10, 1), 6, 6); /* one at least */
}

static void test_span_queue_copies_all_of_it(void **state)
{
    char text[] = "abc";
    struct bow_span_event events[2] = {{.number = 7}, {.number = 8}};
    struct bow_span spans[2] = {span_of(1), span_of(2)};

    (void)state;
    spans[0].message = text;
    spans[1].tracestate = text;
    spans[1].events = events;
    spans[1].n_events = 2;
    assert_int_equal(bow__otel_span_queue_push(&queue, spans, 2), 2);
    memset(text, 'x', 3);
    memset(events, 0xFF, sizeof(events));
    struct bow__otel_parcel *parcel = bow__otel_span_queue_take(&queue, 10, SIZE_MAX);
    assert_int_equal(parcel->n, 2);
    assert_string_equal(parcel->spans[0].message, "abc");
    assert_string_equal(parcel->spans[1].tracestate, "abc");
    assert_string_equal(parcel->spans[1].path, "/a.B/C");
    assert_int_equal(parcel->spans[1].events[0].number, 7);
    assert_int_equal(parcel->spans[1].events[1].number, 8);
    bow__otel_span_queue_free(&queue, parcel);
}

static void test_span_queue_has_room_for_so_many(void **state)
{
    struct bow_span spans[10];

    (void)state;
    for (uint64_t i = 0; i < 10; i++) {
        spans[i] = span_of(i);
    }
    assert_int_equal(bow__otel_span_queue_push(&queue, spans, 4), 4);
    assert_int_equal(bow__otel_span_queue_push(&queue, spans, 7), 0); /* all or none */
    assert_int_equal(bow__otel_span_queue_push(&queue, spans, 6), 10);
    assert_int_equal(push(1), 0);
    struct bow__otel_parcel *taken = bow__otel_span_queue_take(&queue, 1, SIZE_MAX);
    assert_int_equal(push(1), 0); /* what is being sent takes room too */
    bow__otel_span_queue_free(&queue, taken);
    assert_int_equal(push(1), 7);
}

static void test_span_queue_has_room_for_so_many_bytes(void **state)
{
    static char text[(20 << 10) + 1];
    struct bow_span span = span_of(1);

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    span.message = text;
    assert_int_equal(bow__otel_span_queue_push(&queue, &span, 1), 1);
    assert_int_equal(bow__otel_span_queue_push(&queue, &span, 1), 2);
    assert_int_equal(bow__otel_span_queue_push(&queue, &span, 1), 3);
    assert_int_equal(bow__otel_span_queue_push(&queue, &span, 1), 0);
    assert_int_equal(push(1), 4); /* a small one fits */
    assert_true(queue.n_bytes <= queue.max_bytes);
}

static void test_span_queue_without_memory_has_no_room(void **state)
{
    (void)state;
    alloc.fail_at = alloc.n_calls + 1;
    assert_int_equal(push(1), 0);
    assert_int_equal(queue.n_bytes, 0);
    assert_int_equal(push(1), 1);
}

/* Threads */

#define PUSHERS 3
#define EACH 2000

static void *push_all(void *user)
{
    uint64_t first = (uint64_t)(uintptr_t)user * EACH;

    for (uint64_t i = 0; i < EACH;) {
        i += push(first + i) > 0;
    }
    return NULL;
}

static void test_span_queue_is_pushed_by_many(void **state)
{
    uint64_t next[PUSHERS] = {0, EACH, 2 * EACH};
    pthread_t threads[PUSHERS];
    uint64_t n = 0;

    (void)state;
    for (uintptr_t i = 0; i < PUSHERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, push_all, (void *)i), 0);
    }
    while (n < (uint64_t)PUSHERS * EACH) {
        struct bow__otel_parcel *taken = bow__otel_span_queue_take(&queue, 4, SIZE_MAX);
        for (struct bow__otel_parcel *parcel = taken; parcel != NULL; parcel = parcel->next, n++) {
            uint64_t number = parcel->spans[0].start_unix_ns;
            assert_int_equal(number, next[number / EACH]++); /* each one's in its order */
        }
        bow__otel_span_queue_free(&queue, taken);
    }
    for (int i = 0; i < PUSHERS; i++) {
        pthread_join(threads[i], NULL);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_span_queue_keeps_the_order),
        TEST(test_span_queue_copies_all_of_it),
        TEST(test_span_queue_has_room_for_so_many),
        TEST(test_span_queue_has_room_for_so_many_bytes),
        TEST(test_span_queue_without_memory_has_no_room),
        TEST(test_span_queue_is_pushed_by_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
