/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * `bowline bench`: calls at full speed, or at a rate.
 *
 * At full speed there are always so many at once, and the next begins when one ends. At a rate each
 * has its time to begin, whatever became of those before; one that begins late, since too many are
 * under way, is measured from when it should have: what a slow server does to callers is not left
 * out.
 *
 * Design: one thread, whose loop carries all connections. A slot is one of the calls at once.
 */
#include "commands.h"
#include "grpc/health/v1/health.bow.h"
#include "headers.h"
#include "peer.h"
#include "report.h"
#include "requests.h"
#include "say.h"
#include "source.h"
#include <bowline/loop.h>
#include <bowline/stream.h>
#include <bowline/timer.h>

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NS_PER_S UINT64_C(1000000000)
#define DEFAULT_DURATION_NS (10 * NS_PER_S)
#define DEFAULT_WARM_UP_NS NS_PER_S
#define DEFAULT_DEADLINE_NS (30 * NS_PER_S)
#define DEFAULT_CONCURRENCY 50
#define PROGRESS_NS (NS_PER_S / 5)

struct bench;

struct slot {
    struct bench *bench;
    struct slot *next;    /* of those that are free */
    uint64_t intended_ns; /* when its call should have begun */
    bool is_measured;
};

struct bench {
    struct options options; /* with the defaults */
    struct peer peer;
    struct bow_schema *schema;
    const struct bow_method *method;
    struct headers headers;
    struct bow_call_options call_options;
    struct requests requests;

    struct bow_loop *loop;
    struct bow_client **clients;
    struct bow_timer pace, progress;
    struct slot *slots;
    struct slot *free_slots;
    uint32_t n_clients, n_in_flight, n_connecting;
    uint64_t seq;

