/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which policy a method has, of what programs and service configs say; how pauses grow; and that a
 * service config which makes no sense is refused whole, with its place.
 */

#include "rpc/client/retry/retries.h"
#include "tests/support/alloc.h"

#include <bowline/limits.h>
#include <bowline/service.h>
#include <bowline/system.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

struct fixture {
    struct test_alloc alloc;
    struct bow_context *context;
};

static int setup(void **state)
{
    struct fixture *t = calloc(1, sizeof(*t));

    test_alloc_init(&t->alloc);
    t->context = test_context_new(&t->alloc);
    *state = t;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *t = *state;

    test_context_end(t->context, &t->alloc);
    free(t);
    return 0;
}

/* Pauses */

static void test_policy_pauses_grow_to_the_longest(void **state)
{
    struct bow__method_policy policy;

    (void)state;
    bow__policy_init_idempotent(&policy);
    policy.backoff_min_ns = 100;
    policy.backoff_max_ns = 500;
    policy.multiplier = 2;
    assert_int_equal(bow__policy_next_pause(&policy, 0), 100);
    assert_int_equal(bow__policy_next_pause(&policy, 100), 200);
    assert_int_equal(bow__policy_next_pause(&policy, 400), 500);
    assert_int_equal(bow__policy_next_pause(&policy, BOW_NEVER), 500);
    policy.backoff_min_ns = 1000;
    assert_int_equal(bow__policy_next_pause(&policy, 0), 500);
}

/* Programs' own */

static int read_policy(const struct bow_retry_policy *given, struct bow__method_policy *ret_policy)
{
    const char *reason;

    return bow__policy_read(given, ret_policy, &reason);
}

static void test_policy_of_a_program_has_defaults_and_bounds(void **state)
{
    struct bow_retry_policy given = BOW_RETRY_POLICY_INIT;
    struct bow__method_policy policy;

    (void)state;
    assert_int_equal(read_policy(&given, &policy), 0);
    assert_int_equal(policy.max_attempts, 3);
    assert_true(bow__policy_takes(&policy, BOW_UNAVAILABLE));
    assert_false(bow__policy_takes(&policy, BOW_INTERNAL));
    assert_false(bow__policy_takes(&policy, (enum bow_code)46)); /* whose bit would be that */
    given.max_attempts = 1000;
    assert_int_equal(read_policy(&given, &policy), 0);
    assert_int_equal(policy.max_attempts, BOW_LIMIT_RETRY_ATTEMPTS);
    given.codes = 1u << BOW_OK;
    assert_int_equal(read_policy(&given, &policy), -EINVAL);
    given.codes = 1u << 17;
    assert_int_equal(read_policy(&given, &policy), -EINVAL);
    given.codes = 0;
    given.multiplier = 0.5;
    assert_int_equal(read_policy(&given, &policy), -EINVAL);
    given.multiplier = 0;
    given.hedges = true;
    given.attempt_timeout_ns = 1;
    assert_int_equal(read_policy(&given, &policy), -EINVAL);
}

/* Service configs */

static int read_config(struct fixture *t, const char *json, struct bow__service_config *ret_config,
                       struct bow__text *reason)
{
    bow__text_clear(reason);
    return bow__service_config_read(t->context, json, ret_config, reason);
}

static const char whole[] =
    "{\"loadBalancingConfig\":[{\"xds_thing\":{\"a\":[1]}},{\"round_robin\":{}}],"
    "\"methodConfig\":["
    "{\"name\":[{\"service\":\"shop.Orders\",\"method\":\"Get\"},{\"service\":\"shop.Stock\"}],"
    "\"timeout\":\"1.5s\",\"waitForReady\":true,\"maxRequestMessageBytes\":1000,"
    "\"maxResponseMessageBytes\":2000,"
    "\"retryPolicy\":{\"maxAttempts\":4,\"initialBackoff\":\"0.1s\",\"maxBackoff\":\"1s\","
    "\"backoffMultiplier\":2,\"retryableStatusCodes\":[\"UNAVAILABLE\",10]}},"
    "{\"name\":[{}],\"hedgingPolicy\":{\"maxAttempts\":3,\"hedgingDelay\":\"0.5s\","
    "\"nonFatalStatusCodes\":[\"UNAVAILABLE\"]}}],"
    "\"retryThrottling\":{\"maxTokens\":10,\"tokenRatio\":0.1},\"healthCheckConfig\":{}}";

