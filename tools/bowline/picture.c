/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Differences of two samples. How they came, and how they look, is none of this file's business.
 *
 * What is counted since the start of a server is never less later. Where a peer says otherwise,
 * nothing has happened.
 */
#include "picture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t more(uint64_t now, uint64_t then)
{
    return now > then ? now - then : 0;
}

/* Times */

/* One bucket: its greatest time, and how many calls. */
struct bucket {
    uint64_t us, n;
};

struct spread {
    struct bucket *buckets;
    size_t n;
};

static uint64_t number_of(const AnyJson__ListValue *pair, size_t at)
{
    const AnyJson__Value *value = pair->values[at];

    if (value->kind_case != ANY_JSON__VALUE__KIND_NUMBER_VALUE || !(value->number_value > 0)) {
        return 0;
    }
    return value->number_value < 1e18 ? (uint64_t)value->number_value : 0;
}

static struct bucket bucket_of(const AnyJson__ListValue *pair)
{
    return pair->n_values == 2 ? (struct bucket){number_of(pair, 0), number_of(pair, 1)}
                               : (struct bucket){0, 0};
}

/* The next time from `*at` on, of which there may be several. False: there is none any more. */
static bool next_bucket(const Told__Method *method, size_t *at, struct bucket *ret_bucket)
{
    if (method == NULL || *at >= method->n_times_us) {
        return false;
    }
    *ret_bucket = bucket_of(method->times_us[(*at)++]);
    while (*at < method->n_times_us) {
        struct bucket next = bucket_of(method->times_us[*at]);
        if (next.us != ret_bucket->us) {
            break;
        }
        ret_bucket->n += next.n;
        (*at)++;
    }
    return true;
}

/* Both lists are in the order of their times. */
static void add_new(const Told__Method *then, const Told__Method *now, struct spread *spread)
{
    struct bucket old = {0, 0};
    struct bucket bucket;
    size_t at_old = 0;
    size_t at = 0;
    bool has_old = next_bucket(then, &at_old, &old);

    while (next_bucket(now, &at, &bucket)) {
        while (has_old && old.us < bucket.us) {
            has_old = next_bucket(then, &at_old, &old);
        }
        bucket.n = more(bucket.n, has_old && old.us == bucket.us ? old.n : 0);
        if (bucket.n > 0) {
            spread->buckets[spread->n++] = bucket;
        }
    }
}

static int by_time(const void *a, const void *b)
{
    const struct bucket *one = a;
    const struct bucket *other = b;

    return (one->us > other->us) - (one->us < other->us);
}

static uint64_t quantile(const struct spread *spread, uint64_t n, double q)
{
    double wanted = q * (double)n;
    double seen = 0;

    for (size_t i = 0; i < spread->n; i++) {
        seen += (double)spread->buckets[i].n;
        if (seen >= wanted) {
            return spread->buckets[i].us;
        }
    }
    return 0;
}

static struct picture_times times_of(struct spread *spread)
{
    struct picture_times times = {0};

    if (spread->n == 0) {
        return times;
    }
    qsort(spread->buckets, spread->n, sizeof(*spread->buckets), by_time);
    for (size_t i = 0; i < spread->n; i++) {
        times.n += spread->buckets[i].n;
    }
    times.p50_us = quantile(spread, times.n, 0.5);
    times.p99_us = quantile(spread, times.n, 0.99);
    times.max_us = spread->buckets[spread->n - 1].us;
    return times;
}

/* Methods */

static int by_method(const void *a, const void *b)
{
    return strcmp((*(const Told__Method *const *)a)->method,
                  (*(const Told__Method *const *)b)->method);
}

/* Those of a sample in the order of their names, to be looked up; from calloc(). */
static const Told__Method **sorted_methods(const Told__Server *told)
{
    const Told__Method **sorted = calloc(told->n_methods + 1, sizeof(Told__Method *));

    for (size_t i = 0; sorted != NULL && i < told->n_methods; i++) {
        sorted[i] = told->methods[i];
    }
    if (sorted != NULL) {
        qsort(sorted, told->n_methods, sizeof(Told__Method *), by_method);
    }
    return sorted;
}

static const Told__Method *find_method(const Told__Method **sorted, size_t n,
                                       const Told__Method *wanted)
{
    const Told__Method **found = bsearch(&wanted, sorted, n, sizeof(Told__Method *), by_method);

    return found != NULL ? *found : NULL;
}

