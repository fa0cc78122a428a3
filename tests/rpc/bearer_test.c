/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls with and without a bearer token, from a client of ours to a server of ours.
 */

#include "call_fixture.h"
#include "tests/support/forks.h"
#include "tests/support/scratch.h"

#include <bowline/bearer.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char path[64];

static void write_tokens(const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int setup(void **state)
{
    calls_setup_bare(state);
    int fd = mkstemp(scratch_path(path, sizeof(path), "bearer-XXXXXX"));
    assert_true(fd >= 0);
    close(fd);
    write_tokens("sesame\n");
    return 0;
}

static int teardown(void **state)
{
    struct calls *t = *state;

    bow_client_free(t->client);
    t->client = NULL;
    calls_kill_server(t);
    unlink(path);
    return calls_teardown(state);
}

/* A started server that checks by `options`. */
static struct bow_bearer *serve(struct calls *t, const struct bow_bearer_options *options)
{
    struct bow_server_options server_options;
    struct bow_interceptor check;
    struct bow_bearer *bearer = NULL;

    calls_server_options(t, &server_options);
    assert_int_equal(bow_bearer_new(options, &bearer), 0);
    bow_bearer_check(bearer, &check);
    t->server = calls_make_server(t, &server_options);
    assert_int_equal(bow_server_intercept(t->server, &check), 0);
    assert_int_equal(calls_open_server(t, t->server), 0);
    return bearer;
}

static struct bow_bearer_options options_of_file(struct calls *t)
{
    struct bow_bearer_options options = BOW_BEARER_OPTIONS_INIT;

    options.context = t->context;
    options.file = path;
    options.plaintext = true;
    return options;
}

static void serve_file(struct calls *t)
{
    struct bow_bearer_options options = options_of_file(t);

    bow_bearer_unref(serve(t, &options));
}

/* A client that sends by `options`, or nothing. */
static void connect_client(struct calls *t, const struct bow_bearer_options *options)
{
    struct bow_client_options client_options;
    struct bow_interceptor send;
    const struct bow_interceptor *interceptors[] = {&send};

    calls_client_options(t, &client_options);
    if (options != NULL) {
        struct bow_bearer *bearer = NULL;
        assert_int_equal(bow_bearer_new(options, &bearer), 0);
        bow_bearer_send(bearer, &send);
        bow_bearer_unref(bearer);
        client_options.interceptors = interceptors;
        client_options.n_interceptors = 1;
    }
    t->client = calls_new_client(t, &client_options);
}

static void expect_call(struct calls *t, const struct bow_metadata *metadata, enum bow_code code,
                        const char *words)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    options.metadata = metadata;
    (void)calls__echo__say__call(t->client, &request, &options, &result);
    if (result.status.code != code || strstr(result.status.message, words) == NULL) {
        fail_msg("%s: %s", bow_code_name(result.status.code), result.status.message);
    }
    assert_null(strstr(result.status.message, "sesam"));
    bow_result_fini(&result);
}

static void expect_with(struct calls *t, size_t n, const char *authorization, enum bow_code code,
                        const char *words)
{
    const struct bow_metadata_entry entry = {
        "authorization", {(const uint8_t *)authorization, strlen(authorization)}};
    const struct bow_metadata_entry entries[] = {entry, entry};
    const struct bow_metadata metadata = {entries, n};

    expect_call(t, &metadata, code, words);
}

static void test_bearer_token_of_the_file_is_accepted(void **state)
{
    struct calls *t = *state;
    struct bow_bearer_options options = options_of_file(t);

    serve_file(t);
    connect_client(t, &options);
    expect_call(t, NULL, BOW_OK, "");
    assert_int_equal(t->n_said, 1);
}

static void test_bearer_call_without_a_token_runs_no_handler(void **state)
{
    struct calls *t = *state;

    serve_file(t);
    connect_client(t, NULL);
    expect_call(t, NULL, BOW_UNAUTHENTICATED,
                "/calls.Echo/Say needs a token: send the metadata \"authorization: Bearer TOKEN\"");
    assert_int_equal(t->n_said, 0);
}

