/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A handler bound to an executor with threads (L58): closing and removing under it, many at once.
 */

#include "tests/support/gate.h"
#include "tests/support/net.h"

#include <bowline/executor.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define N_CHANNELS 6
#define N_BYTES ((size_t)300 << 10)

static struct bow_executor *new_executor(struct net *net, uint32_t n_threads)
{
    struct bow_executor_options options = BOW_EXECUTOR_OPTIONS_INIT;
    struct bow_executor *executor = NULL;

    options.n_threads = n_threads;
    options.max_channel_bytes = (size_t)32 << 10;
    assert_int_equal(bow_executor_new(net->t.context, &options, &executor), 0);
    return executor;
}

/* A handler that the test holds up in its on_read. Its memory goes with on_removed. */
struct slow {
    struct bow_handler handler;
    struct net *net;
    struct gate *entered;
    struct gate *let_go;
    struct gate *removed;
    int write_rc;
    bool closes;
    atomic_int n_inactive;
    atomic_int *told; /* how many callbacks came, by then */
};

static size_t slow_read(struct bow_handler *handler, const struct bow_buf *bytes)
{
    struct slow *slow = (struct slow *)(void *)handler;

    assert_false(bow_loop_in_loop(slow->net->loop));
    gate_add(slow->entered);
    gate_wait(slow->let_go, 1);
    slow->write_rc = bow_channel_write_and_flush(handler->channel, bytes, NULL, NULL);
    if (slow->closes) {
        bow_channel_close(handler->channel, -EACCES);
    }
    return bytes->len;
}

static void slow_inactive(struct bow_handler *handler, int error)
{
    struct slow *slow = (struct slow *)(void *)handler;

    (void)error;
    atomic_fetch_add(slow->told, 1);
    atomic_fetch_add(&slow->n_inactive, 1);
}

static void slow_removed(struct bow_handler *handler)
{
    struct slow *slow = (struct slow *)(void *)handler;
    struct gate *removed = slow->removed;

    atomic_fetch_add(slow->told, slow->write_rc == -EPIPE ? 100 : 10);
    free(slow);
    gate_add(removed);
}

static const struct bow_handler_ops slow_ops = {
    .name = "slow",
    .on_read = slow_read,
    .on_inactive = slow_inactive,
    .on_removed = slow_removed,
};

struct hold_up {
    struct net net;
    struct bow_executor *executor;
    struct bow_channel *channel;
    struct slow *slow;
    struct gate entered;
    struct gate let_go;
    struct gate removed;
    atomic_int told;
    int peer;
};

static void begin(struct hold_up *test, bool closes)
{
    memset(test, 0, sizeof(*test));
    net_begin(&test->net);
    gate_init(&test->entered);
    gate_init(&test->let_go);
    gate_init(&test->removed);
    test->executor = new_executor(&test->net, 2);
    test->slow = calloc(1, sizeof(*test->slow));
    assert_non_null(test->slow);
    *test->slow = (struct slow){.handler.ops = &slow_ops,
                                .net = &test->net,
                                .entered = &test->entered,
                                .let_go = &test->let_go,
                                .removed = &test->removed,
                                .closes = closes,
                                .told = &test->told};
    test->channel = net_channel(&test->net, NET_UNIX, &test->peer, NULL, 0);
    assert_int_equal(bow_channel_add_last_on(test->channel, &test->slow->handler, test->executor),
                     0);
    assert_int_equal(send(test->peer, "ping", 4, MSG_NOSIGNAL), 4);
    while (gate_count(&test->entered) == 0) {
        net_turn(&test->net);
    }
}

static void end(struct hold_up *test)
{
    gate_wait(&test->removed, 1);
    close(test->peer);
    net_stop(&test->net);
    bow_executor_unref(test->executor);
    gate_fini(&test->entered);
    gate_fini(&test->let_go);
    gate_fini(&test->removed);
    net_end(&test->net);
}

static void test_pipeline_l58_channel_closes_while_its_handler_runs_elsewhere(void **state)
{
    struct hold_up test;
    (void)state;
    begin(&test, false);
    bow_channel_close(test.channel, 0);
    net_run_until(&test.net, !bow_channel_is_active(test.channel));
    net_turn(&test.net); /* the loop is done with it, the handler is not */
    assert_int_equal(atomic_load(&test.told), 0);
    gate_add(&test.let_go);
    gate_wait(&test.removed, 1);
    assert_int_equal(atomic_load(&test.told), 101); /* write refused, inactive, removed */
    end(&test);
}

