/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A server whose peer sends little that costs much: it goes on with others in between, loses
 * nothing, and ends what asks for work in vain.
 */

#include "call_fixture.h"
#include "rpc/core/compression/encodings.h"
#include "tests/rpc/session_peer.h"

#include <bowline/limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define SAY "/calls.Echo/Say"
#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define MAX_BYTES (3 * MIB)

struct packed {
    struct bow__coders coders;
    struct bow__block *block;
    size_t len;
};

static struct session_peer peer;

static void connect_peer(struct calls *t)
{
    session_peer_begin(&peer, t->context, calls_raw_connect(t), false, calls_is_grpc());
    session_peer_wait(&peer, &peer.n_readies, 1);
    peer.encoding = BOW__ENCODING_GZIP;
    while (peer.encoding > 0 && (bow__encodings_built() >> peer.encoding & 1u) == 0) {
        peer.encoding--;
    }
}

/* Fields that no request of Say has; with `is_cut` the last one is not whole. */
static bool pack(struct calls *t, struct packed *packed, size_t n, bool is_cut)
{
    uint8_t *bytes = calloc(1, n);

    assert_non_null(bytes);
    for (size_t i = 0; i < n; i += 2) {
        bytes[i] = 15 << 3;
    }
    bow__coders_init(&packed->coders, t->context);
    int rc =
        bow__deflate(&packed->coders, peer.encoding, 0,
                     (struct bow_slice){bytes, is_cut ? n - 1 : n}, &packed->block, &packed->len);
    free(bytes);
    if (rc < 0) {
        print_message("left out: this build has no encoding to pack with\n");
    }
    return rc == 0;
}

static void unpack(struct packed *packed)
{
    bow__block_unref(packed->block);
    bow__coders_trim(&packed->coders);
}

static void send_packed(const struct packed *packed)
{
    session_peer_begin_stream(&peer, SAY, BOW_NEVER, NULL);
    session_peer_send(&peer, BOW__SEND_END | BOW__SEND_COMPRESSED, packed->block->data,
                      packed->len);
}

static void wait_until_lost(void)
{
    while (!peer.lost) {
        (void)session_peer_serve(&peer, 10);
    }
}

/* All in one read; the last of them is behind the others' turns, and nothing follows it. */
static void test_work_f34_all_that_expands_is_answered(void **state)
{
    enum { N = 40 };
    struct calls *t = *state;
    struct packed packed = {0};

    connect_peer(t);
    if (pack(t, &packed, 256 * KIB, false)) {
        for (int i = 0; i < N; i++) {
            send_packed(&packed);
        }
        session_peer_flush(&peer);
        session_peer_wait(&peer, &peer.n_ends, N);
        assert_int_equal(peer.code, BOW_OK);
        assert_int_equal(t->n_said, N);
    }
    unpack(&packed);
    session_peer_end(&peer);
}

/* Its connection waits, and goes on by itself. */
static void test_work_f34_what_expands_in_vain_waits(void **state)
{
    enum { N = 2 };
    struct calls *t = *state;
    struct packed packed = {0};

    connect_peer(t);
    if (pack(t, &packed, MIB, true)) {
        for (int i = 0; i < N; i++) {
            send_packed(&packed);
        }
        session_peer_wait(&peer, &peer.n_ends, N);
        assert_int_equal(peer.code, BOW_INTERNAL);
        assert_int_equal(t->n_said, 0);
        CALLS_WAIT_METRIC(t, undecodable_messages, N);
    }
    unpack(&packed);
    session_peer_end(&peer);
}

/* Each takes what memory there is for it, and few are enough. */
static void test_work_f34_what_expands_in_vain_ends_the_connection(void **state)
{
    enum { N = 40 };
    struct calls *t = *state;
    struct packed packed = {0};

    connect_peer(t);
    peer.may_be_lost = true;
    if (pack(t, &packed, MAX_BYTES, true)) {
        for (int i = 0; i < N; i++) {
            send_packed(&packed);
        }
        session_peer_wait(&peer, &peer.n_goaways, 1);
        wait_until_lost();
        assert_non_null(strstr(peer.goaway, "BOW_LIMIT_VAIN_BYTES"));
        assert_int_equal(t->n_said, 0);
        CALLS_WAIT_METRIC(t, protocol_errors, 1);
    }
    unpack(&packed);
    session_peer_end(&peer);
}

/* A hundredth of the time that passes, so that however slow a machine, a thousand calls come
 * within a second. */
static uint64_t slow_now(void *user)
{
    static uint64_t begin_ns;
    struct timespec now;

    (void)user;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t now_ns = (uint64_t)now.tv_sec * 1000 * MS + (uint64_t)now.tv_nsec;
    begin_ns = begin_ns == 0 ? now_ns : begin_ns;
    return begin_ns + (now_ns - begin_ns) / 100;
}

static void test_work_f34_undecodable_messages_end_the_connection(void **state)
{
    enum { AT_ONCE = 40 };
    struct calls *t = *state;
    int n = 0;

    t->system.now_ns = slow_now;
    struct bow_server_options options;
    calls_server_options(t, &options);
    t->server = calls_start_server(t, &options);
    connect_peer(t);
    peer.may_be_lost = true;
    peer.encoding = 0;
    while (peer.n_goaways == 0 && n < 2 * (int)BOW_LIMIT_UNDECODABLE_PER_SECOND) {
        for (int i = 0; i < AT_ONCE; i++) {
            session_peer_open(&peer, SAY, BOW_NEVER);
            session_peer_send(&peer, BOW__SEND_END, "\xff\xff\xff", 3);
            n++;
        }
        session_peer_wait(&peer, &peer.n_ends, n);
    }
    wait_until_lost();
    assert_non_null(strstr(peer.goaway, "BOW_LIMIT_UNDECODABLE_PER_SECOND"));
    assert_in_range(n, BOW_LIMIT_UNDECODABLE_PER_SECOND,
                    BOW_LIMIT_UNDECODABLE_PER_SECOND + 2 * AT_ONCE);
    CALLS_WAIT_METRIC(t, protocol_errors, 1);
    session_peer_end(&peer);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, calls_setup, calls_teardown)
#define TEST_BARE(name) cmocka_unit_test_setup_teardown(name, calls_setup_bare, calls_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_work_f34_all_that_expands_is_answered),
        TEST(test_work_f34_what_expands_in_vain_waits),
        TEST(test_work_f34_what_expands_in_vain_ends_the_connection),
        TEST_BARE(test_work_f34_undecodable_messages_end_the_connection),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
