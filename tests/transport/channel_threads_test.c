/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A channel and other threads: writing, flushing, closing, while it lives and dies. */

#include "tests/support/net.h"
#include "transport/channel/channel.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define N_THREADS 4
#define N_WRITES 2000

/* One record of the stream: who, and which. */
struct record {
    uint32_t thread;
    uint32_t number;
};

struct writers {
    struct net net;
    struct bow_channel *channel;
    atomic_int n_completed;
    atomic_int n_failed;
    atomic_int n_accepted;
    bool flushes_apart;
};

struct writer {
    struct writers *all;
    pthread_t thread;
    uint32_t number;
};

static void on_written(struct bow_channel *channel, int error, void *user)
{
    struct writers *all = user;

    assert_true(bow_loop_in_loop(bow_channel_loop(channel)));
    atomic_fetch_add(&all->n_completed, 1);
    if (error < 0) {
        atomic_fetch_add(&all->n_failed, 1);
    }
}

static int write_one(struct writers *all, const struct bow_buf *buf, bool flushes_apart)
{
    if (!flushes_apart) {
        return bow_channel_write_and_flush(all->channel, buf, on_written, all);
    }
    int rc = bow_channel_write(all->channel, buf, on_written, all);
    bow_channel_flush(all->channel);
    return rc;
}

static void *write_all(void *argument)
{
    struct writer *writer = argument;
    struct writers *all = writer->all;

    for (uint32_t i = 0; i < N_WRITES; i++) {
        const struct record record = {writer->number, i};
        const struct bow_buf buf = bow_buf_borrow(&record, sizeof(record));
        int rc = write_one(all, &buf, all->flushes_apart);
        if (rc == 0) {
            atomic_fetch_add(&all->n_accepted, 1);
        } else {
            assert_int_equal(rc, -EPIPE);
        }
    }
    return NULL;
}

static void start_writers(struct writers *all, struct writer writers[N_THREADS])
{
    for (uint32_t i = 0; i < N_THREADS; i++) {
        writers[i] = (struct writer){.all = all, .number = i};
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_all, &writers[i]), 0);
    }
}

static void join_writers(struct writer writers[N_THREADS])
{
    for (uint32_t i = 0; i < N_THREADS; i++) {
        pthread_join(writers[i].thread, NULL);
    }
}

static void check_order(bool flushes_apart)
{
    struct writers all = {.flushes_apart = flushes_apart};
    struct writer writers[N_THREADS];
    struct probe probe;
    uint32_t next[N_THREADS] = {0};
    int peer;

    net_begin(&all.net);
    probe_init(&probe, &all.net);
    all.channel = bow_channel_ref(net_channel(&all.net, NET_UNIX, &peer, &probe, 1));
    start_writers(&all, writers);
    for (int i = 0; i < N_THREADS * N_WRITES; i++) {
        struct record record;
        net_recv_all(&all.net, peer, &record, sizeof(record));
        assert_true(record.thread < N_THREADS);
        assert_int_equal(record.number, next[record.thread]);
        next[record.thread]++;
    }
    join_writers(writers);
    net_run_until(&all.net, atomic_load(&all.n_completed) == N_THREADS * N_WRITES);
    assert_int_equal(atomic_load(&all.n_failed), 0);
    bow_channel_unref(all.channel);
    close(peer);
    net_end(&all.net);
}

static void test_channel_threads_l56_writes_keep_each_threads_order(void **state)
{
    (void)state;
    check_order(false);
}

static void test_channel_threads_l56_flush_from_outside_covers_the_writes_before_it(void **state)
{
    (void)state;
    check_order(true);
}

static void *write_then_flush(void *argument)
{
    struct writers *all = argument;
    struct bow_buf buf = bow_buf_borrow("late", 4);

    assert_int_equal(bow_channel_write(all->channel, &buf, NULL, NULL), 0);
    bow_channel_flush(all->channel);
    return NULL;
}

static void *flush_only(void *argument)
{
    struct writers *all = argument;

    bow_channel_flush(all->channel);
    return NULL;
}

static void run_thread(void *(*fn)(void *), struct writers *all)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, fn, all), 0);
    pthread_join(thread, NULL);
}

static int write_meanwhile(void *user)
{
    run_thread(write_then_flush, user);
    return 0;
}

/* A flush that was asked for before the write is already among the loop's own tasks; the write is
 * not. */
static void test_channel_threads_l56_flush_waits_for_a_write_that_is_not_taken_in(void **state)
{
    struct writers all = {.flushes_apart = true};
    struct probe probe;
    struct bow_task task;
    char text[5] = {0};
    int peer;
    (void)state;
    net_begin(&all.net);
    probe_init(&probe, &all.net);
    all.channel = bow_channel_ref(net_channel(&all.net, NET_UNIX, &peer, &probe, 1));
    bow_task_init(&task, "write meanwhile", write_meanwhile, &all);
    assert_int_equal(bow_loop_post(all.net.loop, &task), 0);
    run_thread(flush_only, &all);
    net_recv_all(&all.net, peer, text, 4);
    assert_string_equal(text, "late");
    bow_channel_unref(all.channel);
    close(peer);
    net_end(&all.net);
}

