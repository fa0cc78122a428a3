/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A server's end, in order: lame duck, listeners closed, GOAWAY on each
 * connection, grace for the calls in flight, close. It runs on the main loop.
 *
 * Listeners close first, all of them: connections they had handed to workers have
 * arrived there before the worker is told to drain.
 */

#include "rpc/server/server_stop.h"
#include "base/log.h"
#include "rpc/core/errors.h"
#include "rpc/server/hand_over.h"
#include "rpc/server/operations/operations.h"
#include "rpc/server/server_fork.h"
#include "rpc/server/server_metrics.h"
#include <bowline/metrics.h>

#include <errno.h>
#include <inttypes.h>

/* The operations listener tells of the drain to its end: it is the last part. Under the lock. */
static bool is_operations_turn(struct bow_server *server)
{
    bool is_turn = server->runs_operations && server->n_parts == 1 && !server->ends_operations;

    server->ends_operations = server->ends_operations || is_turn;
    return is_turn;
}

static void end_operations(struct bow_server *server);

/*
 * Any thread: the main loop may have ended before a worker's. The reference for
 * serving goes under the lock, so that one who waited for the end and frees the
 * server frees it there, and not this thread later.
 */
static void part_done(struct bow_server *server)
{
    bool destroys = false;

    pthread_mutex_lock(&server->lock);
    server->n_parts--;
    bool ends_operations = is_operations_turn(server);
    if (server->n_parts == 0) {
        server->state = BOW__SERVER_STOPPED;
        if (server->run_loop != NULL) {
            (void)!bow__loop_post_internal(server->run_loop, &server->run_task, 0);
        }
        pthread_cond_broadcast(&server->stopped);
        destroys = bow__server_drop(server);
    }
    pthread_mutex_unlock(&server->lock);
    if (destroys) {
        bow__server_destroy(server);
    }
    if (ends_operations) {
        end_operations(server);
    }
}

/* What is posted to the main loop is a part until it has run, so that the server does not end
 * before it: that loop may shut down meanwhile, and the last of the others report elsewhere. */
static bool add_part(struct bow_server *server)
{
    pthread_mutex_lock(&server->lock);
    bool is_started = server->state == BOW__SERVER_STARTED;
    server->n_parts += is_started;
    pthread_mutex_unlock(&server->lock);
    return is_started;
}

static void post_part(struct bow_server *server, struct bow_task *task)
{
    if (add_part(server) && bow__loop_post_internal(server->main, task, 0) < 0) {
        part_done(server);
    }
}

/* Without the hook no timer is armed either: the loop is ending, and other threads may be the last
 * to report. */
static void unhook(struct bow_server *server)
{
    server->hooked = false;
    bow_timer_stop(&server->lame_timer);
    bow_timer_stop(&server->grace_timer);
    bow__server_metrics_stop(server);
}

static bool is_last_part(struct bow_server *server)
{
    pthread_mutex_lock(&server->lock);
    bool is_last = server->n_parts == 1;
    pthread_mutex_unlock(&server->lock);
    return is_last;
}

/* On the main loop, where all parts report while it is hooked: let go of it with the last one. */
static void part_done_on_main(struct bow_server *server)
{
    if (server->hooked && is_last_part(server)) {
        bow_loop_remove_hook(server->main, &server->hook);
        unhook(server);
        bow__server_metrics_last(server);
    }
    part_done(server);
}

void bow__server_part_done(struct bow_server *server)
{
    part_done_on_main(server);
}

/* Its end */

static void on_operations_closed(void *user)
{
    part_done_on_main(user);
}

static int operations_task(void *user)
{
    struct bow_server *server = user;

    bow__operations_close(server->operations, on_operations_closed, server);
    return 0;
}

/* A loop that takes no task has shut down, and closed what it had of it. */
static void end_operations(struct bow_server *server)
{
    bow_task_init(&server->operations_task, "end operations", operations_task, server);
    if (bow__loop_post_internal(server->main, &server->operations_task, 0) < 0) {
        (void)operations_task(server);
    }
}

