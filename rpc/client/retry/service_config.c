/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A service config from its JSON. The text is read as a message of protos/service_config.proto;
 * what its members may be is said here.
 */

#include "rpc/client/retry/service_config.h"
#include "base/arena.h"
#include "rpc/client/retry/generated/service_config.pb-c.h"
#include "rpc/json/json_names.h"
#include "rpc/json/time_text.h"

#include <bowline/json.h>
#include <bowline/limits.h>
#include <bowline/metrics.h>
#include <bowline/system.h>
#include <errno.h>
#include <string.h>

#define REASON_BYTES 256
#define MAX_TOKENS 1000.0

/* Where in the text something stands, and what is wrong about it. */
struct reading {
    struct bow__service_config *config;
    struct bow__text *reason;
    size_t i_method;
};

static int refuse(const struct reading *it, const char *member, const char *why)
{
    bow__text_printf(it->reason, "methodConfig[%zu].%s %s", it->i_method, member, why);
    return -EINVAL;
}

/* Spans of time; `text` NULL: nothing is said. */
static int read_span(const struct reading *it, const char *member, const char *text,
                     uint64_t *ret_ns)
{
    int64_t seconds = 0;
    int32_t nanos = 0;

    if (text == NULL) {
        return 0;
    }
    if (!bow__time_read_duration((struct bow_slice){(const uint8_t *)text, strlen(text)}, &seconds,
                                 &nanos) ||
        seconds < 0 || nanos < 0) {
        return refuse(it, member, "is no span of time, as \"1.5s\"");
    }
    *ret_ns = (uint64_t)seconds > BOW_NEVER / 1000000000 - 1
                  ? BOW_NEVER - 1
                  : (uint64_t)seconds * 1000000000 + (uint64_t)nanos;
    return 0;
}

static int read_positive_span(const struct reading *it, const char *member, const char *text,
                              uint64_t *ret_ns)
{
    int rc = text == NULL ? refuse(it, member, "is missing") : read_span(it, member, text, ret_ns);

    return rc == 0 && *ret_ns == 0 ? refuse(it, member, "is 0, and has to be more") : rc;
}

static int read_attempts(const struct reading *it, const char *member, bool has, uint32_t n,
                         struct bow__method_policy *policy)
{
    if (!has || n < 2) {
        return refuse(it, member, "has to be at least 2");
    }
    policy->max_attempts = (uint8_t)(n < BOW_LIMIT_RETRY_ATTEMPTS ? n : BOW_LIMIT_RETRY_ATTEMPTS);
    policy->retries = true;
    return 0;
}

static int read_codes(const struct reading *it, const char *member, const Bow__Config__Code *codes,
                      size_t n, struct bow__method_policy *policy)
{
    for (size_t i = 0; i < n; i++) {
        if ((unsigned)codes[i] >= BOW_N_CODES) {
            return refuse(it, member, "has a number that is no code");
        }
        policy->codes |= 1u << (unsigned)codes[i];
    }
    return (policy->codes & 1u << BOW_OK) != 0 ? refuse(it, member, "has OK, which is no failure")
                                               : 0;
}

static int read_retry(const struct reading *it, const Bow__Config__RetryPolicy *said,
                      struct bow__method_policy *policy)
{
    int rc = read_attempts(it, "retryPolicy.maxAttempts", said->has_max_attempts,
                           said->max_attempts, policy);
    if (rc == 0) {
        rc = read_positive_span(it, "retryPolicy.initialBackoff", said->initial_backoff,
                                &policy->backoff_min_ns);
    }
    if (rc == 0) {
        rc = read_positive_span(it, "retryPolicy.maxBackoff", said->max_backoff,
                                &policy->backoff_max_ns);
    }
    if (rc == 0) {
        rc = read_codes(it, "retryPolicy.retryableStatusCodes", said->retryable_status_codes,
                        said->n_retryable_status_codes, policy);
    }
    if (rc == 0 && said->per_attempt_recv_timeout != NULL) {
        rc = read_positive_span(it, "retryPolicy.perAttemptRecvTimeout",
                                said->per_attempt_recv_timeout, &policy->attempt_timeout_ns);
    }
    if (rc < 0) {
        return rc;
    }
    if (policy->codes == 0 && policy->attempt_timeout_ns == BOW_NEVER) {
        return refuse(it, "retryPolicy.retryableStatusCodes", "names no code that is known");
    }
    policy->multiplier = said->backoff_multiplier;
    return said->backoff_multiplier > 0 && said->backoff_multiplier <= 1000
               ? 0
               : refuse(it, "retryPolicy.backoffMultiplier", "is not above 0 and up to 1000");
}

