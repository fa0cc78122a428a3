/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The small parts that servers and clients stand on: detection, the registry,
 * names of calls, families, counters, errors.
 */

#include "base/list.h"
#include "protos/codec3.pb-c.h"
#include "rpc/client/call/call_ids.h"
#include "rpc/client/call/client_methods.h"
#include "rpc/client/call/result.h"
#include "rpc/connection/counters.h"
#include "rpc/connection/detect.h"
#include "rpc/core/call/call_invoke.h"
#include "rpc/core/call/child_calls.h"
#include "rpc/core/codec/wire.h"
#include "rpc/core/errors.h"
#include "rpc/core/registry.h"
#include "tests/support/alloc.h"

#include <bowline/limits.h>
#include <bowline/loop.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Detection */

static enum bow__protocol detect(const char *bytes, size_t len)
{
    return bow__detect((struct bow_slice){(const uint8_t *)bytes, len});
}

/* Undecided at every proper prefix, decided at the end. */
static void expect_detected(const char *bytes, enum bow__protocol protocol)
{
    size_t len = strlen(bytes);

    for (size_t n = 0; n < len; n++) {
        assert_int_equal(detect(bytes, n), BOW__PROTOCOL_UNDECIDED);
    }
    assert_int_equal(detect(bytes, len), protocol);
}

static void test_detect_tells_protocols_apart_at_each_byte(void **state)
{
    (void)state;
    expect_detected("\xB0OW", BOW__PROTOCOL_NATIVE);
    expect_detected("PRI * HTTP/2.0\r\n", BOW__PROTOCOL_HTTP2);
    expect_detected("GET ", BOW__PROTOCOL_HTTP1);
    expect_detected("POST ", BOW__PROTOCOL_HTTP1);
    expect_detected("OPTIONS ", BOW__PROTOCOL_HTTP1);
    assert_int_equal(detect("\xB0OV", 3), BOW__PROTOCOL_UNKNOWN);
    assert_int_equal(detect("PRI * HTTP/3", 12), BOW__PROTOCOL_UNKNOWN);
    assert_int_equal(detect("\x16\x03", 2), BOW__PROTOCOL_UNKNOWN);
    assert_int_equal(detect("get ", 4), BOW__PROTOCOL_UNKNOWN);
    assert_int_equal(detect("\0", 1), BOW__PROTOCOL_UNKNOWN);
}

/* Registry */

static bool invoke(struct bow_call *call, const void *request, const void *handlers, void *user)
{
    (void)call;
    (void)request;
    (void)handlers;
    (void)user;
    return false;
}

static const struct bow_method methods[] = {
    {.path = "/a.A/One", .name = "One", .invoke = invoke},
    {.path = "/a.A/Two", .name = "Two", .invoke = invoke},
};
static const struct bow_method clients_methods[] = {{.path = "/a.Client/One", .name = "One"}};
static const struct bow_service service_a = {.abi = BOW_SERVICE_ABI,
                                             .name = "a.A",
                                             .methods = methods,
                                             .n_methods = 2,
                                             .hash = 7,
                                             .handlers_size = 4};
static const struct bow_service service_empty = {
    .abi = BOW_SERVICE_ABI, .name = "a.Empty", .hash = 8, .handlers_size = 0};
static const struct bow_service service_new = {
    .abi = BOW_SERVICE_ABI + 1, .name = "a.New", .hash = 9, .handlers_size = 0};

static const struct bow_service service_client = {.abi = BOW_SERVICE_ABI,
                                                  .name = "a.Client",
                                                  .methods = clients_methods,
                                                  .n_methods = 1,
                                                  .hash = 10,
                                                  .handlers_size = 0};

static const struct bow__registered_method *find(const struct bow__registry *registry,
                                                 const char *path)
{
    return bow__registry_find(registry, (struct bow_slice){(const uint8_t *)path, strlen(path)});
}

