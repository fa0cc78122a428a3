/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which policy counts for a method, of all that were said.
 */

#include "rpc/client/retry/retries.h"
#include "base/options.h"

#include <bowline/limits.h>
#include <bowline/service.h>
#include <errno.h>
#include <string.h>

#define NAME_BYTES 512

/* What a client is made with */

static int refuse_policy(struct bow__text *reason, size_t i, const char *why)
{
    bow__text_printf(reason, "options.retry: policies[%zu]: %s", i, why);
    return -EINVAL;
}

/* "pkg.Service/Method" into its two parts, with or without a slash in front. */
static int split(const char *method, char *service, const char **ret_method)
{
    const char *name = method + (*method == '/');
    const char *slash = strchr(name, '/');
    size_t n = slash != NULL ? (size_t)(slash - name) : strlen(name);

    if (n == 0 || n >= NAME_BYTES || (slash != NULL && slash[1] == '\0')) {
        return -EINVAL;
    }
    memcpy(service, name, n);
    service[n] = '\0';
    *ret_method = slash != NULL ? slash + 1 : "";
    return 0;
}

static int add_policy(struct bow__retry_config *config, size_t i,
                      const struct bow_retry_policy *given, struct bow__text *reason)
{
    struct bow_retry_policy known = BOW_RETRY_POLICY_INIT;
    struct bow__method_policy policy;
    char service[NAME_BYTES] = "";
    const char *method = "";
    const char *why;

    if (bow__options_read(&known, sizeof(known), given) < 0) {
        return refuse_policy(reason, i, "begin it with BOW_RETRY_POLICY_INIT");
    }
    if (bow__policy_read(&known, &policy, &why) < 0) {
        return refuse_policy(reason, i, why);
    }
    if (known.method != NULL && split(known.method, service, &method) < 0) {
        return refuse_policy(reason, i,
                             "method is none, as \"pkg.Service/Method\" or \"pkg.Service\"");
    }
    int rc = bow__policy_table_add(&config->policies, service, method, &policy);
    if (rc == -EEXIST) {
        return refuse_policy(reason, i, "there is one for that method already");
    }
    return rc == -ENOSPC ? refuse_policy(reason, i, "that is more than BOW_LIMIT_METHOD_CONFIGS")
                         : rc;
}

static uint32_t or_default(uint32_t value, uint32_t otherwise)
{
    return value != 0 ? value : otherwise;
}

static int read_rates(struct bow__retry_config *config, const struct bow_retry_options *options,
                      struct bow__text *reason)
{
    if (options->budget_tokens > 1000 || options->budget_percent > 100 ||
        options->budget_per_minute > 600) {
        bow__text_printf(reason,
                         "options.retry: budget_tokens is at most 1000, budget_percent 100, "
                         "budget_per_minute 600");
        return -EINVAL;
    }
    config->rates = (struct bow__retry_rates){
        .max_milli = or_default(options->budget_tokens, BOW_LIMIT_RETRY_TOKENS) * 1000,
        .ratio_milli = or_default(options->budget_percent, BOW_LIMIT_RETRY_PERCENT) * 10,
        .per_minute = or_default(options->budget_per_minute, BOW_LIMIT_RETRY_PER_MINUTE),
    };
    return 0;
}

static int read_options(struct bow__retry_config *config, const struct bow_retry_options *given,
                        struct bow__text *reason)
{
    struct bow_retry_options known = BOW_RETRY_OPTIONS_INIT;

    if (given != NULL && bow__options_read(&known, sizeof(known), given) < 0) {
        bow__text_printf(reason, "begin options.retry with BOW_RETRY_OPTIONS_INIT");
        return -EINVAL;
    }
    int rc = read_rates(config, &known, reason);
    for (size_t i = 0; i < known.n_policies && rc == 0; i++) {
        rc = add_policy(config, i, known.policies[i], reason);
    }
    config->keeps_idempotent = known.keep_idempotent;
    return rc;
}

