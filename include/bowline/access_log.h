/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_ACCESS_LOG_H
#define BOWLINE_ACCESS_LOG_H

/*
 * A line for each call that has ended, of servers and clients, as an interceptor
 * (<bowline/interceptor.h>). Registered first it sees what the others refuse.
 *
 *     2026-03-01T12:00:00.123456Z 127.0.0.1:40312 grpc /demo.Greeter/SayHello OK in=1/7 out=1/14
 *     us=182 left_us=29999818 id="4f2a" message=""
 *
 * (one line; `in` and `out` are messages and their bytes, `us` how long it took, `left_us` what
 * was left until the deadline, "-" without one; `id` comes from the metadata). With options.json:
 *
 *     {"time":"2026-03-01T12:00:00.123456Z","peer":"127.0.0.1:40312","protocol":"grpc",
 *      "method":"/demo.Greeter/SayHello","code":"OK","in":1,"in_bytes":7,"out":1,"out_bytes":14,
 *      "us":182,"left_us":29999818,"id":"4f2a","message":""}
 *
 * Calls that a server refuses before they begin have lines too, with two more fields at the end:
 * the name of the limit, or "unknown_method", "expired", "draining", "memory", "http_version" (of
 * streams both ways over HTTP/1.1); and how many since the last such line have none, for a peer has
 * as many refused as it likes, and so options.max_refused_per_second bounds them:
 *
 *     … grpc /demo.Greeter/SayHello RESOURCE_EXHAUSTED in=0/0 … refused=max_server_calls unlogged=0
 *
 * (in JSON: "refused":"max_server_calls","unlogged":0). Where the path was not read, it is "-", in
 * JSON "".
 *
 * With BOW_ACCESS_LOG_TRACE in options.fields each line also says which span the call is
 * (<bowline/tracer.h>), behind the message:
 *
 *     … message="" trace_id=4bf92f3577b34da6a3ce929d0e0e4736 span_id=00f067aa0ba902b7
 *
 * (in JSON: "trace_id":"4bf9…","span_id":"00f0…"). Of a call without a span they are "-", in JSON
 * "".
 *
 * What a peer can choose (id, message, the path of a refused call) is cut, and escaped: a line is a
 * line, whatever it says.
 *
 * Lines go to a callback, or to a descriptor: gathered, and written at the end of a turn of a loop
 * that had any. A descriptor that takes no more never holds a loop up: lines wait, in
 * options.buffer_bytes, and are tried again in later turns; those beyond that are dropped and
 * counted. Regular files are written to as they are, for they take everything; what the disk
 * cannot, is an error, and dropped; a line that it cut is ended before the next one.
 *
 *     bow_access_log_new ──► bow_access_log_intercept(&interceptor) ──► register ──► unref
 */

#include <bowline/interceptor.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_access_log;
struct bow_context;

/** Takes one line without its line feed (borrowed; a NUL is at its end). Thread: the call's loop.
 */
typedef void (*bow_access_log_fn)(const char *line, size_t len, void *user);

/** Further fields of each line, for options.fields. */
#define BOW_ACCESS_LOG_TRACE UINT64_C(1) /* trace_id and span_id */

/** What a log is made with; begin with BOW_ACCESS_LOG_OPTIONS_INIT. */
struct bow_access_log_options {
    size_t size;                 /* sizeof this struct, set by the INIT */
    struct bow_context *context; /* shared; not NULL */
    int fd; /* where lines go; duplicated, and its own flags are left alone; -1: to `line` */
    bow_access_log_fn line;          /* called for each line, when there is no fd */
    void *user;                      /* kept */
    bool json;                       /* one object a line, instead of text */
    const char *id_key;              /* metadata that names a call; copied; NULL: "x-request-id" */
    size_t buffer_bytes;             /* of lines that wait; 0: 64 KiB; at least 4 KiB */
    uint64_t (*unix_ns)(void *user); /* nanoseconds since 1970; NULL: the system's clock */
    uint32_t
        max_refused_per_second; /* lines of calls that were refused before they began; 0: 100 */
    uint64_t fields;            /* of BOW_ACCESS_LOG_…, added; 0: none */
};

#define BOW_ACCESS_LOG_OPTIONS_INIT BOW__INIT(struct bow_access_log_options, BOW__SET(fd, -1))

/**
 * Make a log.
 *
 * Thread:  any
 * Owns:    gives `*ret_log`; drop it with bow_access_log_unref()
 * Returns: 0; -ENOMEM; -EINVAL (options: their size, no context, neither or both of fd and line,
 *          too small a buffer, fields that are none); what duplicating the descriptor fails with
 * (-EACCES: a pipe of somebody else's that would block)
 */
BOW_EXPORT BOW_MUST_USE int bow_access_log_new(const struct bow_access_log_options *options,
                                               struct bow_access_log **ret_log);

/**
 * Make the interceptor that writes to `log`; several may, of several servers and clients. It is
 * for one registration, and has a reference of its own: whoever does not register it after all
 * calls its release.
 *
 * Thread:  any
 */
BOW_EXPORT void bow_access_log_intercept(struct bow_access_log *log,
                                         struct bow_interceptor *ret_interceptor);

/** Write what waits, without waiting. Returns: 0; -EAGAIN when something is left; -ECHILD after
 * fork(), when it was used by the parent process, whose lines those are. Thread: any. */
BOW_EXPORT int bow_access_log_flush(struct bow_access_log *log);

/** Lines that were dropped so far. Thread: any. */
BOW_EXPORT uint64_t bow_access_log_dropped(const struct bow_access_log *log);

/** Take one more reference. Thread: any. Returns: `log`. */
BOW_EXPORT struct bow_access_log *bow_access_log_ref(struct bow_access_log *log);
/** Drop a reference; the last one flushes. NULL is allowed. Thread: any. */
BOW_EXPORT void bow_access_log_unref(struct bow_access_log *log);

#ifdef __cplusplus
}
#endif
#endif