static int fill_registry(struct bow_context *context, void *user)
{
    struct bow__registry registry;
    struct bow__text reason;
    int handlers = 42;

    bow__text_clear(&reason);
    bow__registry_init(&registry, context);
    int rc = bow__registry_add(&registry, &service_empty, NULL, 0, 8, NULL, &reason);
    if (rc == 0) {
        rc = bow__registry_add(&registry, &service_a, &handlers, 4, 7, user, &reason);
    }
    handlers = 0;
    if (rc == 0) {
        rc = bow__registry_seal(&registry);
    }
    if (rc == 0) {
        assert_string_equal(find(&registry, "/a.A/Two")->method->name, "Two");
        assert_int_equal(*(const int *)find(&registry, "/a.A/One")->handlers, 42);
        assert_ptr_equal(find(&registry, "/a.A/One")->user, user);
        assert_null(find(&registry, "/a.A/Three"));
        assert_null(find(&registry, ""));
        assert_ptr_equal(bow__registry_at(&registry, 1), find(&registry, "/a.A/Two"));
        assert_null(bow__registry_at(&registry, 2));
    }
    bow__registry_fini(&registry);
    return rc;
}

static void test_registry_finds_under_failing_allocations(void **state)
{
    (void)state;
    assert_true(test_alloc_fail_each(NULL, fill_registry, &state) >= 5);
}

static void expect_refused(struct bow__registry *registry, const struct bow_service *service,
                           size_t size, uint64_t hash, int rc, const char *words)
{
    struct bow__text reason;
    int handlers = 0;

    bow__text_clear(&reason);
    assert_int_equal(bow__registry_add(registry, service, &handlers, size, hash, NULL, &reason),
                     rc);
    assert_non_null(strstr(reason.bytes, words));
    assert_non_null(strstr(reason.bytes, service->name));
}

static void test_registry_refuses_what_does_not_fit(void **state)
{
    struct test_alloc alloc;
    struct bow__registry registry;
    struct bow__text reason;
    int handlers = 0;

    (void)state;
    test_alloc_init(&alloc);
    struct bow_context *context = test_context_new(&alloc);
    bow__text_clear(&reason);
    bow__registry_init(&registry, context);
    expect_refused(&registry, &service_new, 0, 9, -EINVAL, "version");
    expect_refused(&registry, &service_a, 4, 6, -EINVAL, "same .proto");
    expect_refused(&registry, &service_a, 3, 7, -EINVAL, "same .proto");
    expect_refused(&registry, &service_client, 0, 10, -EINVAL, "for clients only");
    assert_int_equal(bow__registry_add(&registry, &service_a, &handlers, 4, 7, NULL, &reason), 0);
    expect_refused(&registry, &service_a, 4, 7, -EEXIST, "added before");
    assert_int_equal(bow__registry_seal(&registry), 0);
    expect_refused(&registry, &service_empty, 0, 8, -EBUSY, "started");
    bow__registry_fini(&registry);
    test_context_end(context, &alloc);
}

/* Names of calls */

static struct bow__client_call *const call_a = (struct bow__client_call *)0x10;
static struct bow__client_call *const call_b = (struct bow__client_call *)0x20;
static struct bow__client_call *found;

static void remember(struct bow__client_call *call)
{
    found = call;
}

static struct bow__client_call *find_call(struct bow__call_ids *ids, uint64_t id)
{
    found = NULL;
    bow__call_ids_with(ids, id, remember);
    return found;
}

static void test_call_f26_ids_are_never_reused(void **state)
{
    struct test_alloc alloc;
    struct bow__call_ids ids;
    uint64_t seen[300];

    (void)state;
    test_alloc_init(&alloc);
    struct bow_context *context = test_context_new(&alloc);
    bow__call_ids_init(&ids, context);
    assert_null(find_call(&ids, 0));
    for (size_t i = 0; i < 300; i++) {
        seen[i] = bow__call_ids_put(&ids, i % 2 == 0 ? call_a : call_b);
        assert_int_not_equal(seen[i], 0);
        for (size_t k = 0; k < i; k++) {
            assert_true(seen[k] != seen[i]);
        }
        if (i % 3 != 0) {
            bow__call_ids_remove(&ids, seen[i]);
            bow__call_ids_remove(&ids, seen[i]);
        }
    }
    for (size_t i = 0; i < 300; i++) {
        struct bow__client_call *call = i % 2 == 0 ? call_a : call_b;
        assert_ptr_equal(find_call(&ids, seen[i]), i % 3 == 0 ? call : NULL);
    }
    assert_null(find_call(&ids, UINT64_MAX));
    alloc.fail_at = atomic_load(&alloc.n_calls) + 1;
    uint64_t id = 1;
    while (id != 0) {
        id = bow__call_ids_put(&ids, call_a);
    }
    assert_ptr_equal(find_call(&ids, seen[0]), call_a);
    bow__call_ids_fini(&ids);
    test_context_end(context, &alloc);
}

