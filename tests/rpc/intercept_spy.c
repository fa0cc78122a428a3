/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the spies write down, and how a test waits for them.
 */

#include "intercept_spy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What a spy keeps in its state: whether its call has begun, and that it is its own. */
struct spied {
    struct spy *spy;
    int n_starts;
    uint8_t zeroes[SPY_STATE_BYTES - sizeof(struct spy *) - sizeof(int)];
};

_Static_assert(sizeof(struct spied) == SPY_STATE_BYTES, "all of the state is looked at");

static void write_down(struct spy *spy, int *counter, const char *format, ...) BOW_PRINTF(3, 4);

static void write_down(struct spy *spy, int *counter, const char *format, ...)
{
    struct spies *all = spy->all;
    va_list args;

    pthread_mutex_lock(&all->t->lock);
    size_t len = strlen(all->log);
    len += (size_t)snprintf(all->log + len, sizeof(all->log) - len, "%s", spy->name);
    va_start(args, format);
    (void)vsnprintf(all->log + len, sizeof(all->log) - len, format, args);
    va_end(args);
    if (counter != NULL) {
        (*counter)++;
    }
    pthread_cond_broadcast(&all->t->changed);
    pthread_mutex_unlock(&all->t->lock);
}

/* The first entry, as "key=value". */
static void keep_entry(char *to, size_t size, const struct bow_metadata *metadata)
{
    to[0] = '\0';
    if (metadata->n > 0) {
        (void)snprintf(to, size, "%s=%s", metadata->entries[0].key,
                       (const char *)metadata->entries[0].value.data);
    }
}

static void on_start(struct bow_interception *at, void *user)
{
    static const struct spied untouched;
    struct spy *spy = user;
    struct spied *spied = bow_interception_state(at);

    assert_int_equal((uintptr_t)spied % 16, 0);
    assert_memory_equal(spied, &untouched, sizeof(untouched));
    memset(spied, 0xA5, sizeof(*spied));
    spied->spy = spy;
    spied->n_starts = 1;
    assert_true(bow_loop_in_loop(bow_interception_loop(at)));
    pthread_mutex_lock(&spy->all->t->lock);
    spy->at = at;
    spy->loop = bow_interception_loop(at);
    pthread_mutex_unlock(&spy->all->t->lock);
    if (spy->in_start != NULL) {
        spy->in_start(spy, at);
    }
    write_down(spy, &spy->n_starts, "+ ");
}

static bool is_own(const struct spy *spy, const struct bow_interception *at)
{
    const struct spied *spied = bow_interception_state(at);

    return spied->spy == spy && spied->n_starts == 1;
}

static void on_message(struct bow_interception *at, const struct bow_intercepted_message *message,
                       void *user)
{
    struct spy *spy = user;

    assert_true(is_own(spy, at));
    assert_true(bow_loop_in_loop(bow_interception_loop(at)));
    if (spy->in_message != NULL) {
        spy->in_message(spy, at, message);
    }
    write_down(spy, NULL, "%c%zu ", message->sent ? '>' : '<', message->bytes.len);
}

static void on_end(struct bow_interception *at, const struct bow_intercepted_end *end, void *user)
{
    struct spy *spy = user;
    struct spied *spied = bow_interception_state(at);

    assert_true(is_own(spy, at));
    assert_true(bow_loop_in_loop(bow_interception_loop(at)));
    spied->n_starts = 0;
    if (spy->in_end != NULL) {
        spy->in_end(spy, at);
    }
    pthread_mutex_lock(&spy->all->t->lock);
    spy->end = *end;
    spy->code = end->status->code;
    (void)snprintf(spy->text, sizeof(spy->text), "%s", end->status->message);
    keep_entry(spy->trailing, sizeof(spy->trailing), &end->status->metadata);
    keep_entry(spy->initial, sizeof(spy->initial), &end->initial);
    pthread_mutex_unlock(&spy->all->t->lock);
    write_down(spy, &spy->n_ends, "-%s ", bow_code_name(end->status->code));
}

