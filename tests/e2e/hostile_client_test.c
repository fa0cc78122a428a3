/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Clients that do not play along, over both protocols: that never read, never speak,
 * speak a byte at a time, come by the thousand, or go in the middle. What they cost is
 * bounded, and a good neighbour does not notice.
 */

#include "hostile.h"
#include <bowline/limits.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB ((size_t)1 << 20)

static struct hostile_bytes unit;

static size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* A Blob with `reply_bytes`, as a native or gRPC message. */
static void put_blob(struct hostile_bytes *to, uint32_t reply_bytes)
{
    hostile_put_u8(to, 0x18);
    for (uint32_t rest = reply_bytes;; rest >>= 7) {
        hostile_put_u8(to, (uint8_t)((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0)));
        if (rest <= 0x7f) {
            return;
        }
    }
}

static void put_call(struct hostile_bytes *to, bool http2, uint32_t i, const char *path,
                     uint32_t reply_bytes)
{
    struct hostile_bytes message;

    message.n = 0;
    put_blob(&message, reply_bytes);
    if (!http2) {
        hostile_native_request(to, 2 * i + 1, path, message.data, message.n);
        return;
    }
    hostile_http2_request(to, 2 * i + 1, path);
    hostile_http2_header(to, (uint32_t)(5 + message.n), 0, 1, 2 * i + 1);
    hostile_put_u8(to, 0);
    hostile_put_u32(to, (uint32_t)message.n);
    hostile_put(to, message.data, message.n);
}

static void put_opening(struct hostile_bytes *to, bool http2)
{
    http2 ? hostile_http2_opening(to) : hostile_native_opening(to);
}

/* Returns the most that the victim held. */
static size_t ask_and_never_read(struct lab *lab, bool http2, const char *path, uint32_t n_calls,
                                 uint32_t reply_bytes)
{
    struct hostile peer;
    size_t most = 0;

    hostile_connect(&peer, lab->port);
    peer.never_reads = true;
    unit.n = 0;
    put_opening(&unit, http2);
    for (uint32_t i = 0; i < n_calls && !peer.closed; i++) {
        put_call(&unit, http2, i, path, reply_bytes);
        if (i % 16 == 15 || i + 1 == n_calls) {
            if (!hostile_send(&peer, &unit, 200)) {
                break;
            }
            unit.n = 0;
        }
        most = max_size(most, bow_context_bytes(lab->context));
    }
    for (uint64_t end = lab_now_ns() + 100 * LAB_MS; lab_now_ns() < end; sched_yield()) {
        most = max_size(most, bow_context_bytes(lab->context));
    }
    hostile_close(&peer);
    return most;
}

/* Of a client that has not shown that it knows of max_calls, more wait before their handlers. */
static size_t early_bytes(bool http2, uint32_t max_calls, uint32_t request_bytes)
{
    uint32_t n_taken = http2 ? BOW_LIMIT_EARLY_CALLS : 100;
    size_t n_early = max_calls < n_taken ? n_taken - max_calls : 0;
    size_t n_bytes = n_early * (request_bytes + 4096);

    return n_bytes < BOW_LIMIT_WAITING_REQUEST_BYTES ? n_bytes : BOW_LIMIT_WAITING_REQUEST_BYTES;
}

static void unread(bool http2, const char *path, uint32_t max_calls, uint32_t reply_bytes)
{
    struct lab lab;
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    /* A call whose reply waits holds the reply; what else there is has limits of its own. */
    size_t bound = 8 * MIB + max_calls * (size_t)(reply_bytes + 1024) +
                   early_bytes(http2, max_calls, reply_bytes);

    options.workers = 1;
    options.grace_ns = LAB_MS;
    options.max_calls = max_calls;
    lab_start_with(&lab, "", &options, 0);
    struct bow_client *neighbour = hostile_neighbour(&lab, http2 ? "grpc:" : "");
    size_t most = ask_and_never_read(&lab, http2, path, 10000, reply_bytes);
    print_message("%s %s, %u bytes: at most %zu KiB\n", http2 ? "HTTP/2" : "native", path,
                  reply_bytes, most >> 10);
    hostile_neighbour_works(neighbour, path);
    if (most > bound) {
        fail_msg("a peer that reads nothing costs %zu bytes, more than %zu", most, bound);
    }
    bow_client_free(neighbour);
    lab_stop(&lab);
}

