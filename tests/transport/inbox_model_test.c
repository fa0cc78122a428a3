/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Every interleaving of two producers, each with two posts, and a loop that goes to
 * sleep (L13, L30). Neither a run on one kind of processor nor ThreadSanitizer
 * shows them all.
 *
 * What is explored is transport/loop/inbox.c itself, compiled here over atomics that are
 * steps of a model. The order in which its functions are called is written down
 * again below, beside the names of those that call them in transport/.
 *
 * How a thread takes a step: its present call is run from the beginning, with the
 * results of the steps it has taken before; the next operation is performed on the
 * model's memory; before the one after that, the call is left (longjmp). So the
 * state of a thread is the call it is in and what it has read, and a state of the
 * whole is plain memory that can be copied, compared and gone back to. Between
 * two operations a call touches nothing that others read, so running that again
 * is harmless.
 *
 * Memory is sequentially consistent but for one thing: a store that is neither
 * release nor seq_cst may become visible at any time before the next one that is.
 */

#include "transport/loop/inbox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum thread_id { LOOP = 0, PRODUCER_A = 1, PRODUCER_B = 2, N_THREADS = 3 };

#define N_POSTS 2
#define N_TASKS 4
#define MAX_OPS 12

/* What a thread is at. */
enum stage {
    /* of a producer: submit_outside() in loop_tasks.c */
    PUSH,
    ASK,    /* whether it must signal */
    SIGNAL, /* the write to the eventfd */

    /* of the loop: run_turn(), bow__loop_poll(), sleep_for() */
    TURN, /* awake */
    LOOK, /* is there work? */
    SLEEP,
    WAIT, /* in the poller, for ever */
    BACK, /* awake */
    POLL, /* without waiting */
    DRAIN,
    TAKE,
    CLOSE, /* bow__loop_close_tasks() */

    DONE,
};

struct thread {
    uint32_t stage;
    uint32_t n_ops; /* taken in the present call */
    uint64_t results[MAX_OPS];
    uint32_t n_posts;
    uint32_t n_refused;
};

struct world {
    struct bow__inbox inbox;
    struct bow_task tasks[N_TASKS]; /* two of A's, two of B's */
    struct thread threads[N_THREADS];
    uint64_t buffered; /* a store to sleep_until that others don't see yet */
    uint32_t has_buffered;
    uint32_t is_signalled; /* the eventfd is readable */
    uint32_t n_sleeps;
    uint32_t n_taken;
    uint32_t n_taken_of[2]; /* of A, of B */
};

/* A guard that is taken out, to see that the model finds what it guards against. */
enum mutant {
    NO_MUTANT,
    NO_SECOND_LOOK, /* the loop does not look again after it has announced its sleep */
    RELAXED_SLEEP,  /* it announces it with a relaxed store */
    NO_EXCHANGE,    /* a producer that finds the loop asleep signals, whoever else does */
    ASKS_TOO_EARLY, /* a producer asks before it pushes */
};

static struct world now;
static enum mutant mutant;
static bool may_close;
static const char *failure;

/* One step */

static enum thread_id current;
static uint32_t position; /* in the results of the present call */
static bool has_stepped;
static jmp_buf before_next_op;

static bool is_release(memory_order order)
{
    return order == memory_order_seq_cst || order == memory_order_release ||
           order == memory_order_acq_rel;
}

static void make_visible(void)
{
    if (now.has_buffered) {
        atomic_store_explicit(&now.inbox.sleep_until, now.buffered, memory_order_relaxed);
        now.has_buffered = 0;
        now.buffered = 0;
    }
}

/* True when the operation is to be performed now; else `*ret_result` is what it gave. */
static bool is_next(uint64_t *ret_result)
{
    const struct thread *thread = &now.threads[current];

    if (position < thread->n_ops) {
        *ret_result = thread->results[position++];
        return false;
    }
    if (has_stepped) {
        longjmp(before_next_op, 1);
    }
    has_stepped = true;
    return true;
}

static uint64_t note(uint64_t result)
{
    struct thread *thread = &now.threads[current];

    assert_true(thread->n_ops < MAX_OPS);
    thread->results[thread->n_ops++] = result;
    position++;
    return result;
}

static struct bow_task *load_task(const _Atomic(struct bow_task *) *object, memory_order order)
{
    uint64_t result = 0;
    (void)order;

