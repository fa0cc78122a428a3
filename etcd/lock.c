/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A lock: a key under a lease in line with others, of which the one that was created first holds
 * it. How a lease lives, its file knows.
 *
 *     ENTER ──► LOOK ──► WAIT: the one before goes ──► LOOK ──► HELD: on_acquired
 *       ▲         └─────────────── our key is gone ◄────┴──────────┘
 *       └─────── on_lost ◄─────────┘                 the lease is lost: from everywhere
 *
 * Design. The line is etcd's concurrency package's: who comes waits for the youngest key that is
 * older than its own, so that one goes on when one goes. While it is held our own key is watched.
 * Whatever ends a watch leads to LOOK, which reads both keys at one revision.
 */

#include "base/alloc.h"
#include "base/options.h"
#include "etcd/core.h"
#include "etcd/lease.h"
#include "etcd/rpc.bow.h"
#include <bowline/arena.h>
#include <bowline/limits.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_TTL_S 10u
#define NUMBER_BYTES 17u /* of a lease, in hex, with a NUL */

enum step { ENTER, LOOK, WAIT, HELD };

struct bow_etcd_lock {
    struct bow__etcd_object object;
    struct bow__etcd_lease lease;
    struct bow__etcd_op op;
    struct bow_arena *arena; /* the texts' */
    char *key;               /* with the lease's number behind line_len bytes */
    size_t line_len;         /* of the part that all have: PREFIX NAME "/" */
    char *end;               /* behind all of them */
    const char *value;
    const struct bow_etcd_lock_events *events;
    void *user;

    enum step step;
    int64_t created; /* revision of our key */
    int64_t seen;    /* revision of what LOOK has read */
    char *before;    /* the key that is waited for */
    size_t before_len;
    size_t before_size;
    bool is_held; /* on_acquired was told, on_lost not */
};

static struct bow_etcd_lock *of_object(struct bow__etcd_object *object)
{
    return BOW__CONTAINER(object, struct bow_etcd_lock, object);
}

static struct bow_etcd_lock *of_op(struct bow__etcd_op *op)
{
    return BOW__CONTAINER(op, struct bow_etcd_lock, op);
}

static struct bow_etcd_lock *of_lease(struct bow__etcd_lease *lease)
{
    return BOW__CONTAINER(lease, struct bow_etcd_lock, lease);
}

static ProtobufCBinaryData bytes_of(const char *text, size_t len)
{
    return (ProtobufCBinaryData){len, (uint8_t *)(uintptr_t)text};
}

static ProtobufCBinaryData own_key(const struct bow_etcd_lock *lock)
{
    return bytes_of(lock->key, strlen(lock->key));
}

static void tell_error(struct bow_etcd_lock *lock, const struct bow_status *status)
{
    if (lock->events->on_error != NULL && bow__etcd_object_listens(&lock->object)) {
        lock->events->on_error(lock, status, lock->user);
    }
}

static void lose(struct bow_etcd_lock *lock, const char *why)
{
    bool was_held = lock->is_held;

    lock->is_held = false;
    lock->step = ENTER;
    if (was_held && bow__etcd_object_listens(&lock->object)) {
        lock->events->on_lost(lock, why, lock->user);
    }
}

static void go_to(struct bow_etcd_lock *lock, enum step step)
{
    lock->step = step;
    bow__etcd_op_go(&lock->op, 0);
}

static int start_txn(struct bow_etcd_lock *lock, const Bow__Etcd__TxnRequest *request,
                     void (*fn)(struct bow_result *, const Bow__Etcd__TxnResponse *, void *))
{
    struct bow_call_options options = bow__etcd_op_options(&lock->op, false);

    return bow__etcd__kv__txn__start(lock->op.etcd->client, request, &options, fn, lock,
                                     &lock->op.call);
}

static const Bow__Etcd__RangeResponse *range_of(const Bow__Etcd__TxnResponse *response, size_t i)
{
    const bool is_there =
        i < response->n_responses &&
        response->responses[i]->response_case == BOW__ETCD__RESPONSE_OP__RESPONSE_RESPONSE_RANGE;

    return is_there ? response->responses[i]->response_range : NULL;
}

static void fail_misread(struct bow_etcd_lock *lock)
{
    static const struct bow_status status = {.code = BOW_INTERNAL,
                                             .message = "etcd's answer is not what was asked for"};

    bow__etcd_op_failed(&lock->op, &status);
}

