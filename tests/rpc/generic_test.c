/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls whose messages nobody decodes: a gateway (that of examples/gateway) between a client with
 * generated stubs and a server with generated handlers, which are not to notice it; and both sides
 * alone.
 */

#include "call_fixture.h"
#include "forward.h"
#include "protos/kinds.bow.h"

#include <bowline/call_stream.h>
#include <bowline/generic.h>
#include <bowline/group.h>
#include <bowline/inspect.h>
#include <bowline/metadata.h>
#include <bowline/stream.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)
#define MANY 2000u
#define ENDLESS UINT64_C(50000000)
#define ASK_FAILS 404u

struct generic {
    struct calls *calls; /* its server is the one behind */
    struct bow_group *group;
    struct bow_client *middle; /* the gateway's */
    struct bow_server *gateway;
    struct bow_client *client; /* of the test's thread, to the gateway */

    /* Under the lock of `calls`. */
    int n_entered; /* calls of Sum */
    int n_closed;
    enum bow_code closed; /* the code of the last */
    bool had_deadline;
    uint64_t n_counted; /* messages that Count has sent */
};

static struct bow_slice slice_of(const char *text)
{
    return (struct bow_slice){(const uint8_t *)text, strlen(text)};
}

static Kinds__Number number_of(uint64_t value)
{
    Kinds__Number number = KINDS__NUMBER__INIT;

    number.value = value;
    return number;
}

/* The service behind. What a call remembers is in its memory. */

struct summing {
    struct generic *g;
    uint64_t sum;
};

static void on_summand(struct kinds__all__sum__call call, const Kinds__Number *message, void *user)
{
    struct summing *summing = user;

    (void)call;
    summing->sum += message->value;
}

static void on_last_summand(struct kinds__all__sum__call call, void *user)
{
    const struct summing *summing = user;
    Kinds__Number reply = number_of(summing->sum);

    (void)kinds__all__sum__reply(call, &reply);
}