/* While the main loop still runs: it waits for the connections that it has. */
static void end_operations_now(struct bow_server *server)
{
    pthread_mutex_lock(&server->lock);
    bool ends = server->runs_operations && !server->ends_operations;
    server->ends_operations = server->ends_operations || ends;
    pthread_mutex_unlock(&server->lock);
    if (ends) {
        (void)operations_task(server);
    }
}

static int worker_done_task(void *user)
{
    part_done_on_main(user);
    return 0;
}

void bow__server_on_worker_done(struct bow__worker *worker)
{
    struct bow_server *server = worker->server;
    struct bow_loop *loop = server->main;

    bow_task_init(&worker->done_task, "worker done", worker_done_task, server);
    if (bow_loop_in_loop(loop)) {
        part_done_on_main(server);
        return;
    }
    /* With the last report the server may go, and its loop, before the post has returned. */
    bow__loop_hold(loop);
    if (bow__loop_post_internal(loop, &worker->done_task, 0) < 0) {
        part_done(server);
    }
    bow__loop_release(loop);
}

static void drain_workers(struct bow_server *server)
{
    if (server->hooked) {
        bow_timer_start(&server->grace_timer, server->options.grace_ns);
    }
    for (uint32_t i = 0; i < server->n_workers; i++) {
        /* A loop that takes no task has shut down: its hook has reported, or it never began. */
        (void)!bow__worker_drain(server->workers[i]);
    }
    /* Behind it on each loop: a client that watches again does so elsewhere. */
    bow__health_end(&server->health);
}

static void on_acceptor_closed(void *user)
{
    struct bow_server *server = user;

    if (atomic_fetch_sub_explicit(&server->n_open_acceptors, 1, memory_order_acq_rel) == 1) {
        drain_workers(server);
    }
    part_done_on_main(server);
}

/* The main loop may shut down while another thread tells the parts to begin, or has it offer its
 * sockets. */
static struct bow__hand_over *wait_until_begun(struct bow_server *server)
{
    pthread_mutex_lock(&server->lock);
    struct bow__hand_over *hand_over = server->hand_over;
    pthread_mutex_unlock(&server->lock);
    return hand_over;
}

/* Whatever comes first: a stop, a hurry, or the end of the loop. Health first, so that who is told
 * to go elsewhere does. */
static void begin_to_stop(struct bow_server *server)
{
    (void)wait_until_begun(server);
    bow__health_drain(&server->health);
    bool tells = server->tells_stopping;
    server->tells_stopping = false;
    if (tells && server->options.on_stopping != NULL) {
        server->options.on_stopping(server, server->options.stopping_user);
    }
}

static void drain(struct bow_server *server)
{
    if (server->draining) {
        return;
    }
    bow__hand_over_close(wait_until_begun(server));
    server->draining = true;
    begin_to_stop(server);
    bow_timer_stop(&server->lame_timer);
    if (server->n_acceptors == 0) {
        drain_workers(server);
    }
    for (uint32_t i = 0; i < server->n_acceptors; i++) {
        struct bow_acceptor *acceptor = server->acceptors[i];
        server->acceptors[i] = NULL;
        bow_acceptor_close(acceptor, on_acceptor_closed, server);
    }
}

static void on_lame_duck_over(struct bow_timer *timer, void *user)
{
    (void)timer;
    drain(user);
}

/* A hurry leaves none of it; an option of 0 is the default. */
static void describe_grace(const struct bow_server *server, struct bow__text *text)
{
    bow__text_clear(text);
    if (server->options.grace_ns == 0) {
        bow__text_printf(text, "a further signal ended it");
        return;
    }
    bow__text_printf(text, "grace_ns, ");
    bow__text_duration(text, server->options.grace_ns);
}

static void log_cut_calls(const struct bow_server *server)
{
    struct bow_metrics metrics = BOW_METRICS_INIT;
    struct bow__text grace;

    (void)bow_server_metrics(server, &metrics);
    if (metrics.calls_started <= metrics.calls_ended) {
        return;
    }
    describe_grace(server, &grace);
    bow__log(server->context, BOW_LOG_WARNING,
             "server: the grace for calls in flight is over (%s): %" PRIu64
             " of them are cut off with UNAVAILABLE",
             grace.bytes, metrics.calls_started - metrics.calls_ended);
}

