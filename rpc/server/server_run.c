/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * bow_server_run(): one thread lends itself to a server until it has stopped. It
 * drives the main loop when that one has no thread of its own, else a small loop
 * that only waits for signals and for the end. Which signal calls what is said here: SIGHUP
 * a reload (server_reload.c), SIGUSR1 a dump (server_dump.c), SIGUSR2 a hand-over
 * (server_hand_over.c), SIGTERM and SIGINT a stop (server_stop.c).
 */

#include "rpc/server/server_dump.h"
#include "rpc/server/server_fork.h"
#include "rpc/server/server_hand_over.h"
#include "rpc/server/server_reload.h"
#include "rpc/server/server_start.h"
#include "rpc/server/server_stop.h"
#include "rpc/server/signals.h"

#include <errno.h>

struct run {
    struct bow_server *server;
    struct bow_loop *loop; /* driven by this thread */
    bool owns_loop;
    bool over; /* set on the loop */
    bool signalled;
    struct bow__signals signals;
};

static void on_signal(int number, void *user)
{
    struct run *run = user;

    if (number == SIGHUP) {
        bow__server_reload_by_signal(run->server);
        return;
    }
    if (number == SIGUSR1) {
        bow__server_dump_by_signal(run->server);
        return;
    }
    if (number == SIGUSR2) {
        bow__server_hand_over_by_signal(run->server);
        return;
    }
    bow_server_stop(run->server);
    if (run->signalled) {
        bow__server_hurry(run->server);
    }
    run->signalled = true;
}

static int on_stopped(void *user)
{
    struct run *run = user;

    run->over = true;
    return 0;
}

static int choose_loop(struct run *run)
{
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;

    int rc = bow_loop_run_once(run->server->main, 0);
    if (rc == 0) {
        run->loop = bow_loop_ref(run->server->main);
        return 0;
    }
    /* It has a thread of its own, or another thread runs it. */
    if (rc != -EINVAL && rc != -EBUSY) {
        return rc;
    }
    options.thread = BOW_LOOP_OWNER;
    rc = bow_loop_new(run->server->context, &options, &run->loop);
    if (rc < 0) {
        return rc;
    }
    run->owns_loop = true;
    /* This thread becomes the loop's. */
    return bow_loop_run_once(run->loop, 0);
}

static void drop_loop(struct run *run)
{
    if (run->owns_loop && bow_loop_shutdown(run->loop, 0, 0) == 0) {
        (void)!bow_loop_run(run->loop);
    }
    bow_loop_unref(run->loop);
}

/* False: it has stopped already, nobody will wake us. */
static bool ask_to_be_woken(struct run *run)
{
    struct bow_server *server = run->server;

    bow_task_init(&server->run_task, "server stopped", on_stopped, run);
    pthread_mutex_lock(&server->lock);
    bool running = server->state == BOW__SERVER_STARTED;
    if (running) {
        server->run_loop = run->loop;
    }
    pthread_mutex_unlock(&server->lock);
    return running;
}

static void tell_started(struct bow_server *server)
{
    if (server->options.on_started != NULL) {
        server->options.on_started(server, server->options.started_user);
    }
}

static int serve(struct run *run)
{
    int rc = 0;

    while (!run->over && rc == 0) {
        rc = bow_loop_run_once(run->loop, BOW_NEVER);
        if (bow_loop_get_state(run->loop) == BOW_LOOP_TERMINATED) {
            break;
        }
    }
    pthread_mutex_lock(&run->server->lock);
    run->server->run_loop = NULL;
    pthread_mutex_unlock(&run->server->lock);
    return rc;
}

static int run_started(struct run *run)
{
    int rc = choose_loop(run);
    if (rc < 0) {
        drop_loop(run);
        return rc;
    }
    rc = bow__signals_start(&run->signals, run->loop, on_signal, run);
    if (rc == 0) {
        if (ask_to_be_woken(run)) {
            tell_started(run->server);
            rc = serve(run);
        }
        bow__signals_stop(&run->signals);
    }
    drop_loop(run);
    return rc;
}

/* Unless the start has. */
static void explain(struct bow_server *server, int rc)
{
    if (rc < 0 && server->error.len == 0) {
        bow__text_printf(&server->error, "running: ");
        bow__text_errno(&server->error, rc);
    }
}

int bow_server_run(struct bow_server *server)
{
    struct run run = {.server = server};
    int rc = 0;

    if (bow__server_is_foreign(server)) {
        return bow__server_refuse_foreign(server, "running");
    }
    bow__server_ref(server);
    /* Before it listens: whoever finds that it does may ask it to end. */
    bow__signals_take(&run.signals, &(struct bow__signals_wanted){
                                        .hangup = server->options.reload_on_sighup,
                                        .user1 = server->options.dump_on_sigusr1,
                                        .user2 = server->options.hand_over_on_sigusr2,
                                    });
    if (bow__server_get_state(server) == BOW__SERVER_NEW) {
        rc = bow__server_start(server, BOW_LOOP_OWNER);
    }
    if (rc == 0 && bow__server_get_state(server) == BOW__SERVER_STARTED) {
        rc = run_started(&run);
    }
    bow__signals_give_back(&run.signals);
    explain(server, rc);
    bow__server_unref(server);
    return rc;
}
