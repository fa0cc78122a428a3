/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a server has counted, by method and in all, as JSON and text. Times are given as buckets, of
 * which who asks twice takes the difference: so a page knows the percentiles of the last seconds,
 * and the server keeps nothing for it.
 */
#include "rpc/server/operations/methods.h"

#include <bowline/metrics.h>
#include <bowline/status.h>
#include <string.h>

struct shown {
    struct bow__out *out;
    struct bow_histogram times; /* nearly 10 KiB: one for all methods */
};

static uint64_t n_ended(const struct bow_method_metrics *method)
{
    uint64_t n = 0;

    for (unsigned code = 0; code < BOW_N_CODES; code++) {
        n += method->ended[code];
    }
    return n;
}

static void json_bucket(uint64_t us, uint64_t n, struct bow__out *out)
{
    if (n > 0) {
        bow__out_open(out, NULL, '[');
        bow__out_number(out, NULL, us);
        bow__out_number(out, NULL, n);
        bow__out_close(out, ']');
    }
}

/* Buckets that are not empty, as pairs: the greatest value in microseconds, and how many; those of
 * the same microsecond are one. */
static void json_buckets(const struct bow_histogram *times, struct bow__out *out)
{
    uint64_t us = 0;
    uint64_t n = 0;

    bow__out_open(out, "times_us", '[');
    for (size_t i = 0; i < BOW_HISTOGRAM_BUCKETS; i++) {
        uint64_t least = 0;
        uint64_t greatest = 0;
        if (times->buckets[i] == 0 || bow_histogram_bounds(i, &least, &greatest) < 0) {
            continue;
        }
        if (greatest / 1000u != us) {
            json_bucket(us, n, out);
            us = greatest / 1000u;
            n = 0;
        }
        n += times->buckets[i];
    }
    json_bucket(us, n, out);
    bow__out_close(out, ']');
}

static void json_method(const struct bow_method_metrics *method, void *user)
{
    struct shown *shown = user;
    struct bow__out *out = shown->out;

    bow_method_metrics_times(method, BOW_TIME_CALL, BOW_N_CODES, &shown->times);
    bow__out_open(out, NULL, '{');
    bow__out_string(out, "method", method->path);
    bow__out_number(out, "started", method->started);
    bow__out_number(out, "ended", n_ended(method));
    bow__out_number(out, "in_flight", method->in_flight);
    bow__out_open(out, "codes", '{');
    for (unsigned code = 0; code < BOW_N_CODES; code++) {
        if (method->ended[code] > 0) {
            bow__out_number(out, bow_code_name((enum bow_code)code), method->ended[code]);
        }
    }
    bow__out_close(out, '}');
    bow__out_number(out, "bytes_in", method->bytes_in);
    bow__out_number(out, "bytes_out", method->bytes_out);
    bow__out_number(out, "p50_us", bow_histogram_quantile(&shown->times, 0.5) / 1000u);
    bow__out_number(out, "p90_us", bow_histogram_quantile(&shown->times, 0.9) / 1000u);
    bow__out_number(out, "p99_us", bow_histogram_quantile(&shown->times, 0.99) / 1000u);
    bow__out_number(out, "max_us", shown->times.max / 1000u);
    json_buckets(&shown->times, out);
    bow__out_close(out, '}');
}

void bow__operations_json_methods(const struct bow_server *server, struct bow__out *out)
{
    struct shown shown = {.out = out};

    bow__out_open(out, "methods", '[');
    bow_server_each_method(server, json_method, &shown);
    bow__out_close(out, ']');
}

static void text_method(const struct bow_method_metrics *method, void *user)
{
    struct shown *shown = user;
    uint64_t ended = n_ended(method);

    bow_method_metrics_times(method, BOW_TIME_CALL, BOW_N_CODES, &shown->times);
    bow__out_printf(shown->out, "method ");
    bow__out_escaped(shown->out, method->path);
    bow__out_printf(shown->out,
                    ": %" PRIu64 " started, %" PRIu64 " ended, %" PRIu64 " not OK, %" PRIu64
                    " in flight, half in %" PRIu64 " us, 90%% in %" PRIu64 " us, 99%% in %" PRIu64
                    " us, the longest %" PRIu64 " us\n",
                    method->started, ended, ended - method->ended[BOW_OK], method->in_flight,
                    bow_histogram_quantile(&shown->times, 0.5) / 1000u,
                    bow_histogram_quantile(&shown->times, 0.9) / 1000u,
                    bow_histogram_quantile(&shown->times, 0.99) / 1000u, shown->times.max / 1000u);
}

void bow__operations_text_methods(const struct bow_server *server, struct bow__out *out)
{
    struct shown shown = {.out = out};

    bow_server_each_method(server, text_method, &shown);
}

void bow__operations_json_counters(const struct bow_server *server, struct bow__out *out)
{
    struct bow_metrics metrics = BOW_METRICS_INIT;

    (void)bow_server_metrics(server, &metrics);
    const struct {
        const char *name;
        uint64_t value;
    } counters[] = {
        {"connections_opened", metrics.connections_opened},
        {"connections_closed", metrics.connections_closed},
        {"connections_refused", metrics.connections_refused},
        {"bytes_received", metrics.bytes_received},
        {"bytes_sent", metrics.bytes_sent},
        {"calls_started", metrics.calls_started},
        {"calls_ended", metrics.calls_ended},
        {"calls_unanswered", metrics.calls_unanswered},
        {"calls_expired_unrun", metrics.calls_expired_unrun},
        {"calls_delayed", metrics.calls_delayed},
        {"calls_refused_server", metrics.calls_refused_server},
        {"calls_refused_method", metrics.calls_refused_method},
        {"calls_refused_connection", metrics.calls_refused_connection},
        {"calls_refused_waiting", metrics.calls_refused_waiting},
        {"calls_refused_memory", metrics.calls_refused_memory},
        {"calls_refused_bytes", metrics.calls_refused_bytes},
        {"requests_refused", metrics.requests_refused},
        {"unknown_methods", metrics.unknown_methods},
        {"undecodable_messages", metrics.undecodable_messages},
        {"bad_prefaces", metrics.bad_prefaces},
        {"protocol_errors", metrics.protocol_errors},
        {"heartbeats_lost", metrics.heartbeats_lost},
        {"first_frame_timeouts", metrics.first_frame_timeouts},
        {"connections_stalled", metrics.connections_stalled},
        {"connections_untaken", metrics.connections_untaken},
        {"reloads_failed", metrics.reloads_failed},
    };

    bow__out_open(out, "counters", '{');
    for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
        bow__out_number(out, counters[i].name, counters[i].value);
    }
    bow__out_close(out, '}');
}
