/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a resolver is asked and what it says.
 */

#include "rpc/client/resolver_watch.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/options.h"
#include "rpc/client/backoff.h"
#include "rpc/connection/jitter.h"
#include "transport/address/address.h"
#include <bowline/channel.h>
#include <bowline/limits.h>

#include <errno.h>
#include <string.h>

/* Cut after `max` bytes, in a text that has further things to say. */
#define SHOWN_BYTES 128

static const struct bow_resolver *resolver_of(const struct bow_resolver_watch *watch)
{
    return watch->config->target.resolver;
}

static uint64_t now_of(const struct bow_resolver_watch *watch)
{
    return bow_loop_now(watch->timer.loop);
}

static bool can_refresh(const struct bow_resolver_watch *watch)
{
    return watch->is_started && watch->is_in_doubt && resolver_of(watch)->refresh != NULL;
}

/* The timer is for what comes first. */
static void arm(struct bow_resolver_watch *watch)
{
    uint64_t at = BOW_NEVER;

    if (watch->next != NULL || watch->has_next_error) {
        at = 0;
    } else if (watch->state != BOW__RESOLVER_IDLE && !watch->is_started) {
        at = watch->next_start_ns;
    } else if (can_refresh(watch)) {
        at = watch->next_refresh_ns;
    }
    bow_timer_start_at(&watch->timer, watch->is_stopped ? BOW_NEVER : at);
}

/* What it says */

static void escape(struct bow__text *text, const char *bytes)
{
    bow__text_escape(text, (struct bow_slice){(const uint8_t *)bytes, strlen(bytes)}, SHOWN_BYTES);
}

/* Of one address. Returns 0 or -EINVAL, -EPERM. */
static int check_address(const struct bow_client_options *options, const char *address,
                         struct bow__text *why)
{
    struct bow__address parsed;

    int rc = bow__address_parse(address, &parsed, why);
    if (rc < 0) {
        return rc;
    }
    if (bow_address_is_local(address) == 0 && !options->plaintext && options->security == NULL) {
        bow__text_printf(why, "\"");
        escape(why, address);
        bow__text_printf(why, "\": it is beyond this host, and connections are not encrypted; set "
                              "options.security, or options.plaintext = true to allow that");
        return -EPERM;
    }
    return 0;
}

static int check(const struct bow_resolver_watch *watch, const struct bow_resolver_update *update,
                 struct bow__text *why)
{
    const struct bow_client_options *options = &watch->config->options;
    int rc = 0;

    if (update->error != NULL) {
        bow__text_printf(why, "%s", update->error);
        return -ENOENT;
    }
    if (update->n_addresses == 0) {
        bow__text_printf(why, "it has no addresses");
        return -ENOENT;
    }
    for (size_t i = 0; i < update->n_addresses && rc == 0; i++) {
        bow__text_clear(why);
        bow__text_printf(why, "address %zu of %zu cannot be used, and so none of them is: ", i + 1,
                         update->n_addresses);
        rc = check_address(options, update->addresses[i].address, why);
    }
    return rc;
}

static void drop_next(struct bow_resolver_watch *watch)
{
    bow__address_set_free(watch->config->context, watch->next);
    watch->next = NULL;
    watch->has_next_error = false;
}

void bow_resolver_update(struct bow_resolver_watch *watch, const struct bow_resolver_update *update)
{
    struct bow_resolver_update known = BOW_RESOLVER_UPDATE_INIT;
    struct bow__address_set *set = NULL;
    struct bow__text why;

    if (watch->is_stopped) {
        return;
    }
    bow__text_clear(&why);
    int rc = bow__options_read(&known, sizeof(known), update);
    if (rc < 0) {
        bow__text_printf(&why,
                         "its resolver's update does not begin with BOW_RESOLVER_UPDATE_INIT");
    } else {
        rc = check(watch, &known, &why);
    }
    if (rc == 0) {
        bow__text_clear(&why);
        rc = bow__address_set_new(watch->config->context, known.addresses, known.n_addresses,
                                  known.service_config, &set);
        if (rc < 0) {
            bow__text_printf(&why, "no memory for its %zu addresses", known.n_addresses);
        }
    }
    /* An error behind a set that is yet to be taken leaves that one standing. */
    if (rc == 0) {
        drop_next(watch);
        watch->next = set;
    } else {
        watch->has_next_error = true;
        watch->next_error = why;
    }
    arm(watch);
}

/* Taking it */

static void log_error(const struct bow_resolver_watch *watch)
{
    bow__log(watch->config->context, BOW_LOG_WARNING, "resolving %s: %s%s",
             watch->config->target.text, watch->error.bytes,
             watch->set != NULL ? "; the addresses known so far stay in use" : "");
}

static void fail(struct bow_resolver_watch *watch, const struct bow__text *why)
{
    bool is_news = strcmp(watch->error.bytes, why->bytes) != 0;

    watch->error = *why;
    watch->failed_at_ns = now_of(watch);
    if (watch->set == NULL) {
        watch->state = BOW__RESOLVER_FAILED;
    }
    if (is_news) {
        log_error(watch);
    }
    watch->ops->on_error(watch->owner);
}

static void log_cut(const struct bow_resolver_watch *watch, const struct bow__address_set *set)
{
    bow__log(watch->config->context, BOW_LOG_ERROR,
             "resolving %s: it has %zu addresses, and %u are used (BOW_LIMIT_RESOLVED_ADDRESSES)",
             watch->config->target.text, set->n + set->n_cut, BOW_LIMIT_RESOLVED_ADDRESSES);
}

