/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A service's servers. See the header.
 *
 * Design. `servers` is what is told, in the order of keys; while pages are read the new ones are in
 * `read`, and take its place at once. A revision of etcd is one transaction and may have several
 * changes, which come in one response, or in several that are fragments but for the last. So far as
 * the last whole one goes (`revision`), a lost stream is asked for what comes after; changes that
 * come twice then mean the same. Nothing is told between fragments.
 */

#include "etcd/service.h"
#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"
#include "etcd/core.h"
#include "etcd/endpoint.h"
#include "etcd/rpc.bow.h"
#include <bowline/limits.h>

#include <errno.h>
#include <string.h>

#define PAGE_KEYS 256
#define KEY_TEXT_BYTES 100u

struct servers {
    struct bow__etcd_endpoint **list; /* in the order of keys */
    size_t n;
    size_t capacity;
};

struct bow__etcd_service {
    struct bow_etcd *etcd; /* a reference */
    struct bow__link link; /* in etcd->services, while somebody watches */
    struct bow__etcd_op op;
    struct bow__link watchers;
    struct bow_timer tell; /* those who were not told yet */
    char *name;
    struct bow_arena *arena; /* both keys' */
    struct bow_slice key;
    struct bow_slice end;
    struct servers servers;
    struct servers read;
    struct bow_slice
        next; /* key of the next page; NULL: the first. Lies in `read` or `next_text` */
    char *next_text;
    size_t next_size;
    int64_t read_revision; /* of the pages */
    int64_t revision;      /* 0: nothing is known */
    bool is_listed;        /* watch, do not read */
    bool is_full;          /* a key of the pages was left out, and so are further ones */
    bool has_changed;
    bool has_failed; /* and told so */
    struct bow__text error;
};

static struct bow__etcd_service *service_of(struct bow__etcd_op *op)
{
    return BOW__CONTAINER(op, struct bow__etcd_service, op);
}

static struct bow_slice slice_of(ProtobufCBinaryData bytes)
{
    return (struct bow_slice){bytes.data, bytes.len};
}

static ProtobufCBinaryData bytes_of(struct bow_slice slice)
{
    return (ProtobufCBinaryData){slice.len, (uint8_t *)(uintptr_t)slice.data};
}

/* Servers in order */