    if (mutant == NO_SECOND_LOOK && now.threads[current].stage == SLEEP) {
        return NULL;
    }
    if (is_next(&result)) {
        result = note((uintptr_t)atomic_load_explicit(object, memory_order_relaxed));
    }
    return (struct bow_task *)(uintptr_t)result;
}

static uint64_t load_number(const _Atomic(uint64_t) *object, memory_order order)
{
    uint64_t result = 0;
    (void)order;

    if (is_next(&result)) {
        assert_true(current != LOOP); /* else it would see its own buffered store */
        result = note(atomic_load_explicit(object, memory_order_relaxed));
    }
    return result;
}

static void store_number(_Atomic(uint64_t) *object, uint64_t value, memory_order order)
{
    uint64_t result = 0;

    if (!is_next(&result)) {
        return;
    }
    assert_ptr_equal(object, &now.inbox.sleep_until);
    assert_int_equal(current, LOOP);
    if (value != BOW__INBOX_AWAKE) {
        now.n_sleeps++;
        order = mutant == RELAXED_SLEEP ? memory_order_relaxed : order;
    }
    now.buffered = value;
    now.has_buffered = 1;
    if (is_release(order)) {
        make_visible();
    }
    note(0);
}

static uint64_t exchange_number(_Atomic(uint64_t) *object, uint64_t value, memory_order order)
{
    uint64_t result = 0;
    (void)order;

    if (is_next(&result)) {
        assert_true(current != LOOP);
        result = note(atomic_load_explicit(object, memory_order_relaxed));
        if (mutant != NO_EXCHANGE) {
            atomic_store_explicit(object, value, memory_order_relaxed);
        }
    }
    return result;
}

static struct bow_task *exchange_task(_Atomic(struct bow_task *) *object, struct bow_task *value,
                                      memory_order order)
{
    uint64_t result = 0;

    if (is_next(&result)) {
        if (current == LOOP && is_release(order)) {
            make_visible();
        }
        result = note((uintptr_t)atomic_load_explicit(object, memory_order_relaxed));
        atomic_store_explicit(object, value, memory_order_relaxed);
    }
    return (struct bow_task *)(uintptr_t)result;
}

static bool compare_exchange(_Atomic(struct bow_task *) *object, struct bow_task **expected,
                             struct bow_task *value, memory_order success, memory_order other)
{
    uint64_t result = 0;
    (void)success;
    (void)other;

    if (is_next(&result)) {
        result = note((uintptr_t)atomic_load_explicit(object, memory_order_relaxed));
        if (result == (uintptr_t)*expected) {
            atomic_store_explicit(object, value, memory_order_relaxed);
        }
    }
    bool is_equal = result == (uintptr_t)*expected;
    *expected = (struct bow_task *)(uintptr_t)result;
    return is_equal;
}

static uint64_t add(_Atomic(uint64_t) *object, uint64_t value, memory_order order)
{
    uint64_t result = 0;
    (void)order;

    if (is_next(&result)) {
        result = note(atomic_load_explicit(object, memory_order_relaxed));
        atomic_store_explicit(object, result + value, memory_order_relaxed);
    }
    return result;
}

/* From here on the names of <stdatomic.h> are those of the model. */
#undef atomic_init
#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_exchange_explicit
#undef atomic_compare_exchange_weak_explicit
#undef atomic_fetch_add_explicit
#define atomic_init(object, value) (*(object) = (value))
#define atomic_load_explicit(object, order)                                                        \
    _Generic((object),                                                                             \
        _Atomic(struct bow_task *) *: load_task,                                                   \
        const _Atomic(struct bow_task *) *: load_task,                                             \
        default: load_number)(object, order)
#define atomic_store_explicit store_number
#define atomic_exchange_explicit(object, value, order)                                             \
    _Generic((object), _Atomic(struct bow_task *) *: exchange_task, default: exchange_number)(     \
        object, value, order)
#define atomic_compare_exchange_weak_explicit compare_exchange
#define atomic_fetch_add_explicit add

#include "transport/loop/inbox.c"

/* The calls of a thread, one after the other */

static void fail_with(const char *what)
{
    if (failure == NULL) {
        failure = what;
    }
}

static void take(struct bow__task_chain chain)
{
    for (const struct bow_task *task = chain.first; task != NULL; task = task->next) {
        uint32_t index = (uint32_t)(task - now.tasks);
        uint32_t producer = index / N_POSTS;
        if (now.n_taken_of[producer] != index % N_POSTS) {
            fail_with("a task is taken twice, or before an earlier one of its producer");
            return;
        }
        now.n_taken_of[producer]++;
        now.n_taken++;
    }
}

