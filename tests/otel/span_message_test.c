/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Spans as OTLP's messages: names, attributes and statuses by the semantic conventions. */

#include "otel/attributes.h"
#include "otel/span_message.h"
#include "tests/support/alloc.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct test_alloc alloc;
static struct bow_context *context;
static struct bow_arena *arena;
static struct bow__otel_span_queue queue;
static struct bow__otel_parcel *parcel;

static int setup(void **state)
{
    (void)state;
    test_alloc_init(&alloc);
    context = test_context_new(&alloc);
    arena = bow_arena_new(context, (size_t)1 << 20);
    bow__otel_span_queue_init(&queue, context, 100, (size_t)1 << 20);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    bow__otel_span_queue_free(&queue, parcel);
    parcel = NULL;
    bow__otel_span_queue_fini(&queue);
    bow_arena_free(arena);
    test_context_end(context, &alloc);
    return 0;
}

static struct bow_span span_of(enum bow_span_kind kind, const char *peer)
{
    return (struct bow_span){
        .context = {.trace_id = {1, 2}, .span_id = {3, 4}, .flags = BOW_SPAN_SAMPLED},
        .parent_id = {5, 6},
        .kind = kind,
        .start_unix_ns = 1000,
        .end_unix_ns = 2000,
        .tracestate = "a=1",
        .path = "/shop.Counter/Add",
        .peer = peer,
        .protocol = "grpc",
        .message = "why not",
    };
}

static const Bow__Otel__Span *message_of(const struct bow_span *span)
{
    Bow__Otel__Resource resource = BOW__OTEL__RESOURCE__INIT;

    assert_int_equal(bow__otel_span_queue_push(&queue, span, 1), 1);
    parcel = bow__otel_span_queue_take(&queue, 1, 1);
    const Bow__Otel__ExportTraceServiceRequest *request =
        bow__otel_span_message(arena, &resource, parcel);
    assert_non_null(request);
    assert_string_equal(request->resource_spans[0]->schema_url, BOW__OTEL_SCHEMA_URL);
    assert_string_equal(request->resource_spans[0]->scope_spans[0]->scope->name, "bowline");
    assert_int_equal(request->resource_spans[0]->scope_spans[0]->n_spans, 1);
    return request->resource_spans[0]->scope_spans[0]->spans[0];
}

static void expect_attributes(Bow__Otel__KeyValue *const *pairs, size_t n, const char *expected)
{
    char text[1024] = "";
    size_t len = 0;

    for (size_t i = 0; i < n; i++) {
        const Bow__Otel__AnyValue *value = pairs[i]->value;
        bool is_text = value->value_case == BOW__OTEL__ANY_VALUE__VALUE_STRING_VALUE;
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s=", pairs[i]->key);
        len += is_text
                   ? (size_t)snprintf(text + len, sizeof(text) - len, "%s;", value->string_value)
                   : (size_t)snprintf(text + len, sizeof(text) - len, "%" PRId64 ";",
                                      value->int_value);
    }
    assert_string_equal(text, expected);
}

#define METHOD "rpc.system=grpc;rpc.service=shop.Counter;rpc.method=Add;"
#define OK "rpc.grpc.status_code=0;"

static void expect_peer(enum bow_span_kind kind, const char *peer, const char *expected)
{
    struct bow_span span = span_of(kind, peer);
    char all[512];

    const Bow__Otel__Span *message = message_of(&span);
    (void)snprintf(all, sizeof(all), METHOD "%s" OK, expected);
    expect_attributes(message->attributes, message->n_attributes, all);
    bow__otel_span_queue_free(&queue, parcel);
    parcel = NULL;
}

static void test_span_message_server_says_who_calls(void **state)
{
    (void)state;
    expect_peer(BOW_SPAN_SERVER, "192.0.2.7:40312",
                "network.peer.address=192.0.2.7;network.peer.port=40312;network.transport=tcp;"
                "network.type=ipv4;");
    expect_peer(BOW_SPAN_SERVER, "[2001:db8::1]:443",
                "network.peer.address=2001:db8::1;network.peer.port=443;network.transport=tcp;"
                "network.type=ipv6;");
    expect_peer(BOW_SPAN_SERVER, "unix:", "network.transport=unix;");
    expect_peer(BOW_SPAN_SERVER, "inproc:shop", "network.peer.address=shop;");
}

