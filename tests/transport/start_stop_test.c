/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Loops that are started and stopped again while other threads post, schedule and
 * write to a channel at random points (F24, L06, L07). What was accepted has run or
 * has completed when the loop has terminated, and that comes in time.
 *
 *     start_stop_test ROUNDS
 */

#include "tests/support/net.h"
#include "transport/channel/channel.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define N_POSTERS 2
#define MAX_POSTS 12

static int n_rounds = 500;

struct round {
    struct bow_loop *loop;
    struct bow_channel *channel; /* NULL: a round without */
    atomic_int n_accepted;
    atomic_int n_run;
    atomic_int n_writes;
    atomic_int n_completed;
    atomic_int n_scheduled;
};

struct poster {
    struct round *round;
    struct bow_task tasks[MAX_POSTS];
    pthread_t thread;
    unsigned seed;
};

/* Small enough to be repeated from the number of the round. */
static unsigned next(unsigned *seed)
{
    *seed = *seed * 1103515245u + 12345u;
    return *seed >> 16;
}

static int run(void *user)
{
    struct round *round = user;

    atomic_fetch_add(&round->n_run, 1);
    return 0;
}

static int run_scheduled(void *user)
{
    struct round *round = user;

    atomic_fetch_add(&round->n_scheduled, 1);
    return 0;
}

static void on_written(struct bow_channel *channel, int error, void *user)
{
    struct round *round = user;
    (void)channel;
    (void)error;

    atomic_fetch_add(&round->n_completed, 1);
}

static void post_one(struct poster *poster, int i)
{
    struct round *round = poster->round;
    const struct bow_buf bytes = bow_buf_borrow("bowline", 7);
    struct bow_scheduled *scheduled = NULL;

    switch (next(&poster->seed) % 4) {
    case 0:
        bow_task_init(&poster->tasks[i], "run", run, round);
        if (bow_loop_post(round->loop, &poster->tasks[i]) == 0) {
            atomic_fetch_add(&round->n_accepted, 1);
        }
        break;
    case 1:
        if (bow_loop_execute(round->loop, "run", run, round) == 0) {
            atomic_fetch_add(&round->n_accepted, 1);
        }
        break;
    case 2:
        if (bow_loop_schedule(round->loop, BOW_SCHEDULE_FIXED_DELAY, 0, 1000, "tick", run_scheduled,
                              round, &scheduled) == 0 &&
            next(&poster->seed) % 2 == 0) {
            bow_scheduled_cancel(scheduled);
        }
        bow_scheduled_unref(scheduled);
        break;
    default:
        if (round->channel != NULL &&
            bow_channel_write_and_flush(round->channel, &bytes, on_written, round) == 0) {
            atomic_fetch_add(&round->n_writes, 1);
        }
        break;
    }
}

static void *post_all(void *argument)
{
    struct poster *poster = argument;
    int n = (int)(next(&poster->seed) % MAX_POSTS);

    for (int i = 0; i < n; i++) {
        post_one(poster, i);
        if (next(&poster->seed) % 4 == 0) {
            sched_yield();
        }
    }
    return NULL;
}

static int open_channel(struct round *round)
{
    struct bow_channel_options options = BOW_CHANNEL_OPTIONS_INIT;
    const struct bow_sockaddr peer = {.storage.ss_family = AF_UNIX, .len = sizeof(sa_family_t)};
    struct bow_channel *channel = NULL;
    int fds[2];

    net_pair(NET_UNIX, fds);
    const struct bow__socket connected = {fds[0], bow__loop_system(round->loop), NULL};
    const struct bow__channel_birth birth = {
        .loop = round->loop, .socket = &connected, .peer = &peer, .options = &options};
    assert_int_equal(bow__channel_new(&birth, &channel), 0);
    round->channel = bow_channel_ref(channel);
    assert_int_equal(bow__channel_start(channel), 0);
    return fds[1];
}

/* Shut down at some point of all this, in one of the ways there are. */
static void stop(struct round *round, unsigned *seed)
{
    unsigned n_yields = next(seed) % 8;

    for (unsigned i = 0; i < n_yields; i++) {
        sched_yield();
    }
    uint64_t quiet_ns = next(seed) % 2 * 50 * FAKE_US;
    uint64_t timeout_ns = next(seed) % 2 * FAKE_MS;
    assert_int_equal(bow_loop_shutdown(round->loop, quiet_ns, timeout_ns), 0);
    if (next(seed) % 4 == 0) {
        assert_int_equal(bow_loop_join(round->loop, 10 * FAKE_S), 0);
    }
}

