/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Interceptors in their order: who has been started, who holds the call, what it
 * has been refused with, and who is told of its end, or that it never began.
 */

#include "rpc/core/intercept.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/options.h"
#include "base/refuse.h"
#include "rpc/core/errors.h"
#include <bowline/limits.h>
#include <bowline/system.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

static size_t aligned(size_t n)
{
    const size_t alignment = BOW__ARENA_ALIGNMENT;

    return (n + alignment - 1) & ~(alignment - 1);
}

/* The chain */

void bow__interceptors_init(struct bow__interceptors *chain, struct bow_context *context)
{
    *chain = (struct bow__interceptors){.context = context};
}

/* Entries move when the chain grows, and their names with them. */
static void point_names(struct bow__interceptors *chain)
{
    for (uint32_t i = 0; i < chain->n; i++) {
        chain->entries[i].public.name = chain->entries[i].name;
    }
}

static void set_entries(struct bow__interceptors *chain, struct bow__interceptor *entries,
                        uint32_t n)
{
    if (chain->entries != NULL) {
        bow__free(chain->context, chain->entries, chain->n * sizeof(*chain->entries));
    }
    chain->entries = entries;
    chain->n = n;
    point_names(chain);
}

void bow__interceptors_fini(struct bow__interceptors *chain, bool releases)
{
    for (uint32_t i = 0; releases && i < chain->n; i++) {
        const struct bow_interceptor *entry = &chain->entries[i].public;
        if (entry->release != NULL) {
            entry->release(entry->user);
        }
    }
    set_entries(chain, NULL, 0);
}

static const struct bow__interceptor *find_key(const struct bow__interceptors *chain,
                                               const void *key)
{
    for (uint32_t i = 0; i < chain->n && key != NULL; i++) {
        if (chain->entries[i].public.state_key == key) {
            return &chain->entries[i];
        }
    }
    return NULL;
}

static int check(const struct bow__interceptors *chain, const struct bow_interceptor *interceptor,
                 struct bow__text *reason)
{
    const struct bow__interceptor *same = find_key(chain, interceptor->state_key);

    if (interceptor->name == NULL || *interceptor->name == '\0') {
        bow__text_printf(reason, " has no name");
        return -EINVAL;
    }
    bow__text_printf(reason, " (\"%s\")", interceptor->name);
    if (interceptor->state_bytes > BOW_INTERCEPTOR_STATE_BYTES) {
        bow__text_printf(reason,
                         " asks for %zu state_bytes, and BOW_INTERCEPTOR_STATE_BYTES are %zu",
                         interceptor->state_bytes, BOW_INTERCEPTOR_STATE_BYTES);
        return -EINVAL;
    }
    if (same != NULL) {
        bow__text_printf(reason, " has the state_key of \"%s\"", same->name);
        return -EINVAL;
    }
    return 0;
}

static int read_interceptor(const struct bow__interceptors *chain,
                            const struct bow_interceptor *given, struct bow_interceptor *ret_known,
                            struct bow__text *reason)
{
    bow__text_printf(reason, "interceptor %u", chain->n + 1);
    int rc = bow__options_read(ret_known, sizeof(*ret_known), given);
    if (rc < 0) {
        bow__text_printf(reason, given == NULL
                                     ? " is NULL"
                                     : " has a size that is not known: use BOW_INTERCEPTOR_INIT");
        return rc;
    }
    return check(chain, ret_known, reason);
}

int bow__interceptors_add(struct bow__interceptors *chain,
                          const struct bow_interceptor *interceptor, struct bow__text *reason)
{
    struct bow_interceptor known = BOW_INTERCEPTOR_INIT;

    int rc = read_interceptor(chain, interceptor, &known, reason);
    if (rc < 0) {
        return rc;
    }
    struct bow__interceptor *entries =
        bow__alloc_array(chain->context, chain->n + 1, sizeof(*entries));
    if (entries == NULL) {
        bow__text_printf(reason, ": ");
        bow__text_errno(reason, -ENOMEM);
        return -ENOMEM;
    }
    if (chain->n > 0) {
        memcpy(entries, chain->entries, chain->n * sizeof(*entries));
    }
    struct bow__interceptor *added = &entries[chain->n];
    *added = (struct bow__interceptor){.public = known, .state_offset = chain->n_state_bytes};
    (void)snprintf(added->name, sizeof(added->name), "%s", known.name);
    chain->n_state_bytes += aligned(known.state_bytes);
    set_entries(chain, entries, chain->n + 1);
    return 0;
}

