/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A handler that has room of its own for what comes: what is read straight into that, and when. */

#include "tests/support/net.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define N_BYTES ((size_t)200000)

/* Messages of a head of HEAD_BYTES, which come by on_read, and of a body that is put into memory
 * which lives no longer than it has to. All bytes are one pattern. */
#define HEAD_BYTES ((size_t)10)

struct taker {
    struct bow_handler handler;
    uint8_t *body; /* NULL: a head is waited for */
    size_t body_len;
    size_t n_in_body;
    size_t n_head;  /* bytes of the head so far */
    size_t n_bytes; /* altogether */
    size_t n_behind;
    size_t n_in_rooms;
    int n_rooms;
    int n_completes;
    int n_eofs;
    bool pauses;
    bool closes;
};

static void take_body(struct taker *taker, size_t n)
{
    assert_true(net_is_pattern(taker->body + taker->n_in_body, n, taker->n_bytes));
    taker->n_in_body += n;
    taker->n_bytes += n;
    if (taker->n_in_body == taker->body_len) {
        free(taker->body);
        taker->body = NULL;
        taker->n_head = 0;
    }
}

static void begin_body(struct taker *taker)
{
    taker->body = malloc(taker->body_len + taker->n_behind);
    taker->n_in_body = 0;
}

static size_t on_read(struct bow_handler *handler, const struct bow_buf *bytes)
{
    struct taker *taker = (struct taker *)(void *)handler;
    size_t at = 0;

    while (at < bytes->len) {
        size_t left = bytes->len - at;
        if (taker->body == NULL) {
            size_t n = HEAD_BYTES - taker->n_head;
            n = n < left ? n : left;
            assert_true(net_is_pattern(bytes->data + at, n, taker->n_bytes));
            taker->n_head += n;
            taker->n_bytes += n;
            at += n;
            if (taker->n_head == HEAD_BYTES) {
                begin_body(taker);
            }
            continue;
        }
        size_t n = taker->body_len - taker->n_in_body;
        n = n < left ? n : left;
        memcpy(taker->body + taker->n_in_body, bytes->data + at, n);
        take_body(taker, n);
        at += n;
    }
    return at;
}

static bool on_read_room(struct bow_handler *handler, struct bow_read_room *ret_room)
{
    struct taker *taker = (struct taker *)(void *)handler;

    if (taker->body == NULL) {
        return false;
    }
    *ret_room = (struct bow_read_room){taker->body + taker->n_in_body,
                                       taker->body_len - taker->n_in_body, taker->n_behind};
    taker->n_rooms++;
    return true;
}

static void on_read_filled(struct bow_handler *handler, size_t n)
{
    struct taker *taker = (struct taker *)(void *)handler;

    taker->n_in_rooms += n;
    take_body(taker, n);
    if (taker->pauses) {
        bow_channel_pause_read(handler->channel);
    }
    if (taker->closes) {
        bow_channel_close(handler->channel, -ECANCELED);
    }
}

static void on_read_complete(struct bow_handler *handler)
{
    ((struct taker *)(void *)handler)->n_completes++;
}

static void on_eof(struct bow_handler *handler)
{
    ((struct taker *)(void *)handler)->n_eofs++;
    bow_channel_close(handler->channel, 0);
}

static const struct bow_handler_ops taker_ops = {
    .name = "taker",
    .on_read = on_read,
    .on_read_complete = on_read_complete,
    .on_eof = on_eof,
    .on_read_room = on_read_room,
    .on_read_filled = on_read_filled,
};

struct room {
    struct net net;
    struct taker taker;
    struct bow_channel *channel;
    int peer;
    uint8_t *pattern;
};

static void room_begin_bounded(struct room *room, enum net_kind kind, size_t body_len,
                               size_t n_behind, size_t max_bytes_per_turn)
{
    memset(room, 0, sizeof(*room));
    net_begin(&room->net);
    room->net.options.max_bytes_per_turn = max_bytes_per_turn;
    room->taker.handler.ops = &taker_ops;
    room->taker.body_len = body_len;
    room->taker.n_behind = n_behind;
    room->channel = net_channel(&room->net, kind, &room->peer, NULL, 0);
    bow_channel_add_last(room->channel, &room->taker.handler);
    room->pattern = malloc(N_BYTES);
    net_fill_pattern(room->pattern, N_BYTES, 0);
}

static void room_begin(struct room *room, enum net_kind kind, size_t body_len, size_t n_behind)
{
    room_begin_bounded(room, kind, body_len, n_behind, 0);
}

static void room_end(struct room *room)
{
    if (room->peer >= 0) {
        close(room->peer);
    }
    net_end(&room->net);
    free(room->taker.body);
    free(room->pattern);
}

static void put(struct room *room, size_t from, size_t to)
{
    net_send_all(&room->net, room->peer, room->pattern + from, to - from);
    net_run_until(&room->net, room->taker.n_bytes == to);
}

static void test_channel_f68_reads_into_the_handlers_room(void **state)
{
    struct room room;
    (void)state;
    room_begin(&room, NET_TCP, 50000, 0);
    put(&room, 0, HEAD_BYTES);
    assert_int_equal(room.taker.n_rooms, 0);
    put(&room, HEAD_BYTES, HEAD_BYTES + 20000); /* short reads */
    put(&room, HEAD_BYTES + 20000, HEAD_BYTES + 49999);
    put(&room, HEAD_BYTES + 49999, HEAD_BYTES + 50000);
    assert_int_equal(room.taker.n_in_rooms, 50000);
    assert_true(room.taker.n_completes >= 4);
    room_end(&room);
}