static uint64_t errors_of(const Told__Method *method)
{
    uint64_t n_ok = 0;

    for (size_t i = 0; i < method->n_codes; i++) {
        n_ok += strcmp(method->codes[i]->key, "OK") == 0 ? method->codes[i]->value : 0;
    }
    return more(method->ended, n_ok);
}

static void add_method(struct picture *picture, const Told__Method *then, const Told__Method *now,
                       struct spread *of_all, struct spread *of_one)
{
    struct picture_method *method = &picture->methods[picture->n_methods++];

    of_one->n = 0;
    add_new(then, now, of_one);
    memcpy(of_all->buckets + of_all->n, of_one->buckets, of_one->n * sizeof(*of_one->buckets));
    of_all->n += of_one->n;
    *method = (struct picture_method){
        .name = now->method,
        .calls = (double)more(now->ended, then != NULL ? then->ended : 0) / picture->seconds,
        .errors =
            (double)more(errors_of(now), then != NULL ? errors_of(then) : 0) / picture->seconds,
        .n_ever = now->started,
        .in_flight = now->in_flight,
        .times = times_of(of_one),
    };
    picture->calls += method->calls;
    picture->errors += method->errors;
    picture->in_flight += method->in_flight;
}

static int add_methods(struct picture *picture, const Told__Server *then, const Told__Server *now)
{
    size_t n = 1;

    for (size_t i = 0; i < now->n_methods; i++) {
        n += now->methods[i]->n_times_us;
    }
    struct spread of_all = {.buckets = calloc(n, sizeof(struct bucket))};
    struct spread of_one = {.buckets = calloc(n, sizeof(struct bucket))};
    const Told__Method **before = sorted_methods(then);
    picture->methods = calloc(now->n_methods + 1, sizeof(*picture->methods));
    bool has_memory = of_all.buckets != NULL && of_one.buckets != NULL && before != NULL &&
                      picture->methods != NULL;
    for (size_t i = 0; has_memory && i < now->n_methods; i++) {
        if (now->methods[i]->started > 0) {
            add_method(picture, find_method(before, then->n_methods, now->methods[i]),
                       now->methods[i], &of_all, &of_one);
        }
    }
    if (has_memory) {
        picture->times = times_of(&of_all);
    }
    free(of_all.buckets);
    free(of_one.buckets);
    free(before);
    return has_memory ? 0 : -ENOMEM;
}

static int by_value(double a, double b)
{
    return (a < b) - (a > b);
}

/* The greatest first; what is equal, by name. */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct picture_method *)a)->name,
                  ((const struct picture_method *)b)->name);
}

static int by_rate(const void *a, const void *b)
{
    const struct picture_method *one = a;
    const struct picture_method *other = b;
    int order = by_value(one->calls, other->calls);

    order = order != 0 ? order : by_value((double)one->n_ever, (double)other->n_ever);
    return order != 0 ? order : by_name(a, b);
}

static int by_errors(const void *a, const void *b)
{
    int order = by_value(((const struct picture_method *)a)->errors,
                         ((const struct picture_method *)b)->errors);

    return order != 0 ? order : by_rate(a, b);
}

static int by_p99(const void *a, const void *b)
{
    int order = by_value((double)((const struct picture_method *)a)->times.p99_us,
                         (double)((const struct picture_method *)b)->times.p99_us);

    return order != 0 ? order : by_rate(a, b);
}

static int by_in_flight(const void *a, const void *b)
{
    int order = by_value((double)((const struct picture_method *)a)->in_flight,
                         (double)((const struct picture_method *)b)->in_flight);

    return order != 0 ? order : by_rate(a, b);
}

static void sort_methods(struct picture *picture, enum watch_sort sort)
{
    static int (*const orders[])(const void *a, const void *b) = {
        [WATCH_BY_RATE] = by_rate,           [WATCH_BY_ERRORS] = by_errors, [WATCH_BY_P99] = by_p99,
        [WATCH_BY_IN_FLIGHT] = by_in_flight, [WATCH_BY_NAME] = by_name,
    };

    qsort(picture->methods, picture->n_methods, sizeof(*picture->methods), orders[sort]);
}

/* Loops, calls, limits */

/* Those that do not run are what one looks for; else as the server tells them. */
static int by_state(const void *a, const void *b)
{
    const struct picture_loop *one = a;
    const struct picture_loop *other = b;
    bool runs = strcmp(one->told->state, "runs") == 0;
    bool other_runs = strcmp(other->told->state, "runs") == 0;

    if (runs != other_runs) {
        return runs ? 1 : -1;
    }
    return (one->place > other->place) - (one->place < other->place);
}