static void test_config_whole_is_read(void **state)
{
    struct fixture *t = *state;
    struct bow__service_config config;
    struct bow__text reason;

    assert_int_equal(read_config(t, whole, &config, &reason), 0);
    const struct bow__method_policy *get =
        bow__policy_table_find(&config.methods, "/shop.Orders/Get");
    assert_non_null(get);
    assert_int_equal(get->max_attempts, 4);
    assert_int_equal(get->backoff_min_ns, 100 * MS);
    assert_int_equal(get->backoff_max_ns, SECOND);
    assert_int_equal(get->codes, 1u << BOW_UNAVAILABLE | 1u << BOW_ABORTED);
    assert_int_equal(get->timeout_ns, 1500 * MS);
    assert_true(get->waits_for_ready);
    assert_int_equal(get->max_request_bytes, 1000);
    assert_int_equal(get->max_response_bytes, 2000);
    assert_memory_equal(bow__policy_table_find(&config.methods, "/shop.Stock/Any"), get,
                        sizeof(*get));
    const struct bow__method_policy *other =
        bow__policy_table_find(&config.methods, "/shop.Orders/Put");
    assert_true(other->hedges);
    assert_int_equal(other->hedging_delay_ns, 500 * MS);
    assert_true(config.throttles);
    assert_int_equal(config.rates.max_milli, 10000);
    assert_int_equal(config.rates.ratio_milli, 100);
    assert_string_equal(config.balancing, "round_robin");
    bow__service_config_fini(&config);
}

