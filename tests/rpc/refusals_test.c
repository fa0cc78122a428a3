/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What is told to who misuses the public API: a table of refusals, and the option, value or method
 * that the words must name. PROTOCOL is the argument, for there is a pair of server and client.
 */

#include "protos/echo.bow.h"

#include <bowline/call_set.h>
#include <bowline/call_stream.h>
#include <bowline/client.h>
#include <bowline/executor.h>
#include <bowline/future.h>
#include <bowline/group.h>
#include <bowline/metrics.h>
#include <bowline/payload.h>
#include <bowline/stream.h>
#include <bowline/submit.h>
#include <bowline/testing.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static bool is_grpc;

struct refusals {
    struct bow_test *test;
    struct bow_test_pair *pair;
    struct bow_context *context;
    struct bow_loop *loop;
    struct bow_stream *stream; /* of Echo.Stream, blocking */
    struct bow_call *call;     /* while a handler runs: the one that it serves */
    int (*in_handler)(struct refusals *r);
    int handler_rc;
    int n_lines;
    char said[600]; /* the last line of the log, or what an error says */
};

static void on_log(enum bow_log_level level, const char *line, void *user)
{
    struct refusals *r = user;

    if (level == BOW_LOG_ERROR) {
        r->n_lines++;
        snprintf(r->said, sizeof(r->said), "%s", line);
    }
}

static void say(struct bow_call *call, const Calls__Request *request, void *user)
{
    struct refusals *r = user;
    Calls__Reply reply = CALLS__REPLY__INIT;

    (void)request;
    r->call = call;
    if (r->in_handler != NULL) {
        r->handler_rc = r->in_handler(r);
    }
    if (r->call != NULL) {
        calls__echo__say__reply(call, &reply);
    }
}

static void stream(struct calls__echo__stream__call call, void *user)
{
    struct refusals *r = user;

    r->call = call.call;
    if (r->in_handler != NULL) {
        r->handler_rc = r->in_handler(r);
        (void)bow_call_fail(call.call, BOW_ABORTED, "enough");
    }
}

static int serve(struct bow_server *server, void *user)
{
    const struct calls__echo__handlers handlers = {.say = say, .stream = stream};

    return calls__echo__serve(server, &handlers, user);
}

static int set_up(void **state)
{
    static struct refusals r;
    struct bow_test_options options = BOW_TEST_OPTIONS_INIT;
    struct bow_test_pair_options pair = BOW_TEST_PAIR_OPTIONS_INIT;

    r = (struct refusals){.n_lines = 0};
    *state = &r;
    options.log = on_log;
    options.log_user = &r;
    pair.serve = serve;
    pair.user = &r;
    pair.grpc = is_grpc;
    if (bow_test_new(&options, &r.test) < 0 || bow_test_pair_new(r.test, &pair, &r.pair) < 0) {
        return -1;
    }
    r.loop = bow_test_loop(r.test);
    r.context = bow_loop_context(r.loop);
    return 0;
}

static int tear_down(void **state)
{
    struct refusals *r = *state;

    return bow_test_end(r->test);
}

static void on_done(struct bow_result *result, bow_any_fn fn, void *user)
{
    (void)result;
    (void)fn;
    (void)user;
}

/* The client */

static int make_client(struct refusals *r, struct bow_client_options *options)
{
    struct bow_transport_error error = {.text = ""};
    struct bow_client *client = NULL;

    options->error = &error;
    int rc = bow_client_new(options, &client);
    snprintf(r->said, sizeof(r->said), "%s", error.text);
    return rc;
}

static int client_new_without_init(struct refusals *r)
{
    struct bow_client_options options = {.target = "127.0.0.1:1"};

    return make_client(r, &options);
}

static int client_new_with_grpcs(struct refusals *r)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;

    options.target = "grpcs://example.org:443";
    return make_client(r, &options);
}

static int start(struct refusals *r, const struct bow_method *method,
                 const ProtobufCMessage *request, const struct bow_call_options *options)
{
    return bow_client_start(r->pair->client, method, request, options, on_done, NULL, NULL, NULL);
}

static int start_streaming(struct refusals *r)
{
    return start(r, calls__echo__stream__method(), NULL, NULL);
}

static int start_without_init(struct refusals *r)
{
    struct bow_call_options options = {.timeout_ns = 1};
    Calls__Request request = CALLS__REQUEST__INIT;

    return start(r, calls__echo__say__method(), &request.base, &options);
}

