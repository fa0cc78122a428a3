/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Taking signals for the time of bow_server_run(), and giving them back as they
 * were. Knows nothing of servers: what a signal does to one is in server_run.c.
 */

#include "rpc/server/signals.h"

#include <errno.h>
#include <sys/signalfd.h>
#include <sys/types.h>
#include <ucontext.h>
#include <unistd.h>

static const int numbers[BOW__N_SIGNALS] = {SIGHUP, SIGTERM, SIGINT, SIGUSR1, SIGUSR2};

/* Runs on threads that do not block the signal; returning applies the mask it changes. */
static void pass_on(int number, siginfo_t *info, void *context)
{
    ucontext_t *interrupted = context;
    int saved = errno;

    (void)info;
    sigaddset(&interrupted->uc_sigmask, number);
    kill(getpid(), number);
    errno = saved;
}

static void on_readable(struct bow__watch *watch, uint32_t events)
{
    struct bow__signals *signals = BOW__CONTAINER(watch, struct bow__signals, watch);
    struct signalfd_siginfo info;

    (void)events;
    while (read(signals->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        signals->on_signal((int)info.ssi_signo, signals->user);
    }
}

static bool is_default(int number, struct sigaction *ret_old)
{
    return sigaction(number, NULL, ret_old) == 0 && (ret_old->sa_flags & SA_SIGINFO) == 0 &&
           ret_old->sa_handler == SIG_DFL;
}

static bool is_wanted(int number, const struct bow__signals_wanted *wanted)
{
    switch (number) {
    case SIGHUP:
        return wanted->hangup;
    case SIGUSR1:
        return wanted->user1;
    case SIGUSR2:
        return wanted->user2;
    default:
        return true;
    }
}

static void choose(struct bow__signals *signals, const struct bow__signals_wanted *wanted)
{
    sigset_t blocked;

    sigemptyset(&signals->taken);
    sigemptyset(&signals->unblocked);
    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    for (int i = 0; i < BOW__N_SIGNALS; i++) {
        if (!is_wanted(numbers[i], wanted) || !is_default(numbers[i], &signals->old[i])) {
            continue;
        }
        sigaddset(&signals->taken, numbers[i]);
        if (sigismember(&blocked, numbers[i]) == 0) {
            sigaddset(&signals->unblocked, numbers[i]);
        }
    }
}

static void set_dispositions(struct bow__signals *signals, bool ours)
{
    struct sigaction action = {0};

    action.sa_sigaction = pass_on;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < BOW__N_SIGNALS; i++) {
        if (sigismember(&signals->taken, numbers[i]) == 1) {
            sigaction(numbers[i], ours ? &action : &signals->old[i], NULL);
        }
    }
}

static const struct bow__watch_ops watch_ops = {.on_events = on_readable};

void bow__signals_take(struct bow__signals *signals, const struct bow__signals_wanted *wanted)
{
    *signals = (struct bow__signals){.watch.ops = &watch_ops};
    bow__list_init(&signals->watch.link);
    choose(signals, wanted);
    pthread_sigmask(SIG_BLOCK, &signals->taken, NULL);
    set_dispositions(signals, true);
}

int bow__signals_start(struct bow__signals *signals, struct bow_loop *loop,
                       void (*on_signal)(int number, void *user), void *user)
{
    signals->loop = loop;
    signals->on_signal = on_signal;
    signals->user = user;
    signals->fd = signalfd(-1, &signals->taken, SFD_NONBLOCK | SFD_CLOEXEC);
    if (signals->fd < 0) {
        return -errno;
    }
    int rc = bow__loop_watch(loop, &signals->watch, signals->fd, BOW_POLL_IN);
    if (rc < 0) {
        close(signals->fd);
    }
    return rc;
}

void bow__signals_stop(struct bow__signals *signals)
{
    struct signalfd_siginfo info;

    bow__loop_unwatch(signals->loop, &signals->watch);
    /* What came too late would end the process once it is unblocked. */
    while (read(signals->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
    }
    close(signals->fd);
}

void bow__signals_give_back(struct bow__signals *signals)
{
    set_dispositions(signals, false);
    pthread_sigmask(SIG_UNBLOCK, &signals->unblocked, NULL);
}
