/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Small borrowed writes that stand together share memory and a piece of the sendmsg. Each
 * must still be what it was alone: its bytes in their order, counted once, its completion once
 * and only when they have left.
 */

#include "tests/support/net.h"
#include "transport/channel/channel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_WRITES 1024
#define MAX_BYTES ((size_t)1 << 20)
/* What a copy may cost beside the bytes that stand before it. */
#define COPY_BYTES (sizeof(struct bow__write) + 32)

struct script;

/* A write that tells when it is done. */
struct teller {
    struct script *script;
    size_t len;
    size_t end; /* bytes written up to its last one */
    int error;
};

/* What was written so far, and what has come of it. */
struct script {
    struct net net;
    struct probe probe;
    struct bow_channel *channel;
    int peer;
    uint8_t *got; /* what the peer received */
    size_t n_got;
    size_t n_written;
    struct teller tellers[MAX_WRITES];
    int n_tellers;
    int n_told;
};

static void begin(struct script *script)
{
    memset(script, 0, sizeof(*script));
    net_begin(&script->net);
    probe_init(&script->probe, &script->net);
    script->channel = net_channel(&script->net, NET_UNIX, &script->peer, &script->probe, 1);
    script->got = malloc(MAX_BYTES);
}

static void receive(struct script *script)
{
    ssize_t n;

    while ((n = recv(script->peer, script->got + script->n_got, MAX_BYTES - script->n_got, 0)) >
           0) {
        assert_true(net_is_pattern(script->got + script->n_got, (size_t)n, script->n_got));
        script->n_got += (size_t)n;
    }
    assert_true(script->n_got <= script->n_written);
}

static void end(struct script *script)
{
    net_stop(&script->net);
    receive(script);
    assert_int_equal(script->n_told, script->n_tellers);
    close(script->peer);
    net_end(&script->net);
    free(script->got);
}

static void on_done(struct bow_channel *channel, int error, void *user)
{
    struct teller *teller = user;
    struct script *script = teller->script;
    (void)channel;

    assert_ptr_equal(teller, &script->tellers[script->n_told]); /* in order, so also once */
    script->n_told++;
    teller->error = error;
    receive(script);
    if (error == 0) {
        assert_true(script->n_got >= teller->end);
    } else {
        assert_true(script->n_got < teller->end || teller->len == 0);
    }
}

enum kind {
    COPIED,
    COUNTED,
};

static int try_write(struct script *script, enum kind kind, size_t len, bool tells)
{
    struct teller *teller = &script->tellers[script->n_tellers];
    uint8_t *bytes = calloc(1, len + 1);
    struct bow_buf buf = bow_buf_borrow(bytes, len);
    int rc = 0;

    *teller = (struct teller){script, len, script->n_written + len, 1};
    net_fill_pattern(bytes, len, script->n_written);
    if (kind == COUNTED) {
        const struct bow_buf borrowed = buf;
        rc = bow_buf_share(script->net.t.context, &borrowed, &buf);
    }
    size_t queued_bytes = script->channel->queued_bytes;
    if (rc == 0) {
        rc = bow_channel_write(script->channel, &buf, tells ? on_done : NULL, teller);
        bow_buf_unref(&buf);
    }
    free(bytes); /* so that who reads them later is caught */
    if (rc == 0) {
        queued_bytes += len;
        script->n_written += len;
        script->n_tellers += tells;
    }
    assert_int_equal(script->channel->queued_bytes, queued_bytes);
    return rc;
}

static void write_bytes(struct script *script, enum kind kind, size_t len, bool tells)
{
    assert_int_equal(try_write(script, kind, len, tells), 0);
}

static void write_apart(struct script *script, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        write_bytes(script, COPIED, 1, false);
    }
}

/* One turn that does not wait. */
static void turn(struct script *script)
{
    assert_int_equal(bow_loop_run_once(script->net.loop, 0), 0);
}

