/* SPDX-License-Identifier: 0BSD */
/*
 * Owns the server and who watches. A watcher is the revision that it was sent: one that reads
 * slowly has nothing queued for it, and gets the last state when it goes on.
 */

#include "plugin.h"
#include <bowline/server.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

/* For streams of a kubelet that goes on although it has removed the socket, or comes late. */
#define GRACE_NS UINT64_C(1000000000)

struct watcher {
    struct watcher *next;
    struct plugin *plugin;
    struct v1beta1__device_plugin__list_and_watch__call call;
    uint64_t sent; /* revision of the devices; 0: none yet */
};

static int send_devices(struct watcher *watcher)
{
    const struct devices *devices = watcher->plugin->devices;
    V1beta1__ListAndWatchResponse response = V1BETA1__LIST_AND_WATCH_RESPONSE__INIT;
    V1beta1__Device messages[DEVICES_MAX];
    V1beta1__Device *pointers[DEVICES_MAX];

    for (size_t i = 0; i < devices->n; i++) {
        messages[i] = (V1beta1__Device)V1BETA1__DEVICE__INIT;
        messages[i].id = (char *)devices->all[i].id;
        messages[i].health = devices->all[i].healthy ? "Healthy" : "Unhealthy";
        pointers[i] = &messages[i];
    }
    response.n_devices = devices->n;
    response.devices = pointers;
    return v1beta1__device_plugin__list_and_watch__send(watcher->call, &response);
}

static void tell(struct watcher *watcher)
{
    uint64_t revision = watcher->plugin->devices->revision;
    int rc = watcher->sent != revision ? send_devices(watcher) : 0;

    if (rc == 0) {
        watcher->sent = revision;
    } else if (rc != -EAGAIN) { /* of that one on_writable goes on */
        bow_call_fail(watcher->call.call, BOW_RESOURCE_EXHAUSTED, "no memory for the devices");
    }
}

static void on_writable(struct v1beta1__device_plugin__list_and_watch__call call, void *user)
{
    (void)call;
    tell(user);
}

static void on_closed(struct v1beta1__device_plugin__list_and_watch__call call,
                      const struct bow_status *status, void *user)
{
    struct watcher *gone = user;
    struct watcher **at = &gone->plugin->watchers;

    (void)call;
    (void)status;
    while (*at != gone) {
        at = &(*at)->next;
    }
    *at = gone->next;
}

static void on_list_and_watch(struct v1beta1__device_plugin__list_and_watch__call call,
                              const V1beta1__Empty *request, void *user)
{
    static const struct v1beta1__device_plugin__list_and_watch__call_events events = {
        .on_writable = on_writable,
        .on_closed = on_closed,
    };
    struct plugin *plugin = user;
    struct watcher *watcher = bow_call_alloc(call.call, sizeof(*watcher));

    (void)request;
    if (watcher == NULL) {
        bow_call_fail(call.call, BOW_RESOURCE_EXHAUSTED, "no memory for one more");
        return;
    }
    *watcher = (struct watcher){.next = plugin->watchers, .plugin = plugin, .call = call};
    plugin->watchers = watcher;
    v1beta1__device_plugin__list_and_watch__listen(call, &events, watcher);
    tell(watcher);
}

static void on_options(struct bow_call *call, const V1beta1__Empty *request, void *user)
{
    V1beta1__DevicePluginOptions reply = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;

    (void)request;
    (void)user;
    v1beta1__device_plugin__get_device_plugin_options__reply(call, &reply);
}

static void on_allocate(struct bow_call *call, const V1beta1__AllocateRequest *request, void *user)
{
    const struct plugin *plugin = user;

    allocate(call, request, plugin->devices, &plugin->allocate);
}

static int make_server(struct plugin *plugin)
{
    /* Those that are left out answer UNIMPLEMENTED; the options say that nobody need call them. */
    const struct v1beta1__device_plugin__handlers handlers = {
        .get_device_plugin_options = on_options,
        .list_and_watch = on_list_and_watch,
        .allocate = on_allocate,
    };
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    char address[256];

    snprintf(address, sizeof(address), "unix:%s", plugin->socket);
    options.context = plugin->context;
    options.loop = plugin->loop;
    options.listen = address;
    options.unix_mode = 0600; /* kubelet is root, as this is */
    options.grace_ns = GRACE_NS;
    int rc = bow_server_new(&options, &plugin->server);
    if (rc == 0) {
        rc = v1beta1__device_plugin__serve(plugin->server, &handlers, plugin);
    }
    return rc == 0 ? bow_server_start(plugin->server) : rc;
}

int plugin_listen(struct plugin *plugin)
{
    bow_server_free(plugin->server); /* on its own loop: it ends in later turns, beside the next */
    plugin->server = NULL;
    int rc = make_server(plugin);
    if (rc < 0) {
        fprintf(stderr, "device-plugin: %s\n",
                plugin->server != NULL ? bow_server_error(plugin->server) : "out of memory");
        return rc;
    }
    printf("listening on %s\n", plugin->socket);
    return 0;
}

bool plugin_is_reachable(const struct plugin *plugin)
{
    return access(plugin->socket, F_OK) == 0;
}

void plugin_tell(struct plugin *plugin)
{
    for (struct watcher *watcher = plugin->watchers; watcher != NULL; watcher = watcher->next) {
        tell(watcher);
    }
}

void plugin_stop(struct plugin *plugin)
{
    /* Watching has no end of its own: a server that drains would wait for it. */
    for (struct watcher *watcher = plugin->watchers; watcher != NULL; watcher = watcher->next) {
        v1beta1__device_plugin__list_and_watch__finish(watcher->call);
    }
    if (plugin->server != NULL) {
        bow_server_stop(plugin->server);
    }
}

bool plugin_has_stopped(const struct plugin *plugin)
{
    return plugin->server == NULL || bow_server_join(plugin->server) != -EDEADLK;
}

void plugin_free(struct plugin *plugin)
{
    bow_server_free(plugin->server);
}