static void test_span_message_client_says_whom_it_calls(void **state)
{
    (void)state;
    expect_peer(BOW_SPAN_CLIENT, "shop.example:50051",
                "server.address=shop.example;server.port=50051;network.transport=tcp;");
    expect_peer(BOW_SPAN_CLIENT, "192.0.2.7:80",
                "server.address=192.0.2.7;server.port=80;network.peer.address=192.0.2.7;"
                "network.peer.port=80;network.transport=tcp;network.type=ipv4;");
    expect_peer(BOW_SPAN_CLIENT, "unix:/run/\xffx",
                "server.address=/run/?x;network.peer.address=/run/?x;network.transport=unix;");
}

static void test_span_message_has_ids_and_times(void **state)
{
    struct bow_span span = span_of(BOW_SPAN_SERVER, "unix:");

    (void)state;
    const Bow__Otel__Span *message = message_of(&span);
    assert_int_equal(message->trace_id.len, 16);
    assert_memory_equal(message->trace_id.data, span.context.trace_id, 16);
    assert_int_equal(message->span_id.len, 8);
    assert_memory_equal(message->span_id.data, span.context.span_id, 8);
    assert_int_equal(message->parent_span_id.len, 8);
    assert_memory_equal(message->parent_span_id.data, span.parent_id, 8);
    assert_string_equal(message->name, "shop.Counter/Add");
    assert_string_equal(message->trace_state, "a=1");
    assert_int_equal(message->kind, BOW__OTEL__SPAN__SPAN_KIND__SPAN_KIND_SERVER);
    assert_int_equal(message->start_time_unix_nano, 1000);
    assert_int_equal(message->end_time_unix_nano, 2000);
    assert_int_equal(message->flags, 0x301); /* sampled, and its parent is another process's */
}

static void test_span_message_root_has_no_parent(void **state)
{
    struct bow_span span = span_of(BOW_SPAN_CLIENT, "unix:");

    (void)state;
    memset(span.parent_id, 0, sizeof(span.parent_id));
    const Bow__Otel__Span *message = message_of(&span);
    assert_int_equal(message->parent_span_id.len, 0);
    assert_int_equal(message->flags, 1);
    assert_int_equal(message->kind, BOW__OTEL__SPAN__SPAN_KIND__SPAN_KIND_CLIENT);
}

static bool fails(enum bow_span_kind kind, enum bow_code code)
{
    struct bow_span span = span_of(kind, "unix:");

    span.code = code;
    const Bow__Otel__Status *status = message_of(&span)->status;
    bool is_error = status->code == BOW__OTEL__STATUS__STATUS_CODE__STATUS_CODE_ERROR;
    assert_string_equal(status->message, is_error ? "why not" : "");
    bow__otel_span_queue_free(&queue, parcel);
    parcel = NULL;
    return is_error;
}

/* The table of https://opentelemetry.io/docs/specs/semconv/rpc/grpc/. */
static void test_span_message_status_is_an_error_of_who_made_it(void **state)
{
    static const bool of_server[] = {
        [BOW_UNKNOWN] = true,          [BOW_DEADLINE_EXCEEDED] = true, [BOW_UNIMPLEMENTED] = true,
        [BOW_INTERNAL] = true,         [BOW_UNAVAILABLE] = true,       [BOW_DATA_LOSS] = true,
        [BOW_UNAUTHENTICATED] = false,
    };

    (void)state;
    for (int code = BOW_OK; code <= BOW_UNAUTHENTICATED; code++) {
        assert_int_equal(fails(BOW_SPAN_SERVER, (enum bow_code)code), of_server[code]);
        assert_int_equal(fails(BOW_SPAN_CLIENT, (enum bow_code)code), code != BOW_OK);
    }
}

