/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A connection within the process: two ends and a ring of bytes in each direction. It
 * behaves as a pair of Unix stream sockets does, down to what a close with bytes
 * unread tells the other end. Knows nothing of names.
 *
 * Design
 *
 * The pair's mutex guards everything but what is constant. `refs` counts the ends that
 * are not closed and the readinesses that are due; the last one to go frees the pair.
 */

#include "base/alloc.h"
#include "transport/loop/readiness.h"
#include "transport/memory/inproc.h"
#include "transport/memory/ring.h"

#include <bowline/limits.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

/* As a socket does: a writer that waits is not woken for every byte. */
#define WORTH_WAKING_BYTES (BOW_LIMIT_INPROC_BYTES / 4)

struct pair;

struct bow__inproc_end {
    struct bow__readiness readiness;
    struct bow_system system; /* `user` is the end */
    struct pair *pair;
    struct bow__inproc_end *other;
    struct bow__inproc_end *next; /* of a queue that it waits in */
    struct bow__ring in;          /* what the other end has sent */
    bool is_shut;                 /* sends nothing more */
    bool is_closed;
    bool is_reset; /* the other end was closed and had not read all */
};

struct pair {
    struct bow_context *context;
    pthread_mutex_t mutex;
    uint32_t refs;
    bool is_stalled;
    struct bow__inproc_faults *faults; /* NULL: none */
    struct bow__link fault_link;       /* in their list */
    struct pair *next_broken;
    struct bow__inproc_end ends[2];
};

/* Memory */

static void leave_faults(struct pair *pair)
{
    if (pair->faults != NULL) {
        pthread_mutex_lock(&pair->faults->mutex);
        bow__list_remove(&pair->fault_link);
        pthread_mutex_unlock(&pair->faults->mutex);
    }
}

static void free_pair(struct pair *pair)
{
    leave_faults(pair);
    for (int i = 0; i < 2; i++) {
        bow__readiness_fini(&pair->ends[i].readiness);
        bow__ring_fini(&pair->ends[i].in, pair->context);
    }
    pthread_mutex_destroy(&pair->mutex);
    bow__free(pair->context, pair, sizeof(*pair));
}

static struct bow__inproc_end *end_of(struct bow__readiness *readiness)
{
    return BOW__CONTAINER(readiness, struct bow__inproc_end, readiness);
}

static void hold(struct bow__readiness *readiness)
{
    end_of(readiness)->pair->refs++;
}

static void release_pair(struct pair *pair)
{
    pthread_mutex_lock(&pair->mutex);
    bool is_last = --pair->refs == 0;
    pthread_mutex_unlock(&pair->mutex);
    if (is_last) {
        free_pair(pair);
    }
}

static void release(struct bow__readiness *readiness)
{
    release_pair(end_of(readiness)->pair);
}

/* Readiness */

static bool is_over(const struct bow__inproc_end *end)
{
    return end->other->is_closed || (end->other->is_shut && end->is_shut);
}

static bool is_writable(const struct bow__inproc_end *end)
{
    size_t room = bow__ring_room(&end->other->in);
    /* A ring that could not grow may be smaller than that. */
    return room >= WORTH_WAKING_BYTES || end->other->in.len == 0 || end->other->is_closed;
}

static uint32_t ready(const struct bow__readiness *readiness)
{
    const struct bow__inproc_end *end =
        BOW__CONTAINER((uintptr_t)readiness, struct bow__inproc_end, readiness);
    uint32_t events = 0;

    if (end->pair->is_stalled) {
        return is_writable(end) && !end->other->is_closed ? BOW_POLL_OUT : 0;
    }
    if (end->in.len > 0 || end->other->is_shut) {
        events |= BOW_POLL_IN;
    }
    if (is_writable(end)) {
        events |= BOW_POLL_OUT;
    }
    if (end->other->is_shut) {
        events |= BOW_POLL_RDHUP;
    }
    if (is_over(end)) {
        events |= BOW_POLL_HUP;
    }
    if (end->is_reset) {
        events |= BOW_POLL_ERR;
    }
    return events;
}

static const struct bow__readiness_ops readiness_ops = {
    .ready = ready, .hold = hold, .release = release};

static void notify_if(bool must_notify, struct bow__inproc_end *end)
{
    if (must_notify) {
        bow__readiness_notify(&end->readiness);
    }
}

/* The calls of a socket */

static ssize_t take(struct bow__inproc_end *end, void *bytes, size_t len)
{
    size_t n = bow__ring_take(&end->in, bytes, len);

    if (n > 0 || len == 0) {
        return (ssize_t)n;
    }
    if (end->is_reset) {
        return -ECONNRESET;
    }
    return end->other->is_shut ? 0 : -EAGAIN;
}

