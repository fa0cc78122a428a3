/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * From the socket into the pipeline, in batches bounded per turn.
 *
 * All channels of a loop read into its one receive buffer. What the first handler
 * leaves goes to the front of that buffer for the rest of the batch, and to
 * `unread`, memory of the channel's own, when the batch is over. A short rest is
 * copied back in front of the next batch's bytes, so that reads stay large; a
 * long one grows where it is, and is not copied again with each read.
 *
 * While nothing waits, the first handler is asked for room of its own, and bytes that it
 * has much room for go there without a copy.
 */

#include "transport/channel/channel.h"

#include <assert.h>
#include <bowline/limits.h>
#include <errno.h>
#include <string.h>

/* Up to here a rest is copied to the receive buffer. */
#define MERGE_BYTES ((size_t)8 << 10)
/* Of a rest few bytes may be left, with no room behind them. */
#define LEAST_ROOM_BYTES ((size_t)1 << 10)
/* The buffer is the loop's, so asking for more than comes costs nothing. */
#define MIN_RECV_BYTES ((size_t)16 << 10)

/* What is read behind a handler's room in the same call: the few bytes that say what comes next. */
#define BEHIND_BYTES ((size_t)4 << 10)

/* The bytes of one batch: in the loop's buffer, or (data NULL) in channel->unread. */
struct batch {
    uint8_t *buffer;
    size_t cap;
    size_t len;    /* not consumed yet, at the front of the buffer */
    size_t budget; /* bytes that may still be received in this turn */
};

static int fail_without_memory(struct bow_channel *channel)
{
    bow__channel_fail(channel, -ENOMEM);
    return -ENOMEM;
}

static int begin(struct bow_channel *channel, struct batch *batch)
{
    *batch = (struct batch){.budget = channel->max_bytes_per_turn};
    batch->buffer = bow__loop_recv_buffer(channel->loop, &batch->cap);
    if (batch->buffer == NULL) {
        return fail_without_memory(channel);
    }
    struct bow_slice rest = bow__unread_bytes(channel->unread);
    if (rest.len > 0 && rest.len <= MERGE_BYTES) {
        memcpy(batch->buffer, rest.data, rest.len);
        batch->len = rest.len;
        bow__unread_free(channel->context, &channel->unread);
    }
    return 0;
}

/* Move what is not consumed to memory of the channel's own. */
static int spill(struct bow_channel *channel, struct batch *batch)
{
    struct bow_slice rest = {batch->buffer, batch->len};

    batch->len = 0;
    if (!bow__channel_is_open(channel)) {
        return 0;
    }
    int rc = bow__unread_append(channel->context, &channel->unread, rest);
    if (rc < 0) {
        bow__channel_fail(channel, rc);
    }
    return rc;
}

