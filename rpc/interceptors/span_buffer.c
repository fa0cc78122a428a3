/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Spans of one loop on their way to whoever takes them. Design: see the header. */

#include "rpc/interceptors/span_buffer.h"
#include "base/alloc.h"
#include "base/hints.h"
#include "base/list.h"
#include "transport/loop/loop.h"

#include <string.h>
#include <time.h>

#define FIRST_BYTES ((size_t)8 << 10)
#define MAX_BYTES                                                                                  \
    ((size_t)256 << 10) /* of texts and events: what does not fit goes with the next */

struct bow__span_buffer {
    struct bow__span_buffers *owner;
    struct bow_context *context;
    struct bow__span_buffer *next; /* constant once in the list */
    _Atomic(struct bow_loop *) loop;
    atomic_uint refs;
    struct bow_loop_hook hook;
    struct bow_task flush;
    bool flush_posted;
    bool loop_ends;
    uint64_t state[4]; /* of the generator */
    uint64_t unix_minus_loop_ns;
    size_t n;
    struct bow_span spans[BOW__SPAN_BUFFER_SPANS];
    struct bow__arena arena; /* what they point at */
    _Alignas(16) uint8_t slab[FIRST_BYTES];
};

/* Random ids: xoshiro256++ (https://prng.di.unimi.it/), for ids need to differ, not to be secret.
 */

static uint64_t rotated(uint64_t x, unsigned bits)
{
    return x << bits | x >> (64 - bits);
}

static uint64_t next_random(uint64_t state[4])
{
    uint64_t result = rotated(state[0] + state[3], 23) + state[0];
    uint64_t shifted = state[1] << 17;

    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = rotated(state[3], 45);
    return result;
}

static void read_system(struct bow_context *context, void *bytes, size_t len)
{
    const struct bow_system *system = bow__context_system(context);

    (void)system->random(system->user, bytes, len);
}

void bow__span_buffer_random(struct bow__span_buffers *buffers, struct bow__span_buffer *buffer,
                             uint8_t *bytes, size_t len)
{
    uint64_t word = 0;

    for (size_t i = 0; i < len; i += sizeof(word)) {
        if (buffer != NULL) {
            word = next_random(buffer->state);
        } else {
            read_system(buffers->context, &word, sizeof(word));
        }
        word += word == 0; /* an id of zeros is none */
        memcpy(bytes + i, &word, len - i < sizeof(word) ? len - i : sizeof(word));
    }
}

/* Giving away */

static void give_away(struct bow__span_buffer *buffer)
{
    const struct bow__span_buffers *owner = buffer->owner;

    if (buffer->n > 0) {
        owner->spans(buffer->spans, buffer->n, owner->user);
        buffer->n = 0;
        bow__arena_reset(&buffer->arena);
    }
}

/* Another loop may have it from here on. */
static void leave_loop(struct bow__span_buffer *buffer)
{
    buffer->loop_ends = false;
    atomic_store_explicit(&buffer->loop, NULL, memory_order_release);
}

static void unref(struct bow__span_buffer *buffer)
{
    struct bow_context *context = buffer->context;

    if (atomic_fetch_sub_explicit(&buffer->refs, 1, memory_order_acq_rel) == 1) {
        bow__arena_fini(&buffer->arena);
        bow__free(context, buffer, sizeof(*buffer));
        bow_context_unref(context);
    }
}

static int flush_task(void *user)
{
    struct bow__span_buffer *buffer = user;
    struct bow__span_buffers *owner = buffer->owner;

    buffer->flush_posted = false;
    give_away(buffer);
    if (buffer->loop_ends) {
        leave_loop(buffer);
    }
    owner->let_go(owner);
    return 0;
}

static void post_flush(struct bow__span_buffer *buffer, struct bow_loop *loop)
{
    if (buffer->flush_posted) {
        return;
    }
    if (bow_loop_post_tail(loop, &buffer->flush) < 0) {
        give_away(buffer);
        return;
    }
    buffer->flush_posted = true;
    buffer->owner->hold(buffer->owner);
}

/* A flush that is posted still runs. */
static void on_loop_end(struct bow_loop_hook *hook)
{
    struct bow__span_buffer *buffer = BOW__CONTAINER(hook, struct bow__span_buffer, hook);

    if (buffer->flush_posted) {
        buffer->loop_ends = true;
    } else {
        leave_loop(buffer);
    }
    unref(buffer);
}

/* Finding */

static struct bow__span_buffer *make(struct bow__span_buffers *buffers, struct bow_loop *loop)
{
    struct bow__span_buffer *buffer = bow__alloc_zero(buffers->context, sizeof(*buffer));

    if (buffer == NULL) {
        return NULL;
    }
    buffer->owner = buffers;
    buffer->context = bow_context_ref(buffers->context);
    atomic_init(&buffer->loop, loop);
    atomic_init(&buffer->refs, 1);
    bow_task_init(&buffer->flush, "give spans away", flush_task, buffer);
    bow__arena_init(&buffer->arena, buffer->context, buffer->slab, sizeof(buffer->slab), MAX_BYTES);
    read_system(buffer->context, buffer->state, sizeof(buffer->state));
    buffer->state[0] |= 1; /* a state of zeros stays one */
    return buffer;
}

static void publish(struct bow__span_buffers *buffers, struct bow__span_buffer *buffer)
{
    struct bow__span_buffer *first = atomic_load_explicit(&buffers->first, memory_order_relaxed);

    do {
        buffer->next = first;
    } while (!atomic_compare_exchange_weak_explicit(&buffers->first, &first, buffer,
                                                    memory_order_release, memory_order_relaxed));
}

