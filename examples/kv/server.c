/* SPDX-License-Identifier: 0BSD */
/* Keys and values with watch: each watcher is told what it has not seen yet, as fast as it reads,
 * and costs no more than its place in the store's order. Usage: kv-server [ADDRESS] */

#include "kv.bow.h"
#include "store.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

struct service;

struct watcher {
    struct watcher *next;
    struct service *service;
    struct demo__kv__watch__call call;
    const char *prefix; /* the call's memory, as the watcher is */
    uint64_t seen;      /* the last revision that was sent or is not for us */
};

struct service {
    struct store store;
    struct watcher *watchers;
    bool is_stopping;
};

static Demo__Entry as_message(const struct entry *entry)
{
    Demo__Entry message = DEMO__ENTRY__INIT;

    message.key = entry->key;
    message.value = entry->value;
    message.revision = entry->revision;
    return message;
}

static void tell(struct watcher *watcher)
{
    struct entry *entry = store_after(&watcher->service->store, watcher->seen);

    for (; entry != NULL; entry = entry->newer) {
        Demo__Entry message = as_message(entry);
        bool is_watched = strncmp(entry->key, watcher->prefix, strlen(watcher->prefix)) == 0;
        int rc = is_watched ? demo__kv__watch__send(watcher->call, &message) : 0;
        if (rc == -EAGAIN) {
            return; /* it reads slowly: on_writable goes on here */
        }
        if (rc < 0) {
            bow_call_fail(watcher->call.call, BOW_RESOURCE_EXHAUSTED, "no memory for a change");
            return; /* on_closed follows, later */
        }
        watcher->seen = entry->revision;
    }
}

static void on_writable(struct demo__kv__watch__call call, void *user)
{
    (void)call;
    tell(user);
}

static void on_closed(struct demo__kv__watch__call call, const struct bow_status *status,
                      void *user)
{
    struct watcher *gone = user;
    struct watcher **at = &gone->service->watchers;

    (void)call;
    (void)status;
    while (*at != gone) {
        at = &(*at)->next;
    }
    *at = gone->next;
}

static void watch(struct demo__kv__watch__call call, const Demo__WatchRequest *request, void *user)
{
    static const struct demo__kv__watch__call_events events = {
        .on_writable = on_writable,
        .on_closed = on_closed,
    };
    struct service *service = user;
    struct watcher *watcher = bow_call_alloc(call.call, sizeof(*watcher));
    char *prefix = bow_call_printf(call.call, "%s", request->prefix);

    if (service->is_stopping) {
        bow_call_fail(call.call, BOW_UNAVAILABLE, "the server is about to end");
        return;
    }
    if (watcher == NULL || prefix == NULL) {
        bow_call_fail(call.call, BOW_RESOURCE_EXHAUSTED, "no memory for one more watcher");
        return;
    }
    *watcher = (struct watcher){service->watchers, service, call, prefix, request->after_revision};
    service->watchers = watcher;
    demo__kv__watch__listen(call, &events, watcher);
    tell(watcher);
}

static void get(struct bow_call *call, const Demo__Key *request, void *user)
{
    struct service *service = user;
    struct entry *entry = store_find(&service->store, request->key);

    if (entry == NULL) {
        bow_call_fail(call, BOW_NOT_FOUND, "there is no key '%s'", request->key);
        return;
    }
    Demo__Entry reply = as_message(entry);
    demo__kv__get__reply(call, &reply);
}

static void put(struct bow_call *call, const Demo__Entry *request, void *user)
{
    struct service *service = user;
    struct entry *entry = store_put(&service->store, request->key, request->value);

    if (entry == NULL) {
        bow_call_fail(call, BOW_RESOURCE_EXHAUSTED, "the store is full: it takes %d keys",
                      STORE_MAX_ENTRIES);
        return;
    }
    Demo__Entry reply = as_message(entry);
    demo__kv__put__reply(call, &reply);
    for (struct watcher *watcher = service->watchers; watcher != NULL; watcher = watcher->next) {
        tell(watcher);
    }
}

static void on_started(struct bow_server *server, void *user)
{
    (void)user;
    printf("listening on port %u\n", bow_server_port(server));
    fflush(stdout);
}

/* Watches would go on for ever: their clients look for the next server. */
static void on_stopping(struct bow_server *server, void *user)
{
    struct service *service = user;

    (void)server;
    service->is_stopping = true;
    for (struct watcher *watcher = service->watchers; watcher != NULL; watcher = watcher->next) {
        bow_call_fail(watcher->call.call, BOW_UNAVAILABLE, "the server is about to end");
    }
}

int main(int argc, char **argv)
{
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct demo__kv__handlers handlers = {.get = get, .put = put, .watch = watch};
    struct service service = {.watchers = NULL};
    struct bow_server *server;

    options.listen = argc > 1 ? argv[1] : "127.0.0.1:50053";
    options.on_started = on_started;
    options.on_stopping = on_stopping;
    options.stopping_user = &service;
    if (bow_server_new(&options, &server) != 0) {
        fprintf(stderr, "kv-server: out of memory\n");
        return 1;
    }
    int rc = demo__kv__serve(server, &handlers, &service);
    if (rc == 0) {
        rc = bow_server_run(server);
    }
    if (rc != 0) {
        fprintf(stderr, "kv-server: %s\n", bow_server_error(server));
    }
    bow_server_free(server);
    store_clear(&service.store);
    return rc != 0;
}
