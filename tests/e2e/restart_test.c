/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A server process killed with -9 in the middle of a call: the call ends UNAVAILABLE at
 * once; when the server is started again on the same port, the same client works.
 */

#include "lab.h"
#include "lab_process.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* The kernel tells of a dead peer at once; a heartbeat would need ten times as long. */
#define NOTICED_NS (500 * LAB_MS)

static const char *server_program;

struct hung_call {
    atomic_uint n_done;
    uint64_t done_at;
    enum bow_code code;
    char message[256];
};

static void on_hung_done(struct bow_result *result, const Lab__Blob *reply, void *user)
{
    struct hung_call *call = user;
    (void)reply;
    call->done_at = lab_now_ns();
    call->code = result->status.code;
    snprintf(call->message, sizeof(call->message), "%s", result->status.message);
    atomic_fetch_add(&call->n_done, 1);
}

static enum bow_code echo_once(struct bow_client *client, char *message, size_t size)
{
    struct bow_result result = BOW_RESULT_INIT;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Lab__Blob request = LAB__BLOB__INIT;
    options.timeout_ns = 2000 * LAB_MS;
    (void)lab__lab__echo__call(client, &request, &options, &result);
    enum bow_code code = result.status.code;
    snprintf(message, size, "%s", result.status.message);
    bow_result_fini(&result);
    return code;
}

static void killed_server_is_noticed(const char *prefix)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_client *client;
    struct hung_call hung = {.n_done = 0};
    char target[64];
    char message[256];
    struct lab_process server;
    Lab__Blob request = LAB__BLOB__INIT;
    lab_process_start(&server, server_program, "127.0.0.1", 0);
    snprintf(target, sizeof(target), "%s127.0.0.1:%u", prefix, server.port);
    assert_int_equal(bow_context_new(&context_options, &options.context), 0);
    assert_int_equal(bow_loop_new(options.context, NULL, &options.loop), 0);
    options.target = target;
    assert_int_equal(bow_client_new(&options, &client), 0);
    assert_int_equal(echo_once(client, message, sizeof(message)), BOW_OK);
    assert_int_equal(lab__lab__hang__start(client, &request, NULL, on_hung_done, &hung, NULL), 0);
    /* Calls of a connection are read in order: when this one is answered, the other has arrived. */
    assert_int_equal(echo_once(client, message, sizeof(message)), BOW_OK);

    lab_process_kill(&server);
    uint64_t killed_at = lab_now_ns();
    assert_true(lab_wait_count(&hung.n_done, 1, 5000 * LAB_MS));
    assert_int_equal(hung.code, BOW_UNAVAILABLE);
    assert_non_null(strstr(hung.message, "127.0.0.1"));
    assert_non_null(strstr(hung.message, "without a GOAWAY: has it crashed?"));
    if (!lab_is_instrumented() && hung.done_at > killed_at) {
        assert_true(hung.done_at - killed_at < NOTICED_NS);
    }
    enum bow_code while_down = echo_once(client, message, sizeof(message));
    assert_int_equal(while_down, BOW_UNAVAILABLE);
    print_message("lost: %s\nwhile down: %s\n", hung.message, message);

    lab_process_restart(&server);
    uint64_t end = lab_now_ns() + 5000 * LAB_MS;
    enum bow_code code = BOW_UNAVAILABLE;
    while (code == BOW_UNAVAILABLE && lab_now_ns() < end) {
        code = echo_once(client, message, sizeof(message));
    }
    assert_int_equal(code, BOW_OK);
    bow_client_free(client);
    bow_loop_unref(options.loop);
    bow_context_unref(options.context);
    lab_process_kill(&server);
}

static void test_restart_native_client_survives_killed_server(void **state)
{
    (void)state;
    killed_server_is_noticed("");
}

static void test_restart_grpc_client_survives_killed_server(void **state)
{
    (void)state;
    killed_server_is_noticed("grpc:");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_restart_native_client_survives_killed_server),
        cmocka_unit_test(test_restart_grpc_client_survives_killed_server),
    };
    if (argc != 2) {
        fprintf(stderr, "usage: %s LAB_SERVER_PROGRAM\n", argv[0]);
        return 2;
    }
    server_program = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
