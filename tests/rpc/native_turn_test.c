/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Bytes that are dense with what is cheap to send: a feed takes as much of them as a turn of the
 * loop has room for, and the next ones the rest, of which nothing is lost.
 */

#include "native_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define N_CALLS 700u
#define N_FRAMES 5000u
#define HEADER_BYTES 12u

static uint8_t bytes[256 << 10];
static size_t n_bytes;

static void put(const void *data, size_t n)
{
    assert_true(n <= sizeof(bytes) - n_bytes);
    memcpy(bytes + n_bytes, data, n);
    n_bytes += n;
}

static void put_header(uint8_t n, uint8_t type, uint8_t flags, uint32_t stream)
{
    const uint8_t header[HEADER_BYTES] = {
        [3] = n,
        [4] = type,
        [5] = flags,
        [8] = (uint8_t)(stream >> 24),
        [9] = (uint8_t)(stream >> 16),
        [10] = (uint8_t)(stream >> 8),
        [11] = (uint8_t)stream,
    };

    put(header, sizeof(header));
}

/* The preface and SETTINGS of a client. */
static void begin(struct pair *pair)
{
    n_bytes = 0;
    pair_init(pair);
    assert_int_equal(pair_open(pair), 0);
    assert_int_equal(side_feed_hex(&pair->server, "b04f5701 00000000 00 00 000000000000"), 16);
}

/* One feed a turn, until all is taken. Returns the most that a turn brought to `counter`. */
static size_t feed_all(struct side *side, const size_t *counter, size_t *ret_most_bytes)
{
    size_t at = 0;
    size_t most = 0;

    *ret_most_bytes = 0;
    while (at < n_bytes) {
        size_t before = *counter;
        ssize_t used = side->session->ops->feed(side->session, bytes + at, n_bytes - at, 1);
        assert_true(used > 0);
        at += (size_t)used;
        assert_true(at == n_bytes || bow__work_is_enough(&side->session->work));
        (void)bow__work_next_turn(&side->session->work);
        most = *counter - before > most ? *counter - before : most;
        *ret_most_bytes = (size_t)used > *ret_most_bytes ? (size_t)used : *ret_most_bytes;
    }
    return most;
}

static void put_calls(unsigned n)
{
    for (uint32_t i = 0; i < n; i++) {
        put_header(8, 1, 1 | 8, 2 * i + 1);
        put("\6\x12\4/s/mx", 8);
    }
}

static void answer(struct side *side, uint64_t key, struct bow__message *message)
{
    (void)message;
    assert_int_equal(side_say(side, key, BOW__SEND_END, "reply", 5), 0);
}

static void test_native_turn_calls_are_as_many_as_a_turn_has_room_for(void **state)
{
    struct pair pair;
    size_t most_bytes = 0;
    (void)state;
    begin(&pair);
    pair.server.on_message = answer;
    put_calls(N_CALLS);
    size_t most = feed_all(&pair.server, &pair.server.n_messages, &most_bytes);
    assert_int_equal(most, BOW_LIMIT_CALLS_PER_TURN);
    assert_int_equal(pair.server.n_messages, N_CALLS);
    assert_int_equal(pair.server.n_opens, N_CALLS);
    pair_fini(&pair);
}

static void refuse(struct side *side, uint64_t key)
{
    struct bow_status status = {.code = BOW_UNIMPLEMENTED, .message = "no such method"};

    assert_int_equal(side->session->ops->finish(side->session, key, &status), 0);
}

static void test_native_turn_refused_calls_count_twice(void **state)
{
    struct pair pair;
    size_t most_bytes = 0;
    (void)state;
    begin(&pair);
    pair.server.on_open = refuse;
    put_calls(N_CALLS);
    size_t most = feed_all(&pair.server, &pair.server.n_opens, &most_bytes);
    assert_int_equal(most, BOW_LIMIT_CALLS_PER_TURN / 2);
    assert_int_equal(pair.server.n_opens, N_CALLS);
    pair_fini(&pair);
}

static void test_native_turn_calls_above_max_calls_count_twice(void **state)
{
    struct pair pair;
    size_t most_bytes = 0;
    (void)state;
    begin(&pair);
    put_calls(N_CALLS);
    size_t most = feed_all(&pair.server, &pair.server.n_refused, &most_bytes);
    assert_int_equal(most, BOW_LIMIT_CALLS_PER_TURN / 2);
    assert_int_equal(pair.server.n_refused, N_CALLS - 100);
    pair_fini(&pair);
}