static void test_pipeline_l58_loop_ends_while_a_handler_runs_elsewhere(void **state)
{
    struct hold_up test;
    (void)state;
    begin(&test, false);
    net_stop(&test.net);
    gate_add(&test.let_go);
    gate_wait(&test.removed, 1);
    assert_int_equal(atomic_load(&test.told), 101);
    end(&test);
}

static void test_pipeline_l58_executor_shuts_down_while_its_handler_runs(void **state)
{
    struct hold_up test;
    (void)state;
    begin(&test, false);
    bow_executor_shutdown(test.executor, 0, 0);
    bow_channel_close(test.channel, 0);
    net_run_until(&test.net, !bow_channel_is_active(test.channel));
    net_turn(&test.net);
    assert_int_equal(atomic_load(&test.told), 0); /* the loop does not run it beside the other */
    gate_add(&test.let_go);
    gate_wait(&test.removed, 1);
    assert_int_equal(atomic_load(&test.told), 101);
    end(&test);
}

static void test_pipeline_l58_handler_is_removed_while_it_runs_elsewhere(void **state)
{
    struct hold_up test;
    char text[5] = {0};
    (void)state;
    begin(&test, false);
    bow_channel_remove(&test.slow->handler);
    net_turn(&test.net);
    assert_int_equal(gate_count(&test.removed), 0); /* not under its running callback */
    gate_add(&test.let_go);
    net_recv_all(&test.net, test.peer, text, 4);
    assert_string_equal(text, "ping");
    gate_wait(&test.removed, 1);
    assert_int_equal(atomic_load(&test.told), 10); /* removed, and not inactive */
    assert_true(bow_channel_is_active(test.channel));
    end(&test);
}

static void test_pipeline_l58_bound_handler_closes_its_channel(void **state)
{
    struct hold_up test;
    (void)state;
    begin(&test, true);
    gate_add(&test.let_go);
    net_run_until(&test.net, gate_count(&test.removed) == 1);
    assert_int_equal(atomic_load(&test.told), 11);
    end(&test);
}

/* Many at once */

struct echo {
    struct bow_handler handler;
    struct bow_channel *channel;
    struct bow_executor *executor;
    size_t n_read;
    atomic_int n_inactive;
    atomic_int n_removed;
    int peer;
    size_t sent;
    size_t received;
};

static struct echo *echo_of(struct bow_handler *handler)
{
    return (struct echo *)(void *)handler;
}

/* Leaves a byte behind now and then, so that some comes again. */
static size_t echo_read(struct bow_handler *handler, const struct bow_buf *bytes)
{
    struct echo *echo = echo_of(handler);
    bool is_end = echo->n_read + bytes->len == N_BYTES;
    size_t n = !is_end && bytes->len % 3 == 0 ? bytes->len - 1 : bytes->len;
    const struct bow_buf part = {bytes->data, n, bytes->block};

    assert_true(bow_executor_in_executor(echo->executor));
    assert_true(net_is_pattern(bytes->data, bytes->len, echo->n_read));
    echo->n_read += n;
    int rc = bow_channel_write_and_flush(handler->channel, &part, NULL, NULL);
    assert_true(rc == 0 || rc == -EPIPE);
    return n;
}

static void echo_inactive(struct bow_handler *handler, int error)
{
    (void)error;
    atomic_fetch_add(&echo_of(handler)->n_inactive, 1);
}

static void echo_removed(struct bow_handler *handler)
{
    atomic_fetch_add(&echo_of(handler)->n_removed, 1);
}

static const struct bow_handler_ops echo_ops = {
    .name = "echo",
    .on_read = echo_read,
    .on_inactive = echo_inactive,
    .on_removed = echo_removed,
};

static void start_echo(struct net *net, struct echo *echo, struct bow_executor *executor)
{
    memset(echo, 0, sizeof(*echo));
    echo->handler.ops = &echo_ops;
    echo->executor = executor;
    echo->channel = bow_channel_ref(net_channel(net, NET_UNIX, &echo->peer, NULL, 0));
    assert_int_equal(bow_channel_add_last_on(echo->channel, &echo->handler, executor), 0);
}