static int call_without_init(struct refusals *r)
{
    struct bow_call_options options = {.timeout_ns = 1};
    struct bow_result result = BOW_RESULT_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    calls__echo__say__call(r->pair->blocking, &request, &options, &result);
    snprintf(r->said, sizeof(r->said), "%s", result.status.message);
    int rc = -(int)result.status.code;
    bow_result_fini(&result);
    return rc;
}

static int start_with_a_reply(struct refusals *r)
{
    Calls__Reply reply = CALLS__REPLY__INIT;

    return start(r, calls__echo__say__method(), &reply.base, NULL);
}

static int start_with_what_is_no_message(struct refusals *r)
{
    Calls__Request request = CALLS__REQUEST__INIT;

    request.payload.len = 3;
    return start(r, calls__echo__say__method(), &request.base, NULL);
}

static int start_with_a_bad_key(struct refusals *r)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    const struct bow_metadata_entry entry = {"Key", {(const uint8_t *)"v", 1}};
    const struct bow_metadata metadata = {&entry, 1};
    Calls__Request request = CALLS__REQUEST__INIT;

    options.metadata = &metadata;
    return start(r, calls__echo__say__method(), &request.base, &options);
}

static int open_unary(struct refusals *r)
{
    struct bow_stream *opened = NULL;

    return bow_client_open(r->pair->client, calls__echo__say__method(), NULL, NULL, NULL, NULL,
                           &opened);
}

static int open_without_anything(struct refusals *r)
{
    return bow_client_open(r->pair->client, calls__echo__stream__method(), NULL, NULL, NULL, NULL,
                           NULL);
}

static int open_with_a_request(struct refusals *r)
{
    struct bow_stream *opened = NULL;
    Calls__Request request = CALLS__REQUEST__INIT;

    return bow_client_open(r->pair->client, calls__echo__stream__method(), &request.base, NULL,
                           NULL, NULL, &opened);
}

static int poll_unconfined(struct refusals *r)
{
    return bow_client_poll(r->pair->client, 0);
}

static int client_metrics_without_init(struct refusals *r)
{
    struct bow_metrics metrics = {.size = 0};

    return bow_client_metrics(r->pair->client, &metrics);
}

static int server_metrics_without_init(struct refusals *r)
{
    struct bow_metrics metrics = {.size = 0};

    return bow_server_metrics(r->pair->server, &metrics);
}

static int server_new_without_init(struct refusals *r)
{
    struct bow_transport_error error = {.text = ""};
    struct bow_server_options options = {.listen = "127.0.0.1:0", .error = &error};
    struct bow_server *server = NULL;

    int rc = bow_server_new(&options, &server);
    snprintf(r->said, sizeof(r->said), "%s", error.text);
    return rc;
}

/* Sets */

static void never_done(struct bow_call_set *set, void *user)
{
    (void)set;
    (void)user;
}

static int set_of(struct refusals *r, uint32_t max_calls, struct bow_call_set **ret_set)
{
    struct bow_call_set_options options = BOW_CALL_SET_OPTIONS_INIT;

    options.max_calls = max_calls;
    return bow_call_set_new(r->loop, &options, never_done, NULL, ret_set);
}

static int set_new_of_none(struct refusals *r)
{
    struct bow_call_set *set = NULL;

    return set_of(r, 0, &set);
}

static int set_new_without_init(struct refusals *r)
{
    struct bow_call_set_options options = {.max_calls = 1};
    struct bow_call_set *set = NULL;

    return bow_call_set_new(r->loop, &options, never_done, NULL, &set);
}

static int start_in_set(struct refusals *r, struct bow_call_set *set)
{
    Calls__Request request = CALLS__REQUEST__INIT;

    return bow_call_set_start(set, r->pair->client, calls__echo__say__method(), &request.base,
                              NULL);
}

static int set_start_after_commit(struct refusals *r)
{
    struct bow_call_set *set = NULL;

    assert_int_equal(set_of(r, 1, &set), 0);
    bow_call_set_commit(set);
    int rc = start_in_set(r, set);
    bow_call_set_free(set);
    return rc;
}

