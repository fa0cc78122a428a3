/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTING_H
#define BOWLINE_TESTING_H

/*
 * libbowline-testing: your handlers under test, with a server and a client in one
 * thread, a clock that only the test moves, faults where you want them, and at the end a
 * look at what is left. It goes with any test framework; nothing here is for production.
 *
 *     struct bow_test *test;
 *     struct bow_test_pair *pair;
 *     struct bow_test_pair_options options = BOW_TEST_PAIR_OPTIONS_INIT;
 *     options.serve = serve_greeter;                      calls demo__greeter__serve()
 *     rc = bow_test_new(NULL, &test);
 *     rc = bow_test_pair_new(test, &options, &pair);
 *     reply = demo__greeter__say_hello__call(pair->blocking, &request, NULL, &result);
 *     …
 *     rc = bow_test_advance(test, 60 * 1000000000ull);    a minute, at once
 *     assert_int_equal(bow_test_end(test), 0);            nothing is left
 *
 * The connections are inproc: no port, no file. What is beyond the library (a thread or a
 * socket of your handler's) is real, and knows nothing of the clock.
 *
 * Thread: all functions of one test, and everything it makes, on one thread.
 */

#include <bowline/client.h>
#include <bowline/context.h>
#include <bowline/loop.h>
#include <bowline/server.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_test;

/** What a test is made with; begin with BOW_TEST_OPTIONS_INIT. */
struct bow_test_options {
    size_t size;      /* sizeof this struct, set by the INIT */
    size_t max_bytes; /* the context's ceiling; 0: none */
    bow_log_fn log;   /* NULL: nothing is logged */
    void *log_user;
    enum bow_log_level log_level;
};

#define BOW_TEST_OPTIONS_INIT                                                                      \
    BOW__INIT(struct bow_test_options, BOW__SET(log_level, BOW_LOG_WARNING))

/**
 * Make a context whose clock stands still, whose allocations are counted and can be made to fail,
 * and a loop in it that the test drives. `options` NULL: the defaults.
 *
 * Owns:    gives `*ret_test`; end it with bow_test_end()
 * Returns: 0; -ENOMEM; -EMFILE; -EINVAL for an unknown size
 */
BOW_EXPORT BOW_MUST_USE int bow_test_new(const struct bow_test_options *options,
                                         struct bow_test **ret_test);

/**
 * End the pairs and the loop, and look at what is left: memory that nobody freed (printed with who
 * asked for it), calls that no handler answered, parts that do not stop. Prints each finding to
 * stderr. NULL is allowed.
 *
 * Owns:    frees `test`, but keeps it while memory is left that refers to it: give that back, and
 *          call this again
 * Returns: how many findings there are; 0 is what a test asserts
 */
BOW_EXPORT int bow_test_end(struct bow_test *test);

/** The context, for what else you test; drop what you make in it before bow_test_end(). */
BOW_EXPORT struct bow_context *bow_test_context(const struct bow_test *test);
/** The loop of the pairs' servers and clients. It is the test's to run. */
BOW_EXPORT struct bow_loop *bow_test_loop(const struct bow_test *test);

/* Time */

/** Nanoseconds on the clock that all of the context reads. */
BOW_EXPORT uint64_t bow_test_now(const struct bow_test *test);

/** Run the loop until nothing is left to do at this time. Returns: 0; -ELOOP when it is not done
 * after 100,000 turns; -EBUSY inside a callback of the loop. */
BOW_EXPORT int bow_test_run(struct bow_test *test);

/** Move the clock by `by_ns`, from timer to timer: each runs at its own time. Returns as
 * bow_test_run(); the clock stands where it failed. */
BOW_EXPORT int bow_test_advance(struct bow_test *test, uint64_t by_ns);

/* A server and its client */

/** Add services to a server that has not started: pkg__service__serve(server, …). Returns 0 or a
 * negative errno. */
typedef int (*bow_test_serve_fn)(struct bow_server *server, void *user);

/** What a pair is made with; begin with BOW_TEST_PAIR_OPTIONS_INIT and set `serve`. */
struct bow_test_pair_options {
    size_t size; /* sizeof this struct, set by the INIT */
    bow_test_serve_fn serve;
    void *user;                              /* serve's */
    bool grpc;                               /* speak gRPC instead of Bowline's own protocol */
    const struct bow_server_options *server; /* NULL: defaults; context, loop, listen and error are
                                                set, group and workers not */
    const struct bow_client_options *client; /* NULL: defaults; context, loop, target and error are
                                                set */
};