void bow__interceptors_tell_refused(const struct bow__interceptors *chain,
                                    const struct bow_refused_call *call)
{
    for (uint32_t i = 0; i < chain->n; i++) {
        const struct bow_interceptor *entry = &chain->entries[i].public;
        if (entry->on_refused != NULL) {
            entry->on_refused(call, entry->user);
        }
    }
}

/* A call */

static size_t views_offset(size_t side_bytes)
{
    return aligned(side_bytes);
}

static size_t states_offset(const struct bow__interceptors *chain, size_t side_bytes)
{
    return views_offset(side_bytes) + aligned(chain->n * sizeof(struct bow_interception));
}

struct bow__intercepted *bow__intercepted_new(const struct bow__interceptors *chain,
                                              const struct bow__intercept_ops *ops,
                                              struct bow__arena *arena, size_t side_bytes,
                                              uint64_t started_ns)
{
    size_t size = states_offset(chain, side_bytes) + chain->n_state_bytes;
    uint8_t *memory = bow__arena_alloc(arena, size);

    if (memory == NULL) {
        return NULL;
    }
    memset(memory, 0, size);
    struct bow__intercepted *it = (void *)memory;
    it->chain = chain;
    it->ops = ops;
    it->arena = arena;
    it->started_ns = started_ns;
    it->views = (void *)(memory + views_offset(side_bytes));
    it->n_views = chain->n;
    uint8_t *states = memory + states_offset(chain, side_bytes);
    for (uint32_t i = 0; i < chain->n; i++) {
        const struct bow__interceptor *entry = &chain->entries[i];
        it->views[i].it = it;
        it->views[i].key = entry->public.state_key;
        it->views[i].state = entry->public.state_bytes > 0 ? states + entry->state_offset : NULL;
    }
    return it;
}

enum bow__intercept_stage bow__intercepted_start(struct bow__intercepted *it)
{
    it->stage = BOW__INTERCEPT_STARTING;
    while (it->n_started < it->chain->n && it->stage == BOW__INTERCEPT_STARTING) {
        uint32_t i = it->n_started++;
        const struct bow_interceptor *entry = &it->chain->entries[i].public;
        if (entry->on_start != NULL) {
            it->inside = true;
            entry->on_start(&it->views[i], entry->user);
            it->inside = false;
        }
    }
    if (it->stage == BOW__INTERCEPT_STARTING) {
        it->stage = BOW__INTERCEPT_PASSED;
    }
    return it->stage;
}

void bow__intercepted_run(struct bow__intercepted *it)
{
    if (it->stage == BOW__INTERCEPT_PROCEEDING) {
        (void)bow__intercepted_start(it);
    }
    if (it->stage == BOW__INTERCEPT_PASSED) {
        it->ops->go_on(it);
    } else if (it->stage == BOW__INTERCEPT_REFUSED) {
        it->ops->refuse(it);
    }
}

void bow__intercepted_end(struct bow__intercepted *it, const struct bow_status *status,
                          uint64_t now_ns)
{
    struct bow__intercept_facts facts = it->ops->facts(it);
    struct bow_intercepted_end end = {
        .status = status,
        .initial = facts.initial,
        .messages_received = it->n_messages[0],
        .messages_sent = it->n_messages[1],
        .bytes_received = it->n_message_bytes[0],
        .bytes_sent = it->n_message_bytes[1],
        .elapsed_ns = now_ns > it->started_ns ? now_ns - it->started_ns : 0,
        .deadline_left_ns = bow__time_left(facts.deadline_ns, now_ns),
        .refused = it->stage == BOW__INTERCEPT_REFUSED,
    };

    it->stage = BOW__INTERCEPT_ENDED;
    while (it->n_started > 0) {
        uint32_t i = --it->n_started;
        const struct bow_interceptor *entry = &it->chain->entries[i].public;
        if (entry->on_end != NULL) {
            entry->on_end(&it->views[i], &end, entry->user);
        }
    }
}

const char *bow__intercepted_holder(const struct bow__intercepted *it)
{
    return it != NULL && it->stage == BOW__INTERCEPT_HELD
               ? it->chain->entries[it->n_started - 1].name
               : NULL;
}

/* Messages */

static void tell_message(struct bow__intercepted *it, uint32_t i,
                         const struct bow_intercepted_message *message)
{
    const struct bow_interceptor *entry = &it->chain->entries[i].public;

    if (entry->on_message != NULL) {
        entry->on_message(&it->views[i], message, entry->user);
    }
}