static void test_bearer_token_that_is_wrong_runs_no_handler(void **state)
{
    struct calls *t = *state;

    serve_file(t);
    connect_client(t, NULL);
    expect_with(t, 1, "Bearer sesam", BOW_UNAUTHENTICATED, "a token that is not accepted");
    expect_with(t, 1, "Bearer sesame2", BOW_UNAUTHENTICATED, "a token that is not accepted");
    expect_with(t, 1, "Bearer =", BOW_UNAUTHENTICATED, "that is no token");
    expect_with(t, 1, "Bearer sesame x", BOW_UNAUTHENTICATED, "that is no token");
    expect_with(t, 1, "Basic sesame", BOW_UNAUTHENTICATED, "of the form \"Bearer TOKEN\" only");
    expect_with(t, 1, "Bear", BOW_UNAUTHENTICATED, "of the form \"Bearer TOKEN\" only");
    expect_with(t, 2, "Bearer sesame", BOW_UNAUTHENTICATED, "several came");
    assert_int_equal(t->n_said, 0);
    expect_with(t, 1, "bearer sesame", BOW_OK, "");
}

static void test_bearer_tokens_are_read_again(void **state)
{
    struct calls *t = *state;
    struct bow_bearer_options options = options_of_file(t);
    struct bow_transport_error error;

    struct bow_bearer *bearer = serve(t, &options);
    connect_client(t, NULL);
    write_tokens("other\n");
    assert_int_equal(bow_bearer_reload(bearer, &error), 0);
    expect_with(t, 1, "Bearer sesame", BOW_UNAUTHENTICATED, "not accepted");
    expect_with(t, 1, "Bearer other", BOW_OK, "");
    write_tokens("no good\n");
    assert_int_equal(bow_bearer_reload(bearer, &error), -EBADMSG);
    expect_with(t, 1, "Bearer other", BOW_OK, "");
    bow_bearer_unref(bearer);
}

/* Whose token a call of Hold came with. */
static void expect_subject(struct calls *t, const char *authorization, const char *subject)
{
    const struct bow_metadata_entry entry = {
        "authorization", {(const uint8_t *)authorization, strlen(authorization)}};
    const struct bow_metadata metadata = {&entry, 1};
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;
    int n_done = t->n_done;

    options.metadata = &metadata;
    assert_int_equal(
        calls__echo__hold__start(t->client, &request, &options, calls_on_done, t, NULL), 0);
    struct bow_call *call = calls_take_held(t);
    const char *found = bow_bearer_subject(call);
    if (subject == NULL) {
        assert_null(found);
    } else {
        assert_non_null(found);
        assert_string_equal(found, subject);
    }
    assert_int_equal(calls_reply(call, 1), 0);
    calls_wait(t, &t->n_done, n_done + 1);
}

static void test_bearer_handler_learns_whose_token_it_is(void **state)
{
    struct calls *t = *state;

    write_tokens("ada:one\nsesame\nbob smith:three\n");
    serve_file(t);
    connect_client(t, NULL);
    expect_subject(t, "Bearer one", "ada");
    expect_subject(t, "Bearer sesame", NULL);
    expect_subject(t, "Bearer three", "bob smith");
}

static void test_bearer_subject_outlives_the_file(void **state)
{
    struct calls *t = *state;
    struct bow_bearer_options options = options_of_file(t);
    Calls__Request request = CALLS__REQUEST__INIT;

    write_tokens("ada:sesame\n");
    struct bow_bearer *bearer = serve(t, &options);
    connect_client(t, &options);
    assert_int_equal(calls__echo__hold__start(t->client, &request, NULL, calls_on_done, t, NULL),
                     0);
    struct bow_call *call = calls_take_held(t);
    write_tokens("bob:other\n");
    assert_int_equal(bow_bearer_reload(bearer, NULL), 0);
    assert_string_equal(bow_bearer_subject(call), "ada");
    assert_int_equal(calls_reply(call, 1), 0);
    calls_wait(t, &t->n_done, 1);
    bow_bearer_unref(bearer);
}

