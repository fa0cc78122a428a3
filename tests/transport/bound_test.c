/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A handler bound to an executor (L58), step by step: the test drives the loop and the
 * executor in turns, so each may be behind the other.
 */

#include "tests/support/net.h"

#include <bowline/executor.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_WAITING ((size_t)64 << 10)

/* A channel with up to four probes: those of `bound` on the executor, the others on the loop. */
struct bench {
    struct net net;
    struct bow_executor *executor;
    struct probe probes[4];
    int n_probes;
    bool bound[4];
    struct bow_channel *channel;
    int peer;
    char order[1024]; /* each probe writes its letter in front */
};

static void note(struct probe *probe, const char *event)
{
    struct bench *bench = probe->user;
    size_t len = strlen(bench->order);

    snprintf(bench->order + len, sizeof(bench->order) - len, " %c:%s",
             (char)('a' + (probe - bench->probes)), event);
}

static size_t note_and_pass(struct probe *probe, const struct bow_buf *bytes)
{
    note(probe, "read");
    if (bow_handler_can_fire_read(&probe->handler)) {
        bow_handler_fire_read(&probe->handler, bytes);
    }
    return bytes->len;
}

static int add_handlers(struct bow_channel *channel, void *user)
{
    struct bench *bench = user;

    for (int i = 0; i < bench->n_probes; i++) {
        struct bow_handler *handler = &bench->probes[i].handler;
        if (!bench->bound[i]) {
            bow_channel_add_last(channel, handler);
            continue;
        }
        int rc = bow_channel_add_last_on(channel, handler, bench->executor);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* `shape`: a letter each, 'x' on the executor, 'l' on the loop. */
static void begin(struct bench *bench, const char *shape)
{
    struct bow_executor_options options = BOW_EXECUTOR_OPTIONS_INIT;

    memset(bench, 0, sizeof(*bench));
    net_begin(&bench->net);
    options.n_threads = 0;
    options.max_channel_bytes = MAX_WAITING;
    assert_int_equal(bow_executor_new(bench->net.t.context, &options, &bench->executor), 0);
    bench->n_probes = (int)strlen(shape);
    for (int i = 0; i < bench->n_probes; i++) {
        bench->bound[i] = shape[i] == 'x';
        probe_init(&bench->probes[i], &bench->net);
        bench->probes[i].user = bench;
        bench->probes[i].keeps = true;
    }
    bench->net.options.on_channel = add_handlers;
    bench->net.options.user = bench;
    bench->channel = net_channel(&bench->net, NET_UNIX, &bench->peer, NULL, 0);
}

static void run(struct bench *bench)
{
    assert_int_equal(bow_executor_run_once(bench->executor, 0), 0);
}

/* Both, until neither has anything to do. */
static void settle(struct bench *bench)
{
    for (int i = 0; i < 8; i++) {
        assert_int_equal(bow_loop_run_once(bench->net.loop, FAKE_MS), 0);
        run(bench);
    }
}

static void feed(struct bench *bench, const char *text)
{
    assert_int_equal(send(bench->peer, text, strlen(text), MSG_NOSIGNAL), (int)strlen(text));
}

static void end(struct bench *bench)
{
    if (bench->peer >= 0) {
        close(bench->peer);
    }
    net_stop(&bench->net);
    bow_executor_unref(bench->executor);
    for (int i = 0; i < bench->n_probes; i++) {
        assert_int_equal(bench->probes[i].n_removed, 1);
        probe_fini(&bench->probes[i]);
    }
    net_end(&bench->net);
}

static void test_pipeline_l58_events_of_a_bound_handler_come_in_order_on_the_executor(void **state)
{
    struct bench bench;
    (void)state;
    begin(&bench, "x");
    feed(&bench, "hello");
    net_run_until(&bench.net, atomic_load(&bench.net.n_recv) > 0);
    assert_string_equal(bench.probes[0].log, ""); /* nothing on the loop */
    run(&bench);
    assert_string_equal(bench.probes[0].log, " added active read:5 complete");
    feed(&bench, "again");
    shutdown(bench.peer, SHUT_WR);
    settle(&bench);
    assert_string_equal(bench.probes[0].log,
                        " added active read:5 complete read:5 complete eof inactive removed");
    assert_memory_equal(bench.probes[0].bytes, "helloagain", 10);
    end(&bench);
}

static size_t take_three(struct probe *probe, const struct bow_buf *bytes)
{
    (void)probe;
    return bytes->len < 3 ? 0 : 3;
}

static void test_pipeline_l58_bound_handler_gets_again_what_it_has_not_consumed(void **state)
{
    struct bench bench;
    (void)state;
    begin(&bench, "x");
    bench.probes[0].on_read = take_three;
    feed(&bench, "abcde");
    settle(&bench);
    feed(&bench, "fg");
    settle(&bench);
    assert_non_null(strstr(bench.probes[0].log, " read:5 complete read:4 complete"));
    assert_int_equal(bench.probes[0].n_bytes, 6);
    assert_memory_equal(bench.probes[0].bytes, "abcdef", 6);
    end(&bench);
}

static void test_pipeline_l58_bound_handler_passes_events_on_from_its_place(void **state)
{
    struct bench bench;
    (void)state;
    begin(&bench, "lxl");
    for (int i = 0; i < 3; i++) {
        bench.probes[i].on_event = note;
        bench.probes[i].on_read = note_and_pass;
    }
    settle(&bench);
    assert_string_equal(bench.order, " b:added b:active c:active");
    bench.order[0] = '\0';
    feed(&bench, "x");
    settle(&bench);
    assert_non_null(strstr(bench.order, "a:read a:complete b:read b:complete c:read c:complete"));
    assert_int_equal(bench.probes[2].n_bytes, 1);
    bench.order[0] = '\0';
    bow_handler_fire_error(&bench.probes[0].handler, -EBADMSG);
    bow_handler_fire_writable(&bench.probes[0].handler, false);
    assert_string_equal(bench.order, "");
    settle(&bench);
    assert_string_equal(bench.order, " b:error b:unwritable c:error c:unwritable");
    assert_int_equal(bench.probes[2].last_error, -EBADMSG);
    bench.order[0] = '\0';
    shutdown(bench.peer, SHUT_WR);
    settle(&bench);
    assert_string_equal(bench.order, " a:eof b:eof c:eof a:inactive c:inactive c:removed a:removed "
                                     "b:inactive b:removed");
    end(&bench);
}

static void test_pipeline_l58_bound_handlers_follow_each_other(void **state)
{
    struct bench bench;
    (void)state;
    begin(&bench, "xx");
    for (int i = 0; i < 2; i++) {
        bench.probes[i].on_event = note;
        bench.probes[i].on_read = note_and_pass;
    }
    feed(&bench, "xyz");
    settle(&bench);
    assert_int_equal(bench.probes[1].n_bytes, 3);
    shutdown(bench.peer, SHUT_WR);
    settle(&bench);
    assert_int_equal(bench.probes[1].n_eofs, 1);
    assert_int_equal(bench.probes[0].n_removed, 1);
    end(&bench);
}

static void test_pipeline_l58_what_is_passed_on_waits_while_reading_is_paused(void **state)
{
    struct bench bench;
    (void)state;
    begin(&bench, "xl");
    bench.probes[0].on_read = note_and_pass;
    feed(&bench, "abc");
    net_run_until(&bench.net, atomic_load(&bench.net.n_recv) > 0);
    bow_channel_pause_read(bench.channel);
    settle(&bench);
    assert_int_equal(bench.probes[0].n_bytes, 3);
    assert_int_equal(bench.probes[1].n_bytes, 0);
    bow_channel_resume_read(bench.channel);
    settle(&bench);
    assert_int_equal(bench.probes[1].n_bytes, 3);
    end(&bench);
}

/* Output */

static size_t echo_all(struct probe *probe, const struct bow_buf *bytes)
{
    struct bow_buf copy = *bytes;

    if (probe->n_reads % 2 == 0) {
        assert_int_equal(
            bow_channel_write_and_flush(probe->handler.channel, bytes, probe_done, probe), 0);
        return bytes->len;
    }
    assert_int_equal(bow_buf_share(bow_loop_context(probe->net->loop), bytes, &copy), 0);
    assert_int_equal(bow_handler_write(&probe->handler, &copy, probe_done, probe), 0);
    bow_handler_flush(&probe->handler);
    return bytes->len;
}

static void test_pipeline_l58_bound_handler_writes_flushes_and_closes(void **state)
{
    struct bench bench;
    char text[9] = {0};
    (void)state;
    begin(&bench, "x");
    bench.probes[0].on_read = echo_all;
    feed(&bench, "ping");
    settle(&bench);
    feed(&bench, "pong");
    settle(&bench);
    assert_int_equal(recv(bench.peer, text, 8, 0), 8);
    assert_string_equal(text, "pingpong");
    assert_int_equal(bench.probes[0].n_completions, 2);
    bow_handler_close(&bench.probes[0].handler, -EACCES);
    settle(&bench);
    assert_int_equal(bench.probes[0].inactive_error, -EACCES);
    assert_int_equal(bench.probes[0].n_removed, 1);
    end(&bench);
}

static void answer_late(struct bow_handler *handler)
{
    const struct bow_buf buf = bow_buf_borrow("late", 4);

    assert_int_equal(bow_channel_write_and_flush(handler->channel, &buf, NULL, NULL), 0);
}

static size_t read_and_answer_late(struct bow_handler *handler, const struct bow_buf *bytes)
{
    answer_late(handler);
    return bytes->len;
}

static const struct bow_handler_ops reader_ops = {.name = "reader",
                                                  .on_read = read_and_answer_late};

/* Without on_eof the channel ends with its peer, but only behind what the executor makes of the
 * bytes. */
static void test_pipeline_l58_end_of_the_peer_stays_behind_its_bytes(void **state)
{
    struct bench bench;
    struct bow_handler reader = {.ops = &reader_ops};
    char text[5] = {0};
    (void)state;
    begin(&bench, "");
    assert_int_equal(bow_channel_add_last_on(bench.channel, &reader, bench.executor), 0);
    feed(&bench, "request");
    shutdown(bench.peer, SHUT_WR);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(bow_loop_run_once(bench.net.loop, FAKE_MS), 0);
    }
    assert_true(bow_channel_is_active(bench.channel));
    settle(&bench);
    assert_int_equal(recv(bench.peer, text, 4, 0), 4);
    assert_string_equal(text, "late");
    assert_int_equal(recv(bench.peer, text, 4, 0), 0);
    end(&bench);
}

/* Removal */

static size_t take_two_and_leave(struct probe *probe, const struct bow_buf *bytes)
{
    (void)bytes;
    bow_channel_remove(&probe->handler);
    bow_channel_remove(&probe->handler); /* idempotent */
    assert_int_equal(probe->n_removed, 0);
    return 2;
}

static void test_pipeline_l63_bound_handler_that_leaves_loses_no_byte(void **state)
{
    struct bench bench;
    (void)state;
    begin(&bench, "xl");
    bench.probes[0].on_read = take_two_and_leave;
    feed(&bench, "abcdef");
    net_run_until(&bench.net, atomic_load(&bench.net.n_recv) > 0);
    feed(&bench, "gh"); /* on its way when the handler leaves */
    assert_int_equal(bow_loop_run_once(bench.net.loop, FAKE_S), 0);
    shutdown(bench.peer, SHUT_WR);
    settle(&bench);
    assert_memory_equal(bench.probes[0].bytes, "ab", 2);
    assert_int_equal(bench.probes[0].n_bytes, 2);
    assert_int_equal(bench.probes[1].n_bytes, 6);
    assert_memory_equal(bench.probes[1].bytes, "cdefgh", 6);
    assert_int_equal(bench.probes[1].n_eofs, 1);
    assert_non_null(strstr(bench.probes[0].log, " read:6 removed")); /* and nothing else */
    assert_int_equal(bench.probes[0].n_inactive, 0);
    end(&bench);
}

static void test_pipeline_l58_bound_handler_removed_on_the_loop_sees_nothing_more(void **state)
{
    struct bench bench;
    (void)state;
    begin(&bench, "xl");
    run(&bench);
    feed(&bench, "abc");
    shutdown(bench.peer, SHUT_WR);
    net_run_until(&bench.net, atomic_load(&bench.net.n_recv) >= 2);
    bow_channel_remove(&bench.probes[0].handler); /* bytes and end are on their way to it */
    assert_string_equal(bench.probes[0].log, " added active");
    run(&bench);
    assert_string_equal(bench.probes[0].log, " added active removed");
    settle(&bench);
    assert_memory_equal(bench.probes[1].bytes, "abc", 3);
    assert_int_equal(bench.probes[1].n_eofs, 1);
    assert_non_null(strstr(bench.probes[1].log, "read:3 complete eof"));
    end(&bench);
}

static void test_pipeline_l58_handler_is_added_behind_a_bound_one(void **state)
{
    struct bench bench;
    struct probe late;
    (void)state;
    begin(&bench, "xl");
    bench.probes[0].on_read = note_and_pass;
    probe_init(&late, &bench.net);
    late.keeps = true;
    bow_channel_add_after(&bench.probes[0].handler, &late.handler);
    feed(&bench, "abc");
    settle(&bench);
    assert_int_equal(late.n_bytes, 3);
    assert_int_equal(bench.probes[1].n_bytes, 0);
    end(&bench);
    probe_fini(&late);
    assert_int_equal(late.n_removed, 1);
}

static void test_pipeline_l58_channel_closes_while_a_bound_handler_leaves(void **state)
{
    struct bench bench;
    (void)state;
    begin(&bench, "xl");
    settle(&bench);
    bow_channel_remove(&bench.probes[0].handler);
    bow_channel_close(bench.channel, 0);
    settle(&bench);
    assert_string_equal(bench.probes[0].log, " added active removed");
    assert_int_equal(bench.probes[1].n_inactive, 1);
    end(&bench);
}

/* The end */

static void test_pipeline_l58_bound_handler_hears_the_end_after_the_loops(void **state)
{
    struct bench bench;
    (void)state;
    begin(&bench, "x");
    feed(&bench, "abc");
    net_run_until(&bench.net, atomic_load(&bench.net.n_recv) > 0);
    net_stop(&bench.net);
    assert_string_equal(bench.probes[0].log, "");
    assert_ptr_equal(bench.probes[0].handler.channel, bench.channel);
    assert_false(bow_channel_is_active(bench.channel));
    run(&bench);
    assert_string_equal(bench.probes[0].log, " added active read:3 complete inactive removed");
    assert_int_equal(bench.probes[0].inactive_error, -ESHUTDOWN);
    end(&bench);
}

static void test_pipeline_l58_executor_that_shuts_down_closes_the_channel(void **state)
{
    struct bench bench;
    struct probe refused;
    (void)state;
    begin(&bench, "x");
    run(&bench);
    assert_int_equal(bow_executor_shutdown(bench.executor, 0, 0), 0);
    assert_int_equal(bow_executor_run(bench.executor), 0);
    probe_init(&refused, &bench.net);
    assert_int_equal(bow_channel_add_last_on(bench.channel, &refused.handler, bench.executor),
                     -ESHUTDOWN);
    feed(&bench, "abc");
    net_run_until(&bench.net, bench.probes[0].n_removed == 1);
    assert_string_equal(bench.probes[0].log, " added active inactive removed");
    assert_int_equal(bench.probes[0].inactive_error, -ESHUTDOWN);
    assert_string_equal(refused.log, "");
    end(&bench);
}

static void test_pipeline_l58_handler_leaves_an_executor_that_has_shut_down(void **state)
{
    struct bench bench;
    (void)state;
    begin(&bench, "xl");
    run(&bench);
    assert_int_equal(bow_executor_shutdown(bench.executor, 0, 0), 0);
    assert_int_equal(bow_executor_run(bench.executor), 0);
    bow_channel_remove(&bench.probes[0].handler);
    assert_int_equal(bench.probes[0].n_removed, 0); /* not inside */
    net_run_until(&bench.net, bench.probes[0].n_removed == 1);
    feed(&bench, "abc");
    net_run_until(&bench.net, bench.probes[1].n_bytes == 3);
    end(&bench);
}

static int no_write(struct bow_handler *handler, struct bow_buf *buf, bow_write_fn done, void *user)
{
    return bow_handler_write(handler, buf, done, user);
}

static void test_pipeline_l58_handler_of_output_is_not_bound(void **state)
{
    const struct bow_handler_ops ops = {.name = "writer", .on_write = no_write};
    struct bow_handler writer = {.ops = &ops};
    struct bench bench;
    (void)state;
    begin(&bench, "");
    assert_int_equal(bow_channel_add_last_on(bench.channel, &writer, bench.executor), -EINVAL);
    end(&bench);
}

/* Back-pressure */

static size_t send_while_it_goes(struct bench *bench, size_t sent)
{
    uint8_t bytes[4096];
    ssize_t n;

    do {
        net_fill_pattern(bytes, sizeof(bytes), sent);
        n = send(bench->peer, bytes, sizeof(bytes), MSG_NOSIGNAL);
        sent += n > 0 ? (size_t)n : 0;
    } while (n > 0);
    return sent;
}

static size_t read_in(struct bench *bench)
{
    /* What the kernel holds at most: nothing more is taken by the loop. */
    size_t sent = 0;
    size_t before;

    do {
        before = sent;
        sent = send_while_it_goes(bench, sent);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(bow_loop_run_once(bench->net.loop, FAKE_MS), 0);
        }
    } while (sent > before);
    return sent;
}

