/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Tokens that are read again and one access log, while several loops of a server and several
 * clients use them.
 */

#include "call_fixture.h"
#include "tests/support/scratch.h"

#include <bowline/access_log.h>
#include <bowline/bearer.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define N_THREADS 3
#define N_CALLS 100

static char path[64];
static int log_fd;
static struct bow_access_log *log_;
static struct bow_bearer *check;
static struct bow_bearer *sender;

static void write_tokens(const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void add(struct calls *t, struct bow_interceptor *interceptor)
{
    assert_int_equal(bow_server_intercept(t->server, interceptor), 0);
}

static void serve(struct calls *t)
{
    struct bow_access_log_options log_options = BOW_ACCESS_LOG_OPTIONS_INIT;
    struct bow_bearer_options bearer_options = BOW_BEARER_OPTIONS_INIT;
    struct bow_server_options options;
    struct bow_interceptor interceptor;

    log_options.context = t->context;
    log_options.fd = log_fd;
    assert_int_equal(bow_access_log_new(&log_options, &log_), 0);
    bearer_options.context = t->context;
    bearer_options.file = path;
    bearer_options.plaintext = true;
    assert_int_equal(bow_bearer_new(&bearer_options, &check), 0);
    assert_int_equal(bow_bearer_new(&bearer_options, &sender), 0);
    calls_server_options(t, &options);
    options.workers = N_THREADS;
    t->server = calls_make_server(t, &options);
    bow_access_log_intercept(log_, &interceptor);
    add(t, &interceptor);
    bow_bearer_check(check, &interceptor);
    add(t, &interceptor);
    assert_int_equal(calls_open_server(t, t->server), 0);
}

static int setup(void **state)
{
    calls_setup_bare(state);
    int fd = mkstemp(scratch_path(path, sizeof(path), "threads-XXXXXX"));
    assert_true(fd >= 0);
    close(fd);
    write_tokens("ada:sesame\n");
    log_fd = memfd_create("log", MFD_CLOEXEC);
    assert_true(log_fd >= 0);
    serve(*state);
    return 0;
}

static int teardown(void **state)
{
    calls_kill_server(*state);
    bow_access_log_unref(log_);
    bow_bearer_unref(check);
    bow_bearer_unref(sender);
    unlink(path);
    close(log_fd);
    return calls_teardown(state);
}

/* By a confined client of its own. */
static void *call_many(void *user)
{
    struct calls *t = user;
    struct bow_client_options options;
    struct bow_interceptor send;
    const struct bow_interceptor *interceptors[] = {&send};
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_client *client = NULL;

    calls_client_options(t, &options);
    options.target = t->target;
    options.loop = NULL;
    bow_bearer_send(sender, &send);
    options.interceptors = interceptors;
    options.n_interceptors = 1;
    assert_int_equal(bow_client_new(&options, &client), 0);
    for (int i = 0; i < N_CALLS; i++) {
        struct bow_result result = BOW_RESULT_INIT;
        (void)calls__echo__say__call(client, &request, NULL, &result);
        assert_int_equal(result.status.code, BOW_OK);
        bow_result_fini(&result);
    }
    bow_client_free(client);
    return NULL;
}

/* Each line begins with its time and ends with its message. */
static int count_whole_lines(void)
{
    off_t size = lseek(log_fd, 0, SEEK_END);
    char *text = malloc((size_t)size + 1);
    int n = 0;

    assert_non_null(text);
    assert_int_equal(pread(log_fd, text, (size_t)size, 0), size);
    text[size] = '\0';
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        assert_int_equal(strncmp(line, "20", 2), 0);
        assert_non_null(strstr(line, " /calls.Echo/Say OK in=1/0 out=1/"));
        assert_string_equal(line + strlen(line) - 11, " message=\"\"");
        n++;
    }
    free(text);
    return n;
}

static void test_threads_share_tokens_and_a_log(void **state)
{
    struct calls *t = *state;
    pthread_t threads[N_THREADS];

    for (int i = 0; i < N_THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, call_many, t), 0);
    }
    /* Both files have the token first; the sender's is read again, too. */
    for (int i = 0; i < 50; i++) {
        write_tokens(i % 2 == 0 ? "bob the second:sesame\nother\n" : "ada:sesame\n");
        assert_int_equal(bow_bearer_reload(check, NULL), 0);
        assert_int_equal(bow_bearer_reload(sender, NULL), 0);
        (void)bow_access_log_flush(log_);
        assert_int_equal(bow_access_log_dropped(log_), 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    calls_kill_server(t);
    assert_int_equal(bow_access_log_flush(log_), 0);
    assert_int_equal(count_whole_lines(), N_THREADS * N_CALLS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_threads_share_tokens_and_a_log),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
