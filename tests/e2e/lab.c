/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The Lab server and the measuring helpers of the whole-process tests. */

#include "lab.h"
#include <bowline/call.h>
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static void echo(struct bow_call *call, const Lab__Blob *request, void *user)
{
    Lab__Blob reply = LAB__BLOB__INIT;
    (void)user;
    reply.id = request->id;
    reply.body = request->body;
    if (request->reply_bytes > 0) {
        reply.body.len = request->reply_bytes;
        reply.body.data = bow_call_alloc(call, reply.body.len);
        if (reply.body.data != NULL) {
            memset(reply.body.data, (int)(request->id & 0xff), reply.body.len);
        }
    }
    lab__lab__echo__reply(call, &reply);
}

static void on_cancel(struct bow_call *call, enum bow_code why, void *user)
{
    struct lab *lab = user;
    (void)call;
    (void)why;
    atomic_fetch_add(&lab->n_cancelled, 1);
}

static void hang(struct bow_call *call, const Lab__Blob *request, void *user)
{
    struct lab *lab = user;
    (void)request;
    unsigned place = atomic_fetch_add(&lab->n_held, 1);
    if (place >= sizeof(lab->held) / sizeof(lab->held[0])) {
        atomic_fetch_sub(&lab->n_held, 1);
        bow_call_fail(call, BOW_RESOURCE_EXHAUSTED, "the lab holds %u calls already", place);
        return;
    }
    lab->held[place] = call;
    bow_call_on_cancel(call, on_cancel, lab);
    atomic_fetch_add(&lab->n_hung, 1);
}

static void start(struct lab *lab, const char *prefix, struct bow_server_options *options)
{
    struct lab__lab__handlers handlers = {.echo = echo, .hang = hang};

    options->context = lab->context;
    options->listen = "127.0.0.1:0";
    assert_int_equal(bow_server_new(options, &lab->server), 0);
    assert_int_equal(lab__lab__serve(lab->server, &handlers, lab), 0);
    int rc = bow_server_start(lab->server);
    if (rc != 0) {
        fail_msg("%s", bow_server_error(lab->server));
    }
    lab->port = bow_server_port(lab->server);
    snprintf(lab->target, sizeof(lab->target), "%s127.0.0.1:%u", prefix, lab->port);
}

void lab_start_with(struct lab *lab, const char *prefix, const struct bow_server_options *given,
                    size_t max_bytes)
{
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_server_options options = *given;

    memset(lab, 0, sizeof(*lab));
    context_options.max_bytes = max_bytes;
    assert_int_equal(bow_context_new(&context_options, &lab->context), 0);
    start(lab, prefix, &options);
}

void lab_start(struct lab *lab, const char *prefix)
{
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;

    options.workers = 1;
    options.grace_ns = LAB_MS;
    lab_start_with(lab, prefix, &options, 0);
}

void lab_stop(struct lab *lab)
{
    bow_server_stop(lab->server);
    assert_int_equal(bow_server_join(lab->server), 0);
    for (uint32_t i = 0; i < lab->n_held; i++) {
        assert_int_equal(bow_call_fail(lab->held[i], BOW_ABORTED, "too late"), -ECANCELED);
    }
    bow_server_free(lab->server);
    assert_int_equal(bow_context_bytes(lab->context), 0);
    bow_context_unref(lab->context);
}

size_t lab_rss_bytes(void)
{
    unsigned long total = 0;
    unsigned long resident = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    assert_non_null(statm);
    assert_int_equal(fscanf(statm, "%lu %lu", &total, &resident), 2);
    fclose(statm);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

uint64_t lab_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

bool lab_wait_count(const atomic_uint *count, unsigned wanted, uint64_t timeout_ns)
{
    uint64_t end = lab_now_ns() + timeout_ns;
    while (atomic_load(count) < wanted) {
        if (lab_now_ns() > end) {
            return false;
        }
        sched_yield();
    }
    return true;
}

static int by_value(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

uint64_t lab_percentile(uint64_t *values, size_t n, unsigned percent)
{
    qsort(values, n, sizeof(*values), by_value);
    return values[(n - 1) * percent / 100];
}

uint64_t lab_median(uint64_t *values, size_t n)
{
    return lab_percentile(values, n, 50);
}

bool lab_is_instrumented(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return true;
#else
    return false;
#endif
}
