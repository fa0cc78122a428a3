/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What every kind of channel does alike; see the header. */

#include "tests/transport/conformance.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* Turns until `condition`; fails the test after ten seconds. */
#define until(c, condition)                                                                        \
    do {                                                                                           \
        uint64_t until_ns = net_deadline();                                                        \
        while (!(condition)) {                                                                     \
            (c)->fixture->turn(c);                                                                 \
            if (net_is_late(until_ns)) {                                                           \
                fail_msg("never came: %s", #condition);                                            \
            }                                                                                      \
        }                                                                                          \
    } while (0)

int conformance_add_probes(struct bow_channel *channel, void *user)
{
    struct conformance *c = user;

    /* A callback may close it before begin() returns. */
    c->channel = bow_channel_ref(channel);
    for (int i = 0; i < c->n_probes; i++) {
        bow_channel_add_last(channel, &c->probes[i].handler);
    }
    return 0;
}

static void prepare(struct conformance *c, const struct conformance_fixture *fixture, int n_probes)
{
    memset(c, 0, sizeof(*c));
    c->fixture = fixture;
    c->n_probes = n_probes;
    for (int i = 0; i < CONFORMANCE_MAX_PROBES; i++) {
        probe_init(&c->probes[i], NULL);
        c->probes[i].user = c;
        c->probes[i].keeps = true;
    }
}

static void end(struct conformance *c)
{
    bow_channel_unref(c->channel);
    c->fixture->end(c);
    for (int i = 0; i < CONFORMANCE_MAX_PROBES; i++) {
        probe_fini(&c->probes[i]);
    }
}

static void turn(struct conformance *c, int n)
{
    for (int i = 0; i < n; i++) {
        c->fixture->turn(c);
    }
}

static void put(struct conformance *c, const char *text)
{
    c->fixture->send(c, text, strlen(text));
}

static void expect(struct conformance *c, const void *bytes, size_t len)
{
    uint8_t *got = malloc(len);
    size_t n = 0;

    assert_non_null(got);
    until(c, (n += c->fixture->receive(c, got + n, len - n)) == len);
    assert_memory_equal(got, bytes, len);
    free(got);
}

static void expect_end(struct conformance *c)
{
    uint8_t byte;

    until(c, (assert_int_equal(c->fixture->receive(c, &byte, 1), 0), c->fixture->has_ended(c)));
}

static void write_text(struct conformance *c, const char *text)
{
    const struct bow_buf buf = bow_buf_borrow(text, strlen(text));

    assert_int_equal(bow_channel_write_and_flush(c->channel, &buf, probe_done, &c->probes[0]), 0);
}

static void assert_read(const struct probe *probe, const char *text)
{
    assert_int_equal(probe->n_bytes, strlen(text));
    assert_memory_equal(probe->bytes, text, strlen(text));
}

/* Bytes */

/* Messages of a length byte and as many bytes, each sent back when it is whole. */
static size_t echo_whole_messages(struct probe *probe, const struct bow_buf *bytes)
{
    size_t done = 0;

    while (done < bytes->len && bytes->len - done > bytes->data[done]) {
        size_t len = 1 + (size_t)bytes->data[done];
        const struct bow_buf message = bow_buf_borrow(bytes->data + done, len);
        assert_int_equal(
            bow_channel_write_and_flush(probe->handler.channel, &message, probe_done, probe), 0);
        done += len;
    }
    return done;
}

static void test_conformance_l63_echo_is_the_same_at_every_split(void **state)
{
    static const char messages[] = "\x01x\x05hello\x00\x0agood night";
    const size_t len = sizeof(messages) - 1;
    struct conformance c;
    prepare(&c, *state, 1);
    c.probes[0].on_read = echo_whole_messages;
    c.fixture->begin(&c);
    for (size_t split = 0; split <= len; split++) {
        size_t before = c.probes[0].n_bytes;
        if (split > 0) {
            c.fixture->send(&c, messages, split);
            turn(&c, 1);
        }
        if (split < len) {
            c.fixture->send(&c, messages + split, len - split);
        }
        expect(&c, messages, len);
        assert_int_equal(c.probes[0].n_bytes - before, len);
    }
    until(&c, c.probes[0].n_completions == 4 * (int)(len + 1));
    assert_int_equal(c.probes[0].completion_error, 0);
    end(&c);
}

static size_t take_one_message_and_pause(struct probe *probe, const struct bow_buf *bytes)
{
    if (bytes->len < 3) {
        return 0;
    }
    bow_channel_pause_read(probe->handler.channel);
    return 3;
}

/* F10: what came with the first message is there, and nothing more will come. */
static void test_conformance_l63_f10_pause_in_mid_batch_goes_on_without_new_bytes(void **state)
{
    struct conformance c;
    prepare(&c, *state, 1);
    c.probes[0].on_read = take_one_message_and_pause;
    c.fixture->begin(&c);
    put(&c, "onetwosix");
    for (size_t n = 3; n <= 9; n += 3) {
        until(&c, c.probes[0].n_bytes == n);
        turn(&c, 3);
        assert_int_equal(c.probes[0].n_bytes, n);
        assert_int_equal(c.probes[0].n_reads, (int)(n / 3));
        bow_channel_resume_read(c.channel);
    }
    turn(&c, 3);
    assert_read(&c.probes[0], "onetwosix");
    assert_int_equal(c.probes[0].n_eofs + c.probes[0].n_inactive, 0);
    end(&c);
}

static size_t take_two_and_leave(struct probe *probe, const struct bow_buf *bytes)
{
    if (bytes->len < 2) {
        return 0;
    }
    bow_channel_remove(&probe->handler);
    return 2;
}

static void test_conformance_l63_handler_removed_in_mid_batch_leaves_the_rest(void **state)
{
    struct conformance c;
    prepare(&c, *state, 3);
    c.probes[0].on_read = take_two_and_leave;
    c.probes[1].on_read = take_two_and_leave;
    c.fixture->begin(&c);
    put(&c, "aabbcccc");
    until(&c, c.probes[2].n_bytes == 4);
    assert_read(&c.probes[0], "aa");
    assert_read(&c.probes[1], "bb");
    assert_read(&c.probes[2], "cccc");
    turn(&c, 1);
    assert_int_equal(c.probes[0].n_removed, 1);
    assert_int_equal(c.probes[1].n_removed, 1);
    end(&c);
}

static size_t take_two_and_put_another_in(struct probe *probe, const struct bow_buf *bytes)
{
    struct conformance *c = probe->user;

    if (bytes->len < 2) {
        return 0;
    }
    bow_channel_add_after(&probe->handler, &c->probes[1].handler);
    bow_channel_remove(&probe->handler);
    return 2;
}

static void test_conformance_l63_handler_replaced_in_mid_batch_loses_no_byte(void **state)
{
    struct conformance c;
    prepare(&c, *state, 1);
    c.probes[0].on_read = take_two_and_put_another_in;
    c.fixture->begin(&c);
    put(&c, "aabbbb");
    until(&c, c.probes[1].n_bytes == 4);
    assert_read(&c.probes[0], "aa");
    assert_read(&c.probes[1], "bbbb");
    put(&c, "more");
    until(&c, c.probes[1].n_bytes == 8);
    end(&c);
}

/* Ends */

static void test_conformance_l59_half_close_by_the_peer_still_gets_answers(void **state)
{
    struct conformance c;
    prepare(&c, *state, 1);
    c.probes[0].stops_events = true;
    c.fixture->begin(&c);
    put(&c, "question");
    c.fixture->shut(&c);
    until(&c, c.probes[0].n_eofs == 1);
    assert_read(&c.probes[0], "question");
    turn(&c, 3);
    assert_int_equal(c.probes[0].n_eofs, 1);
    assert_int_equal(c.probes[0].n_inactive, 0);
    write_text(&c, "answer");
    expect(&c, "answer", 6);
    bow_channel_shutdown_write(c.channel);
    until(&c, c.probes[0].n_removed == 1);
    expect_end(&c);
    assert_int_equal(c.probes[0].n_inactive, 1);
    assert_int_equal(c.probes[0].inactive_error, 0);
    assert_int_equal(c.probes[0].n_errors, 0);
    end(&c);
}

static void test_conformance_l59_half_close_by_us_still_reads(void **state)
{
    struct conformance c;
    const struct bow_buf buf = bow_buf_borrow("x", 1);
    prepare(&c, *state, 1);
    c.probes[0].stops_events = true;
    c.fixture->begin(&c);
    write_text(&c, "last words");
    bow_channel_shutdown_write(c.channel);
    assert_int_equal(bow_channel_write(c.channel, &buf, probe_done, &c.probes[0]), -EPIPE);
    expect(&c, "last words", 10);
    expect_end(&c);
    put(&c, "noted");
    until(&c, c.probes[0].n_bytes == 5);
    assert_int_equal(c.probes[0].n_inactive, 0);
    c.fixture->shut(&c);
    until(&c, c.probes[0].n_removed == 1);
    assert_int_equal(c.probes[0].n_eofs, 1);
    assert_int_equal(c.probes[0].n_completions, 1);
    assert_int_equal(c.probes[0].inactive_error, 0);
    end(&c);
}

static uint64_t n_events(const struct conformance *c)
{
    struct bow_loop_stats stats = {.size = sizeof(stats)};

    assert_int_equal(bow_loop_get_stats(c->loop, &stats), 0);
    return stats.events;
}

static void test_conformance_l59_f09_end_comes_behind_unread_bytes_and_does_not_spin(void **state)
{
    struct conformance c;
    uint8_t *bytes = malloc(64 * KIB);
    assert_non_null(bytes);
    prepare(&c, *state, 1);
    c.probes[0].checks_pattern = true;
    c.probes[0].stops_events = true;
    c.fixture->begin(&c);
    bow_channel_pause_read(c.channel);
    turn(&c, 1);
    net_fill_pattern(bytes, 64 * KIB, 0);
    c.fixture->send(&c, bytes, 64 * KIB);
    c.fixture->shut(&c);
    turn(&c, 3);
    uint64_t before = n_events(&c);
    turn(&c, 5);
    assert_int_equal(n_events(&c), before);
    assert_int_equal(c.probes[0].n_reads + c.probes[0].n_eofs, 0);
    bow_channel_resume_read(c.channel);
    until(&c, c.probes[0].n_eofs == 1);
    assert_int_equal(c.probes[0].n_bytes, 64 * KIB);
    free(bytes);
    end(&c);
}

static void test_conformance_l59_reset_is_told_once_and_fails_what_is_queued(void **state)
{
    struct conformance c;
    prepare(&c, *state, 1);
    c.fixture->begin(&c);
    put(&c, "before");
    until(&c, c.probes[0].n_bytes == 6);
    const struct bow_buf buf = bow_buf_borrow("queued", 6);
    assert_int_equal(bow_channel_write(c.channel, &buf, probe_done, &c.probes[0]), 0);
    c.fixture->reset(&c);
    until(&c, c.probes[0].n_removed == 1);
    assert_int_equal(c.probes[0].n_errors, 1);
    assert_int_equal(c.probes[0].last_error, -ECONNRESET);
    assert_int_equal(c.probes[0].n_inactive, 1);
    assert_int_equal(c.probes[0].inactive_error, -ECONNRESET);
    assert_int_equal(c.probes[0].n_eofs, 0);
    assert_int_equal(c.probes[0].n_completions, 1);
    assert_true(c.probes[0].completion_error < 0);
    end(&c);
}

static void test_conformance_l59_f29_reply_and_close_at_once_loses_nothing(void **state)
{
    struct conformance c;
    uint8_t *bytes = malloc(MIB);
    assert_non_null(bytes);
    prepare(&c, *state, 1);
    c.probes[0].stops_events = true;
    c.fixture->begin(&c);
    net_fill_pattern(bytes, MIB, 0);
    const struct bow_buf buf = bow_buf_borrow(bytes, MIB);
    assert_int_equal(bow_channel_write(c.channel, &buf, probe_done, &c.probes[0]), 0);
    bow_channel_close_after_flush(c.channel, 10 * FAKE_S);
    expect(&c, bytes, MIB);
    expect_end(&c);
    c.fixture->shut(&c);
    until(&c, c.probes[0].n_removed == 1);
    assert_int_equal(c.probes[0].n_completions, 1);
    assert_int_equal(c.probes[0].completion_error, 0);
    assert_int_equal(c.probes[0].inactive_error, 0);
    free(bytes);
    end(&c);
}

/* Output */

static void test_conformance_l57_water_marks_tell_once_each_way(void **state)
{
    struct conformance c;
    uint8_t *bytes = malloc(MIB);
    assert_non_null(bytes);
    prepare(&c, *state, 1);
    c.fixture->begin(&c);
    net_fill_pattern(bytes, MIB, 0);
    for (size_t at = 0; at < MIB; at += 16 * KIB) {
        const struct bow_buf buf = bow_buf_borrow(bytes + at, 16 * KIB);
        assert_int_equal(bow_channel_write(c.channel, &buf, NULL, NULL), 0);
    }
    bow_channel_flush(c.channel);
    turn(&c, 3);
    assert_false(bow_channel_is_writable(c.channel));
    expect(&c, bytes, MIB);
    until(&c, bow_channel_is_writable(c.channel));
    turn(&c, 1);
    assert_string_equal(c.probes[0].log, " added active unwritable writable");
    free(bytes);
    end(&c);
}

struct order {
    struct conformance *c;
    int n;
    int first_failed;
};

struct numbered {
    struct order *order;
    int i;
};

static void in_order(struct bow_channel *channel, int error, void *user)
{
    struct numbered *numbered = user;
    struct order *order = numbered->order;
    (void)channel;

    assert_int_equal(numbered->i, order->n);
    order->n++;
    if (error < 0 && order->first_failed < 0) {
        order->first_failed = numbered->i;
    }
    /* Once one has failed all behind it have. */
    assert_true((error < 0) == (order->first_failed >= 0));
}

static void test_conformance_l56_each_write_completes_once_in_order(void **state)
{
    struct conformance c;
    struct order order = {&c, 0, -1};
    struct numbered numbered[100];
    uint8_t *bytes = calloc(1, 16 * KIB);
    assert_non_null(bytes);
    prepare(&c, *state, 1);
    c.fixture->begin(&c);
    for (int i = 0; i < 100; i++) {
        const struct bow_buf buf = bow_buf_borrow(bytes, i % 3 == 0 ? 0 : 16 * KIB);
        numbered[i] = (struct numbered){&order, i};
        assert_int_equal(bow_channel_write_and_flush(c.channel, &buf, in_order, &numbered[i]), 0);
    }
    assert_int_equal(order.n, 0); /* never inside the call */
    expect(&c, bytes, 16 * KIB);
    until(&c, order.n > 1);
    bow_channel_close(c.channel, 0);
    until(&c, c.probes[0].n_removed == 1);
    assert_int_equal(order.n, 100);
    assert_true(order.first_failed > 1); /* the socket was full long before */
    free(bytes);
    end(&c);
}

/* Close from every callback */

static size_t close_in_read(struct probe *probe, const struct bow_buf *bytes)
{
    struct conformance *c = probe->user;

    if (strcmp((const char *)c->probes[2].user, "read") == 0) {
        bow_channel_close(probe->handler.channel, 0);
    }
    return bytes->len;
}

static void close_in_event(struct probe *probe, const char *event)
{
    struct conformance *c = probe->user;

    if (strcmp((const char *)c->probes[2].user, event) == 0) {
        bow_channel_close(probe->handler.channel, 0);
        bow_channel_close(probe->handler.channel, 0);
    }
}

/* Provokes every event, one after the other, as long as the channel is there. */
static void live_through_all(struct conformance *c, const uint8_t *bytes)
{
    const struct bow_buf buf = bow_buf_borrow(bytes, 256 * KIB);
    struct probe *probe = &c->probes[0];
    uint8_t got[4096];
    bool is_reset = false;

    for (int i = 0; i < 1000 && probe->n_removed == 0; i++) {
        if (i == 0) {
            put(c, "x");
            (void)!bow_channel_write_and_flush(c->channel, &buf, probe_done, probe);
        }
        c->fixture->turn(c);
        while (i > 2 && probe->n_inactive == 0 && c->fixture->receive(c, got, sizeof(got)) > 0) {
        }
        if (probe->n_completions == 1 && probe->n_bytes == 1 && probe->n_inactive == 0 &&
            !is_reset && i > 10) {
            c->fixture->reset(c);
            is_reset = true;
        }
    }
}

static void check_close_inside(const struct conformance_fixture *fixture, const char *event,
                               const uint8_t *bytes)
{
    struct conformance c;
    prepare(&c, fixture, 1);
    c.probes[0].on_read = close_in_read;
    c.probes[0].on_event = close_in_event;
    c.probes[2].user = (void *)(uintptr_t)event;
    c.fixture->begin(&c);
    live_through_all(&c, bytes);
    assert_int_equal(c.probes[0].n_removed, 1);
    assert_true(c.probes[0].n_inactive <= 1);
    if (strcmp(event, "added") != 0) {
        assert_int_equal(c.probes[0].n_inactive, 1);
        assert_non_null(strstr(c.probes[0].log, event)); /* it did come */
    }
    assert_true(c.probes[0].n_completions <= 1);
    end(&c);
}

static void test_conformance_l59_f08_close_inside_any_callback_is_safe(void **state)
{
    static const char *const events[] = {"active",     "read",     "complete", "done",   "error",
                                         "unwritable", "writable", "inactive", "removed"};
    uint8_t *bytes = calloc(1, 256 * KIB);
    assert_non_null(bytes);
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
        check_close_inside(*state, events[i], bytes);
    }
    free(bytes);
}

