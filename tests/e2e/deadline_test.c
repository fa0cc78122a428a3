/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A deadline of 100 ms ends a call in time wherever the call stands: in a handler that never
 * answers, while the name is being resolved, while connecting to an address that does not
 * answer, with a peer that does not read. Never early; the median of 20 at most 5 ms late.
 */

#include "lab.h"
#include <arpa/inet.h>
#include <bowline/system.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define N_AT_ONCE 5u
#define N_TRIES (4 * N_AT_ONCE)
#define DEADLINE_NS (100 * LAB_MS)
#define LATE_NS (10 * LAB_MS)

struct late_call {
    const char *stage; /* that its message has to name */
    size_t *n_done;
    uint64_t started_at;
    uint64_t took_ns;
};

static void on_done(struct bow_result *result, const Lab__Blob *reply, void *user)
{
    struct late_call *call = user;

    (void)reply;
    call->took_ns = lab_now_ns() - call->started_at;
    if (result->status.code != BOW_DEADLINE_EXCEEDED ||
        strstr(result->status.message, call->stage) == NULL) {
        fail_msg("%s: '%s', not DEADLINE_EXCEEDED that says '%s'",
                 bow_code_name(result->status.code), result->status.message, call->stage);
    }
    ++*call->n_done;
}

/* Some at once, for all that they do is wait. */
static void time_out(struct bow_client *client, const Lab__Blob *request, struct late_call *calls)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    size_t n_before = *calls->n_done;

    options.timeout_ns = DEADLINE_NS;
    for (size_t i = 0; i < N_AT_ONCE; i++) {
        calls[i].started_at = lab_now_ns();
        assert_int_equal(lab__lab__hang__start(client, request, &options, on_done, &calls[i], NULL),
                         0);
    }
    while (*calls->n_done < n_before + N_AT_ONCE) {
        assert_int_equal(bow_client_poll(client, BOW_NEVER), 0);
    }
}

/* Calls Hang with the deadline N_TRIES times; checks status, time, and that the message says
 * `stage`. */
static void deadline_holds(const char *target, struct bow_context *context, size_t body_bytes,
                           const char *stage)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_client *client;
    struct late_call calls[N_TRIES];
    uint64_t late[N_TRIES];
    size_t n_done = 0;
    Lab__Blob request = LAB__BLOB__INIT;

    options.context = context;
    options.target = target;
    options.plaintext = true;
    request.body.data = calloc(1, body_bytes + 1);
    request.body.len = body_bytes;
    assert_non_null(request.body.data);
    assert_int_equal(bow_client_new(&options, &client), 0);
    for (size_t i = 0; i < N_TRIES; i++) {
        calls[i] = (struct late_call){.stage = stage, .n_done = &n_done};
    }
    for (size_t i = 0; i < N_TRIES; i += N_AT_ONCE) {
        time_out(client, &request, calls + i);
    }
    bow_client_free(client);
    free(request.body.data);
    for (size_t i = 0; i < N_TRIES; i++) {
        assert_true(calls[i].took_ns >= DEADLINE_NS);
        late[i] = calls[i].took_ns - DEADLINE_NS;
    }
    uint64_t median = lab_median(late, N_TRIES);
    print_message("%s: median %lu us late\n", stage, (unsigned long)median / 1000);
    if (!lab_is_instrumented()) {
        assert_true(median <= LATE_NS);
    }
}

static void handler_never_answers(const char *prefix)
{
    struct lab lab;
    lab_start(&lab, prefix);
    deadline_holds(lab.target, NULL, 0, "passed");
    assert_true(lab_wait_count(&lab.n_cancelled, N_TRIES, 1000 * LAB_MS));
    assert_int_equal(atomic_load(&lab.n_hung), N_TRIES);
    lab_stop(&lab);
}

static void test_deadline_handler_never_answers_native(void **state)
{
    (void)state;
    handler_never_answers("");
}

static void test_deadline_handler_never_answers_grpc(void **state)
{
    (void)state;
    handler_never_answers("grpc:");
}

/* A name server that does not answer until it is let go. */
struct stuck_names {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool let_go;
};

static int stuck_resolve(void *user, const char *host, uint16_t port,
                         struct bow_sockaddr *addresses, int max, const char **ret_reason)
{
    struct stuck_names *names = user;
    (void)host;
    (void)port;
    (void)addresses;
    (void)max;
    pthread_mutex_lock(&names->mutex);
    while (!names->let_go) {
        pthread_cond_wait(&names->changed, &names->mutex);
    }
    pthread_mutex_unlock(&names->mutex);
    *ret_reason = "the name server does not answer";
    return -EAGAIN;
}

static void test_deadline_while_resolving(void **state)
{
    /* The end of the context does not wait for the thread that is in there. */
    static struct stuck_names names = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_system system = *bow_system_default();
    struct bow_context *context;
    (void)state;
    system.user = &names; /* the default table's functions ignore it */
    system.resolve = stuck_resolve;
    options.system = &system;
    assert_int_equal(bow_context_new(&options, &context), 0);
    deadline_holds("nowhere.example:80", context, 0, "resolving the name of");
    pthread_mutex_lock(&names.mutex);
    names.let_go = true;
    pthread_cond_broadcast(&names.changed);
    pthread_mutex_unlock(&names.mutex);
    bow_context_unref(context);
}

/* A bound socket of 127.0.0.1; listens with room for one when `listening`. */
static int open_socket(struct sockaddr_in *ret_address)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t len = sizeof(*ret_address);
    *ret_address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)ret_address, len), 0);
    assert_int_equal(listen(fd, 0), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)ret_address, &len), 0);
    return fd;
}

static void test_deadline_while_connecting_to_silence(void **state)
{
    struct sockaddr_in address;
    int fillers[8];
    char target[64];
    (void)state;
    /* With its queue of connections full, the kernel drops further SYNs: nobody answers. */
    int listener = open_socket(&address);
    for (size_t i = 0; i < 8; i++) {
        fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)connect(fillers[i], (struct sockaddr *)&address, sizeof(address));
    }
    snprintf(target, sizeof(target), "127.0.0.1:%u", ntohs(address.sin_port));
    deadline_holds(target, NULL, 0, "connecting");
    for (size_t i = 0; i < 8; i++) {
        close(fillers[i]);
    }
    close(listener);
}

static void test_deadline_with_a_peer_that_does_not_read(void **state)
{
    struct sockaddr_in address;
    char target[64];
    (void)state;
    /* The kernel completes the connection; nobody accepts it, reads, or sends settings. */
    int listener = open_socket(&address);
    snprintf(target, sizeof(target), "127.0.0.1:%u", ntohs(address.sin_port));
    deadline_holds(target, NULL, (size_t)3 << 20, "waiting for the reply");
    close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deadline_handler_never_answers_native),
        cmocka_unit_test(test_deadline_handler_never_answers_grpc),
        cmocka_unit_test(test_deadline_while_resolving),
        cmocka_unit_test(test_deadline_while_connecting_to_silence),
        cmocka_unit_test(test_deadline_with_a_peer_that_does_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
