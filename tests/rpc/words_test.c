/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What users are told: which option a server cannot be made with, why an address is not listened
 * on, which limit refuses a call before it leaves, and what the log says of connections that are
 * too many. On virtual time; PROTOCOL is the argument.
 */

#include "protos/echo.bow.h"

#include <bowline/client.h>
#include <bowline/limits.h>
#include <bowline/metrics.h>
#include <bowline/testing.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

static bool is_grpc;

struct words {
    struct bow_test *test;
    struct bow_test_pair *pair;
    int n_full;  /* lines of the log about max_connections */
    int n_other; /* and others */
    struct bow_result result;
};

static void on_log(enum bow_log_level level, const char *line, void *user)
{
    struct words *words = user;

    if (level <= BOW_LOG_WARNING && strstr(line, "max_connections (1)") != NULL) {
        words->n_full++;
    } else if (level <= BOW_LOG_WARNING) {
        words->n_other++;
    }
}

static void say(struct bow_call *call, const Calls__Request *request, void *user)
{
    Calls__Reply reply = CALLS__REPLY__INIT;

    (void)request;
    (void)user;
    calls__echo__say__reply(call, &reply);
}

static int serve(struct bow_server *server, void *user)
{
    const struct calls__echo__handlers handlers = {.say = say};

    return calls__echo__serve(server, &handlers, user);
}

static int set_up(void **state)
{
    static struct words words;
    struct bow_test_options options = BOW_TEST_OPTIONS_INIT;

    words = (struct words){.result = BOW_RESULT_INIT};
    options.log = on_log;
    options.log_user = &words;
    *state = &words;
    return bow_test_new(&options, &words.test);
}

static int tear_down(void **state)
{
    struct words *words = *state;

    return bow_test_end(words->test);
}

static void make_pair(struct words *words, const struct bow_server_options *server,
                      const struct bow_client_options *client)
{
    struct bow_test_pair_options options = BOW_TEST_PAIR_OPTIONS_INIT;

    options.serve = serve;
    options.grpc = is_grpc;
    options.server = server;
    options.client = client;
    assert_int_equal(bow_test_pair_new(words->test, &options, &words->pair), 0);
}