static void test_hostile_client_f15_that_never_reads_costs_little(void **state)
{
    (void)state;
    for (int http2 = 0; http2 < 2; http2++) {
        unread(http2 != 0, "/lab.Lab/Echo", 1024, 1);
        unread(http2 != 0, "/lab.Lab/Echo", 1024, 1024);
        unread(http2 != 0, "/lab.Lab/Echo", 100, 65536);
        unread(http2 != 0, "/lab.Lab/Echo", 20, 1 << 20);
        unread(http2 != 0, "/lab.Lab/None-such-method-with-a-name-that-is-long", 1024, 0);
        unread(http2 != 0, "/lab.Lab/Hang", 1024, 0);
    }
}

/* Openers */

#define N_SILENT 500

static void test_hostile_client_f12_silent_ones_are_closed_in_time(void **state)
{
    static const char *const openings[] = {"", "P", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\xb0OW",
                                           "\xb0OW\x01"};
    static struct hostile peers[N_SILENT];
    struct lab lab;
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;

    (void)state;
    options.workers = 1;
    options.grace_ns = LAB_MS;
    options.first_frame_timeout_ns = 300 * LAB_MS;
    lab_start_with(&lab, "", &options, 0);
    struct bow_client *neighbour = hostile_neighbour(&lab, "");
    hostile_neighbour_works(neighbour, "at first");
    for (int i = 0; i < N_SILENT; i++) {
        hostile_connect(&peers[i], lab.port);
        unit.n = 0;
        hostile_put_text(&unit, openings[i % 5]);
        assert_true(hostile_send(&peers[i], &unit, 1000));
    }
    uint64_t start = lab_now_ns();
    hostile_neighbour_works(neighbour, "silence");
    for (int i = 0; i < N_SILENT; i++) {
        if (!hostile_read(&peers[i], 5000)) {
            fail_msg("opener %d was not closed", i);
        }
        hostile_close(&peers[i]);
    }
    assert_true(lab_now_ns() - start < 5000 * LAB_MS);
    hostile_wait_counter(&lab, HOSTILE_COUNTER(first_frame_timeouts), N_SILENT - 1, "silence");
    hostile_neighbour_works(neighbour, "after silence");
    bow_client_free(neighbour);
    lab_stop(&lab);
}

/* An Echo of this length is found in the answer by the byte that fills it. */
#define DRIPPED_BYTES 40u

static const char dripped_reply[DRIPPED_BYTES];

static void test_hostile_client_that_drips_is_answered(void **state)
{
    struct lab lab;

    (void)state;
    lab_start(&lab, "");
    for (int http2 = 0; http2 < 2; http2++) {
        struct hostile peer;
        hostile_connect(&peer, lab.port);
        static struct hostile_bytes whole;
        whole.n = 0;
        put_opening(&whole, http2 != 0);
        put_call(&whole, http2 != 0, 0, "/lab.Lab/Echo", DRIPPED_BYTES);
        for (size_t i = 0; i < whole.n; i++) {
            unit.n = 0;
            hostile_put_u8(&unit, whole.data[i]);
            assert_true(hostile_send(&peer, &unit, 5000));
        }
        hostile_wait_heard(&peer, "drip", dripped_reply, DRIPPED_BYTES);
        hostile_close(&peer);
    }
    lab_stop(&lab);
}