static void expect_fault(struct fixture *t, const char *json, const char *words)
{
    struct bow__service_config config;
    struct bow__text reason;

    assert_int_equal(read_config(t, json, &config, &reason), -EINVAL);
    if (strstr(reason.bytes, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", reason.bytes, words);
    }
}

#define METHOD(members) "{\"methodConfig\":[{\"name\":[{\"service\":\"s\"}]," members "}]}"
#define RETRY(members) METHOD("\"retryPolicy\":{" members "}")
#define PAUSES "\"initialBackoff\":\"1s\",\"maxBackoff\":\"1s\",\"backoffMultiplier\":1"
#define CODES "\"retryableStatusCodes\":[\"UNAVAILABLE\"]"

static void test_config_faults_are_said_with_their_place(void **state)
{
    struct fixture *t = *state;

    expect_fault(t, "{\"methodConfig\":[{\"timeout\":1}]}", "methodConfig[0].timeout at 1:29");
    expect_fault(t, METHOD("\"timeout\":\"soon\""), "methodConfig[0].timeout is no span");
    expect_fault(t, METHOD("\"timeout\":\"-1s\""), "methodConfig[0].timeout is no span");
    expect_fault(t, RETRY("\"maxAttempts\":1," PAUSES "," CODES),
                 "methodConfig[0].retryPolicy.maxAttempts has to be at least 2");
    expect_fault(t, RETRY(PAUSES "," CODES), "retryPolicy.maxAttempts");
    expect_fault(t, RETRY("\"maxAttempts\":2,\"maxBackoff\":\"1s\"," CODES),
                 "retryPolicy.initialBackoff is missing");
    expect_fault(t, RETRY("\"maxAttempts\":2,\"initialBackoff\":\"0s\"," CODES),
                 "retryPolicy.initialBackoff is 0");
    expect_fault(t,
                 RETRY("\"maxAttempts\":2,\"initialBackoff\":\"1s\",\"maxBackoff\":\"1s\"," CODES),
                 "retryPolicy.backoffMultiplier");
    expect_fault(t, RETRY("\"maxAttempts\":2," PAUSES ",\"retryableStatusCodes\":[\"OK\"]"),
                 "retryPolicy.retryableStatusCodes has OK");
    expect_fault(t, RETRY("\"maxAttempts\":2," PAUSES ",\"retryableStatusCodes\":[99]"),
                 "retryPolicy.retryableStatusCodes has a number");
    expect_fault(t, RETRY("\"maxAttempts\":2," PAUSES ",\"retryableStatusCodes\":[\"UNAVAILBLE\"]"),
                 "retryPolicy.retryableStatusCodes names no code");
    expect_fault(t, METHOD("\"retryPolicy\":{},\"hedgingPolicy\":{}"), "hedgingPolicy stands");
    expect_fault(t, "{\"methodConfig\":[{\"name\":[{\"method\":\"m\"}]}]}",
                 "methodConfig[0].name[0] has a method");
    expect_fault(t, "{\"methodConfig\":[{\"name\":[{}]},{\"name\":[{}]}]}",
                 "methodConfig[1].name[0] is there twice");
    expect_fault(t, "{\"retryThrottling\":{\"maxTokens\":0,\"tokenRatio\":1}}", "maxTokens");
    expect_fault(t, "{\"retryThrottling\":{\"maxTokens\":1001,\"tokenRatio\":1}}", "maxTokens");
    expect_fault(t, "{\"retryThrottling\":{\"maxTokens\":10}}", "tokenRatio");
}

/* As DNS gives it, or an attacker: no byte of it matters that is not there. */
static void test_config_cut_at_each_byte_is_refused(void **state)
{
    struct fixture *t = *state;
    char text[sizeof(whole)];
    struct bow__service_config config;
    struct bow__text reason;

    for (size_t n = 0; n < sizeof(whole) - 1; n++) {
        memcpy(text, whole, n);
        text[n] = '\0';
        assert_int_equal(read_config(t, text, &config, &reason), -EINVAL);
    }
}

/* Whatever comes of it, it is refused with words or read, and nothing is left. */
static void test_config_with_each_byte_altered_does_no_harm(void **state)
{
    static const char others[] = "\"{}[]:,0-9eE\\ \x80\xff";
    struct fixture *t = *state;
    char text[sizeof(whole)];
    struct bow__service_config config;
    struct bow__text reason;

    for (size_t i = 0; i < sizeof(whole) - 1; i++) {
        for (size_t k = 0; k < sizeof(others) - 1; k++) {
            memcpy(text, whole, sizeof(whole));
            text[i] = others[k];
            int rc = read_config(t, text, &config, &reason);
            if (rc == 0) {
                bow__service_config_fini(&config);
            } else {
                assert_int_equal(rc, -EINVAL);
                assert_true(reason.len > 0);
            }
        }
    }
}

static void test_config_of_a_hostile_depth_or_size_is_refused(void **state)
{
    struct fixture *t = *state;
    struct bow__service_config config;
    struct bow__text reason;
    size_t n = BOW_LIMIT_SERVICE_CONFIG_BYTES;
    char *text = malloc(n + 2);

    assert_non_null(text);
    memset(text, '[', n);
    memcpy(text, "{\"x\":", 5);
    text[n] = '\0';
    assert_int_equal(read_config(t, text, &config, &reason), -EINVAL);
    memset(text, ' ', n + 1);
    text[n + 1] = '\0';
    assert_int_equal(read_config(t, text, &config, &reason), -EMSGSIZE);
    assert_non_null(strstr(reason.bytes, "BOW_LIMIT_SERVICE_CONFIG_BYTES"));
    free(text);
}

static void test_config_of_too_many_names_is_refused(void **state)
{
    struct fixture *t = *state;
    struct bow__service_config config;
    struct bow__text reason;
    size_t size = 64 + (BOW_LIMIT_METHOD_CONFIGS + 1) * 24;
    char *text = malloc(size);

    assert_non_null(text);
    size_t at = (size_t)snprintf(text, size, "{\"methodConfig\":[{\"name\":[");
    for (unsigned i = 0; i <= BOW_LIMIT_METHOD_CONFIGS; i++) {
        at +=
            (size_t)snprintf(text + at, size - at, "%s{\"service\":\"s%u\"}", i > 0 ? "," : "", i);
    }
    snprintf(text + at, size - at, "]}]}");
    assert_int_equal(read_config(t, text, &config, &reason), -EMSGSIZE);
    assert_non_null(strstr(reason.bytes, "BOW_LIMIT_METHOD_CONFIGS"));
    free(text);
}

static int read_without_memory(struct bow_context *context, void *user)
{
    struct bow__service_config config;
    struct bow__text reason;

    (void)user;
    bow__text_clear(&reason);
    int rc = bow__service_config_read(context, whole, &config, &reason);
    if (rc == 0) {
        bow__service_config_fini(&config);
    }
    return rc;
}

static void test_config_without_memory_leaves_nothing(void **state)
{
    (void)state;
    assert_true(test_alloc_fail_each(NULL, read_without_memory, NULL) > 3);
}

/* Which of them counts */

#define PLAIN 0u

static void test_retries_of_a_declared_idempotent_method(void **state)
{
    struct fixture *t = *state;
    struct bow__retry_config config;
    struct bow__retries retries;
    struct bow__method_policy policy;
    struct bow__text reason;
    struct bow_retry_options options = BOW_RETRY_OPTIONS_INIT;

    bow__text_clear(&reason);
    assert_int_equal(bow__retry_config_init(&config, t->context, NULL, NULL, &reason), 0);
    bow__retries_init(&retries, &config);
    assert_false(retries.has_policies);
    assert_false(bow__retries_find(&retries, "/s/m", PLAIN, &policy));
    assert_true(bow__retries_find(&retries, "/s/m", BOW_METHOD_IDEMPOTENT, &policy));
    assert_int_equal(policy.max_attempts, 3);
    assert_int_equal(policy.codes, 1u << BOW_UNAVAILABLE);
    assert_true(bow__retries_find(&retries, "/s/m", BOW_METHOD_NO_SIDE_EFFECTS, &policy));
    bow__retries_fini(&retries);
    bow__retry_config_fini(&config);

    options.keep_idempotent = true;
    assert_int_equal(bow__retry_config_init(&config, t->context, &options, NULL, &reason), 0);
    bow__retries_init(&retries, &config);
    assert_false(bow__retries_find(&retries, "/s/m", BOW_METHOD_IDEMPOTENT, &policy));
    bow__retries_fini(&retries);
    bow__retry_config_fini(&config);
}

static void test_retries_by_the_programs_policy_before_the_configs(void **state)
{
    struct fixture *t = *state;
    struct bow_retry_policy own = BOW_RETRY_POLICY_INIT;
    const struct bow_retry_policy *policies[] = {&own};
    struct bow_retry_options options = BOW_RETRY_OPTIONS_INIT;
    struct bow__retry_config config;
    struct bow__retries retries;
    struct bow__method_policy policy;
    struct bow__text reason;

    own.method = "shop.Orders/Get";
    own.max_attempts = 2;
    own.codes = 1u << BOW_INTERNAL;
    options.policies = policies;
    options.n_policies = 1;
    bow__text_clear(&reason);
    assert_int_equal(bow__retry_config_init(&config, t->context, &options, whole, &reason), 0);
    bow__retries_init(&retries, &config);
    assert_true(bow__retries_find(&retries, "/shop.Orders/Get", PLAIN, &policy));
    assert_int_equal(policy.max_attempts, 2);
    assert_int_equal(policy.codes, 1u << BOW_INTERNAL);
    assert_int_equal(policy.timeout_ns, 1500 * MS); /* the config's all the same */
    assert_true(bow__retries_find(&retries, "/shop.Stock/Get", PLAIN, &policy));
    assert_int_equal(policy.max_attempts, 4);
    bow__retries_fini(&retries);
    bow__retry_config_fini(&config);
}

static void test_retries_keep_the_last_good_config_of_a_resolver(void **state)
{
    struct fixture *t = *state;
    struct bow__retry_config config;
    struct bow__retries retries;
    struct bow__method_policy policy;
    struct bow__text reason;

    bow__text_clear(&reason);
    assert_int_equal(bow__retry_config_init(&config, t->context, NULL, whole, &reason), 0);
    bow__retries_init(&retries, &config);
    assert_string_equal(bow__retry_config_balancing(&retries), "round_robin");
    assert_int_equal(
        bow__retry_config_update(&retries, RETRY("\"maxAttempts\":2," PAUSES "," CODES), &reason),
        0);
    assert_true(bow__retries_find(&retries, "/s/m", PLAIN, &policy));
    assert_int_equal(policy.max_attempts, 2);
    assert_false(bow__retries_find(&retries, "/shop.Stock/Get", PLAIN, &policy));
    assert_null(bow__retry_config_balancing(&retries));
    assert_int_equal(bow__retry_config_update(&retries, "{\"methodConfig\":", &reason), -EINVAL);
    assert_true(bow__retries_find(&retries, "/s/m", PLAIN, &policy));
    assert_int_equal(bow__retry_config_update(&retries, NULL, &reason), 0);
    assert_true(bow__retries_find(&retries, "/shop.Stock/Get", PLAIN, &policy));
    bow__retries_fini(&retries);
    bow__retry_config_fini(&config);
}

static void expect_refusal(struct fixture *t, const struct bow_retry_options *options,
                           const char *words)
{
    struct bow__retry_config config;
    struct bow__text reason;

    bow__text_clear(&reason);
    assert_int_equal(bow__retry_config_init(&config, t->context, options, NULL, &reason), -EINVAL);
    assert_non_null(strstr(reason.bytes, words));
}

static void test_retries_of_options_that_make_no_sense(void **state)
{
    struct fixture *t = *state;
    struct bow_retry_policy own = BOW_RETRY_POLICY_INIT;
    struct bow_retry_policy twin = BOW_RETRY_POLICY_INIT;
    const struct bow_retry_policy *policies[] = {&own, &twin};
    struct bow_retry_options options = BOW_RETRY_OPTIONS_INIT;

    options.policies = policies;
    options.n_policies = 2;
    expect_refusal(t, &options, "policies[1]: there is one");
    own.method = "/";
    expect_refusal(t, &options, "policies[0]: method is none");
    own.method = "s/";
    expect_refusal(t, &options, "policies[0]: method is none");
    own.size = 0;
    expect_refusal(t, &options, "BOW_RETRY_POLICY_INIT");
    options.n_policies = 0;
    options.budget_percent = 101;
    expect_refusal(t, &options, "budget_percent");
}

#define RETRIES_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RETRIES_TEST(test_policy_pauses_grow_to_the_longest),
        RETRIES_TEST(test_policy_of_a_program_has_defaults_and_bounds),
        RETRIES_TEST(test_config_whole_is_read),
        RETRIES_TEST(test_config_faults_are_said_with_their_place),
        RETRIES_TEST(test_config_cut_at_each_byte_is_refused),
        RETRIES_TEST(test_config_with_each_byte_altered_does_no_harm),
        RETRIES_TEST(test_config_of_a_hostile_depth_or_size_is_refused),
        RETRIES_TEST(test_config_of_too_many_names_is_refused),
        RETRIES_TEST(test_config_without_memory_leaves_nothing),
        RETRIES_TEST(test_retries_of_a_declared_idempotent_method),
        RETRIES_TEST(test_retries_by_the_programs_policy_before_the_configs),
        RETRIES_TEST(test_retries_keep_the_last_good_config_of_a_resolver),
        RETRIES_TEST(test_retries_of_options_that_make_no_sense),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
