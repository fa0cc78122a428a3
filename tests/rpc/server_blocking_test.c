/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Methods that their .proto declares to block: where they run, and that a server without a place
 * for them does not start. */

#include "protos/blocking.bow.h"

#include <bowline/context.h>
#include <bowline/executor.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SYNC "blocking.Disk/Sync"

struct disk {
    struct bow_context *context;
    struct bow_executor *executor;
    struct bow_executor *other;
    struct bow_server *server;
    struct bow_client *client;
};

static Blocking__Where where(const struct disk *disk)
{
    Blocking__Where reply = BLOCKING__WHERE__INIT;

    reply.on_executor = bow_executor_in_executor(disk->executor);
    return reply;
}

static void look(struct bow_call *call, const Blocking__Nothing *request, void *user)
{
    Blocking__Where reply = where(user);

    (void)request;
    blocking__disk__look__reply(call, &reply);
}

static void sync_disk(struct bow_call *call, const Blocking__Nothing *request, void *user)
{
    Blocking__Where reply = where(user);

    (void)request;
    blocking__disk__sync__reply(call, &reply);
}

static int setup(void **state)
{
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_executor_options options = BOW_EXECUTOR_OPTIONS_INIT;
    struct disk *disk = calloc(1, sizeof(*disk));

    assert_non_null(disk);
    options.n_threads = 1;
    assert_int_equal(bow_context_new(&context_options, &disk->context), 0);
    assert_int_equal(bow_executor_new(disk->context, &options, &disk->executor), 0);
    assert_int_equal(bow_executor_new(disk->context, &options, &disk->other), 0);
    *state = disk;
    return 0;
}

static int teardown(void **state)
{
    struct disk *disk = *state;

    bow_client_free(disk->client);
    bow_server_free(disk->server);
    bow_executor_unref(disk->executor);
    bow_executor_unref(disk->other);
    assert_int_equal(bow_context_bytes(disk->context), 0);
    bow_context_unref(disk->context);
    free(disk);
    return 0;
}

static void make(struct disk *disk, struct bow_executor *blocking_on,
                 struct bow_executor *handlers_on)
{
    static const struct blocking__disk__handlers handlers = {.look = look, .sync = sync_disk};
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;

    options.context = disk->context;
    options.listen = "127.0.0.1:0";
    options.workers = 1;
    options.blocking_on = blocking_on;
    options.handlers_on = handlers_on;
    assert_int_equal(bow_server_new(&options, &disk->server), 0);
    assert_int_equal(blocking__disk__serve(disk->server, &handlers, disk), 0);
}

static void start(struct disk *disk)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    char target[32];

    assert_int_equal(bow_server_start(disk->server), 0);
    snprintf(target, sizeof(target), "127.0.0.1:%u", bow_server_port(disk->server));
    options.context = disk->context;
    options.target = target;
    assert_int_equal(bow_client_new(&options, &disk->client), 0);
}

static bool look_runs_on_executor(struct disk *disk)
{
    struct bow_result result = BOW_RESULT_INIT;
    Blocking__Nothing request = BLOCKING__NOTHING__INIT;
    const Blocking__Where *reply =
        blocking__disk__look__call(disk->client, &request, NULL, &result);

    assert_non_null(reply);
    bool on_executor = reply->on_executor;
    bow_result_fini(&result);
    return on_executor;
}

static bool sync_runs_on_executor(struct disk *disk)
{
    struct bow_result result = BOW_RESULT_INIT;
    Blocking__Nothing request = BLOCKING__NOTHING__INIT;
    const Blocking__Where *reply =
        blocking__disk__sync__call(disk->client, &request, NULL, &result);

    assert_non_null(reply);
    bool on_executor = reply->on_executor;
    bow_result_fini(&result);
    return on_executor;
}

static void test_blocking_method_runs_on_its_executor_and_no_other_does(void **state)
{
    struct disk *disk = *state;

    make(disk, disk->executor, NULL);
    start(disk);
    assert_true(sync_runs_on_executor(disk));
    assert_false(look_runs_on_executor(disk));
}

static void test_blocking_method_goes_before_handlers_on(void **state)
{
    struct disk *disk = *state;

    make(disk, disk->executor, disk->other);
    start(disk);
    assert_true(sync_runs_on_executor(disk));
    assert_false(look_runs_on_executor(disk));
}

static void test_blocking_method_runs_where_all_handlers_do(void **state)
{
    struct disk *disk = *state;

    make(disk, NULL, disk->executor);
    start(disk);
    assert_true(sync_runs_on_executor(disk));
    assert_true(look_runs_on_executor(disk));
}

static void test_blocking_method_bound_to_the_loop_runs_there(void **state)
{
    struct disk *disk = *state;

    make(disk, disk->executor, NULL);
    assert_int_equal(bow_server_bind(disk->server, SYNC, NULL), 0);
    start(disk);
    assert_false(sync_runs_on_executor(disk));
}

static void test_blocking_method_without_an_executor_does_not_start(void **state)
{
    struct disk *disk = *state;

    make(disk, NULL, NULL);
    assert_int_equal(bow_server_start(disk->server), -EDEADLK);
    assert_non_null(strstr(bow_server_error(disk->server), SYNC));
    assert_non_null(strstr(bow_server_error(disk->server), "options.blocking_on"));
    assert_non_null(strstr(bow_server_error(disk->server), "with NULL"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_blocking_method_runs_on_its_executor_and_no_other_does),
        TEST(test_blocking_method_goes_before_handlers_on),
        TEST(test_blocking_method_runs_where_all_handlers_do),
        TEST(test_blocking_method_bound_to_the_loop_runs_there),
        TEST(test_blocking_method_without_an_executor_does_not_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