static void go_on(enum stage stage)
{
    struct thread *thread = &now.threads[current];

    thread->stage = stage;
    thread->n_ops = 0;
    memset(thread->results, 0, sizeof(thread->results));
}

static void end_post(void)
{
    struct thread *thread = &now.threads[current];

    thread->n_posts++;
    go_on(thread->n_posts == N_POSTS ? DONE : mutant == ASKS_TOO_EARLY ? ASK : PUSH);
}

static void run_producer(struct thread *thread)
{
    struct bow_task *task = &now.tasks[(current - PRODUCER_A) * N_POSTS + thread->n_posts];
    bool is_taken = false;

    switch (thread->stage) {
    case PUSH:
        is_taken = bow__inbox_push(&now.inbox, task);
        thread->n_refused += !is_taken;
        if (!is_taken || mutant == ASKS_TOO_EARLY) {
            end_post();
        } else {
            go_on(ASK);
        }
        break;
    case ASK:
        if (bow__inbox_must_signal(&now.inbox, 0)) {
            go_on(SIGNAL);
        } else if (mutant == ASKS_TOO_EARLY) {
            go_on(PUSH);
        } else {
            end_post();
        }
        break;
    default: /* SIGNAL */
        now.is_signalled = 1;
        if (mutant == ASKS_TOO_EARLY) {
            go_on(PUSH);
        } else {
            end_post();
        }
        break;
    }
}

static void run_loop(const struct thread *thread)
{
    switch (thread->stage) {
    case TURN:
        bow__inbox_awake(&now.inbox);
        go_on(LOOK);
        break;
    case LOOK:
        go_on(bow__inbox_is_empty(&now.inbox) ? SLEEP : POLL);
        break;
    case SLEEP:
        go_on(bow__inbox_sleep(&now.inbox, BOW_NEVER) ? WAIT : POLL);
        break;
    case WAIT: /* only when it is signalled */
        go_on(BACK);
        break;
    case BACK:
        bow__inbox_awake(&now.inbox);
        go_on(DRAIN);
        break;
    case POLL:
        go_on(now.is_signalled ? DRAIN : TAKE);
        break;
    case DRAIN:
        now.is_signalled = 0;
        go_on(TAKE);
        break;
    case TAKE:
        take(bow__inbox_take(&now.inbox));
        go_on(TURN);
        break;
    default: /* CLOSE */
        take(bow__inbox_close(&now.inbox));
        go_on(DONE);
        break;
    }
}

static void step(enum thread_id id)
{
    struct thread *thread = &now.threads[id];

    current = id;
    position = 0;
    has_stepped = false;
    if (setjmp(before_next_op) != 0) {
        return;
    }
    if (id == LOOP) {
        run_loop(thread);
    } else {
        run_producer(thread);
    }
}

/* All states */

static struct {
    uint64_t (*slots)[2]; /* two hashes of each; a slot of zeros is free */
    size_t n_slots;
    size_t n_states;
    size_t n_ends;
} seen;

static uint64_t hash(uint64_t seed)
{
    uint64_t words[sizeof(struct world) / sizeof(uint64_t)];

    memcpy(words, &now, sizeof(words));
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        seed = (seed ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
        seed ^= seed >> 29;
    }
    return seed | 1;
}

static size_t slot_of(const uint64_t hashes[2])
{
    size_t at = (size_t)hashes[0] % seen.n_slots;

    while (seen.slots[at][0] != 0 &&
           (seen.slots[at][0] != hashes[0] || seen.slots[at][1] != hashes[1])) {
        at = (at + 1) % seen.n_slots;
    }
    return at;
}

static void grow_seen(void)
{
    uint64_t(*old)[2] = seen.slots;
    size_t n_old = seen.n_slots;

    seen.n_slots = n_old > 0 ? 2 * n_old : 1 << 12;
    seen.slots = calloc(seen.n_slots, sizeof(*seen.slots));
    assert_non_null(seen.slots);
    for (size_t i = 0; i < n_old; i++) {
        if (old[i][0] != 0) {
            memcpy(seen.slots[slot_of(old[i])], old[i], sizeof(old[i]));
        }
    }
    free(old);
}

static bool is_new(void)
{
    const uint64_t hashes[2] = {hash(1), hash(2)};

    if (2 * seen.n_states >= seen.n_slots) {
        grow_seen();
    }
    size_t at = slot_of(hashes);
    if (seen.slots[at][0] != 0) {
        return false;
    }
    memcpy(seen.slots[at], hashes, sizeof(hashes));
    seen.n_states++;
    return true;
}