static void on_sum_closed(struct kinds__all__sum__call call, const struct bow_status *status,
                          void *user)
{
    const struct summing *summing = user;
    struct calls *t = summing->g->calls;

    (void)call;
    pthread_mutex_lock(&t->lock);
    summing->g->closed = status->code;
    summing->g->n_closed++;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

static void sum(struct kinds__all__sum__call call, void *user)
{
    static const struct kinds__all__sum__call_events events = {
        .on_message = on_summand,
        .on_half_close = on_last_summand,
        .on_closed = on_sum_closed,
    };
    struct generic *g = user;
    struct summing *summing = bow_call_alloc(call.call, sizeof(*summing));

    *summing = (struct summing){.g = g};
    (void)kinds__all__sum__listen(call, &events, summing);
    pthread_mutex_lock(&g->calls->lock);
    g->had_deadline = bow_call_deadline(call.call) != BOW_NEVER;
    g->n_entered++;
    pthread_cond_broadcast(&g->calls->changed);
    pthread_mutex_unlock(&g->calls->lock);
}

struct counting {
    struct generic *g;
    uint64_t sent;
    uint64_t last;
};

static void count_on(struct kinds__all__count__call call, void *user)
{
    struct counting *counting = user;
    int rc = 0;

    while (rc == 0 && counting->sent < counting->last) {
        Kinds__Number number = number_of(counting->sent + 1);
        rc = kinds__all__count__send(call, &number);
        counting->sent += rc == 0;
    }
    pthread_mutex_lock(&counting->g->calls->lock);
    counting->g->n_counted = counting->sent;
    pthread_mutex_unlock(&counting->g->calls->lock);
    if (rc == 0) {
        (void)kinds__all__count__finish(call);
    }
}

static void count(struct kinds__all__count__call call, const Kinds__Number *request, void *user)
{
    static const struct kinds__all__count__call_events events = {.on_writable = count_on};
    struct counting *counting = bow_call_alloc(call.call, sizeof(*counting));

    *counting = (struct counting){.g = user, .last = request->value};
    (void)kinds__all__count__listen(call, &events, counting);
    count_on(call, counting);
}

static void on_single(struct kinds__all__double__call call, const Kinds__Number *message,
                      void *user)
{
    Kinds__Number twice = number_of(2 * message->value);

    (void)user;
    assert_int_equal(kinds__all__double__send(call, &twice), 0);
}

static void on_last_single(struct kinds__all__double__call call, void *user)
{
    (void)user;
    (void)kinds__all__double__finish(call);
}

static void twice(struct kinds__all__double__call call, void *user)
{
    static const struct kinds__all__double__call_events events = {
        .on_message = on_single,
        .on_half_close = on_last_single,
    };

    (void)kinds__all__double__listen(call, &events, user);
}

/* One more; or all that a status can say. What came as "asked" goes back, both ways. */
static void ask(struct bow_call *call, const Kinds__Number *request, void *user)
{
    const struct bow_slice *asked = bow_metadata_find(bow_call_metadata(call), "asked");
    Kinds__Number reply = number_of(request->value + 1);
    struct bow_status status = BOW_STATUS_OK_INIT;

    (void)user;
    if (asked != NULL) {
        assert_int_equal(bow_call_add_initial(call, "first", *asked), 0);
        assert_int_equal(bow_call_add_trailing(call, "last-bin", *asked), 0);
    }
    if (request->value != ASK_FAILS) {
        (void)kinds__all__ask__reply(call, &reply);
        return;
    }
    status.code = BOW_NOT_FOUND;
    status.message = "there is none";
    status.details = slice_of("\x08\x05\x12\x0dthere is none");
    (void)bow_call_fail_status(call, &status);
}

static const struct kinds__all__handlers handlers = {
    .sum = sum,
    .count = count,
    .double_ = twice,
    .ask = ask,
};

/* Life */

static void start_behind(struct generic *g)
{
    struct bow_server_options options;

    calls_server_options(g->calls, &options);
    assert_int_equal(bow_server_new(&options, &g->calls->server), 0);
    assert_int_equal(kinds__all__serve(g->calls->server, &handlers, g), 0);
    assert_int_equal(calls_open_server(g->calls, g->calls->server), 0);
}

static void make_gateway(struct generic *g)
{
    struct bow_group_options group_options = BOW_GROUP_OPTIONS_INIT;
    struct bow_client_options client_options;
    struct bow_server_options options;

    group_options.n_loops = 1;
    assert_int_equal(bow_group_new(g->calls->context, &group_options, &g->group), 0);
    calls_client_options(g->calls, &client_options);
    client_options.loop = NULL;
    client_options.group = g->group;
    g->middle = calls_new_client(g->calls, &client_options);
    calls_name_address(g->calls->address, sizeof(g->calls->address));
    calls_server_options(g->calls, &options);
    options.group = g->group;
    assert_int_equal(bow_server_new(&options, &g->gateway), 0);
    assert_int_equal(bow_server_set_fallback(g->gateway, forward_call, g->middle), 0);
}

static void start_gateway(struct generic *g)
{
    struct bow_client_options options;

    assert_int_equal(calls_open_server(g->calls, g->gateway), 0);
    calls_client_options(g->calls, &options);
    options.loop = NULL;
    g->client = calls_new_client(g->calls, &options);
}

static int setup_made(void **state)
{
    struct generic *g = calloc(1, sizeof(*g));
    void *calls = NULL;

    assert_int_equal(calls_setup_bare(&calls), 0);
    g->calls = calls;
    start_behind(g);
    make_gateway(g);
    *state = g;
    return 0;
}

static int setup(void **state)
{
    assert_int_equal(setup_made(state), 0);
    start_gateway(*state);
    return 0;
}

static int teardown(void **state)
{
    struct generic *g = *state;
    void *calls = g->calls;

    bow_client_free(g->client);
    bow_server_free(g->gateway);
    bow_client_free(g->middle);
    bow_group_unref(g->group);
    bow_server_free(g->calls->server);
    g->calls->server = NULL;
    assert_int_equal(calls_teardown(&calls), 0);
    free(g);
    return 0;
}

static uint64_t ask_for(struct generic *g, uint64_t value)
{
    struct bow_result result = BOW_RESULT_INIT;
    Kinds__Number request = number_of(value);

    const Kinds__Number *reply = kinds__all__ask__call(g->client, &request, NULL, &result);
    assert_string_equal(result.status.message, "");
    assert_non_null(reply);
    uint64_t got = reply->value;
    bow_result_fini(&result);
    return got;
}

static void expect_ok(struct bow_result *result)
{
    assert_string_equal(result->status.message, "");
    assert_int_equal(result->status.code, BOW_OK);
    bow_result_fini(result);
}

/* Through a gateway */

static void test_generic_unary_call_passes(void **state)
{
    assert_int_equal(ask_for(*state, 41), 42);
    assert_int_equal(ask_for(*state, 0), 1);
}

static void test_generic_client_stream_passes(void **state)
{
    struct generic *g = *state;
    struct kinds__all__sum__stream stream;
    struct bow_result result = BOW_RESULT_INIT;

    assert_int_equal(kinds__all__sum__open(g->client, NULL, NULL, NULL, &stream), 0);
    for (uint64_t i = 1; i <= MANY; i++) {
        Kinds__Number number = number_of(i);
        assert_int_equal(kinds__all__sum__stream_write(stream, &number, 20 * SECOND), 0);
    }
    const Kinds__Number *total = kinds__all__sum__stream_finish(stream, &result);
    assert_non_null(total);
    assert_int_equal(total->value, (uint64_t)MANY * (MANY + 1) / 2);
    expect_ok(&result);
}

static void test_generic_server_stream_passes(void **state)
{
    struct generic *g = *state;
    struct kinds__all__count__stream stream;
    struct bow_result result = BOW_RESULT_INIT;
    Kinds__Number request = number_of(10u * MANY);
    const Kinds__Number *number = NULL;
    uint64_t n = 0;

    assert_int_equal(kinds__all__count__open(g->client, &request, NULL, NULL, NULL, &stream), 0);
    while (kinds__all__count__stream_receive(stream, 20 * SECOND, &number) == 1) {
        assert_int_equal(number->value, ++n);
    }
    assert_int_equal(n, 10u * MANY);
    assert_int_equal(kinds__all__count__stream_finish(stream, &result), 0);
    expect_ok(&result);
}

static void test_generic_both_streams_pass(void **state)
{
    struct generic *g = *state;
    struct kinds__all__double__stream stream;
    struct bow_result result = BOW_RESULT_INIT;
    const Kinds__Number *number = NULL;

    assert_int_equal(kinds__all__double__open(g->client, NULL, NULL, NULL, &stream), 0);
    for (uint64_t i = 1; i <= 200; i++) {
        Kinds__Number one = number_of(i);
        assert_int_equal(kinds__all__double__stream_write(stream, &one, 20 * SECOND), 0);
        assert_int_equal(kinds__all__double__stream_receive(stream, 20 * SECOND, &number), 1);
        assert_int_equal(number->value, 2 * i);
    }
    assert_int_equal(bow_stream_half_close(stream.stream), 0);
    assert_int_equal(kinds__all__double__stream_receive(stream, 20 * SECOND, &number), 0);
    assert_int_equal(kinds__all__double__stream_finish(stream, &result), 0);
    expect_ok(&result);
}

static void assert_metadata(const struct bow_metadata *metadata, const char *key, const char *value)
{
    const struct bow_slice *found = bow_metadata_find(metadata, key);

    assert_non_null(found);
    assert_int_equal(found->len, strlen(value));
    assert_memory_equal(found->data, value, found->len);
}

static void test_generic_metadata_and_details_pass(void **state)
{
    struct generic *g = *state;
    const struct bow_metadata_entry entry = {"asked", slice_of("this")};
    const struct bow_metadata metadata = {&entry, 1};
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    struct bow_result result = BOW_RESULT_INIT;
    Kinds__Number request = number_of(1);

    options.metadata = &metadata;
    assert_non_null(kinds__all__ask__call(g->client, &request, &options, &result));
    assert_metadata(&result.initial, "first", "this");
    assert_metadata(&result.status.metadata, "last-bin", "this");
    bow_result_fini(&result);

    request = number_of(ASK_FAILS);
    assert_null(kinds__all__ask__call(g->client, &request, &options, &result));
    assert_int_equal(result.status.code, BOW_NOT_FOUND);
    assert_string_equal(result.status.message, "there is none");
    assert_int_equal(result.status.details.len, 17);
    assert_memory_equal(result.status.details.data, "\x08\x05\x12\x0dthere is none", 17);
    assert_metadata(&result.status.metadata, "last-bin", "this");
    bow_result_fini(&result);
}

static void test_generic_cancel_passes(void **state)
{
    struct generic *g = *state;
    struct kinds__all__sum__stream stream;
    struct bow_result result = BOW_RESULT_INIT;
    Kinds__Number one = number_of(1);

    assert_int_equal(kinds__all__sum__open(g->client, NULL, NULL, NULL, &stream), 0);
    assert_int_equal(kinds__all__sum__stream_write(stream, &one, 20 * SECOND), 0);
    assert_int_equal(ask_for(g, 1), 2); /* so that the bytes have left */
    calls_wait(g->calls, &g->n_entered, 1);
    assert_false(g->had_deadline);
    bow_stream_cancel(stream.stream);
    assert_int_equal(ask_for(g, 2), 3); /* and the cancel, before finish() half-closes */
    assert_null(kinds__all__sum__stream_finish(stream, &result));
    assert_int_equal(result.status.code, BOW_CANCELLED);
    bow_result_fini(&result);
    calls_wait(g->calls, &g->n_closed, 1);
    assert_int_equal(g->closed, BOW_CANCELLED);
}

static void test_generic_deadline_passes(void **state)
{
    struct generic *g = *state;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    struct kinds__all__sum__stream stream;
    struct bow_result result = BOW_RESULT_INIT;
    Kinds__Number one = number_of(1);

    options.timeout_ns = 10 * SECOND;
    assert_int_equal(kinds__all__sum__open(g->client, &options, NULL, NULL, &stream), 0);
    assert_int_equal(kinds__all__sum__stream_write(stream, &one, 20 * SECOND), 0);
    assert_non_null(kinds__all__sum__stream_finish(stream, &result));
    bow_result_fini(&result);
    assert_true(g->had_deadline);
}

/* It may write what waits on a stream and the windows of two connections have room for, and no more
 * however long its reader waits: each message spends 64 bytes of credit. */
static void test_generic_slow_reader_holds_the_server_back(void **state)
{
    struct generic *g = *state;
    struct kinds__all__count__stream stream;
    struct bow_result result = BOW_RESULT_INIT;
    Kinds__Number request = number_of(ENDLESS);
    const Kinds__Number *number = NULL;

    assert_int_equal(kinds__all__count__open(g->client, &request, NULL, NULL, NULL, &stream), 0);
    assert_int_equal(kinds__all__count__stream_receive(stream, 20 * SECOND, &number), 1);
    for (uint64_t i = 0; i < 300; i++) {
        assert_int_equal(ask_for(g, i), i + 1);
    }
    pthread_mutex_lock(&g->calls->lock);
    uint64_t n = g->n_counted;
    pthread_mutex_unlock(&g->calls->lock);
    assert_in_range(n, 1, 200000);
    bow_stream_cancel(stream.stream);
    assert_int_equal(kinds__all__count__stream_finish(stream, &result), 0);
    assert_int_equal(result.status.code, BOW_CANCELLED);
    bow_result_fini(&result);
}

/* What the gateway says of them */

struct star {
    uint64_t started;
    uint64_t refused;
    int n_paths;
};

static void count_star(const struct bow_method_metrics *metrics, void *user)
{
    struct star *star = user;

    star->n_paths++;
    if (strcmp(metrics->path, "*") == 0) {
        star->started = metrics->started;
        star->refused = metrics->refused[BOW_REFUSED_METHOD];
    }
}

static void test_generic_calls_are_counted_as_one_method(void **state)
{
    struct generic *g = *state;
    struct star before = {0};
    struct star after = {0};

    bow_server_each_method(g->gateway, count_star, &before);
    (void)ask_for(g, 1);
    (void)ask_for(g, 2);
    bow_server_each_method(g->gateway, count_star, &after);
    assert_int_equal(after.started, before.started + 2);
    assert_int_equal(after.n_paths, before.n_paths);
    struct star behind = {0};
    bow_client_each_method(g->middle, count_star, &behind);
    assert_int_equal(behind.started, 2);
    assert_int_equal(behind.n_paths, 1);
}

static void test_generic_calls_have_a_limit(void **state)
{
    struct generic *g = *state;
    struct kinds__all__sum__stream stream;
    struct bow_result result = BOW_RESULT_INIT;
    Kinds__Number one = number_of(1);

    assert_int_equal(bow_server_limit_calls(g->gateway, BOW_FALLBACK_NAME, 1), 0);
    start_gateway(g);
    assert_int_equal(kinds__all__sum__open(g->client, NULL, NULL, NULL, &stream), 0);
    assert_int_equal(kinds__all__sum__stream_write(stream, &one, 20 * SECOND), 0);
    assert_null(kinds__all__ask__call(g->client, &one, NULL, &result));
    assert_int_equal(result.status.code, BOW_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(result.status.message, "bow_server_limit_calls() (1)"));
    bow_result_fini(&result);
    assert_non_null(kinds__all__sum__stream_finish(stream, &result));
    bow_result_fini(&result);
    struct star star = {0};
    bow_server_each_method(g->gateway, count_star, &star);
    assert_int_equal(star.refused, 1);
}

struct dump {
    char text[8192];
    size_t len;
};

static int put(const char *text, size_t len, void *user)
{
    struct dump *dump = user;

    if (len < sizeof(dump->text) - dump->len) {
        memcpy(dump->text + dump->len, text, len);
        dump->len += len;
    }
    return 0;
}

static void test_generic_dump_names_the_path(void **state)
{
    struct generic *g = *state;
    struct kinds__all__sum__stream stream;
    struct bow_result result = BOW_RESULT_INIT;
    Kinds__Number one = number_of(1);
    struct dump front = {.len = 0};
    struct dump behind = {.len = 0};

    assert_int_equal(kinds__all__sum__open(g->client, NULL, NULL, NULL, &stream), 0);
    assert_int_equal(kinds__all__sum__stream_write(stream, &one, 20 * SECOND), 0);
    (void)ask_for(g, 1);
    calls_wait(g->calls, &g->n_entered, 1);
    assert_int_equal(bow_server_dump(g->gateway, NULL, put, &front), 0);
    assert_int_equal(bow_client_dump(g->middle, NULL, put, &behind), 0);
    assert_non_null(strstr(front.text, "/kinds.All/Sum"));
    assert_non_null(strstr(behind.text, "/kinds.All/Sum"));
    assert_non_null(kinds__all__sum__stream_finish(stream, &result));
    bow_result_fini(&result);
}

/* Bytes */

struct echo {
    struct calls *calls;
    uint8_t got[64];
    size_t n_got;
    int n_messages;
    int n_done;
    enum bow_code code;
    char path[64];
};

static void send_back(struct bow_call *call, struct bow_slice bytes, void *user)
{
    (void)user;
    assert_int_equal(bow_call_send_bytes(call, bytes), 0);
}

static void end(struct bow_call *call, void *user)
{
    (void)user;
    (void)bow_call_finish(call);
}

static void echo(struct bow_call *call, void *user)
{
    static const struct bow_generic_call_events events = {
        .on_message = send_back,
        .on_half_close = end,
    };
    struct echo *e = user;

    snprintf(e->path, sizeof(e->path), "%s", bow_call_path(call));
    assert_int_equal(bow_call_listen(call, &events, NULL), 0);
}

static void take(struct bow_stream *stream, struct bow_slice bytes, void *user)
{
    struct echo *e = user;

    (void)stream;
    memcpy(e->got + e->n_got, bytes.data, bytes.len);
    e->n_got += bytes.len;
    e->n_messages++;
}

static void done(struct bow_stream *stream, struct bow_result *result, void *user)
{
    struct echo *e = user;

    (void)stream;
    pthread_mutex_lock(&e->calls->lock);
    e->code = result->status.code;
    e->n_done++;
    pthread_cond_broadcast(&e->calls->changed);
    pthread_mutex_unlock(&e->calls->lock);
}

static const struct bow_generic_stream_events taking = {.on_message = take, .on_closed = done};

static int open_path(struct bow_client *client, const char *path, struct echo *e,
                     struct bow_stream **ret_stream)
{
    return bow_client_open_generic(client, path, NULL, &taking, e, ret_stream);
}

/* They are no protobuf, and one is empty. */
static void test_generic_bytes_are_left_as_they_are(void **state)
{
    void *calls = NULL;
    struct bow_server_options options;
    struct bow_client_options client_options;
    struct bow_stream *stream = NULL;
    struct echo e = {.n_got = 0};

    (void)state;
    assert_int_equal(calls_setup_bare(&calls), 0);
    struct calls *t = calls;
    e.calls = t;
    calls_server_options(t, &options);
    assert_int_equal(bow_server_new(&options, &t->server), 0);
    assert_int_equal(bow_server_set_fallback(t->server, NULL, &e), -EINVAL);
    assert_int_equal(bow_server_limit_calls(t->server, BOW_FALLBACK_NAME, 1), -ENOENT);
    assert_int_equal(bow_server_set_fallback(t->server, echo, &e), 0);
    assert_int_equal(bow_server_set_fallback(t->server, echo, &e), -EALREADY);
    assert_int_equal(calls_open_server(t, t->server), 0);
    assert_int_equal(bow_server_set_fallback(t->server, echo, &e), -EBUSY);
    calls_client_options(t, &client_options);
    t->client = calls_new_client(t, &client_options);
    assert_int_equal(open_path(t->client, NULL, &e, &stream), -EINVAL);
    assert_int_equal(open_path(t->client, "/none", &e, &stream), -EINVAL);
    assert_int_equal(open_path(t->client, "/a b/c", &e, &stream), -EINVAL);
    assert_int_equal(bow_client_open_generic(t->client, "/a/b", NULL, NULL, &e, &stream), -EINVAL);
    assert_null(stream);

    assert_int_equal(open_path(t->client, "/some.Where/Else", &e, &stream), 0);
    assert_int_equal(bow_stream_send_bytes(stream, slice_of("\xff\xff\xff")), 0);
    assert_int_equal(bow_stream_send_bytes(stream, (struct bow_slice){NULL, 0}), 0);
    assert_int_equal(bow_stream_send_bytes(stream, slice_of("ab")), 0);
    assert_int_equal(bow_stream_half_close(stream), 0);
    calls_wait(t, &e.n_done, 1);
    bow_stream_unref(stream);
    assert_int_equal(e.code, BOW_OK);
    assert_int_equal(e.n_messages, 3);
    assert_int_equal(e.n_got, 5);
    assert_memory_equal(e.got, "\xff\xff\xff\x61\x62", 5);
    assert_string_equal(e.path, "/some.Where/Else");
    assert_int_equal(calls_teardown(&calls), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_generic_unary_call_passes),
        TEST(test_generic_client_stream_passes),
        TEST(test_generic_server_stream_passes),
        TEST(test_generic_both_streams_pass),
        TEST(test_generic_metadata_and_details_pass),
        TEST(test_generic_cancel_passes),
        TEST(test_generic_deadline_passes),
        TEST(test_generic_slow_reader_holds_the_server_back),
        TEST(test_generic_calls_are_counted_as_one_method),
        cmocka_unit_test_setup_teardown(test_generic_calls_have_a_limit, setup_made, teardown),
        TEST(test_generic_dump_names_the_path),
        cmocka_unit_test(test_generic_bytes_are_left_as_they_are),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