static void expect_words(const char *text, const char *words)
{
    if (strstr(text, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", text, words);
    }
}

static enum bow_code call(struct bow_client *client, const Calls__Request *request,
                          const struct bow_call_options *options, const char *words)
{
    struct bow_result result = BOW_RESULT_INIT;

    calls__echo__say__call(client, request, options, &result);
    enum bow_code code = result.status.code;
    expect_words(result.status.message, words);
    bow_result_fini(&result);
    return code;
}

/* Making a server, and adding to it */

static void expect_not_made(struct bow_server_options *options, const char *words)
{
    struct bow_transport_error error = {.text = ""};
    struct bow_server *server = NULL;

    options->error = &error;
    assert_int_equal(bow_server_new(options, &server), -EINVAL);
    assert_null(server);
    assert_int_equal(error.error, -EINVAL);
    expect_words(error.text, "making a server: EINVAL (Invalid argument): ");
    expect_words(error.text, words);
    *options = (struct bow_server_options)BOW_SERVER_OPTIONS_INIT;
}

static void test_words_of_a_server_that_is_not_made_name_the_option(void **state)
{
    struct words *words = *state;
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;

    options.loop = bow_test_loop(words->test);
    options.workers = 2;
    expect_not_made(&options, "options.loop, options.group and options.workers");
    options.backlog = -1;
    expect_not_made(&options, "options.backlog");
    options.protocols = 1u << 31;
    expect_not_made(&options, "options.protocols");
    options.unix_mode = 01000;
    expect_not_made(&options, "options.unix_mode");
    options.compression = (enum bow_compression)7;
    expect_not_made(&options, "options.compression");
}

static void expect_not_listened(struct bow_server *server, struct bow_listen_options *options,
                                int rc, const char *words)
{
    assert_int_equal(bow_server_listen(server, options), rc);
    expect_words(bow_server_error(server), words);
    *options = (struct bow_listen_options)BOW_LISTEN_OPTIONS_INIT;
    options->address = "inproc:words";
}

static void test_words_of_an_address_that_is_not_added_say_why(void **state)
{
    struct words *words = *state;
    struct bow_listen_options options = BOW_LISTEN_OPTIONS_INIT;
    struct bow_server_options server_options = BOW_SERVER_OPTIONS_INIT;
    struct bow_server *server = NULL;

    server_options.context = bow_test_context(words->test);
    server_options.loop = bow_test_loop(words->test);
    assert_int_equal(bow_server_new(&server_options, &server), 0);
    expect_not_listened(server, &options, -EINVAL, "options.address is NULL");
    options.protocols = 1u << 31;
    expect_not_listened(server, &options, -EINVAL, "options.protocols");
    options.unix_mode = 01000;
    expect_not_listened(server, &options, -EINVAL, "options.unix_mode");
    options.size++;
    expect_not_listened(server, &options, -EINVAL, "BOW_LISTEN_OPTIONS_INIT");
    assert_int_equal(bow_server_listen(server, &options), 0);
    assert_string_equal(bow_server_error(server), "");
    bow_server_free(server);

    make_pair(words, NULL, NULL);
    expect_not_listened(words->pair->server, &options, -EBUSY, "has been started");
}

/* Too many connections */

static void on_done(struct bow_result *result, const Calls__Reply *reply, void *user)
{
    enum bow_code *code = user;

    (void)reply;
    *code = result->status.code;
}

static void expect_refused(struct words *words)
{
    Calls__Request request = CALLS__REQUEST__INIT;
    enum bow_code code = BOW_OK;

    assert_int_equal(
        calls__echo__say__start(words->pair->client, &request, NULL, on_done, &code, NULL), 0);
    assert_int_equal(bow_test_advance(words->test, SECOND), 0);
    assert_int_equal(code, BOW_UNAVAILABLE);
}

static void test_words_of_too_many_connections_are_few(void **state)
{
    struct words *words = *state;
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct bow_metrics metrics = BOW_METRICS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    options.max_connections = 1;
    make_pair(words, &options, NULL);
    assert_int_equal(call(words->pair->blocking, &request, NULL, ""), BOW_OK);
    for (int i = 0; i < 3; i++) {
        expect_refused(words);
    }
    assert_int_equal(words->n_full, 1);
    assert_int_equal(bow_test_advance(words->test, 10 * SECOND), 0);
    expect_refused(words);
    assert_int_equal(words->n_full, 2);
    assert_int_equal(words->n_other, 0);
    assert_int_equal(bow_server_metrics(words->pair->server, &metrics), 0);
    assert_true(metrics.connections_refused >= 4);
}

/* Calls that do not leave */

static void test_words_of_a_request_that_is_no_message_name_the_method(void **state)
{
    struct words *words = *state;
    Calls__Request request = CALLS__REQUEST__INIT;

    make_pair(words, NULL, NULL);
    request.payload.len = 3;
    assert_int_equal(
        call(words->pair->blocking, &request, NULL,
             "the request of /calls.Echo/Say cannot be encoded: calls.Request.payload "),
        BOW_INVALID_ARGUMENT);
}

/* With the path it is more than a header block may be. */
static void test_words_of_a_header_that_is_too_large_say_where_to(void **state)
{
    struct words *words = *state;
    static uint8_t bytes[BOW_LIMIT_HEADER_BYTES - 32 - 1];
    const struct bow_metadata_entry entry = {"k", {bytes, sizeof(bytes)}};
    const struct bow_metadata metadata = {&entry, 1};
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;
    static const char expected[] =
        "the request of /calls.Echo/Say cannot be sent to inproc:test-0: EMSGSIZE (Message too "
        "long): its header of ";

    memset(bytes, 'v', sizeof(bytes));
    options.metadata = &metadata;
    make_pair(words, NULL, NULL);
    for (int is_connected = 0; is_connected < 2; is_connected++) {
        assert_int_equal(call(words->pair->blocking, &request, &options, expected),
                         BOW_RESOURCE_EXHAUSTED);
        assert_int_equal(call(words->pair->blocking, &request, NULL, ""), BOW_OK);
    }
}

static void *call_elsewhere(void *user)
{
    struct words *words = user;
    Calls__Request request = CALLS__REQUEST__INIT;

    calls__echo__say__call(words->pair->client, &request, NULL, &words->result);
    return NULL;
}

/* Nobody runs its loop meanwhile. */
static void test_words_of_a_full_queue_name_the_limit_on_any_thread(void **state)
{
    struct words *words = *state;
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;
    enum bow_code code = BOW_UNKNOWN;
    pthread_t thread;

    options.max_queued_calls = 1;
    make_pair(words, NULL, &options);
    assert_int_equal(
        calls__echo__say__start(words->pair->client, &request, NULL, on_done, &code, NULL), 0);
    assert_int_equal(
        calls__echo__say__start(words->pair->client, &request, NULL, on_done, &code, NULL),
        -EAGAIN);
    assert_int_equal(pthread_create(&thread, NULL, call_elsewhere, words), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(words->result.status.code, BOW_RESOURCE_EXHAUSTED);
    expect_words(words->result.status.message, "as max_queued_calls (1) allows");
    bow_result_fini(&words->result);
    assert_int_equal(bow_test_run(words->test), 0);
    assert_int_equal(code, BOW_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_words_of_a_server_that_is_not_made_name_the_option),
        TEST(test_words_of_an_address_that_is_not_added_say_why),
        TEST(test_words_of_too_many_connections_are_few),
        TEST(test_words_of_a_request_that_is_no_message_name_the_method),
        TEST(test_words_of_a_header_that_is_too_large_say_where_to),
        TEST(test_words_of_a_full_queue_name_the_limit_on_any_thread),
    };

    is_grpc = argc > 1 && strcmp(argv[1], "grpc") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
