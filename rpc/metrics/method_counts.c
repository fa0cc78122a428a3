/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What loops have counted of a method, added up for who asks.
 */

#include "rpc/metrics/method_counts.h"

static void add_sizes(const struct bow__sizes *sizes, struct bow_sizes *sum)
{
    for (size_t i = 0; i < BOW_N_SIZES; i++) {
        uint64_t n = bow__counted(&sizes->n[i]);
        sum->buckets[i] += n;
        sum->count += n;
    }
    sum->sum += bow__counted(&sizes->sum);
}

void bow__method_counts_add(const struct bow__method_counts *counts, struct bow_method_metrics *sum)
{
    for (size_t code = 0; code < BOW_N_CODES; code++) {
        sum->ended[code] += bow__counted(&counts->ended[code]);
    }
    sum->started += bow__counted(&counts->started);
    sum->bytes_in += bow__counted(&counts->bytes_in);
    sum->bytes_out += bow__counted(&counts->bytes_out);
    sum->total_ns += bow__counted(&counts->total_ns);
    for (size_t i = 0; i < BOW_N_REFUSALS; i++) {
        sum->refused[i] += bow__counted(&counts->refused[i]);
    }
    sum->cancelled += bow__counted(&counts->cancelled);
    sum->stalls += bow__counted(&counts->stalls);
    sum->attempts += bow__counted(&counts->attempts);
    sum->retries += bow__counted(&counts->retries);
    add_sizes(&counts->received, &sum->received);
    add_sizes(&counts->sent, &sum->sent);
}

void bow__method_counts_add_times(const struct bow__method_counts *counts,
                                  enum bow_method_time what, unsigned code,
                                  struct bow_histogram *sum)
{
    for (unsigned i = 0; i < BOW_N_CODES; i++) {
        if (code == BOW_N_CODES || i == code) {
            bow__times_add(&counts->times[what][i], sum);
        }
    }
}

void bow__method_counts_fini(struct bow__method_counts *counts, struct bow_context *context)
{
    for (size_t what = 0; what < BOW_N_TIMES; what++) {
        for (size_t code = 0; code < BOW_N_CODES; code++) {
            bow__times_free(&counts->times[what][code], context);
        }
    }
}

const char *bow_refusal_name(unsigned refusal)
{
    static const char *const names[BOW_N_REFUSALS] = {
        [BOW_REFUSED_MEMORY] = "max_bytes",        [BOW_REFUSED_BYTES] = "max_bytes_in_flight",
        [BOW_REFUSED_SERVER] = "max_server_calls", [BOW_REFUSED_METHOD] = "bow_server_limit_calls",
        [BOW_REFUSED_CONNECTION] = "max_calls",    [BOW_REFUSED_WAITING] = "max_waiting_calls",
        [BOW_REFUSED_QUEUE] = "max_queued_calls",
    };

    return refusal < BOW_N_REFUSALS ? names[refusal] : "";
}

static void add(const struct bow__method_counts *counts, void *user)
{
    bow__method_counts_add(counts, user);
}

void bow__method_metrics_read(const char *path, const struct bow_method_source *source,
                              struct bow_method_metrics *ret_metrics)
{
    uint64_t n_ended = 0;

    *ret_metrics = (struct bow_method_metrics){.path = path, .source = source};
    source->each(source, add, ret_metrics);
    for (size_t code = 0; code < BOW_N_CODES; code++) {
        n_ended += ret_metrics->ended[code];
    }
    /* Its start may be seen later than its end. */
    ret_metrics->in_flight = ret_metrics->started > n_ended ? ret_metrics->started - n_ended : 0;
}

struct asked_times {
    enum bow_method_time what;
    unsigned code;
    struct bow_histogram *histogram;
};

static void add_times(const struct bow__method_counts *counts, void *user)
{
    const struct asked_times *asked = user;

    bow__method_counts_add_times(counts, asked->what, asked->code, asked->histogram);
}

void bow_method_metrics_times(const struct bow_method_metrics *metrics, enum bow_method_time what,
                              unsigned code, struct bow_histogram *ret_times)
{
    struct asked_times asked = {.what = what, .code = code, .histogram = ret_times};

    *ret_times = (struct bow_histogram)BOW_HISTOGRAM_INIT;
    if ((unsigned)what < BOW_N_TIMES && code <= BOW_N_CODES) {
        metrics->source->each(metrics->source, add_times, &asked);
    }
}