static int set_start_one_too_many(struct refusals *r)
{
    struct bow_call_set *set = NULL;

    assert_int_equal(set_of(r, 1, &set), 0);
    assert_int_equal(start_in_set(r, set), 0);
    int rc = start_in_set(r, set);
    bow_call_set_free(set);
    assert_int_equal(bow_test_run(r->test), 0);
    return rc;
}

/* Streams */

static int stream_send_a_reply(struct refusals *r)
{
    Calls__Reply reply = CALLS__REPLY__INIT;

    return bow_stream_send(r->stream, &reply.base);
}

static int stream_compress_unnamed(struct refusals *r)
{
    return bow_stream_compress(r->stream, true);
}

static int stream_send_without_init(struct refusals *r)
{
    Calls__Request request = {.number = 1};

    return bow_stream_send(r->stream, &request.base);
}

static int stream_send_what_is_no_message(struct refusals *r)
{
    Calls__Request request = CALLS__REQUEST__INIT;

    request.payload.len = 3;
    return bow_stream_send(r->stream, &request.base);
}

static int receive_on_the_loop(void *user)
{
    struct refusals *r = user;
    const ProtobufCMessage *message = NULL;

    r->handler_rc = bow_stream_receive(r->stream, 0, &message);
    return 0;
}

static int stream_receive_on_the_loop(struct refusals *r)
{
    assert_int_equal(bow_loop_execute(r->loop, "receive", receive_on_the_loop, r), 0);
    assert_int_equal(bow_test_run(r->test), 0);
    return r->handler_rc;
}

static int payload_of_what_is_no_message(struct refusals *r)
{
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_payload *payload = NULL;

    request.payload.len = 3;
    return bow_payload_new(r->context, &request.base, &payload);
}

/* The server's calls */

static int run_in_handler(struct refusals *r, int (*in_handler)(struct refusals *r))
{
    struct bow_result result = BOW_RESULT_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    r->in_handler = in_handler;
    calls__echo__say__call(r->pair->blocking, &request, NULL, &result);
    bow_result_fini(&result);
    r->in_handler = NULL;
    return r->handler_rc;
}

static int add_bad_initial(struct refusals *r)
{
    return bow_call_add_initial(r->call, "a key", (struct bow_slice){(const uint8_t *)"v", 1});
}

static int add_bad_trailing(struct refusals *r)
{
    return bow_call_add_trailing(r->call, "grpc-own", (struct bow_slice){(const uint8_t *)"v", 1});
}

static int listen_unary(struct refusals *r)
{
    return bow_call_listen(r->call, "", NULL);
}

static int send_unary(struct refusals *r)
{
    Calls__Reply reply = CALLS__REPLY__INIT;

    return bow_call_send(r->call, &reply.base);
}

static int finish_unary(struct refusals *r)
{
    return bow_call_finish(r->call);
}

static int reply_a_request(struct refusals *r)
{
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_call *call = r->call;

    r->call = NULL;
    return bow_call_reply(call, &request.base);
}

#define IN_HANDLER(name)                                                                           \
    static int handler_##name(struct refusals *r)                                                  \
    {                                                                                              \
        return run_in_handler(r, name);                                                            \
    }

IN_HANDLER(add_bad_initial)
IN_HANDLER(add_bad_trailing)
IN_HANDLER(listen_unary)
IN_HANDLER(send_unary)
IN_HANDLER(finish_unary)
IN_HANDLER(reply_a_request)

static int run_in_stream(struct refusals *r, int (*in_handler)(struct refusals *r))
{
    struct calls__echo__stream__stream opened;
    struct bow_result result = BOW_RESULT_INIT;

    r->in_handler = in_handler;
    assert_int_equal(calls__echo__stream__open(r->pair->blocking, NULL, NULL, NULL, &opened), 0);
    assert_int_equal(bow_stream_finish(opened.stream, &result), 0);
    bow_result_fini(&result);
    r->in_handler = NULL;
    return r->handler_rc;
}

static int send_a_request(struct refusals *r)
{
    Calls__Request request = CALLS__REQUEST__INIT;

    return bow_call_send(r->call, &request.base);
}

static int send_without_init(struct refusals *r)
{
    Calls__Reply reply = {.text = NULL};

    return bow_call_send(r->call, &reply.base);
}

static int send_what_is_no_message(struct refusals *r)
{
    Calls__Reply reply = CALLS__REPLY__INIT;

    reply.payload.len = 3;
    return bow_call_send(r->call, &reply.base);
}