/* ENTER: put our key, unless it is there (the answer to an earlier try was lost) */

static void on_entered(struct bow_result *result, const Bow__Etcd__TxnResponse *response,
                       void *user)
{
    static const struct bow_status answered = BOW_STATUS_OK_INIT;
    struct bow_etcd_lock *lock = user;
    bool is_gone = result->status.code == BOW_NOT_FOUND; /* the lease */

    if (!bow__etcd_op_ended(&lock->op, is_gone ? &answered : &result->status)) {
        return;
    }
    if (is_gone) {
        bow__etcd_lease_lose(&lock->lease, "etcd has the lease no more");
        return;
    }
    const Bow__Etcd__RangeResponse *range = range_of(response, 0);
    if (response->succeeded && response->header != NULL) {
        lock->created = response->header->revision;
    } else if (range != NULL && range->n_kvs == 1) {
        lock->created = range->kvs[0]->create_revision;
    } else {
        fail_misread(lock);
        return;
    }
    go_to(lock, LOOK);
}

static int enter(struct bow_etcd_lock *lock)
{
    Bow__Etcd__Compare compare = BOW__ETCD__COMPARE__INIT;
    Bow__Etcd__PutRequest put = BOW__ETCD__PUT_REQUEST__INIT;
    Bow__Etcd__RangeRequest get = BOW__ETCD__RANGE_REQUEST__INIT;
    Bow__Etcd__RequestOp put_op = BOW__ETCD__REQUEST_OP__INIT;
    Bow__Etcd__RequestOp get_op = BOW__ETCD__REQUEST_OP__INIT;
    Bow__Etcd__TxnRequest request = BOW__ETCD__TXN_REQUEST__INIT;

    (void)snprintf(lock->key + lock->line_len, NUMBER_BYTES, "%" PRIx64, (uint64_t)lock->lease.id);
    compare.target = BOW__ETCD__COMPARE__COMPARE_TARGET__CREATE;
    compare.key = own_key(lock);
    compare.target_union_case = BOW__ETCD__COMPARE__TARGET_UNION_CREATE_REVISION;
    put.key = get.key = own_key(lock);
    put.value = bytes_of(lock->value, strlen(lock->value));
    put.lease = lock->lease.id;
    put_op.request_case = BOW__ETCD__REQUEST_OP__REQUEST_REQUEST_PUT;
    put_op.request_put = &put;
    get_op.request_case = BOW__ETCD__REQUEST_OP__REQUEST_REQUEST_RANGE;
    get_op.request_range = &get;
    request.n_compare = request.n_success = request.n_failure = 1;
    request.compare = (Bow__Etcd__Compare *[]){&compare};
    request.success = (Bow__Etcd__RequestOp *[]){&put_op};
    request.failure = (Bow__Etcd__RequestOp *[]){&get_op};
    return start_txn(lock, &request, on_entered);
}

/* LOOK: is our key there, and is one before it */

static int wait_for(struct bow_etcd_lock *lock, const Bow__Etcd__KeyValue *before)
{
    struct bow_context *context = lock->op.etcd->context;
    size_t size = before->key.len + 1;
    char *key = bow__alloc(context, size);

    if (key == NULL) {
        return -ENOMEM;
    }
    memcpy(key, before->key.data, before->key.len);
    bow__free(context, lock->before, lock->before_size);
    lock->before = key;
    lock->before_size = size;
    lock->before_len = before->key.len;
    go_to(lock, WAIT);
    return 0;
}

static void hold(struct bow_etcd_lock *lock)
{
    bool is_new = !lock->is_held;

    lock->is_held = true;
    go_to(lock, HELD);
    if (is_new && bow__etcd_object_listens(&lock->object)) {
        lock->events->on_acquired(lock, lock->created, lock->user);
    }
}

