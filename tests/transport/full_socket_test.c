/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A socket whose peer takes nothing holds up nobody (F17): writing, closing, tasks and a
 * shutdown from other threads return in time, and so does the loop to its work.
 */

#include "tests/support/net.h"
#include "transport/channel/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define N_THREADS 4
#define N_WRITES 100
#define PIECE_BYTES 65536
/* Far more than it takes, far less than a peer that never reads. */
#define IN_TIME_NS (5 * FAKE_S)

struct full {
    struct loops t;
    struct bow_loop *loop;
    struct bow_channel *channel;
    int peer;
    uint8_t *bytes;
    atomic_int n_accepted;
    atomic_int n_completed;
    atomic_int n_succeeded;
    atomic_int n_run;
};

/* The descriptor comes as the library's own way of making it leaves it. */
static void open_socket(struct full *full, int *ret_fd)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    const struct bow_system *system = bow_system_default();

    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(listener >= 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &len), 0);
    full->peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(full->peer, (struct sockaddr *)&address, len), 0);
    struct bow_sockaddr from;
    *ret_fd = system->accept(system->user, listener, &from);
    assert_true(*ret_fd >= 0);
    close(listener);
}

static void begin(struct full *full)
{
    struct bow_channel_options options = BOW_CHANNEL_OPTIONS_INIT;
    const struct bow_sockaddr peer = {.storage.ss_family = AF_INET,
                                      .len = sizeof(struct sockaddr_in)};
    int fd = -1;

    loops_begin_real(&full->t);
    full->loop = loops_new_threaded(&full->t);
    full->bytes = calloc(1, PIECE_BYTES);
    assert_non_null(full->bytes);
    open_socket(full, &fd);
    const struct bow__socket connected = {fd, bow__loop_system(full->loop), NULL};
    const struct bow__channel_birth birth = {
        .loop = full->loop, .socket = &connected, .peer = &peer, .options = &options};
    struct bow_channel *channel = NULL;
    assert_int_equal(bow__channel_new(&birth, &channel), 0);
    full->channel = bow_channel_ref(channel);
    assert_int_equal(bow__channel_start(channel), 0);
}

static void end(struct full *full)
{
    bow_channel_unref(full->channel);
    bow_loop_unref(full->loop);
    close(full->peer);
    free(full->bytes);
    loops_end(&full->t);
}

static void on_written(struct bow_channel *channel, int error, void *user)
{
    struct full *full = user;
    (void)channel;

    atomic_fetch_add(&full->n_completed, 1);
    atomic_fetch_add(&full->n_succeeded, error == 0);
}

static void *write_much(void *argument)
{
    struct full *full = argument;
    const struct bow_buf buf = bow_buf_borrow(full->bytes, PIECE_BYTES);

    for (int i = 0; i < N_WRITES; i++) {
        if (bow_channel_write_and_flush(full->channel, &buf, on_written, full) == 0) {
            atomic_fetch_add(&full->n_accepted, 1);
        }
    }
    return NULL;
}

static void write_from_all_threads(struct full *full)
{
    pthread_t threads[N_THREADS];

    for (int i = 0; i < N_THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, write_much, full), 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(full->n_accepted, N_THREADS * N_WRITES);
}

/* Has the loop run a task that was posted now? */
static void expect_loop_to_answer(struct full *full)
{
    uint64_t until = net_deadline();
    int n = full->n_run;

    assert_int_equal(bow_loop_execute(full->loop, "answer", loops_count_run, &full->n_run), 0);
    while (atomic_load(&full->n_run) == n) {
        assert_false(net_is_late(until));
        sched_yield();
    }
}

static void test_channel_l56_f17_full_socket_holds_up_no_thread_and_no_task(void **state)
{
    struct full full = {.peer = -1};
    uint64_t until = net_deadline();

    (void)state;
    begin(&full);
    write_from_all_threads(&full);
    expect_loop_to_answer(&full);
    assert_true(atomic_load(&full.n_completed) < full.n_accepted); /* it is full */
    bow_channel_close(full.channel, -ECANCELED);
    while (atomic_load(&full.n_completed) < full.n_accepted) {
        assert_false(net_is_late(until));
        sched_yield();
    }
    assert_true(full.n_succeeded < full.n_accepted);
    expect_loop_to_answer(&full);
    bow_loop_shutdown(full.loop, 0, 0);
    assert_int_equal(bow_loop_join(full.loop, IN_TIME_NS), 0);
    end(&full);
}

static void test_loop_l08_f17_shutdown_does_not_wait_for_a_full_socket(void **state)
{
    struct full full = {.peer = -1};

    (void)state;
    begin(&full);
    write_from_all_threads(&full);
    bow_loop_shutdown(full.loop, 0, 0);
    assert_int_equal(bow_loop_join(full.loop, IN_TIME_NS), 0);
    assert_int_equal(full.n_completed, full.n_accepted);
    assert_true(full.n_succeeded < full.n_accepted);
    end(&full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_channel_l56_f17_full_socket_holds_up_no_thread_and_no_task),
        cmocka_unit_test(test_loop_l08_f17_shutdown_does_not_wait_for_a_full_socket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
