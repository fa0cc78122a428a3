/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls begun from other threads than the client's loop's, which end before who begins them
 * has looked at them: by the server, and for want of one. What on_closed and done free, their
 * starter does not touch; what it has got is good.
 */

#include "call_fixture.h"
#include "protos/kinds.bow.h"

#include <bowline/stream.h>
#include <errno.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N_OPENERS = 4, N_EACH = 2500, N_AT_ONCE = 64 };

/* How the opener has its handle, in turn. */
enum keeping { MINE, IN_ITS_STATE, NOWHERE, N_KEEPINGS };

struct opener {
    struct calls *t;
    enum bow_code code; /* that all calls are to end with */
    sem_t room;
    pthread_t thread;
};

/* What belongs to a call, whose last event frees it. */
struct one {
    struct opener *opener;
    enum keeping keeping;
    struct kinds__all__double__stream stream;
    uint64_t id;
};

/* The server ends all at once. */

static void finish(struct kinds__all__double__call call, void *user)
{
    (void)user;
    (void)kinds__all__double__finish(call);
}

static void answer(struct bow_call *call, const Kinds__Number *request, void *user)
{
    (void)user;
    (void)kinds__all__ask__reply(call, request);
}

static const struct kinds__all__handlers handlers = {.double_ = finish, .ask = answer};

static int setup_bare(void **state)
{
    struct bow_client_options options;

    assert_int_equal(calls_setup_bare(state), 0);
    struct calls *t = *state;
    snprintf(t->target, sizeof(t->target), "%s%s", calls_is_grpc() ? "grpc:" : "", t->address);
    calls_client_options(t, &options);
    t->client = calls_new_client(t, &options);
    return 0;
}

static int setup(void **state)
{
    struct bow_server_options options;

    assert_int_equal(setup_bare(state), 0);
    struct calls *t = *state;
    calls_server_options(t, &options);
    assert_int_equal(bow_server_new(&options, &t->server), 0);
    assert_int_equal(kinds__all__serve(t->server, &handlers, NULL), 0);
    assert_int_equal(bow_server_start(t->server), 0);
    return 0;
}

/* Threads that begin calls */

static struct one *new_one(struct opener *opener, int index)
{
    struct one *one = calloc(1, sizeof(*one));

    assert_non_null(one);
    one->opener = opener;
    one->keeping = (enum keeping)(index % N_KEEPINGS);
    while (sem_wait(&opener->room) < 0) {
        assert_int_equal(errno, EINTR);
    }
    return one;
}

static void end_one(struct one *one, const struct bow_status *status)
{
    struct opener *opener = one->opener;

    if (status->code != opener->code) {
        fail_msg("%s: %s", bow_code_name(status->code), status->message);
    }
    free(one);
    sem_post(&opener->room);
}

static void run(struct calls *t, enum bow_code code, void *(*begin_all)(void *user))
{
    struct opener openers[N_OPENERS];

    for (int i = 0; i < N_OPENERS; i++) {
        openers[i] = (struct opener){.t = t, .code = code};
        assert_int_equal(sem_init(&openers[i].room, 0, N_AT_ONCE), 0);
        assert_int_equal(pthread_create(&openers[i].thread, NULL, begin_all, &openers[i]), 0);
    }
    for (int i = 0; i < N_OPENERS; i++) {
        pthread_join(openers[i].thread, NULL);
        for (int n = 0; n < N_AT_ONCE; n++) { /* all have ended */
            assert_int_equal(sem_wait(&openers[i].room), 0);
        }
        sem_destroy(&openers[i].room);
    }
}

/* Streams */

static void on_closed(struct kinds__all__double__stream stream, struct bow_result *result,
                      void *user)
{
    struct one *one = user;

    if (one->keeping == IN_ITS_STATE) {
        assert_ptr_equal(one->stream.stream, stream.stream);
        bow_stream_unref(one->stream.stream);
    }
    end_one(one, &result->status);
}

static const struct kinds__all__double__stream_events events = {.on_closed = on_closed};

static void use(struct kinds__all__double__stream stream)
{
    Kinds__Number number = KINDS__NUMBER__INIT;

    int rc = kinds__all__double__stream_send(stream, &number);
    assert_true(rc == 0 || rc == -ECANCELED);
    rc = bow_stream_half_close(stream.stream);
    assert_true(rc == 0 || rc == -ECANCELED);
    bow_stream_unref(stream.stream);
}

static void *open_all(void *user)
{
    struct opener *opener = user;

    for (int i = 0; i < N_EACH; i++) {
        struct one *one = new_one(opener, i);
        enum keeping keeping = one->keeping;
        struct kinds__all__double__stream mine = {NULL};
        struct kinds__all__double__stream *handles[N_KEEPINGS] = {&mine, &one->stream, NULL};

        assert_int_equal(
            kinds__all__double__open(opener->t->client, NULL, &events, one, handles[keeping]), 0);
        if (keeping == MINE) {
            use(mine);
        }
    }
    return NULL;
}

static void test_open_elsewhere_the_server_ends_them_at_once(void **state)
{
    run(*state, BOW_OK, open_all);
}

static void test_open_elsewhere_the_loop_fails_them_at_once(void **state)
{
    run(*state, BOW_UNAVAILABLE, open_all);
}

/* Unary calls: what their starter has is a number */

static void on_done(struct bow_result *result, const Kinds__Number *reply, void *user)
{
    struct one *one = user;

    (void)reply;
    assert_true(one->keeping != IN_ITS_STATE || one->id != 0);
    end_one(one, &result->status);
}

static void *start_all(void *user)
{
    struct opener *opener = user;

    for (int i = 0; i < N_EACH; i++) {
        Kinds__Number request = KINDS__NUMBER__INIT;
        struct one *one = new_one(opener, i);
        enum keeping keeping = one->keeping;
        uint64_t mine = 0;
        uint64_t *ids[N_KEEPINGS] = {&mine, &one->id, NULL};

        assert_int_equal(
            kinds__all__ask__start(opener->t->client, &request, NULL, on_done, one, ids[keeping]),
            0);
        assert_true(keeping != MINE || mine != 0);
    }
    return NULL;
}

static void test_open_elsewhere_unary_calls_end_at_once(void **state)
{
    run(*state, BOW_OK, start_all);
}

static void test_open_elsewhere_unary_calls_fail_at_once(void **state)
{
    run(*state, BOW_UNAVAILABLE, start_all);
}

/* Without events there has to be a handle. */
static void test_open_elsewhere_blocking_without_a_handle_is_refused(void **state)
{
    struct calls *t = *state;

    assert_int_equal(kinds__all__double__open(t->client, NULL, NULL, NULL, NULL), -EINVAL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_open_elsewhere_the_server_ends_them_at_once, setup,
                                        calls_teardown),
        cmocka_unit_test_setup_teardown(test_open_elsewhere_the_loop_fails_them_at_once, setup_bare,
                                        calls_teardown),
        cmocka_unit_test_setup_teardown(test_open_elsewhere_unary_calls_end_at_once, setup,
                                        calls_teardown),
        cmocka_unit_test_setup_teardown(test_open_elsewhere_unary_calls_fail_at_once, setup_bare,
                                        calls_teardown),
        cmocka_unit_test_setup_teardown(test_open_elsewhere_blocking_without_a_handle_is_refused,
                                        setup_bare, calls_teardown),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