static void test_pipeline_l58_reading_pauses_while_much_waits_for_the_executor(void **state)
{
    struct bench bench;
    (void)state;
    begin(&bench, "x");
    bench.probes[0].keeps = false;
    bench.probes[0].checks_pattern = true;
    size_t sent = read_in(&bench);
    size_t waiting = bow_context_bytes(bench.net.t.context);
    assert_in_range(waiting, MAX_WAITING, 4 * MAX_WAITING + ((size_t)512 << 10));
    run(&bench);
    size_t taken = bench.probes[0].n_bytes;
    assert_in_range(taken, MAX_WAITING / 2, 2 * MAX_WAITING + ((size_t)256 << 10));
    assert_true(taken < sent);
    settle(&bench);
    while (bench.probes[0].n_bytes < sent) {
        settle(&bench);
    }
    assert_int_equal(bench.probes[0].n_bytes, sent);
    end(&bench);
}

static void test_pipeline_l58_users_pause_and_that_of_the_executor_are_two(void **state)
{
    struct bench bench;
    (void)state;
    begin(&bench, "x");
    bench.probes[0].keeps = false;
    size_t sent = read_in(&bench);
    int n_recv = atomic_load(&bench.net.n_recv);
    bow_channel_pause_read(bench.channel);
    bow_channel_resume_read(bench.channel); /* does not end the other */
    assert_int_equal(bow_loop_run_once(bench.net.loop, FAKE_MS), 0);
    assert_int_equal(bow_loop_run_once(bench.net.loop, FAKE_MS), 0);
    assert_int_equal(atomic_load(&bench.net.n_recv), n_recv);
    bow_channel_pause_read(bench.channel);
    settle(&bench); /* all has been taken, but the user's pause lasts */
    assert_int_equal(atomic_load(&bench.net.n_recv), n_recv);
    bow_channel_resume_read(bench.channel);
    while (bench.probes[0].n_bytes < sent) {
        settle(&bench);
    }
    end(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipeline_l58_events_of_a_bound_handler_come_in_order_on_the_executor),
        cmocka_unit_test(test_pipeline_l58_bound_handler_gets_again_what_it_has_not_consumed),
        cmocka_unit_test(test_pipeline_l58_bound_handler_passes_events_on_from_its_place),
        cmocka_unit_test(test_pipeline_l58_bound_handlers_follow_each_other),
        cmocka_unit_test(test_pipeline_l58_what_is_passed_on_waits_while_reading_is_paused),
        cmocka_unit_test(test_pipeline_l58_bound_handler_writes_flushes_and_closes),
        cmocka_unit_test(test_pipeline_l58_end_of_the_peer_stays_behind_its_bytes),
        cmocka_unit_test(test_pipeline_l63_bound_handler_that_leaves_loses_no_byte),
        cmocka_unit_test(test_pipeline_l58_bound_handler_removed_on_the_loop_sees_nothing_more),
        cmocka_unit_test(test_pipeline_l58_handler_is_added_behind_a_bound_one),
        cmocka_unit_test(test_pipeline_l58_channel_closes_while_a_bound_handler_leaves),
        cmocka_unit_test(test_pipeline_l58_bound_handler_hears_the_end_after_the_loops),
        cmocka_unit_test(test_pipeline_l58_executor_that_shuts_down_closes_the_channel),
        cmocka_unit_test(test_pipeline_l58_handler_leaves_an_executor_that_has_shut_down),
        cmocka_unit_test(test_pipeline_l58_handler_of_output_is_not_bound),
        cmocka_unit_test(test_pipeline_l58_reading_pauses_while_much_waits_for_the_executor),
        cmocka_unit_test(test_pipeline_l58_users_pause_and_that_of_the_executor_are_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