/* What was answered before the end was read is still sent; what was not is given up. */
static void test_hostile_client_that_half_closes_gets_its_answer(void **state)
{
    struct lab lab;

    (void)state;
    lab_start(&lab, "");
    for (int i = 0; i < 200; i++) {
        bool http2 = i % 2 != 0;
        struct hostile peer;
        hostile_connect(&peer, lab.port);
        unit.n = 0;
        put_opening(&unit, http2);
        put_call(&unit, http2, 0, "/lab.Lab/Echo", DRIPPED_BYTES);
        assert_true(hostile_send(&peer, &unit, 5000));
        shutdown(peer.fd, SHUT_WR);
        hostile_wait_heard(&peer, "half-close", dripped_reply, DRIPPED_BYTES);
        assert_true(hostile_read(&peer, 5000));
        hostile_close(&peer);
    }
    lab_stop(&lab);
}

static void test_hostile_client_that_half_closes_cancels_what_hangs(void **state)
{
    struct lab lab;

    (void)state;
    lab_start(&lab, "");
    for (unsigned i = 0; i < 2; i++) {
        struct hostile peer;
        hostile_connect(&peer, lab.port);
        unit.n = 0;
        put_opening(&unit, i != 0);
        put_call(&unit, i != 0, 0, "/lab.Lab/Hang", 0);
        assert_true(hostile_send(&peer, &unit, 5000));
        assert_true(lab_wait_count(&lab.n_hung, i + 1, 5000 * LAB_MS));
        shutdown(peer.fd, SHUT_WR);
        assert_true(hostile_read(&peer, 5000));
        assert_true(lab_wait_count(&lab.n_cancelled, i + 1, 5000 * LAB_MS));
        hostile_close(&peer);
    }
    lab_stop(&lab);
}

/* Crowds */

#define N_CROWD 1000
#define N_CROWD_THREADS 4

static void reset(struct hostile *peer)
{
    struct linger hard = {.l_onoff = 1};

    setsockopt(peer->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    hostile_close(peer);
}

static void come_and_go(uint16_t port, int i)
{
    static _Thread_local struct hostile_bytes bytes;
    struct hostile peer;

    hostile_connect(&peer, port);
    bytes.n = 0;
    if (i % 5 > 0) {
        put_opening(&bytes, i % 2 != 0);
    }
    if (i % 5 > 1) {
        put_call(&bytes, i % 2 != 0, 0, i % 5 == 4 ? "/lab.Lab/Hang" : "/lab.Lab/Echo", 100000);
    }
    (void)hostile_send(&peer, &bytes, 5000);
    if (i % 3 == 0) {
        reset(&peer);
        return;
    }
    hostile_close(&peer);
}

static void *come_and_go_often(void *user)
{
    const struct lab *lab = user;

    for (int i = 0; i < N_CROWD / N_CROWD_THREADS; i++) {
        come_and_go(lab->port, i);
    }
    return NULL;
}

static void test_hostile_client_crowd_comes_and_goes(void **state)
{
    struct lab lab;
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    pthread_t threads[N_CROWD_THREADS];

    (void)state;
    options.workers = 2;
    options.grace_ns = LAB_MS;
    lab_start_with(&lab, "", &options, 0);
    struct bow_client *neighbour = hostile_neighbour(&lab, "");
    for (int i = 0; i < N_CROWD_THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go_often, &lab), 0);
    }
    for (int i = 0; i < 20; i++) {
        hostile_neighbour_works(neighbour, "crowd");
    }
    for (int i = 0; i < N_CROWD_THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    hostile_wait_counter(&lab, HOSTILE_COUNTER(connections_closed), N_CROWD - 1, "crowd");
    hostile_neighbour_works(neighbour, "after the crowd");
    bow_client_free(neighbour);
    lab_stop(&lab);
}

/* Large messages cut short */