int bow__retry_config_init(struct bow__retry_config *config, struct bow_context *context,
                           const struct bow_retry_options *options, const char *service_config,
                           struct bow__text *reason)
{
    *config = (struct bow__retry_config){.context = context};
    bow__policy_table_init(&config->policies, context);
    int rc = read_options(config, options, reason);
    if (rc == 0 && service_config != NULL) {
        struct bow__text why;
        bow__text_clear(&why);
        rc = bow__service_config_read(context, service_config, &config->service_config, &why);
        if (rc == -EINVAL || rc == -EMSGSIZE) {
            bow__text_printf(reason, "options.service_config: %s", why.bytes);
            rc = -EINVAL;
        }
    }
    if (rc < 0) {
        bow__retry_config_fini(config);
    }
    return rc;
}

void bow__retry_config_fini(struct bow__retry_config *config)
{
    bow__policy_table_fini(&config->policies);
    bow__service_config_fini(&config->service_config);
}

/* A loop's */

static const struct bow__service_config *in_force(const struct bow__retries *retries)
{
    return retries->is_told ? &retries->told : &retries->config->service_config;
}

static void apply(struct bow__retries *retries)
{
    const struct bow__service_config *config = in_force(retries);

    retries->has_policies = retries->config->policies.n > 0 || config->methods.n > 0;
    bow__retry_budget_change(&retries->budget,
                             config->throttles ? &config->rates : &retries->config->rates);
}

void bow__retries_init(struct bow__retries *retries, const struct bow__retry_config *config)
{
    *retries = (struct bow__retries){.config = config};
    bow__retry_budget_init(&retries->budget, &config->rates, 0);
    apply(retries);
}

void bow__retries_fini(struct bow__retries *retries)
{
    bow__service_config_fini(&retries->told);
}

int bow__retry_config_update(struct bow__retries *retries, const char *json,
                             struct bow__text *reason)
{
    struct bow__service_config told = {0};

    if (json != NULL) {
        int rc = bow__service_config_read(retries->config->context, json, &told, reason);
        if (rc < 0) {
            return rc;
        }
    }
    bow__service_config_fini(&retries->told);
    retries->told = told;
    retries->is_told = json != NULL;
    apply(retries);
    return 0;
}

const char *bow__retry_config_balancing(const struct bow__retries *retries)
{
    return in_force(retries)->balancing;
}

/* Which attempts there are, of a policy; the rest of `policy` stays. */
static void take_retries(struct bow__method_policy *policy, const struct bow__method_policy *from)
{
    struct bow__method_policy taken = *from;

    taken.waits_for_ready = policy->waits_for_ready;
    taken.timeout_ns = policy->timeout_ns;
    taken.max_request_bytes = policy->max_request_bytes;
    taken.max_response_bytes = policy->max_response_bytes;
    *policy = taken;
}

bool bow__retries_find(const struct bow__retries *retries, const char *path, uint32_t flags,
                       struct bow__method_policy *ret_policy)
{
    const struct bow__method_policy *own = bow__policy_table_find(&retries->config->policies, path);
    const struct bow__method_policy *said =
        bow__policy_table_find(&in_force(retries)->methods, path);
    bool is_idempotent = (flags & (BOW_METHOD_IDEMPOTENT | BOW_METHOD_NO_SIDE_EFFECTS)) != 0 &&
                         !retries->config->keeps_idempotent;

    if (own == NULL && said == NULL && !is_idempotent) {
        return false;
    }
    bow__policy_init(ret_policy);
    if (said != NULL) {
        *ret_policy = *said;
    }
    if (own != NULL) {
        take_retries(ret_policy, own);
    }
    if (!ret_policy->retries && is_idempotent) {
        struct bow__method_policy declared;
        bow__policy_init_idempotent(&declared);
        take_retries(ret_policy, &declared);
    }
    return true;
}