static bool name_alice(struct bow_interception *at, struct bow_slice token, void *user)
{
    char long_name[BOW_BEARER_SUBJECT_BYTES + 1];

    (void)token;
    (void)user;
    memset(long_name, 'x', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    assert_int_equal(bow_bearer_set_subject(at, ""), -EINVAL);
    assert_int_equal(bow_bearer_set_subject(at, "two\nlines"), -EINVAL);
    assert_int_equal(bow_bearer_set_subject(at, long_name), -EINVAL);
    assert_int_equal(bow_bearer_set_subject(at, "bob"), 0);
    return bow_bearer_set_subject(at, "alice:in:wonderland") == 0;
}

static void test_bearer_callback_names_the_subject(void **state)
{
    struct calls *t = *state;
    struct bow_bearer_options options = BOW_BEARER_OPTIONS_INIT;

    options.context = t->context;
    options.check = name_alice;
    bow_bearer_unref(serve(t, &options));
    connect_client(t, NULL);
    expect_subject(t, "Bearer any", "alice:in:wonderland");
}

/* Two could be two opinions of who calls. */
static void test_bearer_is_registered_once(void **state)
{
    struct calls *t = *state;
    struct bow_bearer_options options = options_of_file(t);
    struct bow_server_options server_options;
    struct bow_interceptor check;
    struct bow_bearer *bearer = NULL;

    calls_server_options(t, &server_options);
    assert_int_equal(bow_bearer_new(&options, &bearer), 0);
    t->server = calls_make_server(t, &server_options);
    bow_bearer_check(bearer, &check);
    assert_int_equal(bow_server_intercept(t->server, &check), 0);
    bow_bearer_check(bearer, &check);
    assert_int_equal(bow_server_intercept(t->server, &check), -EINVAL);
    assert_non_null(strstr(bow_server_error(t->server), "the state_key of \"bearer token\""));
    check.release(check.user);
    bow_bearer_unref(bearer);
}

static bool is_alice(struct bow_interception *at, struct bow_slice token, void *user)
{
    (void)at;
    (void)user;
    return token.len == 5 && memcmp(token.data, "alice", 5) == 0;
}

static void test_bearer_callback_decides(void **state)
{
    struct calls *t = *state;
    struct bow_bearer_options options = BOW_BEARER_OPTIONS_INIT;

    options.context = t->context;
    options.check = is_alice;
    bow_bearer_unref(serve(t, &options));
    connect_client(t, NULL);
    expect_with(t, 1, "Bearer alice", BOW_OK, "");
    expect_with(t, 1, "Bearer alicia", BOW_UNAUTHENTICATED, "not accepted");
}

static void expect_open(struct calls *t, const char *open, enum bow_code code)
{
    struct bow_bearer_options options = options_of_file(t);

    options.open = open;
    bow_bearer_unref(serve(t, &options));
    connect_client(t, NULL);
    expect_call(t, NULL, code, "");
    bow_client_free(t->client);
    t->client = NULL;
    calls_kill_server(t);
}

static void test_bearer_leaves_open_what_it_is_told_to(void **state)
{
    struct calls *t = *state;

    expect_open(t, "calls.Echo", BOW_OK);
    expect_open(t, "calls.Echo/Say", BOW_OK);
    expect_open(t, "a.B,calls.Echo/Say,c.D", BOW_OK);
    expect_open(t, "a.B", BOW_UNAUTHENTICATED);
    expect_open(t, "calls.Echo/Hold", BOW_UNAUTHENTICATED);
    expect_open(t, "calls.Ech", BOW_UNAUTHENTICATED);
    expect_open(t, "calls.Echo/Sa", BOW_UNAUTHENTICATED);
    expect_open(t, "calls.Echo/Say/more", BOW_UNAUTHENTICATED);
}

static int get_token(struct bow_interception *at, char *token, size_t size, void *user)
{
    (void)at;
    (void)snprintf(token, size, "%s", user != NULL ? (const char *)user : "");
    return user != NULL ? 0 : -ENOKEY;
}

static void test_bearer_callback_gives_the_token(void **state)
{
    struct calls *t = *state;
    struct bow_bearer_options options = BOW_BEARER_OPTIONS_INIT;
    char token[] = "sesame";

    serve_file(t);
    options.context = t->context;
    options.get = get_token;
    options.user = token;
    options.plaintext = true;
    connect_client(t, &options);
    expect_call(t, NULL, BOW_OK, "");
}

static void test_bearer_call_without_a_token_to_send_is_not_sent(void **state)
{
    struct calls *t = *state;
    struct bow_bearer_options options = BOW_BEARER_OPTIONS_INIT;

    serve_file(t);
    options.context = t->context;
    options.get = get_token;
    options.plaintext = true;
    connect_client(t, &options);
    expect_call(t, NULL, BOW_UNAUTHENTICATED, "no token to send with the call: ENOKEY");
}

static int get_bad_token(struct bow_interception *at, char *token, size_t size, void *user)
{
    (void)at;
    (void)user;
    (void)snprintf(token, size, "with a line feed\n");
    return 0;
}

static void test_bearer_call_with_what_is_no_token_says_why_it_is_not_sent(void **state)
{
    struct calls *t = *state;
    struct bow_bearer_options options = BOW_BEARER_OPTIONS_INIT;

    serve_file(t);
    options.context = t->context;
    options.get = get_bad_token;
    options.plaintext = true;
    connect_client(t, &options);
    expect_call(t, NULL, BOW_UNAUTHENTICATED, "a blank or a line feed");
}

static void test_bearer_token_is_not_sent_in_the_clear(void **state)
{
    struct calls *t = *state;
    struct bow_bearer_options options = options_of_file(t);

    serve_file(t);
    options.plaintext = false;
    connect_client(t, &options);
    expect_call(t, NULL, BOW_UNAUTHENTICATED, "not sent over a connection that is not secured");
    assert_int_equal(bow_client_get_state(t->client), BOW_CLIENT_IDLE);
}

static void test_bearer_options_are_checked(void **state)
{
    struct calls *t = *state;
    struct bow_bearer_options options = BOW_BEARER_OPTIONS_INIT;
    struct bow_transport_error error;
    struct bow_bearer *bearer = NULL;

    options.error = &error;
    options.file = path;
    assert_int_equal(bow_bearer_new(&options, &bearer), -EINVAL);
    options.context = t->context;
    options.file = NULL;
    assert_int_equal(bow_bearer_new(&options, &bearer), -EINVAL);
    options.file = path;
    options.check = is_alice;
    assert_int_equal(bow_bearer_new(&options, &bearer), -EINVAL);
    assert_non_null(strstr(error.text, "either options.file or a callback"));
    options.check = NULL;
    options.file = "/nowhere/tokens";
    assert_int_equal(bow_bearer_new(&options, &bearer), -ENOENT);
    assert_non_null(strstr(error.text, "/nowhere/tokens"));
    options.open = "a.B,";
    assert_int_equal(bow_bearer_new(&options, &bearer), -EINVAL);
    assert_non_null(strstr(error.text, "options.open has an empty name"));
}

/* A thread that looks a token up, or reads them again, may hold the lock when another one forks. */
static void test_bearer_f60_that_was_used_is_refused_in_the_child(void **state)
{
    struct bow_bearer_options options = options_of_file(*state);
    struct bow_transport_error error = {0};
    struct bow_bearer *bearer = NULL;
    struct forks forks;

    for (int is_used = 0; is_used < 2; is_used++) {
        assert_int_equal(bow_bearer_new(&options, &bearer), 0);
        if (is_used) {
            assert_int_equal(bow_bearer_reload(bearer, NULL), 0);
        }
        forks_begin(&forks, NULL, 0);
        if (forks.pid == 0) {
            int rc = bow_bearer_reload(bearer, &error);
            FORKS_EXPECT(rc == (is_used ? -ECHILD : 0));
            FORKS_EXPECT(!is_used || strstr(error.text, "used before fork()") != NULL);
            _exit(0);
        }
        forks_end(&forks);
        assert_int_equal(bow_bearer_reload(bearer, NULL), 0);
        bow_bearer_unref(bearer);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_bearer_token_of_the_file_is_accepted),
        TEST(test_bearer_call_without_a_token_runs_no_handler),
        TEST(test_bearer_token_that_is_wrong_runs_no_handler),
        TEST(test_bearer_tokens_are_read_again),
        TEST(test_bearer_callback_decides),
        TEST(test_bearer_handler_learns_whose_token_it_is),
        TEST(test_bearer_subject_outlives_the_file),
        TEST(test_bearer_callback_names_the_subject),
        TEST(test_bearer_is_registered_once),
        TEST(test_bearer_leaves_open_what_it_is_told_to),
        TEST(test_bearer_callback_gives_the_token),
        TEST(test_bearer_call_without_a_token_to_send_is_not_sent),
        TEST(test_bearer_call_with_what_is_no_token_says_why_it_is_not_sent),
        TEST(test_bearer_token_is_not_sent_in_the_clear),
        TEST(test_bearer_options_are_checked),
        TEST(test_bearer_f60_that_was_used_is_refused_in_the_child),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