static void take_set(struct bow_resolver_watch *watch)
{
    struct bow__address_set *before = watch->set;
    struct bow__address_set *set = watch->next;
    struct bow__text why;

    watch->next = NULL;
    int rc = watch->ops->on_set(watch->owner, set);
    if (rc < 0) {
        bow__text_clear(&why);
        bow__text_printf(&why, "no memory for its %u addresses", (unsigned)set->n);
        bow__address_set_free(watch->config->context, set);
        fail(watch, &why);
        return;
    }
    watch->state = BOW__RESOLVER_KNOWN;
    bow__text_clear(&watch->error);
    if (set->n_cut > 0 && (before == NULL || before->n_cut != set->n_cut)) {
        log_cut(watch, set);
    }
    watch->set = set;
    bow__address_set_free(watch->config->context, before);
}

/* What the owner does in here may bring the next update. */
static void take(struct bow_resolver_watch *watch)
{
    bool has_error = watch->has_next_error;
    struct bow__text error;

    if (has_error) {
        error = watch->next_error;
        watch->has_next_error = false;
    }
    if (watch->next != NULL) {
        take_set(watch);
    }
    if (has_error && !watch->is_stopped) {
        fail(watch, &error);
    }
}

/* Asking */

static void start(struct bow_resolver_watch *watch)
{
    const struct bow_resolver *resolver = resolver_of(watch);
    const struct bow_client_options *options = &watch->config->options;
    struct bow__text why;

    int rc = resolver->start(resolver, watch->timer.loop, watch->config->target.name, watch,
                             &watch->resolver_state);
    if (rc == 0) {
        watch->is_started = true;
        watch->pause_ns = 0;
        return;
    }
    watch->pause_ns = bow__backoff_next(options, watch->pause_ns);
    watch->next_start_ns = bow__time_add(
        now_of(watch), bow__jittered(watch->config->context, watch->pause_ns, watch->pause_ns / 5));
    bow__text_clear(&why);
    bow__text_printf(&why, "its resolver could not begin: ");
    bow__text_errno(&why, rc);
    fail(watch, &why);
}

static void refresh(struct bow_resolver_watch *watch)
{
    watch->is_in_doubt = false;
    watch->next_refresh_ns = bow__time_add(now_of(watch), BOW_LIMIT_RESOLVER_REFRESH_NS);
    resolver_of(watch)->refresh(watch->resolver_state);
}

static void on_timer(struct bow_timer *timer, void *user)
{
    struct bow_resolver_watch *watch = user;

    (void)timer;
    if (watch->next != NULL || watch->has_next_error) {
        take(watch);
    } else if (!watch->is_started) {
        start(watch);
    } else if (can_refresh(watch)) {
        refresh(watch);
    }
    arm(watch);
}

/* One that only tells by itself has said what there is to say. */
static bool may_ask_again(const struct bow_resolver_watch *watch)
{
    uint64_t min = watch->config->options.backoff_min_ns;

    return (!watch->is_started || resolver_of(watch)->refresh != NULL) &&
           now_of(watch) >= bow__time_add(watch->failed_at_ns, min);
}

bool bow__resolver_watch_want(struct bow_resolver_watch *watch)
{
    bool asks = watch->state == BOW__RESOLVER_IDLE ||
                (watch->state == BOW__RESOLVER_FAILED && may_ask_again(watch));

    if (asks && !watch->is_stopped) {
        watch->state = BOW__RESOLVER_WAITING;
        watch->next_start_ns = now_of(watch);
        watch->is_in_doubt = watch->is_started;
        arm(watch);
    }
    return watch->state != BOW__RESOLVER_FAILED;
}

void bow__resolver_watch_doubt(struct bow_resolver_watch *watch)
{
    if (!watch->is_in_doubt) {
        watch->is_in_doubt = true;
        arm(watch);
    }
}

/* Life */

int bow__resolver_watch_new(const struct bow__client_config *config,
                            struct bow_resolver_watch **ret_watch)
{
    struct bow_resolver_watch *watch = bow__alloc_zero(config->context, sizeof(*watch));

    if (watch == NULL) {
        return -ENOMEM;
    }
    watch->config = config;
    bow__text_clear(&watch->error);
    *ret_watch = watch;
    return 0;
}

void bow__resolver_watch_bind(struct bow_resolver_watch *watch, struct bow_loop *loop,
                              const struct bow__resolver_watch_ops *ops, void *owner)
{
    watch->ops = ops;
    watch->owner = owner;
    bow_timer_init(&watch->timer, loop, on_timer, watch);
}

void bow__resolver_watch_stop(struct bow_resolver_watch *watch)
{
    if (watch->is_stopped) {
        return;
    }
    watch->is_stopped = true;
    bow_timer_stop(&watch->timer);
    drop_next(watch);
    if (watch->is_started) {
        watch->is_started = false;
        resolver_of(watch)->stop(watch->resolver_state);
    }
}

void bow__resolver_watch_free(struct bow_resolver_watch *watch)
{
    if (watch == NULL) {
        return;
    }
    drop_next(watch);
    bow__address_set_free(watch->config->context, watch->set);
    bow__free(watch->config->context, watch, sizeof(*watch));
}