static int listen_twice(struct refusals *r)
{
    static const struct calls__echo__stream__call_events events = {.on_message = NULL};

    assert_int_equal(bow_call_listen(r->call, &events, NULL), 0);
    return bow_call_listen(r->call, &events, NULL);
}

static int compress_late(struct refusals *r)
{
    Calls__Reply reply = CALLS__REPLY__INIT;

    assert_int_equal(bow_call_send(r->call, &reply.base), 0);
    return bow_call_compress(r->call, true);
}

#define IN_STREAM(name)                                                                            \
    static int handler_##name(struct refusals *r)                                                  \
    {                                                                                              \
        return run_in_stream(r, name);                                                             \
    }

IN_STREAM(send_a_request)
IN_STREAM(send_without_init)
IN_STREAM(send_what_is_no_message)
IN_STREAM(listen_twice)
IN_STREAM(compress_late)

/* Loops, executors, futures */

static int make_loop(struct refusals *r, const struct bow_loop_options *options)
{
    struct bow_loop *loop = NULL;

    return bow_loop_new(r->context, options, &loop);
}

static int loop_new_without_init(struct refusals *r)
{
    struct bow_loop_options options = {.cpu = -1};

    return make_loop(r, &options);
}

static int loop_new_with_a_ratio_of_200(struct refusals *r)
{
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;

    options.io_ratio = 200;
    return make_loop(r, &options);
}

static int loop_run_of_its_own_thread(struct refusals *r)
{
    struct bow_loop *loop = NULL;

    assert_int_equal(bow_loop_new(r->context, NULL, &loop), 0);
    int rc = bow_loop_run(loop);
    bow_loop_unref(loop);
    return rc;
}

static int run_again(void *user)
{
    struct refusals *r = user;

    r->handler_rc = bow_loop_run_once(r->loop, 0);
    return 0;
}

static int loop_run_inside(struct refusals *r)
{
    assert_int_equal(bow_loop_execute(r->loop, "run again", run_again, r), 0);
    assert_int_equal(bow_test_run(r->test), 0);
    return r->handler_rc;
}

static int loop_schedule_without_period(struct refusals *r)
{
    return bow_loop_schedule(r->loop, BOW_SCHEDULE_FIXED_RATE, 0, 0, "tick", run_again, r, NULL);
}

static int loop_stats_without_init(struct refusals *r)
{
    struct bow_loop_stats stats = {.size = 0};

    return bow_loop_get_stats(r->loop, &stats);
}

static int group_new_of_a_million(struct refusals *r)
{
    struct bow_group_options options = BOW_GROUP_OPTIONS_INIT;
    struct bow_group *group = NULL;

    options.n_loops = 1000000;
    return bow_group_new(r->context, &options, &group);
}

static int executor_new_of_a_million(struct refusals *r)
{
    struct bow_executor_options options = BOW_EXECUTOR_OPTIONS_INIT;
    struct bow_executor *executor = NULL;

    options.n_threads = 1000000;
    return bow_executor_new(r->context, &options, &executor);
}

static int executor_run_of_threads(struct refusals *r)
{
    struct bow_executor_options options = BOW_EXECUTOR_OPTIONS_INIT;
    struct bow_executor *executor = NULL;

    options.n_threads = 1;
    assert_int_equal(bow_executor_new(r->context, &options, &executor), 0);
    int rc = bow_executor_run_once(executor, 0);
    bow_executor_unref(executor);
    return rc;
}

static int with_promise(struct refusals *r, int (*use)(struct bow_promise *promise))
{
    struct bow_promise *promise = NULL;

    assert_int_equal(bow_promise_new(r->context, NULL, &promise), 0);
    int rc = use(promise);
    bow_promise_unref(promise);
    return rc;
}

static int fail_with_0(struct bow_promise *promise)
{
    return bow_promise_fail(promise, 0);
}

static int report_too_much(struct bow_promise *promise)
{
    return bow_promise_report(promise, 3, 2);
}

static int listen_nowhere(struct bow_promise *promise)
{
    struct bow_future_listener listener = {.fn = NULL};

    return bow_future_listen(bow_promise_future(promise), &listener);
}

static int promise_fail_with_0(struct refusals *r)
{
    return with_promise(r, fail_with_0);
}