/* Families */

static int n_cancels;

static void on_cancel(struct bow__child *child)
{
    (void)child;
    n_cancels++;
}

static void test_family_ends_its_children_and_those_that_join_later(void **state)
{
    struct test_alloc alloc;
    struct bow__child first = {.cancel = on_cancel};
    struct bow__child second = {.cancel = on_cancel};
    struct bow__child third = {.cancel = on_cancel};

    (void)state;
    test_alloc_init(&alloc);
    n_cancels = 0;
    struct bow_context *context = test_context_new(&alloc);
    struct bow__child_calls *child_calls = bow__child_calls_new(context);
    bow__child_calls_join(child_calls, &first);
    bow__child_calls_join(child_calls, &second);
    bow__child_calls_leave(&first);
    bow__child_calls_leave(&first);
    bow__child_calls_end(child_calls);
    assert_int_equal(n_cancels, 1);
    bow__child_calls_join(child_calls, &third);
    assert_int_equal(n_cancels, 2);
    bow__child_calls_unref(child_calls); /* the parent goes first */
    bow__child_calls_leave(&third);
    bow__child_calls_leave(&second);
    bow__child_calls_unref(NULL);
    test_context_end(context, &alloc);
}

/* Counters */

static void on_published(void *owner)
{
    (*(int *)owner)++;
}

static void test_counters_are_published_within_their_time(void **state)
{
    struct test_alloc alloc;
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;
    struct bow_loop *loop = NULL;
    struct bow__counters counters;
    struct bow_metrics sum = BOW_METRICS_INIT;
    struct bow_method_metrics method = {0};
    int n_published = 0;

    (void)state;
    test_alloc_init(&alloc);
    struct bow_context *context = test_context_new(&alloc);
    options.thread = BOW_LOOP_OWNER;
    assert_int_equal(bow_loop_new(context, &options, &loop), 0);
    assert_int_equal(bow_loop_run_once(loop, 0), 0);
    assert_int_equal(bow__counters_init(&counters, context, loop, 2, on_published, &n_published),
                     0);
    counters.now.heartbeats_lost = 3;
    counters.methods[1].ended[BOW_ABORTED] = 4;
    bow__counters_touch(&counters);
    bow__counters_touch(&counters);
    bow__counters_add(&counters, &sum);
    assert_int_equal(sum.heartbeats_lost, 0);
    while (n_published == 0) {
        assert_int_equal(bow_loop_run_once(loop, BOW_NEVER), 0);
    }
    bow__counters_add(&counters, &sum);
    bow__counters_add(&counters, &sum);
    bow__method_counts_add(&counters.methods[1], &method);
    assert_int_equal(sum.heartbeats_lost, 6);
    assert_int_equal(sum.connections_opened, 0);
    assert_int_equal(sum.reconnects, 0);
    assert_int_equal(method.ended[BOW_ABORTED], 4);
    assert_int_equal(method.started, 0);
    bow__counters_fini(&counters);
    assert_int_equal(bow_loop_shutdown(loop, 0, 0), 0);
    assert_int_equal(bow_loop_run(loop), 0);
    bow_loop_unref(loop);
    test_context_end(context, &alloc);
}

/* Errors and texts */

static void expect_duration(uint64_t ns, const char *expected)
{
    struct bow__text text;

    bow__text_clear(&text);
    bow__text_duration(&text, ns);
    assert_string_equal(text.bytes, expected);
}

static void test_errors_durations_read_well(void **state)
{
    (void)state;
    expect_duration(0, "0 ns");
    expect_duration(999, "999 ns");
    expect_duration(1000, "1 us");
    expect_duration(1550, "1.5 us");
    expect_duration(100000000, "100 ms");
    expect_duration(UINT64_C(2500000000), "2.5 s");
    expect_duration(UINT64_C(60000000000), "60 s");
}

static void test_errors_codes_follow_errno(void **state)
{
    (void)state;
    assert_int_equal(bow__code_from_errno(0), BOW_OK);
    assert_int_equal(bow__code_from_errno(-ENOMEM), BOW_RESOURCE_EXHAUSTED);
    assert_int_equal(bow__code_from_errno(-ECONNREFUSED), BOW_UNAVAILABLE);
    assert_int_equal(bow__code_from_errno(-EDEADLK), BOW_FAILED_PRECONDITION);
    assert_int_equal(bow__code_from_errno(-ETIMEDOUT), BOW_DEADLINE_EXCEEDED);
}

