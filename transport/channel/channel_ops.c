/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What may be called from any thread: on the loop it acts at once, elsewhere it
 * becomes a task. A write brings its own task; flush, close and shutdown have one
 * in the channel, for they must not fail for want of memory.
 *
 * Design
 *
 * A posted task holds a reference to the channel. The embedded ones are posted by
 * whoever changes their atomic from "none" first. For flush that is not enough:
 * the task may lie in the queue in front of a write whose flush then finds it
 * posted. So requests are counted, and a task that finds more than its own
 * posts itself again, behind those writes.
 */

#include "transport/channel/channel.h"

#include <assert.h>
#include <errno.h>

static int post(struct bow_channel *channel, struct bow_task *task)
{
    bow__channel_hold(channel);
    int rc = bow__loop_post_internal(channel->loop, task, 0);
    if (rc < 0) {
        bow__channel_release(channel);
    }
    return rc;
}

/* The writes that the task is for may not have been taken in from the other threads yet. */
static int post_behind(struct bow_channel *channel, struct bow_task *task)
{
    bow__channel_hold(channel);
    int rc = bow__loop_post_behind(channel->loop, task);
    if (rc < 0) {
        bow__channel_release(channel);
    }
    return rc;
}

/* Write */

static int write_here(struct bow_channel *channel, const struct bow_buf *buf, bow_write_fn done,
                      void *user)
{
    struct bow_buf copy = *buf;

    if (!bow__channel_is_open(channel)) {
        return -EPIPE;
    }
    if (buf->block != NULL) {
        int rc = bow_buf_share(channel->context, buf, &copy);
        if (rc < 0) {
            return rc;
        }
    }
    int rc = bow_handler_write(&channel->tail, &copy, done, user);
    if (rc < 0) {
        bow_buf_unref(&copy);
    }
    return rc;
}

/* Gives the posted write to the handlers, or straight to the queue; frees it or passes it on. */
static int take_write(struct bow_channel *channel, struct bow__write *write)
{
    if (!bow__channel_is_open(channel) || channel->wants_shut) {
        return -EPIPE;
    }
    if (!bow__pipeline_filters_writes(channel)) {
        bow__channel_enqueue(channel, write);
        return 0;
    }
    int rc = write_here(channel, &write->buf, write->done, write->user);
    if (rc == 0) {
        bow__write_free(channel->context, write);
    }
    return rc;
}

static int run_write(void *user)
{
    struct bow__write *write = user;
    struct bow_channel *channel = write->channel;
    bool flush = write->flush;

    int rc = take_write(channel, write);
    if (rc < 0) {
        bow_write_fn done = write->done;
        void *done_user = write->user;
        bow__write_free(channel->context, write);
        if (done != NULL) {
            done(channel, rc, done_user);
        }
    } else if (flush) {
        bow_handler_flush(&channel->tail);
    }
    bow__channel_release(channel);
    return 0;
}

static int write_from_outside(struct bow_channel *channel, const struct bow_buf *buf, bool flush,
                              bow_write_fn done, void *user)
{
    if (!bow__channel_is_open(channel)) {
        return -EPIPE;
    }
    struct bow__write *write = bow__write_new(channel->context, buf, done, user);
    if (write == NULL) {
        return -ENOMEM;
    }
    write->channel = channel;
    write->flush = flush;
    bow_task_init(&write->task, "channel write", run_write, write);
    if (post(channel, &write->task) < 0) {
        bow__write_free(channel->context, write);
        return -EPIPE;
    }
    return 0;
}

int bow_channel_write(struct bow_channel *channel, const struct bow_buf *buf, bow_write_fn done,
                      void *user)
{
    if (bow_loop_in_loop(channel->loop)) {
        return write_here(channel, buf, done, user);
    }
    return write_from_outside(channel, buf, false, done, user);
}

int bow_channel_write_and_flush(struct bow_channel *channel, const struct bow_buf *buf,
                                bow_write_fn done, void *user)
{
    if (!bow_loop_in_loop(channel->loop)) {
        return write_from_outside(channel, buf, true, done, user);
    }
    int rc = write_here(channel, buf, done, user);
    if (rc == 0) {
        bow_handler_flush(&channel->tail);
    }
    return rc;
}

/* Flush */

static void request_flush(struct bow_channel *channel)
{
    assert(bow__channel_state(channel) != BOW__CHANNEL_NEW); /* the task's memory is not its own */
    if (atomic_fetch_add_explicit(&channel->n_flush_requests, 1, memory_order_acq_rel) == 0 &&
        post_behind(channel, &channel->flush_task) < 0) {
        atomic_store_explicit(&channel->n_flush_requests, 0, memory_order_release);
    }
}

static int run_flush(void *user)
{
    struct bow_channel *channel = user;
    unsigned n = atomic_exchange_explicit(&channel->n_flush_requests, 0, memory_order_acq_rel);

    if (bow__channel_is_open(channel)) {
        bow_handler_flush(&channel->tail);
    }
    if (n > 1) {
        request_flush(channel);
    }
    bow__channel_release(channel);
    return 0;
}

void bow_channel_flush(struct bow_channel *channel)
{
    if (!bow__channel_is_open(channel)) {
        return;
    }
    if (bow_loop_in_loop(channel->loop)) {
        bow_handler_flush(&channel->tail);
    } else {
        request_flush(channel);
    }
}

/* Shutdown of our side */

static void shutdown_here(struct bow_channel *channel)
{
    if (bow__channel_is_open(channel) && !channel->wants_shut) {
        bow_handler_flush(&channel->tail);
        channel->wants_shut = true;
        bow__channel_flush_all(channel);
    }
}

static int run_shutdown(void *user)
{
    struct bow_channel *channel = user;

    shutdown_here(channel);
    bow__channel_release(channel);
    return 0;
}

void bow_channel_shutdown_write(struct bow_channel *channel)
{
    if (bow_loop_in_loop(channel->loop)) {
        shutdown_here(channel);
        return;
    }
    if (!atomic_exchange_explicit(&channel->shut_requested, true, memory_order_acq_rel)) {
        (void)post(channel, &channel->shut_task); /* fails when all is closed anyway */
    }
}

/* Close */

static int run_close(void *user)
{
    struct bow_channel *channel = user;

    if (bow__channel_is_open(channel)) {
        bow_handler_close(&channel->tail, channel->close_request_error);
    }
    bow__channel_release(channel);
    return 0;
}

void bow_channel_close(struct bow_channel *channel, int error)
{
    if (!bow__channel_is_open(channel)) {
        return;
    }
    if (bow_loop_in_loop(channel->loop)) {
        bow_handler_close(&channel->tail, error);
        return;
    }
    if (!atomic_exchange_explicit(&channel->close_requested, true, memory_order_acq_rel)) {
        channel->close_request_error = error;
        (void)post(channel, &channel->close_task); /* fails when all is closed anyway */
    }
}

void bow__channel_ops_init(struct bow_channel *channel)
{
    atomic_init(&channel->n_flush_requests, 0);
    atomic_init(&channel->close_requested, false);
    atomic_init(&channel->shut_requested, false);
    bow_task_init(&channel->flush_task, "channel flush", run_flush, channel);
    bow_task_init(&channel->shut_task, "channel shutdown", run_shutdown, channel);
    bow_task_init(&channel->close_task, "channel close", run_close, channel);
}