static void put_part_of_large(struct hostile_bytes *to, bool http2)
{
    static const uint8_t zeros[16000];

    if (http2) {
        hostile_http2_request(to, 1, "/lab.Lab/Echo");
        hostile_http2_header(to, sizeof(zeros), 0, 0, 1);
        hostile_put(to, "\x00\x00\x30\x00\x00", 5);
        hostile_put(to, zeros, sizeof(zeros) - 5);
        return;
    }
    hostile_native_header(to, 16, 1, 0, 1);
    hostile_put(to, "\x0f\x12\x0d/lab.Lab/Echo", 16);
    hostile_native_header(to, sizeof(zeros), 3, 2 | 8, 1);
    hostile_put_u32(to, 3 << 20);
    hostile_put(to, zeros, sizeof(zeros) - 4);
}

static void test_hostile_client_that_resets_amid_a_large_message_leaves_nothing(void **state)
{
    struct lab lab;

    (void)state;
    lab_start(&lab, "");
    struct bow_client *neighbour = hostile_neighbour(&lab, "");
    for (int i = 0; i < 40; i++) {
        bool http2 = i % 2 != 0;
        struct hostile peer;
        hostile_connect(&peer, lab.port);
        unit.n = 0;
        put_opening(&unit, http2);
        if (i % 4 < 2) {
            put_part_of_large(&unit, http2);
        } else {
            put_call(&unit, http2, 0, "/lab.Lab/Echo", 3 << 20);
        }
        assert_true(hostile_send(&peer, &unit, 5000));
        if (i % 4 >= 2) {
            hostile_wait_heard(&peer, "large", dripped_reply, DRIPPED_BYTES);
        }
        reset(&peer);
        hostile_neighbour_works(neighbour, "reset");
    }
    bow_client_free(neighbour);
    lab_stop(&lab);
}

static void test_hostile_client_beyond_max_calls_is_refused_the_rest(void **state)
{
    struct lab lab;
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;

    (void)state;
    options.workers = 1;
    options.grace_ns = LAB_MS;
    options.max_calls = 4;
    lab_start_with(&lab, "", &options, 0);
    struct bow_client *neighbour = hostile_neighbour(&lab, "");
    for (unsigned http2 = 0; http2 < 2; http2++) {
        struct hostile peer;
        hostile_connect(&peer, lab.port);
        unit.n = 0;
        put_opening(&unit, http2 != 0);
        if (http2 != 0) {
            hostile_http2_header(&unit, 0, 4, 1, 0); /* it has seen the limit: SETTINGS, ACK */
        }
        /* The native protocol promises a hundred until SETTINGS are there, and has no ACK. */
        for (uint32_t i = 0; i < (http2 != 0 ? 10 : 101); i++) {
            put_call(&unit, http2 != 0, i, "/lab.Lab/Hang", 0);
        }
        assert_true(hostile_send(&peer, &unit, 5000));
        if (http2 == 0) {
            hostile_wait_heard(&peer, "max_calls", "max_calls (100)", 15);
        } else {
            /* RST_STREAM with REFUSED_STREAM on the fifth */
            hostile_wait_heard(&peer, "max_calls", "\x03\x00\x00\x00\x00\x09\x00\x00\x00\x07", 10);
        }
        assert_true(lab_wait_count(&lab.n_hung, 4 * (http2 + 1), 5000 * LAB_MS));
        hostile_neighbour_works(neighbour, "max_calls");
        assert_int_equal(atomic_load(&lab.n_hung), 4 * (http2 + 1));
        hostile_close(&peer);
    }
    bow_client_free(neighbour);
    lab_stop(&lab);
}

/* Times that no clock reaches are no deadline; none at all is the end. */

static void put_native_time(struct hostile_bytes *to, const char *varint, size_t n)
{
    hostile_native_header(to, (uint32_t)(17 + n + 2), 1, 1 | 8, 1);
    hostile_put_u8(to, (uint8_t)(16 + n));
    hostile_put(to, "\x12\x0d/lab.Lab/Echo\x18", 16);
    hostile_put(to, varint, n);
    hostile_put(to, "\x18\x28", 2);
}

