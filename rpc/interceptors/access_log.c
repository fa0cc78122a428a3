/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * An access log: lines as calls end or are refused, gathered, and written behind a turn of the
 * loop.
 *
 * Design. Calls end on several loops; all of them put their lines into one buffer, under the lock,
 * which is held for a copy or for one write that does not wait. The loop that finds no flush
 * posted posts its tail task, with a reference; `loop` is where it is. A line is in the buffer
 * whole or not at all, and what a write has left of one stays at the front, so lines
 * never mix; where that rest is dropped, the next line begins with a line feed. `refs`: relaxed
 * up, acquire-release down.
 */

#include "base/alloc.h"
#include "base/claim.h"
#include "base/options.h"
#include "base/refuse.h"
#include "rpc/interceptors/access_line.h"
#include "rpc/interceptors/log_writer.h"
#include <bowline/access_log.h>
#include <bowline/loop.h>
#include <bowline/service.h>
#include <bowline/tracer.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#define DEFAULT_BUFFER_BYTES ((size_t)64 << 10)
#define MIN_BUFFER_BYTES ((size_t)4 << 10)
#define DEFAULT_MAX_REFUSED 100
#define DEFAULT_ID_KEY "x-request-id"

struct bow_access_log {
    struct bow_context *context;
    struct bow_access_log_options options; /* `id_key` is ours */
    struct bow__log_writer writer;
    atomic_uint refs;
    atomic_uint_fast64_t n_dropped; /* relaxed */
    atomic_int used_by;             /* the process that first took the lock; 0: none has yet */
    pthread_mutex_t lock;
    char *buffer;
    size_t n_bytes;
    bool flush_posted;
    bool is_full;            /* the descriptor, when it was last tried */
    bool is_cut;             /* the last byte written was not a line's end */
    uint64_t refused_second; /* in which so many refused calls had a line */
    uint32_t n_refused;
    uint64_t n_unlogged;   /* and so many had none since the last one that had */
    struct bow_loop *loop; /* of the flush that is posted */
    struct bow_task flush_task;
};

/* In another process than that which used it the lock may be held for ever, and what waits in the
 * buffer is written by the parent. */
static bool is_foreign(const struct bow_access_log *log)
{
    return bow__is_claimed_elsewhere(bow__context_process(log->context), &log->used_by);
}

/* Returns 0 or -ECHILD. */
static int lock(struct bow_access_log *log)
{
    if (!bow__claim(bow__context_process(log->context), &log->used_by)) {
        return -ECHILD;
    }
    pthread_mutex_lock(&log->lock);
    return 0;
}

/* Writing; under the lock */

