/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Three services, and who calls the first of them, each with a tracer and an exporter of its own:
 * one trace, whatever becomes of the calls.
 *
 *     root ──gRPC──► a ──native──► b ──gRPC──► c
 */

#include "collector.h"

#include <bowline/call.h>
#include <bowline/call_stream.h>
#include <bowline/interceptor.h>
#include <bowline/otel.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define NODES 4
#define SAY "calls.Echo/Say"

enum kind { SERVER = 2, CLIENT = 3 }; /* of SpanKind */

struct node {
    const char *name;
    struct bow_otel_exporter *exporter;
    struct bow_tracer *tracer;
    struct bow_server *server; /* but of the root */
    struct bow_client *next;   /* but of the last */
};

static struct calls *calls;
static struct collector collector;
static struct node nodes[NODES];
static double ratio; /* of the root */

/* What they serve */

static void pass_on(struct bow_result *result, const Calls__Reply *reply, void *user)
{
    struct bow_call *call = user;

    if (reply != NULL) {
        (void)calls__echo__say__reply(call, reply);
    } else {
        (void)bow_call_fail(call, result->status.code, "%s", result->status.message);
    }
}

static int ask_next(const struct node *node, struct bow_call *call, const Calls__Request *request,
                    calls__echo__say__fn done, void *user)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;

    options.parent = call;
    return calls__echo__say__start(node->next, request, &options, done, user, NULL);
}

static void on_cancel(struct bow_call *call, enum bow_code why, void *user)
{
    (void)user;
    (void)bow_call_fail(call, why, "nobody waits");
}

static void say(struct bow_call *call, const Calls__Request *request, void *user)
{
    const struct node *node = user;
    Calls__Reply reply = CALLS__REPLY__INIT;

    if (node->next != NULL) {
        assert_int_equal(ask_next(node, call, request, pass_on, call), 0);
    } else if (strcmp(request->text, "hold") == 0) {
        pthread_mutex_lock(&calls->lock);
        calls->n_said++;
        pthread_cond_broadcast(&calls->changed);
        pthread_mutex_unlock(&calls->lock);
        bow_call_on_cancel(call, on_cancel, NULL);
    } else if (request->code != 0) {
        (void)bow_call_fail(call, (enum bow_code)request->code, "the last says no");
    } else {
        reply.number = request->number;
        (void)calls__echo__say__reply(call, &reply);
    }
}

/* Each message of a stream is a call for the next one. */

static void send_back(struct bow_result *result, const Calls__Reply *reply, void *user)
{
    struct calls__echo__stream__call call = {user};

    assert_int_equal(result->status.code, BOW_OK);
    assert_int_equal(calls__echo__stream__send(call, reply), 0);
    if (reply->number == 2) {
        assert_int_equal(calls__echo__stream__finish(call), 0);
    }
    bow_call_unref(call.call);
}

static void on_stream_message(struct calls__echo__stream__call call, const Calls__Request *message,
                              void *user)
{
    bow_call_ref(call.call);
    assert_int_equal(ask_next(user, call.call, message, send_back, call.call), 0);
}

static void stream(struct calls__echo__stream__call call, void *user)
{
    static const struct calls__echo__stream__call_events events = {.on_message = on_stream_message};

    calls__echo__stream__listen(call, &events, user);
}

/* Life */

static void trace(struct node *node)
{
    struct bow_otel_options options = BOW_OTEL_OPTIONS_INIT;
    struct bow_tracer_options tracer_options = BOW_TRACER_OPTIONS_INIT;

    options.context = calls->context;
    options.target = collector.address;
    options.service_name = node->name;
    options.delay_ns = MS;
    assert_int_equal(bow_otel_exporter_new(&options, &node->exporter), 0);
    bow_otel_trace(node->exporter, &tracer_options);
    tracer_options.context = calls->context;
    tracer_options.ratio = node == &nodes[0] ? ratio : 1;
    assert_int_equal(bow_tracer_new(&tracer_options, &node->tracer), 0);
}

static void serve(struct node *node, char *ret_address, size_t n_address)
{
    static const struct calls__echo__handlers handlers = {.say = say, .stream = stream};
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct bow_interceptor interceptor;

    options.context = calls->context;
    options.listen = "127.0.0.1:0";
    options.grace_ns = 1;
    assert_int_equal(bow_server_new(&options, &node->server), 0);
    bow_tracer_intercept(node->tracer, &interceptor);
    assert_int_equal(bow_server_intercept(node->server, &interceptor), 0);
    assert_int_equal(calls__echo__serve(node->server, &handlers, node), 0);
    assert_int_equal(bow_server_start(node->server), 0);
    (void)snprintf(ret_address, n_address, "127.0.0.1:%u", bow_server_port(node->server));
}