static void flush_once(struct script *script)
{
    int n_send = atomic_load(&script->net.n_send);

    bow_channel_flush(script->channel);
    net_run_until(&script->net, atomic_load(&script->net.n_send) > n_send);
}

static void run_until_all_told(struct script *script)
{
    net_run_until(&script->net, script->n_told == script->n_tellers);
    receive(script);
}

/* Both kinds, with and without completions, empty ones, one that fits into no shared piece. */
static const struct step {
    enum kind kind;
    size_t len;
    bool tells;
} steps[] = {
    {COPIED, 1, false},  {COPIED, 2, false},  {COPIED, 3, true},    {COPIED, 0, true},
    {COPIED, 2, false},  {COUNTED, 3, false}, {COPIED, 1, false},   {COPIED, 2, false},
    {COPIED, 0, false},  {COPIED, 1, false},  {COUNTED, 2, true},   {COPIED, 4, false},
    {COPIED, 4, true},   {COPIED, 1, true},   {COPIED, 1, true},    {COPIED, 0, false},
    {COPIED, 0, true},   {COPIED, 40, false}, {COPIED, 1, false},   {COPIED, 1, false},
    {COUNTED, 0, false}, {COPIED, 2, false},  {COPIED, 300, false}, {COPIED, 1, true},
};
#define N_STEPS (sizeof(steps) / sizeof(steps[0]))

static void write_steps(struct script *script)
{
    for (size_t i = 0; i < N_STEPS; i++) {
        write_bytes(script, steps[i].kind, steps[i].len, steps[i].tells);
    }
}

static size_t bytes_of_steps(void)
{
    size_t n = 0;

    for (size_t i = 0; i < N_STEPS; i++) {
        n += steps[i].len;
    }
    return n;
}

static void test_channel_l56_small_copies_share_pieces_and_keep_their_order(void **state)
{
    struct script *script = malloc(sizeof(*script));
    (void)state;
    begin(script);
    write_apart(script, 1);
    flush_once(script);
    receive(script);
    assert_int_equal(script->n_got, 1);
    write_apart(script, 200);
    write_bytes(script, COPIED, 1, true);
    flush_once(script);
    assert_in_range(atomic_load(&script->net.n_pieces), 2, 6);
    run_until_all_told(script);
    assert_int_equal(script->n_got, 202);
    end(script);
    free(script);
}

static void test_channel_l56_what_a_flush_has_let_go_is_not_added_to(void **state)
{
    struct script *script = malloc(sizeof(*script));
    (void)state;
    begin(script);
    script->net.send_bytes = 1;
    write_apart(script, 3); /* the second has room behind it */
    flush_once(script);
    write_apart(script, 2);
    for (int i = 0; i < 10; i++) {
        turn(script);
    }
    receive(script);
    assert_int_equal(script->n_got, 3);
    bow_channel_flush(script->channel);
    net_run_until(&script->net, script->channel->queued_bytes == 0);
    receive(script);
    assert_int_equal(script->n_got, 5);
    end(script);
    free(script);
}

static void test_channel_l56_sockets_that_take_a_part_get_the_rest_in_order(void **state)
{
    struct script *script = malloc(sizeof(*script));
    (void)state;
    for (size_t cut = 1; cut <= bytes_of_steps(); cut++) {
        begin(script);
        write_steps(script);
        script->net.send_bytes = cut;
        flush_once(script);
        write_steps(script); /* in the middle of what is on its way */
        receive(script);
        assert_int_equal(script->n_got, cut);
        script->net.send_bytes = 0;
        net_run_until(&script->net, script->channel->n_flushed == 0);
        receive(script);
        assert_int_equal(script->n_got, bytes_of_steps());
        bow_channel_flush(script->channel);
        run_until_all_told(script);
        assert_int_equal(script->n_got, 2 * bytes_of_steps());
        end(script);
    }
    free(script);
}

