/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* How many system calls a large message takes, both ends and both ways together. */

#include "both_ends.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MIB ((size_t)1 << 20)
#define N_WARM 8
#define N_CALLS 16
/* Both ways, and both ends. */
#define MAX_RECV 42
#define MAX_SEND 24

struct counted {
    uint64_t now_ns;
    size_t n_recv;
    size_t n_send;
};

/* Time goes by as often as one looks, so that the path is as fast on each machine. */
static uint64_t count_time(void *user)
{
    struct counted *counted = user;
    return counted->now_ns += 10000;
}

static ssize_t count_recv(void *user, int fd, void *bytes, size_t len)
{
    const struct bow_system *os = bow_system_default();
    ((struct counted *)user)->n_recv++;
    return os->recv(os->user, fd, bytes, len);
}

static ssize_t count_send(void *user, int fd, const struct msghdr *message, int flags)
{
    const struct bow_system *os = bow_system_default();
    ((struct counted *)user)->n_send++;
    return os->sendmsg(os->user, fd, message, flags);
}

static void say(struct bow_call *call, const Calls__Request *request, void *user)
{
    Calls__Reply reply = CALLS__REPLY__INIT;
    (void)user;
    reply.number = request->number;
    reply.payload = request->payload;
    calls__echo__say__reply(call, &reply);
}

static void on_reply(struct bow_result *result, const Calls__Reply *reply, void *user)
{
    int *n_done = user;
    if (reply == NULL) {
        fail_msg("%s", result->status.message);
    }
    assert_int_equal(reply->payload.len, MIB);
    for (size_t i = 0; i < MIB; i += 1021) {
        assert_int_equal(reply->payload.data[i], (uint8_t)(i * 31 + reply->number));
    }
    ++*n_done;
}

static void echo_one(struct both_ends *ends, uint8_t *bytes, uint64_t number)
{
    Calls__Request request = CALLS__REQUEST__INIT;
    int n_done = 0;

    for (size_t i = 0; i < MIB; i++) {
        bytes[i] = (uint8_t)(i * 31 + number);
    }
    request.number = number;
    request.payload = (ProtobufCBinaryData){.len = MIB, .data = bytes};
    assert_int_equal(calls__echo__say__start(ends->client, &request, NULL, on_reply, &n_done, NULL),
                     0);
    while (n_done == 0) {
        assert_int_equal(bow_loop_run_once(ends->loop, 1000000000), 0);
    }
}

static void test_calls_f68_large_message_takes_few_system_calls(void **state)
{
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_system system = *bow_system_default();
    struct counted counted = {.now_ns = 1000000000};
    struct bow_context *context = NULL;
    struct both_ends ends;
    uint8_t *bytes = malloc(MIB);

    (void)state;
    system.user = &counted;
    system.now_ns = count_time;
    system.recv = count_recv;
    system.sendmsg = count_send;
    options.system = &system;
    assert_int_equal(bow_context_new(&options, &context), 0);
    assert_int_equal(
        both_ends_open(&ends, context, &(struct calls__echo__handlers){.say = say}, NULL), 0);
    for (uint64_t i = 0; i < N_WARM; i++) {
        echo_one(&ends, bytes, i);
    }
    counted.n_recv = counted.n_send = 0;
    for (uint64_t i = 0; i < N_CALLS; i++) {
        echo_one(&ends, bytes, i);
    }
    print_message("for 1 MiB each way: %.1f receives, %.1f sends\n",
                  (double)counted.n_recv / N_CALLS, (double)counted.n_send / N_CALLS);
    if (!calls_is_grpc()) {
        assert_true(counted.n_recv <= N_CALLS * MAX_RECV);
        assert_true(counted.n_send <= N_CALLS * MAX_SEND);
    }
    both_ends_close(&ends);
    assert_int_equal(bow_context_bytes(context), 0);
    bow_context_unref(context);
    free(bytes);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_f68_large_message_takes_few_system_calls),
    };
    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