static void close_workers(struct bow_server *server)
{
    if (server->closing) {
        return;
    }
    server->closing = true;
    log_cut_calls(server);
    bow_timer_stop(&server->grace_timer);
    for (uint32_t i = 0; i < server->n_workers; i++) {
        (void)!bow__worker_close(server->workers[i]);
    }
}

static void on_grace_over(struct bow_timer *timer, void *user)
{
    (void)timer;
    close_workers(user);
}

static void on_loop_shutdown(struct bow_loop_hook *hook)
{
    struct bow_server *server = BOW__CONTAINER(hook, struct bow_server, hook);

    unhook(server);
    atomic_store(&server->stop_requested, true);
    drain(server);
    end_operations_now(server);
}

static int open_task(void *user)
{
    struct bow_server *server = user;

    bow_timer_init(&server->lame_timer, server->main, on_lame_duck_over, server);
    bow_timer_init(&server->grace_timer, server->main, on_grace_over, server);
    int rc = bow_loop_add_hook(server->main, &server->hook);
    server->hooked = rc == 0;
    if (rc < 0) {
        drain(server);
    } else {
        bow__server_metrics_start(server);
    }
    return rc;
}

static int stop_task(void *user)
{
    struct bow_server *server = user;

    if (server->options.lame_duck_ns == 0) {
        drain(server);
    } else if (!server->draining) {
        bow_timer_start(&server->lame_timer, server->options.lame_duck_ns);
        begin_to_stop(server);
    }
    part_done_on_main(server);
    return 0;
}

/* While listeners are still open, what they hand over has yet to reach the workers. */
static void end_grace(struct bow_server *server)
{
    server->options.grace_ns = 0;
    if (atomic_load_explicit(&server->n_open_acceptors, memory_order_acquire) == 0) {
        close_workers(server);
    }
}

static int hurry_task(void *user)
{
    struct bow_server *server = user;

    atomic_store(&server->hurry_posted, false);
    if (server->draining) {
        end_grace(server);
    } else {
        drain(server);
    }
    part_done_on_main(server);
    return 0;
}

void bow__server_leave(struct bow_server *server)
{
    server->options.lame_duck_ns = 0;
    end_operations_now(server);
    bow_server_stop(server);
    drain(server);
}

void bow__server_init_stop(struct bow_server *server)
{
    server->hook.fn = on_loop_shutdown;
    bow_task_init(&server->open_task, "open server", open_task, server);
    bow_task_init(&server->stop_task, "stop server", stop_task, server);
    bow_task_init(&server->hurry_task, "hurry server", hurry_task, server);
}

void bow__server_hurry(struct bow_server *server)
{
    if (!atomic_exchange(&server->hurry_posted, true)) {
        post_part(server, &server->hurry_task);
    }
}

void bow_server_stop(struct bow_server *server)
{
    /* Who starts it looks here once it is open: until then there is nothing to stop. */
    atomic_store(&server->stop_requested, true);
    if (!atomic_load(&server->opened) || bow__server_is_foreign(server) ||
        atomic_exchange(&server->stop_posted, true)) {
        return;
    }
    /* At once, whatever the main loop is busy with. */
    bow__health_drain(&server->health);
    /* Refused only by a loop that shuts down, whose hook does the same. */
    post_part(server, &server->stop_task);
}

int bow_server_join(struct bow_server *server)
{
    if (bow__server_is_foreign(server)) {
        return -ECHILD;
    }
    if (bow__server_get_state(server) == BOW__SERVER_STARTED && bow__server_in_loops(server)) {
        return -EDEADLK;
    }
    bow__server_ref(server);
    pthread_mutex_lock(&server->lock);
    while (server->state == BOW__SERVER_STARTED) {
        pthread_cond_wait(&server->stopped, &server->lock);
    }
    pthread_mutex_unlock(&server->lock);
    bow__server_unref(server);
    return 0;
}