static void close_at_eof(struct probe *probe, const char *event)
{
    if (strcmp(event, "eof") == 0) {
        bow_channel_close(probe->handler.channel, 0);
    }
}

static void test_conformance_l59_f08_close_inside_eof_is_safe(void **state)
{
    struct conformance c;
    prepare(&c, *state, 1);
    c.probes[0].on_event = close_at_eof;
    c.fixture->begin(&c);
    put(&c, "x");
    c.fixture->shut(&c);
    until(&c, c.probes[0].n_removed == 1);
    assert_int_equal(c.probes[0].n_eofs, 1);
    assert_int_equal(c.probes[0].n_inactive, 1);
    assert_int_equal(c.probes[0].inactive_error, 0);
    end(&c);
}

/* Running */

struct scenario {
    const char *name;
    void (*run)(void **state);
};

#define SCENARIO(test)                                                                             \
    {                                                                                              \
#test, test                                                                                \
    }

static const struct scenario scenarios[] = {
    SCENARIO(test_conformance_l63_echo_is_the_same_at_every_split),
    SCENARIO(test_conformance_l63_f10_pause_in_mid_batch_goes_on_without_new_bytes),
    SCENARIO(test_conformance_l63_handler_removed_in_mid_batch_leaves_the_rest),
    SCENARIO(test_conformance_l63_handler_replaced_in_mid_batch_loses_no_byte),
    SCENARIO(test_conformance_l59_half_close_by_the_peer_still_gets_answers),
    SCENARIO(test_conformance_l59_half_close_by_us_still_reads),
    SCENARIO(test_conformance_l59_f09_end_comes_behind_unread_bytes_and_does_not_spin),
    SCENARIO(test_conformance_l59_reset_is_told_once_and_fails_what_is_queued),
    SCENARIO(test_conformance_l59_f29_reply_and_close_at_once_loses_nothing),
    SCENARIO(test_conformance_l57_water_marks_tell_once_each_way),
    SCENARIO(test_conformance_l56_each_write_completes_once_in_order),
    SCENARIO(test_conformance_l59_f08_close_inside_any_callback_is_safe),
    SCENARIO(test_conformance_l59_f08_close_inside_eof_is_safe),
};

#define N_SCENARIOS (sizeof(scenarios) / sizeof(scenarios[0]))

static int run_fixture(const struct conformance_fixture *fixture)
{
    struct CMUnitTest tests[N_SCENARIOS];
    char names[N_SCENARIOS][160];

    for (size_t i = 0; i < N_SCENARIOS; i++) {
        snprintf(names[i], sizeof(names[i]), "%s_over_%s", scenarios[i].name, fixture->name);
        tests[i] = (struct CMUnitTest){.name = names[i],
                                       .test_func = scenarios[i].run,
                                       .initial_state = (void *)(uintptr_t)fixture};
    }
    return cmocka_run_group_tests_name(fixture->name, tests, NULL, NULL);
}

int conformance_run(const struct conformance_fixture *const *fixtures, size_t n)
{
    int n_failed = 0;

    for (size_t i = 0; i < n; i++) {
        n_failed += run_fixture(fixtures[i]);
    }
    return n_failed;
}