static void connect_to(struct node *node, const char *protocol, const char *address)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_interceptor interceptor;
    const struct bow_interceptor *interceptors[] = {&interceptor};
    char target[96];

    (void)snprintf(target, sizeof(target), "%s%s", protocol, address);
    options.context = calls->context;
    options.target = target;
    options.loop = calls->loop;
    bow_tracer_intercept(node->tracer, &interceptor);
    options.interceptors = interceptors;
    options.n_interceptors = 1;
    assert_int_equal(bow_client_new(&options, &node->next), 0);
}

static void begin(double root_ratio)
{
    static const char *const protocols[] = {"grpc:", "", "grpc:"};
    static const char *const names[] = {"root", "a", "b", "c"};
    char address[64];

    ratio = root_ratio;
    memset(nodes, 0, sizeof(nodes));
    for (int i = NODES - 1; i >= 0; i--) {
        nodes[i].name = names[i];
        trace(&nodes[i]);
        if (i < NODES - 1) {
            connect_to(&nodes[i], protocols[i], address);
        }
        if (i > 0) {
            serve(&nodes[i], address, sizeof(address));
        }
    }
}

static int setup(void **state)
{
    calls_setup_bare(state);
    calls = *state;
    memset(&collector, 0, sizeof(collector));
    collector_start(&collector, calls, "127.0.0.1:0");
    return 0;
}

static int teardown(void **state)
{
    for (int i = 0; i < NODES; i++) {
        bow_client_free(nodes[i].next);
    }
    for (int i = 0; i < NODES; i++) {
        bow_server_free(nodes[i].server);
        bow_tracer_unref(nodes[i].tracer);
        bow_otel_exporter_unref(nodes[i].exporter);
    }
    collector_stop(&collector);
    return calls_teardown(state);
}

/* What comes of it */

static void start_with(const struct bow_call_options *options, const char *text, enum bow_code code,
                       uint64_t *ret_id)
{
    Calls__Request request = CALLS__REQUEST__INIT;
    char copy[16];

    (void)snprintf(copy, sizeof(copy), "%s", text);
    request.text = copy;
    request.code = code;
    assert_int_equal(
        calls__echo__say__start(nodes[0].next, &request, options, calls_on_done, calls, ret_id), 0);
}

static void start_root(const char *text, enum bow_code code, uint64_t *ret_id)
{
    start_with(NULL, text, code, ret_id);
}

static void expect_child(const struct collected *child, const struct collected *parent)
{
    assert_string_equal(child->trace_id, parent->trace_id);
    assert_string_equal(child->parent_id, parent->span_id);
}

static void expect_ended(const struct collected *span, int status, const char *attribute)
{
    if (span->status != status || strstr(span->attributes, attribute) == NULL) {
        fail_msg("%s of %s, kind %d: status %d, %s", span->name, span->service, span->kind,
                 span->status, span->attributes);
    }
}

/* Six spans, each the child of the one before. */
static void expect_chain(const char *root_parent)
{
    static const char *const systems[] = {"rpc.system=grpc;", "rpc.system=bowline;",
                                          "rpc.system=grpc;"};
    const struct collected *before = NULL;

    calls_wait(calls, &collector.n_spans, 6);
    for (int i = 0; i < NODES - 1; i++) {
        const struct collected *client = collector_find(&collector, nodes[i].name, SAY, CLIENT);
        const struct collected *server = collector_find(&collector, nodes[i + 1].name, SAY, SERVER);
        if (before != NULL) {
            expect_child(client, before);
        } else {
            assert_string_equal(client->parent_id, root_parent);
        }
        expect_child(server, client);
        assert_non_null(strstr(client->attributes, systems[i]));
        assert_non_null(strstr(server->attributes, systems[i]));
        before = server;
    }
    assert_int_equal(collector.n_spans, 6);
}

static void test_trace_chain_is_one_trace(void **state)
{
    (void)state;
    begin(1);
    start_root("", BOW_OK, NULL);
    expect_chain("");
    for (int i = 0; i < 6; i++) {
        expect_ended(&collector.spans[i], 0, "rpc.grpc.status_code=0;");
        assert_non_null(
            strstr(collector.spans[i].attributes, "rpc.service=calls.Echo;rpc.method=Say;"));
        assert_non_null(strstr(collector.spans[i].attributes,
                               "network.peer.address=127.0.0.1;network.peer.port="));
    }
}

static void test_trace_chain_says_who_has_failed(void **state)
{
    (void)state;
    begin(1);
    start_root("", BOW_NOT_FOUND, NULL);
    expect_chain("");
    for (int i = 0; i < 6; i++) {
        const struct collected *span = &collector.spans[i];
        expect_ended(span, span->kind == CLIENT ? 2 : 0, "rpc.grpc.status_code=5;");
    }
}