static int read_hedging(const struct reading *it, const Bow__Config__HedgingPolicy *said,
                        struct bow__method_policy *policy)
{
    int rc = read_attempts(it, "hedgingPolicy.maxAttempts", said->has_max_attempts,
                           said->max_attempts, policy);
    if (rc == 0) {
        rc = read_span(it, "hedgingPolicy.hedgingDelay", said->hedging_delay,
                       &policy->hedging_delay_ns);
    }
    if (rc == 0) {
        rc = read_codes(it, "hedgingPolicy.nonFatalStatusCodes", said->non_fatal_status_codes,
                        said->n_non_fatal_status_codes, policy);
    }
    policy->hedges = true;
    return rc;
}

static int read_policy(const struct reading *it, const Bow__Config__MethodConfig *said,
                       struct bow__method_policy *policy)
{
    bow__policy_init(policy);
    policy->waits_for_ready = said->has_wait_for_ready && said->wait_for_ready;
    if (said->has_max_request_message_bytes) {
        policy->max_request_bytes = said->max_request_message_bytes;
    }
    if (said->has_max_response_message_bytes) {
        policy->max_response_bytes = said->max_response_message_bytes;
    }
    if (said->retry_policy != NULL && said->hedging_policy != NULL) {
        return refuse(it, "hedgingPolicy", "stands beside retryPolicy, and there is one of them");
    }
    int rc = read_span(it, "timeout", said->timeout, &policy->timeout_ns);
    if (rc == 0 && said->retry_policy != NULL) {
        rc = read_retry(it, said->retry_policy, policy);
    }
    if (rc == 0 && said->hedging_policy != NULL) {
        rc = read_hedging(it, said->hedging_policy, policy);
    }
    return rc;
}

static int add_name(const struct reading *it, size_t i_name, const Bow__Config__Name *name,
                    const struct bow__method_policy *policy)
{
    const char *service = name->service != NULL ? name->service : "";
    const char *method = name->method != NULL ? name->method : "";

    if (*service == '\0' && *method != '\0') {
        bow__text_printf(it->reason, "methodConfig[%zu].name[%zu] has a method, and no service",
                         it->i_method, i_name);
        return -EINVAL;
    }
    int rc = bow__policy_table_add(&it->config->methods, service, method, policy);
    if (rc == -EEXIST) {
        bow__text_printf(it->reason, "methodConfig[%zu].name[%zu] is there twice: \"%s/%s\"",
                         it->i_method, i_name, service, method);
        return -EINVAL;
    }
    if (rc == -ENOSPC) {
        bow__text_printf(it->reason,
                         "methodConfig[%zu].name[%zu] is one more than %u "
                         "(BOW_LIMIT_METHOD_CONFIGS)",
                         it->i_method, i_name, BOW_LIMIT_METHOD_CONFIGS);
        return -EMSGSIZE;
    }
    return rc;
}

static int read_method(const struct reading *it, const Bow__Config__MethodConfig *said)
{
    struct bow__method_policy policy;
    int rc = read_policy(it, said, &policy);

    for (size_t i = 0; i < said->n_name && rc == 0; i++) {
        rc = add_name(it, i, said->name[i], &policy);
    }
    return rc;
}

static int read_throttling(const struct reading *it, const Bow__Config__RetryThrottling *said)
{
    double max = said->max_tokens;
    double ratio = said->token_ratio;

    if (!(max > 0 && max <= MAX_TOKENS)) {
        bow__text_printf(it->reason, "retryThrottling.maxTokens is not above 0 and up to 1000");
        return -EINVAL;
    }
    if (!(ratio > 0 && ratio <= MAX_TOKENS)) {
        bow__text_printf(it->reason, "retryThrottling.tokenRatio is not above 0 and up to 1000");
        return -EINVAL;
    }
    it->config->throttles = true;
    it->config->rates = (struct bow__retry_rates){
        .max_milli = (uint32_t)(max * 1000),
        .ratio_milli = (uint32_t)(ratio * 1000),
    };
    return 0;
}