static void test_errors_texts_are_cut_between_characters(void **state)
{
    (void)state;
    assert_int_equal(bow__utf8_cut("abc", 3, 5), 3);
    assert_int_equal(bow__utf8_cut("abc", 3, 2), 2);
    assert_int_equal(bow__utf8_cut("a\xC3\xA9z", 4, 2), 1);
    assert_int_equal(bow__utf8_cut("a\xC3\xA9z", 4, 3), 3);
    assert_int_equal(bow__utf8_cut("\xE2\x82\xAC", 3, 2), 0);
}

/* Almost empty sub-messages grow a hundredfold: far less than the call's whole cap is in reach. */
static void test_call_decode_takes_memory_in_proportion(void **state)
{
    enum { LEN = 64 << 10 };
    static const struct bow_method method = {.path = "/a/B",
                                             .input = &codec3__everything__descriptor};
    struct test_alloc alloc;
    struct bow__text reason;
    struct bow_call call;
    uint8_t slab[256];

    (void)state;
    test_alloc_init(&alloc);
    struct bow_context *context = test_context_new(&alloc);
    struct bow__block *block = bow__block_new(context, LEN);
    assert_non_null(block);
    for (size_t i = 0; i < LEN; i += 4) { /* everything.more with empty lists */
        memcpy(block->data + i, "\x32\x02\x12\x00", 4);
    }
    struct bow__message message = {.bytes = {block->data, LEN}};
    bow__call_init(&call, NULL, context, slab, sizeof(slab));
    call.method = &method;
    bow__text_clear(&reason);
    assert_int_equal(bow__call_decode(&call, &message, &reason), -ENOMEM);
    assert_non_null(strstr(reason.bytes, "of the at most 4259840 of this call"));
    assert_int_equal(call.arena.max_bytes, BOW_LIMIT_CALL_ARENA_BYTES);
    bow__arena_reset(&call.arena);
    bow__block_unref(block);
    test_context_end(context, &alloc);
}

/* Whoever raises max_message_bytes gets such messages, in the block they came in, which may have
 * grown to twice as much; strings are copied. */
static void test_call_decode_f31_takes_messages_above_the_cap(void **state)
{
    static const size_t len = BOW_LIMIT_CALL_ARENA_BYTES + 1;
    static const struct bow_method method = {.path = "/a/B", .input = &codec3__scalars__descriptor};
    struct test_alloc alloc;
    struct bow__text reason;
    struct bow_call call;
    uint8_t slab[256];

    (void)state;
    test_alloc_init(&alloc);
    struct bow_context *context = test_context_new(&alloc);
    struct bow__block *block = bow__block_new(context, 2 * len);
    assert_non_null(block);
    memset(block->data, 'x', len);
    uint8_t *end = bow__wire_write_varint(block->data + 1, len - 6);
    assert_ptr_equal(end, block->data + 5);
    block->data[0] = 15 << 3 | 2; /* f_string */
    struct bow__message message = {.bytes = {block->data, len - 1}, .block = block};
    bow__call_init(&call, NULL, context, slab, sizeof(slab));
    call.method = &method;
    bow__text_clear(&reason);
    assert_int_equal(bow__call_decode(&call, &message, &reason), 0);
    assert_int_equal(strlen(((Codec3__Scalars *)call.request)->f_string), len - 6);
    assert_null(message.block);
    assert_true(call.arena.max_bytes >= call.arena.used);
    bow__arena_reset(&call.arena);
    test_context_end(context, &alloc);
}

/* A session's text is gone when its event returns; so is an empty one. */
static void test_result_keeps_texts_of_its_own(void **state)
{
    char texts[][8] = {"", "gone"};
    struct test_alloc alloc;

    (void)state;
    test_alloc_init(&alloc);
    struct bow_context *context = test_context_new(&alloc);
    struct bow_result_memory *memory = bow__result_memory_new(context);
    for (size_t i = 0; i < 2; i++) {
        const struct bow_status lent = {
            .code = BOW_OK,
            .message = texts[i],
            .details = {(const uint8_t *)texts[i], strlen(texts[i])},
        };
        struct bow_status kept = bow__result_keep_status(memory, &lent);
        assert_string_equal(kept.message, texts[i]);
        assert_ptr_not_equal(kept.message, lent.message);
        assert_int_equal(kept.details.len, lent.details.len);
        assert_ptr_not_equal(kept.details.data, lent.details.data);
    }
    bow__result_memory_free(memory);
    test_context_end(context, &alloc);
}