static void test_channel_l56_each_write_that_has_not_left_fails_once_with_the_close(void **state)
{
    struct script *script = malloc(sizeof(*script));
    (void)state;
    for (size_t cut = 1; cut <= bytes_of_steps(); cut++) {
        begin(script);
        write_steps(script);
        script->net.send_bytes = cut;
        flush_once(script);
        int n_flushed = script->n_tellers;
        write_steps(script);
        bow_channel_close(script->channel, -EIO);
        run_until_all_told(script);
        assert_int_equal(script->n_got, cut);
        for (int i = 0; i < script->n_tellers; i++) {
            const struct teller *teller = &script->tellers[i];
            bool has_left = i < n_flushed && teller->end <= cut;
            assert_int_equal(teller->error, has_left ? 0 : -EIO);
        }
        end(script);
    }
    free(script);
}

static void test_channel_l56_copies_nobody_flushed_leave_before_an_orderly_end(void **state)
{
    struct script *script = malloc(sizeof(*script));
    (void)state;
    for (int i = 0; i < 2; i++) {
        begin(script);
        script->net.send_bytes = 7;
        write_steps(script);
        if (i == 0) {
            bow_channel_close_after_flush(script->channel, BOW_NEVER);
        } else {
            bow_channel_shutdown_write(script->channel);
        }
        assert_int_equal(try_write(script, COPIED, 1, true), i == 0 ? 0 : -EPIPE);
        run_until_all_told(script);
        assert_int_equal(script->n_got, script->n_written);
        assert_int_equal(script->tellers[script->n_told - 1].error, 0);
        end(script);
    }
    free(script);
}

static void test_channel_l56_refused_write_leaves_those_before_it_whole(void **state)
{
    struct script *script = malloc(sizeof(*script));
    (void)state;
    begin(script);
    for (size_t i = 0; i < 8 * N_STEPS; i++) {
        const struct step *step = &steps[i % N_STEPS];
        script->net.t.alloc.fail_at = i % 3 == 0 ? script->net.t.alloc.n_calls + 1 : 0;
        int rc = try_write(script, step->kind, step->len, step->tells);
        /* One that needs no memory may succeed. */
        assert_true(rc == 0 || (i % 3 == 0 && rc == -ENOMEM));
    }
    script->net.t.alloc.fail_at = 0;
    write_bytes(script, COPIED, 1, true);
    bow_channel_flush(script->channel);
    run_until_all_told(script);
    assert_int_equal(script->n_got, script->n_written);
    end(script);
    free(script);
}

static void test_channel_l57_mark_crossed_within_a_shared_piece_is_told_once(void **state)
{
    struct script *script = malloc(sizeof(*script));
    (void)state;
    begin(script);
    bow_channel_set_water_marks(script->channel, 50, 100);
    write_apart(script, 100);
    assert_true(bow_channel_is_writable(script->channel));
    write_apart(script, 1);
    assert_false(bow_channel_is_writable(script->channel));
    write_apart(script, 50);
    net_run_until(&script->net, strstr(script->probe.log, "unwritable") != NULL);
    script->net.send_bytes = 101; /* leaves 50: the low mark itself */
    flush_once(script);
    assert_false(bow_channel_is_writable(script->channel));
    script->net.send_bytes = 1;
    net_run_until(&script->net, bow_channel_is_writable(script->channel));
    assert_int_equal(script->channel->queued_bytes, 49);
    net_run_until(&script->net, script->channel->queued_bytes == 0);
    assert_string_equal(script->probe.log, " added active unwritable writable");
    end(script);
    free(script);
}

