/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Whole calls, client and server in one process, while memory is short: each allocation
 * failing in turn, alone and with all that follow, and ceilings from too low to enough.
 * What cannot be done is said, nothing hangs, nothing is left.
 */

#include "call_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* Never reached: whoever lacks memory says so, or hangs up. */
#define TIMEOUT_NS (5000 * MS)

struct need {
    uint32_t request_bytes;
    uint32_t reply_bytes;
    bool elsewhere; /* answered by another thread */
    bool confined;  /* the client drives its own loop */
    unsigned n_ok;
};

struct parts {
    struct bow_server *server;
    struct bow_loop *loop;
    struct bow_client *client;
    pthread_t helpers[4];
    int n_helpers;
    char target[160];
};

static bool is_shortage(enum bow_code code)
{
    return code == BOW_RESOURCE_EXHAUSTED || code == BOW_UNAVAILABLE;
}

/* The service; asserts would jump out of another thread, so it does not. */

static void answer(struct bow_call *call, uint32_t reply_bytes)
{
    Calls__Reply reply = CALLS__REPLY__INIT;

    reply.number = 7;
    if (reply_bytes > 0) {
        reply.payload.data = bow_call_alloc(call, reply_bytes);
        reply.payload.len = reply.payload.data != NULL ? reply_bytes : 0;
        if (reply.payload.data != NULL) {
            memset(reply.payload.data, 1, reply_bytes);
        }
    }
    (void)calls__echo__say__reply(call, &reply);
}

static void say(struct bow_call *call, const Calls__Request *request, void *user)
{
    (void)user;
    answer(call, request->reply_bytes);
}

static void *answer_elsewhere(void *user)
{
    answer(user, 0);
    return NULL;
}

static void later(struct bow_call *call, const Calls__Request *request, void *user)
{
    struct parts *parts = user;

    (void)request;
    if (parts->n_helpers == 4 ||
        pthread_create(&parts->helpers[parts->n_helpers], NULL, answer_elsewhere, call) != 0) {
        abort();
    }
    parts->n_helpers++;
}

/* Each step says what it fails with. */

static int start_server(struct parts *parts, struct bow_context *context)
{
    static int n;
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct calls__echo__handlers handlers = {.say = say, .later = later};
    char address[96];

    snprintf(address, sizeof(address), "127.0.0.1:0");
    if (calls_is_unix()) {
        snprintf(address, sizeof(address), "unix-abstract:bowline-shortage-%d-%d", (int)getpid(),
                 n++);
    }
    options.context = context;
    options.listen = address;
    options.grace_ns = 1;
    int rc = bow_server_new(&options, &parts->server);
    if (rc == 0) {
        rc = calls__echo__serve(parts->server, &handlers, parts);
    }
    if (rc == 0) {
        rc = bow_server_start(parts->server);
    }
    if (rc == 0 && !calls_is_unix()) {
        snprintf(address, sizeof(address), "127.0.0.1:%u", bow_server_port(parts->server));
    }
    snprintf(parts->target, sizeof(parts->target), "%s%s", calls_is_grpc() ? "grpc:" : "", address);
    return rc;
}

static int start_client(struct parts *parts, struct bow_context *context, bool confined)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;

    int rc = confined ? 0 : bow_loop_new(context, NULL, &parts->loop);
    if (rc < 0) {
        return rc;
    }
    options.context = context;
    options.target = parts->target;
    options.loop = parts->loop;
    return bow_client_new(&options, &parts->client);
}

static int call(struct parts *parts, struct need *need)
{
    struct bow_result result = BOW_RESULT_INIT;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;
    static uint8_t payload[1 << 20];

    options.timeout_ns = TIMEOUT_NS;
    request.payload.data = payload;
    request.payload.len = need->request_bytes;
    request.reply_bytes = need->reply_bytes;
    const Calls__Reply *reply =
        need->elsewhere ? calls__echo__later__call(parts->client, &request, &options, &result)
                        : calls__echo__say__call(parts->client, &request, &options, &result);
    enum bow_code code = result.status.code;
    if (reply != NULL) {
        assert_int_equal(reply->payload.len, need->elsewhere ? 0 : need->reply_bytes);
        need->n_ok++;
    } else if (!is_shortage(code)) {
        print_error("%s: %s\n", bow_code_name(code), result.status.message);
    }
    bow_result_fini(&result);
    return code == BOW_OK ? 0 : is_shortage(code) ? -ENOMEM : -EIO;
}

static int scenario(struct bow_context *context, void *user)
{
    struct need *need = user;
    struct parts parts = {0};

    int rc = start_server(&parts, context);
    if (rc == 0) {
        rc = start_client(&parts, context, need->confined);
    }
    if (rc == 0) {
        rc = call(&parts, need);
    }
    if (rc == 0) {
        rc = call(&parts, need);
    }
    bow_client_free(parts.client);
    bow_server_free(parts.server);
    for (int i = 0; i < parts.n_helpers; i++) {
        pthread_join(parts.helpers[i], NULL);
    }
    bow_loop_unref(parts.loop);
    return rc;
}

static void test_shortage_each_allocation_failing_is_survived(void **state)
{
    struct need needs[] = {
        {.request_bytes = 10},
        {.request_bytes = 10, .confined = true},
        {.request_bytes = 10, .elsewhere = true},
        {.request_bytes = 40000, .reply_bytes = 40000},
        {.request_bytes = 200000, .reply_bytes = 200000, .confined = true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
        size_t n = test_alloc_fail_each(NULL, scenario, &needs[i]);
        print_message("%zu allocations, %u calls went well\n", n, needs[i].n_ok);
        assert_true(n > 20);
        assert_true(needs[i].n_ok >= 2);
    }
}

static int run_below(size_t max_bytes, struct need *need)
{
    struct test_alloc alloc;
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_context *context = NULL;

    test_alloc_init(&alloc);
    options.allocator = &alloc.allocator;
    options.max_bytes = max_bytes;
    int rc = bow_context_new(&options, &context);
    if (rc == 0) {
        rc = scenario(context, need);
        test_context_end(context, &alloc);
    }
    return rc;
}

static void test_shortage_ceiling_of_any_height_is_kept(void **state)
{
    struct need need = {.request_bytes = 100000, .reply_bytes = 300000};
    size_t enough = 0;

    (void)state;
    for (size_t max_bytes = 16 << 10; max_bytes <= 8 << 20; max_bytes += max_bytes / 16) {
        int rc = run_below(max_bytes, &need);
        if (rc != 0 && rc != -ENOMEM) {
            fail_msg("below %zu bytes: %d", max_bytes, rc);
        }
        if (rc == 0 && enough == 0) {
            enough = max_bytes;
        }
    }
    print_message("%zu bytes are enough\n", enough);
    assert_in_range(enough, 1, 4 << 20);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shortage_each_allocation_failing_is_survived),
        cmocka_unit_test(test_shortage_ceiling_of_any_height_is_kept),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