static int add_loops(struct picture *picture, const Told__Server *then, const Told__Server *now)
{
    picture->loops = calloc(now->n_loops + 1, sizeof(*picture->loops));
    if (picture->loops == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < now->n_loops; i++) {
        const Told__Loop *loop = now->loops[i];
        const Told__Loop *old = i < then->n_loops ? then->loops[i] : loop;
        uint64_t us = more(loop->io_us, old->io_us) + more(loop->task_us, old->task_us);
        double busy = (double)us / 1e6 / picture->seconds;
        picture->loops[picture->n_loops++] = (struct picture_loop){
            .told = loop,
            .place = i,
            .busy = busy < 1 ? busy : 1,
            .turns = (double)more(loop->turns, old->turns) / picture->seconds,
        };
    }
    qsort(picture->loops, picture->n_loops, sizeof(*picture->loops), by_state);
    return 0;
}

static int by_age(const void *a, const void *b)
{
    return by_value((double)(*(const Told__Call *const *)a)->age_us,
                    (double)(*(const Told__Call *const *)b)->age_us);
}

static int add_calls(struct picture *picture, const Told__Server *now)
{
    picture->calls_shown = calloc(now->n_calls + 1, sizeof(Told__Call *));
    if (picture->calls_shown == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < now->n_calls; i++) {
        picture->calls_shown[picture->n_calls_shown++] = now->calls[i];
    }
    qsort(picture->calls_shown, picture->n_calls_shown, sizeof(Told__Call *), by_age);
    return 0;
}

static int by_share(const void *a, const void *b)
{
    const struct picture_limit *one = a;
    const struct picture_limit *other = b;

    return by_value((double)one->now / (double)one->most, (double)other->now / (double)other->most);
}

static void add_limits(struct picture *picture, const Told__Server *now)
{
    const Told__Config *config = now->config;
    uint64_t fullest = 0;
    uint64_t waiting = 0;

    for (size_t i = 0; i < now->n_connections; i++) {
        const Told__Connection *connection = now->connections[i];
        fullest = connection->calls > fullest ? connection->calls : fullest;
        waiting += connection->waiting_bytes;
    }
    const struct picture_limit all[PICTURE_LIMITS] = {
        {"max_connections", "", now->total_connections, config->max_connections, false},
        {"max_server_calls", "", now->total_calls + now->abandoned_calls, config->max_server_calls,
         false},
        {"max_calls", ", of the fullest connection", fullest, config->max_calls, false},
        {"max_queued_reply_bytes", "", waiting, config->max_queued_reply_bytes, true},
    };
    for (size_t i = 0; i < PICTURE_LIMITS; i++) {
        if (all[i].most > 0) {
            picture->limits[picture->n_limits++] = all[i];
        }
    }
    qsort(picture->limits, picture->n_limits, sizeof(*picture->limits), by_share);
}

/* All of it */

bool picture_is_restart(const struct sample *then, const struct sample *now)
{
    return now->told->counters->calls_started < then->told->counters->calls_started ||
           now->told->counters->connections_opened < then->told->counters->connections_opened;
}

int picture_make(const struct sample *then, const struct sample *now, enum watch_sort sort,
                 struct picture *ret_picture)
{
    const Told__Counters *old = then->told->counters;
    const Told__Counters *counters = now->told->counters;
    struct picture picture = {.told = now->told};

    picture.seconds = (double)more(now->at_ns, then->at_ns) / 1e9;
    picture.seconds = picture.seconds > 1e-9 ? picture.seconds : 1e-9;
    picture.bytes_received =
        (double)more(counters->bytes_received, old->bytes_received) / picture.seconds;
    picture.bytes_sent = (double)more(counters->bytes_sent, old->bytes_sent) / picture.seconds;
    if (add_methods(&picture, then->told, now->told) < 0 ||
        add_loops(&picture, then->told, now->told) < 0 || add_calls(&picture, now->told) < 0) {
        picture_fini(&picture);
        return -ENOMEM;
    }
    sort_methods(&picture, sort);
    add_limits(&picture, now->told);
    *ret_picture = picture;
    return 0;
}

void picture_fini(struct picture *picture)
{
    free(picture->methods);
    free(picture->loops);
    free(picture->calls_shown);
    *picture = (struct picture){.told = NULL};
}