/* From the outermost to the program, or back; a refused one goes no further. */
static void pass_message(struct bow__intercepted *it, const struct bow_intercepted_message *message)
{
    bool forwards = it->ops->server != message->sent;
    uint32_t n = it->chain->n;

    it->n_messages[message->sent]++;
    it->n_message_bytes[message->sent] += message->bytes.len;
    for (uint32_t i = 0; i < n && !it->message_refused; i++) {
        tell_message(it, forwards ? i : n - 1 - i, message);
    }
}

void bow__intercepted_sends(struct bow__intercepted *it, struct bow_slice bytes)
{
    struct bow_intercepted_message message = {.sent = true, .bytes = bytes};

    pass_message(it, &message);
}

int bow__intercepted_receives(struct bow__intercepted *it, struct bow_slice bytes, bool compressed,
                              struct bow__text *reason)
{
    struct bow_intercepted_message message = {.compressed = compressed, .bytes = bytes};

    it->reason = reason;
    pass_message(it, &message);
    it->reason = NULL;
    return it->message_refused ? -EACCES : 0;
}

void bow__intercepted_retries(struct bow__intercepted *it, const struct bow_status *status)
{
    for (uint32_t i = it->n_started; i-- > 0;) {
        const struct bow_interceptor *entry = &it->chain->entries[i].public;
        if (entry->on_retry != NULL) {
            entry->on_retry(&it->views[i], status, entry->user);
        }
    }
}

void *bow__intercepted_state(const struct bow__intercepted *it, const void *key)
{
    for (uint32_t i = 0; it != NULL && i < it->n_views; i++) {
        if (it->views[i].key == key && key != NULL) {
            return it->views[i].state;
        }
    }
    return NULL;
}

/* What programs call: asking */

static struct bow__intercept_facts facts_of(const struct bow_interception *at)
{
    return at->it->ops->facts(at->it);
}

void *bow_interception_state(const struct bow_interception *at)
{
    return at->state;
}

void *bow_interception_find(const struct bow_interception *at, const void *state_key)
{
    return bow__intercepted_state(at->it, state_key);
}

const struct bow_method *bow_interception_method(const struct bow_interception *at)
{
    return facts_of(at).method;
}

const char *bow_interception_peer(const struct bow_interception *at)
{
    return facts_of(at).peer;
}

const char *bow_interception_protocol(const struct bow_interception *at)
{
    return facts_of(at).protocol;
}

bool bow_interception_is_secure(const struct bow_interception *at)
{
    return facts_of(at).secure;
}

uint64_t bow_interception_deadline(const struct bow_interception *at)
{
    return facts_of(at).deadline_ns;
}

struct bow_loop *bow_interception_loop(const struct bow_interception *at)
{
    return facts_of(at).loop;
}

const struct bow_call *bow_interception_call(const struct bow_interception *at)
{
    return facts_of(at).call;
}

struct bow_metadata bow_interception_metadata(const struct bow_interception *at)
{
    return facts_of(at).request;
}

/* Deciding */

static bool is_current(const struct bow_interception *at)
{
    const struct bow__intercepted *it = at->it;

    return it->n_started > 0 && at == &it->views[it->n_started - 1];
}

static bool is_starting(const struct bow_interception *at)
{
    return is_current(at) && at->it->inside && at->it->stage == BOW__INTERCEPT_STARTING;
}

static bool is_holding(const struct bow_interception *at)
{
    return is_current(at) && at->it->stage == BOW__INTERCEPT_HELD;
}

void *bow_interception_alloc(struct bow_interception *at, size_t size)
{
    return is_starting(at) || is_holding(at) ? bow__arena_alloc(at->it->arena, size) : NULL;
}

static int refuse(const struct bow_interception *at, const char *why)
{
    return bow__refuse(at->it->arena->context, -EINVAL, "an interceptor: %s", why);
}

/* The value may be a secret. */
static int refuse_entry(const struct bow_interception *at, const char *key)
{
    struct bow__text text;

    bow__text_clear(&text);
    bow__text_escape(&text, (struct bow_slice){(const uint8_t *)key, strlen(key)}, 128);
    return bow__refuse(at->it->arena->context, -EINVAL,
                       "an interceptor: \"%s\" is not as <bowline/metadata.h> wants it, or its "
                       "value, or this side sends no metadata of that kind",
                       text.bytes);
}

