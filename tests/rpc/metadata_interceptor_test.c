/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Metadata that goes along with all calls of a client, as its server sees it.
 */

#include "call_fixture.h"
#include "tests/support/forks.h"

#include <bowline/metadata_interceptor.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KEY "token"

static struct {
    char values[64]; /* of KEY, of the last call, each with a comma behind it */
} seen;

static struct bow_slice slice_of(const char *text)
{
    return (struct bow_slice){(const uint8_t *)text, strlen(text)};
}

static void look(struct bow_interception *at, void *user)
{
    struct bow_metadata metadata = bow_interception_metadata(at);
    size_t len = 0;

    (void)user;
    seen.values[0] = '\0';
    for (size_t i = 0; i < metadata.n; i++) {
        const struct bow_metadata_entry *entry = &metadata.entries[i];
        if (strcmp(entry->key, KEY) == 0) {
            len += (size_t)snprintf(seen.values + len, sizeof(seen.values) - len, "%.*s,",
                                    (int)entry->value.len, (const char *)entry->value.data);
        }
    }
}

static int setup(void **state)
{
    struct bow_server_options options;
    struct bow_interceptor looks = BOW_INTERCEPTOR_INIT;

    calls_setup_bare(state);
    struct calls *t = *state;
    calls_server_options(t, &options);
    t->server = calls_make_server(t, &options);
    looks.name = "look";
    looks.on_start = look;
    assert_int_equal(bow_server_intercept(t->server, &looks), 0);
    assert_int_equal(calls_open_server(t, t->server), 0);
    return 0;
}

static int teardown(void **state)
{
    struct calls *t = *state;

    bow_client_free(t->client);
    t->client = NULL;
    calls_kill_server(t);
    return calls_teardown(state);
}

static struct bow_metadata_interceptor_options options_of(struct calls *t, const char *value)
{
    struct bow_metadata_interceptor_options options = BOW_METADATA_INTERCEPTOR_OPTIONS_INIT;

    options.context = t->context;
    options.key = KEY;
    options.plaintext = true;
    if (value != NULL) {
        options.value = slice_of(value);
    }
    return options;
}

/* A client that sends by `options`. */
static struct bow_metadata_interceptor *
connect_client(struct calls *t, const struct bow_metadata_interceptor_options *options)
{
    struct bow_client_options client_options;
    struct bow_metadata_interceptor *made = NULL;
    struct bow_interceptor send;
    const struct bow_interceptor *interceptors[] = {&send};

    calls_client_options(t, &client_options);
    assert_int_equal(bow_metadata_interceptor_new(options, &made), 0);
    bow_metadata_interceptor_send(made, &send);
    client_options.interceptors = interceptors;
    client_options.n_interceptors = 1;
    t->client = calls_new_client(t, &client_options);
    return made;
}

static void expect_call(struct calls *t, const struct bow_metadata *metadata, const char *values)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    options.metadata = metadata;
    (void)calls__echo__say__call(t->client, &request, &options, &result);
    if (result.status.code != BOW_OK) {
        fail_msg("%s: %s", bow_code_name(result.status.code), result.status.message);
    }
    assert_string_equal(seen.values, values);
    bow_result_fini(&result);
}

static void test_metadata_goes_along_with_every_call(void **state)
{
    struct calls *t = *state;
    struct bow_metadata_interceptor_options options = options_of(t, "one");

    struct bow_metadata_interceptor *made = connect_client(t, &options);
    expect_call(t, NULL, "one,");
    expect_call(t, NULL, "one,");
    bow_metadata_interceptor_unref(made);
}

static void test_metadata_is_sent_as_it_was_set_last(void **state)
{
    struct calls *t = *state;
    struct bow_metadata_interceptor_options options = options_of(t, NULL);

    struct bow_metadata_interceptor *made = connect_client(t, &options);
    expect_call(t, NULL, "");
    assert_int_equal(bow_metadata_interceptor_set(made, slice_of("two")), 0);
    expect_call(t, NULL, "two,");
    assert_int_equal(bow_metadata_interceptor_set(made, slice_of("line\nfeed")), -EINVAL);
    expect_call(t, NULL, "two,");
    assert_int_equal(bow_metadata_interceptor_set(made, (struct bow_slice){NULL, 0}), 0);
    expect_call(t, NULL, "");
    bow_metadata_interceptor_unref(made);
}

static void test_metadata_of_a_call_goes_first(void **state)
{
    struct calls *t = *state;
    struct bow_metadata_interceptor_options options = options_of(t, "one");
    const struct bow_metadata_entry entry = {KEY, slice_of("own")};
    const struct bow_metadata metadata = {&entry, 1};

    struct bow_metadata_interceptor *made = connect_client(t, &options);
    expect_call(t, &metadata, "own,");
    bow_metadata_interceptor_unref(made);
}

