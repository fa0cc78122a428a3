/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Bytes under way in one direction: a ring, and segments that say when which of them
 * arrive.
 */

#include "net.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SEGMENTS ((size_t)64)

int sim_pipe_init(struct sim_pipe *pipe, size_t cap)
{
    memset(pipe, 0, sizeof(*pipe));
    pipe->fin_ns = BOW_NEVER;
    pipe->cap = cap;
    pipe->bytes = malloc(cap);
    pipe->segments = malloc(MAX_SEGMENTS * sizeof(*pipe->segments));
    return pipe->bytes != NULL && pipe->segments != NULL ? 0 : -ENOMEM;
}

void sim_pipe_fini(struct sim_pipe *pipe)
{
    free(pipe->bytes);
    free(pipe->segments);
}

static struct sim_segment *segment_at(const struct sim_pipe *pipe, size_t i)
{
    return &pipe->segments[(pipe->first_segment + i) % MAX_SEGMENTS];
}

size_t sim_pipe_room(const struct sim_pipe *pipe)
{
    return pipe->n_segments < MAX_SEGMENTS ? pipe->cap - pipe->n : 0;
}

void sim_pipe_put(struct sim_pipe *pipe, const uint8_t *bytes, size_t n, uint64_t at_ns)
{
    size_t tail = (pipe->head + pipe->n) % pipe->cap;
    size_t front = n < pipe->cap - tail ? n : pipe->cap - tail;

    /* Nothing overtakes on a stream. */
    pipe->last_ns = at_ns > pipe->last_ns ? at_ns : pipe->last_ns;
    memcpy(pipe->bytes + tail, bytes, front);
    memcpy(pipe->bytes, bytes + front, n - front);
    pipe->n += n;
    struct sim_segment *last = pipe->n_segments > 0 ? segment_at(pipe, pipe->n_segments - 1) : NULL;
    if (last != NULL && last->at_ns == pipe->last_ns) {
        last->n += n;
        return;
    }
    *segment_at(pipe, pipe->n_segments++) = (struct sim_segment){pipe->last_ns, n};
}

size_t sim_pipe_arrived(const struct sim_pipe *pipe, uint64_t now_ns)
{
    size_t n = 0;

    if (now_ns < pipe->stalled_until_ns) {
        return 0;
    }
    for (size_t i = 0; i < pipe->n_segments && segment_at(pipe, i)->at_ns <= now_ns; i++) {
        n += segment_at(pipe, i)->n;
    }
    return n;
}

void sim_pipe_take(struct sim_pipe *pipe, uint8_t *bytes, size_t n)
{
    size_t front = n < pipe->cap - pipe->head ? n : pipe->cap - pipe->head;

    memcpy(bytes, pipe->bytes + pipe->head, front);
    memcpy(bytes + front, pipe->bytes, n - front);
    pipe->head = (pipe->head + n) % pipe->cap;
    pipe->n -= n;
    while (n > 0) {
        struct sim_segment *first = segment_at(pipe, 0);
        if (first->n > n) {
            first->n -= n;
            return;
        }
        n -= first->n;
        pipe->first_segment = (pipe->first_segment + 1) % MAX_SEGMENTS;
        pipe->n_segments--;
    }
}

bool sim_pipe_ended(const struct sim_pipe *pipe, uint64_t now_ns)
{
    return pipe->n == 0 && pipe->fin_ns <= now_ns && now_ns >= pipe->stalled_until_ns;
}

uint64_t sim_pipe_next(const struct sim_pipe *pipe, uint64_t now_ns)
{
    uint64_t next = BOW_NEVER;

    if (now_ns < pipe->stalled_until_ns) {
        return pipe->n > 0 || pipe->fin_ns != BOW_NEVER ? pipe->stalled_until_ns : BOW_NEVER;
    }
    for (size_t i = 0; i < pipe->n_segments; i++) {
        if (segment_at(pipe, i)->at_ns > now_ns) {
            next = segment_at(pipe, i)->at_ns;
            break;
        }
    }
    if (pipe->fin_ns > now_ns && pipe->fin_ns < next) {
        next = pipe->fin_ns;
    }
    return next;
}

void sim_pipe_clear(struct sim_pipe *pipe)
{
    pipe->n = 0;
    pipe->n_segments = 0;
}
