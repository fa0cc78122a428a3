/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A server's key under a lease: put when one was granted, and again after the key or the lease was
 * lost. How a lease lives, and what the key looks like, others know.
 *
 *     PUT ──► on_registered ──► WATCH: the key is deleted ──► on_lost ──► PUT
 *      ▲                          └── compacted ──► PUT, of which nobody hears
 *      └── on_lost ◄── the lease is lost: from everywhere
 */

#include "base/alloc.h"
#include "base/options.h"
#include "etcd/core.h"
#include "etcd/endpoint.h"
#include "etcd/lease.h"
#include "etcd/rpc.bow.h"

#include <errno.h>
#include <string.h>

#define ARENA_BYTES ((size_t)1 << 20)
#define DEFAULT_TTL_S 10u

enum step { PUT, WATCH };

struct bow_etcd_registration {
    struct bow__etcd_object object;
    struct bow__etcd_lease lease;
    struct bow__etcd_op op;
    struct bow_arena *arena; /* the texts' */
    const char *service_key;
    const char *address;
    struct bow_slice value;
    int64_t put_lease; /* of the put that is under way */
    enum step step;
    int64_t seen;       /* the revision of the put, and of what the watch has told since */
    bool is_registered; /* on_registered was told, on_lost not */
    bool has_failed;    /* the watch, and that was told */
    const struct bow_etcd_registration_events *events;
    void *user;
};

static const struct bow_etcd_registration_events no_events;

static struct bow_etcd_registration *of_object(struct bow__etcd_object *object)
{
    return BOW__CONTAINER(object, struct bow_etcd_registration, object);
}

static struct bow_etcd_registration *of_op(struct bow__etcd_op *op)
{
    return BOW__CONTAINER(op, struct bow_etcd_registration, op);
}

static struct bow_etcd_registration *of_lease(struct bow__etcd_lease *lease)
{
    return BOW__CONTAINER(lease, struct bow_etcd_registration, lease);
}

static void tell_error(struct bow_etcd_registration *registration, const struct bow_status *status)
{
    if (registration->events->on_error != NULL && bow__etcd_object_listens(&registration->object)) {
        registration->events->on_error(registration, status, registration->user);
    }
}

static void tell_lost(struct bow_etcd_registration *registration, const char *why)
{
    bool was_registered = registration->is_registered;

    registration->is_registered = false;
    registration->step = PUT;
    if (was_registered && registration->events->on_lost != NULL &&
        bow__etcd_object_listens(&registration->object)) {
        registration->events->on_lost(registration, why, registration->user);
    }
}

/* PUT */

static void on_put(struct bow_result *result, const Bow__Etcd__PutResponse *response, void *user)
{
    static const struct bow_status answered = BOW_STATUS_OK_INIT;
    struct bow_etcd_registration *registration = user;
    bool is_gone = result->status.code == BOW_NOT_FOUND; /* the lease */

    if (!bow__etcd_op_ended(&registration->op, is_gone ? &answered : &result->status)) {
        return;
    }
    if (is_gone) {
        bow__etcd_lease_lose(&registration->lease, "etcd has the lease no more");
        return;
    }
    bool is_news = !registration->is_registered;
    registration->is_registered = true;
    registration->step = WATCH;
    registration->seen = response->header != NULL ? response->header->revision : 0;
    bow__etcd_op_go(&registration->op, 0);
    if (is_news && registration->events->on_registered != NULL &&
        bow__etcd_object_listens(&registration->object)) {
        registration->events->on_registered(registration, registration->put_lease,
                                            registration->user);
    }
}

static int put(struct bow_etcd_registration *registration, ProtobufCBinaryData key)
{
    struct bow__etcd_op *op = &registration->op;
    Bow__Etcd__PutRequest request = BOW__ETCD__PUT_REQUEST__INIT;
    struct bow_call_options options = bow__etcd_op_options(op, false);

    request.key = key;
    request.value = (ProtobufCBinaryData){registration->value.len,
                                          (uint8_t *)(uintptr_t)registration->value.data};
    request.lease = registration->put_lease = registration->lease.id;
    return bow__etcd__kv__put__start(op->etcd->client, &request, &options, on_put, registration,
                                     &op->call);
}

/* WATCH */

static void on_watched(struct bow__etcd_op *op, const Bow__Etcd__WatchResponse *response)
{
    struct bow_etcd_registration *registration = of_op(op);

    registration->has_failed = false;
    for (size_t i = 0; i < response->n_events; i++) {
        if (response->events[i]->type == BOW__ETCD__EVENT__EVENT_TYPE__DELETE) {
            bow__etcd_op_reset(op); /* PUT; where the lease has ended, that says so */
            tell_lost(registration, "its key in etcd was deleted");
            return;
        }
    }
    if (!response->created && response->n_events == 0 && response->header != NULL &&
        response->header->revision > registration->seen) {
        registration->seen = response->header->revision; /* so far there is nothing to miss */
    }
}

static void on_compacted(struct bow__etcd_op *op, int64_t compact_revision)
{
    (void)compact_revision;
    of_op(op)->step = PUT; /* whether it was deleted nobody knows any more */
    bow__etcd_op_go(op, 0);
}

/* Both */