static int add(struct bow_interception *at, enum bow__intercept_add what, const char *key,
               struct bow_slice value)
{
    if (!is_starting(at) && !is_holding(at)) {
        return refuse(at, "metadata is added in on_start, or while the call is held");
    }
    int rc = at->it->ops->add(at->it, what, key, value);
    return rc == -EINVAL ? refuse_entry(at, key) : rc;
}

int bow_interception_add_request(struct bow_interception *at, const char *key,
                                 struct bow_slice value)
{
    return add(at, BOW__ADD_REQUEST, key, value);
}

int bow_interception_set_request(struct bow_interception *at, const char *key,
                                 struct bow_slice value)
{
    return add(at, BOW__SET_REQUEST, key, value);
}

int bow_interception_add_initial(struct bow_interception *at, const char *key,
                                 struct bow_slice value)
{
    return add(at, BOW__ADD_INITIAL, key, value);
}

int bow_interception_add_trailing(struct bow_interception *at, const char *key,
                                  struct bow_slice value)
{
    return add(at, BOW__ADD_TRAILING, key, value);
}

int bow_interception_set_trace(struct bow_interception *at, const struct bow_metadata *trace)
{
    if (!at->it->ops->server || (!is_starting(at) && !is_holding(at))) {
        return refuse(at, "a server's sets the trace in on_start, or while the call is held");
    }
    at->it->trace = trace;
    return 0;
}

int bow_interception_hold(struct bow_interception *at)
{
    if (!is_starting(at)) {
        return refuse(at, "bow_interception_hold() is for on_start");
    }
    at->it->stage = BOW__INTERCEPT_HELD;
    return 0;
}

int bow_interception_proceed(struct bow_interception *at)
{
    struct bow__intercepted *it = at->it;

    if (!is_holding(at)) {
        return refuse(at, "bow_interception_proceed() is for a call that it holds");
    }
    if (it->inside) {
        it->stage = BOW__INTERCEPT_STARTING;
        return 0;
    }
    it->stage = BOW__INTERCEPT_PROCEEDING;
    it->ops->defer(it);
    return 0;
}

/* Texts without memory for them are left out. */
static void keep_refusal(struct bow__intercepted *it, const struct bow_status *status)
{
    struct bow_status *kept = &it->refusal;
    size_t len =
        bow__utf8_cut(status->message, strlen(status->message), BOW_LIMIT_STATUS_MESSAGE_BYTES);

    *kept = *status;
    kept->message = bow__arena_dup(it->arena, status->message, len);
    if (kept->message == NULL) {
        kept->message = "";
    }
    if (kept->details.len > 0) {
        kept->details.data =
            (const uint8_t *)bow__arena_dup(it->arena, status->details.data, status->details.len);
        kept->details.len = kept->details.data != NULL ? status->details.len : 0;
    }
    kept->metadata = (struct bow_metadata)BOW_METADATA_INIT;
    for (size_t i = 0; i < status->metadata.n; i++) {
        const struct bow_metadata_entry *entry = &status->metadata.entries[i];
        (void)it->ops->add(it, BOW__ADD_TRAILING, entry->key, entry->value);
    }
}

static void refuse_message(struct bow__intercepted *it, const struct bow_status *status)
{
    bow__text_clear(it->reason);
    bow__text_printf(it->reason, "%s", status->message);
    it->refusal = (struct bow_status)BOW_STATUS_OK_INIT;
    it->refusal.code = status->code;
    it->message_refused = true;
}

int bow_interception_refuse_status(struct bow_interception *at, const struct bow_status *status)
{
    struct bow__intercepted *it = at->it;
    struct bow_status checked = *status;

    if (status->code == BOW_OK) {
        checked.code = BOW_INTERNAL;
        checked.message = "an interceptor refused the call with code OK";
    }
    if (it->reason != NULL && !it->message_refused) {
        refuse_message(it, &checked);
        return 0;
    }
    if (!is_starting(at) && !is_holding(at)) {
        return refuse(at, "a call is refused in on_start, while it is held, or for its message");
    }
    keep_refusal(it, &checked);
    it->stage = BOW__INTERCEPT_REFUSED;
    if (!it->inside) {
        it->ops->defer(it);
    }
    return 0;
}

int bow_interception_refuse(struct bow_interception *at, enum bow_code code, const char *format,
                            ...)
{
    struct bow_status status = BOW_STATUS_OK_INIT;
    struct bow__text text;
    va_list args;

    bow__text_clear(&text);
    va_start(args, format);
    bow__text_vprintf(&text, format, args);
    va_end(args);
    status.code = code;
    status.message = text.bytes;
    return bow_interception_refuse_status(at, &status);
}