static int promise_report_too_much(struct refusals *r)
{
    return with_promise(r, report_too_much);
}

static int future_listen_nowhere(struct refusals *r)
{
    return with_promise(r, listen_nowhere);
}

static int context_new_without_an_allocator(struct refusals *r)
{
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;
    const struct bow_allocator allocator = {.user = NULL};
    struct bow_context *context = NULL;

    options.allocator = &allocator;
    options.log = on_log;
    options.log_user = r;
    return bow_context_new(&options, &context);
}

/* The table */

struct refusal {
    const char *name;
    int (*make)(struct refusals *r);
    int rc;
    const char *words[2]; /* all of them; NULL: no more */
};

#define REFUSAL(name, rc, ...)                                                                     \
    {                                                                                              \
#name, name, rc,                                                                           \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

static const struct refusal refusals[] = {
    REFUSAL(client_new_without_init, -EINVAL, "BOW_CLIENT_OPTIONS_INIT"),
    REFUSAL(client_new_with_grpcs, -EINVAL, "grpcs://example.org:443", "options.security"),
    REFUSAL(start_streaming, -EINVAL, "/calls.Echo/Stream is a streaming method",
            "bow_client_open()"),
    REFUSAL(start_without_init, -EINVAL, "/calls.Echo/Say", "BOW_CALL_OPTIONS_INIT"),
    REFUSAL(call_without_init, -BOW_INVALID_ARGUMENT, "/calls.Echo/Say", "BOW_CALL_OPTIONS_INIT"),
    REFUSAL(start_with_a_reply, -EINVAL, "/calls.Echo/Say", "calls.Request"),
    REFUSAL(start_with_what_is_no_message, -EINVAL, "/calls.Echo/Say", "calls.Request.payload"),
    REFUSAL(start_with_a_bad_key, -EINVAL, "\"Key\"", "<bowline/metadata.h>"),
    REFUSAL(open_unary, -EINVAL, "/calls.Echo/Say: it is a unary method", "bow_client_start()"),
    REFUSAL(open_without_anything, -EINVAL, "/calls.Echo/Stream", "ret_stream"),
    REFUSAL(open_with_a_request, -EINVAL, "/calls.Echo/Stream", "no request"),
    REFUSAL(poll_unconfined, -EINVAL, "bow_client_poll", "not confined"),
    REFUSAL(client_metrics_without_init, -EINVAL, "bow_client_metrics", "BOW_METRICS_INIT"),
    REFUSAL(server_metrics_without_init, -EINVAL, "bow_server_metrics", "BOW_METRICS_INIT"),
    REFUSAL(server_new_without_init, -EINVAL, "BOW_SERVER_OPTIONS_INIT"),
    REFUSAL(set_new_of_none, -EINVAL, "bow_call_set_new", "options.max_calls"),
    REFUSAL(set_new_without_init, -EINVAL, "bow_call_set_new", "BOW_CALL_SET_OPTIONS_INIT"),
    REFUSAL(set_start_after_commit, -EINVAL, "bow_call_set_start", "committed"),
    REFUSAL(set_start_one_too_many, -ENOSPC, "bow_call_set_start", "options.max_calls (1)"),
    REFUSAL(stream_send_a_reply, -EINVAL, "/calls.Echo/Stream",
            "is a calls.Reply, not a calls.Request"),
    REFUSAL(stream_compress_unnamed, -EALREADY,
            "bow_stream_compress: the stream of /calls.Echo/Stream", "options.compression"),
    REFUSAL(stream_send_without_init, -EINVAL, "/calls.Echo/Stream", "is a NULL"),
    REFUSAL(stream_send_what_is_no_message, -EINVAL, "/calls.Echo/Stream", "calls.Request.payload"),
    REFUSAL(stream_receive_on_the_loop, -EDEADLK, "/calls.Echo/Stream", "with events"),
    REFUSAL(payload_of_what_is_no_message, -EINVAL, "bow_payload_new", "calls.Request.payload"),
    REFUSAL(handler_add_bad_initial, -EINVAL, "bow_call_add_initial: /calls.Echo/Say", "\"a key\""),
    REFUSAL(handler_add_bad_trailing, -EINVAL, "bow_call_add_trailing", "\"grpc-own\""),
    REFUSAL(handler_listen_unary, -EINVAL, "/calls.Echo/Say", "unary method"),
    REFUSAL(handler_send_unary, -EINVAL, "/calls.Echo/Say", "sends one message"),
    REFUSAL(handler_finish_unary, -EINVAL, "/calls.Echo/Say", "bow_call_reply()"),
    REFUSAL(handler_reply_a_request, -EINVAL, "/calls.Echo/Say",
            "is a calls.Request, not a calls.Reply"),
    REFUSAL(handler_send_a_request, -EINVAL, "/calls.Echo/Stream",
            "is a calls.Request, not a calls.Reply"),
    REFUSAL(handler_send_without_init, -EINVAL, "/calls.Echo/Stream", "is a NULL"),
    REFUSAL(handler_send_what_is_no_message, -EINVAL, "/calls.Echo/Stream", "calls.Reply.payload"),
    REFUSAL(handler_listen_twice, -EALREADY, "bow_call_listen: /calls.Echo/Stream"),
    REFUSAL(handler_compress_late, -EALREADY, "bow_call_compress", "/calls.Echo/Stream"),
    REFUSAL(loop_new_without_init, -EINVAL, "bow_loop_new", "BOW_LOOP_OPTIONS_INIT"),
    REFUSAL(loop_new_with_a_ratio_of_200, -EINVAL, "options.io_ratio", "100"),
    REFUSAL(loop_run_of_its_own_thread, -EINVAL, "bow_loop_run", "BOW_LOOP_OWNER"),
    REFUSAL(loop_run_inside, -EBUSY, "bow_loop_run", "stack"),
    REFUSAL(loop_schedule_without_period, -EINVAL, "task tick", "period_ns"),
    REFUSAL(loop_stats_without_init, -EINVAL, "bow_loop_get_stats", "stats->size"),
    REFUSAL(group_new_of_a_million, -EINVAL, "bow_group_new", "options.n_loops"),
    REFUSAL(executor_new_of_a_million, -EINVAL, "bow_executor_new", "options.n_threads"),
    REFUSAL(executor_run_of_threads, -EINVAL, "bow_executor_run", "options.n_threads = 0"),
    REFUSAL(promise_fail_with_0, -EINVAL, "bow_promise_fail", "error is 0"),
    REFUSAL(promise_report_too_much, -EINVAL, "bow_promise_report", "total"),
    REFUSAL(future_listen_nowhere, -EINVAL, "bow_future_listen", "options.executor"),
    REFUSAL(context_new_without_an_allocator, -EINVAL, "bow_context_new", "options.allocator"),
};

static void expect_refused(struct refusals *r, const struct refusal *refusal)
{
    r->said[0] = '\0';
    int rc = refusal->make(r);
    if (rc != refusal->rc) {
        fail_msg("%s: %d instead of %d", refusal->name, rc, refusal->rc);
    }
    for (int i = 0; i < 2 && refusal->words[i] != NULL; i++) {
        if (strstr(r->said, refusal->words[i]) == NULL) {
            fail_msg("%s: \"%s\" does not say \"%s\"", refusal->name, r->said, refusal->words[i]);
        }
    }
}

static void test_refusals_f63_each_has_words_that_name_what_was_wrong(void **state)
{
    struct refusals *r = *state;
    struct calls__echo__stream__stream opened;

    assert_int_equal(calls__echo__stream__open(r->pair->client, NULL, NULL, NULL, &opened), 0);
    r->stream = opened.stream;
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        expect_refused(r, &refusals[i]);
    }
    bow_stream_cancel(r->stream);
    bow_stream_unref(r->stream);
    assert_int_equal(bow_test_run(r->test), 0);
}

/* A peer may be what brings them about. */
static void test_refusals_f63_words_are_bounded_and_come_again(void **state)
{
    struct refusals *r = *state;

    for (int i = 0; i < 1000; i++) {
        assert_int_equal(promise_fail_with_0(r), -EINVAL);
    }
    assert_int_equal(r->n_lines, 64);
    assert_int_equal(bow_test_advance(r->test, UINT64_C(2000000000)), 0);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(promise_fail_with_0(r), -EINVAL);
    }
    assert_int_equal(r->n_lines, 66);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_refusals_f63_each_has_words_that_name_what_was_wrong),
        TEST(test_refusals_f63_words_are_bounded_and_come_again),
    };

    is_grpc = argc > 1 && strcmp(argv[1], "grpc") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