static void on_looked(struct bow_result *result, const Bow__Etcd__TxnResponse *response, void *user)
{
    static const struct bow_status no_memory = {.code = BOW_RESOURCE_EXHAUSTED,
                                                .message = "there is no memory for a key"};
    struct bow_etcd_lock *lock = user;

    if (!bow__etcd_op_ended(&lock->op, &result->status)) {
        return;
    }
    const Bow__Etcd__RangeResponse *own = range_of(response, 0);
    const Bow__Etcd__RangeResponse *others = range_of(response, 1);
    if (own == NULL || others == NULL || response->header == NULL) {
        fail_misread(lock);
        return;
    }
    lock->seen = response->header->revision;
    if (own->n_kvs == 0 || own->kvs[0]->create_revision != lock->created) {
        lose(lock, "its key in etcd was deleted");
        go_to(lock, ENTER);
    } else if (others->n_kvs == 0) {
        hold(lock);
    } else if (wait_for(lock, others->kvs[0]) < 0) {
        bow__etcd_op_failed(&lock->op, &no_memory);
    }
}

static int look(struct bow_etcd_lock *lock)
{
    Bow__Etcd__RangeRequest own = BOW__ETCD__RANGE_REQUEST__INIT;
    Bow__Etcd__RangeRequest others = BOW__ETCD__RANGE_REQUEST__INIT;
    Bow__Etcd__RequestOp ops[2] = {BOW__ETCD__REQUEST_OP__INIT, BOW__ETCD__REQUEST_OP__INIT};
    Bow__Etcd__TxnRequest request = BOW__ETCD__TXN_REQUEST__INIT;

    own.key = own_key(lock);
    others.key = bytes_of(lock->key, lock->line_len);
    others.range_end = bytes_of(lock->end, lock->line_len);
    others.limit = 1;
    others.sort_order = BOW__ETCD__RANGE_REQUEST__SORT_ORDER__DESCEND;
    others.sort_target = BOW__ETCD__RANGE_REQUEST__SORT_TARGET__CREATE;
    others.max_create_revision = lock->created - 1;
    others.keys_only = true;
    ops[0].request_case = ops[1].request_case = BOW__ETCD__REQUEST_OP__REQUEST_REQUEST_RANGE;
    ops[0].request_range = &own;
    ops[1].request_range = &others;
    request.n_success = 2;
    request.success = (Bow__Etcd__RequestOp *[]){&ops[0], &ops[1]};
    return start_txn(lock, &request, on_looked);
}

/* WAIT, HELD: until a key goes */

static int begin(struct bow__etcd_op *op)
{
    static const ProtobufCBinaryData one_key;
    struct bow_etcd_lock *lock = of_op(op);
    enum step step = lock->step;

    if (lock->lease.id == 0) {
        return 0; /* the next one begins it again */
    }
    if (step == ENTER) {
        return enter(lock);
    }
    if (step == LOOK) {
        return look(lock);
    }
    lock->step = LOOK; /* however the watch ends */
    return bow__etcd_op_watch(
        op, step == WAIT ? bytes_of(lock->before, lock->before_len) : own_key(lock), one_key,
        lock->seen + 1);
}

static void on_watched(struct bow__etcd_op *op, const Bow__Etcd__WatchResponse *response)
{
    for (size_t i = 0; i < response->n_events; i++) {
        if (response->events[i]->type == BOW__ETCD__EVENT__EVENT_TYPE__DELETE) {
            bow__etcd_op_reset(op); /* LOOK */
            return;
        }
    }
}

static void on_compacted(struct bow__etcd_op *op, int64_t compact_revision)
{
    (void)compact_revision;
    bow__etcd_op_go(op, 0);
}

static void on_error(struct bow__etcd_op *op, const struct bow_status *status)
{
    tell_error(of_op(op), status);
}

static void on_idle(struct bow__etcd_op *op)
{
    bow__etcd_lease_stop(&of_op(op)->lease);
}

static const struct bow__etcd_op_kind op_kind = {
    .begin = begin,
    .on_error = on_error,
    .on_idle = on_idle,
    .on_watched = on_watched,
    .on_compacted = on_compacted,
};

/* The lease */

static void on_granted(struct bow__etcd_lease *lease)
{
    go_to(of_lease(lease), ENTER);
}

static void on_lease_lost(struct bow__etcd_lease *lease, const char *why)
{
    struct bow_etcd_lock *lock = of_lease(lease);

    bow__etcd_op_reset(&lock->op);
    lose(lock, why);
}

static void on_lease_error(struct bow__etcd_lease *lease, const struct bow_status *status)
{
    tell_error(of_lease(lease), status);
}

static void on_lease_closed(struct bow__etcd_lease *lease)
{
    bow__etcd_object_close(&of_lease(lease)->object);
}