static int begin(struct bow__etcd_op *op)
{
    static const ProtobufCBinaryData one_key;
    struct bow_etcd_registration *registration = of_op(op);

    if (registration->lease.id == 0) {
        return 0; /* the next one begins it again */
    }
    struct bow_arena *arena = bow_arena_new(op->etcd->context, 0);
    const char *text = bow__etcd_server_key(arena, op->etcd->layout, registration->service_key,
                                            registration->address, registration->lease.id);
    int rc = -ENOMEM;
    if (text != NULL) {
        const ProtobufCBinaryData key = {strlen(text), (uint8_t *)(uintptr_t)text};
        rc = registration->step == PUT
                 ? put(registration, key)
                 : bow__etcd_op_watch(op, key, one_key, registration->seen + 1);
    }
    bow_arena_free(arena);
    return rc;
}

/* The watch, which the server is found without, is told of once until it is answered again: a user
 * may be allowed to write and not to read. */
static void on_error(struct bow__etcd_op *op, const struct bow_status *status)
{
    struct bow_etcd_registration *registration = of_op(op);
    bool is_told = registration->step == WATCH && registration->has_failed;

    registration->has_failed = registration->step == WATCH;
    if (!is_told) {
        tell_error(registration, status);
    }
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
    bow__etcd_op_go(&of_lease(lease)->op, 0);
}

static void on_lost(struct bow__etcd_lease *lease, const char *why)
{
    struct bow_etcd_registration *registration = of_lease(lease);

    bow__etcd_op_reset(&registration->op);
    tell_lost(registration, why);
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
    .on_lost = on_lost,
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
    struct bow_etcd_registration *registration = of_object(object);

    if (registration->events->on_closed != NULL) {
        registration->events->on_closed(registration, registration->user);
    }
}

static void free_registration(struct bow_context *context,
                              struct bow_etcd_registration *registration)
{
    bow_arena_free(registration->arena);
    bow__free(context, registration, sizeof(*registration));
}

static void free_it(struct bow__etcd_object *object)
{
    free_registration(object->etcd->context, of_object(object));
}

static const struct bow__etcd_object_kind object_kind = {
    .start = start,
    .stop = stop,
    .on_closed = on_closed,
    .free = free_it,
};

/* Making */

static bool is_everywhere(const char *address)
{
    return strncmp(address, "0.0.0.0:", 8) == 0 || strncmp(address, "[::]:", 5) == 0 ||
           strncmp(address, "[::0]:", 6) == 0;
}

static bool are_good(const struct bow_etcd_registration_options *options)
{
    for (size_t i = 0; i < options->n_attributes; i++) {
        if (options->attributes[i].key == NULL || options->attributes[i].value == NULL) {
            return false;
        }
    }
    return true;
}

static bool has_metadata(const struct bow_etcd_registration_options *options)
{
    return options->weight != 0 || options->locality != NULL || options->version != NULL ||
           options->n_attributes > 0;
}

static int read_options(const struct bow_etcd *etcd,
                        const struct bow_etcd_registration_options *given,
                        struct bow_etcd_registration_options *ret_options)
{
    int rc = bow__options_read(ret_options, sizeof(*ret_options), given);

    if (rc < 0) {
        return rc;
    }
    if (ret_options->service == NULL || *ret_options->service == '\0' ||
        ret_options->address == NULL || !bow__etcd_is_address(ret_options->address) ||
        is_everywhere(ret_options->address) || !are_good(ret_options)) {
        return -EINVAL;
    }
    if (etcd->layout == BOW_ETCD_LAYOUT_GO_ZERO && has_metadata(ret_options)) {
        return -EINVAL; /* it has no place for that */
    }
    ret_options->ttl_s = ret_options->ttl_s > 0 ? ret_options->ttl_s : DEFAULT_TTL_S;
    return 0;
}

static int fill(struct bow_etcd_registration *registration, const struct bow_etcd *etcd,
                const struct bow_etcd_registration_options *options)
{
    struct bow_arena *arena = registration->arena = bow_arena_new(etcd->context, ARENA_BYTES);
    size_t size = strlen(options->address) + 1;
    struct bow_etcd_registration_options mine = *options;
    char *address = bow_arena_alloc(arena, size);

    registration->service_key = bow__etcd_service_key(arena, etcd->prefix, options->service);
    if (address == NULL || registration->service_key == NULL) {
        return -ENOMEM;
    }
    memcpy(address, options->address, size);
    registration->address = mine.address = address;
    registration->events = options->events != NULL ? options->events : &no_events;
    registration->user = options->user;
    return bow__etcd_server_value(arena, etcd->layout, &mine, &registration->value);
}

int bow_etcd_register(struct bow_etcd *etcd, const struct bow_etcd_registration_options *given,
                      struct bow_etcd_registration **ret_registration)
{
    struct bow_etcd_registration_options options;

    int rc = read_options(etcd, given, &options);
    if (rc < 0) {
        return rc;
    }
    struct bow_etcd_registration *registration =
        bow__alloc_zero(etcd->context, sizeof(*registration));
    if (registration == NULL) {
        return -ENOMEM;
    }
    rc = fill(registration, etcd, &options);
    if (rc == 0) {
        bow__etcd_op_init(&registration->op, &op_kind, etcd);
        bow__etcd_lease_init(&registration->lease, etcd, options.ttl_s, false, &lease_events);
        rc = bow__etcd_object_open(&registration->object, &object_kind, etcd);
    }
    if (rc < 0) {
        free_registration(etcd->context, registration);
        return rc;
    }
    *ret_registration = registration;
    return 0;
}

void bow_etcd_unregister(struct bow_etcd_registration *registration)
{
    if (registration != NULL) {
        bow__etcd_object_release(&registration->object);
    }
}