/* The next head comes with the body before it. */
static void test_channel_f68_reads_what_is_behind_in_the_same_call(void **state)
{
    static const size_t behinds[] = {0, 1, HEAD_BYTES, 100, 5000};
    (void)state;
    for (size_t i = 0; i < sizeof(behinds) / sizeof(behinds[0]); i++) {
        struct room room;
        room_begin(&room, NET_UNIX, 30000, behinds[i]);
        put(&room, 0, HEAD_BYTES);
        assert_int_equal(send(room.peer, room.pattern + HEAD_BYTES, 60010, 0), 60010);
        int n_recv = atomic_load(&room.net.n_recv);
        net_run_until(&room.net, room.taker.n_bytes == HEAD_BYTES + 60010);
        n_recv = atomic_load(&room.net.n_recv) - n_recv;
        /* Two bodies and a head between them, and a look at what there is after the last. */
        assert_true(n_recv <= (behinds[i] >= HEAD_BYTES ? 3 : 4));
        assert_true(room.taker.n_in_rooms >= (behinds[i] >= HEAD_BYTES ? 30000 : 40000));
        room_end(&room);
    }
}

static void test_channel_f03_f68_room_keeps_the_bounds_of_a_turn(void **state)
{
    struct room room;
    (void)state;
    room_begin_bounded(&room, NET_UNIX, N_BYTES, 100, 1000);
    put(&room, 0, HEAD_BYTES);
    assert_int_equal(send(room.peer, room.pattern + HEAD_BYTES, 50000, 0), 50000);
    while (room.taker.n_bytes < HEAD_BYTES + 50000) {
        size_t before = room.taker.n_bytes;
        net_turn(&room.net);
        assert_true(room.taker.n_bytes - before <= 1000);
    }
    assert_int_equal(room.taker.n_in_rooms, 50000);
    room_end(&room);
}

static void test_channel_f68_pause_in_a_room_keeps_what_was_read_behind(void **state)
{
    struct room room;
    (void)state;
    room_begin(&room, NET_UNIX, 20000, 1000);
    put(&room, 0, HEAD_BYTES);
    room.taker.pauses = true;
    assert_int_equal(send(room.peer, room.pattern + HEAD_BYTES, 20500, 0), 20500);
    net_run_until(&room.net, room.taker.n_bytes == HEAD_BYTES + 20000);
    net_turn(&room.net);
    assert_int_equal(room.taker.n_bytes, HEAD_BYTES + 20000);
    room.taker.pauses = false;
    bow_channel_resume_read(room.channel);
    net_run_until(&room.net, room.taker.n_bytes == HEAD_BYTES + 20500);
    /* In the middle of a body. */
    room.taker.pauses = true;
    put(&room, HEAD_BYTES + 20500, HEAD_BYTES + 21000);
    int n_recv = atomic_load(&room.net.n_recv);
    assert_int_equal(send(room.peer, room.pattern + HEAD_BYTES + 21000, 500, 0), 500);
    net_turn(&room.net);
    assert_int_equal(atomic_load(&room.net.n_recv), n_recv);
    room.taker.pauses = false;
    bow_channel_resume_read(room.channel);
    net_run_until(&room.net, room.taker.n_bytes == HEAD_BYTES + 21500);
    room_end(&room);
}

static void test_channel_f68_eof_and_close_in_a_room(void **state)
{
    struct room room;
    (void)state;
    room_begin(&room, NET_UNIX, 20000, 1000);
    put(&room, 0, HEAD_BYTES + 100);
    close(room.peer);
    room.peer = -1;
    net_run_until(&room.net, room.taker.n_eofs == 1);
    assert_int_equal(room.taker.n_bytes, HEAD_BYTES + 100);
    room_end(&room);

    room_begin(&room, NET_UNIX, 20000, 1000);
    put(&room, 0, HEAD_BYTES);
    room.taker.closes = true;
    assert_int_equal(send(room.peer, room.pattern + HEAD_BYTES, 20500, 0), 20500);
    net_run_until(&room.net, room.taker.n_bytes >= HEAD_BYTES + 20000);
    net_turn(&room.net);
    assert_int_equal(room.taker.n_bytes, HEAD_BYTES + 20000);
    room_end(&room);
}

static size_t watch(struct bow_handler *handler, const struct bow_buf *bytes)
{
    return bow_handler_fire_read(handler, bytes);
}

/* One that has to see the bytes first, and has no room. */
static void test_channel_f68_no_room_behind_a_handler_that_reads(void **state)
{
    static const struct bow_handler_ops watch_ops = {.name = "watch", .on_read = watch};
    struct bow_handler watcher = {.ops = &watch_ops};
    struct room room;
    (void)state;
    room_begin(&room, NET_UNIX, 50000, 100);
    put(&room, 0, HEAD_BYTES);
    put(&room, HEAD_BYTES, 10000);
    assert_int_equal(room.taker.n_in_rooms, 10000 - HEAD_BYTES);
    bow_channel_add_first(room.channel, &watcher);
    int n_rooms = room.taker.n_rooms;
    put(&room, 10000, 20000);
    assert_int_equal(room.taker.n_rooms, n_rooms);
    bow_channel_remove(&watcher);
    put(&room, 20000, 30000);
    assert_true(room.taker.n_rooms > n_rooms);
    room_end(&room);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_channel_f68_reads_into_the_handlers_room),
        cmocka_unit_test(test_channel_f68_reads_what_is_behind_in_the_same_call),
        cmocka_unit_test(test_channel_f03_f68_room_keeps_the_bounds_of_a_turn),
        cmocka_unit_test(test_channel_f68_pause_in_a_room_keeps_what_was_read_behind),
        cmocka_unit_test(test_channel_f68_eof_and_close_in_a_room),
        cmocka_unit_test(test_channel_f68_no_room_behind_a_handler_that_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