static void pump(struct echo *echo)
{
    uint8_t bytes[8192];
    size_t left = N_BYTES - echo->sent;
    size_t len = left < sizeof(bytes) ? left : sizeof(bytes);

    if (len > 0) {
        net_fill_pattern(bytes, len, echo->sent);
        ssize_t n = send(echo->peer, bytes, len, MSG_NOSIGNAL);
        echo->sent += n > 0 ? (size_t)n : 0;
    }
    ssize_t n = recv(echo->peer, bytes, sizeof(bytes), 0);
    if (n > 0) {
        assert_true(net_is_pattern(bytes, (size_t)n, echo->received));
        echo->received += (size_t)n;
    }
}

static bool all_received(const struct echo *echoes)
{
    for (int i = 0; i < N_CHANNELS; i++) {
        if (echoes[i].received < N_BYTES) {
            return false;
        }
    }
    return true;
}

static void end_echoes(struct net *net, struct echo *echoes, struct bow_executor *executor)
{
    net_stop(net);
    bow_executor_unref(executor);
    for (int i = 0; i < N_CHANNELS; i++) {
        assert_int_equal(echoes[i].n_inactive, 1);
        assert_int_equal(echoes[i].n_removed, 1);
        bow_channel_unref(echoes[i].channel);
        close(echoes[i].peer);
    }
    net_end(net);
}

static void test_pipeline_l58_bound_handlers_of_many_channels_keep_each_ones_order(void **state)
{
    struct echo echoes[N_CHANNELS];
    struct net net;
    (void)state;
    net_begin(&net);
    struct bow_executor *executor = new_executor(&net, 3);
    for (int i = 0; i < N_CHANNELS; i++) {
        start_echo(&net, &echoes[i], executor);
    }
    uint64_t until = net_deadline();
    while (!all_received(echoes)) {
        for (int i = 0; i < N_CHANNELS; i++) {
            pump(&echoes[i]);
        }
        assert_int_equal(bow_loop_run_once(net.loop, FAKE_MS), 0);
        assert_false(net_is_late(until + 20 * FAKE_S));
    }
    end_echoes(&net, echoes, executor);
}

/* The same, and all ends at once in the middle: by the loop, the executor, or the channels. */
static void end_in_the_middle(int how)
{
    struct echo echoes[N_CHANNELS];
    struct net net;

    net_begin(&net);
    struct bow_executor *executor = new_executor(&net, 3);
    for (int i = 0; i < N_CHANNELS; i++) {
        start_echo(&net, &echoes[i], executor);
    }
    for (int turn = 0; turn < 10 + how; turn++) {
        for (int i = 0; i < N_CHANNELS; i++) {
            pump(&echoes[i]);
        }
        assert_int_equal(bow_loop_run_once(net.loop, FAKE_MS), 0);
    }
    for (int i = 0; i < N_CHANNELS && how % 3 == 1; i++) {
        if (i % 2 == 0) {
            bow_channel_remove(&echoes[i].handler);
        }
        bow_channel_close(echoes[i].channel, 0);
    }
    if (how % 3 == 2) {
        bow_executor_shutdown(executor, 0, 0);
    }
    assert_int_equal(bow_loop_run_once(net.loop, FAKE_MS), 0);
    net_stop(&net);
    bow_executor_unref(executor);
    for (int i = 0; i < N_CHANNELS; i++) {
        bool was_removed = how % 3 == 1 && i % 2 == 0;
        assert_int_equal(echoes[i].n_inactive, was_removed ? 0 : 1);
        assert_int_equal(echoes[i].n_removed, 1);
        bow_channel_unref(echoes[i].channel);
        close(echoes[i].peer);
    }
    net_end(&net);
}

static void test_pipeline_l58_bound_handlers_hear_the_end_once_whoever_ends_first(void **state)
{
    (void)state;
    for (int how = 0; how < 12; how++) {
        end_in_the_middle(how);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipeline_l58_channel_closes_while_its_handler_runs_elsewhere),
        cmocka_unit_test(test_pipeline_l58_loop_ends_while_a_handler_runs_elsewhere),
        cmocka_unit_test(test_pipeline_l58_executor_shuts_down_while_its_handler_runs),
        cmocka_unit_test(test_pipeline_l58_handler_is_removed_while_it_runs_elsewhere),
        cmocka_unit_test(test_pipeline_l58_bound_handler_closes_its_channel),
        cmocka_unit_test(test_pipeline_l58_bound_handlers_of_many_channels_keep_each_ones_order),
        cmocka_unit_test(test_pipeline_l58_bound_handlers_hear_the_end_once_whoever_ends_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