static void drop_all(struct bow_access_log *log)
{
    /* A line feed at the beginning is to end what was cut before; no line is empty. */
    const char *at = log->buffer + (log->n_bytes > 0 && log->buffer[0] == '\n');
    const char *end = log->buffer + log->n_bytes;
    uint64_t n = 0;

    while (at < end && (at = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        at++;
        n++;
    }
    atomic_fetch_add_explicit(&log->n_dropped, n, memory_order_relaxed);
    log->n_bytes = 0;
}

/* An error is final for what waits: nothing says that it ends. */
static void write_buffer(struct bow_access_log *log)
{
    size_t n_written = 0;
    ssize_t n = 0;

    while (n_written < log->n_bytes && n >= 0) {
        n = bow__log_writer_write(&log->writer, log->buffer + n_written, log->n_bytes - n_written);
        n_written += n > 0 ? (size_t)n : 0;
    }
    log->n_bytes -= n_written;
    log->is_cut = n_written > 0 ? log->buffer[n_written - 1] != '\n' : log->is_cut;
    log->is_full = n == -EAGAIN;
    memmove(log->buffer, log->buffer + n_written, log->n_bytes);
    if (n < 0 && n != -EAGAIN) {
        drop_all(log);
    }
}

static bool has_room(const struct bow_access_log *log, size_t len)
{
    return log->options.buffer_bytes - log->n_bytes >= len;
}

/* Returns whether the caller has to post the flush. */
static bool put(struct bow_access_log *log, const char *line, size_t len, struct bow_loop *loop)
{
    /* The loop that tries again may be asleep. */
    if (log->is_full || !has_room(log, len)) {
        write_buffer(log);
    }
    bool ends_another = log->n_bytes == 0 && log->is_cut;
    if (!has_room(log, len + ends_another)) {
        atomic_fetch_add_explicit(&log->n_dropped, 1, memory_order_relaxed);
        return false;
    }
    if (ends_another) {
        log->buffer[log->n_bytes++] = '\n';
    }
    memcpy(log->buffer + log->n_bytes, line, len);
    log->n_bytes += len;
    if (log->flush_posted) {
        return false;
    }
    log->flush_posted = true;
    log->loop = loop;
    return true;
}

/* Flushing */

/* Of the task that is to be posted, with its reference; refused, what can be is written now. */
static void post_flush(struct bow_access_log *log)
{
    if (bow_loop_post_tail(log->loop, &log->flush_task) == 0) {
        return;
    }
    pthread_mutex_lock(&log->lock);
    log->flush_posted = false;
    write_buffer(log);
    pthread_mutex_unlock(&log->lock);
    bow_access_log_unref(log);
}

/* What is left is tried again in the loop's next turn, which it does not cause. */
static int flush_task(void *user)
{
    struct bow_access_log *log = user;

    pthread_mutex_lock(&log->lock);
    write_buffer(log);
    log->flush_posted = log->n_bytes > 0;
    bool again = log->flush_posted;
    pthread_mutex_unlock(&log->lock);
    if (again) {
        post_flush(log);
    } else {
        bow_access_log_unref(log);
    }
    return 0;
}

static void add(struct bow_access_log *log, const char *line, size_t len, struct bow_loop *loop)
{
    if (lock(log) < 0) {
        atomic_fetch_add_explicit(&log->n_dropped, 1, memory_order_relaxed);
        return;
    }
    bool posts = put(log, line, len, loop);
    pthread_mutex_unlock(&log->lock);
    if (posts) {
        (void)bow_access_log_ref(log);
        post_flush(log);
    }
}

int bow_access_log_flush(struct bow_access_log *log)
{
    if (log->buffer == NULL) {
        return 0;
    }
    int rc = lock(log);
    if (rc < 0) {
        return rc;
    }
    write_buffer(log);
    size_t left = log->n_bytes;
    pthread_mutex_unlock(&log->lock);
    return left > 0 ? -EAGAIN : 0;
}

uint64_t bow_access_log_dropped(const struct bow_access_log *log)
{
    return atomic_load_explicit(&log->n_dropped, memory_order_relaxed);
}

/* As an interceptor */

static uint64_t unix_now(const struct bow_access_log *log)
{
    struct timespec now;

    if (log->options.unix_ns != NULL) {
        return log->options.unix_ns(log->options.user);
    }
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void write_line(struct bow_access_log *log, const struct bow__access_line *line,
                       struct bow_loop *loop)
{
    char text[BOW__ACCESS_LINE_BYTES];

    size_t len =
        log->options.json ? bow__access_line_json(line, text) : bow__access_line_text(line, text);
    if (log->options.line == NULL) {
        add(log, text, len + 1, loop);
        return;
    }
    text[len] = '\0';
    log->options.line(text, len, log->options.user);
}

static struct bow_slice find_id(const struct bow_access_log *log,
                                const struct bow_metadata *metadata)
{
    const struct bow_slice *id = bow_metadata_find(metadata, log->options.id_key);

    return id != NULL ? *id : (struct bow_slice){NULL, 0};
}

static bool has_trace(const struct bow_access_log *log)
{
    return (log->options.fields & BOW_ACCESS_LOG_TRACE) != 0;
}

static void on_end(struct bow_interception *at, const struct bow_intercepted_end *end, void *user)
{
    struct bow_access_log *log = user;
    struct bow_metadata metadata = bow_interception_metadata(at);
    const char *path = bow_interception_method(at)->path;
    const struct bow__access_line line = {
        .unix_ns = unix_now(log),
        .peer = bow_interception_peer(at),
        .protocol = bow_interception_protocol(at),
        .path = {(const uint8_t *)path, strlen(path)},
        .end = end,
        .id = find_id(log, &metadata),
        .has_trace = has_trace(log),
        .span = has_trace(log) ? bow_span_at(at) : NULL,
    };

    write_line(log, &line, bow_interception_loop(at));
}

/* A peer has calls refused for nothing; it is not to fill the log with them. */
static bool may_log_refused(struct bow_access_log *log, uint64_t unix_ns, uint64_t *ret_n_unlogged)
{
    uint64_t second = unix_ns / 1000000000u;

    if (lock(log) < 0) {
        atomic_fetch_add_explicit(&log->n_dropped, 1, memory_order_relaxed);
        return false;
    }
    if (second != log->refused_second) {
        log->refused_second = second;
        log->n_refused = 0;
    }
    bool may = log->n_refused < log->options.max_refused_per_second;
    log->n_refused += may;
    *ret_n_unlogged = log->n_unlogged;
    log->n_unlogged = may ? 0 : log->n_unlogged + 1;
    pthread_mutex_unlock(&log->lock);
    return may;
}

static void on_refused(const struct bow_refused_call *call, void *user)
{
    struct bow_access_log *log = user;
    const struct bow_intercepted_end end = {.status = call->status, .deadline_left_ns = BOW_NEVER};
    struct bow__access_line line = {
        .unix_ns = unix_now(log),
        .peer = call->peer,
        .protocol = call->protocol,
        .path = call->path,
        .end = &end,
        .id = find_id(log, &call->metadata),
        .refused = call->limit,
        .has_trace = has_trace(log),
    };

    if (may_log_refused(log, line.unix_ns, &line.n_unlogged)) {
        write_line(log, &line, call->loop);
    }
}

static void release(void *user)
{
    bow_access_log_unref(user);
}

void bow_access_log_intercept(struct bow_access_log *log, struct bow_interceptor *ret_interceptor)
{
    *ret_interceptor = (struct bow_interceptor)BOW_INTERCEPTOR_INIT;
    ret_interceptor->name = "access log";
    ret_interceptor->on_end = on_end;
    ret_interceptor->on_refused = on_refused;
    ret_interceptor->release = release;
    ret_interceptor->user = bow_access_log_ref(log);
}

/* Life */

static void destroy(struct bow_access_log *log)
{
    struct bow_context *context = log->context;
    char *id_key = (char *)(uintptr_t)log->options.id_key;

    if (log->buffer != NULL) {
        if (!is_foreign(log)) {
            write_buffer(log);
        }
        bow__free(context, log->buffer, log->options.buffer_bytes);
    }
    if (log->writer.fd >= 0) {
        bow__log_writer_close(&log->writer);
    }
    if (id_key != NULL) {
        bow__free(context, id_key, strlen(id_key) + 1);
    }
    pthread_mutex_destroy(&log->lock);
    bow__free(context, log, sizeof(*log));
    bow_context_unref(context);
}

struct bow_access_log *bow_access_log_ref(struct bow_access_log *log)
{
    atomic_fetch_add_explicit(&log->refs, 1, memory_order_relaxed);
    return log;
}

void bow_access_log_unref(struct bow_access_log *log)
{
    if (log != NULL && atomic_fetch_sub_explicit(&log->refs, 1, memory_order_acq_rel) == 1) {
        destroy(log);
    }
}

static int read_options(const struct bow_access_log_options *given,
                        struct bow_access_log_options *ret_options)
{
    int rc = bow__options_read(ret_options, sizeof(*ret_options), given);

    if (rc < 0) {
        return rc;
    }
    if (ret_options->buffer_bytes == 0) {
        ret_options->buffer_bytes = DEFAULT_BUFFER_BYTES;
    }
    if (ret_options->max_refused_per_second == 0) {
        ret_options->max_refused_per_second = DEFAULT_MAX_REFUSED;
    }
    if (ret_options->id_key == NULL) {
        ret_options->id_key = DEFAULT_ID_KEY;
    }
    bool has_fd = ret_options->fd >= 0;
    bool has_line = ret_options->line != NULL;
    if (ret_options->context == NULL) {
        return -EINVAL;
    }
    if (has_fd == has_line) {
        return bow__refuse(ret_options->context, -EINVAL,
                           "bow_access_log_new: set one of options.fd and options.line");
    }
    if (ret_options->buffer_bytes < MIN_BUFFER_BYTES) {
        return bow__refuse(ret_options->context, -EINVAL,
                           "bow_access_log_new: options.buffer_bytes is below %zu",
                           (size_t)MIN_BUFFER_BYTES);
    }
    if ((ret_options->fields & ~BOW_ACCESS_LOG_TRACE) != 0) {
        return bow__refuse(ret_options->context, -EINVAL,
                           "bow_access_log_new: options.fields has more than BOW_ACCESS_LOG_TRACE");
    }
    return 0;
}

static int open_writer(struct bow_access_log *log)
{
    if (log->options.fd < 0) {
        return 0;
    }
    int rc = bow__log_writer_open(&log->writer, log->options.fd);
    if (rc < 0) {
        return rc;
    }
    log->buffer = bow__alloc(log->context, log->options.buffer_bytes);
    return log->buffer != NULL ? 0 : -ENOMEM;
}

static int make(const struct bow_access_log_options *options, struct bow_access_log **ret_log)
{
    struct bow_access_log *log = bow__alloc_zero(options->context, sizeof(*log));

    if (log == NULL) {
        return -ENOMEM;
    }
    log->context = bow_context_ref(options->context);
    log->options = *options;
    log->writer.fd = -1;
    atomic_init(&log->refs, 1);
    pthread_mutex_init(&log->lock, NULL);
    bow_task_init(&log->flush_task, "flush access log", flush_task, log);
    log->options.id_key = bow__dup(log->context, options->id_key, strlen(options->id_key));
    int rc = log->options.id_key != NULL ? open_writer(log) : -ENOMEM;
    if (rc < 0) {
        destroy(log);
        return rc;
    }
    *ret_log = log;
    return 0;
}

int bow_access_log_new(const struct bow_access_log_options *options,
                       struct bow_access_log **ret_log)
{
    struct bow_access_log_options known = BOW_ACCESS_LOG_OPTIONS_INIT;

    int rc = read_options(options, &known);
    return rc == 0 ? make(&known, ret_log) : rc;
}