static const char *balancing_of(const Bow__Config__ServiceConfig *said)
{
    for (size_t i = 0; i < said->n_load_balancing_config; i++) {
        const Bow__Config__LoadBalancing *one = said->load_balancing_config[i];
        const char *name = one->pick_first != NULL             ? "pick_first"
                           : one->round_robin != NULL          ? "round_robin"
                           : one->weighted_round_robin != NULL ? "weighted_round_robin"
                           : one->least_request != NULL || one->least_request_experimental != NULL
                               ? "least_request"
                           : one->ring_hash != NULL || one->ring_hash_experimental != NULL
                               ? "ring_hash"
                               : NULL;
        if (name != NULL) {
            return name;
        }
    }
    const char *old = said->load_balancing_policy;
    return old == NULL || said->n_load_balancing_config > 0 ? NULL
           : strcasecmp(old, "round_robin") == 0            ? "round_robin"
           : strcasecmp(old, "pick_first") == 0             ? "pick_first"
                                                            : NULL;
}

static int take(struct reading *it, const Bow__Config__ServiceConfig *said)
{
    int rc = 0;

    for (size_t i = 0; i < said->n_method_config && rc == 0; i++) {
        it->i_method = i;
        rc = read_method(it, said->method_config[i]);
    }
    if (rc == 0 && said->retry_throttling != NULL) {
        rc = read_throttling(it, said->retry_throttling);
    }
    it->config->balancing = balancing_of(said);
    return rc;
}

/* In the names that the text has, not those of the .proto. */
static void say_path(struct bow__text *reason, const char *path, size_t n)
{
    bool is_upper = false;

    for (size_t i = 0; i < n; i++) {
        char c = bow__json_camel(path[i], &is_upper);
        if (c != '\0') {
            bow__text_printf(reason, "%c", c);
        }
    }
}

static int parse(struct bow__arena *arena, struct bow_slice text, ProtobufCMessage **ret_message,
                 struct bow__text *reason)
{
    static const char type[] = "bow.config.ServiceConfig";
    struct bow_json_options options = BOW_JSON_OPTIONS_INIT;
    char why[REASON_BYTES];

    options.ignore_unknown = true;
    int rc = bow_json_read(&bow__config__service_config__descriptor, text, &options,
                           bow__arena_as_public(arena), ret_message, why, sizeof(why));
    if (rc == -EBADMSG) {
        const char *what = why;
        if (strncmp(what, type, sizeof(type) - 1) == 0) {
            what += sizeof(type) - 1;
            what += *what == '.';
        }
        size_t n_path = strcspn(what, " ");
        say_path(reason, what, n_path);
        bow__text_printf(reason, "%s", what + n_path);
        return -EINVAL;
    }
    return rc;
}

int bow__service_config_read(struct bow_context *context, const char *json,
                             struct bow__service_config *ret_config, struct bow__text *reason)
{
    struct bow__arena arena;
    struct bow__service_config config = {0};
    struct reading it = {.config = &config, .reason = reason};
    ProtobufCMessage *message = NULL;
    size_t len = strlen(json);

    if (len > BOW_LIMIT_SERVICE_CONFIG_BYTES) {
        bow__text_printf(reason,
                         "it has %zu bytes, and at most %zu are read "
                         "(BOW_LIMIT_SERVICE_CONFIG_BYTES)",
                         len, BOW_LIMIT_SERVICE_CONFIG_BYTES);
        return -EMSGSIZE;
    }
    bow__arena_init(&arena, context, NULL, 0, BOW_LIMIT_CALL_ARENA_BYTES);
    bow__policy_table_init(&config.methods, context);
    int rc = parse(&arena, (struct bow_slice){(const uint8_t *)json, len}, &message, reason);
    if (rc == 0) {
        rc = take(&it, (const Bow__Config__ServiceConfig *)message);
    }
    bow__arena_fini(&arena);
    if (rc < 0) {
        bow__service_config_fini(&config);
        return rc;
    }
    *ret_config = config;
    return 0;
}

void bow__service_config_fini(struct bow__service_config *config)
{
    bow__policy_table_fini(&config->methods);
    *config = (struct bow__service_config){0};
}