static void test_metadata_that_is_not_set_holds_no_call_up(void **state)
{
    struct calls *t = *state;
    struct bow_metadata_interceptor_options options = options_of(t, NULL);

    options.plaintext = false;
    struct bow_metadata_interceptor *made = connect_client(t, &options);
    expect_call(t, NULL, "");
    bow_metadata_interceptor_unref(made);
}

static void test_metadata_may_be_a_secret(void **state)
{
    struct calls *t = *state;
    struct bow_metadata_interceptor_options options = options_of(t, "sesame");
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    options.plaintext = false;
    seen.values[0] = '\0';
    struct bow_metadata_interceptor *made = connect_client(t, &options);
    (void)calls__echo__say__call(t->client, &request, NULL, &result);
    assert_int_equal(result.status.code, BOW_UNAUTHENTICATED);
    assert_non_null(
        strstr(result.status.message, "not sent over a connection that is not secured"));
    assert_null(strstr(result.status.message, "sesame"));
    assert_string_equal(seen.values, "");
    assert_int_equal(t->n_said, 0);
    bow_result_fini(&result);
    bow_metadata_interceptor_unref(made);
}

static void expect_refused(struct calls *t, const char *key, const char *value, int rc,
                           const char *words)
{
    struct bow_metadata_interceptor_options options = options_of(t, value);
    struct bow_metadata_interceptor *made = NULL;
    struct bow_transport_error error = {0};

    options.key = key;
    options.error = &error;
    assert_int_equal(bow_metadata_interceptor_new(&options, &made), rc);
    if (strstr(error.text, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", error.text, words);
    }
}

static void test_metadata_f60_that_was_used_is_refused_in_the_child(void **state)
{
    struct bow_metadata_interceptor_options options = options_of(*state, NULL);
    struct bow_metadata_interceptor *made = NULL;
    struct forks forks;

    for (int is_used = 0; is_used < 2; is_used++) {
        assert_int_equal(bow_metadata_interceptor_new(&options, &made), 0);
        if (is_used) {
            assert_int_equal(bow_metadata_interceptor_set(made, slice_of("one")), 0);
        }
        forks_begin(&forks, NULL, 0);
        if (forks.pid == 0) {
            int rc = bow_metadata_interceptor_set(made, slice_of("two"));
            FORKS_EXPECT(rc == (is_used ? -ECHILD : 0));
            _exit(0);
        }
        forks_end(&forks);
        assert_int_equal(bow_metadata_interceptor_set(made, slice_of("three")), 0);
        bow_metadata_interceptor_unref(made);
    }
}

static void test_metadata_that_cannot_be_is_refused_with_a_reason(void **state)
{
    struct calls *t = *state;
    size_t n = (size_t)1 << 20;
    char *much = malloc(n + 1);

    memset(much, 'x', n);
    much[n] = '\0';
    expect_refused(t, NULL, "x", -EINVAL, "options.key");
    expect_refused(t, "grpc-timeout", "x", -EINVAL, "that the protocols have for themselves");
    expect_refused(t, "Upper", "x", -EINVAL, "it is no key of metadata");
    expect_refused(t, KEY, "a\nb", -EINVAL, "only a key ending in -bin may have");
    expect_refused(t, KEY, much, -EMSGSIZE, "BOW_LIMIT_HEADER_BYTES_MAX");
    free(much);
}

static void test_metadata_without_memory_says_so(void **state)
{
    struct calls *t = *state;
    struct bow_metadata_interceptor_options options = options_of(t, "one");
    struct bow_metadata_interceptor *made = NULL;
    int rc = -ENOMEM;

    for (size_t n = 1; rc == -ENOMEM; n++) {
        t->alloc.fail_at = t->alloc.n_calls + n;
        rc = bow_metadata_interceptor_new(&options, &made);
    }
    assert_int_equal(rc, 0);
    t->alloc.fail_at = t->alloc.n_calls + 1;
    assert_int_equal(bow_metadata_interceptor_set(made, slice_of("two")), -ENOMEM);
    t->alloc.fail_at = 0;
    bow_metadata_interceptor_unref(made);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_metadata_goes_along_with_every_call),
        TEST(test_metadata_is_sent_as_it_was_set_last),
        TEST(test_metadata_of_a_call_goes_first),
        TEST(test_metadata_that_is_not_set_holds_no_call_up),
        TEST(test_metadata_may_be_a_secret),
        TEST(test_metadata_that_cannot_be_is_refused_with_a_reason),
        TEST(test_metadata_f60_that_was_used_is_refused_in_the_child),
        TEST(test_metadata_without_memory_says_so),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
