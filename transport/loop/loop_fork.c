/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A loop and fork(). The descriptors of a loop, its poller before all, are the same objects in both
 * processes, and its thread is in one only; so a loop belongs to the process that first runs it.
 *
 *     made ── fork() ──► the child may run it: with a poller of its own
 *      │
 *     runs ── fork() ──► foreign there: functions say -ECHILD, nothing is sent or waited for
 *
 * What was set up before the first turn is memory and descriptors that are not ready for anybody
 * yet, and goes along. A loop whose descriptor somebody polls (bow_loop_fd()) keeps it, since
 * nobody could tell him of another: then only one of the processes can run it.
 *
 * Knows nothing of how a loop runs.
 */

#include "base/alloc.h"
#include "transport/loop/loop_internal.h"

#include <errno.h>

void bow__loop_note_maker(struct bow_loop *loop)
{
    loop->process = bow__context_process(loop->context);
    loop->made_by = bow__process_id(loop->process);
    atomic_init(&loop->used_by, 0);
}

bool bow__loop_is_foreign(const struct bow_loop *loop)
{
    int id = atomic_load_explicit(&loop->used_by, memory_order_relaxed);
    return id != 0 && id != bow__process_id(loop->process);
}

/* The old descriptors are closed in this process only, which says nothing to the other one. */
static int renew(struct bow_loop *loop)
{
    const struct bow_system *system = loop->system;
    const int old_fd = loop->wake_watch.fd;

    int fd = system->wake_open(system->user);
    if (fd < 0) {
        return fd;
    }
    loop->wake_watch.fd = fd;
    int rc = bow__loop_replace_poller(loop);
    if (rc < 0) {
        loop->wake_watch.fd = old_fd;
        system->close(system->user, fd);
        return rc;
    }
    system->close(system->user, old_fd);
    return 0;
}

int bow__loop_claim(struct bow_loop *loop)
{
    if (atomic_load_explicit(&loop->used_by, memory_order_relaxed) != 0) {
        return 0;
    }
    const int id = bow__process_id(loop->process);
    if (loop->made_by != id && !loop->has_fd) {
        int rc = renew(loop);
        if (rc < 0) {
            return rc;
        }
    }
    atomic_store_explicit(&loop->used_by, id, memory_order_relaxed);
    return 0;
}

static void close_copy(const struct bow_system *system, struct bow__watch *watch)
{
    if (watch->source == NULL && watch->fd >= 0) {
        system->close(system->user, watch->fd);
        watch->fd = -1;
    }
}

void bow__loop_forsake(struct bow_loop *loop)
{
    const struct bow_system *system = loop->system;
    struct bow__link *link = loop->watches.next;

    /* Another thread may have been in the middle of its lists when the process was copied. */
    if (!bow_loop_in_loop(loop) || loop->poller == NULL) {
        return;
    }
    for (; link != &loop->watches; link = link->next) {
        close_copy(system, BOW__CONTAINER(link, struct bow__watch, link));
    }
    close_copy(system, &loop->wake_watch);
    system->poller->close(loop->poller);
    loop->poller = NULL;
    if (loop->fd_poller != NULL) {
        system->poller->close(loop->fd_poller);
        loop->fd_poller = NULL;
    }
}