static ssize_t end_recv(void *user, int fd, void *bytes, size_t len)
{
    struct bow__inproc_end *end = user;
    ssize_t n;
    (void)fd;

    pthread_mutex_lock(&end->pair->mutex);
    n = end->pair->is_stalled ? -EAGAIN : take(end, bytes, len);
    bool must_notify = n > 0 && bow__readiness_must_notify(&end->other->readiness, BOW_POLL_OUT);
    pthread_mutex_unlock(&end->pair->mutex);
    notify_if(must_notify, end->other);
    return n;
}

static size_t put_pieces(struct bow__inproc_end *end, const struct msghdr *message, uint64_t max)
{
    struct bow__ring *ring = &end->other->in;
    size_t n_sent = 0;

    for (size_t i = 0; i < message->msg_iovlen && bow__ring_room(ring) > 0; i++) {
        const struct iovec *piece = &message->msg_iov[i];
        uint64_t left = max - n_sent;
        size_t n = piece->iov_len < left ? piece->iov_len : (size_t)left;
        n_sent += bow__ring_put(ring, end->pair->context, piece->iov_base, n);
    }
    return n_sent;
}

/* `*ret_fires`: so much was sent that a fault comes. */
static ssize_t put(struct bow__inproc_end *end, const struct msghdr *message, bool *ret_fires)
{
    struct bow__inproc_faults *faults = end->pair->faults;

    if (end->is_shut || end->other->is_closed) {
        return -EPIPE;
    }
    uint64_t max = faults != NULL ? bow__inproc_faults_room(faults) : UINT64_MAX;
    size_t n = put_pieces(end, message, max);
    *ret_fires = faults != NULL && bow__inproc_faults_spend(faults, n);
    return n > 0 ? (ssize_t)n : -EAGAIN;
}

static ssize_t end_sendmsg(void *user, int fd, const struct msghdr *message, int flags)
{
    struct bow__inproc_end *end = user;
    struct bow__inproc_faults *faults = end->pair->faults;
    bool fires = false;
    (void)fd;
    (void)flags;

    pthread_mutex_lock(&end->pair->mutex);
    ssize_t n = put(end, message, &fires);
    bool must_notify = n > 0 && bow__readiness_must_notify(&end->other->readiness, BOW_POLL_IN);
    pthread_mutex_unlock(&end->pair->mutex);
    notify_if(must_notify, end->other);
    if (fires) {
        bow__inproc_break(faults, bow__inproc_faults_take(faults));
    }
    return n;
}

static int end_shutdown(void *user, int fd, int how)
{
    struct bow__inproc_end *end = user;
    (void)fd;
    (void)how; /* a channel shuts down its writing side only */

    pthread_mutex_lock(&end->pair->mutex);
    end->is_shut = true;
    bool must_notify =
        bow__readiness_must_notify(&end->other->readiness, BOW_POLL_IN | BOW_POLL_RDHUP);
    pthread_mutex_unlock(&end->pair->mutex);
    notify_if(must_notify, end->other);
    return 0;
}

static void close_end(struct bow__inproc_end *end, bool resets)
{
    pthread_mutex_lock(&end->pair->mutex);
    end->other->is_reset = end->other->is_reset || resets || end->in.len > 0;
    end->is_shut = true;
    end->is_closed = true;
    bow__ring_fini(&end->in, end->pair->context);
    bool must_notify = bow__readiness_must_notify(&end->other->readiness, UINT32_MAX);
    pthread_mutex_unlock(&end->pair->mutex);
    notify_if(must_notify, end->other);
    release(&end->readiness);
}

static int end_close(void *user, int fd)
{
    (void)fd;
    close_end(user, false);
    return 0;
}

void bow__inproc_reset(struct bow__inproc_end *end)
{
    close_end(end, true);
}

static int get_error(struct bow__inproc_end *end, void *value)
{
    pthread_mutex_lock(&end->pair->mutex);
    const int error = end->is_reset ? ECONNRESET : 0;
    pthread_mutex_unlock(&end->pair->mutex);
    memcpy(value, &error, sizeof(error));
    return 0;
}

/* The peer is in this very process. */
static int get_credentials(void *value, socklen_t *len)
{
    const struct ucred credentials = {.pid = getpid(), .uid = getuid(), .gid = getgid()};

    memcpy(value, &credentials, sizeof(credentials));
    *len = sizeof(credentials);
    return 0;
}

static int end_getsockopt(void *user, int fd, int level, int name, void *value, socklen_t *len)
{
    (void)fd;
    if (level == SOL_SOCKET && name == SO_ERROR && *len >= sizeof(int)) {
        return get_error(user, value);
    }
    if (level == SOL_SOCKET && name == SO_PEERCRED && *len >= sizeof(struct ucred)) {
        return get_credentials(value, len);
    }
    return -ENOPROTOOPT;
}