static void play(struct loops *t, unsigned seed)
{
    struct round round = {.loop = loops_new_threaded(t)};
    struct poster posters[N_POSTERS];
    unsigned n_posters = next(&seed) % (N_POSTERS + 1);
    int peer = next(&seed) % 2 == 0 ? open_channel(&round) : -1;

    for (unsigned i = 0; i < n_posters; i++) {
        posters[i] = (struct poster){.round = &round, .seed = seed + i};
        assert_int_equal(pthread_create(&posters[i].thread, NULL, post_all, &posters[i]), 0);
    }
    stop(&round, &seed);
    for (unsigned i = 0; i < n_posters; i++) {
        pthread_join(posters[i].thread, NULL);
    }
    assert_int_equal(bow_loop_join(round.loop, 10 * FAKE_S), 0);
    assert_int_equal(bow_loop_get_state(round.loop), BOW_LOOP_TERMINATED);
    assert_int_equal(round.n_run, round.n_accepted);
    assert_int_equal(round.n_completed, round.n_writes);
    bow_channel_unref(round.channel);
    bow_loop_unref(round.loop);
    if (peer >= 0) {
        close(peer);
    }
}

static void
test_loop_f24_stopped_at_random_points_it_ends_in_time_and_abandons_nothing(void **state)
{
    struct loops t;

    (void)state;
    loops_begin_real(&t);
    for (int i = 0; i < n_rounds; i++) {
        play(&t, (unsigned)i);
        assert_int_equal(bow_context_bytes(t.context), 0);
    }
    loops_end(&t);
}

/* The last reference instead of a shutdown: what was accepted has run when it returns. */
static void test_loop_f24_the_last_reference_abandons_nothing_either(void **state)
{
    struct loops t;

    (void)state;
    loops_begin_real(&t);
    for (int i = 0; i < n_rounds; i++) {
        struct round round = {.loop = loops_new_threaded(&t)};
        for (int k = 0; k < i % 7; k++) {
            assert_int_equal(bow_loop_execute(round.loop, "run", run, &round), 0);
        }
        if (i % 3 == 0) {
            bow_loop_shutdown(round.loop, 0, 0);
        }
        bow_loop_unref(round.loop);
        assert_int_equal(round.n_run, i % 7);
    }
    loops_end(&t);
}

/* Who posts to a loop that never started, as it is shut down */

struct race {
    struct bow_loop *_Atomic loop; /* NULL: the poster is done with it */
    atomic_bool is_over;
    atomic_uint delay;
    atomic_int n_run;
    int n_accepted;
};

static int run_raced(void *user)
{
    struct race *race = user;

    atomic_fetch_add(&race->n_run, 1);
    return 0;
}

static void spin(unsigned n)
{
    for (volatile unsigned i = 0; i < n; i++) {
    }
}

static void *post_raced(void *argument)
{
    struct race *race = argument;

    while (!atomic_load(&race->is_over)) {
        struct bow_loop *loop = atomic_load(&race->loop);

        if (loop == NULL) {
            sched_yield();
            continue;
        }
        spin(atomic_load(&race->delay));
        race->n_accepted += bow_loop_execute(loop, "run", run_raced, race) == 0;
        atomic_store(&race->loop, NULL);
    }
    return NULL;
}

static void test_loop_f24_who_posts_as_an_unstarted_one_ends_is_refused_or_run(void **state)
{
    struct loops t;
    struct race race = {.loop = NULL};
    pthread_t poster;
    unsigned seed = 1;

    (void)state;
    loops_begin_real(&t);
    assert_int_equal(pthread_create(&poster, NULL, post_raced, &race), 0);
    for (int i = 0; i < 10 * n_rounds; i++) {
        struct bow_loop *loop = loops_new_threaded(&t);

        atomic_store(&race.delay, next(&seed) % 400);
        atomic_store(&race.loop, loop);
        spin(next(&seed) % 400);
        assert_int_equal(bow_loop_shutdown(loop, 0, 0), 0);
        while (atomic_load(&race.loop) != NULL) {
            sched_yield();
        }
        assert_int_equal(bow_loop_join(loop, 10 * FAKE_S), 0);
        assert_int_equal(race.n_run, race.n_accepted);
        bow_loop_unref(loop);
    }
    atomic_store(&race.is_over, true);
    pthread_join(poster, NULL);
    loops_end(&t);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_loop_f24_stopped_at_random_points_it_ends_in_time_and_abandons_nothing),
        cmocka_unit_test(test_loop_f24_the_last_reference_abandons_nothing_either),
        cmocka_unit_test(test_loop_f24_who_posts_as_an_unstarted_one_ends_is_refused_or_run),
    };

    if (argc > 1) {
        n_rounds = atoi(argv[1]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