static void release(void *user)
{
    struct spy *spy = user;

    spy->n_released++;
}

/* Life */

struct spies *spies_new(struct calls *t)
{
    struct spies *spies = calloc(1, sizeof(*spies));

    assert_non_null(spies);
    spies->t = t;
    for (size_t i = 0; i < SPIES; i++) {
        spies->spies[i].all = spies;
        spies->spies[i].name[0] = (char)('a' + i);
        spies->interceptors[i] = (struct bow_interceptor)BOW_INTERCEPTOR_INIT;
        spies->interceptors[i].name = spies->spies[i].name;
        spies->interceptors[i].state_bytes = SPY_STATE_BYTES;
        spies->interceptors[i].on_start = on_start;
        spies->interceptors[i].on_message = on_message;
        spies->interceptors[i].on_end = on_end;
        spies->interceptors[i].release = release;
        spies->interceptors[i].user = &spies->spies[i];
        spies->pointers[i] = &spies->interceptors[i];
    }
    return spies;
}

void spies_free(struct spies *spies, int n_released)
{
    for (size_t i = 0; i < SPIES; i++) {
        const struct spy *spy = &spies->spies[i];
        assert_int_equal(spy->n_starts, spy->n_ends);
        if (spy->n_starts > 0) {
            assert_int_equal(spy->n_released, n_released);
        }
    }
    free(spies);
}

void spies_watch_server(struct spies *spies, struct bow_server *server, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(bow_server_intercept(server, &spies->interceptors[i]), 0);
    }
}

/* Waiting */

void spies_wait_ends(struct spies *spies, size_t i, int n)
{
    calls_wait(spies->t, &spies->spies[i].n_ends, n);
}

void spies_wait_starts(struct spies *spies, size_t i, int n)
{
    calls_wait(spies->t, &spies->spies[i].n_starts, n);
}

void spies_expect_log(struct spies *spies, const char *expected)
{
    pthread_mutex_lock(&spies->t->lock);
    char log[sizeof(spies->log)];
    memcpy(log, spies->log, sizeof(log));
    pthread_mutex_unlock(&spies->t->lock);
    assert_string_equal(log, expected);
}

struct errand {
    struct spy *spy;
    void (*fn)(struct spy *spy);
    int n_done;
};

static int run_errand(void *user)
{
    struct errand *errand = user;
    struct calls *t = errand->spy->all->t;

    errand->fn(errand->spy);
    pthread_mutex_lock(&t->lock);
    errand->n_done++;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    return 0;
}

void spies_on_loop(struct spies *spies, size_t i, void (*fn)(struct spy *spy))
{
    struct errand errand = {.spy = &spies->spies[i], .fn = fn};

    assert_int_equal(bow_loop_execute(spies->spies[i].loop, "errand", run_errand, &errand), 0);
    calls_wait(spies->t, &errand.n_done, 1);
}

/* Hooks */

void spy_hold(struct spy *spy, struct bow_interception *at)
{
    (void)spy;
    assert_int_equal(bow_interception_hold(at), 0);
}

void spy_refuse(struct spy *spy, struct bow_interception *at)
{
    assert_int_equal(bow_interception_refuse(at, BOW_PERMISSION_DENIED, "%s says no", spy->name),
                     0);
}

void spy_refuse_message(struct spy *spy, struct bow_interception *at,
                        const struct bow_intercepted_message *message)
{
    if (!message->sent) {
        assert_int_equal(
            bow_interception_refuse(at, BOW_INVALID_ARGUMENT, "%s takes no message", spy->name), 0);
    } else {
        assert_int_equal(bow_interception_refuse(at, BOW_INTERNAL, "too late"), -22);
    }
}

void spy_proceed(struct spy *spy)
{
    spy->rc = bow_interception_proceed(spy->at);
}

void spy_refuse_held(struct spy *spy)
{
    spy->rc =
        bow_interception_refuse(spy->at, BOW_UNAUTHENTICATED, "%s thought better of it", spy->name);
}