static int end_setsockopt(void *user, int fd, int level, int name, const void *value, socklen_t len)
{
    (void)user;
    (void)fd;
    (void)level;
    (void)name;
    (void)value;
    (void)len;
    return -ENOPROTOOPT;
}

/* All that a channel asks of the system below it. */
static const struct bow_system end_system = {
    .size = sizeof(struct bow_system),
    .recv = end_recv,
    .sendmsg = end_sendmsg,
    .shutdown = end_shutdown,
    .close = end_close,
    .getsockopt = end_getsockopt,
    .setsockopt = end_setsockopt,
};

/* Birth */

static void init_end(struct pair *pair, int i)
{
    struct bow__inproc_end *end = &pair->ends[i];

    bow__readiness_init(&end->readiness, &readiness_ops, &pair->mutex);
    end->system = end_system;
    end->system.user = end;
    end->pair = pair;
    end->other = &pair->ends[1 - i];
}

static void join_faults(struct pair *pair, struct bow__inproc_faults *faults)
{
    bow__list_init(&pair->fault_link);
    pair->faults = faults;
    if (faults != NULL) {
        pthread_mutex_lock(&faults->mutex);
        bow__list_push_back(&faults->pairs, &pair->fault_link);
        pthread_mutex_unlock(&faults->mutex);
    }
}

int bow__inproc_pair_new(struct bow_context *context, struct bow__inproc_faults *faults,
                         struct bow__inproc_end *ret_ends[2])
{
    struct pair *pair = bow__alloc_zero(context, sizeof(*pair));

    if (pair == NULL) {
        return -ENOMEM;
    }
    pair->context = context;
    pair->refs = 2;
    pthread_mutex_init(&pair->mutex, NULL);
    for (int i = 0; i < 2; i++) {
        init_end(pair, i);
    }
    if (bow__ring_init(&pair->ends[0].in, context, BOW_LIMIT_INPROC_BYTES) < 0 ||
        bow__ring_init(&pair->ends[1].in, context, BOW_LIMIT_INPROC_BYTES) < 0) {
        free_pair(pair);
        return -ENOMEM;
    }
    join_faults(pair, faults);
    ret_ends[0] = &pair->ends[0];
    ret_ends[1] = &pair->ends[1];
    return 0;
}

struct bow__socket bow__inproc_socket(struct bow__inproc_end *end)
{
    return (struct bow__socket){.fd = -1, .system = &end->system, .source = &end->readiness.source};
}

struct bow__inproc_end **bow__inproc_next(struct bow__inproc_end *end)
{
    return &end->next;
}

/* Faults */

static void reset_pair(struct pair *pair)
{
    for (int i = 0; i < 2; i++) {
        pair->ends[i].is_reset = true;
        pair->ends[i].is_shut = true;
    }
}

static void notify_both(struct pair *pair)
{
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&pair->mutex);
        bool must_notify = bow__readiness_must_notify(&pair->ends[i].readiness, UINT32_MAX);
        pthread_mutex_unlock(&pair->mutex);
        notify_if(must_notify, &pair->ends[i]);
    }
}

/* Do `act` to each pair; who hears of it is told without a mutex, since that may end a pair. */
static void for_each(struct bow__inproc_faults *faults, void (*act)(struct pair *pair))
{
    struct pair *broken = NULL;

    pthread_mutex_lock(&faults->mutex);
    for (struct bow__link *at = faults->pairs.next; at != &faults->pairs; at = at->next) {
        struct pair *pair = BOW__CONTAINER(at, struct pair, fault_link);
        pthread_mutex_lock(&pair->mutex);
        act(pair);
        bool is_alive = pair->refs > 0;
        pair->refs += is_alive;
        pthread_mutex_unlock(&pair->mutex);
        if (is_alive) {
            pair->next_broken = broken;
            broken = pair;
        }
    }
    pthread_mutex_unlock(&faults->mutex);
    while (broken != NULL) {
        struct pair *pair = broken;
        pthread_mutex_lock(&faults->mutex); /* another thread may be giving it the same value */
        broken = pair->next_broken;
        pthread_mutex_unlock(&faults->mutex);
        notify_both(pair);
        release_pair(pair);
    }
}

static void stall_pair(struct pair *pair)
{
    pair->is_stalled = true;
}

static void resume_pair(struct pair *pair)
{
    pair->is_stalled = false;
}

void bow__inproc_break(struct bow__inproc_faults *faults, enum bow__inproc_fault kind)
{
    for_each(faults, kind == BOW__INPROC_RESET ? reset_pair : stall_pair);
}

void bow__inproc_resume(struct bow__inproc_faults *faults)
{
    for_each(faults, resume_pair);
}