    uint64_t begun_ns, measure_ns, end_ns; /* end: 0 with a count */
    uint64_t last_begin_ns;                /* from then on none begins; 0: not yet */
    uint64_t n_begun_measured;
    uint64_t n_due; /* by the rate, since begun_ns */
    bool is_ending;
    int rc;
    struct report report;
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

/* Begin */

static void begin_calls(struct bench *it);

static uint64_t due_ns(const struct bench *it, uint64_t n)
{
    return it->begun_ns + (uint64_t)((double)n * 1e9 / it->options.rate);
}

static void fail(struct bench *it, int rc)
{
    it->rc = it->rc == EXIT_OK ? rc : it->rc;
    it->is_ending = true;
}

static void complete(struct slot *slot, const struct bow_status *status)
{
    struct bench *it = slot->bench;
    struct report *report = &it->report;
    size_t code = (size_t)status->code < REPORT_CODES ? (size_t)status->code : REPORT_CODES - 1;

    if (slot->is_measured) {
        report->n_ended[code]++;
        report->n_measured++;
        if (status->code == BOW_OK) {
            histogram_add(&report->histogram, clock_ns() - slot->intended_ns);
        } else if (report->failure[0] == '\0') {
            snprintf(report->failure, sizeof(report->failure), "%s", status->message);
        }
    }
    slot->next = it->free_slots;
    it->free_slots = slot;
    it->n_in_flight--;
    begin_calls(it);
}

static void on_done(struct bow_result *result, bow_any_fn fn, void *user)
{
    (void)fn;
    complete(user, &result->status);
}

static void on_message(struct bow_stream *stream, const ProtobufCMessage *message, void *user)
{
    struct slot *slot = user;

    (void)stream;
    (void)message;
    slot->bench->report.n_messages += slot->is_measured;
}

static void on_closed(struct bow_stream *stream, struct bow_result *result, void *user)
{
    (void)stream;
    complete(user, &result->status);
}

static const struct bow_schema_stream_events stream_events = {
    .on_message = on_message,
    .on_closed = on_closed,
};

/* All messages of the data, the number of the call in each. */
static int send_all(struct bench *it, struct bow_stream *stream)
{
    const ProtobufCMessage *message;

    for (uint64_t i = 0; i < it->requests.n; i++) {
        int rc = requests_make(&it->requests, i, it->seq, &message);
        if (rc != EXIT_OK) {
            return rc;
        }
        rc = bow_stream_send(stream, message);
        if (rc == -EAGAIN) {
            return say_failed(EXIT_USAGE, "the messages of one call are too many bytes to be sent "
                                          "at once: take fewer, or smaller ones");
        }
    }
    (void)bow_stream_half_close(stream);
    return EXIT_OK;
}

static int cannot_begin(int error)
{
    return say_failed(EXIT_FAILED, "a call cannot begin: %s", strerror(-error));
}

/* Returns EXIT_OK once the call has begun, also when it is `fail`ed. */
static int begin_stream(struct bench *it, struct bow_client *client, struct slot *slot,
                        const ProtobufCMessage *request)
{
    struct bow_stream *stream = NULL;

    int rc = bow_client_open(client, it->method, request, &it->call_options, &stream_events, slot,
                             &stream);
    if (rc < 0) {
        return cannot_begin(rc);
    }
    rc = request == NULL ? send_all(it, stream) : EXIT_OK;
    if (rc != EXIT_OK) {
        fail(it, rc);
        bow_stream_cancel(stream);
    }
    bow_stream_unref(stream);
    return EXIT_OK;
}

static int begin_call(struct bench *it, struct bow_client *client, struct slot *slot)
{
    bool sends = (it->method->flags & BOW_METHOD_CLIENT_STREAMING) != 0;
    bool receives = (it->method->flags & BOW_METHOD_SERVER_STREAMING) != 0;
    const ProtobufCMessage *request = NULL;

    int rc = sends ? EXIT_OK : requests_make(&it->requests, it->seq, it->seq, &request);
    if (rc != EXIT_OK) {
        return rc;
    }
    if (sends || receives) {
        return begin_stream(it, client, slot, request);
    }
    rc =
        bow_client_start(client, it->method, request, &it->call_options, on_done, NULL, slot, NULL);
    return rc < 0 ? cannot_begin(rc) : EXIT_OK;
}

/* Begin one that should have begun at `intended_ns`. */
static bool begin_one(struct bench *it, uint64_t intended_ns)
{
    struct slot *slot = it->free_slots;
    struct bow_client *client = it->clients[it->seq % it->n_clients];

    slot->intended_ns = intended_ns;
    slot->is_measured = intended_ns >= it->measure_ns;
    int rc = begin_call(it, client, slot);
    if (rc != EXIT_OK) {
        fail(it, rc);
        return false;
    }
    it->free_slots = slot->next;
    it->n_in_flight++;
    it->seq++;
    it->report.n_total++;
    it->n_begun_measured += slot->is_measured;
    return true;
}

static bool is_over(struct bench *it, uint64_t now)
{
    if (interrupted || (it->end_ns != 0 && now >= it->end_ns) ||
        (it->end_ns == 0 && it->n_begun_measured >= it->options.count)) {
        it->is_ending = true;
        it->last_begin_ns = it->last_begin_ns == 0 ? now : it->last_begin_ns;
    }
    return it->is_ending;
}

static void begin_at_rate(struct bench *it)
{
    uint64_t now = clock_ns();

    while (!is_over(it, now) && it->free_slots != NULL && due_ns(it, it->n_due) <= now) {
        if (!begin_one(it, due_ns(it, it->n_due))) {
            return;
        }
        it->n_due++;
    }
    uint64_t next = due_ns(it, it->n_due);
    if (!it->is_ending && it->free_slots != NULL && next > now) {
        bow_timer_start(&it->pace, next - now);
    }
}

static void begin_calls(struct bench *it)
{
    if (it->options.rate > 0) {
        begin_at_rate(it);
        return;
    }
    while (it->free_slots != NULL && !is_over(it, clock_ns())) {
        if (!begin_one(it, clock_ns())) {
            return;
        }
    }
}

static void on_pace(struct bow_timer *timer, void *user)
{
    (void)timer;
    begin_calls(user);
}

/* Progress */

static void show_progress(const struct bench *it, uint64_t now)
{
    const struct histogram *histogram = &it->report.histogram;
    uint64_t measured_ns = now > it->measure_ns ? now - it->measure_ns : 0;

    if (!isatty(STDERR_FILENO)) {
        return;
    }
    if (measured_ns == 0) {
        fprintf(stderr, "\r\033[Kwarming up");
    } else {
        fprintf(stderr,
                "\r\033[K%.1f s  %" PRIu64 " calls  %.0f a second  p50 %.3f ms  p99 %.3f ms",
                (double)measured_ns / 1e9, it->report.n_measured,
                (double)it->report.n_measured * 1e9 / (double)measured_ns,
                (double)histogram_percentile(histogram, 50) / 1e6,
                (double)histogram_percentile(histogram, 99) / 1e6);
    }
    fflush(stderr);
}

static void on_progress(struct bow_timer *timer, void *user)
{
    struct bench *it = user;

    show_progress(it, clock_ns());
    (void)is_over(it, clock_ns());
    bow_timer_start(timer, PROGRESS_NS);
}

/* The connections are made first, by a call that changes nothing. */

static void on_connected(struct bow_result *result, bow_any_fn fn, void *user)
{
    struct bench *it = user;
    enum bow_code code = result->status.code;

    (void)fn;
    it->n_connecting--;
    if ((code == BOW_UNAVAILABLE || code == BOW_DEADLINE_EXCEEDED) && it->rc == EXIT_OK) {
        fail(it, peer_failed(&it->peer, &result->status));
    }
}

static void connect_all(struct bench *it)
{
    Bow__Health__HealthCheckRequest request = BOW__HEALTH__HEALTH_CHECK_REQUEST__INIT;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;

    options.timeout_ns = DEFAULT_DEADLINE_NS;
    for (uint32_t i = 0; i < it->n_clients; i++) {
        int rc = bow_client_start(it->clients[i], &bow__health__health__service.methods[0],
                                  &request.base, &options, on_connected, NULL, it, NULL);
        if (rc < 0) {
            fail(it, say_failed(EXIT_FAILED, "a call cannot begin: %s", strerror(-rc)));
            return;
        }
        it->n_connecting++;
    }
}

static int run_loop_while(struct bench *it, const uint32_t *n_left, bool until_ending)
{
    while (*n_left > 0 || (until_ending && !it->is_ending)) {
        int rc = bow_loop_run_once(it->loop, BOW_NEVER);
        if (rc < 0) {
            return say_failed(EXIT_FAILED, "the event loop: %s", strerror(-rc));
        }
    }
    return EXIT_OK;
}

/*
 * The time in which calls began, not until the last has ended: as many as begin in it end in it,
 * once they are under way. At full speed without a warm-up, or of a number of calls, those that
 * begin first take the place of none.
 */
static double measured_seconds(const struct bench *it, uint64_t end_ns)
{
    bool is_steady = it->options.rate > 0 || it->options.warm_up_ns > 0;

    if (it->end_ns != 0 && is_steady && it->last_begin_ns != 0) {
        end_ns = it->last_begin_ns < it->end_ns ? it->last_begin_ns : it->end_ns;
    }
    return end_ns > it->measure_ns ? (double)(end_ns - it->measure_ns) / 1e9 : 0;
}

static void measure(struct bench *it)
{
    uint64_t now = clock_ns();
    bool is_counted = it->options.count != 0;

    it->begun_ns = now;
    it->measure_ns = now + it->options.warm_up_ns;
    it->end_ns = is_counted ? 0 : it->measure_ns + it->options.duration_ns;
    bow_timer_init(&it->pace, it->loop, on_pace, it);
    bow_timer_init(&it->progress, it->loop, on_progress, it);
    bow_timer_start(&it->progress, PROGRESS_NS);
    begin_calls(it);
    int rc = run_loop_while(it, &it->n_in_flight, true);
    it->rc = it->rc == EXIT_OK ? rc : it->rc;
    uint64_t end_ns = clock_ns();
    bow_timer_stop(&it->pace);
    bow_timer_stop(&it->progress);
    if (isatty(STDERR_FILENO)) {
        fprintf(stderr, "\r\033[K");
    }
    it->report.seconds = measured_seconds(it, end_ns);
    if (it->options.rate > 0 && it->end_ns != 0 && !interrupted) {
        uint64_t n_due = (uint64_t)((double)(it->end_ns - it->begun_ns) / 1e9 * it->options.rate);
        it->report.n_late = n_due > it->n_due ? n_due - it->n_due : 0;
    }
}

/* Set-up */

static void set_defaults(struct options *options)
{
    options->concurrency = options->concurrency != 0 ? options->concurrency : DEFAULT_CONCURRENCY;
    options->connections = options->connections != 0 ? options->connections : 1;
    options->duration_ns = options->duration_ns != 0 ? options->duration_ns : DEFAULT_DURATION_NS;
    options->deadline_ns = options->deadline_ns != 0 ? options->deadline_ns : DEFAULT_DEADLINE_NS;
    if (!options->has_warm_up) {
        options->warm_up_ns = options->count != 0 ? 0 : DEFAULT_WARM_UP_NS;
    }
}

static int make_slots(struct bench *it)
{
    it->slots = calloc(it->options.concurrency, sizeof(*it->slots));
    it->clients = calloc(it->options.connections, sizeof(struct bow_client *));
    if (it->slots == NULL || it->clients == NULL) {
        return say_failed(EXIT_FAILED, "no memory");
    }
    for (uint32_t i = 0; i < it->options.concurrency; i++) {
        it->slots[i] = (struct slot){.bench = it, .next = it->free_slots};
        it->free_slots = &it->slots[i];
    }
    for (uint32_t i = 0; i < it->options.connections; i++) {
        int rc = peer_client(&it->peer, it->loop, &it->clients[i]);
        if (rc != EXIT_OK) {
            return rc;
        }
        it->n_clients++;
    }
    return EXIT_OK;
}

static int prepare(struct bench *it)
{
    struct bow_loop_options loop = BOW_LOOP_OPTIONS_INIT;

    loop.thread = BOW_LOOP_OWNER;
    if (bow_loop_new(it->peer.context, &loop, &it->loop) < 0) {
        return say_failed(EXIT_FAILED, "no memory, or no descriptors, for an event loop");
    }
    int rc = headers_read(&it->options, &it->headers);
    if (rc == EXIT_OK) {
        rc = source_method(&it->peer, &it->options, it->options.args[1], &it->schema, &it->method);
    }
    if (rc == EXIT_OK) {
        rc = requests_read(&it->requests, it->options.n_args > 2 ? it->options.args[2] : NULL,
                           it->method->input, it->schema);
    }
    it->call_options = (struct bow_call_options)BOW_CALL_OPTIONS_INIT;
    it->call_options.metadata = &it->headers.metadata;
    it->call_options.timeout_ns = it->options.deadline_ns;
    return rc == EXIT_OK ? make_slots(it) : rc;
}

static int report(struct bench *it)
{
    struct report *made = &it->report;
    int rc = EXIT_OK;

    made->options = &it->options;
    made->target = it->peer.target;
    made->method = it->method->path + 1;
    if (it->options.json) {
        report_json(made);
    } else {
        report_text(made);
    }
    if (it->options.html != NULL) {
        rc = report_html(made, it->options.html);
    }
    if (rc == EXIT_OK && made->n_ended[BOW_OK] == 0) {
        rc = EXIT_FAILED; /* nothing was measured */
    }
    return rc;
}

static int run(struct bench *it)
{
    int rc = prepare(it);

    if (rc != EXIT_OK) {
        return rc;
    }
    signal(SIGINT, on_interrupt);
    connect_all(it);
    rc = run_loop_while(it, &it->n_connecting, false);
    it->rc = it->rc == EXIT_OK ? rc : it->rc;
    if (it->rc == EXIT_OK) {
        it->is_ending = false;
        measure(it);
    }
    return it->rc == EXIT_OK ? report(it) : it->rc;
}

int command_bench(const struct options *options)
{
    struct bench *it = calloc(1, sizeof(*it));

    if (it == NULL) {
        return say_failed(EXIT_FAILED, "no memory");
    }
    it->options = *options;
    set_defaults(&it->options);
    int rc = peer_open(&it->peer, &it->options, options->args[0]);
    if (rc == EXIT_OK) {
        rc = run(it);
    }
    for (uint32_t i = 0; i < it->n_clients; i++) {
        bow_client_free(it->clients[i]);
    }
    bow_loop_unref(it->loop);
    peer_close(&it->peer);
    bow_schema_free(it->schema);
    requests_free(&it->requests);
    headers_free(&it->headers);
    free(it->clients);
    free(it->slots);
    free(it);
    return rc;
}