/* Methods of a client */

static void test_client_methods_are_told_apart_by_path(void **state)
{
    struct test_alloc alloc;
    struct bow__client_methods called = {0};
    struct bow_method method = {.path = "/a.B/C"};
    const struct bow_method same = {.path = "/a.B/C"};

    (void)state;
    test_alloc_init(&alloc);
    struct bow_context *context = test_context_new(&alloc);
    bow__client_methods_init(&called, context);
    struct bow__method_counts *first = bow__client_methods_find(&called, &method);
    assert_ptr_equal(bow__client_methods_find(&called, &method), first);
    assert_ptr_equal(bow__client_methods_find(&called, &same), first);
    method.path = "/a.B/D"; /* another one at the same address */
    struct bow__method_counts *second = bow__client_methods_find(&called, &method);
    assert_ptr_not_equal(second, first);
    assert_ptr_equal(bow__client_methods_find(&called, &same), first);
    assert_ptr_equal(bow__client_methods_look(&called, "/a.B/C"), first);
    assert_ptr_equal(bow__client_methods_look(&called, "/a.B/D"), second);
    assert_ptr_equal(bow__client_methods_look(&called, "/a.B/E"), &called.others);
    bow__client_methods_fini(&called);
    test_context_end(context, &alloc);
}

static void test_client_methods_beyond_the_limit_count_together(void **state)
{
    struct test_alloc alloc;
    struct bow__client_methods called = {0};

    (void)state;
    test_alloc_init(&alloc);
    struct bow_context *context = test_context_new(&alloc);
    bow__client_methods_init(&called, context);
    for (unsigned i = 0; i <= BOW_LIMIT_CLIENT_METHODS; i++) {
        char path[32];
        const struct bow_method method = {.path = path};
        (void)snprintf(path, sizeof(path), "/a.B/M%u", i);
        struct bow__method_counts *counts = bow__client_methods_find(&called, &method);
        assert_int_equal(counts == &called.others, i == BOW_LIMIT_CLIENT_METHODS);
        bow__method_counts_time(counts, context, BOW_TIME_CALL, BOW_OK, i, 1);
    }
    bow__client_methods_fini(&called);
    test_context_end(context, &alloc);
}

static void test_client_methods_without_memory_count_together(void **state)
{
    struct test_alloc alloc;
    struct bow__client_methods called = {0};
    const struct bow_method method = {.path = "/a.B/C"};

    (void)state;
    test_alloc_init(&alloc);
    struct bow_context *context = test_context_new(&alloc);
    bow__client_methods_init(&called, context);
    for (size_t n = 1; n <= 2; n++) {
        alloc.fail_at = alloc.n_calls + n;
        assert_ptr_equal(bow__client_methods_find(&called, &method), &called.others);
    }
    alloc.fail_at = 0;
    assert_ptr_not_equal(bow__client_methods_find(&called, &method), &called.others);
    bow__client_methods_fini(&called);
    test_context_end(context, &alloc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_detect_tells_protocols_apart_at_each_byte),
        cmocka_unit_test(test_registry_finds_under_failing_allocations),
        cmocka_unit_test(test_registry_refuses_what_does_not_fit),
        cmocka_unit_test(test_call_f26_ids_are_never_reused),
        cmocka_unit_test(test_family_ends_its_children_and_those_that_join_later),
        cmocka_unit_test(test_counters_are_published_within_their_time),
        cmocka_unit_test(test_client_methods_are_told_apart_by_path),
        cmocka_unit_test(test_client_methods_beyond_the_limit_count_together),
        cmocka_unit_test(test_client_methods_without_memory_count_together),
        cmocka_unit_test(test_call_decode_takes_memory_in_proportion),
        cmocka_unit_test(test_call_decode_f31_takes_messages_above_the_cap),
        cmocka_unit_test(test_result_keeps_texts_of_its_own),
        cmocka_unit_test(test_errors_durations_read_well),
        cmocka_unit_test(test_errors_codes_follow_errno),
        cmocka_unit_test(test_errors_texts_are_cut_between_characters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