static void test_channel_l56_few_bytes_in_many_writes_hold_little_memory(void **state)
{
    struct script *script = malloc(sizeof(*script));
    struct bow_buf counted;
    (void)state;
    begin(script);
    const struct bow_buf borrowed = bow_buf_borrow("12345678", 8);
    assert_int_equal(bow_buf_share(script->net.t.context, &borrowed, &counted), 0);
    size_t before = bow_context_bytes(script->net.t.context);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(bow_channel_write(script->channel, &counted, NULL, NULL), 0);
        assert_int_equal(bow_channel_write(script->channel, &borrowed, NULL, NULL), 0);
        assert_int_equal(bow_channel_write(script->channel, &borrowed, NULL, NULL), 0);
    }
    size_t held = bow_context_bytes(script->net.t.context) - before;
    assert_in_range(held, 1, 300 * COPY_BYTES + 5 * (200 * 8));
    bow_buf_unref(&counted);
    end(script);
    free(script);
}

static void test_channel_l56_many_small_copies_hold_less_than_each_alone(void **state)
{
    struct script *script = malloc(sizeof(*script));
    (void)state;
    begin(script);
    size_t before = bow_context_bytes(script->net.t.context);
    write_apart(script, 100000);
    size_t held = bow_context_bytes(script->net.t.context) - before;
    assert_in_range(held, 100000, 100000 + 100000 / 8);
    end(script);
    free(script);
}

static uint32_t draw(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % below;
}

static size_t draw_len(uint32_t *seed)
{
    static const uint32_t below[] = {2, 8, 40, 40, 200, 9000};

    return draw(seed, below[draw(seed, 6)]);
}

static void do_anything(struct script *script, uint32_t *seed)
{
    uint32_t what = draw(seed, 16);

    if (what == 0) {
        script->net.send_bytes = draw(seed, 4) > 0 ? 1 + draw(seed, 3000) : 0;
    } else if (what == 1) {
        bow_channel_flush(script->channel);
    } else if (what == 2) {
        turn(script);
        receive(script);
    } else {
        uint32_t fails = draw(seed, 8);
        script->net.t.alloc.fail_at = fails == 0 ? script->net.t.alloc.n_calls + 1 : 0;
        int rc = try_write(script, what < 6 ? COUNTED : COPIED, draw_len(seed), what % 4 == 0);
        assert_true(rc == 0 || (fails == 0 && rc == -ENOMEM));
        script->net.t.alloc.fail_at = 0;
    }
}

static void test_channel_l56_any_mixture_of_writes_comes_as_it_was_written(void **state)
{
    struct script *script = malloc(sizeof(*script));
    (void)state;
    for (uint32_t round = 0; round < 100; round++) {
        uint32_t seed = round;
        begin(script);
        for (uint32_t i = 0; i < 20 + round; i++) {
            do_anything(script, &seed);
        }
        script->net.send_bytes = 0;
        if (round % 2 == 0) {
            bow_channel_shutdown_write(script->channel);
            net_run_until(&script->net, script->channel->is_shut);
            run_until_all_told(script);
            assert_int_equal(script->n_got, script->n_written);
        } else {
            bow_channel_close(script->channel, -EIO);
            run_until_all_told(script);
        }
        end(script);
    }
    free(script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_channel_l56_small_copies_share_pieces_and_keep_their_order),
        cmocka_unit_test(test_channel_l56_what_a_flush_has_let_go_is_not_added_to),
        cmocka_unit_test(test_channel_l56_sockets_that_take_a_part_get_the_rest_in_order),
        cmocka_unit_test(test_channel_l56_each_write_that_has_not_left_fails_once_with_the_close),
        cmocka_unit_test(test_channel_l56_copies_nobody_flushed_leave_before_an_orderly_end),
        cmocka_unit_test(test_channel_l56_refused_write_leaves_those_before_it_whole),
        cmocka_unit_test(test_channel_l57_mark_crossed_within_a_shared_piece_is_told_once),
        cmocka_unit_test(test_channel_l56_few_bytes_in_many_writes_hold_little_memory),
        cmocka_unit_test(test_channel_l56_many_small_copies_hold_less_than_each_alone),
        cmocka_unit_test(test_channel_l56_any_mixture_of_writes_comes_as_it_was_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