#define BOW_TEST_PAIR_OPTIONS_INIT BOW__INIT(struct bow_test_pair_options, )

/** A server that runs, and clients that connect with their first call. All are the pair's. */
struct bow_test_pair {
    struct bow_server *server;
    struct bow_client *client;   /* on the test's loop: for calls with callbacks; they come within
                                    bow_test_run() and bow_test_advance() */
    struct bow_client *blocking; /* for blocking calls: the loop runs meanwhile, and where all only
                                    wait, the clock moves */
    const char *target;          /* for further clients in the same context */
};

/**
 * Make a pair and start its server.
 *
 * Owns:    gives `*ret_pair`; bow_test_pair_free() or bow_test_end() ends it
 * Returns: 0; -EINVAL (options); -ENOMEM; what `serve` or starting failed with, explained on stderr
 */
BOW_EXPORT BOW_MUST_USE int bow_test_pair_new(struct bow_test *test,
                                              const struct bow_test_pair_options *options,
                                              struct bow_test_pair **ret_pair);

/** Free the clients, stop the server and free it, moving the clock as it takes. Its findings count
 * in bow_test_end(). NULL is allowed. Not inside a callback. */
BOW_EXPORT void bow_test_pair_free(struct bow_test *test, struct bow_test_pair *pair);

/* Faults. They are of all inproc connections of the test's context. */

/** What becomes of a connection. */
enum bow_test_fault {
    BOW_TEST_RESET, /* it breaks: each side reads what was sent before, then -ECONNRESET */
    BOW_TEST_STALL, /* it stands still: neither bytes nor an end arrive, until bow_test_resume() */
};

/** Break all connections that are there, now: for "after n messages", inside of what the n-th
 * message calls. */
BOW_EXPORT void bow_test_break(struct bow_test *test, enum bow_test_fault fault);
/** Break them when `n` more bytes (> 0) were sent, both ways together: the n-th still arrives. */
BOW_EXPORT void bow_test_break_after_bytes(struct bow_test *test, enum bow_test_fault fault,
                                           uint64_t n);
/** Break them when a connection has sent `n` more times (> 0): all that one turn of the loop writes
 * to a connection is sent at once. */
BOW_EXPORT void bow_test_break_after_sends(struct bow_test *test, enum bow_test_fault fault,
                                           uint64_t n);
/** Connections that stand still go on. */
BOW_EXPORT void bow_test_resume(struct bow_test *test);
/** Whether connects are refused from now on. */
BOW_EXPORT void bow_test_refuse(struct bow_test *test, bool refuses);

/* Memory */

/** How often the context has asked for memory so far. */
BOW_EXPORT size_t bow_test_allocations(const struct bow_test *test);
/** Fail the `n`-th allocation from now, once; 0: none. */
BOW_EXPORT void bow_test_fail_allocation(struct bow_test *test, size_t n);
/** Fail the `n`-th allocation from now and all that follow; 0: none. */
BOW_EXPORT void bow_test_fail_allocations(struct bow_test *test, size_t n);
/** How many were made to fail so far. */
BOW_EXPORT size_t bow_test_failed_allocations(const struct bow_test *test);

/** What bow_test_fail_each() runs: makes its pair and does its calls, says what is wrong by a
 * negative result, and leaves nothing but pairs. Want of memory is not wrong; a call that never
 * ends is. */
typedef int (*bow_test_scenario_fn)(struct bow_test *test, void *user);

/**
 * Run `scenario` in a new test each time, with the first allocation failing, then the second, and
 * so on, each once alone and once with all that follow, until a run meets no failure.
 *
 * Returns: how many allocations a run without failure has; or, at the first run that is wrong or
 *          leaves something, -EUCLEAN, with which one it was on stderr; as bow_test_new() where no
 *          test could be made
 */
BOW_EXPORT BOW_MUST_USE int bow_test_fail_each(bow_test_scenario_fn scenario, void *user);

#ifdef __cplusplus
}
#endif
#endif