static struct bow__span_buffer *take_left(struct bow__span_buffers *buffers, struct bow_loop *loop)
{
    struct bow__span_buffer *buffer = atomic_load_explicit(&buffers->first, memory_order_acquire);

    for (; buffer != NULL; buffer = buffer->next) {
        struct bow_loop *nobody = NULL;
        if (atomic_compare_exchange_strong_explicit(&buffer->loop, &nobody, loop,
                                                    memory_order_acquire, memory_order_relaxed)) {
            return buffer;
        }
    }
    return NULL;
}

static struct bow__span_buffer *begin(struct bow__span_buffers *buffers, struct bow_loop *loop)
{
    struct bow__span_buffer *buffer = take_left(buffers, loop);
    bool is_new = buffer == NULL;

    if (is_new) {
        buffer = make(buffers, loop);
    }
    if (buffer == NULL) {
        return NULL;
    }
    buffer->hook = (struct bow_loop_hook){.fn = on_loop_end};
    bool is_late = bow_loop_add_hook(loop, &buffer->hook) < 0;
    if (!is_late) {
        atomic_fetch_add_explicit(&buffer->refs, 1, memory_order_relaxed);
    } else {
        leave_loop(buffer);
    }
    if (is_new) {
        publish(buffers, buffer);
    }
    return is_late ? NULL : buffer;
}

struct bow__span_buffer *bow__span_buffer_of(struct bow__span_buffers *buffers,
                                             struct bow_loop *loop)
{
    struct bow__span_buffer *buffer = atomic_load_explicit(&buffers->first, memory_order_acquire);

    for (; buffer != NULL; buffer = buffer->next) {
        if (atomic_load_explicit(&buffer->loop, memory_order_relaxed) == loop) {
            return buffer;
        }
    }
    return begin(buffers, loop);
}

void bow__span_buffers_fini(struct bow__span_buffers *buffers)
{
    struct bow__span_buffer *buffer = atomic_load_explicit(&buffers->first, memory_order_acquire);

    while (buffer != NULL) {
        struct bow__span_buffer *next = buffer->next;
        unref(buffer);
        buffer = next;
    }
}

/* Putting */

static uint64_t unix_minus_loop(const struct bow__span_buffers *buffers, struct bow_loop *loop)
{
    struct timespec now;

    if (buffers->unix_ns != NULL) {
        return buffers->unix_ns(buffers->clock_user) - bow__loop_read_clock(loop);
    }
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec - bow__loop_read_clock(loop);
}

static void make_unix(struct bow_span *span, struct bow_span_event *events, uint64_t difference_ns)
{
    span->start_unix_ns += difference_ns;
    span->end_unix_ns += difference_ns;
    for (uint32_t i = 0; i < span->n_events; i++) {
        events[i].unix_ns += difference_ns;
    }
}

/* Three times for most spans: called, that costs forty instructions more. */
static BOW__SHORT_WAY bool copy_text(struct bow__arena *arena, const char **text)
{
    size_t len = strlen(*text);
    char *copy = bow__arena_alloc_bytes(arena, len + 1);

    if (copy != NULL) {
        memcpy(copy, *text, len + 1);
        *text = copy;
    }
    return copy != NULL;
}

static bool copy_events(struct bow__arena *arena, struct bow_span *span)
{
    size_t size = span->n_events * sizeof(*span->events);

    if (size == 0) {
        span->events = NULL;
        return true;
    }
    struct bow_span_event *copy = bow__arena_alloc(arena, size);
    if (copy != NULL) {
        memcpy(copy, span->events, size);
        span->events = copy;
    }
    return copy != NULL;
}

/* The protocol's name lasts for ever. */
static bool append(struct bow__span_buffer *buffer, const struct bow_span *span, bool has_own_path)
{
    struct bow_span *copy = &buffer->spans[buffer->n];

    if (buffer->n == BOW__SPAN_BUFFER_SPANS) {
        return false;
    }
    *copy = *span;
    if (has_own_path && !copy_text(&buffer->arena, &copy->path)) {
        return false;
    }
    if (!copy_text(&buffer->arena, &copy->tracestate) || !copy_text(&buffer->arena, &copy->peer) ||
        !copy_text(&buffer->arena, &copy->message) || !copy_events(&buffer->arena, copy)) {
        return false;
    }
    buffer->n++;
    return true;
}

void bow__span_buffer_put(struct bow__span_buffers *buffers, struct bow__span_buffer *buffer,
                          struct bow_loop *loop, struct bow_span *span, bool has_own_path)
{
    struct bow_span_event *events = (struct bow_span_event *)(uintptr_t)span->events;

    if (buffer == NULL) {
        make_unix(span, events, unix_minus_loop(buffers, loop));
        buffers->spans(span, 1, buffers->user);
        return;
    }
    if (buffer->n == 0) {
        buffer->unix_minus_loop_ns = unix_minus_loop(buffers, loop);
    }
    make_unix(span, events, buffer->unix_minus_loop_ns);
    if (!append(buffer, span, has_own_path)) {
        give_away(buffer);
        if (!append(buffer, span, has_own_path)) {
            bow__arena_reset(&buffer->arena);
            buffers->spans(span, 1, buffers->user);
            return;
        }
    }
    post_flush(buffer, loop);
}