static void adapt(struct bow_channel *channel, size_t asked, size_t got)
{
    if (got == asked && channel->recv_bytes < BOW__LOOP_RECV_BYTES) {
        channel->recv_bytes *= 2;
    } else if (got < channel->recv_bytes / 4 && channel->recv_bytes > MIN_RECV_BYTES) {
        channel->recv_bytes /= 2;
    }
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static ssize_t receive(struct bow_channel *channel, void *into, size_t asked, struct batch *batch,
                       bool *ret_short)
{
    asked = min_size(asked, batch->budget);
    assert(asked > 0); /* or it looks like the peer's end */
    ssize_t n = channel->read_error;
    if (n == 0) {
        n = channel->system->recv(channel->system->user, channel->watch.fd, into, asked);
    }
    if (n > 0) {
        batch->budget -= (size_t)n;
    }
    *ret_short = n < (ssize_t)asked;
    return n;
}

static ssize_t receive_and_adapt(struct bow_channel *channel, void *into, size_t room,
                                 struct batch *batch, bool *ret_short)
{
    size_t asked = min_size(min_size(room, channel->recv_bytes), batch->budget);

    ssize_t n = receive(channel, into, asked, batch, ret_short);
    if (n > 0) {
        adapt(channel, asked, (size_t)n);
    }
    return n;
}

/* Into the handler's own room. What comes behind it is saved before the handler is told, which may
 * do away with the room. */
static ssize_t receive_into_room(struct bow_channel *channel, const struct bow_read_room *room,
                                 struct batch *batch, bool *ret_short)
{
    size_t asked = room->len + min_size(room->n_behind, BEHIND_BYTES);

    ssize_t n = receive(channel, room->bytes, asked, batch, ret_short);
    if (n <= 0) {
        return n;
    }
    size_t n_filled = min_size((size_t)n, room->len);
    batch->len = (size_t)n - n_filled;
    memcpy(batch->buffer, room->bytes + n_filled, batch->len);
    /* Much of what a large read of the buffer would bring belongs into the next room. */
    channel->recv_bytes = MIN_RECV_BYTES;
    bow_handler_fire_read_filled(&channel->head, n_filled);
    return n;
}

static ssize_t receive_into_unread(struct bow_channel *channel, struct batch *batch,
                                   bool *ret_short)
{
    size_t len = bow__unread_len(channel->unread);
    size_t room = 0;

    if (len >= BOW_LIMIT_UNREAD_BYTES) {
        bow__channel_fail(channel, -EMSGSIZE);
        return -EMSGSIZE;
    }
    size_t wanted = len / 4 > LEAST_ROOM_BYTES ? len / 4 : LEAST_ROOM_BYTES;
    uint8_t *end = bow__unread_reserve(channel->context, &channel->unread, wanted, &room);
    if (end == NULL) {
        return fail_without_memory(channel);
    }
    ssize_t n = receive_and_adapt(channel, end, room, batch, ret_short);
    if (n > 0) {
        bow__unread_commit(channel->unread, (size_t)n);
    }
    return n;
}

/* Returns what was received, 0 at the end of the peer's side, or a negative errno. */
static ssize_t fill(struct bow_channel *channel, struct batch *batch, bool *ret_short)
{
    struct bow_read_room room;

    if (batch->len == 0 && channel->unread == NULL &&
        bow_handler_read_room(&channel->head, &room)) {
        return receive_into_room(channel, &room, batch, ret_short);
    }
    if (channel->unread == NULL && batch->cap - batch->len < batch->cap / 2) {
        int rc = spill(channel, batch);
        if (rc < 0) {
            return rc;
        }
    }
    if (channel->unread != NULL) {
        return receive_into_unread(channel, batch, ret_short);
    }
    ssize_t n = receive_and_adapt(channel, batch->buffer + batch->len, batch->cap - batch->len,
                                  batch, ret_short);
    if (n > 0) {
        batch->len += (size_t)n;
    }
    return n;
}

static void offer_unread(struct bow_channel *channel)
{
    struct bow_slice bytes = bow__unread_bytes(channel->unread);
    struct bow_buf buf = bow_buf_borrow(bytes.data, bytes.len);

    if (bytes.len > 0) {
        size_t n = bow__pipeline_offer(channel, &buf);
        bow__unread_consume(channel->context, &channel->unread, n);
    }
}

static void offer(struct bow_channel *channel, struct batch *batch)
{
    if (channel->unread != NULL) {
        offer_unread(channel);
        return;
    }
    if (batch->len == 0) {
        return; /* all of it went into a room */
    }
    struct bow_buf buf = bow_buf_borrow(batch->buffer, batch->len);
    size_t n = bow__pipeline_offer(channel, &buf);
    batch->len -= n;
    if (n > 0 && batch->len > 0) {
        memmove(batch->buffer, batch->buffer + n, batch->len);
    }
}

/* Returns 1 when the budget ended it, 0 at the end of the peer's side, -EAGAIN when the socket is
 * empty, -ECANCELED when delivery stopped, or what failed. `*ret_any`: something was delivered. */
static int read_batch(struct bow_channel *channel, uint32_t max_reads, bool *ret_any)
{
    struct batch batch;
    int outcome = 1;

    if (begin(channel, &batch) < 0) {
        return -ECANCELED;
    }
    for (uint32_t i = 0; i < max_reads && batch.budget > 0; i++) {
        if (bow__channel_turn_is_long(channel, channel->max_bytes_per_turn - batch.budget)) {
            break;
        }
        bool is_short = false;
        ssize_t n = fill(channel, &batch, &is_short);
        if (n <= 0) {
            outcome = (int)n;
            break;
        }
        *ret_any = true;
        offer(channel, &batch);
        if (!bow__pipeline_can_read(channel)) {
            outcome = -ECANCELED;
            break;
        }
        if (is_short) {
            outcome = -EAGAIN; /* found without asking the kernel once more */
            break;
        }
    }
    return spill(channel, &batch) < 0 ? -ECANCELED : outcome;
}

static void on_end_of_peer(struct bow_channel *channel)
{
    channel->is_eof = true;
    bow_handler_fire_eof(&channel->head);
    bow__channel_close_if_over(channel);
    bow__channel_schedule_phase(channel);
}

static bool is_transient(int error)
{
    return error == -EAGAIN || error == -EINTR || error == -ECANCELED;
}

/* All that came before the end is delivered before the end is told. */
static void deliver_waiting(struct bow_channel *channel)
{
    if (channel->wants_delivery) {
        channel->wants_delivery = false;
        bow__channel_redeliver(channel);
    }
}

static int read_and_report(struct bow_channel *channel)
{
    bool any = false;

    int outcome = read_batch(channel, channel->max_reads_per_turn, &any);
    if (outcome == 0 && channel->lost_error == -ECONNRESET) {
        outcome =
            -ECONNRESET; /* told once, to who asked for it: it looks like an end from then on */
    }
    if (any) {
        bow_handler_fire_read_complete(&channel->head);
    }
    if (outcome <= 0 && !is_transient(outcome)) {
        deliver_waiting(channel);
    }
    if (!bow__channel_is_open(channel)) {
        return -ECANCELED;
    }
    /* A pause in the last callback postpones the end too: it stays in the kernel. An error does
     * not. */
    if (outcome == 0 && bow__pipeline_can_read(channel)) {
        on_end_of_peer(channel);
    } else if (outcome < 0 && !is_transient(outcome) && bow__pipeline_can_read(channel)) {
        bow__channel_fail(channel, outcome);
    } else {
        channel->read_error = (int16_t)(is_transient(outcome) || outcome > 0 ? 0 : outcome);
        bow__channel_schedule_phase(channel);
    }
    return outcome;
}

static void read_rest(struct bow_channel *channel)
{
    /* The connection is broken, so what is there is all there will be: this ends. */
    while (bow__channel_is_open(channel) && !channel->is_eof && bow__pipeline_can_read(channel) &&
           read_and_report(channel) == 1) {
    }
}

void bow__channel_read_out(struct bow_channel *channel, int error)
{
    if (channel->lost_error == 0) {
        channel->lost_error = (int16_t)error; /* the first says most: what follows is -EPIPE */
    }
    read_rest(channel);
    if (!bow__channel_is_open(channel)) {
        return;
    }
    if (bow__pipeline_can_read(channel)) {
        bow__channel_fail(channel, channel->lost_error);
        return;
    }
    /* A hold ends by itself, and then there is a turn. A pause may wait for something to be sent:
     * it has until then. */
    if (channel->is_paused) {
        bow__channel_schedule_turn(channel);
    }
}

void bow__channel_redeliver(struct bow_channel *channel)
{
    bow__pipeline_redeliver(channel);
    offer_unread(channel);
    bow_handler_fire_read_complete(&channel->head);
}

/* After our last byte: take what still comes, so that closing does not reset. */
static void discard(struct bow_channel *channel)
{
    size_t cap = 0;
    uint8_t *buffer = bow__loop_recv_buffer(channel->loop, &cap);

    if (buffer == NULL) {
        /* Left unread, the bytes would wake the loop again at once. */
        bow__channel_close_now(channel, -ENOMEM);
        return;
    }
    size_t left = channel->max_bytes_per_turn;
    for (uint32_t i = 0; i < channel->max_reads_per_turn && left > 0; i++) {
        ssize_t n = channel->system->recv(channel->system->user, channel->watch.fd, buffer,
                                          min_size(cap, left));
        if (n == -EAGAIN || n == -EINTR) {
            return;
        }
        if (n <= 0) {
            bow__channel_close_now(channel, channel->flush_close_error);
            return;
        }
        left -= (size_t)n;
        bow__channel_linger_on(channel);
    }
}

/* We do not read (paused, or the peer's side has ended), and the kernel says it is over. */
static void on_hangup(struct bow_channel *channel, uint32_t events)
{
    int error = 0;
    socklen_t len = sizeof(error);

    if ((events & BOW_POLL_ERR) != 0) {
        channel->system->getsockopt(channel->system->user, channel->watch.fd, SOL_SOCKET, SO_ERROR,
                                    &error, &len);
    }
    if (error != 0 && channel->is_eof) {
        bow__channel_fail(channel, -error);
        return;
    }
    if (channel->is_eof) {
        bow__channel_close_now(channel, channel->n_writes > 0 ? -EPIPE : 0);
        return;
    }
    /* Unread bytes may wait in the kernel. Level-triggered, it would tell us for ever. */
    channel->is_out_of_poller = true;
    bow__channel_schedule_phase(channel);
    if (error != 0) {
        bow__channel_read_out(channel, -error);
    }
}

static bool wants_read(struct bow_channel *channel)
{
    if (channel->is_lingering) {
        return true;
    }
    return !channel->is_eof && bow__pipeline_can_read(channel) &&
           (channel->unread == NULL || bow__pipeline_has_reader(channel));
}

void bow__channel_on_readable(struct bow_channel *channel, uint32_t events)
{
    if (channel->is_lingering) {
        discard(channel);
        return;
    }
    if (wants_read(channel)) {
        read_and_report(channel);
        return;
    }
    if ((events & (BOW_POLL_HUP | BOW_POLL_ERR)) != 0) {
        on_hangup(channel, events);
    }
}

void bow__channel_update_interest(struct bow_channel *channel)
{
    bool reads = wants_read(channel);
    /* ERR is reported anyway; it says "keep it in the poller". */
    uint32_t events = BOW_POLL_ERR;

    if (reads) {
        channel->is_out_of_poller = false;
        events |= BOW_POLL_IN;
    }
    if (channel->is_blocked) {
        events |= BOW_POLL_OUT;
    }
    if (channel->is_out_of_poller && !channel->is_blocked) {
        events = 0;
    }
    if (events == channel->watch.events) {
        return;
    }
    int rc = bow__loop_rewatch(channel->loop, &channel->watch, events);
    if (rc < 0) {
        bow__channel_fail(channel, rc);
    }
}

void bow__channel_hold_read(struct bow_channel *channel)
{
    channel->n_pauses++;
    bow__channel_schedule_phase(channel);
}

void bow__channel_release_read(struct bow_channel *channel)
{
    assert(channel->n_pauses > 0);
    channel->n_pauses--;
    if (channel->lost_error != 0 && bow__channel_is_open(channel)) {
        bow__channel_schedule_turn(channel);
    }
    if (channel->n_pauses > 0 || !bow__channel_is_open(channel)) {
        return;
    }
    channel->resumed_ns = bow_loop_now(channel->loop);
    channel->wants_delivery = true;
    bow__channel_schedule_turn(channel);
    bow__channel_schedule_phase(channel);
}

void bow_channel_pause_read(struct bow_channel *channel)
{
    assert(bow__loop_may_touch(channel->loop));
    if (bow__channel_is_open(channel) && !channel->is_paused) {
        channel->is_paused = true;
        bow__channel_hold_read(channel);
    }
}

void bow_channel_resume_read(struct bow_channel *channel)
{
    assert(bow__loop_may_touch(channel->loop));
    if (bow__channel_is_open(channel) && channel->is_paused) {
        channel->is_paused = false;
        bow__channel_release_read(channel);
    }
}