static int compare(struct bow_slice a, struct bow_slice b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len > 0 ? memcmp(a.data, b.data, len) : 0;

    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

/* Where it is, or would be. */
static size_t find(const struct servers *servers, struct bow_slice key, bool *ret_found)
{
    size_t low = 0;
    size_t high = servers->n;

    *ret_found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare(servers->list[middle]->key, key);
        if (order == 0) {
            *ret_found = true;
            return middle;
        }
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    return low;
}

static bool drop_at(struct servers *servers, struct bow_slice key)
{
    bool is_there;
    size_t i = find(servers, key, &is_there);

    if (is_there) {
        bow__etcd_endpoint_free(servers->list[i]);
        servers->n--;
        memmove(&servers->list[i], &servers->list[i + 1],
                (servers->n - i) * sizeof(*servers->list));
    }
    return is_there;
}

static int grow(struct bow_context *context, struct servers *servers)
{
    size_t capacity = servers->capacity == 0 ? 16 : 2 * servers->capacity;
    struct bow__etcd_endpoint **list = bow__alloc_array(context, capacity, sizeof(*list));

    if (list == NULL) {
        return -ENOMEM;
    }
    if (servers->n > 0) {
        memcpy(list, servers->list, servers->n * sizeof(*list));
    }
    bow__free(context, servers->list, servers->capacity * sizeof(*list));
    servers->list = list;
    servers->capacity = capacity;
    return 0;
}

/* Takes `endpoint` on success. Returns 0; -ENOMEM; -ENOSPC when there are too many. */
static int set(struct bow_context *context, struct servers *servers,
               struct bow__etcd_endpoint *endpoint)
{
    bool is_there;
    size_t i = find(servers, endpoint->key, &is_there);

    if (is_there) {
        bow__etcd_endpoint_free(servers->list[i]);
        servers->list[i] = endpoint;
        return 0;
    }
    if (servers->n >= BOW_LIMIT_ETCD_SERVERS) {
        return -ENOSPC;
    }
    if (servers->n == servers->capacity && grow(context, servers) < 0) {
        return -ENOMEM;
    }
    memmove(&servers->list[i + 1], &servers->list[i], (servers->n - i) * sizeof(*servers->list));
    servers->list[i] = endpoint;
    servers->n++;
    return 0;
}

static void clear(struct bow_context *context, struct servers *servers)
{
    for (size_t i = 0; i < servers->n; i++) {
        bow__etcd_endpoint_free(servers->list[i]);
    }
    bow__free(context, servers->list, servers->capacity * sizeof(*servers->list));
    *servers = (struct servers){.n = 0};
}

/* What is left out, for people. */
static void log_left_out(struct bow__etcd_service *service, struct bow_slice key, int error)
{
    struct bow_etcd *etcd = service->etcd;
    struct bow__text text;

    if (!bow__log_is_due(&etcd->log_due_ns, bow_loop_now(etcd->loop))) {
        return;
    }
    bow__text_clear(&text);
    bow__text_escape(&text, key, KEY_TEXT_BYTES);
    if (error == -ENOSPC) {
        bow__log(etcd->context, BOW_LOG_WARNING,
                 "servers in etcd: %s is left out, there are more than BOW_LIMIT_ETCD_SERVERS (%u)",
                 text.bytes, BOW_LIMIT_ETCD_SERVERS);
    } else if (error == -EMSGSIZE) {
        bow__log(etcd->context, BOW_LOG_WARNING,
                 "servers in etcd: %s is left out, its value is longer than "
                 "BOW_LIMIT_ETCD_VALUE_BYTES (%zu)",
                 text.bytes, BOW_LIMIT_ETCD_VALUE_BYTES);
    } else {
        bow__log(etcd->context, BOW_LOG_WARNING,
                 "servers in etcd: %s is left out, its value is no server of options.layout",
                 text.bytes);
    }
}

/* A key as it is now. Returns 0 or -ENOMEM. */
static int take(struct bow__etcd_service *service, struct servers *servers,
                const Bow__Etcd__KeyValue *kv)
{
    struct bow_etcd *etcd = service->etcd;
    struct bow__etcd_endpoint *endpoint = NULL;

    int rc = bow__etcd_endpoint_read(etcd->context, etcd->layout, slice_of(kv->key),
                                     slice_of(kv->value), &endpoint);
    if (rc == -EBADMSG || rc == -EMSGSIZE) {
        log_left_out(service, slice_of(kv->key), rc);
        (void)drop_at(servers, slice_of(kv->key)); /* it is none any more */
        return 0;
    }
    rc = rc == 0 ? set(etcd->context, servers, endpoint) : rc;
    if (rc == -ENOSPC) {
        service->is_full = true;
        log_left_out(service, slice_of(kv->key), rc);
    }
    if (rc < 0) {
        bow__etcd_endpoint_free(endpoint);
    }
    return rc == -ENOSPC ? 0 : rc;
}

/* Telling */

static void tell_one(struct bow__etcd_watcher *watcher, const struct bow_etcd_update *update)
{
    watcher->is_told = true;
    watcher->on_update(watcher, update);
}

/* Nobody leaves, and nobody joins, inside an update. */
static void tell(struct bow__etcd_service *service, bool is_for_all)
{
    struct bow_context *context = service->etcd->context;
    size_t n = service->servers.n;
    struct bow_etcd_server *servers =
        bow__alloc_array(context, n > 0 ? n : 1, sizeof(struct bow_etcd_server));
    struct bow_etcd_update update = {
        .size = sizeof(update),
        .servers = servers,
        .n_servers = servers != NULL ? n : 0,
        .error = service->has_failed ? service->error.bytes : NULL,
        .revision = service->revision,
    };

    if (servers == NULL) {
        bow_timer_start(&service->tell, service->etcd->backoff_min_ns);
        service->has_changed = true;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        servers[i] = service->servers.list[i]->server;
    }
    service->has_changed = service->has_changed && !is_for_all;
    for (struct bow__link *link = service->watchers.next; link != &service->watchers;
         link = link->next) {
        struct bow__etcd_watcher *watcher = BOW__CONTAINER(link, struct bow__etcd_watcher, link);
        if (is_for_all || !watcher->is_told) {
            tell_one(watcher, &update);
        }
    }
    bow__free(context, servers, (n > 0 ? n : 1) * sizeof(*servers));
}

static void on_tell(struct bow_timer *timer, void *user)
{
    struct bow__etcd_service *service = user;

    (void)timer;
    if (service->revision != 0 || service->has_failed) {
        tell(service, service->has_changed);
    }
}

/* All is known, and followed. */
static void tell_if_new(struct bow__etcd_service *service)
{
    if (service->has_changed || service->has_failed) {
        service->has_failed = false;
        tell(service, true);
    }
}

/* Reading pages */

/* The next thing to ask for is the first page. */
static void forget_pages(struct bow__etcd_service *service)
{
    clear(service->etcd->context, &service->read);
    service->next = service->key;
    service->read_revision = 0;
    service->is_listed = false;
    service->is_full = false;
}

static void read_anew(struct bow__etcd_service *service)
{
    forget_pages(service);
    bow__etcd_op_go(&service->op, 0);
}

static int set_next(struct bow__etcd_service *service, ProtobufCBinaryData last)
{
    struct bow_context *context = service->etcd->context;
    char *text = bow__alloc(context, last.len + 1);

    if (text == NULL) {
        return -ENOMEM;
    }
    memcpy(text, last.data, last.len);
    text[last.len] = '\0'; /* the first key that is greater */
    bow__free(context, service->next_text, service->next_size);
    service->next_text = text;
    service->next_size = last.len + 1;
    service->next = (struct bow_slice){(const uint8_t *)text, last.len + 1};
    return 0;
}

static int take_page(struct bow__etcd_service *service, const Bow__Etcd__RangeResponse *page)
{
    int rc = 0;

    for (size_t i = 0; i < page->n_kvs && rc == 0; i++) {
        rc = take(service, &service->read, page->kvs[i]);
    }
    if (service->read_revision == 0) {
        service->read_revision = page->header != NULL ? page->header->revision : 1;
    }
    return rc;
}

static void end_pages(struct bow__etcd_service *service)
{
    clear(service->etcd->context, &service->servers);
    service->servers = service->read;
    service->read = (struct servers){.n = 0};
    service->revision = service->read_revision;
    service->is_listed = true;
    service->has_changed = true;
    bow__etcd_op_go(&service->op, 0);
    tell_if_new(service);
}

static void fail_without_memory(struct bow__etcd_service *service)
{
    static const struct bow_status status = {.code = BOW_RESOURCE_EXHAUSTED,
                                             .message = "there is no memory for the servers"};

    forget_pages(service);
    bow__etcd_op_failed(&service->op, &status);
}

static void on_page(struct bow_result *result, const Bow__Etcd__RangeResponse *page, void *user)
{
    static const struct bow_status answered = BOW_STATUS_OK_INIT;
    struct bow__etcd_service *service = user;
    bool is_forgotten = result->status.code == BOW_OUT_OF_RANGE; /* compacted between pages */

    if (!bow__etcd_op_ended(&service->op, is_forgotten ? &answered : &result->status)) {
        return;
    }
    if (is_forgotten) {
        read_anew(service);
        return;
    }
    bool has_more = page->more && page->n_kvs > 0;
    int rc = take_page(service, page);
    has_more = has_more && !service->is_full;
    if (rc == 0 && has_more) {
        rc = set_next(service, page->kvs[page->n_kvs - 1]->key);
    }
    if (rc < 0) {
        fail_without_memory(service);
    } else if (has_more) {
        bow__etcd_op_go(&service->op, 0);
    } else {
        end_pages(service);
    }
}

static int ask_page(struct bow__etcd_service *service)
{
    Bow__Etcd__RangeRequest request = BOW__ETCD__RANGE_REQUEST__INIT;
    struct bow_call_options options = bow__etcd_op_options(&service->op, false);

    request.key = bytes_of(service->next);
    request.range_end = bytes_of(service->end);
    request.limit = PAGE_KEYS;
    request.revision = service->read_revision;
    return bow__etcd__kv__range__start(service->etcd->client, &request, &options, on_page, service,
                                       &service->op.call);
}

/* Watching */

static int take_event(struct bow__etcd_service *service, const Bow__Etcd__Event *event)
{
    if (event->kv == NULL) {
        return 0;
    }
    if (event->type == BOW__ETCD__EVENT__EVENT_TYPE__DELETE) {
        service->has_changed |= drop_at(&service->servers, slice_of(event->kv->key));
        return 0;
    }
    service->has_changed = true;
    return take(service, &service->servers, event->kv);
}

static void on_watched(struct bow__etcd_op *op, const Bow__Etcd__WatchResponse *response)
{
    struct bow__etcd_service *service = service_of(op);
    int64_t revision = response->header != NULL ? response->header->revision : 0;

    for (size_t i = 0; i < response->n_events; i++) {
        if (take_event(service, response->events[i]) < 0) {
            /* What is known has a hole: read it again. */
            forget_pages(service);
            bow__etcd_op_cancel(op, BOW_RESOURCE_EXHAUSTED, "there is no memory for a server");
            return;
        }
        revision =
            response->events[i]->kv != NULL ? response->events[i]->kv->mod_revision : revision;
    }
    if (response->fragment) {
        return;
    }
    /* Without changes it says how far etcd is, but at the beginning: that may be behind. */
    if (!response->created && revision > service->revision) {
        service->revision = revision;
    }
    tell_if_new(service);
}

static void on_compacted(struct bow__etcd_op *op, int64_t compact_revision)
{
    (void)compact_revision;
    read_anew(service_of(op));
}

static int begin(struct bow__etcd_op *op)
{
    struct bow__etcd_service *service = service_of(op);

    if (!service->is_listed) {
        return ask_page(service);
    }
    return bow__etcd_op_watch(op, bytes_of(service->key), bytes_of(service->end),
                              service->revision + 1);
}

static void on_error(struct bow__etcd_op *op, const struct bow_status *status)
{
    struct bow__etcd_service *service = service_of(op);
    struct bow__text before = service->error;

    if (status->code == BOW_OUT_OF_RANGE || status->code == BOW_INVALID_ARGUMENT) {
        forget_pages(service); /* etcd is another, or an older one of itself */
    }
    bow__text_clear(&service->error);
    bow__text_printf(&service->error, "asking etcd at %s for %s: %s: ", service->etcd->target,
                     service->name, bow_code_name(status->code));
    bow__text_escape(&service->error,
                     (struct bow_slice){(const uint8_t *)status->message, strlen(status->message)},
                     300);
    bool is_news = !service->has_failed || strcmp(before.bytes, service->error.bytes) != 0;
    service->has_failed = true;
    if (is_news) {
        tell(service, true);
    }
}

/* Life */

static void free_it(struct bow__etcd_service *service)
{
    struct bow_etcd *etcd = service->etcd;

    bow_timer_stop(&service->tell);
    clear(etcd->context, &service->servers);
    clear(etcd->context, &service->read);
    bow__free(etcd->context, service->next_text, service->next_size);
    if (service->name != NULL) {
        bow__free(etcd->context, service->name, strlen(service->name) + 1);
    }
    bow_arena_free(service->arena);
    bow__free(etcd->context, service, sizeof(*service));
    bow_etcd_unref(etcd);
}

static void on_idle(struct bow__etcd_op *op)
{
    free_it(service_of(op));
}

static const struct bow__etcd_op_kind kind = {
    .begin = begin,
    .on_error = on_error,
    .on_idle = on_idle,
    .on_watched = on_watched,
    .on_compacted = on_compacted,
};

/* Keys below "a/" end before "a0". */
static int make_keys(struct bow__etcd_service *service, const char *name)
{
    const char *prefix = service->etcd->prefix;

    service->arena = bow_arena_new(service->etcd->context, 0);
    const char *key = bow__etcd_service_key(service->arena, prefix, name);
    char *end = (char *)(uintptr_t)bow__etcd_service_key(service->arena, prefix, name);
    service->name = bow__dup(service->etcd->context, name, strlen(name));
    if (key == NULL || end == NULL || service->name == NULL) {
        return -ENOMEM;
    }
    size_t len = strlen(key);
    end[len - 1]++;
    service->key = (struct bow_slice){(const uint8_t *)key, len};
    service->end = (struct bow_slice){(const uint8_t *)end, len};
    service->next = service->key;
    return 0;
}

static struct bow__etcd_service *make(struct bow_etcd *etcd, const char *name)
{
    struct bow__etcd_service *service = bow__alloc_zero(etcd->context, sizeof(*service));

    if (service == NULL) {
        return NULL;
    }
    service->etcd = bow_etcd_ref(etcd);
    bow__list_init(&service->watchers);
    bow__etcd_op_init(&service->op, &kind, etcd);
    bow_timer_init(&service->tell, etcd->loop, on_tell, service);
    bow__text_clear(&service->error);
    if (make_keys(service, name) < 0) {
        free_it(service);
        return NULL;
    }
    bow__list_push_back(&etcd->services, &service->link);
    bow__etcd_op_go(&service->op, 0);
    return service;
}

static struct bow__etcd_service *find_service(const struct bow_etcd *etcd, const char *name)
{
    for (struct bow__link *link = etcd->services.next; link != &etcd->services; link = link->next) {
        struct bow__etcd_service *service = BOW__CONTAINER(link, struct bow__etcd_service, link);
        if (strcmp(service->name, name) == 0) {
            return service;
        }
    }
    return NULL;
}

int bow__etcd_service_join(struct bow_etcd *etcd, const char *name,
                           struct bow__etcd_watcher *watcher)
{
    struct bow__etcd_service *service = find_service(etcd, name);

    service = service != NULL ? service : make(etcd, name);
    if (service == NULL) {
        return -ENOMEM;
    }
    watcher->service = service;
    bow__list_push_back(&service->watchers, &watcher->link);
    bow_timer_start(&service->tell, 0);
    return 0;
}

void bow__etcd_service_again(struct bow__etcd_watcher *watcher)
{
    struct bow__etcd_service *service = watcher->service;

    watcher->is_told = false;
    bow_timer_start(&service->tell, service->etcd->backoff_min_ns);
}

void bow__etcd_service_leave(struct bow__etcd_watcher *watcher)
{
    struct bow__etcd_service *service = watcher->service;

    if (service == NULL) {
        return;
    }
    watcher->service = NULL;
    bow__list_remove(&watcher->link);
    if (bow__list_is_empty(&service->watchers)) {
        bow__list_remove(&service->link);
        bow_timer_stop(&service->tell);
        bow__etcd_op_halt(&service->op);
    }
}