static bool is_enabled(enum thread_id id)
{
    const struct thread *thread = &now.threads[id];
    return thread->stage != DONE && (thread->stage != WAIT || now.is_signalled);
}

static void check_end(void)
{
    uint32_t n_refused = now.threads[PRODUCER_A].n_refused + now.threads[PRODUCER_B].n_refused;

    seen.n_ends++;
    if (now.n_taken + n_refused != N_TASKS) {
        fail_with("a task lies there and nobody wakes the loop");
    }
}

static void explore(void)
{
    struct world here;
    bool is_end = true;

    if (now.inbox.n_signals > now.n_sleeps) {
        fail_with("one sleep is signalled twice");
    }
    if (failure != NULL || !is_new()) {
        return;
    }
    memcpy(&here, &now, sizeof(now));
    for (int id = 0; id < N_THREADS; id++) {
        if (is_enabled((enum thread_id)id)) {
            is_end = false;
            step((enum thread_id)id);
            explore();
            memcpy(&now, &here, sizeof(now));
        }
    }
    if (now.has_buffered) {
        is_end = false;
        make_visible();
        explore();
        memcpy(&now, &here, sizeof(now));
    }
    /* The loop may end between any two turns. */
    if (may_close && now.threads[LOOP].stage == TURN && now.threads[LOOP].n_ops == 0) {
        now.threads[LOOP].stage = CLOSE;
        explore();
        memcpy(&now, &here, sizeof(now));
    }
    if (is_end) {
        check_end();
    }
}

static const char *failure_of(enum mutant which, bool closes)
{
    memset(&now, 0, sizeof(now));
    memset(&seen, 0, sizeof(seen));
    mutant = which;
    may_close = closes;
    failure = NULL;
    bow__inbox_init(&now.inbox);
    now.threads[LOOP].stage = TURN;
    now.threads[PRODUCER_A].stage = which == ASKS_TOO_EARLY ? ASK : PUSH;
    now.threads[PRODUCER_B].stage = now.threads[PRODUCER_A].stage;
    explore();
    free(seen.slots);
    print_message("%zu states, %zu ends: %s\n", seen.n_states, seen.n_ends,
                  failure != NULL ? failure : "nothing found");
    return failure;
}

static void test_inbox_l13_no_interleaving_loses_a_wake_up_or_wakes_twice(void **state)
{
    (void)state;
    assert_null(failure_of(NO_MUTANT, false));
    assert_true(seen.n_states > 5000);
    assert_true(seen.n_ends > 10);
}

static void test_inbox_l30_a_push_is_taken_in_order_or_refused_though_the_loop_ends(void **state)
{
    (void)state;
    assert_null(failure_of(NO_MUTANT, true));
    assert_true(seen.n_states > 5000);
    assert_true(seen.n_ends > 10);
}

static void test_inbox_l13_the_model_finds_a_missing_second_look(void **state)
{
    (void)state;
    assert_string_equal(failure_of(NO_SECOND_LOOK, false),
                        "a task lies there and nobody wakes the loop");
}

static void test_inbox_l13_the_model_finds_a_sleep_announced_too_weakly(void **state)
{
    (void)state;
    assert_string_equal(failure_of(RELAXED_SLEEP, false),
                        "a task lies there and nobody wakes the loop");
}

static void test_inbox_l13_the_model_finds_a_missing_exchange(void **state)
{
    (void)state;
    assert_string_equal(failure_of(NO_EXCHANGE, false), "one sleep is signalled twice");
}

static void test_inbox_l13_the_model_finds_a_producer_that_asks_too_early(void **state)
{
    (void)state;
    assert_string_equal(failure_of(ASKS_TOO_EARLY, false),
                        "a task lies there and nobody wakes the loop");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inbox_l13_no_interleaving_loses_a_wake_up_or_wakes_twice),
        cmocka_unit_test(test_inbox_l30_a_push_is_taken_in_order_or_refused_though_the_loop_ends),
        cmocka_unit_test(test_inbox_l13_the_model_finds_a_missing_second_look),
        cmocka_unit_test(test_inbox_l13_the_model_finds_a_sleep_announced_too_weakly),
        cmocka_unit_test(test_inbox_l13_the_model_finds_a_missing_exchange),
        cmocka_unit_test(test_inbox_l13_the_model_finds_a_producer_that_asks_too_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