static void test_native_turn_frames_have_a_number(void **state)
{
    struct pair pair;
    size_t most_bytes = 0;
    (void)state;
    begin(&pair);
    for (uint32_t i = 0; i < N_FRAMES; i++) { /* credit of a byte */
        put_header(4, 6, 0, 0);
        put("\0\0\0\1", 4);
    }
    (void)feed_all(&pair.server, &pair.server.n_opens, &most_bytes);
    assert_int_equal(most_bytes, (size_t)BOW_LIMIT_FRAMES_PER_TURN * (HEADER_BYTES + 4));
    pair_fini(&pair);
}

static void test_native_turn_frames_to_be_skipped_have_a_number(void **state)
{
    struct pair pair;
    size_t most_bytes = 0;
    (void)state;
    begin(&pair);
    for (uint32_t i = 0; i < N_FRAMES; i++) {
        put_header(0, 200, 0, 0);
    }
    (void)feed_all(&pair.server, &pair.server.n_opens, &most_bytes);
    assert_int_equal(most_bytes, (size_t)BOW_LIMIT_FRAMES_PER_TURN * HEADER_BYTES);
    pair_fini(&pair);
}

#define N_ENTRIES 15u

static void test_native_turn_metadata_has_a_number_of_entries(void **state)
{
    struct pair pair;
    size_t most_bytes = 0;
    (void)state;
    begin(&pair);
    pair.server.on_message = answer;
    for (uint32_t i = 0; i < N_CALLS; i++) {
        put_header(2 + 6 - 1 + 8 * N_ENTRIES + 1, 1, 1 | 8, 2 * i + 1);
        put(&(uint8_t){6 + 8 * N_ENTRIES}, 1);
        put("\x12\4/s/m", 6);
        for (unsigned k = 0; k < N_ENTRIES; k++) {
            put("\x22\6\xa\1k\x12\1v", 8);
        }
        put("x", 1);
    }
    size_t most = feed_all(&pair.server, &pair.server.n_messages, &most_bytes);
    assert_in_range(most, 1, BOW_LIMIT_FIELDS_PER_TURN / N_ENTRIES);
    assert_int_equal(pair.server.n_messages, N_CALLS);
    pair_fini(&pair);
}

/* The client's side of it. */
static void test_native_turn_answers_are_as_many_as_a_turn_has_room_for(void **state)
{
    struct pair pair;
    size_t most_bytes = 0;
    (void)state;
    pair_init(&pair);
    struct bow__session_options options = pair_options(&pair, true);
    options.max_calls = N_CALLS;
    assert_int_equal(side_open(&pair.server, &options), 0);
    options = pair_options(&pair, false);
    assert_int_equal(side_open(&pair.client, &options), 0);
    pair_run(&pair);
    pair.server.on_message = answer;
    for (unsigned i = 0; i < N_CALLS; i++) {
        assert_true(side_call(&pair.client, "/s/m", 7, "x", 1) != 0);
    }
    (void)pair_move(&pair, &pair.client, SIZE_MAX);
    assert_int_equal(pair.server.n_messages, N_CALLS);
    n_bytes = side_take(&pair.server, bytes, sizeof(bytes));
    size_t most = feed_all(&pair.client, &pair.client.n_statuses, &most_bytes);
    assert_int_equal(most, BOW_LIMIT_CALLS_PER_TURN);
    assert_int_equal(pair.client.n_statuses, N_CALLS);
    assert_int_equal(pair.client.code, BOW_OK);
    pair_fini(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_native_turn_calls_are_as_many_as_a_turn_has_room_for),
        cmocka_unit_test(test_native_turn_refused_calls_count_twice),
        cmocka_unit_test(test_native_turn_calls_above_max_calls_count_twice),
        cmocka_unit_test(test_native_turn_frames_have_a_number),
        cmocka_unit_test(test_native_turn_frames_to_be_skipped_have_a_number),
        cmocka_unit_test(test_native_turn_metadata_has_a_number_of_entries),
        cmocka_unit_test(test_native_turn_answers_are_as_many_as_a_turn_has_room_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