static const struct bow__etcd_lease_events lease_events = {
    .on_granted = on_granted,
    .on_lost = on_lease_lost,
    .on_error = on_lease_error,
    .on_closed = on_lease_closed,
};

/* An object's */

static void start(struct bow__etcd_object *object)
{
    bow__etcd_lease_start(&of_object(object)->lease);
}

static void stop(struct bow__etcd_object *object)
{
    bow__etcd_op_halt(&of_object(object)->op);
}

static void on_closed(struct bow__etcd_object *object)
{
    struct bow_etcd_lock *lock = of_object(object);

    if (lock->events->on_closed != NULL) {
        lock->events->on_closed(lock, lock->user);
    }
}

static void free_lock(struct bow_context *context, struct bow_etcd_lock *lock)
{
    bow__free(context, lock->before, lock->before_size);
    bow_arena_free(lock->arena);
    bow__free(context, lock, sizeof(*lock));
}

static void free_it(struct bow__etcd_object *object)
{
    free_lock(object->etcd->context, of_object(object));
}

static const struct bow__etcd_object_kind object_kind = {
    .start = start,
    .stop = stop,
    .on_closed = on_closed,
    .free = free_it,
};

/* Making */

static int fill(struct bow_etcd_lock *lock, const struct bow_etcd *etcd,
                const struct bow_etcd_lock_options *options)
{
    const char *value = options->value != NULL ? options->value : "";
    size_t value_size = strlen(value) + 1;
    size_t line_len = strlen(etcd->prefix) + strlen(options->name) + 1;

    lock->arena = bow_arena_new(etcd->context, 0);
    lock->key = bow_arena_alloc(lock->arena, line_len + NUMBER_BYTES);
    lock->end = bow_arena_alloc(lock->arena, line_len + 1);
    char *copy = bow_arena_alloc(lock->arena, value_size);
    if (lock->key == NULL || lock->end == NULL || copy == NULL) {
        return -ENOMEM;
    }
    (void)snprintf(lock->key, line_len + 1, "%s%s/", etcd->prefix, options->name);
    memcpy(lock->end, lock->key, line_len + 1);
    lock->end[line_len - 1]++;
    memcpy(copy, value, value_size);
    lock->line_len = line_len;
    lock->value = copy;
    lock->events = options->events;
    lock->user = options->user;
    return 0;
}

static int read_options(const struct bow_etcd_lock_options *given,
                        struct bow_etcd_lock_options *ret_options)
{
    int rc = bow__options_read(ret_options, sizeof(*ret_options), given);

    if (rc < 0) {
        return rc;
    }
    const struct bow_etcd_lock_events *events = ret_options->events;
    if (ret_options->name == NULL || *ret_options->name == '\0' || events == NULL ||
        events->on_acquired == NULL || events->on_lost == NULL) {
        return -EINVAL;
    }
    if (ret_options->value != NULL && strlen(ret_options->value) > BOW_LIMIT_ETCD_VALUE_BYTES) {
        return -EMSGSIZE;
    }
    ret_options->ttl_s = ret_options->ttl_s > 0 ? ret_options->ttl_s : DEFAULT_TTL_S;
    return 0;
}

int bow_etcd_lock(struct bow_etcd *etcd, const struct bow_etcd_lock_options *given,
                  struct bow_etcd_lock **ret_lock)
{
    struct bow_etcd_lock_options options;

    int rc = read_options(given, &options);
    if (rc < 0) {
        return rc;
    }
    struct bow_etcd_lock *lock = bow__alloc_zero(etcd->context, sizeof(*lock));
    if (lock == NULL) {
        return -ENOMEM;
    }
    rc = fill(lock, etcd, &options);
    if (rc == 0) {
        bow__etcd_op_init(&lock->op, &op_kind, etcd);
        bow__etcd_lease_init(&lock->lease, etcd, options.ttl_s, true, &lease_events);
        rc = bow__etcd_object_open(&lock->object, &object_kind, etcd);
    }
    if (rc < 0) {
        free_lock(etcd->context, lock);
        return rc;
    }
    *ret_lock = lock;
    return 0;
}

void bow_etcd_unlock(struct bow_etcd_lock *lock)
{
    if (lock != NULL) {
        bow__etcd_object_release(&lock->object);
    }
}