static void test_span_message_error_has_its_type(void **state)
{
    struct bow_span span = span_of(BOW_SPAN_SERVER, "unix:");

    (void)state;
    span.code = BOW_UNAVAILABLE;
    span.protocol = "native";
    span.message = "gone \xc3\x28";
    const Bow__Otel__Span *message = message_of(&span);
    expect_attributes(message->attributes, message->n_attributes,
                      "rpc.system=bowline;rpc.service=shop.Counter;rpc.method=Add;"
                      "network.transport=unix;rpc.grpc.status_code=14;error.type=UNAVAILABLE;");
    assert_string_equal(message->status->message, "gone ?("); /* one text spoils no batch */
}

static void test_span_message_system_is_of_the_protocol(void **state)
{
    static const char *const systems[][2] = {
        {"native", "bowline"}, {"grpc", "grpc"}, {"grpc-web", "grpc"}, {"connect", "connect_rpc"}};
    struct bow_span span = span_of(BOW_SPAN_SERVER, "unix:");
    char expected[200];

    (void)state;
    for (size_t i = 0; i < sizeof(systems) / sizeof(systems[0]); i++) {
        span.protocol = systems[i][0];
        const Bow__Otel__Span *message = message_of(&span);
        snprintf(expected, sizeof(expected),
                 "rpc.system=%s;rpc.service=shop.Counter;rpc.method=Add;network.transport=unix;"
                 "rpc.grpc.status_code=0;",
                 systems[i][1]);
        expect_attributes(message->attributes, message->n_attributes, expected);
        bow__otel_span_queue_free(&queue, parcel);
        parcel = NULL;
    }
}

static void test_span_message_has_events(void **state)
{
    const struct bow_span_event events[] = {
        {.kind = BOW_SPAN_MESSAGE_SENT, .unix_ns = 1100, .number = 1, .bytes = 7},
        {.kind = BOW_SPAN_RETRY, .unix_ns = 1200, .number = 1, .code = BOW_UNAVAILABLE},
        {.kind = BOW_SPAN_MESSAGE_RECEIVED, .unix_ns = 1300, .number = 1, .bytes = 8},
    };
    struct bow_span span = span_of(BOW_SPAN_CLIENT, "unix:");

    (void)state;
    span.events = events;
    span.n_events = 3;
    span.n_events_dropped = 4;
    const Bow__Otel__Span *message = message_of(&span);
    assert_int_equal(message->n_events, 3);
    assert_int_equal(message->dropped_events_count, 4);
    assert_string_equal(message->events[0]->name, "rpc.message");
    assert_int_equal(message->events[0]->time_unix_nano, 1100);
    expect_attributes(message->events[0]->attributes, message->events[0]->n_attributes,
                      "rpc.message.type=SENT;rpc.message.id=1;rpc.message.uncompressed_size=7;");
    assert_string_equal(message->events[1]->name, "retry");
    expect_attributes(message->events[1]->attributes, message->events[1]->n_attributes,
                      "rpc.grpc.status_code=14;");
    expect_attributes(
        message->events[2]->attributes, message->events[2]->n_attributes,
        "rpc.message.type=RECEIVED;rpc.message.id=1;rpc.message.uncompressed_size=8;");
}

static void test_span_message_without_memory_is_none(void **state)
{
    struct bow_span span = span_of(BOW_SPAN_CLIENT, "a:1");
    Bow__Otel__Resource resource = BOW__OTEL__RESOURCE__INIT;

    (void)state;
    assert_int_equal(bow__otel_span_queue_push(&queue, &span, 1), 1);
    parcel = bow__otel_span_queue_take(&queue, 1, 1);
    for (size_t bytes = 64; bytes < 2048; bytes += 64) {
        struct bow_arena *small = bow_arena_new(context, bytes);
        bool made = bow__otel_span_message(small, &resource, parcel) != NULL;
        assert_int_equal(made, !bow_arena_failed(small));
        bow_arena_free(small);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_span_message_server_says_who_calls),
        TEST(test_span_message_client_says_whom_it_calls),
        TEST(test_span_message_has_ids_and_times),
        TEST(test_span_message_root_has_no_parent),
        TEST(test_span_message_status_is_an_error_of_who_made_it),
        TEST(test_span_message_error_has_its_type),
        TEST(test_span_message_system_is_of_the_protocol),
        TEST(test_span_message_has_events),
        TEST(test_span_message_without_memory_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