static void test_trace_chain_that_is_cancelled_is_whole(void **state)
{
    uint64_t id = 0;

    (void)state;
    begin(1);
    start_root("hold", BOW_OK, &id);
    calls_wait(calls, &calls->n_said, 1);
    bow_client_cancel(nodes[0].next, id);
    expect_chain("");
    for (int i = 0; i < 6; i++) {
        const struct collected *span = &collector.spans[i];
        expect_ended(span, span->kind == CLIENT ? 2 : 0, "rpc.grpc.status_code=1;");
    }
}

/* Returns whether it has come to the last service. */
static bool be_late(uint64_t timeout_ns, const char *traceparent)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    const struct bow_metadata_entry entry = {"traceparent",
                                             {(const uint8_t *)traceparent, strlen(traceparent)}};
    const struct bow_metadata metadata = {&entry, 1};
    int n_done = calls->n_done;

    options.timeout_ns = timeout_ns;
    options.metadata = &metadata;
    start_with(&options, "hold", BOW_OK, NULL);
    calls_wait(calls, &calls->n_done, n_done + 1);
    return calls->n_said > 0;
}

/* Where a busy machine takes the time away, again with more of it, in another trace. */
static void test_trace_chain_that_is_late_is_whole(void **state)
{
    uint64_t timeout_ns = 100 * MS;
    char traceparent[] = "00-10000000000000000000000000000001-0000000000000001-01";
    char only[33];

    (void)state;
    begin(1);
    do {
        traceparent[3]++;
        (void)snprintf(only, sizeof(only), "%.32s", traceparent + 3);
        pthread_mutex_lock(&calls->lock);
        collector.only = only;
        pthread_mutex_unlock(&calls->lock);
        timeout_ns *= 3;
    } while (!be_late(timeout_ns, traceparent) && traceparent[3] < '8');
    expect_chain("0000000000000001");
    expect_ended(collector_find(&collector, "root", SAY, CLIENT), 2, "rpc.grpc.status_code=4;");
    collector.only = NULL;
}

static void test_trace_chain_that_is_not_sampled_is_not_sent(void **state)
{
    (void)state;
    begin(0);
    start_root("", BOW_OK, NULL);
    calls_wait(calls, &calls->n_done, 1);
    for (int i = 1; i < NODES; i++) {
        bow_server_free(nodes[i].server); /* all that there would be is with the exporter */
        nodes[i].server = NULL;
    }
    for (int i = 0; i < NODES; i++) {
        assert_int_equal(bow_otel_exporter_flush(nodes[i].exporter, 20000 * MS), 0);
    }
    assert_int_equal(collector.n_exports, 0);
}

/* A stream has a span, and each call that is made for one of its messages is its child. */
static void test_trace_chain_of_a_stream(void **state)
{
    struct calls__echo__stream__stream opened;
    Calls__Request request = CALLS__REQUEST__INIT;
    const Calls__Reply *reply = NULL;
    struct bow_result result = BOW_RESULT_INIT;
    int n_children = 0;

    (void)state;
    begin(1);
    assert_int_equal(calls__echo__stream__open(nodes[0].next, NULL, NULL, NULL, &opened), 0);
    for (request.number = 1; request.number <= 2; request.number++) {
        assert_int_equal(calls__echo__stream__stream_write(opened, &request, 20000 * MS), 0);
        assert_int_equal(calls__echo__stream__stream_receive(opened, 20000 * MS, &reply), 1);
    }
    assert_int_equal(calls__echo__stream__stream_finish(opened, &result), 0);
    bow_result_fini(&result);
    calls_wait(calls, &collector.n_spans, 10);
    const struct collected *server = collector_find(&collector, "a", "calls.Echo/Stream", SERVER);
    expect_child(server, collector_find(&collector, "root", "calls.Echo/Stream", CLIENT));
    for (int i = 0; i < collector.n_spans; i++) {
        const struct collected *span = &collector.spans[i];
        assert_string_equal(span->trace_id, server->trace_id);
        n_children += strcmp(span->parent_id, server->span_id) == 0;
    }
    assert_int_equal(n_children, 2);
    assert_int_equal(collector.n_spans, 10);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_trace_chain_is_one_trace),
        TEST(test_trace_chain_says_who_has_failed),
        TEST(test_trace_chain_that_is_cancelled_is_whole),
        TEST(test_trace_chain_that_is_late_is_whole),
        TEST(test_trace_chain_that_is_not_sampled_is_not_sent),
        TEST(test_trace_chain_of_a_stream),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