static void put_http2_time(struct hostile_bytes *to, const char *timeout)
{
    static struct hostile_bytes block;

    block.n = 0;
    hostile_put_text(&block, "\x83\x86");
    hostile_put(&block, "\x00\x05:path\x0d/lab.Lab/Echo", 21);
    hostile_put(&block, "\x00\x0a:authority\x03lab", 16);
    hostile_put(&block, "\x00\x02te\x08trailers", 13);
    hostile_put(&block,
                "\x00\x0c"
                "content-type\x10"
                "application/grpc",
                31);
    hostile_put(&block, "\x00\x0cgrpc-timeout", 14);
    hostile_put_u8(&block, (uint8_t)strlen(timeout));
    hostile_put_text(&block, timeout);
    hostile_http2_header(to, (uint32_t)block.n, 1, 4, 1);
    hostile_put(to, block.data, block.n);
    hostile_http2_header(to, 7, 0, 1, 1);
    hostile_put(to, "\x00\x00\x00\x00\x02\x18\x28", 7);
}

static void ask_with_time(const struct lab *lab, const char *name, const void *expected, size_t n)
{
    struct hostile peer;

    hostile_connect(&peer, lab->port);
    assert_true(hostile_send(&peer, &unit, 5000));
    hostile_wait_heard(&peer, name, expected, n);
    hostile_close(&peer);
}

static void test_hostile_client_f06_time_left_of_any_size_is_understood(void **state)
{
    static const struct {
        const char *varint;
        size_t n;
    } endless[] = {
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10}, /* 2^64 - 1 µs */
        {"\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 9},      /* 2^63 - 1 µs */
        {"\xcf\xf7\xdb\xf4\xbe\xd2\xb2\x20", 8},          /* just below 2^64 ns */
    };
    static const char *const timeouts[] = {"99999999H", "99999999M", "99999999S", "1H"};
    struct lab lab;

    (void)state;
    lab_start(&lab, "");
    for (size_t i = 0; i < sizeof(endless) / sizeof(endless[0]); i++) {
        unit.n = 0;
        put_opening(&unit, false);
        put_native_time(&unit, endless[i].varint, endless[i].n);
        ask_with_time(&lab, "endless", dripped_reply, DRIPPED_BYTES);
    }
    for (size_t i = 0; i < sizeof(timeouts) / sizeof(timeouts[0]); i++) {
        unit.n = 0;
        put_opening(&unit, true);
        put_http2_time(&unit, timeouts[i]);
        ask_with_time(&lab, timeouts[i], dripped_reply, DRIPPED_BYTES);
    }
    unit.n = 0;
    put_opening(&unit, false);
    put_native_time(&unit, "", 1);
    ask_with_time(&lab, "expired", "deadline", 8);
    unit.n = 0;
    put_opening(&unit, true);
    put_http2_time(&unit, "0n");
    /* grpc-status is Huffman-coded, so its counter tells. */
    struct hostile peer;
    hostile_connect(&peer, lab.port);
    assert_true(hostile_send(&peer, &unit, 5000));
    hostile_wait_counter(&lab, HOSTILE_COUNTER(calls_expired_unrun), 1, "0n");
    hostile_close(&peer);
    lab_stop(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hostile_client_f15_that_never_reads_costs_little),
        cmocka_unit_test(test_hostile_client_f12_silent_ones_are_closed_in_time),
        cmocka_unit_test(test_hostile_client_that_drips_is_answered),
        cmocka_unit_test(test_hostile_client_that_half_closes_gets_its_answer),
        cmocka_unit_test(test_hostile_client_that_half_closes_cancels_what_hangs),
        cmocka_unit_test(test_hostile_client_crowd_comes_and_goes),
        cmocka_unit_test(test_hostile_client_that_resets_amid_a_large_message_leaves_nothing),
        cmocka_unit_test(test_hostile_client_f06_time_left_of_any_size_is_understood),
        cmocka_unit_test(test_hostile_client_beyond_max_calls_is_refused_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