static void test_channel_threads_each_write_completes_once_when_it_closes_meanwhile(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        struct writers all = {.flushes_apart = round % 2 == 0};
        struct writer writers[N_THREADS];
        struct probe probe;
        int peer;

        net_begin(&all.net);
        probe_init(&probe, &all.net);
        all.channel = bow_channel_ref(net_channel(&all.net, NET_UNIX, &peer, &probe, 1));
        start_writers(&all, writers);
        for (int i = 0; i < round; i++) {
            net_turn(&all.net);
        }
        if (round % 4 == 3) {
            net_stop(&all.net); /* the loop itself ends under the writers */
        } else {
            close(peer);
            peer = -1;
            net_run_until(&all.net, probe.n_removed == 1);
        }
        join_writers(writers);
        if (all.net.loop != NULL) {
            net_stop(&all.net);
        }
        assert_int_equal(atomic_load(&all.n_completed), atomic_load(&all.n_accepted));
        bow_channel_unref(all.channel);
        if (peer >= 0) {
            close(peer);
        }
        net_end(&all.net);
    }
}

static void *shut_and_close(void *argument)
{
    struct writers *all = argument;
    const struct bow_buf buf = bow_buf_borrow("bye", 3);

    assert_int_equal(bow_channel_write(all->channel, &buf, on_written, all), 0);
    bow_channel_shutdown_write(all->channel);
    bow_channel_shutdown_write(all->channel);
    return NULL;
}

static void *close_it(void *argument)
{
    struct writers *all = argument;

    bow_channel_close(all->channel, -EACCES);
    bow_channel_close(all->channel, -EIO);
    return NULL;
}

static void test_channel_threads_l59_shutdown_and_close_from_outside(void **state)
{
    struct writers all = {.flushes_apart = false};
    struct probe probe;
    pthread_t thread;
    char text[4] = {0};
    int peer;
    (void)state;
    net_begin(&all.net);
    probe_init(&probe, &all.net);
    all.channel = bow_channel_ref(net_channel(&all.net, NET_UNIX, &peer, &probe, 1));
    pthread_create(&thread, NULL, shut_and_close, &all);
    net_recv_all(&all.net, peer, text, 3);
    assert_string_equal(text, "bye");
    pthread_join(thread, NULL);
    net_run_until(&all.net, recv(peer, text, 1, 0) == 0);
    assert_true(bow_channel_is_active(all.channel));
    pthread_create(&thread, NULL, close_it, &all);
    net_run_until(&all.net, probe.n_removed == 1);
    pthread_join(thread, NULL);
    assert_int_equal(probe.inactive_error, -EACCES);
    bow_channel_unref(all.channel);
    close(peer);
    net_end(&all.net);
}

/* A channel given to a loop that has no thread yet */

static int new_channel(struct bow_loop *loop, int *ret_peer, struct bow_channel **ret_channel)
{
    const struct bow_sockaddr peer = {.storage.ss_family = AF_UNIX, .len = sizeof(sa_family_t)};
    struct bow_channel_options options = BOW_CHANNEL_OPTIONS_INIT;
    int fds[2];

    net_pair(NET_UNIX, fds);
    *ret_peer = fds[1];
    const struct bow__socket connected = {fds[0], bow__loop_system(loop), NULL};
    const struct bow__channel_birth birth = {
        .loop = loop, .socket = &connected, .peer = &peer, .options = &options};
    assert_int_equal(bow__channel_new(&birth, ret_channel), 0);
    return bow__channel_start(*ret_channel);
}

static void test_loop_l02_first_channel_starts_the_thread(void **state)
{
    struct loops t;
    struct bow_channel *channel = NULL;
    char end = 0;
    int peer = -1;
    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_threaded(&t);
    assert_int_equal(new_channel(loop, &peer, &channel), 0);
    assert_int_equal(atomic_load(&t.fake.n_threads), 1);
    loops_stop(loop);
    assert_int_equal(recv(peer, &end, 1, 0), 0); /* it lived, and was closed with its loop */
    close(peer);
    loops_end(&t);
}

static void test_loop_l02_channel_without_a_thread_is_closed_with_the_error(void **state)
{
    struct loops t;
    struct bow_channel *channel = NULL;
    char end = 0;
    int peer = -1;
    (void)state;
    loops_begin(&t);
    struct bow_loop *loop = loops_new_threaded(&t);
    t.fake.thread_error = -EAGAIN;
    assert_int_equal(new_channel(loop, &peer, &channel), -EAGAIN);
    assert_int_equal(bow_loop_get_state(loop), BOW_LOOP_NOT_STARTED);
    assert_int_equal(recv(peer, &end, 1, 0), 0);
    close(peer);
    bow_loop_unref(loop);
    loops_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_channel_threads_l56_writes_keep_each_threads_order),
        cmocka_unit_test(test_channel_threads_l56_flush_from_outside_covers_the_writes_before_it),
        cmocka_unit_test(test_channel_threads_l56_flush_waits_for_a_write_that_is_not_taken_in),
        cmocka_unit_test(test_channel_threads_each_write_completes_once_when_it_closes_meanwhile),
        cmocka_unit_test(test_channel_threads_l59_shutdown_and_close_from_outside),
        cmocka_unit_test(test_loop_l02_first_channel_starts_the_thread),
        cmocka_unit_test(test_loop_l02_channel_without_a_thread_is_closed_with_the_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
